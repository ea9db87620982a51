"""Texts that models are writing, for viewers: at most two writes a second for a saga, and none without a
viewer. The first words are written at once. An answer that has ended is in the log, where viewers read it.

A worker learns of a viewer by its take and by its appends (`Live.leave_word`), and of the end of viewing by a
write that is refused. No caller waits for these writes: an answer is neither late nor lost because of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import msgspec
from msgspec import Struct, field

from baton.core.failures import LONGEST, sanitised
from baton.errors import EngineFault
from baton.ports import SagaRef
from baton.ports.models import Draft
from baton.runtime.invocation.context import InvocationContext

EVERY_S = 0.5
LOOKS_S = 0.1
AGAIN_MS = 5_000
"""Milliseconds after which an unchanged text is written again: a text that is older was left by a dead
worker.
"""
MOST_BYTES = 8_192
MOST_TEXTS = 64
_LEAST_MS = 2_000  # of an invocation, for a write to be worth it

logger = logging.getLogger("baton.worker")


class LiveText(NamedTuple):
    """Text of one answer so far. `slot`: of its step; `since`: when it was asked for, in epoch ms."""

    slot: str
    since: int
    text: str


class _Saga(Struct, eq=False):
    """Saga that this invocation holds. `last`: the texts that viewers see, since `at`."""

    ref: SagaRef
    epoch: int
    drafts: dict[str, tuple[int, Draft]] = field(default_factory=dict)
    is_watched: bool = False
    last: list[LiveText] = field(default_factory=list)
    at: int = 0
    task: asyncio.Task[None] | None = None


class LiveShow:
    """Live texts of the sagas of one invocation. `held`: the epochs of those that it holds, and
    until when viewers watched as it took them.
    """

    def __init__(self, context: InvocationContext, held: Mapping[str, tuple[int, int]]) -> None:
        self._context = context
        self._held = held
        self._sagas: dict[str, _Saga] = {}

    def _of(self, ref: SagaRef) -> _Saga | None:
        """Return the saga; None if this invocation does not hold it."""
        key = str(ref)
        if (saga := self._sagas.get(key)) is None and key in self._held:
            epoch, watched = self._held[key]
            is_watched = watched > self._context.clock.now()
            saga = self._sagas[key] = _Saga(ref, epoch, is_watched=is_watched)
        return saga

    def heard(self, ref: SagaRef, watched: int) -> None:
        """Record that a viewer watches until then."""
        if watched <= self._context.clock.now():
            return
        if (saga := self._of(ref)) is not None:
            saga.is_watched = True
            self._begin(saga)

    def drop(self, ref: SagaRef) -> None:
        """Record that this invocation does not hold the saga any more.
        A write that is under way may land; another holder's replaces it.
        """
        saga = self._sagas.pop(str(ref), None)
        if saga is not None and saga.task is not None:
            saga.task.cancel()

    @contextmanager
    def draft(self, ref: SagaRef, slot: str) -> Iterator[Draft]:
        """Show the partial text of an answer to viewers until the end of the block."""
        draft, saga = Draft(), self._of(ref)
        if saga is None:
            yield draft
            return
        saga.drafts[slot] = self._context.clock.now(), draft
        self._begin(saga)
        try:
            yield draft
        finally:
            saga.drafts.pop(slot, None)

    def _begin(self, saga: _Saga) -> None:
        if saga.is_watched and saga.drafts and saga.task is None:
            saga.task = asyncio.create_task(self._show(saga), name=f"live {saga.ref}")
            saga.task.add_done_callback(lambda task: self._ended(saga, task))

    def _ended(self, saga: _Saga, task: asyncio.Task[None]) -> None:
        saga.task = None
        if not task.cancelled() and task.exception() is None:
            self._begin(saga)  # an answer may have begun after the last look

    async def _show(self, saga: _Saga) -> None:
        """Write the drafts until all answers have ended, and that is written, or no viewer watches."""
        while saga.is_watched and (saga.drafts or saga.last):
            now = self._context.clock.now()
            if (pause := saga.at + EVERY_S * 1_000 - now) > 0:
                await asyncio.sleep(pause / 1_000)
            elif self._context.call.deadline - now < _LEAST_MS:
                saga.is_watched = False  # the next invocation hears of viewers itself
            else:
                await self._write(saga, now)

    async def _write(self, saga: _Saga, now: int) -> None:
        texts = [one for one in texts_of(saga.drafts) if one.text]
        if texts == saga.last and (now - saga.at < AGAIN_MS or not texts):
            await asyncio.sleep(LOOKS_S)
            return
        context = self._context
        put, data = context.store.live.put_texts, msgspec.json.encode(texts)
        try:
            saga.is_watched = await context.call.within(_LEAST_MS)(put, saga.ref, saga.epoch, now, data)
            saga.last, saga.at = texts, now
        except EngineFault as error:
            saga.at = now  # it may be there; the next one says so in any case
            logger.info("viewers wait: %r", error, extra={"saga": saga.ref.id})
        except Exception:
            # Whatever it is, no answer is to fail because of it.
            saga.is_watched = False
            logger.warning("viewers are shown nothing", exc_info=True, extra={"saga": saga.ref.id})


def texts_of(drafts: dict[str, tuple[int, Draft]]) -> list[LiveText]:
    """Return the end of each text, within a bound of bytes for all; of too many texts, the newest."""
    some = sorted(drafts.items(), key=lambda one: one[1][0])[-MOST_TEXTS:]
    return [
        LiveText(slot, since, live_tail(draft.read(), MOST_BYTES // len(some)))
        for slot, (since, draft) in some
    ]


def live_tail(text: str, most: int) -> str:
    """Return the end of a text that is still being written, without half characters and without possible
    secrets.

    The beginning of the rest and the word that is being written are withheld: half a secret is not
    recognised.
    """
    cut = LONGEST if len(text) > most + LONGEST else 0
    text = sanitised(text[-most - LONGEST :])[cut:]
    end = len(text)
    while end and len(text) - end < LONGEST and "!" <= text[end - 1] <= "~":
        end -= 1
    whole = text[:end].encode(errors="ignore")
    return whole[-most:].decode(errors="ignore")
