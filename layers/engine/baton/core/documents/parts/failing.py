"""Reactions to a failed step: the shapes of `retry`, `on_failure`, `failover` and `catch`.

Their meaning is on docs/failures.md. Their form in a graph is in core/documents/compile/analysis/source.py.
The compiler checks that the nodes and tools that they name exist.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    create_model,
    model_validator,
)

from baton.core.documents.parts.failing_schema import (
    MOST_MULTIPLIER,
    MOST_PAUSES,
    MOST_POLICIES,
    NAME_PATTERN,
    OFFSET_PATTERN,
    TIME_OF_DAY_PATTERN,
)
from baton.core.documents.parts.fields import (
    Condition,
    Duration,
    Given,
    Model,
    NodeName,
    Targets,
    ToolPatterns,
    Value,
    WorkflowReference,
    between,
    document_form,
    is_number,
    one_of,
    refuse,
    schema_reference,
)
from baton.core.documents.parts.people import EscalationModel
from baton.core.failures.codes import CLASSES, CODE_PATTERN
from baton.core.failures.failover import DAYS, Action
from baton.core.failures.names import code_of, exception_meant
from baton.core.failures.policy import (
    ANY,
    ASK,
    BACKOFFS,
    CUSTOM,
    DOMAINS,
    EXPONENTIAL,
    FAIL,
    JITTERED,
    MOST_ATTEMPTS,
    PRESETS,
    QUESTIONS,
    SEVERITIES,
    RetryChange,
)
from baton.core.failures.strategies.base import MOST_TIMES, STARTER
from baton.core.failures.strategies.registry import STRATEGIES

_CODE = re.compile(CODE_PATTERN)


def _code(value: Any) -> Any:
    """Read a code as the engine spells it. A status may be a number."""
    text = str(int(value)) if is_number(value) and value == value // 1 else value
    if not isinstance(text, str) or not _CODE.fullmatch(text):
        raise refuse(
            f"`{document_form(value)}` is not a code; write for example timeout, rate_limited or 503"
        )
    if instead := exception_meant(text):
        raise refuse(
            f"`{document_form(text)}` is what an exception is called, and no failure has it as its code",
            instead,
        )
    return code_of(text)


def _many(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _each_once(value: list[Any]) -> list[Any]:
    for index, one in enumerate(value):
        if one in value[:index]:
            raise refuse(f"`{document_form(one)}` is there twice")
    return value


def _few(low: int, high: int, what: str) -> BeforeValidator:
    def read(value: Any) -> Any:
        if isinstance(value, list) and not low <= len(value) <= high:
            raise refuse(
                f"there may be {low} to {high} {what} here" if low else f"there may be {high} {what} here"
            )
        return value

    return BeforeValidator(read)


def _text(pattern: str, what: str, example: str) -> BeforeValidator:
    known = re.compile(pattern)

    def read(value: Any) -> str:
        if not isinstance(value, str) or not known.fullmatch(value):
            raise refuse(f"`{document_form(value)}` is not {what}; write for example {example}")
        return value

    return BeforeValidator(read)


def _share(low: float, high: float) -> BeforeValidator:
    def read(value: Any) -> float:
        if not is_number(value) or not low <= value <= high:
            raise refuse(f"`{document_form(value)}` must be a number between {low:g} and {high:g}")
        return float(value)

    return BeforeValidator(read)


Code = Annotated[str, BeforeValidator(_code)]
_Codes = Annotated[list[Code], BeforeValidator(_many)]
# The strategies that there are when a document is read.
_Strategy = Annotated[str, BeforeValidator(lambda value: one_of(*STRATEGIES).func(value))]
_LadderWord = Annotated[str, BeforeValidator(lambda value: one_of(*STRATEGIES, ASK, FAIL).func(value))]
_LADDER = TypeAdapter(list[_LadderWord])
_Domain = Annotated[str, one_of(*DOMAINS)]
Class = Annotated[str, one_of(*CLASSES)]
_Day = Annotated[str, one_of(*DAYS)]
_Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
_Names = Annotated[list[_Name], BeforeValidator(_many)]


def _so_many(value: Any) -> str:
    return f"so many attempts are `{{max_attempts: {document_form(value)}}}`" if is_number(value) else ""


# ---- retry -----------------------------------------------------------------------------------------------------


class RetryModel(Model):
    """Retries of a failed attempt: a preset, or the differences from it."""

    short: ClassVar[str] = "preset"

    preset: Annotated[str | None, one_of(*PRESETS, why=_so_many), Given] = None
    max_attempts: Annotated[int | None, between(1, MOST_ATTEMPTS), Given] = None
    backoff: Annotated[str | None, one_of(*BACKOFFS), Given] = None
    base: Annotated[Duration | None, Given] = None
    multiplier: Annotated[float | None, _share(1, MOST_MULTIPLIER), Given] = None
    max_delay: Annotated[Duration | None, Given] = None
    jitter: Annotated[float | None, _share(0, 1), Given] = None
    schedule: Annotated[list[Duration] | None, _few(1, MOST_PAUSES, "pauses"), Given] = None
    budget: Annotated[Duration | None, Given] = None
    on: Annotated[_Codes | None, Given] = None
    never: Annotated[_Codes | None, Given] = None

    @model_validator(mode="after")
    def _goes_together(self) -> RetryModel:
        if self.schedule is None and self.backoff == CUSTOM:
            raise refuse("`backoff: custom` needs a `schedule`: a list of pauses")
        if self.schedule is not None and self.backoff not in {None, CUSTOM}:
            raise refuse(f"`schedule` goes with `backoff: custom`, not with `{self.backoff}`")
        for name, kinds in (("jitter", (JITTERED,)), ("multiplier", (EXPONENTIAL, JITTERED))):
            if getattr(self, name) is not None and self.backoff is not None and self.backoff not in kinds:
                raise refuse(
                    f"`{name}` goes with `backoff: {'` or `'.join(kinds)}`, not with `{self.backoff}`"
                )
        both = [code for code in self.on or () if code in (self.never or ())]
        if both:
            raise refuse(f"`{both[0]}` stands under `on` and under `never`")
        return self

    def change(self) -> RetryChange:
        """Return the changes to a policy."""
        return RetryChange(
            preset=self.preset or "",
            max_attempts=self.max_attempts,
            backoff=self.backoff,
            base_ms=self.base,
            multiplier=self.multiplier,
            max_delay_ms=self.max_delay,
            jitter=self.jitter,
            schedule=None if self.schedule is None else tuple(self.schedule),
            budget_ms=self.budget,
            on=None if self.on is None else tuple(self.on),
            never=None if self.never is None else tuple(self.never),
        )


# ---- on_failure ------------------------------------------------------------------------------------------------


def _ladder(value: Any) -> str | list[str]:
    """Read one word, or a list of strategies. compile/analysis/source.py
    knows the strategies that a word stands for.
    """
    names = _LADDER.validate_python(_many(value))
    return _each_once(_steps(names)) if isinstance(value, list) else names[0]


def _steps(value: list[str]) -> list[str]:
    """Read the strategies of a list, in which `ask` and `fail` may stand, too."""
    if value == []:
        raise refuse("name at least one strategy")
    if FAIL in value[:-1]:
        raise refuse(f"`{FAIL}` comes last: nothing is done after it")
    asks = next(name for name, strategy in STRATEGIES.items() if strategy.asks == STARTER)
    return [asks if name == ASK else name for name in value if name != FAIL]


@lru_cache(maxsize=8)
def _at_most_model(largest: tuple[tuple[str, int], ...]) -> type[Model]:
    fields: dict[str, Any] = {
        name: (Annotated[int | None, between(0, most), Given], None) for name, most in largest
    }
    return create_model("AtMostModel", __base__=Model, **fields)


def _at_most() -> type[Model]:
    """Return the model of the number of uses of each present strategy for one step; 0 leaves it out."""
    return _at_most_model(tuple((name, one.largest_at_most) for name, one in STRATEGIES.items()))


AtMostModel = _at_most()


def _times(value: Any) -> dict[str, int]:
    return _at_most().model_validate(value).model_dump(exclude_unset=True)


class ReactionModel(Model):
    """Reaction to one kind of failure, where it differs from the defaults."""

    short: ClassVar[str] = "ladder"

    class_: Annotated[Class | None, Given] = Field(default=None, alias="class")
    ladder: Annotated[str | list[str] | None, BeforeValidator(_ladder), Given] = None
    at_most: Annotated[dict[str, int] | None, BeforeValidator(_times), Given] = None
    retry: Annotated[RetryModel | None, Given] = None
    hints: Annotated[_Names | None, Given] = None
    before_retry: Annotated[_Names | None, Given] = None
    message: Annotated[str | None, Given] = None
    question: Annotated[str | None, one_of(*QUESTIONS), Given] = None
    severity: Annotated[str | None, one_of(*SEVERITIES), Given] = None
    may_change: Annotated[list[str] | None, AfterValidator(_each_once), BeforeValidator(_many), Given] = None
    escalate: Annotated[list[EscalationModel] | None, Given] = None


def _by_code(value: Any) -> Any:
    """Read one reaction as that to any failure."""
    if isinstance(value, (str, list)):
        return {ANY: value}
    known: set[str] = set()
    for key in value if isinstance(value, dict) else ():
        code = _code(key)
        if code in known:
            raise refuse(f"`{document_form(key)}` is there twice: it is another spelling of `{code}`")
        known.add(code)
    return value


# ---- failover --------------------------------------------------------------------------------------------------


class AttemptModel(Model):
    """Range of the numbers of attempts, both ends included."""

    short: ClassVar[str] = "from"

    from_: Annotated[int, between(1, MOST_ATTEMPTS), Given] = Field(default=1, alias="from")
    to: Annotated[int | None, between(1, MOST_ATTEMPTS), Given] = None

    @model_validator(mode="after")
    def _in_order(self) -> AttemptModel:
        if self.to is not None and self.to < self.from_:
            raise refuse("`to` must not be below `from`")
        return self


_TimeOfDay = Annotated[str, _text(TIME_OF_DAY_PATTERN, "a time of day", '"22:00"')]
_Offset = Annotated[str, _text(OFFSET_PATTERN, "an offset from UTC", '"+02:00"')]


class WindowModel(Model):
    """A part of the day, and the days that it begins on."""

    from_: Annotated[_TimeOfDay, Given] = Field(default="00:00", alias="from")
    to: Annotated[_TimeOfDay, Given] = "00:00"
    days: Annotated[list[_Day], BeforeValidator(_many), Given] = Field(default_factory=list)
    utc_offset: Annotated[_Offset, Given] = "+00:00"


def _values(value: Any) -> Any:
    return {path: _many(values) for path, values in value.items()} if isinstance(value, dict) else value


class MatchModel(Model):
    """Conditions on a failure for a policy to be taken."""

    node: Annotated[ToolPatterns, Given] = Field(default_factory=list)
    tool: Annotated[ToolPatterns, Given] = Field(default_factory=list)
    domain: Annotated[list[_Domain], BeforeValidator(_many), Given] = Field(default_factory=list)
    code: Annotated[_Codes, Given] = Field(default_factory=list)
    class_: Annotated[list[Class], BeforeValidator(_many), Given] = Field(default_factory=list, alias="class")
    attempt: Annotated[AttemptModel | None, Given] = None
    time: Annotated[list[WindowModel], BeforeValidator(_many), Given] = Field(default_factory=list)
    parameters: Annotated[dict[str, list[Any]], BeforeValidator(_values), Given] = Field(default_factory=dict)
    if_: Annotated[Condition | None, Given] = Field(default=None, alias="if")


class ActionModel(Model):
    """Action of a policy."""

    short: ClassVar[str] = "strategy"

    strategy: Annotated[_Strategy, Given] = Action().strategy
    hint: Annotated[_Name | None, Given] = None
    tool: Annotated[_Name | None, Given] = None
    with_: Annotated[dict[str, Value], Given] = Field(default_factory=dict, alias="with")

    @model_validator(mode="after")
    def _goes_together(self) -> ActionModel:
        strategy = STRATEGIES[self.strategy]
        given = [name.rstrip("_") for name in ("hint", "tool", "with_") if getattr(self, name)]
        for name in given:
            if name not in strategy.takes:
                other = next(one.name for one in STRATEGIES.values() if name in one.takes)
                raise refuse(f"`{name}` goes with `strategy: {other}`")
        if strategy.takes and not given:
            raise refuse(strategy.lacks)
        return self


class PolicyModel(Model):
    """One policy: for which failures it is (`when`), what it does (`then`), and what a person is told."""

    name: NodeName
    when: Annotated[MatchModel, Given] = MatchModel()
    then: ActionModel
    message: str = ""
    at_most: Annotated[int, between(1, MOST_TIMES), Given] = 1


def _named_once(value: list[PolicyModel]) -> list[PolicyModel]:
    _each_once([policy.name for policy in value])
    return value


# ---- catch -----------------------------------------------------------------------------------------------------


class CatchModel(Model):
    """Next nodes after a failed node whose failure matches. A field that is left out matches all failures."""

    code: Annotated[_Codes, Given] = Field(default_factory=list)
    class_: Annotated[list[Class], BeforeValidator(_many), Given] = Field(default_factory=list, alias="class")
    if_: Annotated[Condition | None, Given] = Field(default=None, alias="if")
    then: Targets

    @property
    def fits_all(self) -> bool:
        """True if every failure matches."""
        return not self.code and not self.class_ and self.if_ is None

    def may_fit(self, code: str, kind: str) -> bool:
        """Return true if the code and the class match; its `if` may still exclude the failure."""
        return (not self.code or code in self.code) and (not self.class_ or kind in self.class_)


class HandlersModel(CatchModel):
    """A `catch` that only names nodes."""


def _rules(value: Any) -> Any:
    """Read one name, a list of names, a rule or a list of rules as a list of rules."""
    many = _many(value)
    if not many:
        raise refuse("name at least one node")
    texts = sum(isinstance(one, str) for one in many)
    if texts == len(many):
        return [HandlersModel(then=_each_once(many))]
    if texts:
        raise refuse("write names of nodes, or rules with `then`, not both in one list")
    return many


# ---- the fields of nodes and documents ---------------------------------------------------------------------------

Retry = Annotated[RetryModel | None, Given, schema_reference("retry")]
OnFailure = Annotated[
    dict[Code, ReactionModel], BeforeValidator(_by_code), Given, schema_reference("onFailure")
]
Failover = Annotated[
    list[PolicyModel],
    AfterValidator(_named_once),
    _few(0, MOST_POLICIES, "policies"),
    Given,
    schema_reference("failover"),
]
Catch = Annotated[list[CatchModel], BeforeValidator(_rules), Given, schema_reference("catch")]


NONE, SEQUENTIAL, PARALLEL = "none", "sequential", "parallel"


class CompensateModel(Model):
    """Inverse of a node."""

    short: ClassVar[str] = "tool"

    tool: Annotated[str | None, Given] = Field(
        default=None,
        description="Inverse, in place of the tool's own. `none`: the node is not undone.",
    )
    with_: Annotated[dict[str, Value] | None, Given] = Field(
        default=None,
        alias="with",
        description=(
            "Arguments of the inverse. `${step.input}`, `${step.output}` and `${step.key}` are the "
            "node's input, output and idempotency key. Without it, parameters are filled by name."
        ),
    )
    retry: Retry = Field(
        default=None,
        description="Retry policy. Without it, 5 attempts within 10 minutes.",
    )
    timeout: Annotated[Duration | None, Given] = Field(
        default=None, description="The longest time for one attempt."
    )
    in_doubt: Annotated[Literal["call", "ask"] | None, Given] = Field(
        default=None,
        description=(
            "After an unknown outcome of the node, `call` the inverse or `ask` a person. Without it, "
            "[the engine decides](failures.md#undoing)."
        ),
    )

    @model_validator(mode="after")
    def _nothing_else(self) -> CompensateModel:
        if self.tool == NONE and len(self.model_fields_set) > 1:
            raise refuse(
                "`tool: none` means that nothing is undone, so that nothing else can be said",
                "write `compensate: none`",
            )
        if not self.model_fields_set:
            raise refuse(
                "name the `tool`, or what is different from the tool's own inverse",
                "write `compensate: none` for nothing",
            )
        return self


class HandlerModel(Model):
    """Workflow, or graph of the document, to start when a saga has failed for good and its rollback
    has ended.
    """

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["workflow"]}, {"required": ["graph"]}]}
    )
    short: ClassVar[str] = "workflow"

    workflow: Annotated[WorkflowReference | None, Given] = Field(
        default=None,
        description="Name of another workflow: `NAME` or `NAME@VERSION`.",
        examples=["tell-the-team"],
    )
    graph: Annotated[NodeName | None, Given] = Field(
        default=None,
        description="Name of a graph of this document, instead of a workflow.",
        examples=["tell"],
    )
    with_: Annotated[dict[str, Value] | None, Given] = Field(
        default=None,
        alias="with",
        description="Input of the handler: values in which `last_error` is the failure, and `ctx.NODE.output?` "
        "what a node gave. Without it, a workflow gets a report of the failure, and a graph the "
        "input of the saga.",
        examples=[{"order": "${input.order}", "why": "${last_error.message}"}],
    )
    on_cancel: bool = Field(
        default=False,
        description="Starts the handler for a cancelled saga, too.",
        examples=[True],
    )

    @property
    def called(self) -> str:
        """The workflow; empty for a graph."""
        return self.workflow or ""

    @model_validator(mode="after")
    def _one_of_two(self) -> HandlerModel:
        if (self.workflow is None) == (self.graph is None):
            raise refuse("a handler has exactly one of `workflow` and `graph`")
        return self
