"""The doctor: reads a saga, has the core diagnose it, and performs the commands that set it right.

It is loaded where something is wrong or where a caller asks: no healthy saga comes here. Every read is
strongly consistent, and the head is read before and after the log: a head that has changed in between is read
again. So what a worker or another doctor does meanwhile is no finding. Each command is one conditional write
that may be repeated: a repair that dies after any of them is finished by the next.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from msgspec.structs import asdict, replace

from baton.core.decide.carrying import dropped_outputs
from baton.core.decide.program import Program
from baton.core.effects.toolspec import tools_for
from baton.core.graph.graph import encode_graph, hash_of, split_hash, starter_of
from baton.core.log.codec import SCHEME, encode_entry
from baton.core.log.events import Entry, Event, Forked, GraphChanged
from baton.core.log.state import Origin, State, status_of
from baton.core.on_demand import OnDemand
from baton.core.read.answers import Count, Cursor, Status, View
from baton.core.recovery import (
    FINDINGS,
    GRAPH_LOST,
    NEWER_RELEASE,
    NOTHING_STABLE,
    UNREADABLE,
    Command,
    Damage,
    EndLease,
    Finding,
    GoBack,
    LostGraph,
    MakeDue,
    PutGraph,
    ReadLog,
    Recover,
    can_go_back,
    damaged_head,
    decided_again,
    diagnose,
    repair,
)
from baton.errors import CorruptLog, NotFound, TooLarge, UnknownEntry, Unreadable, UserError
from baton.ports import Head, Record, SagaRef, Wake
from baton.runtime.engine.parts import Engine, InvocationScope
from baton.runtime.log.history import PAGE, History, ReadingTime, outputs_of

if TYPE_CHECKING:
    from baton.core.documents import compile as compiler
else:
    compiler = OnDemand("baton.core.documents.compile")

logger = logging.getLogger("baton.recovery")

TRIES = 8
"""Most times that a head is read that others change meanwhile, and most commands of one repair."""
VERSIONS = 100
"""Newest versions of a workflow among which the document of a lost graph is looked for."""
SIDE_BY_SIDE = 8
MOST_SHOWN = 500
"""Characters of a field that a replay shows."""
_UNREAD = frozenset({GRAPH_LOST, NEWER_RELEASE, NOTHING_STABLE, UNREADABLE})


@dataclass(frozen=True, slots=True)
class Examined:
    """A saga as one examination found it. `history` ends before the damage, if there is any."""

    head: Head
    history: History
    findings: tuple[Finding, ...]


class FoundState(View):
    """State of a saga that its writers never leave, and its remedy."""

    code: Annotated[str, f"One of {', '.join(FINDINGS)}."]
    message: Annotated[str, "The state, and where it is."]
    remedy: Annotated[str, "Action that sets it right: a repair takes it if `repairable`, else a person."]
    repairable: Annotated[bool, "True if a repair sets it right."]


class Diagnosis(View):
    """Findings about a saga. A healthy saga has none."""

    id: str
    status: Annotated[Status | None, "Null if the head cannot be read."]
    version: Annotated[Count, "Newest version of the log that can be read."]
    findings: Annotated[list[FoundState], "Findings that are left."]
    repaired: Annotated[list[FoundState], "Findings that this request has set right."]


class DiagnosisPage(View):
    """Findings about the open sagas of the tenant. `next` is the cursor of the next part."""

    examined: Annotated[Count, "Number of sagas on this page."]
    sagas: Annotated[list[Diagnosis], "Those of them with findings."]
    next: Cursor


class Divergence(View):
    """First place where a replay comes to something else than is stored."""

    at: Annotated[str, "`log`, `decision`, `snapshot` or `head`."]
    version: Annotated[Count, "Version of the entry, or of the snapshot."]
    stored: Annotated[list[str], "Stored facts that the replay does not come to."]
    replayed: Annotated[list[str], "Facts that the replay comes to in their place."]


class Replay(View):
    """Result of folding a saga's log again from entry 1, and of deciding again what its workers decided."""

    id: str
    status: Status
    version: Annotated[Count, "Newest version that was folded."]
    folded: Annotated[Count, "Number of entries that were folded."]
    decided: Annotated[
        Count,
        "Number of entries that were decided again. The others cannot be: failures, reports, notices, functions, and entries of callers.",
    ]
    divergence: Annotated[Divergence | None, "Null if the replay comes to what is stored."]


class Doctor:
    """Diagnoses and repairs sagas for one request or invocation; `by` stands in the log."""

    def __init__(self, engine: Engine, scope: InvocationScope, by: str) -> None:
        self._engine = engine
        self._scope = scope
        self._by = by
        self._call = scope.call
        self._graphs: dict[tuple[str, str], Program | LostGraph] = {}

    async def examine(self, ref: SagaRef) -> Examined:
        """Read and diagnose a saga. Raises `NotFound`, and `CorruptLog` for a head that cannot be read."""
        before = await self._head(ref)
        for _ in range(TRIES):
            history, damage = await self._read(before)
            after = await self._head(ref)
            if after == before:
                return Examined(before, history, await self._findings(before, history, damage))
            before = after
        history, _ = await self._read(before)
        return Examined(before, history, ())  # so many writers are at work on it

    async def _read(self, head: Head) -> tuple[History, Damage | None]:
        """Read the log of a saga as far as it can be read."""
        history = History(self._engine.log, self._engine.blobs, self._call, head.ref)
        try:
            await history.load(head)
            if history.state.version == 0 and head.start:
                await self._scope.starter.put_entry_one(head)
                await history.catch_up()
        except Unreadable:
            return history, await history.damage(head.folded)
        return history, None

    async def _findings(self, head: Head, history: History, damage: Damage | None) -> tuple[Finding, ...]:
        graph, state = None, history.state
        if state.version:
            graph = await self._graph(head.ref.tenant, history)
        read = ReadLog(state=state, damage=damage)
        return diagnose(head, read, graph, self._engine.clock.now(), self._engine.limits)

    async def treat(self, ref: SagaRef, *, asked: bool) -> tuple[Examined, tuple[Finding, ...]]:
        """Repair a saga. Return it as it is then, and what was set right. Raises as `examine`.
        Not `asked`: only what no person has to decide.
        """
        examined, treated = await self.examine(ref), dict[str, Finding]()
        for _ in range(TRIES):
            commands = repair(examined.findings, asked=asked)
            if not commands:
                break
            for command in commands:
                if not await self._perform(examined, command):
                    break  # others were first
            found = {one.code: one for one in examined.findings}
            examined = await self.examine(ref)
            left = {one.code for one in examined.findings}
            treated |= {code: one for code, one in found.items() if code not in left}
        for one in treated.values():
            words = {"saga": ref.id, "finding": one.code, "was": one.message, "by": self._by}
            logger.warning("repaired a saga", extra=words)
        return examined, tuple(treated.values())

    async def diagnosis(self, ref: SagaRef, *, repairs: bool) -> Diagnosis:
        """Return the diagnosis of a saga for a caller, after its repair if that is asked for."""
        treated: tuple[Finding, ...] = ()
        try:
            if repairs:
                examined, treated = await self.treat(ref, asked=True)
            else:
                examined = await self.examine(ref)
        except CorruptLog as error:
            found = [_shown(damaged_head(str(error)))]
            return Diagnosis(id=ref.id, status=None, version=0, findings=found, repaired=[])
        state = examined.history.state
        program = self._graphs.get((ref.tenant, state.origin.graph))
        status = examined.head.status
        if isinstance(program, Program) and not is_unread(examined.findings):
            status = status_of(state, program)
        return Diagnosis(
            id=ref.id,
            status=status,
            version=state.version,
            findings=list(map(_shown, examined.findings)),
            repaired=list(map(_shown, treated)),
        )

    async def replay(self, ref: SagaRef) -> Replay:
        """Fold a saga again from entry 1, and decide again. Raises `NotFound`, `TooLarge`, `MissingGraph`."""
        head = await self._head(ref)
        history = History(self._engine.log, self._engine.blobs, self._call, ref)
        time, counts, found = ReadingTime(self._engine.clock, self._call.deadline), [0, 0], None
        program: Program | None = None
        at_snapshot: State | None = None
        try:
            async for before, entry in history.replayed():
                state = history.state
                decided_by = before if before.version else state
                program = await self._scope.catalog.running(ref.tenant, decided_by)
                counts[0] += 1
                if found is None and (both := decided_again(program, before, entry)) is not None:
                    counts[1] += 1
                    found = _divergence("decision", entry.version, *both)
                if state.version == head.snapshot:
                    at_snapshot = state
                if not counts[0] % PAGE:
                    time.check("folded again", head.folded, state.version)
        except Unreadable as error:
            found = found or Divergence(
                at="log",
                version=error.version or history.state.version + 1,
                stored=[str(error)],
                replayed=[],
            )
        state = history.state
        if found is None and at_snapshot is not None:
            stored = await history.snapshot_state(head.branch, head.snapshot)
            if stored is not None and stored != at_snapshot:
                pair = _fields(stored), _fields(at_snapshot)
                found = _divergence("snapshot", head.snapshot, *pair)
        if found is None:
            heads = [one for one in (await self.examine(ref)).findings if one.code != GRAPH_LOST]
            if heads:
                found = Divergence(
                    at="head", version=head.folded, stored=[heads[0].message], replayed=[heads[0].remedy]
                )
        status = head.status if program is None else status_of(state, program)
        return Replay(
            id=ref.id,
            status=status,
            version=state.version,
            folded=counts[0],
            decided=counts[1],
            divergence=found,
        )

    async def page(self, ids: list[str], tenant: str, *, repairs: bool) -> list[Diagnosis]:
        """Return the diagnoses of those of the sagas with findings."""
        slots = asyncio.Semaphore(SIDE_BY_SIDE)

        async def one(id: str) -> Diagnosis | None:
            async with slots:
                try:
                    found = await self.diagnosis(SagaRef(tenant, id), repairs=repairs)
                except NotFound:
                    return None
            return found if found.findings or found.repaired else None

        return [one for one in await asyncio.gather(*map(one, ids)) if one is not None]

    async def _head(self, ref: SagaRef) -> Head:
        head = await self._call(self._engine.log.read_head, ref)
        if head is None:
            raise NotFound(f"there is no saga `{ref.id}`")
        return head

    async def _graph(self, tenant: str, history: History) -> Program | LostGraph | None:
        """Return the program of a graph whose object is there, or what becomes of its document.
        A program that this process remembers does not tell if the object is there.
        """
        state = history.state
        graph = state.origin.graph
        key = tenant, graph
        if (known := self._graphs.get(key)) is None or isinstance(known, LostGraph):
            whole, _ = split_hash(graph)
            try:
                await self._call(self._engine.blobs.get, tenant, f"cas://sha256/{whole}")
                self._graphs[key] = await self._scope.catalog.program(tenant, graph)
            except UnknownEntry:
                return None
            except CorruptLog:
                lost = await self._compiled(tenant, state.origin, whole)
                is_open = state.ended is None and not lost.data
                back = await self._back(history, lost.why) if is_open else None
                return replace(lost, back=back)
        return self._graphs[key]

    async def _back(self, history: History, why: str) -> GraphChanged | None:
        """Return the change to the newest graph that the saga ran before and that fits, if there is one."""
        state, tenant = history.state, history.ref.tenant
        for earlier in reversed(state.graphs):
            try:
                await self._call(self._engine.blobs.get, tenant, SCHEME + split_hash(earlier.graph)[0])
                program = await self._scope.catalog.program(tenant, earlier.graph)
            except CorruptLog:
                continue
            since = [one async for one in _entries_after(history, earlier.last)]
            if can_go_back(state, program, since):
                try:
                    dropped = dropped_outputs(state, program, program)
                    outputs = await outputs_of(history, state, dropped)
                except TooLarge:
                    continue
                return GraphChanged(
                    graph=earlier.graph,
                    workflow=earlier.workflow,
                    document=earlier.document,
                    by=self._by,
                    at=self._engine.clock.now(),
                    reason=f"its graph is lost: {why}",
                    counts=program.counts,
                    outputs=outputs,
                )
        return None

    async def _compiled(self, tenant: str, origin: Origin, graph: str) -> LostGraph:
        """Compile the document of a lost graph again."""
        if origin.document:
            return await self._made(tenant, graph, SCHEME + origin.document, "its patched document")
        name = starter_of(origin.workflow.partition("@")[0])
        found = await self._call(self._engine.store.definitions.versions, tenant, name, VERSIONS)
        definition = next((one for one in found if one.graph == graph), None)
        if definition is None:
            why = f"none of the newest {VERSIONS} versions of `{name}` has this graph"
            return LostGraph(graph=graph, why=why)
        return await self._made(tenant, graph, definition.document, f"`{name}@{definition.version}`")

    async def _made(self, tenant: str, graph: str, document: str, name: str) -> LostGraph:
        try:
            text = (await self._call(self._engine.blobs.get, tenant, document)).decode()
            made = compiler.compile_document(
                text, tools_for(tenant, self._engine.tools), kinds=self._engine.kinds
            )
        except CorruptLog:
            return LostGraph(graph=graph, why=f"the document of {name} is gone, too")
        except UserError as error:
            return LostGraph(
                graph=graph, why=f"{name} does not compile with the deployed tools: {error.detail}"
            )
        data = encode_graph(made)
        if hash_of(data) != graph:
            return LostGraph(graph=graph, why=f"{name} compiles to another graph with the deployed code")
        return LostGraph(graph=graph, data=data)

    async def _perform(self, examined: Examined, command: Command) -> bool:
        """Perform a command. False: another writer was first."""
        head, log, now = examined.head, self._engine.log, self._engine.clock.now()
        match command:
            case MakeDue():
                return await self._call(log.arm, head, now)
            case EndLease():
                due = now + self._engine.limits.clock_skew_ms
                return await self._call(log.take, head.ref, head.owner, now, head.epoch, due) is not None
            case PutGraph(data):
                await self._call(self._engine.blobs.put, head.ref.tenant, data)
                return True
            case GoBack(version, branch, change):
                return await self._append(examined, version, branch, now, (change,))
            case Recover(version, branch, cut, recovery):
                forked = Forked(cut=cut, branch=branch + 1, by=self._by, at=now, reason=recovery.reason)
                return await self._append(examined, version, branch, now, (recovery, forked))

    async def _append(
        self, examined: Examined, version: int, branch: int, now: int, events: tuple[Event, ...]
    ) -> bool:
        entry = Entry(
            version=version,
            branch=branch,
            at=now,
            invocation=self._scope.invocation.id,
            traceparent=self._scope.traceparent(examined.history.state.origin.traceparent),
            events=events,
        )
        head = examined.head
        record = Record(entry.branch, entry.version, encode_entry(entry), expires=head.expires)
        return await self._call(self._engine.log.append, head.ref, record, Wake(v=entry.version)) is not None


async def _entries_after(history: History, version: int) -> AsyncIterator[Entry]:
    """Yield the entries after a version, from the newest on."""
    async with aclosing(history.entries_back(history.state)) as entries:
        async for entry in entries:
            if entry.version <= version:
                return
            yield entry


def _divergence(at: str, version: int, stored: list[str], replayed: list[str]) -> Divergence | None:
    """Return the difference of two lists of facts; None if they are equal."""
    if stored == replayed:
        return None
    return Divergence(
        at=at,
        version=version,
        stored=[one for one in stored if one not in replayed],
        replayed=[one for one in replayed if one not in stored],
    )


def _fields(state: State) -> list[str]:
    """Return the fields of a state as facts, one a line."""
    return [f"{name}={str(value)[:MOST_SHOWN]}" for name, value in asdict(state).items()]


def _shown(found: Finding) -> FoundState:
    return FoundState(
        code=found.code, message=found.message, remedy=found.remedy, repairable=bool(found.commands)
    )


def is_unread(findings: tuple[Finding, ...]) -> bool:
    """Return true if one of the findings keeps the saga from being read."""
    return any(one.code in _UNREAD for one in findings)
