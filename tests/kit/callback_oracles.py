"""What must hold of callbacks: which were opened, how each ended, what was said of it, and what came after its end.

Promises of the oracle `callbacks`. What is said, and when, is in external_work.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from baton.core.log.events import (
    AttemptFailed,
    CallbackHeartbeat,
    CallbackOpened,
    Entry,
    Event,
    Forked,
    SagaEnded,
    Settles,
    SignalReceived,
    StepFailed,
    StepSucceeded,
)
from baton.core.log.folding.received import CALLBACK, FAILURE, HEARTBEAT, SUCCESS, CallbackReport
from baton.core.log.slots import owner_of, slot_of
from baton.errors import CallbackOver, NotAllowedNow
from tests.kit.virtual_time import EPOCH

if TYPE_CHECKING:
    from tests.kit.roles import Acknowledged
    from tests.kit.world import World

_Ends = AttemptFailed | StepFailed | StepSucceeded
MADE_AT_THE_END = frozenset({"output_unbound", "output_too_large"})
"""What a saga fails with in which all is done."""
TOO_LATE = (
    CallbackReport(status=HEARTBEAT),
    CallbackReport(status=SUCCESS, output="too late"),
    CallbackReport(status=FAILURE, code="late"),
)


@dataclass
class Handed:
    """A callback, as far as the log was read. `signs`: when its work was known to be alive."""

    id: str
    opened: CallbackOpened | None = None
    said: SignalReceived | None = None
    ended: _Ends | None = None
    is_dropped: bool = False
    signs: list[int] = field(default_factory=list)

    def open(self, event: CallbackOpened) -> Iterator[str]:
        if self.opened is not None or self.ended is not None:
            yield f"{self.id} was opened again"
        self.opened = event
        self.signs.append(event.ended_at)

    def hear(self, event: SignalReceived | CallbackHeartbeat) -> Iterator[str]:
        what = "a completion" if isinstance(event, SignalReceived) else "a heartbeat"
        if self.ended is not None or self.is_dropped:
            yield f"{what} of {self.id} was taken after its end"
        elif self.said is not None:
            yield f"{what} of {self.id} was taken after its completion"
        if isinstance(event, SignalReceived):
            self.said = event
        else:
            self.signs.append(event.at)

    def end(self, event: _Ends) -> Iterator[str]:
        if self.ended is not None:
            yield f"{self.id} ended twice"
        self.ended = event
        if self.opened is not None and self.opened.response is not None:
            return  # its answer is fetched, whether its end was reported or not
        said = self.said
        if said is None:
            if isinstance(event, StepSucceeded):
                yield f"{self.id} ended with a success that nothing had reported"
        elif said.failure is not None and (
            isinstance(event, StepSucceeded) or event.failure.code != said.failure.code
        ):
            yield f"{self.id} was reported to have failed with {said.failure.code}, and did not end so"
        elif said.failure is None and (not isinstance(event, StepSucceeded) or event.output != said.payload):
            yield f"{self.id} was reported to be done, and did not end with what was reported"


def read(entries: list[Entry]) -> tuple[dict[str, Handed], list[str]]:
    """The callbacks of a log that has no fork, and what is wrong with them."""
    all_: dict[str, Handed] = {}
    wrong: list[str] = []
    for event in (event for entry in entries for event in entry.events):
        if isinstance(event, CallbackOpened):
            wrong += _of(all_, event.callback).open(event)
        elif isinstance(event, CallbackHeartbeat):
            wrong += _of(all_, event.callback).hear(event)
        elif isinstance(event, SignalReceived) and event.name == CALLBACK:
            wrong += _of(all_, event.key).hear(event)
        elif isinstance(event, _Ends) and event.callback:
            wrong += _of(all_, event.callback).end(event)
        if isinstance(event, Settles):
            _drop(all_, event)
    return all_, wrong


def _of(all_: dict[str, Handed], id_: str) -> Handed:
    return all_.setdefault(id_, Handed(id_))


def _drop(all_: Mapping[str, Handed], event: Settles) -> None:
    """What is open at a slot that is settled, or that leaves with it, is not waited for any more."""
    gone = {event.slot, *event.drops}
    for one in all_.values():
        opened = one.opened
        slot = "" if opened is None else slot_of(opened.node, opened.iteration, opened.item)
        if gone & {slot, owner_of(slot)}:
            one.is_dropped = one.ended is None


def of_callbacks(entries: list[Entry]) -> Iterator[str]:
    """Promises about the callbacks in one saga's log, where no fork goes back to one."""
    events = [event for entry in entries for event in entry.events]
    if any(isinstance(event, Forked) for event in events):
        return
    all_, wrong = read(entries)
    yield from wrong
    if not events or not _goes_to_its_end(events):
        return
    for one in all_.values():
        if one.opened is not None and one.ended is None and not one.is_dropped:
            yield f"{one.id} is open, and its saga has ended as if nothing were"


def _goes_to_its_end(events: list[Event]) -> bool:
    """Whether the saga has ended because all was done. Whatever is open in one that is stopped ends with it."""
    last = events[-1]
    if not isinstance(last, SagaEnded) or any(isinstance(event, Settles) and event.ends for event in events):
        return False
    return last.status == "completed" or (last.failure is not None and last.failure.code in MADE_AT_THE_END)


def unheard(entries: list[Entry], said: Acknowledged) -> str:
    """What was acknowledged of a callback, and the log does not say; empty if it does."""
    one = read(entries)[0].get(said.key, Handed(said.key))
    what: CallbackReport = said.payload
    if what.status == HEARTBEAT:
        often = one.opened.heartbeat_ms if one.opened is not None else 0
        is_known = not often or any(at > said.at - often / 2 for at in one.signs)
    elif one.said is None:
        is_known = False
    elif what.status == FAILURE:
        is_known = one.said.failure is not None and one.said.failure.code == what.code
    else:
        is_known = one.said.failure is None and one.said.payload.v == what.output
    return (
        "" if is_known else f"the {what.status} of {said.key} at {(said.at - EPOCH) / 1_000} s is in no log"
    )


async def after_the_end(world: World) -> AsyncIterator[str]:
    """What can still be reported of work whose saga has ended: every token is shown once more, with all that can be said.

    In a world in which nothing else goes wrong any more.
    """
    for job in [*world.books.jobs.all.values()]:
        for said in TOO_LATE:
            before = {head.ref.id: len(world.entries(head.ref.id)) for head in world.log.heads()}
            if any(head.group != "done" for head in world.log.heads()):
                return
            try:
                await world.service().callback(job.token, said)
            except (CallbackOver, NotAllowedNow):
                pass
            else:
                yield f"a {said.status} of {job.kind} {job.number} was accepted after the end of its saga"
            if before != {head.ref.id: len(world.entries(head.ref.id)) for head in world.log.heads()}:
                yield f"a {said.status} of {job.kind} {job.number} was written after the end of its saga"
