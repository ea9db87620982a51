"""The escalation of a question: its steps as moments, and what the step comes to that is due.

What the last step means, which closes the question, is decided where the question is asked: core/nodes/human.py for nodes and
calls, core/decide/retries.py for steps that failed. What people do with a question is in question_claims.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from baton.core.log import events as ev
from baton.core.log.answers import notice_again
from baton.core.log.approvals import audience_of
from baton.core.log.records import Escalation
from baton.core.log.state import State, item_of, node_of


def steps_of(said: Sequence[Mapping[str, Any]], now: int) -> tuple[Escalation, ...]:
    """The steps of a question that is asked now, from what a graph says of them. Raises `ValueError` for an audience that is none."""
    return tuple(
        Escalation(
            at=now + one["after_ms"],
            to=audience_of(one["hand_on"], "hand_on") if "hand_on" in one else None,
            decide=one.get("decide", ""),
        )
        for one in said
    )


def decided_by(ask: ev.Ask, now: int) -> str:
    """The answer that the last step of its escalation has given by now, if it is at its end; else an empty text."""
    return ask.escalate[-1].decide if ask.escalate and now >= ask.escalate[-1].at else ""


def due_step(state: State, slot: str, ask: ev.Ask, now: int) -> tuple[ev.QuestionEscalated, ev.Notice | None]:
    """The step that is due. The steps that are due after it follow in the same entry, and people are told of the last alone."""
    step, (node, iteration) = ask.escalate[0], node_of(slot)
    event = ev.QuestionEscalated(
        node=node, iteration=iteration, item=item_of(slot), ask=ask.id, at=now, due=step.at, to=step.to
    )
    if any(later.at <= now for later in ask.escalate[1:]):
        return event, None
    now_for = replace(ask, to=ask.to if step.to is None else step.to)
    why = "Reminder" if step.to is None else "Handed on"
    return event, notice_again(state, slot, now_for, now, key=str(step.at), why=why)
