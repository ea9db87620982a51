"""Conversations through the engine in virtual time: messages, what is shown of them, and their ends."""

from __future__ import annotations

import asyncio
import json

import pytest

from baton import Agent, WorkflowContext, workflow
from baton.core.log.events import StepFailed
from baton.errors import NotFound
from baton.ports.models import ModelAnswer
from baton.tools.functions.define import workflow_documents
from tests.kit.corpus import start
from tests.kit.scripted import Scripted, asks_for, in_turn, says
from tests.kit.sentences import Says
from tests.kit.world import World
from tests.runtime.test_agents import Desk, document

DAY_S = 86_400
TALK = ", conversation: {idle: 3d}"


async def talking(
    *answers: ModelAnswer, more: str = TALK, node: str = "", takes_s: float = 1
) -> tuple[World, Scripted, str]:
    """A conversation whose model says these answers, after the first."""
    world = World.start()
    Desk(world)
    world.models = model = Scripted(in_turn(*answers), takes_s=takes_s)
    saga = await start(world, document(more, node), {"a": 1}, "w")
    await asyncio.sleep(10)
    return world, model, saga


async def said(world: World, saga: str, after: int = 0, limit: int = 100) -> list[tuple[str, str, bool]]:
    page = await world.queries().messages(saga, after, limit)
    return [(one["role"], one["text"], one["heard"]) for one in page["messages"]]


async def test_it_waits_for_days_without_an_invocation_and_goes_on_with_one_transcript() -> None:
    world, model, saga = await talking(
        says("Hello."), asks_for(("sum_add", {"a": 1, "b": 2})), says("Three."), says("Bye.")
    )
    shown = await world.queries().show(saga)
    assert shown["status"] == "waiting"
    (active,) = shown["active"]
    assert (active["signal"], active["turn"], active["state"]) == ("message", 1, "waiting")
    explained = await world.queries().explain(saga, active["node"])
    assert "waits for a message" in str(explained)
    head = world.log.heads()[0]
    assert not head.owner
    await asyncio.sleep(2 * DAY_S)
    sent = await world.service().say(saga, "And 1 and 2?", "k1")
    assert sent["outcome"] == "waiting"
    assert (await said(world, saga))[-1] == ("user", "And 1 and 2?", False)
    await asyncio.sleep(2 * DAY_S)
    await world.service().say(saga, "And 1 and 2?", "k1")  # the same key: nothing new
    await world.service().say(saga, "Thanks.", "k2")
    await asyncio.sleep(30)
    assert await said(world, saga) == [
        ("assistant", "Hello.", True),
        ("user", "And 1 and 2?", True),
        ("assistant", "Three.", True),
        ("user", "Thanks.", True),
        ("assistant", "Bye.", True),
    ]
    told = [(one["role"], one.get("content")) for one in model.requests[-1].messages]
    assert told == [
        ("system", "Be brief."),
        ("user", "Add 1 and 2."),
        ("assistant", "Hello."),
        ("user", "And 1 and 2?"),
        ("assistant", None),
        ("tool", "3"),
        ("assistant", "Three."),
        ("user", "Thanks."),
    ]
    await world.settle(4 * DAY_S)
    shown = await world.queries().show(saga)
    assert (shown["status"], shown["result"]) == ("completed", "Bye.")


async def test_messages_are_read_page_by_page_and_from_the_last_version_on() -> None:
    world, _, saga = await talking(says("Hello."), says("Two."))
    await world.service().say(saga, "And?", "k1")
    await asyncio.sleep(5)
    first = await world.queries().messages(saga, 0, 1)
    assert [one["text"] for one in first["messages"]] == ["Hello."]
    rest = await world.queries().messages(saga, first["next"], 100)
    assert [(one["text"], one["by"], one["node"]) for one in rest["messages"]] == [
        ("And?", "ann", None),
        ("Two.", None, "find"),
    ]
    assert rest["next"] is None
    assert await said(world, saga, rest["version"]) == []


async def test_the_agent_ends_it_with_the_output_that_its_schema_asks_for() -> None:
    ending = ("end_conversation", {"output": {"n": 3}})
    world, model, saga = await talking(
        asks_for(("sum_add", {"a": 1, "b": 2}), ending),
        asks_for(("end_conversation", {"output": 3})),
        asks_for(ending),
        node=", output_schema: {type: object, required: [n]}",
    )
    await world.settle()
    shown = await world.queries().show(saga)
    assert (shown["status"], shown["result"]) == ("completed", {"n": 3})
    assert [offer.name for offer in model.requests[0].tools][-1] == "end_conversation"
    assert model.requests[0].schema is None
    results = [one["content"] for one in model.requests[-1].messages if one["role"] == "tool"]
    assert "call it alone" in results[1]
    assert "input_invalid" in results[2]
    assert (await world.queries().messages(saga, 0, 10))["messages"][-1]["ends"]


async def test_a_person_ends_it_and_without_its_output_it_fails() -> None:
    world, _, saga = await talking(
        says("Hello."), node=", output_schema: {type: object, required: [n]}, on_failure: fail"
    )
    await world.service().say(saga, "", "k1", ends=True)
    await world.settle()
    assert [event.failure.code for event in world.events(saga) if isinstance(event, StepFailed)] == [
        "agent_exhausted"
    ]
    assert (await world.queries().messages(saga, 0, 10))["messages"][-1]["ends"]


async def test_its_limits_count_over_the_whole_conversation() -> None:
    world, model, saga = await talking(says("Hello."), says("Two."), more=f"{TALK}, turns: 2")
    await world.service().say(saga, "And?", "k1")
    await world.settle()
    shown = await world.queries().show(saga)
    assert (shown["status"], shown["result"], len(model.requests)) == ("completed", "Two.", 2)


async def test_a_message_that_does_not_fit_into_its_tokens_fails_it() -> None:
    world, model, saga = await talking(
        says("Hello."), more=f"{TALK}, tokens: 1300", node=", on_failure: fail"
    )
    await world.service().say(saga, "x" * 2_000, "k1")
    await asyncio.sleep(5)
    shown = await world.queries().show(saga)
    assert (shown["status"], len(model.requests)) == ("failed", 1)
    assert [event.failure.code for event in world.events(saga) if isinstance(event, StepFailed)] == [
        "agent_exhausted"
    ]


async def test_a_message_to_a_saga_that_hears_none_is_refused() -> None:
    world = World.start()
    Desk(world)
    world.models = Scripted(in_turn(says("x")))
    saga = await start(world, document(), {"a": 1}, "w")
    with pytest.raises(NotFound):
        await world.service().say(saga, "Hello?", "k1")


TWO = """
name: w
nodes:
  one: {agent: {model: m, prompt: Hi., conversation: true, signal: first}}
  two: {agent: {model: m, prompt: Ho., conversation: true, signal: second}}
"""


async def test_of_several_agents_the_one_that_is_named_gets_it(says: Says) -> None:
    world = World.start()
    Desk(world)
    world.models = Scripted(lambda request, _: ModelAnswer(text=request.messages[-1]["content"]))
    saga = await start(world, TWO, {}, "w")
    await asyncio.sleep(10)
    with says.raised(NotFound):
        await world.service().say(saga, "Hello?", "k1")
    with says.raised(NotFound):
        await world.service().say(saga, "Hello?", "k1", to="three")
    await world.service().say(saga, "You.", "k1", to="two")
    await asyncio.sleep(10)
    page = await world.queries().messages(saga, 0, 100)
    assert [one["node"] for one in page["messages"] if one["text"] == "You."] == [None, "two"]


@pytest.mark.parametrize("limit", [1, 3, 100])
async def test_a_message_that_no_turn_has_taken_is_unheard_after_the_end(limit: int) -> None:
    ending = asks_for(("end_conversation", {"output": "Bye."}))
    world, _, saga = await talking(says("Hello."), says("One."), ending, takes_s=5)
    for text in ("one", "two", "three", "late"):
        await world.service().say(saga, text, text)
        await asyncio.sleep(2)
    await world.settle()
    found, after = list[dict[str, object]](), 0
    for _ in range(20):
        page = await world.queries().messages(saga, after, limit)
        found += page["messages"]
        if page["next"] is None:
            break
        after = page["next"]
    assert [one["id"] for one in found if one["role"] == "user"] == ["one", "two", "three", "late"]
    assert [one["id"] for one in found if not one["heard"]] == ["late"]
    assert (found[-1]["text"], found[-1]["ends"]) == ("Bye.", True)


THEN = """
name: w
nodes:
  one: {agent: {model: m, prompt: Hi., conversation: true, turns: 2}}
  two: {agent: {model: m, prompt: Ho., conversation: true}, after: one}
"""


async def test_an_end_that_comes_during_the_last_turn_ends_no_later_conversation() -> None:
    world = World.start()
    Desk(world)
    world.models = Scripted(lambda request, _: says(f"Heard: {request.messages[-1]['content']}"), takes_s=5)
    saga = await start(world, THEN, {}, "w")
    await asyncio.sleep(10)
    await world.service().say(saga, "A", "k1")
    await asyncio.sleep(2)
    await world.service().say(saga, "", "k2", ends=True)
    await asyncio.sleep(60)
    assert await said(world, saga) == [
        ("assistant", "Heard: Hi.", True),
        ("user", "A", True),
        ("user", "", True),
        ("assistant", "Heard: A", True),
        ("assistant", "Heard: Ho.", True),
    ]
    (active,) = (await world.queries().show(saga))["active"]
    assert (active["node"], active["signal"]) == ("two", "message")
    await world.service().say(saga, "", "k3", ends=True)
    await asyncio.sleep(10)
    assert (await world.queries().show(saga))["status"] == "completed"


EACH = """
name: w
nodes:
  talk:
    map: {over: "${input.xs}"}
    agent: {model: m, prompt: "Hi ${item}.", conversation: true}
output: "${ctx.talk.output}"
"""


async def test_each_item_of_a_map_talks_in_its_own_saga(says: Says) -> None:
    world = World.start()
    Desk(world)
    world.models = Scripted(lambda request, _: ModelAnswer(text=f"{len(request.messages)}"))
    saga = await start(world, EACH, {"xs": [1, 2]}, "w")
    await asyncio.sleep(10)
    with says.raised(NotFound):
        await world.service().say(saga, "Hello?", "k1")
    one, two = [each["saga"] for each in (await world.queries().show(saga))["active"] if "saga" in each]
    await world.service().say(one, "More.", "k1")
    await world.service().say(two, "", "k1", ends=True)
    await asyncio.sleep(10)
    await world.service().say(one, "", "k2", ends=True)
    await world.settle()
    assert (await world.queries().show(saga))["result"] == ["3", "1"]


async def test_what_a_fork_has_cut_off_is_told_to_no_viewer() -> None:
    world, _, saga = await talking(says("Hello."), says("Old."), says("New."))
    await world.service().say(saga, "A", "k1")
    cut = (await world.queries().messages(saga, 0, 10))["messages"][-1]["version"]
    await asyncio.sleep(10)
    await world.service().fork(saga, cut, "another answer", "f1")
    await asyncio.sleep(10)
    assert await said(world, saga) == [
        ("assistant", "Hello.", True),
        ("user", "A", True),
        ("assistant", "New.", True),
    ]
    live = await world.queries().live(saga, 0)
    assert [one["text"] for one in live["texts"]] == ["Hello."]
    live = await world.queries().live(saga, live["version"])
    assert [one["text"] for one in live["texts"]] == ["New."]


async def test_a_conversation_of_a_function_goes_on_in_the_saga_of_its_call() -> None:
    world = World.start()
    talker = Agent("talker", model="m", instructions="Be brief.", conversation={"idle": "1h"})

    @workflow("desk", registry=world.registry)
    async def desk(n: int, context: WorkflowContext) -> str:
        return await context.agent(talker, "Hi.")

    world.tools = world.registry.specs()
    world.models = Scripted(lambda request, _: says(f"Heard: {request.messages[-1]['content']}"))
    for one in workflow_documents(world.registry):
        await world.service().register(json.dumps(one), json_only=True)
    view, _ = await world.service().start("desk", {"n": 1}, "k")
    await asyncio.sleep(10)
    *_, child = (await world.queries().show(view["id"]))["active"]
    await world.service().say(child["saga"], "Bye.", "k1")
    await world.settle(2 * 3_600)
    assert (await world.queries().show(view["id"]))["result"] == "Heard: Bye."
