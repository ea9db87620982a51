"""Circuit breakers as the API shows them, and what an operator does about one. Calls are guarded in steps/breaking.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from baton.core.failures.breakers import OPEN, Breaker, forced_open, name_problem, reset
from baton.core.times import iso
from baton.errors import NotFound
from baton.ports.breakers import Breakers
from baton.runtime.engine.cursors import foreign_cursor, read_cursor, write_cursor
from baton.runtime.engine.request import Request


class BreakerDesk:
    """The breakers of one tenant, for one request."""

    def __init__(self, request: Request) -> None:
        self._call, self._clock = request.parts.call, request.engine.clock
        self._tenant, self._by = request.caller.tenant, request.caller.by
        self._breakers: Breakers = request.engine.store.breakers

    async def page(self, limit: int, cursor: str) -> dict[str, Any]:
        """The next breakers, by their names."""
        try:
            after = read_cursor(cursor).decode() if cursor else ""
        except UnicodeDecodeError as error:
            raise foreign_cursor() from error
        if after and name_problem(after):
            raise foreign_cursor()
        found = await self._call(self._breakers.all, self._tenant, after, limit)
        last = found[-1][0] if len(found) == limit else ""
        return {
            "breakers": [breaker_view(name, there) for name, there in found],
            "next": write_cursor(last.encode()) if last else None,
        }

    async def show(self, name: str) -> dict[str, Any]:
        """Raises `NotFound`."""
        there = await self._call(self._breakers.read_breaker, self._tenant, name)
        if there is None:
            raise NotFound(f"nothing is known of a breaker `{name}`: no call with it has failed for 30 days")
        return breaker_view(name, there)

    async def open(self, name: str, for_ms: int) -> dict[str, Any]:
        """Let no call through for so long, or (0) until it is reset; also one that nothing is known of."""
        now = self._clock.now()
        return await self._change(
            name, Breaker(), lambda there: forced_open(there, self._by, now + for_ms if for_ms else 0, now)
        )

    async def reset(self, name: str) -> dict[str, Any]:
        """Let calls through. Raises `NotFound`."""
        await self.show(name)
        return await self._change(name, None, lambda there: reset(there, self._by, self._clock.now()))

    async def _change(
        self, name: str, seen: Breaker | None, change: Callable[[Breaker], Breaker]
    ) -> dict[str, Any]:
        """Until no other writer comes between."""
        there = seen or Breaker()
        while True:
            after = change(there)
            refused = await self._call(
                self._breakers.write_breaker, self._tenant, name, after, self._clock.now()
            )
            if refused is None or refused == after:  # the second where its own write had no answer
                return breaker_view(name, after)
            there = refused


def breaker_view(name: str, there: Breaker) -> dict[str, Any]:
    """A breaker as JSON."""
    probe = there.until if there.state == OPEN else 0
    return {
        "name": name,
        "state": there.state,
        "since": iso(there.since) if there.since else None,
        "next_probe_at": iso(probe) if probe else None,
        "opened": there.rounds,
        "probes": len(there.probes),
        "failures": [
            {"code": one.code, "count": one.count, "calls": one.calls, "at": iso(one.at)}
            for one in reversed(there.failed)
        ],
        "transitions": [
            {"to": move.to, "at": iso(move.at), "why": move.why, "by": move.by}
            for move in reversed(there.moves)
        ],
    }
