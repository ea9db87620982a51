"""An agent's calls that are no tools: graphs, workflows, functions, questions to people, and work that a tool hands over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from baton import Context, StepFailure, tool
from baton.core.log.events import (
    AgentClosed,
    AttemptFailed,
    CallsBegan,
    ChildOpened,
    ChildReported,
    QuestionOpened,
    StepFailed,
)
from baton.core.log.folding.received import CallbackReport
from baton.core.log.questions import Answer
from baton.errors import Forbidden
from baton.ports.models import ModelAnswer, ModelRequest
from tests.kit.corpus import patiently, start
from tests.kit.scripted import Scripted, asks_for, says
from tests.kit.world import World

DAY_S = 86_400
LEAD = """
name: lead
nodes:
  plan:
    agent:
      model: m
      prompt: Lead.
      tools:
        - note
        - {graph: scout, description: Finds facts.}
        - {workflow: fulfil, timeout: 10d}
        - {ask: manager, to: {group: bosses}, expires: 9d}
        - {tool: ship, callback: {timeout: 20d}}
output: "${ctx.plan.output}"
graphs:
  scout:
    input: {type: object, required: [topic], properties: {topic: {type: string}}, additionalProperties: false}
    limits: {tokens: 50000}
    nodes:
      find: {agent: {model: m, prompt: "Scout ${input.topic}.", tools: [note], turns: 3}}
    output: "${ctx.find.output}"
"""
FULFIL = """
name: fulfil
input: {type: object, required: [order], properties: {order: {type: integer}}, additionalProperties: false}
nodes:
  pause: {wait: {for: 2d}}
  take: {tool: take, with: {order: "${input.order}"}, after: pause}
output: "${ctx.take.output}"
"""


class Desk:
    """Tools, and a model that says what the script of each agent says, by how often it has spoken."""

    def __init__(self, world: World, **scripts: Sequence[ModelAnswer]) -> None:
        self.done: list[Any] = []
        self.tokens: list[str] = []
        self.world = world
        self.scripts: Mapping[str, Sequence[ModelAnswer]] = scripts
        self.requests: dict[str, list[ModelRequest]] = {name: [] for name in scripts}

        @tool("note", registry=world.registry, effect="pure")
        async def note(text: str) -> str:
            """Note a text."""
            self.done.append(text)
            return text

        @tool("take", registry=world.registry, undo="give")
        async def take(order: int) -> int:
            if order < 0:
                raise StepFailure("out_of_stock", "none left", kind="permanent")
            self.done.append(("take", order))
            return order

        @tool("give", registry=world.registry)
        async def give(order: int) -> None:
            self.done.append(("give", order))

        @tool("ship", registry=world.registry)
        async def ship(what: str, context: Context) -> None:
            self.tokens.append(context.callback_token)

        world.tools = world.registry.specs()
        world.models = self.model = Scripted(self._answer)

    def _answer(self, request: ModelRequest, _: int) -> ModelAnswer:
        prompt = str(next(one["content"] for one in request.messages if one["role"] == "user"))
        (name,) = [one for one in self.scripts if prompt.lower().startswith(one)]
        self.requests[name].append(request)
        spoken: int = sum(one["role"] == "assistant" for one in request.messages)
        script: Sequence[ModelAnswer] = self.scripts[name]
        return script[min(spoken, len(script) - 1)]

    def results(self, name: str = "lead") -> list[Any]:
        """The results of calls that the last request has, in their order."""
        messages = self.requests[name][-1].messages
        return [one["content"] for one in messages if one["role"] == "tool"]

    async def start(self, text: str = LEAD) -> str:
        await patiently(self.world, lambda service: service.register(FULFIL, json_only=False))
        return await start(self.world, text, {}, "lead")

    async def shown(self, saga: str) -> dict[str, Any]:
        return await self.world.queries().show(saga)

    async def answer(self, saga: str, **said: Any) -> None:
        (question,) = (await self.shown(saga))["questions"]
        await self.world.service().answer(saga, Answer(ask=question["id"], **said), "answer-1")


SCOUTED = [asks_for(("note", {"text": "scouting"})), says("A fact.")]
ALL = asks_for(
    ("note", {"text": "a"}),
    ("scout", {"topic": "wine"}),
    ("fulfil", {"order": 7}),
    ("manager", {"title": "May we?", "message": "It is late."}),
    ("ship", {"what": "wine"}),
)


async def test_calls_of_all_kinds_run_side_by_side_for_days_and_the_turn_goes_on_when_all_have_ended() -> (
    None
):
    world = World.start()
    desk = Desk(world, lead=[ALL, says("Done.")], scout=SCOUTED)
    saga = await desk.start()
    await asyncio.sleep(DAY_S)
    assert desk.done == ["a", "scouting"], "they do not wait for the others"
    assert len(desk.requests["lead"]) == 1
    assert {head.owner for head in world.log.heads()} == {""}, "a call that waits holds no invocation"
    shown = await desk.shown(saga)
    assert shown["status"] in ("waiting", "suspended")
    assert shown["questions"][0]["title"] == "May we?"
    await desk.answer(saga, action="submit", data={"answer": "Yes."})
    await asyncio.sleep(2 * DAY_S)
    assert len(desk.requests["lead"]) == 1
    await world.service().callback(desk.tokens[0], CallbackReport(status="success", output={"parcel": 1}))
    await world.settle()
    shown = await desk.shown(saga)
    assert (shown["status"], shown["result"]) == ("completed", "Done.")
    note, scout, fulfil, manager, ship = desk.results()
    assert (note, scout, json.loads(fulfil), json.loads(ship)) == ("a", "A fact.", 7, {"parcel": 1})
    assert json.loads(manager)["data"] == {"answer": "Yes."}
    assert ("take", 7) in desk.done
    inner = desk.requests["scout"][0]
    assert [one["content"] for one in inner.messages] == ["Scout wine."], "its transcript is its own"


async def test_the_model_is_told_the_input_of_each() -> None:
    world = World.start()
    desk = Desk(world, lead=[says("Done.")])
    await desk.start()
    await world.settle()
    offers = {one.name: one for one in desk.requests["lead"][0].tools}
    assert [*offers] == ["note", "ship", "fulfil", "manager", "scout"]
    assert offers["scout"].description == "Finds facts."
    assert offers["scout"].parameters["required"] == ["topic"]
    assert offers["fulfil"].parameters["required"] == ["order"]
    assert offers["manager"].parameters["required"] == ["title"]


def told(desk: Desk) -> list[Any]:
    return [json.loads(one) for one in desk.results()]


@pytest.mark.parametrize(
    ("call", "code", "says_of_it"),
    [
        (("scout", {"topic": 7}), "input_invalid", "/topic"),
        (("fulfil", {"order": -1}), "child_failed", "out_of_stock"),
        (("fulfil", {"nr": 1}), "input_invalid", "order"),
        (("manager", {"title": "May we?"}), "question_expired", "no answer came"),
        (("manager", {"title": "May we?", "to": {"group": "guests"}}), "input_invalid", "'to'"),
        (("manager", {"title": "May we?", "options": [{"id": "yes"}]}), "input_invalid", "'options'"),
        (("ship", {"what": "wine"}), "timeout", "no callback"),
        (("lead", {}), "call_not_allowed", "there is no tool"),
        (("take", {"order": 1}), "call_not_allowed", "there is no tool"),
        (("give", {"order": 1}), "call_not_allowed", "there is no tool"),
    ],
)
async def test_a_delegate_that_fails_comes_back_to_the_model(call: Any, code: str, says_of_it: str) -> None:
    world = World.start()
    desk = Desk(world, lead=[asks_for(call), says("Sorry.")], scout=SCOUTED)
    saga = await desk.start(LEAD.replace("timeout: 20d", "timeout: 1d"))
    while (shown := await desk.shown(saga))["status"] != "completed":
        await asyncio.sleep(DAY_S)
    assert shown["result"] == "Sorry."
    (error,) = [one["error"] for one in told(desk)]
    assert (error["code"], says_of_it in error["message"]) == (code, True), error
    assert desk.done == []


async def test_a_child_that_takes_too_long_is_stopped_and_the_model_is_told() -> None:
    world = World.start()
    desk = Desk(world, lead=[asks_for(("fulfil", {"order": 1})), says("Sorry.")])
    saga = await desk.start(LEAD.replace("timeout: 10d", "timeout: 1d"))
    await asyncio.sleep(3 * DAY_S)
    assert (await desk.shown(saga))["result"] == "Sorry."
    assert [one["error"]["code"] for one in told(desk)] == ["timeout"]
    assert desk.done == []


async def test_a_cancelled_saga_takes_its_delegates_along() -> None:
    world = World.start()
    desk = Desk(world, lead=[ALL], scout=SCOUTED)
    saga = await desk.start()
    await asyncio.sleep(DAY_S)
    await world.service().cancel(saga, "no more", 0)
    await world.settle()
    assert {head.status for head in world.log.heads()} == {"cancelled", "completed"}
    assert ("take", 7) not in desk.done


@pytest.mark.parametrize("compensate", ["", ", compensate: none"])
async def test_what_delegates_have_done_is_undone_with_their_agent(compensate: str) -> None:
    world = World.start()
    desk = Desk(world, lead=[asks_for(("fulfil", {"order": 7})), says("Done.")])
    text = LEAD.replace('output: "${ctx.plan.output}"', FAILS, 1).replace("  plan:\n", "  plan:{}\n")
    text = text.replace("  plan:{}\n", "  plan:\n" + (f"    {compensate[2:]}\n" if compensate else ""))
    saga = await desk.start(text)
    await asyncio.sleep(5 * DAY_S)
    assert (await desk.shown(saga))["status"] == ("failed" if compensate else "rolled_back")
    assert desk.done == [("take", 7), *([] if compensate else [("give", 7)])]


FAILS = """\
  broken: {tool: take, with: {order: -1}, after: plan, on_failure: rollback}
output: 1"""


async def test_a_fork_in_the_middle_of_a_turn_starts_the_same_child_and_asks_again() -> None:
    world = World.start()
    desk = Desk(world, lead=[ALL, says("Done.")], scout=SCOUTED)
    saga = await desk.start()
    await asyncio.sleep(DAY_S)
    cut = next(e.version for e in world.entries(saga) if any(isinstance(one, CallsBegan) for one in e.events))
    await world.service().fork(saga, cut, "key-3")
    await asyncio.sleep(DAY_S / 2)
    await desk.answer(saga, action="submit", data={"answer": "Yes."})
    await asyncio.sleep(3 * DAY_S)
    await world.service().callback(desk.tokens[-1], CallbackReport(status="success", output=1))
    await world.settle()
    shown = await desk.shown(saga)
    assert (shown["status"], shown["result"], len(desk.requests["lead"])) == ("completed", "Done.", 2)


async def test_a_question_goes_to_whom_the_document_says_and_no_other_answers_it() -> None:
    world = World.start()
    desk = Desk(world, lead=[asks_for(("manager", {"title": "May we?"})), says("Done.")])
    saga = await desk.start()
    await asyncio.sleep(60)
    (opened,) = [one for one in world.events(saga) if isinstance(one, QuestionOpened)]
    assert (opened.ask.to, opened.item) == ("group:bosses", "t1-0")
    with pytest.raises(Forbidden, match="bosses"):
        await world.service(user="bob").answer(saga, Answer(ask=opened.ask.id, action="submit"), "k")


@pytest.mark.parametrize(("limit", "result"), [("0.008", "failed"), ("1", "completed")])
async def test_a_delegate_spends_inside_the_limit_of_its_caller(limit: str, result: str) -> None:
    world = World.start()
    desk = Desk(world, lead=[asks_for(("scout", {"topic": "wine"})), says("Done.")], scout=SCOUTED)
    text = LEAD.replace("  plan:\n", f"  plan:\n    limits: {{cost_usd: {limit}}}\n")
    text = text.replace("model: m, prompt", "model: m, max_output: 1000, prompt")
    text = text.replace("      model: m\n", "      model: m\n      max_output: 200\n")
    saga = await desk.start(text)
    await world.settle()
    statuses = {head.ref.id: head.status for head in world.log.heads()}
    assert (statuses.pop(saga), [*statuses.values()]) == ("completed", [result])


WORDY = [asks_for(("note", {"text": "scouting"}), written=900), says("A fact.", written=900)]


@pytest.mark.parametrize("where", ["agent", "node", "saga"])
@pytest.mark.parametrize(("most", "result"), [(1_500, ["child_failed"]), (20_000, "A fact.")])
async def test_a_delegate_uses_tokens_inside_the_limits_of_its_caller(
    where: str, most: int, result: Any
) -> None:
    world = World.start()
    desk = Desk(world, lead=[asks_for(("scout", {"topic": "wine"})), says("Done.")], scout=WORDY)
    limit = f"limits: {{tokens: {most}}}"
    placed = {
        "agent": (
            "      prompt: Lead.\n",
            f"      prompt: Lead.\n      max_output: 300\n      tokens: {most}\n",
        ),
        "node": ("  plan:\n", f"  plan:\n    {limit}\n"),
        "saga": ("nodes:\n", f"{limit}\nnodes:\n"),
    }
    text = LEAD.replace("    limits: {tokens: 50000}\n", "").replace(*placed[where], 1)
    text = text.replace("model: m, prompt", "model: m, max_output: 1000, prompt")
    saga = await desk.start(text)
    await world.settle()
    used = [one for one in world.events(saga) if isinstance(one, ChildReported)]
    (tokens,) = [one.used.tokens for one in used if one.used]
    if isinstance(result, str):
        assert desk.results() == [result]
        assert tokens == 2_000
        (closed,) = [one for one in world.events(saga) if isinstance(one, AgentClosed)]
        assert closed.used.tokens == 2 * 110 + tokens
    else:
        assert tokens == 1_000, "its second request did not fit"
        (child,) = [one.failure for one in used]
        assert child is not None
        assert child.code == "limit_tokens"
        assert "caller" in child.message


@pytest.mark.parametrize(("turns", "code"), [(3, "agent_exhausted"), (4, "")])
async def test_turns_of_a_delegate_are_turns_of_its_caller_which_keeps_one_for_its_answer(
    turns: int, code: str
) -> None:
    world = World.start()
    desk = Desk(world, lead=[asks_for(("scout", {"topic": "wine"})), says("Done.")], scout=SCOUTED)
    saga = await desk.start(
        LEAD.replace("      prompt: Lead.\n", f"      prompt: Lead.\n      turns: {turns}\n")
    )
    await world.settle()
    assert (await desk.shown(saga))["result"] == "Done."
    (reported,) = [one for one in world.events(saga) if isinstance(one, ChildReported)]
    assert (reported.failure.code if reported.failure else "") == code
    (closed,) = [one for one in world.events(saga) if isinstance(one, AgentClosed)]
    assert (closed.turns, closed.used.turns) == (2, turns - 2)


async def test_an_agent_whose_delegates_have_taken_its_turns_fails() -> None:
    world = World.start()
    desk = Desk(world, lead=[asks_for(("scout", {"topic": "a"}), ("scout", {"topic": "b"}))], scout=SCOUTED)
    saga = await desk.start(LEAD.replace("      prompt: Lead.\n", "      prompt: Lead.\n      turns: 4\n"))
    await world.settle()
    failure = next(one for one in world.events(saga) if isinstance(one, AttemptFailed | StepFailed)).failure
    assert failure.code == "agent_exhausted"
    assert "delegates" in failure.message


async def test_it_is_told_by_name() -> None:
    world = World.start()
    desk = Desk(world, lead=[ALL], scout=SCOUTED)
    saga = await desk.start()
    await asyncio.sleep(DAY_S)
    story = json.dumps(await world.queries().explain(saga, "plan"))
    for name in ("scout", "fulfil", "manager", "ship"):
        assert f"({name})" in story, name
    (child,) = [
        one for one in world.events(saga) if isinstance(one, ChildOpened) and one.workflow == "fulfil"
    ]
    assert child.child == f"{saga}.0.plan-t1-2"
