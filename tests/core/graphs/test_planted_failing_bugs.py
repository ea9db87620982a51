"""The random graphs see what is wrong with retries, questions and caught failures: each bug planted here shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from baton.core.decide import decide, failure_handling, outcomes, retries, scheduling, transitions
from baton.core.decide.context import EvaluationContext
from baton.core.decide.decision import DecisionBuilder, RunStep
from baton.core.decide.outcomes import Outcome
from baton.core.decide.program import Program
from baton.core.failures import alternatives
from baton.core.failures.strategies import ladder, replan
from baton.core.failures.strategies.base import History, LadderStep
from baton.core.graph.graph import Graph
from baton.core.log import events as ev
from baton.core.log.folding import fold
from baton.core.log.slots import slot_of
from baton.core.log.state import ANSWER, State
from baton.core.nodes.base import Activation
from tests.core.graphs.test_planted_bugs import LATE, Patch, shows
from tests.core.strategies import ASK_USER, RETRY

pytestmark = pytest.mark.no_cover


def _folds(patch: pytest.MonkeyPatch, kind: type, to: Callable[[State, State, Any], State]) -> None:
    """An event of this kind is folded as it is, and then as `to` says of the state before, that behind and the event."""
    plain = fold._TABLE[kind]
    patch.setitem(fold._TABLE, kind, lambda state, event: to(state, plain(state, event), event))


def _slot(event: Any) -> str:
    return slot_of(event.node, event.iteration)


def attempts_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    def to(before: State, behind: State, event: Any) -> State:
        failing = behind.failing.get(_slot(event))
        if failing is None:
            return behind
        return replace(behind, failing={**behind.failing, _slot(event): replace(failing, attempts=1)})

    _folds(patch, ev.AttemptFailed, to)


def an_interruption_counts_as_an_attempt(patch: pytest.MonkeyPatch) -> None:
    def to(before: State, behind: State, event: Any) -> State:
        failing = behind.failing.get(_slot(event))
        if failing is None:
            return behind
        more = replace(failing, attempts=failing.attempts + 1)
        return replace(behind, failing={**behind.failing, _slot(event): more})

    _folds(patch, ev.StepInterrupted, to)


def a_second_time_counts_again(patch: pytest.MonkeyPatch) -> None:
    plain = fold._TABLE[ev.AttemptFailed]

    def failed(state: State, event: Any) -> State:
        others = {slot: one for slot, one in state.failing.items() if slot != _slot(event)}
        return plain(replace(state, failing=others), event)

    patch.setitem(fold._TABLE, ev.AttemptFailed, failed)


def what_was_settled_goes_on_failing(patch: pytest.MonkeyPatch) -> None:
    def to(before: State, behind: State, event: Any) -> State:
        return replace(behind, failing={**before.failing, **behind.failing})

    _folds(patch, ev.StepSucceeded, to)


def a_way_is_forgotten_when_it_fails(patch: pytest.MonkeyPatch) -> None:
    def to(before: State, behind: State, event: Any) -> State:
        failing = behind.failing.get(_slot(event))
        if failing is None:
            return behind
        return replace(behind, failing={**behind.failing, _slot(event): replace(failing, way=None)})

    _folds(patch, ev.AttemptFailed, to)


def a_retry_begins_without_a_pause(patch: pytest.MonkeyPatch) -> None:
    def may_try_again(builder: Any, at: Activation) -> bool:
        return builder.state.failing[at.slot].due_at > 0 or retries.may_try_again(builder, at)

    patch.setattr(scheduling, "may_try_again", may_try_again)


def what_waits_for_its_time_is_not_looked_at_then(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DecisionBuilder, "due_by", lambda builder, moment: None)


def arguments_of_an_answer_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    planned: Callable[[DecisionBuilder, Activation, Any], RunStep] = scheduling.__dict__["next_attempt"]

    def next_attempt(builder: DecisionBuilder, at: Activation, arguments: Any) -> RunStep:
        found = planned(builder, at, arguments)
        return msgspec.structs.replace(found, arguments=arguments)

    patch.setattr(scheduling, "next_attempt", next_attempt)


def an_answer_counts_for_any_question(patch: pytest.MonkeyPatch) -> None:
    def answer(builder: Any, slot: str, ask: ev.Ask) -> Any:
        said = (one for one in builder.state.signals if one.name == ANSWER)
        return next(((one, one.payload.v) for one in said), None)

    patch.setattr(retries, "_answer", answer)


def a_question_without_an_answer_is_tried_again(patch: pytest.MonkeyPatch) -> None:
    plain = failure_handling.handle_failure

    def handle_failure(*given: Any, above: str = "") -> Iterator[ev.Event]:
        return plain(*given)

    patch.setattr(failure_handling, "handle_failure", handle_failure)


def a_question_never_expires(patch: pytest.MonkeyPatch) -> None:
    plain = failure_handling._ask

    def ask(*given: Any) -> ev.Ask:
        found = plain(*given)
        return replace(found, expires_at=0 if found.expires_at == 0 else 2**60)

    patch.setattr(failure_handling, "_ask", ask)


def people_are_asked_about_what_the_graph_handles(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(failure_handling, "is_handled", lambda scope, failure: False)


def retries_before_an_answer_count_after_it(patch: pytest.MonkeyPatch) -> None:
    plain = ladder.after_step

    def recorded(history: History, step: LadderStep, *, now: int) -> History:
        found = plain(history, step, now=now)
        return found if step.strategy != ASK_USER else replace(found, retries=history.retries)

    patch.setattr(ladder, "after_step", recorded)


def one_retry_too_many(patch: pytest.MonkeyPatch) -> None:
    plain = ladder.after_step

    def recorded(history: History, step: LadderStep, *, now: int) -> History:
        found = plain(history, step, now=now)
        is_second = step.strategy == RETRY and found.total == 2
        return replace(found, retries=found.retries - 1) if is_second else found

    patch.setattr(ladder, "after_step", recorded)


def a_way_is_tried_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(replan, "choose", lambda hints, ways, used: alternatives.choose(hints, ways, ()))


def a_parked_saga_goes_on(patch: pytest.MonkeyPatch) -> None:
    _folds(patch, ev.Parked, lambda before, behind, event: before)


def answers_and_what_they_come_to_are_apart(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decide, "_leads_on", lambda event: False)


def all_rules_of_catch_fit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transitions, "catching_rule", lambda scope, failure: 0 if _node(scope).catch else None)


def _node(scope: EvaluationContext) -> Any:
    return scope.program.nodes[scope.slot.partition("@")[0]]


def a_handler_does_not_know_the_failure(patch: pytest.MonkeyPatch) -> None:
    plain = EvaluationContext._carried
    patch.setattr(EvaluationContext, "_carried", lambda scope: (one for one in plain(scope) if not one[0]))


def a_handler_runs_after_a_success(patch: pytest.MonkeyPatch) -> None:
    plain = transitions._choose

    def choose(scope: EvaluationContext, node: Any) -> Any:
        again, chosen, way = plain(scope, node)
        return again, chosen | {name for rule in node.catch for name in rule.then}, way

    patch.setattr(transitions, "_choose", choose)


def an_outcome_of_an_earlier_attempt_counts(patch: pytest.MonkeyPatch) -> None:
    def settle(program: Program, state: State, outcome: Outcome, *rest: Any) -> Any:
        known = {slot: replace(one, attempts=one.attempts - 1) for slot, one in state.failing.items()}
        return outcomes.settle(program, replace(state, failing=known), outcome, *rest)

    patch.setattr(decide, "settle", settle)


BUGS: list[Patch] = [
    attempts_are_not_counted,
    an_interruption_counts_as_an_attempt,
    a_second_time_counts_again,
    what_was_settled_goes_on_failing,
    a_way_is_forgotten_when_it_fails,
    a_retry_begins_without_a_pause,
    what_waits_for_its_time_is_not_looked_at_then,
    arguments_of_an_answer_are_forgotten,
    an_answer_counts_for_any_question,
    a_question_without_an_answer_is_tried_again,
    a_question_never_expires,
    people_are_asked_about_what_the_graph_handles,
    retries_before_an_answer_count_after_it,
    one_retry_too_many,
    a_way_is_tried_twice,
    a_parked_saga_goes_on,
    answers_and_what_they_come_to_are_apart,
    all_rules_of_catch_fit,
    a_handler_does_not_know_the_failure,
    a_handler_runs_after_a_success,
    an_outcome_of_an_earlier_attempt_counts,
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_in_what_is_done_about_failures_shows(
    bug: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    assert shows(first=LATE.get(bug.__name__, 0)), "nothing showed"


def test_rules_of_catch_that_are_asked_from_the_last_one_on_show() -> None:
    def backwards(graph: Graph) -> Graph:
        return replace(graph, nodes=tuple(replace(node, catch=node.catch[::-1]) for node in graph.nodes))

    assert shows(backwards, first=LATE["rules_of_catch_are_asked_from_the_last_one_on"]), "nothing showed"
