"""Divisions in CEL expressions that drop the fraction where an author may not expect it: of whole numbers, `7 / 2` is 3.

Only for documents as they are compiled; a stored condition is judged as CEL says.
"""

from __future__ import annotations

from collections.abc import Iterator

from baton.core.conditions.celtree import Call, Const, Field, Items, Loop, Tree

_DOUBLE, _WHOLE, _EITHER = "double", "whole", ""
_ARITHMETIC = frozenset({"_+_", "_-_", "_*_", "_/_", "_%_", "-_"})
_WHOLE_FUNCTIONS = frozenset({"int", "uint", "size"})


def unclear_division(tree: Tree) -> tuple[str, str] | None:
    """Message and suggestion for the first division that may drop a fraction without saying so."""
    for call in _divisions(tree):
        kinds = [_kind(arg) for arg in call.args]
        left, right = call.args
        if (
            isinstance(left, Const)
            and isinstance(right, Const)
            and isinstance(left.value, int)
            and isinstance(right.value, int)
        ):
            if right.value and left.value % right.value:
                given = f"{left.value} / {right.value}"
                return f"`{given}` drops the fraction", f"write `{left.value}.0 / {right.value}.0`"
        elif _EITHER in kinds and _DOUBLE not in kinds:
            return (
                "`/` drops the fraction where both sides are whole numbers: 7 / 2 is 3",
                "write `double(a) / double(b)`, or `int(a) / int(b)` if it is to be dropped",
            )
    return None


def _divisions(tree: Tree) -> Iterator[Call]:
    if isinstance(tree, Call) and tree.function == "_/_":
        yield tree
    for part in _inside(tree):
        yield from _divisions(part)


def _inside(tree: Tree) -> tuple[Tree, ...]:
    if isinstance(tree, Call):
        return tree.args
    if isinstance(tree, Items):
        return tree.items
    if isinstance(tree, Loop):
        return (tree.over, tree.start, tree.goes_on, tree.step, tree.end)
    return (tree.operand,) if isinstance(tree, Field) else ()


def _kind(tree: Tree) -> str:
    if isinstance(tree, Const):
        return _WHOLE if isinstance(tree.value, int) else _DOUBLE
    if not isinstance(tree, Call):
        return _EITHER
    if tree.function in _ARITHMETIC:
        kinds = {_kind(arg) for arg in tree.args}
        return _DOUBLE if _DOUBLE in kinds else _EITHER if _EITHER in kinds else _WHOLE
    return _DOUBLE if tree.function == "double" else _WHOLE if tree.function in _WHOLE_FUNCTIONS else _EITHER
