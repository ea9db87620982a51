"""When an unfinished saga is looked at again, should what wakes it be lost.

The look takes the lease only where it may find more than an entry; what it does is in runtime/log/sweep.py.
"""

from __future__ import annotations

from msgspec import Struct

from baton.core.limits import Limits
from baton.core.log.folding import inbox
from baton.core.log.state import State
from baton.core.log.status import WAITING


class Pace(Struct, frozen=True, kw_only=True):
    """The time from look to look: from `shortest` it doubles to `longest`. All times are in ms."""

    shortest: int = Limits().sweep_shortest_ms
    longest: int = Limits().sweep_longest_ms
    margin: int = Limits().timer_by_message_ms

    @classmethod
    def of(cls, limits: Limits, *, is_quiet: bool) -> Pace:
        """That of a saga. One that is not quiet may have missed more than a wake, so that it is looked at sooner."""
        shortest = limits.sweep_shortest_ms
        return cls(
            shortest=shortest if is_quiet else min(shortest, limits.busy_sweep_ms),
            longest=limits.sweep_longest_ms,
            margin=limits.timer_by_message_ms,
        )

    def next(self, since: int, now: int) -> int:
        """The look after one at `now`, where nothing has happened since `since`."""
        return now + max(self.shortest, min(now - since, self.longest))

    def comes_before(self, timer: int, look: int) -> bool:
        """Whether a timer is kept instead of a look: a look may come late, and then so would a timer shortly behind it."""
        return timer <= look + self.margin


def is_quiet(state: State, status: str) -> bool:
    """Whether nothing can be missing but an entry that it was not woken for.

    The end of a child may not be in its log yet, and only the holder of its lease sends notices.
    """
    return status in WAITING and not (state.children or state.orphaned_children or inbox.owed(state))
