"""Filter for the log handlers of a process that removes secrets.

It covers records of any logger, the tools' own too. Output that a tool prints bypasses the log, and this
filter.
"""

from __future__ import annotations

import logging
from typing import Final

from baton.core.failures import sanitised

_MOST: Final = 100_000  # characters of one text of a line
_PLAIN: Final = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime"})


class SecretFilter(logging.Filter):
    """Log filter that removes secrets. The engine's own lines below WARNING have none, and pass."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Remove secrets from the record, and let it through."""
        if record.name.startswith("baton.") and record.levelno < logging.WARNING and not record.exc_info:
            return True
        from baton.core.failures.secret_names import REDACTED, is_secret

        said = record.getMessage()[:_MOST]
        record.msg, record.args = sanitised(said), ()
        if record.exc_info and record.exc_info[0] is not None:
            trace = logging.Formatter().formatException(record.exc_info)
            clean = sanitised(trace[-_MOST:])
            if clean != trace:  # not as an exception, of which formatters quote the texts again
                record.msg, record.exc_info, record.exc_text = f"{record.msg}\n{clean}", None, None
        for name, value in list(vars(record).items()):
            if name not in _PLAIN and value is not None:
                whole = str(value)[:_MOST]
                clean = REDACTED if is_secret(name) else sanitised(whole)
                if clean != whole:
                    setattr(record, name, clean)
        return True


def add_secret_filter(logger: logging.Logger) -> None:
    """Add the filter to each handler of the logger, once."""
    for handler in logger.handlers:
        if not any(isinstance(known, SecretFilter) for known in handler.filters):
            handler.addFilter(SecretFilter())
