"""The reconciler's clock: a schedule, an Express state machine, every shard of the due index."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from baton.runtime.reconcile import RUNS
from tests.deploy.stack import ROOT, stack

FILE = ROOT / "statemachine/reconcile.asl.json"


def machine(**parameters: str) -> dict[str, Any]:
    """The definition with its substitutions made, as Step Functions gets it."""
    substitutions = stack(**parameters).properties("ReconcileStateMachine")["DefinitionSubstitutions"]
    text = re.sub(r"\$\{(\w+)\}", lambda match: str(substitutions[match[1]]), FILE.read_text("utf-8"))
    definition: dict[str, Any] = json.loads(text)
    return definition


def test_the_definition_is_json_before_and_after_its_substitutions() -> None:
    wanted = set(re.findall(r"\$\{(\w+)\}", FILE.read_text("utf-8")))
    assert wanted == set(stack().properties("ReconcileStateMachine")["DefinitionSubstitutions"])
    json.loads(FILE.read_text("utf-8"))
    machine()


@pytest.mark.parametrize("shards", ["1", "2", "4", "8", "16", "32", "64", "128"])
def test_one_run_covers_every_shard_that_sagas_are_filed_under(shards: str) -> None:
    states = machine(Shards=shards)["States"]
    start = states[machine(Shards=shards)["StartAt"]]
    found = re.fullmatch(r"States\.ArrayRange\((\d+), (\d+), 1\)", start["Parameters"]["shards.$"])
    assert found
    first = range(int(found[1]), int(found[2]) + 1)
    assert sorted(shard for one in first for shard in range(one, int(shards), RUNS)) == [*range(int(shards))]
    assert stack(Shards=shards).variables("worker")["BATON_SHARDS"] == shards
    each = states[start["Next"]]
    assert (each["Type"], each["ItemsPath"]) == ("Map", "$.shards")
    assert each["MaxConcurrency"] == 0, "all of them side by side"
    assert len(first) <= 40, "which an inline Map has at most"
    assert each["ItemSelector"] == {"shard.$": "$$.Map.Item.Value"}


def test_a_shard_that_fails_stops_neither_its_neighbours_nor_the_dead_letters() -> None:
    states = machine()["States"]
    task = states["EachShard"]["ItemProcessor"]["States"]["WakeWhatIsDue"]
    (caught,) = task["Catch"]
    assert caught["ErrorEquals"] == ["States.ALL"]
    assert states["EachShard"]["Next"] == "DeadLetters"
    assert states["DeadLetters"]["Parameters"] == {"task": "dead-letters"}
    assert states["DeadLetters"]["End"] is True


def test_every_task_is_the_reconciler_with_a_timeout() -> None:
    definition = machine()
    nested = definition["States"]["EachShard"]["ItemProcessor"]["States"]
    tasks = [s for s in [*definition["States"].values(), *nested.values()] if s["Type"] == "Task"]
    timeout = int(stack().properties("ReconcilerFunction")["Timeout"])
    for task in tasks:
        assert task["Resource"] == stack().arn("ReconcilerFunction")
        assert timeout < task["TimeoutSeconds"]
    assert definition["TimeoutSeconds"] < 300  # five minutes: the limit of an Express execution


def test_every_state_is_reached_and_every_way_ends() -> None:
    def check(states: dict[str, Any], start: str) -> None:
        reached = {start} | {s["Next"] for s in states.values() if "Next" in s}
        reached |= {catch["Next"] for s in states.values() for catch in s.get("Catch", [])}
        assert reached == set(states)
        assert all(("Next" in s) != s.get("End", False) for s in states.values())

    definition = machine()
    check(definition["States"], definition["StartAt"])
    inner = definition["States"]["EachShard"]["ItemProcessor"]
    check(inner["States"], inner["StartAt"])


def test_the_state_machine_is_express_and_logs_its_failures() -> None:
    properties = stack().properties("ReconcileStateMachine")
    assert properties["StateMachineType"] == "EXPRESS"
    assert properties["LoggingConfiguration"]["Level"] == "ERROR"
    assert properties["RoleArn"] == stack().arn("ReconcileStateMachineRole")


@pytest.mark.parametrize("minutes", ["1", "5"])
def test_the_schedule_starts_it_every_so_many_minutes(minutes: str) -> None:
    (schedule,) = stack(ReconcileMinutes=minutes).of_type("AWS::Scheduler::Schedule").values()
    assert schedule["ScheduleExpression"] == f"rate({minutes} minutes)"
    assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert schedule["Target"]["Arn"] == stack().arn("ReconcileStateMachine")
    assert schedule["Target"]["RoleArn"] == stack().arn("ReconcileScheduleRole")
