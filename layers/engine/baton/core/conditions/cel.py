"""Conditions in the Common Expression Language: compiled once, evaluated on no more data than they name.

The library returns errors as values, which are true in Python. The type of an answer is checked before its
value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from baton.core.conditions import model
from baton.core.conditions.celnames import (
    ALL_VARIABLES,
    FUNCTIONS,
    MACROS,
    VARIABLES,
    CelCall,
    CelField,
    CelMacro,
    Const,
    Items,
    Name,
    RefusedExpression,
    Steps,
    Tree,
    chain,
    find_names,
    known_part,
    paths,
    read_tree,
    unclear_division,
)
from baton.core.conditions.model import (
    ERROR,
    INVALID,
    MEMORY,
    MISSING,
    NOT_BOOLEAN,
    TOO_LARGE,
    TYPE,
    Cel,
    ConditionError,
    Facts,
    Fault,
)
from baton.core.conditions.patterns import time_of
from baton.core.conditions.reading import expression_text, gather, path_of
from baton.core.conditions.values import ValueShape, check_size, measure, units
from baton.core.expressions import Path, nearest

SMALL = ValueShape((1,), (0,), (0,))
_NOTHING = ValueShape((0,), (0,), (0,))

_COMPARE = {"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"}
_CONVERT = {"string", "bytes", "int", "uint", "double", "timestamp", "duration", "bool"}


class TooMuch(Exception):
    """Error for an expression whose upper bound of work exceeds the limit of a condition."""


def check_work(tree: Tree, shapes: Mapping[tuple[str, Steps], ValueShape]) -> None:
    """Raise `TooMuch` if the expression can exceed the limit of work.

    `shapes` are the shapes of the values that it reads. A value that is not in `shapes` is absent and has
    no size.
    """
    bound = _Bound(shapes)
    bound.of(tree, _Scope({}, 1))


@dataclass(frozen=True)
class _Scope:
    """The variables of the enclosing loops, and the number of times that the expression inside is
    evaluated.
    """

    variables: Mapping[str, ValueShape]
    times: int


class _Bound:
    """Upper bound of the work of an expression, in one pass over its tree."""

    def __init__(self, shapes: Mapping[tuple[str, Steps], ValueShape]) -> None:
        self._shapes = shapes
        self._work = 0

    def _spend(self, scope: _Scope, each: int) -> None:
        self._work += scope.times * each
        if self._work > model.CEL_WORK:
            raise TooMuch

    def of(self, tree: Tree, scope: _Scope) -> ValueShape:
        """Return the shape of the expression's value. Raises `TooMuch`."""
        self._spend(scope, 1)
        shape = self._shape(tree, scope)
        if shape.size > model.CEL_BUILT:
            raise TooMuch
        return shape

    def _shape(self, tree: Tree, scope: _Scope) -> ValueShape:
        named = chain(tree, frozenset(scope.variables))
        if named is not None:
            root, steps = named
            known, rest = known_part(steps)
            return _down(self._shapes.get((root, known), SMALL), len(rest))
        if isinstance(tree, Const):
            size = (
                units(tree.value)
                if isinstance(tree.value, str)
                else 1 + model.CEL_LENGTH // 32 * tree.is_bytes
            )
            return ValueShape((size,), (0,), (size,))
        if isinstance(tree, Name):
            return scope.variables.get(tree.name, SMALL)
        if isinstance(tree, CelField):
            inner = self.of(tree.operand, scope)
            return SMALL if tree.is_test else _down(inner)
        if isinstance(tree, Items):
            return _listed([self.of(item, scope) for item in tree.items])
        if isinstance(tree, CelMacro):
            return self._loop(tree, scope)
        return self._call(tree, [self.of(arg, scope) for arg in tree.args], scope)

    def _call(self, call: CelCall, args: list[ValueShape], scope: _Scope) -> ValueShape:
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
            return ValueShape((size,), (0,), (size,))
        return SMALL

    def _loop(self, loop: CelMacro, scope: _Scope) -> ValueShape:
        over = self.of(loop.over, scope)
        start = self.of(loop.start, scope)
        rounds = min(over.width, model.CEL_ROUNDS)
        is_list = isinstance(loop.start, Items)
        each = {**scope.variables, loop.variable: _down(over), loop.result: _NOTHING if is_list else start}
        inside = _Scope(each, min(scope.times * rounds, model.CEL_ROUNDS))
        self.of(loop.goes_on, inside)
        grown = self.of(loop.step, inside)
        result = start
        if is_list:  # the library copies the list in every round, and keeps all the copies
            self._spend(scope, rounds * rounds // 2)
            result = ValueShape(
                (1 + rounds * grown.size, *grown.sizes[1:]),
                (rounds * grown.width, *grown.widths[1:]),
                (0, *grown.texts[1:]),
            )
        return self.of(loop.end, _Scope({**each, loop.result: result}, scope.times))


def _down(shape: ValueShape, steps: int = 1) -> ValueShape:
    """Return an upper bound of the shape of the values inside."""
    if steps >= len(shape.sizes):
        return SMALL
    return ValueShape(shape.sizes[steps:], shape.widths[steps:], shape.texts[steps:])


def _each(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    longer, shorter = (left, right) if len(left) >= len(right) else (right, left)
    return tuple(max(*pair) for pair in zip(longer, shorter, strict=False)) + longer[len(shorter) :]


def _either(left: ValueShape, right: ValueShape) -> ValueShape:
    return ValueShape(
        _each(left.sizes, right.sizes), _each(left.widths, right.widths), _each(left.texts, right.texts)
    )


def _joined(left: ValueShape, right: ValueShape) -> ValueShape:
    both = _either(left, right)
    return ValueShape(
        (left.size + right.size, *both.sizes[1:]),
        (left.width + right.width, *both.widths[1:]),
        (left.text + right.text, *both.texts[1:]),
    )


def _listed(items: list[ValueShape]) -> ValueShape:
    inside = ValueShape((), (), ())
    for item in items:
        inside = _either(inside, item)
    return ValueShape(
        (1 + sum(item.size for item in items), *inside.sizes),
        (len(items), *inside.widths),
        (0, *inside.texts),
    )


# `loop` is a reserved word of CEL, so the library gets another name of the same length.
_LOOP = "l00p"
_WORDS = re.compile(
    r"""[bB]?[rR][bB]?(?:\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|"[^"\n]*"|'[^'\n]*')
    |\"{3}(?:\\[\s\S]|[^\\])*?\"{3}|'{3}(?:\\[\s\S]|[^\\])*?'{3}
    |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'
    |//[^\n]*|\.[ \t\r\n]*[A-Za-z_][A-Za-z0-9_]*|[A-Za-z_][A-Za-z0-9_]*""",
    re.VERBOSE,
)
_PLACE = re.compile(r"ERROR: [^:]*:(-?\d+):(-?\d+): (.*)")
_OVERLOAD = re.compile(
    r"o matching overloads? (?:found )?(?:for|:) '?([^'( ]+)'?(?: applied to '|)\(?([^)]*)\)?"
)
_TYPES = {"int64": "int", "uint64": "uint", "null_type": "null", "dyn": "any", "bool": "boolean"}
# Sizes of data for which the work is worked out when an expression is compiled.
_FREE = (1_024, 256, 64, 16, 1)


@dataclass(frozen=True)
class CelPlan:
    """A compiled expression, with the values that it reads.

    `reads` and `places` contain whole keys only, for pruning; `is_top` is true for a place that is not
    inside another. With data of at most `free` units the work stays below the limit. `asked_by_output`:
    nodes that `has(ctx.NODE.output)` tests.
    """

    program: Any
    boolean: Any
    tree: Tree
    names: tuple[Path, ...]
    reads: tuple[Path, ...]
    places: tuple[tuple[str, Steps], ...]
    is_top: tuple[bool, ...]
    asked: tuple[Path, ...]
    asked_by_output: frozenset[str]
    free: int


class _Unfit(Exception):
    """An expression that cannot be a condition. The arguments are message and suggestion."""


@lru_cache(maxsize=1)
def _library() -> Any:
    from cel_expr_python import cel  # fourteen megabytes, for processes and deployments that need them

    names = [_LOOP if name == "loop" else name for name in ALL_VARIABLES]
    return cel, cel.NewEnv(variables=dict.fromkeys(names, cel.Type.DYN))


@lru_cache(maxsize=model.PLANS)
def cel_plan(expression: str) -> CelPlan:
    """Compile an expression. Raises `_Unfit`."""
    if len(expression) > model.CEL_LENGTH:
        raise _Unfit(
            f"the expression has more than {model.CEL_LENGTH} characters", "split it with `all` and `any`"
        )
    cel, env = _library()
    try:
        program = env.compile(_WORDS.sub(_loop_renamed, expression))
    except Exception as error:
        raise _Unfit(*_in_words(str(error), expression)) from error
    gives = program.return_type()
    if gives not in (cel.Type.BOOL, cel.Type.DYN):
        raise _Unfit(f"it gives {_type(gives.name())}, not true or false", "compare it with something")
    tree = read_tree(program.serialize().replace(_LOOP.encode(), b"loop"))
    try:
        found = find_names(tree)
    except RefusedExpression as refused:
        raise _Unfit(*refused.args) from refused
    places = tuple(dict.fromkeys((root, known_part(steps)[0]) for root, steps in found.reads))
    free = next((size for size in _FREE if _is_free(tree, places, size)), 0)
    if not free:
        raise _Unfit(*_too_much())
    return CelPlan(
        program=program,
        boolean=cel.Type.BOOL,
        tree=tree,
        names=paths(found),
        reads=tuple(path_of(expression_text(root, steps)) for root, steps in places),
        places=places,
        is_top=tuple(not any(_is_inside(place, other) for other in places) for place in places),
        asked=tuple(path_of(expression_text(root, steps)) for root, steps in found.nodes),
        asked_by_output=frozenset(found.by_output),
        free=free,
    )


def _is_inside(place: tuple[str, Steps], other: tuple[str, Steps]) -> bool:
    return place != other and place[0] == other[0] and place[1][: len(other[1])] == other[1]


def _is_free(tree: Tree, places: tuple[tuple[str, Steps], ...], size: int) -> bool:
    """Return true if no data of `size` units, of any shape, exceeds the limit of work."""
    largest = ValueShape(*((size,) * model.DATA_DEPTH,) * 3)
    try:
        check_work(tree, dict.fromkeys(places, largest))
    except TooMuch:
        return False
    return True


def _loop_renamed(word: re.Match[str]) -> str:
    return _LOOP if word.group() == "loop" else word.group()


def _too_much() -> tuple[str, str]:
    return (
        "it builds or looks at too much: loops inside loops, or `+` on a loop's variable that grows each round",
        "let a tool work it out, and ask about its result",
    )


def faults(condition: Cel) -> list[Fault]:
    """Return the faults of the expression."""
    try:
        unclear = unclear_division(cel_plan(condition.expression).tree)
    except ImportError:
        return [Fault("cel", "conditions in CEL are not installed", model.need("cel-expr-python"))]
    except _Unfit as unfit:
        return [Fault("cel", *unfit.args)]
    return [] if unclear is None else [Fault("cel", *unclear)]


def names(condition: Cel) -> tuple[Path, ...]:
    """Return the paths that the expression reads. A node that `has` tests may be missing."""
    return _ready(condition).names


def _ready(condition: Cel) -> CelPlan:
    try:
        return cel_plan(condition.expression)
    except _Unfit as unfit:
        raise ConditionError(INVALID, f"`{condition.expression[:200]}`: {unfit.args[0]}") from unfit


def judge(condition: Cel, facts: Facts) -> bool:
    """Return true if the expression holds. Raises `ConditionError`."""
    plan = _ready(condition)
    data = gather(plan.reads, facts.lookup, plan.asked)
    nodes: dict[str, Any] = data.setdefault("ctx", {})
    for node in plan.asked_by_output:
        nodes.setdefault(node, {})
    _check(plan, data, condition)
    if "loop" in data:
        data[_LOOP] = data.pop("loop")
    try:
        answer = plan.program.eval(data=data)
    except Exception as error:
        raise _broken(condition, str(error)) from error
    if answer.type() == plan.boolean:
        return answer.value() is True
    if answer.type().name() in {"ERROR", "UNKNOWN"}:
        raise _broken(condition, str(answer.value()))
    raise ConditionError(
        NOT_BOOLEAN,
        f"`{_short(condition)}` gives {_type(answer.type().name())}, not true or false; compare it with something",
    )


def _check(plan: CelPlan, data: dict[str, Any], condition: Cel) -> None:
    shapes: dict[tuple[str, Steps], ValueShape] = {}
    total = 0
    for place, is_top in zip(plan.places, plan.is_top, strict=True):
        value: Any = data.get(place[0])
        for step in place[1]:
            value = value.get(step) if isinstance(value, dict) else None
        shape = shapes[place] = measure(value)
        total += shape.size if is_top else 0
    if total <= plan.free:
        return
    check_size(total)
    try:
        check_work(plan.tree, shapes)
    except TooMuch as error:
        raise ConditionError(TOO_LARGE, f"`{_short(condition)}`: {'; '.join(_too_much())}") from error


def _broken(condition: Cel, text: str) -> ConditionError:
    """Convert an error of the library to a failure code with a remedy."""
    code, hint = ERROR, text.split(": ", 1)[-1].replace(_LOOP, "loop").split("\n")[0]
    overload = _OVERLOAD.search(text)
    if "Iteration budget" in text:
        code, hint = (
            TOO_LARGE,
            f"its loops have more than {model.CEL_ROUNDS} rounds together; let a tool count",
        )
    elif "bad_alloc" in text:
        code, hint = MEMORY, "it took too much memory; name less of the data"
    elif "Key not found" in text or "Index error" in text or "No value with name" in text:
        code, hint = MISSING, f"{hint}; ask with `has(...)` or `size(...)` first"
    elif overload:
        code, (hint, remedy) = TYPE, _overloaded(*overload.groups())
        hint += f"; {remedy}" if remedy else ""
    elif "Applying SELECT" in text:
        code, hint = TYPE, "a field is taken of something that is not an object; compare it with null first"
    elif "out of range for" in text:
        code, hint = TYPE, "a whole number has more than 64 bits"
    return ConditionError(code, f"`{_short(condition)}`: {hint}")


def _short(condition: Cel) -> str:
    text = " ".join(condition.expression.split())
    return text if len(text) <= 200 else f"{text[:199]}…"


def _in_words(text: str, expression: str) -> tuple[str, str]:
    """Return message and suggestion for an error of the library's compiler, with the place in the
    expression.
    """
    place = _PLACE.search(text.replace(_LOOP, "loop"))
    if "recursion" in text:
        return "it is nested too deeply, or joins more than 30 parts", "split it with `all` and `any`"
    if place is None:
        return f"it cannot be read: {text.split(' [', 1)[0][:200]}", ""
    line, column, message = place.groups()
    where = f"column {column}" if line == "1" else f"line {line}, column {column}"
    if unknown := re.match(r"undeclared reference to '([^']*)'", message):
        name = unknown.group(1).split(".")[0]
        known = (*VARIABLES, *FUNCTIONS, *MACROS)
        remedy = "`size(…)` counts" if name in ("len", "length", "count") else nearest(name, known)
        return f"{where}: there is no `{unknown.group(1)}`", remedy or f"there are {', '.join(VARIABLES)}"
    if overload := _OVERLOAD.search(message):
        said, remedy = _overloaded(*overload.groups())
        return f"{where}: {said}", remedy
    return f"{where}: {message.removeprefix('Syntax error: ')}", _syntax_hint(message, expression)


def _syntax_hint(message: str, expression: str) -> str:
    if re.search(r"\b(and|or|not)\b", message):
        return "CEL writes `&&`, `||` and `!`"
    if "'=>'" in message or "'=<'" in message:
        return "write `>=` or `<=`"
    if "'= " in message or "'='" in message:
        return "`==` compares"
    if "<EOF>' expecting" in message:
        return "it ends too early, or is empty"
    if "'$" in message or "${" in expression:
        return "no `${…}` here: write `output.x`, not `${output.x}`"
    return ""


def _overloaded(function: str, given: str) -> tuple[str, str]:
    operator = function.strip("_@").replace("_?_:", "? :").replace("<jump_condition>", "? : or &&")
    types = [_TYPES.get(name.strip(), name.strip()) for name in given.split(",") if name.strip()]
    said = f"`{operator}` cannot take {' and '.join(types) or 'what it is given'}"
    if {"int", "double"} <= set(types) or {"uint", "double"} <= set(types):
        return said, "whole numbers and others do not mix: write double(…) around the whole one, or 2.0 for 2"
    if "null" in types:
        return said, "compare with null first"
    return said, ""


def _type(name: str) -> str:
    return _TYPES.get(name, name).lower()
