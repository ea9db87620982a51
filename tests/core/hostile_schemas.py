"""JSON Schemas that mean harm, or that a tired author writes, each with a value: none stops or fills a process.

The cases, and what tries each of them. Conditions that hold values against schemas are in conditions/hostile.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from baton.core.conditions.schema import check_schema, violations
from baton.core.conditions.schemaplan import SchemaError
from tests.core.apart import some

REFUSED: Final = "refused"


@dataclass(frozen=True)
class Case:
    """`expected`: how many violations, or `REFUSED` for the schema. `says` is in the first message."""

    name: str
    schema: Any
    value: Any
    expected: int | str
    says: str = ""


def chained(times: int, key: str) -> dict[str, Any]:
    """Definitions each of which refers to the next twice."""
    defs: dict[str, Any] = {f"d{i}": {key: [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(times)}
    return {"$defs": {**defs, f"d{times}": {"type": "string"}}, "$ref": "#/$defs/d0"}


def deep(form: Callable[[Any], Any], inner: Any, times: int) -> Any:
    for _ in range(times):
        inner = form(inner)
    return inner


def patterns(pattern: str, count: int) -> dict[str, Any]:
    return {"allOf": [{"pattern": f"{pattern}{index}"} for index in range(count)]}


TREE: Final = {
    "$defs": {"t": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/t"}}] * 2}},
    "$ref": "#/$defs/t",
}
FIELDS: Final = {f"k{i}": 1 for i in range(3_000)}
KEYS: Final = [*FIELDS]

HOSTILE: Final = [
    Case("all of the next, twice", chained(22, "allOf"), 1, REFUSED, "places and more"),
    Case("all of the next, thirty times", chained(30, "allOf"), 1, REFUSED, "refer to the same definition less"),
    Case("any of the next, twice", chained(18, "anyOf"), 1, REFUSED, "at most 400,000"),
    Case("one of the next, twice", chained(25, "oneOf"), 1, REFUSED, "places"),
    Case("each next one, just within", chained(13, "anyOf"), 1, 1, "too large to say where"),
    Case("each next one, for a list", {"items": chained(12, "anyOf"), "$defs": chained(12, "anyOf")["$defs"]},
         [1] * 2_000, 1, "too large for its schema"),
    Case("a tree of two kinds", TREE, deep(lambda inner: [inner], 1, 20), 1, "too large for its schema"),
    Case("a tree of two kinds, all the way down", TREE, deep(lambda inner: [inner], 1, 60), 1, "too large"),
    Case("a tree deeper than any", {"items": {"$ref": "#"}}, deep(lambda inner: [inner], 1, 900), 1, "flatter"),
    Case("itself, without end", {"$ref": "#"}, 1, 0),
    Case("not itself", {"not": {"$ref": "#"}}, 1, 1),
    Case("itself in a circle", {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}},
                                "$ref": "#/$defs/a"}, 1, 0),
    Case("dynamic references", {"$dynamicAnchor": "n", "items": {"$dynamicRef": "#n"}}, [1], REFUSED, "write `$ref`"),
    Case("recursive references", {"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveAnchor": True,
                                  "items": {"$recursiveRef": "#"}}, [1], REFUSED, "write `$ref`"),
    Case("references that lead elsewhere than they say", {"$id": "http://a.example/", "$defs": {
        "x": {}, "r": {"$id": "http://b.example/", "$defs": {"x": chained(12, "anyOf")}, "$ref": "#/$defs/x"}},
        "$ref": "#/$defs/r"}, 1, REFUSED, "`$id` cannot be used inside"),
    Case("another document", {"$ref": "http://127.0.0.1:1/x"}, 1, REFUSED, "other documents"),
    Case("another file", {"items": {"$ref": "file:///etc/passwd"}}, 1, REFUSED, "other documents"),
    Case("another language", {"$schema": "http://127.0.0.1:1/x"}, 1, REFUSED),
    Case("unevaluated, inside each other", deep(
        lambda inner: {"allOf": [inner], "unevaluatedItems": False, "prefixItems": [True]}, {"items": True}, 20
    ), [1, 2, 3], REFUSED, "places"),
    Case("four hundred levels", deep(lambda inner: {"allOf": [inner]}, {}, 400), 1, REFUSED, "nested too deeply"),
    Case("a thousand levels of items", deep(lambda inner: {"items": inner}, {}, 1_000), 1, REFUSED, "deeply"),
    Case("long ways through references", {"$defs": {f"d{i}": {"items": {"items": {"$ref": f"#/$defs/d{i + 1}"}}}
         for i in range(200)} | {"d200": {}}, "$ref": "#/$defs/d0"}, [], REFUSED, "nested too deeply"),
    Case("long ways through short references", {"$defs": {f"d{i}": {"items": {"items": {"$ref": f"#/$defs/d{i + 1}"}}}
         for i in range(80)} | {"d80": {}}, "$ref": "#/$defs/d0"}, [], REFUSED, "nested too deeply"),
    Case("a large one", {"enum": list(range(20_000))}, 1, REFUSED, "at most 98,304"),
    Case("a repeated repetition", {"pattern": "(a{1000}){1000}"}, "a", REFUSED, "repeat less"),
    Case("a hundred classes of letters", patterns("\\p{L}{90}", 100), "aβ" * 300, REFUSED, "repeat less"),
    Case("a thousand small classes of letters", patterns("\\p{L}{3}", 1_000), "a", REFUSED, "repeat less"),
    Case("patterns that nothing refers to", {"$defs": patterns("\\p{L}{9}", 1_000)}, "a", REFUSED, "patterns"),
    Case("a pattern that goes back", {"pattern": "^(a+)+$"}, "a" * 50_000 + "!", 1),
    Case("a pattern that looks ahead", {"pattern": "^(?=(a+)+$)(a|aa)+$"}, "a" * 40 + "!", REFUSED, "regex"),
    Case("a pattern that refers back", {"pattern": "^(a*)*\\1$"}, "a" * 40 + "!", REFUSED, "regex"),
    Case("a pattern of many states, a long text", {"pattern": "^[ab]*a[ab]{500}[^ab]"}, "ab" * 500_000, 1, "too large"),
    Case("patterns of fields", {"patternProperties": {f"a{{{i}}}b": {"type": "string"} for i in range(1, 150)}},
         {"a" * 200 + key: 1 for key in KEYS}, 1, "too large for its schema"),
    Case("names of fields", {"propertyNames": {"allOf": [{"pattern": f"b{{{i}}}"} for i in range(1, 80)]}},
         {"a" * 20 + key: 1 for key in KEYS[:200]}, 1, "does not match"),
    Case("three hundred times the same", {"items": {"allOf": [{"type": "string"}] * 300}}, list(range(2_000)), 1,
         "is not of type"),
    Case("all of three hundred of a large value", {"allOf": [{"type": "string"}] * 300}, ["a" * 1_000] * 1_000, 1,
         "aaa"),
    Case("three thousand that are required", {"items": {"required": KEYS}}, [{}] * 300, 1, "required"),
    Case("a long list of what it may be", {"items": {"enum": ["x" * 60_000]}}, [1] * 10_000, 1),
    Case("lists that are compared", {"items": {"enum": [[0] * 1_000 + [i] for i in range(20)]}}, [[0] * 1_001] * 1_000,
         1, "too large for its schema"),
    Case("messages inside each other", deep(
        lambda inner: {"properties": {"a": inner}, "additionalProperties": False, "maxProperties": 0}, {}, 40
    ), deep(lambda inner: {"a": inner}, "z" * 200_000, 40), 1),
    Case("contains, inside each other", {"contains": {"contains": {"contains": {"type": "null"}}}},
         [[[1] * 60] * 60] * 60, 1),
    Case("unique, of much", {"uniqueItems": True}, [{"a": i, "b": [i]} for i in range(100_000)], 0),
    Case("more paths than are counted", {"additionalProperties": {"$ref": "#"}},
         {f"{i}": {f"{i}-{j}": {f"{k}": 1 for k in range(60)} for j in range(30)} for i in range(30)}, 1,
         "too large for its schema"),
    Case("very many fields", {"additionalProperties": {"$ref": "#"}}, dict.fromkeys(KEYS[:20], FIELDS), 0),
    Case("two million numbers", {"$ref": "#/$defs/t", "$defs": {"t": {"items": {"$ref": "#/$defs/t"}}}},
         [0] * 2_000_000, 1, "too large for its schema"),
    Case("one long text", {"type": "number"}, "y" * 5_000_000, 1),
]  # fmt: skip


def tried(case: Case) -> tuple[int | str, str]:
    """What comes of a case, as `expected`, and the first message."""
    try:
        check_schema(case.schema)
    except SchemaError as error:
        return REFUSED, str(error)
    found = violations(case.schema, case.value)
    return len(found), found[0].message if found else ""


TRIED: Final = some(HOSTILE)
