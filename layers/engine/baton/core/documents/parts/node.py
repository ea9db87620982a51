"""The fields that more than one kind of node has, and JSON Schemas in a document.

The field that makes a node one of its kind is in nodes/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, StringConstraints, model_validator
from pydantic.types import JsonValue

from baton.core.documents.parts.control import (
    BranchModel,
    JoinModel,
    Limits,
    LoopModel,
    PollModel,
    Rest,
    Share,
    Tolerated,
    WaitFor,
)
from baton.core.documents.parts.failing import Catch, CompensateModel, Failover, OnFailure, Retry
from baton.core.documents.parts.fields import (
    OPERATIONS_SAY,
    After,
    Condition,
    Defined,
    Duration,
    Given,
    Model,
    NodeName,
    Operations,
    Reads,
    ToolPatterns,
    Value,
    between,
    document_form,
    is_number,
    one_of,
    ref,
    refuse,
)
from baton.core.documents.parts.people import ApprovalModel, Text
from baton.core.failures.alternatives import Alternative, ways_of
from baton.core.failures.breakers import NAME_PATTERN, name_problem
from baton.core.failures.policy import FIXED, PolicyChange, RetryChange
from baton.core.graph.graph import NODE_NAME, CallbackTimes
from baton.core.models.messages import FILE, IMAGE, STORED, check_media, has_media, is_part, part_of
from baton.core.models.usage import (
    HANDOVER_MS,
    LEAST_THINKING,
    LONGEST_MS,
    MODEL,
    REFUSED,
    SHARE,
    SUMMARISE,
    THINKING,
    USUAL_OUTPUT,
    model_tool,
)

MOST_AT_ONCE, AT_ONCE = 256, 40
"""The most items at a time: each is a part of the saga's state while it is at work."""
MOST_ITEMS, MOST_CHILDREN = 1_000, 10_000
"""The longest list: of items that the saga works on itself, and of those that have a child saga each."""


def _list(value: Any) -> Any:
    if not isinstance(value, (list, str)) or (isinstance(value, str) and "${" not in value):
        raise refuse("must be a list, or an expression that gives one", "write for example `${input.guests}`")
    return value


_LIST = {
    "description": "A list, or one expression that gives one.",
    "anyOf": [{"type": "array", "items": ref("value")}, {"type": "string", "pattern": r"\$\{"}],
    "examples": ["${input.guests}"],
}


class MapModel(Share, Model):
    """Map: the node is done once for each item of a list.
    `${item}` is the item, `${index}` its place in the list, from 0.
    """

    short: ClassVar[str] = "over"

    over: Annotated[JsonValue, Reads(_list, _LIST), Defined("list"), Given] = Field(
        description=f"The list. At most {MOST_ITEMS:,} items; {MOST_CHILDREN:,} where each is a child `workflow`.",
        examples=["${input.guests}", ["Bonn", "Kiel"]],
    )
    concurrency: Annotated[
        int, between(1, MOST_AT_ONCE), Given
    ] = Field(default=AT_ONCE, description=f"Largest number of items at a time. Without it, {AT_ONCE}.", examples=[5])  # fmt: skip
    wait_for: WaitFor = Field(
        default="all",
        description="Number of items that must succeed: `all`, `any` (one), or a number.",
        examples=["any", 3],
    )
    tolerated: Tolerated = Field(
        default=None,
        alias="tolerated_failures",
        description=(
            "Number of items that may fail, or a share of them, rounded down. Without it, the first "
            "failed item fails a node with `wait_for: all`."
        ),
        examples=[1, "10%"],
    )
    rest: Rest = Field(
        default="cancel",
        description=(
            "Action on the other items when the outcome is known: they are stopped (`cancel`) or finish "
            "(`run`). With `run` and a number in `wait_for`, the saga continues while they finish."
        ),
        examples=["run"],
    )

    @property
    def goes_on(self) -> bool:
        """True if the saga goes on before all items have ended, and the other items run on."""
        return self.rest == "run" and self.wait_for != "all"

    @property
    def tells_all(self) -> bool:
        """True if not all items have to succeed, so that the output has the result of each item."""
        return self.wait_for != "all" or self.tolerated is not None


SHORTEST_HEARTBEAT_MS = 10_000  # a few times what clocks differ and a request takes


class CallbackModel(Model):
    """Limits of the time and the silence of work outside the engine."""

    short: ClassVar[str] = "timeout"

    timeout: Duration = Field(
        description="Longest time after the tool's return. The attempt then fails with `timeout`."
    )
    heartbeat: Annotated[Duration | None, Given] = Field(
        default=None,
        description="Longest silence, at least `10s`. The attempt then fails with `heartbeat_timeout`.",
    )

    @model_validator(mode="after")
    def _shorter(self) -> CallbackModel:
        if self.heartbeat is not None and self.heartbeat < SHORTEST_HEARTBEAT_MS:
            raise refuse(
                "`heartbeat` is at least `10s`: the clocks of two processes may be seconds apart",
                "write `heartbeat: 10s` or longer, or `timeout` alone for work that takes only seconds",
            )
        if self.heartbeat is not None and self.heartbeat >= self.timeout:
            raise refuse("`heartbeat` is shorter than `timeout`")
        return self


MOST_OUTPUT = 1_000_000
MOST_CORRECTIONS = 10
MODEL_NAME = r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$"
_is_name = re.compile(MODEL_NAME).fullmatch


def _name(value: Any) -> Any:
    if isinstance(value, str) and not _is_name(value):
        raise refuse(
            f"`{document_form(value)}` is no name of a model",
            "write it as in gpt-5-mini or openai/gpt-5-mini",
        )
    return value


ModelName = Annotated[str, StringConstraints(pattern=MODEL_NAME), BeforeValidator(_name)]


def _dollars(value: Any) -> int:
    """Read dollars for a million tokens as millionths of a dollar."""
    if not is_number(value) or not 0 <= value <= 10_000:
        raise refuse(
            f"`{document_form(value)}` is no price; write dollars for a million tokens, for example 0.25"
        )
    return int((Decimal(repr(value)) * 1_000_000).to_integral_value())


def _temperature(value: Any) -> float:
    if not is_number(value) or not 0 <= value <= 2:
        raise refuse(f"`{document_form(value)}` must be between 0 and 2")
    return float(value)


_HEAT: Any = {"type": "number", "minimum": 0, "maximum": 2}
Dollars = Annotated[int, Reads(_dollars, {"type": "number", "minimum": 0, "maximum": 10_000})]


class PriceModel(Model):
    """Price of a million tokens, in dollars."""

    input: Dollars = Field(description="Price of a million tokens of the request.")
    output: Dollars = Field(description="Price of a million tokens of the answer, reasoning included.")
    cached: Annotated[Dollars | None, Given] = Field(
        default=None,
        description="Price of a million tokens that the provider still has of an earlier request.",
    )


class SummaryModel(Model):
    """Summary of older messages: the model that writes it, and its length."""

    model: Annotated[ModelName | None, Given] = Field(
        default=None, description="The model; without it, the agent's own."
    )
    max_output: Annotated[int, between(1, MOST_OUTPUT)] = Field(
        default=1_024, description="The most tokens of a summary."
    )


def _said(value: Any) -> Any:
    """Refuse an empty request: providers refuse it, or models answer at random."""
    if value in (None, {}, []) or (isinstance(value, str) and not value.strip()):
        raise refuse("it is empty", "write what the model is told: text, or a value that it gets as JSON")
    return value


_PARTS = "write each part as `text: …`, `image: …` or `file: …`, and a file with its `name` if it has one"
_OF_OTHERS = frozenset({"image", "file", "image_url", "input_image", "input_file", "document"})


def _thinking(value: Any) -> str | int:
    if value in THINKING or (type(value) is int and LEAST_THINKING <= value <= MOST_OUTPUT):
        return value  # type: ignore[no-any-return]  # one of these
    hint = f"a number of tokens is from {LEAST_THINKING:,} to {MOST_OUTPUT:,}"
    raise refuse(f"`{document_form(value)}` must be `low`, `medium`, `high` or a number of tokens", hint)


_THINKING = {
    "anyOf": [
        {"enum": list(THINKING)},
        {"type": "integer", "minimum": LEAST_THINKING, "maximum": MOST_OUTPUT},
    ]
}


def _prompt(value: Any) -> Any:
    """Refuse a prompt with an image or a file that is none, or that is not written as a part of a list."""
    _said(value)
    is_alone = isinstance(value, dict) and {*value} & {IMAGE, FILE} and is_part(value)
    if is_alone:
        raise refuse("an image or a file is a part of a list", _PARTS)
    if not isinstance(value, list):
        return value
    if not has_media(value):
        for number, part in enumerate(value, 1):
            if isinstance(part, dict) and _OF_OTHERS & {*part, part.get("type")}:
                raise refuse(f"part {number} is no part of a prompt", _PARTS)
        return value
    try:
        for number, part in enumerate(value, 1):
            said = part.get(IMAGE) or part.get(FILE) or ""
            if said and "${" not in said and not said.startswith(STORED):
                part_of(number, part)
        check_media(value)
    except ValueError as error:
        raise refuse(str(error), _PARTS) from None
    return value


class Asking(Model):
    """Request to a model: the prompt, its limits and the models to fall back to."""

    fallbacks: Annotated[list[ModelName] | None, Given] = Field(
        default=None,
        description="Models to ask in this order when the model cannot answer.",
        json_schema_extra={"minItems": 1, "maxItems": 10},
    )
    instructions: Annotated[Text | None, Given, BeforeValidator(_said)] = Field(
        default=None, description="Role of the model, and the rules that it has to keep."
    )
    prompt: Annotated[Value, BeforeValidator(_prompt)] = Field(
        description=(
            "Question to the model: text, a list of parts with images and files, or a value that the model "
            "gets as JSON."
        )
    )
    max_output: Annotated[int, between(1, MOST_OUTPUT)] | None = Field(
        default=None, description="The most tokens of one answer, reasoning included; without it, 4,096."
    )
    temperature: Annotated[float | None, Reads(_temperature, _HEAT)] = Field(
        default=None, description="Randomness of the answer, from 0 to 2."
    )
    thinking: Annotated[str | int | None, Reads(_thinking, _THINKING)] = Field(
        default=None,
        description=(
            "Amount of thinking before an answer: `low`, `medium`, `high`, or a number of tokens. They are part "
            "of `max_output`."
        ),
    )
    corrections: Annotated[int, between(0, MOST_CORRECTIONS)] = Field(
        default=3,
        description=(
            "Number of requests after answers that do not match `output_schema`. Retries after other failures "
            "count, too. Then a person is asked."
        ),
    )
    background: bool = Field(
        default=False,
        description=(
            "No worker waits for the answer, if the provider supports it. The answer may take the "
            "`timeout`, or an hour."
        ),
    )
    price: Annotated[PriceModel | None, Given] = Field(
        default=None,
        description="Price of the model, if the deployment has none. The higher of the two counts.",
    )

    @model_validator(mode="after")
    def _can_think(self) -> Self:
        if self.thinking is None:
            return self
        if self.temperature is not None:
            raise refuse("a model that thinks takes no `temperature`", "leave out one of the two")
        least = self.thinking if isinstance(self.thinking, int) else LEAST_THINKING
        if (most := self.max_output or USUAL_OUTPUT) <= least:
            said = f"an answer has at most {most:,} tokens, and {least:,} of them may be thinking"
            raise refuse(said, "raise `max_output`, or lower `thinking`")
        return self


def model_arguments(model: str, asking: Asking) -> dict[str, Any]:
    """Return the arguments that are rendered when the node is ready."""
    names = {"instructions", "prompt", "max_output", "temperature", "thinking", "price"}
    said: dict[str, Any] = asking.model_dump(include=names, exclude_unset=True)
    return {"model": model, **{name: value for name, value in said.items() if value is not None}}


def expression_texts(key: str, asking: Asking) -> Iterator[tuple[str, Any]]:
    """Yield the values that may have expressions, each with its place below the node."""
    for name in ("instructions", "prompt"):
        if (value := getattr(asking, name)) is not None:
            yield f"/{key}/{name}", value


def shorter_turns(summary: SummaryModel | None) -> tuple[Alternative, ...]:
    """Return the alternatives of a turn whose transcript does not fit, in their order.

    The first cut has a `summary` if one is asked for.
    """
    words = {2: "newer half", 4: "newest quarter", 8: "newest eighth"}
    cuts = [
        Alternative(name=f"{what} of the transcript", hints=("truncate_context",), arguments={SHARE: share})
        for share, what in words.items()
    ]
    if summary is not None:
        cuts[0] = Alternative(
            name="summary and newer half of the transcript",
            hints=("summarise_context", "truncate_context"),
            arguments={SHARE: 2, SUMMARISE: summary.model_dump(exclude_none=True)},
        )
    return tuple(cuts)


def step_of(
    asking: Asking,
    timeout: int | None,
    attempts: Mapping[str, Any],
    *,
    context: str = "",
    ways: tuple[Alternative, ...] = (),
) -> dict[str, Any]:
    """Return the fields of the graph's node whose step asks the model.
    `context`: the argument that can be shortened.
    """
    spec = model_tool(tuple(asking.fallbacks or ()), context)
    elsewhere = {"callback": CallbackTimes(timeout_ms=timeout or LONGEST_MS)} if asking.background else {}
    ways = (*ways, *ways_of(MODEL, {MODEL: spec}))
    if asking.background:  # one handover has one answer
        ways, timeout = tuple(way for way in ways if not way.chunk), HANDOVER_MS
    again = PolicyChange(retry=RetryChange(max_attempts=asking.corrections + 1, backoff=FIXED, base_ms=0))
    return {
        "tool": MODEL,
        "tool_version": spec.version,
        "schema_hash": spec.schema_hash,
        "effect": spec.effect,
        "timeout_ms": timeout or 0,
        "domain": spec.domain,
        "cost": spec.cost,
        **attempts,
        "failures": {REFUSED: again, **attempts["failures"]},
        "ways": (*ways, *attempts["ways"]),
        **elsewhere,
    }


MOST_ALTERNATIVES, MOST_STEPS = 5, 8
USUAL_MS = 300_000
BEST, PERSON = "best", "person"


class ReplanModel(Model):
    """Replan of a failed tool: a model suggests calls in its place."""

    model: ModelName = Field(description="The model that is asked.")
    tools: ToolPatterns = Field(description="The tools that it may call.")
    operations: Operations = Field(default_factory=dict, description=OPERATIONS_SAY)
    alternatives: Annotated[int, between(1, MOST_ALTERNATIVES)] = Field(
        default=3, description="The most alternatives that the model suggests."
    )
    steps: Annotated[int, between(1, MOST_STEPS)] = Field(
        default=1, description="The most calls of one alternative."
    )
    within: Annotated[Duration, Given] = Field(
        default=USUAL_MS, description="Time in which a replan may begin. Without it, `5m`."
    )
    choose: Annotated[str, one_of(BEST, PERSON), Given] = Field(
        default=BEST,
        description="Choice of the alternative: the best is tried first (`best`), or a person chooses one (`person`).",
    )
    max_output: Annotated[int, between(1, MOST_OUTPUT)] | None = Field(
        default=None, description="The most tokens of one answer, as of a `model`."
    )
    price: Annotated[PriceModel | None, Given] = Field(
        default=None, description="Price of the model, as of a `model`."
    )


def _schema_or_name(value: Any) -> Any:
    if not isinstance(value, (dict, bool, str)):
        raise refuse("write a JSON Schema, or the name of one under `schemas`")
    return value


def _schema(value: Any) -> Any:
    if not isinstance(value, (dict, bool)):
        raise refuse("write a JSON Schema: an object")
    return value


def _breaker(value: Any) -> Any:
    if problem := name_problem(value):
        raise refuse(*problem.split("; "))
    return value


BreakerName = Annotated[str, StringConstraints(pattern=f"^{NAME_PATTERN}$"), BeforeValidator(_breaker)]
_NAME = {"type": ["object", "boolean", "string"], "pattern": NODE_NAME}
Schema = Annotated[
    dict[str, JsonValue] | bool,
    Reads(_schema, {"type": ["object", "boolean"]}),
    Defined("jsonSchema"),
    Given,
]
SchemaOrName = Annotated[
    dict[str, JsonValue] | bool | str | None,
    Reads(_schema_or_name, _NAME),
    Defined("jsonSchemaOrName"),
    Given,
]


class NodeModel(Model):
    """One node: exactly one kind, what it gets (`with`), what it comes after, and where it goes on."""

    with_: dict[str, Value] = Field(
        default_factory=dict,
        alias="with",
        description="Arguments of the tool, or input of the child. Without it, an empty object.",
        examples=[{"city": "${input.city}", "party": 4}],
        json_schema_extra={"default": {}},
    )
    input: Value = Field(
        default=None,
        description="Input of the child in place of `with`: any JSON value.",
        examples=["${ctx.list.output[0]}"],
    )
    map: Annotated[MapModel | None, Given] = Field(
        default=None,
        description="Runs the node once for each item of a list. The output is the list of outputs.",
        examples=[
            "${input.guests}",
            {"over": "${input.orders}", "concurrency": 5, "tolerated_failures": "10%"},
        ],
    )
    cancel_on: Annotated[NodeName | None, Given] = Field(
        default=None,
        description=(
            "A signal of this name cancels the child. The output is then `{cancelled: PAYLOAD, result: …}`."
        ),
        examples=["follow_up"],
    )
    timeout: Annotated[Duration | None, Given] = Field(
        default=None,
        description=(
            "Longest time of one attempt. For a tool, in place of its own, up to 15 minutes. For a "
            "child, any time; it is then cancelled and undone."
        ),
        examples=["10s"],
    )
    callback: Annotated[CallbackModel | None, Given] = Field(
        default=None,
        description="The tool hands its work over, and `POST /callbacks/{token}` ends the node.",
        examples=["1h", {"timeout": "1h", "heartbeat": "5m"}],
    )
    retry: Retry = Field(
        default=None,
        description="Retry policy of a failed attempt.",
        examples=["critical", {"max_attempts": 3, "base": "2s"}],
    )
    on_failure: OnFailure = Field(
        default_factory=dict,
        description="Reactions to a failed attempt: by code, by class, or for `any` failure.",
        examples=["rollback", {"timeout": {"retry": "critical"}, "permanent": "escalate"}],
        json_schema_extra={"default": {}},
    )
    failover: Failover = Field(
        default_factory=list,
        description="Policies that come before `on_failure`. The first that fits the failure applies.",
        examples=[[{"name": "full", "when": {"code": "no_tables"}, "then": {"tool": "delivery.order"}}]],
        json_schema_extra={"default": []},
    )
    key: Annotated[str | None, StringConstraints(min_length=1), Given] = Field(
        default=None,
        description=(
            "Idempotency key of the call, in place of the tool's own: calls of the tool by the same user with "
            "the same key are one call, in whatever node and saga."
        ),
        examples=["invoice ${input.invoice}"],
    )
    breaker: Annotated[BreakerName | None, Given] = Field(
        default=None,
        description=(
            "Name of the circuit breaker, in place of the tool's own. Nodes and tools with the same "
            "name share it. `tool` is one for the tool, `host` one for the host of the argument "
            "`url`, `none` none."
        ),
        examples=["payments", "host"],
    )
    replan: Annotated[ReplanModel | None, Given] = Field(
        default=None,
        description="A model suggests calls instead of the tool, after all other strategies of `replan`.",
        examples=[{"model": "gpt-5-mini", "tools": ["table.*"]}],
    )
    compensate: Annotated[CompensateModel | None, Given] = Field(
        default=None,
        description="Inverse of the node, for a rollback. Without it, the tool's own inverse.",
        examples=["table.cancel", {"tool": "card.refund", "with": {"id": "${step.output.id}"}}, "none"],
    )
    requires_approval: Annotated[ApprovalModel | None, Given] = Field(
        default=None,
        description=(
            "A person approves each call before it is made. Without it, the tool's declaration decides."
        ),
        examples=[True, {"to": {"group": "finance"}, "expires": "4h"}],
    )
    after: After = Field(
        default_factory=list,
        description="Nodes that must be done before this one starts.",
    )
    when: Annotated[Condition | None, Given] = Field(
        default=None,
        description="Condition under which the node runs. Otherwise it is skipped.",
        examples=["input.party > 6"],
    )
    branch: Annotated[BranchModel | None, Given] = Field(
        default=None,
        examples=[{"rules": [{"if": "output.score >= 80", "then": "book"}], "default": "give_up"}],
    )
    loop: Annotated[LoopModel | None, Given] = Field(
        default=None, examples=[{"while": "output.score < 80", "max_iterations": 5, "back_to": "draft"}]
    )
    poll: Annotated[PollModel | None, Given] = Field(
        default=None,
        examples=[{"until": "output.ready", "every": "10m", "tries": 50}],
    )
    join: Annotated[JoinModel | None, Given] = Field(
        default=None, examples=["any", 2, {"wait_for": "all", "tolerated_failures": "25%"}]
    )
    catch: Catch = Field(
        default_factory=list,
        description="Nodes to continue with when the node has failed for good: a node, a list, or rules.",
        examples=["tell", [{"code": "no_tables", "then": "waitlist"}, {"then": ["tell", "clean_up"]}]],
    )
    output_schema: SchemaOrName = Field(
        default=None,
        description=(
            "JSON Schema of the output, or its name under `schemas`. A node with another output fails."
        ),
        examples=["done", {"type": "object", "required": ["score"]}],
    )
    limits: Limits = Field(
        default_factory=dict,
        description="Limits of this node.",
        examples=[{"hops": 20, "cost_usd": 0.25}],
    )
    description: str = Field(default="", description="Purpose of the node, for people.")

    @model_validator(mode="after")
    def _as_loop(self) -> NodeModel:
        """Set the loop of a poll: a poll is a loop of one node, so that the rules for loops hold for it."""
        if self.poll is not None and self.loop is None:
            self.__dict__["loop"] = self.poll.as_loop()
        return self
