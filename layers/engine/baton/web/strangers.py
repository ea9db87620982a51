"""How many requests with a wrong signature one address may make at an open route: counted in this process, written nowhere.

It saves the check of the signature and a credential's look-up, and bounds what the log of the function gets. API Gateway bounds
all callers of the route together, before a function runs (template.yaml).
"""

from __future__ import annotations

from baton.errors import TooManyRequests
from baton.ports import Clock
from baton.runtime.rates import WINDOW_MS

MOST_REFUSED = 10
"""Refused requests of an address in a window of ten seconds; further ones are not looked at."""
MOST_ADDRESSES = 1_000
"""So many are told apart; those after them count as one."""
_OTHERS = ""


class Strangers:
    """Refusals by address. Addresses and not profiles: else a caller without a secret could silence a provider."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._window = 0
        self._refused: dict[str, int] = {}

    def check(self, address: str) -> None:
        """Raises `TooManyRequests` for one that has been refused too often."""
        now = self._clock.now()
        if (window := now - now % WINDOW_MS) != self._window:
            self._window, self._refused = window, {}
        if self._refused.get(self._known(address), 0) >= MOST_REFUSED:
            seconds = -(-(window + WINDOW_MS - now) // 1_000)
            raise TooManyRequests(
                f"too many requests of this address were not signed; try again in {seconds} s", seconds
            )

    def refused(self, address: str) -> None:
        known = self._known(address)
        self._refused[known] = self._refused.get(known, 0) + 1

    def _known(self, address: str) -> str:
        return address if address in self._refused or len(self._refused) < MOST_ADDRESSES else _OTHERS
