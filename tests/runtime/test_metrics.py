"""Figures of attempts reach standard output as lines that CloudWatch reads, once per invocation, and harm no step."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from baton import tool
from baton.core.log import events as ev
from baton.core.models.usage import Usage
from baton.core.read.metrics import METRICS
from baton.ports import StepFailure
from baton.runtime.invocation.watch import Metrics
from tests.core.build import T0
from tests.core.test_metrics import attempt_failed, chosen, failure, step_failed, succeeded
from tests.kit import emf
from tests.kit.corpus import start
from tests.kit.sentences import Says
from tests.kit.world import World

FLAKY = "name: w\nnodes: {a: {tool: shaky}, b: {tool: work, with: {n: 1}, after: a}}"


def add_flaky(world: World, failures: int) -> None:
    """A tool that is not available so many times."""
    left = [failures]

    @tool("shaky", registry=world.registry)
    async def shaky() -> dict[str, Any]:
        if left[0]:
            left[0] -= 1
            raise StepFailure("service_unavailable", "not now")
        return {}

    world.tools = world.registry.specs()


async def test_retries_of_a_real_saga_are_counted_once() -> None:
    lines: list[str] = []
    world = World.start(metrics=Metrics(lines.append, "f"))
    add_flaky(world, 2)
    saga = await start(world, FLAKY, {}, "w")
    await world.settle()
    assert (await world.queries().show(saga))["status"] == "completed"
    found = emf.read(lines)
    told = {
        name: emf.total(found, name, function="f", tool="shaky")
        for name in ("Attempts", "Retries", "Succeeded", "AttemptsUntilSuccess")
    }
    assert told == {"Attempts": 3, "Retries": 2, "Succeeded": 1, "AttemptsUntilSuccess": 3}
    assert emf.total(found, "Errors", function="f", tool="shaky", code="service_unavailable") == 2
    assert emf.total(found, "PauseTime", function="f", workflow="w") > 0
    assert not any(("tool", "work") in where for _, where in found), "it is quiet, and waits for its minute"


async def test_a_quiet_tool_is_told_of_by_the_first_invocation_after_its_minute() -> None:
    lines: list[str] = []
    world = World.start(metrics=Metrics(lines.append, "f"))
    document = "name: w\nnodes: {b: {tool: work, with: {n: 1}}}"
    await start(world, document, {}, "w")
    await world.settle()
    assert lines == []
    await asyncio.sleep(60)
    await world.service().start("w", {}, "key-2")
    await world.settle()
    assert emf.total(emf.read(lines), "Attempts", function="f", tool="work") == 2


def test_every_metric_of_the_table_is_written_under_its_sets_of_dimensions() -> None:
    """The table is what docs/metrics.md shows."""
    written: list[str] = []
    metrics = Metrics(written.append, "w", counts_ends=True)
    failed = replace(step_failed(failure(2, "timeout"), 2), usage=(Usage(model="m", input=1, output=1),))
    metrics.heard(
        "dinner",
        (
            attempt_failed(1),
            *(chosen(strategy, 5) for strategy in ("retry", "replan", "ask_user", "escalate")),
            succeeded(2),
            *(replace(succeeded(), cache=cache) for cache in (ev.HIT, ev.MISS)),
            failed,
            ev.StepHeld(node="a", breaker="b", at=T0, until=T0 + 5),
            ev.Parked(code="escalated", message="m"),
            ev.SagaEnded(status="rolled_back", undone=ev.Undone()),
            ev.SagaEnded(status="rollback_failed", undone=ev.Undone()),
            ev.SagaEnded(status="completed"),
        ),
        T0,
    )
    metrics.flush(T0)
    metrics.blocked("slow", T0)
    metrics.opened("bank", T0)
    metrics.dead_letters(1, 1, 1, T0)
    metrics.ticks("dinner", dict.fromkeys(("TicksSkipped", "TicksMissed", "TicksRefused"), 1), T0)
    metrics.events(dict.fromkeys(("EventsUnmatched", "EventsUnreached", "EventsRefused"), 1), T0)
    found: dict[str, set[tuple[str, ...]]] = {}
    for metric, where in emf.read(written):
        found.setdefault(metric, set()).add(tuple(name for name, _ in where))
    assert found == {name: set(sets) for name, (_, sets, _) in METRICS.items()}


def test_standard_output_that_is_gone_stops_no_step() -> None:
    def gone(line: str) -> None:
        raise BrokenPipeError

    metrics = Metrics(gone)
    metrics.heard("w", (succeeded(2),), 0)
    metrics.flush(0)


async def test_figures_that_fail_cost_no_invocation(caplog: pytest.LogCaptureFixture, says: Says) -> None:
    def broken(line: str) -> None:
        raise ValueError("no figure has this form")

    world = World.start(metrics=Metrics(broken, "f"))
    add_flaky(world, 1)
    saga = await start(world, FLAKY, {}, "w")
    await world.settle()
    assert (await world.queries().show(saga))["status"] == "completed"
    says.within(caplog.text)


def test_without_somewhere_to_write_nothing_is_kept() -> None:
    metrics = Metrics()
    metrics.heard("w", (succeeded(2),), 0)
    metrics.flush(0)
