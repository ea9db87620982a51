"""Tools whose effects can be undone, the books of what is in force, and what must hold of undoing."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, field

from baton import Context, StepFailure, tool
from baton.core.decide import undoing
from baton.core.log.events import (
    CancelRequested,
    ChildClosed,
    ChildUndone,
    Entry,
    Forked,
    QuestionClosed,
    SagaEnded,
    StepFailed,
    StepSucceeded,
)
from baton.core.log.questions import TRY_AGAIN, USE, Answer
from baton.core.log.slots import Slot, slot_of
from baton.core.log.undos import StepStopped, UndoPassed, UndoStepBegan, undo_item
from baton.errors import EngineFault, NotAllowedNow
from baton.tools.define import Registry
from tests.kit.bugs import replaced
from tests.kit.faults import Crash
from tests.kit.process import RUNS_IN, pause

if TYPE_CHECKING:
    from tests.kit.world import World

UNDOING = "undoing"

LENT = """
name: lent
on_failure: [rollback]
nodes:
  a: {tool: lend, with: {what: hall}}
  b: {tool: pledge, with: {what: "part ${loop.iteration}"}, after: a, loop: {while: "loop.iteration < 1", max_iterations: 2}}
  c: {tool: fill, with: {size: 5}, after: b}
  d: {workflow: lent-child, after: c}
  e: {tool: lend, with: {what: tent}, after: d}
  f: {tool: refuses, after: e}
"""
CHILD = """
name: lent-child
nodes:
  x: {tool: lend, with: {what: chairs}}
  y: {tool: pledge, with: {what: chairs}, after: x}
"""


class Loans(Struct):
    """What is lent, by its id; all that was done; by id, the keys with which it was taken back; and how many calls of an inverse fail."""

    in_force: dict[str, str] = field(default_factory=dict)
    ever: dict[str, str] = field(default_factory=dict)
    back: dict[str, set[str]] = field(default_factory=dict)
    strange: list[str] = field(default_factory=list)
    broken: int = 0
    closed: bool = False

    def lend(self, id: str, what: str, saga: str) -> None:  # the service calls it so
        _check()
        if id not in self.ever:
            self.ever[id] = self.in_force[id] = f"{saga} {what}"

    def take_back(self, id: str, key: str) -> None:  # as above
        _check()
        if self.closed:
            raise StepFailure("gone", "the office is closed", kind="permanent", happened=False)
        if self.broken:
            self.broken -= 1
            raise StepFailure("unavailable", "the office is closed", happened=False)
        if id not in self.ever:
            self.strange.append(f"what never was lent is taken back: {id}")
        self.back.setdefault(id, set()).add(key)
        self.in_force.pop(id, None)


def _check() -> None:
    if (process := RUNS_IN.get()) is not None:
        process.check()


def add_lending(registry: Registry, books: Any) -> None:
    @tool("lend", registry=registry, undo="unlend")
    async def lend(what: str, context: Context) -> dict[str, str]:
        await pause(0.3)
        books.loans.lend(context.idempotency_key, what, context.saga)
        return {"id": context.idempotency_key}

    @tool("unlend", registry=registry)
    async def unlend(id: str, what: str, context: Context) -> None:  # the field's name
        await pause(0.2)
        books.loans.take_back(id, context.idempotency_key)

    @tool("pledge", registry=registry, effect="once", verify="pledged", undo="redeem")
    async def pledge(what: str, context: Context) -> dict[str, str]:
        await pause(0.3, stands_still=False)
        books.loans.lend(f"p{context.idempotency_key}", what, context.saga)
        return {"id": f"p{context.idempotency_key}"}

    @tool("pledged", registry=registry, effect="pure")
    async def pledged(context: Context) -> dict[str, Any]:
        known = f"p{context.idempotency_key}"
        return {"happened": known in books.loans.ever, "result": {"id": known}}

    @tool("mortgage", registry=registry, effect="once", undo="redeem", timeout="40s")
    async def mortgage(what: str, context: Context) -> dict[str, str]:
        """Its answer takes longer than its deed."""
        books.loans.lend(loan := f"p{context.idempotency_key}", what, context.saga)
        await pause(12, stands_still=False)
        return {"id": loan}

    @tool("redeem", registry=registry, effect="once", verify="redeemed")
    async def redeem(id: str, context: Context) -> None:  # the field's name
        await pause(0.2, stands_still=False)
        books.loans.take_back(id, context.idempotency_key)

    @tool("redeemed", registry=registry, effect="pure")
    async def redeemed(id: str) -> dict[str, Any]:  # the field's name
        return {"happened": id in books.loans.back, "result": None}

    @tool("refuses", registry=registry, effect="pure")
    async def refuses() -> None:
        await pause(0.1)
        raise StepFailure("sold_out", "there is none", kind="permanent")


# ---- what must hold ----------------------------------------------------------------------------------------------------


def of_undoing(world: World, logs: Mapping[str, list[Entry]]) -> Iterator[str]:
    """What was undone, in which order and how often, by the logs and by the books."""
    loans = world.books.loans
    yield from loans.strange
    yield from (
        f"taken back {len(keys)} times: {loans.ever.get(one)}"
        for one, keys in loans.back.items()
        if len(keys) > 1
    )
    for saga, entries in logs.items():
        if not entries:
            continue  # of a start that no worker has taken up
        yield from (f"{saga}: {text}" for text in in_order(entries))
        end = next((event for event in reversed(entries[-1].events) if isinstance(event, SagaEnded)), None)
        if end is not None and end.status == "rolled_back":
            known = _known(entries)
            left = [what for one, what in loans.in_force.items() if one in known]
            yield from (f"rolled back, and still in force: {what}" for what in left)


def _known(entries: list[Entry]) -> set[str]:
    """The loans that the saga knows of: those of a branch that a fork has left are not among them."""
    lent: list[tuple[int, str]] = []
    for entry in entries:
        for event in entry.events:
            if isinstance(event, Forked) and not event.undo:
                lent = [one for one in lent if one[0] <= event.cut]
            lent.append((entry.version, _lent(event)))
    return {loan for _, loan in lent}


def _lent(event: Any) -> str:
    """The loan that a step was given, and that something takes back. One that has failed may have lent something that no log knows."""
    if not isinstance(event, StepSucceeded) or event.prior is None or event.lasting:
        return ""
    return str((event.output.v or {}).get("id", ""))


def may_have_acted(event: Any) -> bool:
    """Whether it is a step that has failed, or was stopped, and is asked about before it is undone."""
    return isinstance(event, StepFailed | StepStopped) and event.prior is not None


def in_order(entries: list[Entry]) -> Iterator[str]:  # noqa: C901  one rule for each kind of event
    """Each undone step is the newest that is not undone, and was done."""
    open_: list[tuple[int, str, bool]] = []
    failed: list[str] = []
    in_doubt: set[tuple[int, str]] = set()
    settled: set[str] = set()
    """Steps in doubt that a person knows not to have happened, and those that were done again since."""
    open_children = {  # they undo what they have done before the list is gone through
        event.slot
        for entry in entries
        for event in entry.events
        if isinstance(event, UndoStepBegan) and event.index < 0
    }
    behind = {0: (open_, failed)}  # each entry
    for entry in entries:
        for event in entry.events:
            if isinstance(event, Forked) and not event.undo:
                known, left_failed = behind[event.cut]
                open_, failed = [*known], [*left_failed]
            elif isinstance(event, StepSucceeded | ChildClosed) and event.prior is not None:
                slot = slot_of(event.node, event.iteration, undo_item(event.item))
                open_.append((entry.version, slot, event.lasting))
            elif isinstance(event, StepSucceeded | ChildUndone | StepFailed | StepStopped):
                slot = event.slot
                if may_have_acted(event):
                    doubtful = (entry.version, slot_of(event.node, event.iteration, undo_item(event.item)))
                    in_doubt.add(doubtful)
                    open_.append((*doubtful, False))
                if not Slot.parse(slot).scope or slot in open_children:
                    continue
                while open_ and open_[-1][:2] in in_doubt and open_[-1][1] in settled - {slot}:
                    open_.pop()
                left = [one for one in open_ if not one[2]]
                is_failed = isinstance(event, StepFailed) or getattr(event, "failure", None) is not None
                if slot in failed:
                    failed.remove(slot)
                elif not left or left[-1][1] != slot:
                    yield f"{slot} is undone, and the newest that is left is {left[-1][1] if left else 'none'}"
                else:
                    open_.remove(left[-1])
                if is_failed:
                    failed.append(slot)
            elif isinstance(event, QuestionClosed) and event.action == TRY_AGAIN:
                settled.add(event.slot)
            elif isinstance(event, UndoPassed) and event.polled:
                its = slot_of(event.node, event.iteration, undo_item(event.item))
                open_ = [one for one in open_ if one[:2] != (event.version, its)]
            elif isinstance(event, UndoPassed) and event.redone:
                settled.add(slot_of(event.node, event.iteration, undo_item(event.item)))
            elif isinstance(event, SagaEnded) and event.status == "rolled_back" and event.undone is not None:
                back_to = event.undone.back_to
                left = [one for one in open_ if not one[2] and one[0] > back_to]
                left = [one for one in left if one[:2] not in in_doubt or one[1] not in settled]
                yield from (f"rolled back, and not undone: {slot}" for _, slot, _ in left)
        behind[entry.version] = ([*open_], [*failed])
    twice = [slot for slot, count in Counter(slot for _, slot, _ in open_).items() if count > 1]
    yield from (f"twice in the list of what can be undone: {slot}" for slot in twice)


PAIR = """
name: pair
nodes:
  a: {tool: lend, with: {what: hall}}
  b: {tool: lend, with: {what: one}, after: a}
  c: {tool: lend, with: {what: two}, after: a}
  d: {tool: pledge, with: {what: deposit}, after: [b, c]}
"""


async def lends_again(world: World, *, start: Any, patiently: Any) -> str:
    """A saga is complete, goes on from an earlier version, is complete again, and is undone by an operator."""
    saga = str(await start(world, PAIR, {}, "pair"))
    await _ended(world, saga, 1)
    await patiently(world, lambda service: service.fork(saga, 2, "once more", "key-f"))
    await _ended(world, saga, 2)
    wanted = CancelRequested(reason="no more", by="", at=0, grace_ms=0, undo=True)
    await patiently(world, lambda service: service.rollback(saga, wanted, "key-r"))
    await _ended(world, saga, 3)
    return saga


async def _ended(world: World, saga: str, times: int) -> None:
    while sum(isinstance(event, SagaEnded) for event in world.events(saga)) < times:
        await asyncio.sleep(20)
        if any(head.status == "parked" for head in world.log.heads() if head.ref.id == saga):
            with suppress(
                Crash, EngineFault, NotAllowedNow
            ):  # three deaths in a row: that is what a person is for
                await world.service().resume(saga)


async def lends(world: World, *, start: Any, patiently: Any) -> str:
    """A saga with a loop, a child and something that nothing undoes fails at its last step; inverses fail now and then."""
    world.books.loans.broken = 3
    await patiently(world, lambda service: service.register(CHILD, json_only=False))
    return str(await start(world, LENT, {}, "lent"))


CLOSED = """
name: closed
on_failure: [rollback]
nodes:
  a: {tool: lend, with: {what: "part ${loop.iteration}"}, loop: {while: "loop.iteration < 3", max_iterations: 4}}
  b: {tool: refuses, after: a}
"""


async def finds_closed(world: World, *, start: Any, patiently: Any) -> str:
    """Nothing can be undone until an operator asks for it again. The state has room for one step that could not be undone."""
    world.books.loans.closed = True
    with (
        replaced(undoing, "NAMED_IN_STATE", 1),
        replaced(undoing, "FAILED_UNDOS_PER_ENTRY", 1),
        replaced(undoing, "NAMED_IN_STATE", 1),
    ):
        saga = str(await start(world, CLOSED, {}, "closed"))
        await _ended(world, saga, 1)
        world.books.loans.closed = False
        wanted = CancelRequested(reason="it is open", by="", at=0, grace_ms=0, undo=True)
        await patiently(world, lambda service: service.rollback(saga, wanted, "key-r"))
        await _ended(world, saga, 2)
    return saga


STOPPED = """
name: stopped
on_failure: [rollback]
nodes:
  a: {value: 1}
  b: {tool: mortgage, with: {what: "house ${loop.iteration}"}, after: a}
  c: {tool: lend, with: {what: "hut ${loop.iteration}"}, after: a}
  d: {value: 1, after: [b, c], join: {wait_for: any, rest: run}}
  e: {value: 1, after: d, loop: {while: "loop.iteration < 1", back_to: a}}
  f: {tool: refuses, after: e}
"""


async def stops_with_its_round(world: World, *, start: Any, patiently: Any) -> str:
    """The end of a round stops what acts in it. People who are asked look at the books, and in the end nothing is in force."""
    loans = world.books.loans
    saga = str(await start(world, STOPPED, {}, "stopped"))
    while world.end(saga) is None:
        await asyncio.sleep(20)
        for question in (await world.queries_without_faults().show(saga))["questions"]:
            slot = question["id"].partition(".")[2].rpartition(".")[0]
            number = str(Slot.parse(slot).iteration[0])
            found = [one for one, what in loans.in_force.items() if what.endswith(f"house {number}")]
            output = {"id": found[0]} if found else UNSET
            answer = Answer(ask=question["id"], action=USE if found else TRY_AGAIN, output=output)
            await world.service_without_faults().answer(saga, answer, "")
    loans.strange.extend(f"in force, and no log knows of it: {what}" for what in loans.in_force.values())
    return saga
