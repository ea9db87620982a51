"""Sessions: what a later agent knows of earlier ones, and what no other user's does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import baton.runtime.models.sessions
from baton import StepFailure
from baton.errors import NotFound
from baton.ports.models import ModelRequest
from baton.runtime.models.sessions import AGENTS
from tests.kit.corpus import patiently
from tests.kit.scripted import Scripted, asks_for, says
from tests.kit.tampering import lose
from tests.kit.world import TENANT, World
from tests.runtime.test_agents import Desk

TALK = """
name: talk
nodes:
  talk:
    agent:
      model: m
      instructions: Be brief.
      prompt: "${input.text}"
      tools: [sum.add]
      session: "${input.thread}"
      conversation: {idle: 1h}
output: "${ctx.talk.output}"
"""
TWO = """
name: two
nodes:
  one: {agent: {model: m, prompt: First., session: s}}
  two: {agent: {model: m, prompt: Second., session: s}, after: one}
output: "${ctx.two.output}"
"""


def answers(request: ModelRequest, _: int) -> Any:
    last = request.messages[-1]
    if last["role"] == "user" and last["content"].startswith("Add"):
        return asks_for(("sum_add", {"a": 1, "b": 2}))
    return says(f"Heard: {last['content']}")


class Sessions:
    """A deployment whose model says what it has heard last."""

    def __init__(self) -> None:
        self.world = World.start()
        Desk(self.world)
        self.world.models = self.model = Scripted(answers)

    async def talk(
        self, text: str, key: str, user: str = "ann", thread: str | None = "t", tenant: str = TENANT
    ) -> str:
        """A saga that has answered once."""
        service = self.world.service(user=user, tenant=tenant)
        await service.register(TALK, json_only=False)
        view, _ = await service.start("talk", {"text": text, "thread": thread}, key)
        await asyncio.sleep(10)
        return str(view["id"])

    def told(self) -> list[tuple[str, Any]]:
        """The last request, without instructions."""
        return [(one["role"], one.get("content")) for one in self.model.requests[-1].messages[1:]]


FIRST = [
    ("user", "Add 1 and 2."),
    ("assistant", "Heard: 3"),
    ("user", "Thanks."),
    ("assistant", "Heard: Thanks."),
]


async def first(sessions: Sessions) -> str:
    saga = await sessions.talk("Add 1 and 2.", "k1")
    await sessions.world.service().say(saga, "Thanks.", "m1")
    await asyncio.sleep(10)
    return saga


async def test_a_later_saga_begins_with_what_was_said_before_and_not_with_its_calls() -> None:
    sessions = Sessions()
    await first(sessions)
    saga = await sessions.talk("And now?", "k2")
    assert sessions.told() == [*FIRST, ("user", "And now?")]
    await sessions.world.service().say(saga, "Add more.", "m2")
    await asyncio.sleep(10)
    assert sessions.told()[:7] == [
        *FIRST,
        ("user", "And now?"),
        ("assistant", "Heard: And now?"),
        ("user", "Add more."),
    ]
    await sessions.talk("Last.", "k3")
    said = [content for _, content in sessions.told()]
    assert said == [
        *(text for _, text in FIRST),
        "And now?",
        "Heard: And now?",
        "Add more.",
        "Heard: 3",
        "Last.",
    ]


async def test_a_saga_that_was_cancelled_leaves_what_it_has_said() -> None:
    sessions = Sessions()
    saga = await first(sessions)
    await sessions.world.service().cancel(saga, "enough", 0)
    await asyncio.sleep(10)
    await sessions.talk("And now?", "k2")
    assert sessions.told() == [*FIRST, ("user", "And now?")]


async def test_of_a_saga_that_cannot_be_read_nothing_is_told() -> None:
    sessions = Sessions()
    saga = await first(sessions)
    await sessions.talk("Two.", "k2")
    lose(sessions.world, saga, 2)
    await sessions.talk("Three.", "k3")
    said = [*FIRST, ("user", "Two."), ("assistant", "Heard: Two."), ("user", "Three.")]
    assert sessions.told() == said[len(FIRST) :]


async def test_what_a_fork_has_cut_off_is_told_to_no_later_saga() -> None:
    sessions = Sessions()
    saga = await first(sessions)
    page = await sessions.world.queries().messages(saga, 0, 10)
    await sessions.world.service().fork(saga, page["messages"][0]["version"], "again", "f1")
    await asyncio.sleep(10)
    await sessions.talk("And now?", "k2")
    assert sessions.told() == [*FIRST[:2], ("user", "And now?")]


async def test_a_long_message_and_the_output_of_an_end_are_told() -> None:
    sessions = Sessions()
    sessions.model.script = lambda request, _: (
        asks_for(("end_conversation", {"output": "Done."})) if len(request.messages) > 3 else says("Yes?")
    )
    saga = await sessions.talk("Hello.", "k1")
    await sessions.world.service().say(saga, "x" * 300_000, "m1")
    await asyncio.sleep(10)
    assert (await sessions.world.queries().show(saga))["status"] == "completed"
    await sessions.talk("And now?", "k2")
    said = [str(content) for _, content in sessions.told()]
    assert [one[:9] for one in said] == ["Hello.", "Yes?", "x" * 9, "Done.", "And now?"]


async def test_it_tells_the_newest_messages_of_the_newest_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baton.runtime.models.sessions, "MESSAGES", 3)
    sessions = Sessions()
    saga = await first(sessions)
    await sessions.talk("And now?", "k2")
    assert sessions.told() == [*FIRST[-3:], ("user", "And now?")]
    entities: Any = sessions.world.store.entities
    (session,) = entities.stored
    for others, told in ((AGENTS - 1, FIRST[-3:]), (AGENTS, [])):
        places = [[saga, "talk"], *(["none", str(number)] for number in range(others))]
        entities.put(*session, places, key=f"of {others}")
        await sessions.talk("Last.", f"k{others}")
        assert sessions.told() == [*told, ("user", "Last.")]


async def test_an_agent_that_is_overtaken_enters_behind_the_other() -> None:
    sessions = Sessions()
    await first(sessions)
    entities: Any = sessions.world.store.entities
    (session,) = entities.stored
    real = entities.get

    def overtaken(*where: str) -> Any:
        found = real(*where)
        if found.version == 1:
            entities.put(*where, [*found.data, ["other", "talk"]], key="other", expected=1)
        return found

    entities.get = overtaken
    saga = await sessions.talk("And now?", "k2")
    assert [place for place, _ in real(*session).data][1:] == ["other", saga]


async def test_of_a_saga_that_is_gone_nothing_is_left() -> None:
    sessions = Sessions()
    saga = await first(sessions)
    log: Any = sessions.world.log
    real = log.read_head
    log.read_head = lambda ref: None if ref.id == saga else real(ref)
    await sessions.talk("And now?", "k2")
    assert sessions.told() == [("user", "And now?")]


@pytest.mark.parametrize("other", [{"user": "bob"}, {"thread": "other"}, {"tenant": "globex"}])
async def test_the_session_of_another_user_tenant_or_name_is_another(other: dict[str, str]) -> None:
    sessions = Sessions()
    saga = await first(sessions)
    theirs = await sessions.talk("And now?", "k2", **other)
    assert sessions.told() == [("user", "And now?")]
    entities: Any = sessions.world.store.entities
    assert {tenant for tenant, *_ in entities.stored} == {TENANT, other.get("tenant", TENANT)}
    assert len(entities.stored) == 2
    await sessions.talk("Last.", "k3")
    assert sessions.told() == [*FIRST, ("user", "Last.")]
    if tenant := other.get("tenant"):
        world = sessions.world
        for asked, there in ((TENANT, theirs), (tenant, saga)):
            with pytest.raises(NotFound):
                await world.queries(tenant=asked).messages(there, 0, 10)
            with pytest.raises(NotFound):
                await world.queries(tenant=asked).live(there, 0)
            with pytest.raises(NotFound):
                await world.service(tenant=asked).say(there, "Mine.", "k4")


@pytest.mark.parametrize("thread", [None, ""])
async def test_without_a_name_there_is_no_session(thread: str | None) -> None:
    sessions = Sessions()
    await sessions.talk("One.", "k1", thread=thread)
    await sessions.talk("Two.", "k2", thread=thread)
    assert sessions.told() == [("user", "Two.")]


@pytest.mark.parametrize("other", [{"user": "bob"}, {"tenant": "globex"}])
async def test_a_place_that_is_not_the_users_tells_nothing(other: dict[str, str]) -> None:
    sessions = Sessions()
    await sessions.talk("One.", "k1")
    entities: Any = sessions.world.store.entities
    (session,) = entities.stored
    secret = await sessions.talk("Secret.", "k2", **other)
    entities.put(*session, [[secret, "talk"]], key="wrong")
    await sessions.talk("Two.", "k3")
    assert sessions.told() == [("user", "Two.")]


async def test_two_sagas_at_once_both_stay_in_the_session() -> None:
    sessions = Sessions()
    await asyncio.gather(sessions.talk("One.", "k1"), sessions.talk("Two.", "k2"))
    await sessions.talk("Three.", "k3")
    said = {content for _, content in sessions.told()}
    assert said == {"One.", "Heard: One.", "Two.", "Heard: Two.", "Three."}


async def test_another_agent_of_the_workflow_goes_on_with_it() -> None:
    sessions = Sessions()
    await patiently(sessions.world, lambda service: service.register(TWO, json_only=False))
    await sessions.world.service().start("two", {}, "k1")
    await sessions.world.settle()
    once = ["First.", "Heard: First.", "Second."]
    assert [one["content"] for one in sessions.model.requests[-1].messages] == once
    await sessions.world.service().start("two", {}, "k2")
    await sessions.world.settle()
    told = [one["content"] for one in sessions.model.requests[-1].messages]
    assert told == [*once, "Heard: Second.", *once]


async def test_a_request_that_is_made_again_enters_the_session_once() -> None:
    sessions = Sessions()
    await first(sessions)
    real, tries = sessions.model.script, list[int]()

    def fails_once(request: ModelRequest, number: int) -> Any:
        tries.append(number)
        if len(tries) == 1:
            raise StepFailure("unavailable", "no answer")
        return real(request, number)

    sessions.model.script = fails_once
    await sessions.talk("And now?", "k2")
    await asyncio.sleep(60)
    assert len(tries) == 2
    assert sessions.told() == [*FIRST, ("user", "And now?")]
    await sessions.talk("Last.", "k3")
    said = [*FIRST, ("user", "And now?"), ("assistant", "Heard: And now?"), ("user", "Last.")]
    assert sessions.told() == said


async def test_a_session_that_does_not_fit_is_cut_and_the_prompt_stays() -> None:
    sessions = Sessions()
    await first(sessions)
    real = sessions.model.script

    def script(request: ModelRequest, number: int) -> Any:
        if len(request.messages) > 5:
            raise StepFailure("context_exceeded", "too long")
        return real(request, number)

    sessions.model.script = script
    saga = await sessions.talk("And now?", "k2")
    told = sessions.told()
    assert told[-1] == ("user", "And now?"), "what was said before stands before the prompt"
    assert ("assistant", "Heard: Thanks.") in told
    await sessions.world.service().say(saga, "More?", "m2")
    await asyncio.sleep(30)
    assert sessions.told()[-1] == ("user", "More?")
