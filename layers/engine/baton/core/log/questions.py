"""Open questions, approvals, escalations, claims and answers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from baton.core.conditions.schema import violations
from baton.core.effects.toolspec import ApprovalRequest
from baton.core.expressions import escape, iso, nearest
from baton.core.failures import sanitised
from baton.core.failures.secret_names import REDACTED, is_secret
from baton.core.failures.strategies.base import ESCALATED, ON_CALL, STARTER
from baton.core.graph.graph import Node
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.log.events import Notice
from baton.core.log.records import Ask, Escalation, Option
from baton.core.log.slots import Slot
from baton.core.log.state import ANSWER, UNKNOWN_OUTCOME, Failing, State
from baton.core.on_demand import OnDemand
from baton.errors import Forbidden, NotAllowedNow, NotFound, Problem

if TYPE_CHECKING:
    from baton.core.failures.strategies import ladder
else:
    ladder = OnDemand("baton.core.failures.strategies.ladder")

WHOLE = ""
"""Slot of a question about the saga as a whole."""
RESUME, CANCEL = "resume", "cancel"
PARKED_OPTIONS = (
    Option(id=RESUME, label="Try again", description="Let the saga go on, with its tries counted anew."),
    Option(id=CANCEL, label="Cancel", description="End the saga as cancelled.", destructive=True),
)
"""Options of an operator who decides about a parked saga."""
TRY_AGAIN, USE, GIVE_UP = "retry", "use", "fail"
ACTIONS: Mapping[str, str] = {
    TRY_AGAIN: "Try the step again, with other arguments if some are given.",
    USE: "Take this output in place of the step's own.",
    GIVE_UP: "Let the step fail with its last failure.",
}
"""Answers to a question about a failed step, each with its effect."""
EXPIRED = "expired"
"""Action in the log of a question that was closed without an answer."""
POLICY = "policy"
"""Source of the answer to a question that its escalation has closed."""
APPROVE, REJECT, SUBMIT, DONE = "approve", "reject", "submit", "done"
REJECTED = "rejected"  # the code of a node or step that a person has said no to
"""Answers to other questions, besides the options that a question has of its own."""

DECISION, INPUT, APPROVAL, TAKEOVER, ERROR = "decision", "input", "approval", "takeover", "error"
TYPES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    DECISION: ("decision", ()),
    INPUT: ("input", (SUBMIT,)),
    APPROVAL: ("approval", (APPROVE, REJECT)),
    TAKEOVER: ("browser_takeover", (DONE,)),
    ERROR: ("error_resolution", (DONE, REJECT)),
}
"""Types of question, each with its `kind` in an `Ask` and its answers where a node asks; a decision has its
own.
"""

MAX_ARGUMENTS = 32_768  # bytes; they are in the state until the step is done
MAX_COMMENT = 2_000  # characters
OPERATORS = "operate"  # the role of callers who may answer every question
_SHOWN = 10
_CLOSED = {EXPIRED: "has expired", POLICY: "was decided without an answer"}
_REMEMBERED = f"{ANSWER}/"  # what keys of answers begin with in a state


class Answer(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A person's answer to the question `ask`.

    `arguments` goes with `retry`, `output` with `use`, `data` with `submit`.
    """

    ask: str
    action: str
    arguments: dict[str, Any] = {}
    output: Any = msgspec.UNSET
    data: Any = msgspec.UNSET
    comment: str = ""

    def payload(self) -> dict[str, Any]:
        """Return the answer as the log keeps it: only the fields that were set."""
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
    """Return true if only a person can decide to retry a step with this kind of question and this failure
    code.
    """
    return question == APPROVAL or code == UNKNOWN_OUTCOME


def unclosed_questions(state: State) -> Iterator[tuple[str, Ask]]:
    """Yield each question that is not closed, with the slot of its step; its answer may have arrived already.

    The question of a parked saga comes first.
    """
    if state.parked is not None and (ask := about_parking(state)) is not None:
        yield WHOLE, ask
    for slot, failing in state.failing.items():
        if failing.ask is not None:
            yield slot, failing.ask
    for slot, work in state.open.items():
        if work.ask is not None:
            yield slot, work.ask


def about_parking(state: State) -> Ask | None:
    """Return the question to operators about a parked saga.

    None if the saga is not parked, goes on by itself, is paused, or is parked only for the questions of its
    steps.
    """
    parked = state.parked
    if parked is None or parked.until or parked.is_pause or parked.code == ESCALATED:
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
    """Yield each question without an answer so far, with the slot of its step."""
    known: frozenset[str] | None = None
    for slot, ask in unclosed_questions(state):
        known = answered_questions(state) if known is None else known
        if ask.id not in known:
            yield slot, ask


def answered_questions(state: State) -> frozenset[str]:
    """Return the ids of questions to which an answer has arrived, taken in or not.

    Keys of old answers are forgotten.
    """
    said = [signal.key for signal in state.signals if signal.name == ANSWER]
    said += [key.removeprefix(_REMEMBERED) for key in state.keys if key.startswith(_REMEMBERED)]
    return frozenset(map(question_of_key, said))


def answer_key(ask: str, key: str) -> str:
    """Return the key of an answer's signal.

    An `Idempotency-Key` counts for its question only; no id has a slash.
    """
    return f"{ask}/{key}" if key else ask


def question_of_key(key: str) -> str:
    """Return the id of the question that the answer with this key belongs to."""
    return key.partition("/")[0]


def is_answered(state: State, ask: str) -> bool:
    """Return true if an answer has arrived, taken in or not."""
    return ask in answered_questions(state)


def is_answer_to(key: str, ask: str) -> bool:
    """Return true if this is the key of an answer to the question."""
    return question_of_key(key) == ask


def closed_by_time(state: State, ask: str) -> str:
    """Return `expired` or `policy` if the question of a node was closed without an answer, else an empty
    text.

    Keys of old questions are forgotten.
    """
    known = state.keys.get(f"{_REMEMBERED}{ask}", "")
    return known if known in {EXPIRED, POLICY} else ""


def already_answered(name: str) -> NotAllowedNow:
    """Return the refusal of another answer to a question that has one."""
    return NotAllowedNow(f"question `{name}` has been answered")


def awaited_question(state: State, name: str, now: int) -> tuple[str, Ask]:
    """Return the open question with this id, and the slot of its step.

    Raises `NotAllowedNow` for a closed or answered question, and `NotFound`, with the ids of the open
    questions, for an unknown one.
    """
    if known := closed_by_time(state, name):
        raise NotAllowedNow(f"question `{name}` {_CLOSED[known]}")
    if is_answered(state, name):
        raise already_answered(name)
    slot, ask = next((pair for pair in unclosed_questions(state) if pair[1].id == name), ("", None))
    if ask is None:
        raise NotFound(f"there is no question `{name[:80]}`; {open_questions_in_words(state)}")
    is_over = now >= ask.ends_at and not state.stands_still
    if is_over and (slot in state.open or ask.ends_at != ask.expires_at):
        how = EXPIRED if ask.ends_at == ask.expires_at else POLICY
        raise NotAllowedNow(f"question `{name}` {_CLOSED[how]}: {iso(ask.ends_at)} was its end")
    return slot, ask


def open_questions_in_words(state: State) -> str:
    """Return the open questions as a text, for a caller who named a question that is not open."""
    ids = [ask.id for _, ask in open_questions(state)]
    if not ids:
        return "no question is open"
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return f"open: {', '.join(ids[:_SHOWN])}{more}"


def notice_of(state: State, slot: str, ask: Ask, now: int, key: str = "") -> Notice:
    """Return the notice of a question that a node asks, as severe as its risk.

    `key`: a key other than that of its first notice.
    """
    return Notice(
        key=key or f"{state.origin.saga}/{ask.id}",
        to=ask.to or STARTER,
        code=ask.type,
        message=": ".join(text for text in (ask.title, ask.message) if text),
        severity=ask.severity or ask.risk or "medium",
        node=Slot.parse(slot).node,
        at=now,
        ask=ask.id,
    )


def question_of(state: State, notice: Notice) -> Ask | None:
    """Return the question of a notice, or None if the question is no longer open."""
    return next((ask for _, ask in open_questions(state) if ask.id == notice.ask), None)


def notice_again(state: State, slot: str, ask: Ask, now: int, *, key: str = "", why: str = "") -> Notice:
    """Return another notice of an open question, under another key, because the sender takes the first key as
    sent.

    `key` and `why` tell it from the other notices in this branch.
    """
    key = "/".join(filter(None, (state.origin.saga, str(state.lineage.branch), ask.id, key)))
    notice = notice_of(state, slot, ask, now, key)
    if why:
        notice = replace(notice, message=f"{why}: {notice.message}")
    failing = state.failing.get(slot)
    if failing is None or failing.ask is None or failing.ask.id != ask.id:
        return notice
    failure = failing.failure
    severity = ask.severity or ladder.severity_of(failure.code, failure.kind)
    return replace(notice, code=failure.code, severity=severity)


def audience(state: State, to: str) -> tuple[str, str]:
    """Return the audience of a question, as a kind (user, group, role) and a name.

    `to` is as that of an `Ask`.
    """
    if to == ON_CALL:
        return "role", OPERATORS
    kind, _, name = to.partition(":")
    return (kind, name) if name else ("user", state.origin.user)


def may_answer(state: State, ask: Ask) -> tuple[tuple[str, str], ...]:
    """Return the kinds (user, group, role) and names that may answer a question; operators may answer every
    question.
    """
    return tuple(dict.fromkeys((audience(state, ask.to), ("role", OPERATORS))))


def answer_refusal(
    state: State, ask: Ask, user: str, roles: Collection[str], groups: Collection[str] = ()
) -> str:
    """Return the reason why this caller may not answer, with those who may; empty if the caller may."""
    caller = {"user": (user,), "group": groups, "role": roles}
    allowed = may_answer(state, ask)
    if any(name in caller[kind] for kind, name in allowed):
        return ""
    named = " or ".join(f"the {kind} `{name}`" for kind, name in allowed)
    claimed = f", claimed by `{allowed[0][1]}` at {iso(ask.moved_at)}," if ask.candidates else ""
    return f"question `{ask.id}`{claimed} is for {named}; the caller is the user `{user}`"


def tool_asked_about(node: Node, failing: Failing) -> str:
    """Return the tool that would run if the answer is `retry`."""
    way = failing.way
    return way.tool if way is not None and way.tool and not way.first else node.tool


def changeable(ask: Ask, parameters: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the JSON Schema of the arguments that an answer may change; None if it may change none.

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
    """Return every problem of an answer.

    `node` is the node that asks, or that the question is about; None: the question is about the saga as a
    whole.
    `parameters`: the schema of the arguments of the tool that would run. `result`: the schema of an output.
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
    """Yield a problem for each part that holds a likely secret.

    The output of a step may hold secrets: its author decides.
    """
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
    """Return true if a text in the value has the shape of a secret, or a name that only secrets have."""
    if isinstance(value, str):
        return bool(value) and (name.lower().replace("-", "_") in _SECRET or sanitised(value) != value)
    if isinstance(value, Mapping):
        return any(_has_secret(str(key), inner) for key, inner in value.items())
    return isinstance(value, list) and any(_has_secret(name, inner) for inner in value)


def _arguments(ask: Ask, parameters: Mapping[str, Any], arguments: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of changed arguments. They replace the step's own, so none of them is required."""
    open_to = (changeable(ask, parameters) or {}).get("properties", {})
    which = ", ".join(f"`{name}`" for name in open_to)
    which = which or "none; the document's `may_change` names those that are"
    for name in sorted(arguments.keys() - open_to.keys()):
        hint = nearest(name, open_to) or f"open to change: {which}"
        yield Problem(f"/arguments/{escape(name)}", f"an answer may not change the argument `{name}`", hint)
    arguments = {name: value for name, value in arguments.items() if name in open_to}
    yield from violations({**parameters, "required": []}, arguments, "/arguments")


LONGEST_TEXT = 500  # characters of one text among the arguments
MOST_ITEMS = 50  # of one list or object among them
DEEPEST = 6
MOST_SHOWN = 16_384  # bytes of all of them
MOST_SAID = 2_000  # characters of a title or a message
_ID_DIGITS = 12
_LEFT_OUT = "…"


def question_ms(said: int, limits: Limits) -> int:
    """Return the milliseconds for which a question waits. `said`: those that its author wrote; 0: none."""
    return said or limits.question_timeout_ms


def approval_of(
    state: State, slot: str, request: ApprovalRequest, says: Mapping[str, Any], expires_ms: int, now: int
) -> Ask:
    """Return the question of a step about a call. `says`: title, message and audience, as in the document.

    Raises `ValueError` for an invalid audience.
    """
    kind, options = TYPES[APPROVAL]
    return Ask(
        # The digest makes it another question than that about any other call of this step.
        id=f"{state.lineage.branch}.{slot}.{request.digest[:_ID_DIGITS]}",
        kind=kind,
        type=APPROVAL,
        title=rendered_text(says.get("title", f"May `{request.tool}` act?"))[:MOST_SAID],
        message=rendered_text(says.get("message", f"{request.level} risk: {request.why}"))[:MOST_SAID],
        details=_details(request),
        options=options,
        risk=request.level,
        digest=request.digest,
        to=audience_of(says.get("to")),
        asked_at=now,
        expires_at=now + expires_ms,
    )


def rendered_text(value: Any) -> str:
    """Return the value as a text; an expression on its own may give a value of another type, which is encoded
    as JSON.
    """
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def audience_of(said: Mapping[str, Any] | None, place: str = "to") -> str:
    """Return the audience in the form of an `Ask`; empty for the starter.

    Raises `ValueError` for an invalid audience.
    """
    for kind, name in (said or {}).items():
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"{place}.{kind}: it must be a name")
        return f"{kind}:{name}"
    return ""


def visible_arguments(arguments: Any) -> Any:
    """Return arguments as a person may see them: without secrets, long texts and lists cut, as the log keeps
    them.
    """
    return _shown("", arguments, DEEPEST)


def _details(request: ApprovalRequest) -> dict[str, Any]:
    arguments = visible_arguments(request.arguments)
    if len(msgspec.json.encode(arguments)) > MOST_SHOWN:
        arguments = dict.fromkeys(list(request.arguments)[:MOST_ITEMS], _LEFT_OUT)
    return {"tool": request.tool, "arguments": arguments, "risk": request.level, "why": request.why}


def _shown(name: str, value: Any, depth: int) -> Any:
    if is_secret(name) and value not in (None, "", False, True):
        return REDACTED
    if isinstance(value, str):
        text = sanitised(value[: 4 * LONGEST_TEXT])
        return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + _LEFT_OUT
    if not isinstance(value, Mapping | list | tuple):
        return value
    if not depth:
        return _LEFT_OUT
    if isinstance(value, Mapping):
        items = list(value.items())
        found = {
            sanitised(str(key)[:LONGEST_TEXT]): _shown(str(key), one, depth - 1)
            for key, one in items[:MOST_ITEMS]
        }
        return found | ({_LEFT_OUT: f"{len(items) - MOST_ITEMS} more"} if len(items) > MOST_ITEMS else {})
    rest = [f"{_LEFT_OUT} {len(value) - MOST_ITEMS} more"] if len(value) > MOST_ITEMS else []
    return [*(_shown(name, one, depth - 1) for one in value[:MOST_ITEMS]), *rest]


def steps_of(said: Sequence[Mapping[str, Any]], now: int) -> tuple[Escalation, ...]:
    """Return the escalation steps of a question that is asked now, from a graph's description of them.

    Raises `ValueError` for an invalid audience.
    """
    return tuple(
        Escalation(
            at=now + one["after_ms"],
            to=audience_of(one["hand_on"], "hand_on") if "hand_on" in one else None,
            decide=one.get("decide", ""),
        )
        for one in said
    )


def decided_by(ask: ev.Ask, now: int) -> str:
    """Return the answer that the last step of an escalation has given by now, or an empty text."""
    return ask.escalate[-1].decide if ask.escalate and now >= ask.escalate[-1].at else ""


def due_step(state: State, slot: str, ask: ev.Ask, now: int) -> tuple[ev.QuestionEscalated, ev.Notice | None]:
    """Return the event and the notice of the escalation step that is due.

    Steps that are due after it follow in the same entry, and people are told of the last alone, so an earlier
    one has no notice.
    """
    step = ask.escalate[0]
    event = ev.QuestionEscalated(**Slot.parse(slot).fields, ask=ask.id, at=now, due=step.at, to=step.to)
    if any(later.at <= now for later in ask.escalate[1:]):
        return event, None
    now_for = replace(ask, to=ask.to if step.to is None else step.to)
    why = "Reminder" if step.to is None else "Handed on"
    return event, notice_again(state, slot, now_for, now, key=str(step.at), why=why)


BETWEEN_REMINDERS_MS = 300_000
"""Shortest time in milliseconds between the last notice to people and a reminder at a caller's request."""


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """A caller. `by` is the name for the log."""

    user: str
    by: str
    roles: Collection[str] = ()
    groups: Collection[str] = ()

    def refusal(self, state: State, ask: ev.Ask) -> str:
        """Return the reason why the person may not answer; empty if the person may."""
        return answer_refusal(state, ask, self.user, self.roles, self.groups)


def claim_question(state: State, slot: str, ask: ev.Ask, person: Person, now: int) -> Sequence[ev.Event]:
    """Return the events that make the question the caller's own; empty if it is so already.

    Raises `Forbidden` for a caller outside of the audience, `NotAllowedNow` if another user has the question.
    """
    _check_part(slot, ask)
    if why := person.refusal(state, replace(ask, to=ask.candidates or ask.to, candidates="")):
        raise Forbidden(why)
    kind, name = audience(state, ask.to)
    if (kind, name) == ("user", person.user):
        return ()
    if ask.candidates:
        since = iso(ask.moved_at)
        raise NotAllowedNow(
            f"`{name}` has claimed question `{ask.id}` at {since}; `{name}` or an operator can release it"
        )
    if kind == "user":
        raise NotAllowedNow(f"question `{ask.id}` is for the user `{name}` alone: there is nothing to claim")
    return (_claimed(slot, ask, person, now, to=f"user:{person.user}"),)


def release(state: State, slot: str, ask: ev.Ask, person: Person, now: int) -> Sequence[ev.Event]:
    """Return the events that give the question back to all of its audience; empty if no caller has claimed
    it.

    Raises `Forbidden` for a caller who neither has claimed it nor is an operator.
    """
    if why := person.refusal(state, ask):
        raise Forbidden(why)
    return (_claimed(slot, ask, person, now, to=""),) if ask.candidates else ()


def remind_audience(state: State, slot: str, ask: ev.Ask, person: Person, now: int) -> Sequence[ev.Event]:
    """Return the events that tell the audience of a question again.

    Raises `Forbidden` for a caller who may not answer it and has not started the saga, `NotAllowedNow` if the
    last notice is too recent.
    """
    _check_part(slot, ask)
    why = person.refusal(state, ask)
    if why and person.user != state.origin.user:
        raise Forbidden(why)
    last = max(ask.asked_at, ask.told_at)
    if now < (again := last + BETWEEN_REMINDERS_MS):
        raise NotAllowedNow(
            f"people were told of question `{ask.id}` at {iso(last)}; they can be told again at {iso(again)}"
        )
    told = ev.QuestionEscalated(**Slot.parse(slot).fields, ask=ask.id, at=now, by=person.by)
    return told, ev.NoticeDue(notice=notice_again(state, slot, ask, now, key=f"r{now}", why="Reminder"))


def _check_part(slot: str, ask: ev.Ask) -> None:
    """Refuse a question about a saga as a whole: the state has no place for its claim or the time of a
    reminder.
    """
    if slot == WHOLE:
        raise NotAllowedNow(f"question `{ask.id}` is about a parked saga: an operator answers it")


def _claimed(slot: str, ask: ev.Ask, person: Person, now: int, to: str) -> ev.QuestionClaimed:
    return ev.QuestionClaimed(**Slot.parse(slot).fields, ask=ask.id, at=now, by=person.by, to=to)
