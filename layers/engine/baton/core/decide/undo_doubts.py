"""A step in doubt, when an undoing comes to it: its inverse is called in any case, or a person is asked about
its outcome.

The question is that of any step whose outcome is unknown. Nothing is called again: the effects of the answers
are in core/log/folding/undo_folds.py.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from baton.core.decide.decision import DecisionBuilder
from baton.core.decide.failure_handling import handle_failure
from baton.core.decide.program import Program
from baton.core.decide.retries import fail, may_try_again
from baton.core.decide.unknown_outcomes import doubt_notice
from baton.core.effects.toolspec import CALL
from baton.core.failures.strategies.registry import STRATEGIES
from baton.core.log import events as ev
from baton.core.log.questions import GIVE_UP, TRY_AGAIN, USE
from baton.core.log.records import Option
from baton.core.log.state import UNKNOWN_OUTCOME, State
from baton.core.nodes.base import Activation

OPTIONS = (
    Option(
        id=TRY_AGAIN,
        label="It has not happened",
        description="There is nothing to undo, and nothing is called.",
    ),
    Option(
        id=USE, label="It has happened", description="It is undone, with the output that you give as its own."
    ),
    Option(
        id=GIVE_UP,
        label="Leave it",
        description="It is not undone and stays in doubt; a later rollback asks again.",
    ),
)
REPEATING = [name for name, strategy in STRATEGIES.items() if strategy.repeats][-1]
"""The last strategy that repeats a call. Nothing is called again here: only later strategies are left."""


def why(event: Any) -> str:
    """Return the reason why the outcome of a step is unknown; empty for a step that has happened."""
    if isinstance(event, ev.StepFailed):
        came_to = f"ended with {event.failure.code}: {event.failure.message[:500]}"
    elif isinstance(event, ev.StepStopped) and event.instead:
        onward = f"`{event.instead}`" if event.instead != event.tool else "another call of it"
        came_to = f"had no answer that says whether it has happened, and the step went on with {onward}"
    elif isinstance(event, ev.StepStopped) and not event.child:
        came_to = "was stopped while it acted, because the saga went on without it"
    else:
        return ""
    slot = event.slot
    return (
        f"`{event.tool}` at `{slot}` {came_to}. The saga undoes what it has done. Look whether this has happened: "
        "answer `use` with its output if it has, `retry` if it has not, `fail` to leave it as it is"
    )


def ask_person(builder: DecisionBuilder, at: Activation) -> None:
    """Ask the person, or note the effect of the answer. Raises `LackingError`."""
    failing, known = builder.state.failing[at.slot], len(builder.record)
    if failing.strategy:
        may_try_again(builder, at)
    elif found := list(handle_failure(builder.context(at.slot), failing, builder.now, above=REPEATING)):
        for event in found:
            builder.note(_worded(event))
    else:
        fail(builder, at, failing.failure)
    notify_on_call(builder, at, known)


def notify_on_call(builder: DecisionBuilder, at: Activation, known: int) -> None:
    """Notify the people on call of a step that failed after `known` events, if no person has given its
    outcome.
    """
    news = builder.record[known:]
    is_said = any(isinstance(event, ev.QuestionClosed) and event.by for event in news)
    failures = [event.failure for event in news if isinstance(event, ev.StepFailed)]
    if not is_said and any(failure.code == UNKNOWN_OUTCOME for failure in failures):
        builder.note(ev.NoticeDue(notice=_left(builder.state, at, builder.now)))


def _worded(event: ev.Event) -> ev.Event:
    if not isinstance(event, ev.StrategyChosen) or event.ask is None:
        return event
    return replace(event, ask=replace(event.ask, options=OPTIONS, may_change=()))


def _left(state: State, at: Activation, now: int) -> ev.Notice:
    slot = at.place.subject.text
    notice = doubt_notice(state, slot, now)
    return replace(
        notice,
        key=f"{notice.key}.left",  # the one of the stop itself may have been sent
        message=f"`{slot}` is not undone, or may not be: no person has said what has happened",
    )


def way_of(program: Program, event: ev.StepFailed | ev.StepStopped, at: int) -> dict[str, Any]:
    """Return the way, and its earliest time, so that no call under way comes after its inverse.

    `at`: the time when the event was written.
    """
    node = program.nodes.get(event.node)
    undo = None if node is None else node.inverse(event.tool, event.item)
    if node is None or undo is None or undo.in_doubt != CALL or node.work.callback is not None:
        return {}
    if undo.keyed and not event.key:
        return {}  # it was cut off, and under which key is not known
    began = event.started_at if isinstance(event, ev.StepFailed) else at
    longest = node.work.timeout_ms or program.timeout_ms
    return {"way": CALL, "not_before": began + longest + program.skew_ms}
