"""Answers to questions, by callers and by links; claims of questions, and incidents."""

from __future__ import annotations

import hmac
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta, structs

from baton.core.expressions import iso
from baton.core.log.events import Ask, Event, SignalReceived
from baton.core.log.folding.received import fingerprint, signal_key
from baton.core.log.questions import (
    MAX_ARGUMENTS,
    WHOLE,
    Answer,
    Person,
    about_parking,
    already_answered,
    answer_key,
    answer_refusal,
    awaited_question,
    check_answer,
    claim_question,
    is_answer_to,
    is_answered,
    release,
    remind_audience,
    tool_asked_about,
    unclosed_questions,
)
from baton.core.log.slots import Slot
from baton.core.log.state import ANSWER, State
from baton.core.read.answers import Cursor, Severity, Time, View
from baton.errors import (
    Forbidden,
    InvalidInput,
    KeyReused,
    LinkOver,
    NotAllowedNow,
    NotFound,
    StoreUnavailable,
    TooLarge,
)
from baton.ports import Clock, Incidents
from baton.ports import Incident as IncidentRecord
from baton.runtime.engine.request import Caller, Opened, Request, foreign_cursor, read_cursor, write_cursor
from baton.runtime.invocation.context import StoreRetrier
from baton.runtime.people.links import LASTS_MS, Confirmation, claims_of, seal_of

INCIDENT_ID = r"i[0-9a-f]{24}"
INCIDENT_STATUSES = ("open", "unacknowledged", "resolved")
MOST_NOTE = 500  # characters
_TRIES = 8  # at an incident that others acknowledge at the same time


class Incident(View):
    """A problem that requires a person. The incident is resolved when a person decides about its saga."""

    id: str
    status: Annotated[str, Meta(extra_json_schema={"enum": ["open", "resolved"]})]
    saga: str
    node: str | None
    code: str
    message: str
    severity: Severity
    opened_at: Time
    resolved_at: Time | None
    resolved_by: Annotated[
        str | None,
        "User whose action resolved the incident: an answer, resume, cancel, fork, or an explicit resolve.",
    ]
    acknowledged_at: Annotated[Time | None, "Time when a person last acknowledged the incident."]
    acknowledged_by: str | None
    note: Annotated[str | None, "Note of the person who acknowledged the incident."]


class IncidentPage(View):
    """A page of incidents, newest first."""

    incidents: list[Incident]
    next: Cursor


class IncidentService:
    """The incidents of one tenant, for one request of `by`."""

    def __init__(
        self, incidents: Incidents, call: StoreRetrier, clock: Clock, tenant: str, by: str = ""
    ) -> None:
        self._incidents = incidents
        self._call = call
        self._clock = clock
        self._tenant = tenant
        self._by = by

    async def page(self, status: str, limit: int, cursor: str) -> IncidentPage:
        """Return the next incidents, the newest first. A page may be short and yet not be the last."""
        after = read_cursor(cursor).decode(errors="replace") if cursor else ""
        if cursor and not re.fullmatch(INCIDENT_ID, after):
            raise foreign_cursor()
        found, last = await self._call(
            self._incidents.listed, self._tenant, status=status, limit=limit, after=after
        )
        rows = [incident_view(incident) for incident in found]
        return IncidentPage(incidents=rows, next=write_cursor(last.encode()) if last else None)

    async def show(self, id: str) -> Incident:
        """Return an incident. Raises `NotFound`."""
        return _view_of(id, await self._call(self._incidents.find, self._tenant, id))

    async def acknowledge(self, id: str, note: str) -> Incident:
        """Record that the caller has the incident. The last one counts, and the same again changes nothing.
        Raises `NotFound`, and `NotAllowedNow` for one that is resolved.
        """
        write, seen = self._incidents.acknowledge, 0
        for _ in range(_TRIES):
            # Later than what it follows, whatever the clocks say: each acknowledgement is known by its time.
            now = max(self._clock.now(), seen + 1)
            found = await self._call(write, self._tenant, id, self._by, note, now, seen)
            if found is not None and found.resolved:
                raise NotAllowedNow(f"incident `{id}` is resolved, by {found.by}")
            if found is None or (found.holder, found.note) == (self._by, note):
                return _view_of(id, found)
            seen = found.acked
        raise StoreUnavailable(f"the incident {id} was acknowledged {_TRIES} times meanwhile")

    async def resolve(self, id: str) -> Incident:
        """Record that the caller has done something about the incident. Repeated, a no-op.
        Raises `NotFound`.
        """
        write, now = self._incidents.resolve, self._clock.now()
        return _view_of(id, await self._call(write, self._tenant, id, self._by, now))

    async def resolve_all(self, saga: str, node: str = "") -> None:
        """Resolve the incidents of a saga, or of one of its nodes, because a person has decided about it.

        Called after the entry of that decision: a process that dies in between leaves an incident open, which
        an operator can resolve.
        """
        for incident in await self._call(self._incidents.of_saga, self._tenant, saga, node):
            await self._call(self._incidents.resolve, self._tenant, incident, self._by, self._clock.now())


def _view_of(id: str, found: IncidentRecord | None) -> Incident:
    if found is None:
        raise NotFound(f"there is no incident `{id}`")
    return incident_view(found)


def incident_view(incident: IncidentRecord) -> Incident:
    """Return an incident with those who resolved and acknowledged it."""
    return Incident(
        id=incident.id,
        status="resolved" if incident.resolved else "open",
        saga=incident.saga,
        node=incident.node or None,
        code=incident.code,
        message=incident.message,
        severity=incident.severity,
        opened_at=iso(incident.opened),
        resolved_at=iso(incident.resolved) if incident.resolved else None,
        resolved_by=incident.by or None,
        acknowledged_at=iso(incident.acked) if incident.acked else None,
        acknowledged_by=incident.holder or None,
        note=incident.note or None,
    )


Check = Callable[[State, Ask, int], None]
"""Check of an answer that replaces the check of the person's right to give it."""


async def give(
    request: Request, incidents: IncidentService, saga: str, answer: Answer, key: str, check: Check | None
) -> dict[str, Any]:
    """Give an answer; see `Service.answer`."""
    opened = await request.open(saga)
    if len(msgspec.json.encode(answer.arguments)) > MAX_ARGUMENTS:
        raise TooLarge(f"the arguments of an answer have at most {MAX_ARGUMENTS} bytes")
    value, blob = request.unstored(opened.history, answer.payload(), "an answer")
    unique = answer_key(answer.ask, key)
    remembered = signal_key(ANSWER, unique)

    def is_known(state: State) -> bool:
        if check is not None:
            return False
        _refuse_others(request, state, answer.ask)
        known = state.keys.get(remembered)
        if key and known is not None and known != fingerprint(value):
            raise KeyReused(f"question `{answer.ask}` was answered otherwise under this key")
        if fingerprint(value) in _said(state, answer.ask):
            return True
        if state.ended is not None and is_answered(state, answer.ask):
            raise already_answered(answer.ask)  # which says more than that the saga has ended
        return False

    def make(state: State, now: int) -> Event | None:
        slot, ask = awaited_question(state, answer.ask, now)
        if check is not None:
            check(state, ask, now)
        _refuse_unfit(request, opened, state, slot, ask, answer)
        return SignalReceived(name=ANSWER, key=unique, payload=value, by=request.caller.by, at=now)

    failing = opened.history.state.failing.items()
    node = next((Slot.parse(slot).node for slot, one in failing if one.ask and one.ask.id == answer.ask), "")
    parking = about_parking(opened.history.state)
    answered = await request.append(opened, make, is_known, blob, value.ref)
    if node or (parking is not None and parking.id == answer.ask):
        await incidents.resolve_all(saga, node)
    return answered


def _said(state: State, question: str) -> set[str]:
    """Return the fingerprints of the answers to the question, under any key."""
    known = ((key.partition("/"), said) for key, said in state.keys.items())
    return {said for (name, _, key), said in known if name == ANSWER and is_answer_to(key, question)}


def _refuse_others(request: Request, state: State, question: str) -> None:
    """Raise `Forbidden` if the question is open, and not for the caller."""
    caller = request.caller
    for _, ask in unclosed_questions(state):
        if ask.id == question and (
            why := answer_refusal(state, ask, caller.user, caller.roles, caller.groups)
        ):
            raise Forbidden(why)


def _refuse_unfit(
    request: Request, opened: Opened, state: State, slot: str, ask: Ask, answer: Answer
) -> None:
    """Raise `InvalidInput` with all problems of the answer."""
    node = None if slot == WHOLE else opened.program.node_at(state, slot)
    failing = state.failing.get(slot)
    asked_about = "" if node is None or failing is None else tool_asked_about(node, failing)
    tool = request.engine.tools.get(asked_about)
    problems = check_answer(
        ask,
        node,
        tool.parameters if tool is not None else {},
        answer,
        tool.result if tool is not None and node is not None and node.callback is None else None,
    )
    if problems:
        raise InvalidInput(f"at {problems[0].path}: {problems[0].message}", problems)


_NONE = "there is no such question"


class Answering(Protocol):
    """Type of `Service.answer`."""

    async def __call__(
        self, saga: str, answer: Answer, key: str, check: Callable[[State, Ask, int], None]
    ) -> dict[str, Any]: ...


async def caller_with(request: Request, token: str) -> Caller:
    """Return the caller that a token stands for, in the place of an identity. Raises `NotFound`."""
    said = await _read(request, token)
    return replace(request.caller, tenant=said.tenant, user=f"link:{said.to}")


async def answer_by(answering: Answering, request: Request, token: str, answer: Answer) -> dict[str, Any]:
    """Give the answer of a link; see `Service.confirm`."""
    said = await _read(request, token)
    if said.tenant != request.caller.tenant:
        raise NotFound(_NONE)

    def check(state: State, ask: Ask, now: int) -> None:
        if not hmac.compare_digest(seal_of(state, ask), said.seal):
            raise LinkOver(
                "people were told again since, or the question was claimed, handed on or changed: only a newer link counts"
            )
        if now >= said.until:
            raise LinkOver(
                f"this link was good for {LASTS_MS // 60_000} minutes: have them told again for a new one"
            )

    try:
        return await answering(said.saga, structs.replace(answer, ask=said.ask), "", check)
    except NotFound as error:  # the same as for a token that is none: it says nothing of what there is
        raise NotFound(_NONE) from error


async def _read(request: Request, token: str) -> Confirmation:
    said = await claims_of(request.parts.context, request.engine.secrets, Confirmation, token)
    if said is None:
        raise NotFound(_NONE)
    return said


Rule = Callable[[State, str, Ask, Person, int], Sequence[Event]]


class Append(Protocol):
    """Appender of the events of `make` as one entry, with a wake for a worker."""

    def __call__(
        self, opened: Opened, make: Callable[[State, int], Sequence[Event]]
    ) -> Awaitable[dict[str, Any]]: ...


class QuestionService:
    """The questions of sagas, for one caller."""

    def __init__(self, request: Request, append: Append) -> None:
        self._request = request
        self._append = append
        caller = request.caller
        self._person = Person(user=caller.user, by=caller.by, roles=caller.roles, groups=caller.groups)

    async def claim(self, saga: str, ask: str) -> dict[str, Any]:
        """Make a question of a group or a role the caller's own. Repeated, a no-op.

        Raises `NotFound` with the questions that are open, `Forbidden`,
        `NotAllowedNow` with the user who has it.
        """
        return await self._note(saga, ask, claim_question)

    async def release(self, saga: str, ask: str) -> dict[str, Any]:
        """Give a claimed question back to all whom it is for. Repeated, a no-op. Raises as `claim`."""
        return await self._note(saga, ask, release)

    async def remind(self, saga: str, ask: str) -> dict[str, Any]:
        """Notify the audience of a question again.
        Raises as `claim`; `NotAllowedNow` with the time when it can be done.
        """
        return await self._note(saga, ask, remind_audience)

    async def _note(self, saga: str, ask: str, rule: Rule) -> dict[str, Any]:
        def make(state: State, now: int) -> Sequence[Event]:
            slot, open_question = awaited_question(state, ask, now)
            return rule(state, slot, open_question, self._person, now)

        return await self._append(await self._request.open(saga), make)
