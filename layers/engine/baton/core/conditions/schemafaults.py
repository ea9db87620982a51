"""Mistakes in a JSON Schema itself, each with its place in the schema and a suggestion.

schema.py decides if a schema can be used at all, and reports the violations of a value. Only the compiler
of documents imports this file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any, TypeGuard

from baton.core.expressions import escape, nearest
from baton.errors import Problem

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
    """A schema, or None if it is unknown, inside the root schema that has its `$defs`."""

    value: Any
    root: Any

    def resolved(self) -> Schema:
        """Return the target of a reference into `$defs`."""
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
        """Return the types of its values, as JSON Schema names them;
        all types if the schema does not restrict them.
        """
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
        """The names of the fields that the schema lists."""
        listed = self.value.get("properties") if isinstance(self.value, dict) else None
        return tuple(listed) if isinstance(listed, dict) else ()

    def inside(self, step: str | int) -> Any:
        """Return the schema of a field or an item; None if it is unknown.
        Raises KeyError for a field or item that cannot exist.
        """
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
        """Follow the steps as far as possible. Return the schema at the last step taken, and the number of
        steps taken.
        """
        here = self.resolved()
        for taken, step in enumerate(steps):
            try:
                here = Schema(here.inside(step), self.root).resolved()
            except KeyError:
                return here, taken
        return here, len(steps)

    def never_fits(self, parameter: Schema) -> bool:
        """Return true if no value of this schema can be an argument for that parameter.

        pydantic converts text to numbers ("5") and numbers to dates, so that a case that depends on the
        value returns false.
        """
        given, wanted = self.types(), parameter.types()
        if given & wanted or (given & _SCALAR and wanted & _NUMERIC):
            return False
        is_plain_text = wanted == {"string"} and "format" not in parameter.resolved().value
        return is_plain_text or not (given & _NUMERIC and "string" in wanted)


def _said(value: Any) -> frozenset[str]:
    """Return the types that a schema names itself."""
    said = value.get("type") if isinstance(value, dict) else None
    listed = said[: len(TYPES)] if isinstance(said, list) else [said]
    return TYPES.intersection(name for name in listed if isinstance(name, str))


def _union(value: Any) -> list[Any]:
    """Return the schemas of a union. A value matches at least one of them."""
    unions = (value.get(key) for key in ("anyOf", "oneOf")) if isinstance(value, dict) else ()
    return next((union[: _MOST + 1] for union in unions if isinstance(union, list)), [])


def in_words(types: frozenset[str]) -> str:
    """Return the types in words, such as `a string or null`.
    An integer is not distinguished from a number.
    """
    told = types - {"integer"} if "number" in types else types
    return " or ".join(words for name, words in _WORDS.items() if name in told)


def is_plain(schema: Any) -> TypeGuard[dict[str, Any]]:
    """Return true if the schema itself lists its properties, without references or combinations."""
    return isinstance(schema, dict) and schema.keys().isdisjoint(("$ref", "allOf", "anyOf", "oneOf"))


_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_DRAFTS = {
    _DRAFT: "Draft202012Validator",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
    "http://json-schema.org/draft-06/schema": "Draft6Validator",
    "http://json-schema.org/draft-04/schema": "Draft4Validator",
}
_SCHEMA = (
    "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems",
    "unevaluatedProperties", "additionalItems", "contentSchema",
)  # fmt: skip
_SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_KEYWORDS = frozenset((
    *_SCHEMA, *_SCHEMAS, *_BY_NAME, *_REFERENCES,
    "type", "enum", "const", "required", "default", "title", "description", "examples", "format", "pattern",
    "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems",
    "maxItems", "uniqueItems", "minContains", "maxContains", "minProperties", "maxProperties", "dependentRequired",
    "dependencies", "readOnly", "writeOnly", "deprecated", "contentEncoding", "contentMediaType", "$schema", "$id",
    "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$comment", "$vocabulary",
    # OpenAPI's own
    "example", "nullable", "discriminator", "xml", "externalDocs",
))  # fmt: skip
# What languages call their types.
_TYPES = {
    **dict.fromkeys(("text", "str", "date", "datetime", "uuid"), "string"),
    **dict.fromkeys(("int", "long"), "integer"),
    **dict.fromkeys(("float", "double", "decimal"), "number"),
    **dict.fromkeys(("list", "tuple", "set"), "array"),
    **dict.fromkeys(("dict", "map", "record"), "object"),
    "bool": "boolean",
    "none": "null",
}
_NEAR = 0.8
# Looking for the nearest of many words takes long, and authors mend a schema from the top.
_MOST_FAULTS = 100
_KINDS = {
    "array": "a list",
    "object": "an object",
    "string": "a text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
}


def misspelt(schema: Any) -> Iterator[Problem]:
    """Yield misspelt keywords, which JSON Schema would ignore, with the keyword that is meant."""
    left = _MOST_FAULTS
    for pointer, inner in _inside(schema, ""):
        if not isinstance(inner, dict) or left <= 0:
            continue
        strange = [key for key in inner if key not in _KEYWORDS and not key.startswith("x-")][:left]
        left -= len(strange)
        near = {key: get_close_matches(key, _KEYWORDS, n=1, cutoff=_NEAR) for key in strange}
        for key, words in near.items():
            for word in words:
                place = f"{pointer}/{escape(key)}"
                yield Problem(place, f"`{key}` is no word of JSON Schema", f"did you mean `{word}`?")
        if strange and len(strange) == len(inner) and not any(near.values()):
            message = "nothing in this is a word of JSON Schema, so that any value would do"
            yield Problem(pointer, message, f"write `{{type: object, properties: {{{strange[0]}: …}}}}`")


def schema_faults(schema: dict[str, Any]) -> Iterator[Problem]:
    """Yield the reasons why this is no valid schema."""
    draft = str(schema.get("$schema", _DRAFT)).removesuffix("#")
    if draft not in _DRAFTS:
        message = f"`{draft[:80]}` is no version of JSON Schema that is known here"
        yield Problem("/$schema", message, "leave `$schema` out")
        return
    told = set[str]()
    for error in _violations(schema, draft):
        pointer = "".join(f"/{escape(step)}" for step in error.instance_path)
        if pointer not in told:
            if len(told) == _MOST_FAULTS:
                return
            told.add(pointer)
            yield Problem(pointer, *_in_words(error, list(error.instance_path)))
    if not told:
        yield from islice(_references(schema), _MOST_FAULTS)


def _violations(schema: Any, draft: str) -> Iterator[Any]:
    import jsonschema_rs

    validator = getattr(jsonschema_rs, _DRAFTS[draft])
    yield from validator({"$ref": draft}, validate_formats=True).iter_errors(schema)


def _in_words(error: Any, path: list[Any]) -> tuple[str, str]:
    """Return message and suggestion for an error of the library."""
    word = next((step for step in reversed(path) if isinstance(step, str)), "")
    kind, value = error.kind.name, error.instance
    if kind == "anyOf" and word == "type":
        names = value if isinstance(value, list) else [value]
        wrong = next((name for name in names if name not in list(TYPES)), names)
        known = f"there are {', '.join(sorted(TYPES))}"
        hint = f"write `{_TYPES[wrong]}`" if isinstance(wrong, str) and wrong in _TYPES else ""
        return f"`{_short(wrong)}` is not a JSON Schema type", hint or nearest(str(wrong), TYPES) or known
    if kind == "type":
        return _of_type(word, value, error.kind.types, is_item=isinstance(path[-1], int))
    if kind in {"minimum", "exclusiveMinimum"}:
        return f"`{word}` must be {'0 or more' if kind == 'minimum' else 'more than 0'}", ""
    if kind == "minItems":
        return f"`{word}` needs at least one item", ""
    if kind == "uniqueItems":
        return f"`{word}` has an item twice", ""
    if kind == "format" and error.kind.format == "regex":
        return f"`{_short(value)}` is not a regular expression", ""
    if kind == "propertyNames":
        return f"a name under `{word}` is not a regular expression", ""
    return f"`{word}` cannot be `{_short(value)}`", ""


def _of_type(word: str, value: Any, types: list[str], *, is_item: bool) -> tuple[str, str]:
    if "object" in types and "boolean" in types:
        name = value if isinstance(value, str) and value in TYPES else "string"
        is_list = word == "items" and isinstance(value, list)
        return "a schema is an object", "write `prefixItems`" if is_list else f"write `{{type: {name}}}`"
    hint = "list the names, beside `properties`: `required: [NAME]`" if word == "required" else ""
    must = " or ".join(_KINDS.get(name, name) for name in types)
    return f"{'an item of ' * is_item}`{word}` must be {must}", hint


def _short(value: Any) -> str:
    return str(value)[:40]


# ---- references ------------------------------------------------------------------------------------------------


def _references(schema: dict[str, Any]) -> Iterator[Problem]:
    """Yield references that lead nowhere or out of the schema."""
    anchors = {
        inner[key]
        for _, inner in _inside(schema, "")
        if isinstance(inner, dict)
        for key in ("$anchor", "$dynamicAnchor")
        if key in inner
    }
    for pointer, inner in _inside(schema, ""):
        for key in _REFERENCES if isinstance(inner, dict) else ():
            target = inner.get(key, "#")
            if not target.startswith("#"):
                hint = "copy what it needs into its `$defs`, and refer to `#/$defs/NAME`"
                yield Problem(f"{pointer}/{key}", f"`{target[:80]}` is outside of this schema", hint)
            elif target != "#" and target[1:] not in anchors and not _leads(schema, target):
                names = schema.get("$defs")
                few = islice(names, _MOST_FAULTS) if isinstance(names, dict) else ()
                hint = (
                    nearest(target, [f"#/$defs/{name}" for name in few])
                    or "what it refers to stands under `$defs` of this schema"
                )
                yield Problem(f"{pointer}/{key}", f"there is nothing at `{target[:80]}`", hint)


def _leads(schema: Any, target: str) -> bool:
    here = schema
    for step in target.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(here, list) and step.isdigit() and int(step) < len(here):
            here = here[int(step)]
        elif isinstance(here, dict) and step in here:
            here = here[step]
        else:
            return False
    return target.startswith("#/")


def _inside(schema: Any, pointer: str) -> Iterator[tuple[str, Any]]:
    """Yield (JSON Pointer, schema) of the schema and of all schemas in it."""
    yield pointer, schema
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        place = f"{pointer}/{escape(key)}"
        if key in _SCHEMA and isinstance(value, (dict, bool)):
            yield from _inside(value, place)
        elif key in _SCHEMAS and isinstance(value, list):
            for index, item in enumerate(value):
                yield from _inside(item, f"{place}/{index}")
        elif key in _BY_NAME and isinstance(value, dict):
            for name, item in value.items():
                yield from _inside(item, f"{place}/{escape(name)}")
