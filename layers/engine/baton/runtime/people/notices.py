"""Telling people what a saga's log says they are to be told, beside its steps and never instead of them.

One try at a time, within a short time.
What is to be told is decided in core/, notices.py sends it, question_rows.py has the inbox follow,
and the entry that says so is appended by the performer, or goes with the next one that is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from baton.core.failures import quoted
from baton.core.log.events import Ask, Event, Notice, NoticesSent, Shown, UnsentNotice
from baton.core.log.folding.received import PendingNotices, audience_of
from baton.core.log.questions import question_of
from baton.core.log.state import State
from baton.core.on_demand import OnDemand
from baton.errors import ChannelRefused, EngineFault
from baton.ports import NoticeRecord, Notices, Offload, Telling
from baton.ports.people import NEVER
from baton.runtime.invocation.context import InvocationContext, StoreRetrier

if TYPE_CHECKING:
    from baton.runtime.people import question_rows
    from baton.runtime.people.links import Links
else:
    question_rows = OnDemand("baton.runtime.people.question_rows")

_MOST_WHY = 300  # characters of a reason: fifty notices with some channels each have room in an entry

logger = logging.getLogger("baton.worker")


class Channels:
    """The channels of one saga in one invocation.
    One that has taken a notice, or has given it up, is not asked again about that notice,
    whatever becomes of the others. `links` makes those of questions; None: messages have none.
    """

    def __init__(
        self, context: InvocationContext, channels: Sequence[Notices], links: Callable[[], Links] | None
    ) -> None:
        self._channels = channels
        self._links = links
        self._kept = context.store.notice_record
        self._clock = context.clock
        self._limits = context.limits
        self._settled: dict[tuple[str, str], str] = {}  # key and channel; why it was given up
        self._sent: set[str] = set()  # what this invocation has sent, noted or not

    async def tell(
        self, call: Offload, state: State, notices: Sequence[Notice]
    ) -> tuple[tuple[str, ...], tuple[UnsentNotice, ...]]:
        """Try every channel once.
        Return the keys that all have sent or given up, and the notices given up among these.
        """
        began = self._clock.now()
        tellings = [one for notice in notices if (one := await self._linked(state, notice, began))]
        await asyncio.gather(
            *(self._by(call, channel, one) for one in tellings for channel in self._channels)
        )
        names = [channel.name for channel in self._channels]
        keys = tuple(
            notice.key for notice in notices if all((notice.key, name) in self._settled for name in names)
        )
        settled = self._settled.items()
        return keys, tuple(
            UnsentNotice(key, channel, why) for (key, channel), why in settled if why and key in keys
        )

    async def _linked(self, state: State, notice: Notice, now: int) -> Telling | None:
        """Return the telling with its link; None while no link can be made for a question."""
        telling = _telling(state, notice, now)
        if self._links is None or telling.ask is None:
            return telling
        try:
            return replace(telling, link=await self._links().to(state, telling.ask, now))
        except EngineFault as error:
            logger.warning(
                "no link could be made: %r", error, extra={"saga": telling.saga, "key": notice.key}
            )
            return None

    async def _by(self, call: Offload, channel: Notices, telling: Telling) -> None:
        """Try one channel once. A failure stops neither the others nor the saga."""
        place = (telling.notice.key, channel.name)
        if place in self._settled:
            return
        where = {"saga": telling.saga, "key": telling.notice.key, "channel": channel.name}
        try:
            if channel.reaches(telling):
                is_first = channel is self._channels[0]
                await send(call, self._kept, channel, telling, self._sent, is_first=is_first)
            self._settled[place] = ""
        except ChannelRefused as error:
            self._give_up(place, where, str(error))
        except Exception as error:  # noqa: BLE001  # a defect of one channel is no reason to stop a saga
            logger.warning("a notice could not be sent: %r", error, extra=where)
            if self._clock.now() >= self._until(telling):
                self._give_up(place, where, f"no try succeeded in time; the last one: {error!r}")

    def _give_up(self, place: tuple[str, str], where: dict[str, str], why: str) -> None:
        said = quoted(why, _MOST_WHY)
        logger.error("a notice was given up: %s", said, extra=where)
        self._settled[place] = said

    def _until(self, telling: Telling) -> int:
        """Return the time at which a failing channel is given up: a question that is closed is tried once."""
        notice, ask = telling.notice, telling.ask
        if notice.ask and ask is None:
            return telling.now
        until = notice.at + self._limits.give_up_ms
        return until if ask is None or not ask.ends_at else min(until, ask.ends_at)


async def send(
    call: Offload, kept: NoticeRecord, channel: Notices, telling: Telling, sent: set[str], *, is_first: bool
) -> None:
    """Send a notice by one channel, unless that has been done: claim, send, note.

    Of all notices of a tenant with one key a channel sends one in 24 hours, however many callers there are:
    the others do nothing. So a key that is about one saga names it. A caller that dies on the way leaves a
    claim that its successor, and after `CLAIM_MS` every saga, takes over: nothing is lost, and rarely
    something is sent twice. The first channel claims the key alone, and opens the incident before it sends.
    `sent`: the keys under which the caller has sent something; of these only the note is missing.

    Raises `ChannelRefused` for what is never sent, and an `EngineFault` for what was not sent now.
    """
    tenant, notice = telling.tenant, telling.notice
    key = notice.key if is_first else f"{notice.key} {channel.name}"
    if key in sent:
        await call(kept.sent, tenant, key, telling.now)
        return
    claimed = await call(kept.claim, tenant, telling.saga, replace(notice, key=key), telling.now)
    if claimed is None:
        return
    if claimed.incident and is_first:
        await call(kept.open, tenant, telling.saga, claimed, telling.expires)
    try:
        await call(channel.tell, replace(telling, notice=replace(claimed, key=notice.key)))
    except ChannelRefused as error:
        await call(kept.sent, tenant, key, telling.now, quoted(str(error), _MOST_WHY))
        raise
    sent.add(key)
    await call(kept.sent, tenant, key, telling.now)


def _telling(state: State, notice: Notice, now: int) -> Telling:
    of = state.origin
    return Telling(
        tenant=of.tenant,
        saga=of.saga,
        user=of.user,
        notice=notice,
        now=now,
        expires=of.expires,
        ask=question_of(state, notice),
    )


WITHDRAWN_AT_ONCE = 16  # rows of an ended saga, half of the calls that a process makes side by side


class _Done(Struct):
    """Result of one try: the events for the log, and the audiences without a place, or with one again.

    `is_behind`: rows are left to write; `failed`: and an immediate retry would be in vain.
    """

    keys: tuple[str, ...] = ()
    untold: tuple[UnsentNotice, ...] = ()
    shown: dict[str, Shown] = {}
    withdrawn: list[str] = []
    full: set[str] = set()
    freed: set[str] = set()
    is_behind: bool = False
    failed: bool = False


class Notifier:
    """The notices and questions of one saga in one invocation that must end
    by `deadline`, through `channels`.

    `news`: what the log does not say yet.
    """

    def __init__(self, context: InvocationContext, channels: Channels, deadline: int) -> None:
        self._channels = channels
        self._context = context
        self._call = context.call
        self._clock = context.clock
        self._limits = context.limits
        self._deadline = deadline
        self._task: asyncio.Task[_Done] | None = None
        self._oldest = 0
        self._again: int | None = None
        self._full: dict[str, int] = {}
        self._withdrawn = 0  # as of which version of the log
        self.news: NoticesSent | None = None

    @property
    def again(self) -> int | None:
        """Time of the next try for notices that could not be sent."""
        return min(filter(None, (self._again, *self._full.values())), default=None)

    def begin(self, state: State, pending: PendingNotices) -> None:
        """Start a try to send these, unless one is under way, one failed a moment ago,
        or the last one is not recorded yet.
        """
        now = self._clock.now()
        if self._task is not None or self.news is not None or (self._again is not None and now < self._again):
            return
        if self._full:
            pending = self._without_those_who_are_full(state, pending, now)
        if not pending:
            return
        self._oldest = min((notice.at for notice in pending.notices), default=now)
        self._task = asyncio.create_task(self._tell(state, pending), name=f"{state.origin.saga}/notices")

    def _without_those_who_are_full(self, state: State, pending: PendingNotices, now: int) -> PendingNotices:
        """Return the notices without questions that wait for a place, and their notices;
        their rows are there.
        """

        def waits_for_place(ask: Ask) -> bool:
            audience, shown = audience_of(state, ask), state.outbox.rows[ask.id]
            is_there = shown.to == audience and shown.until >= 0
            return self._full.get(audience, 0) > now and is_there and not shown.told

        waits = {question for question, ask in pending.asks.items() if waits_for_place(ask)}
        return PendingNotices(
            {question: ask for question, ask in pending.asks.items() if question not in waits},
            pending.stale,
            tuple(one for one in pending.notices if one.ask not in waits),
        )

    def retry(self) -> None:
        """Try again at once: a change may have cured the failure."""
        self._again = None
        self._full.clear()

    async def wait(self) -> None:
        """Wait until the try is over. It has its own time, which is short."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def heard(self) -> NoticesSent | None:
        """Return the notices sent and not recorded yet, for the log. Call `noted` once they are."""
        task = self._task
        if task is not None and task.done():
            self._task = None
            self._take_in(task.result())
        return self.news

    def with_news(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return the events of an entry after the record of notices sent since the last one: that needs no
        entry of its own.
        """
        news = self.heard() if events else None
        return events if news is None else (news, *events)

    def noted(self, events: Sequence[Event]) -> bool:
        """Return true if these events, which are in the log now, record the notices sent."""
        if self.news is None or not events or events[0] is not self.news:
            return False
        self.news = None
        return True

    @property
    def can_wait(self) -> bool:
        """True if the notices sent need not be recorded before the next entry: to withdraw a row twice does
        no harm.
        """
        return self.news is not None and not (self.news.keys or self.news.shown)

    def _take_in(self, done: _Done) -> None:
        now = self._clock.now()
        waited = now - self._oldest
        for audience in done.full:
            self._full[audience] = now + self._pause(waited, self._limits.busy_sweep_ms)
        for audience in done.freed:
            self._full.pop(audience, None)
        if done.keys or done.shown or done.withdrawn:
            self.news = NoticesSent(
                keys=done.keys, untold=done.untold, shown=done.shown, withdrawn=tuple(done.withdrawn)
            )
        if done.failed and not done.keys:
            self._again = now + self._pause(waited, self._limits.fault_pause_ms)

    def _pause(self, waited: int, least: int) -> int:
        """Return the pause before the next try: the longer sending fails, the longer it is."""
        return min(max(least, waited), self._limits.sweep_longest_ms)

    def stop(self) -> None:
        """Stop. A send under way is abandoned: it can be sent again under the same key."""
        if self._task is not None:
            self._task.cancel()

    async def withdraw(self, state: State, *, is_heir: bool) -> bool:
        """Take out the rows of a saga that has ended, before it is let go.
        False: there was no time for all, another worker goes on.

        `is_heir`: another worker has appended the end, and may have begun with this. Raises `EngineFault`.
        """
        await self.wait()  # a place that is taken after it is freed would be lost
        if self._withdrawn == state.version:
            return True
        rows = self._rows(state, self._call.until(self._deadline))
        left = await rows.left() if is_heir else tuple(state.outbox.rows)
        while left:
            if self._clock.now() >= self._deadline:
                return False
            now, left = left[:WITHDRAWN_AT_ONCE], left[WITHDRAWN_AT_ONCE:]
            for fault in await asyncio.gather(*map(rows.withdraw, now), return_exceptions=True):
                if isinstance(fault, EngineFault) and self._clock.now() >= self._deadline:
                    return False
                if fault is not None:
                    raise fault
        await rows.tell_next()
        self._withdrawn = state.version
        return True

    def _rows(self, state: State, call: StoreRetrier) -> question_rows.QuestionRows:
        return question_rows.QuestionRows(self._context, call, state)

    async def _tell(self, state: State, pending: PendingNotices) -> _Done:
        began, done = self._clock.now(), _Done()
        call = self._call.until(min(began + self._limits.telling_ms, self._deadline))
        silent = (
            await self._follow(state, pending, call, done) if pending.asks or pending.stale else set[str]()
        )
        if (done.shown or done.withdrawn) and self._clock.now() >= call.deadline:
            return done  # rows have taken all of the time; people are told by the next try, at once

        notices = [one for one in pending.notices if one.ask not in silent]
        done.keys, done.untold = await self._channels.tell(call, state, notices)
        done.failed |= done.is_behind or len(done.keys) < len(notices)
        return done

    async def _follow(
        self, state: State, pending: PendingNotices, call: StoreRetrier, done: _Done
    ) -> set[str]:
        """Let the inbox follow the log: first what goes, because it makes room.
        The questions of which none is told now.
        """
        rows, silent, saga = self._rows(state, call), set[str](), state.origin.saga
        due = {notice.ask for notice in pending.notices}

        async def withdraw(question: str) -> None:
            try:
                await rows.withdraw(question)
                done.withdrawn.append(question)
            except EngineFault as error:
                done.is_behind = True
                logger.warning("a row is left: %r", error, extra={"saga": saga, "ask": question})

        async def show(ask: Ask) -> None:
            try:
                shown = await rows.show(ask, is_due=ask.id in due)
            except EngineFault as error:
                silent.add(ask.id)
                done.is_behind = True
                logger.warning("a row is not there: %r", error, extra={"saga": saga, "ask": ask.id})
                return
            if shown != state.outbox.rows.get(ask.id):
                done.shown[ask.id] = shown
            if not shown.told:
                silent.add(ask.id)
                done.full.add(shown.to)

        await asyncio.gather(*map(withdraw, pending.stale))
        await asyncio.gather(*map(show, sorted(pending.asks.values(), key=lambda ask: ask.ends_at or NEVER)))
        await rows.tell_next()
        done.freed = {audience for audience, room in rows.room.items() if room > 0} - done.full
        return silent
