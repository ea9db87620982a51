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
from tests.kit.sentences import Says

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
        (True, Cel(expression="true")),
        (False, Cel(expression="false")),
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


WRONG: list[tuple[Any, list[str]]] = [
    (1, ["/c"]),
    (None, ["/c"]),
    ({}, ["/c"]),
    ({"cell": "x"}, ["/c"]),
    ({1: "x"}, ["/c"]),
    ({"cel": "true", "python": CODE}, ["/c"]),
    ({"cel": 1}, ["/c/cel"]),
    ({"cel": "true", "of": "output"}, ["/c/of"]),
    ({"jsonpath": "$", "operater": "=="}, ["/c/operater"]),
    ({"jsonpath": ["$"], "operator": 1, "of": 2}, ["/c/jsonpath", "/c/operator", "/c/of"]),
    ({"jsonpath": "x", "operator": "sum_gtt", "value": 1, "of": "outptu"}, ["/c/jsonpath", "/c/of", "/c/operator"]),
    ({"jsonpath": "$", "operator": "§", "value": 1}, ["/c/operator"]),
    ({"jsonpath": "$", "value": 1}, ["/c/value"]),
    ({"jsonpath": "$", "operator": "not_exists", "value": 1}, ["/c/value"]),
    ({"jsonpath": "$", "operator": ">"}, ["/c"]),
    ({"jsonpath": "$", "operator": ">", "value": []}, ["/c/value"]),
    ({"jsonpath": "$", "operator": "in", "value": "a"}, ["/c/value"]),
    ({"jsonpath": "$", "operator": "count", "value": True}, ["/c/value"]),
    ({"schema": "dnoe"}, ["/c/schema"]),
    ({"schema": "zzz"}, ["/c/schema"]),
    ({"schema": "cas://sha256/0"}, ["/c/schema"]),
    ({"schema": [1], "invert": "yes", "of": "ctx.a"}, ["/c/invert"]),
    ({"schema": {"type": 1}, "of": "ctx.a"}, ["/c/schema/type", "/c/of"]),
    ({"schema": [1]}, ["/c/schema"]),
    ({"schema": "done", "of": 1}, ["/c/of"]),
    ({"schema": BLOB, "of": 1}, ["/c/of"]),
    ({"compare": "a > b"}, ["/c/compare"]),
    ({"compare": {"lefft": 1}}, ["/c/compare/lefft", "/c/compare", "/c/compare", "/c/compare"]),
    ({"compare": {"left": "${a}", "operator": "=>", "right": ["${b"]}}, ["/c/compare/left", "/c/compare/right/0", "/c/compare/operator"]),
    ({"compare": {"left": "${a}", "operator": ">", "right": {}}}, ["/c/compare/left"]),
    ({"compare": {"left": 1, "operator": 1, "right": 1}}, ["/c/compare/operator"]),
    ({"compare": {"left": 1, "operator": "§", "right": 1}}, ["/c/compare/operator"]),
    ({"compare": {"left": 1, "operator": "==", "right": "1"}}, ["/c/compare/right"]),
    ({"compare": {"left": "a${output.x}", "operator": "==", "right": None}}, ["/c/compare/right"]),
    ({"compare": {"left": "${output.x}", "operator": ">", "right": None}}, ["/c/compare/right"]),
    ({"compare": {"left": 1, "operator": "in", "right": 5}}, ["/c/compare/right"]),
    ({"compare": {"left": 1, "operator": "contains", "right": 5}}, ["/c/compare/left"]),
    ({"all": []}, ["/c/all"]),
    ({"any": "true"}, ["/c/any"]),
    ({"all": ["true", 1, {"not": {"any": ["x"]}}], "any": []}, ["/c"]),
    ({"all": ["true", 1, {"not": {"any": ["x"]}}]}, ["/c/all/1", "/c/all/2/not/any/0"]),
    ({"not": "1"}, ["/c/not"]),
    ({"python": 1}, ["/c/python"]),
    ({"python": CODE, "of": 1}, ["/c/of"]),
    ({"python": "x = 1"}, ["/c/python"]),
    ({"python": "def evaluate(output): return True"}, ["/c/python"]),
    ({"python": "def evaluate(output, context, *, more): return True"}, ["/c/python"]),
    ({"python": "cas://sha256/x"}, ["/c/python"]),
    ({"python": CODE, "needs": "input"}, ["/c/needs"]),
    ({"python": CODE, "needs": [1], "timeout": "1 week", "max_memory_mb": 1.5}, ["/c/needs", "/c/timeout", "/c/max_memory_mb"]),
    ({"python": CODE, "timeout": "1h", "max_memory_mb": 1_000}, ["/c/timeout", "/c/max_memory_mb"]),
    ({"python": CODE, "of": "x", "needs": ["y", "input.l[0]", "ctx.input.output"]}, ["/c/of", "/c/needs/0", "/c/needs/1", "/c/needs/2"]),
]  # fmt: skip


@pytest.mark.parametrize(("value", "places"), WRONG, ids=[str(value)[:80] for value, _ in WRONG])
def test_what_is_wrong_is_told_at_its_place_and_all_at_once(
    value: Any, places: list[str], says: Says
) -> None:
    found = problems(value)
    assert [place for place, _ in found] == places
    says([words for _, words in found])


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
