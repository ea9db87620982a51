"""The schema of the value that an expression names, as far as it is known before a saga runs.

Where schemas come from.
What a schema says is in conditions/schemafaults.py; problems of
expressions that ask for something else are in expressions.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from baton.core.conditions.reading import expression_text
from baton.core.conditions.schemafaults import Schema
from baton.core.documents.compile.analysis.source import output_schema
from baton.core.expressions import SAGA_FIELDS, Path, lone_path
from baton.core.log.scopes import FAILED, NOT_BEGUN, RUNNING, STOPPED, SUCCEEDED
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.compile.analysis.source import Source
    from baton.core.documents.parts.node import MapModel

_TEXT = {"type": "string"}
_SAGA = {"type": "object", "properties": dict.fromkeys(SAGA_FIELDS, _TEXT)}
_LOOP = {"type": "object", "properties": {"iteration": {"type": "integer"}}}
_ERROR = {"properties": {"node": _TEXT, "code": _TEXT, "message": _TEXT}}
_ERRORS = {"type": "array", "items": {"type": "object", **_ERROR}}
_LAST_ERROR = {
    "type": ["object", "null"],
    "properties": {
        **_ERROR["properties"],
        **dict.fromkeys(("class", "action", "domain"), _TEXT),
        "at": {"type": ["string", "null"]},
        "retryable": {"type": "boolean"},
        "status": {"type": "integer"},
        "attempt": {"type": "integer"},
        "errors": _ERRORS,
        "answer": {},
        "batch": {},
    },
}
_NOTHING = Schema(None, None)
# A value may be made of another that is made of another; beyond so many nothing is known.
_MOST_STEPS = 20


def follow_path(source: Source, path: Path, node: str) -> tuple[Schema, int]:
    """Return the schema of the value that a path at `node` names, as far as it leads,
    and how many of its steps could be taken.
    """
    length, steps = len(path.inner), known_steps(path)
    if len(steps) < length:
        # What is behind an index that only the saga knows is not known here.
        here, taken = follow_path(
            source, replace(path, steps=path.steps[: len(path.steps) - length + len(steps)]), node
        )
        return (here, taken) if taken < len(steps) else (_NOTHING, length)
    for _ in range(_MOST_STEPS):
        name = node if path.root in {"output", "step"} else path.node
        if not (written := _written(source, name)):
            here, taken = _of(source, path, name, node).follow(steps)
            break
        value, taken = _inside(getattr(source.nodes[name], written), steps)
        further = lone_path(value)
        if further is None:
            here = Schema(_of_template(value), None)
            break
        if further.may_be_null or further.root not in _PLAIN or further.picks:
            return _NOTHING, length
        # The value is made of another: on into that.
        path, node, steps = further, name, (*known_steps(further), *steps[taken:])
    else:
        return _NOTHING, length
    left = len(steps) - taken
    # Problems further away are told there.
    return (here, length - left) if left <= length else (_NOTHING, length)


def known_steps(path: Path) -> tuple[str | int, ...]:
    """Return the inner steps of a path, up to the first that is known only when the saga runs."""
    found: list[str | int] = []
    for step in path.inner:
        if isinstance(step, Path):
            break
        found.append(step)
    return tuple(found)


def _inside(value: Any, steps: tuple[str | int, ...]) -> tuple[Any, int]:
    """Follow the steps into a value as it is written; return the part, and how many steps led there."""
    for taken, step in enumerate(steps):
        is_part = step in value if isinstance(value, dict) else isinstance(step, int) and _has(value, step)
        if not is_part:
            return value, taken
        value = value[step]
    return value, len(steps)


def _has(value: Any, index: int) -> bool:
    return isinstance(value, list) and index < len(value)


def _written(source: Source, name: str) -> str:
    """Return the field of the node that its output stands in, or an empty string."""
    kind = source.kinds.get(name)
    is_plain = kind is not None and kind.written and source.nodes[name].map is None
    return kind.key if kind and is_plain and source.nodes[name].output_schema is None else ""


def _of(source: Source, path: Path, name: str, node: str) -> Schema:
    """Return the schema of the value that the path goes into: a node's output, the saga's input,
    or a value of the engine.
    """
    if path.root == "input":
        return Schema(source.model.input, source.model.input)
    if path.root == "join":
        return Schema(_join(source.edges.before.get(node, ())), None)
    if path.root == "step" and path.steps[0] == "key":
        return Schema({"type": "string"}, None)
    if path.root == "step" and path.steps[0] == "input":
        taker = source.kinds[node].taker(source, source.nodes[node])
        return _NOTHING if taker is None else Schema(taker.parameters, taker.parameters)
    if path.root in _ROOTS:
        return Schema(_ROOTS[path.root], None)
    if name not in source.nodes:
        return _NOTHING
    declared = output_schema(source, name)
    given = source.kinds[name].gives(source, source.nodes[name], declared)
    if (many := source.nodes[name].map) is not None:
        given = _of_items(given, many)
        return Schema(given, given)
    return Schema(given, given if declared is None else declared)


def _of_items(given: Any, many: MapModel) -> dict[str, Any]:
    """Return the schema of the output of a node that is done for each item of a list."""
    # What a schema refers to inside itself is not there any more.
    output = given if isinstance(given, dict) and "$ref" not in str(given) else {}
    if not many.tells_all:
        return {"type": "array", "items": output}
    error = {"type": "object", "properties": {"code": _TEXT, "message": _TEXT, "errors": _ERRORS}}
    result = {"index": {"type": "integer"}, "status": _TEXT, "output": output, "error": error}
    rows = {"type": "array", "items": {"type": "object", "properties": result}}
    return _batch(rows, *((RUNNING,) if many.goes_on else ()))


def _join(names: tuple[str, ...]) -> dict[str, Any]:
    outputs = {"type": "object", "properties": {name: {} for name in names}}
    error = {"type": "object", "properties": {**_ERROR["properties"], "errors": _ERRORS}}
    arrived = {"type": "array", "items": _TEXT}
    result = {
        "type": "object",
        "properties": {"status": _TEXT, "output": {}, "error": error},
    }
    batch = _batch({"type": "object", "properties": dict.fromkeys(names, result)})
    inside = {"outputs": outputs, "arrived": arrived, "errors": _ERRORS, "batch": batch}
    return {"type": "object", "properties": inside}


def _batch(results: dict[str, Any], *more: str) -> dict[str, Any]:
    """Return the schema of the results of several things."""
    counts = {key: {"type": "integer"} for key in (SUCCEEDED, FAILED, STOPPED, NOT_BEGUN, *more)}
    return {"type": "object", "properties": {**counts, "results": results}}


def _of_template(value: Any) -> Any:
    """Return the JSON Schema of a value with expressions: its outermost type, and the names of its fields."""
    if isinstance(value, dict):
        return {"type": "object", "properties": {name: {} for name in value}}
    for kind, name in _TYPES.items():
        if isinstance(value, kind):
            return {"type": name}
    return {"type": "null"}


_PLAIN = frozenset({"input", "ctx", "saga", "loop"})
_ROOTS = {"index": {"type": "integer"}, "saga": _SAGA, "loop": _LOOP, "last_error": _LAST_ERROR}
# A boolean is an integer to Python, so that it comes first.
_TYPES = {list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def check_argument(
    source: Source, place: str, path: Path, taker: str, key: str, *, takes_null: bool
) -> Iterator[Problem]:
    """Yield a problem for a required argument that is one expression, which gives nothing, or null,
    when the input has no such field.
    """
    steps = known_steps(path)
    parts = list(_may_be_missing(source, path)) if path.root == "input" else []
    found = next((part for part in parts if not (takes_null and part[0] in path.marks)), None)
    if found is None:
        return
    taken, schema = found
    name, text = steps[taken - 1], expression_text("input", steps[:taken])
    if _is_asked_for(source, text, str(name)):
        return
    is_filled = isinstance(schema, dict) and "default" in schema
    default = "; a `default` is not filled in" if is_filled else ""
    message = f"`{path.text}`: the input may be without `{name}`, and `{taker}` needs `{key}`{default}"
    hint = f"add `{name}` to `required` of the input's schema, or let the node run `when: has({text})`"
    if takes_null:
        marked = _marked(steps, frozenset(taken for taken, _ in parts))
        hint = f"write `${{{marked}}}`, which is null without it; or {hint}"
    yield Problem(place, message, hint)


def _may_be_missing(source: Source, path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the parts of the path that the input may be without: how many steps lead to each,
    and its schema.
    """
    root = source.model.input
    here = Schema(root, root).resolved()
    for taken, step in enumerate(path.inner, 1):
        fields = here.value.get("properties") if isinstance(here.value, dict) else None
        if not isinstance(fields, dict) or step not in fields:
            return  # of which nothing is known, or which has been told
        required = here.value.get("required")
        if not isinstance(required, list) or step not in required:
            yield taken, fields[step]
        here = Schema(fields[step], root).resolved()


def _marked(steps: tuple[str | int, ...], marks: frozenset[int]) -> str:
    """Return the expression with `?` behind the parts that may be missing."""
    texts = [expression_text("input", steps[:taken]) for taken in range(len(steps) + 1)]
    marked = (
        text.removeprefix(before) + "?" * (taken in marks)
        for taken, (before, text) in enumerate(pairwise(texts), 1)
    )
    return texts[0] + "".join(marked)


def _is_asked_for(source: Source, text: str, name: str) -> bool:
    """Return true if any condition of the document may ensure that the node runs only with the field."""
    if text not in source.asked_for:
        source.asked_for[text] = any(_asks(value, text, name) for value in source.asked)
    return source.asked_for[text]


def _asks(value: Any, text: str, name: str) -> bool:
    if isinstance(value, str):
        return re.search(rf"has\(\s*{re.escape(text)}\s*\)", value) is not None
    if isinstance(value, dict) and (inner := value.get("cel")) is not None:
        return _asks(inner, text, name)
    if (
        isinstance(value, dict)
        and (inner := value.get("not", value.get("all", value.get("any")))) is not None
    ):
        return any(_asks(one, text, name) for one in (inner if isinstance(inner, list) else [inner]))
    return name in str(value)  # the other kinds of condition have many ways to ask
