"""JSON Schemas of Python types, as pydantic makes them, in what every reader of a schema here can use.

Readers are the engine's own validator, which takes patterns of linear time only, and providers of models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

_EXPONENT = "([eE][+-]?[0-9]+)?"


class JsonSchemas(GenerateJsonSchema):
    """The generator for the parameters and results of tools, and for the types in a `Workflow`."""

    def decimal_schema(self, schema: Any) -> dict[str, Any]:
        """A `Decimal`: a decimal text, and on the way in a number, too. Pydantic's own pattern looks ahead."""
        found: dict[str, Any] = super().decimal_schema(schema)
        text = {"type": "string", "pattern": _pattern(schema, is_signed=not self._is_input_from_zero(schema))}
        kinds = found.get("anyOf")
        if kinds is None:
            return text
        return {**found, "anyOf": [text if kind.get("type") == "string" else kind for kind in kinds]}

    def _is_input_from_zero(self, schema: Any) -> bool:
        bounds = [schema[name] for name in ("gt", "ge") if schema.get(name) is not None]
        return self.mode == "validation" and any(bound >= 0 for bound in bounds)


def _pattern(schema: Any, *, is_signed: bool) -> str:
    """As far as a pattern without look-ahead says it; the type itself says the rest when the tool is called."""
    digits, places = schema.get("max_digits"), schema.get("decimal_places")
    whole = "[0-9]+"
    if digits is not None:
        most = max(0, digits - (places or 0))
        whole = f"0*[0-9]{{1,{most}}}" if most else "0+"
    part, least_part = "[0-9]*", "[0-9]+"
    if places is not None:
        part, least_part = f"[0-9]{{0,{places}}}0*", f"[0-9]{{1,{places}}}0*" if places else "0+"
    return f"^[{'+-' if is_signed else '+'}]?({whole}(\\.{part})?|\\.{least_part}){_EXPONENT}$"


def parts_of(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Every object in pydantic's core schema of a type: schemas, fields and configurations."""
    todo = [schema]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            yield part
            todo += (value for key, value in part.items() if key not in _NO_SCHEMA)
        elif isinstance(part, (list, tuple)):
            todo += part


_NO_SCHEMA = frozenset({"cls", "default", "expected", "function", "members", "metadata"})
"""What holds objects of the application: there may be circles in them."""
