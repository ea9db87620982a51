"""Many questions, and writes that are slow: all are told, all rows and places are freed, and what lands late takes nothing."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from baton.core.limits import Limits
from tests.kit.corpus import start
from tests.kit.faults import CRASH_AFTER, FINE, LATE, Plan
from tests.kit.world import USER, World
from tests.runtime.test_inbox import LATER, ONE, answer, asking, places, rows, shown, told

OF_A_GROUP = "name: g\nnodes: {ask: {human: {title: t, to: {group: ops}}}}"


def fan(many: int, *more: str) -> str:
    nodes = [*(f"q{n}: {{human: {{title: t{n}, to: {{user: bob}}}}}}" for n in range(many)), *more]
    return "name: w\nnodes:\n" + "".join(f"  {node}\n" for node in nodes)


async def test_of_a_fan_of_sixty_questions_all_are_told_in_the_end() -> None:
    world = World.start()
    saga = await start(world, fan(60), {}, "w")
    for count in range(60):
        await asyncio.sleep(3)
        assert (len(told(world)), places(world, "bob")) == (min(10 + count, 60), min(60 - count, 10))
        await answer(world, saga, world.notices.told[count].notice.ask)
    await world.settle()
    assert len({telling.notice.ask for telling in world.notices.told}) == 60
    assert (rows(world), places(world, "bob")) == ([], 0)


async def test_rows_that_take_all_of_the_time_leave_the_telling_to_a_try_that_follows_at_once() -> None:
    @dataclass
    class Slow(Plan):
        """Of the first twelve puts of rows every second one is not done in time."""

        puts: int = 0

        def draw(self, call: str, worker: bool) -> str:
            self.puts += worker and call == "put"
            return LATE if worker and call == "put" and self.puts <= 12 and self.puts % 2 else FINE

    world = World.start(plan=Slow(), timeout_s=120)
    await start(world, fan(12), {}, "w")
    await asyncio.sleep(50)
    assert (len(told(world)), len(rows(world))) == (10, 12)


@pytest.mark.parametrize("how", ["cancel", "end"])
async def test_a_saga_that_ends_with_five_hundred_open_questions_is_let_go_when_workers_have_withdrawn_all(
    how: str,
) -> None:
    world = World.start()
    saga = await start(world, fan(500, "go: {wait: {for: 20s}}", "over: {end: {}, after: go}"), {}, "w")
    await asyncio.sleep(15)
    assert (len(rows(world)), places(world, "bob")) == (500, 10)
    world.slow.update(move=0.2, remove=0.2)
    before = len(world.invocations)
    if how == "cancel":
        await world.service().cancel(saga, "enough", 0)
    await asyncio.sleep(40)
    (head,) = world.log.heads()
    assert (rows(world), places(world, "bob"), head.owner, head.due_at) == ([], 0, "", None)
    assert 2 <= len(world.invocations) - before <= 6, (
        "one does not do it, and each goes on where the last one was"
    )
    # Each row once, and again those that were under way when the time of an invocation was over.
    assert 500 <= world.store.questions.removals <= 500 + 16 * 6
    assert world.dead_letters.letters == []


async def test_the_questions_that_wait_for_places_of_a_saga_that_ends_are_told() -> None:
    world = World.start(limits=Limits(sweep_shortest_ms=3_600_000))
    saga = await start(world, fan(30), {}, "w")
    await asyncio.sleep(5)
    (other,) = await asking(world, "name: o\nnodes: {ask: {human: {title: t, to: {user: bob}}}}", name="o")
    await asyncio.sleep(5)
    assert other not in told(world)
    await world.service().cancel(saga, "enough", 0)
    await asyncio.sleep(75)
    assert other in told(world)


async def test_a_saga_that_goes_on_after_an_answer_has_the_next_saga_tell_its_question() -> None:
    world = World.start(limits=Limits(pending_per_person=1, sweep_shortest_ms=3_600_000))
    goes_on = "name: g\nnodes: {ask: {human: {title: t}}, b: {wait: {for: 9h}, after: ask}}"
    (first,) = await asking(world, goes_on, name="g")
    await asyncio.sleep(5)
    (second,) = await asking(world, ONE)
    await asyncio.sleep(5)
    assert told(world) == [first]
    await answer(world, first)
    await asyncio.sleep(75)
    assert (told(world), places(world)) == ([first, second], 1)


@pytest.mark.parametrize("how", ["cancel", "answer"])
async def test_a_place_whose_reservation_lands_after_its_question_was_closed_is_not_taken(how: str) -> None:
    class Late(Plan):
        def draw(self, call: str, worker: bool) -> str:
            return LATE if call == "move" and "move" not in self.writes[:-1] else FINE

    document = "name: w\nnodes: {ask: {human: {title: t}}, b: {wait: {for: 10h}}}"
    world = World.start(plan=Late(), late_s=100)
    saga = await start(world, document, {}, "w")
    await asyncio.sleep(30)
    assert world.faults
    if how == "cancel":
        await world.service().cancel(saga, "enough", 0)
    else:
        await answer(world, saga)
    await asyncio.sleep(20)
    assert (rows(world), places(world)) == ([], 0)
    await asyncio.sleep(300)
    assert (rows(world), places(world)) == ([], 0)


@pytest.mark.parametrize("how", ["release", "cancel"])
async def test_a_place_that_a_worker_has_taken_for_a_claimant_and_died_is_freed_with_the_claim(
    how: str,
) -> None:
    class Dies(Plan):
        def draw(self, call: str, worker: bool) -> str:
            return CRASH_AFTER if call == "move" and "move" not in self.writes[:-1] else FINE

    world = World.start(plan=Dies())
    (group,) = await asking(world, OF_A_GROUP, name="g")
    await asyncio.sleep(5)
    await world.service().questions.claim(group, "0.ask")
    await asyncio.sleep(2)
    assert places(world) == 1
    if how == "release":
        await world.service().questions.release(group, "0.ask")
    else:
        await world.service().cancel(group, "enough", 0)
    await asyncio.sleep(120)
    assert (shown(world), places(world)) == ([("group:ops", True)] if how == "release" else [], 0)


async def test_a_claim_beyond_the_limit_is_granted_and_counts_for_the_claimant() -> None:
    world = World.start(limits=Limits(pending_per_person=2, sweep_shortest_ms=3_600_000))
    (first, second) = await asking(world, ONE, 2)
    (group,) = await asking(world, OF_A_GROUP, name="g")
    await asyncio.sleep(5)
    assert places(world) == 2
    await world.service().questions.claim(group, "0.ask")
    await asyncio.sleep(5)
    assert (places(world), shown(world).count((f"user:{USER}", True))) == (3, 3)
    (later,) = await asking(world, LATER, name="later")
    for saga, held in ((first, 2), (second, 2)):
        assert later not in told(world)
        await answer(world, saga)
        await asyncio.sleep(75)
        assert places(world) == held
    assert later in told(world)


async def test_a_worker_that_knows_of_no_place_moves_the_row_of_a_claim_all_the_same() -> None:
    document = """
name: w
nodes:
  a: {human: {title: a}}
  b: {human: {title: b}}
  c: {human: {title: c, to: {group: ops}}}
  d: {human: {title: d, to: {user: bob}, escalate: [{after: 8s, hand_on: starter}]}}
  e: {human: {title: e, to: {user: bob}, expires: 1h}}
  busy: {tool: work, with: {n: 1, seconds: 60}}
"""
    world = World.start(limits=Limits(pending_per_person=1), timeout_s=120)
    saga = await start(world, document, {}, "w")
    await asyncio.sleep(5)
    await world.service().questions.claim(saga, "0.c")
    await asyncio.sleep(25)
    assert [head.epoch for head in world.log.heads()] == [1]
    assert {row.ask: (row.to, row.told) for row in rows(world)} == {
        "0.a": (f"user:{USER}", True),
        "0.b": (f"user:{USER}", False),
        "0.c": (f"user:{USER}", True),
        "0.d": (f"user:{USER}", False),
        "0.e": ("user:bob", True),
    }


async def test_a_question_that_is_claimed_before_its_group_was_told_counts_too() -> None:
    world = World.start(limits=Limits(pending_per_person=1))

    def fails(telling: object) -> None:
        raise OSError("no network")

    await asking(world, ONE)
    await asyncio.sleep(5)
    world.notices.fails = fails
    (group,) = await asking(world, OF_A_GROUP, name="g")
    await asyncio.sleep(5)
    await world.service().questions.claim(group, "0.ask")
    await asyncio.sleep(5)
    assert (places(world), shown(world).count((f"user:{USER}", True))) == (2, 2)
