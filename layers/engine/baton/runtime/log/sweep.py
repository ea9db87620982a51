"""The sweep row of the protocol table: a look at a saga that may have been woken in vain, without taking its lease.

A look that finds nothing is a read of the head, a query and one update. Anything else is for a worker that takes the
lease: open children, notices, what is due by itself.
"""

from __future__ import annotations

from baton.core.limits import Limits
from baton.core.log.folding.rest import Pace
from baton.ports import SWEEP, TIMER, Head, Log
from baton.runtime.invocation.store_retrier import StoreRetrier

NEWS, NOTHING = "news", "nothing"


def suffices(head: Head, now: int, limits: Limits) -> bool:
    """Whether a look at the log tells all. What is due by itself within a message's delay needs a worker, to send that."""
    if head.lane != SWEEP or head.owner or head.due_at is None or head.due_at > now:
        return False
    if head.pending_wake or head.inbox:
        return False
    return head.armed <= now and (not head.timer or head.timer - now > limits.timer_by_message_ms)


async def look(call: StoreRetrier, log: Log, head: Head, now: int, limits: Limits) -> str:
    """`NEWS` where there is an entry that the last holder had not folded; empty when the head has changed since.

    A fork is the last entry of the branch that it ends, so that it is in the branch that the head names. Where there is
    nothing new, the next look is noted.
    """
    if await call(log.read_tail, head.ref, head.branch, head.folded, 1):
        return NEWS
    pace = Pace.of(limits, is_quiet=True)
    due_at, lane = pace.next(head.quiet_since, now), SWEEP
    if head.timer and pace.comes_before(head.timer, due_at):
        due_at, lane = head.timer, TIMER
    return NOTHING if await call(log.defer, head, due_at, lane) else ""
