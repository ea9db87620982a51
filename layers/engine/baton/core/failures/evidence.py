"""evidence_of(error): the facts of an exception and of the answer behind it, as names for `classify`.

No library is imported: attributes are found by name.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_tz
from typing import Any

import msgspec

from baton.core.failures.names import EXCEPTIONS, SENT, UNSENT, Verdict, classify

MOST_CAUSES = 8
# Where a status and a service's own code are found: on the error, or on the response that it carries.
_STATUS = ("status_code", "status", "http_status", "code")
_CODE = ("code", "type", "sqlstate", "pgcode", "sqlite_errorname")


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """Arguments of `classify`; `retry_after` is the header's text.

    `unsent`: no connection came about, so that nothing was sent.
    """

    services: tuple[str, ...] = ()
    status: int = 0
    exceptions: tuple[str, ...] = ()
    retry_after: str = ""
    unsent: bool = False

    def verdict(self, code: str = "", kind: str = "") -> Verdict:
        """Return the code and class of the failure."""
        return classify(
            code=code, kind=kind, services=self.services, status=self.status, exceptions=self.exceptions
        )


def evidence_of(error: BaseException) -> Evidence:
    """Return the facts of an exception; without a known name, those of its causes, too."""
    services: list[str] = []
    names: list[str] = []
    status, retry_after = 0, ""
    for one in _chain(error):
        own = tuple(map(_name, type(one).__mro__))
        names += own
        services += _services(one)
        status = status or _status(one)
        retry_after = retry_after or _retry_after(one)
        if status or services or any(name in EXCEPTIONS for name in own):
            break
    return Evidence(tuple(services), status, tuple(names), retry_after, _is_unsent(error))


def _is_unsent(error: BaseException) -> bool:
    """Return true if an exception or its cause reports that no connection came about, and none reports one
    that did.
    """
    names = [set(map(_name, type(one).__mro__)) for one in _chain(error)]
    is_sent = any(not own.isdisjoint(SENT) for own in names) or any(map(_status, _chain(error)))
    return not is_sent and any(not own.isdisjoint(UNSENT) for own in names)


def _chain(error: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = error
    for _ in range(MOST_CAUSES):
        if found is None:
            return
        yield found
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)


def _name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _of(owner: Any, name: str) -> Any:
    """Return an attribute, or an item of a mapping; None without one."""
    if isinstance(owner, Mapping):
        return owner.get(name)
    try:
        return getattr(owner, name, None)
    except Exception:  # noqa: BLE001  # a property may raise anything, and this is no time to fail
        return None


def _status(error: BaseException) -> int:
    response = _of(error, "response")
    places = [_of(error, name) for name in _STATUS]
    places += [_of(response, "status_code"), _of(response, "status")]
    places.append(_of(_of(response, "ResponseMetadata"), "HTTPStatusCode"))
    return next((place for place in places if type(place) is int and 300 <= place <= 599), 0)


def _services(error: BaseException) -> list[str]:
    found = [_of(error, name) for name in _CODE]
    found.append(_of(_of(_of(error, "response"), "Error"), "Code"))
    body = _of(error, "body")
    found += [_of(inner, name) for inner in (body, _of(body, "error")) for name in ("code", "type")]
    number = _of(error, "errno")
    if isinstance(error, OSError) and type(number) is int:
        found.append(errno.errorcode.get(number))
    return list(dict.fromkeys(text for text in found if isinstance(text, str) and 0 < len(text) <= 100))


def _retry_after(error: BaseException) -> str:
    response = _of(error, "response")
    headers = [_of(error, "headers"), _of(response, "headers")]
    headers.append(_of(_of(response, "ResponseMetadata"), "HTTPHeaders"))
    return next((text[:100] for found in headers if (text := _header(found, "retry-after"))), "")


def _header(headers: Any, name: str) -> str:
    """Return a header, in any case of letters: a plain dict knows only the case that it was made with."""
    try:
        for key, value in headers.items():
            if isinstance(key, str) and key.lower() == name and type(value) in (str, int):
                return str(value)
    except Exception:  # noqa: BLE001  # no headers, or a library's code, as above
        return ""
    return ""


LONGEST_MS = 366 * 86_400_000
_SECONDS = re.compile("[0-9]+")
_CLOCK = "[0-9]{2}:[0-9]{2}:[0-9]{2}"
# The standard library reads many dates of mail besides, and zones that it does not know as GMT.
_DATE = re.compile(
    f"[A-Z][a-z]+day, [0-9]{{2}}-[A-Z][a-z]{{2}}-[0-9]{{2}} {_CLOCK} GMT"
    f"|[A-Z][a-z]{{2}}, [0-9]{{2}} [A-Z][a-z]{{2}} [1-9][0-9]{{3}} {_CLOCK} GMT"
    f"|[A-Z][a-z]{{2}} [A-Z][a-z]{{2}} [ 0-9][0-9] {_CLOCK} [1-9][0-9]{{3}}"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_retry_after(text: str, now_ms: int) -> int | None:
    """Return milliseconds from now, 0 for a past date, at most 366 days; None for any other form."""
    text = text.strip(" \t")
    if _SECONDS.fullmatch(text):
        # A number of a thousand digits need not be read to know that it is long.
        digits = text.lstrip("0")
        return LONGEST_MS if len(digits) > 9 else min(int(digits or "0") * 1_000, LONGEST_MS)
    fields = parsedate_tz(text) if _DATE.fullmatch(text) else None
    if fields is None or fields[5] > 60:
        return None
    year, month, day, hour, minute, second = fields[:6]
    if "-" in text:  # Two digits mean the year that is at most 50 years away.
        oldest = (_EPOCH + timedelta(milliseconds=now_ms)).year - 49
        year = oldest + (year - oldest) % 100
    try:
        moment = (datetime(year, month, day, hour, minute, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
    except ValueError:
        return None
    # A leap second, 60, is the next minute's first.
    return max(0, min(moment + second * 1_000 - now_ms, LONGEST_MS))
