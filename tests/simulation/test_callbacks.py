"""Callbacks race against the end of their time, heartbeats against silence, and completions against each other: one counts."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from baton.core.log.events import AttemptFailed, CallbackHeartbeat, SignalReceived, StepFailed, StepSucceeded
from baton.core.log.folding.received import CallbackReport
from baton.errors import CallbackOver, NotAllowedNow
from tests.kit.corpus import start
from tests.kit.faults import FREEZE, HANG, STALL
from tests.kit.process import HANGS, REFUSES, Outage
from tests.kit.schedule import Schedule, trial
from tests.kit.virtual_time import VirtualClock, run_virtual
from tests.kit.world import World

pytestmark = pytest.mark.simulation

DOCUMENT = """
name: w
on_failure: {any: fail}
retry: none
nodes:
  job: {tool: hand_over, with: {job: j}, callback: {timeout: 30s, heartbeat: 10s}, catch: late}
  late: {value: '${last_error.code}'}
output: {job: '${ctx.job.output?}', late: '${ctx.late.output?}'}
"""


def said(at_s: float, *what: CallbackReport) -> tuple[list[CallbackReport], dict[str, Any], list[Any]]:
    """What was accepted of what is said all at once, `at_s` after the handover; the output; and the events of the step."""

    async def main() -> tuple[list[CallbackReport], dict[str, Any], list[Any]]:
        world = World.start()
        books = world.books
        world.slow["append"] = 0.02
        saga = await start(world, DOCUMENT, {}, "w")
        while not books.jobs.all:
            await asyncio.sleep(0.05)
        while not any("until" in one for one in (await world.queries().show(saga))["active"]):
            await asyncio.sleep(0.05)
        opened = world.entries(saga)[-1].at
        (token,) = books.jobs.all
        await asyncio.sleep(at_s - (VirtualClock().now() - opened) / 1_000)

        async def say(one: CallbackReport) -> CallbackReport | None:
            try:
                await world.service().callback(token, one)
            except (CallbackOver, NotAllowedNow):
                return None
            return one

        accepted = [one for one in await asyncio.gather(*map(say, what)) if one is not None]
        await world.settle()
        view = await world.queries().show(saga)
        assert view["status"] == "completed"
        kinds = StepSucceeded | StepFailed | AttemptFailed | SignalReceived | CallbackHeartbeat
        return accepted, view["result"], [one for one in world.events(saga) if isinstance(one, kinds)]

    return run_virtual(main())


DONE, BEAT = CallbackReport(status="success", output="done"), CallbackReport(status="heartbeat")
SILENT_S = 13  # the interval, and how far clocks may differ


def test_of_a_callback_and_the_end_of_its_time_in_one_instant_one_wins() -> None:
    ends: Counter[str] = Counter()
    for step in range(-10, 10):
        accepted, output, events = said(SILENT_S + step / 100, DONE)
        expected = ("done", None) if accepted else (None, "heartbeat_timeout")
        assert (output["job"], output["late"]) == expected, step
        assert sum(isinstance(one, StepSucceeded | StepFailed) for one in events) == 1
        assert sum(isinstance(one, SignalReceived) for one in events) == len(accepted)
        ends[str(output["job"])] += 1
    assert len(ends) == 2, "the race went only one way"


def test_of_a_heartbeat_and_silence_in_one_instant_one_wins_and_says_so() -> None:
    heard = Counter[bool]()
    for step in range(-10, 10):
        accepted, output, events = said(SILENT_S + step / 100, BEAT)
        beats = [one for one in events if isinstance(one, CallbackHeartbeat)]
        assert len(beats) == len(accepted) <= 1
        assert output["late"] == "heartbeat_timeout", "and then it was silent"
        (failed,) = (one for one in events if isinstance(one, StepFailed))
        assert not beats or failed.failure.at - beats[0].at >= 1_000 * SILENT_S, (
            "a heartbeat that was heard counts"
        )
        heard[bool(accepted)] += 1
    assert len(heard) == 2, "the race went only one way"


def test_of_fifty_completions_at_once_one_counts_and_its_repetitions_are_answered_alike() -> None:
    failed = CallbackReport(status="failure", code="business_rule")
    accepted, output, events = said(3, *([DONE, failed] * 25))
    assert len({one.status for one in accepted}) == 1
    assert len(accepted) == 25
    assert sum(isinstance(one, SignalReceived) for one in events) == 1
    assert (output["job"] == "done") is (accepted[0] == DONE)


def test_heartbeats_are_written_at_most_once_in_half_an_interval() -> None:
    accepted, _, events = said(6, *([BEAT] * 30))
    assert len(accepted) == 30, "each is answered"
    assert sum(isinstance(one, CallbackHeartbeat) for one in events) == 1
    accepted, _, events = said(4, *([BEAT] * 3))
    assert (len(accepted), sum(isinstance(one, CallbackHeartbeat) for one in events)) == (3, 0)


@pytest.mark.parametrize("every_s", [4.9, 9])
def test_work_that_is_heard_in_time_is_never_taken_for_silent_however_clocks_differ(
    every_s: float,
) -> None:
    async def main(seed: int) -> list[Any]:
        world = World.start(seed=seed, skew_ms=3_000)
        books = world.books
        saga = await start(world, DOCUMENT.replace("30s", "5m"), {}, "w")
        while not books.jobs.all:
            await asyncio.sleep(0.05)
        (token,) = books.jobs.all
        for _ in range(8):
            await asyncio.sleep(every_s)
            await world.service().callback(token, BEAT)
        await world.service().callback(token, DONE)
        await world.settle()
        assert [one for one in world.events(saga) if isinstance(one, CallbackHeartbeat)]
        return [(await world.queries().show(saga))["result"]["job"]]

    assert {tuple(run_virtual(main(seed))) for seed in range(12)} == {("done",)}


NO_BUCKET = Schedule(
    "handed",
    517,
    skew_ms=1_000,
    is_warm=True,
    late_s=14,
    killed_late_s=0.9,
    faults=(),
)
"""Workers that know the program of a saga, and a bucket that gives it to no new process."""


@pytest.mark.parametrize("how", [REFUSES, HANGS])
def test_work_that_gives_signs_of_life_while_the_bucket_is_out_of_order_uses_up_no_attempt(how: str) -> None:
    found = trial(replace(NO_BUCKET, outages=(Outage("s3", how, 10, 190),)))
    assert found.broken == ()


CLOCK_STOOD_STILL = Schedule(
    "handed", 2161, faults=(("write", 15, FREEZE), ("write", 19, STALL), ("read", 28, HANG))
)
"""The process that notes a handover stands still before that, and its clock with it, for longer than the work may be silent."""


def test_work_whose_handover_is_dated_by_a_clock_that_stood_still_may_be_taken_for_silent_and_is_tried_again() -> (
    None
):
    found = trial(CLOCK_STOOD_STILL)
    assert found.broken == ()
    assert "attempt_failed" in found.verdict.kinds
