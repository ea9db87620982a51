"""Work that a node has opened: it ends by itself at some time, or by something that happens outside.

A closed union, because it is a part of snapshots. A state has one map of it, by slot; what each member means to folds, forks
and limits is said here, so that these need not know which it is.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from baton.core.log.records import Failure, Value


class Wait(msgspec.Struct, frozen=True, omit_defaults=True, tag="wait"):
    """For a time, for a signal, or for the first of both."""

    until: int | None = None
    signal: str = ""

    @property
    def due(self) -> int | None:
        """When it ends by itself; None: never."""
        return self.until

    @property
    def orphan(self) -> Child | None:
        """The child saga that goes on when its parent drops this work."""
        return None

    def hears(self, child: str) -> bool:
        """Whether the end of this child saga is what it waits for."""
        return False

    def after_fork(self, before: Open | None, *, is_ending: bool) -> Open | None:
        """This work after a fork to a cut where it was open; `before` is the work open there before the fork."""
        return self


class Child(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="child"):
    """For a child saga; `status` is empty until it reported its end."""

    saga: str
    workflow: str
    input: Value
    status: str = ""
    output: Value = Value()
    failure: Failure | None = None

    @property
    def signal(self) -> str:
        """The name of the signal that ends it."""
        return ""

    @property
    def due(self) -> int | None:
        return None

    @property
    def orphan(self) -> Child | None:
        return None if self.status else self

    def hears(self, child: str) -> bool:
        return child == self.saga and not self.status

    def after_fork(self, before: Open | None, *, is_ending: bool) -> Open | None:
        """One that is open on both sides goes on; it is opened anew when it was cancelled with what the fork leaves."""
        is_kept = not is_ending and before is not None and before.hears(self.saga)
        return self if self.status or is_kept else None


Open = Wait | Child


def children_in(work: Mapping[str, Open]) -> dict[str, Child]:
    """The child sagas in a map of open work, by slot."""
    return {slot: one for slot, one in work.items() if isinstance(one, Child)}
