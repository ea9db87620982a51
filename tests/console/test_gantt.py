"""Where the time of a saga went: bars from the log, shares of the whole, what held it up."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.console.timeline import (
    BREAKER,
    ELSEWHERE,
    HANDS_OVER,
    MONEY,
    OVER,
    PAUSES,
    PERSON,
    RUNS,
    STARTS,
    WAITS,
    WRITES,
    Gantt,
    chart,
    gantt,
)

T = 1_767_225_600_000


def entry(
    version: int, at: int, *events: dict[str, Any], cold: bool = False, invocation: str = "i1"
) -> dict[str, Any]:
    return {
        "version": version,
        "at": T + at,
        "events": events,
        "epoch": 0 if any(one["kind"] == "saga_started" for one in events) else 1,
        "cold": cold,
        "invocation": invocation,
    }


def ran(node: str, begin: int, end: int, kind: str = "step_succeeded", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "node": node, "iteration": [], "started_at": T + begin, "ended_at": T + end, **more}


def about(kind: str, node: str) -> dict[str, Any]:
    return {"kind": kind, "node": node, "iteration": []}


def of(*entries: dict[str, Any], now: int = 0, is_over: bool = True) -> Gantt:
    found = gantt(entries, T + now, is_over=is_over)
    assert found is not None
    return found


def shares(found: Gantt) -> dict[str, int]:
    return {one.kind: one.ms for one in found.shares}


END = {"kind": "saga_ended"}


def test_what_ran_what_waited_and_what_was_handed_over_is_the_whole_time() -> None:
    found = of(
        entry(1, 0, {"kind": "saga_started"}),
        entry(2, 1_000, ran("a", 200, 1_000), about("question_opened", "b"), cold=True),
        entry(3, 5_000, about("question_closed", "b")),
        entry(4, 6_000, ran("c", 5_500, 6_000), END, invocation="i2"),
    )
    assert shares(found) == {PERSON: 4_000, RUNS: 1_300, HANDS_OVER: 500, STARTS: 200}
    assert sum(one.percent for one in found.shares) == pytest.approx(100)
    assert [bar.lane for bar in found.critical] == ["a", "b", "c"]
    assert (found.longest, found.cold, found.invocations) == ("b", 1, 2)
    assert "People took most" in found.help
    assert not found.is_idle


def test_items_that_wait_have_bars_of_their_own_and_end_with_their_node() -> None:
    """Of three questions of a map the first is answered, and then another ends the node."""

    def item(kind: str, number: int) -> dict[str, Any]:
        return {**about(kind, "m"), "item": str(number)}

    found = of(
        entry(1, 0, {"kind": "saga_started"}),
        entry(2, 0, about("map_began", "m"), *(item("question_opened", number) for number in range(3))),
        entry(3, 1_000, item("question_closed", 1)),
        entry(4, 4_000, item("question_closed", 0), about("map_closed", "m"), END),
    )
    assert [(bar.begin - T, bar.end - T) for bar in found.lanes["m"]] == [(0, 1_000), (0, 4_000), (0, 4_000)]
    assert shares(found) == {PERSON: 4_000}


def test_a_question_about_a_failed_step_and_an_incident_are_peoples_time() -> None:
    asks = {**about("strategy_chosen", "a"), "ask": {"id": "x"}}
    found = of(
        entry(1, 0, {"kind": "saga_started"}),
        entry(2, 1_000, ran("a", 0, 1_000, "attempt_failed"), asks),
        entry(3, 9_000, about("question_closed", "a"), invocation="i2"),
        entry(4, 10_000, ran("a", 9_000, 10_000, "attempt_failed"), asks, {"kind": "parked", "node": "a"}),
        entry(5, 15_000, about("question_closed", "a"), about("step_failed", "a"), END, invocation="i3"),
    )
    assert shares(found) == {PERSON: 13_000, RUNS: 2_000}


def test_a_saga_that_is_parked_waits_for_people_until_it_is_resumed() -> None:
    found = of(
        entry(1, 0, {"kind": "saga_started"}),
        entry(2, 1_000, {"kind": "parked", "node": ""}),
        entry(3, 5_000, {"kind": "resumed"}),
        entry(4, 6_000, ran("a", 5_000, 6_000), END, invocation="i2"),
    )
    assert shares(found) == {PERSON: 4_000, RUNS: 1_000, HANDS_OVER: 1_000}


@pytest.mark.parametrize("kind", ["signal_received", "undo_began", "forked"])
def test_the_time_after_its_end_is_not_a_hand_over_of_a_saga_that_is_rolled_back_or_forked(kind: str) -> None:
    asks = {**about("strategy_chosen", "a"), "ask": {"id": "x"}}
    found = of(
        entry(1, 0, {"kind": "saga_started"}),
        entry(2, 1_000, ran("a", 0, 1_000), END, {"kind": "notices_sent"}),
        entry(3, 61_000, {"kind": kind}, {"kind": "undo_began"}),
        entry(4, 62_000, ran("a", 61_000, 62_000, "attempt_failed"), asks, invocation="i2"),
        entry(5, 90_000, about("question_closed", "a"), END, invocation="i3"),
    )
    assert shares(found) == {OVER: 60_000, PERSON: 28_000, RUNS: 2_000}
    assert "rolled back" in found.help


def test_of_branches_beside_each_other_the_one_that_ended_last_is_critical() -> None:
    found = of(
        entry(1, 0, {"kind": "saga_started"}),
        entry(2, 1_000, ran("quick", 0, 400), ran("slow", 0, 1_000)),
        entry(3, 2_000, ran("last", 1_000, 2_000), END),
    )
    assert [bar.lane for bar in found.critical] == ["slow", "last"]
    assert [name for name, bars in found.lanes.items() if bars[0].critical] == ["slow", "last"]
    assert shares(found) == {RUNS: 2_000}


def test_pauses_of_more_than_a_fifth_are_marked() -> None:
    found = of(entry(1, 0, {"kind": "saga_started"}), entry(2, 1_000, ran("a", 700, 1_000), END))
    assert found.is_idle
    assert found.idle == pytest.approx(70)
    assert "WorkerConcurrency" in found.help
    assert [(bar.kind, bar.begin - T, bar.end - T, bar.version) for bar in found.lanes[""]] == [
        (HANDS_OVER, 0, 700, 2)
    ]


def test_idle_time_is_a_checkpoint_within_an_invocation_and_a_pause_where_a_retry_is_due() -> None:
    chosen = {**about("strategy_chosen", "a"), "due_at": T + 600}
    found = of(
        entry(1, 0, {"kind": "saga_started"}),
        entry(2, 100, ran("a", 0, 100, "attempt_failed"), chosen),
        entry(3, 800, ran("a", 600, 700)),
        entry(4, 1_000, ran("b", 850, 1_000), END),
    )
    assert shares(found) == {PAUSES: 500, RUNS: 350, WRITES: 150}
    assert [bar.kind for bar in found.lanes["a"]] == [RUNS, PAUSES, RUNS]


@pytest.mark.parametrize(
    ("opens", "closes", "kind"),
    [
        ("wait_opened", "wait_closed", WAITS),
        ("child_opened", "child_closed", ELSEWHERE),
        ("callback_opened", "step_succeeded", ELSEWHERE),
        ("step_held", "attempt_failed", BREAKER),
    ],
)
def test_each_kind_of_waiting_has_a_bar(opens: str, closes: str, kind: str) -> None:
    found = of(entry(1, 0, about(opens, "a")), entry(2, 500, about(closes, "a")), entry(3, 500, END))
    assert [(bar.kind, bar.begin - T, bar.end - T, bar.version) for bar in found.lanes["a"]] == [
        (kind, 0, 500, 2)
    ]


def test_waiting_for_money_has_a_bar_and_advice_of_its_own() -> None:
    held = {**about("step_held", "a"), "limit": "budget_saga"}
    found = of(entry(1, 0, held), entry(2, 500, held), entry(3, 900, ran("a", 800, 900)), entry(4, 900, END))
    assert [(bar.kind, bar.begin - T, bar.end - T) for bar in found.lanes["a"]] == [
        (MONEY, 0, 900),
        (RUNS, 800, 900),
    ]
    assert shares(found) == {MONEY: 800, RUNS: 100}
    assert "raise the limit" in found.help


def test_what_is_open_goes_on_until_now_and_an_ended_saga_leaves_nothing_open() -> None:
    opened = entry(1, 0, about("wait_opened", "a"))
    (bar,) = of(opened, now=9_000, is_over=False).lanes["a"]
    assert (bar.end - T, bar.version, "still open" in bar.words) == (9_000, 0, True)
    (bar,) = of(opened, entry(2, 300, END), now=9_000).lanes["a"]
    assert (bar.end - T, bar.version) == (300, 2)


def test_clocks_that_differ_make_no_bar_that_ends_before_it_begins() -> None:
    found = of(entry(1, 0, {"kind": "saga_started"}), entry(2, 100, ran("a", 3_100, 90), END))
    assert all(bar.begin <= bar.end for bars in found.lanes.values() for bar in bars)


def test_a_log_without_times_says_nothing() -> None:
    assert gantt([], T, is_over=False) is None


EVENTS = st.builds(
    lambda kind, node, begin, end: {
        "kind": kind,
        "node": node,
        "iteration": [],
        "started_at": T + begin,
        "ended_at": T + end,
    },
    st.sampled_from(
        [
            "step_succeeded",
            "attempt_failed",
            "wait_opened",
            "wait_closed",
            "question_opened",
            "saga_ended",
            "forked",
        ]
    ),
    st.sampled_from("abc"),
    st.integers(0, 5_000),
    st.integers(0, 5_000),
)


@settings(deadline=None)  # others run on this machine
@given(st.lists(st.lists(EVENTS, max_size=4), min_size=1, max_size=8), st.booleans())
def test_shares_are_never_more_than_the_whole_and_every_bar_is_drawn_inside(
    logged: list[list[dict[str, Any]]], is_over: bool
) -> None:
    entries = [entry(number + 1, number * 500, *events) for number, events in enumerate(logged)]
    found = of(*entries, now=5_000, is_over=is_over)
    assert sum(one.ms for one in found.shares) <= found.end - found.begin + 1
    assert "NaN" not in chart(found, "/console/sagas/s")


def test_names_in_it_are_shown_as_text() -> None:
    drawn = chart(of(entry(1, 0), entry(2, 100, ran("<script>", 0, 100), END)), "/console/sagas/s")
    assert "<script>" not in drawn


def test_each_operation_of_a_function_has_a_lane_of_its_own() -> None:
    asked = {
        **about("operations_began", "f"),
        "operations": [{"item": "a"}, {"item": "n-1--b", "label": "n[1]/b"}],
    }
    opened = {**about("wait_opened", "f"), "item": "n-1--b"}
    found = of(
        entry(1, 0, {"kind": "saga_started"}),
        entry(2, 100, about("function_began", "f"), asked, opened),
        entry(3, 400, ran("f", 100, 400, item="a")),
        entry(4, 900, {**about("wait_closed", "f"), "item": "n-1--b"}, END),
    )
    assert {"a", "n[1]/b"} <= set(found.lanes)
    assert [(bar.begin - T, bar.end - T) for bar in found.lanes["n[1]/b"]] == [(100, 900)]
    assert "f" not in found.lanes
