"""What the engine asks of conditions besides their answers: what they read, what they need, what they ask."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from baton.core.conditions import (
    ConditionError,
    SandboxAnswer,
    SandboxQuestion,
    Unanswered,
    blobs_of,
    cel,
    compare,
    jsonpath,
    judge,
    names_of,
    schemaplan,
)
from baton.core.conditions.document import read_condition
from baton.core.conditions.model import Cel, Compare, Condition, JsonPath, Matches, Python
from baton.core.expressions import Path
from tests.core.conditions.corpus import lookup_in

BLOB = "cas://sha256/" + "0" * 64
CODE = "def evaluate(output, context):\n    return True\n"


def read(value: Any, **more: Any) -> Condition:
    condition, problems = read_condition(value, "", {}, **more)
    assert not problems
    assert condition is not None
    return condition


def texts(condition: Condition) -> list[str]:
    return [path.text for path in names_of(condition)]


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("output.score > 1 && output.score < input.limit", ["output.score", "input.limit"]),
        (
            "ctx.a.output.rows[0].x == 1 && ctx.a.output['odd key'] == 2",
            ["ctx.a.output.rows[0]", 'ctx.a.output["odd key"]'],
        ),
        ('output[input.key] == output[-1] && output["\'"] == 1', ["output", "input.key", 'output["\'"]']),
        ("""output["'\\""].x == output["\\\\"] || output[true] == 1""", ["output"]),
        ("has(ctx.a.output) && ctx.a.output.x > 1", ["ctx.a.output?.x", "ctx.a.output?"]),
        (
            "has(ctx.a) && ctx.a.output.x > ctx.a.previous.x",
            ["ctx.a.output?.x", "ctx.a.previous.x", "ctx.a.output?"],
        ),
        (
            "has(ctx.a.output.x) && ctx.a.output.x.y > 1 && ctx.a.output.z > 1",
            ["ctx.a.output", "ctx.a.output.z"],
        ),
        ("has(output.x.y) && output.x.y > output.x.z", ["output.x", "output.x.z"]),
        ("has(saga.id) && has(join.outputs.a)", ["saga.id", "join.outputs"]),
        ("output.l.all(i, i.x > input.n && has(i.y))", ["output.l", "input.n"]),
        ("has({'a': output.x}.a)", ["output.x"]),
        ("true", []),
        ({"jsonpath": "$.x", "of": "${ctx.a.output.rows}"}, ["ctx.a.output.rows"]),
        ({"schema": True}, ["output"]),
        (
            {"compare": {"left": ["${input.a}", "${input.b}!"], "operator": "==", "right": "${input.a}"}},
            ["input.a", "input.b"],
        ),
        ({"python": CODE, "needs": ["${ctx.a.output?}", "output"]}, ["output", "ctx.a.output?"]),
        ({"any": ["input.a", {"not": {"all": ["input.b", "input.a"]}}]}, ["input.a", "input.b"]),
    ],
)
def test_a_condition_tells_every_value_that_it_reads_once(value: Any, names: list[str]) -> None:
    assert texts(read(value)) == names


def test_what_is_not_said_is_about_the_output_and_in_a_when_about_the_input() -> None:
    values: list[Any] = [{"jsonpath": "$.x"}, {"schema": {}}, {"python": CODE}]
    for value in values:
        assert texts(read(value)) == ["output"]
        assert texts(read(value, of="input")) == ["input"]


def test_a_condition_tells_the_blobs_that_it_needs() -> None:
    other = "cas://sha256/" + "1" * 64
    assert blobs_of(read({"all": [{"schema": BLOB}, {"not": {"python": other}}, "true"]})) == {BLOB, other}


def test_conditions_are_data_that_come_back_from_a_graph_as_they_were() -> None:
    condition = read(
        {"all": [{"schema": {"type": "null"}}, {"jsonpath": "$.x", "operator": "in", "value": [1]}]}
    )
    data = msgspec.json.encode(condition)
    assert msgspec.json.decode(data, type=Condition) == condition


# ---- no more than what is named ---------------------------------------------------------------------------------


def test_cel_is_given_no_more_than_what_it_names() -> None:
    large = list(range(300_000))
    output = {"score": 84, "rest": large, "rows": large}
    context = {"ctx": {"a": {"output": {"x": 1, "rest": large}}, "b": {"output": large}}}
    lookup = lookup_in(output, context)
    named = Cel(expression="output.score > 80 && has(ctx.b) && has(ctx.a.output) && ctx.a.output.x == 1")
    assert judge(named, lookup, {}, {})
    with pytest.raises(ConditionError, match="name only the part"):
        judge(Cel(expression="output.rows[0] == 0"), lookup, {}, {})


def test_a_function_is_asked_about_no_more_than_what_it_needs() -> None:
    context = {
        "ctx": {"a": {"output": {"x": 1, "y": {"z": 2, "rest": 3}}, "previous": None}, "b": {}},
        "join": {"outputs": {"a": 1}, "arrived": ["a"], "errors": []},
        "input": [1],
    }
    needs = [
        "ctx.a.output.x",
        "ctx.a.output.y.z",
        "ctx.a.previous",
        "ctx.b.output?",
        "join.outputs",
        "join.arrived",
        "input",
    ]
    condition = read({"python": CODE, "needs": needs, "timeout": "2s", "max_memory_mb": 64})
    with pytest.raises(Unanswered, match="1 question") as caught:
        judge(condition, lookup_in({"o": 1}, context), {}, {})
    (question,) = caught.value.questions
    assert json.loads(question.data) == {
        "output": {"o": 1},
        "context": {
            "a": {"output": {"x": 1, "y": {"z": 2}}, "previous": None},
            "b": {"output": None},
            "join": {"outputs": {"a": 1}, "arrived": ["a"]},
            "input": [1],
        },
    }
    assert (question.code, question.timeout_ms, question.memory_mb) == (CODE, 2_000, 64)


def test_a_function_sees_null_for_a_part_of_the_input_that_may_be_missing() -> None:
    needs = ["input.a?", "input.u.b?", "input.v?.c", "input.w?.c?", "input.u.n"]
    given = {"u": {"n": 1, "m": 2}, "w": {}, "rest": 3}
    question = asked(read({"python": CODE, "needs": needs}), 1, {"input": given})
    seen = {"a": None, "u": {"n": 1, "b": None}, "v": None, "w": {"c": None}}
    assert json.loads(question.data)["context"] == {"input": seen}
    question = asked(read({"python": CODE, "needs": ["input.a?"]}), 1, {"input": None})
    assert json.loads(question.data)["context"] == {"input": None}
    question = asked(read({"python": CODE, "needs": ["input.a?", "input"]}), 1, {"input": given})
    assert json.loads(question.data)["context"] == {"input": {**given, "a": None}}
    assert "a" not in given


@pytest.mark.parametrize(
    ("condition", "given", "holds"),
    [
        ({"compare": {"left": "${input.size?}", "operator": "==", "right": None}}, {}, True),
        ({"compare": {"left": "${input.size?}", "operator": "==", "right": None}}, {"size": 1}, False),
        ({"jsonpath": "$", "of": "input.user?.city?", "operator": "==", "value": None}, {"user": {}}, True),
    ],
)
def test_a_part_of_the_input_may_be_asked_about_as_null(condition: Any, given: Any, holds: bool) -> None:
    assert judge(read(condition), lookup_in(0, {"input": given}), {}, {}) is holds


def asked(condition: Condition, output: Any, context: Any = None) -> SandboxQuestion:
    with pytest.raises(Unanswered) as caught:
        judge(condition, lookup_in(output, context or {}), {BLOB: CODE}, {})
    (question,) = caught.value.questions
    return question


def test_equal_questions_have_one_key_and_others_have_others() -> None:
    inline, stored = Python(code=CODE), Python(ref=BLOB)
    assert asked(inline, 1) == asked(stored, 1)
    different = [asked(inline, 1), asked(inline, 2), asked(Python(code=CODE + "#"), 1)]
    different += [asked(Python(code=CODE, timeout_ms=5), 1), asked(Python(code=CODE, memory_mb=51), 1)]
    assert len({question.key for question in different}) == 5
    assert all(len(question.key) == 64 for question in different)


def test_questions_are_asked_one_after_the_other_as_far_as_they_matter() -> None:
    first, second = Python(code=CODE + "# 1"), Python(code=CODE + "# 2")
    condition = read({"any": [{"python": first.code}, {"python": second.code}]})
    answers = {asked(first, 1).key: SandboxAnswer(value=False)}
    assert asked(condition, 1) == asked(first, 1)
    with pytest.raises(Unanswered) as caught:
        judge(condition, lookup_in(1, {}), {}, answers)
    assert caught.value.questions == {asked(second, 1)}
    assert judge(
        condition, lookup_in(1, {}), {}, {**answers, asked(second, 1).key: SandboxAnswer(value=True)}
    )


# ---- compiled once ----------------------------------------------------------------------------------------------


def test_a_condition_is_compiled_once_in_a_process() -> None:
    caches: list[Any] = [cel.cel_plan, jsonpath.query_plan, schemaplan.plan_of, compare._template]
    conditions: list[Condition] = [
        Cel(expression="output.once == 1"),
        JsonPath(query="$.once"),
        Matches(schema={"title": "once"}),
        Compare(left="${output.once}", operator="==", right="once"),
    ]
    before = [cache.cache_info().misses for cache in caches]
    for _ in range(5):
        for condition in conditions:
            names_of(condition)
            judge(condition, lookup_in({"once": 1}, {}), {}, {})
    assert [cache.cache_info().misses - was for cache, was in zip(caches, before, strict=True)] == [
        1,
        1,
        1,
        2,
    ]


@pytest.mark.no_cover
def test_what_is_kept_of_compiled_conditions_has_an_end() -> None:
    """And room for all of a document that is larger than any that was met."""
    for index in range(600):
        cel.cel_plan(f"output == {index}")
    known = cel.cel_plan.cache_info()
    assert 600 <= known.currsize <= (known.maxsize or 0) == 2_048


def test_libraries_are_loaded_by_the_first_condition_that_needs_them() -> None:
    program = """
import sys
import baton.core.graph.graph
from baton.core.conditions import judge
from baton.core.conditions.model import *
loaded = lambda: [name for name in ("baton.core.conditions.cel", "cel_expr_python", "jsonpath", "jsonschema_rs") if name in sys.modules]
said = [loaded()]
for one in (Compare(left=1, operator="==", right=1), Cel(expression="true"), JsonPath(query="$"), Matches(schema=True)):
    assert judge(one, lambda path: 1, {}, {})
    said.append(loaded())
print(said)
"""
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
    assert eval(output) == [
        [],
        [],
        ["baton.core.conditions.cel", "cel_expr_python"],
        ["baton.core.conditions.cel", "cel_expr_python", "jsonpath"],
        ["baton.core.conditions.cel", "cel_expr_python", "jsonpath", "jsonschema_rs"],
    ]


# ---- what is stored and cannot be judged ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        (Cel(expression="output ="), "output ="),
        (JsonPath(query="$["), "$["),
        (JsonPath(query="$", operator="like"), "no such operator"),
        (Matches(schema={"type": 1}), "`schema` is not a JSON Schema"),
    ],
)
def test_a_stored_condition_that_cannot_be_compiled_fails_with_a_code(
    condition: Condition, says: str
) -> None:
    with pytest.raises(ConditionError) as caught:
        judge(condition, lookup_in(1, {}), {}, {})
    assert caught.value.code == "condition_invalid"
    assert says in caught.value.message


def test_names_of_a_stored_condition_that_cannot_be_compiled_are_an_error_with_a_code() -> None:
    with pytest.raises(ConditionError) as caught:
        names_of(Cel(expression="output ="))
    assert caught.value.code == "condition_invalid"


@pytest.mark.parametrize(
    ("error", "code"), [(RecursionError, "condition_too_large"), (MemoryError, "condition_memory")]
)
def test_a_machine_that_gives_up_is_a_broken_condition(error: type[Exception], code: str) -> None:
    def lookup(path: Path) -> Any:
        raise error

    with pytest.raises(ConditionError) as caught:
        judge(JsonPath(query="$"), lookup, {}, {})
    assert caught.value.code == code


def test_a_long_condition_is_cut_where_a_message_names_it() -> None:
    with pytest.raises(ConditionError) as caught:
        judge(Cel(expression="output.x == '" + "a" * 1_000 + "'"), lookup_in({}, {}), {}, {})
    assert len(caught.value.message) < 400
    assert "…" in caught.value.message
