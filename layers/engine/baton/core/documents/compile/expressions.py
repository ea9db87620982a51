"""Checks of a document's expressions: each can be read, and the value
that it names exists by then and has such a part.

Every place where an expression may stand, and the problems of it.
What is known of values is in known.py, of their being there in available_outputs.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from baton.core.conditions import names_of
from baton.core.conditions.schemafaults import Schema, in_words, is_plain
from baton.core.documents.compile import known
from baton.core.documents.compile.control import always_holds
from baton.core.documents.compile.flow import Flow
from baton.core.documents.compile.known import follow_path
from baton.core.documents.compile.source import Source
from baton.core.expressions import (
    ROOTS,
    STEP,
    ExpressionError,
    Path,
    UnknownRoot,
    escape,
    expressions_in,
    lone_path,
)
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.conditions.model import Condition
    from baton.core.documents.compile.available_outputs import AvailableOutputs
    from baton.core.documents.models import NodeModel
    from baton.core.effects.toolspec import ToolSpec

# What other engines call the results of nodes.
_NODES_ELSEWHERE = frozenset(("steps", "step", "nodes", "node", "tasks", "task", "outputs", "results"))


def root_hint(source: Source, error: ExpressionError) -> str:
    """Return a hint for an expression that begins with a node's name or with a misspelt root."""
    if not isinstance(error, UnknownRoot):
        return ""
    root, dot, rest = error.source.partition(".")
    first = root
    if root in _NODES_ELSEWHERE and root not in source.nodes:
        first, dot, rest = rest.partition(".")
    if first not in source.nodes:
        return "" if root == STEP else source.hint(root, ROOTS)
    inner = rest.removeprefix("output") if rest.split(".")[0].split("[")[0] == "output" else dot + rest
    return f"did you mean `ctx.{first}.output{inner}`?"


# What is tried takes about as long as the whole check of a document.
_MOST_NODES = 500


def by_a_when(source: Source, name: str, reader: str) -> str:
    """Return the change by which `name` has given an output when `reader` asks, whatever a `when` says.

    An empty `reader` stands for the end. Return an empty string if no such change is found.
    """
    if len(source.nodes) > _MOST_NODES:
        return ""
    for asking, skipped in _candidates(source, name):
        if source.tries_left <= 0:
            break
        source.tries_left -= 1
        after = [*source.edges.before[asking], *source.nodes[skipped].after]
        produced = _with(source, skipped, after)
        if produced is not None and (produced.has(reader, name) if reader else produced.has_at_the_end(name)):
            so = f"`{skipped}` is skipped too" + (f", and `{name}` with it" if skipped != name else "")
            return f"if `{asking}` is skipped, {so}; write `after: [{', '.join(after)}]` at `{skipped}`"
    return ""


def by_an_end(produced: AvailableOutputs, name: str, reader: str) -> str:
    """Return a hint to wait for the step after which the saga ends without `name`.

    An empty `reader` cannot wait. Return an empty string if no such step is found.
    """
    last = produced.awaited(reader, name) if reader else ""
    if not last:
        return ""
    return (
        f"where `{last}` runs, the saga ends without `{name}`, but only when `{last}` is done; "
        f"add `{last}` to `after`, so that this waits for it"
    )


def _candidates(source: Source, name: str) -> Iterator[tuple[str, str]]:
    """Yield (node with a `when`, node that comes directly after it) on the paths to `name`,
    the nearest first.
    """
    flow: Flow = source.flow
    behind = flow.behind[flow.at[name]]
    for index in range(flow.at[name] - 1, -1, -1):
        asking = flow.names[index]
        if not behind >> index & 1 or source.nodes[asking].when is None or not source.edges.before[asking]:
            continue
        for skipped in source.edges.after[asking]:
            at = flow.at[skipped]
            is_on_the_way = skipped == name or behind >> at & 1
            if is_on_the_way and asking in source.nodes[skipped].after:
                yield asking, skipped


def _with(source: Source, name: str, after: list[str]) -> AvailableOutputs | None:
    node = source.nodes[name].model_copy(update={"after": after})
    model = source.model.model_copy(update={"nodes": {**source.nodes, name: node}})
    return Source(model, source.tools).produced


@dataclass(frozen=True)
class ExpressionPlace:
    """Place of an expression: its node (empty: the saga's output), and the names that are allowed there.

    `is_after`: in a `branch` or `loop`, when the node has given its output. `is_condition`: CEL, maybe.
    `is_failing`: in a failover policy, when an attempt has failed.
    `is_failed`: in a rule of `catch`, when the node has.
    `is_undoing`: in `compensate`, when what the node has done is undone.
    `is_handling`: in the failure handler, when the saga has failed.
    """

    node: str
    is_after: bool = False
    is_condition: bool = False
    has_item: bool = False
    is_failing: bool = False
    is_failed: bool = False
    is_undoing: bool = False
    is_handling: bool = False


def check_expressions(source: Source) -> Iterator[Problem]:
    """Yield the problems of all expressions and conditions, wherever they stand."""
    for name, node in source.nodes.items():
        source.go_on(f"/nodes/{name}")
        for place, value, where in _values(source, name, node):
            yield from _expressions_at(source, place, value, where)
        if node.branch is not None:
            yield from _branch(source, name, node)
        if (spec := source.kinds[name].taker(source, node)) is not None:
            yield from types(source, name, node.with_, spec, f"/nodes/{name}/with")
        if node.compensate is not None and node.compensate.with_:
            place, given = f"/nodes/{name}/compensate/with", node.compensate.with_
            yield from _expressions_at(source, place, given, ExpressionPlace(name, is_undoing=True))
    yield from _conditions(source)
    yield from _expressions_at(source, "/output", source.model.output, ExpressionPlace(""))
    if (handler := source.model.failure_handler) is not None:
        where = ExpressionPlace("", is_handling=True)
        yield from _expressions_at(source, "/failure_handler/with", handler.with_, where)
        yield from _expressions_at(source, "/failure_handler/graph", source.within.seen.get(""), where)


def _values(source: Source, name: str, node: NodeModel) -> Iterator[tuple[str, Any, ExpressionPlace]]:
    """Yield (JSON Pointer, value, place) of everything at a node that may have expressions in it."""
    kind, place = source.kinds[name], f"/nodes/{name}"
    here = ExpressionPlace(name, has_item=node.map is not None)
    if node.with_:
        yield f"{place}/with", node.with_, here
    if node.map is not None:
        yield f"{place}/map", node.map.over, ExpressionPlace(name)
    for below, value in kind.values(node):
        yield f"{place}{below}", value, here
    if name in source.within.seen:
        yield f"{place}/graph", source.within.seen[name], here
    if (loop := node.loop) is not None:
        first = loop.back_to or name
        if loop.pause is not None:
            yield f"{place}/loop/pause", loop.pause.first, ExpressionPlace(name, is_after=True)
        if first in source.nodes:
            yield f"{place}/loop/initial", loop.initial, ExpressionPlace(first)


def _branch(source: Source, name: str, node: NodeModel) -> Iterator[Problem]:
    branch = node.branch
    assert branch is not None
    place = f"/nodes/{name}/branch"
    schema = node.output_schema
    # Of a schema beside it that a kind knows to choose by, the kind says itself what is wrong.
    is_told = is_plain(schema) and source.kinds[name].answers(node) is not None
    if branch.choose is not None and not is_told:
        yield from _expressions_at(
            source, f"{place}/choose", f"${{{branch.choose}}}", ExpressionPlace(name, is_after=True)
        )
    for index in range(len(branch.rules) - 1):
        if always_holds(source.condition(f"{place}/rules/{index}/if")):
            message = f"this rule is never asked: rule {index + 1} always holds"
            hint = "let rules that hold more seldom come first, and write what is left as `default`"
            yield Problem(f"{place}/rules/{index + 1}", message, hint)
            return


def _conditions(source: Source) -> Iterator[Problem]:
    for place, (condition, problems, of, names) in source.read.items():
        yield from problems
        if condition is not None and (paths := tuple(names_of(condition))):
            names = names if differ(paths) else names[:1]
            found = (_asked_at(source, place, condition, name, is_after=of == "output") for name in names)
            yield from first_of(place, names, found)


def differ(paths: Iterable[Path]) -> bool:
    """Return true if the problems of these paths depend on the node: a policy may be for many nodes."""
    return any(path.root in {"ctx", "loop", "join"} for path in paths)


def _asked_at(
    source: Source, place: str, condition: Condition, name: str, *, is_after: bool
) -> Iterator[Problem]:
    is_failed = place.startswith(f"/nodes/{name}/catch/")
    where = ExpressionPlace(
        name, is_after=is_after, is_condition=True, is_failing="/failover/" in place, is_failed=is_failed
    )
    found = [one for path in names_of(condition) for one in check_path(source, place, path, where)]
    yield from found or known.check_comparisons(source, place, condition, name)


def first_of(place: str, names: tuple[str, ...], problems: Iterable[Iterable[Problem]]) -> Iterator[Problem]:
    """Yield the problems at the first node that has any, for an expression that stands at no node.

    For an expression below `/nodes/`, yield all problems.
    """
    for name, found in zip(names, problems, strict=True):
        told = list(found)
        if told and place.startswith("/nodes/"):
            yield from told
        elif told:
            yield from (replace(one, message=f"at `{name}`: {one.message}") for one in told)
            return


def _expressions_at(source: Source, place: str, value: Any, where: ExpressionPlace) -> Iterator[Problem]:
    for pointer, found in expressions_in(value, place):
        if isinstance(found, ExpressionError):
            yield Problem(pointer, str(found), root_hint(source, found))
        else:
            yield from check_path(source, pointer, found, where)


# ---- what may be named -----------------------------------------------------------------------------------------


def check_path(source: Source, pointer: str, path: Path, where: ExpressionPlace) -> Iterator[Problem]:
    """Yield the problems of an expression at its place."""
    check = _check_undoing if where.is_undoing else _CHECK_ROOT.get(path.root, _nothing_wrong)
    problem = check(source, path, where)
    if problem is not None:
        yield Problem(pointer, f"`{path.text}`: {problem[0]}", problem[1])
    elif not (where.is_condition and path.optional and path.node) and not (
        where.is_failing and path.root == "last_error" and path.inner[:1] == ("parameters",)
    ):
        yield from _check_known(source, pointer, path, where)


Wrong = tuple[str, str] | None


def _nothing_wrong(source: Source, path: Path, where: ExpressionPlace) -> Wrong:
    return None


def _check_ctx(source: Source, path: Path, where: ExpressionPlace) -> Wrong:
    name = path.node
    if name not in source.nodes:
        if name in source.within.outer and not path.is_previous:
            return None  # the node that starts this graph is told if it is not there
        return f"there is no node `{name}`", source.hint(name, source.nodes)
    if path.is_previous:
        return _check_previous(source, name, where)
    if where.is_after and name == where.node:
        return None
    if where.is_handling and not path.optional:
        return (
            f"`{name}` need not have given anything when the saga has failed",
            f"`ctx.{name}.output?` is null then",
        )
    if not where.node:
        return _check_at_the_end(source, path, where)
    flow, reader = source.flow, where.node
    if name not in flow.at or reader not in flow.at or not source.is_whole:
        return None  # on a circle, or what is left of the document may not be what is meant
    if not flow.behind[flow.at[reader]] >> flow.at[name] & 1:
        return f"`{name}` need not have run before this", _hint_of_order(source, name, where)
    produced = source.produced
    if path.optional or produced is None or produced.has(reader, name, is_failed=where.is_failed):
        return None
    hint = by_a_when(source, name, reader) or by_an_end(produced, name, "" if where.is_failed else reader)
    if not hint:
        hint = _hint_of_null(source, path, where)
        if name in source.edges.before[reader] and not where.is_condition:
            hint += ", and `join.outputs` has what there is"
    return f"`{name}` need not have given anything by then", hint


def _hint_of_order(source: Source, name: str, where: ExpressionPlace) -> str:
    if _is_in_one_loop(source, name, where.node):
        return f"`ctx.{name}.previous` is what it gave in the round before"
    if name == where.node:
        return "a node reads its own output only in its `branch` and `loop`"
    if source.flow.behind[source.flow.at[name]] >> source.flow.at[where.node] & 1:
        return f"`{name}` comes after `{where.node}`; name a node that comes before it"
    return f"add `{name}` to `after`, directly or through other nodes"


def _hint_of_null(source: Source, path: Path, where: ExpressionPlace) -> str:
    hint = f"`ctx.{path.node}.output?` is null where it gave nothing"
    failed, always = source.produced.lost_by(path.node) if source.produced is not None else ("", False)
    if failed:
        is_skipped = "is skipped" if always else "can be skipped"
        hint = f"`{path.node}` {is_skipped} when `{failed}` fails and its `catch` goes on from there; {hint}"
    return f"{hint}; in CEL, ask `has(ctx.{path.node}.output)` first" if where.is_condition else hint


def _check_at_the_end(source: Source, path: Path, where: ExpressionPlace) -> Wrong:
    name = path.node
    if path.optional or source.produced is None or source.produced.has_at_the_end(name):
        return None
    hint = by_a_when(source, name, "") or _hint_of_null(source, path, where)
    return f"the saga can be complete without `{name}` having given anything", hint


def _is_in_one_loop(source: Source, name: str, reader: str) -> bool:
    return not set(_around(source, name)).isdisjoint(_around(source, reader))


def _around(source: Source, name: str) -> tuple[str, ...]:
    return source.loops.around(name) if name in source.flow.at else ()


def _has_loops(source: Source) -> bool:
    """Return true if the nodes of each loop are known."""
    return source.is_whole and not source.loops.problems and not source.edges.circle


def _check_previous(source: Source, name: str, where: ExpressionPlace) -> Wrong:
    if not _has_loops(source) or _is_in_one_loop(source, name, where.node):
        return None
    here = f"`{where.node}`" if where.node else "the saga's output"
    return (
        f"no loop is around both `{name}` and {here}",
        f"write `ctx.{name}.output`, or `ctx.{name}.output?`",
    )


def _check_loop(source: Source, path: Path, where: ExpressionPlace) -> Wrong:
    if not _has_loops(source) or _around(source, where.node):
        return None
    return "this is in no loop", "a loop is written at its last node, and goes `back_to` its first"


def _check_join(source: Source, path: Path, where: ExpressionPlace) -> Wrong:
    if not where.node:
        return "only a node has a join", "name the nodes themselves: `ctx.NODE.output?`"
    before = source.edges.before[where.node]
    if not source.is_whole:
        return None
    if len(before) < 2 and source.nodes[where.node].join is None:
        return "only one way leads here", f"write `ctx.{before[0]}.output`" if before else "there is no join"
    name = path.inner[1] if path.inner[0] == "outputs" and len(path.inner) > 1 else None
    if name not in before or source.produced is None:
        return None
    is_first = any(source.flow.names[first] == where.node for first, _ in source.flow.loops.values())
    is_sure = source.produced.has(where.node, str(name)) and source.produced.is_sure_edge(
        str(name), where.node
    )
    if is_sure and not is_first:
        return None
    return f"`{name}` need not be among them", f"`ctx.{name}.output?` is null where it gave nothing"


def _check_output(source: Source, path: Path, where: ExpressionPlace) -> Wrong:
    if where.is_after:
        return None
    return (
        "the node has given no output yet",
        "`output` is for `branch` and `loop`; elsewhere, `ctx.NODE.output`",
    )


def _check_item(source: Source, path: Path, where: ExpressionPlace) -> Wrong:
    if where.has_item or source.within.has_item:
        return None
    if source.within.graph:
        message = "not every node that starts this graph has `map`"
        return message, "give it what it needs in the `with` of those nodes, and name that as `input`"
    return "only a node with `map` has items, in what is done for each of them", "name the value itself"


def _check_step(source: Source, path: Path, where: ExpressionPlace) -> Wrong:
    return "no step is undone here", "`step` is for `compensate`; elsewhere, `ctx.NODE.output`"


def _check_origin(source: Source, path: Path, where: ExpressionPlace) -> Wrong:
    return f"a saga does not know its {path.root}", "pass it on in the `input` that it is started with"


def _check_undoing(source: Source, path: Path, where: ExpressionPlace) -> Wrong:
    """Check an expression of an inverse: long after the step,
    only its own entry and the values that every saga has can be read.
    """
    if path.root in {"step", "input", "saga"}:
        return None
    if path.root == "loop":
        return _check_loop(source, path, where)
    return (
        "it may be gone when the step is undone",
        "`step.input` is what the step got, `step.output` what it gave; `input` and `saga` are there, too",
    )


_CHECK_ROOT = {
    "ctx": _check_ctx,
    "loop": _check_loop,
    "join": _check_join,
    "output": _check_output,
    "item": _check_item,
    "index": _check_item,
    "step": _check_step,
    "schedule": _check_origin,
    "event": _check_origin,
}


# ---- what it has inside ----------------------------------------------------------------------------------------


def _check_known(source: Source, pointer: str, path: Path, where: ExpressionPlace) -> Iterator[Problem]:
    """Follow the path through the schema of its value, as far as the schema goes."""
    here, taken = follow_path(source, path, where.node)
    if taken == len(path.inner):
        return
    step, types = path.inner[taken], here.types()
    if "object" in types and isinstance(step, str):
        known = source.hint(step, here.fields) or f"known: {', '.join(here.fields[:10]) or 'nothing'}"
        yield Problem(pointer, f"`{path.text}`: nothing produces `{step}`", known)
        return
    message = f"`{path.text}`: `{step}` of {in_words(types)} cannot be taken"
    yield Problem(pointer, message, _parts_of(path.up_to(taken), here))


def _parts_of(text: str, schema: Schema) -> str:
    """Return a hint that names the parts of the value that the expression `text` gives."""
    types = schema.types()
    if "array" in types:
        return f"take an item of the list, such as `${{{text}[0]}}`"
    if "object" in types:
        return f"take a field: {', '.join(schema.fields[:10]) or 'by its name'}"
    return f"`${{{text}}}` is the whole value"


def types(
    source: Source, name: str, given: Mapping[str, Any], spec: ToolSpec, below: str
) -> Iterator[Problem]:
    """Check the type of an argument that is one expression: the tool must take the type,
    and the value must be there.
    """
    properties = spec.parameters.get("properties", {})
    for key, value in given.items():
        path = lone_path(value) if key in properties else None
        if path is None:
            continue
        here, taken = follow_path(source, path, name)
        wanted = Schema(properties[key], spec.parameters)
        can_be_null = path.may_be_null and "null" in wanted.types()
        if taken == len(path.inner) and not can_be_null and here.never_fits(wanted):
            takes = f"`{spec.name}` takes {in_words(wanted.types())} as `{key}`"
            is_whole = here.types().isdisjoint({"array", "object"})
            hint = "name another value, or let a tool convert it" if is_whole else _parts_of(path.text, here)
            message = f"`{path.text}` is {in_words(here.types())}; {takes}"
            yield Problem(f"{below}/{escape(key)}", message, hint)
        elif key in spec.parameters.get("required", ()):
            takes_null = "null" in wanted.types()
            yield from known.check_argument(
                source, f"{below}/{escape(key)}", path, spec.name, key, takes_null=takes_null
            )
