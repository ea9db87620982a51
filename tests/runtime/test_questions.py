"""Questions of nodes, in virtual time: a saga that asks holds nothing, goes on with an answer, and comes to its end without one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton.core.log.events import QuestionClosed, QuestionEscalated, SignalReceived
from baton.core.log.questions import Answer
from baton.errors import Forbidden, InvalidInput, KeyReused, NotAllowedNow, NotFound
from tests.kit.corpus import start
from tests.kit.sentences import Says
from tests.kit.world import USER, World

DOCUMENT = """
name: w
nodes:
  ask: {human: {title: 'Book ${input}?', expires: 4h}, catch: {code: rejected, then: no}}
  form: {human: {title: Seats, schema: {type: object, properties: {n: {type: integer}}, required: [n]}, to: {group: hosts}}, after: ask}
  no: {value: '${last_error.message}'}
output: {n: '${ctx.form.output?.data.n}', no: '${ctx.no.output?}', by: '${ctx.ask.output?.by}'}
"""


async def asking(world: World) -> str:
    saga = await start(world, DOCUMENT, "Ubuntu", "w")
    await asyncio.sleep(5)
    return saga


def answers(world: World, saga: str) -> list[SignalReceived]:
    return [event for event in world.events(saga) if isinstance(event, SignalReceived)]


async def test_a_saga_that_asks_is_suspended_and_holds_neither_lease_nor_invocation(says: Says) -> None:
    world = World.start()
    saga = await asking(world)
    (head,) = world.log.heads()
    assert (head.status, head.owner) == ("suspended", "")
    ran = len(world.invocations)
    await asyncio.sleep(3_600)
    (question,) = (await world.queries().show(saga))["questions"]
    assert (question["id"], question["title"]) == ("0.ask", "Book Ubuntu?")
    assert len(world.invocations) <= ran + 8, "only the sweep looks"
    await world.service().answer(saga, Answer(ask="0.ask", action="reject", comment="No."), "")
    await world.settle()
    view = await world.queries().show(saga)
    assert view["status"] == "completed"
    says(view["result"]["no"])


async def test_it_ends_by_itself_to_the_second(says: Says) -> None:
    world = World.start()
    saga = await asking(world)
    await asyncio.sleep(4 * 3_600)
    closed = [event for event in world.events(saga) if isinstance(event, QuestionClosed)]
    opened = next(entry.at for entry in world.entries(saga) if entry.version == 2)
    assert [event.action for event in closed] == ["expired"]
    assert 0 <= closed[0].at - opened - 4 * 3_600_000 < 2_000
    says((await world.queries().show(saga))["result"]["no"])


async def test_an_answer_is_refused_with_the_reason_and_nothing_changes() -> None:
    world = World.start()
    saga = await asking(world)

    async def refused(
        error: type[Exception], words: str, key: str = "k", user: str = USER, **said: Any
    ) -> None:
        before = answers(world, saga)
        with pytest.raises(error, match=words):
            await world.service(user=user).answer(saga, Answer(**said), key)
        assert answers(world, saga) == before

    await refused(NotFound, "open: 0.ask", ask="0.form", action="submit", data={"n": 1})
    await refused(InvalidInput, "must be one of approve, reject", ask="0.ask", action="submit")
    await world.service().answer(saga, Answer(ask="0.ask", action="approve"), "k")
    again = await world.service().answer(saga, Answer(ask="0.ask", action="approve"), "k")
    assert again["id"] == saga
    await refused(KeyReused, "answered otherwise", ask="0.ask", action="reject")
    for key in ("l", ""):
        same = await world.service().answer(saga, Answer(ask="0.ask", action="approve"), key)
        assert (same["changed"], len(answers(world, saga))) == (False, 1)
    await asyncio.sleep(5)
    await refused(NotAllowedNow, "has been answered", key="l", ask="0.ask", action="reject")
    await refused(
        Forbidden, "for the group `hosts`", user="eve", ask="0.form", action="submit", data={"n": 1}
    )


async def test_an_answer_that_is_late_is_told_so(says: Says) -> None:
    document = "name: w\nnodes: {how: {human: {title: x, options: [{id: a, default: true}, {id: b}], expires: 60s}}, b: {wait: {signal: go}}}"
    world = World.start()
    saga = await start(world, document, {}, "w")
    await asyncio.sleep(5)
    (question,) = (await world.queries().show(saga))["questions"]
    answer = Answer(ask=question["id"], action="b")
    await asyncio.sleep(400)
    for key in ("k", ""):
        with says.raised(NotAllowedNow):
            await world.service().answer(saga, answer, key)


async def test_the_question_is_told_once_to_whom_it_is_for() -> None:
    world = World.start()
    saga = await asking(world)
    await world.service().answer(saga, Answer(ask="0.ask", action="approve"), "")
    await asyncio.sleep(60)
    assert [(notice.to, notice.code, notice.message) for notice in world.notices.said] == [
        ("user", "approval", "Book Ubuntu?"),
        ("group:hosts", "input", "Seats"),
    ]
    assert [told.ask and told.ask.id for told in world.notices.told] == ["0.ask", "0.form"]


ESCALATES = """
name: w
nodes:
  ask:
    human:
      title: Book?
      to: {group: hosts}
      risk: low
      escalate: [{after: 1h, remind: true}, {after: 2h, hand_on: {group: leads}}, {after: 4h, decide: approve}]
output: '${ctx.ask.output.source}'
"""


def told(world: World) -> list[tuple[str, str]]:
    return [(notice.to, notice.message) for notice in world.notices.said]


async def test_its_escalation_happens_to_the_second_and_is_told_once() -> None:
    world = World.start()
    saga = await start(world, ESCALATES, {}, "w")
    await asyncio.sleep(4 * 3_600 + 60)
    opened, *entries = [entry for entry in world.entries(saga) if entry.version > 1]
    late = [
        entry.at - opened.at
        for entry in entries
        if isinstance(entry.events[0], QuestionEscalated | QuestionClosed)
    ]
    assert [round(ms / 3_600_000, 3) for ms in late] == [1, 2, 4]
    assert told(world) == [
        ("group:hosts", "Book?"),
        ("group:hosts", "Reminder: Book?"),
        ("group:leads", "Handed on: Book?"),
    ]
    assert (await world.queries().show(saga))["result"] == "policy"


async def test_a_claim_tells_no_one_and_only_the_inbox_follows_and_a_reminder_is_told(says: Says) -> None:
    world = World.start()
    world.groups = {"bo": frozenset({"hosts"})}
    saga = await start(world, ESCALATES, {}, "w")
    await asyncio.sleep(600)
    (before,), ran = world.log.heads(), len(world.invocations)
    await world.service(user="bo").questions.claim(saga, "0.ask")
    await asyncio.sleep(30)
    (head,) = world.log.heads()
    assert (head.due_at, head.status, head.owner) == (before.due_at, before.status, "")
    assert (len(world.invocations), len(told(world))) == (ran + 1, 1)
    assert [row.to for _, row in world.store.questions.rows()] == ["user:bo"]
    (question,) = (await world.queries().show(saga))["questions"]
    assert (question["claim"]["by"], question["claim"]["from"]["name"]) == ("bo", "hosts")
    with pytest.raises(Forbidden, match="claimed by `bo`"):
        await world.service(user="eve").questions.remind(saga, "0.ask")
    await world.service(user="bo").questions.remind(saga, "0.ask")
    await asyncio.sleep(30)
    assert told(world)[1:] == [("user:bo", "Reminder: Book?")]
    with says.raised(NotAllowedNow):
        await world.service().questions.remind(saga, "0.ask")
    # The claim ends where the question is handed on.
    await asyncio.sleep(2 * 3_600)
    with says.raised(Forbidden):
        await world.service(user="bo").answer(saga, Answer(ask="0.ask", action="approve"), "k")
    with pytest.raises(NotFound, match=r"open: 0\.ask"):
        await world.service().questions.claim(saga, "0.asc")
    await world.settle()
    with pytest.raises(NotAllowedNow, match="has ended"):
        await world.service().questions.claim(saga, "0.ask")
