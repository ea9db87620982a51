"""A pipeline as it is written becomes a plan, with all that is wrong with it told at once; and a plan is run.

What a step does is in the files of the primitives.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from baton.core.conditions.values import type_of
from baton.core.expressions import excess_of, nearest
from baton.core.pipelines import base
from baton.core.pipelines.base import (
    ANYTHING,
    INVALID,
    TOO_LARGE,
    Broken,
    FieldShape,
    PipelineFailed,
    PipelineProblems,
    Primitive,
    PrimitiveCall,
    PrimitiveField,
    WorkBudget,
    Wrong,
    by_type,
    checked_shape,
    object_shape,
    one_of_shape,
    record,
    text_shape,
    whole_shape,
)
from baton.core.pipelines.tables import FILTER, GROUPBY, JOIN, SELECT, SORT, TOP_K
from baton.core.pipelines.texts import DATE, EXTRACT, TRANSFORM
from baton.errors import Problem

URL: Final = 8_000
_MANY = 64


def _scalar(value: Any) -> Any:
    """Check a scalar. Raises `Wrong`."""
    if not isinstance(value, (str, int, float)):
        raise Wrong(f"this must be a text, a number or a boolean, not {type_of(value)}")
    return value


_SCALAR: Final = checked_shape(
    FieldShape("a text", {"type": ["string", "number", "boolean"]}, ANYTHING.read), _scalar
)

REQUEST = Primitive(
    "http_request",
    "Sends a request by the rules of `std.http`, and gives the body of its answer. Requests are sent first, in order.",
    (
        PrimitiveField("url", text_shape(URL, "an address"), "`https://…`"),
        PrimitiveField("method", one_of_shape("GET", "POST"), "POST carries an idempotency key", "GET"),
        PrimitiveField(
            "headers", object_shape(text_shape(URL), _MANY, "an object of texts"), "headers", None
        ),
        PrimitiveField(
            "query",
            object_shape(_SCALAR, _MANY, "an object"),
            "parameters: texts, numbers and booleans",
            None,
        ),
        PrimitiveField("json", ANYTHING, "the body of a POST", None),
        PrimitiveField(
            "timeout",
            by_type("a duration such as `5s`", str=text_shape(20), int=whole_shape(1, 900)),
            "of this request, to its last byte: `5s`, or seconds",
            None,
        ),
    ),
    None,
)


PRIMITIVES: Mapping[str, Primitive] = {
    one.op: one for one in (REQUEST, SORT, FILTER, SELECT, TOP_K, GROUPBY, JOIN, TRANSFORM, EXTRACT, DATE)
}


_OP, _INPUT, _AS = "op", "input", "as"
_sorted = msgspec.json.Encoder(order="sorted").encode
_NAME = text_shape(base.NAME, "a name")
_COMMON: Final = (
    PrimitiveField(_INPUT, _NAME, "an input of the pipeline, or the `as` of an earlier step; if left out, the result of the step before", None),
    PrimitiveField(_AS, _NAME, "a name for its result, for later steps", None),
)  # fmt: skip


class Step(NamedTuple):
    """One step of a plan.

    `sources`: origin of each value by the field that names it: name of an input, or number of a step.
    """

    primitive: Primitive
    fields: Mapping[str, Any]
    sources: Mapping[str, str | int]


class PipelinePlan(NamedTuple):
    """A pipeline without problems."""

    steps: tuple[Step, ...]

    @property
    def requests(self) -> dict[int, Mapping[str, Any]]:
        """The fields of each request, by the number of its step."""
        return {place: step.fields for place, step in enumerate(self.steps) if step.primitive.run is None}


class PipelineResult(NamedTuple):
    """`row_count` is None where `value` is no table. `preview` shows its beginning; `notes` say what may be a
    mistake.
    """

    value: Any
    row_count: int | None
    preview: Any
    notes: list[str]


# ---- reading -----------------------------------------------------------------------------------------------------


def schema(*, requests: bool) -> dict[str, Any]:
    """Return the JSON Schema of a list of steps."""
    steps = [_schema_of(one) for one in PRIMITIVES.values() if requests or one.run is not None]
    return {"type": "array", "minItems": 1, "maxItems": base.STEPS, "items": {"anyOf": steps}}


def _fields_of(primitive: Primitive) -> tuple[PrimitiveField, ...]:
    common = _COMMON if primitive.run is not None else _COMMON[1:]
    return (*primitive.fields, *common)


def _schema_of(primitive: Primitive) -> dict[str, Any]:
    made = dict(record(_fields_of(primitive), "a step").schema)
    return made | {
        "description": primitive.says,
        "properties": {_OP: {"const": primitive.op}, **made["properties"]},
        "required": [_OP, *made["required"]],
    }


def read_pipeline(steps: Any, names: Mapping[str, Any], *, requests: bool = False) -> PipelinePlan:
    """Read the plan of a pipeline whose inputs have these names. `requests`: true if it may send any.
    `requests`: whether it may send any.

    Raises `PipelineFailed` with every problem; paths begin at the list of steps.
    """
    told = PipelineProblems()
    if not isinstance(steps, list) or not 1 <= len(steps) <= base.STEPS:
        what = f"not {len(steps)}" if isinstance(steps, list) else f"not {type_of(steps)}"
        told.wrong("", f"a pipeline is a list of 1 to {base.STEPS} steps, {what}")
        raise PipelineFailed(INVALID, told)
    reader = _Reader(names, told, requests=requests)
    read = [reader.step(step, place) for place, step in enumerate(steps)]
    plan = PipelinePlan(tuple(step for step in read if step is not None))
    if not told:
        used = _last_uses(plan)
        for place in range(len(steps) - 1):
            if place not in used:
                right = (
                    "give it a name by `as` and let a later step have it as `input`, or leave the step out"
                )
                told.wrong(f"/{place}", "no later step uses its result", right)
    if told:
        raise PipelineFailed(INVALID, told)
    return plan


class _Reader:
    """Reads step after step, and knows which names there are so far."""

    def __init__(self, names: Mapping[str, Any], told: PipelineProblems, *, requests: bool) -> None:
        self._known: dict[str, str | int] = {name: name for name in names}
        self._inputs = [*names]
        self._told = told
        self._may_request = requests
        self._requests = 0

    def step(self, given: Any, place: int) -> Step | None:
        path = f"/{place}"
        primitive = self._primitive(given, path)
        if primitive is None:
            self._name(given.get(_AS) if isinstance(given, dict) else None, path, place)
            return None
        rest = {key: value for key, value in given.items() if key != _OP}
        before = len(self._told)
        fields = record(_fields_of(primitive), "a step").read(rest, path, self._told)
        if len(self._told) == before and primitive.check is not None:
            primitive.check(fields, path, self._told)
        sources = {}
        if primitive.run is not None:
            sources = {
                name: self._source(fields.get(name), path, name, place)
                for name in (_INPUT, *primitive.further)
            }
        self._name(fields.get(_AS), path, place)
        return Step(primitive, fields, sources)

    def _primitive(self, given: Any, path: str) -> Primitive | None:
        if not isinstance(given, dict):
            self._told.wrong(path, f"a step must be an object with `op`, not {type_of(given)}")
            return None
        op = given.get(_OP)
        primitive = PRIMITIVES.get(op) if isinstance(op, str) else None
        usable = [name for name, one in PRIMITIVES.items() if self._may_request or one is not REQUEST]
        if _OP not in given:
            self._told.wrong(path, "`op` is missing", f"it is one of {', '.join(usable)}")
        elif primitive is None:
            what = f"`{op[:40]}`" if isinstance(op, str) else type_of(op)
            hint = nearest(op, usable) if isinstance(op, str) else ""
            self._told.wrong(
                f"{path}/{_OP}", f"there is no step {what}", hint or f"there are {', '.join(usable)}"
            )
        elif primitive is REQUEST:
            self._requests += 1
            if not self._may_request:
                right = "use `std.http_pipeline`, or give the data as an input"
                self._told.wrong(
                    f"{path}/{_OP}", f"this pipeline sends no requests, so there is no `{op}`", right
                )
                return None
            if self._requests > base.REQUESTS:
                self._told.wrong(path, f"a pipeline sends at most {base.REQUESTS} requests")
        return primitive

    def _source(self, name: Any, path: str, field: str, place: int) -> str | int:
        """Return the origin of a step's input: the name of an input, or the number of a step."""
        if isinstance(name, str):
            if name not in self._known:
                hint = nearest(name, self._known) or f"there are {', '.join(self._known) or 'none'}"
                self._told.wrong(f"{path}/{field}", f"there is no input or earlier step `{name[:40]}`", hint)
            return self._known.get(name, name)
        if place == 0 and field == _INPUT and len(self._inputs) != 1:
            right = f"name one of {', '.join(self._inputs)}" if self._inputs else "the pipeline has no data"
            self._told.wrong(path, "`input` is missing", right)
        return self._inputs[0] if place == 0 and self._inputs else place - 1

    def _name(self, name: Any, path: str, place: int) -> None:
        if not isinstance(name, str):
            return
        if name in self._known:
            self._told.wrong(f"{path}/{_AS}", f"there is an input or an earlier step `{name[:40]}` already")
        self._known.setdefault(name, place)


def digest(steps: Any, names: Iterable[str]) -> str:
    """Return a digest that is equal for equal steps on inputs of the same names, whatever the data."""
    return hashlib.sha256(_sorted([steps, sorted(names)])).hexdigest()[:12]


# ---- running -----------------------------------------------------------------------------------------------------


def run_pipeline(
    plan: PipelinePlan,
    data: Mapping[str, Any],
    answers: Mapping[int, Any] | None = None,
    *,
    most_bytes: int,
    preview: int = 5,
) -> PipelineResult:
    """Return the result of the last step.

    `answers` are the bodies of the requests, by the number of their step.
    Raises `PipelineFailed` and no other exception, whatever the data are. The arguments stay unchanged.
    """
    answers = {} if answers is None else answers
    _check({"data": dict(data), "answers": list(answers.values())}, most_bytes, "the data of a pipeline", "")
    last = _last_uses(plan)
    made = dict[str | int, Any](data.items())
    work, notes = WorkBudget(), list[str]()
    for place, step in enumerate(plan.steps):
        made[place] = answers[place] if step.primitive.run is None else _run(step, place, made, work, notes)
        if step.primitive.op == "transform":  # it can put one value into another without end
            _check(made[place], most_bytes, "what it makes", f"/{place}")
        for source in step.sources.values():
            if last[source] == place:
                made.pop(source, None)
    value = made[len(plan.steps) - 1]
    _check(value, most_bytes, "the result of a pipeline", f"/{len(plan.steps) - 1}")
    is_table = isinstance(value, list) and all(isinstance(row, dict) for row in value)
    return PipelineResult(value, len(value) if is_table else None, _preview(value, preview), notes)


def _last_uses(plan: PipelinePlan) -> dict[str | int, int]:
    """Return the last step that needs each value: behind it, its memory is free."""
    return {source: place for place, step in enumerate(plan.steps) for source in step.sources.values()}


def _run(step: Step, place: int, made: Mapping[str | int, Any], work: WorkBudget, notes: list[str]) -> Any:
    path = f"/{place}"
    others = {step.fields[name]: made[step.sources[name]] for name in step.primitive.further}
    call = PrimitiveCall(made[step.sources[_INPUT]], step.fields, work, others)
    assert step.primitive.run is not None
    try:
        found = step.primitive.run(call)
    except Broken as error:
        at = f"{path}/{error.at}" if error.at else path
        raise PipelineFailed(error.code, [Problem(at, error.message, error.right)]) from error
    notes += [f"{path}: {note}" for note in dict.fromkeys(call.notes)]
    return found


def _check(value: Any, most_bytes: int, what: str, path: str) -> None:
    """Check a value. Raises `PipelineFailed` if it is too large or no JSON."""
    try:
        excess = excess_of(value, most_bytes)
        if not excess:
            _encode(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise PipelineFailed(
            INVALID, [Problem(path, f"{what} cannot be JSON: {str(error)[:200]}")]
        ) from error
    if excess:
        raise PipelineFailed(
            TOO_LARGE, [Problem(path, f"{what}: {excess}", "filter, select or take fewer first")]
        )


# Refuses NaN, which msgspec would write as null.
_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False).encode


def _preview(value: Any, rows: int, level: int = 0) -> Any:
    """Return the beginning of a value, for a person or a model to look at."""
    if isinstance(value, str):
        return value if len(value) <= base.PREVIEW_TEXT else f"{value[: base.PREVIEW_TEXT - 1]}…"
    if isinstance(value, (dict, list)) and level == base.PREVIEW_LEVELS:
        return "…" if value else value
    if isinstance(value, dict):
        shown = list(value.items())[: base.PREVIEW_ITEMS]
        return {_preview(key, 0): _preview(one, rows, level + 1) for key, one in shown}
    if isinstance(value, list):
        most = rows if level == 0 else base.PREVIEW_ITEMS
        return [_preview(one, rows, level + 1) for one in value[:most]]
    return value
