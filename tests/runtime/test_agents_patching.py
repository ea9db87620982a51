"""`patch_workflow`: an agent changes what comes after it, in its own saga and inside its list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from baton import tool
from baton.core.log.events import GraphChanged, StepSucceeded
from baton.core.log.questions import Answer
from baton.ports.models import ModelAnswer
from tests.kit.corpus import start
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, Plan
from tests.kit.scripted import Scripted, asks_for, by_turn, says
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

REPORT = """
name: report
input: {{type: object, required: [topic]}}
nodes:
  plan:
    agent:
      model: m
      prompt: "Plan a report on ${{input.topic}}."
      tools: [check]
      patch: [/nodes/report, "/nodes/check_*"]{more}
  report: {{after: plan, tool: write, with: {{text: "${{ctx.plan.output}}"}}}}
  send: {{after: report, tool: mail, with: {{text: "${{ctx.report.output}}"}}}}
output: "${{ctx.send.output}}"
"""
ADD = [
    {
        "op": "add",
        "path": "/nodes/check_1",
        "value": {"after": "plan", "tool": "check", "with": {"text": "7"}},
    },
    {"op": "replace", "path": "/nodes/report/after", "value": "check_1"},
    {"op": "replace", "path": "/nodes/report/with/text", "value": "${ctx.check_1.output}"},
]


class Desk:
    """The tools of the report, and what they were called with."""

    def __init__(self, world: World) -> None:
        self.done: list[tuple[str, str]] = []
        for name in ("check", "write", "mail", "secret"):
            self._declare(world, name)
        world.tools = world.registry.specs()

    def _declare(self, world: World, name: str) -> None:
        @tool(name, registry=world.registry)
        async def work(text: str) -> str:
            self.done.append((name, text))
            return f"{name} {text}"


def patch(*operations: Any, why: str = "It needs a check.") -> ModelAnswer:
    return asks_for(("patch_workflow", {"operations": list(operations), "description": why}))


async def ran(
    answers: Sequence[ModelAnswer], more: str = "", plan: Plan | None = None
) -> tuple[World, Desk, Scripted, str]:
    world = World.start(plan=plan or Plan())
    desk = Desk(world)
    world.models = model = Scripted(by_turn(*answers))
    saga = await start(world, REPORT.format(more=more), {"topic": "sums"}, "report")
    await world.settle()
    return world, desk, model, saga


def told(model: Scripted, request: int = -1) -> Any:
    """The result of the last call that a request has."""
    results = [one["content"] for one in model.requests[request].messages if one["role"] == "tool"]
    return json.loads(results[-1])


def changes(world: World, saga: str) -> list[GraphChanged]:
    return [event for event in world.events(saga) if isinstance(event, GraphChanged)]


def steps(world: World, saga: str) -> list[str]:
    return [event.node for event in world.events(saga) if isinstance(event, StepSucceeded) and not event.item]


async def test_an_agent_patches_what_comes_after_it() -> None:
    world, desk, model, saga = await ran([patch(*ADD), says("planned")])
    assert (await world.queries().show(saga))["status"] == "completed"
    assert steps(world, saga) == ["check_1", "report", "send"]
    assert desk.done == [("check", "7"), ("write", "check 7"), ("mail", "write check 7")]
    (change,) = changes(world, saga)
    assert (change.reason, "plan" in change.by) == ("It needs a check.", True)
    answer = told(model)
    assert answer["applied"] is True
    assert answer["document"]["/nodes/report"]["after"] == "check_1"


async def test_an_agent_is_told_what_of_its_patch_has_no_effect() -> None:
    too_early = {"tool": "check", "with": {"text": "7"}}
    operation = {"op": "add", "path": "/nodes/check_1", "value": too_early}
    _, desk, model, _ = await ran([patch(operation), says("planned")])
    assert told(model)["applied"] is True
    assert ["check_1" in note for note in told(model)["notes"]] == [True]
    assert ("check", "7") not in desk.done


async def test_a_call_without_operations_shows_what_may_be_patched_and_changes_nothing() -> None:
    world, desk, model, saga = await ran([patch(), says("planned")])
    assert changes(world, saga) == []
    assert told(model) == {
        "applied": False,
        "document": {
            "/nodes/report": {"after": "plan", "tool": "write", "with": {"text": "${ctx.plan.output}"}}
        },
    }
    assert desk.done[-1] == ("mail", "write planned")


@pytest.mark.parametrize(
    ("operations", "code", "names"),
    [
        ([{"op": "replace", "path": "/nodes/send/tool", "value": "secret"}], "call_not_allowed", ["/nodes/send/tool"]),
        ([{"op": "remove", "path": "/nodes/plan"}, {"op": "add", "path": "/limits", "value": {}}], "call_not_allowed", ["/nodes/plan", "/limits"]),
        ([{"op": "replace", "path": "/nodes/report/tool", "value": "secret"}], "call_not_allowed", ["secret"]),
        ([{"op": "replace", "path": "/nodes/report/after", "value": "nowhere"}, {"op": "add", "path": "/nodes/report/wit", "value": 1}], "input_invalid", ["nowhere", "wit"]),
        ([{"op": "remove", "path": "/nodes/check_9"}], "input_invalid", ["check_9"]),
        ([{"op": "add", "path": "/nodes/check_1", "value": {"tool": "check", "with": {"text": "7"}}}, {"op": "add", "path": "/nodes/report/after", "value": ["plan", "check_1"]}], "input_invalid", ["check_1"]),
    ],
)  # fmt: skip
async def test_a_refused_patch_changes_nothing_and_the_model_is_told_all_its_problems(
    operations: list[Any], code: str, names: list[str]
) -> None:
    world, desk, model, saga = await ran([patch(*operations), patch(*ADD), says("planned")])
    error = told(model, 1)["error"]
    assert error["code"] == code
    assert [name for name in names if name not in error["message"]] == []
    assert len(changes(world, saga)) == 1, "the second one"
    assert desk.done[0] == ("check", "7")
    assert "secret" not in [name for name, _ in desk.done]


async def test_a_person_approves_a_patch_first_where_the_document_says_so() -> None:
    more = "\n      requires_approval: {patch_workflow: {to: {group: editors}}}"
    world, desk, model, saga = await ran([patch(*ADD), says("planned")], more)
    (question,) = (await world.queries().show(saga))["questions"]
    assert (question["for"][0], changes(world, saga)) == ({"kind": "group", "name": "editors"}, [])
    assert "check_1" in json.dumps(question)
    await world.service().answer(saga, Answer(ask=question["id"], action="approve"), "k1")
    await world.settle()
    assert (len(changes(world, saga)), desk.done[0]) == (1, ("check", "7"))

    world, desk, model, saga = await ran([patch(*ADD), says("planned")], more)
    (question,) = (await world.queries().show(saga))["questions"]
    await world.service().answer(saga, Answer(ask=question["id"], action="reject"), "k1")
    await world.settle()
    assert (changes(world, saga), told(model)["error"]["code"]) == ([], "rejected")
    assert desk.done == [("write", "planned"), ("mail", "write planned")]


def test_a_worker_that_dies_during_the_call_applies_it_once() -> None:
    plan = Plan()
    run_virtual(ran([patch(*ADD), says("planned")], plan=plan))
    at = (
        plan.writes.index("put", plan.writes.index("take")) + 3
    )  # of the entry, behind the graph and the document
    for number, fate in ((at, CRASH_BEFORE), (at, CRASH_AFTER), (at + 1, CRASH_AFTER)):

        async def crashes(plan: Plan) -> None:
            world, desk, model, saga = await ran([patch(*ADD), says("planned")], plan=plan)
            assert (len(changes(world, saga)), told(model)["applied"]) == (1, True), plan.writes
            assert desk.done == [("check", "7"), ("write", "check 7"), ("mail", "write check 7")]

        run_virtual(crashes(Plan(at={number: fate})))
