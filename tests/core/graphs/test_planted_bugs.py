"""The random graphs can see: each engine bug planted here shows within a few of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide import context, program, scheduling, transitions, unknown_outcomes
from baton.core.decide.context import EvaluationContext
from baton.core.decide.transitions import Settlement
from baton.core.graph.graph import Graph, Node
from baton.core.graph.index import GraphIndex
from baton.core.log import state
from baton.core.log.folding import fold
from baton.core.nodes.registry import KINDS
from tests.core.graphs.driver import Luck
from tests.core.graphs.pair import program_of
from tests.core.graphs.shapes import Doc, Maker
from tests.core.graphs.test_random_graphs import SEED, bad_luck, graphs, run

MOST = 500
SIZE = 7

pytestmark = pytest.mark.no_cover

Patch = Callable[[pytest.MonkeyPatch], None]


def a_join_of_all_waits_for_one(patch: pytest.MonkeyPatch) -> None:
    def turn(node: Node, tails: Any, arrived: Mapping[str, bool], *given: Any) -> str:
        found = program.readiness_of(node, tails, arrived, *given)
        return (
            program.READY
            if found == program.PENDING and any(arrived.values()) and len(arrived) > 1
            else found
        )

    patch.setattr(program, "readiness_of", turn)


def one_failure_too_many_is_tolerated(patch: pytest.MonkeyPatch) -> None:
    def turn(node: Node, tails: Any, arrived: Mapping[str, bool], *given: Any) -> str:
        if node.join is not None and node.join.tolerated >= 0:
            node = replace(node, join=replace(node.join, tolerated=node.join.tolerated + 1))
        return program.readiness_of(node, tails, arrived, *given)

    patch.setattr(program, "readiness_of", turn)


def a_join_hears_what_comes_late(patch: pytest.MonkeyPatch) -> None:
    plain = fold.emit

    def emit(state: Any, *given: Any) -> dict[str, Any]:
        return {**plain(replace(state, closed={}), *given), "closed": state.closed}

    patch.setattr(fold, "emit", emit)


def a_join_stops_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GraphIndex, "_find_rests", lambda ways, graph: {})


def a_round_that_ends_leaves_its_rest_at_work(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transitions, "_round", lambda *given: ())


def steps_that_a_round_stops_are_not_told_of(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        unknown_outcomes,
        "stopped_notices",
        lambda at, *given: unknown_outcomes.stopped_notices(at, *given) if "#" in at.slot else iter(()),
    )  # late items are told of


def steps_that_a_join_stops_are_not_told_of(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scheduling, "stopped_notices", lambda *given: iter(()))


def a_loop_goes_round_once_more(patch: pytest.MonkeyPatch) -> None:
    plain = transitions._choose

    def choose(scope: EvaluationContext, node: Node) -> Any:
        if node.loop is not None:
            node = replace(node, loop=replace(node.loop, max_iterations=node.loop.max_iterations + 1))
        return plain(scope, node)

    patch.setattr(transitions, "_choose", choose)


def the_previous_round_is_this_one(patch: pytest.MonkeyPatch) -> None:
    plain = EvaluationContext._value

    def value(scope: EvaluationContext, path: Any) -> Any:
        return scope.state.outputs.get(path.node) if path.is_previous else plain(scope, path)

    patch.setattr(EvaluationContext, "_value", value)


def a_new_round_reads_what_the_last_one_gave(patch: pytest.MonkeyPatch) -> None:
    plain = transitions._again

    def again(*given: Any) -> Settlement:
        return replace(plain(*given), forget=())

    patch.setattr(transitions, "_again", again)


def ways_out_of_a_loop_that_are_not_taken_say_nothing(patch: pytest.MonkeyPatch) -> None:
    plain = transitions._go

    def go(ours: Any, state: Any, slot: str, node: Node, *rest: Any) -> Settlement:
        settlement = plain(ours, state, slot, node, *rest)
        return replace(settlement, emits=tuple(t for t in settlement.emits if t.src == node.name))

    patch.setattr(transitions, "_go", go)


def failures_are_forgotten_on_the_way(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(EvaluationContext, "errors", lambda scope: ())


def what_a_later_round_reads_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    def reach(ours: Any) -> dict[str, int]:
        forward: dict[str, int] = {}
        for node in reversed(ours.graph.nodes):
            forward[node.name] = ours._bit[node.name]
            for follower in node.after:
                forward[node.name] |= forward[follower]
        return forward

    patch.setattr(program.Program, "_reach", reach)


def _loses(patch: pytest.MonkeyPatch, change: Callable[..., Any]) -> None:
    """What counts as lost at a join is what `change` makes of the true function and its arguments."""
    plain = state.unrescued
    for module in (program, context):
        patch.setattr(module, "unrescued", lambda *given: change(plain, *given))


def a_caught_failure_is_lost_to_no_join(patch: pytest.MonkeyPatch) -> None:
    _loses(patch, lambda plain, *given: tuple(one for one in plain(*given) if not one.handled))


def a_handler_rescues_nothing(patch: pytest.MonkeyPatch) -> None:
    _loses(patch, lambda plain, ways, src, name, arrived, carried: plain(ways, src, name, {}, carried))


def anything_alive_rescues(patch: pytest.MonkeyPatch) -> None:
    def change(plain: Any, ways: Any, src: str, name: str, arrived: Any, carried: Any) -> Any:
        left = plain(ways, src, name, arrived, carried)
        return tuple(one for one in left if not (one.handled and any(arrived.values())))

    _loses(patch, change)


def only_handlers_rescue_and_nothing_behind_them(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GraphIndex, "from_handlers", lambda ways, handlers: frozenset(handlers))


def every_handler_is_lost_but_the_chosen_ones(patch: pytest.MonkeyPatch) -> None:
    plain = GraphIndex.__init__

    def init(ways: GraphIndex, graph: Graph) -> None:
        plain(ways, graph)
        ways.handlers = {}

    patch.setattr(GraphIndex, "__init__", init)


def ways_out_of_a_loop_are_not_lost(patch: pytest.MonkeyPatch) -> None:
    plain = state.carriers
    own = lambda event: {(src, dst) for src, dst in plain(event) if src == event.node}  # noqa: E731 - one line is its point
    patch.setattr(fold, "carriers", own)


def what_is_lost_is_not_chosen_where_failures_are_tolerated(patch: pytest.MonkeyPatch) -> None:
    def turn(node: Node, tails: Any, arrived: Any, failed: Any = (), lost: Any = ()) -> str:
        lost = () if node.join is not None and node.join.tolerated >= 0 else lost
        return program.readiness_of(node, tails, arrived, failed, lost)

    patch.setattr(program, "readiness_of", turn)


BUGS: list[Patch] = [
    a_caught_failure_is_lost_to_no_join,
    a_handler_rescues_nothing,
    anything_alive_rescues,
    only_handlers_rescue_and_nothing_behind_them,
    every_handler_is_lost_but_the_chosen_ones,
    ways_out_of_a_loop_are_not_lost,
    what_is_lost_is_not_chosen_where_failures_are_tolerated,
    what_a_later_round_reads_is_forgotten,
    a_join_of_all_waits_for_one,
    one_failure_too_many_is_tolerated,
    a_join_hears_what_comes_late,
    a_join_stops_nothing,
    a_round_that_ends_leaves_its_rest_at_work,
    steps_that_a_round_stops_are_not_told_of,
    steps_that_a_join_stops_are_not_told_of,
    a_loop_goes_round_once_more,
    the_previous_round_is_this_one,
    a_new_round_reads_what_the_last_one_gave,
    ways_out_of_a_loop_that_are_not_taken_say_nothing,
    failures_are_forgotten_on_the_way,
]


LATE = {
    "steps_that_a_round_stops_are_not_told_of": 472,
    "steps_that_a_join_stops_are_not_told_of": 196,
    "a_caught_failure_is_lost_to_no_join": 79,
    "anything_alive_rescues": 1377,
    "only_handlers_rescue_and_nothing_behind_them": 85,
    "ways_out_of_a_loop_are_not_lost": 426,
    "what_is_lost_is_not_chosen_where_failures_are_tolerated": 79,
    "what_a_later_round_reads_is_forgotten": 63,
    "a_new_round_reads_what_the_last_one_gave": 309,
    "a_join_of_all_waits_for_one": 41,
    "failures_are_forgotten_on_the_way": 38,
    "one_failure_too_many_is_tolerated": 40,
    "a_second_time_counts_again": 24,
    "one_retry_too_many": 24,
    "a_question_without_an_answer_is_tried_again": 30,
    "a_question_never_expires": 30,
    "an_outcome_of_an_earlier_attempt_counts": 30,
    "a_way_is_forgotten_when_it_fails": 32,
    "arguments_of_an_answer_are_forgotten": 32,
    "a_way_is_tried_twice": 32,
    "answers_and_what_they_come_to_are_apart": 32,
    "retries_before_an_answer_count_after_it": 105,
    "rules_of_catch_are_asked_from_the_last_one_on": 56,
}
"""Bugs that few graphs show, here and in test_planted_failing_bugs.py, and the number of the first draw that does: it is tried
before all others."""

_drawn: list[tuple[str, Doc, Graph]] = []
_more: list[Iterator[tuple[str, Doc, program.Program]]] = []


def drawn(first: int) -> Iterator[tuple[str, Doc, Graph]]:
    """The graphs, drawn and compiled once for all the bugs here: none is in the compiler."""
    if first:
        seed = f"{SEED}/{SIZE}/{first}"
        document = Maker(seed, SIZE).document()
        yield seed, document, program_of(document).graph
    if not _more:
        _more.append(graphs("", SIZE, MOST))
    for number in range(MOST):
        if number == len(_drawn):
            seed, document, ours = next(_more[0])
            _drawn.append((seed, document, ours.graph))
        yield _drawn[number]


def shows(change: Callable[[Graph], Graph] = lambda graph: graph, *, first: int = 0) -> int:
    """The number of the graph that shows that something is wrong; 0 if none of them does.

    `change`: as they are run; `first`: the draw that is tried before all others.
    """
    for number, (seed, document, graph) in enumerate(drawn(first), 1):
        try:
            run_both(seed, document, change(graph))
        except Exception:  # noqa: BLE001 - a planted bug may show as any error at all
            return number
    return 0


def run_both(seed: str, document: Doc, graph: Graph) -> None:
    draw, ours = random.Random(seed), program.Program(graph, KINDS)
    run(seed, document, ours, Luck(), draw)
    run(seed, document, ours, bad_luck(draw), draw)


@pytest.mark.parametrize("first", sorted({*LATE.values()}))
def test_without_a_bug_a_graph_that_is_tried_first_shows_nothing(first: int) -> None:
    run_both(*next(drawn(first)))


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_shows_in_the_random_graphs(bug: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    assert shows(first=LATE.get(bug.__name__, 0)), "nothing showed"
