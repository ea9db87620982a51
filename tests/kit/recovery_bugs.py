"""Planted bugs in the doctor and in how a load passes damage, as in bugs.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from baton.core import recovery
from baton.core.log.folding import forks
from baton.core.log.state import State
from baton.core.recovery import Damage, Finding, MakeDue
from baton.ports import Head
from baton.runtime import recovery as shell
from baton.runtime.log.history import History
from baton.runtime.recovery import Doctor
from tests.kit.bugs import replaced


@contextmanager
def the_head_is_read_once() -> Iterator[None]:
    """Repair a head: what a worker does while the doctor reads the log looks like a stale head."""
    real = Doctor._head

    async def head(self: Doctor, ref: Any) -> Head:
        known: dict[Any, Head] = self.__dict__.setdefault("first", {})
        if ref not in known:
            known[ref] = await real(self, ref)
        return known[ref]

    with replaced(Doctor, "_head", head):
        yield


@contextmanager
def a_recovery_forgets_a_cancel() -> Iterator[None]:
    """Repair a log, 2: what a caller has called off goes on."""
    real = recovery._recovery

    def made(state: State, damage: Damage, cut: int) -> Any:
        return msgspec.structs.replace(real(state, damage, cut), cancel=None)

    with replaced(recovery, "_recovery", made):
        yield


@contextmanager
def a_recovery_forgets_the_end() -> Iterator[None]:
    """Repair a log, 2: a saga that has ended runs again."""
    real = recovery._recovery

    def made(state: State, damage: Damage, cut: int) -> Any:
        return msgspec.structs.replace(real(state, damage, cut), ended=None)

    with replaced(recovery, "_recovery", made):
        yield


@contextmanager
def a_fork_behind_the_damage_is_overlooked() -> Iterator[None]:
    """Repair a log, 2: the saga goes on in the branch that its user has left."""

    def cut(state: State, damage: Damage) -> int:
        return state.version

    with replaced(recovery, "_cut", cut):
        yield


@contextmanager
def a_log_is_repaired_without_making_the_saga_due() -> Iterator[None]:
    """Repair a log, 1: a recovered saga that no index leads to, and whose wake finds nothing due, never goes on."""
    real = recovery.repair

    def repair(findings: Sequence[Finding], **more: Any) -> Any:
        return tuple(one for one in real(findings, **more) if not isinstance(one, MakeDue))

    with replaced(shell, "repair", repair):
        yield


@contextmanager
def any_damage_is_certain() -> Iterator[None]:
    """Repair a log: a defect of a deploy, or a newer release, makes workers leave the logs of all sagas."""

    def is_json(data: bytes) -> bool:
        return False

    from baton.runtime.log import history

    with replaced(history, "_is_json", is_json):
        yield


@contextmanager
def a_load_looks_for_no_recovery() -> Iterator[None]:
    """Repair a log, 2: the entry is there, and no load finds it."""

    async def past(self: History, version: int) -> None:
        return None

    with replaced(History, "_past_damage", past):
        yield


@contextmanager
def a_lost_end_is_not_noticed() -> Iterator[None]:
    """Load: a log whose last entries are gone is taken for a shorter one, and its steps act again."""
    real = History.catch_up

    async def caught_up(self: History, folded: int = 0) -> Any:
        return await real(self)

    with replaced(History, "catch_up", caught_up):
        yield


@contextmanager
def a_recovery_starts_afresh() -> Iterator[None]:
    """Repair a log, 2: effects of steps behind the cut get other keys, and happen again."""
    real = forks._recovered

    def recovered(at_cut: State, *more: Any) -> State:
        state = real(at_cut, *more)
        return msgspec.structs.replace(
            state, undo=msgspec.structs.replace(state.undo, incarnation={"hotel/": 1, "car/": 1})
        )

    with replaced(forks, "_recovered", recovered):
        yield


@contextmanager
def a_log_is_left_under_its_worker() -> Iterator[None]:
    """Repair a log: a worker that has the state in its memory is sent back in the middle of a step."""
    real = recovery._unreadable

    def unreadable(state: State, damage: Damage, head: Any, *, is_free: bool) -> Finding:
        return real(state, damage, head, is_free=True)

    with replaced(recovery, "_unreadable", unreadable):
        yield


RECOVERY_BUGS = (
    the_head_is_read_once,
    a_recovery_forgets_a_cancel,
    a_recovery_forgets_the_end,
    a_fork_behind_the_damage_is_overlooked,
    a_log_is_repaired_without_making_the_saga_due,
    any_damage_is_certain,
    a_load_looks_for_no_recovery,
    a_lost_end_is_not_noticed,
    a_recovery_starts_afresh,
    a_log_is_left_under_its_worker,
)
