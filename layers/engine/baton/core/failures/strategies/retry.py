"""retry: the same call again after a pause, as long as the retry policy allows it
(core/failures/policy.py).
"""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.failures.failover import Policy
from baton.core.failures.policy import LONGEST_RETRY_AFTER_MS, Change, PolicyEntry, listed, pause
from baton.core.failures.strategies.base import History, LadderStep, Situation, Strategy, Told


class Retry(Strategy):
    """The retry.

    Its number of uses is for all failures since a person last decided, unless the policy itself allows more.
    """

    name = "retry"
    says = "Try the same again after a pause."
    most = 20
    repeats = True

    def is_wanted(self, entry: PolicyEntry, code: str) -> bool | None:
        return listed(entry.policy, code, entry.kind)

    def next(self, at: Situation) -> LadderStep | str:
        entry, history = at.entry, at.history
        allowed = entry.policy.max_attempts - 1
        most = min(allowed, entry.at_most.get(self.name, allowed))
        if history.retries < most and history.total < max(self.most, most):
            delay = self._pause(at)
            if delay is not None:
                return LadderStep(strategy=self.name, delay_ms=delay, hooks=entry.before_retry)
        if history.retries >= allowed:
            return "used up"
        is_late = at.retry_after_ms is not None and at.retry_after_ms > LONGEST_RETRY_AFTER_MS
        return "the pause that is asked for is too long" if is_late else "its time is used up"

    def by_policy(self, at: Situation, policy: Policy) -> LadderStep | None:
        delay = self._pause(at)
        return None if delay is None else LadderStep(strategy=self.name, delay_ms=delay)

    def recorded(self, history: History, step: LadderStep, now: int) -> History:
        return replace(
            history, since=history.since or now, retries=history.retries + 1, total=history.total + 1
        )

    def only_for(self, change: Change) -> tuple[str, ...]:
        said = change.retry is not None and change.retry.preset != "none" and change.retry.max_attempts != 1
        return (*(("retry",) if said else ()), *(("before_retry",) if change.before_retry else ()))

    def told(self, chosen: Told) -> str:
        first = f", after {chosen.hooks}" if chosen.hooks else ""
        return f"tried again {f'after {chosen.pause}' if chosen.pause else 'at once'}{first}"

    def _pause(self, at: Situation) -> int | None:
        return pause(
            at.entry.policy,
            at.history.retries + 1,
            elapsed_ms=at.elapsed_ms,
            retry_after_ms=at.retry_after_ms,
            draw=at.draw,
        )
