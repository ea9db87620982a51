"""Work elsewhere, from its handover to its end: what completes an attempt, what ends its callback, and what counts no more."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.log import events as ev
from baton.core.log.folding.received import CallbackReport, callback_of, completed_with, fingerprint, why_over
from baton.core.log.state import status_of
from baton.core.log.work import Callback
from baton.core.read.metrics import Figures
from tests.core.build import ready
from tests.core.nodes.handing import (
    HOUR,
    MINUTE,
    ON,
    SKEW,
    TOOLS,
    beat,
    beginning,
    compiled,
    hand_over,
    handed,
    handing,
    kinds_since,
    last,
    say,
    work,
)
from tests.kit.sentences import Says

# ---- handed over, and done


def test_a_tool_that_returns_has_only_handed_its_work_over() -> None:
    saga = beginning()
    begun = saga.now
    hand_over(saga)
    assert saga.kinds == ["callback_opened"], "one entry"
    assert work(saga) == Callback(
        id="0.a.1", since=begun, until=begun + HOUR, heartbeat_ms=5 * MINUTE, heard_at=begun, skew_ms=SKEW
    )
    assert (status_of(saga.state, saga.program), saga.decision.due) == ("waiting", begun + 5 * MINUTE + SKEW)
    assert saga.decision.commands == ()
    assert (saga.state.money.spent, saga.state.counts.steps) == (7, 0), "what it has cost is counted once"


def test_its_success_is_the_output_of_the_step_in_one_entry_with_what_follows() -> None:
    saga = handing()
    say(saga, output={"pages": 3})
    before = len(saga.entries)
    assert ready(saga.go(after_ms=MINUTE)) == ["then"]
    assert kinds_since(saga, before) == ["step_succeeded", "node_skipped"]
    done = last(saga, ev.StepSucceeded)
    assert (done.output.v, done.callback, done.attempt, done.tool) == ({"pages": 3}, "0.a.1", 1, "print")
    assert done.started_at == done.ended_at, "no time of a worker"
    assert (saga.state.open, saga.state.signals, saga.state.money.spent) == ({}, (), 7)
    assert completed_with(saga.state, "0.a.1") == fingerprint(ev.Value(v={"pages": 3}))


def test_what_comes_before_the_tool_has_returned_is_taken_when_it_does() -> None:
    saga = beginning()
    say(saga, output="early")
    assert saga.go(running=["a"]).commands == (), "the tool is still at work"
    before = len(saga.entries)
    hand_over(saga)
    assert kinds_since(saga, before) == ["callback_opened", "step_succeeded", "node_skipped"]
    assert (len(saga.entries) - before, last(saga, ev.StepSucceeded).output.v) == (1, "early")


@pytest.mark.parametrize("code", ["timeout", "tool_error"])
def test_what_came_counts_even_if_the_tool_fails_afterwards(code: str) -> None:
    saga = beginning()
    say(saga, output="done")
    hand_over(saga, code=code)
    assert last(saga, ev.StepSucceeded).output.v == "done"
    assert "a" not in saga.state.failing


def test_what_came_before_a_crash_is_taken_without_a_second_call() -> None:
    saga = beginning(tool="send")
    say(saga, output="done")
    saga.die()
    assert ready(saga.go()) == ["then"]
    assert last(saga, ev.StepSucceeded).output.v == "done"


def test_a_crash_during_the_handover_repeats_it_under_the_same_id() -> None:
    saga = beginning()
    saga.die()
    assert ready(saga.go()) == ["a"]
    assert callback_of(saga.state, "a") == "0.a.1"
    hand_over(saga)
    assert saga.state.recovery.possibly_running == ()
    assert saga.state.recovery.consecutive_crashes == 0, "a handover is progress"


def test_a_tool_that_failed_to_hand_over_is_tried_again_under_the_same_id() -> None:
    saga = beginning()
    hand_over(saga, code="connection_failed")
    assert saga.kinds == ["attempt_failed", "strategy_chosen"]
    saga.go(after_ms=MINUTE)
    hand_over(saga)
    assert (work(saga).id, last(saga, ev.CallbackOpened).attempt) == ("0.a.1", 2)


def test_an_output_that_is_not_what_the_node_promises_fails_the_attempt() -> None:
    node = "{tool: print, callback: 1h, output_schema: {type: integer}}"
    saga = beginning(more=f"\n  b: {node}{ON}")
    saga.go(handed(saga, "b"), running=["a"])
    assert saga.decision.due == saga.now + HOUR
    saga.put(
        ev.SignalReceived(
            name=":callback", key="0.b.1", payload=ev.Value(ref="cas://x", size=9), by="c", at=1
        )
    )
    assert saga.go(running=["a"]).is_lacking, "a large output is fetched first"
    saga.go(running=["a"], blobs={"cas://x": "three"})
    assert last(saga, ev.AttemptFailed).failure.code == "output_invalid"
    assert saga.state.stands_still


# ---- failures, and the end of its time


@pytest.mark.parametrize(
    ("said", "class_", "again"),
    [
        ({"code": "server_error"}, "transient", True),
        ({"code": "server_error", "retryable": True}, "transient", True),
        ({"code": "server_error", "retryable": False}, "permanent", False),
        ({"code": "business_rule"}, "permanent", False),
        ({"code": "business_rule", "retryable": True}, "transient", True),
        ({"code": "out_of_paper"}, "unknown", True),
    ],
)
def test_a_failure_goes_the_way_of_any_failure_by_its_code(
    said: dict[str, Any], class_: str, again: bool
) -> None:
    saga = handing()
    say(saga, message="paper jam, password=hunter2", **said)
    saga.go()
    event = last(saga, ev.AttemptFailed if again else ev.StepFailed)
    assert (event.failure.code, event.failure.kind, event.callback) == (said["code"], class_, "0.a.1")
    assert (event.failure.node, "hunter2" in event.failure.message) == ("a", False)
    assert (saga.state.open, saga.state.signals) == ({}, ())
    if not again:
        assert last(saga, ev.NodePassed).output.v == said["code"], "catch has gone on"
        return
    assert ready(saga.go(after_ms=MINUTE)) == ["a"]
    assert callback_of(saga.state, "a") == "0.a.2", "what was handed over is over"
    hand_over(saga)
    assert (work(saga).id, last(saga, ev.CallbackOpened).attempt) == ("0.a.2", 2)


@pytest.mark.parametrize(
    ("beats", "wait", "code"),
    [
        ([], 5 * MINUTE + SKEW, "heartbeat_timeout"),
        ([4 * MINUTE], 5 * MINUTE + SKEW, "heartbeat_timeout"),
        ([4 * MINUTE] * 14, 4 * MINUTE, "timeout"),
    ],
)
def test_without_a_sign_of_life_or_a_callback_it_ends_by_itself(
    beats: list[int], wait: int, code: str, says: Says
) -> None:
    saga = handing()
    for passed in beats:
        saga.go(after_ms=passed)
        beat(saga)
    assert saga.go(after_ms=wait - 1).record == ()
    assert saga.decision.due == saga.now + 1
    saga.go(after_ms=1)
    failed = last(saga, ev.AttemptFailed)
    assert (failed.failure.code, failed.failure.kind, failed.attempt) == (code, "transient", 1)
    says(why_over(saga.state, "0.a.1"))


def test_attempts_are_counted_over_handovers_and_the_last_failure_is_the_steps(says: Says) -> None:
    saga = handing(callback="1h")
    for number in (1, 2, 3):
        assert work(saga).id == f"0.a.{number}"
        saga.go(after_ms=HOUR)
        saga.go(after_ms=MINUTE)
        if number < 3:
            hand_over(saga)
    assert (last(saga, ev.StepFailed).attempt, last(saga, ev.NodePassed).output.v) == (3, "timeout")
    says(why_over(saga.state, "0.a.3"))


def test_what_may_happen_only_once_is_not_handed_over_again_before_a_person_has_looked(says: Says) -> None:
    saga = handing(tool="send")
    saga.go(after_ms=5 * MINUTE + SKEW)
    failed = last(saga, ev.AttemptFailed).failure
    assert failed.code == "unknown_outcome"
    says(failed.message)
    assert status_of(saga.state, saga.program) == "suspended"


def test_what_may_happen_only_once_and_is_not_waited_for_any_more_is_told_to_a_person() -> None:
    saga = handing(tool="send")
    saga.cancel()
    saga.go()
    assert last(saga, ev.NoticeDue).notice.code == "unknown_outcome"


def test_a_heartbeat_of_another_callback_an_old_one_and_one_for_none_change_nothing() -> None:
    saga = handing()
    saga.go(after_ms=MINUTE)
    for callback in ("0.a.2", "0.a.1", "0.a.1"):
        beat(saga, callback)
    assert work(saga).heard_at == saga.now
    saga.put(ev.CallbackHeartbeat(node="a", callback="0.a.1", at=saga.now - 1))
    saga.put(ev.CallbackHeartbeat(node="b", callback="0.b.1", at=saga.now))
    assert work(saga).heard_at == saga.now


@pytest.mark.parametrize(("often", "skew"), [(10_000, 3_000), (600_000, 3_000), (10_000, 60_000)])
def test_work_that_is_heard_in_every_half_interval_looks_silent_by_no_clock(often: int, skew: int) -> None:
    """The clock of one process heard it, that of another hears it again, and that of a third judges."""
    for first, again, judge in itertools.product((0, skew), repeat=3):
        one = Callback(id="c", since=0, until=10 * HOUR, heartbeat_ms=often, heard_at=first, skew_ms=skew)
        # Half an interval has to be over by the clock that hears it again, and then it is heard within the other half.
        recorded_by = first - again + often // 2 + often // 2
        assert one.due is not None
        assert recorded_by <= one.due - judge <= often + 2 * skew


def test_a_log_from_before_says_nothing_of_clocks_and_means_what_it_meant() -> None:
    saga = handing()
    before = replace(last(saga, ev.CallbackOpened), skew_ms=0)
    assert before.work().due == work(saga).since + 5 * MINUTE
    assert last(handing(callback="1h"), ev.CallbackOpened).skew_ms == 0, "nothing is judged by it"


# ---- what is shown and said


def test_a_failure_has_no_output_and_a_success_no_failure() -> None:
    assert CallbackReport(status="success", output=1).failure() is None
    assert CallbackReport(status="heartbeat").failure() is None
    failure = CallbackReport(status="failure", code="timeout").failure()
    assert failure is not None
    assert (failure.code, failure.kind) == ("timeout", "transient")


def test_the_timeout_of_a_callback_without_heartbeats_is_its_due_time(says: Says) -> None:
    saga = handing(callback="2h")
    assert (work(saga).heartbeat_by, saga.decision.due) == (None, saga.now + 2 * HOUR)
    kind = saga.program.kinds["task"]
    node = saga.program.nodes["a"]
    assert kind.node_view(node) == {"callback": {"timeout_ms": 2 * HOUR, "heartbeat_ms": None}}
    assert (work(saga).view(None)["heartbeat_by"], work(saga).word) == (None, "waiting")
    says(last(saga, ev.CallbackOpened).words)


def test_what_is_shown_of_a_callback_says_since_when_until_when_and_when_it_was_heard(says: Says) -> None:
    saga = handing()
    saga.go(after_ms=MINUTE)
    beat(saga)
    shown = work(saga).view(None)
    assert shown == {
        "callback": "0.a.1",
        "since": "2023-11-14T22:13:20.000Z",
        "until": "2023-11-14T23:13:20.000Z",
        "heard_at": "2023-11-14T22:14:20.000Z",
        "heartbeat_by": "2023-11-14T22:19:20.000Z",
    }
    says(last(saga, ev.CallbackOpened).words)


def test_the_graph_has_the_times_and_a_plain_task_has_none() -> None:
    program = compiled("{timeout: 1h, heartbeat: 5m}")
    times = program.nodes["a"].callback
    assert times is not None
    assert (times.timeout_ms, times.heartbeat_ms) == (HOUR, 5 * MINUTE)
    assert program.nodes["then"].callback is None
    assert program.kinds["task"].node_view(program.nodes["then"]) == {}
    assert TOOLS["mute"].sees_key is False


def test_a_callback_is_no_signal_no_child_and_no_question() -> None:
    one = Callback(id="0.a.1", since=1, until=2)
    assert (one.signal, one.orphan, one.hears("c"), one.ask) == ("", None, False, None)


def test_the_time_of_a_handover_counts_as_work_and_its_attempt_when_it_ends() -> None:
    saga = handing()
    figures = Figures()
    opened = replace(last(saga, ev.CallbackOpened), started_at=1_000, ended_at=1_250)
    figures.heard("w", [opened], 5)
    say(saga)
    saga.go()
    figures.heard("w", saga.entries[-1].events, 5)
    (found,) = (one for one in figures.take(10**9, 1, "d") if one.get("tool") == "print")
    assert (found["WorkTime"], found["Attempts"], found["Succeeded"]) == (250, 1, 1)
