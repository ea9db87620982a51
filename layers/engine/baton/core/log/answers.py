"""Answers to questions: which questions are open, whom they are for, and what can be an answer to one.

What a step that fails asks, and what an answer to that comes to, is in core/decide/; what a node asks, in core/nodes/.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from baton.core.conditions.schema import violations
from baton.core.expressions import escape
from baton.core.expressions.spelling import nearest
from baton.core.failures import sanitised
from baton.core.failures.strategies.base import ESCALATED, ON_CALL, STARTER
from baton.core.graph.graph import Node
from baton.core.log.events import Ask, Notice
from baton.core.log.records import Option
from baton.core.log.state import ANSWER, UNKNOWN_OUTCOME, Failing, State, node_of
from baton.core.times import iso
from baton.errors import NotAllowedNow, NotFound, Problem

WHOLE = ""
"""In place of a slot: the question is about the saga as a whole."""
RESUME, CANCEL = "resume", "cancel"
PARKED_OPTIONS = (
    Option(id=RESUME, label="Try again", description="Let the saga go on, with its tries counted anew."),
    Option(id=CANCEL, label="Cancel", description="End the saga as cancelled.", destructive=True),
)
"""What an operator can answer about a saga that is parked."""
TRY_AGAIN, USE, GIVE_UP = "retry", "use", "fail"
ACTIONS: Mapping[str, str] = {
    TRY_AGAIN: "Try the step again, with other arguments if some are given.",
    USE: "Take this output in place of the step's own.",
    GIVE_UP: "Let the step fail with its last failure.",
}
"""What a person can answer about a step that has failed, each with what it does."""
EXPIRED = "expired"
"""What the log says of a question that was closed without an answer."""
POLICY = "policy"
"""Where the answer to a question comes from that its escalation has closed."""
APPROVE, REJECT, SUBMIT, DONE = "approve", "reject", "submit", "done"
REJECTED = "rejected"  # the code of a node or step that a person has said no to
"""What a person can answer to other questions, besides the options that a question has of its own."""

DECISION, INPUT, APPROVAL, TAKEOVER, ERROR = "decision", "input", "approval", "takeover", "error"
TYPES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    DECISION: ("decision", ()),
    INPUT: ("input", (SUBMIT,)),
    APPROVAL: ("approval", (APPROVE, REJECT)),
    TAKEOVER: ("browser_takeover", (DONE,)),
    ERROR: ("error_resolution", (DONE, REJECT)),
}
"""The types of question, each with its `kind` in an `Ask` and its answers where a node asks; a decision has its own."""

MAX_ARGUMENTS = 32_768  # bytes; they are in the state until the step is done
MAX_COMMENT = 2_000  # characters
OPERATORS = "operate"  # the role of callers who may answer every question
_SHOWN = 10
_CLOSED = {EXPIRED: "has expired", POLICY: "was decided without an answer"}
_REMEMBERED = f"{ANSWER}/"  # what keys of answers begin with in a state


class Answer(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a person says to the question `ask`. `arguments` goes with `retry`, `output` with `use`, `data` with `submit`."""

    ask: str
    action: str
    arguments: dict[str, Any] = {}
    output: Any = msgspec.UNSET
    data: Any = msgspec.UNSET
    comment: str = ""

    def payload(self) -> dict[str, Any]:
        """As the log keeps it: what was said and nothing else."""
        said: dict[str, Any] = {"ask": self.ask, "action": self.action}
        if self.arguments:
            said["arguments"] = self.arguments
        if self.output is not msgspec.UNSET:
            said["output"] = self.output
        if self.data is not msgspec.UNSET:
            said["data"] = self.data
        if self.comment:
            said["comment"] = self.comment
        return said


def is_for_a_person(question: str, code: str) -> bool:
    """Whether only a person can say of a step that has failed with this that it is tried again, asked this kind of question."""
    return question == APPROVAL or code == UNKNOWN_OUTCOME


def asked(state: State) -> Iterator[tuple[str, Ask]]:
    """Each question that is not closed, with the slot of its step; an answer may be there already. That of a parked saga first."""
    if state.parked is not None and (ask := about_parking(state)) is not None:
        yield WHOLE, ask
    for slot, failing in state.failing.items():
        if failing.ask is not None:
            yield slot, failing.ask
    for slot, work in state.open.items():
        if work.ask is not None:
            yield slot, work.ask


def about_parking(state: State) -> Ask | None:
    """What operators are asked about a parked saga: none goes on by itself, or is asked about more than its steps have asked."""
    parked = state.parked
    if parked is None or parked.until or parked.code == ESCALATED:
        return None
    where = f" at `{parked.node}`" if parked.node else ""
    return Ask(
        id=f"{state.lineage.branch}.parked.{state.parked_in}",
        kind="error_resolution",
        title=f"The saga is parked{where}",
        message=parked.message,
        options=PARKED_OPTIONS,
        severity="high",
        to=ON_CALL,
    )


def open_questions(state: State) -> Iterator[tuple[str, Ask]]:
    """Each question without an answer so far, with the slot of its step."""
    known: frozenset[str] | None = None
    for slot, ask in asked(state):
        known = answered(state) if known is None else known
        if ask.id not in known:
            yield slot, ask


def answered(state: State) -> frozenset[str]:
    """The ids of questions to which an answer has come, taken in or not. Keys of old answers are forgotten."""
    said = [signal.key for signal in state.signals if signal.name == ANSWER]
    said += [key.removeprefix(_REMEMBERED) for key in state.keys if key.startswith(_REMEMBERED)]
    return frozenset(map(question_of_key, said))


def answer_key(ask: str, key: str) -> str:
    """The key of an answer's signal. An `Idempotency-Key` counts for its question only; no id has a slash."""
    return f"{ask}/{key}" if key else ask


def question_of_key(key: str) -> str:
    """The id of the question that the answer with this key is to."""
    return key.partition("/")[0]


def is_answered(state: State, ask: str) -> bool:
    """Whether an answer has come, taken in or not."""
    return ask in answered(state)


def is_answer_to(key: str, ask: str) -> bool:
    """Whether this is the key of an answer to the question."""
    return question_of_key(key) == ask


def closed_by_time(state: State, ask: str) -> str:
    """Whether the question of a node was closed without an answer: `expired` or `policy`. Keys of old ones are forgotten."""
    known = state.keys.get(f"{_REMEMBERED}{ask}", "")
    return known if known in {EXPIRED, POLICY} else ""


def already_answered(name: str) -> NotAllowedNow:
    """The refusal of another answer to a question that has one."""
    return NotAllowedNow(f"question `{name}` has been answered")


def question(state: State, name: str, now: int) -> tuple[str, Ask]:
    """The question that waits for an answer, with the slot of its step. Raises `NotAllowedNow`, and `NotFound` with those that do."""
    if known := closed_by_time(state, name):
        raise NotAllowedNow(f"question `{name}` {_CLOSED[known]}")
    if is_answered(state, name):
        raise already_answered(name)
    slot, ask = next((pair for pair in asked(state) if pair[1].id == name), ("", None))
    if ask is None:
        raise NotFound(f"there is no question `{name[:80]}`; {named(state)}")
    is_over = now >= ask.ends_at and not state.stands_still
    if is_over and (slot in state.open or ask.ends_at != ask.expires_at):
        how = EXPIRED if ask.ends_at == ask.expires_at else POLICY
        raise NotAllowedNow(f"question `{name}` {_CLOSED[how]}: {iso(ask.ends_at)} was its end")
    return slot, ask


def named(state: State) -> str:
    """The open questions, for a caller who has named one that is not open."""
    ids = [ask.id for _, ask in open_questions(state)]
    if not ids:
        return "no question is open"
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return f"open: {', '.join(ids[:_SHOWN])}{more}"


def notice_of(state: State, slot: str, ask: Ask, now: int, key: str = "") -> Notice:
    """What tells people of a question that a node asks, as severe as its risk. `key`: another than that of its first notice."""
    return Notice(
        key=key or f"{state.origin.saga}/{ask.id}",
        to=ask.to or STARTER,
        code=ask.type,
        message=": ".join(text for text in (ask.title, ask.message) if text),
        severity=ask.severity or ask.risk or "medium",
        node=node_of(slot)[0],
        at=now,
        ask=ask.id,
    )


def question_of(state: State, notice: Notice) -> Ask | None:
    """The question that a notice is about, while that is open."""
    return next((ask for _, ask in open_questions(state) if ask.id == notice.ask), None)


def notice_again(state: State, slot: str, ask: Ask, now: int, *, key: str = "", why: str = "") -> Notice:
    """What tells people of an open question another time, under another key: the sender knows that of the first as sent.

    `key` and `why` tell it from the other times in this branch.
    """
    key = "/".join(filter(None, (state.origin.saga, str(state.lineage.branch), ask.id, key)))
    notice = notice_of(state, slot, ask, now, key)
    if why:
        notice = replace(notice, message=f"{why}: {notice.message}")
    failing = state.failing.get(slot)
    if failing is None or failing.ask is None or failing.ask.id != ask.id:
        return notice
    from baton.core.failures.strategies.ladder import severity_of  # few sagas ask

    failure = failing.failure
    severity = ask.severity or severity_of(failure.code, failure.kind)
    return replace(notice, code=failure.code, severity=severity)


def audience(state: State, to: str) -> tuple[str, str]:
    """Whom a question is for, as a kind (user, group, role) and a name. `to` is as that of an `Ask`."""
    if to == ON_CALL:
        return "role", OPERATORS
    kind, _, name = to.partition(":")
    return (kind, name) if name else ("user", state.origin.user)


def may_answer(state: State, ask: Ask) -> tuple[tuple[str, str], ...]:
    """Who may answer a question, as kinds (user, group, role) and names; operators may answer every question."""
    return tuple(dict.fromkeys((audience(state, ask.to), ("role", OPERATORS))))


def refusal(state: State, ask: Ask, user: str, roles: Collection[str], groups: Collection[str] = ()) -> str:
    """Why this caller may not answer, and who may; empty for one who may."""
    caller = {"user": (user,), "group": groups, "role": roles}
    allowed = may_answer(state, ask)
    if any(name in caller[kind] for kind, name in allowed):
        return ""
    named = " or ".join(f"the {kind} `{name}`" for kind, name in allowed)
    claimed = f", claimed by `{allowed[0][1]}` at {iso(ask.moved_at)}," if ask.candidates else ""
    return f"question `{ask.id}`{claimed} is for {named}; the caller is the user `{user}`"


def tool_asked_about(node: Node, failing: Failing) -> str:
    """The tool that would run if the answer is `retry`."""
    way = failing.way
    return way.tool if way is not None and way.tool and not way.first else node.tool


def changeable(ask: Ask, parameters: Mapping[str, Any]) -> dict[str, Any] | None:
    """The JSON Schema of the arguments that an answer may change; None when it may change none.

    `parameters`: the schema of the arguments of the tool that would run.
    """
    known = parameters.get("properties", {})
    is_open = parameters.get("additionalProperties") is not False
    properties = {name: known.get(name, {}) for name in ask.may_change if is_open or name in known}
    if not properties:
        return None
    shared = {"$defs": parameters["$defs"]} if "$defs" in parameters else {}
    return {"type": "object", "properties": properties, "additionalProperties": False, **shared}


def check_answer(
    ask: Ask,
    node: Node | None,
    parameters: Mapping[str, Any],
    answer: Answer,
    result: Mapping[str, Any] | None = None,
) -> tuple[Problem, ...]:
    """Everything that is wrong with an answer.

    `node` is the one that has asked, or is asked about; None: it is about the saga as a whole. `parameters`: the schema of the arguments of the tool that would
    run; `result`: that of what an output has to be like.
    """
    if answer.action not in ask.actions:
        hint = nearest(answer.action, ask.actions)
        return (Problem("/action", f"must be one of {', '.join(ask.actions)}", hint),)
    repeats, replaces = (ask.type == ERROR and answer.action == one for one in (TRY_AGAIN, USE))
    submits = ask.type == INPUT and answer.action == SUBMIT
    found: list[Problem] = []
    for name, is_given, goes, action in (
        ("arguments", bool(answer.arguments), repeats, TRY_AGAIN),
        ("output", answer.output is not msgspec.UNSET, replaces, USE),
        ("data", answer.data is not msgspec.UNSET, submits, SUBMIT),
    ):
        if is_given and not goes:
            found.append(Problem(f"/{name}", f"goes with `{action}`, not with `{answer.action}`"))
    if repeats:
        found += _arguments(ask, parameters, answer.arguments) if answer.arguments else ()
    elif replaces:
        assert node is not None, "only about a step that failed"
        lacks = "is missing: `use` needs what to take in place of the step's output"
        found += _value("/output", answer.output, lacks, node.output_schema, result)
    elif submits:
        found += _value(
            "/data", answer.data, "is missing: `submit` needs the data that the question asks for", ask.schema
        )
    return (*found, *_secrets(answer))


def _value(place: str, value: Any, lacks: str, *schemas: Any) -> Iterator[Problem]:
    if value is msgspec.UNSET:
        yield Problem(place, lacks)
        return
    for schema in schemas:
        yield from violations(schema, value, place) if schema is not None else ()


def _secrets(answer: Answer) -> Iterator[Problem]:
    """The parts that hold what looks like a secret. The output of a step may: that is its author's business."""
    elsewhere = "put it where the tool reads it, such as a secret store"
    for name, hint in (
        ("arguments", f"{elsewhere}, and answer `retry`"),
        ("data", elsewhere),
        ("comment", ""),
    ):
        if _has_secret("", getattr(answer, name)):
            text = "has what looks like a secret, and what is answered stays in the log for ever"
            yield Problem(f"/{name}", text, hint)


_SECRET = frozenset(
    {
        "password",
        "passwd",
        "passphrase",
        "secret",
        "api_key",
        "apikey",
        "client_secret",
        "private_key",
        "access_token",
        "refresh_token",
        "secret_key",
        "pwd",
    }
)


def _has_secret(name: str, value: Any) -> bool:
    """Whether a text in it has the shape of a secret, or a name that only secrets have."""
    if isinstance(value, str):
        return bool(value) and (name.lower().replace("-", "_") in _SECRET or sanitised(value) != value)
    if isinstance(value, Mapping):
        return any(_has_secret(str(key), inner) for key, inner in value.items())
    return isinstance(value, list) and any(_has_secret(name, inner) for inner in value)


def _arguments(ask: Ask, parameters: Mapping[str, Any], arguments: Mapping[str, Any]) -> Iterator[Problem]:
    """They take the place of the step's own, so none of them has to be there."""
    open_to = (changeable(ask, parameters) or {}).get("properties", {})
    which = ", ".join(f"`{name}`" for name in open_to)
    which = which or "none; the document's `may_change` names those that are"
    for name in sorted(arguments.keys() - open_to.keys()):
        hint = nearest(name, open_to) or f"open to change: {which}"
        yield Problem(f"/arguments/{escape(name)}", f"an answer may not change the argument `{name}`", hint)
    arguments = {name: value for name, value in arguments.items() if name in open_to}
    yield from violations({**parameters, "required": []}, arguments, "/arguments")
