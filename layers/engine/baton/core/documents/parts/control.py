"""Shapes of `branch`, `loop` and `join`: the followers of a node and the nodes that it waits for.

What they mean is on docs/semantics.md. Whether the names exist is the compiler's.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from baton.core.documents.parts.fields import (
    MAX_NODES,
    MOST,
    Allowed,
    Choose,
    Condition,
    Defined,
    Duration,
    Given,
    Model,
    NodeName,
    Reads,
    Targets,
    ToolPatterns,
    Value,
    WaitDuration,
    between,
    document_form,
    is_number,
    one_of,
    refuse,
    whole,
)

MAX_ITERATIONS = 1_000_000
SHARE_PATTERN = r"^ *(100|[0-9]{1,2}) *% *$"
_SHARE = re.compile(SHARE_PATTERN)


class RuleModel(Model):
    """One rule of a branch: when the condition holds, on to these nodes."""

    if_: Condition = Field(
        alias="if",
        description="Condition of the rule.",
        examples=["output.score >= 80"],
    )
    then: Targets = Field(description="Nodes to continue with.", examples=["book", ["book", "tell"]])


def _some(value: Any) -> Any:
    if value == []:
        raise refuse("a branch has at least one rule")
    return value


class BranchModel(Model):
    """Choice of the next nodes, by `rules` or `choose`."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {
                    "title": "by rules",
                    "required": ["rules"],
                    "properties": {"choose": False, "among": False},
                },
                {"title": "by a value", "required": ["choose", "among"], "properties": {"rules": False}},
            ]
        }
    )

    rules: Annotated[list[RuleModel], BeforeValidator(_some), Given] = Field(
        default_factory=list,
        description="Rules in order. The first whose condition is true applies.",
        examples=[[{"if": "output.score >= 80", "then": "book"}]],
        json_schema_extra={"minItems": 1},
    )
    choose: Annotated[Choose | None, Given] = Field(
        default=None,
        description=(
            "Instead of rules: an expression that gives the name of the next node, or a list of "
            "names. Null and an empty list choose `default`."
        ),
        examples=["output.next", "${ctx.plan.output.steps}"],
    )
    among: Annotated[Targets, Given] = Field(
        default_factory=list,
        description="All nodes that `choose` may name. Another name fails the node.",
        examples=[["book", "search"]],
    )
    default: Annotated[Targets, Given] = Field(
        default_factory=list,
        description="Nodes to continue with if no rule is true. Without it, none of the branch's nodes.",
        examples=["give_up"],
    )

    @model_validator(mode="before")
    @classmethod
    def _no_list(cls, value: Any) -> Any:
        if isinstance(value, list):
            raise refuse("must be an object", "write `branch: {rules: […]}`")
        return value

    @model_validator(mode="after")
    def _one_way(self) -> BranchModel:
        if bool(self.rules) == bool(self.choose is not None or self.among):
            raise refuse("write either `rules` (a list of `if` and `then`) or `choose` with `among`")
        if not self.rules and (self.choose is None or not self.among):
            raise refuse("`choose` (an expression) and `among` (the nodes it may name) go together")
        return self


def _factor(value: Any) -> Any:
    if not is_number(value) or not 1 <= value <= 10:
        raise refuse("must be a number from 1 to 10")
    return float(value)


_FACTOR = {"type": "number", "minimum": 1, "maximum": 10}


class PauseModel(Model):
    """A pause between two rounds, which may grow."""

    short: ClassVar[str] = "first"

    first: WaitDuration = Field(
        description="First pause.",
        examples=["10m", "${output.retry_in}s"],
    )
    factor: Annotated[float | None, Reads(_factor, _FACTOR), Defined("factor"), Given] = Field(
        default=None,
        description="Factor from one pause to the next. Without it, 1.",
    )
    most: Annotated[Duration | None, Given] = Field(
        default=None, description="The longest pause. Without it, an hour.", examples=["10m"]
    )

    @model_validator(mode="after")
    def _grows(self) -> PauseModel:
        if isinstance(self.first, str) and (self.factor or self.most):
            raise refuse("`factor` and `most` go with a duration: what gives the pause says how long it is")
        return self


class LoopModel(Model):
    """Loop that ends at this node."""

    while_: Condition = Field(
        alias="while",
        description="Condition for another round.",
        examples=["output.score < 80", "loop.iteration < 3"],
    )
    max_iterations: Annotated[
        int, between(1, MAX_ITERATIONS), Given
    ] = Field(default=100, description="Largest number of rounds, including the first. Without it, 100.", examples=[5])  # fmt: skip
    back_to: Annotated[str | None, Given, Defined("nodeName", {})] = Field(
        default=None,
        description="First node of the loop: an earlier one. Without it, the loop is this node alone.",
        examples=["draft"],
    )
    break_path: Annotated[Targets, Given] = Field(
        default_factory=list,
        description="Nodes to continue with when the condition is false.",
        examples=["publish"],
    )
    timeout_path: Annotated[Targets, Given] = Field(
        default_factory=list,
        description=(
            "Nodes to continue with, in place of all others, after the last round. Without it, the "
            "node fails."
        ),
        examples=["ask_a_person"],
    )
    pause: Annotated[PauseModel | None, Given] = Field(
        default=None,
        description="Time between two rounds.",
        examples=["10m", "${output.retry_in}s", {"first": "5s", "factor": 2, "most": "10m"}],
    )
    initial: Annotated[Value | None, Given] = Field(
        default=None,
        description="Value of `${ctx.NODE.previous}` of this node in the first round, in place of null.",
        examples=[{"cursor": ""}],
    )


class PollModel(Model):
    """The tool is called again, after a pause, until a condition on its answer is true."""

    until: Condition = Field(
        description="Condition on the answer. When it is true, the answer is the output.",
        examples=["output.ready"],
    )
    every: PauseModel = Field(
        description="Time from an answer to the next try.",
        examples=["10m", "${output.retry_in}s", {"first": "5s", "factor": 2, "most": "10m"}],
    )
    tries: Annotated[
        int, between(1, MAX_ITERATIONS), Given
    ] = Field(default=100, description="Largest number of tries, including the first. The node then fails. Without it, 100.", examples=[50])  # fmt: skip
    within: Annotated[Duration | None, Given] = Field(
        default=None,
        description="Longest time from the first try. The last try starts at its end; the node then fails.",
        examples=["8h"],
    )
    initial: Annotated[Value | None, Given] = Field(
        default=None,
        description="Value of `${ctx.NODE.previous}` of this node at the first try, in place of null.",
        examples=[{"cursor": ""}],
    )

    def as_loop(self) -> LoopModel:
        """Return the loop that the poll stands for."""
        return LoopModel.model_construct(
            _fields_set=None,
            while_={"not": self.until},
            max_iterations=self.tries,
            back_to=None,
            break_path=[],
            timeout_path=[],
            pause=self.every,
            initial=self.initial,
        )


def _wait_for(value: Any) -> Any:
    if is_number(value):
        return whole(value, 1, MAX_NODES)
    if isinstance(value, str) and value in {"all", "any"}:
        return value
    raise refuse("write `all`, `any`, or the number of nodes to wait for")


def _tolerated(value: Any) -> Any:
    if is_number(value):
        return whole(value, 0, MAX_NODES)
    match = _SHARE.fullmatch(value) if isinstance(value, str) else None
    if not match:
        raise refuse('write a number of failures, or a share of the nodes such as "25%", up to 100%')
    return f"{int(match[1])}%"


_WAIT_FOR = {"anyOf": [{"enum": ["all", "any"]}, {"type": "integer", "minimum": 1, "maximum": MAX_NODES}]}
_TOLERATED = {"type": ["integer", "string"], "minimum": 0, "maximum": MAX_NODES, "pattern": SHARE_PATTERN}
WaitFor = Annotated[Literal["all", "any"] | int, Reads(_wait_for, _WAIT_FOR), Defined("waitFor"), Given]
Tolerated = Annotated[int | str | None, Reads(_tolerated, _TOLERATED), Defined("tolerated"), Given]
Rest = Annotated[Literal["cancel", "run"], one_of("cancel", "run"), Given]


class Share:
    """Base class of tolerated failures, as a number or as a share."""

    tolerated: Any

    @property
    def tolerated_failures(self) -> int | None:
        """Number of tolerated failures, if `tolerated` is a number."""
        return self.tolerated if isinstance(self.tolerated, int) else None

    @property
    def tolerated_share(self) -> int | None:
        """Percentage of tolerated failures, if `tolerated` is a share."""
        return int(self.tolerated[:-1]) if isinstance(self.tolerated, str) else None


class JoinModel(Share, Model):
    """Number of nodes before this one that it waits for, and failures that it tolerates."""

    short: ClassVar[str] = "wait_for"

    wait_for: WaitFor = Field(
        default="all",
        description="Number of nodes to wait for: `all`, `any` (one), or a number.",
        examples=["any", 2],
    )
    tolerated: Tolerated = Field(
        default=None,
        alias="tolerated_failures",
        description=(
            "Number of nodes before it that may fail, or a share of them, rounded down. Without it, "
            "a failure fails the saga."
        ),
        examples=[1, "25%"],
    )
    rest: Rest = Field(
        default="cancel",
        description=(
            "Nodes that lead only to this one and are not done when it starts are stopped (`cancel`) "
            "or finish (`run`)."
        ),
        examples=["run"],
    )


MICRO = 1_000_000
LEAST_USD, MOST_USD = 0.000001, MOST // MICRO
_DOLLARS = {"type": "number", "minimum": LEAST_USD, "maximum": MOST_USD}


def _micro_dollars(value: Any) -> int:
    """Read dollars as the document spells them, in millionths; never by way of a multiplied float."""
    if not is_number(value):
        raise refuse(f"`{document_form(value)}` is not an amount of dollars; write for example 1.5")
    if not LEAST_USD <= value <= MOST_USD:
        raise refuse(f"`{document_form(value)}` must be between 0.000001 and {MOST_USD:,} dollars")
    amount = Decimal(repr(value)) * MICRO
    if amount != amount.to_integral_value():
        raise refuse(f"`{document_form(value)}` is finer than a millionth of a dollar")
    return int(amount)


def _why(do: str, goes_with: str) -> Any:
    return lambda value: f"`{do}` goes with {goes_with}" if value == do else ""


_TERMINATE, _THROTTLE, _SUMMARISE = "terminate", "throttle", "summarise"
_THEN = "Action at the limit: the saga or node fails (`terminate`)"
_FAILS = "beyond it the failed step is not tried again"
_FAILED = "Action at the limit: the step that has failed is not tried again. There is no other."
_SLOWED = "or what comes next waits its turn (`throttle`)"


class LimitModel(Model):
    """One limit: the most there may be (`max`), and what happens beyond it (`then`)."""

    short: ClassVar[str] = "max"

    max: int
    then: str = _TERMINATE


class CountModel(LimitModel):
    """The most there may be (`max`), and what happens beyond it (`then`)."""

    max: Annotated[int, between(1, MOST), Given] = Field(description="The most there may be.", examples=[100])
    then: Annotated[
        str,
        one_of(_TERMINATE, _THROTTLE, why=_why(_SUMMARISE, "`bytes`")),
        Given,
    ] = Field(default=_TERMINATE, description=f"{_THEN}, {_SLOWED}.", examples=[_THROTTLE])


class BytesModel(LimitModel):
    """The most bytes (`max`), and what happens beyond them (`then`)."""

    max: Annotated[int, between(1, MOST), Given] = Field(description="The most bytes.", examples=[1_000_000])
    then: Annotated[
        str,
        one_of(_TERMINATE, _THROTTLE, _SUMMARISE),
        Given,
    ] = Field(
        default=_TERMINATE,
        description=f"{_THEN}, {_SLOWED}, or an output is replaced by a shorter one (`summarise`).",
        examples=[_SUMMARISE],
    )


class TimeModel(LimitModel):
    """The longest time (`max`), after which the saga or node fails."""

    max: Annotated[Duration, Given] = Field(description="The longest time.", examples=["2h"])
    then: Annotated[str, one_of(_TERMINATE, why=lambda _: "time cannot be held up"), Given] = Field(
        default=_TERMINATE, description=f"{_THEN}. There is no other way.", examples=[_TERMINATE]
    )


class RetriesModel(LimitModel):
    """The most retries (`max`), after which a failed step is not tried again."""

    max: Annotated[int, between(1, MOST), Given] = Field(description="The most retries.", examples=[20])
    then: Annotated[str, one_of(_TERMINATE, why=lambda _: _FAILS), Given] = Field(
        default=_TERMINATE, description=_FAILED, examples=[_TERMINATE]
    )


class CostModel(LimitModel):
    """The most dollars (`max`), and what happens beyond them (`then`)."""

    max: Annotated[int, Reads(_micro_dollars, _DOLLARS), Defined("dollars"), Given] = Field(
        description="The most US dollars.", examples=[1.5]
    )
    then: Annotated[
        str,
        one_of(_TERMINATE, _THROTTLE, why=_why(_SUMMARISE, "`bytes`")),
        Given,
    ] = Field(default=_TERMINATE, description=f"{_THEN}, {_SLOWED}.", examples=[_THROTTLE])


class LimitsModel(Model):
    """Limits of a saga or a node: each is a number or an object with `max` and `then`."""

    fan_out: Annotated[CountModel | None, Given] = Field(
        default=None,
        description="Number of nodes that one node starts at once.",
        examples=[20],
    )
    hops: Annotated[CountModel | None, Given] = Field(
        default=None,
        description="Number of runs, each round of a loop counted.",
        examples=[100, {"max": 100, "then": "throttle"}],
    )
    wall_time: Annotated[TimeModel | None, Given] = Field(
        default=None,
        description="Longest time of the saga, or of one run of this node, waiting included.",
        examples=["2h"],
    )
    bytes: Annotated[BytesModel | None, Given] = Field(
        default=None,
        description="Bytes of outputs.",
        examples=[{"max": 1_000_000, "then": "summarise"}],
    )
    cost: Annotated[CostModel | None, Given] = Field(
        default=None,
        alias="cost_usd",
        description="US dollars, to a millionth.",
        examples=[1.5],
    )
    tokens: Annotated[CountModel | None, Given] = Field(
        default=None,
        description="Tokens that models read and write.",
        examples=[20_000],
    )
    retries: Annotated[RetriesModel | None, Given] = Field(
        default=None,
        description="Number of retries of all steps together, those of items, operations and calls of an agent included.",
        examples=[20],
    )
    retry_time: Annotated[TimeModel | None, Given] = Field(
        default=None,
        description="Time of these retries together: their pauses and the repeated attempts.",
        examples=["30m"],
    )


def _limits(value: Any) -> Any:
    read = LimitsModel.model_validate(value)
    return {name: getattr(read, name) for name in LimitsModel.model_fields if getattr(read, name) is not None}


Limits = Annotated[
    dict[str, LimitModel], BeforeValidator(_limits), Given, Defined("limits", {}, model=LimitsModel)
]


# ---- guardrails ------------------------------------------------------------------------------------------------


class GuardrailsModel(Model):
    """Tools that the saga may run, and transitions that it may take."""

    allowed_tools: Annotated[ToolPatterns | None, Given] = Field(
        default=None,
        description="Names of the only tools that may run; `*` stands for any text. Without it, all tools.",
        examples=[["table.search", "books.*"]],
    )
    allowed_transitions: dict[NodeName, Annotated[Allowed, Given]] = Field(
        default_factory=dict,
        description="For each node that it names, the only nodes that may come next.",
        examples=[{"plan": ["search", "book"]}],
    )
