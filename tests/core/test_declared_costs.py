"""What a tool declares that a call may cost counts before the call, by the limits of the document. Those of the operator: test_money_in_sagas.py."""

from __future__ import annotations

from baton.core.graph.graph import Cap, Catch
from tests.core.build import Saga, done, program, ready, task
from tests.core.graphs_of import limited
from tests.core.test_caps import end_of, spent
from tests.kit.sentences import Says


def test_a_step_does_not_begin_that_may_cost_more_than_is_left_and_waits_for_those_that_may_give_back(
    says: Says,
) -> None:
    parts = program(task("a", cost=300), task("b", cost=300), task("c", "b"))
    saga = Saga(limited(parts, cost=Cap(most=500)))
    assert ready(saga.go()) == ["a"]
    saga.go(spent(done("a"), 200))
    assert ready(saga.go()) == ["b"]
    saga.go(spent(done("b"), 300))
    assert ready(saga.go()) == ["c"]

    saga = Saga(limited(parts, cost=Cap(most=500)))
    saga.go()
    saga.go(spent(done("a"), 201))
    assert end_of(saga) == ("failed", "limit_cost", "b")
    assert saga.state.failure is not None
    says(saga.state.failure.message)


def test_a_limit_of_the_saga_fails_only_the_call_that_may_pass_it() -> None:
    costly = task("b", "a", cost=300, catch=(Catch(codes=("limit_cost",), then=("h",)),))
    saga = Saga(limited(program(task("a"), costly, task("h", "b")), cost=Cap(most=500)))
    saga.go()
    saga.go(spent(done("a"), 201))
    assert ready(saga.go()) == ["h"]


def test_a_node_does_not_make_the_call_that_may_pass_its_limit() -> None:
    saga = Saga(program(task("a", cost=300, limits={"cost": Cap(most=299)})))
    saga.go()
    assert end_of(saga) == ("failed", "limit_cost", "a")
