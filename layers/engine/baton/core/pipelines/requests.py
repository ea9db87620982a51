"""`http_request`, as it is written. It is sent before the other steps run, by what performs the pipeline."""

from __future__ import annotations

from typing import Any, Final

from baton.core.conditions.values import type_of
from baton.core.pipelines.base import Primitive
from baton.core.pipelines.shapes import (
    ANYTHING,
    Field,
    Shape,
    Wrong,
    by_type,
    checked,
    named,
    one_of,
    text,
    whole,
)

URL: Final = 8_000
_MANY = 64


def _scalar(value: Any) -> Any:
    """Raises `Wrong`."""
    if not isinstance(value, (str, int, float)):
        raise Wrong(f"this must be a text, a number or a boolean, not {type_of(value)}")
    return value


_SCALAR: Final = checked(Shape("a text", {"type": ["string", "number", "boolean"]}, ANYTHING.read), _scalar)

REQUEST = Primitive(
    "http_request",
    "Sends a request by the rules of `std.http`, and gives the body of its answer. Requests are sent first, in order.",
    (
        Field("url", text(URL, "an address"), "`https://…`"),
        Field("method", one_of("GET", "POST"), "POST carries an idempotency key", "GET"),
        Field("headers", named(text(URL), _MANY, "an object of texts"), "headers", None),
        Field("query", named(_SCALAR, _MANY, "an object"), "parameters: texts, numbers and booleans", None),
        Field("json", ANYTHING, "the body of a POST", None),
        Field(
            "timeout",
            by_type("a duration such as `5s`", str=text(20), int=whole(1, 900)),
            "of this request, to its last byte: `5s`, or seconds",
            None,
        ),
    ),
    None,
)
