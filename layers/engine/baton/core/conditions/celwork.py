"""An upper bound of what a CEL expression can cost with the data at hand, worked out before it is run.

Two lists added in every round of a chain of `map` double each time, and the library would go on until the memory is
used up: it bounds rounds, but neither sizes nor time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from baton.core.conditions import limits
from baton.core.conditions.celnames import Steps, chain, known_part
from baton.core.conditions.celtree import Call, Const, Field, Items, Loop, Name, Tree
from baton.core.conditions.patterns import time_of
from baton.core.conditions.values import Shape, units

SMALL = Shape((1,), (0,), (0,))
_NOTHING = Shape((0,), (0,), (0,))

_COMPARE = {"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"}
_CONVERT = {"string", "bytes", "int", "uint", "double", "timestamp", "duration", "bool"}


class TooMuch(Exception):
    """The bound is above what a condition may use."""


def check_work(tree: Tree, shapes: Mapping[tuple[str, Steps], Shape]) -> None:
    """Raises `TooMuch`. `shapes` are those of the values it reads; one that is not there has none."""
    bound = _Bound(shapes)
    bound.of(tree, _Scope({}, 1))


@dataclass(frozen=True)
class _Scope:
    """The variables of the loops around, and how often what stands here is asked."""

    variables: Mapping[str, Shape]
    times: int


class _Bound:
    """One pass over the tree."""

    def __init__(self, shapes: Mapping[tuple[str, Steps], Shape]) -> None:
        self._shapes = shapes
        self._work = 0

    def _spend(self, scope: _Scope, each: int) -> None:
        self._work += scope.times * each
        if self._work > limits.CEL_WORK:
            raise TooMuch

    def of(self, tree: Tree, scope: _Scope) -> Shape:
        """The shape of what it gives."""
        self._spend(scope, 1)
        shape = self._shape(tree, scope)
        if shape.size > limits.CEL_BUILT:
            raise TooMuch
        return shape

    def _shape(self, tree: Tree, scope: _Scope) -> Shape:
        named = chain(tree, frozenset(scope.variables))
        if named is not None:
            root, steps = named
            known, rest = known_part(steps)
            return _down(self._shapes.get((root, known), SMALL), len(rest))
        if isinstance(tree, Const):
            size = (
                units(tree.value)
                if isinstance(tree.value, str)
                else 1 + limits.CEL_LENGTH // 32 * tree.is_bytes
            )
            return Shape((size,), (0,), (size,))
        if isinstance(tree, Name):
            return scope.variables.get(tree.name, SMALL)
        if isinstance(tree, Field):
            inner = self.of(tree.operand, scope)
            return SMALL if tree.is_test else _down(inner)
        if isinstance(tree, Items):
            return _listed([self.of(item, scope) for item in tree.items])
        if isinstance(tree, Loop):
            return self._loop(tree, scope)
        return self._call(tree, [self.of(arg, scope) for arg in tree.args], scope)

    def _call(self, call: Call, args: list[Shape], scope: _Scope) -> Shape:
        function, first, last = call.function, args[0], args[-1]
        if function in _COMPARE:
            self._spend(scope, min(first.size, last.size))
        elif function == "_?_:_":
            return _either(args[1], last)
        elif function == "_[_]":
            return _down(first)
        elif function == "dyn":
            return first
        elif function == "_+_":
            self._spend(scope, first.size + last.size)
            return _joined(first, last)
        elif function == "@in":
            self._spend(scope, last.size)
        elif function == "contains":
            self._spend(scope, first.text + first.text * last.text // 8)
        elif function in {"size", "startsWith", "endsWith"}:
            self._spend(scope, first.text)
        elif function == "matches":
            pattern = call.args[1]
            assert isinstance(pattern, Const)
            self._spend(scope, time_of(str(pattern.value), first.text))
        elif function in _CONVERT:
            self._spend(scope, first.text)
            size = first.text + 1
            return Shape((size,), (0,), (size,))
        return SMALL

    def _loop(self, loop: Loop, scope: _Scope) -> Shape:
        over = self.of(loop.over, scope)
        start = self.of(loop.start, scope)
        rounds = min(over.width, limits.CEL_ROUNDS)
        is_list = isinstance(loop.start, Items)
        each = {**scope.variables, loop.variable: _down(over), loop.result: _NOTHING if is_list else start}
        inside = _Scope(each, min(scope.times * rounds, limits.CEL_ROUNDS))
        self.of(loop.goes_on, inside)
        grown = self.of(loop.step, inside)
        result = start
        if is_list:  # the library copies the list in every round, and keeps all the copies
            self._spend(scope, rounds * rounds // 2)
            result = Shape(
                (1 + rounds * grown.size, *grown.sizes[1:]),
                (rounds * grown.width, *grown.widths[1:]),
                (0, *grown.texts[1:]),
            )
        return self.of(loop.end, _Scope({**each, loop.result: result}, scope.times))


def _down(shape: Shape, steps: int = 1) -> Shape:
    """What is at most inside."""
    if steps >= len(shape.sizes):
        return SMALL
    return Shape(shape.sizes[steps:], shape.widths[steps:], shape.texts[steps:])


def _each(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    longer, shorter = (left, right) if len(left) >= len(right) else (right, left)
    return tuple(max(*pair) for pair in zip(longer, shorter, strict=False)) + longer[len(shorter) :]


def _either(left: Shape, right: Shape) -> Shape:
    return Shape(
        _each(left.sizes, right.sizes), _each(left.widths, right.widths), _each(left.texts, right.texts)
    )


def _joined(left: Shape, right: Shape) -> Shape:
    both = _either(left, right)
    return Shape(
        (left.size + right.size, *both.sizes[1:]),
        (left.width + right.width, *both.widths[1:]),
        (left.text + right.text, *both.texts[1:]),
    )


def _listed(items: list[Shape]) -> Shape:
    inside = Shape((), (), ())
    for item in items:
        inside = _either(inside, item)
    return Shape(
        (1 + sum(item.size for item in items), *inside.sizes),
        (len(items), *inside.widths),
        (0, *inside.texts),
    )
