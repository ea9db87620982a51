"""Units of a tool's work in a helper process: the worker keeps the journal, and outlives the process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from baton import Context, tool
from baton.adapters.clock import SystemClock
from baton.adapters.memory.people import MemoryNotices
from baton.adapters.memory.queues import MemoryDeadLetters, MemoryInvoker
from baton.adapters.memory.store import MemoryBlobs, MemoryStore
from baton.adapters.monty_sandbox import MontySandbox
from baton.core.limits import Limits
from baton.core.log.codec import decode_entry
from baton.core.log.events import AttemptFailed, UnitRecorded
from baton.core.money import assumed_in
from baton.ports import HeldMoney, HoldRequest, Message, SagaRef, StepContext, StepFailure
from baton.ports.process import Draft
from baton.runtime.engine.parts import Engine
from baton.runtime.engine.request import Caller
from baton.runtime.invocation.context import Invocation, inline
from baton.runtime.money.accounts import HeldByOthers
from baton.runtime.requests.service import Service
from baton.runtime.worker.worker import Delivery, Worker
from baton.testing.loop import CountedEntropy
from baton.tools.define import Registry
from baton.tools.perform import ToolPerformer
from baton.tools.processes.pool import Helpers
from baton.tools.standard import load_app
from tests.tools.test_processes import APP, LIMIT, call, run, until

NAMES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def helpers() -> Iterator[Helpers]:
    made = Helpers(APP, most=2, result_bytes=LIMIT, variables=dict)
    yield made
    run(made.close())


class Log:
    """A journal in memory. `refuses`: the unit that it does not take; `hangs`: that it has no answer about."""

    def __init__(self, known: Mapping[str, Any] | None = None, refuses: str = "", hangs: str = "") -> None:
        self.known, self.refuses, self.hangs = dict(known or {}), refuses, hangs
        self.names: list[str] = []
        self.asked = asyncio.Event()
        self.asked_for: list[HoldRequest] = []
        self.has_units = False

    def recorded(self) -> Mapping[str, Any]:
        return self.known

    def check(self, name: str) -> None:
        if name == self.refuses:
            raise StepFailure("tool_defect", "one unit too many")

    async def record(self, name: str, key: str, result: Any) -> None:
        if name == self.hangs:
            self.asked.set()
            await asyncio.get_running_loop().create_future()
        self.names.append(name)
        self.known[key] = result

    async def hold(self, asked: HoldRequest) -> HeldMoney:
        self.asked_for.append(asked)
        if asked.amount > 5_000_000:
            raise HeldByOthers("budget_saga", "others hold the rest")
        return HeldMoney(amount=asked.amount)

    def draft(self) -> AbstractContextManager[Draft]:
        return nullcontext(Draft())

    def context(self, key: str = "k") -> StepContext:
        return StepContext(saga="s", tenant="t", user="u", node="n", idempotency_key=key, units=lambda: self)


def lines(file: Path) -> list[str]:
    return [line.split()[0] for line in file.read_text().splitlines()]


def test_units_are_recorded_by_the_worker_and_their_results_come_back(
    helpers: Helpers, tmp_path: Path
) -> None:
    file = tmp_path / "done"

    async def both() -> None:
        log = Log()
        done = await call(helpers, "units", log.context(), names=NAMES, path=str(file))
        assert done == [f"{name} is done" for name in NAMES]
        assert log.names == NAMES
        assert await call(helpers, "units", log.context(), names=NAMES, path=str(file)) == done
        assert lines(file) == NAMES, "none is done again"
        await call(helpers, "units", log.context("another"), names=NAMES, path=str(file))
        assert lines(file) == NAMES * 2, "the units of another call are others"

    run(both())


def test_a_process_that_is_killed_in_a_unit_leaves_those_before(helpers: Helpers, tmp_path: Path) -> None:
    file = tmp_path / "done"

    async def both() -> None:
        log = Log()
        with pytest.raises(StepFailure) as caught:
            await call(helpers, "units", log.context(), names=NAMES, path=str(file), dies_at="b")
        assert caught.value.code == "tool_crashed"
        assert log.names == ["a"]
        await call(helpers, "units", log.context(), names=NAMES, path=str(file))
        assert lines(file) == ["a", "b", "b", "c"]

    run(both())


def test_a_unit_that_the_worker_refuses_is_not_done(helpers: Helpers, tmp_path: Path) -> None:
    file = tmp_path / "done"

    async def refused() -> None:
        log = Log(refuses="b")
        with pytest.raises(StepFailure) as caught:
            await call(helpers, "units", log.context(), names=NAMES, path=str(file))
        assert caught.value.code == "tool_defect"

    run(refused())
    assert lines(file) == ["a"]


def test_a_tool_that_waits_for_its_record_is_killed_and_does_nothing_more(
    helpers: Helpers, tmp_path: Path
) -> None:
    file = tmp_path / "done"

    async def stopped() -> None:
        log = Log(hangs="b")
        task = asyncio.create_task(call(helpers, "units", log.context(), names=NAMES, path=str(file)))
        await log.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert log.names == ["a"]

    run(stopped())
    assert lines(file) == ["a", "b"]


def test_a_thread_that_a_call_leaves_behind_has_no_journal(helpers: Helpers, tmp_path: Path) -> None:
    path = tmp_path / "go"

    async def left() -> None:
        log = Log()
        await call(helpers, "left_behind", log.context(), path=str(path))
        path.touch()
        await until((tmp_path / "go.said").exists)
        assert log.names == ["in time"]
        assert await call(helpers, "echo", value=1) == 1, "the process answers the next call"

    run(left())


def test_a_helper_process_has_its_worker_hold_money(helpers: Helpers) -> None:
    async def both() -> None:
        context = (log := Log()).context()
        await call(helpers, "held", context, usd="0.5", spends="0.2")
        assert [one.amount for one in log.asked_for] == [500_000]
        assert context.spent == [Decimal("0.2"), Decimal("-0.5")]
        assert (assumed_in(context.spent), [one.input for one in context.usage]) == (-500_000, [7])
        with pytest.raises(HeldByOthers, match="others hold"):
            await call(helpers, "held", context, usd="6")
        assert await call(helpers, "echo", value=1) == 1, "the process answers the next call"

    run(both())


def test_a_unit_with_too_large_a_result_fails_its_step(helpers: Helpers, tmp_path: Path) -> None:
    with pytest.raises(StepFailure) as caught:
        run(call(helpers, "units", Log().context(), names=NAMES, path=str(tmp_path / "f"), size=LIMIT + 200))
    assert caught.value.code == "result_too_large"


DOCUMENT = """
name: units
nodes:
  do:
    tool: plain.units
    with: {names: [a, b, c], path: '%s', dies_at: b, how: %s}
    retry: {max_attempts: 3, base: 10ms}
output: ${ctx.do.output}
"""


@pytest.mark.parametrize(("how", "code"), [("kill", "tool_crashed"), ("raise", "connection_failed")])
def test_a_saga_goes_on_after_the_last_unit_when_its_helper_process_is_killed(
    how: str, code: str, tmp_path: Path
) -> None:
    """The engine, on stores in memory, with a real process."""
    file = tmp_path / "done"

    async def whole() -> None:
        helpers = Helpers(APP, most=2, result_bytes=Limits().result_bytes, variables=dict)
        registry = load_app(APP)
        store, clock = MemoryStore(1), SystemClock()
        engine = Engine.on(
            store,
            MemoryBlobs(),
            clock,
            Limits(),
            entropy=CountedEntropy(),
            offload=inline,
            performer=ToolPerformer(registry, helpers),
            sandbox=MontySandbox(inline),
            tools=registry.specs(),
            notices=(MemoryNotices(),),
        )
        caller = Caller(tenant="t", user="u", request="r1")
        service = Service(engine, caller, clock.now() + 28_000)
        await service.register(DOCUMENT % (file, how), json_only=False)
        view, _ = await service.start("units", {}, key="")
        ref = SagaRef("t", view["id"])
        now = clock.now()
        body = msgspec.json.encode(Message(str(ref), 1)).decode()
        worker = Worker(engine, MemoryDeadLetters(), MemoryInvoker())
        await worker.handle([Delivery("0", body, 1)], Invocation("i1", now, now + 60_000))
        await helpers.close()
        events = [
            event for record in store.log.read_tail(ref, 0, 0) for event in decode_entry(record.data).events
        ]
        assert [one.name for one in events if isinstance(one, UnitRecorded)] == NAMES
        assert [one.failure.code for one in events if isinstance(one, AttemptFailed)] == [code]
        head = store.log.read_head(ref)
        assert head is not None
        assert head.status == "completed"

    run(whole())
    assert lines(file) == ["a", "b", "b", "c"]
    keys = set(file.read_text().splitlines())
    assert len(keys) == 3, "the unit that is repeated has the same key"


def test_a_plain_function_in_a_thread_records_its_units_in_the_loop_of_the_worker() -> None:
    registry = Registry()

    @tool("threaded", effect="pure", registry=registry)
    def threaded(context: Context) -> list[int]:
        return [context.once_sync(name, len, name) for name in ("a", "bb")]

    async def both() -> None:
        log, performer = Log(), ToolPerformer(registry)
        assert await performer.perform("threaded", {}, log.context()) == [1, 2]
        assert log.names == ["a", "bb"]
        assert await performer.perform("threaded", {}, log.context()) == [1, 2]
        assert log.names == ["a", "bb"]

    run(both())


async def _answers() -> int:
    return 1


def test_the_two_methods_are_not_mistaken_for_each_other() -> None:
    registry = Registry()

    @tool("blocks", registry=registry)
    async def blocks(context: Context) -> None:
        context.once_sync("a", len, "a")

    @tool("waits", effect="pure", registry=registry)
    def waits(context: Context) -> None:
        context.once_sync("a", _answers)  # type: ignore[unused-coroutine]  # that is the mistake

    async def both() -> None:
        for name in ("blocks", "waits"):
            log = Log()
            with pytest.raises(StepFailure) as caught:
                await ToolPerformer(registry).perform(name, {}, log.context())
            assert (caught.value.code, log.names) == ("tool_defect", [])

    run(both())


def test_a_context_outside_of_a_saga_has_no_journal() -> None:
    async def alone() -> None:
        with pytest.raises(StepFailure):
            await StepContext(saga="s", tenant="t", user="u", node="n").once("a", len, "a")

    run(alone())
