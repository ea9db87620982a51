"""Public views of a saga: JSON made from state and entries. Times as ISO 8601, money in dollars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import asdict

from baton.core.decide.program import PENDING, Program
from baton.core.effects.toolspec import ToolSpec
from baton.core.expressions import iso
from baton.core.failures.codes import advice_for, class_of
from baton.core.failures.names import RETRYABLE
from baton.core.log.events import Ask, Entry, Event, Failure, Notice, NotUndone, Opens, Shown
from baton.core.log.folding.workflow_limits import COUNTED
from baton.core.log.questions import (
    ERROR,
    audience,
    changeable,
    may_answer,
    open_questions,
    tool_asked_about,
    unclosed_questions,
)
from baton.core.log.questions import visible_arguments as without_secrets
from baton.core.log.records import Escalation, Option, Paused
from baton.core.log.slots import Slot
from baton.core.log.state import Held, State, status_of
from baton.core.log.undos import is_undo
from baton.core.money import MICRO
from baton.core.read.definition_views import UNITS, cap_view, foretold, json_form


def open_question_view(
    state: State, program: Program, tools: Mapping[str, ToolSpec], slot: str, ask: Ask
) -> dict[str, Any]:
    """Return a question that waits for an answer: for whom it is,
    and the arguments that an answer may change.
    """
    place = Slot.parse(slot)
    failing = state.failing.get(slot)
    tool = None if failing is None else tools.get(tool_asked_about(program.node_at(state, slot), failing))
    return question_view(place.node, place.iteration, ask) | {
        "for": [_person(one) for one in may_answer(state, ask)],
        "claim": _claim(state, ask),
        "escalate": [_step(state, step) for step in ask.escalate],
        "arguments": changeable(ask, tool.parameters if tool is not None else {}),
    }


def _person(one: tuple[str, str]) -> dict[str, str]:
    return {"kind": one[0], "name": one[1]}


def _claim(state: State, ask: Ask) -> dict[str, Any] | None:
    """Return the user who has claimed it, the time of the claim, and the audience before it."""
    if not ask.candidates:
        return None
    by = audience(state, ask.to)[1]
    return {"by": by, "at": iso(ask.moved_at), "from": _person(audience(state, ask.candidates))}


def _step(state: State, step: Escalation) -> dict[str, Any]:
    """Return the view of the next step of an escalation, if no answer comes."""
    action = "decide" if step.decide else "remind" if step.to is None else "hand_on"
    return {
        "at": iso(step.at),
        "action": action,
        "to": None if step.to is None else _person(audience(state, step.to)),
        "answer": step.decide or None,
    }


def question_view(node: str, iteration: tuple[int, ...], ask: Ask) -> dict[str, Any]:
    """Return a question to a person; `expires_at` None: it waits for ever."""
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
    """Return the kind of the question where the type alone, `error`, does not tell it.

    None for any other question, whose `kind` repeats the type.
    """
    return kind if type_ == ERROR else None


def _choice(option: Option) -> dict[str, Any]:
    return asdict(option) | {"label": option.label or option.id}


def time_view(milliseconds: int) -> str | None:
    return iso(milliseconds) if milliseconds else None


OF_UNDOING = frozenset(
    {
        *(
            "prior",
            "lasting",
            "kept",
            "key",
            "acted",
            "not_before",
            "stays",
            "undo",
            "back_to",
            "together",
        ),
        *(
            "undoable",
            "undone",
            "again",
            "child",
            "doubtful",
            "stands",
            "doubts",
            "doubt",
            "redone",
            "stopped",
            "nothing",
        ),
    }
)
"""Fields of events that are shown where something is undone, or can be."""


def undo_view(state: State, program: Program) -> dict[str, Any] | None:
    """Return the state of undoing; None for a saga that has done nothing that could be undone."""
    undo, work = state.undo, state.undo.work
    report = None if state.ended is None else state.ended.undone
    if not (program.undoes or undo.head or work is not None or report is not None):
        return None
    failed: Iterable[NotUndone] = (one for one in undo.failed if not one.doubt)
    shown: dict[str, Any] = {
        "undoable": undo.can,
        "lasting": undo.cannot,
        "failed": [_failed(one) for one in failed],
        "doubtful": list(undo.in_doubt),
        "more_failed": undo.set_aside,
        "more_doubtful": undo.unknown - len(undo.in_doubt),
        "under_way": None,
        "done": None,
    }
    if work is not None:
        shown["under_way"] = {
            "since": iso(work.at),
            "reason": work.reason,
            "by": work.by or None,
            "back_to": work.back_to or None,
            "undone": work.done,
            "failed": undo.fails,
            "left": undo.can + undo.doubts + len(work.again) + work.set_aside + len(work.steps),
        }
    if report is not None:
        shown["done"] = {
            "undone": report.done,
            "failed": report.fails,
            "lasting": report.lasts,
            "stays": list(report.lasting),
            "back_to": report.back_to or None,
        }
    return shown


UNSURE = "it may be undone all the same"


def _failed(one: NotUndone) -> dict[str, Any]:
    return {
        "step": one.slot,
        "version": one.version,
        "tool": one.tool,
        "code": one.code,
        "message": f"{UNSURE}: {one.message}" if one.unsure else one.message,
    }


_NO_TOOLS: Mapping[str, ToolSpec] = MappingProxyType({})
_TIMES = frozenset(
    {
        "at",
        "started_at",
        "ended_at",
        "until",
        "dead_until",
        "due_at",
        "expires_at",
        "expires",
        "ends_by",
        "asked_at",
        "due",
        "told_at",
        "moved_at",
    }
)
# A time that may be absent, and is 0 in the log then.
_MAYBE = frozenset({"due_at", "expires_at", "until", "due"})


def saga_view(state: State, program: Program, tools: Mapping[str, ToolSpec] = _NO_TOOLS) -> dict[str, Any]:
    """Return the answer of `GET /sagas/{id}`; `result` as in the log: `v`, or `ref` and `size` of a blob.

    `tools` give the schemas of arguments that an answer may change.
    """
    return {
        "id": state.origin.saga,
        "workflow": state.origin.workflow,
        "graph": state.origin.graph,
        "status": _status(state, program),
        "reason": _reason(state),
        "user": state.origin.user,
        "labels": state.origin.labels,
        "version": state.version,
        "branch": state.lineage.branch,
        "created_at": iso(state.origin.started_at),
        "updated_at": iso(state.last_at),
        "ends_by": iso(state.origin.ends_by) if state.origin.ends_by else None,
        "expires_at": iso(state.origin.expires) if state.origin.expires else None,
        "steps": state.counts.steps,
        "most_steps": _most_steps(state, program),
        "active": [_active(state, program, slot) for slot in state.tokens],
        "cancelling": state.cancel is not None and state.ended is None,
        "result": msgspec.to_builtins(state.ended.output) if state.ended else None,
        "error": _error(state),
        "invocations": state.counts.invocations,
        "revivals": state.counts.revivals,
        "interruptions": state.counts.interrupted,
        "spent_usd": state.money.spent / MICRO,
        "budget_usd": state.money.budget / MICRO if state.money.budget else None,
        "failing": [_failing(state, program, slot) for slot in state.failing],
        "on_failure": foretold(program, handled=state.origin.handled, last=state.origin.last)
        if state.ended is None
        else None,
        "questions": [
            open_question_view(state, program, tools, slot, ask) for slot, ask in unclosed_questions(state)
        ],
        "parked": _parked(state),
        "undo": undo_view(state, program),
    } | _used(state, program)


def handler_view(state: State) -> dict[str, Any] | None:
    """Return the saga of the failure handler, or the reason why there is none."""
    end = state.ended
    if end is None or not (end.handler or end.unhandled):
        return None
    return {"saga": end.handler or None, "why": end.unhandled.message if end.unhandled else None}


def _used(state: State, program: Program) -> dict[str, Any]:
    """Return the use of the limits that count, and the end of the saga's time."""
    rows = []
    for scope, limits in program.caps.of.items() if program.caps is not None else ():
        for name, cap in limits.items():
            row = {"node": scope or None, "limit": UNITS.get(name, name), **cap_view(name, cap)}
            if name in COUNTED:
                used = getattr(state.used[scope], name)
                rows.append(row | {"used": used / MICRO if name == "cost" else used})
            elif name == "wall_time" and not scope:
                assert program.caps is not None
                rows.append(row | {"until": iso(program.caps.deadline(state) or 0)})
    return {"limits": rows}


def _place(state: State, program: Program, slot: str) -> dict[str, Any]:
    at = Slot.parse(slot)
    place: dict[str, Any] = {"node": at.node, "iteration": list(at.iteration)}
    if not (item := at.item):
        return place
    kind = program.kinds[program.nodes[at.node].kind]
    if is_undo(slot):
        return place | {"item": item, "label": "undo"}
    return place | {"item": item, "label": kind.label(state.open.get(at.owner), item)}


def _failing(state: State, program: Program, slot: str) -> dict[str, Any]:
    """Return a step some of whose attempts have failed, and what comes next."""
    failing = state.failing[slot]
    return {
        **_place(state, program, slot),
        "attempts": failing.attempts,
        **failure_view(failing.failure),
        "at": time_view(failing.failure.at),
        "strategy": failing.strategy,
        "hint": failing.hint or None,
        "way": failing.way.name if failing.way is not None else None,
        "next_attempt_at": time_view(failing.due_at),
    }


def failure_view(failure: Failure) -> dict[str, Any]:
    """Return a failure of an attempt: its fields, and its meaning for a person."""
    class_ = failure.kind or class_of(failure.code)
    meant = advice_for(failure.code)
    return {
        "code": failure.code,
        "class": class_,
        "message": failure.message,
        "retryable": class_ in RETRYABLE,
        "says": meant.says,
        "advice": meant.advice,
    }


def _parked(state: State) -> dict[str, Any] | None:
    """Return the reason for parking, and the end of the parking if the saga goes on by itself."""
    parked = state.parked
    if parked is None or state.ended is not None:
        return None
    return {
        "code": parked.code,
        "message": parked.message,
        "node": parked.node or None,
        "until": time_view(parked.until),
        "stands_still_since": time_view(parked.at),
        "build": parked.build or None,
    }


def _most_steps(state: State, program: Program) -> int | None:
    left = None if state.is_stopping else program.most_left(state)
    return None if left is None else state.counts.steps + left


def _active(state: State, program: Program, slot: str) -> dict[str, Any]:
    node = Slot.parse(slot).node
    what = "joining"
    of, work = program.doing(slot), state.open.get(slot)
    kind = program.kinds[of.kind]
    if state.has_begun(slot):
        what = kind.active if work is None else kind.word(work)
    elif slot in state.failing and state.failing[slot].ask is not None:
        what = "asking"
    elif slot in state.held:
        what = "held"
    elif slot in state.failing:
        what = "retrying"
    elif slot in state.pauses:
        what = "waiting"
    elif program.readiness(state, slot) != PENDING:
        what = "ready"
    shown: dict[str, Any] = {**_place(state, program, slot), "state": what}
    if rounds := program.most_rounds(node):
        shown["most_rounds"] = rounds
    if work is not None:
        shown |= kind.open_view(of, work)
    if what == "held":
        held = state.held[slot]
        shown |= _held_view(held) | {"since": iso(held.at), "until": iso(held.until)}
    if slot in state.pauses and what == "waiting":
        shown["until"] = iso(state.pauses[slot].until)
    if what == "joining":
        arrived = state.tokens[slot]
        shown["waits_for"] = [src for src in program.nodes[node].before if src not in arrived]
    return shown


def _held_view(held: Held) -> dict[str, Any]:
    if held.limit:
        return {"limit": held.limit, "needs_usd": held.amount / MICRO}
    return {"breaker": held.breaker}


def _status(state: State, program: Program) -> str:
    """Return the status.
    A saga whose questions all have an answer is suspended no longer: a worker is on its way to it.
    """
    status = status_of(state, program)
    if status == "suspended" and next(open_questions(state), None) is None:
        return "running"
    return status


def _reason(state: State) -> str | None:
    if state.ended is None and state.parked is not None:
        return f"{state.parked.code}: {state.parked.message}"
    return stopping_in_words(state)


def stopping_in_words(state: State) -> str | None:
    """Return the reason why a saga that stops has not ended: its open children; None if it has none."""
    open_ones = [work.orphan.saga for work in state.open.values() if work.orphan is not None]
    if not open_ones or not state.is_stopping or state.ended is not None:
        return None
    more = f" and of {len(open_ones) - 1} more" if len(open_ones) > 1 else ""
    return f"it stops, and waits for the end of its child `{open_ones[0]}`{more}"


def _error(state: State) -> dict[str, str] | None:
    """Return the failure of the saga: its message, and the meaning of its code to a person."""
    failure = state.ended.failure if state.ended else state.failure
    if failure is None:
        return None
    meant = advice_for(failure.code)
    return {
        "code": failure.code,
        "message": failure.message,
        "node": failure.node,
        "kind": failure.kind or class_of(failure.code),
        "says": meant.says,
        "advice": meant.advice,
    }


def tool_view(spec: ToolSpec) -> dict[str, Any]:
    """Return a tool as `GET /tools` shows it; `timeout_ms` None: the engine's default.

    `cost_usd`: maximum of one attempt.
    """
    return {
        "name": spec.name,
        "version": spec.version,
        "description": spec.description,
        "effect": spec.effect,
        "domain": spec.domain or None,
        "cost_usd": spec.cost / MICRO,
        "timeout_ms": spec.timeout_ms or None,
        "input": spec.parameters,
        "output": spec.result,
        "schema_hash": spec.schema_hash,
        "requires_approval": spec.requires_approval,
        "risk": None if spec.risk is None else asdict(spec.risk),
        "undo": spec.undo or None,
        "verify": spec.verify or None,
        "breaker": spec.breaker or None,
    }


_SELDOM = OF_UNDOING | {
    "at",
    "item",
    "usage",
    "is_result",
    "result",
    "assumed",
    "digest",
    "paused",
    "answer",
    "outer",
    "goes_on",
    "running",
    "passed",
}
"""Shown where there is something to show: most nodes do one thing, and ask no model."""


def entry_view(entry: Entry) -> dict[str, Any]:
    """Return an entry as `GET /sagas/{id}/events` shows it; every field of the log, defaults included."""
    return asdict(entry) | {"at": iso(entry.at), "events": [_event_view(event) for event in entry.events]}


def _event_view(event: Event) -> dict[str, Any]:
    shown: dict[str, Any] = {"kind": event.__struct_config__.tag}
    for name, value in asdict(event).items():
        if name in _SELDOM and not value:
            continue
        if name in _TIMES and isinstance(value, int):
            shown[name] = iso(value) if value or name not in _MAYBE else None
        elif isinstance(value, Paused):
            shown[name] = {"until": iso(value.until), "ends_by": time_view(value.ends_by)}
        elif name == "arguments" and isinstance(event, Opens):
            shown[name] = without_secrets(value)
        elif isinstance(value, Failure | Ask | Notice):
            shown[name] = _part_view(value)
        elif name == "shown":
            shown[name] = {ask: _part_view(row) for ask, row in value.items()}
        elif name == "errors":
            shown[name] = [_part_view(failure) for failure in value]
        elif name == "emits":
            shown[name] = [
                {
                    "from": token.src,
                    "to": token.dst,
                    "iteration": list(token.iteration),
                    "alive": token.alive,
                }
                for token in value
            ]
        else:
            shown[name] = json_form(value)
    return shown


def _part_view(part: Failure | Ask | Notice | Shown) -> dict[str, Any]:
    """Return a part as the log has it, without fields that have their default, but for the times:
    null is one that is not there.
    """
    shown: dict[str, Any] = json_form(part)
    if "escalate" in shown:
        shown["escalate"] = [step | {"at": iso(step["at"])} for step in shown["escalate"]]
    return {
        name: iso(value) if name in _TIMES and value > 0 else None if name in _TIMES else value
        for name, value in shown.items()
    }
