"""The row of a saga in the due index, as far as its log tells: which takes move it, and how often it was looked at."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from baton.core.limits import Limits
from baton.core.log.folding.rest import Pace, is_quiet
from baton.core.log.state import State


class DueRow(Struct, kw_only=True):
    """For one saga, from its start on. Times are epoch ms; `due` None: it is not in the index.

    `quiet_since` is when something last happened, where a look at it takes no lease; `timer`, when something is due by
    itself; None: nothing is.
    """

    limits: Limits
    due: int | None = None
    quiet_since: int | None = None
    timer: int | None = None

    def begin(self, at: int) -> None:
        self.due = at + self.limits.start_due_ms

    def arm(self, until: int) -> None:
        """A fork keeps it in the index until then; 0: none does."""
        if until:
            self.due = until if self.due is None else min(self.due, until)

    def is_moved_by_take(self, at: int) -> bool:
        """Whether it is due only after the lease. At 0: a take of what was due, which stays where it is."""
        limits = self.limits
        end = at + limits.worker_timeout_s * 1_000 + limits.lease_grace_ms + limits.clock_skew_ms
        if self.due is not None and (not at or self.due <= end):
            return False
        self.due = end
        return True

    def give_back(self, state: State, status: str, at: int, times: Sequence[int]) -> None:
        """A release at a moment (0: when it was due); `times` are those at which something is due by itself."""
        self.quiet_since, self.timer = None, min(times, default=None)
        if state.ended is not None:
            self.due = None
        elif at and status == "running":
            self.due = at
        else:
            now, is_calm = at or self.due or 0, is_quiet(state, status)
            self.due = look = Pace.of(self.limits, is_quiet=is_calm).next(state.last_at, now)
            if self.timer is not None and self.timer <= look:
                self.due = self.timer
            elif is_calm:
                self.quiet_since = state.last_at

    def looks(self, until: int) -> int:
        """How many looks without a lease there were before that."""
        since, count, pace = self.quiet_since, 0, Pace.of(self.limits, is_quiet=True)
        while since is not None and self.due is not None and self.due < until:
            if self.timer is not None and self.timer - self.due <= self.limits.timer_by_message_ms:
                break
            count, look = count + 1, pace.next(since, self.due)
            self.due = look if self.timer is None else min(look, self.timer)
        return count
