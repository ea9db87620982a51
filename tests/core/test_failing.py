"""What is done about an attempt that failed: it is tried again, or done another way; and what ends that."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from baton.core.conditions.model import Cel, Condition
from baton.core.decide.outcomes import Outcome
from baton.core.failures.alternatives import Alternative
from baton.core.failures.failover import Action, Match, Policy
from baton.core.failures.policy import PolicyChange
from baton.core.log import events as ev
from baton.core.log.state import status_of
from tests.core.asked import steps_of
from tests.core.build import T0, Saga, done, program, ready, task
from tests.core.failing import attempts, broken, chosen, one, schedule
from tests.core.strategies import ASK_USER, ESCALATE, REPLAN, RETRY, ROLLBACK
from tests.kit.sentences import Says

# ---- retry


def test_a_step_is_tried_again_after_the_pause_and_the_attempts_are_counted_in_the_log() -> None:
    saga = Saga(one(task("a"), any=schedule(1_000, 3_000)))
    decision = saga.go(broken("a"))
    assert saga.kinds == ["attempt_failed", "strategy_chosen"]
    assert (steps_of(decision), decision.again, decision.due) == ((), T0 + 1_000, T0 + 1_000)
    assert status_of(saga.state, saga.program) == "waiting"
    assert attempts(saga.go(after_ms=999)) == []
    assert attempts(saga.go(after_ms=1)) == [("a", 2)]
    saga.go(broken("a", attempt=2, at=saga.now))
    assert attempts(saga.go(after_ms=3_000)) == [("a", 3)]
    saga.go(done("a", attempt=3))
    assert status_of(saga.state) == "completed"
    assert chosen(saga) == [RETRY, RETRY]


def test_an_attempt_that_is_in_the_log_counts_no_second_time() -> None:
    saga = Saga(one(task("a"), any=schedule(1_000)))
    saga.go(broken("a"))
    version = saga.state.version
    saga.go(broken("a"))
    assert saga.state.version == version


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


def test_hooks_are_called_before_the_next_attempt_but_not_those_that_no_tool_carries_out() -> None:
    node = task("a", hooks={"clear_cache": "cache.clear"})
    change = PolicyChange(before_retry=("clear_cache", "refresh_page"), **_ladder(RETRY))
    saga = Saga(one(node, any=change))
    saga.go(broken("a", "timeout"))
    (step,) = steps_of(saga.go(after_ms=1_000))
    assert step.hooks == ("cache.clear",)
    assert step.failure is not None
    assert step.failure.code == "timeout"


def _ladder(*strategies: str) -> dict[str, Any]:
    return {"ladder": strategies}


# ---- another way


def test_a_replan_takes_the_best_way_that_carries_out_the_hint_and_each_way_once() -> None:
    ways = (
        Alternative(name="small", hints=("fallback_model",), arguments={"model": "small"}),
        Alternative(name="tiny", hints=("fallback_model",), arguments={"model": "tiny"}),
        Alternative(name="cut", hints=("truncate_context",), shorten="messages"),
    )
    saga = Saga(program(task("a", ways=ways, arguments={"model": "large"}), failures={}))
    for number, name in enumerate(["small", "tiny"], 1):
        (step,) = steps_of(saga.go(broken("a", "model_unavailable", attempt=number)))
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
    (step,) = steps_of(saga.go(broken("a", "no_tables")))
    assert step.way is not None
    assert step.way.tool == "delivery.order"
    assert step.arguments == {"party": 2, "hour": 20}
    (event,) = (e for e in saga.entries[-1].events if isinstance(e, ev.StrategyChosen))
    assert (event.policy, event.message) == ("late", "Food is brought instead.")
    (notice,) = (e.notice for e in saga.entries[-1].events if isinstance(e, ev.NoticeDue))
    assert (notice.to, notice.message, notice.code) == ("user", "Food is brought instead.", "no_tables")
    assert (notice.incident, notice.ask, notice.key) == (False, "", "s1/0.a.1.policy")
    saga.go(broken("a", "no_tables", attempt=2))  # used up: the ladder follows
    assert not [e for e in saga.entries[-1].events if isinstance(e, ev.NoticeDue)]
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
    way = Alternative(name="w", hints=("fallback_model",), arguments={"model": "m"})
    node = task("a", failover=(Policy(name="p", then=action),), ways=(way,))
    saga = Saga(program(node, failures={}))
    saga.go(broken("a", "timeout"))
    assert chosen(saga) == found


@pytest.mark.parametrize(
    ("match", "found"), [(Match(), []), (Match(tools=("t",)), []), (Match(kinds=("permanent",)), [RETRY])]
)
def test_a_policy_for_all_failures_has_none_tried_again_that_is_permanent(
    match: Match, found: list[str]
) -> None:
    saga = Saga(
        program(task("a", failover=(Policy(name="p", when=match, then=Action(strategy=RETRY)),)), failures={})
    )
    saga.go(broken("a", "bad_request"))
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
    assert msgspec.structs.replace(same, invocation=state.invocation, counts=state.counts) == state


def test_a_policy_whose_arguments_break_does_not_fit(says: Says) -> None:
    policies = (
        Policy(name="bad", then=Action(arguments={"x": "${input.missing}"})),
        Policy(name="good", then=Action(arguments={"x": "${input.there}"})),
    )
    saga = Saga(program(task("a", failover=policies), failures={}), {"there": 1})
    (step,) = steps_of(saga.go(broken("a", "timeout")))
    assert step.arguments == {"x": 1}
    (event,) = (e for e in saga.entries[-1].events if isinstance(e, ev.StrategyChosen))
    assert event.policy == "good"
    says(event.why[0])
    saga = Saga(program(task("a", failover=policies[:1]), failures={}), {"there": 1})
    saga.go(broken("a", "timeout"))
    assert chosen(saga) == [RETRY]


def test_of_a_policy_that_has_nothing_left_the_log_names_the_reason_and_the_ladder_follows() -> None:
    policy = Policy(name="p", then=Action(strategy=RETRY), message="Once more.")
    saga = Saga(program(task("a", failover=(policy,)), failures={}))
    saga.go(broken("a", "service_unavailable", retry_after_ms=90_000_000))
    (event,) = (e for e in saga.entries[-1].events if isinstance(e, ev.StrategyChosen))
    assert (event.strategy, event.policy, event.message) == (ASK_USER, "", "")
    assert event.why[0] == "p: used up"
