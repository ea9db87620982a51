"""What a caller does with an open question besides answering it: claim it, release it, have its audience told again.

The rules are in core/log/question_claims.py; answering is in runtime/service.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from baton.core.log.answers import question
from baton.core.log.events import Ask, Event
from baton.core.log.question_claims import Person, claim, release, remind
from baton.core.log.state import State
from baton.runtime.engine.request import Opened, Request

Rule = Callable[[State, str, Ask, Person, int], Sequence[Event]]


class Append(Protocol):
    """Puts what `make` says as one entry, with a wake: a worker tells, or has the inbox follow."""

    def __call__(
        self, opened: Opened, make: Callable[[State, int], Sequence[Event]]
    ) -> Awaitable[dict[str, Any]]: ...


class QuestionDesk:
    """The questions of sagas, for one caller."""

    def __init__(self, request: Request, append: Append) -> None:
        self._request = request
        self._append = append
        caller = request.caller
        self._person = Person(user=caller.user, by=caller.by, roles=caller.roles, groups=caller.groups)

    async def claim(self, saga: str, ask: str) -> dict[str, Any]:
        """Make a question of a group or a role the caller's own. Repeated, a no-op.

        Raises `NotFound` with the questions that are open, `Forbidden`, `NotAllowedNow` with the user who has it.
        """
        return await self._note(saga, ask, claim)

    async def release(self, saga: str, ask: str) -> dict[str, Any]:
        """Give a claimed question back to all whom it is for. Repeated, a no-op. Raises as `claim`."""
        return await self._note(saga, ask, release)

    async def remind(self, saga: str, ask: str) -> dict[str, Any]:
        """Have those whom the question is for told again. Raises as `claim`; `NotAllowedNow` with the time when it can be done."""
        return await self._note(saga, ask, remind)

    async def _note(self, saga: str, ask: str, rule: Rule) -> dict[str, Any]:
        def make(state: State, now: int) -> Sequence[Event]:
            slot, open_question = question(state, ask, now)
            return rule(state, slot, open_question, self._person, now)

        return await self._append(await self._request.open(saga), make)
