"""Planted bugs of leases: how they are renewed, and what makes an expired one a dead process.

What each breaks, and where it is searched for, is in planted.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from baton.adapters.memory.log import MemoryLog
from baton.ports import Effect, Head, SagaRef
from baton.runtime.invocation.context import Tenure
from baton.runtime.log.lease import Leases
from baton.runtime.steps.effects import EffectClaims
from tests.kit.bugs import replaced
from tests.kit.process import KillTimer


@contextmanager
def a_renewal_names_no_epoch() -> Iterator[None]:
    """Renew row: one that lands late changes the lease of the next holder."""

    def renew(self: MemoryLog, ref: SagaRef, owner: str, epoch: int, until: int) -> bool:
        return self._update(ref, lambda head: msgspec.structs.replace(head, until=until)) is not None

    with replaced(MemoryLog, "renew", renew):
        yield


@contextmanager
def a_late_take_ends_a_renewed_lease() -> Iterator[None]:
    """Take row: a request that its client has repeated sets the end that it had asked for first."""

    def take(self: MemoryLog, ref: SagaRef, owner: str, until: int, epoch: int, *more: Any) -> Head | None:
        head = self.read_head(ref)
        if head is not None and (head.owner, head.epoch) == (owner, epoch + 1):
            return self._update(ref, lambda head: msgspec.structs.replace(head, until=until))
        return real(self, ref, owner, until, epoch, *more)

    real = MemoryLog.take
    with replaced(MemoryLog, "take", take):
        yield


@contextmanager
def no_watchdog_ends_the_process() -> Iterator[None]:
    """A process whose renewals have no answer goes on with the call that it is in."""

    def never(self: KillTimer, ms: int | None) -> None:
        return None

    with replaced(KillTimer, "set", never):
        yield


@contextmanager
def the_first_release_ends_the_watch() -> Iterator[None]:
    """A process that has given one lease back lives on although another was not renewed."""

    def drop(self: Tenure, ref: SagaRef) -> None:
        real(self, ref)
        if self.watchdog is not None:
            self.watchdog.set(None)

    real = Tenure.drop
    with replaced(Tenure, "drop", drop):
        yield


@contextmanager
def a_lease_without_an_answer_is_not_watched() -> Iterator[None]:
    """Take row: a lease that a process may have, without knowing it, ends while the process lives."""

    async def take(self: Leases, head: Head) -> Any:
        try:
            return await real(self, head)
        except BaseException:
            self.forget(head.ref)
            raise

    real = Leases._take
    with replaced(Leases, "_take", take):
        yield


@contextmanager
def a_claim_lasts_as_long_as_a_lease_that_is_not_renewed() -> Iterator[None]:
    """The claim of a holder that lives, and renews its lease, is taken over by another saga."""

    def over(self: EffectClaims, there: Effect) -> int:
        return min(real(self, there), there.updated + self._limits.lease_ms + self._limits.clock_skew_ms)

    real = EffectClaims._over
    with replaced(EffectClaims, "_over", over):
        yield
