"""Workflow definitions: register, find, and load their programs, each once per process."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.effects.toolspec import ToolSpec
from baton.core.expressions import nearest, with_hint
from baton.core.graph.graph import (
    TAG_NAME,
    Graph,
    decode_graph,
    encode_graph,
    graph_name,
    hash_of,
    inner_graph,
    inner_name,
    split_hash,
    starter_of,
)
from baton.core.limits import DAY_MS, Limits
from baton.core.log.records import Parked
from baton.core.log.state import Origin, State
from baton.core.log.undos import Undoable
from baton.core.nodes.registry import KINDS
from baton.core.on_demand import OnDemand
from baton.errors import CorruptLog, MissingGraph, NotFound, Outdated, UserError
from baton.ports import Blobs, Clock, Definition, Definitions
from baton.ports.functions import WorkflowFunctions
from baton.ports.records import Heard, Tag, TagMove
from baton.runtime.invocation.context import StoreRetrier

if TYPE_CHECKING:
    from baton.core.decide import schema_changes
    from baton.runtime.starting import start
else:
    schema_changes = OnDemand("baton.core.decide.schema_changes")
    start = OnDemand("baton.runtime.starting.start")

PROGRAMS_KEPT = 64
VERSIONS = 100
"""Newest versions of a workflow among which the document of a saga is looked for."""
NEWEST_KEPT_MS, BUSY_MS = 1_000, 200
NAMES_KEPT = 256
MOST_TAGS, MOVES_KEPT = 20, 20
PAST_KEPT = 100  # types of events of earlier versions, the newest
ALL_WORKFLOWS = "/"
"""Name of the record of a tenant's pause. No workflow's name has a slash."""
NAMES_COMPARED = 1_000  # to find the nearest to a wrong one: of more it would take seconds


class Registered(Struct, frozen=True):
    """A registered definition; `is_new` False when the newest version had this content already."""

    definition: Definition
    is_new: bool
    notes: tuple[str, ...] = ()


class _Newest(Struct):
    """The newest definition of a name as it was read, and when it was last asked for."""

    definition: Definition
    read: int
    asked: int


class Catalog:
    """Definitions of all tenants. `through(call)` gives one whose port calls go through `call`.

    A process that is asked for the newest version of a name several times a second reads it once a second:
    one key of the table answers 3,000 strong reads a second. One that is asked less often always reads it.
    """

    def __init__(
        self,
        definitions: Definitions,
        blobs: Blobs,
        clock: Clock,
        call: StoreRetrier | None = None,
        programs: OrderedDict[tuple[str, str], Program] | None = None,
        newest: OrderedDict[tuple[str, str], _Newest] | None = None,
        *,
        limits: Limits | None = None,
        functions: WorkflowFunctions | None = None,
        tools: Mapping[str, ToolSpec] | None = None,
    ) -> None:
        self._functions, self._tools = functions, tools
        self._definitions = definitions
        self._blobs = blobs
        self._clock = clock
        self._call = call
        self._programs = OrderedDict() if programs is None else programs
        self._newest = OrderedDict() if newest is None else newest
        self._limits = limits or Limits()

    def through(self, call: StoreRetrier, functions: WorkflowFunctions | None = None) -> Catalog:
        known = (self._definitions, self._blobs, self._clock, call, self._programs, self._newest)
        return Catalog(*known, limits=self._limits, functions=functions, tools=self._tools)

    @property
    def _io(self) -> StoreRetrier:
        if self._call is None:
            raise RuntimeError("use `through` first")
        return self._call

    async def register(
        self,
        tenant: str,
        by: str,
        text: str,
        graph: Graph,
        first: Callable[[int], Awaitable[None]],
        description: str = "",
    ) -> Registered:
        """Store a document and its graph as the next version, unless the newest is the same.

        `description`: of the change. `first` is called with the number of a version before it is stored, and
        again with the next one if another version gets the number.
        """
        types = graph.events.types if graph.events is not None else ()
        data = encode_graph(graph)
        ref = await self._io(self._blobs.put, tenant, data)
        document = await self._io(self._blobs.put, tenant, text.encode())
        while True:
            newest = await self._io(self._definitions.get, tenant, graph.name)
            if newest is not None and newest.graph == hash_of(data) and newest.document == document:
                await first(newest.version)
                return Registered(newest, is_new=False)
            past = () if newest is None else (*newest.types, *(one[0] for one in newest.heard), *newest.past)
            heard, forgotten = await self._heard(newest, graph)
            there = {*types, *(kind for kind, _, _ in heard)}
            definition = Definition(
                tenant=tenant,
                name=graph.name,
                version=newest.version + 1 if newest else 1,
                graph=ref.rpartition("/")[2],
                document=document,
                created=self._clock.now(),
                by=by,
                types=types,
                past=tuple(one for one in dict.fromkeys(past) if one not in there)[:PAST_KEPT],
                heard=heard,
                pauses=newest.pauses if newest is not None else await self._paused_tenant(tenant),
                mcp=graph.mcp is not None,
                description=description,
            )
            await first(definition.version)
            if await self._io(self._definitions.put, definition):
                self._newest.pop((tenant, graph.name), None)
                return Registered(definition, is_new=True, notes=forgotten)

    async def _heard(self, newest: Definition | None, graph: Graph) -> tuple[Heard, tuple[str, ...]]:
        """Return the `heard` keys of the version after `newest` for sagas of earlier ones, and notes of keys
        that it drops.
        """
        if newest is None or not (newest.types or newest.heard):
            return (), ()
        try:
            before = (await self.graph(newest.tenant, newest.graph)).events
        except MissingGraph:
            before = None  # no saga of it goes on
        now = self._clock.now()
        return start.heard_after(
            newest.heard, before, graph.events, now, now + self._limits.saga_days * DAY_MS
        )

    async def find(self, tenant: str, reference: str) -> Definition:
        """Return the definition of `name` (newest), `name@version`, or `name@tag`.
        Raises `NotFound` with the nearest name.
        """
        name, found, version = reference.partition("@")
        number = int(version) if version.isascii() and version.isdigit() and len(version) < 10 else None
        if not found:
            definition = await self.newest(tenant, name)
        elif number is not None:
            definition = await self._io(self._definitions.get, tenant, name, number)
            if definition is not None and (last := await self.newest(tenant, name)) is not None:
                definition = replace(definition, pauses=last.pauses)
        elif re.fullmatch(TAG_NAME, version):
            definition = await self.newest(tenant, name, version)
        else:
            definition = None
        if definition is not None:
            return definition
        if graph_name(reference):
            whole = starter_of(reference)
            raise NotFound(
                f"`{reference}` is a graph in the document of `{whole}`, which alone starts it; start `{whole}`"
            )
        newest = await self._io(self._definitions.get, tenant, name) if found else None
        if newest is not None and number is None:
            raise await self._no_tag(tenant, name, version)
        if newest is not None:
            raise NotFound(f"workflow `{name}` has no version `{version}`; the newest is {newest.version}")
        names = await self._io(self._definitions.names, tenant, "", NAMES_COMPARED)
        hint = nearest(name, names) or ("register it first: POST /workflows" if not names else "")
        raise NotFound(with_hint(f"there is no workflow `{name}`", hint))

    async def newest(self, tenant: str, name: str, tag: str = "") -> Definition | None:
        """Return the newest definition of a name, or that which a tag names; None where there is none.
        It may be a second old.
        """
        key, now = (tenant, f"{name}@{tag}" if tag else name), self._clock.now()
        known = self._newest.get(key)
        if known is not None and now - known.asked <= BUSY_MS and now - known.read < NEWEST_KEPT_MS:
            known.asked = now
            return known.definition
        read = self._io(self._definitions.get, tenant, name) if not tag else self._tagged(tenant, name, tag)
        definition = await read
        if definition is not None:
            self._newest[key] = _Newest(definition, now, now)
            self._newest.move_to_end(key)
            if len(self._newest) > NAMES_KEPT:
                self._newest.popitem(last=False)
        return definition

    async def _tagged(self, tenant: str, name: str, tag: str) -> Definition | None:
        """Return the version that a tag names now; None for a tag that is not set."""
        found = await self._io(self._definitions.tag, tenant, name, tag)
        if found is None or not found.version:
            return None
        return replace(await self.find(tenant, f"{name}@{found.version}"), tag=tag)

    async def _no_tag(self, tenant: str, name: str, tag: str) -> NotFound:
        names = [one.name for one in await self.tags(tenant, name)]
        hint = nearest(tag, names) or f"set it: baton tag {name} {tag} VERSION"
        return NotFound(with_hint(f"workflow `{name}` has no tag `{tag}`", hint))

    async def tags(self, tenant: str, name: str) -> list[Tag]:
        """Return the tags of a workflow that name a version."""
        return [one for one in await self._io(self._definitions.tags, tenant, name) if one.version]

    async def tag(self, tenant: str, name: str, tag: str) -> Tag:
        """Return a tag with its history, also one that is deleted. Raises `NotFound`."""
        found = await self._io(self._definitions.tag, tenant, name, tag)
        if found is None:
            await self.find(tenant, name)
            raise await self._no_tag(tenant, name, tag)
        return found

    async def move_tag(
        self, tenant: str, name: str, tag: str, move: TagMove, was: int | None
    ) -> tuple[Tag, bool]:
        """Set a tag to a version, or delete it (version 0); (the tag, true if it has changed).

        `was`: the version that the caller saw, 0 if none; None: any. Repeated, a no-op.
        Raises `NotFound`, and `Outdated` with the version that it names now.
        """
        await self.find(tenant, f"{name}@{move.version}" if move.version else name)
        while True:
            there = await self._io(self._definitions.tag, tenant, name, tag)
            now = there.version if there is not None else 0
            if there is not None and now == move.version:
                return there, False
            if was is not None and now != was:
                is_now = f"names version {now}" if now else "is not set"
                seen = f"version {was}" if was else "a tag that is not set"
                raise Outdated(f"tag `{tag}` of `{name}` {is_now} now, and the request was made for {seen}")
            if there is None and not move.version:
                raise await self._no_tag(tenant, name, tag)
            if there is None and len(await self._io(self._definitions.tags, tenant, name)) >= MOST_TAGS:
                raise UserError(f"a workflow has at most {MOST_TAGS} tags: move one that is there")
            writes, moves = (1, ()) if there is None else (there.writes + 1, there.moves)
            after = Tag(
                tenant=tenant, workflow=name, name=tag, writes=writes, moves=(move, *moves)[:MOVES_KEPT]
            )
            if await self._io(self._definitions.write_tag, after):
                self._newest.pop((tenant, f"{name}@{tag}"), None)
                return after, True

    async def _paused_tenant(self, tenant: str) -> tuple[Parked, ...]:
        """Return the pause with which a workflow is registered for the first time."""
        known = await self._io(self._definitions.get, tenant, ALL_WORKFLOWS)
        return () if known is None else known.pauses

    async def set_pause(self, tenant: str, name: str, code: str, pause: Parked | None) -> None:
        """Begin a pause of a workflow's new sagas, or (None) end that of the code. Repeated, a no-op.
        Raises `NotFound`.

        ALL_WORKFLOWS: of those that are registered for the first time from now on.
        """
        while True:
            newest = await self._io(self._definitions.get, tenant, name)
            if newest is None and name != ALL_WORKFLOWS:
                newest = await self.find(tenant, name)
            seen = newest or Definition(
                tenant=tenant, name=name, version=0, graph="", document="", created=0, by=""
            )
            is_held = any(one.code == code for one in seen.pauses)
            if is_held == (pause is not None):
                return
            kept = tuple(one for one in seen.pauses if one.code != code)
            after = kept if pause is None else (*kept, pause)
            if await self._io(self._definitions.write_pauses, seen, after):
                self._newest.pop((tenant, name), None)
                return

    async def names(self, tenant: str, after: str, limit: int) -> Sequence[str]:
        """Return the names of a tenant's workflows above `after`."""
        return await self._io(self._definitions.names, tenant, after, limit)

    async def page(self, tenant: str, after: str, limit: int) -> tuple[list[Definition], str]:
        """Return the newest definition of each of `limit` names above `after`, and the last name if more
        follow.
        """
        names = await self._io(self._definitions.names, tenant, after, limit + 1)
        found = await asyncio.gather(
            *(self._io(self._definitions.get, tenant, name) for name in names[:limit])
        )
        # A crash while a name was first registered can leave it without a version.
        last = names[limit - 1] if len(names) > limit else ""
        return [definition for definition in found if definition is not None], last

    async def versions(self, tenant: str, name: str, limit: int) -> list[Definition]:
        """Return the newest versions of a workflow, or of a graph in its document."""
        whole, inner = starter_of(name), graph_name(name)
        found = await self._io(self._definitions.versions, tenant, whole, limit)
        return [_inner(one, inner) if inner else one for one in found]

    async def shown(self, tenant: str, name: str, version: str = "") -> tuple[Definition, Graph]:
        """Return a version of a workflow, or of a graph in its document. Raises `NotFound`."""
        whole, inner = starter_of(name), graph_name(name)
        definition = await self.find(tenant, f"{whole}@{version}" if version else whole)
        graph = await self.graph(tenant, definition.graph)
        if not inner:
            return definition, graph
        if inner not in graph.graphs:
            hint = nearest(inner, graph.graphs)
            raise NotFound(with_hint(f"the document of `{whole}` has no graph `{inner}`", hint))
        return _inner(definition, inner), graph.graphs[inner]

    async def document(self, definition: Definition) -> str:
        """Return the registered text. Raises `CorruptLog` when its blob is gone."""
        return (await self._io(self._blobs.get, definition.tenant, definition.document)).decode()

    async def document_of(self, tenant: str, origin: Origin) -> str:
        """Return the document of the graph that a saga runs. Raises `NotFound`, and `CorruptLog` when its
        blob is gone.
        """
        if origin.document:
            return (await self._io(self._blobs.get, tenant, f"cas://sha256/{origin.document}")).decode()
        name = origin.workflow.partition("@")[0]
        found = await self.versions(tenant, name, VERSIONS)
        definition = next((one for one in found if one.graph == origin.graph), None)
        if definition is None:
            raise NotFound(f"none of the newest {VERSIONS} versions of `{name}` has the graph of this saga")
        return await self.document(definition)

    async def startable(self, tenant: str, reference: str, by: str) -> tuple[Definition, Program]:
        """Return the target that a saga with the graph `by` starts: a workflow, or a named graph of its own
        document.

        A named graph is of the saga's own version. Raises `NotFound`.
        """
        if not (name := graph_name(reference)):
            definition = await self.find(tenant, reference)
            return definition, await self.program(tenant, definition.graph)
        ref = inner_graph(by, name)
        own = Definition(tenant=tenant, name=reference, version=0, graph=ref, document="", created=0, by="")
        return own, await self.program(tenant, ref)

    async def graph(self, tenant: str, graph_hash: str) -> Graph:
        return (await self.program(tenant, graph_hash)).graph

    async def program(self, tenant: str, graph_hash: str) -> Program:
        """Return the program of a graph. Raises `MissingGraph` when its blob is gone."""
        key = (tenant, graph_hash)
        if (program := self._programs.get(key)) is not None:
            self._programs.move_to_end(key)
        else:
            whole, inner = split_hash(graph_hash)
            try:
                data = await self._io(self._blobs.get, tenant, f"cas://sha256/{whole}")
            except CorruptLog as error:
                raise MissingGraph(f"its graph cannot be had: {error}") from error
            program = self._programs[key] = program_of(data, self._limits, inner)
            if self._functions is not None and any(node.function for node in program.graph.nodes):
                program = self._programs[key] = _completed(program, self._functions, self._limits.pins)
            if (tools := self._tools) is not None and program.has_other_schemas(tools):
                unfit = schema_changes.unfit_results(program.graph, program.paths(), tools, program.build)
                program = self._programs[key] = program.with_unfit(unfit)
            if len(self._programs) > PROGRAMS_KEPT:
                self._programs.popitem(last=False)
        return program

    async def running(self, tenant: str, state: State, *, is_reader: bool = False) -> Program:
        """Return the program that a saga runs. It knows those before if effects under them may be undone, or
        for a reader of the whole log.
        """
        program = await self.program(tenant, state.origin.graph)
        if not state.graphs or not (is_reader or state.undo != Undoable()):
            return program
        graphs = dict.fromkeys(one.graph for one in state.graphs)
        found = await asyncio.gather(*(self._earlier(tenant, one, program) for one in graphs))
        programs = dict(zip(graphs, found, strict=True))
        return program.with_earlier([(one.last, programs[one.graph]) for one in state.graphs])

    async def _earlier(self, tenant: str, graph: str, present: Program) -> Program:
        """Return the program of a graph that a saga ran before; of one that is lost, the present program."""
        try:
            return await self.program(tenant, graph)
        except MissingGraph:
            return present


def _inner(definition: Definition, graph: str) -> Definition:
    """Return the definition that stands for a graph in the document of a definition."""
    name = inner_name(definition.name, graph)
    return replace(definition, name=name, graph=inner_graph(definition.graph, graph))


def _completed(program: Program, functions: WorkflowFunctions, pins: str) -> Program:
    """Return the program with the tools that the deployed code of its functions names, too.

    `pins`: the build with which a saga stays that is one function.
    """
    graph = functions.complete(program.graph)
    if pins and len(graph.nodes) == 1 and (parts := graph.nodes[0].function) is not None:
        node = replace(graph.nodes[0], function=replace(parts, build=pins))
        graph = replace(graph, nodes=(node,))
    if graph is program.graph:
        return program
    return _program(graph, program.graphs, program.limits)


def program_of(data: bytes, limits: Limits, inner: str = "") -> Program:
    """Return the program of a graph's bytes, or of the named graph in it."""
    graph = decode_graph(data, KINDS)
    whole = graph.graphs[inner] if inner else graph
    return _program(whole, graph.graphs, limits)


def _program(graph: Graph, graphs: Mapping[str, Graph], limits: Limits) -> Program:
    return Program(
        graph,
        KINDS,
        limits.saga_hops,
        limits.clock_skew_ms,
        graphs,
        limits.build,
        limits.step_timeout_ms,
        limits,
    )
