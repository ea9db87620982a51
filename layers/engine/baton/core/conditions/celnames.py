"""Which values a CEL expression names, and whether it uses only what an expression may use.

The tree is walked once, after the library has found it well-formed. Its cost is in celwork.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from baton.core.conditions import limits
from baton.core.conditions.celtree import Call, Const, Field, Items, Loop, Name, Tree
from baton.core.conditions.patterns import weight
from baton.core.conditions.reading import path_of, text_of
from baton.core.expressions import EVENT, ExpressionError, Path

VARIABLES = ("output", "input", "ctx", "saga", "loop", "join", "last_error")
ALL_VARIABLES = (*VARIABLES, EVENT)
"""With those that only a few conditions know."""
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


class Refused(Exception):
    """An expression that CEL allows and a condition does not; the arguments are message and suggestion."""


@dataclass
class Names:
    """What is found: the values that are read, in order, the nodes that need not be there, the guarded fields.

    `nodes`: outputs of which only is asked whether they are there.

    `by_name` and `by_output`: those of the nodes that are asked for as `has(ctx.NODE)` and `has(ctx.NODE.output)`.
    """

    reads: dict[tuple[str, Steps], None] = field(default_factory=dict)
    optional: set[str] = field(default_factory=set)
    by_name: set[str] = field(default_factory=set)
    by_output: set[str] = field(default_factory=set)
    guarded: set[tuple[str, Steps]] = field(default_factory=set)
    nodes: dict[tuple[str, Steps], None] = field(default_factory=dict)
    loops: int = 0


def chain(tree: Tree, bound: frozenset[str]) -> tuple[str, Steps] | None:
    """Root and steps of `ctx.a.output[0]["x"]`; None for anything that does not begin with a variable."""
    steps: list[str | int] = []
    while not isinstance(tree, Name):
        if isinstance(tree, Field) and not tree.is_test:
            steps.append(tree.name)
            tree = tree.operand
        elif isinstance(tree, Call) and tree.function == "_[_]" and isinstance(tree.args[1], Const):
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
    """The steps up to the first that no expression can write or no pruning follows, and the rest.

    The first part is keys only: what is read of the root.
    """
    taken = 0
    for step in steps:
        if isinstance(step, int) or ("'" in step and '"' in step) or "\\" in step:
            break
        taken += 1
    return steps[:taken], steps[taken:]


def find_names(tree: Tree) -> Names:
    """Raises `Refused`."""
    found = Names()
    _visit(tree, frozenset(), found)
    for node in sorted(found.by_name & found.by_output):
        raise Refused(f"`has(ctx.{node})` and `has(ctx.{node}.output)` mean the same", "write one of them")
    return found


def paths(found: Names) -> tuple[Path, ...]:
    """The paths to check and to fetch: without what `has(...)` asks for, and with a mark if it asks for the node."""
    result: dict[Path, None] = {}
    for root, steps in [*found.reads, *found.nodes]:
        cut = next((len(way) - 1 for name, way in _cuts(found, root) if steps[: len(way)] == way), len(steps))
        is_optional = root == "ctx" and steps[0] in found.optional
        result[path_of(text_of(root, steps[:cut], is_optional and steps[1] == "output"))] = None
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
            raise Refused(f"`{tree.name}` is not known in a condition", "")
    elif isinstance(tree, Field):
        _visit_field(tree, bound, found)
    elif isinstance(tree, Call):
        _check_call(tree)
        for arg in tree.args:
            _visit(arg, bound, found)
    elif isinstance(tree, Items):
        if tree.message:
            raise Refused(
                f"`{tree.message}` messages cannot be made in a condition", "compare with a map: {'key': 1}"
            )
        for item in tree.items:
            _visit(item, bound, found)
    elif isinstance(tree, Loop):
        found.loops += 1
        _visit(tree.over, bound, found)
        _visit(tree.start, bound, found)
        inside = bound | {tree.variable, tree.result}
        for part in (tree.goes_on, tree.step, tree.end):
            _visit(part, inside, found)


def _visit_field(tree: Field, bound: frozenset[str], found: Names) -> None:
    named = chain(tree.operand, bound) if tree.is_test else None
    if named is None:
        _visit(tree.operand, bound, found)
        return
    root, steps = named
    if root == "ctx" and len(steps) < 2:
        node = tree.name if not steps else steps[0]
        if steps and tree.name not in {"output", "previous"}:
            raise Refused(f"`has(ctx.{node}.{tree.name})`: a node has `output` and `previous`", "")
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
        path_of(text_of(root, known))
    except ExpressionError as error:
        raise Refused(*_shape(root, known, str(error))) from error
    found.reads[root, known + indexes] = None


def _shape(root: str, steps: Steps, message: str) -> tuple[str, str]:
    if root == "ctx" and len(steps) == 1:
        return f"`ctx.{steps[0]}` is a node, not a value", f"write `ctx.{steps[0]}.output`"
    if root == "ctx" and not steps:
        return "`ctx` needs the name of a node", "write `ctx.NODE.output`, with the name as it is"
    return message, ""


def _check_call(call: Call) -> None:
    if call.function not in OPERATORS | FUNCTIONS:
        raise Refused(
            f"`{call.function}` cannot be used in a condition", f"there are {', '.join(sorted(FUNCTIONS))}"
        )
    if call.function in TIME_PARTS and len(call.args) > 1:
        raise Refused(f"`{call.function}` takes no time zone here", "times are in UTC")
    if call.function == "matches":
        pattern = call.args[1]
        if not isinstance(pattern, Const) or not isinstance(pattern.value, str):
            raise Refused("the pattern of `matches` must be a text that stands in the condition", "")
        if weight(pattern.value) > limits.PATTERN_WEIGHT:
            raise Refused(
                "the pattern of `matches` is too large", "repeat less: {1,1000} counts a thousand times"
            )
