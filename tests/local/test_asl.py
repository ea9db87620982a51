"""The interpreter of state machines: what each state does, and what it refuses to guess.

Functions are scripted and no test sleeps.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from baton.local.asl import Interpreter, TaskFailed
from baton.local.asl_check import functions_of
from baton.local.asl_paths import AslProblem, PathFailed, fill, place, select

FUNCTION = "arn:aws:lambda:us-east-1:000000000000:function:f"
DEFINITION = Path(__file__).parents[2] / "statemachine" / "reconcile.asl.json"


class Functions:
    """Answers with the event itself, unless a script says otherwise; remembers who was called with what."""

    def __init__(self, *script: Any) -> None:
        self.calls: list[Any] = []
        self.pauses: list[float] = []
        self._script = list(script)

    async def invoke(self, reference: str, event: Any) -> Any:
        assert reference == FUNCTION
        self.calls.append(event)
        answer = self._script.pop(0) if self._script else event
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def run(self, definition: dict[str, Any], data: Any = None) -> Any:
        machine = Interpreter(definition, self.invoke, sleep=self.sleep, jitter=lambda: 0.5)
        return asyncio.run(machine.run({} if data is None else data, "execution"))


def one(**state: Any) -> dict[str, Any]:
    """A machine of one state."""
    ends = {} if state["Type"] in {"Succeed", "Fail"} else {"End": True}
    return {"StartAt": "A", "States": {"A": {**ends, **state}}}


def task(**more: Any) -> dict[str, Any]:
    return one(Type="Task", Resource=FUNCTION, **more)


@pytest.mark.parametrize(
    ("definition", "data", "output"),
    [
        (one(Type="Pass"), {"a": 1}, {"a": 1}),
        (one(Type="Pass", Result=[1]), {}, [1]),
        (
            one(Type="Pass", Parameters={"n.$": "$.a[1]", "k": {"m": 1}}),
            {"a": [1, 2]},
            {"n": 2, "k": {"m": 1}},
        ),
        (one(Type="Pass", Result=1, ResultPath="$.b.c"), {"a": 0}, {"a": 0, "b": {"c": 1}}),
        (one(Type="Pass", Result=1, ResultPath=None), {"a": 0}, {"a": 0}),
        (one(Type="Pass", InputPath="$.a", OutputPath="$.b"), {"a": {"b": 1}}, 1),
        (one(Type="Pass", InputPath=None), {"a": 1}, {}),
        (one(Type="Succeed", OutputPath="$.a"), {"a": 1}, 1),
        (task(), {"a": 1}, {"a": 1}),
        (task(ResultSelector={"only.$": "$.a"}), {"a": 1, "b": 2}, {"only": 1}),
        (task(Parameters={"id.$": "$$.Execution.Id"}), {}, {"id": "execution"}),
        (
            one(
                Type="Task",
                Resource="arn:aws:states:::lambda:invoke",
                Parameters={"FunctionName": FUNCTION, "Payload": {"a.$": "$.a"}},
                OutputPath="$.Payload",
            ),
            {"a": 1},
            {"a": 1},
        ),
        (one(Type="Parallel", Branches=[one(Type="Pass", Result=1), one(Type="Pass", Result=2)]), {}, [1, 2]),
        (
            one(
                Type="Map",
                ItemsPath="$.items",
                ItemSelector={"i.$": "$$.Map.Item.Index", "v.$": "$$.Map.Item.Value", "all.$": "$.items"},
                ItemProcessor=task(),
            ),
            {"items": ["a", "b"]},
            [{"i": 0, "v": "a", "all": ["a", "b"]}, {"i": 1, "v": "b", "all": ["a", "b"]}],
        ),
        (one(Type="Map", Iterator=task()), [1, 2], [1, 2]),
    ],
)
def test_a_state_turns_its_input_into_its_output(definition: dict[str, Any], data: Any, output: Any) -> None:
    assert Functions().run(definition, data) == output


def test_a_retry_waits_longer_each_time_and_counts_its_attempts() -> None:
    retry = [{"ErrorEquals": ["Busy"], "IntervalSeconds": 2, "MaxAttempts": 2, "BackoffRate": 3}]
    functions = Functions(TaskFailed("Busy", ""), TaskFailed("Busy", ""), "done")
    assert functions.run(task(Retry=retry)) == "done"
    assert functions.pauses == [2, 6]


def test_a_retry_with_full_jitter_is_drawn_and_capped() -> None:
    retry = [
        {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 8, "MaxDelaySeconds": 4, "JitterStrategy": "FULL"}
    ]
    functions = Functions(TaskFailed("Busy", ""), "done")
    functions.run(task(Retry=retry))
    assert functions.pauses == [2]


def test_an_error_that_no_retry_names_is_not_repeated() -> None:
    functions = Functions(TaskFailed("ValueError", "no"))
    with pytest.raises(TaskFailed, match="ValueError: no"):
        functions.run(task(Retry=[{"ErrorEquals": ["Busy"]}]))
    assert functions.pauses == []


def test_a_catch_goes_on_elsewhere_with_the_error_in_the_data() -> None:
    definition = task(Catch=[{"ErrorEquals": ["States.TaskFailed"], "Next": "B", "ResultPath": "$.error"}])
    definition["States"]["B"] = {"Type": "Pass", "End": True}
    output = Functions(TaskFailed("ValueError", "no")).run(definition, {"a": 1})
    assert output == {"a": 1, "error": {"Error": "ValueError", "Cause": "no"}}


def test_one_failing_item_of_a_map_fails_the_map() -> None:
    with pytest.raises(TaskFailed, match="Bad"):
        Functions(TaskFailed("Bad", "")).run(one(Type="Map", ItemProcessor=task()), [1, 2])


def test_a_path_that_finds_nothing_fails_the_execution_by_name() -> None:
    with pytest.raises(TaskFailed, match=r"States.Runtime: the path \$\.b"):
        Functions().run(one(Type="Pass", InputPath="$.b"), {"a": 1})


def test_a_task_over_its_time_limit_fails_with_states_timeout() -> None:
    async def never(_reference: str, _event: Any) -> Any:
        await asyncio.Event().wait()

    machine = Interpreter(task(TimeoutSeconds=0.01), never)
    with pytest.raises(TaskFailed, match=r"States\.Timeout"):
        asyncio.run(machine.run({}))


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("States.ArrayRange(0, 3, 1)", [0, 1, 2, 3]),
        ("States.ArrayRange(3, 0, -2)", [3, 1]),
        ("States.Array($.a, 'x', 5)", [1, "x", 5]),
        ("States.ArrayLength(States.Array(1, 2))", 2),
        ("States.Format('{}-{}', $.a, 'b, c')", "1-b, c"),
        ("States.JsonToString($)", '{"a":1}'),
        ("States.StringToJson('[1]')", [1]),
        ("States.MathAdd($.a, -3)", -2),
    ],
)
def test_an_intrinsic_function_is_evaluated(source: str, value: Any) -> None:
    assert fill({"x.$": source}, {"a": 1}, {}) == {"x": value}


def test_paths_reach_into_quoted_names_and_the_context() -> None:
    assert select("$['a b'].c", {"a b": {"c": 1}}, {}) == 1
    assert select("$$.Map.Item", {}, {"Map": {"Item": 2}}) == 2
    assert place("$", {"a": 1}, 2) == 2
    with pytest.raises(PathFailed):
        place("$.a.b", {"a": 1}, 2)


@pytest.mark.parametrize(
    ("definition", "says"),
    [
        ({"States": {}}, "StartAt: there is no state None"),
        ({"StartAt": "B", "States": {"A": {"Type": "Pass", "End": True}}}, "there is no state B"),
        (one(Type="Wait", Seconds=5), "A: the type Wait is not interpreted locally"),
        (one(Type="Choice", Choices=[]), "the type Choice is not interpreted"),
        (task(HeartbeatSeconds=5), "A: HeartbeatSeconds is not interpreted locally"),
        (task(Retry=[{"ErrorEquals": [], "Interval": 5}]), "A.Retry: Interval is not .* IntervalSeconds"),
        (task(Catch=[{"ErrorEquals": [], "Next": "B"}]), "A.Catch.Next: there is no state B"),
        (one(Type="Task", Resource="arn:aws:states:::sqs:sendMessage"), "only Lambda functions"),
        (one(Type="Task", Resource="arn:aws:states:::lambda:invoke"), "needs a FunctionName"),
        (one(Type="Pass", Parameters={"x.$": "States.Hash('a', 'b')"}), "States.Hash is not interpreted"),
        (one(Type="Pass", Parameters={"x.$": "$..a"}), r"A.Parameters: path '\$\.\.a'"),
        (one(Type="Pass", InputPath="a"), "must start with"),
        (
            one(Type="Map", ItemProcessor={**task(), "ProcessorConfig": {"Mode": "DISTRIBUTED"}}),
            "only INLINE",
        ),
        (one(Type="Map", ItemProcessor=task(Label="x")), "A/A: Label"),
        ({**one(Type="Pass"), "QueryLanguage": "JSONata"}, "only the query language JSONPath"),
    ],
)
def test_what_is_not_interpreted_is_refused_with_its_place(definition: dict[str, Any], says: str) -> None:
    with pytest.raises(AslProblem, match=says):
        Functions().run(definition)


def test_the_state_machine_of_the_deployment_reaches_every_shard_and_the_dead_letters() -> None:
    source = DEFINITION.read_text("utf-8").replace("${ReconcilerArn}", FUNCTION).replace("${LastShard}", "3")
    functions = Functions(TaskFailed("ValueError", "shard 0 fails"))
    functions.run(json.loads(source))
    assert functions.calls == [
        {"shard": 0},
        {"shard": 1},
        {"shard": 2},
        {"shard": 3},
        {"task": "dead-letters"},
    ]
    assert set(functions_of(json.loads(source))) == {FUNCTION}
