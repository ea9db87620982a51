"""Lists of open questions: the inboxes of a caller merged into one order, or the questions of one saga.

A cursor holds how far each inbox has been read. What a row holds is the port's business.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from baton.core.failures.strategies.base import ON_CALL
from baton.core.log.answers import OPERATORS, open_questions
from baton.core.log.records import Shown
from baton.core.log.state import State
from baton.core.read.question_views import asked_for
from baton.core.times import iso
from baton.errors import UserError
from baton.ports import Clock, QuestionRow, Questions, Spot
from baton.ports.questions import NEVER
from baton.runtime.engine.cursors import foreign_cursor, read_cursor, write_cursor
from baton.runtime.engine.request import SAGA_ID, Caller
from baton.runtime.invocation.store_retrier import StoreRetrier
from baton.runtime.people.question_rows import row_of
from baton.runtime.starting.start import body_hash

_FILTER_DIGITS = 8
_OF_QUESTIONS = ("answer", OPERATORS)  # the roles that a question can be for

# A cursor comes from outside, and a store has no patience with a place that cannot be.
_Moment = Annotated[int, msgspec.Meta(ge=0, le=NEVER)]
_Saga = Annotated[str, msgspec.Meta(pattern=rf"^{SAGA_ID}\Z")]
_Ask = Annotated[str, msgspec.Meta(min_length=1, max_length=900)]


class _Read(msgspec.Struct, frozen=True, array_like=True):
    """How far an inbox has been read: from the beginning (no place), after a place, or to its end."""

    place: tuple[_Moment, _Saga, _Ask] | None = None
    ended: bool = False


class _Cursor(msgspec.Struct, frozen=True, array_like=True):
    of: str
    reads: tuple[_Read, ...]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Cursor).decode


def inboxes_of(caller: Caller) -> tuple[str, ...]:
    """The audiences that a caller is one of: the user, the groups, the roles, and on-call for an operator."""
    words = [f"user:{caller.user}", *(f"group:{name}" for name in sorted(caller.groups))]
    words += [f"role:{name}" for name in _OF_QUESTIONS if name in caller.roles]
    return (*words, ON_CALL) if OPERATORS in caller.roles else tuple(words)


class Inboxes:
    """The open questions for one caller. A page costs one query for each audience that the caller is one of."""

    def __init__(self, questions: Questions, call: StoreRetrier, clock: Clock, caller: Caller) -> None:
        self._questions = questions
        self._call = call
        self._now = clock.now()
        self._tenant = caller.tenant
        self._of = inboxes_of(caller)

    async def page(self, limit: int, cursor: str) -> tuple[list[dict[str, Any]], str | None]:
        """The next questions, what expires first in front, and the cursor of the page after (None: no more)."""
        before = self._before(cursor)
        pages = await asyncio.gather(*map(self._read, self._of, before, [limit] * len(before)))
        merged = heapq.merge(
            *([(row.spot, index, row) for row in rows] for index, (rows, _) in enumerate(pages)),
            key=lambda found: found[0],
        )
        shown = [(index, row) for _, index, row in merged][:limit]
        after = tuple(
            _after(read, rows, place, [row for of, row in shown if of == index])
            for index, (read, (rows, place)) in enumerate(zip(before, pages, strict=True))
        )
        # One that moved to another of the caller's inboxes just now may be in both.
        views = {(row.saga, row.ask): row_view(row) for _, row in shown}
        if all(read.ended for read in after):
            return list(views.values()), None
        return list(views.values()), write_cursor(_encode(_Cursor(self._fingerprint, after)))

    async def _read(
        self, audience: str, read: _Read, limit: int
    ) -> tuple[Sequence[QuestionRow], Spot | None]:
        if read.ended:
            return (), None
        return await self._call(self._questions.listed, self._tenant, audience, self._now, limit, read.place)

    @property
    def _fingerprint(self) -> str:
        return body_hash([self._tenant, *self._of])[:_FILTER_DIGITS]

    def _before(self, cursor: str) -> tuple[_Read, ...]:
        if not cursor:
            return (_Read(),) * len(self._of)
        try:
            decoded = _decode(read_cursor(cursor))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise foreign_cursor() from error
        if decoded.of != self._fingerprint or len(decoded.reads) != len(self._of):
            raise UserError("the cursor belongs to the list of another caller; leave it out to begin anew")
        return decoded.reads


def _after(
    read: _Read, rows: Sequence[QuestionRow], place: Spot | None, shown: Sequence[QuestionRow]
) -> _Read:
    if len(shown) == len(rows):
        return _Read(place or read.place, ended=place is None)
    return _Read(shown[-1].spot) if shown else read


def of_saga(state: State, now: int, limit: int) -> list[dict[str, Any]]:
    """The open questions of one saga, as its log has them."""
    rows, unknown = state.outbox.rows, Shown()
    found = [row_of(state, ask, told=rows.get(ask.id, unknown).told) for _, ask in open_questions(state)]
    return [row_view(row) for row in sorted(found, key=lambda row: row.spot) if row.spot[0] > now][:limit]


def row_view(row: QuestionRow) -> dict[str, Any]:
    """A question of a list as JSON."""
    kind, _, name = row.to.partition(":")
    return {
        "saga": row.saga,
        "workflow": row.workflow,
        "id": row.ask,
        "type": row.type,
        "asked_for": asked_for(row.type, row.kind),
        "title": row.title or None,
        "message": row.message,
        "for": {"kind": kind, "name": name or None},
        "options": list(row.actions),
        "risk": row.risk or None,
        "asked_at": iso(row.asked_at) if row.asked_at else None,
        "expires_at": iso(row.expires_at) if row.expires_at else None,
        "told": row.told,
        "answer_at": f"/sagas/{row.saga}/answer",
    }
