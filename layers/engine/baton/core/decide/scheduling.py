"""What is to be done at each slot: whether it is ready, and what follows from the answer of its kind.

The kinds are in core/nodes/, what concerns the saga as a whole in decide.py, where the saga goes on in transitions.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from baton.core.conditions import ConditionError
from baton.core.conditions.model import AllOf, AnyOf, Condition, Not, Python
from baton.core.decide.admission import ask, overtaken
from baton.core.decide.builder import Draft, activation
from baton.core.decide.context import LackingError
from baton.core.decide.joins import join_failure
from baton.core.decide.readiness import FAILS, SKIPPED, WAITS
from baton.core.decide.retries import may_try_again, next_attempt
from baton.core.decide.transitions import caught, done, skipped, stopped
from baton.core.decide.unknown_outcomes import doubt_notice, is_in_doubt
from baton.core.log import events as ev
from baton.core.log.state import check_item, slot_of
from baton.core.nodes.base import Activation, Done, Failed, Next, Opened, Run, Spread, Tend, UnfitError


def schedule_ready(draft: Draft) -> None:
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
        _schedule(draft, slot, to_begin=to_begin)
    except LackingError as error:
        draft.lacks(error)


def _schedule(draft: Draft, slot: str, *, to_begin: bool) -> None:
    """What is to be done at one slot; what begins there only when it is asked for. Raises `LackingError`."""
    program, state = draft.program, draft.state
    if slot not in state.tokens or state.parked is not None:
        return
    turn = program.turn(state, slot)
    if turn == WAITS:
        return
    at = activation(program, slot)
    # An item goes with its node.
    for join, depth, begins in () if at.item else program.ways.stopped_by.get(at.node.name, ()):
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
        # A step that waits for its next attempt, or for an answer, is not running.
        and (slot not in state.failing or may_try_again(draft, at))
        and (program.caps is None or _may_begin(draft, at))
    ):
        _ask_its_kind(draft, at)


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
    if at.node.when is None or at.item or at.slot in state.admitted or state.has_begun(at.slot):
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


def _ask_its_kind(draft: Draft, at: Activation) -> None:
    """Begin or resume a ready node. Raises `LackingError`."""
    kind, work = draft.program.kinds[at.node.kind], draft.state.open.get(at.slot)
    items = draft.state.items_of(at.slot) if draft.state.items and work is None else None
    said: Next | None
    try:
        if items:
            said = kind.gather(at, items, draft)
        else:
            said = kind.begin(at, draft) if work is None else kind.resume(at, work, draft)
    except UnfitError as error:
        said = Failed(error.failure)
    if said is not None:
        _FOLLOWS[type(said)](draft, at, said)
    elif work is not None and work.due is not None:
        draft.due_by(work.due)


def _run(draft: Draft, at: Activation, said: Run) -> None:
    if at.node.timed and at.slot not in draft.state.begun:
        draft.note(ev.NodeBegan(node=at.node.name, iteration=at.iteration, item=at.item, at=draft.now))
    draft.run.append(next_attempt(draft.state, at, said.arguments))


def _tend(draft: Draft, at: Activation, said: Tend) -> None:
    draft.children.append((at.slot, said.child))


def _spread(draft: Draft, at: Activation, said: Spread) -> None:
    for item in map(check_item, said.items):
        draft.note(ev.NodeBegan(node=at.node.name, iteration=at.iteration, item=item, at=draft.now))


def _opened(draft: Draft, at: Activation, said: Opened) -> None:
    draft.note(said.event)


def _done(draft: Draft, at: Activation, said: Done) -> None:
    scope = draft.scope(at.slot, said.event.output)
    draft.note(done(scope, has_schema=said.has_schema).on(said.event))


def _failed(draft: Draft, at: Activation, said: Failed) -> None:
    _fail(draft, at, said.failure)


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


_FOLLOWS: dict[type, Callable[[Draft, Activation, Any], None]] = {
    Run: _run,
    Tend: _tend,
    Spread: _spread,
    Opened: _opened,
    Done: _done,
    Failed: _failed,
}
