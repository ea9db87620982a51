"""Models of request bodies and headers, with their parsing and errors."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from datetime import UTC, datetime
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
from baton.core.log.folding.received import FAILURE, HEARTBEAT, SUCCESS, CallbackReport
from baton.core.log.questions import ACTIONS, APPROVE, DONE, MAX_COMMENT, REJECT, SUBMIT, Answer
from baton.core.log.records import Failure, failed_with
from baton.core.money import MOST_USD, amount_of, micro_dollars
from baton.core.outside import LONGEST_KEY
from baton.errors import InvalidInput, Problem, TooLarge, UserError
from baton.runtime.engine.request import SAGA_ID
from baton.runtime.requests.answers import MOST_NOTE
from baton.runtime.requests.operators import MOST_REDRIVEN

MAX_KEY = 255
MAX_MESSAGE = 32_768
_ENDS: Any = {"required": ["ends"], "properties": {"ends": {"const": True}}}
B = TypeVar("B", bound="Body")

# Pydantic's messages in the words of JSON.
_PLAIN_WORDS = {
    "missing": "`{name}` is missing",
    "string_type": "must be a string",
    "bool_type": "must be `true` or `false`",
    **dict.fromkeys(("dict_type", "model_type"), "must be an object"),
    "int_type": "must be a whole number",
    "string_too_short": "must not be empty",
    "string_too_long": "has at most {max_length} characters; this one has {length}",
    "greater_than_equal": "must be at least {ge}",
}
Plainly = AfterValidator(sanitised)
"""Text supplied by people, stored with secrets masked."""


class Body(BaseModel):
    """A body that is parsed strictly: numbers are not accepted as text, nor text as numbers."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)  # few are read by a process


def whole_number(value: Any) -> Any:
    """Convert a float such as 1.0 to an integer, because JSON does not distinguish them."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def body_text(body: str, is_base64: bool, limit: int) -> str:
    """Return the body as text. Raises `TooLarge` or `UserError`."""
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
    """Return the body as a model. Raises `MalformedDocument`, or `InvalidInput` with every problem and its
    location.

    The body is parsed as strictly as a workflow document. Values that the log cannot store exactly (NaN,
    1e999, a lone surrogate, a duplicate key) are refused, not changed.
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
    """Return the `Idempotency-Key`, empty if absent. Raises `UserError` for a key that is too long."""
    key = headers.get("idempotency-key", "").strip()
    if len(key) > MAX_KEY:
        raise UserError(f"an Idempotency-Key has at most {MAX_KEY} characters")
    return key


_DOLLARS = r"^(0|[1-9][0-9]{0,5})(\.[0-9]{1,6})?$"


def _grace(value: Any) -> int:
    return 0 if value == 0 and not isinstance(value, bool) else parse_duration(value)


def _micro_dollars(value: Any) -> int:
    """Convert dollars to micro-dollars. A text is converted exactly."""
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
    """Request to start a saga."""

    workflow: str = Field(
        min_length=1,
        max_length=128,
        description="Name of a workflow, NAME@VERSION or NAME@TAG.",
        examples=["dinner"],
    )
    input: JsonValue = Field(
        None,
        description="Input of the saga. It must conform to the workflow's input schema, if the workflow has one.",
    )
    labels: dict[str, str] = Field(
        default_factory=dict,
        description="Labels of the saga, at most 10. `GET /sagas` filters by them.",
        examples=[{"customer": "4711"}],
    )
    correlation_key: str = Field(
        "",
        max_length=LONGEST_KEY,
        description="Key by which events from outside find the saga. A workflow has one saga for each key. Do not"
        " send an Idempotency-Key together with this field.",
        examples=["A-17"],
    )


class WarmBody(Body):
    """Call of a tool ahead of the steps that need its result."""

    tool: str = Field(
        min_length=1,
        max_length=128,
        description="Name of a tool that declares a `cache`.",
        examples=["table.search"],
    )
    arguments: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="Arguments of the call. Steps that call the tool with equal ones take its result.",
        examples=[{"city": "Vienna", "party": 4}],
    )


class IntentionBody(Body):
    """A user's intention in words, and further input for the deployment's intention workflow."""

    words: str = Field(min_length=1, max_length=10_000, examples=["Dinner for four in Vienna tonight."])
    input: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="Further properties of the workflow's input.",
        examples=[{"city": "Vienna"}],
    )

    @model_validator(mode="after")
    def _one(self) -> IntentionBody:
        if "words" in self.input:
            raise ValueError("`words` stand beside `input`, not in it")
        return self


class CancelBody(Body):
    """Request to cancel a saga. With mode `graceful`, running steps have `grace_s` to finish; with `forced`,
    they have none.
    """

    reason: Annotated[str, Plainly] = Field("", max_length=500)
    mode: Literal["graceful", "forced"] = "graceful"
    grace_s: Annotated[int, BeforeValidator(_grace), WithJsonSchema(_GRACE_SCHEMA)] = Field(
        30_000, description="Grace period: a number of seconds, or a duration such as 500ms or 10m."
    )
    undo: bool = Field(False, description="True to roll back the saga before it ends.")

    @property
    def grace_ms(self) -> int:
        """Milliseconds that running steps may finish in."""
        return self.grace_s if self.mode == "graceful" else 0


def _code(value: str) -> str:
    """Return the code in the engine's spelling."""
    if not re.fullmatch(CODE_PATTERN, value):
        raise ValueError(f"`{value[:40]}` is not a code; write for example timeout or out_of_stock")
    return code_of(value)


class FailureBody(Body):
    """Failure reported in place of a result."""

    code: Annotated[str, AfterValidator(_code)] = Field(
        description="Code of the failure, as used in `catch`.",
        examples=["out_of_stock"],
        json_schema_extra={"pattern": CODE_PATTERN},
    )
    message: str = Field(
        "",
        max_length=2_000,
        description="Message for people. Baton masks secrets in it.",
        examples=["Sold out."],
    )


class SignalBody(Body):
    """Content of a signal: a payload or a failure."""

    model_config = ConfigDict(json_schema_extra={"not": {"required": ["payload", "failure"]}})

    payload: JsonValue = Field(None, description="Payload, which becomes the output of the waiting node.")
    failure: FailureBody | None = Field(None, description="Failure of the waiting node.")

    @model_validator(mode="after")
    def _one(self) -> SignalBody:
        if self.failure is not None and "payload" in self.model_fields_set:
            raise ValueError("a signal brings a `payload` or a `failure`, not both")
        return self

    def why(self) -> Failure | None:
        """Return the failure that the signal brings in place of a payload, or None."""
        return None if self.failure is None else failed_with(self.failure.code, self.failure.message)


class MessageBody(Body):
    """Message to an agent, or the end of its conversation."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["text"]}, _ENDS]})

    text: str = Field("", max_length=MAX_MESSAGE, description="The message.")
    to: str = Field("", max_length=64, description="Node of the agent, if several hear different signals.")
    ends: bool = Field(False, description="With `true`, the agent ends with its last answer.")

    @model_validator(mode="after")
    def _one(self) -> MessageBody:
        if self.ends == bool(self.text.strip()):
            raise ValueError("write a `text`, or `ends: true` without one")
        return self


class CallbackBody(Body):
    """Message from external work: success, failure or heartbeat."""

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
    output: JsonValue = Field(None, description="With `success`: output of the node.")
    code: Annotated[str, AfterValidator(_code)] = Field(
        default_factory=str,
        description="With `failure`: code of the failure, as used in `catch` and `on_failure`.",
        examples=["out_of_paper"],
        json_schema_extra={"pattern": CODE_PATTERN},
    )
    message: str = Field(
        "", max_length=2_000, description="With `failure`: message for people. Baton masks secrets in it."
    )
    retryable: bool | None = Field(
        None,
        description="With `failure`: true if another attempt may succeed. If omitted, the class of the code "
        "determines it.",
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

    def said(self) -> CallbackReport:
        return CallbackReport(
            status=self.status,
            output=self.output,
            code=self.code,
            message=self.message,
            retryable=self.retryable,
        )


class PauseBody(Body):
    """Request to pause a saga."""

    reason: Annotated[str, Plainly] = Field("", max_length=500)


class ResumeBody(Body):
    """Request to resume a parked or paused saga, or to repair one."""

    budget_usd: Annotated[int, BeforeValidator(_micro_dollars), WithJsonSchema(_BUDGET_SCHEMA)] = Field(
        0,
        description="Total budget of the saga in US dollars. If omitted, a saga that is parked because of its "
        "budget may spend the same amount again.",
    )


class DiagnosesBody(Body):
    """Request to diagnose the open sagas of the tenant."""

    repair: bool = Field(False, description="True to repair them as far as no person has to decide.")
    limit: int = Field(50, ge=1, le=100, description="Maximum number of sagas.")
    cursor: str = Field("", max_length=8_192, description="Value of `next` from the previous answer.")


class OpenBreakerBody(Body):
    """Request to open a circuit breaker."""

    for_s: Annotated[int, BeforeValidator(_grace), WithJsonSchema(_GRACE_SCHEMA)] = Field(
        0,
        description="Time until the breaker lets a probe through: a number of seconds, or a duration such as 10m."
        " If omitted, the breaker stays open until it is reset.",
    )


class FreeClaimBody(Body):
    """Request to free the claim of a once-only effect."""

    reason: Annotated[str, Plainly] = Field(
        min_length=1, max_length=500, description="Reason, which is kept with the claim."
    )
    force: bool = Field(
        False,
        description="True to free a claim under which the effect has happened, or may have happened: the next call may do it again.",
    )


class AliasBody(Body):
    """Decision of an operator on an alias."""

    tool: str = Field(min_length=1, max_length=128, description="Name of the tool.", examples=["refund"])
    given: str = Field(
        pattern="^[A-Za-z_][A-Za-z0-9_.-]{0,63}$", description="Name that models give.", examples=["orderid"]
    )
    parameter: str = Field(
        min_length=1, max_length=128, description="Parameter that is meant.", examples=["order_id"]
    )
    decision: Literal["approve", "reject", "drop"] = Field(
        description="`drop` forgets the alias and its mismatches."
    )


class RemindBody(Body):
    """A question of a saga."""

    ask: str = Field(
        min_length=1,
        max_length=500,
        description="Identifier of the question, from the `questions` of the saga.",
    )


class ClaimBody(RemindBody):
    """Request to claim or release a question."""

    release: bool = Field(
        False,
        description="True to return the question to its whole audience. The user who claimed it or an operator "
        "can do so.",
    )


class AnswerBody(RemindBody):
    """An answer to a question of a saga."""

    action: str = Field(
        min_length=1,
        max_length=64,
        description="One of the question's `options`. A failed step accepts `retry`, `use` (the given output) or "
        "`fail`. Other questions accept `approve` or `reject`, `submit`, `done`, or the id of one of "
        "the choices.",
        examples=[*ACTIONS, APPROVE, REJECT, SUBMIT, DONE],
    )
    arguments: dict[str, JsonValue] = Field(
        {},
        description="With `retry`: arguments that replace the step's arguments of the same names. The question's "
        "`arguments` lists those that an answer may change.",
    )
    output: JsonValue = Field(None, description="With `use`: value that replaces the step's output.")
    data: JsonValue = Field(None, description="With `submit`: data that conforms to the question's `schema`.")
    comment: Annotated[str, Plainly] = Field("", max_length=MAX_COMMENT, description="Comment of the person.")

    def answer(self) -> Answer:
        given = {name: getattr(self, name) for name in ("output", "data") if name in self.model_fields_set}
        return Answer(
            ask=self.ask, action=self.action, arguments=self.arguments, comment=self.comment, **given
        )


class ConfirmBody(Body):
    """An answer given through the link in a message."""

    token: str = Field(
        min_length=1,
        max_length=4_096,
        description="Text after the `#` of the link. The token is valid for 15 minutes, and for one answer.",
    )
    action: str = Field(min_length=1, max_length=64, description="One of the question's `options`.")
    data: JsonValue = Field(None, description="With `submit`: data that conforms to the question's `schema`.")
    comment: Annotated[str, Plainly] = Field("", max_length=MAX_COMMENT, description="Comment of the person.")

    def answer(self) -> Answer:
        data = self.data if "data" in self.model_fields_set else UNSET
        return Answer(ask="", action=self.action, data=data, comment=self.comment)


_MAX_REASON = 500


class RedriveBody(Body):
    """Request to redrive a dead letter."""

    force: bool = Field(
        False,
        description="True to redrive the letter even if its redrives are exhausted or a redrive is in progress.",
    )


_MOMENT_SCHEMA = {"type": "string", "format": "date-time", "examples": ["2026-11-21T10:00:00Z"]}


_MOMENT = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339_ms(text: str) -> int:
    """Return an RFC 3339 time in epoch milliseconds. Raises `ValueError`."""
    match = _MOMENT.fullmatch(text)
    right = "a time with its offset, such as 2026-11-21T10:00:00Z (a `+` in a URL is written `%2B`)"
    if not match:
        raise ValueError(right)
    day, clock, fraction, offset = match.groups()
    try:
        whole_seconds = datetime.fromisoformat(f"{day}T{clock}{offset.upper().replace('Z', '+00:00')}")
    except ValueError as error:
        raise ValueError(right) from error
    since_epoch = whole_seconds - _EPOCH
    seconds = since_epoch.days * 86_400 + since_epoch.seconds
    return max(0, seconds * 1_000 + int((fraction or "0")[:3].ljust(3, "0")))


def _moment(value: Any) -> int:
    return rfc3339_ms(value if isinstance(value, str) else "")


class _Matching(Body):
    saga: str = Field("", pattern=rf"^({SAGA_ID})?$")
    node: str = Field("", max_length=128)
    reason: str = Field(
        "",
        max_length=_MAX_REASON,
        description="Code of the letters, or a part of their reason. Case is ignored.",
    )
    dry_run: bool = Field(False, description="True to count the matching letters without changing them.")
    limit: int = Field(100, ge=1, le=MOST_REDRIVEN, description="Maximum number of letters.")
    cursor: str = Field("", max_length=8_192, description="Value of `next` from the previous answer.")


class RedriveAllBody(_Matching):
    """Filter for the pending dead letters to redrive: by saga, node, code or part of the reason."""

    force: bool = Field(False, description="True to include letters whose redrives are exhausted.")


class ManyBody(Body):
    """Filter for sagas: those of a `workflow` and of the graphs in its document, or of the `tenant`."""

    workflow: str = Field("", max_length=64)
    tenant: bool = Field(False, description="True in place of a workflow: all sagas of the tenant.")
    dry_run: bool = Field(False, description="True to count the matching sagas without changing them.")
    limit: int = Field(1_000, ge=1, le=1_000, description="Maximum number of matching sagas, approximately.")
    cursor: str = Field("", max_length=8_192, description="Value of `next` from the previous answer.")

    @model_validator(mode="after")
    def _names_one(self) -> ManyBody:
        if bool(self.workflow) == self.tenant:
            raise ValueError("give a `workflow`, or `tenant: true` for all sagas")
        return self


class PauseManyBody(ManyBody):
    """Workflow to pause, or all sagas of the tenant, and the reason."""

    reason: Annotated[str, Plainly] = Field("", max_length=500)


class MatchManyBody(ManyBody):
    """Filter for sagas: by workflow, code, label and last change."""

    code: str = Field("", max_length=128, description="Code of the failure, or of the reason to be parked.")
    since: Annotated[int, BeforeValidator(_moment), WithJsonSchema(_MOMENT_SCHEMA)] = Field(
        default_factory=int, description="Only sagas that have changed since then."
    )
    labels: dict[str, str] = Field(default_factory=dict, description="Labels that a saga must have.")


class RetryManyBody(MatchManyBody):
    """Failed sagas to retry, and the version of their workflow with which they go on."""

    workflow_version: str = Field(
        "",
        max_length=64,
        description="Version of the workflow, by number or tag. If omitted, each saga goes on with its own.",
        examples=["4", "main"],
    )

    @model_validator(mode="after")
    def _is_of_one(self) -> RetryManyBody:
        if self.workflow_version and self.tenant:
            raise ValueError("a `workflow_version` goes with a `workflow`")
        return self


class CancelManyBody(MatchManyBody):
    """Sagas to cancel, with the reason and the mode."""

    reason: Annotated[str, Plainly] = Field("", max_length=500)
    mode: Literal["graceful", "forced"] = "graceful"


class DiscardAllBody(_Matching):
    """Filter for the pending dead letters to discard, as for a redrive, and the reason."""

    why: Annotated[str, Plainly] = Field(min_length=1, max_length=_MAX_REASON)


class DiscardBody(Body):
    """Reason why a dead letter is discarded."""

    reason: Annotated[str, Plainly] = Field(min_length=1, max_length=_MAX_REASON)


class AcknowledgeBody(Body):
    """Acknowledgement of an incident."""

    note: Annotated[str, Plainly] = Field(
        "", max_length=MOST_NOTE, description="Note for other operators.", examples=["I call the bank."]
    )


_TO_SCHEMA: dict[str, Any] = {
    "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "minLength": 1, "maxLength": 200}]
}


def _step_or_version(given: Any) -> int | str:
    """Return a step name, or a version, which may be sent as text: no node name is a number."""
    if isinstance(given, str) and 0 < len(given) <= 200:
        return int(given) if given.isdecimal() else given
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given
    raise ValueError("must be a version of the log or the name of a step")


class RollbackBody(Body):
    """Request to roll back a saga."""

    to: Annotated[int | str, BeforeValidator(_step_or_version), WithJsonSchema(_TO_SCHEMA)] = Field(
        0,
        description="Version of the log, or step, up to and including which effects are kept. 0 undoes "
        "everything. For a node in a loop, `NODE@ROUND` names one round, and `NODE` its last round.",
    )
    version: Annotated[int, BeforeValidator(whole_number)] = Field(
        0, ge=0, description="Version of the log, an alternative to `to`."
    )
    reason: Annotated[str, Plainly] = Field("", max_length=500)
    parallel: bool = Field(False, description="True to undo steps in parallel.")
    dry_run: bool = Field(False, description="True to return the plan of the rollback without executing it.")

    @model_validator(mode="after")
    def _one(self) -> RollbackBody:
        if {"to", "version"} <= self.model_fields_set:
            raise ValueError("it goes back `to` a step or a version, or to a `version`, not both")
        return self

    @property
    def back_to(self) -> int:
        """Version to roll back to. 0 if the body names a step."""
        return self.version or (self.to if isinstance(self.to, int) else 0)

    @property
    def step(self) -> str:
        """Step to roll back to. Empty if the body names a version."""
        return self.to if isinstance(self.to, str) else ""
