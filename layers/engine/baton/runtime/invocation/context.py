"""The context of one invocation: its name, its time, the ports that it may use, and its answer to Lambda."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from baton.core.limits import Limits
from baton.ports import Blobs, Clock, Entropy, Log, Store
from baton.runtime.invocation.store_retrier import StoreRetrier


class Invocation(Struct, frozen=True):
    """One run of the worker function. `deadline` is hard: at it, Lambda kills the process."""

    id: str
    started: int
    deadline: int
    cold: bool = False

    def leases_until(self, limits: Limits) -> int:
        """When the leases that it takes are over."""
        return self.deadline + limits.lease_grace_ms


class InvocationContext(Struct, frozen=True):
    """Of one invocation: of the worker, the API or the relay. Every call to a store or a bucket goes through `call`."""

    invocation: Invocation
    store: Store
    blobs: Blobs
    clock: Clock
    entropy: Entropy
    limits: Limits
    call: StoreRetrier

    @property
    def log(self) -> Log:
        """The log of its store."""
        return self.store.log


def answer(failed: Sequence[str]) -> Mapping[str, object]:
    """The partial batch response of Lambda for SQS and streams."""
    return {"batchItemFailures": [{"itemIdentifier": identifier} for identifier in failed]}
