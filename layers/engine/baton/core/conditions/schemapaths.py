"""What a JSON Schema says plainly: the types of its values, and where a path leads in it.

Checking values is in schema.py, what is wrong with a document in core/documents/compile. Whatever is not plain counts
as possible, so that no author gets a false problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

TYPES = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})
_NUMERIC = frozenset({"integer", "number", "boolean"})
_SCALAR = _NUMERIC | {"string"}
_WORDS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "null": "null",
    "array": "a list",
    "object": "an object",
}
# Schemas come from users: references may go in circles, and a union may be as long as the document.
_MOST = 20


@dataclass(frozen=True)
class Schema:
    """A schema, or None where nothing is known, inside the one that holds its `$defs`."""

    value: Any
    root: Any

    def resolved(self) -> Schema:
        """What a reference into `$defs` refers to."""
        value = self.value
        for _ in range(_MOST):
            reference = value.get("$ref") if isinstance(value, dict) else None
            if not isinstance(reference, str):
                return Schema(value, self.root)
            known = self.root.get("$defs") if isinstance(self.root, dict) else None
            name = reference.removeprefix("#/$defs/")
            value = known.get(name) if isinstance(known, dict) and name != reference else None
        return Schema(None, self.root)

    def types(self) -> frozenset[str]:
        """The types that its values can have, as JSON Schema names them; all of them where it does not say."""
        found: set[str] = set()
        seen: set[int] = set()
        look_at = [self]
        while look_at:
            value = look_at.pop().resolved().value
            if id(value) in seen:
                continue
            seen.add(id(value))
            said, union = _said(value), _union(value)
            if len(seen) > _MOST or not (said or union):
                return TYPES
            found |= said
            look_at += () if said else [Schema(one, self.root) for one in union]
        # An integer is a number, and a number such as 1.0 may be an integer.
        return frozenset(found | {"integer"} if "number" in found else found) or TYPES

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that it lists."""
        listed = self.value.get("properties") if isinstance(self.value, dict) else None
        return tuple(listed) if isinstance(listed, dict) else ()

    def inside(self, step: str | int) -> Any:
        """The schema of a field or an item; None where nothing is known. Raises KeyError for what cannot be there."""
        if ("array" if isinstance(step, int) else "object") not in self.types():
            raise KeyError(step)
        if not isinstance(self.value, dict):
            return None
        if isinstance(step, int):
            return None if "prefixItems" in self.value else self.value.get("items")
        properties = self.value.get("properties")
        is_open = (
            self.value.get("additionalProperties", False) is not False or "patternProperties" in self.value
        )
        return None if not isinstance(properties, dict) or is_open else properties[step]

    def follow(self, steps: Sequence[str | int]) -> tuple[Schema, int]:
        """Where the steps lead, and how many of them could be taken; the schema is that of the last one taken."""
        here = self.resolved()
        for taken, step in enumerate(steps):
            try:
                here = Schema(here.inside(step), self.root).resolved()
            except KeyError:
                return here, taken
        return here, len(steps)

    def never_fits(self, parameter: Schema) -> bool:
        """Whether no value of this schema can be an argument for that one.

        pydantic makes numbers of text ("5"), and dates of numbers: what depends on the value is not plain.
        """
        given, wanted = self.types(), parameter.types()
        if given & wanted or (given & _SCALAR and wanted & _NUMERIC):
            return False
        is_plain_text = wanted == {"string"} and "format" not in parameter.resolved().value
        return is_plain_text or not (given & _NUMERIC and "string" in wanted)


def _said(value: Any) -> frozenset[str]:
    """The types that a schema names itself."""
    said = value.get("type") if isinstance(value, dict) else None
    listed = said[: len(TYPES)] if isinstance(said, list) else [said]
    return TYPES.intersection(name for name in listed if isinstance(name, str))


def _union(value: Any) -> list[Any]:
    """The schemas of which its values match at least one."""
    unions = (value.get(key) for key in ("anyOf", "oneOf")) if isinstance(value, dict) else ()
    return next((union[: _MOST + 1] for union in unions if isinstance(union, list)), [])


def in_words(types: frozenset[str]) -> str:
    """`a string or null`; an integer is not told apart from a number."""
    told = types - {"integer"} if "number" in types else types
    return " or ".join(words for name, words in _WORDS.items() if name in told)


def is_plain(schema: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a schema says itself which properties there are."""
    return isinstance(schema, dict) and schema.keys().isdisjoint(("$ref", "allOf", "anyOf", "oneOf"))
