"""`transform`: any JSON into other JSON, by JMESPath."""

from __future__ import annotations

from typing import Any

from baton.core.pipelines import limits
from baton.core.pipelines.base import Call, Primitive
from baton.core.pipelines.shapes import Field, checked, text


def _parsed(source: str) -> Any:
    """Raises `Wrong`."""
    from baton.core.pipelines import jmes  # a library that few pipelines need

    return jmes.Expression(source)


def _transform(call: Call) -> Any:
    return call.fields["expression"].of(call.value, call.work)


TRANSFORM = Primitive(
    "transform",
    "Makes any other JSON of any JSON: takes a list out of an answer, or computes new objects.",
    (
        Field(
            "expression",
            checked(text(limits.EXPRESSION, "a JMESPath expression"), _parsed),
            "in JMESPath: `flights[].{airline: carrier.name, price: price}`",
        ),
    ),
    _transform,
)
