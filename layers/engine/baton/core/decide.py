"""decide(program, state, now) -> what to do next; advance(...) -> what to write down, and then do.

All behaviour of a running saga is here and in fold.py. Nothing is performed: the runner reads a
`Decision` and acts. Times are UTC epoch milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from baton.core import events as ev
from baton.core.expressions import ExpressionError, Path, Template
from baton.core.fold import apply
from baton.core.graph import Node
from baton.core.limits import Limits
from baton.core.outcomes import Outcome, settle, settling
from baton.core.program import Program
from baton.core.rows import Row, fit_together
from baton.core.state import Child, State, node_of

MAX_DEATHS = Limits().max_deaths
ROOM = Limits().entry_bytes
LARGE = 12_288

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class RunStep:
    """Run a tool once."""

    slot: str
    node: Node
    iteration: tuple[int, ...]
    arguments: Any
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Decision:
    """What a saga needs now.

    record: facts to append before anything else happens.
    run: steps that are ready and not running. children: (slot, child) that must exist, or be asked.
    abort: running steps must stop. cancel: (slot, child) to cancel before recording.
    due: when time alone changes the decision (None: never). needs: blobs without which no more can be
    said; decide again with them.
    """

    record: tuple[ev.Event, ...] = ()
    run: tuple[RunStep, ...] = ()
    children: tuple[tuple[str, Child], ...] = ()
    cancel: tuple[tuple[str, Child], ...] = ()
    abort: bool = False
    due: int | None = None
    needs: frozenset[str] = frozenset()


@dataclass
class _Draft:
    """A decision in the making, and the blobs it may look into. `state` moves on with every fact noted."""

    program: Program
    state: State
    now: int
    running: Collection[str]
    blobs: Mapping[str, Any]
    record: list[ev.Event] = field(default_factory=list)
    run: list[RunStep] = field(default_factory=list)
    children: list[tuple[str, Child]] = field(default_factory=list)
    due: int | None = None
    needs: set[str] = field(default_factory=set)

    def note(self, event: ev.Event) -> None:
        """Record a fact; what follows in this decision is decided as if it were in the log."""
        self.record.append(event)
        self.state = apply(self.state, event)

    def due_by(self, moment: int) -> None:
        self.due = moment if self.due is None else min(self.due, moment)

    def render(self, template: Template) -> Any:
        """The rendered template, or None with `needs` filled. Raises `ExpressionError`."""
        missing: set[str] = set()
        for path in template.paths:
            value = self._value(path)
            if value is not None and value.ref and value.ref not in self.blobs:
                missing.add(value.ref)
        if missing:
            self.needs |= missing
            return None
        return template.render(self._lookup)

    def _value(self, path: Path) -> ev.Value | None:
        if path.root == "ctx":
            return self.state.outputs.get(path.node)
        return self.state.input if path.root == "input" else None

    def _lookup(self, path: Path) -> Any:
        if path.root == "saga":
            state = self.state
            return {"id": state.saga, "user": state.user, "tenant": state.tenant, "workflow": state.workflow}
        value = self._value(path)
        if value is None:
            raise ExpressionError(f"`{path.text}`: `{path.node}` has no output")
        return self.blobs[value.ref] if value.ref else value.v


def decide(
    program: Program,
    state: State,
    now: int,
    running: Collection[str] = (),
    blobs: Mapping[str, Any] | None = None,
    max_deaths: int = MAX_DEATHS,
) -> Decision:
    """What to do at `now`, given the slots that are `running` in this invocation.

    `blobs` maps references to decoded content; after `max_deaths` in a row a person has to decide. Pure: equal arguments, equal decisions.
    """
    if state.ended is not None or state.version == 0:
        return Decision()
    if state.cancel is not None or state.failure is not None:
        return _stop(state, now, running)
    if state.left:
        # Whatever else is to be done, children of a branch that was left must not act on.
        gone = ev.ChildrenAbandoned(children=tuple(child.saga for child in state.left))
        return Decision(record=(gone,), cancel=tuple(("", child) for child in state.left))
    if state.parked is not None:
        return Decision()
    if parked := _hopeless(state, max_deaths):
        return Decision(record=(parked,))
    if not state.tokens:
        return _complete(_Draft(program, state, now, running, blobs or {}))
    draft = _Draft(program, state, now, running, blobs or {})
    for slot, arrived in state.tokens.items():
        _look_at(draft, slot, arrived)
    run = draft.run
    if state.careful and state.careful == state.epoch:
        # After a death nobody knows which of several steps was the killer: one at a time, another first.
        turn = state.revivals % len(run) if run else 0
        run = [] if running else run[turn : turn + 1]
    return Decision(
        record=tuple(draft.record),
        run=tuple(run),
        children=tuple(draft.children),
        due=draft.due,
        needs=frozenset(draft.needs),
    )


@dataclass(frozen=True, slots=True)
class Advance:
    """Events to append (none: nothing to write), and the decision that holds once they are.

    `taken` outcomes are in them, and `rows` must be written with them or not at all. `more`: there was no
    room for all that follows at once; append these and advance again, `decision` is then only a part.
    """

    events: tuple[ev.Event, ...]
    decision: Decision
    taken: int
    more: bool
    rows: tuple[Row, ...] = ()


def advance(
    program: Program,
    state: State,
    outcomes: Sequence[Outcome],
    now: int,
    running: Collection[str] = (),
    blobs: Mapping[str, Any] | None = None,
    room: int = ROOM,
    max_deaths: int = MAX_DEATHS,
    *,
    together: bool = True,
) -> Advance:
    """Turn outcomes into events, with all that follows from them at once, so that one append holds it.

    `room` is the size in bytes that the events may have together; at least one is always taken. An
    outcome whose slot is not waiting any more (it was settled or forked away) is dropped; one for which
    there is no room counts as running still. Without `together` no two steps' rows are in one entry.
    """
    events: list[ev.Event] = []
    rows: tuple[Row, ...] = ()
    taken = 0
    for outcome in outcomes:
        found = list(settle(program, state, outcome))
        room -= sum(map(_size, found))
        has_room = not outcome.rows or (together and fit_together(rows, outcome.rows))
        if events and (room < 0 or not has_room):
            break
        taken += 1
        rows += outcome.rows if found else ()
        for event in found:
            events.append(event)
            state = apply(state, event)
    busy = {*running, *(outcome.slot for outcome in outcomes[taken:])}
    while True:
        decision = decide(program, state, now, busy, blobs, max_deaths)
        if not decision.record or decision.needs or decision.cancel:
            return Advance(tuple(events), decision, taken, taken < len(outcomes), rows)
        for event in decision.record:
            room -= _size(event)
            if room < 0 and events:
                return Advance(tuple(events), decision, taken, True, rows)
            events.append(event)
            state = apply(state, event)


def _size(event: ev.Event) -> int:
    """Bytes of an event in an entry. What is large by itself will be a blob's reference there."""
    size = len(_encode(event))
    return size if size <= LARGE else LARGE // 10


def _stop(state: State, now: int, running: Collection[str]) -> Decision:
    """A cancelled or failed saga starts nothing, lets running steps end, then ends itself."""
    if running:
        if state.cancel is None:
            return Decision()
        deadline = state.cancel.at + state.cancel.grace_ms
        return Decision(abort=True) if now >= deadline else Decision(due=deadline)
    if state.cancel is not None:
        failure = ev.Failure("cancelled", state.cancel.reason)
        end = ev.SagaEnded(status="cancelled", failure=failure)
    else:
        end = ev.SagaEnded(status="failed", failure=state.failure)
    orphans = [(slot, child) for slot, child in state.children.items() if not child.status]
    orphans += [("", child) for child in state.left]
    return Decision(record=(end,), cancel=tuple(orphans))


def _hopeless(state: State, max_deaths: int) -> ev.Parked | None:
    if state.tries >= max_deaths:
        nodes = ", ".join(list(state.tokens)[:10]) or "none"
        text = f"{state.tries} invocations in a row died without any progress; steps that were ready: {nodes}"
        return ev.Parked(code="worker_killed", message=text, node=next(iter(state.tokens), ""))
    for slot, count in state.interruptions.items():
        if count >= max_deaths:
            text = (
                f"`{slot}` was cut off {count} times by the end of its invocation, with no progress in between: "
                "it needs more than a full budget"
            )
            return ev.Parked(code="over_budget", message=text, node=node_of(slot)[0])
    return None


def _complete(draft: _Draft) -> Decision:
    try:
        output = draft.render(draft.program.output)
    except ExpressionError as error:
        failure = ev.Failure("output_unbound", str(error))
        return Decision(record=(ev.SagaEnded(status="failed", failure=failure),))
    if draft.needs:
        return Decision(needs=frozenset(draft.needs))
    return Decision(record=(ev.SagaEnded(status="completed", output=ev.Value(v=output)),))


def _look_at(draft: _Draft, slot: str, arrived: Mapping[str, bool]) -> None:
    name, iteration = node_of(slot)
    node = draft.program.nodes[name]
    if len(arrived) < draft.program.joins[name]:
        return
    if not any(arrived.values()):
        draft.note(ev.NodeSkipped(node=name, iteration=iteration, **settling(draft, slot, node, alive=False)))
    elif slot not in draft.running:
        _LOOK[node.kind](draft, slot, node, iteration)


def _task(draft: _Draft, slot: str, node: Node, iteration: tuple[int, ...]) -> None:
    try:
        arguments = draft.render(draft.program.arguments[node.name])
    except ExpressionError as error:
        draft.note(_unbound(draft, node, iteration, error))
        return
    if arguments is not None:
        draft.run.append(RunStep(slot, node, iteration, arguments))


def _wait(draft: _Draft, slot: str, node: Node, iteration: tuple[int, ...]) -> None:
    wait = draft.state.waits.get(slot)
    if wait is None:
        until = None if node.wait_ms is None else draft.now + node.wait_ms
        draft.note(ev.WaitOpened(node=node.name, iteration=iteration, until=until, signal=node.signal))
        return
    for signal in draft.state.signals:
        if signal.name == wait.signal:
            _close_wait(draft, slot, node, iteration, signal.key, signal.payload)
            return
    if wait.until is not None and wait.until <= draft.now:
        _close_wait(draft, slot, node, iteration, "time", ev.Value())
    elif wait.until is not None:
        draft.due_by(wait.until)


def _close_wait(
    draft: _Draft, slot: str, node: Node, iteration: tuple[int, ...], by: str, output: ev.Value
) -> None:
    more = settling(draft, slot, node, alive=True, output=True)
    draft.note(ev.WaitClosed(node=node.name, iteration=iteration, by=by, output=output, **more))


def _workflow(draft: _Draft, slot: str, node: Node, iteration: tuple[int, ...]) -> None:
    child = draft.state.children.get(slot)
    if child is None:
        _open_child(draft, slot, node, iteration)
    elif not child.status:
        draft.children.append((slot, child))
    elif child.status == "completed":
        more = settling(draft, slot, node, alive=True, output=True)
        draft.note(
            ev.ChildClosed(node=node.name, iteration=iteration, child=child.saga, output=child.output, **more)
        )
    else:
        cause = child.failure.message if child.failure else child.status
        failure = ev.Failure(
            "child_failed", f"the child saga {child.saga} ended {child.status}: {cause}", node.name
        )
        draft.note(_failed(draft, node, iteration, failure))


def _open_child(draft: _Draft, slot: str, node: Node, iteration: tuple[int, ...]) -> None:
    try:
        given = draft.render(draft.program.arguments[node.name])
    except ExpressionError as error:
        draft.note(_unbound(draft, node, iteration, error))
        return
    if given is not None:
        child = f"{draft.state.saga}.{draft.state.branch}.{slot.replace('@', '-')}"
        draft.note(
            ev.ChildOpened(
                node=node.name,
                iteration=iteration,
                child=child,
                workflow=node.workflow,
                input=ev.Value(v=given),
            )
        )


def _unbound(draft: _Draft, node: Node, iteration: tuple[int, ...], error: ExpressionError) -> ev.StepFailed:
    return _failed(draft, node, iteration, ev.Failure("input_unbound", str(error), node.name))


def _failed(draft: _Draft, node: Node, iteration: tuple[int, ...], failure: ev.Failure) -> ev.StepFailed:
    return ev.StepFailed(
        node=node.name,
        iteration=iteration,
        attempt=1,
        failure=failure,
        started_at=draft.now,
        ended_at=draft.now,
        tool=node.tool,
        tool_version=node.tool_version,
        schema_hash=node.schema_hash,
    )


_LOOK: dict[str, Callable[[_Draft, str, Node, tuple[int, ...]], None]] = {
    "task": _task,
    "wait": _wait,
    "workflow": _workflow,
}

__all__ = ["Advance", "Decision", "RunStep", "advance", "decide"]
