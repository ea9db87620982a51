"""Durations, idempotency keys, schemas, specifications of tools, and programs: what each of them promises."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.core.conditions.schema import check_schema, input_violations, violations
from baton.core.conditions.schemaplan import SchemaError
from baton.core.effects.keys import KeyRule, canonical, key_of
from baton.core.expressions import nearest, parse_duration
from baton.errors import Problem
from tests.core.build import JSON, PROPERTY, program, task, tool_spec, wait
from tests.kit.sentences import Says

# ---- durations ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("500ms", 500), ("5s", 5_000), (" 5 s ", 5_000), ("10m", 600_000), ("1.5h", 5_400_000), ("2d", 172_800_000),
        (3, 3_000), (0.25, 250), ("8.2s", 8_200), (1.001, 1_001), ("1.001s", 1_001), ("366d", 366 * 86_400_000),
        ("1ms", 1), (0.001, 1),
    ],
)  # fmt: skip
def test_a_duration_is_a_number_of_milliseconds(text: str | float, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize(
    "text", ["5", "s", "5 parsecs", "-5s", "1e3s", "5s 3ms", "", True, False, None, [5], {"s": 5}, b"5s"]
)
def test_what_is_no_duration_is_told_with_examples(text: Any, says: Says) -> None:
    with says.raised(ValueError):
        parse_duration(text)


@pytest.mark.parametrize(
    "text", ["0s", 0, -1, 0.0001, "367d", "9" * 400 + "d", 10**400, float("inf"), float("-inf"), float("nan")]
)
def test_a_duration_has_bounds(text: Any, says: Says) -> None:
    with says.raised(ValueError):
        parse_duration(text)


# ---- idempotency keys ----------------------------------------------------------------------------------------


def key(parameters: Any, **changed: Any) -> str:
    who: dict[str, Any] = {"tenant": "acme", "user": "ada", "saga": "s1", "node": "n"}
    what: dict[str, Any] = {"tool": "t", "occurrence": (), "at": 0}
    return key_of(KeyRule(), **(who | what | changed), parameters=parameters)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"at": "14:00"}, {"at": "14:00:00"}),
        ({"at": "9:05"}, {"at": "09:05"}),
        ({"who": " Ada "}, {"who": "Ada"}),
        ({" who": 1}, {"who": 1}),
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}),
        ([1], [1.0]),
        (0, -0.0),
        (10**22, 1e22),
        ("2026-12-24T19:30:00Z", "2026-12-24T20:30:00+01:00"),
        ("2026-12-24T19:30Z", "2026-12-24 14:30:00.000-05:00"),
        ("2026-12-24t19:30z", "2026-12-25T00:30+0500"),
        ("2026-12-24T19:30", "2026-12-24T19:30:00"),
        ("2026-12-24T19:30 +01:00", "2026-12-24T18:30:00Z"),
    ],
)
def test_two_spellings_of_one_action_have_one_key(one: Any, other: Any) -> None:
    assert key(one) == key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True), (0, False), (1, "1"), (None, "null"), (None, 0), ("", None), ("a b", "ab"), ("A", "a"),
        ([1, 2], [2, 1]), ({"a": 1}, {"b": 1}), ({}, []), (1.5, 1), ("14:00", "14:01"), ("14:00", "2026-12-24T14:00"),
        ("2026-12-24T19:30", "2026-12-24T19:30Z"), ("2026-12-24", "2026-12-24T00:00"), ("24:00", "00:00"),
        (2**53, 2**53 + 1),
    ],
)  # fmt: skip
def test_two_different_actions_have_two_keys(one: Any, other: Any) -> None:
    assert key(one) != key(other)


@pytest.mark.parametrize(
    "changed",
    [
        {"tenant": "b"},
        {"user": "b"},
        {"saga": "s2"},
        {"node": "m"},
        {"tool": "u"},
        {"occurrence": (0,)},
        {"occurrence": (0, 1)},
    ],
)
def test_each_part_of_a_key_counts(changed: dict[str, Any]) -> None:
    assert key({"a": 1}, **changed) != key({"a": 1})


def test_of_two_keys_that_differ_in_spaces_only_the_same_one_counts_in_any_order() -> None:
    assert key({" a": 1, "a": 2}) == key({"a": 2, " a": 1})


def test_the_parts_of_a_key_do_not_run_into_each_other() -> None:
    assert key(1, tenant="ab", user="c") != key(1, tenant="a", user="bc")
    assert key(1, occurrence=(1, 2)) != key(1, occurrence=(12,))


def test_a_key_is_32_hexadecimal_digits_and_has_not_changed() -> None:
    """A step that runs again after a deployment must carry the key that it had before."""
    assert key({"table": "t-1", "at": "19:30", "party": 4.0}) == "ad99d7064705103a01fe8554a729bd3a"


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-30T10:00",
        "2026-12-24T25:00",
        "9999-12-31T23:59-14:00",
        "0001-01-01T00:00+14:00",
        "1:2:3",
        "24:01",
    ],
)
def test_what_only_looks_like_a_time_stays_as_it_is(text: str) -> None:
    assert canonical(text) == text
    assert len(key(text)) == 32


@given(JSON)
@PROPERTY
def test_the_canonical_form_of_a_canonical_form_is_itself(value: Any) -> None:
    once = canonical(value)
    assert canonical(once) == once
    assert len(key(value)) == 32


# ---- schemas ---------------------------------------------------------------------------------------------------

PARTY = {
    "type": "object",
    "required": ["city"],
    "properties": {
        "city": {"type": "string"},
        "at": {"type": "string", "format": "date-time"},
        "a/b": {"type": "array", "items": {"type": "integer"}},
    },
}


def test_a_value_that_fits_has_no_violation() -> None:
    assert violations(PARTY, {"city": "Wien", "at": "2026-12-24T19:30:00Z", "a/b": [1]}) == ()


def test_every_violation_is_told_with_its_path() -> None:
    found = violations(PARTY, {"at": "soon", "a/b": [1, "x"]}, "/input")
    assert {problem.path for problem in found} == {"/input", "/input/at", "/input/a~1b/1"}
    assert Problem("/input", '"city" is a required property') in found


@pytest.mark.parametrize(
    "schema",
    [
        PARTY,
        {"type": "object", "required": ["a", "b"]},
        {"type": "object"},
        False,
    ],
)
def test_an_input_that_is_left_out_is_told_as_missing(schema: Any, says: Says) -> None:
    says(input_violations(schema, None))


def test_a_schema_says_the_same_as_its_json() -> None:
    wrong = {"at": "soon", "a/b": [1, "x"]}
    assert violations(msgspec.json.encode(PARTY), wrong) == violations(PARTY, wrong) != ()


def test_an_input_is_checked_like_any_value() -> None:
    assert input_violations({}, None) == ()
    assert input_violations(PARTY, {"city": "Wien"}) == ()
    assert input_violations(PARTY, {}) == violations(PARTY, {}, "/input")


CLOSED = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["name"],
}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"nmae": "Ada"}, ["`nmae`: did you mean `name`?", ""]),
        ({"name": "Ada", "nmae": "Ada"}, [""]),
        ({"colour": "red"}, ["", ""]),
        ({"name": "Ada", "n": "x"}, [""]),
        (["name"], [""]),
    ],
)
def test_a_misspelt_field_of_an_input_has_a_suggestion(given: Any, said: list[str]) -> None:
    found = input_violations({**CLOSED, "additionalProperties": False}, given)
    assert [one.suggestion for one in found] == said


def test_a_field_is_not_looked_for_in_a_schema_without_properties() -> None:
    assert [one.suggestion for one in input_violations({"required": ["name"]}, {"nmae": 1})] == [""]


@pytest.mark.parametrize("schema", [None, 5, "x", [], {"type": "nope"}, {"properties": 5}, {"$ref": "#/nowhere"},
                                    {"pattern": "("}, {"$schema": "http://127.0.0.1:1/x"}])  # fmt: skip
def test_what_is_no_schema_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaError):
        check_schema(schema)


@pytest.mark.parametrize(
    "schema", [{}, True, False, PARTY, {"$defs": {"a": {}}, "$ref": "#/$defs/a"}, {"$ref": "#"}]
)
def test_what_is_a_schema_is_one(schema: Any) -> None:
    check_schema(schema)


@pytest.mark.parametrize(
    "reference", ["http://127.0.0.1:1/x", "https://127.0.0.1:1/x", "file:///etc/hostname"]
)
@pytest.mark.parametrize("place", ["{}", "inside"])
def test_no_schema_makes_the_compiler_fetch_anything(reference: str, place: str, says: Says) -> None:
    schema: Any = (
        {"$ref": reference} if place == "{}" else {"properties": {"a": {"items": {"$ref": reference}}}}
    )
    with says.raised(SchemaError):
        check_schema(schema)


# ---- tools --------------------------------------------------------------------------------------------------------


def test_the_hash_of_a_tool_changes_with_its_schemas_and_with_nothing_else() -> None:
    one = tool_spec("t", {"type": "string"}, x={"type": "integer"})
    assert one.schema_hash == tool_spec("other", {"type": "string"}, x={"type": "integer"}).schema_hash
    assert one.schema_hash != tool_spec("t", {"type": "integer"}, x={"type": "integer"}).schema_hash
    assert one.schema_hash != tool_spec("t", {"type": "string"}, y={"type": "integer"}).schema_hash
    assert len(one.schema_hash) == 12


def test_the_order_in_which_a_schema_lists_its_keys_does_not_change_the_hash() -> None:
    one = tool_spec("t", x={"type": "integer", "minimum": 1}, y={})
    other = tool_spec("t", y={}, x={"minimum": 1, "type": "integer"})
    assert one.schema_hash == other.schema_hash


@pytest.mark.parametrize(
    "name",
    ["table.hodl", "zzz", "", "TABLE.HOLD"],
)
def test_the_nearest_name_is_suggested_if_any_is_near(name: str, says: Says) -> None:
    says(nearest(name, iter(["table.hold", "table.search"])))


# ---- programs -----------------------------------------------------------------------------------------------------

READ = {"x": "${ctx.a.output}"}
PROGRAM = program(
    task("a"), task("b", "a", arguments=READ), task("c", "a"), wait("w", "c", signal="s"), task("d", "w", arguments=READ),
    output="${ctx.c.output} ${saga.id}",
)  # fmt: skip


def test_an_output_is_needed_as_long_as_a_reader_can_still_run() -> None:
    def needed(node: str, *slots: str) -> bool:
        return PROGRAM.is_needed(node, PROGRAM.ahead_of(list(slots)))

    assert needed("a", "b")
    assert needed("a", "c"), "d comes after c and w"
    assert needed("a", "w@3.1"), "in any round of a loop"
    assert not needed("a")
    assert not needed("b", "a", "b", "c", "w", "d"), "no node reads it"
    assert needed("c"), "the output of the saga does"


@given(st.integers(1, 60))
@PROPERTY
def test_forgetting_looks_at_the_whole_way_ahead(length: int) -> None:
    nodes = [task("n0"), *(task(f"n{i}", f"n{i - 1}") for i in range(1, length))]
    last = task("end", f"n{length - 1}", arguments={"x": "${ctx.n0.output}"})
    chain = program(*nodes, last)
    assert all(chain.is_needed("n0", chain.ahead_of([f"n{i}"])) for i in range(length))
    assert not chain.is_needed("n0", chain.ahead_of([]))
