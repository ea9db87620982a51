"""What a condition is, once compiled: frozen data in the graph, one struct for each kind.

How a document writes them is in document.py, how each is judged in the file of its kind.
"""

from __future__ import annotations

from typing import Any

import msgspec


class _Condition(msgspec.Struct, frozen=True, tag_field="is", omit_defaults=True, kw_only=True):
    """Root of the tagged union."""


class Cel(_Condition, frozen=True, tag="cel", kw_only=True):
    """An expression of the Common Expression Language that gives a boolean."""

    expression: str


class JsonPath(_Condition, frozen=True, tag="jsonpath", kw_only=True):
    """What `query` (RFC 9535) finds in the value of the expression `of`, held by `operator` against `value`."""

    query: str
    operator: str = "exists"
    value: Any = None
    of: str = "output"


class Matches(_Condition, frozen=True, tag="schema", kw_only=True):
    """Whether the value of `of` is valid by a JSON Schema: the one here, or the one in the blob `ref`."""

    schema: Any = None
    ref: str = ""
    invert: bool = False
    of: str = "output"


class Compare(_Condition, frozen=True, tag="compare", kw_only=True):
    """Two values, each JSON with expressions."""

    left: Any
    operator: str
    right: Any


class AllOf(_Condition, frozen=True, tag="all", kw_only=True):
    """Holds when all hold; asked in order, as far as needed."""

    conditions: tuple[Condition, ...]


class AnyOf(_Condition, frozen=True, tag="any", kw_only=True):
    """Holds when one holds; asked in order, as far as needed."""

    conditions: tuple[Condition, ...]


class Not(_Condition, frozen=True, tag="not", kw_only=True):
    """Holds when the other does not."""

    condition: Condition


class Python(_Condition, frozen=True, tag="python", kw_only=True):
    """`evaluate(output, context)` in a sandbox: the source here, or in the blob `ref`.

    `of` is the expression of its first argument; `needs` are those whose values `context` holds.
    """

    code: str = ""
    ref: str = ""
    of: str = "output"
    needs: tuple[str, ...] = ()
    timeout_ms: int = 1_000
    memory_mb: int = 50


Condition = Cel | JsonPath | Matches | Compare | AllOf | AnyOf | Not | Python
