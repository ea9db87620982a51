"""The random graphs see what is wrong with graphs of a document and with fresh waits: each bug planted here shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide import handler
from baton.core.decide.context import EvaluationContext
from baton.core.decide.program import Program
from baton.core.graph.graph import INPUT, OUTER
from baton.core.log import events as ev
from baton.core.log.folding import fold, open_folds
from baton.core.log.state import State
from baton.core.nodes.base import Activation, Next, NodeContext, Opened
from baton.core.nodes.child import ChildKind
from baton.core.nodes.subgraph import GraphKind
from baton.core.nodes.wait import WaitKind
from tests.core.graphs.test_planted_bugs import Patch, drawn, run_both, shows

pytestmark = pytest.mark.no_cover


# ---- graphs of a document ------------------------------------------------------------------------------------------------


def _starts(patch: pytest.MonkeyPatch, change: Callable[[dict[str, Any], Activation], Any]) -> None:
    """What a graph is started with is changed: `change` gets it, and the node that starts it."""

    def begin(kind: GraphKind, at: Activation, context: NodeContext) -> Next | None:
        said = ChildKind.begin(kind, at, context)
        if not isinstance(said, Opened) or not isinstance(said.event, ev.ChildOpened):
            return said
        return Opened(replace(said.event, input=ev.Value(v=change(said.event.input.v, at))))

    patch.setattr(GraphKind, "begin", begin, raising=False)


def _sees(patch: pytest.MonkeyPatch, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    _starts(patch, lambda given, at: {**given, **({OUTER: change(given[OUTER])} if OUTER in given else {})})


def the_input_of_the_starter_is_not_passed_on(patch: pytest.MonkeyPatch) -> None:
    _starts(patch, lambda given, at: {**given, INPUT: {}})


def a_graph_sees_the_item_of_another_index(patch: pytest.MonkeyPatch) -> None:
    _sees(patch, lambda seen: {**seen, **({"index": seen["index"] + 1} if "index" in seen else {})})


def an_item_of_a_graph_is_the_list(patch: pytest.MonkeyPatch) -> None:
    _sees(patch, lambda seen: {**seen, **({"item": [seen["item"]]} if "item" in seen else {})})


def a_graph_does_not_see_the_failure_before_it(patch: pytest.MonkeyPatch) -> None:
    _sees(patch, lambda seen: {**seen, "last_error": None})


def a_graph_sees_outputs_of_other_nodes(patch: pytest.MonkeyPatch) -> None:
    def other(seen: dict[str, Any]) -> dict[str, Any]:
        names = list(seen.get("ctx", ()))
        values = [seen["ctx"][name] for name in names]
        return {**seen, "ctx": dict(zip(names, values[1:] + values[:1], strict=True))}

    _sees(patch, other)


def _is_outer(patch: pytest.MonkeyPatch, change: Callable[[bool, EvaluationContext, Any], bool]) -> None:
    plain = EvaluationContext._is_outer
    patch.setattr(
        EvaluationContext, "_is_outer", lambda context, path: change(plain(context, path), context, path)
    )


def a_name_means_the_node_of_the_document_first(patch: pytest.MonkeyPatch) -> None:
    _is_outer(patch, lambda said, context, path: said or path.root == "ctx")


def a_name_never_means_a_node_of_the_document(patch: pytest.MonkeyPatch) -> None:
    _is_outer(patch, lambda said, context, path: said and path.root != "ctx")


def what_a_person_changes_stands_beside_the_input(patch: pytest.MonkeyPatch) -> None:
    def given(kind: GraphKind, at: Activation, context: NodeContext, changes: dict[str, Any]) -> Any:
        its, passed = context.started(at)
        return ev.Value(v={**its.v, **changes}), passed

    patch.setattr(GraphKind, "given", given)


def the_failure_handler_does_not_know_the_failure(patch: pytest.MonkeyPatch) -> None:
    def context(*given: Any, failure: ev.Failure) -> EvaluationContext:
        return EvaluationContext(*given)

    patch.setattr(handler, "EvaluationContext", context)


# ---- fresh waits ---------------------------------------------------------------------------------------------------------


def _opens(patch: pytest.MonkeyPatch, change: Callable[[State, ev.WaitOpened], State]) -> None:
    patch.setitem(fold._TABLE, ev.WaitOpened, change)


def _without(state: State, e: ev.WaitOpened, is_lost: Callable[[Any], bool]) -> State:
    after = open_folds.fold_opened(state, e)
    if after is state:
        return after
    return replace(after, signals=tuple(one for one in state.signals if not is_lost(one)))


def a_fresh_wait_takes_a_kept_signal(patch: pytest.MonkeyPatch) -> None:
    _opens(patch, open_folds.fold_opened)


def a_wait_does_not_say_that_it_is_fresh(patch: pytest.MonkeyPatch) -> None:
    plain = WaitKind.begin

    def begin(kind: WaitKind, at: Activation, context: NodeContext) -> Next | None:
        said = plain(kind, at, context)
        return Opened(replace(said.event, fresh=False)) if isinstance(said, Opened) else said

    patch.setattr(WaitKind, "begin", begin)


def a_fresh_wait_loses_signals_of_every_name(patch: pytest.MonkeyPatch) -> None:
    _opens(patch, lambda state, e: _without(state, e, lambda one: e.fresh))


def every_wait_loses_what_came_before(patch: pytest.MonkeyPatch) -> None:
    _opens(patch, lambda state, e: _without(state, e, lambda one: one.name == e.signal))


def a_fresh_wait_loses_only_one_signal(patch: pytest.MonkeyPatch) -> None:
    def first(state: State, e: ev.WaitOpened) -> State:
        lost = next((one for one in state.signals if e.fresh and one.name == e.signal), None)
        return _without(state, e, lambda one: one is lost)

    _opens(patch, first)


def _loses(patch: pytest.MonkeyPatch, change: Callable[[Program, State, str], bool]) -> None:
    patch.setattr(Program, "loses", change)


def _waits(program: Program, signal: str) -> list[bool]:
    return [node.work.fresh for node in program.graph.nodes if node.signal == signal]


def a_signal_is_lost_although_a_wait_for_it_is_open(patch: pytest.MonkeyPatch) -> None:
    _loses(patch, lambda program, state, signal: all(_waits(program, signal)))


def a_signal_is_lost_although_another_wait_is_not_fresh(patch: pytest.MonkeyPatch) -> None:
    def loses(program: Program, state: State, signal: str) -> bool:
        is_open = any(work.signal == signal for work in state.open.values())
        return not is_open and any(_waits(program, signal))

    _loses(patch, loses)


def a_signal_is_kept_for_a_fresh_wait(patch: pytest.MonkeyPatch) -> None:
    _loses(patch, lambda program, state, signal: False)


BUGS: list[Patch] = [
    the_input_of_the_starter_is_not_passed_on,
    a_graph_sees_the_item_of_another_index,
    an_item_of_a_graph_is_the_list,
    a_graph_does_not_see_the_failure_before_it,
    a_graph_sees_outputs_of_other_nodes,
    a_name_means_the_node_of_the_document_first,
    a_name_never_means_a_node_of_the_document,
    what_a_person_changes_stands_beside_the_input,
    the_failure_handler_does_not_know_the_failure,
    a_fresh_wait_takes_a_kept_signal,
    a_wait_does_not_say_that_it_is_fresh,
    a_fresh_wait_loses_signals_of_every_name,
    every_wait_loses_what_came_before,
    a_fresh_wait_loses_only_one_signal,
    a_signal_is_lost_although_a_wait_for_it_is_open,
    a_signal_is_lost_although_another_wait_is_not_fresh,
    a_signal_is_kept_for_a_fresh_wait,
]

LATE = {
    "an_item_of_a_graph_is_the_list": 58,
    "every_wait_loses_what_came_before": 25,
    "a_graph_does_not_see_the_failure_before_it": 34,
    "what_a_person_changes_stands_beside_the_input": 67,
    "the_failure_handler_does_not_know_the_failure": 61,
    "a_fresh_wait_takes_a_kept_signal": 291,
    "a_wait_does_not_say_that_it_is_fresh": 291,
    "a_fresh_wait_loses_signals_of_every_name": 340,
    "a_fresh_wait_loses_only_one_signal": 428,
    "a_signal_is_lost_although_another_wait_is_not_fresh": 428,
}
"""Bugs that few graphs show, and the number of the first draw that does: it is tried before all others."""


@pytest.mark.parametrize("first", sorted({*LATE.values()}))
def test_without_a_bug_a_graph_that_is_tried_first_shows_nothing(first: int) -> None:
    run_both(*next(drawn(first)))


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_in_graphs_of_documents_and_fresh_waits_shows(
    bug: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    assert shows(first=LATE.get(bug.__name__, 0)), "nothing showed"
