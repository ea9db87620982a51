"""Sending notices by all channels side by side: each tries by itself, until it has sent or given up.

What is to be told, and when it is tried again, is not decided here (notices.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from baton.core.failures import quoted
from baton.core.log.answers import question_of
from baton.core.log.events import Notice, Untold
from baton.core.log.state import State
from baton.errors import ChannelRefused, EngineFault
from baton.ports import NoticeRecord, Notices, Offload, Telling
from baton.runtime.invocation.context import InvocationContext

if TYPE_CHECKING:
    from baton.runtime.people.links import Links

_MOST_WHY = 300  # characters of a reason: fifty notices with some channels each have room in an entry

logger = logging.getLogger("baton.worker")


class Channels:
    """The channels of one saga in one invocation. One that has taken a notice, or has given it up, is not asked again about
    that notice, whatever becomes of the others. `links` makes those of questions; None: messages have none.
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
    ) -> tuple[tuple[str, ...], tuple[Untold, ...]]:
        """One try. The keys of what every channel has sent or given up by now, and of these what channels have given up."""
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
            Untold(key, channel, why) for (key, channel), why in settled if why and key in keys
        )

    async def _linked(self, state: State, notice: Notice, now: int) -> Telling | None:
        """None while no link can be made for a question: a message without it would be the only one."""
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
        """One try by one channel. Whatever is wrong with that stops neither the others nor the saga."""
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
        """When a channel that fails is not asked again: a question that is closed is tried once."""
        notice, ask = telling.notice, telling.ask
        if notice.ask and ask is None:
            return telling.now
        until = notice.at + self._limits.give_up_ms
        return until if ask is None or not ask.ends_at else min(until, ask.ends_at)


async def send(
    call: Offload, kept: NoticeRecord, channel: Notices, telling: Telling, sent: set[str], *, is_first: bool
) -> None:
    """Send a notice by one channel, unless that has been done: claim, send, note.

    Of all notices of a tenant with one key a channel sends one in 24 hours, however many callers there are: the others
    do nothing. So a key that is about one saga names it. A caller that dies on the way leaves a claim that its
    successor, and after `CLAIM_MS` every saga, takes over: nothing is lost, and rarely something is sent twice. The
    first channel claims the key alone, and opens the incident before it sends. `sent`: the keys under which the caller has
    sent something; of these only the note is missing.

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
