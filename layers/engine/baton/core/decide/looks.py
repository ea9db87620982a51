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
from baton.core.decide.builder import Draft
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
    name, iteration = node_of(slot)
    node = program.nodes[name]
    for join, depth, begins in program.ways.stopped_by.get(name, ()):
        if slot_of(join, iteration[:depth] + (0,) * begins) in state.closed:
            if program.turn(state, slot) != WAITS:
                _skip(draft, slot, node, iteration, f"join {join}")
            return
    turn = program.turn(state, slot)
    if turn == WAITS:
        return
    if turn == SKIPPED:
        _skip(draft, slot, node, iteration)
        return
    if turn == FAILS:
        _fail_join(draft, slot, node, iteration, to_begin=to_begin)
    elif (
        state.begun
        and not is_in_doubt(program, state, slot, draft.running)
        and _is_overtaken(draft, slot, node, iteration)
    ) or slot in draft.running:
        return
    elif (
        _is_admitted(draft, slot, node, iteration, to_begin=to_begin)
        and to_begin
        # What only waits for its next attempt, or for an answer, is not at work.
        and (slot not in state.failing or may_try_again(draft, slot, node, iteration))
        and (program.caps is None or _may_begin(draft, slot, node, iteration))
    ):
        _LOOK[node.kind](draft, slot, node, iteration)


def _fail_join(draft: Draft, slot: str, node: Node, iteration: tuple[int, ...], *, to_begin: bool) -> None:
    failure = join_failure(draft.scope(slot), node)
    if to_begin or not _is_a_beginning(draft, slot, failure):
        _fail(draft, slot, node, iteration, failure)


def _is_a_beginning(draft: Draft, slot: str, failure: ev.Failure) -> bool:
    """Whether something begins with the failure, because it is caught: then it is no part of what is over."""
    return caught(draft.scope(slot), failure) is not None


def _skip(draft: Draft, slot: str, node: Node, iteration: tuple[int, ...], why: str = "") -> None:
    if is_in_doubt(draft.program, draft.state, slot, draft.running):
        draft.note(ev.NoticeDue(notice=doubt_notice(draft.state, slot, draft.now)))
    settlement = skipped(draft.program, draft.state, slot, passes_on=not why)
    draft.note(settlement.on(ev.NodeSkipped(node=node.name, iteration=iteration, why=why)))


def _is_admitted(draft: Draft, slot: str, node: Node, iteration: tuple[int, ...], *, to_begin: bool) -> bool:
    """Whether `when` lets the node run; asked once for what takes its time. Raises `LackingError`."""
    state = draft.state
    if node.when is None or slot in state.waits or slot in state.children or slot in state.admitted:
        return True
    try:
        holds = draft.scope(slot).holds(node.when)
    except ConditionError as error:
        failure = ev.failed_with(error.code, f"when: {error.message}", node.name)
        if to_begin or not _is_a_beginning(draft, slot, failure):
            _fail(draft, slot, node, iteration, failure)
        return False
    if not holds:
        _skip(draft, slot, node, iteration, "when")
    elif _asks_python(node.when):
        # Its answer belongs into the log before anything happens because of it.
        draft.note(ev.NodeAdmitted(node=node.name, iteration=iteration))
    return holds


def _is_overtaken(draft: Draft, slot: str, node: Node, iteration: tuple[int, ...]) -> bool:
    failure = overtaken(draft, slot, node)
    if failure is not None:
        _fail(draft, slot, node, iteration, failure)
    return failure is not None


def _may_begin(draft: Draft, slot: str, node: Node, iteration: tuple[int, ...]) -> bool:
    """Whether the limits let it begin, or have done so."""
    answer = ask(draft, slot, node, iteration)
    if isinstance(answer, ev.Failure):
        _fail(draft, slot, node, iteration, answer)
    return answer == ""


def _asks_python(condition: Condition) -> bool:
    if isinstance(condition, AllOf | AnyOf):
        return any(map(_asks_python, condition.conditions))
    return _asks_python(condition.condition) if isinstance(condition, Not) else isinstance(condition, Python)


def _render(draft: Draft, slot: str, node: Node, iteration: tuple[int, ...]) -> Any:
    """What the node gets, or `_UNBOUND` when that has failed it. Raises `LackingError`."""
    try:
        given = draft.scope(slot).render(draft.program.arguments[node.name])
    except ExpressionError as error:
        _fail(draft, slot, node, iteration, ev.failed_with("input_unbound", str(error), node.name))
        return _UNBOUND
    # What a task gets is in no entry, and what it makes of it is measured where it is made.
    if node.kind != "task" and (excess := excess_of(given, draft.most_bytes)):
        failure = ev.Failure("value_too_large", f"what the node is to get is too large: {excess}", node.name)
        _fail(draft, slot, node, iteration, failure)
        return _UNBOUND
    return given


def _task(draft: Draft, slot: str, node: Node, iteration: tuple[int, ...]) -> None:
    arguments = _render(draft, slot, node, iteration)
    if arguments is _UNBOUND or not _may_spend(draft, node):
        return
    if node.timed and slot not in draft.state.begun:
        draft.note(ev.NodeBegan(node=node.name, iteration=iteration, at=draft.now))
    draft.run.append(next_attempt(draft.state, slot, node, iteration, arguments))


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


def _pass(draft: Draft, slot: str, node: Node, iteration: tuple[int, ...]) -> None:
    value = _render(draft, slot, node, iteration)
    if value is not _UNBOUND:
        output = ev.Value(v=value)
        passed = ev.NodePassed(node=node.name, iteration=iteration, output=output)
        draft.note(done(draft.scope(slot, output)).on(passed))


def _wait(draft: Draft, slot: str, node: Node, iteration: tuple[int, ...]) -> None:
    wait = draft.state.waits.get(slot)
    if wait is None:
        _open_wait(draft, slot, node, iteration)
        return
    for signal in draft.state.signals:
        if signal.name == wait.signal:
            closed = ev.WaitClosed(node=node.name, iteration=iteration, by=signal.key, output=signal.payload)
            draft.note(done(draft.scope(slot, signal.payload)).on(closed))
            return
    if wait.until is not None and wait.until <= draft.now:
        # With a signal to wait for, the time is not what was expected: the output says so.
        output = ev.Value(v=TIMED_OUT if wait.signal else None)
        closed = ev.WaitClosed(node=node.name, iteration=iteration, by="time", output=output)
        draft.note(done(draft.scope(slot, output), has_schema=False).on(closed))
    elif wait.until is not None:
        draft.due_by(wait.until)


def _open_wait(draft: Draft, slot: str, node: Node, iteration: tuple[int, ...]) -> None:
    given = _render(draft, slot, node, iteration)
    if given is _UNBOUND:
        return
    until = None if node.wait_ms is None else draft.now + node.wait_ms
    try:
        if node.wait_for is not None:
            until = draft.now + parse_duration(given["for"])
        elif node.wait_until is not None:
            until = parse_time(given["until"])
    except ValueError as error:
        which = "for" if node.wait_for is not None else "until"
        # A part of a secret would not be known for one.
        text = (
            str(error)
            if sanitised(str(given[which])) == str(given[which])
            else "it is neither time nor duration"
        )
        failure = ev.failed_with("wait_invalid", f"wait.{which}: {text}", node.name)
        _fail(draft, slot, node, iteration, failure)
        return
    draft.note(ev.WaitOpened(node=node.name, iteration=iteration, until=until, signal=node.signal))


def _workflow(draft: Draft, slot: str, node: Node, iteration: tuple[int, ...]) -> None:
    child = draft.state.children.get(slot)
    if child is None:
        _open_child(draft, slot, node, iteration)
    elif not child.status:
        draft.children.append((slot, child))
    elif child.status == "completed":
        closed = ev.ChildClosed(node=node.name, iteration=iteration, child=child.saga, output=child.output)
        draft.note(done(draft.scope(slot, child.output)).on(closed))
    else:
        cause = child.failure.message if child.failure else child.status
        failure = ev.failed_with(
            "child_failed", f"the child saga {child.saga} ended {child.status}: {cause}", node.name
        )
        _fail(draft, slot, node, iteration, failure)


def _open_child(draft: Draft, slot: str, node: Node, iteration: tuple[int, ...]) -> None:
    if not _may_spend(draft, node):
        return
    child = f"{draft.state.saga}.{draft.state.branch}.{slot.replace('@', '-')}"
    if len(child) > LONGEST_ID:
        text = f"its id would have {len(child)} characters, more than {LONGEST_ID}: children and loops lie too deep"
        _fail(draft, slot, node, iteration, ev.Failure("child_failed", text, node.name))
        return
    given = _render(draft, slot, node, iteration)
    if given is not _UNBOUND:
        draft.note(
            ev.ChildOpened(
                node=node.name,
                iteration=iteration,
                child=child,
                workflow=node.workflow,
                input=ev.Value(v=given),
            )
        )


def _fail(draft: Draft, slot: str, node: Node, iteration: tuple[int, ...], failure: ev.Failure) -> None:
    """A failure that no attempt has made; it is told with the last one, if there was any."""
    failing = draft.state.failing.get(slot)
    failed = ev.StepFailed(
        node=node.name,
        iteration=iteration,
        attempt=1 if failing is None else failing.attempts,
        failure=failure,
        started_at=draft.now,
        ended_at=draft.now,
        tool=node.tool,
        tool_version=node.tool_version,
        schema_hash=node.schema_hash,
    )
    draft.note(stopped(draft.scope(slot), failure).on(failed))


_UNBOUND = object()
_LOOK: dict[str, Callable[[Draft, str, Node, tuple[int, ...]], None]] = {
    "task": _task,
    "pass": _pass,
    "wait": _wait,
    "workflow": _workflow,
}
