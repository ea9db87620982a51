"""What models have cost goes with the saga's state: by model, bounded, whatever branch and whatever became of the attempt."""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.folding.workflow_limits import (
    LONGEST_NAME,
    MOST_MODELS,
    OTHERS,
    SAGA,
    UNANSWERED,
    with_models,
)
from baton.core.log.state import State
from baton.core.models.usage import Usage
from baton.core.nodes.registry import KINDS
from baton.core.read.day_costs import DayCosts
from tests.core.build import T0, Saga, done, failed, program, task
from tests.core.nodes.thinking import TOOLS
from tests.kit.views import as_json


def used(model: str = "m", cost: int = 5) -> tuple[Usage, ...]:
    return (Usage(model=model, input=100, output=10, cost=cost),)


def test_a_step_that_succeeds_and_one_that_fails_count() -> None:
    saga = Saga(program(task("a"), task("b", "a")))
    saga.go(replace(done("a"), usage=used(), cost=5))
    saga.go(replace(failed("b", "bad_request"), usage=used("n", 7), cost=7))
    assert saga.state.money.models == {"m": (100, 10, 5), "n": (100, 10, 7)}


def test_an_attempt_that_fails_or_is_given_up_counts() -> None:
    saga = Saga(program(task("a")))
    saga.go()
    saga.go(replace(failed("a", "timeout"), usage=used(), cost=5))
    assert saga.state.money.models == {"m": (100, 10, 5)}
    cut = ev.StepInterrupted(node="a", started_at=T0, ended_at=T0, budget_ms=1, cost=9, assumed=9)
    state = apply(saga.state, cut)
    assert state.money.models[UNANSWERED] == (0, 0, 9)
    revived = ev.Revived(dead="i1", dead_epoch=1, dead_until=T0, at=T0, assumed={"a": 4})
    assert apply(state, revived).money.models[UNANSWERED] == (0, 0, 13)


def test_tokens_count_for_the_saga_and_the_node_that_have_limits_however_an_attempt_ends() -> None:
    nodes = ("a: {tool: look, limits: {tokens: 900}}", "b: {tool: look, after: a}")
    graph = compile_document(f"name: w\nlimits: {{tokens: 999}}\nnodes: {{{', '.join(nodes)}}}", TOOLS)
    saga = Saga(Program(graph, KINDS))
    saga.go()
    cut = ev.StepInterrupted(node="a", started_at=T0, ended_at=T0, budget_ms=1, usage=used(UNANSWERED, 0))
    state = apply(saga.state, cut)
    assert (state.used[SAGA].tokens, state.used["a"].tokens) == (110, 110)
    assert state.money.models == {UNANSWERED: (100, 10, 0)}
    saga.go(replace(done("a"), usage=used()))
    saga.go(replace(done("b"), usage=used()))
    assert (saga.state.used[SAGA].tokens, saga.state.used["a"].tokens) == (220, 110)


def test_what_was_held_for_a_request_and_has_come_back_is_no_line() -> None:
    held = with_models(State(), "a", (), 9)
    assert held.money.models == {UNANSWERED: (0, 0, 9)}
    assert with_models(held, "a", used(), -9).money.models == {"m": (100, 10, 5)}


def test_a_saga_without_models_has_nothing_of_it() -> None:
    state = State()
    assert with_models(state, "a", ()) is state


def test_many_models_are_bounded_and_a_long_name_is_cut() -> None:
    state = State()
    for number in range(2 * MOST_MODELS):
        state = with_models(state, "a", used(f"m{number}"))
    assert len(state.money.models) == MOST_MODELS + 1
    assert state.money.models[OTHERS] == (100 * MOST_MODELS, 10 * MOST_MODELS, 5 * MOST_MODELS)
    (name,) = with_models(State(), "a", used("x" * 500)).money.models
    assert len(name) == LONGEST_NAME


def test_sums_of_a_day_have_each_saga_once_and_what_cost_most_in_front() -> None:
    sums = DayCosts("workflow")
    sums.add("w", "ada", {"m": (1, 2, 3), "n": (4, 5, 6)})
    sums.add("w", "eve", {"m": (1, 2, 3)})
    sums.add("v", "eve", {"m": (1, 2, 1_000_000)})
    sums.add("quiet", "eve", {})
    assert as_json(sums.rows()) == [
        {"key": "v", "sagas": 1, "input": 1, "output": 2, "usd": 1.0},
        {"key": "w", "sagas": 2, "input": 6, "output": 9, "usd": 0.000012},
    ]
