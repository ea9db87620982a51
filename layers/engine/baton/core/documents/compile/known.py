"""The schema of the value that an expression names, as far as it is known before a saga runs.

Where schemas come from.
What a schema says is in conditions/schemafaults.py; problems of
expressions that ask for something else are in expressions.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from baton.core.conditions import model
from baton.core.conditions.model import Cel, Compare, Condition, JsonPath
from baton.core.conditions.reading import expression_text
from baton.core.conditions.schemafaults import TYPES, Schema, in_words
from baton.core.conditions.values import MEMBERSHIPS, ORDERINGS, is_number
from baton.core.documents.compile.source import output_schema
from baton.core.expressions import SAGA_FIELDS, ExpressionError, Path, lone_path, nearest, parse
from baton.core.failures.codes import CLASSES
from baton.core.failures.names import code_of
from baton.core.log.scopes import FAILED, NOT_BEGUN, RUNNING, STOPPED, SUCCEEDED
from baton.core.on_demand import OnDemand
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.conditions import cel, celnames, reading
    from baton.core.conditions.celnames import Tree
    from baton.core.documents.compile.source import Source
    from baton.core.documents.parts.node import MapModel
else:
    cel = OnDemand("baton.core.conditions.cel")
    celnames = OnDemand("baton.core.conditions.celnames")
    reading = OnDemand("baton.core.conditions.reading")

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


_OPERATORS = {
    "_==_": "==", "_!=_": "!=", "_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">=", "@in": "in",
}  # fmt: skip
_QUERY = re.compile(r"\$((?:\.[A-Za-z_][A-Za-z0-9_]*)*)")
_FAILURE = re.compile(r"(?:last_error|join)(?:\.errors\[[0-9]+\])?\.(code|class)")
_ANY = TYPES
_MOST_VALUES = 100


@dataclass(frozen=True)
class _Side:
    """One side of a comparison: its text, the types that it can have, and the values if these are listed.

    `values` are those of a literal, or all that a schema allows; null where they are not known.
    """

    text: str
    types: frozenset[str]
    values: tuple[Any, ...] | None = None
    is_literal: bool = False

    @property
    def described(self) -> str:
        """Description of the side, in words."""
        if self.is_literal:
            return f"{self.text} is {in_words(self.types)}".removeprefix(" is ")
        if self.values is not None:
            return f"`{self.text}` is one of {', '.join(map(_json, self.values[:10]))}"
        return f"`{self.text}` is {in_words(self.types)}"


def check_comparisons(source: Source, place: str, condition: Condition, node: str) -> Iterator[Problem]:
    """Yield the comparisons of a node's condition that never hold, or always."""
    for leaf in model.leaves(condition):
        for operator, left, right in _compared(source, leaf, node):
            if (told := _told(operator, left, right)) is not None:
                yield Problem(place, *told)


def _told(operator: str, left: _Side, right: _Side) -> tuple[str, str] | None:
    if operator in MEMBERSHIPS:
        return None
    if operator in ORDERINGS:
        if _overlap(left.types & _ORDERED, right.types & _ORDERED):
            return None
        message = f"`{operator}` compares two numbers or two texts: {left.described}, and {right.described}"
        return message, _hint(left, right)
    one, other = (left, right) if left.is_literal else (right, left)
    if not _overlap(left.types, right.types):
        if one.types == {"null"}:
            return f"{other.described}, and never null", f"ask `has({other.text})` for what may be left out"
        always = "`!=` always holds" if operator == "!=" else "they are never equal"
        return f"{left.described}, and {right.described}, so that {always}", _hint(left, right)
    if one.is_literal and one.values and (found := _FAILURE.fullmatch(other.text)) is not None:
        meant = _meant(found[1], one.values[0])
        return None if meant is None else (f"`{other.text}` is never {one.text}", meant)
    if not one.is_literal or not one.values or other.values is None or one.values[0] in other.values:
        return None
    texts = [value for value in other.values[:_MOST_VALUES] if isinstance(value, str)]
    return f"{other.described}, and never {one.text}", nearest(str(one.values[0]), texts)


def _meant(field: str, value: Any) -> str | None:
    """Suggest a code or a class in place of one that no failure has as it
    is spelled here; None where it is right.
    """
    if not isinstance(value, str) or not value:
        return None
    code = code_of(value)
    if field == "class" and value not in CLASSES:
        return f'write "{code}"' if code in CLASSES else f"the classes are {', '.join(CLASSES)}"
    return None if code == value else f'write "{code}"'


_ORDERED = frozenset({"string", "number", "integer"})


def _overlap(left: frozenset[str], right: frozenset[str]) -> bool:
    return bool(_plain(left) & _plain(right))


def _plain(types: frozenset[str]) -> frozenset[str]:
    return types | {"number"} if "integer" in types else types


def _hint(left: _Side, right: _Side) -> str:
    """Suggest a spelling for a literal of the wrong type."""
    literal, other = (left, right) if left.is_literal else (right, left)
    value = literal.values[0] if literal.values else None
    wanted = _plain(other.types)
    if isinstance(value, str) and (
        ("number" in wanted and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value))
        or ("boolean" in wanted and value in {"true", "false"})
    ):
        return f"write {value} without quotation marks"
    if is_number(value) and "string" in wanted:
        return f'write "{value}" with quotation marks'
    return ""


# ---- what is compared --------------------------------------------------------------------------------------------


def _compared(source: Source, leaf: Condition, node: str) -> Iterator[tuple[str, _Side, _Side]]:
    if isinstance(leaf, Cel):
        yield from _in_tree(source, cel.cel_plan(leaf.expression).tree, node, frozenset())
    elif isinstance(leaf, Compare):
        yield leaf.operator, _side(source, leaf.left, node), _side(source, leaf.right, node)
    elif isinstance(leaf, JsonPath) and leaf.operator in {"==", "!=", *ORDERINGS}:
        query = _QUERY.fullmatch(leaf.query.strip())
        if query is not None:
            yield leaf.operator, _of_path(source, parse(leaf.of + query[1]), node), _literal(leaf.value)


def _side(source: Source, value: Any, node: str) -> _Side:
    path = lone_path(value)
    return _literal(value) if path is None else _of_path(source, path, node)


def _literal(value: Any) -> _Side:
    if isinstance(value, str) and "${" in value:
        return _Side("", frozenset({"string"}), is_literal=True)  # with an expression in it
    kinds = {bool: "boolean", str: "string", type(None): "null", list: "array", dict: "object"}
    return _Side(_json(value), frozenset({kinds.get(type(value), "number")}), (value,), is_literal=True)


def _of_path(source: Source, path: Path, node: str) -> _Side:
    here, taken = follow_path(source, path, node)
    if taken < len(path.inner):
        return _Side(path.text, _ANY)
    types = here.types()
    if path.may_be_null and types != _ANY:
        types |= {"null"}
    value = here.value
    listed = (
        value.get("enum", [value["const"]] if "const" in value else None) if isinstance(value, dict) else None
    )
    is_listed = isinstance(listed, list) and not path.may_be_null
    return _Side(path.text, types, tuple(listed) if is_listed and listed else None)


def _in_tree(
    source: Source, tree: Tree, node: str, bound: frozenset[str]
) -> Iterator[tuple[str, _Side, _Side]]:
    if isinstance(tree, celnames.CelCall):
        operator = _OPERATORS.get(tree.function)
        if operator == "in" and isinstance(tree.args[1], celnames.Items) and tree.args[1].items:
            yield from _in_list(source, tree.args[0], tree.args[1].items, node, bound)
        elif operator is not None and operator != "in":
            left, right = (_of_tree(source, arg, node, bound) for arg in tree.args)
            yield operator, left, right
        inner: tuple[Tree, ...] = tree.args
    elif isinstance(tree, celnames.CelMacro):
        yield from _in_tree(source, tree.over, node, bound)
        bound |= {tree.variable, tree.result}
        inner = (tree.goes_on, tree.step, tree.end)
    elif isinstance(tree, celnames.Items):
        inner = tree.items
    else:
        inner = (tree.operand,) if isinstance(tree, celnames.CelField) else ()
    for part in inner:
        yield from _in_tree(source, part, node, bound)


def _in_list(
    source: Source, one: Tree, items: tuple[Tree, ...], node: str, bound: frozenset[str]
) -> Iterator[tuple[str, _Side, _Side]]:
    """Yield `x in [a, b]`, if it holds for no item."""
    left = _of_tree(source, one, node, bound)
    sides = [_of_tree(source, item, node, bound) for item in items]
    if all(side.is_literal and _told("==", left, side) is not None for side in sides):
        yield "==", left, sides[0]


def _of_tree(source: Source, tree: Tree, node: str, bound: frozenset[str]) -> _Side:
    if isinstance(tree, celnames.Const) and tree.type:
        values = (tree.value,) if tree.value is not None else None
        text = _json(tree.value) if values else tree.type
        return _Side(text, frozenset({tree.type}), values, is_literal=True)
    named = celnames.chain(tree, bound)
    if named is None:
        return _Side("", _ANY)
    try:
        path = reading.path_of(reading.expression_text(*named))
    except ExpressionError:
        return _Side("", _ANY)
    return _of_path(source, path, node)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()[:80]
