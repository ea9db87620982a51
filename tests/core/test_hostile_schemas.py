"""Schemas of users: the hostile ones end soon and in little memory, and ordinary ones are told everything, at any size.

`make soak` tries all of them (`BATON_CRASH_POINTS=all`).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.core.conditions import model
from baton.core.conditions.matches import TooMuch, check_work
from baton.core.conditions.patterns import weight
from baton.core.conditions.schema import check_schema, violations
from baton.core.conditions.schemaplan import SchemaError, plan_for, plan_of
from baton.core.conditions.values import ResultCache
from baton.errors import Problem
from tests.core.apart import tried_apart
from tests.core.build import problems_of
from tests.core.hostile_schemas import HOSTILE, REFUSED, TRIED, Case, chained
from tests.core.hostile_schemas import tried as tried_here
from tests.kit.sentences import Says

LONGEST_S = (
    2.0  # of the processor, on a machine that does other things as well; the longest takes a third of it
)
MOST_MB = 150


@pytest.fixture(scope="module")
def tried() -> list[Any]:
    check_schema({"type": "string"})  # the library is loaded once, before
    return tried_apart(TRIED, tried_here)


def test_no_hostile_schema_crashes_hangs_or_lets_a_value_pass(tried: list[Any]) -> None:
    assert [one[:2] for one in tried] == [[case.name, case.expected] for case in TRIED]
    assert len({case.name for case in HOSTILE}) == len(HOSTILE) >= 40


def test_each_says_what_is_too_much_in_a_message_that_can_be_read(tried: list[Any]) -> None:
    assert [one[0] for case, one in zip(TRIED, tried, strict=True) if case.says not in one[2]] == []
    assert [one[0] for one in tried if len(one[2]) > model.PROBLEM_LENGTH + 1] == []


def test_each_ends_soon(tried: list[Any]) -> None:
    assert [(name, took) for name, _, _, took, _ in tried if took > LONGEST_S] == []


def test_each_takes_little_memory(tried: list[Any]) -> None:
    assert [(name, more) for name, _, _, _, more in tried if more > MOST_MB] == []


@pytest.mark.parametrize(
    "case", [case for case in HOSTILE if case.expected == REFUSED], ids=lambda case: case.name
)
def test_what_the_compiler_refuses_is_refused_in_any_process(case: Case) -> None:
    found, words = tried_here(case)
    assert found == REFUSED
    assert case.says in words


def test_what_is_too_large_to_be_counted_is_refused_in_any_process(
    monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setattr(model, "SCHEMA_PAIRS", model.SCHEMA_PAIRS // 20)  # all are counted in a process apart
    case = next(case for case in HOSTILE if case.name == "more paths than are counted")
    says(tried_here(case))


@pytest.mark.parametrize(
    "place", ["/input", "/schemas/s", "/nodes/a/output_schema", "/nodes/w/output_schema"]
)
def test_a_document_with_such_a_schema_is_refused_with_its_place_and_the_remedy(
    place: str, says: Says
) -> None:
    node: dict[str, Any] = {"tool": "t"}
    wait: dict[str, Any] = {"type": "wait", "signal": "s"}
    document: dict[str, Any] = {"name": "w", "nodes": {"a": node, "w": wait}}
    schema = chained(22, "allOf")
    where = {"/input": document, "/schemas/s": document, "/nodes/a/output_schema": node}.get(place, wait)
    name = place.rsplit("/", 1)[-1]
    where |= {"schemas": {"s": schema}} if name == "s" else {name: schema}
    problems = [one for one in problems_of(json.dumps(document)) if one.path == place]
    assert len(problems) == 1
    says(problems[0].message)


# ---- ordinary ones -------------------------------------------------------------------------------------------------

ROW = {
    "type": "object",
    "required": ["id", "slug"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "integer", "minimum": 0},
        "slug": {"type": "string", "pattern": "^[a-z][a-z0-9-]{0,63}(@[0-9]{1,9})?$", "maxLength": 80},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True},
        **{f"field{i}": {"type": ["string", "number"]} for i in range(15)},
    },
}
ROWS = {
    "type": "object",
    "properties": {"rows": {"type": "array", "items": {"$ref": "#/$defs/row"}}},
    "$defs": {"row": ROW},
}


LARGE = "does not match its schema; it is too large to say where"


def rows(count: int) -> list[dict[str, Any]]:
    more = {f"field{i}": i for i in range(15)}
    return [{"id": i, "slug": f"row-{i}", "note": None, "tags": ["a", "b"], **more} for i in range(count)]


@pytest.mark.no_cover
def test_ten_thousand_ordinary_rows_are_checked() -> None:
    assert violations(ROWS, {"rows": rows(10_000)}) == ()


def test_a_thousand_ordinary_rows_by_name_are_checked() -> None:
    named = {f"row-{one['id']}": one for one in rows(1_000)}
    schema = {"properties": {"row-0": ROW}, "additionalProperties": ROW}
    assert violations(schema, named) == ()
    named["row-999"] = {}
    assert violations(schema, named, "/input") == (Problem("/input", LARGE),)


def test_every_violation_of_an_ordinary_value_is_told() -> None:
    value = rows(40)
    value[3]["slug"], value[17]["id"], value[39]["tags"] = "No", "x", ["z"]
    found = violations(ROWS, {"rows": value}, "/input")
    assert [one.path for one in found] == ["/input/rows/3/slug", "/input/rows/17/id", "/input/rows/39/tags/0"]


def test_of_more_violations_than_that_the_first_hundred_are_told_and_the_rest_counted(says: Says) -> None:
    found = violations({"items": {"type": "string"}}, list(range(150)))
    assert (len(found), found[100]) == (101, Problem("", "and 50 more"))
    says(found[99])


def test_of_a_large_value_the_first_violation_is_told(says: Says) -> None:
    value = [{"a": "x" * 40} for _ in range(5_000)]
    value[7]["a"], value[9]["a"] = 1, 2  # type: ignore[assignment]
    schema = {"items": {"properties": {"a": {"type": "string", "minLength": 3}}}}
    says(violations(schema, value, "/payload"))


@pytest.mark.no_cover
def test_of_a_large_value_with_alternatives_it_is_said_that_it_does_not_fit() -> None:
    value = {"rows": [*rows(2_000), {}]}
    assert violations(ROWS, value, "/payload") == (Problem("/payload", LARGE),)


def test_a_deep_value_that_a_flat_schema_refuses_is_told_first_of_all() -> None:
    value: Any = "z" * 200_000
    for _ in range(80):
        value = [value]
    assert [one.path for one in violations({"type": "object"}, value)] == [""]


def test_trees_of_an_ordinary_size_are_checked(says: Says) -> None:
    tree = {"type": "object", "required": ["name"], "properties": {"children": {"items": {"$ref": "#"}}}}
    value: dict[str, Any] = {"name": "a", "children": [{"name": "b", "children": [{"name": "c"}] * 50}] * 50}
    assert violations(tree, value) == ()
    value["children"][0]["children"] = [{}]
    says(violations(tree, value)[0])


def test_deep_values_of_deep_recursive_schemas_are_refused(says: Says) -> None:
    schema: Any = {"items": {"$ref": "#"}}
    for _ in range(60):
        schema = {"allOf": [schema]}
    value: Any = 1
    for _ in range(60):
        value = [value]
    says(violations(schema, value)[0].message)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"$ref": "#row", "$defs": {"x": {"allOf": [{"$anchor": "row", "type": "integer"}]}}}, "x"),
        ({"$ref": "#/$defs/a%20b", "$defs": {"a b": {"type": "integer"}}}, "x"),
        ({"$ref": "#/allOf/0/not", "allOf": [{"not": {"type": "string"}}]}, 1),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 1}),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}),
        ({"propertyNames": {"pattern": "^a"}}, {"b": 1}),
        ({"patternProperties": {"^a": False}}, {"a": 1}),
        ({"prefixItems": [{"type": "string"}], "items": False}, ["a", 1]),
        ({"const": {"a": [1, "x"]}}, {"a": [1, "y"]}),
        ({"properties": {"$id": {"type": "integer"}, "$dynamicRef": {"type": "string"}}}, {"$id": "x"}),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": ["b"]}}, {"a": 1}),
        (False, 1),
    ],
)  # fmt: skip
def test_all_of_the_language_that_can_be_counted_is_understood(schema: Any, value: Any) -> None:
    check_schema(schema)
    check_work(plan_for(schema), value)
    assert len(violations(schema, value)) == 1
    endless = {"allOf": [schema, {"properties": {"zzz": {"$ref": "#"}}}], **schema} if schema else False
    assert violations(endless, value)


@pytest.mark.parametrize("reference", ["#/nowhere", "#nowhere", "#/$defs/a/9", "#/allOf/x"])
def test_a_reference_that_leads_nowhere_is_refused(reference: str) -> None:
    with pytest.raises(SchemaError, match="there is no `#"):
        check_schema({"$ref": reference, "$defs": {"a": [1]}, "allOf": [{}]})


def test_a_schema_that_was_stored_before_it_was_refused_fits_nothing_and_says_why(says: Says) -> None:
    found = violations({"pattern": "(a{1000}){1000}"}, "a", "/input")
    assert [one.path for one in found] == ["/input"]
    says(found[0].message)


def test_what_is_too_large_says_so_with_what_was_found_and_what_is_allowed(says: Says) -> None:
    with says.raised(TooMuch):
        check_work(plan_for({"items": {"enum": list(range(5_000))}}), [0] * 2_000)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("", 1), ("abc", 3), ("a{10}", 10), ("a{2,5}", 5), ("a{3,}", 3), ("(ab){10}", 30), ("a{2}b{3}", 5),
        ("((a{10}){10}){10}", 1_110), ("a{", 2), ("a)b", 3), ("a)))", 4), ("\\{{3}", 3), ("\\d{2}", 20),
        ("\\p{L}{2}", 200), ("[\\p{L}]", 111), ("[a-z]{2}", 18), ("[]a]", 8), ("[[:alpha:]]", 15), (".{3}", 30),
        ("(?i)ab", 15), ("{5}", 1),
    ],
)  # fmt: skip
def test_the_weight_of_a_pattern_is_its_parts_as_often_as_they_are_repeated(
    pattern: str, expected: int
) -> None:
    assert weight(pattern) == expected


# ---- what is kept -----------------------------------------------------------------------------------------------


def test_what_is_kept_of_compiled_schemas_is_bounded_in_bytes_and_the_oldest_goes_first() -> None:
    made: list[str] = []

    def make(key: str) -> str:
        made.append(key)
        return key * 10

    kept = ResultCache(make, 49, len)
    for key in ("a", "b", "a", "ccc", "a", "b"):
        assert kept(key) == key * 10
    assert (made, kept.cache_info()) == (["a", "b", "ccc", "b"], (4, 2, 20))
    assert (kept("d" * 9), kept.cache_info()) == ("d" * 90, (5, 1, 90)), (
        "what is larger than all is kept alone"
    )


def test_what_two_threads_make_at_once_is_kept_once() -> None:
    calls: list[int] = []

    def make(key: int) -> str:
        calls.append(key)
        return kept(key) if len(calls) == 1 else "x"  # another is faster with the same

    kept: ResultCache[int, str] = ResultCache(make, 50, len)
    assert (kept(1), kept.cache_info()) == ("x", (2, 1, 1))


@pytest.mark.no_cover
def test_hundreds_of_large_schemas_keep_no_more_than_their_bound() -> None:
    for index in range(120):
        check_schema({"title": f"{index}", "enum": [f"{index}-{i}" * 4 for i in range(1_500)]})
    assert plan_of.cache_info().held <= model.COMPILED_BYTES
