"""The climb: each strategy in its turn, each within its limits, and an end to it whatever happens."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from baton.core.failures.alternatives import Alternative
from baton.core.failures.codes import CODES, kind_of
from baton.core.failures.ladder import History, Rung, climbed, next_rung
from baton.core.failures.matrix import DOMAINS, cell_of
from baton.core.failures.policy import FAIL, Cell, Change, merge
from baton.core.failures.retry import LONGEST_RETRY_AFTER_MS, PRESETS, RetryChange


def ways_for(hints: Iterable[str]) -> list[Alternative]:
    """A way for each hint."""
    return [Alternative(name=hint, hints=(hint,)) for hint in hints]


def climb(cell: Cell, code: str, *, most: int = 100) -> list[Rung]:
    """All that is done about a failure that comes again and again."""
    history, now, rungs = History(), 1_000, list[Rung]()
    while len(rungs) < most:
        rung = next_rung(cell, history, code=code, now=now, ways=ways_for(cell.hints))
        rungs.append(rung)
        if rung.strategy == FAIL:
            return rungs
        history = climbed(history, rung, now=now)
        now += rung.delay_ms + 10
    raise AssertionError("no end")


def strategies(rungs: list[Rung]) -> list[str]:
    """Without repetitions right after each other."""
    names = [rung.strategy for rung in rungs]
    return [name for index, name in enumerate(names) if index == 0 or names[index - 1] != name]


def test_retries_come_with_their_pauses_and_then_the_next_rung() -> None:
    cell = cell_of("service_unavailable", "transient")
    rungs = climb(cell, "service_unavailable")
    assert [rung.delay_ms for rung in rungs[:6]] == [1_000, 2_000, 4_000, 8_000, 16_000, 0]
    assert (rungs[5].strategy, rungs[5].hint) == ("replan", "alternative_provider")
    assert rungs[5].why == ("retry: used up",)


def test_fail_and_ask_leave_retries_and_other_ways_as_they_are() -> None:
    def names(code: str, kind: str, *words: str) -> list[str]:
        cell = cell_of(code, kind, "", [{"any": Change(last=word)} for word in words])
        return strategies(climb(cell, code))

    assert names("service_unavailable", "transient", "fail") == ["retry", "replan", "retry", "fail"]
    assert names("bad_request", "permanent", "fail") == ["fail"]
    assert names("database_down", "catastrophic", "fail") == ["fail"]
    assert names("tool_error", "unknown", "fail", "ask")[:2] == ["retry", "ask_user"]
    assert names("bad_request", "permanent", "ask")[:2] == ["ask_user", "rollback"]


def test_fail_after_a_ladder_keeps_what_the_ladder_has_of_retries() -> None:
    ladder = {"any": Change(ladder=("retry", "escalate"))}
    assert cell_of("timeout", "transient", "", [ladder, {"any": Change(last="fail")}]).ladder == ("retry",)
    assert (
        merge(cell_of("timeout", "transient"), Change(ladder=("escalate",), last="ask")).ladder[0]
        == "ask_user"
    )


def test_what_is_done_another_way_has_its_retries_anew() -> None:
    rungs = climb(cell_of("timeout", "transient", "model_call"), "timeout")
    names = [rung.strategy for rung in rungs]
    assert names[:12] == ["retry"] * 5 + ["replan"] + ["retry"] * 5 + ["ask_user"]
    assert strategies(rungs)[-3:] == ["rollback", "escalate", "fail"] or names[-1] == "fail"


def test_hints_are_carried_out_one_after_the_other() -> None:
    rungs = climb(cell_of("context_exceeded", "recoverable", "model_call"), "context_exceeded")
    assert [rung.hint for rung in rungs[:3]] == ["truncate_context", "summarise_context", "chunk_context"]
    assert rungs[3].strategy == "ask_user"


def test_a_hint_that_cannot_be_carried_out_here_is_passed_over() -> None:
    cell = cell_of("context_exceeded", "recoverable", "model_call")
    rung = next_rung(cell, History(), code="context_exceeded", now=1, ways=ways_for(["chunk_context"]))
    assert rung.hint == "chunk_context"
    rung = next_rung(cell, History(), code="context_exceeded", now=1, possible={"replan", "escalate"})
    assert rung.strategy == "escalate"
    assert rung.why == (
        "replan: no other way is known",
        "ask_user: not possible here",
        "rollback: not possible here",
    )


def test_a_replan_has_its_limit_however_many_hints_there_are() -> None:
    cell = merge(cell_of("not_found", "recoverable"), Change(hints=("a", "b", "c", "d", "e")))
    rungs = climb(cell, "not_found")
    assert [rung.hint for rung in rungs if rung.strategy == "replan"] == ["a", "b", "c"]


def test_a_cap_leaves_a_strategy_out_or_holds_it_back() -> None:
    cell = merge(cell_of("timeout", "transient"), Change(at_most={"retry": 1, "ask_user": 0, "rollback": 0}))
    assert [rung.strategy for rung in climb(cell, "timeout")] == [
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
        cell = merge(cell_of(code, "transient", "database"), Change(retry=RetryChange(max_attempts=10)))
        rung = next_rung(cell, history, code=code, now=now)
        if rung.strategy != "retry":
            break
        history = climbed(history, rung, now=now)
        done += 1
    assert done == 9


def test_a_policy_that_allows_more_by_itself_is_not_held_back() -> None:
    cell = merge(
        cell_of("timeout", "transient"), Change(retry=RetryChange(max_attempts=31), ladder=("retry",))
    )
    assert len(climb(cell, "timeout")) == 31


def test_a_budget_counts_from_the_first_failure() -> None:
    cell = merge(cell_of("timeout", "transient"), Change(retry=RetryChange(preset="quick")))
    history = climbed(History(), Rung(strategy="retry"), now=1_000)
    assert next_rung(cell, history, code="timeout", now=30_000).strategy == "retry"
    assert next_rung(cell, history, code="timeout", now=31_000).strategy == "ask_user"


def test_a_pause_longer_than_a_day_goes_up_the_ladder() -> None:
    cell = cell_of("rate_limited", "transient")
    soon = next_rung(cell, History(), code="rate_limited", now=1, retry_after_ms=5_000)
    assert soon.strategy == "retry"
    assert soon.delay_ms >= 5_000
    late, ways = LONGEST_RETRY_AFTER_MS + 1, ways_for(cell.hints)
    rung = next_rung(cell, History(), code="rate_limited", now=1, retry_after_ms=late, ways=ways)
    assert rung.strategy == "replan"


def test_a_policy_that_names_a_code_retries_it_whatever_its_class() -> None:
    cell = merge(cell_of("bad_request", "permanent"), Change(retry=RetryChange(on=("bad_request",))))
    assert next_rung(cell, History(), code="bad_request", now=1).strategy == "retry"
    never = merge(cell_of("timeout", "transient"), Change(retry=RetryChange(never=("transient",))))
    assert next_rung(never, History(), code="timeout", now=1).strategy == "ask_user"


def test_no_retries_means_none() -> None:
    cell = merge(cell_of("timeout", "transient"), Change(retry=RetryChange(preset="none")))
    assert cell.policy == PRESETS["none"]
    assert next_rung(cell, History(), code="timeout", now=1).strategy == "ask_user"


def test_an_answer_of_a_person_gives_all_retries_anew() -> None:
    history = History(total=7, retries=7, since=3, used={"replan": 1}, ways=("a",))
    found = climbed(history, Rung(strategy="ask_user"), now=9)
    assert found == History(used={"replan": 1, "ask_user": 1}, ways=("a",))
    found = climbed(history, Rung(strategy="replan", hint="b", way=Alternative(name="b")), now=9)
    assert found == History(total=7, used={"replan": 2}, ways=("a", "b"))


@settings(max_examples=60, deadline=None)
@given(
    codes=st.lists(st.sampled_from(sorted(CODES)), min_size=1, max_size=12),
    domain=st.sampled_from(["", *DOMAINS]),
)
def test_whatever_fails_in_whatever_order_there_is_an_end(codes: list[str], domain: str) -> None:
    history, now = History(), 1
    for number in range(400):
        code = codes[number % len(codes)]
        cell = cell_of(code, kind_of(code), domain)
        rung = next_rung(cell, history, code=code, now=now, ways=ways_for(cell.hints))
        if rung.strategy == FAIL:
            return
        history = climbed(history, rung, now=now)
        now += rung.delay_ms
    raise AssertionError("no end")
