"""The interpreter of state machines: what each state does, and what it refuses to guess.

Functions are scripted and no test sleeps.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from baton.local.triggers import AslProblem, Interpreter, TaskFailed
from tests.kit.sentences import Says

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
        return asyncio.run(machine.run({} if data is None else data))


def one(**state: Any) -> dict[str, Any]:
    """A machine of one state."""
    return {"StartAt": "A", "States": {"A": {"End": True, **state}}}


def task(**more: Any) -> dict[str, Any]:
    return one(Type="Task", Resource=FUNCTION, **more)


@pytest.mark.parametrize(
    ("definition", "data", "output"),
    [
        (one(Type="Pass"), {"a": 1}, {"a": 1}),
        (one(Type="Pass", Parameters={"n.$": "$.a.b", "k": 1}), {"a": {"b": 2}}, {"n": 2, "k": 1}),
        (one(Type="Pass", Parameters={"all.$": "$"}), [1], {"all": [1]}),
        (one(Type="Pass", Parameters={"r.$": "States.ArrayRange(0, 3, 2)"}), {}, {"r": [0, 2]}),
        (task(), {"a": 1}, {"a": 1}),
        (task(Parameters={"b.$": "$.a"}), {"a": 1}, {"b": 1}),
        (
            one(
                Type="Map",
                ItemsPath="$.items",
                ItemSelector={"v.$": "$$.Map.Item.Value", "all.$": "$.items"},
                ItemProcessor=task(),
            ),
            {"items": ["a", "b"]},
            [{"v": "a", "all": ["a", "b"]}, {"v": "b", "all": ["a", "b"]}],
        ),
        (one(Type="Map", ItemProcessor=task()), [1, 2], [1, 2]),
        (one(Type="Map", ItemsPath="$.a", ItemProcessor=task(), ResultPath=None), {"a": [1]}, {"a": [1]}),
    ],
)
def test_a_state_turns_its_input_into_its_output(definition: dict[str, Any], data: Any, output: Any) -> None:
    assert Functions().run(definition, data) == output


def test_a_retry_waits_longer_each_time_and_counts_its_attempts() -> None:
    retry = [{"ErrorEquals": ["Busy"], "IntervalSeconds": 2, "MaxAttempts": 2, "BackoffRate": 3}]
    functions = Functions(TaskFailed("Busy", ""), TaskFailed("Busy", ""), "done")
    assert functions.run(task(Retry=retry)) == "done"
    assert functions.pauses == [2, 6]


def test_a_retry_with_full_jitter_is_drawn() -> None:
    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 4, "JitterStrategy": "FULL"}]
    functions = Functions(TaskFailed("Busy", ""), "done")
    functions.run(task(Retry=retry))
    assert functions.pauses == [2]


def test_an_error_that_no_retry_names_is_not_repeated() -> None:
    functions = Functions(TaskFailed("ValueError", "no"))
    with pytest.raises(TaskFailed, match="ValueError: no"):
        functions.run(task(Retry=[{"ErrorEquals": ["Busy"]}]))
    assert functions.pauses == []


def test_a_catch_goes_on_elsewhere_with_the_error_as_the_data() -> None:
    definition = task(Catch=[{"ErrorEquals": ["States.TaskFailed"], "Next": "B"}])
    definition["States"]["B"] = {"Type": "Pass", "End": True}
    output = Functions(TaskFailed("ValueError", "no")).run(definition, {"a": 1})
    assert output == {"Error": "ValueError", "Cause": "no"}


def test_one_failing_item_of_a_map_fails_the_map() -> None:
    with pytest.raises(TaskFailed, match="Bad"):
        Functions(TaskFailed("Bad", "")).run(one(Type="Map", ItemProcessor=task()), [1, 2])


def test_a_path_that_finds_nothing_fails_the_execution_by_name(says: Says) -> None:
    with says.raised(TaskFailed):
        Functions().run(one(Type="Pass", Parameters={"x.$": "$.b"}), {"a": 1})
    with says.raised(TaskFailed):
        Functions().run(one(Type="Map", ItemProcessor=task()), {"a": 1})


def test_a_task_over_its_time_limit_fails_with_states_timeout() -> None:
    async def never(_reference: str, _event: Any) -> Any:
        await asyncio.Event().wait()

    machine = Interpreter(task(TimeoutSeconds=0.01), never)
    with pytest.raises(TaskFailed, match=r"States\.Timeout"):
        asyncio.run(machine.run({}))


@pytest.mark.parametrize(
    "definition",
    [
        {"States": {}},
        {"StartAt": "B", "States": {"A": {"Type": "Pass", "End": True}}},
        one(Type="Wait", Seconds=5),
        one(Type="Parallel", Branches=[]),
        one(Type="Pass", ResultPath="$.a"),
        task(HeartbeatSeconds=5),
        task(Retry=[{"ErrorEquals": [], "Interval": 5}]),
        task(Catch=[{"ErrorEquals": [], "Next": "B"}]),
        one(Type="Task", Resource="arn:aws:states:::sqs:sendMessage"),
        one(Type="Pass", Parameters={"x.$": "States.Hash('a', 'b')"}),
        one(Type="Pass", Parameters={"x.$": "$..a"}),
        one(Type="Pass", Parameters={"x": {"y.$": "$.a"}}),
        task(Parameters={"x.$": "$$.Map.Item.Value"}),
        one(Type="Map", ItemsPath="a", ItemProcessor=task()),
        one(Type="Map", ItemProcessor=task(), ResultPath="$.a"),
        one(Type="Map", ItemProcessor={**task(), "ProcessorConfig": {"Mode": "DISTRIBUTED"}}),
        one(Type="Map", ItemProcessor=task(Label="x")),
        {**one(Type="Pass"), "QueryLanguage": "JSONata"},
    ],
)
def test_what_is_not_interpreted_is_refused_with_its_place(definition: dict[str, Any], says: Says) -> None:
    with says.raised(AslProblem):
        Functions().run(definition)


def test_the_state_machine_of_the_deployment_reaches_every_shard_and_the_dead_letters() -> None:
    source = DEFINITION.read_text("utf-8").replace("${ReconcilerArn}", FUNCTION).replace("${LastShard}", "3")
    functions = Functions(TaskFailed("ValueError", "shard 0 fails"))
    assert set(Interpreter(json.loads(source), functions.invoke).functions) == {FUNCTION}
    functions.run(json.loads(source))
    assert functions.calls == [
        {"shard": 0},
        {"shard": 1},
        {"shard": 2},
        {"shard": 3},
        {"task": "dead-letters"},
    ]
