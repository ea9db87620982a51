"""Open questions, approvals, escalations, claims and answers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from baton.core.conditions.schema import violations
from baton.core.effects.toolspec import Request
from baton.core.expressions import escape, nearest
from baton.core.failures import sanitised
from baton.core.failures.secret_names import REDACTED, is_secret
from baton.core.failures.strategies.base import ESCALATED, ON_CALL, STARTER
from baton.core.graph.graph import Node
from baton.core.limits import DAY_MS
from baton.core.log import events as ev
from baton.core.log.events import Notice
from baton.core.log.records import Ask, Escalation, Option
from baton.core.log.state import ANSWER, UNKNOWN_OUTCOME, Failing, State, item_of, node_of
from baton.core.sizes import iso
from baton.errors import Forbidden, NotAllowedNow, NotFound, Problem

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
"""The types of question, each with its `kind` in an `Ask` and its
answers where a node asks; a decision has its own.
"""

MAX_ARGUMENTS = 32_768  # bytes; they are in the state until the step is done
MAX_COMMENT = 2_000  # characters
OPERATORS = "operate"  # the role of callers who may answer every question
_SHOWN = 10
_CLOSED = {EXPIRED: "has expired", POLICY: "was decided without an answer"}
_REMEMBERED = f"{ANSWER}/"  # what keys of answers begin with in a state


class Answer(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a person says to the question `ask`.
    `arguments` goes with `retry`, `output` with `use`, `data` with `submit`.
    """

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
    """Whether only a person can say of a step that has failed with this
    that it is tried again, asked this kind of question.
    """
    return question == APPROVAL or code == UNKNOWN_OUTCOME


def asked(state: State) -> Iterator[tuple[str, Ask]]:
    """Each question that is not closed, with the slot of its step; an answer may be there already.
    That of a parked saga first.
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
    """What operators are asked about a parked saga: none goes on by itself,
    or is asked about more than its steps have asked.
    """
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
    """Whether the question of a node was closed without an answer:
    `expired` or `policy`. Keys of old ones are forgotten.
    """
    known = state.keys.get(f"{_REMEMBERED}{ask}", "")
    return known if known in {EXPIRED, POLICY} else ""


def already_answered(name: str) -> NotAllowedNow:
    """The refusal of another answer to a question that has one."""
    return NotAllowedNow(f"question `{name}` has been answered")


def question(state: State, name: str, now: int) -> tuple[str, Ask]:
    """The question that waits for an answer, with the slot of its step.
    Raises `NotAllowedNow`, and `NotFound` with those that do.
    """
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
    """What tells people of a question that a node asks, as severe as its risk.
    `key`: another than that of its first notice.
    """
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
    """What tells people of an open question another time, under another
    key: the sender knows that of the first as sent.

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

    `node` is the one that has asked, or is asked about; None: it is about the saga as a whole. `parameters`:
    the schema of the arguments of the tool that would
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


LONGEST_TEXT = 500  # characters of one text among the arguments
MOST_ITEMS = 50  # of one list or object among them
DEEPEST = 6
MOST_SHOWN = 16_384  # bytes of all of them
MOST_SAID = 2_000  # characters of a title or a message
_ID_DIGITS = 12
_LEFT_OUT = "…"


def approval_of(
    state: State, slot: str, request: Request, says: Mapping[str, Any], expires_ms: int, now: int
) -> Ask:
    """The question of a step about a call. `says`: title, message and audience, as a document has them.

    Raises `ValueError` for an audience that is none.
    """
    kind, options = TYPES[APPROVAL]
    return Ask(
        # The digest makes it another question than that about any other call of this step.
        id=f"{state.lineage.branch}.{slot}.{request.digest[:_ID_DIGITS]}",
        kind=kind,
        type=APPROVAL,
        title=text_of(says.get("title", f"May `{request.tool}` act?"))[:MOST_SAID],
        message=text_of(says.get("message", f"{request.level} risk: {request.why}"))[:MOST_SAID],
        details=_details(request),
        options=options,
        risk=request.level,
        digest=request.digest,
        to=audience_of(says.get("to")),
        asked_at=now,
        expires_at=now + (expires_ms or DAY_MS),
    )


def text_of(value: Any) -> str:
    """Of an expression alone the value may be no text."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def audience_of(said: Mapping[str, Any] | None, place: str = "to") -> str:
    """Whom it is for, as an `Ask` has it; empty for the starter. Raises `ValueError`."""
    for kind, name in (said or {}).items():
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"{place}.{kind}: it must be a name")
        return f"{kind}:{name}"
    return ""


def shown(arguments: Any) -> Any:
    """Arguments as a person may see them: without secrets, long texts and lists cut, as the log keeps them."""
    return _shown("", arguments, DEEPEST)


def _details(request: Request) -> dict[str, Any]:
    arguments = shown(request.arguments)
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
    """The steps of a question that is asked now, from what a graph says of them.
    Raises `ValueError` for an audience that is none.
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
    """The answer that the last step of its escalation has given by now, if
    it is at its end; else an empty text.
    """
    return ask.escalate[-1].decide if ask.escalate and now >= ask.escalate[-1].at else ""


def due_step(state: State, slot: str, ask: ev.Ask, now: int) -> tuple[ev.QuestionEscalated, ev.Notice | None]:
    """The step that is due.
    The steps that are due after it follow in the same entry, and people are told of the last alone.
    """
    step, (node, iteration) = ask.escalate[0], node_of(slot)
    event = ev.QuestionEscalated(
        node=node, iteration=iteration, item=item_of(slot), ask=ask.id, at=now, due=step.at, to=step.to
    )
    if any(later.at <= now for later in ask.escalate[1:]):
        return event, None
    now_for = replace(ask, to=ask.to if step.to is None else step.to)
    why = "Reminder" if step.to is None else "Handed on"
    return event, notice_again(state, slot, now_for, now, key=str(step.at), why=why)


BETWEEN_REMINDERS_MS = 300_000
"""People are told again at a caller's request no sooner than so long after they were told last."""


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """A caller. `by` is the name for the log."""

    user: str
    by: str
    roles: Collection[str] = ()
    groups: Collection[str] = ()

    def refusal(self, state: State, ask: ev.Ask) -> str:
        return refusal(state, ask, self.user, self.roles, self.groups)


def claim(state: State, slot: str, ask: ev.Ask, person: Person, now: int) -> Sequence[ev.Event]:
    """The question becomes the caller's own; nothing where it is so already.

    Raises `Forbidden` for a caller whom the question is not for, `NotAllowedNow` where another user has it.
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
    """The question is for all of its audience again; nothing where no caller has claimed it.

    Raises `Forbidden` for a caller who neither has it nor is an operator.
    """
    if why := person.refusal(state, ask):
        raise Forbidden(why)
    return (_claimed(slot, ask, person, now, to=""),) if ask.candidates else ()


def remind(state: State, slot: str, ask: ev.Ask, person: Person, now: int) -> Sequence[ev.Event]:
    """Those whom the question is for are told again.

    Raises `Forbidden` for a caller who may not answer it and has not
    started the saga, `NotAllowedNow` where they were told a moment ago.
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
    node, iteration = node_of(slot)
    told = ev.QuestionEscalated(
        node=node, iteration=iteration, item=item_of(slot), ask=ask.id, at=now, by=person.by
    )
    return told, ev.NoticeDue(notice=notice_again(state, slot, ask, now, key=f"r{now}", why="Reminder"))


def _check_part(slot: str, ask: ev.Ask) -> None:
    """A question about a saga as a whole is no part of its state, which
    could hold a claim or the time of a reminder.
    """
    if slot == WHOLE:
        raise NotAllowedNow(f"question `{ask.id}` is about a parked saga: an operator answers it")


def _claimed(slot: str, ask: ev.Ask, person: Person, now: int, to: str) -> ev.QuestionClaimed:
    node, iteration = node_of(slot)
    return ev.QuestionClaimed(
        node=node, iteration=iteration, item=item_of(slot), ask=ask.id, at=now, by=person.by, to=to
    )
