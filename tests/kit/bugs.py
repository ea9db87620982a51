"""Planted engine bugs: each is one plausible mistake in the protocol or the fold, made by replacing one function.

The simulation must turn red under every one of them; a bug that it does not see is a hole in the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from baton.adapters.memory import MemoryLog
from baton.core import fold as folding
from baton.core.state import State, slot_of
from baton.ports import Head, Record, Release, SagaRef, Wake
from baton.runtime.history import History
from baton.runtime.lease import Lease, Leases
from baton.runtime.runner import Runner
from baton.runtime.service import Service


@contextmanager
def replaced(owner: Any, name: str, new: Any) -> Iterator[None]:
    """For as long as it lasts, another attribute."""
    old = getattr(owner, name)
    setattr(owner, name, new)
    try:
        yield
    finally:
        setattr(owner, name, old)


@contextmanager
def release_ignores_the_nudge() -> Iterator[None]:
    """Release row: what arrived between the last read and the release is eaten."""

    def let_go(self: MemoryLog, ref: SagaRef, owner: str, epoch: int, release: Release) -> bool:
        head = self.read_head(ref)
        if head is not None and head.nudge:
            release = msgspec.structs.replace(release, folded=max(release.folded, head.nudge))
        return real_release(self, ref, owner, epoch, release)

    real_release = MemoryLog.release
    with replaced(MemoryLog, "release", let_go):
        yield


@contextmanager
def an_expired_lease_is_never_taken() -> Iterator[None]:
    """Take row: a dead invocation keeps its saga for ever."""
    real = MemoryLog.take

    def take(self: MemoryLog, ref: SagaRef, owner: str, *lease: int) -> Head | None:
        head = self.read_head(ref)
        return None if head is None or head.owner not in ("", owner) else real(self, ref, owner, *lease)

    async def acquire(self: Leases, ref: SagaRef, message: Any, *, alone: bool) -> Any:
        head = await self._call(self._log.read_head, ref)
        if head is not None and head.owner not in ("", self._invocation.id):
            return "held"
        return await real_acquire(self, ref, message, alone=alone)

    real_acquire = Leases.acquire
    with replaced(MemoryLog, "take", take), replaced(Leases, "acquire", acquire):
        yield


@contextmanager
def a_yield_leaves_the_due_index() -> Iterator[None]:
    """Release row: without `due_at` only the wake can set the saga going again, and wakes get lost."""
    real = Leases._next

    def next_due(
        self: Leases, state: State, now: int, again: bool, due: int | None
    ) -> tuple[int | None, Wake | None]:
        at, wake = real(self, state, now, again, due)
        return (None, wake) if again else (at, wake)

    with replaced(Leases, "_next", next_due):
        yield


@contextmanager
def a_stale_invocation_appends() -> Iterator[None]:
    """Step row: no look at the own lease, and an entry of a higher epoch stops nobody."""

    async def news(self: Runner, lease: Lease, history: History) -> bool:
        branch = history.state.branch
        await history.catch_up()
        return history.state.branch != branch

    def check(self: Runner, lease: Lease) -> None:
        return None

    with replaced(Runner, "_news", news), replaced(Runner, "_check_lease", check):
        yield


@contextmanager
def an_orphan_head_is_not_rolled_forward() -> Iterator[None]:
    """Start row: a starter that died between head and entry 1 leaves a saga that nobody begins."""

    async def load(self: Runner, lease: Lease, history: History) -> Any:
        await history.load(lease.before)
        if history.state.version == 0:
            raise RuntimeError("no log")
        return await real(self, lease, history)

    real = Runner._load
    with replaced(Runner, "_load", load):
        yield


@contextmanager
def a_fork_does_not_arm() -> Iterator[None]:
    """Fork row: a finished saga is in no index, so a fork whose wake is lost is never run."""

    async def arm(self: Service, head: Head) -> int:
        return self._engine.clock.now() + 60_000

    with replaced(Service, "_arm", arm):
        yield


@contextmanager
def an_append_overwrites() -> Iterator[None]:
    """Step row: a put without its condition."""

    def append(self: MemoryLog, ref: SagaRef, record: Record, wake: Wake | None = None) -> bool:
        with self._lock:
            self._entries.setdefault((ref, record.branch), {}).pop(record.version, None)
            versions = self._versions.get((ref, record.branch), [])
            if record.version in versions:
                versions.remove(record.version)
        return real(self, ref, record, wake)

    real = MemoryLog.append
    with replaced(MemoryLog, "append", append):
        yield


@contextmanager
def consumed_tokens_stay() -> Iterator[None]:
    """Fold: a settled step does not consume its tokens, so the counter never comes to zero."""
    real = folding._consume

    def consume(state: State, event: Any, output: Any, **more: Any) -> State:
        after = real(state, event, output, **more)
        slot = slot_of(event.node, event.iteration)
        return msgspec.structs.replace(
            after, tokens={**after.tokens, slot: state.tokens.get(slot, {"": True})}
        )

    with replaced(folding, "_consume", consume):
        yield


BUGS: Mapping[str, tuple[Callable[[], Any], str]] = {
    bug.__name__: (bug, scenario)
    for bug, scenario in (
        (release_ignores_the_nudge, "race"),
        (an_expired_lease_is_never_taken, "chain"),
        (a_yield_leaves_the_due_index, "chain"),
        (a_stale_invocation_appends, "chain"),
        (an_orphan_head_is_not_rolled_forward, "parent"),
        (a_fork_does_not_arm, "forked"),
        (an_append_overwrites, "chain"),
        (consumed_tokens_stay, "fan"),
    )
}
"""Each bug with the scenario of the corpus that shows it ("race": a signal at every moment)."""
