"""One process of a simulated deployment: how it dies, stands still, and loses what it asked for.

Fates are drawn in faults.py; what a process is for is in world.py.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, cast

import msgspec

from baton.adapters.memory.people import MemoryNotices
from baton.core.limits import Limits
from baton.core.log.codec import decode_entry
from baton.core.log.events import GaveUp
from baton.errors import EngineFault, StoreUnavailable, Throttled
from baton.ports import Account, BudgetAnswer, Head, Record, ReservationChange
from baton.runtime.people.question_rows import PLACES_DAY
from tests.kit.faults import (
    CRASH_AFTER,
    CRASH_BEFORE,
    FINE,
    FREEZE,
    HANG,
    LATE,
    NO_ANSWER,
    STALL,
    THROTTLE,
    Crash,
)
from tests.kit.notice_oracles import is_of_notices
from tests.kit.virtual_time import VirtualClock, passes, stand_still

if TYPE_CHECKING:
    from baton.runtime.engine.parts import Engine
    from tests.kit.world import World

P = ParamSpec("P")
T = TypeVar("T")

LATENCY_S = 0.002
ANSWER_S = Limits().answer_ms / 1_000  # all that an invocation has left when it says that it gives up
READ_TIMEOUT_S = {"dynamodb": 5.0, "s3": 15.0, "sqs": 5.0, "lambda": 5.0}  # as adapters/aws.py has them
SERVICE = {"MemoryBlobs": "s3", "WakeQueue": "sqs", "MemoryDeadLetters": "sqs", "DirectInvoker": "lambda"}
CHANNEL_S = 5.0  # of a channel by which people are told
REFUSES, HANGS = "refuses", "hangs"
INDEX = "index"  # of the table: refuses the writes that change its rows, and nothing else
HEADS = "heads"  # of the table: refuses, or does not answer, changes of heads, and nothing else
RENEWALS = "renewals"
INDEXED = frozenset({"create_head", "take", "release", "arm", "defer", "postpone", "write_schedule"})
PARTS = {INDEX: INDEXED, HEADS: frozenset({*INDEXED, "renew", "leave_wake"}), RENEWALS: frozenset({"renew"})}
FOREVER = 1 << 62
TO_THE_END = 3  # arguments of a read that has no limit

RUNS_IN: ContextVar[Process | None] = ContextVar("RUNS_IN", default=None)
"""The process in which a tool runs, for the tools of the corpus."""


def _service(adapter: object) -> str:
    """Whose outages a call of it shares: a channel has its own, by its name."""
    if isinstance(adapter, MemoryNotices):
        return adapter.name
    return SERVICE.get(type(adapter).__name__, "dynamodb")


async def pause(seconds: float, *, stands_still: bool = True) -> None:
    """A tool's own time. It ends with its process, and stands still with it.

    What may happen only once does not stand still: its service cannot know that it is called too late, and nothing that
    Baton could do would keep it from acting (docs/effects.md says so).
    """
    if not passes(seconds):
        await asyncio.sleep(seconds)
    process = RUNS_IN.get()
    if process is not None and stands_still:
        await process.thawed()
    elif process is not None:
        process.check()


@dataclass(frozen=True)
class Outage:
    """A service that for a time refuses every request, or answers none. Times are seconds from the world's beginning."""

    service: str
    how: str = HANGS
    begin_s: float = 0
    end_s: float = 1e9


@dataclass
class Environment:
    """What lives as long as an execution environment of Lambda: its clock, and the engine with its caches."""

    clock: VirtualClock
    engine: Engine | None = None
    is_cold: bool = True
    is_old: bool = False
    """It runs the release before, which cannot read what the new one writes."""
    version: str = ""
    """The version of its code; empty where code has none."""


def _held(answer: BudgetAnswer) -> int:
    """What an account holds for requests of who has asked it."""
    return 0 if answer.there is None else sum(answer.there.billed.values())


def _is_of_money(name: str, args: tuple[Any, ...]) -> bool:
    """Return true for a request about what is spent: places of questions have accounts, too."""
    return name == "move" and not (isinstance(args[0], Account) and args[0].day == PLACES_DAY)


def _holder(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Account, str]:
    """The account that a change of a reservation is about, and whose reservation it is."""
    if isinstance(args[0], Account):
        return args[0], args[1].holder
    return cast("Any", function).__self__.account, args[0].change.holder


def _settled(change: ReservationChange) -> set[str]:
    """Names of the attempts whose requests are held no more: what they cost is counted."""
    before, after = change.before, change.after
    gone = set(before.billed if before else ()) - set(after.billed if after else ())
    return {name.partition(".")[0] for name in gone}


def _gave_up(world: World, head: Head) -> bool:
    """True if the holder has said that it gives this saga up, so that it may live on."""
    mine = [one for one in world.entries(head.ref.id, head.ref.tenant) if one.invocation == head.owner]
    return bool(mine) and isinstance(mine[-1].events[-1], GaveUp)


def _says_it_gave_up(name: str, args: tuple[Any, ...]) -> bool:
    return name == "append" and isinstance(decode_entry(args[1].data).events[-1], GaveUp)


class KillTimer:
    """The kernel's timer of a process. It stands still while the process does, which is the worst that it can do."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._since = self._seconds = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_set(self) -> bool:
        return self._timer is not None

    def set(self, ms: int | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if ms is not None:
            loop = asyncio.get_running_loop()
            self._since, self._seconds = loop.time(), ms / 1_000 + self._process.world.killed_late_s
            self._timer = loop.call_later(self._seconds, self._ring)

    def _ring(self) -> None:
        loop = asyncio.get_running_loop()
        now, self._timer = loop.time(), None
        still = (min(end, now) - max(begin, self._since) for begin, end in self._process.still)
        left = self._since + self._seconds + sum(max(one, 0) for one in still) - now
        if left > 0:
            ends = (end - now for _, end in self._process.still)
            self._timer = loop.call_later(max([left, *ends]), self._ring)
        else:
            self._process.kill()


class Process:
    """One invocation of one function. When it dies, no call of its gets through any more.

    `ended_at`: when it died, in seconds of the loop; `spends`: what its tools said that they spent, call by call.
    `lost_time_at`: when its clock had stood still with it. `has_failed`: it gave a message back because of a fault;
    `has_overrun`: it was still there after its deadline; `was_slow`: the table took longer than it had left to say that it gave up.
    `lost_leases`: takes and releases without an answer; `unsure`: versions of sagas that it wrote, or will have written, without an answer;
    `is_unsettled`: an account has not answered since its last request; `settled`: attempts whose requests an account no longer holds, because it has what they cost;
    `freed`: what accounts held for requests of others whose time was over; all of it is spent then;
    `holds`: what an account holds for requests of it; `held_late`: what accounts hold for some when it no longer waits for that;
    `unanswered`: requests without an answer in time, or refused in an outage; `leases`: the end of those it took, by its own clock;
    `read_at`: when it read the log of a saga; `called_at`: when it last called a tool for a node of a saga; `still`: from
    when to when it stood still. All three are in seconds of the loop.
    """

    def __init__(self, world: World, role: str, id: str, home: Environment | None = None) -> None:
        self.world, self.role, self.id = world, role, id
        self.home = home or Environment(VirtualClock())
        self.clock = self.home.clock
        self.is_frozen = False
        self.lost_time_at = math.inf
        self.has_failed = self.has_overrun = False
        self.ended_at: float | None = None
        self.lost_leases = self.held_late = self.holds = self.freed = self.renewals = 0
        self.unsure: set[tuple[str, int]] = set()
        self.settled: set[str] = set()
        self.is_unsettled = False
        self.was_slow = False
        self.unanswered = 0
        self.spends: list[list[Decimal]] = []
        self.leases: dict[str, int] = {}
        self.called_at: dict[tuple[str, str], float] = {}
        self.read_at: dict[str, list[float]] = defaultdict(list)
        self.still: list[tuple[float, float]] = []
        self._thaws_at = 0.0
        self.watchdog = KillTimer(self)
        self.killed = asyncio.get_running_loop().create_future()
        self.is_over = False

    def kill(self) -> None:
        """The act of its own watchdog."""
        self.is_dead = True
        self.world.faults.append(f"{self.id}: ended by its watchdog")
        self.killed.set_result(None)

    @property
    def is_at_work(self) -> bool:
        """True if it can act: neither dead, nor at its end, nor has it stood still."""
        return not (self.is_dead or self.is_over or self.is_frozen)

    @property
    def is_dead(self) -> bool:
        return self.ended_at is not None

    @is_dead.setter
    def is_dead(self, _: bool) -> None:
        self.ended_at = asyncio.get_running_loop().time() if self.ended_at is None else self.ended_at

    def check(self) -> None:
        if self.is_dead:
            raise Crash

    async def thawed(self) -> None:
        """Returns at once but in a process that stands still; raises `Crash` in one that has died."""
        while self._thaws_at and (left := self._thaws_at - asyncio.get_running_loop().time()) > 0:
            await stand_still(left)
        self.check()

    def freeze(self) -> None:
        self.is_frozen = True
        self.block(self.world.stall_s)
        self.still.append((asyncio.get_running_loop().time(), self._thaws_at))

    def block(self, seconds: float) -> None:
        """Nothing of the engine runs here for so long."""
        self._thaws_at = max(self._thaws_at, asyncio.get_running_loop().time() + seconds)

    def die(self) -> NoReturn:
        self.is_dead = True
        raise Crash

    def offload(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]:
        """Every port call of the engine comes through here."""
        if is_of_notices(function.__name__, args):
            return self._telling(function, *args, **kwargs)
        return self._called(function, *args, **kwargs)

    async def _telling(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await self._called(function, *args, **kwargs)
        except BaseException:
            service = _service(getattr(function, "__self__", None))
            self.world.told.had_no_answer(self, function.__name__, service, args)
            raise

    async def _called(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        world, name = self.world, function.__name__
        # The first entry is under no lease: any process that finds a head without a log makes the same one of it.
        is_append = name in ("append", "append_with_rows")
        if (
            is_append
            and cast("Record", args[1]).version > 1
            and self.clock.now() >= self.leases.get(str(args[0]), FOREVER)
        ):
            world.stale.append(f"{self.id} asked for an append when its lease was over")
        if self._thaws_at:
            await self.thawed()
        self.check()
        # A reconciler whose runs take no time sends a timer twice for the same moment, and nothing is woken twice.
        seconds = world.slow.get(name, 0 if self.role == "reconciler" else LATENCY_S)
        if not passes(seconds):
            await self._travels(seconds, name, args)
        service = _service(getattr(function, "__self__", None))
        if self.home.is_old:
            function = cast("Callable[P, T]", self._as_old(function, str(args[0])))
        if world.outages:
            await self._outage(service, name)
        fate = world.plan.next(name, self.role == "worker")
        if name == "expire":
            world.unexpired.add(str(args[2]))
        if fate != FINE:
            return await self._meets(fate, service, function, *args, **kwargs)
        result = function(*args, **kwargs)
        self._note(function, service, args, result)
        if name == "expire":
            world.unexpired.discard(str(args[2]))
        return result

    def _as_old(self, function: Callable[..., Any], ref: str) -> Callable[..., Any]:
        """A read as the release before makes it: what the new one has written is of a format that it does not know."""
        newer = self.world.newer

        def read_tail(*args: Any) -> list[Record]:
            return [
                msgspec.structs.replace(one, data=one.data.replace(b'"format":1', b'"format":2', 1))
                if (ref, one.version) in newer
                else one
                for one in function(*args)
            ]

        def read_snapshot(*args: Any) -> Record | None:
            found = function(*args)
            return None if found and any((ref, one) in newer for one in range(found.version + 1)) else found

        return {"read_tail": read_tail, "read_snapshot": read_snapshot}.get(function.__name__, function)

    async def _meets(
        self, fate: str, service: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        world, name = self.world, function.__name__
        world.faults.append(f"{self.id}: {fate} at {name}")
        if fate == CRASH_BEFORE:
            self.die()
        if fate == THROTTLE:
            raise Throttled("slow down")
        if fate in (NO_ANSWER, LATE) and name in ("append", "append_with_rows"):
            self.unsure.add((str(args[0]), cast("Record", args[1]).version))
        if fate in (HANG, LATE):
            self.unanswered += 1
            self.lost_leases += name in ("take", "release")
            self.is_unsettled |= _is_of_money(name, args)
            self.was_slow |= _says_it_gave_up(name, args)
            if fate == LATE:
                world.spawn(self._land(function, service, args, lambda: function(*args, **kwargs)))
            await asyncio.sleep(READ_TIMEOUT_S.get(service, CHANNEL_S))
            await self.thawed()
            raise StoreUnavailable("no answer in time")
        if fate in (STALL, FREEZE):
            self.freeze()
            await self.thawed()
            if fate == FREEZE:
                self.lost_time_at = asyncio.get_running_loop().time()
                self.clock.skew -= round(world.stall_s * 1_000)
        result = function(*args, **kwargs)
        self._note(function, service, args, result)
        if fate == CRASH_AFTER:
            self.die()
        if fate == NO_ANSWER:
            raise StoreUnavailable("no answer")
        return result

    async def _travels(self, seconds: float, name: str, args: tuple[Any, ...]) -> None:
        """Until a request has come to its service, while other things happen."""
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            self.was_slow |= seconds >= ANSWER_S and _says_it_gave_up(name, args)
            raise
        await self.thawed()

    async def _outage(self, service: str, name: str) -> None:
        how = self.world.outage_of(service)
        # A store that hangs keeps a lease from being given back, too.
        self.unanswered += 2 if (how, service) == (HANGS, "dynamodb") else bool(how)
        for part in (part for part, calls in PARTS.items() if name in calls and self.world.outage_of(part)):
            how = how or (REFUSES if part == INDEX else self.world.outage_of(part))
            self.lost_leases += how == HANGS and name in ("take", "release")
            self.unanswered += self.home.is_old and name == "release"  # it cannot record that it gave up
        if how == REFUSES:
            raise Throttled("not now")
        if how == HANGS:
            await asyncio.sleep(READ_TIMEOUT_S.get(service, CHANNEL_S))
            await self.thawed()
            raise StoreUnavailable("no answer in time")

    async def _land(
        self, function: Callable[..., Any], service: str, args: tuple[Any, ...], request: Callable[[], Any]
    ) -> None:
        """A request that was on its way longer than its client waited; the client may have died meanwhile."""
        await asyncio.sleep(self.world.late_s)
        is_unsettled = self.is_unsettled  # it has heard nothing of what lands now
        with suppress(EngineFault, ValueError):
            self._note(function, service, args, result := request())
            self.is_unsettled = is_unsettled
            if function.__name__ == "move" and _holder(function, args) not in self.world.held_over:
                self.held_late += _held(result)

    def _note(self, function: Callable[..., Any], service: str, args: tuple[Any, ...], result: Any) -> None:
        """What an onlooker has to remember of a call."""
        world, name = self.world, function.__name__
        if name == "take" and isinstance(result, Head):
            _, _, until, seen, *_ = args
            world.epochs[self.id, str(result.ref)] = seen + 1
            self.leases[str(result.ref)] = until
            before = world.processes.get(result.owner)
            if before not in (None, self) and before.is_at_work and not _gave_up(world, result):
                world.stale.append(
                    f"{result.owner} was at work when {self.id} took its lease of {result.ref.id}"
                )
        elif name == "renew" and result:
            ref, _, _, until = args
            self.leases[str(ref)] = until
            self.renewals += 1
        elif name == "read_tail" and len(args) == TO_THE_END:
            self.read_at[str(args[0])].append(asyncio.get_running_loop().time())
        elif name == "expire":
            world.held_over[args[0], args[2]] = 0
            self.freed += _held(result)
        elif name == "move" and (holder := _holder(function, args)) in world.held_over:
            world.held_over[holder] = _held(result)
        elif _is_of_money(name, args):
            self.holds, self.is_unsettled = _held(result), False
            self.settled |= _settled(args[1] if isinstance(args[0], Account) else args[0].change)
        elif name == "release" and result:
            world.given_back.add((str(args[0]), world.epochs[self.id, str(args[0])]))
        elif name in ("append", "append_with_rows") and result:
            world.written[str(args[0]), args[1].version] = asyncio.get_running_loop().time()
            if self.role == "worker" and not self.home.is_old:
                world.newer.add((str(args[0]), args[1].version))
        elif is_of_notices(name, args):
            world.told.note(self, name, service, args, result)
