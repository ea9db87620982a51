"""From the dead-letter queues to the record of dead letters: each run of the reconciler moves what it finds.

A letter is written before its messages are deleted.
A run that dies in between finds them again, and the letter knows them.
What becomes of a letter is in core/letters.py; who reads and redrives them in requests/operators.py.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from baton.core.letters import (
    DISCARDED,
    MESSAGE,
    OUTSIDE,
    PENDING,
    RELAY,
    STREAM,
    TOO_OFTEN,
    DeadMessage,
    Letter,
    cut_body,
    with_messages,
)
from baton.errors import EngineFault, PoisonMessage, StoreUnavailable
from baton.ports import Clock, Offload, SagaRef
from baton.ports.operators import MOST_COUNTED, DeadQueue, Letters, Outstanding
from baton.runtime.invocation.context import read_message

logger = logging.getLogger("baton.reconciler")

AT_ONCE = 10  # messages of one request
SIDE_BY_SIDE = 4  # requests of one queue; each may file ten letters at a time
CALLS = AT_ONCE * SIDE_BY_SIDE
RESERVE_MS = 14_000  # from the last look at the clock to the end of the run: two calls, whose clients give up after six seconds
_TRIES = 8  # at a letter that another writer changes at the same time
SAGA, TENANT = "[A-Za-z0-9._-]{1,400}", "[A-Za-z0-9_.:@+=|-]{1,128}"
"""Patterns of an id and a tenant that an operator can ask for.
The files that own them are not loaded here.
"""
NOWHERE = "/deployment"  # a tenant that no caller has
_BATCH_INFO = "DDBStreamBatchInfo"


@dataclass(frozen=True, slots=True)
class LetterCollection:
    """Result of one run.

    `dead_letters`: those pending now, of all tenants, MOST_COUNTED at most, and the new ones that no tenant
    sees; `moved`: messages that were new. `oldest_s`: age of the oldest pending one. `failed`: requests and
    letters. `more`: some were left for the next run.
    """

    dead_letters: int
    moved: int
    oldest_s: int
    failed: int
    more: bool


@dataclass
class _Run:
    until: int
    moved: int = 0
    unseen: int = 0
    more: bool = False
    failures: list[Exception] = field(default_factory=list)

    def failed(self, error: Exception) -> None:
        self.failures.append(error)
        logger.warning("left for the next run", extra={"fault": repr(error)})


class LetterCollector:
    """The reconciler's look at the dead-letter queues.

    `operator_tenant`: who sees letters that name no saga; empty: no tenant does, so they are told once and
    not pending. `tell` gets the messages that were new, the
    pending letters and the age of the oldest in ms, if there are any.
    """

    def __init__(
        self,
        queues: Sequence[DeadQueue],
        letters: Letters,
        clock: Clock,
        offload: Offload,
        skew_ms: int,
        operator_tenant: str = "",
        tell: Callable[[int, int, int, int], None] | None = None,
    ) -> None:
        self._queues = queues
        self._letters = letters
        self._clock = clock
        self._offload = offload
        self._skew_ms = skew_ms
        self._nowhere = operator_tenant or NOWHERE
        self._tell = tell

    async def collect(self, left: int) -> LetterCollection:
        """Move the messages of the queues, as far as `left` ms allow.
        Raises the first call's error if nothing could be done.
        """
        run = _Run(self._clock.now() + left - RESERVE_MS)
        await asyncio.gather(*(self._empty(run, queue) for queue in self._queues))
        there = Outstanding()
        try:
            there = await self._offload(self._letters.outstanding)
        except EngineFault as error:
            run.failed(error)
        now = self._clock.now()
        age = max(now - there.oldest, 0) if there.oldest else 0
        count = there.count + run.unseen
        found = LetterCollection(count, run.moved, age // 1_000, len(run.failures), run.more)
        if count or run.moved or run.failures:
            many = "or more" if there.count >= MOST_COUNTED else ""
            said = {"dead_letters": count, "moved": run.moved, "oldest_s": found.oldest_s}
            logger.error("there are dead letters", extra=said | {"failed": found.failed, "many": many})
            if self._tell is not None:
                self._tell(run.moved, count, age, now)
        if run.failures and not run.moved:
            raise run.failures[0]
        return found

    async def _empty(self, run: _Run, queue: DeadQueue) -> None:
        """Move all messages of a queue.
        It is first asked how many it has: that is all that is done where nothing is dead.
        """
        try:
            count = await self._offload(queue.count)
        except Exception as error:  # noqa: BLE001  # the other queue does not depend on it
            run.failed(error)
            return
        lanes = min(-(-count // AT_ONCE), SIDE_BY_SIDE)
        await asyncio.gather(*(self._move(run, queue) for _ in range(lanes)))

    async def _move(self, run: _Run, queue: DeadQueue) -> None:
        while True:
            if self._clock.now() >= run.until:
                run.more = True
                return
            try:
                messages = await self._offload(queue.receive, AT_ONCE)
                if not messages:
                    return
                of: dict[tuple[str, str], list[DeadMessage]] = {}
                for message in messages:
                    about = self._about(message)
                    of.setdefault((about.tenant, about.id), []).append(message)
                filed = await asyncio.gather(*(self._file(run, mine) for mine in of.values()))
                done = [message.receipt for mine in filed for message in mine]
                if done:
                    await self._offload(queue.delete, done)
            except Exception as error:  # noqa: BLE001  # what was not deleted comes back
                run.failed(error)
                return

    async def _file(self, run: _Run, messages: Sequence[DeadMessage]) -> Sequence[DeadMessage]:
        """Have the letter of these messages know of them. Return those that may be deleted."""
        about = self._about(max(messages, key=lambda message: message.sent))
        try:
            for _ in range(_TRIES):
                letter = await self._offload(self._letters.read, about.tenant, about.id)
                after = with_messages(letter, messages, about, self._clock.now(), self._skew_ms)
                if after is None:
                    return messages
                seen = letter.number if letter is not None else 0
                if await self._offload(self._letters.write, after, seen):
                    run.moved += after.messages - (letter.messages if letter is not None else 0)
                    if letter is None and after.status != PENDING:
                        run.unseen += 1
                        logger.error(
                            "no tenant sees a dead letter", extra={"code": after.code, "reason": after.reason}
                        )
                    return messages
            raise StoreUnavailable(f"the dead letter {about.id} was changed {_TRIES} times meanwhile")
        except Exception as error:  # noqa: BLE001  # one letter must not keep the others in their queue
            run.failed(error)
            return ()

    def _about(self, message: DeadMessage) -> Letter:
        """Return the letter of a message, without a history."""
        saga, v = _saga_of(message)
        code, reason = message.code, message.reason
        if message.source == RELAY:
            code, reason = _told_by_lambda(message.body)
        elif not reason:
            code = TOO_OFTEN
            reason = f"no worker finished with it in {message.attempts} deliveries; the worker's log says why"
        is_seen = saga is not None or self._nowhere != NOWHERE
        return Letter(
            id=saga.id if saga is not None else f"{MESSAGE}{message.id}",
            tenant=saga.tenant if saga is not None else self._nowhere,
            saga=saga.id if saga is not None else "",
            status=PENDING if is_seen else DISCARDED,
            why="" if is_seen else "no tenant sees it: OperatorTenant is empty",
            source=message.source,
            code=code or "unknown",
            reason=reason,
            node=message.node,
            version=message.version,
            body=cut_body(message.body),
            v=v,
        )


def _saga_of(message: DeadMessage) -> tuple[SagaRef | None, int]:
    """Return the saga that a message wakes, and the version that it knows."""
    if message.source == RELAY:
        return None, 0
    try:
        wake = read_message(message.body)
    except PoisonMessage:
        return None, 0
    ref = SagaRef.parse(wake.saga)
    is_possible = re.fullmatch(SAGA, ref.id) and re.fullmatch(TENANT, ref.tenant)
    return (ref, wake.v) if is_possible else (None, 0)


def _told_by_lambda(body: str) -> tuple[str, str]:
    """Return code and reason of a description of stream records in the relay's queue, or of an event of a
    bus.
    """
    try:
        said = msgspec.json.decode(body)
        if "detail-type" in (event := said.get("requestPayload") or said):
            why = (said.get("responsePayload") or {}).get("errorMessage", "the api function's log says why")
            return OUTSIDE, f"the event {event['id']} of {event['source']} could not be dealt with: {why}"
        batch, why = said[_BATCH_INFO], said["requestContext"]["condition"]
        told = f"the relay could not pass on {batch['batchSize']} records of the stream ({why}); the reconciler wakes their sagas, only later"
        return STREAM, told
    except (msgspec.DecodeError, AttributeError, KeyError, TypeError):
        return STREAM, "the relay could not pass on records of the stream"
