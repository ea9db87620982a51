"""Conditions as documents write them: every problem at once, where it is, and what would be right."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from baton.core.conditions.document import CONDITIONS, FIELDS, read_condition
from baton.core.conditions.model import Cel, Compare, JsonPath, Matches, Python
from tests.core.conditions.broken import BROKEN
from tests.core.conditions.corpus import REFUSED
from tests.core.conditions.hostile import SOURCES
from tests.core.conditions.ordinary import ORDINARY

BLOB = "cas://sha256/" + "0" * 64
CODE = "def evaluate(output, context):\n    return True\n"
SCHEMAS = {"done": {"required": ["x"]}, "open": {}}


def problems(value: Any) -> list[tuple[str, str]]:
    """(place, message and suggestion) of each."""
    condition, found = read_condition(value, "/c", SCHEMAS)
    assert (condition is None) == bool(found)
    return [(problem.path, f"{problem.message} {problem.suggestion}".strip()) for problem in found]


@pytest.mark.parametrize(
    ("value", "model"),
    [
        ("true", Cel(expression="true")),
        ({"cel": "true"}, Cel(expression="true")),
        ({"jsonpath": "$.x"}, JsonPath(query="$.x", operator="exists")),
        (
            {"jsonpath": "$.x", "operator": "sum_gt", "value": 1.5, "of": " ${ctx.a.output} "},
            JsonPath(query="$.x", operator="sum_gt", value=1.5, of="ctx.a.output"),
        ),
        ({"schema": "done", "invert": True}, Matches(schema={"required": ["x"]}, invert=True)),
        ({"schema": BLOB, "of": "input"}, Matches(ref=BLOB, of="input")),
        (
            {"compare": {"left": "${output.a}", "operator": ">", "right": 1}},
            Compare(left="${output.a}", operator=">", right=1),
        ),
        ({"python": CODE}, Python(code=CODE)),
        (
            {"python": BLOB, "needs": ["${input.a}", "ctx.a.output"], "timeout": 2, "max_memory_mb": 64},
            Python(ref=BLOB, needs=("input.a", "ctx.a.output"), timeout_ms=2_000, memory_mb=64),
        ),
    ],
)
def test_a_condition_is_read(value: Any, model: Any) -> None:
    assert read_condition(value, "", SCHEMAS) == (model, [])


WRONG: list[tuple[Any, list[tuple[str, str]]]] = [
    (1, [("/c", "a text or an object, not a number")]),
    (True, [("/c", "not a boolean")]),
    ({}, [("/c", "exactly one of cel, jsonpath")]),
    ({"cell": "x"}, [("/c", "did you mean `cel`?")]),
    ({1: "x"}, [("/c", "found none")]),
    ({"cel": "true", "python": CODE}, [("/c", "one of cel and python, not both")]),
    ({"cel": 1}, [("/c/cel", "`cel` is a text, not a number")]),
    ({"cel": "true", "of": "output"}, [("/c/of", "`of` is not known here")]),
    ({"jsonpath": "$", "operater": "=="}, [("/c/operater", "did you mean `operator`?")]),
    ({"jsonpath": ["$"], "operator": 1, "of": 2}, [("/c/jsonpath", "a list"), ("/c/operator", "a number"), ("/c/of", "a number")]),
    ({"jsonpath": "x", "operator": "sum_gtt", "value": 1, "of": "outptu"}, [("/c/jsonpath", "begins with `$`"), ("/c/of", "must begin with"), ("/c/operator", "`sum_gt`")]),
    ({"jsonpath": "$", "operator": "§", "value": 1}, [("/c/operator", "there are ==")]),
    ({"jsonpath": "$", "value": 1}, [("/c/value", "takes no value")]),
    ({"jsonpath": "$", "operator": "not_exists", "value": 1}, [("/c/value", "not_in")]),
    ({"jsonpath": "$", "operator": ">"}, [("/c", "`>` needs a `value`")]),
    ({"jsonpath": "$", "operator": ">", "value": []}, [("/c/value", "needs a number or a text, not a list")]),
    ({"jsonpath": "$", "operator": "in", "value": "a"}, [("/c/value", "needs a list, not a text")]),
    ({"jsonpath": "$", "operator": "count", "value": True}, [("/c/value", "needs a number, not a boolean")]),
    ({"schema": "dnoe"}, [("/c/schema", "did you mean `done`?")]),
    ({"schema": "zzz"}, [("/c/schema", "there are: done, open")]),
    ({"schema": "cas://sha256/0"}, [("/c/schema", "64 hexadecimal digits")]),
    ({"schema": [1], "invert": "yes", "of": "ctx.a"}, [("/c/invert", "true or false")]),
    ({"schema": {"type": 1}, "of": "ctx.a"}, [("/c/schema/type", "string"), ("/c/of", "ctx.<node>.output")]),
    ({"schema": [1]}, [("/c/schema", "a schema is an object")]),
    ({"schema": "done", "of": 1}, [("/c/of", "a text")]),
    ({"schema": BLOB, "of": 1}, [("/c/of", "a text")]),
    ({"compare": "a > b"}, [("/c/compare", "left, operator and right")]),
    ({"compare": {"lefft": 1}}, [("/c/compare/lefft", "did you mean `left`?"), ("/c/compare", "`left`"), ("/c/compare", "`operator`"), ("/c/compare", "`right`")]),
    ({"compare": {"left": "${a}", "operator": "=>", "right": ["${b"]}}, [("/c/compare/left", "must begin"), ("/c/compare/right/0", "closing"), ("/c/compare/operator", "`>=`")]),
    ({"compare": {"left": "${a}", "operator": ">", "right": {}}}, [("/c/compare/left", "must begin")]),
    ({"compare": {"left": 1, "operator": 1, "right": 1}}, [("/c/compare/operator", "a text")]),
    ({"compare": {"left": 1, "operator": "§", "right": 1}}, [("/c/compare/operator", "there are ==")]),
    ({"compare": {"left": 1, "operator": "==", "right": "1"}}, [("/c/compare/right", "without quotation marks")]),
    ({"compare": {"left": "a${output.x}", "operator": "==", "right": None}}, [("/c/compare/right", "of one type")]),
    ({"compare": {"left": "${output.x}", "operator": ">", "right": None}}, [("/c/compare/right", "not null")]),
    ({"compare": {"left": 1, "operator": "in", "right": 5}}, [("/c/compare/right", "not a number")]),
    ({"compare": {"left": 1, "operator": "contains", "right": 5}}, [("/c/compare/left", "not a number")]),
    ({"all": []}, [("/c/all", "at least one")]),
    ({"any": "true"}, [("/c/any", "a list of conditions")]),
    ({"all": ["true", 1, {"not": {"any": ["x"]}}], "any": []}, [("/c", "not both")]),
    ({"all": ["true", 1, {"not": {"any": ["x"]}}]}, [("/c/all/1", "a number"), ("/c/all/2/not/any/0", "there is no `x`")]),
    ({"not": "1"}, [("/c/not", "true or false")]),
    ({"python": 1}, [("/c/python", "a text")]),
    ({"python": CODE, "of": 1}, [("/c/of", "a text")]),
    ({"python": "x = 1"}, [("/c/python", "def evaluate(output, context)")]),
    ({"python": "def evaluate(output): return True"}, [("/c/python", "takes `output` and `context`")]),
    ({"python": "def evaluate(output, context, *, more): return True"}, [("/c/python", "takes `output`")]),
    ({"python": "cas://sha256/x"}, [("/c/python", "64 hexadecimal digits")]),
    ({"python": CODE, "needs": "input"}, [("/c/needs", "a list of expressions")]),
    ({"python": CODE, "needs": [1], "timeout": "1 week", "max_memory_mb": 1.5}, [("/c/needs", "a list"), ("/c/timeout", "not a duration"), ("/c/max_memory_mb", "from 10 to 256")]),
    ({"python": CODE, "timeout": "1h", "max_memory_mb": 1_000}, [("/c/timeout", "from 10 ms to 10 s"), ("/c/max_memory_mb", "from 10 to 256")]),
    ({"python": CODE, "of": "x", "needs": ["y", "input.l[0]", "ctx.input.output"]}, [("/c/of", "begin"), ("/c/needs/0", "begin"), ("/c/needs/1", "name the list"), ("/c/needs/2", "two meanings")]),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), WRONG, ids=[str(value)[:80] for value, _ in WRONG])
def test_what_is_wrong_is_told_at_its_place_and_all_at_once(
    value: Any, expected: list[tuple[str, str]]
) -> None:
    found = problems(value)
    assert [place for place, _ in found] == [place for place, _ in expected]
    assert [words for (_, words), (_, said) in zip(found, expected, strict=True) if said not in words] == []


def test_warnings_of_pythons_parser_are_ignored() -> None:
    assert problems({"python": 'def evaluate(output, context):\n    return "\\d" is output\n'}) == []


# ---- the published schema ---------------------------------------------------------------------------------------

VALUE = {"description": "any"}
DURATION = {"type": ["string", "number"]}
PUBLISHED = jsonschema_rs.validator_for(
    {"$defs": {**CONDITIONS, "value": VALUE, "duration": DURATION}, "$ref": "#/$defs/condition"}
)


def test_the_published_schema_knows_every_kind_and_field() -> None:
    forms = {form["title"]: set(form["properties"]) for form in CONDITIONS["condition"]["anyOf"][1:]}
    assert forms == {kind: {kind, *beside} for kind, beside in FIELDS.items()}


def test_the_published_schema_refuses_nothing_that_can_be_read() -> None:
    accepted = [case for case in [*ORDINARY, *BROKEN, *SOURCES] if case.expected is not REFUSED]
    assert len(accepted) > 120
    assert [case.name for case in accepted if not PUBLISHED.is_valid(case.condition)] == []


@pytest.mark.parametrize(
    "value",
    [
        1,
        "",
        {},
        {"cell": "x"},
        {"cel": "true", "python": "x"},
        {"all": []},
        {"jsonpath": "$", "operator": "like"},
    ],
)
def test_the_published_schema_refuses_what_has_no_form(value: Any) -> None:
    assert not PUBLISHED.is_valid(value)
