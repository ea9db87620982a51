"""What is done about an attempt that failed: retried, done another way, asked about, escalated; and what ends that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from baton.core import events as ev
from baton.core.conditions.model import Cel, Condition
from baton.core.decide import Decision
from baton.core.failures.cells import ASK_USER, ESCALATE, REPLAN, RETRY, ROLLBACK, Change
from baton.core.failures.policies import Action, Match, Policy
from baton.core.failures.retry import CUSTOM, RetryChange
from baton.core.graph import Catch, Join, Node, Way
from baton.core.outcomes import Outcome
from baton.core.program import Program
from baton.core.state import ANSWER, Failing, status_of
from tests.core.build import T0, Saga, done, program, ready, task

DAY = 86_400_000


def broken(slot: str, code: str = "service_unavailable", *, attempt: int = 1, **more: Any) -> Outcome:
    failure = ev.Failure(code, "it broke", slot, status=more.pop("status", 0))
    return Outcome(
        slot=slot, attempt=attempt, started_at=T0, ended_at=more.pop("at", T0), failure=failure, **more
    )


def one(node: Node, **failures: Change) -> Program:
    return program(node, failures=failures)


def schedule(*pauses: int) -> Change:
    """So many pauses between attempts, and then the end of the step."""
    policy = RetryChange(
        backoff=CUSTOM, schedule=pauses, max_attempts=len(pauses) + 1, max_delay_ms=max(pauses)
    )
    return Change(retry=policy, ladder=(RETRY, ROLLBACK))


def chosen(saga: Saga) -> list[str]:
    """What was done about each failure, in the order of the log."""
    return [
        event.strategy
        for entry in saga.entries
        for event in entry.events
        if isinstance(event, ev.StrategyChosen)
    ]


def attempts(decision: Decision) -> list[tuple[str, int]]:
    return [(step.slot, step.attempt) for step in decision.run]


def answer(saga: Saga, action: str, key: str = "k", **more: Any) -> None:
    ask = next(failing.ask for failing in saga.state.failing.values() if failing.ask)
    said = {"ask": ask.id, "action": action, **more}
    event = ev.SignalReceived(name=ANSWER, key=key, payload=ev.Value(v=said), by="bob", at=saga.now)
    saga.put(event, epoch=0, invocation="api")


# ---- retry


def test_a_step_is_tried_again_after_the_pause_and_the_attempts_are_counted_in_the_log() -> None:
    saga = Saga(one(task("a"), any=schedule(1_000, 3_000)))
    decision = saga.go(broken("a"))
    assert saga.kinds == ["attempt_failed", "strategy_chosen"]
    assert (decision.run, decision.again, decision.due) == ((), T0 + 1_000, T0 + 1_000)
    assert status_of(saga.state, saga.program) == "waiting"
    assert attempts(saga.go(after_ms=999)) == []
    assert attempts(saga.go(after_ms=1)) == [("a", 2)]
    saga.go(broken("a", attempt=2, at=saga.now))
    assert attempts(saga.go(after_ms=3_000)) == [("a", 3)]
    saga.go(done("a", attempt=3))
    assert status_of(saga.state) == "completed"
    assert chosen(saga) == [RETRY, RETRY]


def test_a_step_whose_retries_are_used_up_has_failed_with_its_last_failure() -> None:
    saga = Saga(one(task("a"), any=schedule(0)))
    saga.go(broken("a", "timeout"))
    saga.go(broken("a", "rate_limited", attempt=2, at=T0 + 7))
    assert status_of(saga.state) == "failed"
    assert saga.kinds == ["step_failed", "saga_ended"]
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    failure = saga.state.ended.failure
    assert (failure.code, failure.kind, failure.tool, failure.attempt, failure.at) == (
        *("rate_limited", "transient", "t"),
        *(2, T0 + 7),
    )


def test_a_failure_that_nothing_changes_is_the_last_word_at_once() -> None:
    saga = Saga(program(task("a"), failures={}))
    saga.go(broken("a", "bad_request"))
    assert saga.kinds == ["step_failed", "saga_ended"]


def test_what_a_service_asks_for_is_waited_for() -> None:
    saga = Saga(program(task("a"), failures={}))
    assert saga.go(broken("a", "service_unavailable", retry_after_ms=20_000)).again == T0 + 20_000


def test_the_jitter_is_the_sagas_own_and_the_same_whenever_it_is_asked_for() -> None:
    pauses = [
        Saga(program(task("a"), failures={}), saga=name).go(broken("a", "rate_limited")).again
        for name in "xxy"
    ]
    assert pauses[0] == pauses[1] != pauses[2]


def test_branches_are_retried_each_by_itself() -> None:
    saga = Saga(program(task("a"), task("b"), task("c", "b"), failures={"any": schedule(5_000)}))
    decision = saga.go(broken("a"), done("b"))
    assert ready(decision) == ["c"]
    assert decision.again == T0 + 5_000
    assert list(saga.state.failing) == ["a"]


def test_neither_a_death_nor_a_cut_off_costs_an_attempt() -> None:
    saga = Saga(one(task("a"), any=schedule(0)))
    saga.go(broken("a"))
    saga.die()
    assert attempts(saga.go()) == [("a", 2)]
    saga.go(Outcome(slot="a", attempt=2, started_at=T0, ended_at=T0, budget_ms=5))
    assert attempts(saga.decision) == [("a", 2)]


def test_a_success_forgets_what_failed() -> None:
    saga = Saga(program(task("a"), task("b", "a"), failures={"any": schedule(0)}))
    saga.go(broken("a"))
    saga.go(done("a", attempt=2))
    assert saga.state.failing == {}


def test_a_saga_that_is_cancelled_is_not_tried_again() -> None:
    saga = Saga(one(task("a"), any=schedule(1_000)))
    saga.cancel(grace_ms=10)
    saga.go(broken("a"))
    assert saga.kinds == ["step_failed", "saga_ended"]
    assert status_of(saga.state) == "cancelled"


def test_hooks_are_called_before_the_next_attempt_and_those_that_nobody_carries_out_are_not() -> None:
    node = task("a", hooks={"clear_cache": "cache.clear"})
    change = Change(before_retry=("clear_cache", "refresh_page"), **_ladder(RETRY))
    saga = Saga(one(node, any=change))
    saga.go(broken("a", "timeout"))
    (step,) = saga.go(after_ms=1_000).run
    assert step.hooks == ("cache.clear",)
    assert step.failure is not None
    assert step.failure.code == "timeout"


def _ladder(*strategies: str) -> dict[str, Any]:
    return {"ladder": strategies}


# ---- another way


def test_a_replan_takes_the_best_way_that_carries_out_the_hint_and_each_way_once() -> None:
    ways = (
        Way(name="small", hints=("fallback_model",), arguments={"model": "small"}),
        Way(name="tiny", hints=("fallback_model",), arguments={"model": "tiny"}),
        Way(name="cut", hints=("truncate_context",), shorten="messages"),
    )
    saga = Saga(program(task("a", ways=ways, arguments={"model": "large"}), failures={}))
    for number, name in enumerate(["small", "tiny"], 1):
        (step,) = saga.go(broken("a", "model_unavailable", attempt=number)).run
        assert (step.attempt, step.way) == (number + 1, ways[number - 1])
        assert step.way is not None
        assert step.way.name == name
    saga.go(broken("a", "model_unavailable", attempt=3))
    assert chosen(saga) == [REPLAN, REPLAN, ASK_USER]


def test_a_failover_policy_goes_before_the_ladder_and_says_what_is_different() -> None:
    policy = Policy(
        name="late",
        when=Match(codes=("no_tables",), parameters={"party": (2,)}),
        then=Action(tool="delivery.order", arguments={"hour": "${input.hour}"}),
        message="Food is brought instead.",
    )
    node = task("a", arguments={"party": 2}, failover=(policy,))
    saga = Saga(program(node, failures={}), {"hour": 20})
    (step,) = saga.go(broken("a", "no_tables")).run
    assert step.way is not None
    assert step.way.tool == "delivery.order"
    assert step.arguments == {"party": 2, "hour": 20}
    (event,) = (e for e in saga.entries[-1].events if isinstance(e, ev.StrategyChosen))
    assert event.policy == "late"
    saga.go(broken("a", "no_tables", attempt=2))  # used up: the ladder has its turn
    assert chosen(saga) == [REPLAN, RETRY]


@pytest.mark.parametrize(
    ("action", "found"),
    [
        (Action(strategy=RETRY), [RETRY]),
        (Action(strategy=ESCALATE), [ESCALATE]),
        (Action(strategy=ROLLBACK), []),
        (Action(hint="fallback_model"), [REPLAN]),
        (Action(hint="summarise_context"), [RETRY]),
        (Action(arguments={"x": 1}), [REPLAN]),
    ],
)
def test_what_a_policy_can_do(action: Action, found: list[str]) -> None:
    way = Way(name="w", hints=("fallback_model",), arguments={"model": "m"})
    node = task("a", failover=(Policy(name="p", then=action),), ways=(way,))
    saga = Saga(program(node, failures={}))
    saga.go(broken("a", "timeout"))
    assert chosen(saga) == found


def test_a_policys_retry_ends_with_the_pauses_of_its_cell() -> None:
    node = task("a", failover=(Policy(name="p", then=Action(strategy=RETRY), at_most=5),))
    saga = Saga(one(node, any=schedule(0)))
    saga.go(broken("a"))
    saga.go(broken("a", attempt=2))
    assert chosen(saga) == [RETRY]
    assert status_of(saga.state) == "failed"


def test_a_policy_may_ask_for_the_failure_and_one_that_breaks_hides_nothing() -> None:
    def when(text: str) -> Match:
        condition: Condition = Cel(expression=text)
        return Match(condition=condition)

    policies = (
        Policy(name="bad", when=when("last_error.nothing.there == 1"), then=Action(strategy=ESCALATE)),
        Policy(name="no", when=when("last_error.code == 'x'"), then=Action(strategy=ESCALATE)),
        Policy(
            name="yes",
            when=when("last_error.attempt == 1 && last_error.action == 't'"),
            then=Action(strategy=RETRY),
        ),
    )
    saga = Saga(program(task("a", failover=policies), failures={}))
    saga.go(broken("a", "timeout"))
    (event,) = (e for e in saga.entries[-1].events if isinstance(e, ev.StrategyChosen))
    assert event.policy == "yes"
    assert event.why[0].startswith("bad: condition_")


# ---- a person is asked


def asking() -> Saga:
    saga = Saga(
        program(task("a"), task("b"), task("c", "b"), failures={"x": Change(ladder=(ASK_USER, ROLLBACK))})
    )
    saga.go(broken("a", "x"), running=["b"])
    return saga


def test_a_question_holds_its_step_and_nothing_else() -> None:
    saga = asking()
    assert saga.kinds == ["attempt_failed", "strategy_chosen", "notice_due"]
    assert ready(saga.go(done("b"))) == ["c"]
    saga.go(done("c"))
    assert status_of(saga.state, saga.program) == "suspended"
    ask = saga.state.failing["a"].ask
    assert ask is not None
    assert (ask.id, ask.options, ask.expires_at) == ("0.a.1", ("retry", "use", "fail"), T0 + DAY)
    assert saga.decision.due == T0 + DAY


def test_the_answer_retry_lets_it_run_again_with_other_arguments() -> None:
    saga = asking()
    answer(saga, "retry", arguments={"x": 2})
    steps = {step.slot: step for step in saga.go(running=["b"]).run}
    assert (steps["a"].attempt, steps["a"].arguments, steps["a"].decided_at) == (2, {"x": 2}, 0)
    assert saga.kinds == ["question_closed"]
    assert saga.state.signals == ()


def test_the_answer_use_gives_the_steps_output() -> None:
    saga = Saga(program(task("a"), output="${ctx.a.output}", failures={"x": Change(ladder=(ASK_USER,))}))
    saga.go(broken("a", "x"))
    answer(saga, "use", output={"booked": True})
    saga.tell()
    assert saga.state.ended is not None
    assert saga.state.ended.output == ev.Value(v={"booked": True})


def test_the_answer_fail_is_the_steps_last_word() -> None:
    saga = Saga(program(task("a"), failures={"x": Change(ladder=(ASK_USER,))}))
    saga.go(broken("a", "x"))
    answer(saga, "fail")
    saga.tell()
    assert saga.kinds == ["saga_ended"]
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert saga.state.ended.failure.code == "x"


def test_an_answer_to_another_question_is_none() -> None:
    saga = asking()
    said = {"ask": "0.a.9", "action": "retry"}
    saga.put(ev.SignalReceived(name=ANSWER, key="k", payload=ev.Value(v=said), by="bob", at=saga.now))
    assert "a" not in [step.slot for step in saga.go(running=["b"]).run]


def test_a_question_that_nobody_answers_expires_and_the_next_strategy_has_its_turn() -> None:
    saga = Saga(program(task("a"), failures={"x": Change(ladder=(ASK_USER, ESCALATE))}))
    saga.go(broken("a", "x"))
    saga.go(after_ms=DAY)
    assert chosen(saga) == [ASK_USER, ESCALATE]
    assert status_of(saga.state) == "parked"
    saga = Saga(program(task("a"), failures={"x": Change(ladder=(RETRY, ASK_USER), at_most={RETRY: 0})}))
    saga.go(broken("a", "x"))
    saga.go(after_ms=DAY)
    saga.tell()
    assert status_of(saga.state) == "failed"


# ---- escalation


def escalated() -> Saga:
    saga = Saga(
        program(
            task("a"), task("b"), task("c", "b"), failures={"x": Change(ladder=(ESCALATE,), severity="high")}
        )
    )
    saga.go(broken("a", "x"), running=["b"])
    return saga


def test_an_escalation_opens_an_incident_tells_who_is_on_call_and_parks() -> None:
    saga = escalated()
    assert saga.kinds == ["attempt_failed", "strategy_chosen", "notice_due", "parked"]
    (notice,) = saga.state.notices
    assert (notice.key, notice.to, notice.severity, notice.incident) == (
        "s1/0.a.1.incident",
        "on_call",
        "high",
        True,
    )
    assert ready(saga.go(done("b"))) == []
    assert status_of(saga.state) == "parked"


def test_who_resumes_a_parked_saga_has_the_step_tried_again() -> None:
    saga = escalated()
    saga.put(ev.Resumed(by="bob", at=saga.now))
    assert attempts(saga.go(running=["b"])) == [("a", 2)]


def test_an_answer_to_an_incident_lets_the_saga_go_on() -> None:
    saga = escalated()
    answer(saga, "use", output=1)
    saga.go(done("b"))
    assert saga.state.parked is None
    assert "a" not in saga.state.tokens
    assert ready(saga.decision) == ["c"]


# ---- telling


def test_notices_are_told_until_the_log_says_so_and_before_the_end() -> None:
    saga = Saga(program(task("a"), failures={"x": Change(ladder=(ASK_USER,))}))
    decision = saga.go(broken("a", "x"))
    assert [notice.key for notice in decision.notices] == ["s1/0.a.1"]
    answer(saga, "fail")
    decision = saga.go()
    assert saga.state.ended is None
    assert len(decision.notices) == 1
    saga.put(ev.NoticesSent(keys=("s1/0.a.1",)))
    saga.go()
    assert saga.state.ended is not None


def test_a_notice_that_was_told_is_not_told_again() -> None:
    saga = Saga(program(task("a")))
    notice = ev.Notice(key="k", to="user", code="c", message="m")
    saga.put(ev.NoticeDue(notice=notice), ev.NoticeDue(notice=notice))
    assert saga.state.notices == (notice,)
    saga.put(ev.NoticesSent(keys=("k",)))
    saga.put(ev.NoticeDue(notice=notice))
    assert saga.state.notices == ()


# ---- failure edges


def caught_by(*rules: Catch) -> Program:
    node = task("a", catch=rules)
    b, h, k = task("b", "a"), task("h", "a", arguments={"why": "${last_error.code}"}), task("k", "a")
    return program(node, b, h, k)


@pytest.mark.parametrize(
    ("rules", "runs"),
    [
        ([Catch(then=("h",))], ["h"]),
        ([Catch(codes=("other",), then=("k",)), Catch(kinds=("permanent",), then=("h",))], ["h"]),
        (
            [
                Catch(condition=Cel(expression="last_error.nothing.there == 1"), then=("k",)),
                Catch(then=("h", "k")),
            ],
            ["h", "k"],
        ),
        (
            [
                Catch(condition=Cel(expression="last_error.code == 'bad_request'"), then=("h",)),
                Catch(then=("k",)),
            ],
            ["h"],
        ),
    ],
)
def test_the_first_rule_that_fits_says_where_it_goes_on(rules: Iterable[Catch], runs: list[str]) -> None:
    saga = Saga(caught_by(*rules))
    assert ready(saga.go(broken("a", "bad_request"))) == runs
    if "h" in runs:
        assert saga.decision.run[0].arguments == {"why": "bad_request"}
    assert saga.state.failure is None


def test_a_failure_that_no_rule_fits_ends_the_saga() -> None:
    saga = Saga(caught_by(Catch(codes=("other",), then=("h",))))
    saga.go(broken("a", "bad_request"))
    assert status_of(saga.state) == "failed"


def test_where_the_failure_is_caught_nobody_is_asked_but_it_is_retried() -> None:
    b = program(
        task("a", catch=(Catch(then=("h",)),)),
        task("h", "a"),
        failures={"any": Change(retry=schedule(0).retry)},
    )
    saga = Saga(b)
    saga.go(broken("a", "timeout"))
    assert ready(saga.go(broken("a", "timeout", attempt=2))) == ["h"]
    assert chosen(saga) == [RETRY]


def test_an_error_in_the_handler_does_not_come_back_to_it() -> None:
    saga = Saga(caught_by(Catch(then=("h",))))
    saga.go(broken("a"))
    saga.go(broken("h"))
    assert status_of(saga.state) == "failed"


def test_what_follows_the_handlers_success_knows_no_last_error() -> None:
    h = task("h", "a")
    after = task("z", "h", when=Cel(expression="last_error == null"))
    saga = Saga(program(task("a", catch=(Catch(then=("h",)),)), h, after))
    saga.go(broken("a"))
    assert ready(saga.go(done("h"))) == ["z"]


def test_a_join_behind_a_caught_failure_hears_of_no_error() -> None:
    saga = Saga(
        program(
            task("a", catch=(Catch(then=("h",)),)),
            task("b", "a"),
            task("h", "a"),
            task("j", "b", "h", join=Join()),
        )
    )
    saga.go(broken("a"))
    assert ready(saga.go(done("h"))) == ["j"]
    assert saga.state.errors == {}


# ---- the fold


def test_events_about_slots_that_are_gone_change_nothing() -> None:
    saga = Saga(program(task("a")))
    state = saga.state
    facts = {"node": "z", "started_at": 1, "ended_at": 2, "tool": "t", "tool_version": "", "schema_hash": ""}
    events = (
        ev.AttemptFailed(attempt=1, failure=ev.Failure("x", "y"), **facts),  # type: ignore[arg-type]  # of mixed types
        ev.StrategyChosen(node="a", strategy=RETRY, code="x", at=1),
        ev.QuestionClosed(node="a", ask="q", action="retry", at=1),
    )
    saga.put(*events)
    same = msgspec.structs.replace(
        saga.state, version=state.version, last_at=state.last_at, epoch=state.epoch
    )
    assert msgspec.structs.replace(same, invocation=state.invocation, invocations=state.invocations) == state


def test_a_fork_gives_whoever_is_asked_as_much_time_as_at_the_cut() -> None:
    saga = asking()
    cut = saga.state.version
    saga.now += 5 * DAY
    saga.put(ev.Forked(cut=cut, branch=1, by="bob", at=saga.now))
    failing = saga.state.failing["a"]
    assert isinstance(failing, Failing)
    assert failing.ask is not None
    assert failing.ask.expires_at >= saga.now + DAY - 10
