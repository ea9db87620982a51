"""Planted bugs of forks. Each is searched for in tests/simulation/test_forks.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from msgspec.structs import replace

from baton.core.log.state import State
from baton.runtime.log import history
from tests.kit.bugs import replaced


def _forked(changed: Any) -> AbstractContextManager[None]:
    """Plant a mistake in the state with which a branch begins."""

    def fork_to(before: State, at_cut: State, *rest: Any) -> State:
        state: State = real(before, at_cut, *rest)
        return replace(state, **changed(before, state))

    real = vars(history)["fork_to"]
    return replaced(history, "fork_to", fork_to)


@contextmanager
def a_fork_has_keys_of_its_own() -> Iterator[None]:
    """Fork row: a branch does again what is done, as if it had been undone."""

    def changed(_: State, state: State) -> dict[str, Any]:
        return {"undo": replace(state.undo, incarnation={f"s{number}/": 1 for number in range(9)})}

    with _forked(changed):
        yield


@contextmanager
def a_fork_runs_nothing_that_has_run() -> Iterator[None]:
    """Fork row: a branch goes on where the saga was, and not at the cut."""
    with _forked(lambda before, _: {"tokens": before.tokens}):
        yield
