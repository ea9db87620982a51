"""Patches of a saga: its own document is changed, compiled anew, and its graph replaced by one entry.

A patch is checked as registering checks a document, and by `carry_problems`. Its caller may register
workflows, so a patch needs no rules of its own for limits, approvals and allowed tools. That of an agent has
rules, in core/graph/patches.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from baton.core.decide.carrying import carry_problems, dropped_outputs, still_to_run
from baton.core.decide.program import Program
from baton.core.documents.changes import patched_text
from baton.core.documents.text import parse_document
from baton.core.effects.operations import NOT_LISTED
from baton.core.failures.codes import INPUT_INVALID
from baton.core.graph.graph import Graph, Node, encode_graph, graph_name, hash_of, split_hash
from baton.core.graph.patches import PATHS, operation_problems, patched_problems, visible_values
from baton.core.log.codec import PERIOD, SCHEME
from baton.core.log.events import GraphChanged, Value
from baton.core.log.folding.received import fingerprint
from baton.core.log.state import CHANGE_KEY, State, status_of
from baton.core.read.answers import Status, Version, View
from baton.errors import KeyReused, NotAllowedNow, NotFound, Outdated, Problem, UserError
from baton.ports import SagaRef, StepContext, StepFailure, Wake
from baton.runtime.engine.parts import Engine
from baton.runtime.engine.request import Caller, Opened, Request
from baton.runtime.log.history import outputs_of
from baton.runtime.requests.registering import compile_for
from baton.runtime.starting.catalog import program_of

_OWN = ("name", "schedule", "events", "mcp")
"""Fields that say when sagas of a workflow start: they belong to the workflow."""
_DERIVED = frozenset(
    {"name", "before", "after", "loops", "tool_version", "schema_hash", "effect", "timed", "verified"}
)
_WORDS = {"arguments": "with", "asks": "human", "each": "map", "output_schema": "output_schema"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """Patch as a caller sends it. `operations` None: back to the graph before the last change.

    `made_for`: hash of the graph, or a version of the log, for which it was made.
    """

    operations: list[dict[str, Any]] | None
    made_for: str | int
    description: str = ""
    dry_run: bool = False


class PatchProblem(View):
    """A reason why a saga cannot take a patch."""

    path: Annotated[str, "JSON Pointer into the patched document."]
    message: str
    suggestion: str


class PatchedSaga(View):
    """A saga and what a patch changes in its graph."""

    id: str
    status: Status
    version: Version
    changed: Annotated[bool, "True if this request has changed the graph."]
    graph: Annotated[str, "Hash of the graph that the patch makes."]
    changes: Annotated[list[str], "Changes of the graph in words."]
    notes: Annotated[list[str], "Changes without effect, and what has the saga go on."]
    problems: Annotated[list[PatchProblem], "Of a dry run: the reasons why the saga cannot take the patch."]


@dataclass(frozen=True, slots=True)
class _Made:
    """Graph that a patch makes of the document of the graph `of`."""

    of: str
    program: Program
    graph: bytes
    text: str
    document: str
    notes: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        return hash_of(self.graph)


async def patch_saga(request: Request, saga: str, wanted: Patch, key: str) -> PatchedSaga:
    """Patch a saga. A repeated key changes nothing.

    Raises `Outdated` for a patch that was made for another graph, `InvalidDefinition` with the problems of
    the new document, and `NotAllowedNow` with the reasons why the saga cannot take it.
    """
    opened = await request.open(saga)
    history, made = opened.history, None
    value, blob = request.unstored(history, wanted.operations, "a patch")
    while True:
        state = history.state
        if key and (known := state.keys.get(CHANGE_KEY + key)):
            if known != fingerprint(value):
                raise KeyReused("this key was used with another patch")
            return _answer(opened, state.origin.graph)
        check_state(opened)
        _check_graph(state, wanted.made_for)
        if made is None or made.of != state.origin.graph:
            made = await _made(request, opened, wanted)
        old, new = opened.program, made.program
        changes, notes = changes_of(old.graph, new.graph), [*made.notes, *_notes(state, old, new)]
        problems = [*_own_problems(old.graph, new.graph)]
        problems += carry_problems(state, old, new, may_run=await may_be_running(request, opened))
        if wanted.dry_run or not (problems or changes):
            return _answer(opened, made.hash, changes, notes, problems)
        if problems:
            first = problems[0]
            raise NotAllowedNow(f"the saga cannot go on so; {first.path}: {first.message}", tuple(problems))
        if blob:
            await request.parts.call(
                request.engine.blobs.put, request.caller.tenant, blob, value.ref.partition(PERIOD)[2]
            )
        if await _append(request, opened, made, wanted, value, key):
            if (parked := state.parked) is not None:
                held = "paused" if parked.is_pause else "parked"
                notes.append(f"the saga is {held}: `baton resume {saga}` lets it go on")
            return _answer(opened, made.hash, changes, notes, is_changed=True)
        await history.catch_up()
        opened.program = await request.program_of(history)


async def _append(
    request: Request, opened: Opened, made: _Made, wanted: Patch, patch: Value, key: str
) -> bool:
    """Append the change, after its blobs. Return false if another entry came first."""
    history, engine, tenant = opened.history, request.engine, request.caller.tenant
    state, call = history.state, request.parts.call
    outputs = await outputs_of(history, state, dropped_outputs(state, opened.program, made.program))
    await call(engine.blobs.put, tenant, made.graph)
    if made.text:
        await call(engine.blobs.put, tenant, made.text.encode())
    now = engine.clock.now()
    changed = GraphChanged(
        graph=made.hash,
        workflow=state.origin.workflow,
        document=made.document,
        by=request.caller.by,
        at=now,
        reason=wanted.description,
        key=key,
        patch=None if wanted.operations is None else patch,
        outputs=outputs,
        counts=made.program.counts,
    )
    entry = request.entry(history, changed, now)
    return await history.append(entry, wake=Wake(v=entry.version))


def check_state(opened: Opened) -> None:
    """Raise `NotAllowedNow` for a saga whose graph cannot be changed at all."""
    state, graph = opened.history.state, opened.program.graph
    origin = state.origin
    if state.ended is not None:
        raise NotAllowedNow(
            f"the saga has ended: {status_of(state)}; fork it to go on from an earlier version"
        )
    if state.is_stopping:
        raise NotAllowedNow("the saga is about to end: nothing of it begins any more")
    if graph_name(origin.workflow) or split_hash(origin.graph)[1]:
        parent = SagaRef.parse(origin.parent).id if origin.parent else origin.saga
        raise NotAllowedNow(
            f"it runs a graph in the document of another saga: patch `{parent}`; what begins after that uses the new one"
        )
    if any(node.work.function is not None for node in graph.nodes):
        raise NotAllowedNow("it runs a Python function, which has no document: deploy the changed code")


def _check_graph(state: State, made_for: str | int) -> None:
    """Raise `Outdated` for a patch of another graph than the saga runs."""
    present = state.origin.graph
    if isinstance(made_for, int):
        if made_for > state.version:
            raise NotFound(
                f"`{state.origin.saga}` has no version {made_for}: its newest one is {state.version}"
            )
        was = next((one.graph for one in state.graphs if made_for <= one.last), present)
    else:
        was = present if present.startswith(made_for) else made_for
    if was != present:
        since = f" since version {state.graphs[-1].last + 1}" if state.graphs else ""
        raise Outdated(
            f"the patch was made for graph {was[:12]}, and the saga runs {present[:12]}{since}: make it for that"
        )


async def may_be_running(request: Request, opened: Opened) -> bool:
    """Return true if a worker may run steps of the saga: not if the log holds it back, and the last worker
    has read that and let go.
    """
    state = opened.history.state
    if state.parked is None:
        return True
    head = await request.parts.call(request.engine.log.read_head, opened.head.ref)
    return head is None or bool(head.owner) or head.folded != state.version


async def _made(request: Request, opened: Opened, wanted: Patch) -> _Made:
    """Return the graph that the patch makes. Raises `UserError`, `InvalidDefinition`."""
    state, engine, scope = opened.history.state, request.engine, request.parts
    tenant, catalog = request.caller.tenant, scope.catalog
    if wanted.operations is None:
        if not state.graphs:
            raise NotAllowedNow("the graph of this saga has not changed: nothing is to be undone")
        before = state.graphs[-1]
        program = await catalog.program(tenant, before.graph)
        data = await scope.call(engine.blobs.get, tenant, SCHEME + before.graph)
        return _Made(state.origin.graph, program, data, "", before.document)
    text = patched_text(await catalog.document_of(tenant, state.origin), wanted.operations)
    graph, notes = await compile_for(scope, engine, request.caller, text)
    data = encode_graph(graph)
    if any(node.work.function is not None for node in graph.nodes):
        raise NotAllowedNow("a patch adds no Python function: deploy a new version of the workflow")
    program = program_of(data, engine.limits)
    return _Made(state.origin.graph, program, data, text, hash_of(text.encode()), tuple(notes))


def _own_problems(old: Graph, new: Graph) -> list[Problem]:
    """Return the fields of a workflow that a patch of a saga changes."""
    return [
        Problem(
            f"/{name}", "it belongs to the workflow, not to a saga", "register a new version of the workflow"
        )
        for name in _OWN
        if getattr(old, name) != getattr(new, name)
    ]


def changes_of(old: Graph, new: Graph) -> list[str]:
    """Return the changes of a graph in words."""
    before, after = ({node.name: node for node in graph.nodes} for graph in (old, new))
    changes = [f"adds `{name}`{_after(after[name])}" for name in after if name not in before]
    changes += [f"removes `{name}`" for name in before if name not in after]
    for name in after.keys() & before.keys():
        one, other = before[name], after[name]
        if fields := _fields(one, other):
            changes.append(f"changes {fields} of `{name}`")
        if set(one.before) != set(other.before):
            changes.append(f"`{name}` comes{_after(other) or ' first'}")
    rest = [name for name in old.__struct_fields__ if getattr(old, name) != getattr(new, name)]
    changes += [f"changes `{name}`" for name in rest if name != "nodes"]
    if not changes and encode_graph(old) != encode_graph(new):
        changes.append("takes the tools and rules that are deployed now")
    return sorted(changes)


def _after(node: Node) -> str:
    return f" after {' and '.join(f'`{name}`' for name in node.before)}" if node.before else ""


def _fields(old: Node, new: Node) -> str:
    names = (name for name in old.__struct_fields__ if name not in _DERIVED)
    differ = dict.fromkeys(
        _WORDS.get(name, name) for name in names if getattr(old, name) != getattr(new, name)
    )
    return " and ".join(f"`{name}`" for name in differ)


def _notes(state: State, old: Program, new: Program) -> list[str]:
    """Return the changes without effect: of nodes whose place the saga has passed."""
    ahead, notes = still_to_run(state, old, new), list[str]()
    for node in new.graph.nodes:
        name, before = node.name, old.nodes.get(node.name)
        if name in ahead or (before is not None and not _fields(before, node)):
            continue
        if any(tail in ahead for tail in node.loops):
            notes.append(f"`{name}` is as the patch says from the next round of its loop on")
        elif before is None:
            notes.append(f"adds `{name}`, whose place the saga has passed: it does not run")
        else:
            notes.append(f"changes `{name}`, which has run: it does not run again")
    return notes


def _answer(
    opened: Opened,
    graph: str,
    changes: Sequence[str] = (),
    notes: Sequence[str] = (),
    problems: Sequence[Problem] = (),
    *,
    is_changed: bool = False,
) -> PatchedSaga:
    state = opened.history.state
    return PatchedSaga(
        id=state.origin.saga,
        status=status_of(state, opened.program),
        version=state.version,
        changed=is_changed,
        graph=graph,
        changes=list(changes),
        notes=list(notes),
        problems=[PatchProblem(one.path, one.message, one.suggestion) for one in problems],
    )


# ---- agents

_MOST_PROBLEMS = 30
_BY = "agent"


async def patch_own_saga(
    engine: Engine, arguments: Mapping[str, Any], context: StepContext
) -> dict[str, Any]:
    """Apply a patch once for each idempotency key. Return the values at the paths of the list, `applied`:
    there was anything to change, and `notes` on what has no effect, if there are any.
    Raises `StepFailure` with all problems.
    """
    caller = Caller(tenant=context.tenant, user=context.user, request=_BY, session=f"{_BY} {context.node}")
    request = Request(engine, caller, context.deadline_ms)
    try:
        return await _patched_by_agent(request, arguments, context)
    except UserError as error:
        raise _refusal(INPUT_INVALID, error.detail, error.problems) from error


async def _patched_by_agent(
    request: Request, arguments: Mapping[str, Any], context: StepContext
) -> dict[str, Any]:
    own, paths, operations = context.node, arguments[PATHS], arguments["operations"]
    opened = await request.open(context.saga)
    state = opened.history.state
    text = await request.parts.catalog.document_of(context.tenant, state.origin)
    document = parse_document(text).value
    is_applied, notes = CHANGE_KEY + context.idempotency_key in state.keys, {}
    if operations and not is_applied:
        if problems := [*operation_problems(paths, own, operations)]:
            raise _refusal(NOT_LISTED, "the agent may not patch that", problems)
        text = patched_text(text, operations)
        before, document = document, parse_document(text).value
        graph, _ = await compile_for(request.parts, request.engine, request.caller, text)
        graphs = opened.program.graph, graph
        if problems := [*patched_problems(before, document, graphs, own)]:
            raise _refusal(NOT_LISTED, "the agent may not patch that", problems)
        wanted = Patch(
            operations=[*operations], made_for=state.origin.graph, description=arguments["description"]
        )
        done = await patch_saga(request, context.saga, wanted, context.idempotency_key)
        is_applied, notes = done.changed, {"notes": done.notes} if done.notes else {}
    return {"applied": is_applied, **notes, "document": visible_values(document, paths, own)}


def _refusal(code: str, what: str, problems: Iterable[Problem]) -> StepFailure:
    told = [
        f"{one.path}: {one.message}{f' ({one.suggestion})' if one.suggestion else ''}" for one in problems
    ]
    more = f"; and {len(told) - _MOST_PROBLEMS} more" if len(told) > _MOST_PROBLEMS else ""
    text = f"{what}: {'; '.join(told[:_MOST_PROBLEMS])}{more}" if told else what
    return StepFailure(code, text, happened=False)
