"""The inbox of questions follows the log: however a question is opened, moved, answered or dropped, its row and its place follow."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton.core.limits import Limits
from baton.core.log.events import NoticesSent
from baton.core.log.questions import Answer
from baton.errors import UserError
from baton.ports import Account, QuestionRow
from baton.runtime.people.question_rows import PLACES_DAY
from tests.kit.corpus import start
from tests.kit.sentences import Says
from tests.kit.world import TENANT, USER, World

ONE = "name: w\nnodes: {ask: {human: {title: 'Book ${input}?', expires: 4h}}}"
LATER = "name: later\nnodes: {ask: {human: {title: t, expires: 5h}}}"


def rows(world: World) -> list[QuestionRow]:
    return [row for _, row in world.store.questions.rows()]


def places(world: World, user: str = USER) -> int:
    return world.budgets.read(Account(TENANT, user, PLACES_DAY)).held


def told(world: World) -> list[str]:
    return [telling.saga for telling in world.notices.told]


async def asking(world: World, document: str, count: int = 1, name: str = "w") -> list[str]:
    await world.service().register(document, json_only=False)
    views = [await world.service().start(name, n, f"{name}-{n}") for n in range(count)]
    return [str(view["id"]) for view, _ in views]


async def mine(world: World, **query: Any) -> list[dict[str, Any]]:
    return list((await world.queries().questions(**query))["questions"])


async def answer(world: World, saga: str, ask: str = "0.ask", action: str = "approve") -> None:
    await world.service().answer(saga, Answer(ask=ask, action=action), f"{saga}{ask}")


async def test_a_question_is_listed_while_it_is_open_and_its_place_is_free_afterwards() -> None:
    world = World.start()
    saga = await start(world, ONE, "Ubuntu", "w")
    await asyncio.sleep(5)
    (listed,) = await mine(world)
    assert (listed["saga"], listed["title"], listed["told"]) == (saga, "Book Ubuntu?", True)
    assert (listed["for"], listed["answer_at"]) == (
        {"kind": "user", "name": USER},
        f"/sagas/{saga}/answer",
    )
    assert [listed] == await mine(world, saga=saga)
    assert places(world) == 1
    assert (await world.queries(user="bob").questions())["questions"] == []
    await answer(world, saga)
    await world.settle()
    assert (await mine(world), await mine(world, saga=saga), places(world)) == ([], [], 0)


async def test_what_a_question_costs_is_noted_in_one_entry_and_its_end_in_the_next_one_that_is_written_anyway() -> (
    None
):
    document = """
name: w
nodes:
  ask: {human: {title: t}}
  nap: {tool: work, with: {n: 1, seconds: 1}, after: ask}
  more: {human: {title: u}, after: nap}
"""
    world = World.start()
    saga = await start(world, document, {}, "w")
    await asyncio.sleep(5)
    await answer(world, saga)
    await asyncio.sleep(5)
    notes = [
        (entry.version, len(entry.events), event)
        for entry in world.entries(saga)
        for event in entry.events
        if isinstance(event, NoticesSent)
    ]
    assert [(size == 1, list(e.shown), e.withdrawn, len(e.keys)) for _, size, e in notes] == [
        (True, ["0.ask"], (), 1),
        (False, [], ("0.ask",), 0),
        (True, ["0.more"], (), 1),
    ]
    assert [row.ask for row in rows(world)] == ["0.more"]


@pytest.mark.parametrize("how", ["cancel", "expiry", "race", "end"])
async def test_its_row_goes_however_it_is_closed(how: str) -> None:
    documents = {
        "race": "name: w\nnodes: {ask: {human: {title: t}}, b: {wait: {for: 10s}}, c: {value: 1, after: [ask, b], join: any}, d: {wait: {for: 1h}, after: c}}",
        "end": "name: w\nnodes: {ask: {human: {title: t}}, b: {wait: {for: 10s}}, c: {end: {}, after: b}}",
    }
    world = World.start()
    saga = await start(world, documents.get(how, ONE), {}, "w")
    await asyncio.sleep(5)
    assert len(rows(world)) == 1
    if how == "cancel":
        await world.service().cancel(saga, "enough", 0)
    await asyncio.sleep(4 * 3_600 if how == "expiry" else 10)
    assert (rows(world), places(world)) == ([], 0)
    assert (await world.queries().show(saga))["status"] != "suspended"


async def test_a_fork_lists_again_what_its_answer_had_withdrawn() -> None:
    world = World.start()
    saga = await start(world, ONE, "x", "w")
    await asyncio.sleep(5)
    version = (await world.queries().show(saga))["version"]
    await answer(world, saga)
    await world.settle()
    assert rows(world) == []
    await world.service().fork(saga, version, "again")
    await asyncio.sleep(100)
    assert ([row.told for row in rows(world)], places(world)) == ([True], 1)
    await answer(world, saga)
    await world.settle()
    assert (rows(world), places(world)) == ([], 0)


async def test_of_fifty_questions_to_one_person_ten_are_told_all_are_listed_and_each_end_tells_the_next() -> (
    None
):
    world = World.start(limits=Limits(sweep_shortest_ms=3_600_000))
    sagas = [*await asking(world, ONE, 49), *await asking(world, LATER, name="later")]
    await asyncio.sleep(30)
    assert (len(told(world)), len(rows(world)), places(world)) == (10, 50, 10)
    listed = await mine(world, limit=100)
    assert (len(listed), listed[-1]["saga"]) == (50, sagas[-1])
    assert {one["saga"] for one in listed if one["told"]} == set(told(world))
    for count in range(1, 4):
        await answer(world, told(world)[count - 1])
        await asyncio.sleep(75)
        assert (len(set(told(world))), places(world), len(rows(world))) == (10 + count, 10, 50 - count)
    # One that was never told is answered from the list: its notice is not due any more.
    silent = next(one["saga"] for one in await mine(world, limit=100) if not one["told"])
    await answer(world, silent)
    await asyncio.sleep(75)
    assert (silent in told(world), len(set(told(world))), places(world)) == (False, 13, 10)
    # What is not told expires all the same.
    await asyncio.sleep(4 * 3_600)
    assert (len(rows(world)), places(world), sagas[-1] in told(world)) == (1, 1, True)


async def test_a_saga_that_asks_too_much_tells_its_own_next_question_at_once() -> None:
    nodes = "".join(f"  q{n}: {{human: {{title: t{n}, to: {{user: bob}}}}}}\n" for n in range(15))
    world = World.start()
    saga = await start(world, "name: w\nnodes:\n" + nodes, {}, "w")
    await asyncio.sleep(5)
    assert (len(told(world)), len(rows(world)), places(world, "bob")) == (10, 15, 10)
    first = next(row.ask for row in rows(world) if row.told)
    await answer(world, saga, first)
    await asyncio.sleep(2)
    assert (len(told(world)), len(rows(world)), places(world, "bob")) == (11, 14, 10)


async def test_a_saga_that_is_at_work_when_a_place_is_free_takes_it_before_it_rests() -> None:
    busy = "name: busy\nnodes: {ask: {human: {title: t}}, b: {tool: work, with: {n: 1, seconds: 20}}}"
    world = World.start(limits=Limits(pending_per_person=1), timeout_s=60)
    (first,) = await asking(world, ONE)
    await asyncio.sleep(5)
    (second,) = await asking(world, busy, name="busy")
    await asyncio.sleep(5)
    assert (told(world), places(world)) == ([first], 1)
    await answer(world, first)
    await asyncio.sleep(25)
    assert (told(world), places(world)) == ([first, second], 1)


@pytest.mark.parametrize(("to", "most"), [("{group: ops}", 10), ("{role: answer}", 10), ("starter", 0)])
async def test_a_group_a_role_and_any_person_without_a_limit_are_told_of_everything(
    to: str, most: int
) -> None:
    document = f"name: w\nnodes: {{ask: {{human: {{title: t, to: {to}}}}}}}"
    world = World.start(limits=Limits(pending_per_person=most, user_day_budget_usd="0"))
    await asking(world, document, 12)
    await asyncio.sleep(10)
    assert (len(told(world)), len(rows(world)), world.budgets.calls) == (12, 12, 0)


async def test_a_list_goes_on_page_by_page_over_all_of_a_callers_inboxes(says: Says) -> None:
    def document(name: str, group: str, hours: int) -> str:
        return f"name: {name}\nnodes: {{ask: {{human: {{title: t, expires: {hours}h, to: {group}}}}}}}"

    world = World.start()
    for n in range(9):
        to = ("starter", "{role: operate}", "{group: ops}")[n % 3]
        await asking(world, document(f"w{n}", to, 9 - n), name=f"w{n}")
    await asyncio.sleep(10)
    seen: list[str] = []
    cursor = ""
    while True:
        page = await world.queries().questions(limit=2, cursor=cursor)
        seen += [one["expires_at"] for one in page["questions"]]
        assert len(page["questions"]) <= 2
        if page["next"] is None:
            break
        cursor = page["next"]
    assert (len(seen), seen) == (6, sorted(seen))
    with says.raised(UserError):
        await world.queries(user="bob").questions(cursor=cursor)
    with pytest.raises(UserError, match="not one that a list"):
        await world.queries().questions(cursor="nonsense")


async def test_a_saga_that_asks_nothing_touches_no_row_and_no_place() -> None:
    world = World.start()
    await start(world, "name: w\nnodes: {a: {tool: work, with: {n: 1, seconds: 1}}}", {}, "w")
    await world.settle()
    questions = world.store.questions
    assert (questions.puts, questions.removals) == (0, 0)


GROUP = "name: w\nnodes: {ask: {human: {title: t, to: {group: ops}, expires: 4h, escalate: [{after: 1h, hand_on: {user: bob}}]}}}"


def shown(world: World) -> list[tuple[str, bool]]:
    return [(row.to, row.told) for row in rows(world)]


async def test_a_claimed_question_moves_to_the_inbox_of_its_person_and_takes_a_place_there() -> None:
    world = World.start()
    (saga,) = await asking(world, GROUP)
    await asyncio.sleep(5)
    assert (shown(world), places(world)) == ([("group:ops", True)], 0)
    await world.service().questions.claim(saga, "0.ask")
    await asyncio.sleep(5)
    assert (shown(world), places(world)) == ([(f"user:{USER}", True)], 1)
    await world.service().questions.release(saga, "0.ask")
    await asyncio.sleep(5)
    assert (shown(world), places(world)) == ([("group:ops", True)], 0)
    await world.service().questions.claim(saga, "0.ask")
    await asyncio.sleep(3_600)
    assert (shown(world), places(world), places(world, "bob")) == ([("user:bob", True)], 0, 1)


async def test_a_parked_saga_is_in_the_inbox_of_those_on_call_until_it_is_resumed() -> None:
    world = World.start()
    (saga,) = await asking(world, "name: w\nnodes: {a: {tool: kill}}")
    await asyncio.sleep(300)
    assert (await world.queries().show(saga))["status"] == "parked"
    assert shown(world) == [("on_call", True)]
    await world.service().cancel(saga, "enough", 0)
    await asyncio.sleep(100)
    assert (shown(world), (await world.queries().show(saga))["status"]) == ([], "cancelled")
