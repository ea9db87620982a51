"""A saga that goes round in circles ends, though its document sets no limit: so many nodes may run, and no more."""

from __future__ import annotations

import msgspec
import pytest

from baton.core.decide.program import Program
from baton.core.graph.graph import Cap, Loop
from baton.core.log.folding.workflow_limits import LOOPING, counts_of, endless_failure
from baton.core.log.state import State, Used
from baton.core.nodes.registry import KINDS
from tests.core.build import Saga, done, program, ready, task
from tests.core.graphs_of import again
from tests.kit.sentences import Says


def circle(most: int, **limits: Cap) -> Saga:
    """`a` again and again, where `most` nodes may run; `limits` are the document's."""
    loop = Loop(condition=again(), max_iterations=50, back_to="a")
    graph = program(task("a", loop=loop, loops=("a",))).graph
    return Saga(Program(msgspec.structs.replace(graph, limits=limits), KINDS, most))


def rounds(saga: Saga, most: int = 40) -> int:
    """How often `a` ran until nothing was to be run any more."""
    count = 0
    while count < most and (slots := ready(saga.go())):
        saga.go(done(slots[0]))
        count += 1
    return count


def test_a_saga_that_goes_round_and_round_fails_when_more_nodes_ran_than_may(says: Says) -> None:
    saga = circle(10)
    assert rounds(saga) == 11
    assert saga.state.ended is not None
    failure = saga.state.ended.failure
    assert failure is not None
    assert (saga.state.ended.status, failure.code) == ("failed", "limit_hops")
    says(failure.message)


def test_a_document_may_ask_for_fewer_and_not_for_more() -> None:
    assert rounds(circle(10, hops=Cap(most=5))) == 5
    assert rounds(circle(10, hops=Cap(most=30))) == 11


def test_without_such_a_limit_it_goes_on() -> None:
    assert rounds(circle(0)) == 40


def test_bytes_and_hops_of_the_document_are_counted_beside_it() -> None:
    saga = circle(10, bytes=Cap(most=1_000_000))
    rounds(saga, 3)
    assert saga.state.used[""].hops == saga.state.used[LOOPING].hops == 3
    assert saga.state.used[LOOPING].bytes == 0 < saga.state.used[""].bytes


def test_what_does_not_loop_is_not_counted() -> None:
    assert counts_of(program(task("a"), task("b", "a")).graph) == ()
    assert counts_of(circle(1).program.graph) == (LOOPING,)


@pytest.mark.parametrize(("hops", "ends"), [(9, False), (10, False), (11, True)])
def test_what_is_exactly_at_the_limit_is_within_it(hops: int, ends: bool) -> None:
    state = State(used={LOOPING: Used(hops=hops)})
    assert (endless_failure(state, 10) is not None) is ends
    assert endless_failure(state, 0) is None
    assert endless_failure(State(), 10) is None, "a saga from before it was counted"
