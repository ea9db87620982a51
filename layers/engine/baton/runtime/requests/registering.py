"""A document becomes a registered workflow: compiled, held against the children that it starts, stored.

Here are the checks against the store of definitions; those of a document by itself are in
core/documents/compile. Only the API imports this: compiling takes libraries that the worker does without.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from baton.core.documents import changes
from baton.core.documents.compile import children_of, compile_document, notes_of
from baton.core.effects.toolspec import tools_for
from baton.core.graph.graph import Cap, Graph, encode_graph, hash_of
from baton.core.on_demand import OnDemand
from baton.core.read.definition_views import graph_view
from baton.errors import InvalidDefinition, InvalidInput, MissingGraph, NotFound, Outdated, TooLarge
from baton.ports import Definition
from baton.runtime.engine.parts import Engine, InvocationScope
from baton.runtime.engine.request import Caller
from baton.runtime.requests.schedules import update_schedule
from baton.runtime.starting.catalog import Catalog, Registered

if TYPE_CHECKING:
    from baton.runtime.requests import events
else:
    events = OnDemand("baton.runtime.requests.events")


@dataclass(frozen=True, slots=True)
class Change:
    """Change of a version, which is the newest. `dry_run`: nothing is stored."""

    of: Definition
    description: str
    dry_run: bool

    def check_name(self, graph: Graph) -> None:
        """Raise `InvalidInput` if the change renames the workflow."""
        if graph.name != self.of.name:
            raise InvalidInput(
                f"a patch of `{self.of.name}` cannot rename it: register the document as `{graph.name}`"
            )

    def check(self, version: int) -> None:
        """Raise `Outdated` if the change would become, or equal, another version than the next one."""
        if version not in (self.of.version, self.of.version + 1):
            raise outdated(self.of.name, version - 1, self.of.version)

    def planned(self, graph: Graph) -> Definition:
        """Return the definition that the change would make."""
        number = self.of.version + 1
        return replace(self.of, version=number, graph=hash_of(encode_graph(graph)))


def outdated(name: str, newest: int, made_for: int) -> Outdated:
    """Return the refusal of a patch of a version that is not the newest."""
    return Outdated(
        f"the newest version of `{name}` is {newest}, and the patch was made for {made_for}: make it for {newest}"
    )


MAX_DOCUMENT = 1_048_576
MOST_BREAKING = 20
MOST_CHILDREN = 50  # that are looked up to say what is wrong with them


async def compile_for(
    scope: InvocationScope, engine: Engine, caller: Caller, text: str, *, json_only: bool = False
) -> tuple[Graph, list[str]]:
    """Return the graph of a document for a tenant, and notes about it.
    Raises `TooLarge`, `MalformedDocument`, and `InvalidDefinition` also for input that a version of a child
    refuses.

    A child that is named without a version, or by a tag, may be another one tomorrow, and may be registered
    after its parent: its present problems are notes.
    """
    if len(text.encode()) > MAX_DOCUMENT:
        raise TooLarge(f"a workflow document has at most {MAX_DOCUMENT} bytes")
    catalog = scope.catalog
    tools = tools_for(caller.tenant, engine.tools)
    # A store that is slow, or other processes that are busy, say nothing of the document.
    worked = engine.meter.worked if engine.meter else engine.clock.now
    until = worked() + engine.limits.compile_ms

    def compiled(children: Mapping[str, Any] | None = None) -> Graph:
        graph = compile_document(
            text,
            tools,
            json_only=json_only,
            children=children,
            kinds=engine.kinds,
            has_time=lambda: worked() < until,
            limits=engine.limits,
        )
        most = engine.limits.saga_timeout_ms
        if not most or "wall_time" in graph.limits:
            return graph
        return replace(graph, limits={**graph.limits, "wall_time": Cap(most=most)})

    graph = compiled()
    unknown, notes = await _notes_of_children(catalog, caller.tenant, graph, compiled)
    invocation = engine.limits.worker_timeout_s * 1_000
    return graph, [*notes_of(graph, tools, invocation_ms=invocation, unknown=unknown), *notes]


async def register_workflow(
    scope: InvocationScope,
    engine: Engine,
    caller: Caller,
    text: str,
    *,
    json_only: bool,
    change: Change | None = None,
) -> Registered:
    """Register a document. Raises as `compile_for`, and `Outdated` for a `change` of another version."""
    catalog, call = scope.catalog, scope.call
    graph, notes = await compile_for(scope, engine, caller, text, json_only=json_only)
    if change is not None:
        change.check_name(graph)
    if change is not None and change.dry_run:
        notes += await _breaking(catalog, change.of, graph)
        return Registered(change.planned(graph), is_new=True, notes=tuple(notes))

    async def first(version: int) -> None:
        if change is not None:
            change.check(version)
        if graph.events is not None:
            rules = engine.store.subscriptions, call, caller.tenant, caller.user
            await events.subscribe(*rules, graph.name, version, graph.events)

    stored = await catalog.register(
        caller.tenant, caller.by, text, graph, first, change.description if change else ""
    )
    if stored.definition.past:
        await events.unsubscribe(engine.store.subscriptions, call, stored.definition, engine.clock.now())
    notes += stored.notes
    if (number := stored.definition.version) > 1:
        before = await catalog.find(caller.tenant, f"{graph.name}@{number - 1}")
        notes += await _breaking(catalog, before, graph)
    notes += await update_schedule(engine, call, stored.definition, caller.user, graph.schedule)
    return replace(stored, notes=tuple(notes))


async def _breaking(catalog: Catalog, before: Definition, graph: Graph) -> list[str]:
    """Return the breaking changes of a graph since the version before, as notes."""
    try:
        old = await catalog.graph(before.tenant, before.graph)
    except MissingGraph:
        return []  # no saga of it goes on
    found = changes.version_changes(graph_view(old), graph_view(graph), (old.output, graph.output))
    said = [
        f"breaking, since version {before.version}: {one.message} (at {one.path})"
        for one in found
        if one.is_breaking
    ]
    return said[:MOST_BREAKING]


async def _notes_of_children(
    catalog: Catalog, tenant: str, graph: Graph, compiled: Callable[[Mapping[str, Any]], Graph]
) -> tuple[dict[str, str], list[str]]:
    """Return what is wrong with children that are not found, and notes about the inputs of others.
    Raises `InvalidDefinition` for input that a version of a child refuses.
    """
    taken, unknown = await _children(catalog, tenant, graph)
    for_ever = {child: schema for child, schema in taken.items() if child.partition("@")[2].isdigit()}
    if for_ever:
        compiled(for_ever)
    if len(for_ever) < len(taken):
        try:
            compiled(taken)
        except InvalidDefinition as error:
            said = "with the child as it is registered now"
            return unknown, [f"{said}: {one.message} (at {one.path})" for one in error.problems]
    return unknown, []


async def _children(catalog: Catalog, tenant: str, graph: Graph) -> tuple[dict[str, Any], dict[str, str]]:
    """Return, by reference, the input schemas of the children that exist, and the notes about the others."""
    references = [child for child in children_of(graph) if child != graph.name][:MOST_CHILDREN]
    found = await asyncio.gather(*(_child(catalog, tenant, child) for child in references))
    both = list(zip(references, found, strict=True))
    taken = {child: its.input_schema for child, its in both if isinstance(its, Graph)}
    if graph.name in children_of(graph):
        taken[graph.name] = graph.input_schema  # that is the newest version then
    return taken, {child: its for child, its in both if isinstance(its, str)}


async def _child(catalog: Catalog, tenant: str, reference: str) -> Graph | str:
    try:
        definition = await catalog.find(tenant, reference)
    except NotFound as error:
        return error.detail
    return await catalog.graph(tenant, definition.graph)
