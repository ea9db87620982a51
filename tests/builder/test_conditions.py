"""Conditions in Python: each way of asking is written as a document has it, and a reference becomes its bare name."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest
from pydantic import BaseModel

from baton import (
    OUTPUT,
    Workflow,
    all_of,
    any_of,
    cel,
    compare,
    jsonpath,
    matches,
    not_,
    python,
)
from baton.builder import conditions
from baton.builder.conditions import Holds
from baton.core.conditions.document import FIELDS
from baton.errors import InvalidDefinition, Problem
from tests.kit.sentences import Says


class Done(BaseModel):
    score: int


LIMIT = 80


def good(output: Any, context: Any) -> bool:
    """Worth it."""
    best: int = max(part["score"] for part in output["parts"])
    return bool(best >= context["input"]["limit"])  # more or as much


def beyond(output: Any, context: Any) -> bool:
    return bool(json.dumps(output) and output["score"] > LIMIT)


@lru_cache
def decorated(output: Any, context: Any) -> bool:
    return True


async def later(output: Any, context: Any) -> bool:
    return True


@pytest.fixture
def built() -> Workflow:
    return Workflow("w")


def asked(built: Workflow, condition: Holds) -> Any:
    """The condition, as the document has it."""
    built.value("asked", 1, when=condition)
    return built.document()["nodes"]["asked"]["when"]


def told(built: Workflow, condition: Any) -> Problem:
    built.value("asked", 1, when=condition)
    with pytest.raises(InvalidDefinition) as caught:
        built.document()
    (problem,) = caught.value.problems
    return problem


# ---- CEL ---------------------------------------------------------------------------------------------------------


def test_a_reference_in_cel_is_its_bare_name(built: Workflow) -> None:
    found = built.task("find", "t")
    assert asked(built, f"{found.output.price} < {built.input['the limit']} && {OUTPUT.ok}") == (
        'ctx.find.output.price < input["the limit"] && output.ok'
    )


def test_a_reference_alone_is_a_condition(built: Workflow) -> None:
    found = built.task("find", "t")
    assert asked(built, found.output.ok) == "ctx.find.output.ok"
    built.value("b", 1, when=not_(built.input.quick))
    assert built.document()["nodes"]["b"]["when"] == {"not": "input.quick"}


def test_cel_that_a_person_wrote_stays_as_it_is(built: Workflow) -> None:
    text = "output.x == '${input.y}' || // '${input.y}\n output.y"
    assert asked(built, text) == text


@pytest.mark.parametrize(
    "text",
    ["'{}' == 'gold'", 'input.x == "a {}"', "'''it's {}''' == input.x", "r'\\' == input.x || \"{}\" == 'x'"],
)
def test_a_reference_in_quotes_is_a_mistake(built: Workflow, text: str, says: Says) -> None:
    problem = told(built, text.format(built.input["the tier"]))
    says(problem)


@pytest.mark.parametrize(
    "text",
    [
        "'it' == {} && 'gold' == {}",
        "true // it is {}",
        "{} == 'it\\'s' || {}",
        "r'\\' == {}",
        "// it's\n{} == 'x'",
        '{} == "\'"',
    ],
)
def test_a_reference_between_quoted_texts_is_none(built: Workflow, text: str) -> None:
    name = built.input["the 'tier'"]
    assert asked(built, text.replace("{}", str(name))) == text.replace("{}", "input[\"the 'tier'\"]")


@pytest.mark.parametrize("write", [str, lambda reference: reference], ids=["in a text", "alone"])
def test_an_output_that_may_be_missing_cannot_stand_in_cel(built: Workflow, write: Any, says: Says) -> None:
    problem = told(built, cel(write(built.task("find", "t").maybe.price)))
    assert problem.path == "/nodes/asked/when/cel"
    says((problem.message, problem.suggestion))


# ---- the other ways of asking ------------------------------------------------------------------------------------


def test_every_way_of_asking_is_written_as_a_document_has_it(built: Workflow) -> None:
    found = built.task("find", "t")
    cases: list[tuple[Holds, Any]] = [
        (cel("output.x"), {"cel": "output.x"}),
        (jsonpath("$.a"), {"jsonpath": "$.a"}),
        (jsonpath("$.a", ">", 0), {"jsonpath": "$.a", "operator": ">", "value": 0}),
        (jsonpath("$.a", "==", None, of=found.output), {"jsonpath": "$.a", "operator": "==", "value": None, "of": "${ctx.find.output}"}),
        (matches("done"), {"schema": "done"}),
        (matches({"type": "object"}, invert=True), {"schema": {"type": "object"}, "invert": True}),
        (matches(Done, of="${input.x}"), {"schema": Done.model_json_schema(), "of": "${input.x}"}),
        (matches(int | None), {"schema": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}),
        (compare(found.maybe, "!=", None), {"compare": {"left": "${ctx.find.output?}", "operator": "!=", "right": None}}),
        (compare({"x": OUTPUT}, "==", [1]), {"compare": {"left": {"x": "${output}"}, "operator": "==", "right": [1]}}),
        (all_of("a", any_of("b", not_("c"))), {"all": ["a", {"any": ["b", {"not": "c"}]}]}),
        (python("cas://sha256/0", needs=[found.output, f"{built.input.x}", "saga.id"], of=OUTPUT.y, timeout="1s", max_memory_mb=9),
         {"python": "cas://sha256/0", "needs": ["ctx.find.output", "input.x", "saga.id"], "of": "${output.y}", "timeout": "1s",
          "max_memory_mb": 9}),
    ]  # fmt: skip
    for number, (condition, _) in enumerate(cases):
        built.value(f"n{number}", 1, when=condition)
    nodes = built.document()["nodes"]
    assert [nodes[f"n{number}"]["when"] for number in range(len(cases))] == [written for _, written in cases]


def test_every_field_of_a_condition_has_a_parameter() -> None:
    """What a document can ask can be asked in Python: no form and no field is missing."""
    functions: dict[str, Any] = {"schema": matches, "all": all_of, "any": any_of, "not": not_}
    for form, beside in FIELDS.items():
        function: Callable[..., object] = functions.get(form) or vars(conditions)[form]
        assert set(beside) <= set(inspect.signature(function).parameters), form


# ---- functions ---------------------------------------------------------------------------------------------------


def test_a_function_goes_by_its_source(built: Workflow) -> None:
    asked_of = python(good, needs=[built.input.limit])
    source = asked(built, asked_of)["python"]
    assert source == inspect.getsource(good).replace("def good(", "def evaluate(")
    alone: dict[str, Any] = {}
    exec(f"from __future__ import annotations\n{source}", alone)
    output = {"parts": [{"score": 3}, {"score": 5}]}
    assert [alone["evaluate"](output, {"input": {"limit": limit}}) for limit in (5, 6)] == [True, False]


def test_a_function_inside_another_is_set_out(built: Workflow) -> None:
    def inner(output: dict[str, Any], context: dict[str, Any]) -> bool:
        return all(part > 1 for part in output["parts"])

    assert asked(built, python(inner))["python"] == (
        "def evaluate(output: dict[str, Any], context: dict[str, Any]) -> bool:\n"
        '    return all(part > 1 for part in output["parts"])\n'
    )


ALONE = "write it as a `def` at the top of a module, or its source as text"


@pytest.mark.parametrize(
    "function",
    [
        beyond,
        decorated,
        later,
        lambda output, context: True,
        len,
    ],
)
def test_a_function_that_cannot_be_sent_says_why(
    built: Workflow, function: Callable[..., object], says: Says
) -> None:
    problem = told(built, all_of(python(function)))
    assert problem.path == "/nodes/asked/when/all/0/python"
    says((problem.message, problem.suggestion))


# ---- mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "path", "message"),
    [
        (True, "", "`True` is not a condition"),
        ({"cel": "true"}, "", "`{'cel': 'true'}` is not a condition"),
        (not_(5), "/not", "`5` is not a condition"),  # type: ignore[arg-type]  # the mistake
        (all_of("true", None), "/all/1", "`None` is not a condition"),  # type: ignore[arg-type]  # the mistake
        (python("x", needs=5), "/needs", "`5` is not a list"),  # type: ignore[arg-type]  # the mistake
        (python("x", needs=[{1}]), "/needs/0", "a set is not a JSON value"),  # type: ignore[list-item]  # the mistake
        (matches(OUTPUT.x), "/schema", "`<reference ${output.x}>` is not a schema"),
    ],
)  # fmt: skip
def test_what_is_no_condition_is_told(built: Workflow, wrong: Any, path: str, message: str) -> None:
    problem = told(built, wrong)
    assert (problem.path, problem.message) == (f"/nodes/asked/when{path}", message)


def test_what_only_the_compiler_can_refuse_is_left_to_it(built: Workflow) -> None:
    wrong: Any = [{"a": 1}]
    assert asked(built, python("x", needs=wrong))["needs"] == wrong


def test_conditions_without_end_are_a_mistake_and_not_a_crash(built: Workflow, says: Says) -> None:
    condition: Any = "true"
    for _ in range(5_000):
        condition = not_(condition)
    says(told(built, condition).message)
