"""Planted bugs of patches and of forks with changes. Each is searched for as planted.py says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.log import events as ev
from baton.core.log.folding import fold
from baton.core.log.state import CHANGE_KEY, State
from baton.runtime.engine.run import LogWriter
from baton.runtime.log import history
from baton.runtime.requests import copying, patching
from tests.kit.bugs import replaced

_TABLE: dict[type, Any] = vars(fold)["_TABLE"]


@contextmanager
def _folded(kind: type, by: Any) -> Iterator[None]:
    real = _TABLE[kind]
    _TABLE[kind] = by
    try:
        yield
    finally:
        _TABLE[kind] = real


@contextmanager
def a_worker_goes_on_with_the_graph_it_has_loaded() -> Iterator[None]:
    """Patch row: a worker at work reads of another graph, and schedules by the one that it began with."""

    async def news_of(self: LogWriter, run: Any) -> bool:
        return await self.news(run.lease, run.history)

    with replaced(LogWriter, "news_of", news_of):
        yield


@contextmanager
def a_patch_is_not_known_by_its_key() -> Iterator[None]:
    """Patch row: a patch that had no answer is made again, for the graph that it has made."""
    real = _TABLE[ev.GraphChanged]

    def changed(state: State, event: ev.GraphChanged) -> State:
        folded: State = real(state, event)
        return replace(
            folded, keys={key: one for key, one in folded.keys.items() if not key.startswith(CHANGE_KEY)}
        )

    with _folded(ev.GraphChanged, changed):
        yield


@contextmanager
def a_patch_is_not_made_anew_for_another_graph() -> Iterator[None]:
    """Patch row: of two patches that meet, the second puts its graph in the place of the first one's."""
    real, known = vars(patching)["_made"], dict[int, Any]()

    async def made(request: Any, opened: Any, wanted: Any) -> Any:
        if wanted.operations is None:
            return await real(request, opened, wanted)
        number = id(wanted.operations)
        if number not in known:
            known[number] = await real(request, opened, wanted)
        return known[number]

    with replaced(patching, "_made", made), replaced(patching, "_check_graph", lambda *_: None):
        yield


@contextmanager
def what_is_undone_is_undone_by_the_newest_graph() -> Iterator[None]:
    """Rollback under patches: a step has the inverse that its node has now, or none."""
    with replaced(Program, "at", lambda self, _: self):
        yield


@contextmanager
def a_fork_forgets_its_changes() -> Iterator[None]:
    """Fork row: what stands behind the fork in its entry is not folded."""
    real = vars(history)["fork_to"]

    def fork_to(before: State, at_cut: State, entry: ev.Entry, fork: ev.Forked) -> State:
        events = entry.events[: entry.events.index(fork) + 1]
        state: State = real(before, at_cut, replace(entry, events=events), fork)
        return state

    with replaced(history, "fork_to", fork_to):
        yield


@contextmanager
def what_a_fork_repeats_has_its_old_keys() -> Iterator[None]:
    """Fork row: the services answer what is to act again as they did."""
    with _folded(ev.Repeats, lambda state, _: state):
        yield


@contextmanager
def the_first_entry_of_a_new_saga_is_not_looked_at() -> Iterator[None]:
    """New saga row: of two requests with one key, the second goes on with a cut of its own."""
    real = vars(copying)["_copy"]

    async def copy(request: Any, source: Any, cut: State, *rest: Any) -> bool:
        with replaced(copying, "_cut_in", lambda _: cut.version):
            return bool(await real(request, source, cut, *rest))

    with replaced(copying, "_copy", copy):
        yield
