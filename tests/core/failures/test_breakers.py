"""Circuit breakers as data: what opens, probes and closes them, and which failures speak of a target."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from baton.core.failures.breakers import (
    CLOSED,
    HALF_OPEN,
    MOST_FAILED,
    MOST_MOVES,
    OPEN,
    Breaker,
    BreakerTerms,
    FailureReport,
    forced_open,
    is_quiet,
    may_pass,
    may_probe,
    name_problem,
    next_look,
    pause_of,
    reset,
    speaks_of_target,
    target_of,
    with_probe,
    with_reports,
    with_verdict,
)
from tests.core.build import PROPERTY
from tests.kit.sentences import Says

NOW = 1_790_000_000_000
TERMS = BreakerTerms(failures=3, window_ms=60_000, pause_ms=10_000, longest_pause_ms=40_000, probes=1)
TWO = BreakerTerms(failures=1, probes=2)
_numbers = itertools.count()


def failures(count: int = 1, calls: int = 0, at: int = NOW, by: str = "") -> tuple[FailureReport, ...]:
    return (FailureReport(at, "timeout", count, calls or count, by or f"i-{next(_numbers)}"),)


def opened(terms: BreakerTerms = TERMS, now: int = NOW) -> Breaker:
    return with_reports(Breaker(), failures(terms.failures, at=now), terms, now, 0.0)


def half_open(terms: BreakerTerms = TERMS) -> tuple[Breaker, int]:
    """With a probe of `p`, and when that was."""
    there = opened(terms)
    return with_probe(there, "p", there.until + 5_000, terms, there.until), there.until


def test_it_opens_at_more_failures_than_are_kept(says: Says) -> None:
    """The oldest are added up, so that what is kept stays small and none is forgotten within the window."""
    terms, there = BreakerTerms(failures=100), Breaker()
    for number in range(99):
        there = with_reports(there, failures(at=NOW + 100 * number), terms, NOW + 100 * number, 0.0)
    assert (there.state, len(there.failed)) == (CLOSED, MOST_FAILED)
    there = with_reports(there, failures(at=NOW + 9_900), terms, NOW + 9_900, 0.0)
    assert there.state == OPEN
    says(there.moves[-1].why)


def test_failures_from_before_it_closed_are_not_added_to_those_after() -> None:
    terms = BreakerTerms(failures=MOST_FAILED + 5)
    there = with_reports(Breaker(), tuple(failures()[0] for _ in range(MOST_FAILED)), terms, NOW, 0.0)
    there = reset(there, "ada", NOW + 1)
    for number in range(MOST_FAILED + 4):
        there = with_reports(there, failures(at=NOW + 2 + number), terms, NOW + 2 + number, 0.0)
    assert there.state == CLOSED
    assert with_reports(there, failures(at=NOW + 90), terms, NOW + 90, 0.0).state == OPEN


def test_failures_that_were_added_up_end_with_the_window() -> None:
    terms, there = BreakerTerms(failures=100), Breaker()
    for second in range(300):
        there = with_reports(there, failures(at=NOW + 1_000 * second), terms, NOW + 1_000 * second, 0.0)
    assert there.state == CLOSED, "60 within each minute"


def test_it_opens_at_so_many_failures_within_the_window(says: Says) -> None:
    there = with_reports(Breaker(), failures(2), TERMS, NOW, 0.0)
    assert (there.state, there.version) == (CLOSED, 1)
    there = with_reports(there, failures(1, at=NOW + 59_000), TERMS, NOW + 59_000, 0.0)
    assert (there.state, there.since, there.until, there.rounds) == (OPEN, NOW + 59_000, NOW + 69_000, 1)
    says(there.moves[-1].why)


def test_failures_that_are_too_old_do_not_count() -> None:
    there = with_reports(Breaker(), failures(2), TERMS, NOW, 0.0)
    there = with_reports(there, failures(1, at=NOW + 60_000), TERMS, NOW + 60_000, 0.0)
    assert there.state == CLOSED


def test_it_stays_closed_while_most_calls_succeed() -> None:
    there = with_reports(Breaker(), failures(3, calls=7), TERMS, NOW, 0.0)
    assert there.state == CLOSED
    assert with_reports(there, failures(1), TERMS, NOW, 0.0).state == OPEN  # 4 of 8


def test_a_report_that_is_repeated_counts_once() -> None:
    report = failures(1, by="i-1")
    there = with_reports(Breaker(), report, TERMS, NOW, 0.0)
    assert with_reports(there, report, TERMS, NOW, 0.0) is there


def test_failures_of_calls_that_were_under_way_when_it_opened_change_nothing() -> None:
    there = opened()
    assert with_reports(there, failures(9), TERMS, NOW, 0.0) is there


def test_the_next_opening_is_not_by_failures_of_before_it_closed() -> None:
    there, now = half_open()
    there = with_verdict(there, "p", "", TERMS, now, 0.0)
    assert (there.state, there.rounds) == (CLOSED, 0)
    assert with_reports(there, failures(1, at=now + 1), TERMS, now + 1, 0.0).state == CLOSED


def test_one_call_is_let_through_when_the_pause_is_over() -> None:
    there = opened()
    assert not may_pass(there)
    assert not may_probe(there, TERMS, there.until - 1)
    assert with_probe(there, "p", 0, TERMS, there.until - 1) is there
    now = there.until
    after = with_probe(there, "p", now + 5_000, TERMS, now)
    assert (after.state, after.probes[0].by) == (HALF_OPEN, "p")
    assert with_probe(after, "q", now + 5_000, TERMS, now) is after, "there is room for one"
    assert with_probe(after, "p", now + 9_000, TERMS, now) is after, "a repeated claim is the same"


def test_a_probe_that_is_never_heard_of_again_makes_room_for_another() -> None:
    there, now = half_open()
    later = now + 5_000
    after = with_probe(there, "q", later + 5_000, TERMS, later)
    assert [probe.by for probe in after.probes] == ["q"]
    assert with_verdict(after, "p", "", TERMS, later, 0.0) is after, "the first is over"


def test_it_closes_when_the_probe_has_an_answer() -> None:
    there, now = half_open()
    after = with_verdict(there, "p", "", TERMS, now + 9, 0.0)
    assert (after.state, after.since, after.probes, after.until) == (CLOSED, now + 9, (), 0)
    assert may_pass(after)
    assert with_verdict(after, "p", "", TERMS, now, 0.0) is after


def test_it_closes_after_as_many_answers_as_there_are_probes() -> None:
    there, now = half_open(TWO)
    there = with_probe(there, "q", now + 5_000, TWO, now)
    assert len(there.probes) == 2
    there = with_verdict(there, "p", "", TWO, now, 0.0)
    assert (there.state, there.passed) == (HALF_OPEN, 1)
    assert not may_probe(there, TWO, now)
    assert with_verdict(there, "q", "", TWO, now, 0.0).state == CLOSED


def test_a_probe_that_fails_opens_it_for_twice_as_long() -> None:
    there = opened()
    pauses = []
    for _ in range(4):
        pauses.append(there.until - there.since)
        there = with_probe(there, "p", there.until + 5_000, TERMS, there.until)
        there = with_verdict(there, "p", "timeout", TERMS, there.since + 1, 0.0)
    assert pauses == [10_000, 20_000, 40_000, 40_000]
    assert there.failed[-1].code == "timeout"


def test_a_probe_that_says_nothing_makes_room_for_the_next() -> None:
    there, now = half_open()
    after = with_verdict(there, "p", None, TERMS, now, 0.0)
    assert (after.state, after.probes) == (HALF_OPEN, ())
    assert may_probe(after, TERMS, now)
    assert next_look(after, TERMS, now, 0) < now + 10_000, "a probe is quick to end"


def test_an_operator_opens_it_until_it_is_reset() -> None:
    there = forced_open(Breaker(), "ann", 0, NOW)
    assert not may_pass(there)
    assert not may_probe(there, TERMS, NOW + 86_400_000)
    assert next_look(there, TERMS, NOW, 0.5) == NOW + 20_000 + 1_000 + 5_000
    after = reset(there, "bob", NOW + 5)
    assert may_pass(after)
    assert [(move.to, move.by) for move in after.moves] == [(OPEN, "ann"), (CLOSED, "bob")]


def test_an_operator_opens_it_for_a_while() -> None:
    there = forced_open(Breaker(), "ann", NOW + 1_000, NOW)
    assert may_probe(there, TERMS, NOW + 1_000)


def test_waits_are_spread_behind_the_moment_of_the_probe() -> None:
    there = opened()
    looks = [next_look(there, TERMS, NOW, draw / 100) for draw in range(100)]
    assert there.until < min(looks)
    assert max(looks) < there.until + 1_000 + TERMS.pause_ms
    assert len(set(looks)) == 100
    assert next_look(there, TERMS, there.until + 70_000, 0.0) == there.until + 71_000


def test_the_pause_has_a_jitter_and_an_end() -> None:
    assert with_reports(Breaker(), failures(3), TERMS, NOW, 0.5).until == NOW + 11_000
    assert pause_of(replace(opened(), rounds=500), TERMS) == 40_000
    assert pause_of(opened(), BreakerTerms(pause_ms=900_000)) == 900_000


def test_of_a_quiet_one_nothing_is_read() -> None:
    assert is_quiet(Breaker(), TERMS, NOW)
    there = with_reports(Breaker(), failures(1), TERMS, NOW, 0.0)
    assert not is_quiet(there, TERMS, NOW + 1)
    assert is_quiet(there, TERMS, NOW + 60_000)
    assert not is_quiet(opened(), TERMS, NOW + 86_400_000)


def test_what_is_remembered_is_bounded() -> None:
    there = Breaker()
    for number in range(60):
        there = with_reports(there, failures(1, calls=99, at=NOW + number), TERMS, NOW + number, 0.0)
        there = reset(forced_open(there, "ann", 0, NOW), "ann", NOW)
    assert (len(there.moves), len(there.failed)) == (MOST_MOVES, MOST_FAILED)


@given(
    st.lists(
        st.sampled_from(["fail", "wait", "probe", "up", "down", "nothing", "reset", "force"]), max_size=40
    )
)
@PROPERTY
def test_whatever_happens_it_closes_once_the_target_answers(deeds: list[str]) -> None:
    there, now = Breaker(), NOW
    for deed in deeds:
        now += 1_000
        before = there
        if deed == "fail":
            there = with_reports(there, failures(1, at=now), TERMS, now, 0.3)
        elif deed == "wait":
            now += 15_000
        elif deed == "probe":
            there = with_probe(there, "p", now + 3_000, TERMS, now)
        elif deed in ("up", "down", "nothing"):
            verdict = {"up": "", "down": "timeout", "nothing": None}[deed]
            there = with_verdict(there, "p", verdict, TERMS, now, 0.3)
        else:
            there = (
                reset(there, "ann", now) if deed == "reset" else forced_open(there, "ann", now + 9_000, now)
            )
        assert there is before or there.version == before.version + 1
        assert len(there.probes) <= TERMS.probes
    for _ in range(3):
        now = next_look(there, TERMS, now, 0.9)
        if may_pass(there):
            break
        there = with_probe(there, "last", now + 1_000, TERMS, now)
        there = with_verdict(there, "last", "", TERMS, now, 0.0)
    assert may_pass(there)


@pytest.mark.parametrize(
    ("said", "arguments", "target"),
    [
        ("", {}, ""),
        ("none", {}, ""),
        ("payments", {}, "payments"),
        ("tool", {}, "shop.pay"),
        ("host", {"url": "https://API.example.com/v1?x=1"}, "api.example.com"),
        ("host", {"url": "http://ann:secret@example.com:8080/"}, "example.com-8080"),
        ("host", {"url": "http://[::1]:9/"}, ""),
        ("host", {"url": "http://[2001:db8::1]/"}, "2001-db8--1"),
        ("host", {"url": "ftp://example.com"}, ""),
        ("host", {"url": 5}, ""),
        ("host", {}, ""),
        ("host", "text", ""),
    ],
)
def test_what_is_said_of_a_breaker_names_its_target(said: str, arguments: Any, target: str) -> None:
    assert target_of(said, "shop.pay", arguments) == target


@pytest.mark.parametrize("name", ["payments", "api.example.com", "a", "0-1_x", "tool", "host", "none"])
def test_a_name(name: str) -> None:
    assert name_problem(name) == ""


@pytest.mark.parametrize("name", ["", "Payments", "a b", "-a", "a" * 65, 5, None, "a/b"])
def test_what_is_no_name(name: Any, says: Says) -> None:
    says(name_problem(name))


@pytest.mark.parametrize(
    ("code", "kind", "status", "speaks"),
    [
        ("timeout", "", 0, True),
        ("service_unavailable", "transient", 503, True),
        ("server_error", "", 500, True),
        ("own_code", "transient", 0, True),
        ("own_code", "permanent", 502, True),
        ("database_down", "", 0, True),
        ("timeout", "transient", 408, False),
        ("rate_limited", "transient", 429, False),
        ("bad_request", "", 400, False),
        ("tool_error", "", 0, False),
        ("breaker_open", "", 0, False),
        ("file_locked", "", 0, False),
    ],
)
def test_only_some_failures_speak_of_the_target(code: str, kind: str, status: int, speaks: bool) -> None:
    assert speaks_of_target(code, kind, status) is speaks
