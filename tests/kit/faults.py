"""What can go wrong at a port call in the simulation, and when it does: a plan, scripted or drawn from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

WRITES = frozenset(
    {
        "create_head",
        "append",
        "append_with_rows",
        "take",
        "nudge",
        "release",
        "arm",
        "put_snapshot",
        "put",
        "send",
        "invoke",
        "claim",
        "change",
        "reserve",
        "settle",
        "add",
        "expire",
        "tell",
    }
)

FINE = "fine"
CRASH_BEFORE, CRASH_AFTER = "crash before", "crash after"
THROTTLE, NO_ANSWER = "throttle", "no answer"
STALL = "stall"  # frozen for longer than its lease; its clock goes on
FREEZE = "freeze"  # the same, with a clock that stood still meanwhile


class Crash(BaseException):
    """The process is gone: nothing of it may run on, so this is no ordinary exception."""


@dataclass
class Plan:
    """Faults by the number of the write (from 1), and a record of what was written."""

    at: dict[int, str] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)

    def next(self, call: str, worker: bool) -> str:
        """The fate of this port call."""
        if call not in WRITES:
            return FINE
        self.writes.append(call)
        return self.at.get(len(self.writes), FINE)

    def message_fate(self) -> str:
        return FINE


@dataclass
class Chaos(Plan):
    """Faults drawn from a seed, at these rates, until `budget` of them have happened."""

    seed: int = 0
    rate: float = 0.06
    budget: int = 12

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def next(self, call: str, worker: bool) -> str:
        fate = super().next(call, worker)
        if fate != FINE or self.budget <= 0 or self._random.random() >= self.rate:
            return fate
        self.budget -= 1
        kinds = [CRASH_BEFORE, CRASH_AFTER, THROTTLE, NO_ANSWER] + [STALL, FREEZE] * worker
        fate = self._random.choice(kinds)
        if call not in WRITES and fate in (CRASH_AFTER, NO_ANSWER):
            fate = CRASH_BEFORE
        if call not in WRITES and fate == FREEZE:
            fate = STALL  # no engine can know that its clock stood still between a read and a step
        return fate

    def message_fate(self) -> str:
        """Of one message between stream and worker: fine, lost, twice, or late."""
        if self.budget <= 0 or self._random.random() >= self.rate:
            return FINE
        self.budget -= 1
        return self._random.choice(["lost", "twice", "late"])
