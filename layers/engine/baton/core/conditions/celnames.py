"""The values that a CEL expression names, and the check that it uses only permitted functions and
operators.

The tree is walked once, after the library has compiled the expression. Its cost is in cel.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from baton.core.conditions import model
from baton.core.conditions.patterns import weight
from baton.core.conditions.reading import expression_text, path_of
from baton.core.expressions import EVENT, ExpressionError, Path


@dataclass(frozen=True)
class Const:
    """A literal. `value` is set for texts and whole numbers and null for all others;
    `type` is its JSON type, or empty.
    """

    value: str | int | None
    is_bytes: bool = False
    type: str = ""


@dataclass(frozen=True)
class Name:
    """A variable of the condition or of a loop, or a type such as `int`."""

    name: str


@dataclass(frozen=True)
class CelField:
    """Selection of a field: `operand.name`, or `has(operand.name)`."""

    operand: Tree
    name: str
    is_test: bool


@dataclass(frozen=True)
class CelCall:
    """A function or an operator. The target of a method is the first of `args`."""

    function: str
    args: tuple[Tree, ...]


@dataclass(frozen=True)
class Items:
    """Literal of a list, or of an object as alternating keys and values.
    `message` names a protobuf message.
    """

    items: tuple[Tree, ...]
    message: str = ""


@dataclass(frozen=True)
class CelMacro:
    """Expansion of a macro: `all`, `exists`, `exists_one`, `map` or `filter`."""

    variable: str
    over: Tree
    result: str
    start: Tree
    goes_on: Tree
    step: Tree
    end: Tree


Tree = Const | Name | CelField | CelCall | Items | CelMacro


def read_tree(serialized: bytes) -> Tree:
    """Return the tree of `Expression.serialize()`: a `google.protobuf.Any` of a `CheckedExpr`."""
    return _expr(_message(_message(serialized, 2), 4))


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield (field number, value) of a message. A value is a number or bytes."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield number, value
        else:
            length, position = (8, position) if wire == 1 else _varint(data, position)
            yield number, data[position : position + length]
            position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[position]
        result |= (byte & 127) << shift
        position += 1
        if byte < 128:
            return result, position
        shift += 7


def _all(data: bytes, number: int) -> list[bytes]:
    return [value for found, value in _fields(data) if found == number and isinstance(value, bytes)]


def _message(data: bytes, number: int) -> bytes:
    return next(iter(_all(data, number)), b"")


def _text(data: bytes, number: int) -> str:
    return _message(data, number).decode()


def _expr(data: bytes) -> Tree:
    number, inner = next(
        (number, value) for number, value in _fields(data) if number != 2 and isinstance(value, bytes)
    )
    return _READERS[number](inner)


# By field number of a literal whose value no caller reads.
_TYPES = {1: "null", 2: "boolean", 4: "number", 5: "number"}


def _const(data: bytes) -> Const:
    number, value = next(_fields(data), (0, b""))
    if number == 6 and isinstance(value, bytes):
        return Const(value.decode(), type="string")
    if number == 3 and isinstance(value, int):
        return Const(value if value < 1 << 63 else value - (1 << 64), type="number")
    return Const(None, is_bytes=number == 7, type=_TYPES.get(number, ""))


def _name(data: bytes) -> Tree:
    return Name(_text(data, 1))


def _field(data: bytes) -> Tree:
    is_test = any(number == 3 and value for number, value in _fields(data))
    return CelField(_expr(_message(data, 1)), _text(data, 2), is_test)


def _call(data: bytes) -> Tree:
    args = (*_all(data, 1), *_all(data, 3))
    return CelCall(_text(data, 2), tuple(map(_expr, args)))


def _list(data: bytes) -> Tree:
    return Items(tuple(map(_expr, _all(data, 1))))


def _object(data: bytes) -> Tree:
    entries = _all(data, 2)
    parts = [part for entry in entries for number in (3, 4) for part in _all(entry, number)]
    return Items(tuple(map(_expr, parts)), _text(data, 1))


def _loop(data: bytes) -> Tree:
    over, start, goes_on, step, end = (_expr(_message(data, number)) for number in (2, 4, 5, 6, 7))
    return CelMacro(_text(data, 1), over, _text(data, 3), start, goes_on, step, end)


_READERS = {3: _const, 4: _name, 5: _field, 6: _call, 7: _list, 8: _object, 9: _loop}


VARIABLES = ("output", "input", "ctx", "saga", "loop", "join", "last_error")
ALL_VARIABLES = (*VARIABLES, EVENT)
"""The variables of all conditions, and those that only a few conditions have."""
OPERATORS = frozenset(
    [
        "_&&_",
        "_||_",
        "!_",
        "_?_:_",
        "_==_",
        "_!=_",
        "_<_",
        "_<=_",
        "_>_",
        "_>=_",
        "_+_",
        "_-_",
        "_*_",
        "_/_",
        "_%_",
        "-_",
        "@in",
        "_[_]",
        "@not_strictly_false",
    ]
)
TIME_PARTS = frozenset(
    [
        "getFullYear",
        "getMonth",
        "getDate",
        "getDayOfMonth",
        "getDayOfWeek",
        "getDayOfYear",
        "getHours",
        "getMinutes",
        "getSeconds",
        "getMilliseconds",
    ]
)
FUNCTIONS = TIME_PARTS | frozenset(
    [
        "size",
        "contains",
        "startsWith",
        "endsWith",
        "matches",
        "int",
        "uint",
        "double",
        "string",
        "bool",
        "bytes",
        "timestamp",
        "duration",
        "type",
        "dyn",
    ]
)
MACROS = frozenset(["all", "exists", "exists_one", "map", "filter", "has"])
TYPES = frozenset(
    [
        "int",
        "uint",
        "double",
        "bool",
        "string",
        "bytes",
        "list",
        "map",
        "null_type",
        "type",
        "google.protobuf.Timestamp",
        "google.protobuf.Duration",
    ]
)
Steps = tuple[str | int, ...]


class RefusedExpression(Exception):
    """Error for an expression that CEL allows and a condition does not.
    The arguments are message and suggestion.
    """


@dataclass
class Names:
    """Names in an expression: the values that it reads, in order, the nodes that may be missing, and the
    guarded fields.

    `nodes`: outputs whose presence alone is tested. `by_name` and `by_output`: nodes that are tested as
    `has(ctx.NODE)` and as `has(ctx.NODE.output)`.
    """

    reads: dict[tuple[str, Steps], None] = field(default_factory=dict)
    optional: set[str] = field(default_factory=set)
    by_name: set[str] = field(default_factory=set)
    by_output: set[str] = field(default_factory=set)
    guarded: set[tuple[str, Steps]] = field(default_factory=set)
    nodes: dict[tuple[str, Steps], None] = field(default_factory=dict)
    loops: int = 0


def chain(tree: Tree, bound: frozenset[str]) -> tuple[str, Steps] | None:
    """Return root and steps of `ctx.a.output[0]["x"]`;
    None for an expression that begins with no variable.
    """
    steps: list[str | int] = []
    while not isinstance(tree, Name):
        if isinstance(tree, CelField) and not tree.is_test:
            steps.append(tree.name)
            tree = tree.operand
        elif isinstance(tree, CelCall) and tree.function == "_[_]" and isinstance(tree.args[1], Const):
            key = tree.args[1].value
            if key is None:
                return None
            steps.append(key)
            tree = tree.args[0]
        else:
            return None
    return (
        None if tree.name in bound or tree.name not in ALL_VARIABLES else (tree.name, tuple(reversed(steps)))
    )


def known_part(steps: Steps) -> tuple[Steps, Steps]:
    """Split the steps before the first that no expression can write or no pruning follows.

    The first part has keys only: it is the part of the root that is read.
    """
    taken = 0
    for step in steps:
        if isinstance(step, int) or ("'" in step and '"' in step) or "\\" in step:
            break
        taken += 1
    return steps[:taken], steps[taken:]


def find_names(tree: Tree) -> Names:
    """Return the names in an expression. Raises `RefusedExpression`."""
    found = Names()
    _visit(tree, frozenset(), found)
    for node in sorted(found.by_name & found.by_output):
        raise RefusedExpression(
            f"`has(ctx.{node})` and `has(ctx.{node}.output)` mean the same", "write one of them"
        )
    return found


def paths(found: Names) -> tuple[Path, ...]:
    """Return the paths to check and to fetch, without the fields that `has(...)` tests.
    A node that `has(...)` tests is marked as optional.
    """
    result: dict[Path, None] = {}
    for root, steps in [*found.reads, *found.nodes]:
        cut = next((len(way) - 1 for name, way in _cuts(found, root) if steps[: len(way)] == way), len(steps))
        is_optional = root == "ctx" and steps[0] in found.optional
        result[path_of(expression_text(root, steps[:cut], is_optional and steps[1] == "output"))] = None
    return tuple(result)


def _cuts(found: Names, root: str) -> Iterator[tuple[str, Steps]]:
    shortest = {"ctx": 3, "saga": 2, "loop": 2, "join": 2}.get(root, 1)
    return (
        (name, way) for name, way in sorted(found.guarded, key=str) if name == root and len(way) >= shortest
    )


def _visit(tree: Tree, bound: frozenset[str], found: Names) -> None:
    named = chain(tree, bound)
    if named is not None:
        _read(*named, found)
    elif isinstance(tree, Name):
        if tree.name not in bound and tree.name not in TYPES:
            raise RefusedExpression(f"`{tree.name}` is not known in a condition", "")
    elif isinstance(tree, CelField):
        _visit_field(tree, bound, found)
    elif isinstance(tree, CelCall):
        _check_call(tree)
        for arg in tree.args:
            _visit(arg, bound, found)
    elif isinstance(tree, Items):
        if tree.message:
            raise RefusedExpression(
                f"`{tree.message}` messages cannot be made in a condition", "compare with a map: {'key': 1}"
            )
        for item in tree.items:
            _visit(item, bound, found)
    elif isinstance(tree, CelMacro):
        found.loops += 1
        _visit(tree.over, bound, found)
        _visit(tree.start, bound, found)
        inside = bound | {tree.variable, tree.result}
        for part in (tree.goes_on, tree.step, tree.end):
            _visit(part, inside, found)


def _visit_field(tree: CelField, bound: frozenset[str], found: Names) -> None:
    named = chain(tree.operand, bound) if tree.is_test else None
    if named is None:
        _visit(tree.operand, bound, found)
        return
    root, steps = named
    if root == "ctx" and len(steps) < 2:
        node = tree.name if not steps else steps[0]
        if steps and tree.name not in {"output", "previous"}:
            raise RefusedExpression(f"`has(ctx.{node}.{tree.name})`: a node has `output` and `previous`", "")
        found.optional.add(str(node))
        if steps:
            found.by_output.add(str(node))
        else:
            found.by_name.add(str(node))
        found.nodes["ctx", (node, tree.name if steps else "output")] = None
    else:
        found.guarded.add((root, (*steps, tree.name)))
        _read(root, (*steps, tree.name), found)


def _read(root: str, steps: Steps, found: Names) -> None:
    known, rest = known_part(steps)
    indexes: Steps = ()
    for step in rest:  # what a path can still write, for those who check it against a schema
        if not isinstance(step, int) or not 0 <= step < 10**9:
            break
        indexes += (step,)
    try:
        path_of(expression_text(root, known))
    except ExpressionError as error:
        raise RefusedExpression(*_shape(root, known, str(error))) from error
    found.reads[root, known + indexes] = None


def _shape(root: str, steps: Steps, message: str) -> tuple[str, str]:
    if root == "ctx" and len(steps) == 1:
        return f"`ctx.{steps[0]}` is a node, not a value", f"write `ctx.{steps[0]}.output`"
    if root == "ctx" and not steps:
        return "`ctx` needs the name of a node", "write `ctx.NODE.output`, with the name as it is"
    return message, ""


def _check_call(call: CelCall) -> None:
    if call.function not in OPERATORS | FUNCTIONS:
        raise RefusedExpression(
            f"`{call.function}` cannot be used in a condition", f"there are {', '.join(sorted(FUNCTIONS))}"
        )
    if call.function in TIME_PARTS and len(call.args) > 1:
        raise RefusedExpression(f"`{call.function}` takes no time zone here", "times are in UTC")
    if call.function == "matches":
        pattern = call.args[1]
        if not isinstance(pattern, Const) or not isinstance(pattern.value, str):
            raise RefusedExpression(
                "the pattern of `matches` must be a text that stands in the condition", ""
            )
        if weight(pattern.value) > model.PATTERN_WEIGHT:
            raise RefusedExpression(
                "the pattern of `matches` is too large", "repeat less: {1,1000} counts a thousand times"
            )


_DOUBLE, _WHOLE, _EITHER = "double", "whole", ""
_ARITHMETIC = frozenset({"_+_", "_-_", "_*_", "_/_", "_%_", "-_"})
_WHOLE_FUNCTIONS = frozenset({"int", "uint", "size"})


def unclear_division(tree: Tree) -> tuple[str, str] | None:
    """Return message and suggestion for the first division that may silently drop a fraction."""
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


def _divisions(tree: Tree) -> Iterator[CelCall]:
    if isinstance(tree, CelCall) and tree.function == "_/_":
        yield tree
    for part in _inside(tree):
        yield from _divisions(part)


def _inside(tree: Tree) -> tuple[Tree, ...]:
    if isinstance(tree, CelCall):
        return tree.args
    if isinstance(tree, Items):
        return tree.items
    if isinstance(tree, CelMacro):
        return (tree.over, tree.start, tree.goes_on, tree.step, tree.end)
    return (tree.operand,) if isinstance(tree, CelField) else ()


def _kind(tree: Tree) -> str:
    if isinstance(tree, Const):
        return _WHOLE if isinstance(tree.value, int) else _DOUBLE
    if not isinstance(tree, CelCall):
        return _EITHER
    if tree.function in _ARITHMETIC:
        kinds = {_kind(arg) for arg in tree.args}
        return _DOUBLE if _DOUBLE in kinds else _EITHER if _EITHER in kinds else _WHOLE
    return _DOUBLE if tree.function == "double" else _WHOLE if tree.function in _WHOLE_FUNCTIONS else _EITHER
