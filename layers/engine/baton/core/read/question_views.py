"""What is shown of a question to a person: what is asked, of whom, until when, and what happens without an answer.

The rest of what is shown of a saga is in views.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict

from baton.core.decide.program import Program
from baton.core.effects.toolspec import ToolSpec
from baton.core.log.answers import ERROR, audience, changeable, may_answer, tool_asked_about
from baton.core.log.events import Ask
from baton.core.log.records import Escalation, Option
from baton.core.log.state import State, node_of
from baton.core.times import iso


def open_question_view(
    state: State, program: Program, tools: Mapping[str, ToolSpec], slot: str, ask: Ask
) -> dict[str, Any]:
    """A question that waits for an answer: for whom it is, and what an answer may change."""
    node, iteration = node_of(slot)
    failing = state.failing.get(slot)
    tool = None if failing is None else tools.get(tool_asked_about(program.node_at(state, slot), failing))
    return question_view(node, iteration, ask) | {
        "for": [_person(one) for one in may_answer(state, ask)],
        "claim": _claim(state, ask),
        "escalate": [_step(state, step) for step in ask.escalate],
        "arguments": changeable(ask, tool.parameters if tool is not None else {}),
    }


def _person(one: tuple[str, str]) -> dict[str, str]:
    return {"kind": one[0], "name": one[1]}


def _claim(state: State, ask: Ask) -> dict[str, Any] | None:
    """The user who has claimed it, since when, and whom it was for."""
    if not ask.candidates:
        return None
    by = audience(state, ask.to)[1]
    return {"by": by, "at": iso(ask.moved_at), "from": _person(audience(state, ask.candidates))}


def _step(state: State, step: Escalation) -> dict[str, Any]:
    """What happens next while there is no answer."""
    action = "decide" if step.decide else "remind" if step.to is None else "hand_on"
    return {
        "at": iso(step.at),
        "action": action,
        "to": None if step.to is None else _person(audience(state, step.to)),
        "answer": step.decide or None,
    }


def question_view(node: str, iteration: tuple[int, ...], ask: Ask) -> dict[str, Any]:
    """A question to a person; `expires_at` None: it waits for ever."""
    return {
        "id": ask.id,
        "node": node or None,
        "iteration": list(iteration),
        "asked_for": asked_for(ask.type, ask.kind),
        "message": ask.message,
        "options": list(ask.actions),
        "expires_at": time_view(ask.expires_at),
        "type": ask.type,
        "title": ask.title or None,
        "details": ask.details,
        "choices": [_choice(one) for one in ask.options if isinstance(one, Option)],
        "schema": ask.schema,
        "takeover": None if ask.takeover is None else asdict(ask.takeover),
        "asked_at": time_view(ask.asked_at),
        "risk": ask.risk or None,
        "digest": ask.digest or None,
        "told_at": time_view(ask.told_at),
    }


def asked_for(type_: str, kind: str) -> str | None:
    """What a person is asked for where the type alone, which is `error`, does not say it. Of any other question `kind` repeats it."""
    return kind if type_ == ERROR else None


def _choice(option: Option) -> dict[str, Any]:
    return asdict(option) | {"label": option.label or option.id}


def time_view(milliseconds: int) -> str | None:
    return iso(milliseconds) if milliseconds else None
