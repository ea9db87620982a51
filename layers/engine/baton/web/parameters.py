"""Rows of the route table, and parameters in paths and queries."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from baton.core.expressions import nearest
from baton.core.graph.graph import WORKFLOW_NAME
from baton.errors import NotFound, UserError
from baton.runtime.requests.queries import MAX_LIST
from baton.web.bodies.requests import Body, rfc3339_ms
from baton.web.replies import Ask

_SHOWN = 40
_DIGITS = re.compile(r"0|[1-9][0-9]{0,15}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter. `read` converts the text. It raises `ValueError` with a description of valid text."""

    name: str
    schema: Mapping[str, Any]
    description: str
    read: Callable[[str], Any] = str
    default: Any = None
    example: Any = None


def whole_parameter(name: str, least: int, most: int, default: int | None, description: str) -> Parameter:
    """Return a parameter for an integer in decimal digits."""
    schema: dict[str, Any] = {"type": "integer", "minimum": least, "maximum": most}
    if default is not None:
        schema["default"] = default

    def read(text: str) -> int:
        value = int(text) if _DIGITS.fullmatch(text) else -1
        if not least <= value <= most:
            raise ValueError(f"a whole number from {least} to {most:,}")
        return value

    return Parameter(name=name, schema=schema, description=description, read=read, default=default)


def pattern_parameter(
    name: str, pattern: str, right: str, description: str, *, example: str | None = None
) -> Parameter:
    """Return a parameter for text that matches a pattern, empty if absent. `right` describes a match."""

    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(right)
        return text

    schema = {"type": "string", "pattern": f"^{pattern}$"}
    return Parameter(
        name=name, schema=schema, description=description, read=read, default="", example=example
    )


def word_parameter(
    name: str, values: Sequence[str], description: str, hints: Mapping[str, str] = MappingProxyType({})
) -> Parameter:
    """Return a parameter for one of several words, empty if absent. `hints`: by invalid word."""

    def read(text: str) -> str:
        if text not in values:
            hint = hints.get(text) or nearest(text[:_SHOWN], values)
            raise ValueError(f"one of {', '.join(values)}{f' ({hint})' if hint else ''}")
        return text

    schema = {"type": "string", "enum": list(values)}
    return Parameter(name=name, schema=schema, description=description, read=read, default="")


def object_parameter(name: str, description: str, example: str) -> Parameter:
    """Return a parameter for a JSON object, empty if absent."""

    def read(text: str) -> dict[str, Any]:
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise ValueError(f"a JSON object, such as {example}")
        return value

    content = {"type": "string", "contentMediaType": "application/json"}
    return Parameter(
        name=name, schema=content, description=description, read=read, default={}, example=example
    )


def moment(name: str, description: str) -> Parameter:
    """Return a parameter for an RFC 3339 time with offset, in epoch rfc3339_ms; 0 if absent."""
    return Parameter(
        name=name,
        schema={"type": "string", "format": "date-time"},
        description=description,
        read=rfc3339_ms,
        default=0,
        example="2026-11-21T10:00:00Z",
    )


def day(name: str, description: str) -> Parameter:
    """Return a parameter for a day (UTC), as epoch rfc3339_ms of its start. If absent, the value is 0."""
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
        return rfc3339_ms(f"{text}T00:00:00Z")
    except ValueError as error:
        raise ValueError("a day, such as 2026-11-21") from error


def read_path(parameters: Iterable[Parameter], given: Mapping[str, str]) -> dict[str, Any]:
    """Return the values in a path. Raises `NotFound` for values that cannot exist."""
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
    """Return the values of a query for all parameters. Raises a `UserError` that names all faults."""
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
"""Kinds of requests whose token identifies the tenant."""
MOST_ANNOUNCED = 65_536
"""Maximum number of bytes of a model provider's announcement: an event with an id, without the answer."""
DEFAULT_EVENTS = 100
MAX_CURSOR = 8_192  # that of a list over 32 shards, of sagas deep in sagas, needs most of it
MAX_NUMBER = 999_999_999  # of versions in requests
B = TypeVar("B", bound=Body | None)


@dataclass(frozen=True, kw_only=True)
class Route(Generic[B]):
    """One method of one path.

    id: name of the operation in the OpenAPI document; it never changes. roles: the caller needs one of these;
    a route without roles requires no identity. handler: returns a `Reply`, or only its body where `answers`
    has one status. by_token: an element of BY_TOKEN if a token in the path or the body identifies the tenant;
    such requests have a rate limit of their own. body: model of the body. takes_text: the body is a document
    or, with `takes` (names of models by media type), another text. is_signed: the handler refuses bodies
    without a provider's signature. most_bytes: size limit of such a body. answers: names of models by status.
    refusals: statuses of the handler's own refusals, without those that follow from other fields.
    """

    method: str
    path: str
    id: str
    summary: str
    handler: Callable[[Ask[B]], Awaitable[object]]
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


WORKFLOW = pattern_parameter(
    "name", WORKFLOW_NAME[1:-1], "the name of a workflow", "Name of the workflow.", example="dinner"
)
LIMIT = whole_parameter(
    "limit",
    1,
    MAX_LIST,
    DEFAULT_LIST,
    "Maximum number of items on a page. A page can be shorter and not be the last.",
)
CURSOR = pattern_parameter(
    "cursor",
    f"[A-Za-z0-9_.~=-]{{1,{MAX_CURSOR}}}",
    "the `next` of the page before",
    "Value of `next` from the previous page.",
)
