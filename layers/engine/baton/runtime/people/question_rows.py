"""The rows of a saga's questions in the inbox, and the places that a person has for pending ones.

Loaded by the worker of a saga that asks.
Which rows there are to be is decided in core/log/folding/received.py.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence

import msgspec

from baton.core.log.folding.received import audience_of, person_of
from baton.core.log.records import Ask, Shown
from baton.core.log.state import State
from baton.errors import EngineFault
from baton.ports import Account, QuestionRow, Reservation, ReservationChange, SagaRef
from baton.runtime.invocation.context import InvocationContext, StoreRetrier

logger = logging.getLogger("baton.worker")

PLACES_DAY = 999_999
"""The day, in the year 4707, of the account that holds a person's places: no day of money is."""
DISTANT = 10**13
"""The end of a place for a question that never expires."""
FENCED_MS = 86_400_000
"""Milliseconds for which a removed row cannot come back.
An abandoned call can only arrive while its process lives.
"""
NEXT_AT_ONCE = 3
LONGEST_TITLE, LONGEST_MESSAGE, LONGEST_ACTIONS = 120, 300, 200  # characters; a row is to be one write unit


class QuestionRows:
    """Question rows of one saga, as of `state`.
    `room`: places of the persons of whom a question was removed.
    """

    def __init__(self, context: InvocationContext, call: StoreRetrier, state: State) -> None:
        self._store, self._clock, self._call = context.store, context.clock, call
        self._most = context.limits.pending_per_person
        self._state = state
        self._ref = SagaRef(state.origin.tenant, state.origin.saga)
        self._full: set[str] = set()
        self.room: dict[str, int] = {}

    async def show(self, ask: Ask, *, is_due: bool) -> Shown:
        """Put the row as it is to be.
        It has a place with its person where `told`, and then its audience may be told.

        `is_due`: its audience is to be told, for the first time unless it has a place already. What no notice
        is due for takes its place whatever the limit, because its audience knows of it; so does what a person
        has claimed.
        """
        audience, known = audience_of(self._state, ask), self._state.outbox.rows.get(ask.id, Shown())
        if known.to != audience or known.left:
            await self._free(known, ask.id, but=audience)
            known = known if known.to == audience else Shown()
        told = known.told or await self._reserve(audience, ask, is_limited=is_due and not ask.candidates)
        shown = Shown(to=audience, until=ask.ends_at, told=told)
        if shown != known:
            await self._put(ask, shown)
        return shown

    async def withdraw(self, question: str) -> None:
        """Free its place and remove the row, in this order: a removed row needs no more work."""
        await self._free(self._state.outbox.rows[question], question)
        until = self._clock.now() + FENCED_MS
        await self._call(self._store.questions.remove, self._ref, question, self._number, until)

    async def left(self) -> Sequence[str]:
        """Return the questions of this state that no worker has withdrawn."""
        done = await self._call(self._store.questions.removed, self._ref, self._number)
        return [question for question in self._state.outbox.rows if question not in done]

    @property
    def _number(self) -> int:
        return 2 * self._state.version

    async def _put(self, ask: Ask, shown: Shown) -> None:
        origin = self._state.origin
        row = row_of(self._state, ask, told=shown.told)
        # Of two puts as of one version the one that was told is the later one.
        number = self._number + shown.told
        until = ask.ends_at or origin.expires
        await self._call(self._store.questions.put, origin.tenant, row, number, until)

    # ---- places

    async def _reserve(self, audience: str, ask: Ask, *, is_limited: bool) -> bool:
        """Return true if the question has a place now. Only a person's are counted."""
        if not (self._most and person_of(audience)):
            return True
        if is_limited and audience in self._full:
            return False
        after = Reservation(1, 1, ask.ends_at or self._never)
        limit, before = self._most if is_limited else None, None
        while True:
            change = ReservationChange(self._holder(ask.id), before, after, limit=limit)
            answer = await self._call(
                self._store.budgets.move, self._account(audience), change, self._clock.now()
            )
            if answer.is_done or answer.there == after:
                return True
            if answer.there == before:
                self._full.add(audience)
                return False
            before = answer.there
            if before is not None and before.is_mark and -before.number >= self._state.version:
                return False  # a later worker has freed it, and this one does not know yet

    async def _free(self, known: Shown, question: str, but: str = "") -> None:
        """Free the places of a question, but for those of one audience."""
        for audience in dict.fromkeys((known.to, *known.left)):
            if self._most and person_of(audience) and audience != but:
                await self._free_of(audience, question, known.until if known.told else None)

    async def _free_of(self, audience: str, question: str, until: int | None) -> None:
        """Free a place and leave a mark there: a reservation that lands after this finds it, and takes none.
        `until`: its end, if that is known.
        """
        now = self._clock.now()
        before = Reservation(1, 1, until or self._never) if until is not None else None
        mark = Reservation(-self._state.version, 0, now, is_freed=True)
        while True:
            change = ReservationChange(self._holder(question), before, mark)
            answer = await self._call(self._store.budgets.move, self._account(audience), change, now)
            before = answer.there
            if answer.is_done or (before is not None and before.is_freed):
                room = self._most - answer.sums.held
                self.room[audience] = max(room, self.room.get(audience, room))
                return

    async def tell_next(self) -> None:
        """Notify of the questions that wait for places which have become free."""
        for audience, room in self.room.items():
            if room > 0:
                await self._tell_next(audience, room)

    async def _tell_next(self, audience: str, room: int) -> None:
        """Make those sagas due that could not tell this person of theirs.
        If that fails, they look by themselves, later.
        """
        try:
            now, most = self._clock.now(), self._most + room
            found, _ = await self._call(
                self._store.questions.listed, self._ref.tenant, audience, now, most, None
            )
            for row in [row for row in found if not row.told][: min(room, NEXT_AT_ONCE)]:
                if row.saga != self._ref.id:
                    await self._make_due(SagaRef(self._ref.tenant, row.saga), now)
        except EngineFault:
            logger.warning("the next question waits", exc_info=True, extra={"saga": self._ref.id})

    async def _make_due(self, ref: SagaRef, now: int) -> None:
        """Make the saga due, so that a worker that holds it and was refused
        a place just now does not let it go before it looks again.
        """
        log = self._store.log
        head = await self._call(log.read_head, ref)
        while head is not None and head.due_at is not None and head.due_at > now:
            if await self._call(log.arm, head, now):
                return
            head = await self._call(log.read_head, ref)

    @property
    def _never(self) -> int:
        """End of the place of a question without an end: no saga outlives its own."""
        return self._state.origin.ends_by or DISTANT

    def _account(self, audience: str) -> Account:
        return Account(self._ref.tenant, person_of(audience), PLACES_DAY)

    def _holder(self, ask: str) -> str:
        """Return a short name of the holder, because all that a person has pending is in one item."""
        return hashlib.sha256(f"{self._ref.id}/{ask}".encode()).hexdigest()[:16]


def row_of(state: State, ask: Ask, *, told: bool) -> QuestionRow:
    """Return a question as the inbox shows it, cut to what a list needs."""
    actions = ask.actions
    while len(msgspec.json.encode(actions)) > LONGEST_ACTIONS:
        actions = actions[:-1]
    return QuestionRow(
        saga=state.origin.saga,
        workflow=state.origin.workflow,
        ask=ask.id,
        type=ask.type,
        kind=ask.kind,
        title=_cut(ask.title, LONGEST_TITLE),
        message=_cut(ask.message, LONGEST_MESSAGE),
        to=audience_of(state, ask),
        actions=actions,
        asked_at=ask.asked_at,
        expires_at=ask.ends_at,
        told=told,
        risk=ask.risk,
    )


def _cut(text: str, most: int) -> str:
    """Return the text cut to a number of characters, and of bytes of UTF-8 as if each character had two at
    most.
    """
    short = text.encode()[: most * 2].decode(errors="ignore")[:most]
    return text if len(text) == len(short) else f"{short[:-1]}…"
