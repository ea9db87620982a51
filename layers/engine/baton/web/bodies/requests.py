"""Request bodies and headers: their models, how they are read, and their errors."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from msgspec import UNSET
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from baton.core.documents.text import parse_document
from baton.core.expressions import LONGEST_S, PATTERN, SHORTEST_S, escape, nearest, parse_duration
from baton.core.failures import sanitised
from baton.core.failures.codes import CODE_PATTERN
from baton.core.failures.names import code_of
from baton.core.log.folding.received import FAILURE, HEARTBEAT, SUCCESS, Said
from baton.core.log.questions import ACTIONS, APPROVE, DONE, MAX_COMMENT, REJECT, SUBMIT, Answer
from baton.core.log.records import Failure, failed_with
from baton.core.money import LONGEST_NOTE, MOST_USD, amount_of, micro_dollars
from baton.core.outside import LONGEST_KEY, USER_PATTERN, USER_SHAPE, is_user
from baton.errors import InvalidInput, Problem, TooLarge, UserError
from baton.runtime.engine.request import SAGA_ID
from baton.runtime.requests.answers import MOST_NOTE
from baton.runtime.requests.operators import MOST_REDRIVEN

MAX_KEY = 255
B = TypeVar("B", bound="Body")

# Pydantic's messages in the words of JSON.
_PLAIN_WORDS = {
    "missing": "`{name}` is missing",
    "string_type": "must be a string",
    "bool_type": "must be `true` or `false`",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "int_type": "must be a whole number",
    "string_too_short": "must not be empty",
    "string_too_long": "has at most {max_length} characters; this one has {length}",
    "greater_than_equal": "must be at least {ge}",
}


Plainly = AfterValidator(sanitised)
"""Of words of people that are kept: without the secrets in them."""


class Body(BaseModel):
    """Read strictly: a number is no text, and a text is no number."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)  # few are read by a process


def whole(value: Any) -> Any:
    """JSON knows one kind of number: 1.0 is a whole one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def text_of(body: str, is_base64: bool, limit: int) -> str:
    """The body as text. Raises `TooLarge` or `UserError`."""
    try:
        raw = base64.b64decode(body, validate=True) if is_base64 else body.encode()
        if len(raw) > limit:
            raise TooLarge(f"a request body has at most {limit} bytes; this one has {len(raw)}")
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UserError(f"the body is not UTF-8: byte {error.start}") from error
    except ValueError as error:
        raise UserError(f"the body cannot be decoded: {error}") from error


def read_body(model: type[B], text: str) -> B:
    """The body as a model. Raises `MalformedDocument` or `InvalidInput` with every problem and its place.

    Read as strictly as a workflow document: what the log could not hold as it is (NaN, 1e999, half a
    surrogate pair, a key that is there twice) is refused, not changed.
    """
    document = parse_document(text if text.strip() else "{}", json_only=True)
    if not isinstance(document.value, dict):
        problem = document.locate(Problem("", "must be an object"))
        raise InvalidInput("the body must be a JSON object", (problem,))
    try:
        return model.model_validate(document.value)
    except ValidationError as error:
        details = error.errors(include_url=False)
        problems = tuple(document.locate(_problem(model, detail)) for detail in details)
        raise InvalidInput(f"at {problems[0].path or '/'}: {problems[0].message}", problems) from error


def _problem(model: type[BaseModel], detail: Any) -> Problem:
    pointer = "".join(f"/{escape(step)}" for step in detail["loc"])
    if detail["type"] == "extra_forbidden":
        name = str(detail["loc"][-1])
        return Problem(pointer, f"`{name}` is not known here", nearest(name, model.model_fields))
    if detail["type"] == "literal_error":
        words = re.findall("'([^']*)'", detail["ctx"]["expected"])
        known = detail["ctx"]["expected"].replace("'", "`")
        return Problem(pointer, f"must be {known}", nearest(str(detail["input"])[:40], words))
    if (plain := _PLAIN_WORDS.get(detail["type"])) is None:
        return Problem(pointer, detail["msg"].removeprefix("Value error, "))
    length = len(detail["input"]) if isinstance(detail["input"], str) else 0
    return Problem(pointer, plain.format(name=detail["loc"][-1], length=length, **detail.get("ctx", {})))


def idempotency_key(headers: Mapping[str, str]) -> str:
    """The `Idempotency-Key`, empty if there is none. Raises `UserError` for one that is too long."""
    key = headers.get("idempotency-key", "").strip()
    if len(key) > MAX_KEY:
        raise UserError(f"an Idempotency-Key has at most {MAX_KEY} characters")
    return key


_DOLLARS = r"^(0|[1-9][0-9]{0,5})(\.[0-9]{1,6})?$"


def _grace(value: Any) -> int:
    return 0 if value == 0 and not isinstance(value, bool) else parse_duration(value)


def _micro_dollars(value: Any) -> int:
    """Dollars as a number, or as text, which is exact."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number and not (isinstance(value, str) and re.fullmatch(_DOLLARS, value)):
        raise ValueError(f"`{str(value)[:40]}` is not an amount of dollars; give for example 2 or '2.00'")
    return micro_dollars([amount_of(value)])


_GRACE_SCHEMA = {
    "anyOf": [
        {"type": "number", "minimum": SHORTEST_S, "maximum": LONGEST_S},
        {"const": 0},
        {"type": "string", "pattern": PATTERN, "examples": ["500ms", "10m"]},
    ],
    "default": 30,
}


_BUDGET_SCHEMA = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0, "maximum": MOST_USD},
        {"type": "string", "pattern": _DOLLARS, "examples": ["2.00"]},
        {"const": 0},
    ],
    "default": 0,
}


class StartBody(Body):
    """What to start."""

    workflow: str = Field(
        min_length=1, max_length=128, description="A workflow's name, or name@version.", examples=["dinner"]
    )
    input: JsonValue = Field(None, description="Must match the workflow's input schema, if it has one.")
    labels: dict[str, str] = Field(
        default_factory=dict,
        description="At most 10, by which lists find the saga.",
        examples=[{"customer": "4711"}],
    )
    correlation_key: str = Field(
        "",
        max_length=LONGEST_KEY,
        description="By which events from outside find the saga. There is one saga of the workflow with each key, so no "
        "Idempotency-Key goes with it.",
        examples=["A-17"],
    )


class IntentionBody(Body):
    """What a user wants, in words, and what the deployment's workflow for that needs besides."""

    words: str = Field(min_length=1, max_length=10_000, examples=["Dinner for four in Vienna tonight."])
    input: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="Other properties of the workflow's input.",
        examples=[{"city": "Vienna"}],
    )

    @model_validator(mode="after")
    def _one(self) -> IntentionBody:
        if "words" in self.input:
            raise ValueError("`words` stand beside `input`, not in it")
        return self


class CancelBody(Body):
    """Graceful lets running steps finish for `grace_s`; forced does not."""

    reason: Annotated[str, Plainly] = Field("", max_length=500)
    mode: Literal["graceful", "forced"] = "graceful"
    grace_s: Annotated[int, BeforeValidator(_grace), WithJsonSchema(_GRACE_SCHEMA)] = Field(
        30_000, description="Seconds, or a duration such as 500ms or 10m."
    )
    undo: bool = Field(False, description="The saga takes back what it has done before it ends.")

    @property
    def grace_ms(self) -> int:
        return self.grace_s if self.mode == "graceful" else 0


def _code(value: str) -> str:
    """A code as the engine spells it."""
    if not re.fullmatch(CODE_PATTERN, value):
        raise ValueError(f"`{value[:40]}` is not a code; write for example timeout or out_of_stock")
    return code_of(value)


class FailureBody(Body):
    """Why what is waited for has failed."""

    code: Annotated[str, AfterValidator(_code)] = Field(
        description="The code of the failure, as `catch` names it.",
        examples=["out_of_stock"],
        json_schema_extra={"pattern": CODE_PATTERN},
    )
    message: str = Field(
        "",
        max_length=2_000,
        description="What people read. Secrets in it are masked.",
        examples=["Sold out."],
    )


class SignalBody(Body):
    """What the signal brings: a payload, or a failure in its place."""

    model_config = ConfigDict(json_schema_extra={"not": {"required": ["payload", "failure"]}})

    payload: JsonValue = Field(None, description="Becomes the output of the node that waits for it.")
    failure: FailureBody | None = Field(None, description="The node that waits for it fails with this.")

    @model_validator(mode="after")
    def _one(self) -> SignalBody:
        if self.failure is not None and "payload" in self.model_fields_set:
            raise ValueError("a signal brings a `payload` or a `failure`, not both")
        return self

    def why(self) -> Failure | None:
        return None if self.failure is None else failed_with(self.failure.code, self.failure.message)


class CallbackBody(Body):
    """What work elsewhere says: that it is done, that it has failed, or that it is alive."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {
                    "properties": {
                        "status": {"const": SUCCESS},
                        **dict.fromkeys(("code", "message", "retryable"), False),
                    }
                },
                {"properties": {"status": {"const": FAILURE}, "output": False}, "required": ["code"]},
                {
                    "properties": {
                        "status": {"const": HEARTBEAT},
                        **dict.fromkeys(("output", "code", "message", "retryable"), False),
                    }
                },
            ]
        }
    )

    status: Literal["success", "failure", "heartbeat"]
    output: JsonValue = Field(None, description="With `success`: becomes the output of the node.")
    code: Annotated[str, AfterValidator(_code)] = Field(
        default_factory=str,
        description="With `failure`: the code of the failure, as `catch` and `on_failure` name it.",
        examples=["out_of_paper"],
        json_schema_extra={"pattern": CODE_PATTERN},
    )
    message: str = Field(
        "", max_length=2_000, description="With `failure`: what people read. Secrets in it are masked."
    )
    retryable: bool | None = Field(
        None,
        description="With `failure`: whether another attempt may help. Left out, the class of the code says so.",
    )

    @model_validator(mode="after")
    def _fits(self) -> CallbackBody:
        given = self.model_fields_set - {"status"}
        allowed = {SUCCESS: {"output"}, FAILURE: {"code", "message", "retryable"}}.get(self.status, set())
        if strange := sorted(given - allowed):
            raise ValueError(f"`{strange[0]}` does not go with `{self.status}`")
        if self.status == FAILURE and not self.code:
            raise ValueError("a failure has a `code`, such as timeout or out_of_paper")
        return self

    def said(self) -> Said:
        return Said(
            status=self.status,
            output=self.output,
            code=self.code,
            message=self.message,
            retryable=self.retryable,
        )


class ResumeBody(Body):
    """What the saga may spend from now on."""

    budget_usd: Annotated[int, BeforeValidator(_micro_dollars), WithJsonSchema(_BUDGET_SCHEMA)] = Field(
        0,
        description="Dollars that the saga may spend in all. Left out, one that was parked for its money may spend as "
        "much again.",
    )


class OpenBreakerBody(Body):
    """For how long no call goes through."""

    for_s: Annotated[int, BeforeValidator(_grace), WithJsonSchema(_GRACE_SCHEMA)] = Field(
        0, description="Seconds, or a duration such as 10m. Left out, until it is reset."
    )


class ForkBody(Body):
    """Where to go on from, in a new branch."""

    version: Annotated[int, BeforeValidator(whole)] = Field(ge=1, description="A version of the log.")
    reason: Annotated[str, Plainly] = Field("", max_length=500)


class RemindBody(Body):
    """A question of a saga."""

    ask: str = Field(
        min_length=1, max_length=500, description="The question's id, as the saga shows it in `questions`."
    )


class ClaimBody(RemindBody):
    """A question that the caller wants to answer, or gives back."""

    release: bool = Field(
        False,
        description="The question is for all of its audience again; by the user who has it, or an operator.",
    )


class AnswerBody(RemindBody):
    """What a person says to a question of a saga."""

    action: str = Field(
        min_length=1,
        max_length=64,
        description="One of the question's `options`: of a step that failed `retry`, `use` (this output) or `fail`; of "
        "other questions `approve` or `reject`, `submit`, `done`, or the id of one of its choices.",
        examples=[*ACTIONS, APPROVE, REJECT, SUBMIT, DONE],
    )
    arguments: dict[str, JsonValue] = Field(
        {},
        description="With `retry`: these take the place of the step's arguments of the same names. The question's "
        "`arguments` says which an answer may change.",
    )
    output: JsonValue = Field(None, description="With `use`: what takes the place of the step's output.")
    data: JsonValue = Field(None, description="With `submit`: the data that fit the question's `schema`.")
    comment: Annotated[str, Plainly] = Field(
        "", max_length=MAX_COMMENT, description="What the person has to say besides."
    )

    def answer(self) -> Answer:
        given = {name: getattr(self, name) for name in ("output", "data") if name in self.model_fields_set}
        return Answer(
            ask=self.ask, action=self.action, arguments=self.arguments, comment=self.comment, **given
        )


class ConfirmBody(Body):
    """What the reader of a message answers."""

    token: str = Field(
        min_length=1,
        max_length=4_096,
        description="What stands behind the `#` of the link. It is good for a quarter of an hour, and ends with an answer.",
    )
    action: str = Field(min_length=1, max_length=64, description="One of the question's `options`.")
    data: JsonValue = Field(None, description="With `submit`: the data that fit the question's `schema`.")
    comment: Annotated[str, Plainly] = Field(
        "", max_length=MAX_COMMENT, description="What the person has to say besides."
    )

    def answer(self) -> Answer:
        data = self.data if "data" in self.model_fields_set else UNSET
        return Answer(ask="", action=self.action, data=data, comment=self.comment)


_MAX_REASON = 500


class RedriveBody(Body):
    """How a dead letter is redriven."""

    force: bool = Field(
        False, description="Though it was redriven as often as it may, or is redriven already."
    )


class _Matching(Body):
    saga: str = Field("", pattern=rf"^({SAGA_ID})?$")
    node: str = Field("", max_length=128)
    reason: str = Field(
        "", max_length=_MAX_REASON, description="The code, or a part of the reason in any case."
    )
    dry_run: bool = Field(False, description="Only count them.")
    limit: int = Field(100, ge=1, le=MOST_REDRIVEN, description="How many at most.")
    cursor: str = Field("", max_length=8_192, description="The `next` of the answer before.")


class RedriveAllBody(_Matching):
    """Which pending dead letters are redriven: of a saga, about a node,
    with a code or with words in their reason.
    """

    force: bool = Field(False, description="Those, too, that were redriven as often as they may.")


class DiscardAllBody(_Matching):
    """Which pending dead letters are discarded, chosen as for redriving, and why."""

    why: Annotated[str, Plainly] = Field(min_length=1, max_length=_MAX_REASON)


class DiscardBody(Body):
    """Why a dead letter is not to be redriven."""

    reason: Annotated[str, Plainly] = Field(min_length=1, max_length=_MAX_REASON)


class AcknowledgeBody(Body):
    """What the person who has an incident says about it."""

    note: Annotated[str, Plainly] = Field(
        "", max_length=MOST_NOTE, description="For those who look at it next.", examples=["I call the bank."]
    )


_TO_SCHEMA: dict[str, Any] = {
    "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "minLength": 1, "maxLength": 200}]
}


def _step_or_version(given: Any) -> int | str:
    """A version may be written as text, too: no node has a number for its name."""
    if isinstance(given, str) and 0 < len(given) <= 200:
        return int(given) if given.isdecimal() else given
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given
    raise ValueError("must be a version of the log or the name of a step")


class RollbackBody(Body):
    """What is to be undone."""

    to: Annotated[int | str, BeforeValidator(_step_or_version), WithJsonSchema(_TO_SCHEMA)] = Field(
        0,
        description="What was done up to this version of the log, or up to and with this step, stays; 0: everything is undone. Of a "
        "loop's node, `NODE@ROUND` is one round; the node alone is its last.",
    )
    version: Annotated[int, BeforeValidator(whole)] = Field(0, ge=0, description="As `to`, of a version.")
    reason: Annotated[str, Plainly] = Field("", max_length=500)
    parallel: bool = Field(False, description="Steps are undone side by side.")
    dry_run: bool = Field(False, description="Nothing is done; the answer says what would be.")

    @model_validator(mode="after")
    def _one(self) -> RollbackBody:
        if {"to", "version"} <= self.model_fields_set:
            raise ValueError("it goes back `to` a step or a version, or to a `version`, not both")
        return self

    @property
    def back_to(self) -> int:
        """The version; 0 also where a step is named."""
        return self.version or (self.to if isinstance(self.to, int) else 0)

    @property
    def step(self) -> str:
        return self.to if isinstance(self.to, str) else ""


_DAY_DOLLARS = r"^([1-9][0-9]{0,5}(\.[0-9]{1,6})?|0\.0{0,5}[1-9][0-9]{0,5})$"  # more than 0
_MORE = "must be more than 0; a user who may spend nothing is blocked instead"


def _user(name: str) -> str:
    if not is_user(name):
        raise ValueError(USER_SHAPE)
    return name


def _limit(value: Any) -> int:
    """Micro-dollars; 0: null, the limit of all users."""
    if value is None:
        return 0
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value == "0":
        raise ValueError(_MORE)
    if not is_number and not (isinstance(value, str) and re.fullmatch(_DAY_DOLLARS, value)):
        raise ValueError(f"`{str(value)[:40]}` is not an amount of dollars; give for example 2 or '2.00'")
    if not (found := micro_dollars([amount_of(value)])):
        raise ValueError(_MORE)
    return found


_LIMIT_SCHEMA = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0, "maximum": MOST_USD},
        {"type": "string", "pattern": _DAY_DOLLARS, "examples": ["2.00"]},
        {"type": "null"},
    ]
}


class UserBody(Body):
    """A user, and the reason for the decision."""

    user: Annotated[str, AfterValidator(_user)] = Field(
        description="As lists of sagas show it.",
        examples=["ada"],
        json_schema_extra={"pattern": f"^{USER_PATTERN}$"},
    )
    note: Annotated[str, Plainly] = Field(
        "",
        max_length=LONGEST_NOTE,
        description="For operators who look at it next.",
        examples=["a loop of a script"],
    )


class UserLimitBody(UserBody):
    """The limit of a user's spending on a day."""

    limit_usd: Annotated[int, BeforeValidator(_limit), WithJsonSchema(_LIMIT_SCHEMA)] = Field(
        description="Dollars a day (UTC). Null: as much as all users."
    )
