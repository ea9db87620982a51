"""Models of answers about failures, questions, incidents, dead letters, rollbacks and explanations."""

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
Condition = Annotated[dict[str, Any], Field(description="Compiled condition. `is` names its kind.")]
Schema = Annotated[dict[str, Any], Field(description="A JSON Schema.")]
Cursor = Annotated[
    str | None, Field(description="Value of `cursor` for the next page. Null on the last page.")
]


class Answer(BaseModel):
    """An object with exactly these fields."""

    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)


LABEL = "Label of the item, such as `turn 2, call 1 (table.hold)`."
ITEM = "Item that the node processes, such as `t2-0` for the first call of an agent's second turn."


class SparseAnswer(BaseModel):
    """An object with no other fields than these. A field with a default can be absent."""

    model_config = ConfigDict(extra="forbid")


class OpenAnswer(BaseModel):
    """An object with these and further fields."""

    model_config = ConfigDict(extra="allow")


AskedFor = Annotated[
    Annotated[str, WithJsonSchema({"type": "string", "enum": list(QUESTIONS)})] | None,
    Field(
        description="For the type `error`: kind of answer that the person is asked for, which is the `question` "
        "of the workflow's rule for the failure. Null for other types."
    ),
]
_KINDS = "Class of the failure: transient, recoverable, user_resolvable, permanent, catastrophic or unknown."


class AttemptFailure(Answer):
    """Failure of an attempt, and its meaning."""

    code: str
    class_: str = Field(alias="class", description=_KINDS)
    message: str
    retryable: bool = Field(description="True if a retry of the same call may succeed.")
    says: str = Field(description="Meaning of the code, as a sentence.")
    advice: str = Field(description="Recommended action.")


class FailingStep(AttemptFailure):
    """An open step with failed attempts. The failure is that of the last attempt."""

    # Only turns and calls of agents have an item.
    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    node: str
    iteration: list[int]
    item: str = Field("", description=ITEM)
    label: str = Field("", description=LABEL)
    attempts: int = Field(ge=1, description="Number of failed attempts.")
    at: Time | None = Field(description="Time of the last failure.")
    strategy: str = Field(
        description="Strategy that handles the failure: retry, replan, ask_user or escalate."
    )
    hint: str | None = Field(description="For a replan: hint that it applies.")
    way: str | None = Field(description="Alternative that the step uses now.")
    next_attempt_at: Time | None = Field(
        description="Earliest time of the next attempt. Null if the next attempt does not depend on time."
    )


class Choice(Answer):
    """An answer that a question offers, in the words of its author. The question's expiry selects the choice
    whose `default` is true.
    """

    id: str
    label: str
    description: str
    default: bool
    destructive: bool


class Takeover(Answer):
    """Work that a person takes over manually."""

    url: str
    picture: str
    instructions: str


class Asked(Answer):
    """A question to a person, asked by a node, about a failed step or about a parked saga."""

    id: str
    node: str | None = Field(description="Node that asks. Null if the question concerns the saga as a whole.")
    iteration: list[int]
    asked_for: AskedFor
    message: str
    options: list[str] = Field(description="Actions that an answer can name.")
    expires_at: Time | None = Field(
        description="Time when the question expires and the saga continues without an answer. Null if the question "
        "does not expire."
    )
    type: Annotated[str, WithJsonSchema({"type": "string", "enum": list(TYPES)})] = Field(
        description="Type of the question. It determines the form of the answer and the result of an expiry. A "
        "failed step asks a question of type `error`."
    )
    title: str | None
    details: JsonValue = Field(description="Information for the person, as the workflow supplies it.")
    choices: list[Choice] = Field(description="Details of those `options` that have more than an id.")
    schema_: Schema | bool | None = Field(
        alias="schema", description="JSON Schema of the `data` of an answer with `submit`."
    )
    takeover: Takeover | None
    digest: str | None = Field(
        description="For the approval of a call: SHA-256 of the tool and its arguments. The approval applies only to this call."
    )
    asked_at: Time | None = Field(
        description="Time when the question was asked. Null if the log does not contain it."
    )
    risk: Annotated[str, WithJsonSchema({"type": "string", "enum": list(SEVERITIES)})] | None = Field(
        description="Severity of the decision, if the workflow or the tool declares one."
    )
    told_at: Time | None = Field(description="Time of the last reminder. Null if no reminder was sent.")


class Answerer(Answer):
    """A user, a group of users, or a role of callers that may answer a question."""

    kind: Literal["user", "group", "role"]
    name: str


class QuestionClaim(Answer):
    """Claim of a question by one user, and the audience before the claim."""

    by: str
    at: Time
    from_: Answerer = Field(alias="from")


class EscalationStep(Answer):
    """An escalation of a question that has no answer by a given time."""

    at: Time
    action: Literal["remind", "hand_on", "decide"] = Field(
        description="`remind`: the audience is notified again. `hand_on`: another audience may answer from then "
        "on. `decide`: the question is closed."
    )
    to: Answerer | None = Field(description="For `hand_on`: the new audience.")
    answer: str | None = Field(description="For `decide`: the answer that closes the question.")


class Question(Asked):
    """An open question. `POST /sagas/{saga}/answer` answers it."""

    for_: list[Answerer] = Field(
        alias="for",
        description="Users, groups and roles that may answer. Answers of other callers are refused with status 403.",
    )
    claim: QuestionClaim | None = Field(
        description="Claim by a user. Null if no user has claimed the question."
    )
    escalate: list[EscalationStep] = Field(description="Pending escalations, earliest first.")
    arguments: Schema | None = Field(
        description="JSON Schema of the arguments that an answer may change. Null if it may change none."
    )


class Audience(Answer):
    """Audience of a question, in addition to operators. `on_call` means operators only and has no name."""

    kind: Annotated[str, WithJsonSchema({"type": "string", "enum": ["user", "group", "role", "on_call"]})]
    name: str | None


class ListedQuestion(Answer):
    """An open question in a list. `GET /sagas/{saga}` returns the complete question with its schema."""

    saga: str
    workflow: str
    id: str
    type: Annotated[str, WithJsonSchema({"type": "string", "enum": list(TYPES)})]
    asked_for: AskedFor
    title: str | None = Field(description="Title of the question. A long title is truncated.")
    message: str = Field(description="Text of the question. A long text is truncated.")
    for_: Audience = Field(alias="for")
    options: list[str] = Field(description="Actions that an answer can name. A long list is truncated.")
    asked_at: Time | None
    expires_at: Time | None = Field(description="Time when the question expires. Null if it does not expire.")
    risk: Annotated[str, WithJsonSchema({"type": "string", "enum": list(SEVERITIES)})] | None
    told: bool = Field(
        description="True if the audience was notified. The number of notifications that a person receives at "
        "once is limited."
    )
    answer_at: str = Field(description="Path for the answer. Send it with POST.")


class QuestionPage(Answer):
    """A page of open questions, ordered by expiry, earliest first."""

    questions: list[ListedQuestion]
    next: Cursor


class ParkedAs(Answer):
    """Reason why a saga is parked."""

    code: str
    message: str
    node: str | None
    until: Time | None = Field(
        description="Time when the saga resumes automatically. Null if a person must decide."
    )
    stands_still_since: Time | None = Field(
        description="Time since which a defect parks the saga; the saga's clock is stopped from then on. Null if "
        "there is another reason."
    )
    build: str | None = Field(
        description="Build of the code with the defect. The saga resumes automatically with another build."
    )


class Reaction(Answer):
    """A reaction to a failure."""

    strategy: str
    hint: str | None
    way: str | None
    policy: str | None = Field(description="Failover policy that selected the strategy.")
    why: list[str] = Field(description="Reasons why earlier strategies were not used.")
    pause_ms: int | None = Field(ge=0, description="For a retry: delay before it, in milliseconds.")
    next_attempt_at: Time | None
    question: Asked | None
    answer: str | None = Field(
        description="Answer to the question: retry, use, fail or expired. Null if the question is open."
    )


class FailedAttempt(AttemptFailure):
    """A failed attempt that was followed by a further reaction."""

    attempt: int = Field(ge=1)
    tool: str
    version: int = Field(ge=1, description="Version of the log entry that records the failure.")
    at: Time
    lasted_ms: int
    then: list[Reaction]
    text: str = Field(description="Complete explanation as text.")


class Incident(Answer):
    """A problem that requires a person. The incident is resolved when a person decides about its saga."""

    id: str
    status: Annotated[str, WithJsonSchema({"type": "string", "enum": ["open", "resolved"]})]
    saga: str
    node: str | None
    code: str
    message: str
    severity: Annotated[str, WithJsonSchema({"type": "string", "enum": list(SEVERITIES)})]
    opened_at: Time
    resolved_at: Time | None
    resolved_by: str | None = Field(
        description="User whose action resolved the incident: an answer, resume, cancel, fork, or an explicit "
        "resolve."
    )
    acknowledged_at: Time | None = Field(description="Time when a person last acknowledged the incident.")
    acknowledged_by: str | None
    note: str | None = Field(description="Note of the person who acknowledged the incident.")


class IncidentPage(Answer):
    """A page of incidents, newest first."""

    incidents: list[Incident]
    next: Cursor


class FailureHandler(Answer):
    """Saga that was started because another saga failed permanently."""

    saga: str | None = Field(description="Identifier of the saga. Null if it could not be started.")
    status: Status | None = Field(description="Status of the saga. Null if its data was deleted.")
    why: str | None = Field(description="Reason why the saga could not be started.")


class DeadLetter(Answer):
    """A message that could not be delivered or a log entry that could not be read. It belongs to a saga, or
    to no saga if the message names none.
    """

    id: str = Field(description="Identifier of the saga. `message~…` if the message names no saga.")
    status: Annotated[str, WithJsonSchema({"type": "string", "enum": list(LETTER_STATUSES)})]
    saga: str | None
    node: str | None = Field(description="Node that the unreadable log entry refers to.")
    version: int | None = Field(
        ge=1, description="Version of the unreadable log entry, if an entry is the cause."
    )
    code: str = Field(examples=["unreadable_log", "missing_graph", "unknown_entry", "received_too_often"])
    reason: str
    source: Annotated[str, WithJsonSchema({"type": "string", "enum": list(SOURCES)})] = Field(
        description="Origin of the messages: wake-up messages, or messages that the relay could not forward."
    )
    messages: int = Field(ge=1, description="Number of dead messages.")
    attempts: int = Field(ge=1, description="Number of failed deliveries of these messages.")
    first_at: Time = Field(description="Time when the first of the messages was sent.")
    last_at: Time
    pending_since: Time | None
    age_ms: int = Field(ge=0, description="Milliseconds since the first of the messages was sent.")
    redrives: int = Field(ge=0)
    redrives_left: int = Field(ge=0, description="Number of further redrives that do not require `force`.")
    decided_at: Time | None = Field(description="Time of the last redrive or discard.")
    decided_by: str | None
    why: str | None = Field(description="Reason of the discard.")
    expires_at: Time
    message: str = Field(description="Newest message. A long message is truncated.")


class DeadLetterPage(Answer):
    """A page of dead letters, oldest first."""

    dead_letters: list[DeadLetter]
    next: Cursor


class LeftLetter(Answer):
    """A dead letter that the request did not change."""

    id: str
    why: str


class RedrivenPage(Answer):
    """Result of a redrive of several dead letters. `next` is the cursor of the next part."""

    matched: int = Field(ge=0)
    redriven: int = Field(ge=0)
    refused: list[LeftLetter]
    next: Cursor


class DiscardedPage(Answer):
    """Result of a discard of several dead letters. `next` is the cursor of the next part."""

    matched: int = Field(ge=0)
    discarded: int = Field(ge=0)
    refused: list[LeftLetter]
    next: Cursor


class NotUndone(Answer):
    """A step that could not be undone."""

    step: str = Field(description="Slot of the step: its node and the rounds of the enclosing loops.")
    version: int = Field(ge=1, description="Version of the log entry that records the step.")
    tool: str = Field(description="Tool that was called to undo the step.")
    code: str
    message: str


class UnderWay(Answer):
    """Progress of a rollback."""

    since: Time
    reason: str
    by: str | None = Field(
        description="User who requested the rollback. Null if the failure of the saga started it."
    )
    back_to: int | None = Field(
        description="Version of the log up to which effects are kept. Null if everything is undone."
    )
    undone: int = Field(ge=0)
    failed: int = Field(ge=0)
    left: int = Field(ge=0)


class WasUndone(Answer):
    """Result of the rollback that ended a saga."""

    undone: int = Field(ge=0, description="Number of steps that were undone.")
    failed: int = Field(ge=0, description="Number of steps that could not be undone.")
    lasting: int = Field(ge=0, description="Number of irreversible steps.")
    stays: list[str] = Field(description="First irreversible steps.")
    back_to: int | None


class Undoing(Answer):
    """Steps of a saga that can be undone, the progress of a rollback, and its result."""

    undoable: int = Field(ge=0, description="Number of completed steps that can be undone.")
    lasting: int = Field(ge=0, description="Number of completed steps that are irreversible.")
    failed: list[NotUndone] = Field(
        description="Steps that could not be undone. A further rollback retries them."
    )
    doubtful: list[str] = Field(
        description="Steps with an unknown outcome. A rollback asks a person about those of them that can be undone."
    )
    more_failed: int = Field(
        ge=0,
        description="Number of further steps that could not be undone. The `undo_set_aside` entries of the log "
        "name them.",
    )
    more_doubtful: int = Field(
        ge=0,
        description="Number of further steps with an unknown outcome. The `step_failed` and `step_stopped` "
        "entries of the log name them.",
    )
    under_way: UnderWay | None
    done: WasUndone | None


class PlannedStep(Answer):
    """A step in a rollback."""

    step: str
    version: int = Field(ge=1)
    by: str | None = Field(
        description="Tool or child saga that undoes the step. Null if the step is irreversible."
    )
    doubtful: bool = Field(
        description="True if the outcome of the step is unknown. A person is asked before it is undone."
    )


class Plan(Answer):
    """Steps that a rollback undoes, newest first."""

    parent: str | None = Field(
        description="Parent saga. The rollback does not notify it, and the parent's own use of this saga's output"
        " is not undone."
    )
    undoable: int = Field(ge=0)
    doubtful: int = Field(
        ge=0, description="Number of steps with an unknown outcome. A person is asked about each."
    )
    lasting: int = Field(ge=0, description="Number of irreversible steps.")
    steps: list[PlannedStep] = Field(description="First 100 steps, undoable and irreversible.")


class RollbackPlan(Answer):
    """Steps that a rollback would undo. The request changes nothing."""

    id: str
    status: Status
    version: int = Field(ge=1)
    plan: Plan


class RollbackAccepted(RollbackPlan):
    """The saga's log records the rollback, now or from an earlier request."""

    changed: bool


class WayStep(SparseAnswer):
    """A settled round of a node, or a settled item of such a round."""

    node: str
    iteration: list[int] = Field(description="Round of each enclosing loop, outermost first.")
    item: str = Field(default="", description=ITEM)
    became: Annotated[str, WithJsonSchema({"type": "string", "enum": list(BECAME)})]
    version: int = Field(ge=1, description="Version of the log entry that records the result.")
    at: Time
    by: list[str] = Field(
        description="Nodes whose live edges led to this round. An empty string stands for the start of the saga."
    )
    way: str = Field(description="Choice of the node's loop and branch, as in the log.")
    to: list[str] = Field(description="Rounds of nodes that the live edges lead to, as NODE or NODE@ROUND.")
    not_to: list[str] = Field(description="Nodes that the saga does not continue with.")
    text: str = Field(
        description="Explanation as text: the turn or call of an agent, the path taken, or the reason why the "
        "node did not run."
    )
    child: str = Field(default="", description="Saga that the node has started, if any.")


class OpenNode(SparseAnswer):
    """A round of a node that is not settled."""

    node: str
    iteration: list[int]
    item: str = Field(default="", description=ITEM)
    state: Annotated[str, WithJsonSchema({"type": "string", "enum": list(STATES)})]
    text: str = Field(description="Current activity as text.")
    child: str = Field(default="", description="Saga that the node has started.")


class _AboutSaga(Answer):
    saga: str
    workflow: str
    status: Status
    version: int = Field(ge=1, description="Version of the saga's log that this answer reflects.")
    branch: int = Field(
        ge=0,
        description="Number of the branch. The answer excludes entries of earlier branches after the fork.",
    )


class Way(_AboutSaga):
    """The path that a saga took."""

    start: str | None = Field(description="Event that started the saga, as text. Only on the first page.")
    steps: list[WayStep] = Field(description="Settled rounds, in the order of settlement.")
    open: list[OpenNode] = Field(max_length=100, description="Open rounds. Only on the last page.")
    end: str | None = Field(
        description="End of the saga, reached or in progress, as text. Only on the last page."
    )
    next: int | None = Field(description="Value of `after` for the next page. Null on the last page.")


class ExplainedEdge(Answer):
    """State of an edge into the node."""

    from_: str = Field(
        alias="from",
        description="Node that the edge comes from. An empty string stands for the start of the saga.",
    )
    alive: bool | None = Field(description="True if the saga took this edge. Null if that is not decided.")
    late: bool = Field(description="True if the edge was decided after the node's join was complete.")
    version: int | None
    at: Time | None
    text: str


class Reason(Answer):
    """One step back to a cause."""

    node: str = Field(description="Name of the node. Empty for the saga as a whole.")
    iteration: list[int]
    version: int | None
    at: Time | None
    text: str


class ExplainedRound(Answer):
    """Result of one round of a node, and its causes."""

    iteration: list[int]
    state: Annotated[str, WithJsonSchema({"type": "string", "enum": list(STATES)})]
    version: int | None = Field(description="Version of the log entry that settled the round.")
    at: Time | None
    text: str = Field(description="Complete explanation as text.")
    edges: list[ExplainedEdge]
    attempts: list[FailedAttempt] = Field(
        max_length=50,
        description="Failed attempts before the last. Contains the first and last of them if there are more than "
        "50.",
    )
    items: list[WayStep | OpenNode] = Field(
        max_length=50,
        description="Turns and calls of an agent. Contains the first and last of them if there are more than 50.",
    )
    causes: list[Reason] = Field(
        description="Reasons why the node did not run, from its own edges back to the cause, along the shortest "
        "path."
    )
    causes_left_out: int = Field(ge=0, description="Number of causes omitted before the last.")
    waits_for: list[OpenNode] = Field(max_length=100, description="Open rounds that this round waits for.")
    way: str
    to: list[str]
    not_to: list[str]


class Explanation(_AboutSaga):
    """Explanation of why a node ran or did not run."""

    node: str
    kind: str
    iterations: list[ExplainedRound] = Field(
        description="Rounds of the node that its loops have reached. A node outside of loops has one."
    )
    left_out: int = Field(ge=0, description="Number of earlier rounds omitted from the answer.")
