"""Comparisons in conditions that come out the same whatever is given, because of the types of both sides.

Only what schemas prove.
Two values that stand in the condition itself are in conditions/, fields
that nothing produces in expressions.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from baton.core.conditions import model
from baton.core.conditions.model import Cel, Compare, Condition, JsonPath
from baton.core.conditions.schemafaults import TYPES, in_words
from baton.core.conditions.values import MEMBERSHIPS, ORDERINGS, is_number
from baton.core.documents.compile.checks.known import follow_path
from baton.core.expressions import ExpressionError, Path, lone_path, nearest, parse
from baton.core.failures.codes import CLASSES
from baton.core.failures.names import code_of
from baton.core.on_demand import OnDemand
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.conditions import cel, celnames, reading
    from baton.core.conditions.celnames import Tree
    from baton.core.documents.compile.analysis.source import Source
else:
    cel = OnDemand("baton.core.conditions.cel")
    celnames = OnDemand("baton.core.conditions.celnames")
    reading = OnDemand("baton.core.conditions.reading")

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
