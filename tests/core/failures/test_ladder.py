"""The ladder: one strategy after the other, each within its limits, and an end to it whatever happens."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.core.failures.alternatives import Alternative
from baton.core.failures.codes import CODES, class_of
from baton.core.failures.policy import (
    DOMAINS,
    FAIL,
    LONGEST_RETRY_AFTER_MS,
    PRESETS,
    PolicyChange,
    PolicyEntry,
    RetryChange,
)
from baton.core.failures.strategies.base import FailureContext, History, LadderStep
from baton.core.failures.strategies.ladder import after_step, entry_of, merge, next_step
from tests.core.build import MORE, PROPERTY
from tests.kit.sentences import Says


def ways_for(hints: Iterable[str]) -> list[Alternative]:
    """A way for each hint."""
    return [Alternative(name=hint, hints=(hint,)) for hint in hints]


def climb(entry: PolicyEntry, code: str, *, most: int = 100) -> list[LadderStep]:
    """All that is done about a failure that comes again and again."""
    history, now, steps = History(), 1_000, list[LadderStep]()
    while len(steps) < most:
        step = next_step(
            FailureContext(
                entry=entry, history=history, code=code, now=now, alternatives=ways_for(entry.hints)
            )
        )
        steps.append(step)
        if step.strategy == FAIL:
            return steps
        history = after_step(history, step, now=now)
        now += step.delay_ms + 10
    raise AssertionError("no end")


def strategies(steps: list[LadderStep]) -> list[str]:
    """Without repetitions right after each other."""
    names = [step.strategy for step in steps]
    return [name for index, name in enumerate(names) if index == 0 or names[index - 1] != name]


def test_retries_come_with_their_pauses_and_then_the_next_strategy() -> None:
    entry = entry_of("service_unavailable", "transient")
    steps = climb(entry, "service_unavailable")
    assert [step.delay_ms for step in steps[:6]] == [1_000, 2_000, 4_000, 8_000, 16_000, 0]
    assert (steps[5].strategy, steps[5].hint) == ("replan", "alternative_provider")
    assert steps[5].why == ("retry: used up",)


def test_fail_and_ask_leave_retries_and_other_ways_as_they_are() -> None:
    def names(code: str, kind: str, *words: str) -> list[str]:
        entry = entry_of(code, kind, "", [{"any": PolicyChange(last=word)} for word in words])
        return strategies(climb(entry, code))

    assert names("service_unavailable", "transient", "fail") == ["retry", "replan", "retry", "fail"]
    assert names("bad_request", "permanent", "fail") == ["fail"]
    assert names("database_down", "catastrophic", "fail") == ["fail"]
    assert names("tool_error", "unknown", "fail", "ask")[:2] == ["retry", "ask_user"]
    assert names("bad_request", "permanent", "ask")[:2] == ["ask_user", "rollback"]


def test_rollback_leaves_retries_and_other_ways_and_asks_no_person_about_any_failure() -> None:
    def names(code: str, kind: str) -> list[str]:
        found = strategies(climb(entry_of(code, kind, "", [{"any": PolicyChange(last="rollback")}]), code))
        assert not {"ask_user", "escalate"} & {*found}
        return found[: found.index("rollback")]

    assert names("service_unavailable", "transient") == ["retry", "replan", "retry"]
    assert names("tool_error", "unknown") == ["retry"]
    assert names("not_found", "recoverable") == ["replan"]
    for code in ("login_required", "bad_request", "database_down"):
        assert names(code, class_of(code)) == []


@pytest.mark.parametrize("code", ["bad_request", "card_declined"])
@pytest.mark.parametrize(
    "rule",
    [
        PolicyChange(ladder=("retry", "rollback")),
        PolicyChange(ladder=("retry", "rollback"), retry=RetryChange(max_attempts=9)),
        PolicyChange(kind="transient"),
        PolicyChange(kind="transient", retry=RetryChange(on=("transient",))),
        PolicyChange(kind="unknown", ladder=("retry", "replan", "rollback")),
    ],
)
def test_a_rule_for_any_failure_has_none_tried_again_that_is_permanent(code: str, rule: PolicyChange) -> None:
    entry = entry_of(code, "permanent", "", [{"any": rule}])
    assert "retry" not in strategies(climb(entry, code))
    assert "rollback" in entry.ladder


@pytest.mark.parametrize(
    "rules",
    [
        {"card_declined": PolicyChange(ladder=("retry", "rollback"))},
        {"permanent": PolicyChange(ladder=("retry", "rollback"))},
        {"any": PolicyChange(retry=RetryChange(on=("card_declined",)))},
        {"any": PolicyChange(retry=RetryChange(on=("permanent",)))},
        {"card_declined": PolicyChange(kind="transient"), "any": PolicyChange(ladder=("retry", "rollback"))},
        {"permanent": PolicyChange(kind="transient")},
    ],
)
def test_a_permanent_failure_is_tried_again_by_a_rule_that_names_it(rules: dict[str, PolicyChange]) -> None:
    entry = entry_of("card_declined", "permanent", "", [rules])
    assert climb(entry, "card_declined")[0].strategy == "retry"


def test_a_failure_that_a_rule_makes_permanent_is_not_tried_again_by_one_for_any() -> None:
    rules = {"sold_out": PolicyChange(kind="permanent"), "any": PolicyChange(ladder=("retry", "rollback"))}
    assert strategies(climb(entry_of("sold_out", "unknown", "", [rules]), "sold_out")) == ["rollback", "fail"]


def test_fail_after_a_ladder_keeps_what_the_ladder_has_of_retries() -> None:
    ladder = {"any": PolicyChange(ladder=("retry", "escalate"))}
    assert entry_of("timeout", "transient", "", [ladder, {"any": PolicyChange(last="fail")}]).ladder == (
        "retry",
    )
    assert (
        merge(entry_of("timeout", "transient"), PolicyChange(ladder=("escalate",), last="ask")).ladder[0]
        == "ask_user"
    )


def test_what_is_done_another_way_has_its_retries_anew() -> None:
    steps = climb(entry_of("timeout", "transient", "model_call"), "timeout")
    names = [step.strategy for step in steps]
    assert names[:12] == ["retry"] * 5 + ["replan"] + ["retry"] * 5 + ["ask_user"]
    assert strategies(steps)[-3:] == ["rollback", "escalate", "fail"] or names[-1] == "fail"


def test_hints_are_carried_out_one_after_the_other() -> None:
    steps = climb(entry_of("context_exceeded", "recoverable", "model_call"), "context_exceeded")
    assert [step.hint for step in steps[:3]] == ["truncate_context", "summarise_context", "chunk_context"]
    assert steps[3].strategy == "ask_user"


def test_a_hint_that_cannot_be_carried_out_here_is_passed_over(says: Says) -> None:
    entry = entry_of("context_exceeded", "recoverable", "model_call")
    step = next_step(
        FailureContext(
            entry=entry,
            history=History(),
            code="context_exceeded",
            now=1,
            alternatives=ways_for(["chunk_context"]),
        )
    )
    assert step.hint == "chunk_context"
    entry = merge(entry, PolicyChange(at_most={"ask_user": 0, "rollback": 0}))
    step = next_step(FailureContext(entry=entry, history=History(), code="context_exceeded", now=1))
    assert step.strategy == "escalate"
    says(step.why)


def test_a_replan_has_its_limit_however_many_hints_there_are() -> None:
    entry = merge(entry_of("not_found", "recoverable"), PolicyChange(hints=("a", "b", "c", "d", "e")))
    steps = climb(entry, "not_found")
    assert [step.hint for step in steps if step.strategy == "replan"] == ["a", "b", "c"]


def test_a_cap_leaves_a_strategy_out_or_holds_it_back() -> None:
    entry = merge(
        entry_of("timeout", "transient"), PolicyChange(at_most={"retry": 1, "ask_user": 0, "rollback": 0})
    )
    assert [step.strategy for step in climb(entry, "timeout")] == [
        "retry",
        "escalate",
        "retry",
        "escalate",
        "retry",
        "escalate",
        "retry",
        "fail",
    ]


def test_codes_that_take_turns_have_as_many_attempts_together_as_the_last_one_allows() -> None:
    history, now, done = History(), 1, 0
    for number in range(100):
        code = ("timeout", "server_error", "connection_failed", "deadlock", "rate_limited")[number % 5]
        entry = merge(
            entry_of(code, "transient", "database"), PolicyChange(retry=RetryChange(max_attempts=10))
        )
        step = next_step(FailureContext(entry=entry, history=history, code=code, now=now))
        if step.strategy != "retry":
            break
        history = after_step(history, step, now=now)
        done += 1
    assert done == 9


def test_a_policy_that_allows_more_by_itself_is_not_held_back() -> None:
    entry = merge(
        entry_of("timeout", "transient"), PolicyChange(retry=RetryChange(max_attempts=31), ladder=("retry",))
    )
    assert len(climb(entry, "timeout")) == 31


def test_a_budget_counts_from_the_first_failure() -> None:
    entry = merge(entry_of("timeout", "transient"), PolicyChange(retry=RetryChange(preset="quick")))
    history = after_step(History(), LadderStep(strategy="retry"), now=1_000)
    assert (
        next_step(FailureContext(entry=entry, history=history, code="timeout", now=30_000)).strategy
        == "retry"
    )
    assert (
        next_step(FailureContext(entry=entry, history=history, code="timeout", now=31_000)).strategy
        == "ask_user"
    )


def test_a_pause_longer_than_a_day_goes_up_the_ladder() -> None:
    entry = entry_of("rate_limited", "transient")
    soon = next_step(
        FailureContext(entry=entry, history=History(), code="rate_limited", now=1, retry_after_ms=5_000)
    )
    assert soon.strategy == "retry"
    assert soon.delay_ms >= 5_000
    late, ways = LONGEST_RETRY_AFTER_MS + 1, ways_for(entry.hints)
    step = next_step(
        FailureContext(
            entry=entry, history=History(), code="rate_limited", now=1, retry_after_ms=late, alternatives=ways
        )
    )
    assert step.strategy == "replan"


def test_a_policy_that_names_a_code_retries_it_whatever_its_class() -> None:
    entry = merge(entry_of("bad_request", "permanent"), PolicyChange(retry=RetryChange(on=("bad_request",))))
    assert (
        next_step(FailureContext(entry=entry, history=History(), code="bad_request", now=1)).strategy
        == "retry"
    )
    never = merge(entry_of("timeout", "transient"), PolicyChange(retry=RetryChange(never=("transient",))))
    assert (
        next_step(FailureContext(entry=never, history=History(), code="timeout", now=1)).strategy
        == "ask_user"
    )


def test_no_retries_means_none() -> None:
    entry = merge(entry_of("timeout", "transient"), PolicyChange(retry=RetryChange(preset="none")))
    assert entry.policy == PRESETS["none"]
    assert (
        next_step(FailureContext(entry=entry, history=History(), code="timeout", now=1)).strategy
        == "ask_user"
    )


def test_an_answer_of_a_person_gives_all_retries_anew() -> None:
    history = History(total=7, retries=7, since=3, used={"replan": 1}, ways=("a",))
    found = after_step(history, LadderStep(strategy="ask_user"), now=9)
    assert found == History(used={"replan": 1, "ask_user": 1}, ways=("a",))
    found = after_step(history, LadderStep(strategy="replan", hint="b", way=Alternative(name="b")), now=9)
    assert found == History(total=7, used={"replan": 2}, ways=("a", "b"))


@settings(PROPERTY, max_examples=30 * MORE)
@given(
    codes=st.lists(st.sampled_from(sorted(CODES)), min_size=1, max_size=12),
    domain=st.sampled_from(["", *DOMAINS]),
)
def test_whatever_fails_in_whatever_order_there_is_an_end(codes: list[str], domain: str) -> None:
    history, now = History(), 1
    for number in range(400):
        code = codes[number % len(codes)]
        entry = entry_of(code, class_of(code), domain)
        step = next_step(
            FailureContext(
                entry=entry, history=history, code=code, now=now, alternatives=ways_for(entry.hints)
            )
        )
        if step.strategy == FAIL:
            return
        history = after_step(history, step, now=now)
        now += step.delay_ms
    raise AssertionError("no end")
