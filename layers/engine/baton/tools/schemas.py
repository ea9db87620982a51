"""JSON Schemas of Python types, as pydantic makes them, in the form that every reader of a schema here can use.

Readers are the engine's own validator, which takes patterns of linear time only, and providers of models.
"""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

_DECIMAL = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"


class JsonSchemas(GenerateJsonSchema):
    """The generator for the parameters and results of tools, and for the types in a `Workflow`."""

    def decimal_schema(self, schema: Any) -> dict[str, Any]:
        """A `Decimal`: a decimal text, and on the way in a number, too.

        Pydantic's own pattern looks ahead. Digits, places and bounds that it would say are checked by the type itself.
        """
        found: dict[str, Any] = super().decimal_schema(schema)
        for kind in (found, *found.get("anyOf", ())):
            if kind.get("type") == "string":
                kind["pattern"] = _DECIMAL
        return found
