"""Facts of users, as operators list and erase them. How sagas write and find them is in tools/standard."""

from __future__ import annotations

from typing import Annotated

from baton.core.expressions import iso
from baton.core.read.answers import Count, Cursor, Time, View
from baton.errors import UserError
from baton.runtime.engine.request import Request, foreign_cursor, read_cursor, write_cursor


class FactView(View):
    """A fact of a user that sagas have kept with `std.remember`."""

    id: str
    text: str
    saga: Annotated[str, "Saga that wrote the fact."]
    at: Time
    expires_at: Annotated[Time | None, "Time from which no saga finds the fact. Null: never."]
    model: Annotated[str, "Model that embedded the text."]


class FactPage(View):
    """A page of a user's facts, in no order of meaning."""

    facts: list[FactView]
    next: Cursor


class FactsErased(View):
    """Facts that were deleted."""

    erased: Count
    more: Annotated[bool, "The user has more facts. Repeat the request."]


ERASED_AT_ONCE = 200
_ERASED_TOGETHER = 20
_LISTED_TOGETHER = 1_000


class FactService:
    """The facts of one tenant's users, for one request."""

    def __init__(self, request: Request) -> None:
        self._call, self._clock = request.parts.call, request.engine.clock
        self._tenant, self._facts = request.caller.tenant, request.engine.store.facts

    async def page(self, user: str, limit: int, cursor: str) -> FactPage:
        """Return the next facts of a user. Raises `UserError`."""
        if not user:
            raise UserError("facts are listed of one user; write the query parameter `user`")
        try:
            before = read_cursor(cursor).decode() if cursor else ""
        except UnicodeDecodeError as error:
            raise foreign_cursor() from error
        found, after = await self._call(self._facts.listed, self._tenant, user, before, limit)
        return FactPage(
            facts=[
                FactView(
                    id=fact.id,
                    text=fact.text,
                    saga=fact.saga,
                    at=iso(fact.at),
                    expires_at=iso(fact.expires) if fact.expires else None,
                    model=fact.model,
                )
                for fact in found
            ],
            next=write_cursor(after.encode()) if after else None,
        )

    async def erase(self, user: str) -> FactsErased:
        """Delete facts of a user, with their texts and vectors."""
        erased, room, place, is_more = 0, ERASED_AT_ONCE, "", True
        while is_more and room:
            # Many: facts that were erased leave rows for a day, and each further request reads through them.
            found, place = await self._call(self._facts.listed, self._tenant, user, place, _LISTED_TOGETHER)
            ids, now = [fact.id for fact in found[:room]], self._clock.now()
            for first in range(0, len(ids), _ERASED_TOGETHER):
                some = ids[first : first + _ERASED_TOGETHER]
                erased += await self._call(self._facts.delete, self._tenant, user, some, now)
            is_more, room = bool(place) or len(found) > room, room - len(ids)
        return FactsErased(erased=erased, more=is_more)
