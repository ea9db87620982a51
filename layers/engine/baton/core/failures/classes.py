"""classify(...): which code, and so which class, a failure has, from whatever is known of it.

The names are in names.py, the codes in codes.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from baton.core.failures.codes import ALIASES, CLASSES, CODES, UNKNOWN, class_of
from baton.core.failures.defects import TOOL_DEFECT, is_bug
from baton.core.failures.names import EXCEPTIONS, OTHER_4XX, OTHER_5XX, SERVICES, STATUSES

RETRYABLE = frozenset({"transient", "unknown"})
"""The classes that are worth another try with nothing changed."""

_MOST = 64
_STRANGE = re.compile(r"[^a-z0-9_.]")


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a failure is: its code, its class, and the HTTP status if there was one."""

    code: str
    kind: str
    status: int = 0


def code_of(name: str) -> str:
    """A code as it is spelled here: `NETWORK_ERROR`, `not-found` and `503` are other spellings."""
    text = _STRANGE.sub("_", name.strip().lower())[:_MOST]
    if len(text) == 3 and text.isdigit():
        return code_of_status(int(text)) or text
    return ALIASES.get(text, text)


def code_of_status(status: int) -> str:
    """The code of an HTTP status; empty for one that says nothing of a failure."""
    if status in STATUSES:
        return STATUSES[status]
    return {4: OTHER_4XX, 5: OTHER_5XX}.get(status // 100, "")


def classify(
    *,
    code: str = "",
    kind: str = "",
    services: Sequence[str] = (),
    status: int = 0,
    exceptions: Sequence[str] = (),
) -> Verdict:
    """The code and class of a failure.

    code: what the tool itself says. kind: the class that it says, in any spelling; one that does not exist is passed over. services:
    codes out of the service's answer, such as `ThrottlingException`. status: of HTTP, 0 for none. exceptions: names
    with their modules, the most exact one first. What a tool says counts before what a service says, that before the
    status, and that before the name of an exception, which is a defect where it is on the list of these. An unknown code stays, with the class of what else is known.
    """
    known = _first(services, SERVICES) or code_of_status(status) or _first(exceptions, EXCEPTIONS)
    if not known:
        # What a tool itself says is no defect, whatever it was raised from.
        known = TOOL_DEFECT if is_bug(exceptions) and not code else "tool_error" if exceptions else UNKNOWN
    found = code_of(code) or known
    of = class_of(found if found in CODES else known)
    kind = _STRANGE.sub("_", kind.strip().lower())
    return Verdict(found, kind if kind in CLASSES else of, status)


def _first(names: Sequence[str], table: Mapping[str, str]) -> str:
    return next((table[name] for name in names if name in table), "")
