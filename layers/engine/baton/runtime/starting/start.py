"""The start row of the protocol table: head, then entry 1, rolled
forward by the caller or worker that finds it half done.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from baton.core.conditions.schema import input_violations
from baton.core.decide.program import Program
from baton.core.failures.policy import ASK
from baton.core.graph.graph import INPUT, Events, SignalRule
from baton.core.limits import DAY_MS
from baton.core.log.codec import PERIOD, encode_entry
from baton.core.log.events import CancelRequested, Entry, Event, SagaStarted, Token, Value
from baton.core.log.incarnations import Keys, ReplacedSaga
from baton.core.log.labels import label_problems
from baton.core.log.records import Sent, SharedLimit
from baton.core.models.usage import Allowance
from baton.errors import (
    CorruptLog,
    InvalidInput,
    KeyReused,
    StoreUnavailable,
    Throttled,
    TooLarge,
    TooManyRequests,
)
from baton.ports import Definition, Head, Record, SagaRef, Wake
from baton.ports.log import period_of
from baton.ports.records import Heard
from baton.runtime.invocation.context import InvocationContext


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRequest:
    """Content of entry 1 of a saga.

    `body_hash` tells a repeated request from a different one. `handled`: a saga above goes on from this one's
    failure. `expires`: when the saga above does, which refers to the values of this one. `is_part`: this one
    refers to values of that, too, and expires with it. `outer`: see `SagaStarted`; `passed`: likewise, with
    the input where that is a value of the saga above. `cancel`: it is there to be found cancelled, and runs
    nothing.
    """

    ref: SagaRef
    definition: Definition
    program: Program
    given: Any
    user: str
    invocation: str
    traceparent: str
    body_hash: str
    parent: str = ""
    slot: str = ""
    window: int = 0
    depth: int = 0
    scope: str = ""
    handled: bool = False
    expires: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    sent: Sent | None = None
    outer: Any = None
    passed: Mapping[str, Value] = field(default_factory=dict)
    is_part: bool = False
    before: tuple[ReplacedSaga, ...] = ()
    keys: Keys | None = None
    shared_limits: tuple[SharedLimit, ...] = ()
    allowed: Allowance | None = None
    cancel: CancelRequested | None = None


def body_hash(body: Any) -> str:
    """Return 32 hexadecimal digits of a JSON value, whatever the order of its keys."""
    return hashlib.sha256(msgspec.json.encode(body, order="deterministic")).hexdigest()[:32]


def refuse_another_body(there: Head, hashed: str) -> None:
    """Raise `KeyReused` if the stored saga was started with another body."""
    if there.start_hash != hashed:
        raise KeyReused(
            f"this key has started saga {there.ref.id} with another body: send the same body, or use another key"
        )


class Starter:
    """Starter of sagas for one invocation."""

    def __init__(self, context: InvocationContext) -> None:
        self._log = context.log
        self._blobs = context.blobs
        self._clock = context.clock
        self._limits = context.limits
        self._call = context.call
        self._fit = set[tuple[str, str]]()
        """Inputs that are passed by reference, and the graphs that take them."""

    async def start(self, request: StartRequest) -> bool:
        """Make the saga exist. False when it did already (with the same body).

        Raises `InvalidInput` with every violation, `TooLarge`, and `KeyReused` for another body.
        """
        head = await self._head(request)
        there = await self._call(self._log.create_head, head)
        if there is not None:
            refuse_another_body(there, head.start_hash)
        if there is None or there.start:
            await self.put_entry_one(there or head)
        return there is None

    async def put_entry_one(self, head: Head) -> None:
        """Roll a head without a log forward; a no-op when entry 1 is there."""
        if not head.start:
            raise CorruptLog(f"{head.ref} has neither a log nor the start of one")
        record = Record(0, 1, head.start, expires=head.expires)
        await self._call(self._log.append, head.ref, record, Wake(v=1))

    async def _head(self, request: StartRequest) -> Head:
        await self._check_input(request)
        if request.labels and (problems := label_problems(request.labels)):
            raise InvalidInput(f"at {problems[0].path}: {problems[0].message}", tuple(problems))
        now = self._clock.now()
        ends_by = now + self._limits.saga_days * DAY_MS
        # In whole seconds, as the table's time to live is.
        expires = max(-(-(ends_by + self._limits.retention_days * DAY_MS) // 1_000) * 1_000, request.expires)
        if is_part := request.is_part and request.expires > 0:
            # It ends before anything of it is deleted, and after the saga above, which is over two days before at the latest.
            expires = request.expires
            ends_by = min(ends_by, expires - DAY_MS)
        graph, tenant = request.program.graph, request.ref.tenant
        outer, passed, period = request.outer, dict(request.passed), period_of(now, expires)
        for name, value in request.passed.items():
            if not (is_part and value.ref):
                passed[name] = await self._own(tenant, value, period)
        nodes = () if request.cancel else graph.nodes
        started = SagaStarted(
            workflow=request.definition.name,
            graph=request.definition.graph,
            tenant=tenant,
            user=request.user,
            saga=request.ref.id,
            input=passed.pop(INPUT) if INPUT in passed else await self._value(tenant, request.given, period),
            at=now,
            emits=tuple(Token("", node.name, (0,) * len(node.loops)) for node in nodes if not node.before),
            parent=request.parent,
            slot=request.slot,
            window=request.window,
            depth=request.depth,
            scope=request.scope,
            counts=request.program.counts,
            handled=request.handled,
            last="" if self._limits.on_failure == ASK else self._limits.on_failure,
            ends_by=ends_by,
            expires=expires,
            labels=dict(request.labels),
            sent=request.sent,
            outer=None if outer is None else await self._value(tenant, outer, period),
            passed=passed,
            before=request.before,
            keys=request.keys,
            shared_limits=request.shared_limits,
            allowed=request.allowed,
            tag=request.definition.tag,
        )
        entry = Entry(
            version=1,
            at=now,
            invocation=request.invocation,
            traceparent=request.traceparent,
            events=_events(request, started) if request.cancel or request.definition.pauses else (started,),
        )
        return Head(
            ref=request.ref,
            workflow=request.definition.name,
            graph=request.definition.graph,
            user=request.user,
            created=now,
            start_hash=request.body_hash,
            start=encode_entry(entry),
            due_at=now + self._limits.start_due_ms,
            expires=expires,
            labels=dict(request.labels),
        )

    async def _check_input(self, request: StartRequest) -> None:
        """Raise `InvalidInput` with every violation."""
        given, graph, own = request.given, request.program.graph, request.passed.get(INPUT)
        if graph.input_schema is None:
            return
        if own is not None:
            if (request.definition.graph, own.ref) in self._fit:
                return
            given = msgspec.json.decode(await self._call(self._blobs.get, request.ref.tenant, own.ref))
        if problems := input_violations(graph.input_schema, given):
            first = problems[0]
            raise InvalidInput(f"at {first.path}: {first.message}", problems)
        if own is not None:
            self._fit.add((request.definition.graph, own.ref))

    async def _own(self, tenant: str, value: Value, period: str) -> Value:
        """Copy a value of another saga, which this one may outlive."""
        if not value.ref:
            return await self._value(tenant, value.v, period)
        if PERIOD not in value.ref:
            return value
        data = await self._call(self._blobs.get, tenant, value.ref)
        return Value(ref=await self._call(self._blobs.put, tenant, data, period), size=value.size)

    async def _value(self, tenant: str, given: Any, period: str) -> Value:
        data = msgspec.json.encode(given)
        if len(data) > self._limits.result_bytes:
            raise TooLarge(
                f"a saga's input has at most {self._limits.result_bytes} bytes; this one has {len(data)}"
            )
        if len(data) <= self._limits.inline_bytes:
            return Value(v=given)
        return Value(ref=await self._call(self._blobs.put, tenant, data, period), size=len(data))


def _events(request: StartRequest, started: SagaStarted) -> tuple[Event, ...]:
    """Return the events of a saga that is cancelled, or paused with its workflow, before it begins."""
    if request.cancel is not None:
        return started, request.cancel
    return started, *(msgspec.structs.replace(one, at=started.at) for one in request.definition.pauses)


GOOD_FOR_MS = 10_000
FULL_FOR_MS = 1_000
ASK_FOR_MS = 1_000
FEW_FREE_PLACES = 10
_PARTS = 20  # a process may let a twentieth of what is free begin before it asks again
RETRY_AFTER_S = 5


@dataclass(slots=True)
class Room:
    """Room of a tenant, as a process knows it: sagas that may begin until it asks again.
    `is_all`: no more are free.
    """

    left: int
    until: int
    is_all: bool


class Quota:
    """The limit of sagas at work, for one invocation. `rooms` is what the process knows, by tenant."""

    def __init__(self, context: InvocationContext, rooms: dict[str, Room]) -> None:
        self._rooms = rooms
        self._log = context.log
        self._call = context.call
        self._clock = context.clock
        self._most = context.limits.tenant_sagas
        self._lock = asyncio.Lock()

    async def admit(self, tenant: str) -> None:
        """Raise `TooManyRequests` if the tenant's limit of sagas at work is reached."""
        if not await self.has_room(tenant):
            raise TooManyRequests(
                f"tenant `{tenant}` has {self._most:,} sagas at work, which is all that it may have; "
                f"try again when some of them have ended or wait",
                RETRY_AFTER_S,
            )

    async def has_room(self, tenant: str) -> bool:
        """Return true if one more saga may begin, and count it."""
        async with self._lock:
            room = self._rooms.get(tenant)
            now = self._clock.now()
            if room is None or now >= room.until or not (room.left or room.is_all):
                room = self._rooms[tenant] = await self._count(tenant)
            if not room.left:
                return False
            room.left -= 1
            return True

    async def _count(self, tenant: str) -> Room:
        shards, call = range(self._log.limits.status_shards), self._call.within(ASK_FOR_MS)
        try:
            found = await asyncio.gather(
                *(call(self._log.at_work, tenant, shard, self._most) for shard in shards)
            )
        except (Throttled, StoreUnavailable):
            return Room(
                max(self._most // _PARTS, FEW_FREE_PLACES), self._clock.now() + FULL_FOR_MS, is_all=False
            )
        free = self._most - sum(found)
        now = self._clock.now()
        if (
            free <= FEW_FREE_PLACES
        ):  # those that are being started are in no index yet: not to be counted anew at once
            return Room(max(free, 0), now + FULL_FOR_MS, is_all=True)
        return Room(max(free // _PARTS, FEW_FREE_PLACES), now + GOOD_FOR_MS, is_all=False)


MOST_HEARD = 100
"""Highest number of correlation keys of earlier versions that are kept for a workflow."""


def heard_after(
    known: Heard, before: Events | None, after: Events | None, now: int, until: int
) -> tuple[Heard, tuple[str, ...]]:
    """Return the `heard` keys of a version with the rules `after`, for sagas of versions before it.

    The newest of those had the rules `before` and `known`. The keys find the sagas, for types of events whose
    rules of signals have changed. The reaction of a saga to an event is in its own graph. The second value
    are notes of keys that are dropped.
    """
    old, new = _signals(before), _signals(after)
    changed = [rule for kind, rules in old.items() if rules != new.get(kind) for rule in rules]
    places = {(rule.type, rule.correlation_key): until for rule in changed}
    for kind, key, end in known:
        if end > now:
            places.setdefault((kind, key), end)
    heard = tuple((*place, end) for place, end in places.items())
    notes = (
        f"sagas that began with an earlier version do not get events of the type `{kind}` with the correlation key `{key}` "
        f"as signals any more: {MOST_HEARD} correlation keys of earlier versions are known, which is the most"
        for kind, key, _ in heard[MOST_HEARD:]
    )
    return heard[:MOST_HEARD], tuple(notes)


def _signals(events: Events | None) -> dict[str, list[SignalRule]]:
    """Return the signal rules, by type of event."""
    found: dict[str, list[SignalRule]] = {}
    for rule in events.signal if events is not None else ():
        found.setdefault(rule.type, []).append(rule)
    return found
