"""Schemas of a description as one JSON Schema that stands alone, and references as far as they lead inside of it.

OpenAPI 3.0 has words of its own; what JSON Schema does not know is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

MOST_PARTS: Final = 20_000
MOST_DEPTH: Final = 100
_MOST_REFERENCES: Final = 20  # one behind the other

_ONE: Final = frozenset((
    "additionalProperties", "items", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems",
    "unevaluatedProperties",
))  # fmt: skip
_LISTS: Final = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_NAMED: Final = frozenset(("properties", "patternProperties", "dependentSchemas"))
_PLAIN: Final = frozenset((
    "type", "enum", "const", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems", "minContains", "maxContains", "minProperties",
    "maxProperties", "dependentRequired",
))  # fmt: skip


class DescriptionError(Exception):
    """A description cannot be used; the message says why."""


def resolved(document: Any, node: Any) -> dict[str, Any]:
    """An object, behind all references that stand in its place. Raises `DescriptionError`."""
    for _ in range(_MOST_REFERENCES):
        if not isinstance(node, dict):
            raise DescriptionError("where an object is expected, there is none")
        if "$ref" not in node:
            return node
        node = target(document, node["$ref"])
    raise DescriptionError("its references go round in circles")


def target(document: Any, reference: Any) -> Any:
    """What a reference leads to. Raises `DescriptionError` for one that leads out of the document."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        raise DescriptionError(
            f"it refers to `{str(reference)[:100]}`: nothing but references inside of it (`#/…`) is followed; put it into one document"
        )
    here = document
    for token in unquote(reference[2:]).split("/"):
        key = token.replace("~1", "/").replace("~0", "~")
        if not isinstance(here, dict) or key not in here:
            raise DescriptionError(f"there is no `{reference[:100]}` in it")
        here = here[key]
    return here


class Schemas:
    """Those of one operation: what they refer to becomes definitions beside them. Raises `DescriptionError`."""

    def __init__(self, document: Any, *, is_3_0: bool) -> None:
        self._document, self._is_3_0 = document, is_3_0
        self._names: dict[str, str] = {}
        self._pending: list[str] = []
        self._left = MOST_PARTS

    def definitions(self) -> dict[str, Any]:
        """Of all that was referred to; call it last."""
        made: dict[str, Any] = {}
        while self._pending:
            reference = self._pending.pop()
            made[self._names[reference]] = self.of(target(self._document, reference))
        return made

    def of(self, schema: Any, depth: int = 0) -> Any:
        self._left -= 1
        if self._left < 0 or depth > MOST_DEPTH:
            raise DescriptionError("the schemas of this operation are too large, or nested too deeply")
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise DescriptionError("where a schema is expected, there is none")
        made: dict[str, Any] = {}
        for word, value in schema.items():
            if word in _ONE:
                made[word] = self.of(value, depth + 1)
            elif word in _LISTS and isinstance(value, list):
                made[word] = [self.of(one, depth + 1) for one in value]
            elif word in _NAMED and isinstance(value, dict):
                made[word] = {name: self.of(one, depth + 1) for name, one in value.items()}
            elif word in _PLAIN:
                made[word] = value
        if "$ref" in schema:
            made["$ref"] = f"#/$defs/{self._name(str(schema['$ref']))}"
        if isinstance(schema.get("required"), list):
            made["required"] = _asked(schema)
        return _modern(made, schema) if self._is_3_0 else made

    def _name(self, reference: str) -> str:
        if reference not in self._names:
            self._names[reference] = f"d{len(self._names)}"
            self._pending.append(reference)
        return self._names[reference]


def _asked(schema: Mapping[str, Any]) -> list[Any]:
    """Of what is required, what is not for answers only."""
    properties = schema.get("properties")
    own = properties if isinstance(properties, dict) else {}
    return [
        name
        for name in schema["required"]
        if not (isinstance(own.get(name), dict) and own[name].get("readOnly") is True)
    ]


def _modern(made: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """What OpenAPI 3.0 says in its own way, in that of JSON Schema."""
    for word, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(made.get(word), bool) and made.pop(word) and bound in made:
            made[word] = made.pop(bound)
    if schema.get("nullable") is True:
        return {"anyOf": [made, {"type": "null"}]}
    return made
