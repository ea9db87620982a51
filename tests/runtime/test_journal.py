"""Journals of steps (`context.once`): units of a tool's work that happen once, whatever kills the worker between them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from baton import Context, StepFailure, WorkflowContext, tool, workflow
from baton.core.limits import Limits
from baton.core.log.events import AttemptFailed, Entry, StepInterrupted, StepSucceeded, UnitRecorded
from baton.core.log.folding.fold import fold
from baton.core.log.questions import Answer
from baton.core.log.state import State
from baton.tools.functions.define import document_of
from tests.kit.faults import Crash
from tests.kit.world import USER, World

SETTLE = "name: w\nnodes: {settle: {tool: accounts.settle, with: {parts: 5}}}\noutput: ${ctx.settle.output}"
Mishap = Callable[[Context], Any]


@dataclass
class Bank:
    """Books payments. `mishaps`: what befalls the unit of this name, before its result is known to the tool."""

    booked: list[tuple[str, str]] = field(default_factory=list)
    mishaps: dict[str, list[Any]] = field(default_factory=dict)
    seconds: float = 0.1

    async def book(self, name: str, key: str) -> str:
        await asyncio.sleep(self.seconds)
        self.booked.append((name, key))
        if self.mishaps.get(name):
            mishap = self.mishaps[name].pop(0)
            if isinstance(mishap, Exception):
                raise mishap
            await mishap()
        return f"{name} is booked"

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.booked]

    def open(self, world: World, **more: Any) -> None:
        @tool("accounts.settle", registry=world.registry, **more)
        async def settle(parts: int, context: Context) -> list[str]:
            texts = []
            for number in range(parts):
                name = f"part {number}"
                texts.append(await context.once(name, self.book, name, context.key(name)))
            return texts

        world.tools = world.registry.specs()

    def dies(self, world: World, node: str = "settle") -> Callable[[], Any]:
        async def die() -> None:
            (process,) = [one for (_, name), one in world.running.items() if name == node]
            process.is_dead = True
            raise Crash

        return die


async def begin(world: World, document: str = SETTLE) -> str:
    await world.service().register(document, json_only=False)
    view, _ = await world.service().start(document.split()[1], {}, "")
    return str(view["id"])


async def show(world: World, saga: str) -> dict[str, Any]:
    return await world.queries().show(saga)


def units(world: World, saga: str) -> list[UnitRecorded]:
    return [event for event in world.events(saga) if isinstance(event, UnitRecorded)]


def state_of(entries: list[Entry]) -> State:
    state = State()
    for entry in entries:
        state = fold(state, entry)
    return state


PARTS = [f"part {number}" for number in range(5)]


async def test_each_unit_is_an_entry_and_its_result_is_the_tools() -> None:
    world = World.start()
    bank = Bank()
    bank.open(world)
    saga = await begin(world)
    await world.settle()
    assert (await show(world, saga))["result"] == [f"{part} is booked" for part in PARTS]
    assert [one.name for one in units(world, saga)] == PARTS
    assert len({one.key for one in units(world, saga)}) == 5
    assert [len(entry.events) for entry in world.entries(saga)] == [1, 1, 1, 1, 1, 1, 2]
    assert not state_of(world.entries(saga)).journals, "it ends with its step"


@pytest.mark.parametrize("at", range(5))
async def test_a_worker_that_dies_in_a_unit_repeats_that_unit_alone_and_with_its_key(at: int) -> None:
    world = World.start()
    bank = Bank()
    bank.open(world)
    bank.mishaps[PARTS[at]] = [bank.dies(world)]
    saga = await begin(world)
    await world.settle()
    assert (await show(world, saga))["status"] == "completed"
    assert bank.names == [*PARTS[: at + 1], *PARTS[at:]]
    assert len(set(bank.booked)) == 5, "the same part has the same key"
    assert [one.name for one in units(world, saga)] == PARTS


async def test_a_step_that_comes_further_may_kill_any_number_of_workers_and_outlast_any_number() -> None:
    world = World.start(timeout_s=4)
    bank = Bank(seconds=1.5)
    bank.open(world, timeout="1m")
    for part in PARTS[:4]:
        bank.mishaps[part] = [bank.dies(world)]
    saga = await begin(world)
    await world.settle()
    assert (await show(world, saga))["status"] == "completed"
    assert bank.names.count(PARTS[4]) == 1

    other = World.start(timeout_s=4)
    bank = Bank(seconds=1.5)
    bank.open(other, timeout="1m")
    saga = await begin(other)
    await other.settle()
    assert (await show(other, saga))["status"] == "completed"
    assert any(isinstance(event, StepInterrupted) for event in other.events(saga))
    assert [one.name for one in units(other, saga)] == PARTS


async def test_what_a_unit_raises_is_not_recorded_and_the_next_attempt_goes_on_with_it() -> None:
    world = World.start()
    bank = Bank(mishaps={PARTS[2]: [StepFailure("service_unavailable", "the bank is closed")]})
    bank.open(world)
    saga = await begin(world)
    await world.settle()
    assert (await show(world, saga))["status"] == "completed"
    assert bank.names == [*PARTS[:3], *PARTS[2:]]
    assert [one.failure.code for one in world.events(saga) if isinstance(one, AttemptFailed)] == [
        "service_unavailable"
    ]


async def test_a_unit_that_is_tried_again_in_its_attempt_is_found_by_the_next_one() -> None:
    world, tries = World.start(), list[int]()

    async def pay() -> int:
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionError("the bank is closed")
        return len(tries)

    @tool("pays", registry=world.registry)
    async def pays(context: Context) -> int:
        try:
            paid: int = await context.once("pay", pay)
        except ConnectionError:
            paid = await context.once("pay", pay)
        if context.attempt == 1:
            raise StepFailure("service_unavailable", "the shop is closed")
        return paid

    world.tools = world.registry.specs()
    saga = await begin(world, "name: w\nnodes: {a: {tool: pays}}\noutput: ${ctx.a.output}")
    await world.settle()
    assert ((await show(world, saga))["result"], len(tries)) == (2, 2)
    assert [one.name for one in units(world, saga)] == ["pay"]


async def test_an_attempt_whose_time_is_over_keeps_the_units_that_are_done() -> None:
    world = World.start()
    bank = Bank(seconds=0.9)
    bank.open(world, timeout="2s")
    saga = await begin(world)
    await world.settle()
    assert (await show(world, saga))["status"] == "completed"
    assert [one.name for one in units(world, saga)] == PARTS
    assert sum(isinstance(event, AttemptFailed) for event in world.events(saga)) == 2


class Receipt(BaseModel):
    number: int
    at: datetime


async def test_results_come_back_as_the_types_of_the_hints() -> None:
    world = World.start()
    seen: list[Any] = []
    at = datetime(2026, 1, 2, tzinfo=UTC)

    def receipt() -> Receipt:
        return Receipt(number=1, at=at)

    async def pair() -> tuple[int, str]:
        return (1, "a")

    @tool("types", registry=world.registry)
    async def types(context: Context) -> None:
        seen.append(await context.once("receipt", receipt))
        seen.append(await context.once("pair", pair))
        seen.append(await context.once("any", lambda: (1, 2)))
        seen.append(await context.once("nothing", lambda: None))
        if len(seen) == 4:
            raise ConnectionError

    world.tools = world.registry.specs()
    saga = await begin(world, "name: w\nnodes: {a: {tool: types}}")
    await world.settle()
    assert (await show(world, saga))["status"] == "completed"
    assert seen == [Receipt(number=1, at=at), (1, "a"), [1, 2], None] * 2


async def test_the_second_unit_of_a_name_is_another_and_the_same_name_of_another_step_too() -> None:
    world = World.start()
    seen: list[int] = []

    async def draw() -> int:
        seen.append(len(seen))
        return seen[-1]

    @tool("draws", registry=world.registry)
    async def draws(context: Context) -> list[int]:
        return [await context.once("draw", draw) for _ in range(2)]

    world.tools = world.registry.specs()
    saga = await begin(world, "name: w\nnodes: {a: {tool: draws}, b: {tool: draws, after: a}}")
    await world.settle()
    assert [(one.node, one.name) for one in units(world, saga)] == [
        ("a", "draw"), ("a", "draw#2"), ("b", "draw"), ("b", "draw#2"),
    ]  # fmt: skip
    assert seen == [0, 1, 2, 3]


async def test_units_that_are_done_together_share_an_entry() -> None:
    world = World.start()

    async def work() -> None:
        await asyncio.sleep(1)

    @tool("together", registry=world.registry)
    async def together(context: Context) -> None:
        await asyncio.gather(*(context.once(f"{n}", work) for n in range(10)))

    world.tools = world.registry.specs()
    saga = await begin(
        world,
        "name: w\nnodes: {a: {tool: together}, b: {tool: together}, c: {tool: together, after: [a, b]}}",
    )
    await world.settle()
    entries = [
        entry for entry in world.entries(saga) if any(isinstance(one, UnitRecorded) for one in entry.events)
    ]
    assert len(units(world, saga)) == 30
    assert len(entries) <= 4


async def test_large_results_are_blobs_and_a_step_has_so_many_units_and_no_more() -> None:
    world = World.start(limits=Limits(inline_bytes=256))
    calls: list[int] = []
    lengths: list[int] = []

    @tool("many", registry=world.registry, timeout="10m")
    async def many(count: int, context: Context) -> None:
        for number in range(count):
            await context.once(f"{number}", calls.append, number)
        lengths.append(len(await context.once("text", lambda: "a" * 1_000)))
        if len(lengths) == 1:
            raise ConnectionError

    world.tools = world.registry.specs()
    saga = await begin(world, "name: w\nnodes: {a: {tool: many, with: {count: 10}}}")
    await world.settle()
    assert (await show(world, saga))["status"] == "completed"
    assert lengths == [1_000, 1_000]
    assert units(world, saga)[-1].output.ref
    assert calls == list(range(10))


async def test_a_unit_too_many_parks_the_saga_before_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("baton.runtime.steps.journal.MOST_UNITS", 5)
    world = World.start()
    bank = Bank()
    bank.open(world)
    saga = await begin(world, SETTLE.replace("parts: 5", "parts: 6"))
    await world.settle()
    view = await show(world, saga)
    assert view["status"] == "parked"
    assert "part 5" in view["failing"][0]["message"]
    assert view["failing"][0]["code"] == "tool_defect"
    assert bank.names == PARTS


async def test_a_result_that_is_no_json_and_a_name_that_is_none_are_defects() -> None:
    cases: list[tuple[str, Any]] = [
        ("a", lambda: {1: 2, "1": 3}),
        ("a", lambda: float("nan")),
        ("", lambda: 1),
        ("a\nb", lambda: 1),
        ("a", 1),
        ("password=hunter2hunter2", lambda: 1),
    ]
    for name, function in cases:
        world = World.start()

        @tool("wrong", registry=world.registry)
        async def wrong(context: Context) -> None:
            await context.once(name, function)  # noqa: B023  # it is called in this round

        world.tools = world.registry.specs()
        saga = await begin(world, "name: w\nnodes: {a: {tool: wrong}}")
        await world.settle()
        view = await show(world, saga)
        assert (view["status"], view["failing"][0]["code"]) == ("parked", "tool_defect"), name


async def test_a_saga_without_units_loads_nothing_of_them() -> None:
    import sys

    for name in ("baton.runtime.steps.journal", "baton.tools.journal"):
        sys.modules.pop(name, None)
    world = World.start()

    @tool("plain", registry=world.registry)
    async def plain(context: Context) -> None:
        """It has the context, and names no unit."""

    world.tools = world.registry.specs()
    saga = await begin(world, "name: w\nnodes: {a: {tool: plain}}")
    await world.settle()
    assert any(isinstance(event, StepSucceeded) for event in world.events(saga))
    assert not {"baton.runtime.steps.journal", "baton.tools.journal"} & sys.modules.keys()


async def test_what_an_attempt_leaves_behind_does_no_further_unit() -> None:
    world = World.start()
    acts: list[str] = []
    said: list[str] = []

    @tool("leaves", registry=world.registry)
    async def leaves(context: Context) -> None:
        async def late() -> None:
            await asyncio.sleep(5)
            try:
                await context.once("late", acts.append, "late")
            except StepFailure as failure:
                said.append(failure.code)

        await context.once("in time", acts.append, "in time")
        world.spawn(late())

    world.tools = world.registry.specs()
    saga = await begin(world, "name: w\nnodes: {a: {tool: leaves}, b: {after: a, wait: {for: 10s}}}")
    await world.settle()
    assert (await show(world, saga))["status"] == "completed"
    assert (acts, said) == (["in time"], ["cancelled"])


async def test_a_cancelled_saga_keeps_the_units_of_its_grace_and_stops_the_tool_after_it() -> None:
    world = World.start(timeout_s=60)
    bank = Bank(seconds=2)
    bank.open(world, timeout="1m")
    saga = await begin(world)
    await asyncio.sleep(3)
    await world.service().cancel(saga, "enough", 3_000)
    await world.settle()
    assert (await show(world, saga))["status"] == "cancelled"
    recorded = [one.name for one in units(world, saga)]
    assert recorded == PARTS[: len(recorded)]
    assert 2 <= len(recorded) < 5
    assert bank.names == recorded


LOOKS = "name: w\nnodes: {settle: {tool: accounts.settle, with: {parts: 5}}, after: {after: settle, wait: {signal: go}}}"


@pytest.mark.parametrize(("cut", "again"), [(1, 5), (4, 2), (7, 0)])
async def test_a_fork_keeps_the_units_before_its_cut(cut: int, again: int) -> None:
    """Before the step, in the middle of it, and behind it. Each unit that is done again has its key."""
    world = World.start()
    bank = Bank()
    bank.open(world)
    saga = await begin(world, LOOKS)
    await world.settle(20)
    await world.service().fork(saga, cut, "again", "f1")
    await world.settle(20)
    await world.service().signal(saga, "go", None, key="k")
    await world.settle()
    assert (await show(world, saga))["status"] == "completed"
    assert bank.names == [*PARTS, *PARTS[5 - again :]]
    assert len(set(bank.booked)) == 5


ROLLED = """
name: w
on_failure: rollback
nodes:
  settle: {tool: accounts.settle, with: {parts: 5}, compensate: {tool: accounts.unsettle, with: {parts: 5}, in_doubt: call}}
"""


@pytest.mark.parametrize(("at", "happened", "undone"), [(0, None, 0), (2, None, 1), (2, False, 0)])
async def test_a_step_that_fails_after_a_unit_is_undone_unless_it_says_that_it_has_not_happened(
    at: int, happened: bool | None, undone: int
) -> None:
    world = World.start()
    refusal = StepFailure("declined", "the bank says no", kind="permanent", happened=happened)
    bank = Bank(mishaps={PARTS[at]: [refusal]})
    bank.open(world)
    calls: list[int] = []

    @tool("accounts.unsettle", registry=world.registry)
    async def unsettle(parts: int, context: Context) -> None:
        for number in range(parts):
            await context.once(f"{number}", calls.append, number)

    world.tools = world.registry.specs()
    saga = await begin(world, ROLLED)
    await world.settle()
    assert (await show(world, saga))["status"] == ("rolled_back" if undone else "failed")
    assert calls == list(range(5)) * undone
    assert not state_of(world.entries(saga)).journals


async def test_arguments_that_a_person_changes_make_other_units() -> None:
    """The key of a unit hangs on the call, like that of its step."""
    world = World.start()
    bank = Bank(mishaps={PARTS[1]: [StepFailure("invalid_input", "which account?")]})
    bank.open(world)
    rule = "on_failure: {invalid_input: {question: input, message: Which?, may_change: [parts]}}"
    saga = await begin(world, SETTLE.replace("with: {parts: 5}", f"with: {{parts: 5}}, {rule}"))
    await world.settle(60)
    (question,) = (await show(world, saga))["questions"]
    await world.service().answer(saga, Answer(ask=question["id"], action="retry", arguments={"parts": 2}), "")
    await world.settle()
    assert (await show(world, saga))["status"] == "completed"
    assert bank.names == [PARTS[0], PARTS[1], PARTS[0], PARTS[1]]


async def test_units_are_seen_while_the_step_runs_and_afterwards() -> None:
    world = World.start(timeout_s=60)
    bank = Bank(seconds=2)
    bank.open(world, timeout="1m")
    saga = await begin(world)
    await asyncio.sleep(5)
    (active,) = (await show(world, saga))["active"]
    assert (active["node"], active["units"]) == ("settle", 2)
    (page,) = (await world.queries().explain(saga, "settle"))["iterations"]
    assert f"`{PARTS[1]}`" in page["text"]
    await world.settle()
    (page,) = (await world.queries().explain(saga, "settle"))["iterations"]
    assert [one["text"] for one in page["units"]] == [f'{part}: "{part} is booked"' for part in PARTS]
    assert [one["version"] for one in page["units"]] == [2, 3, 4, 5, 6]
    assert f"`{PARTS[4]}`" in page["text"]
    assert "units" not in str((await show(world, saga))["active"])


async def test_the_unit_of_an_operation_is_seen_with_the_operations_name() -> None:
    world = World.start()
    acts: list[str] = []

    @tool("charge", registry=world.registry)
    async def charge(context: Context) -> int:
        await context.once("reserve", acts.append, "reserve")
        return await context.once("take", len, acts)

    @workflow("sells", registry=world.registry)
    async def sells(context: WorkflowContext) -> int:
        return await context.step(charge) + await context.step(charge)

    world.tools = world.registry.specs()
    await world.service().register(json.dumps(document_of(world.registry["sells"])), json_only=False)
    saga = str((await world.service().start("sells", {}, ""))[0]["id"])
    await world.settle()
    view = await show(world, saga)
    assert (view["status"], view["result"]) == ("completed", 3)
    (page,) = (await world.queries().explain(saga, "sells"))["iterations"]
    assert [one["text"] for one in page["units"]] == [
        "charge: reserve: null", "charge: take: 1", "charge#2: reserve: null", "charge#2: take: 2",
    ]  # fmt: skip


async def test_a_pure_step_that_runs_ahead_of_the_log_finds_its_units() -> None:
    """Its next attempt begins with the end of another pure step, before that is written."""
    world = World.start(limits=replace(Limits(), concurrent_steps=1))
    acts: list[str] = []

    @tool("counts", effect="pure", registry=world.registry)
    async def counts(context: Context) -> int:
        await context.once("one", acts.append, "one")
        if context.attempt == 1:
            raise ConnectionError
        await context.once("two", acts.append, "two")
        return len(acts)

    @tool("slow", effect="pure", registry=world.registry)
    async def slow() -> None:
        await asyncio.sleep(3)

    world.tools = world.registry.specs()
    retry = "retry: {max_attempts: 3, base: 1s}"
    saga = await begin(world, f"name: w\nnodes: {{a: {{tool: counts, {retry}}}, b: {{tool: slow}}}}")
    await world.settle()
    assert (await show(world, saga))["status"] == "completed"
    assert acts == ["one", "two"]
    assert [one.name for one in units(world, saga)] == ["one", "two"]


# ---- money ---------------------------------------------------------------------------------------------------------------


@dataclass
class Metered:
    """A tool of three units, each of which costs 10 cents. `dies`: where its worker dies the first time."""

    dies: str
    begun: int = 0

    def open(self, world: World, **more: Any) -> None:
        async def pay(number: int, context: Context) -> int:
            context.spend("0.10")
            self.die(world, f"in {number}")
            return number

        @tool("meters", registry=world.registry, **more)
        async def meters(context: Context) -> int:
            self.begun += 1
            for number in range(3):
                await context.once(f"{number}", pay, number, context)
                self.die(world, f"after {number}")
            return self.begun

        world.tools = world.registry.specs()

    def die(self, world: World, where: str) -> None:
        if where == self.dies and self.begun == 1:
            (process,) = [one for (_, name), one in world.running.items() if name == "a"]
            process.is_dead = True
            raise Crash


@pytest.mark.parametrize("cost_usd", [None, "0.50"])
@pytest.mark.parametrize("budget", ["0", "5"])
@pytest.mark.parametrize(
    ("dies", "spent"), [("", 0.3), ("after 0", 0.3), ("after 1", 0.3), ("after 2", 0.3), ("in 1", 0.3)]
)
async def test_what_units_have_cost_counts_although_their_worker_dies(
    dies: str, spent: float, budget: str, cost_usd: str | None
) -> None:
    """A unit whose entry is not written is lost, as any attempt is, and is paid for again."""
    world = World.start(limits=Limits(user_day_budget_usd=budget, saga_budget_usd="2"))
    metered = Metered(dies)
    metered.open(world, cost_usd=cost_usd)
    saga = await begin(world, "name: w\nnodes: {a: {tool: meters}}")
    await world.settle()
    view = await show(world, saga)
    assert (view["status"], view["spent_usd"]) == ("completed", spent)
    assert [one.cost for one in units(world, saga)] == [100_000] * 3
    assert metered.begun == (2 if dies else 1)
    accounts = {account: sums for account, sums in world.budgets.spent().items() if account.user == USER}
    assert [*accounts.values()] == ([300_000] if budget != "0" else [])


async def test_an_attempt_pays_for_what_no_unit_of_it_has_paid_for() -> None:
    world = World.start()

    async def fails(context: Context) -> None:
        context.spend("0.04")
        await asyncio.sleep(0.1)
        raise StepFailure("service_unavailable", "not now")

    async def pays(context: Context) -> None:
        context.spend("0.02")

    @tool("both", registry=world.registry)
    async def both(context: Context) -> None:
        context.spend("0.01")
        await asyncio.gather(
            context.once("pays", pays, context), *map(fails, [context][context.attempt - 1 :])
        )
        context.spend("0.08")

    world.tools = world.registry.specs()
    saga = await begin(world, "name: w\nnodes: {a: {tool: both}}")
    await world.settle()
    paid = [
        one for one in world.events(saga) if isinstance(one, UnitRecorded | AttemptFailed | StepSucceeded)
    ]
    costs = [(type(one).__name__, one.cost) for one in paid if one.cost]
    assert costs == [("UnitRecorded", 70_000), ("StepSucceeded", 90_000)]
    assert (await show(world, saga))["spent_usd"] == 0.16
