"""The rate limit of a tenant: at most so many requests in a window of ten seconds, over all processes.

The counting store is a port; who is counted and what a refusal looks like over HTTP is in web/.
"""

from __future__ import annotations

from dataclasses import dataclass

from baton.errors import StoreUnavailable, Throttled, TooManyRequests
from baton.ports import Clock, Offload, Rates

WINDOW_MS = 10_000
_WINDOW_S = WINDOW_MS // 1_000
_BATCHES = 20  # a window is claimed in batches of at most a twentieth


@dataclass(slots=True)
class _Share:
    """What this process has of a tenant's window: requests it may still let through, and its next claim."""

    left: int = 0
    next_claim: int = 1
    is_spent: bool = False


class RateLimiter:
    """Lets `per_second` requests a second through for each tenant, averaged over windows; 0 means all.

    A process claims requests in batches that double up to a twentieth of the window, so a busy tenant
    costs one write a batch and a quiet one wastes nothing: a process never holds more unused requests
    than it has let through, so at least half of a window is let through before anybody is refused.
    Claims never overlap, so all processes together let through at most `per_second` × 10 a window.

    Availability comes first: while the store cannot be asked, requests are let through uncounted.
    """

    def __init__(self, rates: Rates, clock: Clock, offload: Offload, per_second: int) -> None:
        self._rates = rates
        self._clock = clock
        self._offload = offload
        self._limit = per_second * _WINDOW_S
        self._largest_claim = max(1, self._limit // _BATCHES)
        self._window = 0
        self._shares: dict[str, _Share] = {}

    async def admit(self, tenant: str) -> None:
        """Count one request. Raises `TooManyRequests` with the seconds until the next window."""
        if not self._limit:
            return
        now = self._clock.now()
        window = now - now % WINDOW_MS
        if window != self._window:
            self._window = window
            self._shares = {}
        share = self._shares.setdefault(tenant, _Share())
        if not share.left and not share.is_spent:
            try:
                await self._claim(tenant, window, share)
            except (Throttled, StoreUnavailable):
                return
        if not share.left:
            seconds = -(-(window + WINDOW_MS - now) // 1_000)
            raise TooManyRequests(
                f"tenant `{tenant}` may make {self._limit} requests in {_WINDOW_S} s, and has; "
                f"try again in {seconds} s",
                seconds,
            )
        share.left -= 1

    async def _claim(self, tenant: str, window: int, share: _Share) -> None:
        wanted = share.next_claim
        before = await self._offload(self._rates.spend, tenant, window, wanted)
        share.left += max(0, min(wanted, self._limit - before))
        share.is_spent = before + wanted >= self._limit
        share.next_claim = min(wanted * 2, self._largest_claim)
