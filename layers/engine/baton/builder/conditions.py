"""Conditions as Python says them: CEL as text, and functions for the other ways of asking.

The compiler says which operators, queries and schemas there are. source.py turns a Python function into text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from baton.builder.parts import Later, Part, given, list_of, written
from baton.builder.parts import schema as any_schema
from baton.builder.references import Reference
from baton.builder.values import DEEPEST, Collector, Duration

_EXPRESSION = re.compile(r"\$\{[^}]*\}")
_CEL_STRING_OR_COMMENT = re.compile(
    r"//[^\n]*"
    r"|[rR]?(?P<long>'{3}|\"{3})(?s:.*?)(?P=long)"
    r"|[rR](?P<raw>['\"])[^\n]*?(?P=raw)"
    r"|(?P<quote>['\"])(?:\\.|[^\\\n])*?(?P=quote)"
)
_MAYBE = re.compile(r"(ctx\.\w+\.output)\?")
_LEFT_OUT: Any = object()


class Condition(Part):
    """What has to hold; made by the functions of this file."""


Holds = Condition | Reference | str
"""A condition; a text is CEL, and a reference is a value that is true or false."""


def cel(expression: str) -> Condition:
    """An expression of CEL, the same as the text alone."""
    return Condition((("cel", _cel, expression),))


def jsonpath(
    query: str, operator: str | None = None, value: Any = _LEFT_OUT, *, of: Reference | str | None = None
) -> Condition:
    """What a JSONPath query finds, held by `operator` against `value`: `jsonpath("$.rows[*].price", "sum_gt", 100)`.

    It looks into the value `of`, by default what the node gave; in `when`, the saga's input.
    """
    operand = () if value is _LEFT_OUT else (("value", Collector.value, value),)
    return Condition(
        (
            ("jsonpath", Collector.value, query),
            *given(("operator", Collector.value, operator)),
            *operand,
            *given(("of", Collector.value, of)),
        )
    )


def matches(
    # An object, because for type checkers `int | None` and `Annotated[…]` are no types when they are values.
    schema: object,
    *,
    invert: bool | None = None,
    of: Reference | str | None = None,
) -> Condition:
    """Whether a value fits a schema: a type, a JSON Schema, the name of one under `schemas`, or `cas://sha256/…`."""
    return Condition(
        (
            ("schema", any_schema, schema),
            *given(("invert", Collector.value, invert), ("of", Collector.value, of)),
        )
    )


def compare(left: Any, operator: str, right: Any) -> Condition:
    """Two values, with references in them: `compare(OUTPUT.total, ">", quote.output.limit)`."""
    sides = Part(
        (
            ("left", Collector.value, left),
            ("operator", Collector.value, operator),
            ("right", Collector.value, right),
        )
    )
    return Condition((("compare", written, sides),))


def all_of(*conditions: Holds) -> Condition:
    """Holds when all hold; they are asked in their order, as far as needed."""
    return Condition((("all", list_of(condition), conditions),))


def any_of(*conditions: Holds) -> Condition:
    """Holds when one holds; they are asked in their order, as far as needed."""
    return Condition((("any", list_of(condition), conditions),))


def not_(negated: Holds) -> Condition:
    """Holds when the other does not."""
    return Condition((("not", condition, negated),))


def python(
    function: Callable[..., object] | str,
    *,
    needs: Sequence[Reference | str] | None = None,
    of: Reference | str | None = None,
    timeout: Duration | None = None,
    max_memory_mb: int | None = None,
) -> Condition:
    """A function of `output` and `context` that gives True or False, run in a sandbox.

    A function's source is what goes into the document, under the name `evaluate`: nothing outside of it is there when it
    runs. It may be given as that text, too, or as `cas://sha256/…`. `context` holds the values that it `needs`.
    """
    return Condition(
        (
            ("python", _code, function),
            *given(
                ("needs", list_of(_name), needs),
                ("of", Collector.value, of),
                ("timeout", Collector.duration, timeout),
                ("max_memory_mb", Collector.value, max_memory_mb),
            ),
        )
    )


# ---- writing them ------------------------------------------------------------------------------------------------


def condition(made: Collector, path: str, value: Any) -> Any:
    """The writer of whatever has to hold."""
    if path.count("/") >= DEEPEST:
        return made.replace(path, f"nested deeper than {DEEPEST} levels")
    if isinstance(value, Condition):
        return written(made, path, value)
    if isinstance(value, (str, Reference)):
        return _cel(made, path, value)
    return made.replace(
        path,
        f"`{made.shown(value)}` is not a condition",
        "write CEL as text, or cel(), jsonpath(), matches(), compare(), all_of(), any_of(), not_() or python()",
    )


def _cel(made: Collector, path: str, value: Any) -> Any:
    """CEL, in which a reference is its bare name. In quotes it would be text, which no author means."""
    text = made.value(path, value)
    if not isinstance(text, str):
        return text
    known = {text} if isinstance(value, Reference) else made.formatted
    found = [match for match in _EXPRESSION.finditer(text) if match[0] in known]
    quoted = [match.span() for match in _CEL_STRING_OR_COMMENT.finditer(text) if match[0][0] != "/"]
    for match in found:
        name = match[0][2:-1]
        if any(begin < match.start() < end for begin, end in quoted):
            made.note(path, f"`{name}` stands in quotes, where it is only text", "leave the quotes out")
        elif there := _MAYBE.match(name):
            made.note(path, f"`{name}` cannot stand in CEL", f"write has({there[1]}) && {there[1]}…")
    return _EXPRESSION.sub(lambda match: match[0][2:-1] if match[0] in known else match[0], text)


def _name(made: Collector, path: str, value: Any) -> Any:
    """What a reference stands for, as it is written between `${` and `}`."""
    text = made.value(path, value)
    is_reference = isinstance(text, str) and (isinstance(value, Reference) or text in made.formatted)
    return text[2:-1] if is_reference else text


def _code(made: Collector, path: str, value: Any) -> Any:
    if not callable(value):
        return made.value(path, value)

    def make(made: Collector, path: str) -> Any:
        from baton.builder.source import source_of

        try:
            return source_of(value)
        except ValueError as error:
            return made.replace(path, *error.args)

    return Later(make)
