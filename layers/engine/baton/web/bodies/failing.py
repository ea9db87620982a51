"""Attempts that failed, what is done about them, questions to people, and incidents, as models.

The values are made in core/read/views.py, core/read/attempt_history.py and runtime/desks/incidents.py.
Imported only where the OpenAPI document is made: see answers.py.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, WithJsonSchema
from pydantic.types import JsonValue

from baton.core.failures.policy import QUESTIONS, SEVERITIES
from baton.core.log.answers import TYPES
from baton.web.bodies.models import ITEM, LABEL, Answer, Cursor, Schema, Status, Time

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
    """An answer that a question offers, in its author's words. `default`: it is taken when the question expires."""

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
    """An open question in a list. All that it says, its schema among it, is in the answer of `GET /sagas/{saga}`."""

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
