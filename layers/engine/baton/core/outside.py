"""Events from outside: their form. core/graph/graph.py has the rules by which a workflow handles them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from baton.core.expressions import escape, nearest
from baton.errors import Problem

VERSION = "1.0"
LONGEST_ID, LONGEST_SOURCE, LONGEST_TYPE = 512, 512, 256
LONGEST_KEY = 256
"""Of a correlation key."""
REQUIRED = {"id": LONGEST_ID, "source": LONGEST_SOURCE, "type": LONGEST_TYPE}
OPTIONAL = ("subject", "time", "datacontenttype", "dataschema")
_NAME = re.compile(r"[a-z0-9]{1,64}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_DATA = ("data", "data_base64")


def event_problems(event: Any, place: str = "") -> list[Problem]:
    """Return the faults of an event; empty if it is valid."""
    if not isinstance(event, Mapping):
        return [Problem(place, "an event is a JSON object with `specversion`, `id`, `source` and `type`")]
    return list(_problems(event, place))


def _problems(event: Mapping[str, Any], place: str) -> Iterator[Problem]:
    if event.get("specversion") != VERSION:
        yield Problem(f"{place}/specversion", f'`specversion` must be "{VERSION}"')
    for name, longest in REQUIRED.items():
        value = event.get(name)
        if name not in event:
            yield Problem(f"{place}/{name}", f"`{name}` is missing", _meant(name, event))
        elif not isinstance(value, str) or not 0 < len(value) <= longest:
            yield Problem(f"{place}/{name}", f"`{name}` is a text of 1 to {longest} characters")
    for name, value in event.items():
        if name in _DATA or name in REQUIRED or name == "specversion":
            continue
        at = f"{place}/{escape(name)}"
        if not _NAME.fullmatch(name):
            yield Problem(
                at,
                f"`{name[:80]}` is no name of an attribute: lower-case letters and digits",
                _elsewhere(name),
            )
        elif value is not None and not isinstance(value, (str, bool, int)):
            yield Problem(
                at, f"the attribute `{name}` is a text, a whole number or a truth value", "put it into `data`"
            )
        elif name == "time" and value is not None and not (isinstance(value, str) and _TIME.fullmatch(value)):
            yield Problem(at, "`time` is a time with its offset, such as 2026-12-01T09:00:00Z")
    if all(name in event for name in _DATA):
        yield Problem(f"{place}/data_base64", "an event has `data` or `data_base64`, not both")


def _meant(name: str, event: Mapping[str, Any]) -> str:
    there = {"id": "eventid", "source": "origin", "type": "eventtype detailtype"}[name].split()
    return next((f"rename `{one}`" for one in event if re.sub("[^a-z]", "", one.lower()) in there), "")


def _elsewhere(name: str) -> str:
    return nearest(name.lower(), (*REQUIRED, *OPTIONAL, "data")) or "put it into `data`"


def identity_of(event: Mapping[str, Any]) -> str:
    """Return the key of a repeated event: source and id, which CloudEvents requires to be unique together."""
    named = msgspec.json.encode([event["source"], event["id"]])
    return hashlib.sha256(named).hexdigest()[:32]


USER_SHAPE: Final = "a user is 1 to 640 letters, digits and `_.:@/+=|,-`"
USER_PATTERN: Final = "[A-Za-z0-9_.:@/+=|,-]{1,640}"  # as long as the ARN of a user with the longest path
_USER = re.compile(USER_PATTERN)


def is_user(name: object) -> bool:
    """Return true if a user can have this name."""
    return isinstance(name, str) and _USER.fullmatch(name) is not None
