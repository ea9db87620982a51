"""Base of the API's answers, and types that many of them share.

An answer is one struct, beside the code that makes it. The OpenAPI document is generated from the same
struct. A string in `Annotated` describes the field in that document.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from baton.core.failures.policy import QUESTIONS, SEVERITIES
from baton.core.log.questions import TYPES
from baton.core.log.state import FINISHED, WAITING

STEP, UNDO, ALTERNATIVE = ATTEMPTS = ("step", "undo", "alternative")
"""Kinds of attempts: of a step, of an inverse, and of a model's alternative to a step."""
STATUSES = ("pending", "running", *sorted(WAITING), *sorted(FINISHED))

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"}, examples=["2026-11-21T10:00:00.123Z"])]
Day = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")]
Count = Annotated[int, Meta(ge=0)]
Version = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(ge=0)]
Status = Annotated[str, Meta(extra_json_schema={"enum": list(STATUSES)})]
Schema = Annotated[dict[str, Any], "A JSON Schema."]
Type = Annotated[str, Meta(extra_json_schema={"enum": list(TYPES)})]
Severity = Annotated[str, Meta(extra_json_schema={"enum": list(SEVERITIES)})]
AskedFor = Annotated[
    Annotated[str, Meta(extra_json_schema={"enum": list(QUESTIONS)})] | None,
    "For the type `error`: kind of answer that the person is asked for, which is the `question` of the workflow's rule for the failure. Null for other types.",
]
LABEL = "Label of the item, such as `turn 2, call 1 (table.hold)`, or `notify[3]/send` of a function."
ITEM = "Item that the node processes, such as `t2-0` for the first call of an agent's second turn."
CLASS_OF = (
    "Class of the failure: transient, recoverable, user_resolvable, permanent, catastrophic or unknown."
)
Cursor = Annotated[str | None, "Value of `cursor` for the next page. Null on the last page."]


def _without_underscore(name: str) -> str:
    """Return the field's name in JSON: `from_` is `from`."""
    return name.rstrip("_")


class View(
    msgspec.Struct,
    forbid_unknown_fields=True,
    rename=_without_underscore,
):
    """An object with exactly these fields. A field that can be absent has the default `UNSET`."""


class OpenView(View, forbid_unknown_fields=False):
    """An object with these and further fields."""


class ForkedFrom(View):
    """Saga whose log a new saga has taken over, and the last version that is that one's."""

    saga: str
    version: Version

    @classmethod
    def of(cls, saga: str, version: int) -> ForkedFrom | None:
        """Return the view of a source; None where no version (0) is that one's."""
        return cls(saga, version) if version else None


class UnreadableEntries(View):
    """Entries of a saga's log that are missing or damaged. `POST /sagas/{id}/resume` continues the saga from
    the last entry before them.
    """

    first: Version
    last: Version
    why: str


class AttemptFailure(View):
    """Failure of an attempt, and its meaning."""

    code: str
    class_: Annotated[str, CLASS_OF]
    message: str
    retryable: Annotated[bool, "True if a retry of the same call may succeed."]
    says: Annotated[str, "Meaning of the code, as a sentence."]
    advice: Annotated[str, "Recommended action."]


class Choice(View):
    """An answer that a question offers, in the words of its author. The question's expiry selects the choice
    whose `default` is true.
    """

    id: str
    label: str
    description: str
    default: bool
    destructive: bool


class Takeover(View):
    """Work that a person takes over manually."""

    url: str
    picture: str
    instructions: str


class Asked(View):
    """A question to a person, asked by a node, about a failed step or about a parked saga."""

    id: str
    node: Annotated[str | None, "Node that asks. Null if the question concerns the saga as a whole."]
    iteration: list[int]
    asked_for: AskedFor
    message: str
    options: Annotated[list[str], "Actions that an answer can name."]
    expires_at: Annotated[
        Time | None,
        "Time when the question expires and the saga continues without an answer. Null if the question does not expire.",
    ]
    type: Annotated[
        Type,
        "Type of the question. It determines the form of the answer and the result of an expiry. A failed step asks a question of type `error`.",
    ]
    title: str | None
    details: Annotated[Any, "Information for the person, as the workflow supplies it."]
    choices: Annotated[list[Choice], "Details of those `options` that have more than an id."]
    schema_: Annotated[Schema | bool | None, "JSON Schema of the `data` of an answer with `submit`."]
    takeover: Takeover | None
    digest: Annotated[
        str | None,
        "For the approval of a call: SHA-256 of the tool and its arguments. The approval applies only to this call.",
    ]
    asked_at: Annotated[Time | None, "Time when the question was asked. Null if the log does not contain it."]
    risk: Annotated[Severity | None, "Severity of the decision, if the workflow or the tool declares one."]
    told_at: Annotated[Time | None, "Time of the last reminder. Null if no reminder was sent."]


class Answerer(View):
    """A user, a group of users, or a role of callers that may answer a question."""

    kind: Annotated[str, Meta(extra_json_schema={"enum": ["user", "group", "role"]})]
    name: str


class QuestionClaim(View):
    """Claim of a question by one user, and the audience before the claim."""

    by: str
    at: Time
    from_: Answerer


class EscalationStep(View):
    """An escalation of a question that has no answer by a given time."""

    at: Time
    action: Annotated[
        Literal["remind", "hand_on", "decide"],
        "`remind`: the audience is notified again. `hand_on`: another audience may answer from then on. `decide`: the question is closed.",
    ]
    to: Annotated[Answerer | None, "For `hand_on`: the new audience."]
    answer: Annotated[str | None, "For `decide`: the answer that closes the question."]


class Question(Asked):
    """An open question. `POST /sagas/{saga}/answer` answers it."""

    for_: Annotated[
        list[Answerer],
        "Users, groups and roles that may answer. Answers of other callers are refused with status 403.",
    ]
    claim: Annotated[QuestionClaim | None, "Claim by a user. Null if no user has claimed the question."]
    escalate: Annotated[list[EscalationStep], "Pending escalations, earliest first."]
    arguments: Annotated[
        Schema | None, "JSON Schema of the arguments that an answer may change. Null if it may change none."
    ]


class NotUndone(View):
    """A step that could not be undone."""

    step: Annotated[str, "Slot of the step: its node and the rounds of the enclosing loops."]
    version: Annotated[Version, "Version of the log entry that records the step."]
    tool: Annotated[str, "Tool that was called to undo the step."]
    code: str
    message: str


class UnderWay(View):
    """Progress of a rollback."""

    since: Time
    reason: str
    by: Annotated[str | None, "User who requested the rollback. Null if the failure of the saga started it."]
    back_to: Annotated[
        int | None, "Version of the log up to which effects are kept. Null if everything is undone."
    ]
    undone: Count
    failed: Count
    left: Count


class WasUndone(View):
    """Result of the rollback that ended a saga."""

    undone: Annotated[Count, "Number of steps that were undone."]
    failed: Annotated[Count, "Number of steps that could not be undone."]
    lasting: Annotated[Count, "Number of irreversible steps."]
    stays: Annotated[list[str], "First irreversible steps."]
    back_to: int | None


class Undoing(View):
    """Steps of a saga that can be undone, the progress of a rollback, and its result."""

    undoable: Annotated[Count, "Number of completed steps that can be undone."]
    lasting: Annotated[Count, "Number of completed steps that are irreversible."]
    failed: Annotated[list[NotUndone], "Steps that could not be undone. A further rollback retries them."]
    doubtful: Annotated[
        list[str],
        "Steps with an unknown outcome. A rollback asks a person about those of them that can be undone.",
    ]
    more_failed: Annotated[
        Count,
        "Number of further steps that could not be undone. The `undo_set_aside` entries of the log name them.",
    ]
    more_doubtful: Annotated[
        Count,
        "Number of further steps with an unknown outcome. The `step_failed` and `step_stopped` entries of the log name them.",
    ]
    under_way: UnderWay | None
    done: WasUndone | None


class FailingStep(AttemptFailure):
    """An open step with failed attempts. The failure is that of the last attempt."""

    node: str
    iteration: list[int]
    attempts: Annotated[Version, "Number of failed attempts."]
    at: Annotated[Time | None, "Time of the last failure."]
    strategy: Annotated[str, "Strategy that handles the failure: retry, replan, ask_user or escalate."]
    hint: Annotated[str | None, "For a replan: hint that it applies."]
    way: Annotated[str | None, "Alternative that the step uses now."]
    next_attempt_at: Annotated[
        Time | None, "Earliest time of the next attempt. Null if the next attempt does not depend on time."
    ]
    item: Annotated[str | UnsetType, ITEM] = UNSET
    label: Annotated[str | UnsetType, LABEL] = UNSET


class ParkedAs(View):
    """Reason why a saga is parked or paused."""

    code: str
    message: str
    node: str | None
    until: Annotated[Time | None, "Time when the saga resumes automatically. Null if a person must decide."]
    stands_still_since: Annotated[
        Time | None,
        "Time since which a defect parks the saga, or an operator pauses it; the saga's clock is stopped from then on. Null if there is another reason.",
    ]
    build: Annotated[
        str | None, "Build of the code with the defect. The saga resumes automatically with another build."
    ]
    by: Annotated[str | None, "Operator who paused the saga. Null if it is not paused."]


class FailureHandler(View):
    """Saga that was started because another saga failed permanently."""

    saga: Annotated[str | None, "Identifier of the saga. Null if it could not be started."]
    status: Annotated[Status | None, "Status of the saga. Null if its data was deleted."]
    why: Annotated[str | None, "Reason why the saga could not be started."]


class SagaError(View):
    """Failure that ended a saga."""

    code: str
    message: str
    node: str
    kind: Annotated[
        str,
        "Class of the failure: transient, recoverable, user_resolvable, permanent, catastrophic or unknown.",
    ]
    says: Annotated[str, "Meaning of the code, as a sentence."]
    advice: Annotated[str, "Recommended action."]


class LargeValue(View):
    """Reference to a value that is too large for the answer."""

    ref: Annotated[str, "`cas://sha256/HEX`. `GET /sagas/{saga}/values/HEX` returns the value."]
    size: Annotated[Version, "Size of the value's JSON in bytes."]


class LimitUse(View):
    """A limit and its use."""

    node: Annotated[str | None, "Node that the limit applies to. Null if it applies to the saga."]
    limit: str
    most: float
    then: Annotated[str, "Action at the limit: terminate, throttle or summarise."]
    used: Annotated[float | UnsetType, "Amount used, in the unit of the limit."] = UNSET
    until: Annotated[Time | UnsetType | None, "Time when the saga's time limit is reached."] = UNSET
