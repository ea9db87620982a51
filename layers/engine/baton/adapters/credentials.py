"""Credentials by name, of a profile of models or of an API: out of a secret store or the environment, read when needed.

No credential is in an argument, a message or the representation of an object. They are sent by models/openai_exchange.py
and by tools/standard/openapi.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from baton.ports import Clock, Offload, StepFailure

KEPT_MS: Final = 300_000
_REFUSED_MS: Final = 10_000  # a credential that was refused is not fetched more often than this


class Secrets(Protocol):
    """A store of credentials."""

    def read(self, name: str) -> str:
        """Empty where there is none. Raises `StepFailure`."""
        ...

    def where(self, name: str) -> str:
        """Where a person has to put it, for a message."""
        ...


class VariableSecrets:
    """`Secrets` in environment variables."""

    def __init__(self, read: Callable[[str], str], name: Callable[[str], str]) -> None:
        """read: the variable for a name. name: what that variable is called."""
        self.read, self.name = read, name

    def where(self, name: str) -> str:
        return f"the environment variable {self.name(name)}"


class Credentials:
    """Those of a process and of one kind. Each is read at its first use and again after five minutes."""

    def __init__(self, secrets: Secrets, clock: Clock, offload: Offload, of: str) -> None:
        """of: what the names are of, for a message."""
        self._what = of
        self._secrets, self._clock, self._offload = secrets, clock, offload
        self._known: dict[str, tuple[str, int]] = {}
        self._reading: dict[str, asyncio.Lock] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({sorted(self._known)})"

    async def of(self, name: str, *, is_optional: bool = False, is_refused: bool = False) -> str:
        """The credential; empty where there is none and none may be needed.

        is_refused: the server has just not accepted it; it is read anew, unless that was done a moment ago.
        Raises `StepFailure`.
        """
        async with self._lock(name):
            found, read_at = self._known.get(name, ("", 0))
            now = self._clock.now()
            is_old = now - read_at >= (_REFUSED_MS if is_refused else KEPT_MS)
            if is_old or not found:
                found = (await self._offload(self._secrets.read, name)).strip()
                if found:
                    self._known[name] = (found, now)
        if not found and not is_optional:
            where = self._secrets.where(name)
            raise StepFailure(
                "missing_credentials",
                f"{self._what} `{name}` has no credential: put it into {where}",
            )
        if found.startswith("{") or any(not "!" <= character <= "~" for character in found):
            where = self._secrets.where(name)
            raise StepFailure(
                "missing_credentials", f"{where} must hold the credential and nothing else, as plain text"
            )
        return found

    def _lock(self, name: str) -> asyncio.Lock:
        """Of this event loop: many agents that begin at once read a credential once."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._reading = loop, {}
        return self._reading.setdefault(name, asyncio.Lock())
