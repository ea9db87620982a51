"""Figures of attempts: what is counted, what is not counted twice, and that CloudWatch takes every line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from baton.core.failures.strategies.registry import STRATEGIES
from baton.core.log import events as ev
from baton.core.models.usage import Usage
from baton.core.read.metrics import METRICS, Figures
from tests.core.build import EVENTS, FEW, T0
from tests.kit import emf

RAN: dict[str, Any] = {"tool_version": "1", "schema_hash": "h"}
SOON = T0 + 59_999
LATER = T0 + 60_000


def succeeded(attempt: int = 1, tool: str = "search.web", ms: int = 40) -> ev.StepSucceeded:
    return ev.StepSucceeded(
        node="a", output=ev.Value(), attempt=attempt, tool=tool, started_at=T0, ended_at=T0 + ms, **RAN
    )


def failure(attempt: int, code: str = "service_unavailable", at: int = T0 + 7) -> ev.Failure:
    return ev.Failure(code, "m", "a", "transient", attempt=attempt, at=at)


def attempt_failed(attempt: int, code: str = "service_unavailable") -> ev.AttemptFailed:
    return ev.AttemptFailed(
        node="a",
        attempt=attempt,
        failure=failure(attempt, code),
        started_at=T0,
        ended_at=T0 + 7,
        tool="search.web",
        **RAN,
    )


def step_failed(told: ev.Failure, attempt: int = 3) -> ev.StepFailed:
    return ev.StepFailed(
        node="a",
        attempt=attempt,
        failure=told,
        started_at=T0,
        ended_at=T0 + 7,
        tool="search.web",
        **RAN,
    )


def chosen(strategy: str, pause: int = 0) -> ev.StrategyChosen:
    due = T0 + 7 + pause if pause else 0
    return ev.StrategyChosen(node="a", strategy=strategy, code="x", at=T0 + 7, due_at=due)


def lines(figures: Figures, now: int = LATER) -> list[str]:
    return [json.dumps(one) for one in figures.take(now, 60_000, "prod-worker")]


def read(*entries: tuple[ev.Event, ...], now: int = LATER) -> emf.Sums:
    figures = Figures()
    for events in entries:
        figures.heard("dinner", events, T0)
    return emf.read(lines(figures, now))


def of(found: emf.Sums, metric: str) -> float:
    """By tool and by workflow it is the same, where there is one of each."""
    by_tool = emf.total(found, metric, function="prod-worker", tool="search.web")
    assert by_tool == emf.total(found, metric, function="prod-worker", workflow="dinner")
    return by_tool


def test_a_step_that_succeeds_at_its_third_attempt_is_one_success_and_two_retries() -> None:
    found = read(
        (attempt_failed(1), chosen("retry", 200)),
        (attempt_failed(2, "timeout"), chosen("retry", 400)),
        (succeeded(3),),
    )
    told = {name: sum_ for name in METRICS if (sum_ := of(found, name))}
    assert told == {
        "Attempts": 3,
        "Retries": 2,
        "Succeeded": 1,
        "Timeouts": 1,
        "AttemptsUntilSuccess": 3,
        "WorkTime": 40,
        "FailedTime": 14,
        "PauseTime": 600,
    }


def test_kept_results_are_counted_by_tool() -> None:
    hit, miss = (replace(succeeded(), cache=cache) for cache in (ev.HIT, ev.MISS))
    found = read((hit, miss, hit, succeeded()))
    assert (of(found, "CacheHits"), of(found, "CacheMisses"), of(found, "Succeeded")) == (2, 1, 4)


def test_every_strategy_is_counted_under_a_name_that_has_a_row() -> None:
    assert {strategy.metric for strategy in STRATEGIES.values()} - {""} <= METRICS.keys()


def test_errors_are_counted_by_code_and_by_tool_and_code() -> None:
    found = read(
        (attempt_failed(1), chosen("retry", 5)), (attempt_failed(2, "Rate-Limited"), chosen("retry", 5))
    )
    for code in ("service_unavailable", "rate_limited"):
        assert emf.total(found, "Errors", function="prod-worker", code=code) == 1
        assert emf.total(found, "Errors", function="prod-worker", tool="search.web", code=code) == 1


@pytest.mark.parametrize(
    ("event", "metric"),
    [
        (ev.StepHeld(node="a", breaker="b", at=T0, until=T0 + 5), "Held"),
        (ev.StepHeld(node="a", breaker="", limit="budget_saga", amount=9, at=T0, until=T0 + 5), "Held"),
        (ev.SagaEnded(status="rolled_back", undone=ev.Undone()), "RolledBack"),
        (ev.SagaEnded(status="rollback_failed", undone=ev.Undone()), "RollbacksFailed"),
    ],
)
def test_what_happens_to_a_saga_is_counted_for_the_deployment_and_its_workflow_at_once(
    event: ev.Event, metric: str
) -> None:
    """An alarm of a deployment cannot name every workflow."""
    found = read((event,), now=SOON)
    assert emf.total(found, metric, function="prod-worker") == 1
    assert emf.total(found, metric, function="prod-worker", workflow="dinner") == 1


def test_parked_sagas_are_counted_by_code_and_by_workflow_and_code_at_once() -> None:
    parked = [ev.Parked(code=code, message="m") for code in ("worker_killed", "over_budget", "over_budget")]
    paused = ev.Parked(code=ev.PAUSED, message="m", at=SOON, by="ada")
    found = read(*((one,) for one in (*parked, paused)), now=SOON)
    assert emf.total(found, "Parked", function="prod-worker", code=ev.PAUSED) == 0, "no alarm for a pause"
    for code, count in (("worker_killed", 1), ("over_budget", 2)):
        assert emf.total(found, "Parked", function="prod-worker", code=code) == count
        assert emf.total(found, "Parked", function="prod-worker", workflow="dinner", code=code) == count


def test_the_last_attempt_of_a_step_that_fails_for_good_is_an_attempt_too() -> None:
    found = read((attempt_failed(1), chosen("retry", 5)), (step_failed(failure(2, "timeout"), 2),))
    assert [of(found, name) for name in ("Attempts", "Retries", "Failed", "Timeouts")] == [2, 1, 1, 1]
    assert [of(found, name) for name in ("FailedTime", "Succeeded")] == [14, 0]


def test_a_step_that_a_person_gives_up_makes_no_attempt_by_that() -> None:
    """Its last attempt was counted when it failed; the log repeats the failure, with its time."""
    given_up = step_failed(failure(1, at=T0 - 60_000), 1)
    found = read((attempt_failed(1), chosen("ask_user")), (given_up,))
    assert [of(found, name) for name in ("Attempts", "Failed", "Questions", "FailedTime")] == [1, 1, 1, 7]
    assert emf.total(found, "Errors", function="prod-worker", code="service_unavailable") == 1


def test_a_failure_that_no_attempt_has_made_is_an_error_and_no_attempt() -> None:
    found = read((step_failed(ev.Failure("input_unbound", "m", "a"), 1),))
    assert of(found, "Failed") == 1
    assert of(found, "Attempts") == 0
    assert emf.total(found, "Errors", function="prod-worker", code="input_unbound") == 1


@pytest.mark.parametrize(
    ("strategy", "metric"), [("replan", "Replans"), ("ask_user", "Questions"), ("escalate", "Escalations")]
)
def test_what_is_done_about_a_failure_is_counted(strategy: str, metric: str) -> None:
    assert of(read((attempt_failed(1), chosen(strategy))), metric) == 1


def test_a_question_of_a_node_counts_as_one_of_its_workflow_and_a_wait_does_not() -> None:
    ask = ev.Ask(id="q", kind="approval", message="Shall we?", options=("approve", "reject"))
    found = read((ev.QuestionOpened(node="a", ask=ask), ev.WaitOpened(node="b", signal="go")))
    assert emf.total(found, "Questions", function="prod-worker", workflow="dinner") == 1


def test_what_follows_an_unanswered_question_counts_for_its_workflow_alone() -> None:
    """The entry does not say which tool it is about."""
    found = read((chosen("escalate"),))
    assert emf.total(found, "Escalations", function="prod-worker", workflow="dinner") == 1
    assert {name for _, where in found for name, _ in where} == {"function", "workflow"}


def test_a_retry_without_a_pause_has_no_time() -> None:
    assert of(read((attempt_failed(1), chosen("retry"))), "PauseTime") == 0


def test_of_nothing_to_count_nothing_is_told() -> None:
    assert read((chosen("retry"),)) == {}
    assert read((ev.Resumed(by="ada", at=T0),)) == {}


def test_steps_that_succeed_at_once_cost_one_line_a_minute() -> None:
    figures = Figures()
    for _ in range(1_000):
        figures.heard("dinner", (succeeded(),), T0)
    assert lines(figures, SOON) == []
    (line,) = lines(figures)
    found = emf.read([line])
    assert [of(found, name) for name in ("Attempts", "Succeeded", "WorkTime")] == [1_000, 1_000, 40_000]
    assert lines(figures) == []


def test_a_failure_brings_the_successes_before_it_along_so_that_the_rate_is_right() -> None:
    figures = Figures()
    for _ in range(9):
        figures.heard("dinner", (succeeded(),), T0)
    figures.heard("other", (succeeded(tool="calm"),), T0)
    figures.heard("dinner", (succeeded(2),), SOON)
    found = emf.read(lines(figures, SOON))
    assert [of(found, name) for name in ("Attempts", "Retries")] == [10, 1]
    assert not any(("tool", "calm") in where for _, where in found), "it is quiet, and waits for its minute"


def test_a_rate_of_zero_is_told_as_zero() -> None:
    """CloudWatch takes what is missing for nothing known."""
    assert ("Retries", (("function", "prod-worker"), ("tool", "search.web"))) in read((succeeded(),))


def test_more_numbers_than_one_line_may_have_take_several() -> None:
    figures = Figures()
    for _ in range(250):
        figures.heard("dinner", (succeeded(2),), T0)
    told = lines(figures)
    found = emf.read(told)
    assert len(told) == 3
    assert len(found["AttemptsUntilSuccess", (("function", "prod-worker"), ("tool", "search.web"))]) == 250
    assert of(found, "Attempts") == 250


def test_a_clock_that_goes_back_takes_no_time_away() -> None:
    assert of(read((succeeded(ms=-500),)), "WorkTime") == 0


@given(st.lists(st.lists(EVENTS, max_size=4), max_size=4), st.text(max_size=300))
@FEW
def test_cloudwatch_takes_every_line_whatever_was_heard(entries: list[list[ev.Event]], workflow: str) -> None:
    figures = Figures()
    for events in entries:
        figures.heard(workflow, events, T0)
    documents = figures.take(T0 + 60_000, 60_000, "prod-worker")
    emf.read(json.dumps(one, ensure_ascii=False) for one in documents)


def asked(ms: int, *usage: Usage) -> ev.StepSucceeded:
    return replace(succeeded(ms=ms, tool="std.model"), usage=usage)


def test_what_a_model_has_read_and_written_counts_by_model_with_the_time_it_took() -> None:
    refused = replace(attempt_failed(1, "answer_invalid"), usage=(Usage(model="m", input=100, output=5),))
    two = (Usage(model="m", input=10, output=1), Usage(model="n", input=20, output=2))
    found = read((asked(40, Usage(model="m", input=100, output=7)), refused, asked(60, *two)))
    one = {"function": "prod-worker", "model": "m"}
    assert emf.total(found, "InputTokens", **one) == 210
    assert emf.total(found, "OutputTokens", **one) == 13
    assert emf.total(found, "ModelTime", **one) == 40 + 7
    other = {"function": "prod-worker", "model": "n"}
    assert emf.total(found, "InputTokens", **other) == 20
    assert emf.total(found, "ModelTime", **other) == 60


def test_each_time_is_a_value_of_its_own_a_hundred_in_a_line() -> None:
    figures = Figures()
    for _ in range(250):
        figures.heard("dinner", (asked(40, Usage(model="m", input=1, output=1)),), T0)
    told = [one for one in figures.take(LATER, 60_000, "w") if "ModelTime" in one]
    assert [len(one["ModelTime"]) for one in told] == [100, 100, 50]
    assert [one.get("InputTokens") for one in told] == [250, None, None]


def test_without_models_there_is_no_line_about_them() -> None:
    assert not any("model" in json.loads(line) for line in lines(_heard(succeeded())))


def _heard(event: ev.Event) -> Figures:
    figures = Figures()
    figures.heard("dinner", (event,), T0)
    return figures
