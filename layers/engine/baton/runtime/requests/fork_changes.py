"""The cut of a fork by its name, its changes, and the effects that it leaves behind.

The entry of a fork is written in forking.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from baton.core.conditions.schema import input_violations, violations
from baton.core.decide.carrying import carry_problems, dropped_outputs
from baton.core.decide.program import READY, Program
from baton.core.effects.toolspec import tools_for
from baton.core.expressions import nearest, with_hint
from baton.core.log.events import (
    Entry,
    Event,
    GraphChanged,
    NodeAdmitted,
    NodeBegan,
    Repeats,
    StepFailed,
    StepHeld,
    StepInterrupted,
    Value,
    ValueChanged,
)
from baton.core.log.folding.forks import is_stable, lineage_to
from baton.core.log.records import About
from baton.core.log.slots import Slot, owner_of
from baton.core.log.state import State
from baton.core.read.left_effects import (
    KEPT,
    MOST_NAMED,
    NEW,
    UNSURE,
    ForkPlan,
    Found,
    LeftEffects,
    chooses,
    differing_nodes,
    unsure_nodes,
)
from baton.errors import InvalidInput, NotAllowedNow, Problem, TooLarge, UserError
from baton.runtime.engine.request import Request
from baton.runtime.log.history import PAGE, History, ReadingTime, outputs_of, readable, records_of
from baton.runtime.log.lease import is_over
from baton.runtime.starting.start import body_hash

LEAVE: Final = "leave"
"""The word with which a caller lets effects stand that the new branch may repeat."""
_NAMED: Final = 20
_REFUSED: Final = 3


class ForkRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A fork, as a caller asks for it. It begins at a `version`, `before` a step, or at the last `stable`
    version.

    `input`, if set, and `outputs`, by step, are the values with which it goes on. `workflow`: the version of
    its document, by number or tag. `repeat`: steps that act again. `leave`: effects stand that the new branch
    may repeat.
    """

    version: int = 0
    before: str = ""
    stable: bool = False
    reason: str = ""
    input: Any = UNSET
    outputs: Mapping[str, Any] = {}
    workflow: str = ""
    repeat: tuple[str, ...] = ()
    leave: bool = False

    @property
    def has_changes(self) -> bool:
        """True if the new branch begins with another value or graph."""
        return self.input is not UNSET or bool(self.outputs or self.workflow)

    @property
    def asked(self) -> str:
        """The hash of what is asked for besides a version; empty: nothing is."""
        place = [self.before, self.stable] if self.before or self.stable else []
        given = [] if self.input is UNSET else [self.input]
        said = [place, given, dict(self.outputs), self.workflow, self.repeat]
        return body_hash([self.version, *said]) if any(said) else ""


# ---- cuts


async def cut_of(request: Request, history: History, wanted: ForkRequest) -> int:
    """Return the version at which a fork begins. Raises `UserError` with the nearest names."""
    time = ReadingTime(request.engine.clock, request.parts.call.deadline)
    if wanted.before:
        return await _before(history, wanted.before, time)
    return await _stable(history, time) if wanted.stable else wanted.version


_READIES = (NodeAdmitted, NodeBegan, StepHeld, StepInterrupted)
"""Events of a step that has not begun, or that loses no attempt."""


async def _before(history: History, step: str, time: ReadingTime) -> int:
    """Return the version that precedes the first entry of a step, in its last round."""
    first: dict[str, int] = {}
    names: dict[str, None] = {}
    async with aclosing(history.entries()) as entries:
        async for entry in entries:
            for event in entry.events:
                if (
                    not isinstance(event, About)
                    or isinstance(event, _READIES)
                    or Slot.parse(event.slot).scope
                ):
                    continue
                names[event.node] = None
                if event.slot == step or (event.node == step and not event.item):
                    first.setdefault(event.slot, entry.version)
            _check_time(time, history, entry.version)
    if first:
        return max(first.values()) - 1
    hint = nearest(step, names) or f"these have: {', '.join([*names][:_NAMED]) or 'none'}"
    raise UserError(with_hint(f"no step `{step[:80]}` has begun", hint))


async def _stable(history: History, time: ReadingTime) -> int:
    lineage, undo = lineage_to(history.state), history.state.undo
    cut = 0
    async with aclosing(history.walk()) as entries:
        async for entry, state in entries:
            version = entry.version
            is_its = any(one.first <= version <= one.last for one in lineage)
            if is_its and version > history.state.origin.copied and is_stable(entry, state, undo):
                cut = version
            _check_time(time, history, version)
    if not cut:
        first = history.state.origin.copied + 1
        raise UserError(
            f"no step of this saga has ended well and no answer was taken in: fork it from version {first}, its start"
        )
    return cut


def _check_time(time: ReadingTime, history: History, version: int) -> None:
    if version % PAGE == 0:
        time.check("searched", history.state.version, version)


async def cut_before_failure(history: History) -> int:
    """Return the version that precedes the first attempt at the step with which the saga has failed.

    A child counts as tried once its end is recorded. Changes of the graph and of values since then stay: the
    cut is behind the last of them.
    """
    failed: Entry | None = None
    async for entry, state in history.walk():
        if not state.is_stopping:
            failed = None  # it was forked since
        elif failed is None:
            failed = entry
    if failed is None:
        raise NotAllowedNow("the saga failed before it began: start it again")
    slot = next((event.slot for event in failed.events if isinstance(event, StepFailed)), "")
    lineage = lineage_to(history.state)
    cut = 0
    async for entry, state in history.walk():
        version = entry.version
        if version >= failed.version:
            break
        is_change = any(isinstance(event, GraphChanged | ValueChanged) for event in entry.events)
        if is_change and any(one.first - 1 <= version <= one.last for one in lineage):
            cut = version if cut else 0
        elif not cut and any(one.first <= version <= one.last for one in lineage) and _was_tried(state, slot):
            cut = version - 1
    return cut or failed.version - 1


def _was_tried(state: State, slot: str) -> bool:
    child = state.child_at(slot)
    return slot in state.failing or (child is not None and bool(child.status))


# ---- changes


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of a fork: their events, the bytes of their values that are blobs, and the plan."""

    events: tuple[Event, ...] = ()
    blobs: tuple[tuple[bytes, str], ...] = ()
    plan: ForkPlan | None = None


async def changes_of(
    request: Request,
    history: History,
    wanted: ForkRequest,
    at_cut: State,
    forked: State,
    *,
    is_dry: bool = False,
) -> Changes:
    """Return the changes of a fork; `forked` is the state that it begins with.

    Raises `InvalidInput` with every problem of its values or of another graph, and `NotAllowedNow` if effects
    might be repeated that the caller has not decided about.
    """
    catalog, tenant = request.parts.catalog, request.caller.tenant
    old = program = await catalog.program(tenant, at_cut.origin.graph)
    events, blobs = list[Event](), list[tuple[bytes, str]]()
    problems = list[Problem]()
    if wanted.workflow:
        graph = await _graph(request, history, wanted, at_cut)
        if graph is not None:
            program = await catalog.program(tenant, graph.graph)
            problems += carry_problems(forked, old, program, may_run=False)
            outputs = await outputs_of(history, at_cut, dropped_outputs(forked, old, program))
            events.append(replace(graph, outputs=outputs, counts=program.counts))
            forked = replace(forked, outputs={**forked.outputs, **outputs})
    found = _output_problems(request, program, forked, wanted, at_cut.version) if not problems else []
    problems += await _input_problems(request, program, forked, wanted, is_new=program is not old)
    problems += found
    if problems:
        raise InvalidInput(f"at {problems[0].path}: {problems[0].message}", tuple(problems))
    for node, said in _given(wanted).items():
        value, blob = request.unstored(history, said, f"the output of `{node}`" if node else "an input")
        events.append(ValueChanged(node=node, value=value))
        if blob:
            blobs.append((blob, value.ref))
    is_new = forked.origin.source != at_cut.origin.source  # another saga goes on
    try:
        effects = await _effects(request, history, at_cut)
        if is_new:
            effects.restart(at_cut)
    except TooLarge:
        is_undone = bool(history.state.undo.incarnation)
        if wanted.has_changes or wanted.repeat or is_dry or (is_new and (is_undone or not wanted.leave)):
            raise
        return Changes()  # it goes on all the same; the answer cannot list what it leaves
    between, differing = _left_changes(effects, history.state, at_cut, old, await request.program_of(history))
    others = unsure_nodes(old, between, differing) if between or differing else set[str]()
    left = effects.left(history.state.undo.generation, others)
    repeated = _repeated(wanted.repeat, left)
    if repeated:
        events.append(Repeats(slots=tuple(dict.fromkeys(repeated.values()))))
    if is_new:
        events += effects.undone(history.state.undo.generation)
    again = {Slot.parse(slot).node for slot in repeated}  # with other outputs, such as another receipt
    changed = {*_given(wanted), *between, *again}
    differing |= {one for one in again if one in program.nodes and chooses(program.nodes[one])}
    differing |= differing_nodes(old, program) if program is not old else set()
    unsure = unsure_nodes(program, changed, differing) if changed or differing else set[str]()
    plan = _plan(effects, left, at_cut.version, repeated, unsure, is_new=is_new)
    if plan.unsure and not (wanted.leave or is_dry):
        raise NotAllowedNow(_refusal(history, plan))
    return Changes(events=tuple(events), blobs=tuple(blobs), plan=plan)


async def _graph(
    request: Request, history: History, wanted: ForkRequest, at_cut: State
) -> GraphChanged | None:
    """Return the change to another version of the document; None if the saga runs that one."""
    origin, tenant = at_cut.origin, request.caller.tenant
    definition = await request.parts.catalog.find(tenant, wanted.workflow)
    if definition.name != origin.workflow:
        raise UserError(
            f"`{definition.name}` is another workflow: name a version of `{origin.workflow}`, such as `{origin.workflow}@2`"
        )
    if definition.graph == origin.graph:
        return None
    return GraphChanged(
        graph=definition.graph,
        workflow=definition.name,
        by=request.caller.by,
        at=request.engine.clock.now(),
        reason=wanted.reason,
    )


def _given(wanted: ForkRequest) -> dict[str, Any]:
    """Return the new values by step; an empty name stands for the saga's input."""
    return {**({} if wanted.input is UNSET else {"": wanted.input}), **wanted.outputs}


async def _input_problems(
    request: Request, program: Program, forked: State, wanted: ForkRequest, *, is_new: bool
) -> Sequence[Problem]:
    """Return the problems of the input; `is_new`: the saga's own has to fit another graph."""
    schema, value = program.graph.input_schema, wanted.input
    if schema is None or (value is UNSET and not is_new):
        return ()
    if value is UNSET:
        own: Value = forked.origin.input
        value = own.v
        if own.ref:
            blobs, tenant = request.engine.blobs, request.caller.tenant
            value = msgspec.json.decode(await request.parts.call(blobs.get, tenant, own.ref))
    return input_violations(schema, value)


def _output_problems(
    request: Request, program: Program, forked: State, wanted: ForkRequest, cut: int
) -> list[Problem]:
    found = list[Problem]()
    names = {node.name: node for node in program.graph.nodes} if wanted.outputs else {}
    ahead = program.ahead_in(forked) if names else 0
    for name, value in wanted.outputs.items():
        node, path = names.get(name), f"/outputs/{name}"
        if node is None:
            found.append(Problem(path, "is no step of the workflow", nearest(name, names)))
        elif name not in forked.outputs and program.is_ahead(name, ahead):
            found.append(Problem(path, f"is not over at version {cut}, and has no output yet"))
        elif name not in forked.outputs or not program.is_needed(name, ahead):
            found.append(Problem(path, f"has an output that nothing reads behind version {cut}"))
        else:
            tool = request.engine.tools.get(node.tool)
            own = None if tool is None or node.each is not None or node.callback is not None else tool.result
            for schema in (node.output_schema, own):
                found += () if schema is None else violations(schema, value, path)
    return found


# ---- effects that are left


async def _effects(request: Request, history: History, at_cut: State) -> LeftEffects:
    """Collect the effects in the log that are no part of the history at the cut."""
    state, tenant = history.state, request.caller.tenant
    lineage = lineage_to(at_cut)
    program = await request.program_of(history)
    effects = LeftEffects(program, tools_for(tenant, request.engine.tools), lineage, lineage_to(state))
    time = ReadingTime(request.engine.clock, request.parts.call.deadline)
    if state.undo.incarnation:
        async with aclosing(history.walk()) as entries:
            async for entry, after in entries:
                effects.add(entry, after.undo.generation)
                _check_time(time, history, entry.version)
    else:
        log, call = request.engine.log, request.parts.call
        pages = records_of(log, call, history.ref, state.lineage.branch + 1, lineage[0].last, PAGE)
        async with aclosing(pages):
            async for page in pages:
                for entry in readable(page):
                    if entry.version <= state.version:
                        effects.add(entry, _never_undone)
                time.check("searched", state.version, page[-1].version)
    number = state.undo.generation
    for slot, failing in at_cut.failing.items():
        if failing.acted or failing.failure.says_nothing:
            effects.doubt(slot, failing.failure.tool, at_cut.version, number(slot))
    if await may_run(request, history):
        for slot in _running(program, state):
            effects.doubt(slot, program.node_at(state, slot).tool, state.version, number(slot))
    return effects


def _left_changes(
    effects: LeftEffects, state: State, at_cut: State, old: Program, running: Program
) -> tuple[set[str], set[str]]:
    """Return the nodes with other values in the branch that is left, and those that differ in its graph."""
    shared = 0
    for one, other in zip(state.graphs, at_cut.graphs, strict=False):
        shared += one == other
    graphs = [*(one.graph for one in state.graphs), state.origin.graph][shared:]
    programs = [*(program for _, program in running.earlier), running][shared:]
    differing = set[str]()
    for graph, program in zip(graphs, programs, strict=True):
        differing |= differing_nodes(program, old) if graph != at_cut.origin.graph else set()
    return effects.changed_between(at_cut.version, state.version), differing


def _never_undone(_: str) -> int:
    return 0


async def may_run(request: Request, history: History) -> bool:
    """Return true if a worker may be at work on a step, of which the log does not tell.

    The head is read behind the pause in the log: a worker that takes the saga later knows of it.
    """
    state = history.state
    if state.ended is not None or state.parked is None:
        return state.ended is None
    head = await request.parts.call(request.engine.log.read_head, history.ref)
    clock, limits = request.engine.clock, request.engine.limits
    return head is not None and bool(head.owner) and not is_over(head, clock.now(), limits)


def _running(program: Program, state: State) -> list[str]:
    """Return the slots of steps that may be under way."""
    return [
        slot
        for slot in state.tokens
        if slot not in state.open
        and slot not in state.held
        and program.kinds[program.node_at(state, slot).kind].has_attempts
        and program.readiness(state, slot) == READY
    ]


def _repeated(steps: Sequence[str], left: Sequence[Found]) -> dict[str, str]:
    """Return by slot: the slot that gets a new key, so that the step acts again. Raises `UserError`."""
    found: dict[str, str] = {}
    for step in steps:
        slots = [one.slot for one in left if not one.child and step in (one.slot, Slot.parse(one.slot).node)]
        if not slots:
            children = [one.child for one in left if one.child and step == Slot.parse(one.slot).node]
            if children:
                raise UserError(f"`{step[:80]}` is child saga {children[0]}: fork or roll back that one")
            hint = nearest(step, {Slot.parse(one.slot).node for one in left})
            raise UserError(with_hint(f"`{step[:80]}` has done nothing that the fork leaves behind", hint))
        for slot in slots:
            found[slot] = slot if step == slot else owner_of(slot)
    return found


def _plan(
    effects: LeftEffects,
    left: Sequence[Found],
    cut: int,
    repeated: Mapping[str, str],
    unsure: Collection[str],
    *,
    is_new: bool,
) -> ForkPlan:
    def key(one: Found) -> Any:
        if one.slot in repeated:
            return NEW
        if is_new and effects.is_of_saga(one):
            return UNSURE
        return UNSURE if Slot.parse(one.slot).node in unsure else KEPT

    keys = [key(one) for one in left]
    named = [effects.view(one, how) for one, how in zip(left[:MOST_NAMED], keys, strict=False)]
    return ForkPlan(cut=cut, left=named, more=len(left) - len(named), unsure=keys.count(UNSURE))


def _refusal(history: History, plan: ForkPlan) -> str:
    """Return the effects that might be repeated, and the commands that decide about them."""
    saga, cut = history.state.origin.saga, plan.cut
    unsure = [one for one in plan.left if one.key == UNSURE]
    named = [f"`{one.step}` (version {one.version}{_by(one.by)})" for one in unsure[:_REFUSED]]
    more = plan.unsure - len(named)
    what = ", ".join([*named, *([f"{more} more"] if more > 0 else [])])
    undo = f"undo it first with `baton rollback {saga} --to {cut}`"
    hold = ""
    if history.state.ended is None and any(one.doubtful for one in unsure):
        hold = f" `baton pause {saga}` lets steps end that are under way."
    return (
        f"the new branch may do again what stands without its key: {what}. "
        f"Either {undo}, or leave it with `--leave` (`{LEAVE}: true`).{hold}"
    )


def _by(by: str | None) -> str:
    return f", undone by {by}" if by else ", irreversible"
