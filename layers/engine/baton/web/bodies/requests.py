"""Request bodies and headers: parse, check, and say exactly what is wrong with them.

Queries are in web/parameters.py. The docstrings of the bodies are their descriptions in the OpenAPI document.
"""

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
from baton.core.expressions import escape
from baton.core.expressions.durations import LONGEST_S, PATTERN, SHORTEST_S, parse_duration
from baton.core.expressions.spelling import nearest
from baton.core.failures.classes import code_of
from baton.core.failures.codes import CODE_PATTERN
from baton.core.log.answers import ACTIONS, APPROVE, DONE, MAX_COMMENT, REJECT, SUBMIT, Answer
from baton.core.log.folding.callbacks import FAILURE, HEARTBEAT, SUCCESS, Said
from baton.core.log.records import Failure, failed_with
from baton.core.money import MOST_USD, amount_of, micro_dollars
from baton.core.outside.cloudevents import LONGEST_KEY
from baton.errors import InvalidInput, Problem, TooLarge, UserError

MAX_KEY = 255
_DOLLARS = r"^(0|[1-9][0-9]{0,5})(\.[0-9]{1,6})?$"
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


def _grace(value: Any) -> int:
    return 0 if value == 0 and not isinstance(value, bool) else parse_duration(value)


def whole(value: Any) -> Any:
    """JSON knows one kind of number: 1.0 is a whole one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


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


class Body(BaseModel):
    """Read strictly: a number is no text, and a text is no number."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)  # few are read by a process


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

    reason: str = Field("", max_length=500)
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
    comment: str = Field("", max_length=MAX_COMMENT, description="What the person has to say besides.")

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
    comment: str = Field("", max_length=MAX_COMMENT, description="What the person has to say besides.")

    def answer(self) -> Answer:
        data = self.data if "data" in self.model_fields_set else UNSET
        return Answer(ask="", action=self.action, data=data, comment=self.comment)


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
    reason: str = Field("", max_length=500)


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
