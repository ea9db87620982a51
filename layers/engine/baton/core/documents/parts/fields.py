"""Types of fields that more than one model of a document has, and how they refuse what is wrong.

Names, durations, numbers, words to choose from, and the root of the models.
What a field is for is in control.py, failing.py and node.py; refusals are worded in documents/read.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StringConstraints,
    model_validator,
)
from pydantic.types import JsonValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from baton.core.expressions import (
    JOIN_FIELDS,
    LONGEST_S,
    PATTERN,
    PICK,
    SAGA_FIELDS,
    SCHEDULE_FIELDS,
    SHORTEST_S,
    SPACE,
    STEP_FIELDS,
    expressions_in,
    nearest,
    parse_duration,
    parse_time,
)
from baton.core.graph.graph import NODE_NAME, WORKFLOW_NAME, WORKFLOW_REFERENCE

MAX_NODES = 10_000
API_NAME = "^[a-z][a-z0-9_]{0,31}$"
MOST_OPERATIONS = 500
DEFINED, BODY, SHORT = "x-defined", "x-body", "x-short"
NO_VALUE = "there is no value here; write one"
# The largest number that a limit can be, of whatever it counts: a million dollars in millionths.
MOST = 1_000_000_000_000
# Less than ISO 8601 allows, so that it can be said in the JSON Schema; that a month has such a day is left out there.
TIME_PATTERN = (
    r"^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])T(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?"
    r"(?:\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])$"
)
_TIME = re.compile(TIME_PATTERN)
_API = re.compile(API_NAME)
_EXPRESSION = re.compile(rf"[{SPACE}]*\$\{{([^}}]*)\}}[{SPACE}]*")


def refuse(message: str, suggestion: str = "") -> PydanticCustomError:
    """Return the error that a validator raises, with the right form as its suggestion."""
    return PydanticCustomError("refused", "{message}", {"message": message, "suggestion": suggestion})


def document_form(value: Any) -> str:
    """Write the value as a document does, as much of it as fits into a message."""
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))[:40]


def _given(value: Any) -> Any:
    """Return the value. Refuse null, which in YAML is a line begun and forgotten."""
    if value is None:
        raise refuse(NO_VALUE)
    return value


class Reads:
    """Validator of a value before all others, together with the JSON Schema of what it takes:
    a schema, or a function that makes it of pydantic's own schema of the type.
    """

    def __init__(
        self, read: Callable[[Any], Any], schema: Mapping[str, Any] | Callable[[dict[str, Any]], Any]
    ) -> None:
        self.read, self._schema = read, schema

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = self._schema
        return schema(without_null(handler(core))) if callable(schema) else dict(schema)


class Defined:
    """Name under which the published JSON Schema describes a type once.

    `schema` None: pydantic's own schema of the type; empty: it is described elsewhere. `model`: the model of
    the object, where the type does not say it.
    """

    def __init__(
        self, name: str, schema: Mapping[str, Any] | None = None, model: type[BaseModel] | None = None
    ) -> None:
        self.model, self._name, self._schema = model, name, schema

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        body = without_null(handler(core)) if self._schema is None else dict(self._schema)
        return {**ref(self._name), **({BODY: body} if body else {})}


def without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON Schema without the null of a field that can be left out."""
    some = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(some) == 1:
        return {**some[0], **{key: value for key, value in schema.items() if key != "anyOf"}}
    return {**schema, "anyOf": some} if some else schema


_SPACE = "[" + SPACE.encode("unicode_escape").decode() + "]*"
_LITERAL = r"[^$]|\$\$+\{|\$+[^${]"


def _one_of(names: tuple[str, ...]) -> str:
    """Write a step that is one of some names, in each of its three spellings."""
    either = "|".join(names)
    return rf"""(?:\.(?:{either})|\["(?:{either})"\]|\['(?:{either})'\])"""


def _expression() -> str:
    """Return the pattern of core/expressions.py for the text between `${` and `}` without outer spaces."""
    name = "[A-Za-z_][A-Za-z0-9_]*"
    key = rf"""(?:\.{name}|\["[^"\\}}]*"\]|\['[^'\\}}]*'\])"""
    index = rf"\[(?:[0-9]{{1,9}}|{PICK})\]"
    step = rf"(?:{key}|{index})"
    ways = (
        rf"(?:input|event)(?:{key}\??|{index})*",
        rf"(?:last_error|item|output|ctx{key}{_one_of(('output', 'previous'))}\??|join{_one_of(JOIN_FIELDS)}){step}*",
        rf"step{_one_of(STEP_FIELDS)}(?:{key}\??|{index})*",
        f"saga{_one_of(SAGA_FIELDS)}",
        f"schedule{_one_of(SCHEDULE_FIELDS)}",
        f"loop{_one_of(('iteration',))}",
    )
    return f"(?:{'|'.join(ways)})"


# No look-ahead, and each run of `$` can be read in one way only: so a long text takes no engine long.
_PLACED = rf"\$\{{{_SPACE}{_expression()}{_SPACE}\}}"


def ref(name: str) -> dict[str, Any]:
    """Return a reference to a definition of the schema."""
    return {DEFINED: name}


def template(gives: str) -> dict[str, Any]:
    return {"title": f"an expression that gives {gives}", **ref("template")}


# The pattern of an expression is long: each of these has it once, and `not` says which texts that match are none.
TEXT = {"pattern": rf"^(?:{_LITERAL}|{_PLACED})*\$*$"}
# A text with at least one expression in it: of the texts that can be read, those without one match the other pattern.
TEMPLATE = {"type": "string", **ref("textValue"), "not": {"pattern": rf"^(?:{_LITERAL})*\$*$"}}
# One alone, with both `${` and `}` around it or neither. No other `}` can be in it.
EXPRESSION = {
    "type": "string",
    "pattern": rf"^{_SPACE}(?:\$\{{{_SPACE})?{_expression()}{_SPACE}(?:\}}{_SPACE})?$",
    "not": {"pattern": rf"^{_SPACE}(?:\$[^}}]*|[^${_SPACE[1:-2]}][^}}]*\}}{_SPACE})$"},
}


# For fields that are None when they are left out: null in a document is not a way of leaving them out.
Given = BeforeValidator(_given)
Duration = Annotated[
    int,
    BeforeValidator(parse_duration),
    Defined(
        "duration",
        {
            "description": "A duration: a number with a unit (ms, s, m, h, d), or a number of seconds. From 1 ms to 366 days.",
            "type": ["string", "number"],
            "pattern": PATTERN,
            "minimum": SHORTEST_S,
            "maximum": LONGEST_S,
            "examples": ["500ms", "5s", "10m", "1.5h", "2d", 90],
        },
    ),
]


def is_template(value: Any) -> bool:
    """Return true for a text with an expression in it."""
    return isinstance(value, str) and any(True for _ in expressions_in(value))


WaitDuration = Annotated[
    int | str,
    BeforeValidator(lambda value: value if is_template(value) else parse_duration(value)),
    Defined("waitDuration", {"anyOf": [ref("duration"), template("a duration")]}),
]
WorkflowName = Annotated[str, StringConstraints(pattern=WORKFLOW_NAME)]
WorkflowReference = Annotated[str, StringConstraints(pattern=WORKFLOW_REFERENCE)]
NodeName = Annotated[str, StringConstraints(pattern=NODE_NAME)]
Value = Annotated[
    JsonValue,
    Defined(
        "value",
        {
            "description": "Any JSON value. In a string, `${…}` is replaced: `input.…` is the saga's input, `input.NAME?` a part of it or null, "
            "`ctx.NODE.output.…` what a node gave, `ctx.NODE.output?.…` the same or null, `saga.…` one of "
            + ", ".join(SAGA_FIELDS)
            + ". A string that is one expression and nothing else becomes what it names, of whatever type. `$${` stands "
            "for `${`.",
            **ref("textValue"),
            "items": ref("value"),
            "additionalProperties": ref("value"),
            "examples": ["${input.city}", "${ctx.search.output.tables[0].id}", "Hello, ${saga.user}!"],
        },
    ),
]
# As it stands in the document: the compiler reads it, and core/conditions/document.py describes it.
Condition = Annotated[JsonValue, Given, Defined("condition", {})]


def check_time(value: Any) -> None:
    """Raise `ValueError` for a text that is no time with its offset from UTC."""
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise refuse(
            f"`{document_form(value)}` is not a time with its offset; write for example 2026-12-01T09:00:00Z"
        )
    try:
        parse_time(value)
    except ValueError:
        raise refuse(f"`{value}`: there is no such day") from None


# ---- names -----------------------------------------------------------------------------------------------------


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _some(value: Any) -> Any:
    if value == []:
        raise refuse("name at least one node")
    return value


def _each_once(value: Any) -> Any:
    seen = set()
    for name in (item for item in value if isinstance(item, str)) if isinstance(value, list) else ():
        if name in seen:
            raise refuse(f"`{name[:64]}` is there twice")
        seen.add(name)
    return value


def no_text_of_many(value: Any) -> Any:
    """Return the names. Refuse a text that is several names with commas."""
    for text in [value] if isinstance(value, str) else value if isinstance(value, list) else ():
        if isinstance(text, str) and "," in text:
            raise refuse(
                f"`{document_form(text)}` is one text, and a list is meant", f"write {as_list(text)}"
            )
    return value


def as_list(text: str) -> str:
    """Return the list that a text with commas in it is meant as."""
    return f"`[{', '.join(part.strip() for part in text.split(',') if part.strip())}]`"


def _names(item: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"anyOf": [item, {"type": "array", "items": item, **more}]}


_Names = Annotated[list[str], BeforeValidator(_one_or_many)]
_UniqueNames = Annotated[_Names, BeforeValidator(_each_once)]
After = Annotated[
    _Names,
    Defined(
        "after", {**_names(ref("nodeName")), "default": [], "examples": ["search", ["deposit", "order"]]}
    ),
]
Targets = Annotated[
    _UniqueNames,
    BeforeValidator(_some),
    Defined("targets", _names(ref("nodeName"), uniqueItems=True, minItems=1)),
]
# Here an empty list has a meaning: nothing is allowed.
Allowed = Annotated[_UniqueNames, Defined("allowed", _names(ref("nodeName"), uniqueItems=True))]
ToolPatterns = Annotated[
    _UniqueNames,
    BeforeValidator(no_text_of_many),
    Defined("toolPatterns", _names({"type": "string"}, uniqueItems=True)),
]
NodePaths = Annotated[
    _UniqueNames,
    BeforeValidator(no_text_of_many),
    Defined("nodePaths", _names({"type": "string"}, uniqueItems=True)),
]


def _apis(value: Any) -> Any:
    for name in value if isinstance(value, dict) else ():
        if not isinstance(name, str) or not _API.fullmatch(name):
            raise refuse(
                f"`{document_form(name)}` is no name of an API",
                "write it as `OpenApis` has it, such as `shop`",
            )
    return value


OPERATIONS_SAY = "The operations of APIs that `std.openapi` may call: by the name of the API, their ids."
Operations = Annotated[
    dict[str, Annotated[_UniqueNames, Field(min_length=1, max_length=MOST_OPERATIONS)]],
    BeforeValidator(_apis),
    Field(max_length=MOST_OPERATIONS),
    Defined(
        "operations",
        {
            "type": "object",
            "propertyNames": {"pattern": API_NAME},
            "additionalProperties": _names(
                {"type": "string"}, minItems=1, maxItems=MOST_OPERATIONS, uniqueItems=True
            ),
            "maxProperties": MOST_OPERATIONS,
            "examples": [{"shop": ["listOrders", "getOrder"]}],
        },
    ),
]


def _choose(value: Any) -> Any:
    """Return the text between `${` and `}`, or the text itself without them."""
    match = _EXPRESSION.fullmatch(value) if isinstance(value, str) else None
    return match[1] if match else value


Choose = Annotated[
    str,
    BeforeValidator(_choose),
    Defined(
        "expression",
        {
            "description": "One expression, with `${}` around it or without.",
            **EXPRESSION,
            "examples": ["output.next", "${ctx.plan.output.steps}"],
        },
    ),
]


# ---- numbers and words -----------------------------------------------------------------------------------------


def is_number(value: Any) -> bool:
    """Return true if the value is a number in JSON: `true` is none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def whole(value: Any, low: int, high: int) -> int:
    """Read a whole number; `5.0` is one, as it is in JSON Schema."""
    if not is_number(value) or value != value // 1:
        raise refuse(f"`{document_form(value)}` is not a whole number")
    if not low <= value <= high:
        raise refuse(f"`{document_form(value)}` must be between {low:,} and {high:,}")
    return int(value)


def between(low: int, high: int) -> Reads:
    """Make the validator of a field that is a whole number."""
    bounds = {"type": "integer", "minimum": low, "maximum": high}
    return Reads(lambda value: whole(value, low, high), bounds)


def one_of(*words: str, why: Callable[[Any], str] = lambda _: "") -> Reads:
    """Make the validator of a field that is one of some words.
    `why` adds to the message about another value.
    """
    return one_of_present(lambda: words, why)


def one_of_present(present: Callable[[], Collection[str]], why: Callable[[Any], str] = lambda _: "") -> Reads:
    """Make the same validator for the words that there are when a document is read."""

    def read(value: Any) -> str:
        words = present()
        if isinstance(value, str) and value in words:
            return value
        *others, last = (f"`{word}`" for word in words)
        known = f"{', '.join(others)} or {last}" if others else last
        more = why(value)
        raise refuse(f"must be {known}{f': {more}' if more else ''}", nearest(str(value)[:40], words))

    return Reads(read, lambda _: {"type": "string", "enum": [*present()]})


# ---- the models' root ------------------------------------------------------------------------------------------


class Model(BaseModel):
    """Base class of the objects of a document. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)
    # The field that a value which is no object stands for: `join: any` is `join: {wait_for: any}`.
    short: ClassVar[str] = ""

    @classmethod
    def short_schema(cls, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON Schema of that value, from the one of the field."""
        described_already = ("default", "description", "examples")
        return {key: value for key, value in schema.items() if key not in described_already}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        made = handler.resolve_ref_schema(handler(core))
        if cls.short:
            made[SHORT] = cls.short_schema(made["properties"][cls.short])
        return made

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return value if not cls.short or isinstance(value, (dict, Model)) else {cls.short: value}
