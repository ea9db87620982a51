"""What can go wrong at a port call or a message in the simulation, and when: a plan, scripted or drawn from a seed.

What a fate does to a process is in process.py; what else is different about a world is in schedule.py.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

# The writes and the reads of each port. Which fates a call can meet hangs on this: tests/simulation/test_crash_points.py holds it against the ports.
CALLS: Mapping[str, tuple[str, str]] = {
    "Blobs": ("put", "get"),
    "Breakers": ("write_breaker", "all read_breaker"),
    "Budgets": ("draw expire move tell_rule write_rule", "read read_rule ruled"),
    "Checkpoints": ("delete put", "rows"),
    "DeadLetters": ("send", ""),
    "DeadQueue": ("delete", "count receive"),
    "Definitions": ("put write_pauses write_tag", "get names tag tags versions"),
    "Effects": ("change claim", "read"),
    "Entities": ("delete put", "get"),
    "Inbox": ("announce leave", "read"),
    "Incidents": ("acknowledge resolve", "find listed of_saga"),
    "Invoker": ("invoke", ""),
    "Letters": ("write", "listed outstanding read"),
    "Live": ("leave_word put_texts watch", "read"),
    "Log": (
        "append append_with_rows arm create_head defer leave_wake postpone put_snapshot release renew take",
        "at_work due listed read_head read_snapshot read_tail",
    ),
    "NoticeRecord": ("claim sent", "open"),
    "Notices": ("tell", ""),
    "Questions": ("put remove", "listed removed"),
    "Queue": ("send", "backlog"),
    "Rates": ("spend", ""),
    "Schedules": ("write_schedule", "listed read_schedule"),
    "Subscriptions": ("subscribe unsubscribe", "subscribed"),
}
WRITES = frozenset(call for writes, _ in CALLS.values() for call in writes.split())
READS = frozenset(call for _, reads in CALLS.values() for call in reads.split())

FINE = "fine"
CRASH_BEFORE, CRASH_AFTER = "crash before", "crash after"
THROTTLE, NO_ANSWER = "throttle", "no answer"
STALL = "stall"  # frozen for longer than its lease; its clock goes on
FREEZE = "freeze"  # the same, with a clock that stood still meanwhile
HANG = "hang"  # nothing is done, and the client gives up when its read timeout is over
LATE = "late"  # the client gives up, and the request is carried out afterwards
LOST, TWICE, DELAYED = "lost", "twice", "late"  # of a message

CLASSIC = (CRASH_BEFORE, CRASH_AFTER, THROTTLE, NO_ANSWER, STALL, FREEZE)
EVERYTHING = (*CLASSIC, HANG, LATE)
OF_WRITES = frozenset({CRASH_AFTER, NO_ANSWER, FREEZE, LATE})
"""What makes no difference at a read, or none that an engine could know of: a clock that stood still before a step."""
OF_WORKERS = frozenset({STALL, FREEZE})


class Crash(BaseException):
    """The process is gone: nothing of it may run on, so this is no ordinary exception."""


@dataclass
class Plan:
    """Faults by the number of the write, of the read and of the message (each from 1), and a record of what was called."""

    at: dict[int, str] = field(default_factory=dict)
    at_reads: dict[int, str] = field(default_factory=dict)
    at_messages: dict[int, str] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    messages: int = 0

    def next(self, call: str, worker: bool) -> str:
        """The fate of this port call."""
        is_write = call in WRITES
        made, told = (self.writes, self.at) if is_write else (self.reads, self.at_reads)
        made.append(call)
        if len(made) not in told and (fate := self.draw(call, worker)) != FINE:
            told[len(made)] = fate
        return told.get(len(made), FINE)

    def message_fate(self) -> str:
        """Of one message between stream and worker: fine, lost, twice, or late."""
        self.messages += 1
        if self.messages not in self.at_messages and (fate := self.draw_message()) != FINE:
            self.at_messages[self.messages] = fate
        return self.at_messages.get(self.messages, FINE)

    def spares(self, count: int) -> bool:
        """Whether the next reads, so many of them, are sure to meet nothing."""
        return self.at_reads.keys().isdisjoint(range(len(self.reads) + 1, len(self.reads) + count + 1))

    def draw(self, call: str, worker: bool) -> str:
        """What a call meets that the script does not speak of."""
        return FINE

    def draw_message(self) -> str:
        return FINE


@dataclass
class Chaos(Plan):
    """Faults drawn from a seed, at these rates, until `budget` of them have happened; what was drawn is in the script."""

    seed: int = 0
    rate: float = 0.06
    budget: int = 12
    kinds: Collection[str] = CLASSIC
    of: Mapping[str, float] = field(default_factory=dict)
    """Other rates, by the name of the call."""

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def spares(self, count: int) -> bool:
        return self.budget <= 0 and super().spares(count)

    def draw(self, call: str, worker: bool) -> str:
        if self.budget <= 0 or self._random.random() >= self.of.get(call, self.rate):
            return FINE
        fate = self._random.choice([kind for kind in self.kinds if worker or kind not in OF_WORKERS])
        if call not in WRITES and fate in OF_WRITES:
            fate = STALL if fate == FREEZE else CRASH_BEFORE
        self.budget -= 1
        return fate

    def draw_message(self) -> str:
        if self.budget <= 0 or self._random.random() >= self.rate:
            return FINE
        self.budget -= 1
        return self._random.choice([LOST, TWICE, DELAYED])


def script_of(plan: Plan) -> list[tuple[str, int, str]]:
    """The faults of a plan, drawn ones too, as (of what, number, fate)."""
    return [
        (what, number, fate)
        for what, told in (("write", plan.at), ("read", plan.at_reads), ("message", plan.at_messages))
        for number, fate in sorted(told.items())
    ]


def scripted(faults: Collection[tuple[str, int, str]]) -> Plan:
    """The inverse of `script_of`."""
    at = {what: {n: fate for of, n, fate in faults if of == what} for what in ("write", "read", "message")}
    return Plan(at["write"], at["read"], at["message"])
