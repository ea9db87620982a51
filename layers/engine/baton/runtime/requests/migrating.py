"""Migration of sagas to another version of their workflow: the check, and the entry with the change of graph.

Which sagas and how many at once is in steering.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from baton.core.decide.carrying import carry_problems, dropped_outputs
from baton.core.decide.program import Program
from baton.core.expressions import nearest, with_hint
from baton.core.graph.graph import graph_name
from baton.core.log.events import GraphChanged
from baton.core.log.slots import Slot
from baton.core.log.state import State
from baton.errors import NotAllowedNow, Problem, UserError
from baton.ports import Wake
from baton.runtime.engine.request import Opened, Request
from baton.runtime.log.history import outputs_of
from baton.runtime.requests.patching import check_state, may_be_running
from baton.runtime.starting.catalog import Catalog

VERSIONS = 100
"""Newest versions by whose graphs the version of a saga is found."""
_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """Migration as a caller asks for it.

    `to`: a version, or a tag. `names`: new names of nodes by the old ones. `of`: versions whose sagas are
    migrated; empty: all others.
    """

    to: str
    names: Mapping[str, str] = field(default_factory=dict)
    of: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """Version that sagas are migrated to. `versions`: those of the workflow by their graphs."""

    workflow: str
    version: int
    graph: str
    program: Program
    versions: Mapping[str, int]

    def version_of(self, state: State) -> int:
        """Return the version whose graph a saga runs; 0: that of a patch, or of an old version."""
        return self.versions.get(state.origin.graph, 0)


async def target_of(catalog: Catalog, tenant: str, workflow: str, wanted: Migration) -> Target:
    """Return the version to migrate to. Raises `NotFound`, and `UserError` for one of a function or for names
    that it does not have.
    """
    definition = await catalog.find(tenant, f"{workflow}@{wanted.to}")
    program = await catalog.program(tenant, definition.graph)
    if any(node.work.function is not None for node in program.graph.nodes):
        raise UserError(f"`{workflow}@{definition.version}` runs a Python function: deploy its code instead")
    for name in wanted.names.values():
        if name not in program.nodes:
            hint = nearest(name, program.nodes)
            raise UserError(with_hint(f"`{workflow}@{definition.version}` has no node `{name}`", hint))
    if len(set(wanted.names.values())) < len(wanted.names):
        raise UserError("two nodes cannot become one: give each its own name in `map`")
    known = await catalog.versions(tenant, workflow, VERSIONS)
    versions = {one.graph: one.version for one in reversed(known)}
    return Target(workflow, definition.version, definition.graph, program, versions)


def is_to_migrate(state: State, target: Target, of: Collection[int]) -> bool:
    """Return true for an open saga of another version than the target, and of one of these."""
    origin = state.origin
    if state.ended is not None or graph_name(origin.workflow) or origin.graph == target.graph:
        return False
    return not of or target.version_of(state) in of


async def migrate_saga(
    request: Request, opened: Opened, target: Target, wanted: Migration, *, dry_run: bool
) -> bool:
    """Put a saga on the graph of the target by one entry. Return true if this call has done so.
    Raises `NotAllowedNow` with the reasons why it cannot go on there.
    """
    history = opened.history
    while True:
        state, old, new = history.state, opened.program, target.program
        if not is_to_migrate(state, target, wanted.of):
            return False
        check_state(opened)
        own = {node.name for node in old.graph.nodes}
        names = {name: after for name, after in wanted.names.items() if name in own}
        problems = [*_renamed_problems(state, names, own)]
        problems += carry_problems(
            state, old, new, may_run=await may_be_running(request, opened), renamed=names
        )
        if problems:
            more = f"; and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
            said = "; ".join(_sentence(one) for one in problems[:_NAMED])
            raise NotAllowedNow(f"{said}{more}", tuple(problems))
        if dry_run:
            return False
        now = request.engine.clock.now()
        change = GraphChanged(
            graph=target.graph,
            workflow=state.origin.workflow,
            by=request.caller.by,
            at=now,
            reason=f"migrated to `{target.workflow}@{target.version}`",
            outputs=await outputs_of(history, state, dropped_outputs(state, old, new, names)),
            counts=new.counts,
            renamed=names,
        )
        entry = request.entry(history, change, now)
        if await history.append(entry, wake=Wake(v=entry.version)):
            return True
        await history.catch_up()
        opened.program = await request.program_of(history)


def _renamed_problems(state: State, names: Mapping[str, str], own: Collection[str]) -> Iterator[Problem]:
    """Yield the nodes that get the name of another one, and those at work that get another name: their calls,
    children and questions have the old one. `own`: the nodes of the present graph.
    """
    for name, after in sorted(names.items()):
        if after in own and after not in names:
            said = f"`{name}` cannot be named `{after}`: the saga's graph has a node of that name"
            yield Problem(f"/nodes/{after}", said, "use a name in the new version that the graph has not")
    at_work = {Slot.parse(slot).node for slot in (*state.open, *state.items, *state.failing, *state.held)}
    for name in sorted(at_work & names.keys()):
        if names[name] != name:
            said = f"`{name}` has begun and keeps its name until it ends"
            yield Problem(f"/nodes/{names[name]}", said, "migrate the saga after that")


def _sentence(problem: Problem) -> str:
    return f"{problem.message} ({problem.suggestion})" if problem.suggestion else problem.message
