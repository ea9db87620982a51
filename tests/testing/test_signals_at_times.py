"""Signals that a test sends at moments of its own choice."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from baton import tool
from baton.errors import InvalidInput, NotAllowedNow
from baton.testing import run
from baton.tools.define import Registry
from tests.kit.sentences import Says

TOOLS = Registry()


@tool("shop.pack", registry=TOOLS, timeout="10m")
async def pack(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "packed"


ASK = """
name: ask
nodes:
  ask: {wait: {signal: approved, timeout: 2h}}
output: "${ctx.ask.output}"
"""
TWICE = """
name: twice
nodes:
  first: {wait: {signal: approved}}
  pause: {wait: {for: 1d}, after: first}
  second: {wait: {signal: approved}, after: pause}
output: ["${ctx.first.output}", "${ctx.second.output}"]
"""


@pytest.mark.parametrize("at", ["90m", 5_400, 5_400.0, timedelta(minutes=90)])
def test_a_signal_arrives_so_long_after_the_start(at: Any) -> None:
    result = run(ASK, signals=[(at, "approved", {"by": "Ann"})])
    assert result.output == {"by": "Ann"}
    assert result.took_s == pytest.approx(5_400, abs=1)


def test_a_signal_can_arrive_at_the_start() -> None:
    result = run(ASK, signals=[(0, "approved", 1)])
    assert result.output == 1
    assert result.took_s == pytest.approx(0, abs=1)


def test_a_signal_that_comes_after_the_end_of_its_wait_is_refused_as_the_api_refuses_it(says: Says) -> None:
    with says.raised(NotAllowedNow) as refused:
        run(ASK, signals=[("3h", "approved", 1)])
    says(refused.value.__notes__)


def test_signals_are_sent_in_the_order_of_their_times_and_kept_until_they_are_waited_for() -> None:
    result = run(TWICE, signals=[("2h", "approved", "second"), ("1h", "approved", "first")])
    assert result.output == ["first", "second"]
    assert result.took_s == pytest.approx(3_600 + 86_400, abs=1)


def test_a_signal_reaches_a_saga_whose_step_runs_just_then() -> None:
    document = """
name: busy
nodes:
  pack: {tool: shop.pack, with: {seconds: 40}}
  ask: {wait: {signal: approved, timeout: 10s}}
"""
    result = run(document, tools=TOOLS, signals=[("8s", "approved", "in time")])
    assert result.steps["ask"].output == "in time"
    assert 8 <= result.steps["ask"].ended_s < 50


def test_a_signal_reaches_the_child_that_waits_for_it() -> None:
    parent = "name: parent\nnodes: {inner: {workflow: ask}}\noutput: '${ctx.inner.output}'\n"
    assert run(parent, workflows=[ASK], signals=[("1h", "approved", "yes")]).output == "yes"


@pytest.mark.parametrize("times", [("1h", "3h"), ("10m", "1h")])
def test_a_signal_for_a_child_that_has_ended_or_not_begun_is_refused_for_that(
    times: tuple[str, ...], says: Says
) -> None:
    parent = (
        "name: parent\nnodes: {pause: {wait: {for: 30m}}, inner: {workflow: ask, after: pause}, "
        "last: {wait: {for: 5h}, after: inner}}"
    )
    with says.raised(NotAllowedNow) as refused:
        run(parent, workflows=[ASK], signals=[(at, "approved", "yes") for at in times])
    says(refused.value.__notes__[0])


def test_a_payload_that_no_wait_takes_is_refused_in_the_words_of_the_api(says: Says) -> None:
    document = """
name: ask
nodes:
  ask: {wait: {signal: approved}, output_schema: {type: object, required: [by]}}
"""
    with says.raised(InvalidInput) as no:
        run(document, signals=[("1h", "approved", {"who": "Ann"})])
    says(no.value.__notes__[0])


@pytest.mark.parametrize(
    "signals",
    [
        [("1h", "aproved", 1)],
        [("soon", "approved", 1)],
        [("1h", "approved", 1), (-1, "approved", 1)],
        [(timedelta(days=-1), "approved", 1)],
        [("1h", "approved")],
        ["approved"],
        ("1h", "approved", 1),
        "approved",
        [("1h", "approved", {1})],
    ],
)
def test_what_is_no_signal_is_refused_before_the_run(signals: Any, says: Says) -> None:
    with says.raised(ValueError):
        run(ASK, signals=signals)


def test_the_start_itself_can_be_written_as_any_duration() -> None:
    assert [run(ASK, signals=[(at, "approved", 1)]).took_s for at in (0, "0s", "00 ms")] == [0, 0, 0]
