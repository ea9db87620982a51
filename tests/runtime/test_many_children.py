"""Parents of thousands of children: what a fork or an end leaves behind is asked to stop, part by part."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from baton.core.decide.parking import CHILDREN_PER_EVENT
from baton.core.log.codec import encode_entry
from baton.core.log.events import (
    CancelRequested,
    ChildrenAbandoned,
    ChildReported,
    Entry,
    SagaEnded,
    SagaStarted,
    SignalReceived,
    Value,
)
from baton.errors import UserError
from baton.ports import Appended, Head, Message, Record, SagaRef, Wake
from tests.kit.corpus import start
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, NO_ANSWER
from tests.kit.world import TENANT, World
from tests.runtime.family import ended, relay

SLOW = "name: slow\nnodes: {a: {wait: {for: 1h}}}"
MANY = 1_500
A_FEW_SECONDS = 1.2


async def open_children(world: World, count: int, *, opens: int = 0) -> str:
    """A parent of so many children, all started; `world` is then given a few seconds for an invocation.

    With `opens` it has that many, and is about to begin with them.
    """
    await world.service().register(SLOW, json_only=False)
    children = "".join(f"  c{i}: {{workflow: slow, after: go}}\n" for i in range(opens or count))
    document = f"name: parent\nnodes:\n  go: {{wait: {{signal: go}}}}\n{children}"
    saga = await start(world, document, {}, "parent")
    await work(world, saga)
    world.timeout_s = 600
    await world.service().signal(saga, "go", None, "k")
    if opens:
        return saga
    await work(world, saga)
    world.timeout_s = A_FEW_SECONDS
    assert len(world.log.heads()) == count + 1
    return saga


async def work(world: World, saga: str) -> Head:
    """One invocation of the worker for this saga alone; its head then."""
    ref = SagaRef(TENANT, saga)
    await world.work([Message(str(ref), 1_000_000)])
    head = world.log.read_head(ref)
    assert head is not None
    return head


async def work_until_it_rests(world: World, saga: str) -> int:
    """How many invocations it took until one of them did not ask for the next."""
    for count in range(1, 30):
        if (await work(world, saga)).wake is None:
            return count
    raise AssertionError("it never comes to rest")


async def children_end(world: World, saga: str) -> None:
    """Each child that was asked to stop ends, and reports that to the inbox of its parent."""
    at_work = [one for one in children_of(world, saga) if isinstance(world.events(one)[-1], CancelRequested)]
    for first in range(0, len(at_work), 10):
        messages = [Message(str(SagaRef(TENANT, one)), 1_000_000) for one in at_work[first : first + 10]]
        await world.work(messages)
    items = [ended(world, saga, int(one.rpartition(".c")[2])) for one in at_work]
    for first in range(0, len(items), 100):
        await relay(world, items[first : first + 100])


async def work_until_it_has_ended(world: World, saga: str) -> None:
    """Its children have ended: so it does, after a few invocations."""
    for _ in range(30):
        if (await work(world, saga)).wake is None and isinstance(world.events(saga)[-1], SagaEnded):
            return
        await asyncio.sleep(900)  # longer than the sweep
    raise AssertionError("it never ends")


def children_of(world: World, saga: str) -> list[str]:
    return [head.ref.id for head in world.log.heads() if head.ref.id != saga]


def times_cancelled(world: World, saga: str) -> Counter[int]:
    """How many children were asked to stop so many times."""
    return Counter(
        sum(isinstance(event, CancelRequested) for event in world.events(child))
        for child in children_of(world, saga)
    )


def parts(world: World, saga: str) -> list[int]:
    """The numbers of children that each entry says were asked to stop."""
    found = [event for event in world.events(saga) if isinstance(event, ChildrenAbandoned)]
    named = [child for event in found for child in event.children]
    assert len(named) == len(set(named)), "none is asked again once the log says so"
    return [len(event.children) for event in found]


QUIET: Any = {"stream_on": False, "reconciler_on": False}


async def test_a_fork_that_leaves_thousands_of_children_goes_on_after_a_few_invocations() -> None:
    world = World.start(**QUIET)
    saga = await open_children(world, MANY)
    await world.service().fork(saga, 2, "before the children")
    assert 1 < await work_until_it_rests(world, saga) <= 4
    assert times_cancelled(world, saga) == {1: MANY}
    assert sum(parts(world, saga)) == MANY
    await world.service().signal(saga, "go", None, "k")
    await work(world, saga)
    assert (await world.queries().show(saga))["branch"] == 1
    assert len(world.log.heads()) > MANY + 1, "the new branch has children of its own"


async def test_a_cancelled_parent_of_thousands_of_children_ends_after_a_few_invocations() -> None:
    world = World.start(**QUIET)
    saga = await open_children(world, MANY)
    await world.service().cancel(saga, "enough", 0)
    assert 1 < await work_until_it_rests(world, saga) <= 4
    assert times_cancelled(world, saga) == {1: MANY}
    assert (await world.queries().show(saga))["status"] == "running", "it waits for them"
    await children_end(world, saga)
    await work_until_it_has_ended(world, saga)
    assert (await world.queries().show(saga))["status"] == "cancelled"
    assert parts(world, saga) == []


async def test_what_an_invocation_has_no_time_for_the_next_one_does() -> None:
    """A store so slow that it takes several."""
    world = World.start(**QUIET)
    saga = await open_children(world, 40)
    world.slow["read_tail"], world.timeout_s = 0.9, 6
    await world.service().cancel(saga, "enough", 0)
    assert 1 < await work_until_it_rests(world, saga) <= 10
    assert times_cancelled(world, saga) == {1: 40}
    assert isinstance(world.events(saga)[-1], CancelRequested)
    await children_end(world, saga)
    await work_until_it_has_ended(world, saga)
    reported = {event.child for event in world.events(saga) if isinstance(event, ChildReported)}
    assert reported == set(children_of(world, saga))


@pytest.mark.parametrize(
    ("fate", "is_fork"),
    [
        (CRASH_BEFORE, True),
        (CRASH_AFTER, False),
        (NO_ANSWER, True),
        pytest.param(CRASH_BEFORE, False, marks=pytest.mark.soak),
        pytest.param(CRASH_AFTER, True, marks=pytest.mark.soak),
        pytest.param(NO_ANSWER, False, marks=pytest.mark.soak),
    ],
)
async def test_a_crash_between_the_parts_costs_only_the_part(fate: str, is_fork: bool) -> None:
    world = World.start(**QUIET)
    saga = await open_children(world, 700)
    if is_fork:
        await world.service().fork(saga, 2, "before the children")
    else:
        await world.service().cancel(saga, "enough", 0)
    before = len(world.plan.writes)
    # The take, a part of 200 and its entry, half a part; then that, and the entry of the third part.
    world.plan.at |= {before + 1 + 201 + 100: fate, before + 1 + 201 + 100 + 1 + 101 + 201: fate}
    for _ in range(6):
        await work(world, saga)
        await asyncio.sleep(20)  # longer than a lease
    assert times_cancelled(world, saga) == {1: 700}
    assert sum(parts(world, saga)) == (700 if is_fork else 0)
    assert (await world.queries().show(saga))["status"] == ("waiting" if is_fork else "running")
    if not is_fork:
        await children_end(world, saga)
        await work_until_it_has_ended(world, saga)
        assert (await world.queries().show(saga))["status"] == "cancelled"


async def test_few_children_are_all_cancelled_before_one_entry() -> None:
    world = World.start(**QUIET)
    saga = await open_children(world, CHILDREN_PER_EVENT)
    await world.service().fork(saga, 2, "before the children")
    await work_until_it_rests(world, saga)
    assert parts(world, saga) == [CHILDREN_PER_EVENT]
    await world.service().signal(saga, "go", None, "k")
    world.timeout_s = 600
    await work(world, saga)
    await world.service().cancel(saga, "enough", 0)
    await work_until_it_rests(world, saga)
    assert parts(world, saga) == [CHILDREN_PER_EVENT], "the others are waited for"
    assert times_cancelled(world, saga) == {1: 2 * CHILDREN_PER_EVENT}


async def test_a_child_that_does_not_exist_yet_is_started_and_then_cancelled() -> None:
    """A frozen invocation may still be about to start it: it must find it there, and cancelled."""
    world = World.start(**QUIET)
    await world.service().register(SLOW, json_only=False)
    children = "".join(f"  c{i}: {{workflow: slow, after: go}}\n" for i in range(20))
    document = f"name: parent\nnodes:\n  go: {{wait: {{signal: go}}}}\n{children}"
    saga = await start(world, document, {}, "parent")
    await work(world, saga)
    await world.service().signal(saga, "go", None, "k")
    world.plan.at = {
        len(world.plan.writes) + 2: CRASH_AFTER
    }  # the take, and the entry that opens the children
    await work(world, saga)
    assert children_of(world, saga) == []
    await world.service().fork(saga, 2, "before the children")
    await asyncio.sleep(20)  # longer than the lease
    await work_until_it_rests(world, saga)
    assert times_cancelled(world, saga) == {1: 20}


async def test_news_that_come_in_between_make_it_ask_no_child_twice() -> None:
    """An entry from outside is where the entry of a part was to be."""
    world = World.start(**QUIET)
    saga = await open_children(world, 450)
    world.timeout_s = 60
    asked: Counter[str] = Counter()
    append, read_head = world.log.append, world.log.read_head

    def count(ref: SagaRef) -> Head | None:
        asked[ref.id] += ref.id != saga
        return read_head(ref)

    def meanwhile(ref: SagaRef, record: Record, wake: Wake | None = None) -> Appended | None:
        if ref.id != saga and asked.total() in (50, 250, 400):
            last = world.entries(saga)[-1].version
            news = SignalReceived(name="more", key=str(last), payload=Value(), by="ada", at=1)
            entry = Entry(version=last + 1, at=1, invocation="api", events=(news,))
            append(SagaRef(TENANT, saga), Record(0, entry.version, encode_entry(entry)))
        return append(ref, record, wake)

    await world.service().cancel(saga, "enough", 0)
    any_log: Any = world.log
    any_log.append, any_log.read_head = meanwhile, count
    await work(world, saga)
    assert sum(isinstance(event, SignalReceived) for event in world.events(saga)) > 1
    assert set(+asked) == set(children_of(world, saga))
    assert set(asked.values()) == {0, 1}


async def test_a_step_that_ends_when_there_is_no_time_to_cancel_children_is_not_run_again() -> None:
    world = World.start(**QUIET)
    await world.service().register(SLOW, json_only=False)
    children = "".join(f"  c{i}: {{workflow: slow}}\n" for i in range(40))
    document = f"""
name: parent
nodes:
  quick: {{tool: work, with: {{n: 1, seconds: 0.5}}}}
{children}
  first: {{tool: work, after: [quick, {", ".join(f"c{i}" for i in range(40))}], join: any, with: {{n: 2}}}}
  other: {{tool: work, with: {{n: 3, seconds: 0.8}}}}
"""
    world.timeout_s = A_FEW_SECONDS
    saga = await start(world, document, {}, "parent")
    world.slow["read_tail"], world.timeout_s = 0.7, 5
    for _ in range(12):
        await work(world, saga)
    assert (await world.queries().show(saga))["status"] == "completed"
    assert times_cancelled(world, saga) == {1: 40}
    assert len(parts(world, saga)) > 1
    assert len(world.starts) == 3


async def test_all_children_are_started_however_few_of_them_an_invocation_has_time_for() -> None:
    world = World.start(**QUIET)
    saga = await open_children(world, 0, opens=MANY)
    world.timeout_s = 1
    assert 2 < await work_until_it_rests(world, saga) <= 12
    assert len(world.log.heads()) == MANY + 1


async def test_a_parent_that_has_no_time_to_ask_all_its_children_rests_and_asks_the_others_another_time() -> (
    None
):
    world, count = World.start(**QUIET), 1_600
    saga = await open_children(world, count)
    world.timeout_s = 1
    asked: set[str] = set()
    read_head = world.log.read_head

    def look(ref: SagaRef) -> Head | None:
        if ref.id != saga:
            asked.add(ref.id)
        return read_head(ref)

    any_log: Any = world.log
    any_log.read_head = look
    for turn in range(1, 12):
        before = len(asked)
        assert (await work(world, saga)).wake is None, (
            "what it has no time for is no reason to come again at once"
        )
        if turn == 1:
            assert before < len(asked) < count
        if len(asked) == count:
            return
        await asyncio.sleep(900)  # longer than the sweep
    raise AssertionError(f"only {len(asked)} were asked")


async def test_a_child_that_is_made_cancelled_runs_nothing_and_is_not_forked() -> None:
    world = World.start(**QUIET)
    await world.service().register("name: tell\nnodes: {a: {value: 1}}", json_only=False)
    slow = "name: slow\nfailure_handler: {workflow: tell, on_cancel: true}\nnodes: {a: {wait: {for: 1h}}}"
    await world.service().register(slow, json_only=False)
    document = "name: parent\nnodes: {go: {wait: {signal: go}}, c: {workflow: slow, after: go}}"
    saga = await start(world, document, {}, "parent")
    await work(world, saga)
    await world.service().signal(saga, "go", None, "k")
    world.plan.at = {len(world.plan.writes) + 2: CRASH_AFTER}  # of the entry that opens it
    await work(world, saga)
    assert children_of(world, saga) == []
    await world.service().cancel(saga, "enough", 0)
    await asyncio.sleep(20)
    await work_until_it_rests(world, saga)
    (child,) = children_of(world, saga)
    await work(world, child)
    assert [type(event) for event in world.events(child)] == [SagaStarted, CancelRequested, SagaEnded]
    assert children_of(world, saga) == [child], "no handler of it"
    with pytest.raises(UserError, match="fork its parent"):
        await world.service().fork(child, 1, "again")


async def test_a_saga_that_was_cancelled_before_any_step_is_forked_to_before_its_cancel() -> None:
    world = World.start(**QUIET)
    saga = await start(world, "name: w\nnodes: {a: {wait: {for: 1h}}}", {}, "w")
    await work(world, saga)
    await world.service().cancel(saga, "enough", 0)
    await work(world, saga)
    with pytest.raises(UserError, match="end of its branch"):
        await world.service().fork(saga, len(world.entries(saga)), "again")
    await world.service().fork(saga, 1, "again")
