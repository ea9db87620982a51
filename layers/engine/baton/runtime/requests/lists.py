"""Lists of sagas and of open questions, page by page."""

from __future__ import annotations

import asyncio
import heapq
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from baton.core.expressions import iso, nearest, with_hint
from baton.core.failures.strategies.base import ON_CALL
from baton.core.graph.graph import WORKFLOW_NAME
from baton.core.log.events import Event, SignalReceived
from baton.core.log.questions import OPERATORS, open_questions, visible_arguments
from baton.core.log.records import Ask, Shown
from baton.core.log.state import LISTS, State
from baton.core.read.answers import AskedFor, Cursor, Severity, Status, Time, Type, View
from baton.core.read.views import asked_for
from baton.errors import UserError
from baton.ports import Clock, Listed, Log, Place, QuestionRow, Questions, Spot
from baton.ports.people import NEVER
from baton.runtime.engine.request import SAGA_ID, Caller, foreign_cursor, read_cursor, write_cursor
from baton.runtime.invocation.context import StoreRetrier
from baton.runtime.people.question_rows import row_of
from baton.runtime.starting.start import body_hash

if TYPE_CHECKING:
    from baton.runtime.starting.catalog import Catalog

LOOKED_AT = 200  # rows of a shard that one page looks at to find those that a filter lets through
_FILTER_DIGITS = 8

# A cursor comes from outside, and a store has no patience with a place that cannot be: it must be one that
# a list can have come to. Which tenant's it is, is never read from it.
_NEWEST = 10**15
_Moment = Annotated[int, msgspec.Meta(ge=0, le=_NEWEST)]
_Id = Annotated[str, msgspec.Meta(pattern=rf"^{SAGA_ID}\Z")]


class _Read(msgspec.Struct, frozen=True, array_like=True):
    """Progress of reading a shard: at the beginning (no place), after a place, or at its end."""

    place: tuple[_Moment, _Id] | None = None
    ended: bool = False


class _Cursor(msgspec.Struct, frozen=True, array_like=True):
    """`newest`: nothing that is still to be shown had changed later when the page before was read."""

    filter: str
    newest: _Moment
    reads: tuple[_Read, ...]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Cursor).decode


class SagaRow(View):
    """A saga in a list. The values are those of the saga's last release by a worker; a saga that a worker
    holds appears with the values from before the worker took it.
    """

    id: str
    workflow: str
    status: Status
    user: Annotated[str, "User who started the saga."]
    labels: dict[str, str]
    created_at: Time
    changed_at: Annotated[
        Time,
        "Time when the saga last began to run, began to wait, or ended. A change from one kind of waiting to another does not count.",
    ]


class SagaPage(View):
    """A page of sagas, ordered by latest change first. Sagas that start or change while a client reads pages
    do not appear on later pages.
    """

    sagas: list[SagaRow]
    next: Cursor


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Filter of a tenant's sagas: `status` is a key of `LISTS` or empty for all; `since` in epoch ms."""

    tenant: str
    status: str = ""
    workflow: str = ""
    user: str = ""
    since: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.status and self.status not in LISTS:
            hint = nearest(self.status, LISTS) or f"there are {', '.join(LISTS)}"
            raise UserError(with_hint(f"there is no status `{self.status[:40]}`", hint))

    @property
    def groups(self) -> Sequence[str]:
        return LISTS[self.status][0] if self.status else ("open", "waiting", "done")

    @property
    def exact(self) -> str:
        return LISTS[self.status][1] if self.status else ""

    @property
    def fingerprint(self) -> str:
        """Digest of the filter, so that a cursor of another list is refused."""
        return body_hash(
            [
                *(self.tenant, self.status, self.workflow, self.since),
                *([self.labels] if self.labels else []),
                *([{"user": self.user}] if self.user else []),
            ]
        )[:_FILTER_DIGITS]

    async def page(
        self, log: Log, call: StoreRetrier, limit: int, cursor: str
    ) -> tuple[Sequence[Listed], str | None]:
        """Return the next sagas, the latest change first, and the cursor of the page after (None:
        no more).

        With a filter a page may hold fewer than `limit`, even none, and still have one after it. What has
        begun or changed since the page before belongs in front of the list: it is on no later page. Raises
        `UserError` for a cursor that is not of this list.
        """
        parts = [(group, shard) for group in self.groups for shard in range(log.limits.status_shards)]
        before = self._before(cursor, len(parts))
        look = (
            limit if not (self.workflow or self.exact or self.user or self.labels) else max(limit, LOOKED_AT)
        )

        async def read(group: str, shard: int, done: _Read) -> tuple[Sequence[Listed], Place | None]:
            if done.ended:
                return (), None
            rows, place = await call(
                log.listed,
                self.tenant,
                group,
                shard,
                limit=look,
                since=self.since,
                workflow=self.workflow,
                status=self.exact,
                user=self.user,
                labels=self.labels,
                after=done.place,
            )
            return [row for row in rows if row.changed <= before.newest], place

        found = _each_once(
            await asyncio.gather(
                *(read(group, shard, done) for (group, shard), done in zip(parts, before.reads, strict=True))
            )
        )
        # Below the place where some shard stopped looking it may have rows that no page has shown yet.
        known_from = max((place[0] for _, place in found if place is not None), default=0)
        merged = heapq.merge(
            *([(row, index) for row in rows] for index, (rows, _) in enumerate(found)),
            key=lambda pair: -pair[0].changed,
        )
        shown = [pair for pair in merged if pair[0].changed >= known_from][:limit]
        after = tuple(
            _after(done, rows, place, [row for row, of in shown if of == index])
            for index, (done, (rows, place)) in enumerate(zip(before.reads, found, strict=True))
        )
        rows = [row for row, _ in shown]
        if all(read.ended for read in after):
            return rows, None
        newest = rows[-1].changed if rows else min(known_from, before.newest)
        return rows, write_cursor(_encode(_Cursor(self.fingerprint, newest, after)))

    def _before(self, cursor: str, parts: int) -> _Cursor:
        if not cursor:
            return _Cursor(self.fingerprint, _NEWEST, (_Read(),) * parts)
        try:
            decoded = _decode(read_cursor(cursor))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise foreign_cursor() from error
        if decoded.filter != self.fingerprint or len(decoded.reads) != parts:
            raise UserError("the cursor belongs to a list with other filters; leave it out to begin anew")
        if any(read.place is not None and read.place[0] < self.since for read in decoded.reads):
            raise foreign_cursor()
        return decoded


def _each_once(
    found: Sequence[tuple[Sequence[Listed], Place | None]],
) -> Sequence[tuple[Sequence[Listed], Place | None]]:
    """Drop the older of two rows of one saga, which moved to another group while the page was read."""
    newest: dict[str, tuple[int, int]] = {}
    for index, (rows, _) in enumerate(found):
        for row in rows:
            newest[row.id] = max(newest.get(row.id, (0, 0)), (row.changed, index))
    return [
        ([row for row in rows if newest[row.id] == (row.changed, index)], place)
        for index, (rows, place) in enumerate(found)
    ]


def _after(done: _Read, rows: Sequence[Listed], place: Place | None, shown: Sequence[Listed]) -> _Read:
    if len(shown) == len(rows):
        return _Read(place, ended=place is None)
    return _Read(shown[-1].place) if shown else done


class Audience(View):
    """Audience of a question, in addition to operators. `on_call` means operators only and has no name."""

    kind: Annotated[str, Meta(extra_json_schema={"enum": ["user", "group", "role", "on_call"]})]
    name: str | None


class GivenAnswer(View):
    """Answer to a question that is closed."""

    action: Annotated[str, "Action of the answer. `expired` if no answer came in time."]
    by: Annotated[str | None, "User who answered. Null if the question expired."]
    at: Time
    comment: str
    data: Annotated[
        Any, "Data, output or arguments of the answer. Secrets are masked, and long texts are cut."
    ]


class ListedQuestion(View):
    """A question in a list, open unless it has an `answer`. `GET /sagas/{saga}` returns the complete open
    question with its schema.
    """

    saga: str
    workflow: str
    id: str
    type: Type
    asked_for: AskedFor
    title: Annotated[str | None, "Title of the question. A long title is truncated."]
    message: Annotated[str, "Text of the question. A long text is truncated."]
    for_: Audience
    options: Annotated[list[str], "Actions that an answer can name. A long list is truncated."]
    asked_at: Time | None
    expires_at: Annotated[Time | None, "Time when the question expires. Null if it does not expire."]
    risk: Severity | None
    told: Annotated[
        bool,
        "True if the audience was notified. The number of notifications that a person receives at once is limited.",
    ]
    answer_at: Annotated[str, "Path for the answer. Send it with POST."]
    answer: Annotated[GivenAnswer | UnsetType, "Answer to a question that is closed."] = UNSET


class QuestionPage(View):
    """A page of open questions, ordered by expiry, earliest first."""

    questions: list[ListedQuestion]
    next: Cursor


_OF_QUESTIONS = ("answer", OPERATORS)  # the roles that a question can be for

# A cursor comes from outside, and a store has no patience with a place that cannot be.
_QuestionMoment = Annotated[int, msgspec.Meta(ge=0, le=NEVER)]
_Saga = Annotated[str, msgspec.Meta(pattern=rf"^{SAGA_ID}\Z")]
_Ask = Annotated[str, msgspec.Meta(min_length=1, max_length=900)]


class _QuestionRead(msgspec.Struct, frozen=True, array_like=True):
    """Progress of reading an inbox: at the beginning (no place), after a place, or at its end."""

    place: tuple[_QuestionMoment, _Saga, _Ask] | None = None
    ended: bool = False


class _QuestionCursor(msgspec.Struct, frozen=True, array_like=True):
    of: str
    reads: tuple[_QuestionRead, ...]


_encode_question_cursor = msgspec.json.Encoder().encode
_decode_question_cursor = msgspec.json.Decoder(_QuestionCursor).decode


def inboxes_of(caller: Caller) -> tuple[str, ...]:
    """Return the audiences that a caller is one of: the user, the groups, the roles,
    and on-call for an operator.
    """
    words = [f"user:{caller.user}", *(f"group:{name}" for name in sorted(caller.groups))]
    words += [f"role:{name}" for name in _OF_QUESTIONS if name in caller.roles]
    return (*words, ON_CALL) if OPERATORS in caller.roles else tuple(words)


class Inboxes:
    """Open questions for one caller. A page costs one query for each audience that the caller belongs to."""

    def __init__(self, questions: Questions, call: StoreRetrier, clock: Clock, caller: Caller) -> None:
        self._questions = questions
        self._call = call
        self._now = clock.now()
        self._tenant = caller.tenant
        self._of = inboxes_of(caller)

    async def page(self, limit: int, cursor: str) -> QuestionPage:
        """Return the next questions, sorted by expiry, and the cursor of the page after (None: no more)."""
        before = self._before(cursor)
        pages = await asyncio.gather(*map(self._read, self._of, before, [limit] * len(before)))
        merged = heapq.merge(
            *([(row.spot, index, row) for row in rows] for index, (rows, _) in enumerate(pages)),
            key=lambda found: found[0],
        )
        shown = [(index, row) for _, index, row in merged][:limit]
        after = tuple(
            _question_after(read, rows, place, [row for of, row in shown if of == index])
            for index, (read, (rows, place)) in enumerate(zip(before, pages, strict=True))
        )
        # One that moved to another of the caller's inboxes just now may be in both.
        views = {(row.saga, row.ask): row_view(row) for _, row in shown}
        if all(read.ended for read in after):
            return QuestionPage(questions=list(views.values()), next=None)
        place = write_cursor(_encode_question_cursor(_QuestionCursor(self._fingerprint, after)))
        return QuestionPage(questions=list(views.values()), next=place)

    async def _read(
        self, audience: str, read: _QuestionRead, limit: int
    ) -> tuple[Sequence[QuestionRow], Spot | None]:
        if read.ended:
            return (), None
        return await self._call(self._questions.listed, self._tenant, audience, self._now, limit, read.place)

    @property
    def _fingerprint(self) -> str:
        return body_hash([self._tenant, *self._of])[:_FILTER_DIGITS]

    def _before(self, cursor: str) -> tuple[_QuestionRead, ...]:
        if not cursor:
            return (_QuestionRead(),) * len(self._of)
        try:
            decoded = _decode_question_cursor(read_cursor(cursor))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise foreign_cursor() from error
        if decoded.of != self._fingerprint or len(decoded.reads) != len(self._of):
            raise UserError("the cursor belongs to the list of another caller; leave it out to begin anew")
        return decoded.reads


def _question_after(
    read: _QuestionRead, rows: Sequence[QuestionRow], place: Spot | None, shown: Sequence[QuestionRow]
) -> _QuestionRead:
    if len(shown) == len(rows):
        return _QuestionRead(place or read.place, ended=place is None)
    return _QuestionRead(shown[-1].spot) if shown else read


def of_saga(state: State, now: int, limit: int) -> list[ListedQuestion]:
    """Return the views of the open questions of one saga, as its log has them."""
    rows, unknown = state.outbox.rows, Shown()
    found = [row_of(state, ask, told=rows.get(ask.id, unknown).told) for _, ask in open_questions(state)]
    return [row_view(row) for row in sorted(found, key=lambda row: row.spot) if row.spot[0] > now][:limit]


@dataclass(slots=True)
class Answers:
    """Closed questions of a saga, gathered from the entries of its log."""

    state: State
    asked: dict[str, Ask] = field(default_factory=dict)
    sent: dict[str, SignalReceived] = field(default_factory=dict)
    closed: list[ListedQuestion] = field(default_factory=list)

    def add(self, event: Event) -> None:
        """Take in the next event. Whatever asks has an `Ask`; what closes a question has its id."""
        if isinstance(event, SignalReceived):
            self.sent[event.key] = event
            return
        facts = msgspec.to_builtins(event)
        ask = facts.get("ask")
        if isinstance(ask, dict):
            self.asked[ask["id"]] = msgspec.convert(ask, Ask)
        elif ask in self.asked and "action" in facts:
            signal = self.sent.pop(facts.get("by", ""), None)
            said = signal.payload.v if signal is not None and isinstance(signal.payload.v, dict) else {}
            data = next((said[name] for name in ("data", "output", "arguments") if name in said), None)
            answer = GivenAnswer(
                action=facts["action"],
                by=None if signal is None else signal.by,
                at=iso(facts["at"]),
                comment=str(said.get("comment", "")),
                data=visible_arguments(data),
            )
            view = row_view(row_of(self.state, self.asked.pop(ask), told=True))
            self.closed.append(msgspec.structs.replace(view, answer=answer))


def row_view(row: QuestionRow) -> ListedQuestion:
    """Return a question of a list."""
    kind, _, name = row.to.partition(":")
    return ListedQuestion(
        saga=row.saga,
        workflow=row.workflow,
        id=row.ask,
        type=row.type,
        asked_for=asked_for(row.type, row.kind),
        title=row.title or None,
        message=row.message,
        for_=Audience(kind=kind, name=name or None),
        options=list(row.actions),
        risk=row.risk or None,
        asked_at=iso(row.asked_at) if row.asked_at else None,
        expires_at=iso(row.expires_at) if row.expires_at else None,
        told=row.told,
        answer_at=f"/sagas/{row.saga}/answer",
    )


class WorkflowTool(NamedTuple):
    """A workflow that is a tool at `/mcp`, with the text of its document."""

    name: str
    text: str
    input_schema: Any


async def workflow_tools(
    catalog: Catalog, tenant: str, cursor: str, limit: int = 100
) -> tuple[list[WorkflowTool], str | None]:
    """Return those of `limit` workflows that are tools at `/mcp`, and the cursor of the next ones."""
    name = read_cursor(cursor).decode(errors="replace") if cursor else ""
    if cursor and not re.fullmatch(WORKFLOW_NAME, name):
        raise foreign_cursor()
    found, last = await catalog.page(tenant, name, limit)
    graphs = await asyncio.gather(*(catalog.graph(tenant, one.graph) for one in found if one.mcp))
    tools = [WorkflowTool(graph.name, graph.mcp or "", graph.input_schema) for graph in graphs]
    return tools, write_cursor(last.encode()) if last else None
