"""What is to be done at one slot: whether its turn has come, and what a node of its kind does then.

Belongs here: one function for each kind of node. Does not belong here: what concerns the saga as a whole (decide.py),
and where it goes on (transitions.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from baton.core.conditions import ConditionError
from baton.core.conditions.model import AllOf, AnyOf, Condition, Not, Python
from baton.core.decide import spending
from baton.core.decide.admission import ask, overtaken
from baton.core.decide.builder import Draft, activation
from baton.core.decide.context import LackingError
from baton.core.decide.joins import join_failure
from baton.core.decide.readiness import FAILS, SKIPPED, WAITS
from baton.core.decide.retries import may_try_again, next_attempt
from baton.core.decide.transitions import caught, done, skipped, stopped
from baton.core.decide.unknown_outcomes import doubt_notice, is_in_doubt
from baton.core.expressions import ExpressionError
from baton.core.expressions.durations import parse_duration, parse_time
from baton.core.failures import sanitised
from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.state import LONGEST_ID, node_of, slot_of
from baton.core.nodes.base import Activation
from baton.core.sizes import excess_of

TIMED_OUT = {"timed_out": True}
"""What a wait for a signal gives whose time is over."""


def look_around(draft: Draft) -> None:
    """All slots with tokens, in the order in which they got them.

    Where a join may fire early, joins that have fired come first, then what is skipped or fails by what was said, and
    only then what begins; whatever that says at once is heard everywhere before the next begins.
    """
    slots = draft.state.tokens
    hurries = draft.program.ways.hurries
    if hurries:
        for slot in slots:
            draft.close(slot)
        known = -1
        while known < len(draft.record) and draft.state.failure is None:
            known = len(draft.record)
            for slot in draft.state.tokens:
                _try(draft, slot, to_begin=False)
        if draft.state.failure is not None:
            return
    for slot in draft.state.tokens:
        known = len(draft.record)
        _try(draft, slot, to_begin=True)
        if hurries and any(getattr(event, "emits", ()) for event in draft.record[known:]):
            return


def _try(draft: Draft, slot: str, *, to_begin: bool) -> None:
    try:
        _look_at(draft, slot, to_begin=to_begin)
    except LackingError as error:
        draft.lacks(error)


def _look_at(draft: Draft, slot: str, *, to_begin: bool) -> None:
    """What is to be done at one slot; what begins there only when it is asked for. Raises `LackingError`."""
    program, state = draft.program, draft.state
    if slot not in state.tokens or state.parked is not None:
        return
    turn = program.turn(state, slot)
    if turn == WAITS:
        return
    at = activation(program, slot)
    for join, depth, begins in program.ways.stopped_by.get(at.node.name, ()):
        if slot_of(join, at.iteration[:depth] + (0,) * begins) in state.closed:
            _skip(draft, at, f"join {join}")
            return
    if turn == SKIPPED:
        _skip(draft, at)
        return
    if turn == FAILS:
        _fail_join(draft, at, to_begin=to_begin)
    elif (
        state.begun and not is_in_doubt(program, state, slot, draft.running) and _is_overtaken(draft, at)
    ) or slot in draft.running:
        return
    elif (
        _is_admitted(draft, at, to_begin=to_begin)
        and to_begin
        # What only waits for its next attempt, or for an answer, is not at work.
        and (slot not in state.failing or may_try_again(draft, at))
        and (program.caps is None or _may_begin(draft, at))
    ):
        _LOOK[at.node.kind](draft, at)


def _fail_join(draft: Draft, at: Activation, *, to_begin: bool) -> None:
    failure = join_failure(draft.scope(at.slot), at.node)
    if to_begin or not _is_a_beginning(draft, at.slot, failure):
        _fail(draft, at, failure)


def _is_a_beginning(draft: Draft, slot: str, failure: ev.Failure) -> bool:
    """Whether something begins with the failure, because it is caught: then it is no part of what is over."""
    return caught(draft.scope(slot), failure) is not None


def _skip(draft: Draft, at: Activation, why: str = "") -> None:
    if is_in_doubt(draft.program, draft.state, at.slot, draft.running):
        draft.note(ev.NoticeDue(notice=doubt_notice(draft.state, at.slot, draft.now)))
    settlement = skipped(draft.program, draft.state, at.slot, passes_on=not why)
    draft.note(
        settlement.on(ev.NodeSkipped(node=at.node.name, iteration=at.iteration, item=at.item, why=why))
    )


def _is_admitted(draft: Draft, at: Activation, *, to_begin: bool) -> bool:
    """Whether `when` lets the node run; asked once for what takes its time. Raises `LackingError`."""
    state = draft.state
    if (
        at.node.when is None
        or at.slot in state.waits
        or at.slot in state.children
        or at.slot in state.admitted
    ):
        return True
    try:
        holds = draft.scope(at.slot).holds(at.node.when)
    except ConditionError as error:
        failure = ev.failed_with(error.code, f"when: {error.message}", at.node.name)
        if to_begin or not _is_a_beginning(draft, at.slot, failure):
            _fail(draft, at, failure)
        return False
    if not holds:
        _skip(draft, at, "when")
    elif _asks_python(at.node.when):
        # Its answer belongs into the log before anything happens because of it.
        draft.note(ev.NodeAdmitted(node=at.node.name, iteration=at.iteration, item=at.item))
    return holds


def _is_overtaken(draft: Draft, at: Activation) -> bool:
    failure = overtaken(draft, at)
    if failure is not None:
        _fail(draft, at, failure)
    return failure is not None


def _may_begin(draft: Draft, at: Activation) -> bool:
    """Whether the limits let it begin, or have done so."""
    answer = ask(draft, at)
    if isinstance(answer, ev.Failure):
        _fail(draft, at, answer)
    return answer == ""


def _asks_python(condition: Condition) -> bool:
    if isinstance(condition, AllOf | AnyOf):
        return any(map(_asks_python, condition.conditions))
    return _asks_python(condition.condition) if isinstance(condition, Not) else isinstance(condition, Python)


def _render(draft: Draft, at: Activation) -> Any:
    """What the node gets, or `_UNBOUND` when that has failed it. Raises `LackingError`."""
    try:
        given = draft.scope(at.slot).render(draft.program.arguments[at.node.name])
    except ExpressionError as error:
        _fail(draft, at, ev.failed_with("input_unbound", str(error), at.node.name))
        return _UNBOUND
    # What a task gets is in no entry, and what it makes of it is measured where it is made.
    if at.node.kind != "task" and (excess := excess_of(given, draft.most_bytes)):
        failure = ev.Failure(
            "value_too_large", f"what the node is to get is too large: {excess}", at.node.name
        )
        _fail(draft, at, failure)
        return _UNBOUND
    return given


def _task(draft: Draft, at: Activation) -> None:
    arguments = _render(draft, at)
    if arguments is _UNBOUND or not _may_spend(draft, at.node):
        return
    if at.node.timed and at.slot not in draft.state.begun:
        draft.note(ev.NodeBegan(node=at.node.name, iteration=at.iteration, item=at.item, at=draft.now))
    draft.run.append(next_attempt(draft.state, at, arguments))


def _may_spend(draft: Draft, node: Node) -> bool:
    """Whether the saga has money left for it. If not, it waits for what is under way, or the saga for a person."""
    terms = draft.terms
    if not terms.saga or (not node.cost and draft.state.spent < terms.saga):
        return True
    nodes = draft.program.nodes
    if draft.reserved is None:
        draft.reserved = sum(nodes[node_of(slot)[0]].cost for slot in draft.running)
    answer = spending.ask(draft.state, terms, node, draft.reserved)
    if isinstance(answer, ev.Parked):
        notice = spending.parked_notice(draft.state, terms, answer, draft.now)
        draft.note(ev.NoticeDue(notice=notice))
        draft.note(answer)
    if answer == spending.BEGINS:
        draft.reserved += node.cost
    return answer == spending.BEGINS


def _pass(draft: Draft, at: Activation) -> None:
    value = _render(draft, at)
    if value is not _UNBOUND:
        output = ev.Value(v=value)
        passed = ev.NodePassed(node=at.node.name, iteration=at.iteration, item=at.item, output=output)
        draft.note(done(draft.scope(at.slot, output)).on(passed))


def _wait(draft: Draft, at: Activation) -> None:
    wait = draft.state.waits.get(at.slot)
    if wait is None:
        _open_wait(draft, at)
        return
    for signal in draft.state.signals:
        if signal.name == wait.signal:
            closed = ev.WaitClosed(
                node=at.node.name, iteration=at.iteration, item=at.item, by=signal.key, output=signal.payload
            )
            draft.note(done(draft.scope(at.slot, signal.payload)).on(closed))
            return
    if wait.until is not None and wait.until <= draft.now:
        # With a signal to wait for, the time is not what was expected: the output says so.
        output = ev.Value(v=TIMED_OUT if wait.signal else None)
        closed = ev.WaitClosed(
            node=at.node.name, iteration=at.iteration, item=at.item, by="time", output=output
        )
        draft.note(done(draft.scope(at.slot, output), has_schema=False).on(closed))
    elif wait.until is not None:
        draft.due_by(wait.until)


def _open_wait(draft: Draft, at: Activation) -> None:
    given = _render(draft, at)
    if given is _UNBOUND:
        return
    until = None if at.node.wait_ms is None else draft.now + at.node.wait_ms
    try:
        if at.node.wait_for is not None:
            until = draft.now + parse_duration(given["for"])
        elif at.node.wait_until is not None:
            until = parse_time(given["until"])
    except ValueError as error:
        which = "for" if at.node.wait_for is not None else "until"
        # A part of a secret would not be known for one.
        text = (
            str(error)
            if sanitised(str(given[which])) == str(given[which])
            else "it is neither time nor duration"
        )
        failure = ev.failed_with("wait_invalid", f"wait.{which}: {text}", at.node.name)
        _fail(draft, at, failure)
        return
    draft.note(
        ev.WaitOpened(
            node=at.node.name, iteration=at.iteration, item=at.item, until=until, signal=at.node.signal
        )
    )


def _workflow(draft: Draft, at: Activation) -> None:
    child = draft.state.children.get(at.slot)
    if child is None:
        _open_child(draft, at)
    elif not child.status:
        draft.children.append((at.slot, child))
    elif child.status == "completed":
        closed = ev.ChildClosed(
            node=at.node.name, iteration=at.iteration, item=at.item, child=child.saga, output=child.output
        )
        draft.note(done(draft.scope(at.slot, child.output)).on(closed))
    else:
        cause = child.failure.message if child.failure else child.status
        failure = ev.failed_with(
            "child_failed", f"the child saga {child.saga} ended {child.status}: {cause}", at.node.name
        )
        _fail(draft, at, failure)


def _open_child(draft: Draft, at: Activation) -> None:
    if not _may_spend(draft, at.node):
        return
    child = f"{draft.state.saga}.{draft.state.branch}.{at.slot.replace('@', '-').replace('#', '-')}"
    if len(child) > LONGEST_ID:
        text = f"its id would have {len(child)} characters, more than {LONGEST_ID}: children and loops lie too deep"
        _fail(draft, at, ev.Failure("child_failed", text, at.node.name))
        return
    given = _render(draft, at)
    if given is not _UNBOUND:
        draft.note(
            ev.ChildOpened(
                node=at.node.name,
                iteration=at.iteration,
                item=at.item,
                child=child,
                workflow=at.node.workflow,
                input=ev.Value(v=given),
            )
        )


def _fail(draft: Draft, at: Activation, failure: ev.Failure) -> None:
    """A failure that no attempt has made; it is told with the last one, if there was any."""
    failing = draft.state.failing.get(at.slot)
    failed = ev.StepFailed(
        node=at.node.name,
        iteration=at.iteration,
        item=at.item,
        attempt=1 if failing is None else failing.attempts,
        failure=failure,
        started_at=draft.now,
        ended_at=draft.now,
        tool=at.node.tool,
        tool_version=at.node.tool_version,
        schema_hash=at.node.schema_hash,
    )
    draft.note(stopped(draft.scope(at.slot), failure).on(failed))


_UNBOUND = object()
_LOOK: dict[str, Callable[[Draft, Activation], None]] = {
    "task": _task,
    "pass": _pass,
    "wait": _wait,
    "workflow": _workflow,
}
