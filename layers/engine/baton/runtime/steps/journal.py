"""Journals of steps in one invocation: units that the log has, and those that it is to have (`context.once`).

A tool gets the result of a unit only after the entry with it. The entry is the runner's, like all others of
the saga: the units wait for it as outcomes do. Loaded with the first journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from baton.core.decide.decision import RunStep
from baton.core.decide.outcomes import UNIT, Outcome
from baton.core.failures.codes import TOOL_DEFECT
from baton.core.limits import DAY_MS
from baton.core.log.events import Event, UnitRecorded, Value
from baton.core.log.work import MOST_BYTES, MOST_UNITS, Journal, units_in
from baton.core.money import Assumed, micro_dollars
from baton.core.on_demand import OnDemand
from baton.errors import CorruptLog
from baton.ports import Blobs, HeldMoney, HoldRequest, SagaRef, StepFailure
from baton.ports.process import Draft
from baton.runtime.invocation.attempt import AttemptInput
from baton.runtime.invocation.context import InvocationContext, StoreRetrier
from baton.runtime.log.history import History

if TYPE_CHECKING:
    from baton.runtime.models import model_request
    from baton.runtime.money.ledger import Ledger
    from baton.runtime.steps.steps import Steps
else:
    model_request = OnDemand("baton.runtime.models.model_request")

_AT_ONCE = 16
OVER = "the attempt is over: its tool must not go on"
_encode = msgspec.json.Encoder().encode


class KnownUnits(NamedTuple):
    """The journal of a step when an attempt begins, and the results of its units by key."""

    journal: Journal = Journal()
    results: Mapping[str, Any] = MappingProxyType({})


async def read_known(
    history: History, blobs: Blobs, call: StoreRetrier, steps: Iterable[RunStep]
) -> dict[str, KnownUnits]:
    """Return the units of those of these steps that have some, from the log and from the object store.

    Raises `CorruptLog`, and the faults of the stores.
    """
    slots = [one.slot for one in steps if one.slot in history.state.journals]
    return {slot: await _read_units(history, blobs, call, slot) for slot in slots}


async def _read_units(history: History, blobs: Blobs, call: StoreRetrier, slot: str) -> KnownUnits:
    found: dict[str, Value] = {}
    entries: dict[int, Any] = {}
    journal = history.state.journals[slot]
    version = journal.head
    while version:
        if version not in entries:
            entries = {one.version: one for one in await history.entries_to(version)}
        units, prior = units_in(entries[version].events, slot)
        if not units or prior >= version:
            raise CorruptLog(f"version {version} of {history.ref} has no unit of `{slot}`")
        for unit in units:
            found.setdefault(unit.key, unit.output)  # of two with one key, the newer is the one that counted
        version = prior
    results = {key: value.v for key, value in found.items() if not value.ref}
    large = [(key, value.ref) for key, value in found.items() if value.ref]
    for first in range(0, len(large), _AT_ONCE):
        some = large[first : first + _AT_ONCE]
        data = await asyncio.gather(*(call(blobs.get, history.ref.tenant, ref) for _, ref in some))
        results |= {key: msgspec.json.decode(one) for (key, _), one in zip(some, data, strict=True)}
    return KnownUnits(journal, results)


class Running(Protocol):
    """An attempt that is running."""

    @property
    def step(self) -> RunStep: ...


class UnitQueue:
    """Units of a saga's running attempts that wait for their entry. `running`: these attempts, by slot.

    `wake` tells the runner of a new unit. `steps`: whose models
    have the prices of calls, and who shows what they write.
    """

    def __init__(
        self,
        context: InvocationContext,
        running: Mapping[str, Running],
        wake: Callable[[], None],
        steps: Steps | None = None,
    ) -> None:
        self.models = None if steps is None else steps.models
        self.live = None if steps is None else steps.live
        self._clock, self._limits = context.clock, context.limits
        self._tenure = context.tenure
        self._running, self._wake = running, wake
        self._waiting: list[Outcome] = []
        self._answers: dict[tuple[str, str], asyncio.Future[None]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def waiting(self) -> list[str]:
        """The keys of the units that wait."""
        return [one.unit.key for one in self._waiting if one.unit is not None]

    def journal(
        self, attempt: AttemptInput, ledger: Callable[[], Ledger], known: KnownUnits | None
    ) -> AttemptJournal:
        """Return the journal of an attempt. `known`: what the log has already."""
        return AttemptJournal(self, attempt, ledger, known or KnownUnits(), self._limits.result_bytes)

    def check(self, step: RunStep) -> None:
        """Raise `StepFailure` if the saga no longer waits for this attempt, or another worker may have it."""
        one = self._running.get(step.slot)
        if one is None or one.step is not step or self._clock.now() >= self._tenure.until:
            raise StepFailure("cancelled", OVER)

    def add(
        self, step: RunStep, name: str, key: str, result: Any, size: int, cost: int
    ) -> asyncio.Future[None]:
        """Add a unit that is done. Return a future that is done when the log has it."""
        fields, now = step.place.fields, self._clock.now()
        unit = UnitRecorded(**fields, name=name, key=key, output=Value(v=result), size=size, at=now)
        self._waiting.append(
            Outcome(
                slot=step.slot,
                attempt=step.attempt,
                started_at=now,
                ended_at=now,
                why=UNIT,
                unit=unit,
                cost=cost,
            )
        )
        answer = self._answers[step.slot, key] = asyncio.get_running_loop().create_future()
        self._wake()
        return answer

    def take(self) -> list[Outcome]:
        """Return the units that wait, in their order; they wait no longer."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def recorded(self, events: Iterable[Event]) -> None:
        """Let the tools go on whose units the log has with these events."""
        for one in events:
            if isinstance(one, UnitRecorded):
                answer = self._answers.pop((one.slot, one.key), None)
                if answer is not None and not answer.done():
                    answer.set_result(None)

    def end(self, slot: str) -> None:
        """Refuse what the tool of an attempt waits for that is over: it may run on in a thread."""
        for place in [place for place in self._answers if place[0] == slot]:
            self._answers.pop(place).cancel()


class AttemptJournal:
    """The `UnitLog` of one attempt. `known`: the units of earlier ones. `ledger`: for its spending."""

    def __init__(
        self,
        queue: UnitQueue,
        attempt: AttemptInput,
        ledger: Callable[[], Ledger],
        known: KnownUnits,
        most_bytes: int,
    ) -> None:
        self._queue, self._attempt, self._ledger, self._known = queue, attempt, ledger, known.results
        self._units, self._size = known.journal.units, known.journal.size
        self._most_bytes, self._turn = most_bytes, asyncio.Lock()

    @property
    def has_units(self) -> bool:
        """True if the log has a unit, or is about to."""
        return self._units > 0

    def recorded(self) -> Mapping[str, Any]:
        """Return the results that the log has, by key."""
        return self._known

    def check(self, name: str) -> None:
        """Refuse a unit that must not be done. Raises `StepFailure`."""
        self._check()
        if self._units >= MOST_UNITS:
            text = f"a step may have {MOST_UNITS:,} units, and `{name}` is one more; let one unit do several things"
            raise StepFailure(TOOL_DEFECT, text)

    async def record(self, name: str, key: str, result: Any) -> None:
        """Wait until the log has the result of a unit. Raises `StepFailure`."""
        self.check(name)
        size = len(_encode(result))
        if size > self._most_bytes:
            text = f"the result of the unit `{name}` is larger than {self._most_bytes} bytes"
            raise StepFailure("result_too_large", text)
        if self._size + size > MOST_BYTES:
            text = (
                f"the results of all units of a step may have {MOST_BYTES:,} bytes, and `{name}` exceeds that"
            )
            raise StepFailure(TOOL_DEFECT, f"{text}; record where a large result is")
        self._units, self._size = self._units + 1, self._size + size
        cost = await self._bill(key)
        await self._queue.add(self._attempt.step, name, key, result, size, cost)

    async def hold(self, asked: HoldRequest) -> HeldMoney:
        """Hold money before a call, one call after the other. Raises `NoRoom`, `StepFailure`."""
        async with self._turn:
            self._check()
            return await model_request.hold(self._queue.models, self._ledger(), self._attempt, asked)

    def draft(self) -> AbstractContextManager[Draft]:
        """Show text to viewers of the saga until the end of the block."""
        of = self._attempt.state.origin
        if self._queue.live is None:
            return nullcontext(Draft())
        return self._queue.live().draft(SagaRef(of.tenant, of.saga), self._attempt.step.slot)

    async def _bill(self, key: str) -> int:
        """Count what the attempt has spent since its last unit, and take it out of its bill.

        An attempt that is over meanwhile has it in its outcome. Raises `StepFailure` then.
        """
        one = self._attempt
        if not one.spent:
            return 0
        ledger = self._ledger()
        if not one.is_paid:
            ledger.reopen(one.state, one.step, one.spent, one.started // DAY_MS)
        await ledger.count(one.state, one.step)
        self._check()
        cost = micro_dollars([amount for amount in one.spent if not isinstance(amount, Assumed)])
        one.spent[:] = [amount for amount in one.spent if isinstance(amount, Assumed)]  # of calls under way
        ledger.hand_over(one.state, one.step, key, cost)
        return cost

    def _check(self) -> None:
        if self._attempt.is_settled:
            raise StepFailure("cancelled", OVER)
        self._queue.check(self._attempt.step)
