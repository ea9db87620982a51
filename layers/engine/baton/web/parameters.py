"""Rows of the table of routes, and parameters in paths and queries."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from baton.core.documents.parts.naming import WORKFLOW_NAME
from baton.core.expressions import nearest
from baton.errors import NotFound, UserError
from baton.runtime.requests.queries import MAX_LIST
from baton.web.bodies.requests import Body
from baton.web.replies import Ask, Reply

_SHOWN = 40
_DIGITS = re.compile(r"0|[1-9][0-9]{0,15}")
_MOMENT = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """`read` makes a value of the text, or raises `ValueError` that says what would be right."""

    name: str
    schema: Mapping[str, Any]
    description: str
    read: Callable[[str], Any] = str
    default: Any = None
    example: Any = None


def whole(name: str, least: int, most: int, default: int | None, description: str) -> Parameter:
    """A whole number, in decimal digits."""
    schema: dict[str, Any] = {"type": "integer", "minimum": least, "maximum": most}
    if default is not None:
        schema["default"] = default

    def read(text: str) -> int:
        value = int(text) if _DIGITS.fullmatch(text) else -1
        if not least <= value <= most:
            raise ValueError(f"a whole number from {least} to {most:,}")
        return value

    return Parameter(name=name, schema=schema, description=description, read=read, default=default)


def words(name: str, pattern: str, right: str, description: str, *, example: str | None = None) -> Parameter:
    """Text that matches a pattern; without it the value is empty. `right` says what would match."""

    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(right)
        return text

    schema = {"type": "string", "pattern": f"^{pattern}$"}
    return Parameter(
        name=name, schema=schema, description=description, read=read, default="", example=example
    )


def one_of(
    name: str, values: Sequence[str], description: str, hints: Mapping[str, str] = MappingProxyType({})
) -> Parameter:
    """One of some words; without it the value is empty. `hints`: what to say of words that are none of them."""

    def read(text: str) -> str:
        if text not in values:
            hint = hints.get(text) or nearest(text[:_SHOWN], values)
            raise ValueError(f"one of {', '.join(values)}{f' ({hint})' if hint else ''}")
        return text

    schema = {"type": "string", "enum": list(values)}
    return Parameter(name=name, schema=schema, description=description, read=read, default="")


def moment(name: str, description: str) -> Parameter:
    """A date and time with its offset after RFC 3339, as epoch milliseconds; without it 0."""
    return Parameter(
        name=name,
        schema={"type": "string", "format": "date-time"},
        description=description,
        read=_milliseconds,
        default=0,
        example="2026-11-21T10:00:00Z",
    )


def day(name: str, description: str) -> Parameter:
    """A day (UTC), as the epoch milliseconds of its beginning; without it 0."""
    return Parameter(
        name=name,
        schema={"type": "string", "format": "date"},
        description=description,
        read=_beginning,
        default=0,
        example="2026-11-21",
    )


def _beginning(text: str) -> int:
    try:
        if len(text) != len("2026-11-21"):
            raise ValueError
        return _milliseconds(f"{text}T00:00:00Z")
    except ValueError as error:
        raise ValueError("a day, such as 2026-11-21") from error


def _milliseconds(text: str) -> int:
    match = _MOMENT.fullmatch(text)
    right = "a time with its offset, such as 2026-11-21T10:00:00Z (a `+` in a URL is written `%2B`)"
    if not match:
        raise ValueError(right)
    day, clock, fraction, offset = match.groups()
    try:
        whole_seconds = datetime.fromisoformat(f"{day}T{clock}{offset.upper().replace('Z', '+00:00')}")
    except ValueError as error:
        raise ValueError(right) from error
    since_epoch = whole_seconds - _EPOCH
    seconds = since_epoch.days * 86_400 + since_epoch.seconds
    return max(0, seconds * 1_000 + int((fraction or "0")[:3].ljust(3, "0")))


def read_path(parameters: Iterable[Parameter], given: Mapping[str, str]) -> dict[str, Any]:
    """The values in a path. Raises `NotFound` for values that cannot exist."""
    values = {}
    for parameter in parameters:
        text = given[parameter.name]
        try:
            values[parameter.name] = parameter.read(text)
        except ValueError as error:
            raise NotFound(
                f"`{parameter.name}` in the path must be {error}; it is `{text[:_SHOWN]}`"
            ) from error
    return values


def read_query(parameters: Iterable[Parameter], given: Mapping[str, str]) -> dict[str, Any]:
    """The values of a query, all parameters included.
    Raises a `UserError` that names all that is wrong with it.
    """
    known = {parameter.name: parameter for parameter in parameters}
    wrong = [_unknown(name, known) for name in given if name not in known]
    values: dict[str, Any] = {}
    for name, parameter in known.items():
        try:
            values[name] = parameter.read(given[name]) if name in given else parameter.default
        except ValueError as error:
            wrong.append(f"query parameter `{name}` must be {error}; it is `{given[name][:_SHOWN]}`")
    if wrong:
        raise UserError("; ".join(wrong))
    return values


def _unknown(name: str, known: Iterable[str]) -> str:
    names = list(known)
    shown = f"query parameter `{name[:_SHOWN]}` is not known here"
    hint = nearest(name[:_SHOWN], names)
    if hint:
        return f"{shown}: {hint}"
    return f"{shown}; known: {', '.join(names)}" if names else f"{shown}: this route has none"


DEFAULT_LIST = 50
CALLBACKS, CONFIRMATIONS = "callbacks", "confirmations"
BY_TOKEN = (CALLBACKS, CONFIRMATIONS)
"""Requests whose token says for whom they are."""
MOST_ANNOUNCED = 65_536
"""Bytes of what a provider of models announces: an event with an id, and no answer."""
DEFAULT_EVENTS = 100
MAX_CURSOR = 8_192  # that of a list over 32 shards, of sagas deep in sagas, needs most of it
MAX_NUMBER = 999_999_999  # of versions in requests
B = TypeVar("B", bound=Body | None)


@dataclass(frozen=True, kw_only=True)
class Route(Generic[B]):
    """One method of one path.

    id: the operation's name in the OpenAPI document, which never changes. roles: any of these lets a
    caller in; none at all lets everybody in, without an identity. by_token: one of BY_TOKEN, where a
    token in the path or the body says for which tenant; such requests have a rate of their own. body:
    its model; `takes_text` where it is a document instead, or (takes: models' names by media types)
    something else. is_signed: the handler refuses what a provider has not signed; most_bytes: of such
    a body. answers: status to the name of a model in bodies/. refusals: the statuses that the handler
    itself can refuse with; those that follow from the rest of the row are not repeated here.
    """

    method: str
    path: str
    id: str
    summary: str
    handler: Callable[[Ask[B]], Awaitable[Reply]]
    roles: tuple[str, ...]
    answers: Mapping[int, str]
    parameters: tuple[Parameter, ...] = ()
    query: tuple[Parameter, ...] = ()
    body: type[B] | None = None
    takes_text: bool = False
    takes: Mapping[str, str] = field(default_factory=dict)
    has_key: bool = False
    by_token: str = ""
    is_signed: bool = False
    most_bytes: int = 0
    refusals: tuple[int, ...] = ()


WORKFLOW = words(
    "name", WORKFLOW_NAME[1:-1], "the name of a workflow", "The workflow's name.", example="dinner"
)
LIMIT = whole(
    "limit", 1, MAX_LIST, DEFAULT_LIST, "How many at most. A page may be shorter and yet not be the last."
)
CURSOR = words(
    "cursor",
    f"[A-Za-z0-9_.~=-]{{1,{MAX_CURSOR}}}",
    "the `next` of the page before",
    "The `next` of the page before.",
)
