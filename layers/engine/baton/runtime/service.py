"""What a caller can do: register, start, cancel, signal, answer, resume, fork. What it can look at is in `queries`.

One `Service` per request. Everything appended here carries a wake, so that the table's stream sets the
saga going.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any

import msgspec

from baton.core.conditions.schema import violations
from baton.core.decide.program import Program
from baton.core.decide.spending import afresh
from baton.core.expressions.spelling import hinted, nearest
from baton.core.log.answers import (
    MAX_ARGUMENTS,
    Answer,
    answer_key,
    asked,
    check_answer,
    is_answered,
    named,
    refusal,
    tool_asked_about,
)
from baton.core.log.events import (
    CancelRequested,
    Entry,
    Event,
    Forked,
    Resumed,
    SignalReceived,
    Value,
)
from baton.core.log.fold import fingerprint, signal_key
from baton.core.log.forks import FORK_KEY
from baton.core.log.state import ANSWER, State, node_of, status_of
from baton.core.money import dollars
from baton.errors import (
    Forbidden,
    InvalidInput,
    KeyReused,
    NotAllowedNow,
    NotFound,
    Problem,
    TooLarge,
    UserError,
)
from baton.ports import Head, SagaRef, Wake
from baton.runtime.catalog import Registered
from baton.runtime.history import History
from baton.runtime.incidents import IncidentDesk
from baton.runtime.parts import Engine
from baton.runtime.registering import register
from baton.runtime.request import Caller, Opened, Request
from baton.runtime.start import Beginning, body_hash, refuse_another_body

MAX_DOCUMENT = 1_048_576


class Service:
    """The use cases of the API, for one caller until one deadline (epoch ms)."""

    def __init__(self, engine: Engine, caller: Caller, deadline: int) -> None:
        self._request = Request(engine, caller, deadline)
        self._engine = engine
        self._caller = self._request.caller
        self._parts = self._request.parts
        self._incidents = IncidentDesk(
            engine.store.incidents, self._parts.call, engine.clock, self._caller.tenant
        )

    async def register(self, text: str, *, json_only: bool) -> Registered:
        """Register a workflow document. Raises `MalformedDocument`, `InvalidDefinition`, `TooLarge`."""
        if len(text.encode()) > MAX_DOCUMENT:
            raise TooLarge(f"a workflow document has at most {MAX_DOCUMENT} bytes")
        return await register(self._parts.catalog, self._engine, self._caller, text, json_only=json_only)

    async def start(self, workflow: str, given: Any, key: str) -> tuple[dict[str, Any], bool]:
        """Start a saga; (its view, whether it is new). The same key and body give the same saga."""
        caller = self._caller
        ref = SagaRef(caller.tenant, self._new_id(key))
        hashed = body_hash([workflow, given])
        head = await self._parts.call(self._engine.log.read_head, ref) if key else None
        if head is not None:
            refuse_another_body(head, hashed)
            # Whatever became of the workflow's name and schema, and of the user's money, since: it has been started.
            opened = await self._request.open(ref.id)
            return self._accepted(opened) | {"workflow": opened.history.state.origin.workflow}, False
        now = self._engine.clock.now()
        await self._engine.ledger_cache.refuse_the_blocked(self._parts.call, caller.tenant, caller.user, now)
        definition, _ = await asyncio.gather(
            self._parts.catalog.find(caller.tenant, workflow), self._parts.quota.admit(caller.tenant)
        )
        beginning = Beginning(
            ref=ref,
            definition=definition,
            graph=await self._parts.catalog.graph(caller.tenant, definition.graph),
            given=given,
            user=caller.user,
            invocation=caller.request,
            traceparent=caller.traceparent or self._new_trace(),
            body_hash=hashed,
        )
        is_new = await self._parts.starter.start(beginning)
        view = {"id": beginning.ref.id, "status": "pending", "workflow": definition.name, "version": 1}
        if not is_new:
            view |= self._accepted(await self._request.open(beginning.ref.id))
        return view, is_new

    def _new_id(self, key: str) -> str:
        if key:
            named = msgspec.json.encode([self._caller.tenant, self._caller.user, key])
            return "k" + hashlib.sha256(named).hexdigest()[:25]
        return f"s{self._engine.clock.now():011x}{self._engine.entropy.token(56)}"

    def _new_trace(self) -> str:
        return f"00-{self._engine.entropy.token(128)}-{self._engine.entropy.token(64)}-01"

    async def cancel(self, saga: str, reason: str, grace_ms: int) -> dict[str, Any]:
        """Cancel: running steps get `grace_ms`, then are stopped. A no-op on a saga that has ended cancelled."""

        def make(state: State, now: int) -> Event | None:
            cancel = CancelRequested(reason=reason, by=self._caller.by, at=now, grace_ms=grace_ms)
            known = state.cancel
            is_longer = known is not None and known.at + known.grace_ms <= now + grace_ms
            if is_longer and state.parked is None:
                return None
            return cancel

        opened = await self._request.open(saga)
        try:
            accepted = await self._append(opened, make)
            await self._incidents.resolve_all(saga, self._caller.by)
            return accepted
        except NotAllowedNow:
            ended = opened.history.state.ended
            if ended is not None and ended.status == "cancelled":
                return self._accepted(opened)
            raise

    async def signal(self, saga: str, name: str, payload: Any, key: str) -> dict[str, Any]:
        """Send a signal; one with a key that is known already changes nothing.

        Raises `InvalidInput` for a payload that fits the schema of no wait that can still take it.
        """
        opened = await self._request.open(saga)
        expected = {node.signal for node in opened.program.graph.nodes if node.signal}
        if name not in expected:
            hint = nearest(name, expected) or ("it waits for none" if not expected else "")
            workflow = opened.history.state.origin.workflow
            raise NotFound(hinted(f"workflow `{workflow}` waits for no signal `{name}`", hint))
        value, blob = self._unstored(payload, "a payload")
        unique = key or self._engine.entropy.token(96)
        remembered = signal_key(name, unique)

        def is_known(state: State) -> bool:
            known = state.keys.get(remembered)
            if known is not None and known != fingerprint(value):
                raise KeyReused(f"signal `{name}` came with another payload under this key")
            return known is not None

        def make(state: State, now: int) -> Event | None:
            if len(state.signals) >= self._engine.limits.signals_kept:
                raise NotAllowedNow(f"{len(state.signals)} signals wait to be taken; no more are kept")
            _check_payload(opened.program, state, name, payload)
            return SignalReceived(name=name, key=unique, payload=value, by=self._caller.by, at=now)

        return await self._append(opened, make, is_known, blob)

    def _unstored(self, said: Any, what: str) -> tuple[Value, bytes]:
        """What the entry holds of it, and its blob, which is written once it is accepted. Raises `TooLarge`."""
        found = self._parts.values.unstored(said)
        if found is None:
            raise TooLarge(f"{what} has at most {self._engine.limits.result_bytes} bytes")
        return found

    async def answer(self, saga: str, answer: Answer, key: str) -> dict[str, Any]:
        """Answer an open question; the same answer again changes nothing.

        Raises `NotFound` with the questions that are open, `Forbidden` with whom the question is for, `InvalidInput` with
        all that is wrong with the answer, `NotAllowedNow` for a question that has another one.
        """
        opened = await self._request.open(saga)
        if len(msgspec.json.encode(answer.arguments)) > MAX_ARGUMENTS:
            raise TooLarge(f"the arguments of an answer have at most {MAX_ARGUMENTS} bytes")
        value, blob = self._unstored(answer.payload(), "an answer")
        unique = answer_key(answer.ask, key)
        remembered = signal_key(ANSWER, unique)

        def is_known(state: State) -> bool:
            self._refuse_others(state, answer.ask)
            known = state.keys.get(remembered)
            if key and known is not None and known != fingerprint(value):
                raise KeyReused(f"question `{answer.ask}` was answered otherwise under this key")
            return known == fingerprint(value)

        def make(state: State, now: int) -> Event | None:
            self._check_answer(opened, state, answer)
            return SignalReceived(name=ANSWER, key=unique, payload=value, by=self._caller.by, at=now)

        node = next(
            (node_of(slot)[0] for slot, ask in asked(opened.history.state) if ask.id == answer.ask), ""
        )
        accepted = await self._append(opened, make, is_known, blob)
        if node:
            await self._incidents.resolve_all(saga, self._caller.by, node)
        return accepted

    def _refuse_others(self, state: State, question: str) -> None:
        for _, ask in asked(state):
            if ask.id == question and (why := refusal(state, ask, self._caller.user, self._caller.roles)):
                raise Forbidden(why)

    def _check_answer(self, opened: Opened, state: State, answer: Answer) -> None:
        if is_answered(state, answer.ask):
            raise NotAllowedNow(f"question `{answer.ask}` has been answered")
        slot, ask = next((pair for pair in asked(state) if pair[1].id == answer.ask), ("", None))
        if ask is None:
            raise NotFound(f"there is no question `{answer.ask[:80]}`; {named(state)}")
        node = opened.program.nodes[node_of(slot)[0]]
        tool = self._engine.tools.get(tool_asked_about(node, state.failing[slot]))
        problems = check_answer(
            ask,
            node,
            tool.parameters if tool is not None else {},
            answer,
            tool.result if tool is not None else None,
        )
        if problems:
            raise InvalidInput(f"at {problems[0].path}: {problems[0].message}", problems)

    async def resume(self, saga: str, budget: int = 0) -> dict[str, Any]:
        """Let a parked saga try again, with its tries counted anew.

        `budget`: micro-dollars that it may spend in all. Without one, a saga that was parked for its money may spend
        as much again.
        """

        def make(state: State, now: int) -> Event | None:
            if state.parked is None:
                raise NotAllowedNow(f"only a parked saga can be resumed; this one is {status_of(state)}")
            if 0 < budget <= state.money.spent:
                spent = f"{dollars(state.money.spent)} dollars are spent; `budget_usd` is for the whole saga"
                raise InvalidInput(f"at /budget_usd: {spent}", (Problem("/budget_usd", spent),))
            more = budget or afresh(state, self._engine.ledger_cache.terms)
            return Resumed(by=self._caller.by, at=now, budget=more)

        accepted = await self._append(await self._request.open(saga), make)
        await self._incidents.resolve_all(saga, self._caller.by)
        return accepted

    async def resolve(self, incident: str) -> dict[str, Any]:
        """Say that somebody has done something about an incident; again, it changes nothing. Raises `NotFound`."""
        return await self._incidents.resolve(incident, self._caller.by)

    async def fork(self, saga: str, cut: int, reason: str, key: str = "") -> dict[str, Any]:
        """Go on, in a new branch, from the state at version `cut`; also for a saga that has ended.

        The head is armed first: an ended saga is in no index, and the wake of the entry may be lost. A
        repeated key makes no second fork.
        """
        opened = await self._request.open(saga)
        history = opened.history
        remembered = FORK_KEY + key
        if not (key and remembered in history.state.keys):
            await self._check_cut(history, cut)
        armed = 0
        while True:
            state, now = history.state, self._engine.clock.now()
            if key and remembered in state.keys:
                if state.keys[remembered] != str(cut):
                    raise KeyReused(f"this key forked at version {state.keys[remembered]}")
                return self._accepted(opened)
            if now >= armed:
                armed = await self._arm(opened.head)
            fork = Forked(
                cut=cut, branch=state.lineage.branch + 1, by=self._caller.by, at=now, reason=reason, key=key
            )
            entry = self._entry(history, fork, now)
            if await history.append(entry, wake=Wake(v=entry.version)):
                await self._incidents.resolve_all(saga, self._caller.by)
                return self._accepted(opened)
            await history.catch_up()

    async def _check_cut(self, history: History, cut: int) -> None:
        last = history.state.version
        if not 1 <= cut <= last:
            raise UserError(f"version {cut} is not in the log; its last is {last}")
        if (await history.state_at(cut)).ended is not None:
            raise UserError(f"version {cut} is the end of its branch; the last to go on from is {cut - 1}")

    async def _arm(self, head: Head) -> int:
        seen: Head | None = head
        while seen is not None:
            until = self._engine.clock.now() + self._engine.limits.fork_deadline_ms
            if await self._parts.call(self._engine.log.arm, seen, until):
                return until
            seen = await self._parts.call(self._engine.log.read_head, head.ref)
        raise NotFound(f"there is no saga `{head.ref.id}`")

    async def _append(
        self,
        opened: Opened,
        make: Callable[[State, int], Event | None],
        is_known: Callable[[State], bool] = lambda _: False,
        blob: bytes = b"",
    ) -> dict[str, Any]:
        """Fold, not ended, put with a wake; on conflict read and decide again. None from `make`: a no-op.

        What `is_known` has been done already: a repetition is answered so, even by a saga that has ended. `blob` is what
        the entry refers to. It is written once, after the checks: a caller that is refused stores nothing.
        """
        history = opened.history
        while True:
            if is_known(history.state):
                return self._accepted(opened)
            if history.state.ended is not None:
                raise NotAllowedNow(f"the saga has ended: {status_of(history.state)}")
            now = self._engine.clock.now()
            event = make(history.state, now)
            if event is None:
                return self._accepted(opened)
            if blob:
                await self._parts.call(self._engine.blobs.put, self._caller.tenant, blob)
                blob = b""
            entry = self._entry(history, event, now)
            if await history.append(entry, wake=Wake(v=entry.version)):
                return self._accepted(opened)
            await history.catch_up()

    def _entry(self, history: History, event: Event, now: int) -> Entry:
        """What this caller appends, in its own trace if it has one, else in the saga's."""
        trace = self._caller.traceparent or self._parts.traceparent(history.state.origin.traceparent)
        return history.next_entry((event,), at=now, invocation=self._caller.request, trace=trace)

    def _accepted(self, opened: Opened) -> dict[str, Any]:
        state = opened.history.state
        status = status_of(state, opened.program)
        return {"id": state.origin.saga, "status": status, "version": state.version}

    async def health(self) -> dict[str, str]:
        """Answers whether the table does. Raises `StoreUnavailable` otherwise."""
        await self._parts.call(self._engine.log.read_head, SagaRef("-", "-"))
        return {"status": "ok"}


def _check_payload(program: Program, state: State, signal: str, payload: Any) -> None:
    """Raises `InvalidInput` where every wait that can still take the signal has a schema that the payload does not fit."""
    problems: list[Problem] = []
    blamed = ""
    for node in program.takers(state, signal):
        schema = node.output_schema
        found = violations(schema, payload, "/payload") if schema is not None else ()
        if not found:
            return
        blamed = blamed or f"`{node.name}`: at {found[0].path}: {found[0].message}"
        problems += found
    if problems:
        raise InvalidInput(f"no wait for `{signal}` takes this payload; {blamed}", tuple(problems))
