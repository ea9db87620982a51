"""What the reconciler makes of dead messages, and what an operator's request makes of their letters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import pytest

from baton.adapters.memory.log import MemoryLog
from baton.adapters.memory.queues import MemoryDeadLetters
from baton.adapters.memory.store import MemoryLetters
from baton.core.letters import DISCARDED, MESSAGE, PENDING, REDRIVEN, redriven
from baton.errors import NotAllowedNow, StoreUnavailable, Throttled
from baton.ports import DeadMessageCause, Wake
from baton.runtime import dead_letters
from baton.runtime.dead_letters import LetterCollection, LetterCollector
from baton.runtime.engine.request import SAGA_ID
from baton.runtime.requests.operators import LetterFilter
from baton.web import identity
from tests.kit.dead_letter_runs import Mortuary
from tests.kit.sentences import Says
from tests.kit.world import World

P = ParamSpec("P")
T = TypeVar("T")
WAKE = '{"saga":"T#acme#SAGA#s1","v":3}'
RUN_MS = 50_000


class HandClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time = 1_790_000_000_000

    def now(self) -> int:
        return self.time


class Shelf:
    """A queue of dead messages, its letters and their collector. `slow`: by how many ms a call moves the clock on; `fails`: what one raises."""

    def __init__(self, operators: str = "ops") -> None:
        self.clock = HandClock()
        self.queue = MemoryDeadLetters(self.clock)
        self.letters = MemoryLetters(MemoryLog(1), self.clock)
        self.calls: list[str] = []
        self.slow: dict[str, int] = {}
        self.fails: dict[str, Exception] = {}
        self.told: list[tuple[int, ...]] = []
        self.collector = LetterCollector(
            (self.queue,),
            self.letters,
            self.clock,
            self._offload,
            3_000,
            operators,
            lambda *figures: self.told.append(figures),
        )

    async def _offload(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        name = function.__name__
        self.calls.append(name)
        self.clock.time += self.slow.get(name, 0)
        await asyncio.sleep(0)
        if name in self.fails:
            raise self.fails[name]
        return function(*args, **kwargs)

    def collect(self, left: int = RUN_MS) -> LetterCollection:
        return asyncio.run(self.collector.collect(left))


def test_where_nothing_is_dead_nothing_is_received_written_or_told() -> None:
    shelf = Shelf()
    assert shelf.collect() == LetterCollection(0, 0, 0, 0, False)
    assert shelf.calls == ["count", "outstanding"]
    assert shelf.told == []


def test_a_message_becomes_a_letter_with_all_that_is_known_of_it() -> None:
    shelf = Shelf()
    shelf.queue.send(
        WAKE, "CorruptLog: a gap", DeadMessageCause(code="unreadable_log", version=4, node="pay", attempts=2)
    )
    assert shelf.collect() == LetterCollection(1, 1, 0, 0, False)
    (letter,) = shelf.letters.all()
    assert (letter.id, letter.tenant, letter.saga, letter.v) == ("s1", "acme", "s1", 3)
    assert (letter.code, letter.version, letter.node, letter.attempts) == ("unreadable_log", 4, "pay", 2)
    assert shelf.queue.count() == 0
    assert shelf.told[0][:2] == (1, 1)


def test_a_message_that_comes_twice_counts_once() -> None:
    shelf = Shelf()
    shelf.queue.send(WAKE, "r")
    shelf.fails["delete"] = StoreUnavailable("no answer")
    assert shelf.collect().failed == 1
    shelf.fails.clear()

    shelf.clock.time += 130_000
    assert shelf.collect().moved == 0
    assert [letter.messages for letter in shelf.letters.all()] == [1]
    assert not shelf.queue._waiting


def test_hundreds_of_messages_of_one_saga_are_one_letter_whose_count_is_exact() -> None:
    shelf = Shelf()
    for _ in range(237):
        shelf.queue.send(WAKE, "r")
    assert shelf.collect().moved == 237
    assert [letter.messages for letter in shelf.letters.all()] == [237]


def test_a_run_does_as_much_as_it_has_time_for_and_the_next_goes_on() -> None:
    shelf = Shelf()
    for number in range(2_000):
        shelf.queue.send(f'{{"saga":"T#acme#SAGA#s{number}"}}', "r")
    shelf.slow.update(write=50)
    first = shelf.collect()
    assert first.more
    assert 500 < first.moved < 2_000
    while shelf.queue._waiting:
        shelf.clock.time += 130_000
        shelf.collect()
    assert len(shelf.letters.all()) == 2_000


def test_a_store_that_hangs_costs_a_run_and_no_message() -> None:
    shelf = Shelf()
    for number in range(100):
        shelf.queue.send(f'{{"saga":"T#acme#SAGA#s{number}"}}', "r")
    shelf.slow.update(write=600)  # forty at a time, six seconds each
    shelf.fails["write"] = StoreUnavailable("no answer in time")
    began = shelf.clock.now()
    with pytest.raises(StoreUnavailable):
        shelf.collect()
    assert shelf.clock.now() - began < RUN_MS
    assert "delete" not in shelf.calls


def test_one_letter_that_cannot_be_written_keeps_its_message_and_no_other() -> None:
    shelf = Shelf()
    shelf.queue.send(WAKE, "r")
    shelf.queue.send('{"saga":"T#acme#SAGA#s2"}', "r")
    real: Any = shelf.letters.write

    def write(letter: Any, seen: int) -> bool:
        if letter.id == "s1":
            raise ValueError("no table takes it")
        return bool(real(letter, seen))

    any_letters: Any = shelf.letters
    any_letters.write = write
    found = shelf.collect()
    assert (found.moved, found.failed, len(shelf.queue._waiting)) == (1, 1, 1)


@pytest.mark.parametrize("call", ["count", "receive", "outstanding"])
def test_a_run_that_can_do_nothing_fails(call: str) -> None:
    shelf = Shelf()
    if call != "outstanding":
        shelf.queue.send(WAKE, "r")
    shelf.fails[call] = Throttled("slow down")
    with pytest.raises(Throttled):
        shelf.collect()


@pytest.mark.parametrize(
    "body",
    [
        "hello",
        '{"saga":"x"}',
        '{"saga":"T#acme#SAGA#s","v":-1}',
        '{"saga":"T#acme#SAGA#' + "x" * 401 + '"}',
        '{"saga":"T#' + "a" * 401 + '#SAGA#s"}',
        '{"saga":"T#acme#SAGA#s~1"}',
        '{"saga":"T#acme#SAGA#s 1/2"}',
        '{"saga":"T#/deployment#SAGA#s1"}',
    ],
    ids=[
        "no JSON",
        "no key",
        "no version",
        "long id",
        "long tenant",
        "another's id",
        "no id",
        "no tenant",
    ],
)
def test_a_message_that_names_no_possible_saga_is_for_the_operators(body: str) -> None:
    shelf = Shelf()
    shelf.queue.send(body, "not a wake", DeadMessageCause(code="not_a_wake"))
    shelf.collect()
    (letter,) = shelf.letters.all()
    assert (letter.tenant, letter.saga, letter.id) == ("ops", "", f"{MESSAGE}m1")


def test_without_an_operators_tenant_no_tenant_has_it() -> None:
    shelf = Shelf(operators="")
    shelf.queue.send("hello", "not a wake")
    shelf.collect()
    assert shelf.letters.all()[0].tenant == "/deployment"


def test_what_no_tenant_can_see_is_told_once_and_is_not_pending(
    caplog: pytest.LogCaptureFixture, says: Says
) -> None:
    """No operator could take it off the list, so an alarm about it would go on until it expires."""
    shelf = Shelf(operators="")
    shelf.queue.send("hello", "not a wake")
    assert shelf.collect().dead_letters == 1
    assert shelf.told[-1][:2] == (1, 1)
    says(caplog.messages)
    (letter,) = shelf.letters.all()
    assert letter.status == DISCARDED
    says(letter.why)

    shelf.clock.time += 60_000
    assert shelf.collect().dead_letters == 0
    assert len(shelf.told) == 1


def test_ids_are_those_of_the_api_and_tenants_those_of_its_callers() -> None:
    """A letter with another id could be listed, but neither shown nor discarded."""
    assert (SAGA_ID, identity._TENANT.pattern.rpartition(")")[2]) == (dead_letters.SAGA, dead_letters.TENANT)


def test_the_age_of_the_oldest_is_told_while_any_is_pending() -> None:
    shelf = Shelf()
    shelf.queue.send(WAKE, "r")
    shelf.collect()

    shelf.clock.time += 600_000
    assert shelf.collect().oldest_s == 600
    assert shelf.told[-1][:3] == (0, 1, 600_000)


class Changing(MemoryLetters):
    """Letters that another writer changes between each read and write."""

    def write(self, letter: Any, seen: int, wake: Any = None) -> bool:
        return False


def test_a_letter_that_is_always_changed_meanwhile_is_left_for_the_next_run() -> None:
    shelf = Shelf()
    shelf.queue.send(WAKE, "r")
    shelf.collector._letters = Changing(MemoryLog(1), shelf.clock)
    with pytest.raises(StoreUnavailable, match="changed 8 times"):
        shelf.collect()


# -- an operator's request


async def test_two_operators_at_once_redrive_a_letter_once() -> None:
    world = World.start()
    deaths = Mortuary(world, 0, 0)
    await deaths.start(2)
    await deaths.collect_all()
    deaths.unreadable = set()
    (one, _) = deaths.letters.all()
    both = await asyncio.gather(deaths.desk().redrive(one.id), deaths.desk().redrive(one.id))
    assert [view.redrives for view in both] == [1, 1]
    assert sum(deaths.woken.values()) == 1


async def test_of_many_a_letter_that_was_redriven_since_it_was_listed_is_not_discarded() -> None:
    world = World.start()
    deaths = Mortuary(world, 0, 0)
    await deaths.start(2)
    await deaths.collect_all()
    listed = deaths.letters.listed
    any_letters: Any = deaths.letters

    def then_redriven(*wanted: Any) -> Any:
        found = listed(*wanted)
        one = found[0][0]
        any_letters.write(redriven(one, "grace", one.since), one.number, Wake(v=0))
        any_letters.listed = listed
        return found

    any_letters.listed = then_redriven
    told = await deaths.desk().discard_all(LetterFilter(), "a test", dry_run=False, limit=10, cursor="")
    assert (told.matched, told.discarded) == (2, 1)
    assert "it is redriven" in told.refused[0].why
    assert {letter.status for letter in deaths.letters.all()} == {REDRIVEN, DISCARDED}


async def test_a_redrive_of_a_saga_that_is_being_worked_on_does_it_no_harm() -> None:
    world = World.start()
    deaths = Mortuary(world, 0, 0)
    await deaths.start(2)
    await deaths.collect_all()
    deaths.unreadable = set()
    for letter in deaths.letters.all():
        await deaths.desk().redrive(letter.id)
        await deaths.desk().redrive(letter.id, force=True)
    await asyncio.sleep(120)
    assert {head.status for head in world.log.heads()} == {"completed"}
    assert [letter.redrives for letter in deaths.letters.all()] == [2, 2]
    with pytest.raises(NotAllowedNow, match="at its end"):
        await deaths.desk().redrive(letter.id, force=True)


async def test_a_saga_whose_head_cannot_be_read_dies_again_at_once_when_it_is_redriven() -> None:
    """A worker says nothing of a wake that knows no version, if the head has been put off already."""
    world = World.start()
    deaths = Mortuary(world, 0, 0)
    await deaths.start(2)
    await deaths.collect_all()
    any_log: Any = world.log
    any_log.read_head = any_log.read_tail
    for letter in deaths.letters.all():
        await deaths.desk().redrive(letter.id)
    await asyncio.sleep(10)
    await deaths.collect_all()
    assert [(one.status, one.messages, one.redrives) for one in deaths.letters.all()] == [(PENDING, 2, 1)] * 2
