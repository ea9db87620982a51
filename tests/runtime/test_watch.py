"""A tool that holds the event loop: it is told of while it does, in log, metric and entry, and what stood still is not its doing."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
from msgspec.structs import replace

from baton import tool
from baton.adapters.clock import SystemMeter, thread_pulse
from baton.core.log.events import AttemptFailed, StepFailed, StepSucceeded
from baton.ports import StepContext
from baton.runtime.invocation.watch import (
    ASK,
    BLOCKED,
    WAIT,
    BlockedLoop,
    Metrics,
    Rounds,
    Watch,
    WatchedCall,
    because_of,
    to_log,
)
from tests.kit import emf
from tests.kit.blocking_tool import Holding
from tests.kit.corpus import start
from tests.kit.sentences import Says
from tests.kit.virtual_time import VirtualClock, run_virtual
from tests.kit.world import World

LAST = "on_failure: {any: [rollback]}\n"


async def hold(document: str, **options: Any) -> tuple[Holding, list[Any]]:
    """A saga of the document, with the tool `hold`: what the watchdog told, and the saga's events."""
    holding = Holding()
    world = World.start(watch=holding.watch, **{"timeout_s": 60, **options})
    holding.add_to(world.registry)

    @tool("plainly", registry=world.registry)
    def plainly() -> None:
        """Is not in the loop."""

    world.tools = world.registry.specs()
    saga = await start(world, f"name: w\n{document}", {}, "w")
    await world.settle()
    return holding, world.events(saga)


def of(events: list[Any], *kinds: type, node: str = "a") -> Any:
    (found,) = [event for event in events if type(event) in kinds and event.node == node]
    return found


# ---- the step's record


async def test_a_step_that_holds_the_loop_says_so_in_its_entry_and_its_tool_is_told_of_while_it_does() -> (
    None
):
    holding, events = await hold("nodes: {a: {tool: hold, with: {ms: 2000}}}")
    assert of(events, StepSucceeded).blocked_ms == 2_000
    (held,) = holding.told
    assert isinstance(held.call, WatchedCall)
    assert (held.call.tool, held.call.context.node) == ("hold", "a")
    assert held.ms == pytest.approx(1_000, abs=250)
    assert any("blocking_tool.py" in line and "block" in line for line in held.stack)


@pytest.mark.parametrize("inside", ["true", "false"])
async def test_a_time_limit_that_passes_meanwhile_fails_the_step_and_says_why_it_was_not_kept(
    inside: str, says: Says
) -> None:
    given = f"{{ms: 20000, then: await, inside: {inside}}}"
    _, events = await hold(f"{LAST}nodes: {{a: {{tool: hold, timeout: 3s, with: {given}}}}}")
    failed = of(events, StepFailed)
    assert failed.failure.code == "timeout"
    says.within(failed.failure.message, 2)
    assert failed.blocked_ms == (19_750 if inside == "true" else 20_000)  # since it was asked for a round


async def test_a_result_that_comes_after_the_time_limit_counts_as_it_does_of_one_that_is_not_stopped() -> (
    None
):
    _, events = await hold("nodes: {a: {tool: hold, timeout: 3s, with: {ms: 20000}}}")
    assert of(events, StepSucceeded).blocked_ms > 19_000


async def test_an_attempt_that_fails_for_another_reason_says_it_too() -> None:
    document = "nodes: {a: {tool: hold, with: {ms: 1500, then: fail}}}"
    _, events = await hold(document)
    failed = [event for event in events if isinstance(event, AttemptFailed)]
    assert failed
    assert all(event.blocked_ms > 1_000 for event in failed)


async def test_another_saga_that_runs_out_of_time_meanwhile_says_whose_doing_it_was(says: Says) -> None:
    # Of one saga as of several: they share the loop.
    waits = "b: {tool: work, timeout: 2s, with: {n: 1, seconds: 2.1}}"
    later = "c: {tool: work, with: {n: 1}}, a: {tool: hold, after: c, with: {ms: 5000}}"
    _, events = await hold(f"{LAST}nodes: {{{waits}, {later}}}")
    failed = of(events, StepFailed, AttemptFailed, node="b")
    says.within(failed.failure.message)
    assert failed.blocked_ms == 0


async def test_a_step_that_gives_the_loop_back_in_time_says_nothing() -> None:
    holding, events = await hold("nodes: {a: {tool: hold, with: {ms: 900}}}")
    assert holding.told == []
    assert of(events, StepSucceeded).blocked_ms == 0


# ---- who is watched


async def test_nothing_is_watched_before_an_async_tool_runs_nor_after_the_invocation() -> None:
    holding, _ = await hold("nodes: {a: {tool: plainly}}")
    assert holding.machine.begun == 0
    holding, _ = await hold("nodes: {a: {tool: hold, with: {ms: 1}}, b: {tool: hold, with: {ms: 2}}}")
    assert (holding.machine.begun, holding.machine.looks) == (1, [])


CONTEXT = StepContext(saga="s", tenant="t", user="u", node="n")


@pytest.mark.parametrize("is_its_own", [True, False])
async def test_a_callback_is_the_doing_of_the_tool_that_asked_for_it_and_of_no_tool_otherwise(
    is_its_own: bool, says: Says
) -> None:
    holding = Holding()
    context = replace(CONTEXT, blocked=[])
    loop = asyncio.get_running_loop()
    if not is_its_own:
        loop.call_later(1, holding.machine.hold, 2_000)
    with holding.watch.over("waits", context):
        if is_its_own:
            loop.call_later(1, holding.machine.hold, 2_000)
        await asyncio.sleep(2)
    holding.watch.rest()
    (held,) = holding.told
    assert (held.call is not None) is is_its_own
    assert [(one.tool, one.is_own) for one in context.blocked] == [
        ("waits" if is_its_own else "", is_its_own)
    ]
    says(because_of(context.blocked))


# ---- when it counts


def looks(*seen: tuple[int, int, bool]) -> list[str]:
    """What a watchdog with a limit of 1,000 ms that looks every 250 says of these: time, processor time, came round."""
    rounds = Rounds(1_000, 250, 0, 0)
    return [rounds.look(now, worked, came_round=came) for now, worked, came in seen]


def test_a_loop_that_comes_round_is_asked_again_and_again() -> None:
    assert looks((250, 0, True), (500, 0, True), (750, 0, True)) == [ASK] * 3


def test_one_that_does_not_is_blocked_once_for_each_time() -> None:
    seen = [(at, 0, at in (250, 2_000)) for at in range(250, 3_500, 250)]
    assert looks(*seen) == [ASK, WAIT, WAIT, WAIT, BLOCKED, WAIT, WAIT, ASK, WAIT, WAIT, WAIT, BLOCKED, WAIT]


def test_a_process_that_stood_still_as_a_whole_has_blocked_nothing() -> None:
    assert looks((250, 5, True), (60_500, 8, False), (60_750, 8, False)) == [ASK, WAIT, WAIT]


def test_what_it_stood_still_is_not_part_of_what_it_was_blocked() -> None:
    seen = [(250, 0, True), (500, 0, False), (60_750, 0, False), (61_000, 0, False), (61_250, 0, False)]
    assert looks(*seen) == [ASK, WAIT, WAIT, WAIT, BLOCKED]


def test_a_call_that_keeps_the_watchdog_itself_from_looking_has_blocked_the_loop() -> None:
    # Such as a regular expression: it holds the interpreter, and a slow processor works for it.
    assert looks((250, 5, True), (10_250, 1_400, False)) == [ASK, BLOCKED]


def test_it_has_also_where_the_loop_had_come_round_before_the_call_began() -> None:
    assert looks((250, 5, True), (10_250, 1_400, True), (10_500, 1_410, True)) == [ASK, BLOCKED, ASK]
    assert looks((250, 5, True), (10_250, 6, True)) == [ASK, ASK]


# ---- how it is told


def test_it_is_told_by_one_line_of_the_log_and_a_metric_that_are_written_while_it_lasts(
    caplog: pytest.LogCaptureFixture, says: Says
) -> None:
    lines: list[str] = []
    holding = Holding()
    holding.watch = Watch(
        1_000, holding.machine, holding.machine.pulse, to_log(Metrics(lines.append, "f"), VirtualClock())
    )
    during: list[int] = []

    async def main() -> None:
        world = World.start(watch=holding.watch, timeout_s=60)

        @tool("hog", registry=world.registry)
        async def hog() -> None:
            holding.machine.hold(5_000)
            during.append(len(lines))

        world.tools = world.registry.specs()
        await start(world, "name: w\nnodes: {a: {tool: hog}}", {}, "w")
        await world.settle()

    with caplog.at_level(logging.WARNING, "baton.worker"):
        run_virtual(main())
    assert during == [1]
    found = emf.read(lines)
    assert (
        emf.total(found, "LoopBlocked", function="f", tool="hog")
        == emf.total(found, "LoopBlocked", function="f")
        == 1
    )
    (record,) = [one for one in caplog.records if "blocks the event loop" in one.getMessage()]
    says.within(record.getMessage())
    assert "plain `def`" in record.getMessage()
    said = {name: getattr(record, name) for name in ("tool", "node", "attempt")}
    assert said == {"tool": "hog", "node": "a", "attempt": 1}


def test_what_no_tool_does_is_told_without_one(caplog: pytest.LogCaptureFixture, says: Says) -> None:
    lines: list[str] = []

    async def main() -> None:
        to_log(Metrics(lines.append, "f"), VirtualClock())(BlockedLoop(None, 1_000, []))

    with caplog.at_level(logging.WARNING, "baton.worker"):
        run_virtual(main())
    says.within(caplog.records[0].getMessage())
    assert emf.total(emf.read(lines), "LoopBlocked", function="f") == 1


# ---- for real


def test_a_real_thread_looks_at_a_real_loop() -> None:
    """The tool blocks until it is told of, so that no machine is too slow for it."""
    told, held = threading.Event(), list[BlockedLoop]()

    def tell(one: BlockedLoop) -> None:
        held.append(one)
        told.set()

    async def main() -> None:
        watch = Watch(20, SystemMeter(), thread_pulse, tell)
        with watch.over("hog", CONTEXT):
            assert told.wait(30)
        watch.rest()

    asyncio.run(main())
    assert held[0].call is not None
    assert (held[0].call.tool, held[0].ms >= 20) == ("hog", True)
