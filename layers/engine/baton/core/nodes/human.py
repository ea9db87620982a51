"""A question to a person."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from baton.core.expressions import excess_of, iso
from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.questions import (
    APPROVAL,
    DECISION,
    EXPIRED,
    POLICY,
    REJECT,
    REJECTED,
    TYPES,
    audience_of,
    due_step,
    is_answer_to,
    notice_of,
    question_ms,
    rendered_text,
    steps_of,
)
from baton.core.log.records import Escalation, Option, Takeover
from baton.core.log.state import ANSWER
from baton.core.log.work import Open
from baton.core.nodes.base import Activation, Done, Escalated, Failed, Kind, Next, NodeContext, Opened

PERSON, DEFAULT = "person", "default"
"""Sources of an answer, besides its question's escalation (POLICY)."""

MOST_SAID = (
    32_768  # bytes of what a question says, its schema aside: it is in the state until it has an answer
)
_ADDRESS = r"https://[^\s/?#@\\]+(?:[/?#][^\s\\]*)?"
_is_address = re.compile(_ADDRESS).fullmatch
_is_picture = re.compile(rf"{_ADDRESS}|cas://sha256/[0-9a-f]{{64}}(?:@[0-9]+d[0-9]+)?").fullmatch


class HumanKind(Kind):
    """A question.

    It is closed by the first answer in the log, or else by its escalation or when it expires.
    """

    name = "human"

    def template(self, node: Node) -> Any:
        assert node.asks is not None, "the compiler gives it one"
        return node.asks.says

    def begin(self, at: Activation, context: NodeContext) -> Next | None:
        said = context.value(at).v
        try:
            if excess := excess_of(said, MOST_SAID):
                raise ValueError(f"it says too much: {excess}")
            ask = _question(at, context, said)
        except ValueError as error:
            return Failed(ev.failed_with("question_invalid", str(error), at.node.name))
        opened = ev.QuestionOpened(**at.place.fields, ask=ask)
        return Opened(opened, told=notice_of(context.state, at.slot, ask, context.now))

    def resume(self, at: Activation, work: Open, context: NodeContext) -> Next | None:
        ask = work.ask
        assert ask is not None, "nothing else is opened here"
        for signal in context.state.signals:
            if signal.name == ANSWER and is_answer_to(signal.key, ask.id):
                said = context.content(at, signal.payload)
                closed = _closed(at, ask, said["action"], context.now, by=signal.key)
                if said["action"] == REJECT and ask.type != DECISION:
                    why = f": {said['comment']}" if said.get("comment") else ""
                    return _failed(at, closed, REJECTED, f"{signal.by} has rejected it{why}")
                return _done(at, closed, said, PERSON, by=signal.by, when=signal.at)
        if context.now >= ask.ends_at:
            return (
                _expired(at, ask, context.now)
                if ask.ends_at == ask.expires_at
                else _decided(at, ask, context.now)
            )
        if context.now < ask.due:
            return None
        return Escalated(*due_step(context.state, at.slot, ask, context.now))

    def node_view(self, node: Node) -> dict[str, Any]:
        asks = node.asks
        assert asks is not None, "the compiler gives it one"
        shown = {"type": asks.type, "title": asks.says["title"], "expires_ms": asks.expires_ms}
        return shown | {name: asks.says[name] for name in ("risk", "escalate") if name in asks.says}


def _question(at: Activation, context: NodeContext, said: Mapping[str, Any]) -> ev.Ask:
    """Return the question of a node. Raises `ValueError` for values of which no question can be made."""
    asks = at.node.asks
    assert asks is not None, "the compiler gives it one"
    kind, options = TYPES[asks.type]
    own = tuple(
        Option(
            id=one["id"],
            label=rendered_text(one.get("label", "")),
            description=rendered_text(one.get("description", "")),
            default=one.get("default", False),
            destructive=one.get("destructive", False),
        )
        for one in said.get("options", ())
    )
    return ev.Ask(
        id=f"{context.state.lineage.branch}.{at.slot}",
        kind=kind,
        type=asks.type,
        title=rendered_text(said["title"]),
        message=rendered_text(said.get("message", "")),
        details=said.get("details"),
        options=own or options,
        schema=asks.schema,
        takeover=_takeover(said["takeover"]) if "takeover" in said else None,
        to=audience_of(said.get("to")),
        asked_at=context.now,
        expires_at=context.now + question_ms(asks.expires_ms, context.limits),
        risk=said.get("risk", ""),
        escalate=_escalation(said["escalate"], context.now) if "escalate" in said else (),
    )


def _escalation(said: Sequence[Mapping[str, Any]], now: int) -> tuple[Escalation, ...]:
    return steps_of(said, now)


def _takeover(said: Mapping[str, Any]) -> Takeover:
    found = Takeover(**{name: rendered_text(value) for name, value in said.items()})
    if not _is_address(found.url):
        raise ValueError("takeover.url: it must be an address that begins with https://")
    if found.picture and not _is_picture(found.picture):
        raise ValueError("takeover.picture: it must be an address that begins with https:// or cas://sha256/")
    return found


def _decided(at: Activation, ask: ev.Ask, now: int) -> Next:
    """Return the result of a question that the last step of its escalation has closed."""
    action = ask.escalate[-1].decide
    closed = _closed(at, ask, action, now)
    if action == REJECT and ask.type != DECISION:
        late = f"no answer came before {iso(ask.ends_at)}, and its escalation has rejected it"
        return _failed(at, closed, REJECTED, late)
    return _done(at, closed, {"action": action}, POLICY, by=None, when=now)


def _expired(at: Activation, ask: ev.Ask, now: int) -> Next:
    closed = _closed(at, ask, EXPIRED, now)
    usual = next((one.id for one in ask.options if isinstance(one, Option) and one.default), None)
    if usual is not None:
        return _done(at, closed, {"action": usual}, DEFAULT, by=None, when=now)
    late = f"no answer came before {iso(ask.expires_at)}"
    if ask.type == APPROVAL:
        return _failed(at, closed, REJECTED, f"{late}, which counts as a rejection")
    return _failed(at, closed, "question_expired", late)


def _closed(at: Activation, ask: ev.Ask, action: str, now: int, by: str = "") -> ev.QuestionClosed:
    return ev.QuestionClosed(
        **at.place.fields,
        ask=ask.id,
        action=action,
        at=now,
        by=by,
    )


def _done(
    at: Activation,
    closed: ev.QuestionClosed,
    said: Mapping[str, Any],
    source: str,
    *,
    by: str | None,
    when: int,
) -> Done:
    output = {
        "answer": said["action"],
        "data": said.get("data"),
        "comment": said.get("comment"),
        "by": by,
        "at": iso(when),
        "source": source,
    }
    passed = ev.NodePassed(**at.place.fields, output=ev.Value(v=output))
    return Done(passed, first=closed)


def _failed(at: Activation, closed: ev.QuestionClosed, code: str, message: str) -> Failed:
    return Failed(ev.failed_with(code, message, at.node.name), first=closed)
