"""What must hold of maps and of rounds that rest, by the word of the log alone; and bugs that break it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from baton.core.decide import scheduling, transitions
from baton.core.graph.graph import Each
from baton.core.log import events as ev
from baton.core.log.folding import fold
from baton.core.log.records import About, Paused
from baton.core.log.scopes import is_index
from baton.core.log.slots import owner_of, slot_of
from baton.core.log.state import State
from baton.core.nodes import map as maps
from baton.core.nodes.base import Activation, Moved, Next, NodeContext, Opened
from baton.core.nodes.child import ChildKind
from baton.core.nodes.map import MapKind
from tests.kit.bugs import replaced

MAPS = "maps"


@dataclass
class _Run:
    """A map as its log tells of it."""

    size: int
    begun: int = 0
    ended: dict[int, bool] = field(default_factory=dict)
    late: tuple[int, int] | None = None
    """How many had succeeded, and failed, when it went on."""

    def counts(self) -> tuple[int, int, int, int]:
        """How many have succeeded, have failed, run, and have not begun."""
        good = sum(self.ended.values())
        return good, len(self.ended) - good, self.begun - len(self.ended), self.size - self.begun


def of_maps(logs: Mapping[str, list[ev.Entry]]) -> Iterator[str]:
    """An item begins once, in the order of the list, and ends once at most, while its map is at work; the map counts them right."""
    for saga, entries in logs.items():
        runs: dict[str, _Run] = {}
        for event in (event for entry in entries for event in entry.events):
            if isinstance(event, ev.Forked):
                break  # what items had given by then is kept, and the others are done again
            yield from (f"{saga}: {text}" for text in _about(runs, event))


def _about(runs: dict[str, _Run], event: Any) -> Iterator[str]:
    slot = slot_of(event.node, event.iteration) if isinstance(event, About) else ""
    run = runs.get(slot)
    if isinstance(event, ev.MapBegan):
        runs[slot] = _Run(event.size)
    elif isinstance(event, ev.ItemsBegan):
        if run is None or event.first != run.begun or event.first + event.count > run.size:
            yield f"{event.count} items of {slot} begin from {event.first} on, out of their turn"
            return
        run.begun += event.count
    elif isinstance(event, ev.Settles) and is_index(event.item):
        index = int(event.item)
        if run is None:
            yield f"item {index} of {slot} ends, and its map is over"
        elif index in run.ended or index >= run.begun:
            yield f"item {index} of {slot} ends twice, or before it has begun"
        else:
            run.ended[index] = not isinstance(event, ev.StepFailed)
    elif isinstance(event, ev.Settles) and run is not None:
        yield from _settled(runs, slot, run, event)
    if isinstance(event, ev.Settles):
        for gone in event.drops:
            runs.pop(gone, None)


def _settled(runs: dict[str, _Run], slot: str, run: _Run, event: ev.Settles) -> Iterator[str]:
    """A map goes on, or is over."""
    counts = run.counts()
    if isinstance(event, ev.MapClosed) and event.goes_on:
        told = (event.succeeded, event.failed, event.running, event.not_begun)
        run.late = counts[:2]
    else:
        del runs[slot]
        if not isinstance(event, ev.MapClosed | ev.MapEnded):
            return
        good, bad = run.late or (0, 0)
        told = (event.succeeded + good, event.failed + bad, event.stopped, event.not_begun)
    if told != counts:
        yield f"{slot} does not count its items right: {event}, not {counts}"
    if isinstance(event, ev.MapEnded) and (run.late is None or (any(counts[2:]) and not event.why)):
        yield f"{slot} is over before its items, or has not gone on: {event}"


def of_pauses(logs: Mapping[str, list[ev.Entry]]) -> Iterator[str]:
    """A round that has to rest does so, and the rounds of a poll have one deadline."""
    for saga, entries in logs.items():
        rests: dict[str, Paused] = {}
        for event in (event for entry in entries for event in entry.events):
            if isinstance(event, ev.Forked):
                break  # the time of a round that is done again is another
            slot = slot_of(event.node, event.iteration) if isinstance(event, About) else ""
            rest = rests.get(slot)
            began = getattr(event, "started_at", 0)
            if rest is not None and 0 < began < rest.until:
                yield f"{saga}: {slot} begins {rest.until - began} ms before its pause is over"
            if isinstance(event, ev.Settles) and event.paused is not None:
                (token,) = event.emits
                rests[token.slot] = event.paused
                if rest is not None and rest.ends_by and token.dst == event.node:
                    if event.paused.ends_by != rest.ends_by:
                        yield f"{saga}: {slot} has another deadline than the round before"
                    if event.paused.until > rest.ends_by:
                        yield f"{saga}: a round behind {slot} begins after its deadline"


# ---- planted -----------------------------------------------------------------------------------------------------------


@contextmanager
def an_item_is_counted_twice() -> Iterator[None]:
    """Map row: the last but one item of a map is counted for two, so that the map is over before the last has ended."""

    def tally(work: Any, ended: Any, held: int) -> Any:
        found = real(work, ended, held)
        is_last = found.succeeded == work.size - 1 > 0
        return replace(found, succeeded=work.size) if is_last else found

    real = vars(maps)["_tally"]
    with replaced(maps, "_tally", tally):
        yield


@contextmanager
def an_item_that_ends_frees_no_place() -> Iterator[None]:
    """Map row: so many items begin as may be at work together, and no further ones."""

    def resume(self: MapKind, at: Activation, work: Any, context: NodeContext) -> Next | None:
        said = real(self, at, work, context)
        is_more = isinstance(said, Moved) and isinstance(said.event, ev.ItemsBegan) and work.begun
        return None if is_more else said

    real = MapKind.resume
    with replaced(MapKind, "resume", resume):
        yield


@contextmanager
def a_late_result_of_a_stopped_item_counts() -> Iterator[None]:
    """Map row: what a map has stopped stays in the state, so that what it gives afterwards is recorded."""

    def close(state: State, event: Any) -> State:
        behind: State = real(state, event)
        kept = {slot: senders for slot, senders in state.tokens.items() if _is_item(slot, event)}
        items = dict.fromkeys(kept)
        return replace(behind, tokens={**behind.tokens, **kept}, items={**behind.items, **items})

    table = vars(fold)["_TABLE"]
    real = table[ev.MapClosed]
    table[ev.MapClosed] = close
    try:
        yield
    finally:
        table[ev.MapClosed] = real


def _is_item(slot: str, event: Any) -> bool:
    return "#" in slot and owner_of(slot) == slot_of(event.node, event.iteration)


@contextmanager
def a_share_of_the_items_is_rounded_up() -> Iterator[None]:
    """Map row: of three items, 34 % are two."""

    def most(each: Each, size: int) -> int:
        return -(-size * each.share // 100) if each.share >= 0 else each.tolerated

    with replaced(maps, "_most_failures", most):
        yield


@contextmanager
def each_try_of_a_poll_has_its_own_deadline() -> Iterator[None]:
    """Poll row: a worker that takes a poll up again counts its time from then on."""
    with replaced(transitions, "_deadline", lambda context, poll, began: began + poll.within_ms):
        yield


@contextmanager
def a_poll_does_not_rest() -> Iterator[None]:
    """Poll row: whatever wakes the saga begins the next try."""
    with replaced(scheduling, "has_paused", lambda builder, slot: True):
        yield


@contextmanager
def the_second_child_has_the_id_of_the_first() -> Iterator[None]:
    """Child row: the try is no part of the id, so that what is started anew is the child that has failed."""

    def begin(self: ChildKind, at: Activation, context: NodeContext) -> Next | None:
        said = real(self, at, context)
        if isinstance(said, Opened) and isinstance(said.event, ev.ChildOpened):
            return Opened(replace(said.event, child=said.event.child.partition("..")[0]))
        return said

    real = ChildKind.begin
    with replaced(ChildKind, "begin", begin):
        yield
