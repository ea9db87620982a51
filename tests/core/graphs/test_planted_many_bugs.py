"""The random graphs see what is wrong with maps, polls, pauses and children: each bug planted here shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide import decide, decision, scheduling, transitions
from baton.core.decide.context import EvaluationContext
from baton.core.graph.graph import Each, Graph, Loop
from baton.core.log import events as ev
from baton.core.log.folding import fold
from baton.core.log.records import Child
from baton.core.log.scopes import NOT_BEGUN
from baton.core.nodes import child
from baton.core.nodes import map as maps
from baton.core.nodes.base import Activation, Moved, Next, NodeContext, Opened
from baton.core.nodes.child import ChildKind
from baton.core.nodes.map import MapKind
from tests.core.graphs.test_planted_bugs import Patch, drawn, run_both, shows

pytestmark = pytest.mark.no_cover


def _says(patch: pytest.MonkeyPatch, change: Callable[[Next | None, int, Any], Next | None]) -> None:
    """What a map at work says is changed: `change` gets its answer and the number of its items that have ended."""
    plain = MapKind.resume

    def resume(kind: MapKind, at: Activation, work: Any, context: NodeContext) -> Next | None:
        ended = [value for value in context.state.items_of(at.slot).values() if value is not None]
        return change(plain(kind, at, work, context), len(ended), work)

    patch.setattr(MapKind, "resume", resume)


def _began(said: Next | None) -> ev.ItemsBegan | None:
    return said.event if isinstance(said, Moved) and isinstance(said.event, ev.ItemsBegan) else None


def an_item_counts_twice(patch: pytest.MonkeyPatch) -> None:
    plain = maps._tally
    patch.setattr(
        maps, "_tally", lambda *given: replace(plain(*given), succeeded=plain(*given).succeeded * 2)
    )


def an_item_that_ends_makes_no_room_for_another(patch: pytest.MonkeyPatch) -> None:
    _says(patch, lambda said, ended, work: None if ended and _began(said) else said)


def one_item_too_many_runs(patch: pytest.MonkeyPatch) -> None:
    def more(said: Next | None, ended: int, work: Any) -> Next | None:
        began = _began(said)
        if began is None or began.first + began.count >= work.size:
            return said
        return Moved(replace(began, count=began.count + 1))

    _says(patch, more)


def a_share_is_rounded_up(patch: pytest.MonkeyPatch) -> None:
    def most(each: Each, size: int) -> int:
        return -(-size * each.share // 100) if each.share >= 0 else each.tolerated

    patch.setattr(maps, "_most_failures", most)


def the_rest_of_a_map_is_always_stopped(patch: pytest.MonkeyPatch) -> None:
    plain = maps._each
    patch.setattr(maps, "_each", lambda node: replace(plain(node), rest="cancel"))


def items_that_a_map_has_left_do_not_begin(patch: pytest.MonkeyPatch) -> None:
    _says(patch, lambda said, ended, work: None if work.late is not None and _began(said) else said)


def nothing_waits_for_what_a_map_has_left(patch: pytest.MonkeyPatch) -> None:
    plain = fold.apply

    def apply(state: Any, event: ev.Event) -> Any:
        after = plain(state, event)
        late = after.late if isinstance(event, ev.MapClosed) else ()
        return replace(after, tokens={slot: one for slot, one in after.tokens.items() if slot not in late})

    patch.setattr(decision, "apply", apply)
    patch.setattr(decide, "apply", apply)


def what_a_map_stops_never_began(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(maps, "STOPPED", NOT_BEGUN)


def an_item_does_not_know_what_led_to_its_map(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(EvaluationContext, "_place", property(lambda context: context.slot))


def a_child_is_heard_by_its_slot_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Child, "hears", lambda work, saga: not work.status)


def a_child_is_followed_by_one_of_the_same_id(patch: pytest.MonkeyPatch) -> None:
    plain = ChildKind.begin

    def begin(kind: ChildKind, at: Activation, context: NodeContext) -> Next | None:
        said = plain(kind, at, context)
        if isinstance(said, Opened) and isinstance(said.event, ev.ChildOpened):
            return Opened(replace(said.event, child=said.event.child.partition("..")[0]))
        return said

    patch.setattr(ChildKind, "begin", begin)


def a_child_that_was_cancelled_is_followed_by_another(patch: pytest.MonkeyPatch) -> None:
    plain = child._failed
    patch.setattr(child, "_failed", lambda at, work: replace(plain(at, work), is_attempt=True))


def a_child_fails_apart_from_what_is_done_about_it(patch: pytest.MonkeyPatch) -> None:
    plain = decide._leads_on
    patch.setattr(
        decide,
        "_leads_on",
        lambda event, state: not isinstance(event, ev.AttemptFailed) and plain(event, state),
    )


def a_poll_asks_once_more(patch: pytest.MonkeyPatch) -> None:
    plain = transitions.loop_pause

    def paused(context: EvaluationContext, loop: Loop, now: int, began: int) -> Any:
        return plain(context, replace(loop, max_iterations=loop.max_iterations + 1), now, began)

    patch.setattr(transitions, "loop_pause", paused)


def a_round_does_not_wait_for_its_pause(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scheduling, "has_paused", lambda builder, slot: True)


BUGS: list[Patch] = [
    an_item_counts_twice,
    an_item_that_ends_makes_no_room_for_another,
    one_item_too_many_runs,
    a_share_is_rounded_up,
    the_rest_of_a_map_is_always_stopped,
    items_that_a_map_has_left_do_not_begin,
    nothing_waits_for_what_a_map_has_left,
    what_a_map_stops_never_began,
    an_item_does_not_know_what_led_to_its_map,
    a_child_is_heard_by_its_slot_alone,
    a_child_is_followed_by_one_of_the_same_id,
    a_child_that_was_cancelled_is_followed_by_another,
    a_child_fails_apart_from_what_is_done_about_it,
    a_poll_asks_once_more,
    a_round_does_not_wait_for_its_pause,
]

LATE = {
    "a_share_is_rounded_up": 351,
    "an_item_does_not_know_what_led_to_its_map": 107,
    "a_child_is_heard_by_its_slot_alone": 215,
    "a_child_is_followed_by_one_of_the_same_id": 34,
    "a_child_that_was_cancelled_is_followed_by_another": 131,
    "a_child_fails_apart_from_what_is_done_about_it": 344,
    "a_poll_asks_once_more": 174,
    "a_map_waits_for_one_item_less": 110,
    "the_rest_of_a_map_is_always_stopped": 32,
    "items_that_a_map_has_left_do_not_begin": 32,
    "nothing_waits_for_what_a_map_has_left": 32,
    "an_item_counts_twice": 25,
    "an_item_that_ends_makes_no_room_for_another": 25,
    "one_item_too_many_runs": 25,
    "what_a_map_stops_never_began": 25,
    "a_round_does_not_wait_for_its_pause": 24,
}
"""Bugs that few graphs show, and the number of the first draw that does: it is tried before all others."""


@pytest.mark.parametrize("first", sorted({*LATE.values()}))
def test_without_a_bug_a_graph_that_is_tried_first_shows_nothing(first: int) -> None:
    run_both(*next(drawn(first)))


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_in_maps_polls_and_children_shows(bug: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    assert shows(first=LATE.get(bug.__name__, 0)), "nothing showed"


def test_a_map_that_waits_for_one_item_less_shows() -> None:
    def other(graph: Graph) -> Graph:
        nodes = [
            replace(node, each=replace(node.each, need=node.each.need - 1))
            if node.each is not None and node.each.need > 1
            else node
            for node in graph.nodes
        ]
        return replace(graph, nodes=tuple(nodes))

    assert shows(other, first=LATE["a_map_waits_for_one_item_less"]), "nothing showed"
