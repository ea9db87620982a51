"""How long a request may read a log: the rest of its time is for the answer, which takes longer the more was read."""

from __future__ import annotations

from baton.errors import TooLarge
from baton.ports import Clock

_OF, _SHARE = 3, 2  # two thirds of the time; the answer to a log takes less than half as long as reading it


class ReadingTime:
    """From now on, for a request that must be answered by `deadline` (epoch ms)."""

    def __init__(self, clock: Clock, deadline: int) -> None:
        now = clock.now()
        self._clock = clock
        self._until = now + (deadline - now) * _SHARE // _OF

    def check(self, what: str, versions: int, came_to: int) -> None:
        """Asked before each further page. Raises `TooLarge`."""
        if self._clock.now() >= self._until:
            raise TooLarge(
                f"the log of this saga is too long to be {what} within one request: of {versions} versions it came "
                f"to {came_to}; `GET /sagas/{{saga}}/events` gives all of them, page by page"
            )
