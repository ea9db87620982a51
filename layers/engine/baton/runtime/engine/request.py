"""One request: its caller, its deadline, and the saga that is asked about.

The operations are in `service` (those that change something) and `queries` (those that only read).
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from baton.core.conditions.schema import violations
from baton.core.decide.program import Program
from baton.core.expressions import nearest, with_hint
from baton.core.log.codec import PERIOD
from baton.core.log.events import Entry, Event, SignalReceived, Value
from baton.core.log.state import LONGEST_ID, State, status_of
from baton.errors import (
    CorruptLog,
    InvalidInput,
    MissingGraph,
    NotAllowedNow,
    NotFound,
    Problem,
    SignalsFull,
    TooLarge,
    UserError,
)
from baton.ports import Head, SagaRef, Wake
from baton.runtime.engine.parts import Engine, InvocationScope
from baton.runtime.invocation.context import Deadline, Invocation
from baton.runtime.log.history import History

Make = Callable[[State, int], Event | Sequence[Event] | None]
"""Function that makes the caller's events from a state and a time."""
SAGA_ID = rf"[A-Za-z0-9._-]{{1,{LONGEST_ID}}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Caller of a request, taken from the verified identity, never from the request's own words.

    `user` is who pays. `session` tells apart those who share it, by a name that they may choose: it is for
    the log only. `roles` and `groups` decide beyond the routes that roles open, such as whose questions the
    caller may answer.
    """

    tenant: str
    user: str
    request: str
    traceparent: str = ""
    session: str = ""
    roles: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    @property
    def by(self) -> str:
        """Name of the caller in the log."""
        return f"{self.user}/{self.session}" if self.session else self.user


@dataclass(slots=True)
class Opened:
    """Saga of the caller's tenant, with its log folded, and the program that it runs."""

    head: Head
    history: History
    program: Program


class Request:
    """Caller with its collaborators, until `deadline` (epoch ms).
    A caller sees its own tenant's sagas only.
    """

    is_reader = False
    """True: it gets the readable part of a damaged log."""

    def __init__(self, engine: Engine, caller: Caller, deadline: int) -> None:
        # Unique even where a request id is repeated: entries are recognised as one's own by it.
        self.caller = replace(caller, request=f"{caller.request}.{engine.entropy.token(24)}")
        self.engine = engine
        invocation = Invocation(self.caller.request, engine.clock.now(), deadline)
        self.parts = InvocationScope(engine, invocation, Deadline.without_reserve(invocation))

    async def open(self, saga: str) -> Opened:
        """Load a saga with its program. Raises `NotFound`, and `NotAllowedNow` if its log is damaged."""
        head, history = await self.read(saga)
        try:
            return Opened(head, history, await self.program_of(history))
        except MissingGraph as error:
            raise self._refusal(saga, error) from error

    async def program_of(self, history: History) -> Program:
        """Return the program that a saga runs."""
        return await self.parts.catalog.running(history.ref.tenant, history.state, is_reader=True)

    async def read(self, saga: str) -> tuple[Head, History]:
        """Load a saga without its program, which a new process would read from the bucket.
        Raises `NotFound`.
        """
        ref = self.ref_of(saga)
        head = await self.parts.call(self.engine.log.read_head, ref)
        if head is None:
            raise NotFound(f"there is no saga `{saga}`")
        history = History(self.engine.log, self.engine.blobs, self.parts.call, ref)
        try:
            await history.load(head)
        except CorruptLog as error:
            if not (self.is_reader and history.state.version):
                raise self._refusal(saga, error) from error
            history.unread = await history.damage(head.folded)
        if history.state.version == 0:
            await self.parts.starter.put_entry_one(head)
            await history.catch_up()
        return head, history

    def _refusal(self, saga: str, error: CorruptLog) -> Exception:
        """Return the error for a saga that cannot be changed until it is repaired."""
        if self.is_reader:
            return error
        repair = f"`baton doctor {saga} --repair` (`POST /sagas/{saga}/diagnosis`)"
        return NotAllowedNow(f"{error}; {repair} repairs the saga")

    def ref_of(self, saga: str) -> SagaRef:
        """Return the reference of a saga of the caller's tenant. Raises `NotFound` for an invalid id."""
        if not re.fullmatch(SAGA_ID, saga):
            raise NotFound(f"there is no saga `{saga[:80]}`")
        return SagaRef(self.caller.tenant, saga)

    def unstored(self, history: History, said: Any, what: str) -> tuple[Value, bytes]:
        """Return the value for the entry, and the bytes of its blob, to be written once the entry is
        accepted. Raises `TooLarge`.
        """
        found = self.parts.values.unstored(history.state.origin, said)
        if found is None:
            raise TooLarge(f"{what} has at most {self.engine.limits.result_bytes} bytes")
        return found

    async def append(self, opened: Opened, make: Make, *more: Any) -> dict[str, Any]:
        """Call `put`. Return the saga's status afterwards."""
        return accepted_answer(opened, changed=await self.put(opened.history, make, *more, opened=opened))

    async def put(
        self,
        history: History,
        make: Make,
        is_known: Callable[[State], bool] = lambda _: False,
        blob: bytes = b"",
        ref: str = "",
        *,
        wakes: bool = True,
        opened: Opened | None = None,
    ) -> bool:
        """Fold, check that the saga has not ended, append with a wake; on conflict read and decide again.
        Return false if `make` returns nothing: a no-op.

        `is_known` recognises a repetition of something done already: it is accepted, even by a saga that has
        ended. `blob` are the bytes of the entry's reference `ref`. They are written once, after the checks: a
        caller that is refused stores nothing. `wakes`: a worker must be woken. False if the entry makes
        nothing ready, nothing due earlier, and no notice due.
        `opened` gets the program of a graph to which another entry changes the saga meanwhile.
        """
        while True:
            if is_known(history.state):
                return False
            if history.state.ended is not None:
                raise NotAllowedNow(f"the saga has ended: {status_of(history.state)}")
            now = self.engine.clock.now()
            events = make(history.state, now)
            if not events:
                return False
            if blob:
                period = ref.partition(PERIOD)[2]
                await self.parts.call(self.engine.blobs.put, self.caller.tenant, blob, period)
                blob = b""
            entry = self.entry(history, events, now)
            if await history.append(entry, wake=Wake(v=entry.version) if wakes else None):
                return True
            before = history.state.graphs
            await history.catch_up()
            if opened is not None and history.state.graphs != before:
                opened.program = await self.program_of(history)

    async def arm(self, head: Head) -> int:
        """Have the reconciler find a saga that is in no index, until the time that is returned.
        Raises `NotFound`.
        """
        seen: Head | None = head
        while seen is not None:
            until = self.engine.clock.now() + self.engine.limits.fork_deadline_ms
            if await self.parts.call(self.engine.log.arm, seen, until):
                return until
            seen = await self.parts.call(self.engine.log.read_head, head.ref)
        raise NotFound(f"there is no saga `{head.ref.id}`")

    def entry(self, history: History, said: Event | Sequence[Event], now: int) -> Entry:
        """Return the entry that this caller appends, in its own trace if it has one, else in the saga's."""
        events = said if isinstance(said, Sequence) else (said,)
        trace = self.caller.traceparent or self.parts.traceparent(history.state.origin.traceparent)
        return history.next_entry(events, at=now, invocation=self.caller.request, trace=trace)


async def go_to(history: History, version: int) -> None:
    """Go back to a version; 0: stay. Raises `NotFound` if there is none yet."""
    state = history.state
    if version > state.version:
        raise NotFound(f"`{state.origin.saga}` has no version {version}: its newest one is {state.version}")
    if version:
        await history.approach(version)
        history.state, history.unread = await history.state_at(version), None  # damage is behind it


def accepted_answer(opened: Opened, *, changed: bool) -> dict[str, Any]:
    """Return the answer to a caller whose request changed a saga, or (not `changed`) changed nothing."""
    return saga_summary(opened) | {"changed": changed}


def saga_summary(opened: Opened) -> dict[str, Any]:
    """Return the id, status and version of a saga."""
    state = opened.history.state
    return {"id": state.origin.saga, "status": status_of(state, opened.program), "version": state.version}


def check_signal(opened: Opened, name: str) -> None:
    """Raise `NotFound` if no node of the workflow, and no open work, waits for a signal of this name."""
    waits = (*opened.program.graph.nodes, *opened.history.state.open.values())
    expected = {one.signal for one in waits if one.signal}
    # The signals of a function are known when it waits for them.
    if name not in expected and not any(node.function for node in opened.program.graph.nodes):
        hint = nearest(name, expected) or ("it waits for none" if not expected else "")
        workflow = opened.history.state.origin.workflow
        raise NotFound(with_hint(f"workflow `{workflow}` waits for no signal `{name}`", hint))


def signal_entry(
    program: Program, state: State, signal: SignalReceived, payload: Any, most: int
) -> SignalReceived:
    """Return a signal as the log takes it in.
    Raises `InvalidInput`, and `SignalsFull` if no more are kept.
    """
    if signal.failure is None:
        check_payload(program, state, signal.name, payload)
    if program.loses(state, signal.name):
        return msgspec.structs.replace(signal, lost=True)
    if len(state.signals) >= most:
        raise SignalsFull(f"{len(state.signals)} signals wait to be taken; no more are kept")
    return signal


def check_payload(program: Program, state: State, signal: str, payload: Any) -> None:
    """Raise `InvalidInput` if every wait that can still take the signal has a schema that the payload does
    not fit.
    """
    problems: list[Problem] = []
    blamed = ""
    for node in program.takers(state, signal):
        # That of an agent is for its answer, and that of a child for its result.
        schema = None if node.agent is not None or node.workflow else node.work.output_schema
        found = violations(schema, payload, "/payload") if schema is not None else ()
        if not found:
            return
        blamed = blamed or f"`{node.name}`: at {found[0].path}: {found[0].message}"
        problems += found
    if problems:
        raise InvalidInput(f"no wait for `{signal}` takes this payload; {blamed}", tuple(problems))


_WORD = b"-_"  # in place of + and /, which a query string would have to escape
_UNPACKED = 262_144  # bytes of a place; those of a list over 32 shards, with the longest ids, are half of it


def write_cursor(place: bytes) -> str:
    """Encode a place as a cursor.
    It is packed, because API Gateway takes 10,240 bytes of address and headers.
    """
    return base64.b64encode(zlib.compress(place), _WORD).decode().rstrip("=")


def read_cursor(cursor: str) -> bytes:
    """Decode a cursor. Raises `UserError` for text that `write_cursor` has not made."""
    unpacking = zlib.decompressobj()
    try:
        packed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), _WORD, validate=True)
        place = unpacking.decompress(packed, _UNPACKED)
    except (ValueError, zlib.error) as error:
        raise foreign_cursor() from error
    if not unpacking.eof or unpacking.unused_data:
        raise foreign_cursor()
    return place


def foreign_cursor() -> UserError:
    """Return the error for a cursor of another list."""
    return UserError("the cursor is not one that a list has answered with; leave it out to begin anew")


_TWO_KEYS = (
    "with a `correlation_key` there is one saga, however often it is started: leave the Idempotency-Key out"
)
BY_KEY, BY_TICK, BY_EVENT, BY_CORRELATION, BY_FORK = "k", "t", "e", "n", "f"


def in_cell(cell: int, rest: str) -> str:
    """Return the id that begins with `rest` in a cell; 0: the deployment has no cells."""
    return f"c{cell}.{rest}" if cell else rest


def named_id(cell: int, kind: str, *parts: Any) -> str:
    """Return an id from a `kind`, one of those above, and `parts`; equal parts give equal ids."""
    return in_cell(cell, kind + hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:25])


def correlated_id(cell: int, tenant: str, workflow: str, key: str) -> str:
    """Return the id of the one saga of a workflow that is started with this correlation key."""
    return named_id(cell, BY_CORRELATION, tenant, workflow, key)


def id_of_start(
    engine: Engine, caller: Caller, workflow: str, key: str, correlation_key: str
) -> tuple[str, str]:
    """Return (the key by which a second start finds the first, the id) for a caller's start.
    Raises `UserError` for two keys.
    """
    cell = engine.store.cell
    if correlation_key and key:
        raise UserError(_TWO_KEYS)
    if correlation_key:
        return correlation_key, correlated_id(
            cell, caller.tenant, workflow.partition("@")[0], correlation_key
        )
    if key:
        return key, named_id(cell, BY_KEY, caller.tenant, caller.user, key)
    return "", in_cell(cell, f"s{engine.clock.now():011x}{engine.entropy.token(56)}")


def new_trace(engine: Engine) -> str:
    """Return the `traceparent` of a saga whose caller has none."""
    return f"00-{engine.entropy.token(128)}-{engine.entropy.token(64)}-01"
