"""One invocation of the worker: takes a batch of wakes, returns the deliveries that must come again.

The sagas of a batch run concurrently. A saga whose last invocation died is sent to an invocation of its own,
so that a step that kills its worker takes no other saga along.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from baton.core.limits import Limits
from baton.core.on_demand import OnDemand
from baton.errors import CodeGone, EngineFault, PoisonMessage, UnknownEntry, Unreadable
from baton.ports import DeadLetters, DeadMessageCause, Invoker, Message, Offload, Queue, SagaRef, StepContext
from baton.runtime.engine.parts import Engine, InvocationScope
from baton.runtime.invocation.context import Invocation, YieldRequest, read_message
from baton.runtime.log.lease import EXPIRED, HELD, HELD_UNTIL, PINNED, WAKE_LEFT
from baton.runtime.worker.runner import Runner

if TYPE_CHECKING:
    from baton.runtime import recovery
    from baton.runtime.requests import patching, schedules
else:
    recovery = OnDemand("baton.runtime.recovery")
    patching = OnDemand("baton.runtime.requests.patching")
    schedules = OnDemand("baton.runtime.requests.schedules")

logger = logging.getLogger("baton.worker")


CONFIRM_S = 1
"""Seconds between two counts of a backlog.
The second count leaves out a wake that was just being received.
"""
SPANS_MS = 1_000  # so long the end of an invocation waits at most for those who collect spans
MOST_DELAY_S = 900  # of SQS
SEND_MS = 15_000
LAST_HELD_RECEIVE = 3  # of the five that a message has: two are left for faults that come on top


class _Verdict(Enum):
    """Result of a message. HELD: another worker seems to be at work on its saga."""

    DONE = auto()
    HELD = auto()
    AGAIN = auto()


class Delivery(Struct, frozen=True):
    """Delivered message: an id to refuse it by, its body, and the number of its deliveries so far."""

    id: str
    body: str
    receives: int = 1

    def must_come_again(self, task: asyncio.Task[_Verdict]) -> bool:
        """Return true if SQS must deliver the message again, by the end of its task.

        The worker that first received a message that comes back has not finished it, and its lease may not
        have run out yet. The message must outlive the lease, because nothing else revives the saga at once.
        """
        if task.cancelled() or not task.done():
            return True
        is_redelivered = 1 < self.receives <= LAST_HELD_RECEIVE
        return task.result() is _Verdict.AGAIN or (task.result() is _Verdict.HELD and is_redelivered)


class Worker:
    """Handler of the worker function: runs the sagas of a batch of wakes."""

    def __init__(
        self, engine: Engine, dead_letters: DeadLetters, invoker: Invoker, queue: Queue | None = None
    ) -> None:
        """Create the worker. `queue`: of wakes; without one, no saga yields to wakes that wait in it."""
        self._engine = engine
        self._dead_letters = dead_letters
        self._invoker = invoker
        self._queue = queue

    async def handle(self, deliveries: Sequence[Delivery], invocation: Invocation) -> list[str]:
        """Run the sagas of these deliveries. Return the ids that must be delivered again."""
        scope = InvocationScope(self._engine, invocation, patch=self._patch)
        runner = Runner(scope)
        wakes: dict[str, Message] = {}
        of: dict[str, list[Delivery]] = {}
        work: list[tuple[list[Delivery], asyncio.Task[_Verdict]]] = []
        for delivery in deliveries:
            try:
                message = read_message(delivery.body)
            except PoisonMessage as error:
                cause = DeadMessageCause(code=error.cause, attempts=delivery.receives)
                burial = self._bury(scope, delivery.body, str(error), cause)
                work.append(([delivery], asyncio.create_task(burial)))
                continue
            known = wakes.get(message.saga)
            if known is None or known.v < message.v:
                wakes[message.saga] = message
            of.setdefault(message.saga, []).append(delivery)
        for saga, wake in wakes.items():
            receives = max(delivery.receives for delivery in of[saga])
            run = self._run_saga(scope, runner, wake, receives, alone=len(wakes) == 1)
            work.append((of[saga], asyncio.create_task(run)))
        try:
            if work:
                turn = self._watch_queue(scope.deadline.turn)
                try:
                    await self._until_the_end([task for _, task in work], invocation)
                finally:
                    scope.deadline.turn.is_over = True  # a call that just times out loses the cancellation
                    turn.cancel()
        finally:
            scope.leases.end()
            if self._engine.watch is not None:
                self._engine.watch.rest()
        await self._flush(invocation)
        return [delivery.id for mine, task in work for delivery in mine if delivery.must_come_again(task)]

    async def _patch(self, arguments: Mapping[str, Any], context: StepContext) -> dict[str, Any]:
        """Patch the saga of an agent."""
        return await patching.patch_own_saga(self._engine, arguments, context)

    async def _flush(self, invocation: Invocation) -> None:
        """Write metrics and spans.
        If this fails, the sagas are as they are and no message has to come again.
        """
        engine = self._engine
        try:
            engine.metrics.flush(engine.clock.now())
            if engine.spans is not None:
                left = invocation.deadline - engine.limits.answer_ms // 4 - engine.clock.now()
                await engine.spans.flush(min(max(left, 1), SPANS_MS))
        except Exception:
            logger.exception("no figures or spans of this invocation")

    def _watch_queue(self, turn: YieldRequest) -> asyncio.Future[None]:
        if self._queue is None:
            return asyncio.get_running_loop().create_future()
        engine = self._engine
        return asyncio.create_task(end_in_turn(turn, self._queue, engine.offload, engine.limits))

    async def _until_the_end(self, tasks: list[asyncio.Task[_Verdict]], invocation: Invocation) -> None:
        """Wait for all tasks, but not into the deadline: a store call that hangs must not harm the others."""
        limits, clock = self._engine.limits, self._engine.clock
        left = invocation.deadline - limits.answer_ms // 2 - clock.now()
        _, late = await asyncio.wait(tasks, timeout=max(left, 0) / 1_000)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=limits.answer_ms / 4_000)

    async def _run_saga(
        self, scope: InvocationScope, runner: Runner, message: Message, receives: int, *, alone: bool
    ) -> _Verdict:
        """Run one saga. Never raises, so that the others are unharmed."""
        try:
            ending = await self._carry(scope, runner, message, alone=alone)
            while ending.startswith(PINNED):
                build = ending.removeprefix(PINNED)
                try:
                    comes_again = await runner.hand_over.give(build, message)
                except CodeGone:
                    ending = await runner.run(message, alone=alone, gone=build)
                else:
                    return _Verdict.AGAIN if comes_again else _Verdict.DONE
            if ending == EXPIRED:
                await scope.call(self._invoker.invoke, [message])
            if ending.startswith(HELD_UNTIL):
                return await self._look_again(scope, message, int(ending.removeprefix(HELD_UNTIL)))
        except Unreadable as error:
            if self._is_of_a_deployment(error):
                logger.warning("left to the newer version: %s", error, extra={"saga": message.saga})
                return _Verdict.DONE
            remedy = await self._repaired(scope, message)
            if remedy is None:
                return _Verdict.DONE
            logger.exception("saga left as it was", extra={"saga": message.saga})
            body = msgspec.json.encode(message).decode()
            cause = DeadMessageCause(
                code=error.cause, version=error.version, node=error.node, attempts=receives
            )
            return await self._bury(scope, body, f"{type(error).__name__}: {error}{remedy}", cause)
        except EngineFault as error:
            logger.warning(
                "engine fault, to be delivered again", extra={"saga": message.saga, "fault": repr(error)}
            )
            return _Verdict.AGAIN
        except Exception:  # a defect of ours must not harm the other sagas of the batch
            logger.exception("engine defect, to be delivered again", extra={"saga": message.saga})
            return _Verdict.AGAIN
        logger.info("saga %s", ending, extra={"saga": message.saga, "ending": ending})
        return _Verdict.HELD if ending in (HELD, WAKE_LEFT) else _Verdict.DONE

    async def _repaired(self, scope: InvocationScope, message: Message) -> str | None:
        """Repair a saga that cannot be read, as far as no person has to decide. Return None if it can be read
        now, else what would set it right.
        """
        ref = SagaRef.parse(message.saga)
        if ref.is_schedule:
            return ""
        try:
            doctor = recovery.Doctor(self._engine, scope, "worker")
            examined, treated = await doctor.treat(ref, asked=False)
        except Exception:  # the fault before it is the one to be told of
            logger.exception("no diagnosis", extra={"saga": message.saga})
            return ""
        left = [one for one in examined.findings if recovery.is_unread((one,))]
        if treated and not left:
            return None
        return "".join(f"; {one.remedy}" for one in left)

    async def _look_again(self, scope: InvocationScope, message: Message, until: int) -> _Verdict:
        """Have the saga looked at when its lease is over, by every clock: once, since a holder that renews it
        lives.
        """
        if self._queue is None:
            return _Verdict.HELD
        left = max(until + self._engine.limits.clock_skew_ms - self._engine.clock.now(), 0)
        delay = min(-(-left // 1_000), MOST_DELAY_S)
        again = msgspec.structs.replace(message, due=until)
        try:
            failed = await scope.call.within(SEND_MS)(self._queue.send, [(again, delay)])
        except EngineFault:  # the next run of the reconciler asks again
            return _Verdict.HELD
        return _Verdict.HELD if failed else _Verdict.DONE

    def _is_of_a_deployment(self, error: Unreadable) -> bool:
        """Return true if a newer version, which is being deployed, wrote an entry a short time ago. The saga
        comes again by itself.
        """
        if not isinstance(error, UnknownEntry):
            return False
        return self._engine.clock.now() - error.at < self._engine.limits.unreadable_pause_ms

    async def _carry(self, scope: InvocationScope, runner: Runner, message: Message, *, alone: bool) -> str:
        ref = SagaRef.parse(message.saga)
        if ref.is_schedule:
            return await schedules.Ticker(self._engine, scope).run(ref)
        return await runner.run(message, alone=alone)

    async def _bury(
        self, scope: InvocationScope, body: str, reason: str, cause: DeadMessageCause
    ) -> _Verdict:
        """Send a message to the dead letters with its reason; if that fails, it is delivered again."""
        logger.error("dead letter", extra={"reason": reason, "body": body[:500]})
        try:
            await scope.call(self._dead_letters.send, body, reason, cause)
        except Exception:  # whatever the queue has against it must not harm the other messages of the batch
            logger.exception("no dead letter, to be delivered again")
            return _Verdict.AGAIN
        return _Verdict.DONE


async def end_in_turn(turn: YieldRequest, queue: Queue, offload: Offload, limits: Limits) -> None:
    """End the turn once it has lasted `turn_ms` and wakes wait.
    While none wait, ask again after the same time.
    """
    while not turn.is_over:
        await asyncio.sleep(limits.turn_ms / 1_000)
        if await _backlog(queue, offload):
            await asyncio.sleep(CONFIRM_S)
            turn.is_over = await _backlog(queue, offload) > 0


async def _backlog(queue: Queue, offload: Offload) -> int:
    """Return the backlog; 0 if it cannot be known: only the order of sagas depends on it."""
    try:
        return await offload(queue.backlog)
    except EngineFault as error:
        logger.info("whether wakes wait is not known", extra={"fault": repr(error)})
        return 0
