"""Failures drawn from a seed, at any call of any tool: refusals, broken connections, lost answers, nonsense.

What a call can meet, which one it meets, and a memory of all calls. people.py answers for it; ordeal.py says what must
hold in spite of it.

A call that is refused has done nothing. One that breaks has done it or not, and only the books of the services know.
"""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from baton.core.log.events import AttemptFailed, Event, Forked
from baton.core.log.slots import slot_of
from baton.ports import StepContext, StepFailure
from baton.tools.perform import plain_json, tool_failure

if TYPE_CHECKING:
    from tests.kit.process import Process
    from tests.kit.world import World

Perform = Callable[[str, Mapping[str, Any], StepContext], Awaitable[Any]]
Call = Callable[[], BaseException]

CLASSES = ("transient", "recoverable", "user_resolvable", "permanent", "catastrophic", "unknown")
NONSENSE, NO_TIME, HANGS = "nonsense", "no time", "hangs"  # what is no exception of the tool's own


def says(code: str = "", **more: Any) -> Call:
    """What a tool says itself."""
    return lambda: StepFailure(code, "not this time", **more)


def raises(kind: type[Exception], *arguments: Any) -> Call:
    """What a tool lets through."""
    return lambda: kind(*(arguments or ("not this time",)))


# What a service answers that has done nothing. Written down here once more, and not taken from the engine's tables.
REFUSALS: Mapping[str, Sequence[Call]] = {
    "transient": (
        says("rate_limited"),
        says(status=429, retry_after="7"),
        says("deadlock"),
        says("file_locked"),
        says("service_unavailable", happened=False),
        says("timeout", happened=False, retry_after="200000"),
        says(status=503, happened=False),
    ),
    "recoverable": (
        says("not_found"),
        says(status=401),
        says("forbidden"),
        says("resource_moved"),
        says("context_exceeded"),
        says("model_unavailable"),
    ),
    "user_resolvable": (
        says("missing_credentials"),
        says("approval_needed"),
        says("quota_exceeded"),
        says(status=422),
        says("login_required"),
    ),
    "permanent": (
        says("bad_request"),
        says("business_rule"),
        says("permission_denied"),
        says(status=418),
        says("sold_out", kind="permanent"),
    ),
    "catastrophic": (
        says("database_down", happened=False),
        says("disk_full", happened=False),
    ),
    "unknown": (
        says("never_heard_of", happened=False),
        says("unknown", happened=False),
    ),
}
# After these it may have been done.
DOUBTS: Mapping[str, Sequence[Call | str]] = {
    "transient": (
        says("timeout"),
        says(status=500),
        says("invalid_response"),
        raises(ConnectionError),
        raises(ConnectionResetError),
        raises(TimeoutError),
        NO_TIME,
        HANGS,
    ),
    "recoverable": (says("conflict"), raises(FileNotFoundError)),
    "user_resolvable": (says("quota_exceeded", happened=True),),
    "permanent": (NONSENSE, raises(PermissionError), says("result_too_large")),
    "catastrophic": (
        says("database_down"),
        raises(MemoryError),
        says("out_of_memory"),
        raises(OSError, errno.ENOSPC, "no space left"),
    ),
    "unknown": (says("never_heard_of"), raises(ValueError), raises(KeyError), says("tool_error")),
}


@dataclass(frozen=True)
class Drawn:
    """One way for a call to go wrong. `doubtful`: it may have been done."""

    kind: str
    what: Call | str
    doubtful: bool


Script = Mapping[tuple[str, str], Sequence[Drawn | None]]


@dataclass(frozen=True)
class Called:
    """A call of a tool for an attempt of a step, and who made it."""

    saga: str
    node: str
    attempt: int
    tool: str
    arguments: Mapping[str, Any]
    process: Process


@dataclass
class Troubles:
    """What goes wrong in one world. `rate` of all calls, and of some nodes every one, again and again in the same way."""

    seed: int
    rate: float
    calls: list[Called] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """Promises that were broken at the time of a call."""
    failed: int = 0
    script: Script | None = None
    """If it is there, only this: by node and tool, what the calls meet one after the other."""

    def __post_init__(self) -> None:
        self._random = random.Random(f"troubles {self.seed}")
        self._deck: list[str] = []
        # So that over six seeds the first call of a saga meets every class.
        self._first = CLASSES[self.seed % len(CLASSES)] if self.seed % 12 < 6 else ""
        self._moods: dict[tuple[str, str], tuple[Drawn, int]] = {}
        self._thrown: dict[str, tuple[int, Process]] = {}

    async def perform(
        self,
        world: World,
        process: Process,
        perform: Perform,
        call: tuple[str, Mapping[str, Any], StepContext],
    ) -> Any:
        """In place of `perform(*call)`."""
        tool, arguments, context = call
        called = Called(context.saga, context.node, context.attempt, tool, arguments, process)
        self.calls.append(called)
        slot = f"{context.saga}/{slot_of(context.node, context.iteration, context.item)}"
        self._check(world, called, slot)
        drawn = self._draw(called)
        if drawn is None:
            return await perform(*call)
        self.failed += 1
        if drawn.doubtful and self._random.random() < 0.5:
            await perform(*call)
        else:
            await asyncio.sleep(self._random.choice([0.05, 0.2, 0.7]))
        if drawn.what == HANGS:
            await asyncio.sleep(3_600)
        process.check()
        self._thrown[slot] = called.attempt, process
        if drawn.what == NO_TIME:
            raise TimeoutError
        found = world.registry.get(tool)
        assert found is not None
        if callable(drawn.what):
            raise tool_failure(drawn.what(), found)
        return plain_json(found, object())

    def last(self, saga: str, node: str, tools: Sequence[str]) -> Called | None:
        """The last call of one of these tools for a node."""
        found = (
            one for one in reversed(self.calls) if (one.saga, one.node) == (saga, node) and one.tool in tools
        )
        return next(found, None)

    def _draw(self, called: Called) -> Drawn | None:
        if self.script is not None:
            number = sum((one.node, one.tool) == (called.node, called.tool) for one in self.calls)
            told = self.script.get((called.node, called.tool), ())
            return told[number - 1] if number <= len(told) else None
        place = called.saga, called.node
        mood, left = self._moods.get(place, (None, 0))
        if mood is not None and left:
            self._moods[place] = mood, left - 1
            return mood
        kind, self._first = self._first, ""
        if not kind and self._random.random() >= self.rate:
            return None
        drawn = self._any_of(kind or self._dealt())
        if self._random.random() < 0.25:
            self._moods[place] = drawn, self._random.randint(3, 12)
        return drawn

    def _dealt(self) -> str:
        """A class: all of them come up before one does again."""
        if not self._deck:
            self._deck = list(CLASSES)
            self._random.shuffle(self._deck)
        return self._deck.pop()

    def _any_of(self, kind: str) -> Drawn:
        doubtful = self._random.random() < 0.5
        what = self._random.choice([*(DOUBTS if doubtful else REFUSALS)[kind]])
        return Drawn(kind, what, doubtful)

    def _check(self, world: World, called: Called, slot: str) -> None:
        """Whether what failed before is in the log by the time of this call."""
        events = world.events(called.saga) if called.attempt > 1 or slot in self._thrown else []
        if called.attempt > 1 and not _has_failed(events, slot, called.attempt - 1):
            self.broken.append(f"{slot}: attempt {called.attempt} began before the log had the one before it")
        attempt, process = self._thrown.get(slot, (0, called.process))
        # What a process knew is lost if it has died since; and a fork begins anew.
        is_lost = process.is_dead or (bool(world.faults) and process is not called.process)
        if called.attempt <= attempt and not is_lost and not any(isinstance(one, Forked) for one in events):
            self.broken.append(f"{slot}: attempt {attempt} has failed, and is made again")


def _has_failed(events: Iterable[Event], slot: str, attempt: int) -> bool:
    return any(
        isinstance(event, AttemptFailed) and event.attempt == attempt and slot.endswith(f"/{event.slot}")
        for event in events
    )
