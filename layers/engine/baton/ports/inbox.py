"""The port to the inboxes of sagas: which of their children have ended. What became of a child is in its own log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from baton.ports.log import SagaRef


class Report(msgspec.Struct, frozen=True):
    """The child with the id `child` has ended, for which `parent` waits at `slot`."""

    parent: SagaRef
    window: int
    slot: str
    child: str


class Inbox(Protocol):
    """The inbox of a parent has windows, so that no query and no partition has all of it."""

    def leave(self, reports: Sequence[Report], until: int) -> None:
        """Put reports, of any parents; the store may delete them after `until`. Can be repeated."""
        ...

    def announce(self, parent: SagaRef) -> bool:
        """Count one more piece of news on the head. True when its lease is free, so that the saga is to be woken.

        False when a worker holds it: its release is refused. Also, with nothing written, for a saga that is in no due
        index, because it has ended, and for one that does not exist.
        """
        ...

    def read(self, parent: SagaRef, window: int) -> Sequence[Report]:
        """What stands in a window, whether or not it was taken in, strongly consistent."""
        ...
