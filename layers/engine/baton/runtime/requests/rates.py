"""The rate limit of a tenant: at most so many requests in a window of ten seconds, over all processes.

A request with many bytes, its answer's included, counts as several: so one limit is for requests and for
bytes. The counting store is a port; who is counted and what a refusal looks like over HTTP is in web/.
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
    """Share of this process in a tenant's window: requests it may still let through, and its next claim."""

    left: int = 0
    next_claim: int = 1
    is_spent: bool = False


class RateLimiter:
    """Lets `per_second` requests a second through for each tenant, averaged over windows; 0 means all.

    A request counts once for every `bytes_each` of it that it begins, and at least once. So does what is
    answered, from the requests that follow. Whatever becomes of a request, it has counted.

    A process claims requests in batches that double up to a twentieth of the window, so a busy tenant costs
    one write a batch and a quiet one wastes nothing: a process never holds more unused requests than it has
    let through, so at least half of a window is let through before a request is refused. Claims never
    overlap, so all processes together let through at most `per_second` × 10 a window.

    `what` is counted: requests, or another kind of them with a limit of its own.

    Availability comes first: while the store cannot be asked, requests are let through uncounted.
    """

    def __init__(
        self,
        rates: Rates,
        clock: Clock,
        offload: Offload,
        per_second: int,
        bytes_each: int = 65_536,
        what: str = "requests",
    ) -> None:
        self._rates = rates
        self._what = what
        self._clock = clock
        self._offload = offload
        self._limit = per_second * _WINDOW_S
        self._bytes_each = bytes_each
        self._largest_claim = max(1, self._limit // _BATCHES)
        self._window = 0
        self._shares: dict[str, _Share] = {}

    async def admit(self, tenant: str, size: int = 0) -> None:
        """Count one request of `size` bytes.
        Raises `TooManyRequests` with the seconds until the next window.
        """
        if not self._limit:
            return
        now = self._clock.now()
        window = now - now % WINDOW_MS
        share, weight = self._share(tenant, window), max(-(-size // self._bytes_each), 1)
        if share.left < weight and not share.is_spent:
            try:
                await self._claim(tenant, window, share, weight)
            except (Throttled, StoreUnavailable):
                return
        if share.left < weight:
            share.left = min(share.left, 0)  # a refusal counts as well
            seconds = -(-(window + WINDOW_MS - now) // 1_000)
            each = f", each of up to {self._bytes_each:,} bytes," if weight > 1 else ""
            raise TooManyRequests(
                f"tenant `{tenant}` may make {self._limit} {self._what}{each} in {_WINDOW_S} s, and has; "
                f"try again in {seconds} s",
                seconds,
            )
        share.left -= weight

    def answered(self, tenant: str, size: int) -> None:
        """Count the bytes of an answer, beyond those that its request has counted for."""
        share = self._shares.get(tenant)
        if share is not None:
            share.left -= size // self._bytes_each

    def _share(self, tenant: str, window: int) -> _Share:
        if window != self._window:
            self._window = window
            self._shares = {}
        return self._shares.setdefault(tenant, _Share())

    async def _claim(self, tenant: str, window: int, share: _Share, weight: int) -> None:
        wanted = max(share.next_claim, weight - share.left)
        counted = (
            tenant if self._what == "requests" else f"{tenant}/{self._what}"
        )  # a tenant's name has no slash
        before = await self._offload(self._rates.spend, counted, window, wanted)
        share.left += max(0, min(wanted, self._limit - before))
        share.is_spent = before + wanted >= self._limit
        share.next_claim = min(share.next_claim * 2, self._largest_claim)
