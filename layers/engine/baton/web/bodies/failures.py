"""Failures, incidents, dead letters, undoing and explanations as models of answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.types import JsonValue

from baton.core.failures.policy import QUESTIONS, SEVERITIES
from baton.core.letters import LETTER_STATUSES, SOURCES
from baton.core.log.questions import TYPES
from baton.core.log.state import FINISHED, WAITING
from baton.core.read.explain import STATES
from baton.core.read.places import BECAME

STATUSES = ("pending", "running", *sorted(WAITING), *sorted(FINISHED))

Time = Annotated[
    str, WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-11-21T10:00:00.123Z"]})
]
Status = Annotated[str, WithJsonSchema({"type": "string", "enum": list(STATUSES)})]
Condition = Annotated[
    dict[str, Any], Field(description="A condition as it was compiled; `is` says of which kind.")
]
Schema = Annotated[dict[str, Any], Field(description="A JSON Schema.")]
Cursor = Annotated[str | None, Field(description="The `cursor` of the next page; null at the end.")]


class Answer(BaseModel):
    """Exactly these fields."""

    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)


LABEL = "What the item is called, such as `turn 2, call 1 (table.hold)`."
ITEM = "Which of the things that the node does at once or in turn, such as `t2-0`, the first call of an agent's second turn."


class SparseAnswer(BaseModel):
    """No other fields than these; one that has a default may be absent."""

    model_config = ConfigDict(extra="forbid")


class OpenAnswer(BaseModel):
    """These fields and others."""

    model_config = ConfigDict(extra="allow")


AskedFor = Annotated[
    Annotated[str, WithJsonSchema({"type": "string", "enum": list(QUESTIONS)})] | None,
    Field(
        description="Of the type `error`: what the person is asked for, which is the `question` of the workflow's rule about the "
        "failure. Null for any other type, which says it itself."
    ),
]
_KINDS = "transient, recoverable, user_resolvable, permanent, catastrophic or unknown."


class AttemptFailure(Answer):
    """Why an attempt failed, and what that means to a person."""

    code: str
    class_: str = Field(alias="class", description=_KINDS)
    message: str
    retryable: bool = Field(description="Whether trying again, and nothing else, may help.")
    says: str = Field(description="What the code means, in a sentence.")
    advice: str = Field(description="What to do about it.")


class FailingStep(AttemptFailure):
    """A step that is not done, some of whose attempts have failed; the failure is that of the last."""

    # Only turns and calls of agents have an item.
    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    node: str
    iteration: list[int]
    item: str = Field("", description=ITEM)
    label: str = Field("", description=LABEL)
    attempts: int = Field(ge=1, description="How many have failed.")
    at: Time | None = Field(description="When the last of them failed.")
    strategy: str = Field(description="What is done about it: retry, replan, ask_user or escalate.")
    hint: str | None = Field(description="Of a replan: what it carries out.")
    way: str | None = Field(description="The other way that it goes now.")
    next_attempt_at: Time | None = Field(description="Not before then; null: it is not a matter of time.")


class Choice(Answer):
    """An answer that a question offers, in its author's words.
    `default`: it is taken when the question expires.
    """

    id: str
    label: str
    description: str
    default: bool
    destructive: bool


class Takeover(Answer):
    """What a person takes over by hand."""

    url: str
    picture: str
    instructions: str


class Asked(Answer):
    """A question to a person: about a failure, about a saga that is parked, or one that a node asks."""

    id: str
    node: str | None = Field(description="Null: it is about the saga as a whole.")
    iteration: list[int]
    asked_for: AskedFor
    message: str
    options: list[str] = Field(description="The actions that an answer can name.")
    expires_at: Time | None = Field(description="Then it goes on without an answer; null: it waits.")
    type: Annotated[str, WithJsonSchema({"type": "string", "enum": list(TYPES)})] = Field(
        description="What an answer is, and what becomes of the question without one. A step that failed asks about an `error`."
    )
    title: str | None
    details: JsonValue = Field(description="What the person has to know, as the workflow gives it.")
    choices: list[Choice] = Field(description="Of those `options` that have more than an id.")
    schema_: Schema | bool | None = Field(alias="schema", description="Of the `data` that `submit` brings.")
    takeover: Takeover | None
    digest: str | None = Field(
        description="Of a call that is to be approved: the SHA-256 of the tool and its arguments. An approval is for these only."
    )
    asked_at: Time | None = Field(description="Null where the log does not say.")
    risk: Annotated[str, WithJsonSchema({"type": "string", "enum": list(SEVERITIES)})] | None = Field(
        description="How much depends on the answer, where the workflow or the tool says so."
    )
    told_at: Time | None = Field(description="When people were last told again; null: they were told once.")


class Answerer(Answer):
    """A user, a group of users, or a role of callers, whom a question is for."""

    kind: Literal["user", "group", "role"]
    name: str


class QuestionClaim(Answer):
    """Who has made a question of several their own, since when, and whom it was for."""

    by: str
    at: Time
    from_: Answerer = Field(alias="from")


class EscalationStep(Answer):
    """What happens at a time while there is no answer."""

    at: Time
    action: Literal["remind", "hand_on", "decide"] = Field(
        description="People are told again, others may answer from then on, or the question is closed."
    )
    to: Answerer | None = Field(description="Of `hand_on`: the others.")
    answer: str | None = Field(description="Of `decide`: the answer that closes it.")


class Question(Asked):
    """A question that waits for an answer, which `POST /sagas/{saga}/answer` brings."""

    for_: list[Answerer] = Field(alias="for", description="Who may answer it; others are refused with 403.")
    claim: QuestionClaim | None = Field(description="Null: no user has claimed it.")
    escalate: list[EscalationStep] = Field(description="What is still to happen, the earliest first.")
    arguments: Schema | None = Field(description="Of the arguments that an answer may change; null: none.")


class Audience(Answer):
    """Whom a question is for, besides operators; `on_call` is operators alone, and has no name."""

    kind: Annotated[str, WithJsonSchema({"type": "string", "enum": ["user", "group", "role", "on_call"]})]
    name: str | None


class ListedQuestion(Answer):
    """An open question in a list.
    All that it says, its schema among it, is in the answer of `GET /sagas/{saga}`.
    """

    saga: str
    workflow: str
    id: str
    type: Annotated[str, WithJsonSchema({"type": "string", "enum": list(TYPES)})]
    asked_for: AskedFor
    title: str | None = Field(description="Its beginning, where it is long.")
    message: str = Field(description="Its beginning, where it is long.")
    for_: Audience = Field(alias="for")
    options: list[str] = Field(description="What can be answered; the first ones, where there are many.")
    asked_at: Time | None
    expires_at: Time | None = Field(description="null: never.")
    risk: Annotated[str, WithJsonSchema({"type": "string", "enum": list(SEVERITIES)})] | None
    told: bool = Field(
        description="Whether its audience was told of it. A person is told of so many at once only."
    )
    answer_at: str = Field(description="The path that takes the answer, by POST.")


class QuestionPage(Answer):
    """Open questions, what expires first in front."""

    questions: list[ListedQuestion]
    next: Cursor


class ParkedAs(Answer):
    """Why a saga is parked."""

    code: str
    message: str
    node: str | None
    until: Time | None = Field(description="Then it goes on by itself; null: a person has to decide.")
    stands_still_since: Time | None = Field(
        description="It is parked for a defect since then, and its time stands still; null: for something else."
    )
    build: str | None = Field(
        description="The code that the defect has come with: the saga goes on by itself with other code."
    )


class Reaction(Answer):
    """One thing that was done about a failure."""

    strategy: str
    hint: str | None
    way: str | None
    policy: str | None = Field(description="The failover policy that says so.")
    why: list[str] = Field(description="Why the strategies before it were passed.")
    pause_ms: int | None = Field(ge=0, description="Of a retry: the time before it.")
    next_attempt_at: Time | None
    question: Asked | None
    answer: str | None = Field(description="retry, use, fail, or expired; null: none yet.")


class FailedAttempt(AttemptFailure):
    """An attempt that failed, but was not its step's last word."""

    attempt: int = Field(ge=1)
    tool: str
    version: int = Field(ge=1, description="Of the entry that says so.")
    at: Time
    lasted_ms: int
    then: list[Reaction]
    text: str = Field(description="All of it, for a person.")


class Incident(Answer):
    """Something that went wrong and needs a person. It is resolved once a person has decided about its saga."""

    id: str
    status: Annotated[str, WithJsonSchema({"type": "string", "enum": ["open", "resolved"]})]
    saga: str
    node: str | None
    code: str
    message: str
    severity: Annotated[str, WithJsonSchema({"type": "string", "enum": list(SEVERITIES)})]
    opened_at: Time
    resolved_at: Time | None
    resolved_by: str | None = Field(description="Who answered, resumed, cancelled, forked or said so.")
    acknowledged_at: Time | None = Field(description="When a person last said that they have it.")
    acknowledged_by: str | None
    note: str | None = Field(description="What that person said about it.")


class IncidentPage(Answer):
    """Incidents, the newest first."""

    incidents: list[Incident]
    next: Cursor


class FailureHandler(Answer):
    """What was started when a saga had failed for good."""

    saga: str | None = Field(description="Null where it could not be started.")
    status: Status | None = Field(description="Of that saga; null once it is stored no more.")
    why: str | None = Field(description="Why it could not be started.")


class DeadLetter(Answer):
    """What could not be delivered or read: a saga whose wakes died, or a message that names no saga."""

    id: str = Field(description="That of its saga; `message~…` for a message that names none.")
    status: Annotated[str, WithJsonSchema({"type": "string", "enum": list(LETTER_STATUSES)})]
    saga: str | None
    node: str | None = Field(description="What the entry that cannot be read is about.")
    version: int | None = Field(ge=1, description="Of the entry that cannot be read, if it is one.")
    code: str = Field(examples=["unreadable_log", "missing_graph", "unknown_entry", "received_too_often"])
    reason: str
    source: Annotated[str, WithJsonSchema({"type": "string", "enum": list(SOURCES)})] = Field(
        description="Whose messages they are: wakes, or what the relay could not pass on."
    )
    messages: int = Field(ge=1, description="Messages that have died.")
    attempts: int = Field(ge=1, description="Deliveries of these messages, all of which failed.")
    first_at: Time = Field(description="When the first of them was sent.")
    last_at: Time
    pending_since: Time | None
    age_ms: int = Field(ge=0, description="Since the first of them was sent.")
    redrives: int = Field(ge=0)
    redrives_left: int = Field(ge=0, description="Before one needs `force`.")
    decided_at: Time | None = Field(description="When it was redriven or discarded last.")
    decided_by: str | None
    why: str | None = Field(description="Why it was discarded.")
    expires_at: Time
    message: str = Field(description="The newest message, cut where it is long.")


class DeadLetterPage(Answer):
    """Dead letters, the oldest first."""

    dead_letters: list[DeadLetter]
    next: Cursor


class LeftLetter(Answer):
    """A dead letter that was left as it was."""

    id: str
    why: str


class RedrivenPage(Answer):
    """What came of a redrive of many: it goes on at `next`, if that is there."""

    matched: int = Field(ge=0)
    redriven: int = Field(ge=0)
    refused: list[LeftLetter]
    next: Cursor


class DiscardedPage(Answer):
    """What came of discarding many: it goes on at `next`, if that is there."""

    matched: int = Field(ge=0)
    discarded: int = Field(ge=0)
    refused: list[LeftLetter]
    next: Cursor


class NotUndone(Answer):
    """A step that could not be undone."""

    step: str = Field(description="Its slot: the node, and the rounds of the loops around it.")
    version: int = Field(ge=1, description="The entry that says what it has done.")
    tool: str = Field(description="The tool that was to undo it.")
    code: str
    message: str


class UnderWay(Answer):
    """How far an undoing is."""

    since: Time
    reason: str
    by: str | None = Field(description="Who asked for it; null: the saga failed.")
    back_to: int | None = Field(
        description="What was done up to this version stays; null: everything is undone."
    )
    undone: int = Field(ge=0)
    failed: int = Field(ge=0)
    left: int = Field(ge=0)


class WasUndone(Answer):
    """What has come of the undoing with which a saga has ended."""

    undone: int = Field(ge=0, description="Steps that were undone.")
    failed: int = Field(ge=0, description="Steps that could not be undone.")
    lasting: int = Field(ge=0, description="Steps that nothing undoes.")
    stays: list[str] = Field(description="The first of those that nothing undoes.")
    back_to: int | None


class Undoing(Answer):
    """What of a saga could be undone, how far an undoing is, and what has come of it."""

    undoable: int = Field(ge=0, description="Steps that are done and would be undone.")
    lasting: int = Field(ge=0, description="Steps that are done and that nothing undoes.")
    failed: list[NotUndone] = Field(
        description="What could not be undone; another rollback takes it up again."
    )
    doubtful: list[str] = Field(
        description="Steps that may have happened. A rollback asks whether they have, of those that something undoes."
    )
    more_failed: int = Field(
        ge=0,
        description="More steps that could not be undone; entries `undo_set_aside` of the log name them.",
    )
    more_doubtful: int = Field(
        ge=0,
        description="More steps that may have happened; entries `step_failed` and `step_stopped` of the log name them.",
    )
    under_way: UnderWay | None
    done: WasUndone | None


class PlannedStep(Answer):
    """A step that a rollback comes to."""

    step: str
    version: int = Field(ge=1)
    by: str | None = Field(
        description="The tool that undoes it, or the child saga that does; null: nothing does."
    )
    doubtful: bool = Field(description="It may have happened: a person is asked before it is undone.")


class Plan(Answer):
    """What a rollback undoes, the newest first."""

    parent: str | None = Field(
        description="The saga that has started this one. It is not told: what it has made of this one's output stays."
    )
    undoable: int = Field(ge=0)
    doubtful: int = Field(ge=0, description="Steps that may have happened: a person is asked about each.")
    lasting: int = Field(ge=0, description="Steps that nothing undoes.")
    steps: list[PlannedStep] = Field(description="The first 100 of both.")


class RollbackPlan(Answer):
    """What a rollback would undo. Nothing was done."""

    id: str
    status: Status
    version: int = Field(ge=1)
    plan: Plan


class RollbackAccepted(RollbackPlan):
    """It is in the saga's log, now or since before."""

    changed: bool


class WayStep(SparseAnswer):
    """A round of a node that is settled, or one of the several things that the node does in it."""

    node: str
    iteration: list[int] = Field(description="Its round in each loop around it, outermost first.")
    item: str = Field(default="", description=ITEM)
    became: Annotated[str, WithJsonSchema({"type": "string", "enum": list(BECAME)})]
    version: int = Field(ge=1, description="Of the entry that says so.")
    at: Time
    by: list[str] = Field(
        description="The nodes whose live edges led to it; empty text: the start of the saga."
    )
    way: str = Field(description="What its loop and its branch chose, as in the log.")
    to: list[str] = Field(
        description="The rounds of nodes that its live edges lead to, as NODE or NODE@ROUND."
    )
    not_to: list[str] = Field(description="Those that it does not go on to.")
    text: str = Field(
        description="For a person: which turn or call of an agent it is, which way it went on, or why it did not run."
    )
    child: str = Field(default="", description="The saga that it has started, if it starts any.")


class OpenNode(SparseAnswer):
    """A round of a node that is not settled yet."""

    node: str
    iteration: list[int]
    item: str = Field(default="", description=ITEM)
    state: Annotated[str, WithJsonSchema({"type": "string", "enum": list(STATES)})]
    text: str = Field(description="What it is doing, for a person.")
    child: str = Field(default="", description="The saga that it has started.")


class _AboutSaga(Answer):
    saga: str
    workflow: str
    status: Status
    version: int = Field(ge=1, description="Version of its log that this was read to.")
    branch: int = Field(
        ge=0, description="What an earlier branch did behind the fork is not part of the answer."
    )


class Way(_AboutSaga):
    """Which way a saga went."""

    start: str | None = Field(
        description="By which event from outside it was started, for a person; on the first page only."
    )
    steps: list[WayStep] = Field(description="In the order in which they were settled.")
    open: list[OpenNode] = Field(max_length=100, description="What is not settled; on the last page only.")
    end: str | None = Field(
        description="How the saga ended or is about to, for a person; on the last page only."
    )
    next: int | None = Field(description="The `after` of the next page; null at the end.")


class ExplainedEdge(Answer):
    """What an edge into the node has said."""

    from_: str = Field(alias="from", description="The sender; empty: the start of the saga.")
    alive: bool | None = Field(description="Whether this way was taken; null: not known yet.")
    late: bool = Field(description="It came when the join had fired already.")
    version: int | None
    at: Time | None
    text: str


class Reason(Answer):
    """One step back to a cause."""

    node: str = Field(description="Empty: the saga as a whole.")
    iteration: list[int]
    version: int | None
    at: Time | None
    text: str


class ExplainedRound(Answer):
    """What became of one round of a node, and why."""

    iteration: list[int]
    state: Annotated[str, WithJsonSchema({"type": "string", "enum": list(STATES)})]
    version: int | None = Field(description="Of the entry that settled it.")
    at: Time | None
    text: str = Field(description="The whole answer, for a person.")
    edges: list[ExplainedEdge]
    attempts: list[FailedAttempt] = Field(
        max_length=50, description="Those that failed before the last; of more, the first and the last ones."
    )
    items: list[WayStep | OpenNode] = Field(
        max_length=50, description="The turns and calls of an agent; of more, the first and the last ones."
    )
    causes: list[Reason] = Field(
        description="Why it did not run: from its own edges back to the cause, the shortest way."
    )
    causes_left_out: int = Field(ge=0, description="How many are not shown before the last.")
    waits_for: list[OpenNode] = Field(max_length=100, description="What holds it up.")
    way: str
    to: list[str]
    not_to: list[str]


class Explanation(_AboutSaga):
    """Why a node ran, or did not."""

    node: str
    kind: str
    iterations: list[ExplainedRound] = Field(
        description="Its rounds, as far as its loops have come; else the only one."
    )
    left_out: int = Field(ge=0, description="Earlier rounds that the answer has no room for.")
