"""The bodies of requests about sagas, and to open a breaker. Their docstrings are their descriptions in the OpenAPI document.

How a body is read is in reading.py; what people say to questions, in people_requests.py.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    WithJsonSchema,
    model_validator,
)

from baton.core.expressions.durations import LONGEST_S, PATTERN, SHORTEST_S, parse_duration
from baton.core.failures.classes import code_of
from baton.core.failures.codes import CODE_PATTERN
from baton.core.log.folding.callbacks import FAILURE, HEARTBEAT, SUCCESS, Said
from baton.core.log.records import Failure, failed_with
from baton.core.money import MOST_USD, amount_of, micro_dollars
from baton.core.outside.cloudevents import LONGEST_KEY
from baton.web.bodies.reading import Body, Plainly, whole

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
