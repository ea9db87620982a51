"""What is done about a failure where something else is wrong, too: policies that break, doubts, questions, secrets, forks."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from baton.core.conditions import SandboxAnswer
from baton.core.conditions.model import Python
from baton.core.decide.outcomes import Outcome
from baton.core.effects.toolspec import ONCE
from baton.core.failures.failover import Action, Policy
from baton.core.failures.policy import PolicyChange, RetryChange
from baton.core.graph.graph import Branch, Cap, Catch, Rule
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.log.state import ANSWER, UNKNOWN_OUTCOME, status_of
from tests.core.asked import questions_of, steps_of
from tests.core.build import AT_ONCE, T0, Saga, done, program, ready, task
from tests.core.failing import DAY, answer, attempts, broken, chosen, one
from tests.core.strategies import ASK_USER, ESCALATE, RETRY, ROLLBACK
from tests.kit.sentences import Says

SECRET = "sk-ant-api03-AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH1234567890abcdef"
GRACE = Limits().effect_grace_ms


def last_choice(saga: Saga) -> ev.StrategyChosen:
    found = (
        event for entry in saga.entries for event in entry.events if isinstance(event, ev.StrategyChosen)
    )
    return list(found)[-1]


def in_doubt(code: str = "timeout", *, attempt: int = 1, at: int = T0) -> Outcome:
    failure = ev.Failure(code, "no answer", "a", doubt=True)
    return Outcome(slot="a", attempt=attempt, started_at=T0, ended_at=at, failure=failure)


def of_claim(outcome: Outcome, owner: str) -> Outcome:
    """The outcome of an attempt that met this claim."""
    assert outcome.failure is not None
    return replace(outcome, failure=msgspec.structs.replace(outcome.failure, claim=owner))


# ---- policies


def test_arguments_of_a_policy_that_no_state_should_hold_are_not_taken(says: Says) -> None:
    policies = (
        Policy(name="big", then=Action(arguments={"x": "${ctx.b.output}"})),
        Policy(name="small", then=Action(arguments={"x": 1})),
    )
    saga = Saga(program(task("b"), task("a", "b", failover=policies), failures={}))
    saga.go(done("b", "x" * 40_000))
    (step,) = steps_of(saga.go(broken("a", "timeout")))
    assert step.arguments == {"x": 1}
    choice = last_choice(saga)
    assert choice.policy == "small"
    says(choice.why)


def test_why_a_policy_did_not_fit_quotes_no_secret(says: Says) -> None:
    policy = Policy(name="p", then=Action(arguments={"x": "${input.missing}"}))
    saga = Saga(program(task("a", failover=(policy,)), failures={}), {SECRET: 1})
    saga.go(broken("a", "timeout"))
    (why,) = last_choice(saga).why
    says(why)
    assert SECRET not in why


def test_a_question_of_a_policy_without_an_answer_goes_on_where_its_class_does() -> None:
    policy = Policy(name="p", then=Action(strategy=ASK_USER))
    saga = Saga(program(task("a", failover=(policy,)), failures={}))
    saga.go(broken("a", "disk_full"))
    saga.go(after_ms=DAY)
    assert chosen(saga) == [ASK_USER, ESCALATE]
    assert status_of(saga.state) == "parked"


def test_nothing_that_comes_before_the_question_of_a_policy_is_done_after_it() -> None:
    policy = Policy(name="p", then=Action(strategy=ASK_USER))
    ladder = PolicyChange(ladder=(RETRY, ROLLBACK))
    saga = Saga(program(task("a", failover=(policy,)), failures={"disk_full": ladder}))
    saga.go(broken("a", "disk_full"))
    saga.go(after_ms=DAY)
    saga.tell()
    assert (chosen(saga), status_of(saga.state)) == ([ASK_USER], "failed")


# ---- pauses


def test_what_a_service_asks_for_is_waited_out_whatever_the_budget_says() -> None:
    saga = Saga(program(task("a"), failures={}))
    decision = saga.go(broken("a", "rate_limited", retry_after_ms=1_200_000))
    assert chosen(saga) == [RETRY]
    assert decision.again is not None
    assert decision.again >= T0 + 1_200_000


@pytest.mark.parametrize(
    ("wait", "later"),
    [
        (None, DAY),
        (DAY + 1, 0),
    ],
)
def test_why_there_is_no_other_attempt_is_said(wait: int | None, later: int, says: Says) -> None:
    saga = Saga(program(task("a"), failures={}))
    saga.go(broken("a", "service_unavailable", retry_after_ms=1_000))
    saga.go(after_ms=later + 1_000)
    saga.go(broken("a", "service_unavailable", attempt=2, retry_after_ms=wait, at=saga.now))
    says(last_choice(saga).why)


def test_a_fork_gives_the_retries_the_time_that_they_had_at_the_cut() -> None:
    policy = RetryChange(max_attempts=5, backoff="fixed", base_ms=1_000, budget_ms=60_000)
    saga = Saga(one(task("a"), any=PolicyChange(retry=policy, ladder=(RETRY, ROLLBACK))))
    saga.go(broken("a"))
    cut = saga.state.version
    saga.now += 5 * DAY
    saga.put(ev.Forked(cut=cut, branch=1, by="bob", at=saga.now))
    assert attempts(saga.go()) == [("a", 2)]
    saga.go(broken("a", attempt=2, at=saga.now))
    assert chosen(saga) == [RETRY, RETRY]


# ---- what may happen only once


@pytest.mark.parametrize(("code", "pause"), [("timeout", GRACE), ("connection_failed", 1_000)])
def test_a_doubt_is_looked_at_first_and_not_while_what_was_cut_off_may_still_end(
    code: str, pause: int, says: Says
) -> None:
    saga = Saga(one(task("a", effect=ONCE), any=PolicyChange(ladder=(ESCALATE,))))
    decision = saga.go(in_doubt(code))
    assert (decision.again, status_of(saga.state, saga.program)) == (T0 + pause, "waiting")
    choice = last_choice(saga)
    assert (choice.strategy, choice.look) == (RETRY, True)
    says(choice.why)
    (step,) = steps_of(saga.go(after_ms=pause))
    assert (step.attempt, step.look) == (2, True)


def test_a_retry_after_a_doubt_keeps_away_from_what_was_cut_off() -> None:
    saga = Saga(program(task("a", effect=ONCE), failures={}))
    assert saga.go(in_doubt()).again == T0 + GRACE


def test_what_verify_could_not_find_out_is_for_a_person(says: Says) -> None:
    saga = Saga(
        program(
            task("a", effect=ONCE), failures=AT_ONCE | {UNKNOWN_OUTCOME: PolicyChange(ladder=(ASK_USER,))}
        )
    )
    saga.go(in_doubt())
    saga.go(after_ms=GRACE)
    saga.go(in_doubt(attempt=2, at=saga.now))
    failure = saga.state.failing["a"].failure
    assert (failure.code, failure.kind, failure.doubt) == (UNKNOWN_OUTCOME, "user_resolvable", False)
    says(failure.message)
    assert chosen(saga) == [RETRY, ASK_USER]


@pytest.mark.parametrize("action", ["retry", "use"])
@pytest.mark.parametrize("claim", ["i7-2", ""])
def test_an_answer_about_an_unknown_outcome_covers_the_claim_that_was_asked_about(
    action: str, claim: str
) -> None:
    saga = Saga(program(task("a", effect=ONCE), failures={}))
    saga.go(of_claim(broken("a", UNKNOWN_OUTCOME, at=T0 + 7), claim))
    saga.go(after_ms=DAY // 2)
    more: dict[str, Any] = {"output": 3} if action == "use" else {}
    answer(saga, action, **more)
    (step,) = steps_of(saga.go(after_ms=5))
    assert step.decided == claim
    assert step.given == (ev.Value(v=3) if action == "use" else None)


def test_an_answer_about_another_failure_covers_no_claim() -> None:
    saga = Saga(one(task("a", effect=ONCE), x=PolicyChange(ladder=(ASK_USER,))))
    saga.go(of_claim(broken("a", "x"), "i7-2"))
    answer(saga, "retry")
    (step,) = steps_of(saga.go())
    assert step.decided == ""


def test_what_verify_could_not_find_out_names_the_claim_that_was_looked_at() -> None:
    saga = Saga(
        program(
            task("a", effect=ONCE), failures=AT_ONCE | {UNKNOWN_OUTCOME: PolicyChange(ladder=(ASK_USER,))}
        )
    )
    saga.go(in_doubt())
    saga.go(after_ms=GRACE)
    saga.go(of_claim(in_doubt(attempt=2, at=saga.now), "i7-2"))
    answer(saga, "retry")
    (step,) = steps_of(saga.go(after_ms=5))
    assert step.decided == "i7-2"


def test_a_fork_leaves_the_moment_of_a_steps_turn_as_it_was() -> None:
    """The window of a key is that moment's: in another one it would be done again."""
    saga = Saga(program(task("a", timed=True)))
    (step,) = steps_of(saga.go())
    assert (saga.kinds, step.since) == (["node_began"], T0)
    saga.now += DAY
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="bob", at=saga.now))
    assert saga.state.begun == {"a": T0 + DAY}, "what limits its time begins anew"
    (step,) = steps_of(saga.go())
    assert step.since == T0


@pytest.mark.parametrize(("effect", "ends"), [(ONCE, False), ("keyed", True)])
def test_what_may_happen_only_once_is_not_stopped_in_the_middle(effect: str, ends: bool) -> None:
    limits = {"wall_time": Cap(most=1_000)}
    node = task("a", effect=effect, limits=limits, timed=True, catch=(Catch(then=("b",)),))
    saga = Saga(program(node, task("b", "a")))
    saga.go()
    decision = saga.go(after_ms=2_000, running=["a"])
    assert (ready(decision) == ["b"]) == ends
    assert ("a" in saga.state.tokens) == (not ends)


# ---- questions


def test_what_was_resumed_by_hand_waits_for_no_answer_any_more() -> None:
    saga = Saga(program(task("a"), failures={"x": PolicyChange(ladder=(ESCALATE,))}))
    saga.go(broken("a", "x"))
    ask = saga.state.failing["a"].ask
    assert ask is not None
    saga.put(ev.SignalReceived(name=ANSWER, key=ask.id, payload=ev.Value(v={}), by="bob", at=saga.now))
    saga.put(ev.SignalReceived(name="go", key=ask.id, payload=ev.Value(), by="bob", at=saga.now))
    saga.put(ev.Resumed(by="bob", at=saga.now))
    failing = saga.state.failing["a"]
    assert (failing.ask, failing.strategy) == (None, "")
    assert [signal.name for signal in saga.state.signals] == ["go"]
    assert attempts(saga.go()) == [("a", 2)]


def test_an_answer_about_a_step_that_the_saga_no_longer_needs_is_forgotten() -> None:
    """As when a join went on without it in the moment in which the answer came."""
    saga = Saga(program(task("a"), task("b"), failures={"x": PolicyChange(ladder=(ASK_USER,))}))
    saga.go(broken("a", "x"), running=["b"])
    ask = saga.state.failing["a"].ask
    assert ask is not None
    said = ev.Value(v={"ask": ask.id, "action": "retry"})
    saga.put(
        ev.SignalReceived(name=ANSWER, key=f"{ask.id}/k", payload=said, by="bob", at=saga.now),
        ev.NodeSkipped(node="a", why="join j"),
    )
    assert (saga.state.failing, saga.state.signals) == ({}, ())


@pytest.mark.parametrize(("action", "way"), [("use", ["b"]), ("fail", ["c"])])
def test_an_answer_to_an_incident_waits_for_the_condition_that_decides_the_way(
    action: str, way: list[str]
) -> None:
    asks = Python(code="def evaluate(output, context): return True", of="input")
    node = task(
        "a",
        branch=Branch(rules=(Rule(condition=asks, then=("b",)),), default=("d",)),
        catch=(Catch(condition=asks, then=("c",)), Catch(then=("d",))),
    )
    nodes = node, task("b", "a"), task("c", "a"), task("d", "a")
    saga = Saga(program(*nodes, failures={"x": PolicyChange(ladder=(ESCALATE,))}), {})
    lacking = saga.go(broken("a", "x"))
    yes = {question.key: SandboxAnswer(value=True) for question in questions_of(lacking)}
    saga.go(broken("a", "x"), answers=yes)
    assert status_of(saga.state) == "parked"
    more: dict[str, Any] = {"output": 1} if action == "use" else {}
    answer(saga, action, **more)
    lacking = saga.go()
    (question,) = questions_of(lacking)
    assert lacking.record == ()
    assert ready(saga.go(answers={question.key: SandboxAnswer(value=True)})) == way


# ---- secrets


def test_what_the_engine_says_of_values_has_no_secret_in_it() -> None:
    schema = {"type": "object", "properties": {"t": {"enum": ["x"]}}}
    value = {"t": f"password=hunter2secret {SECRET}"}
    saga = Saga(one(task("a", output_schema=schema), any=PolicyChange(ladder=(ESCALATE,))))
    saga.go(done("a", value))
    assert saga.state.failing["a"].failure.code == "output_invalid"
    assert is_hidden(saga.entries[-1])


@pytest.mark.parametrize("before", [0, 83])
def test_a_secret_is_taken_out_before_the_text_is_cut(before: int) -> None:
    branch = Branch(choose="output", among=("b",), default=("b",))
    saga = Saga(program(task("a", branch=branch), task("b", "a")))
    saga.go(done("a", f"{'x' * before} {SECRET}"))
    assert saga.state.ended is not None
    failure = saga.state.ended.failure
    assert failure is not None
    assert failure.code == "branch_not_allowed"
    assert is_hidden(failure)


def is_hidden(said: ev.Entry | ev.Failure) -> bool:
    """Whether nothing of the secrets is in it."""
    text = msgspec.json.encode(said).decode()
    return "sk-ant" not in text and "hunter2" not in text
