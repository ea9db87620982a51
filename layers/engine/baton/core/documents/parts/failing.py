"""Reactions to a failed step: the shapes of `retry`, `on_failure`, `failover` and `catch`.

Their meaning is on docs/failures.md. Their form in a graph is in core/documents/compile/source.py.
The compiler checks that the nodes and tools that they name exist.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    create_model,
    model_validator,
)

from baton.core.documents.parts.fields import (
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
    between,
    document_form,
    is_number,
    one_of,
    one_of_present,
    ref,
    refuse,
)
from baton.core.documents.parts.people import SO_MANY, EscalationModel
from baton.core.failures.codes import CLASSES, CODE_PATTERN, CODES
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
    HINTS,
    HOOKS,
    JITTERED,
    MOST_ATTEMPTS,
    PRESETS,
    QUESTIONS,
    SEVERITIES,
    RetryChange,
)
from baton.core.failures.strategies.base import MOST_TIMES, STARTER
from baton.core.failures.strategies.registry import STRATEGIES

MOST_PAUSES, MOST_MULTIPLIER, MOST_POLICIES = 99, 100, 100
NAME_PATTERN = r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$"
TIME_OF_DAY_PATTERN = "^([01][0-9]|2[0-3]):[0-5][0-9]$"
OFFSET_PATTERN = "^[+-](0[0-9]|1[0-4]):[0-5][0-9]$"
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


def _few(low: int, high: int, what: str) -> Reads:
    def read(value: Any) -> Any:
        if isinstance(value, list) and not low <= len(value) <= high:
            raise refuse(
                f"there may be {low} to {high} {what} here" if low else f"there may be {high} {what} here"
            )
        return value

    bounds = {"minItems": low, "maxItems": high} if low else {"maxItems": high}
    return Reads(read, lambda made: {**made, **bounds})


def _text(pattern: str, what: str, example: str) -> Reads:
    known = re.compile(pattern)

    def read(value: Any) -> str:
        if not isinstance(value, str) or not known.fullmatch(value):
            raise refuse(f"`{document_form(value)}` is not {what}; write for example {example}")
        return value

    return Reads(read, {"type": "string", "pattern": pattern})


def _share(low: float, high: float) -> Reads:
    def read(value: Any) -> float:
        if not is_number(value) or not low <= value <= high:
            raise refuse(f"`{document_form(value)}` must be a number between {low:g} and {high:g}")
        return float(value)

    return Reads(read, {"type": "number", "minimum": low, "maximum": high})


_MANY = Reads(_many, lambda made: {"anyOf": [made["items"], made]})
_CODES = {
    "description": "A code of a failure, a class, or an HTTP status. Tools may have codes of their own.",
    "type": ["string", "integer"],
    "pattern": CODE_PATTERN,
    "examples": [*sorted({*CODES, *CLASSES})],
}
Code = Annotated[str, Reads(_code, _CODES), Defined("code")]
_Codes = Annotated[list[Code], _MANY, Defined("codes")]
# The strategies that there are when a document is read.
_Strategy = Annotated[str, one_of_present(lambda: STRATEGIES)]
_LADDER_WORDS = one_of_present(lambda: (*STRATEGIES, ASK, FAIL))
_LADDER = TypeAdapter(list[Annotated[str, _LADDER_WORDS]])
_Domain = Annotated[str, one_of(*DOMAINS)]
Class = Annotated[str, one_of(*CLASSES), Defined("failClass")]
_Classes = Annotated[list[Class], _MANY, Defined("failClasses")]
_Day = Annotated[str, one_of(*DAYS)]
_Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
_Names = Annotated[list[_Name], _MANY, Defined("toolNames")]


def _so_many(value: Any) -> str:
    return f"so many attempts are `{{max_attempts: {document_form(value)}}}`" if is_number(value) else ""


# ---- retry -----------------------------------------------------------------------------------------------------


class RetryModel(Model):
    """Retry policy of a failed attempt: a preset, and its changes."""

    model_config = ConfigDict(
        json_schema_extra={
            "dependentSchemas": {
                "schedule": {"properties": {"backoff": {"const": CUSTOM}}},
                "jitter": {"properties": {"backoff": {"const": JITTERED}}},
                "multiplier": {"properties": {"backoff": {"enum": [EXPONENTIAL, JITTERED]}}},
            },
            "if": {"required": ["backoff"], "properties": {"backoff": {"const": CUSTOM}}},
            "then": {"required": ["schedule"]},
        }
    )
    short: ClassVar[str] = "preset"

    preset: Annotated[str | None, one_of(*PRESETS, why=_so_many), Given] = Field(
        default=None,
        description="The policy that everything else here is a change of.",
        examples=["critical"],
    )
    max_attempts: Annotated[int | None, between(1, MOST_ATTEMPTS), Given] = Field(
        default=None, description="Number of attempts, the first one counted.", examples=[3]
    )
    backoff: Annotated[str | None, one_of(*BACKOFFS), Given] = Field(
        default=None, description="Growth of the pauses.", examples=["exponential_jitter"]
    )
    base: Annotated[Duration | None, Given] = Field(
        default=None, description="The first pause.", examples=["1s"]
    )
    multiplier: Annotated[float | None, _share(1, MOST_MULTIPLIER), Given] = Field(
        default=None,
        description="Factor by which each pause is longer than the one before it.",
        examples=[2],
    )
    max_delay: Annotated[Duration | None, Given] = Field(
        default=None, description="The longest pause.", examples=["30s"]
    )
    jitter: Annotated[float | None, _share(0, 1), Given] = Field(
        default=None,
        description="Share by which a pause may be shorter or longer by chance.",
        examples=[0.3],
    )
    schedule: Annotated[list[Duration] | None, _few(1, MOST_PAUSES, "pauses"), Given] = Field(
        default=None,
        description="The pauses themselves; `backoff` is `custom` then.",
        examples=[["1s", "1m", "1h"]],
    )
    budget: Annotated[Duration | None, Given] = Field(
        default=None,
        description="The longest time that may pass from the first failure to the last attempt.",
        examples=["5m"],
    )
    on: Annotated[_Codes | None, Given] = Field(
        default=None,
        description="The only codes or classes that are tried again.",
        examples=[["503", "timeout"]],
    )
    never: Annotated[_Codes | None, Given] = Field(
        default=None, description="Codes or classes that are not tried again.", examples=["conflict"]
    )

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
    """Read one word, or a list of strategies. compile/source.py
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


def _times_schema(_: Any) -> dict[str, Any]:
    most = {name: one.largest_at_most for name, one in STRATEGIES.items()}
    uses = {
        name: {"description": f"The most uses of `{name}`.", "type": "integer", "minimum": 0, "maximum": high}
        for name, high in most.items()
    }
    return {"type": "object", "additionalProperties": False, "properties": uses}


def _ladder_schema(_: Any) -> dict[str, Any]:
    word = {"type": "string", "enum": [*STRATEGIES, ASK, FAIL]}
    return {"anyOf": [word, {"type": "array", "minItems": 1, "uniqueItems": True, "items": word}]}


class ReactionModel(Model):
    """Reaction to one kind of failure, where it differs from the defaults."""

    short: ClassVar[str] = "ladder"

    class_: Annotated[Class | None, Given] = Field(
        default=None, alias="class", description="The class that it counts as.", examples=["transient"]
    )
    ladder: Annotated[str | list[str] | None, Reads(_ladder, _ladder_schema), Defined("ladder"), Given] = (
        Field(
            default=None,
            description="The strategies in their order; a single one stands for itself and those above it. "
            "`ask` or `fail` alone says what comes after retries and other ways.",
        )
    )
    at_most: Annotated[
        dict[str, int] | None,
        Reads(_times, _times_schema),
        Defined("atMost", model=AtMostModel),
        Given,
    ] = Field(default=None, description="Number of uses of a strategy for one step; 0 leaves it out.")
    retry: Annotated[RetryModel | None, Given] = Field(
        default=None, description="Retry policy for this failure."
    )
    hints: Annotated[_Names | None, Given] = Field(
        default=None,
        description=f"Hints of a replan, one after the other: {', '.join(HINTS)}, or a tool.",
        examples=[["fallback_model"]],
    )
    before_retry: Annotated[_Names | None, Given] = Field(
        default=None,
        description=f"Actions before each retry: {', '.join(HOOKS)}, or a tool.",
        examples=["clear_cache"],
    )
    message: Annotated[str | None, Given] = Field(
        default=None,
        description="Message for a person, in place of the code's own sentence.",
        examples=["The bank does not answer."],
    )
    question: Annotated[str | None, one_of(*QUESTIONS), Given] = Field(
        default=None, description="The kind of question that a person is asked.", examples=["input"]
    )
    severity: Annotated[str | None, one_of(*SEVERITIES), Given] = Field(
        default=None, description="Severity of the incident.", examples=["high"]
    )
    may_change: Annotated[list[str] | None, AfterValidator(_each_once), _MANY, Given] = Field(
        default=None,
        description="The arguments of the tool that an answer to the question may change; without it, none.",
        examples=[["date", "time"]],
    )
    expires: Annotated[Duration | None, Given] = Field(
        default=None,
        description="Time until the question about the step expires, and the next strategy follows; without it, 24 hours. "
        "With `escalate`, it counts from the last action.",
        examples=["2d"],
    )
    escalate: Annotated[list[EscalationModel] | None, Given] = Field(
        default=None,
        description="Actions on the question about the step while it has no answer, in the order of time.",
        json_schema_extra=SO_MANY,
    )


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

    from_: Annotated[int, between(1, MOST_ATTEMPTS), Given] = Field(
        default=1, alias="from", description="The first one."
    )
    to: Annotated[int | None, between(1, MOST_ATTEMPTS), Given] = Field(
        default=None, description="The last one; without it, there is none."
    )

    @model_validator(mode="after")
    def _in_order(self) -> AttemptModel:
        if self.to is not None and self.to < self.from_:
            raise refuse("`to` must not be below `from`")
        return self


_TimeOfDay = Annotated[str, _text(TIME_OF_DAY_PATTERN, "a time of day", '"22:00"')]
_Offset = Annotated[str, _text(OFFSET_PATTERN, "an offset from UTC", '"+02:00"')]


class WindowModel(Model):
    """A part of the day. One that ends before it begins goes on past midnight."""

    from_: Annotated[_TimeOfDay, Given] = Field(
        default="00:00", alias="from", description="Time of day at which it begins.", examples=["22:00"]
    )
    to: Annotated[_TimeOfDay, Given] = Field(
        default="00:00", description="Time of day at which it ends.", examples=["06:00"]
    )
    days: Annotated[list[_Day], _MANY, Given] = Field(
        default_factory=list,
        description="The days that it begins on; without it, all.",
        examples=[["sat", "sun"]],
    )
    utc_offset: Annotated[_Offset, Given] = Field(
        default="+00:00", description="The offset of its clock from UTC.", examples=["+02:00"]
    )


def _values(value: Any) -> Any:
    return {path: _many(values) for path, values in value.items()} if isinstance(value, dict) else value


class MatchModel(Model):
    """Description of a failure: a failure fits if every field fits."""

    node: Annotated[ToolPatterns, Given] = Field(
        default_factory=list,
        description="The nodes, by name; `*` stands for any text.",
        examples=["book*"],
    )
    tool: Annotated[ToolPatterns, Given] = Field(
        default_factory=list,
        description="The tools, by name; `*` stands for any text.",
        examples=["table.*"],
    )
    domain: Annotated[list[_Domain], _MANY, Given] = Field(
        default_factory=list, description="Domain of the tool.", examples=["external_api"]
    )
    code: Annotated[_Codes, Given] = Field(
        default_factory=list, description="The codes that fit.", examples=[["timeout", "503"]]
    )
    class_: Annotated[_Classes, Given] = Field(
        default_factory=list, alias="class", description="The classes that fit.", examples=["transient"]
    )
    attempt: Annotated[AttemptModel | None, Given] = Field(
        default=None,
        description="The attempts: from this one on, or `from` one `to` another.",
        examples=[3, {"from": 1, "to": 2}],
    )
    time: Annotated[list[WindowModel], _MANY, Given] = Field(
        default_factory=list,
        description="Part of the day in which the failure happens, or several.",
        examples=[{"from": "22:00", "to": "06:00"}],
    )
    parameters: Annotated[dict[str, list[Any]], Reads(_values, {"type": "object"}), Given] = Field(
        default_factory=dict,
        description="Parameters of the tool, by their path with dots, each with the value, or values, that fit.",
        examples=[{"table.kind": ["window", "terrace"]}],
    )
    if_: Annotated[Condition | None, Given] = Field(
        default=None, alias="if", description="Further condition; `last_error` is the failure."
    )


def _only_what_it_takes(action: dict[str, Any]) -> None:
    """Add to the schema of an action that it names what its strategy takes, and nothing else."""
    nothing = {"hint": False, "tool": False, "with": {"maxProperties": 0}}
    action["anyOf"] = [
        {"required": ["strategy"], "properties": {"strategy": ActionModel.short_schema({}), **nothing}},
        *(
            {
                "required": [name],
                "properties": {
                    "strategy": {"const": one.name},
                    **({"with": {"minProperties": 1}} if name == "with" else {}),
                },
            }
            for one in STRATEGIES.values()
            for name in one.takes
        ),
    ]


class ActionModel(Model):
    """Action of a policy."""

    model_config = ConfigDict(json_schema_extra=_only_what_it_takes)
    short: ClassVar[str] = "strategy"

    strategy: Annotated[_Strategy, Given] = Field(default=Action().strategy, description="The strategy.")
    hint: Annotated[_Name | None, Given] = Field(
        default=None, description="Hint of the replan.", examples=["alternative_source"]
    )
    tool: Annotated[_Name | None, Given] = Field(
        default=None, description="The tool that is called in place.", examples=["delivery.order"]
    )
    with_: Annotated[dict[str, Value], Given] = Field(
        default_factory=dict,
        alias="with",
        description="Arguments that take the place of those with the same names.",
        examples=[{"hour": 20}],
    )

    @classmethod
    def short_schema(cls, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of the strategies that a policy can name without saying more."""
        return {"enum": [one.name for one in STRATEGIES.values() if not one.takes]}

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
    """Policy: an action for the failures that fit one description."""

    name: NodeName = Field(description="The policy's name.")
    when: Annotated[MatchModel, Given] = Field(
        default_factory=MatchModel, description="Failures that the policy is for."
    )
    then: ActionModel = Field(description="Action of the policy.")
    message: str = Field(
        default="",
        description="Message for the saga's user when the policy is taken, or the text of the question that it asks.",
    )
    at_most: Annotated[int, between(1, MOST_TIMES), Given] = Field(
        default=1, description="Number of uses of the policy for one step."
    )


def _named_once(value: list[PolicyModel]) -> list[PolicyModel]:
    _each_once([policy.name for policy in value])
    return value


# ---- catch -----------------------------------------------------------------------------------------------------


class CatchModel(Model):
    """Nodes to go on to when the node has failed and the failure fits.
    A field that is left out fits all.
    """

    code: Annotated[_Codes, Given] = Field(
        default_factory=list,
        description="The codes that fit.",
        examples=["no_tables", ["timeout", 503]],
    )
    class_: Annotated[_Classes, Given] = Field(
        default_factory=list, alias="class", description="The classes that fit.", examples=["transient"]
    )
    if_: Annotated[Condition | None, Given] = Field(
        default=None,
        alias="if",
        description="Further condition; `last_error` is the failure.",
        examples=["last_error.attempt > 2"],
    )
    then: Targets = Field(description="Nodes to continue with.", examples=["tell"])

    @property
    def fits_all(self) -> bool:
        """True if every failure matches."""
        return not self.code and not self.class_ and self.if_ is None


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


def _on_failure_schema(made: dict[str, Any]) -> dict[str, Any]:
    return {
        "description": "Reaction to a failure: by code, by class, or for `any` failure. The code counts most.",
        "anyOf": [ref("ladder"), {**made, "propertyNames": {"pattern": CODE_PATTERN}}],
        "examples": [{"timeout": {"retry": "critical"}, "permanent": "escalate"}],
    }


Retry = Annotated[RetryModel | None, Given]
OnFailure = Annotated[
    dict[Code, ReactionModel], Reads(_by_code, _on_failure_schema), Defined("onFailure"), Given
]
Failover = Annotated[
    list[PolicyModel],
    AfterValidator(_named_once),
    _few(0, MOST_POLICIES, "policies"),
    Defined("failover"),
    Given,
]
Catch = Annotated[
    list[CatchModel],
    Reads(_rules, lambda made: {"anyOf": [ref("targets"), made["items"], {**made, "minItems": 1}]}),
    Defined("catch"),
    Given,
]


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
