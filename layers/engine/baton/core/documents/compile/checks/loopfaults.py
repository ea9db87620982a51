"""What is wrong with the loops of a document: those that have no end, and edges that are meant otherwise.

Which loops there are, and what cannot be one, is in analysis/loops.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from baton.core.conditions import ConditionError, judge, names_of
from baton.core.conditions.model import AllOf, AnyOf, Condition, Matches, Not, Python
from baton.core.documents.compile.analysis.edges import chosen
from baton.core.documents.compile.analysis.flow import Flow
from baton.core.expressions import Path, escape
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.compile.analysis.source import Source


def check(source: Source) -> Iterator[Problem]:
    """Problems of loops: their edges in and out, and those that have no end."""
    yield from source.loops.problems
    yield from _half_meant(source)
    flow = source.flow
    left = _left(flow)
    for last in flow.loops:
        name = flow.names[last]
        loop = source.nodes[name].loop
        assert loop is not None
        place = f"/nodes/{name}/loop/while"
        if not always_holds(source.condition(place)):
            continue
        if loop.timeout_path:
            yield from _not_stopped(source, last)
        elif not source.nodes[name].catch and last not in left:
            message = "the loop has no exit: its condition always holds, and its rounds end in a failure"
            hint = "write what ends it, a `timeout_path`, or a `branch` out of the loop"
            yield Problem(
                place, message, next((_to(source, name, join) for join in _joins(flow, last)), hint)
            )


def _not_stopped(source: Source, last: int) -> Iterator[Problem]:
    """Joins that are to stop a loop which goes on for ever, and do not: its `timeout_path` leads elsewhere."""
    flow, name = source.flow, source.flow.names[last]
    loop = source.nodes[name].loop
    assert loop is not None
    for index in _joins(flow, last):
        join = flow.names[index]
        if join in loop.timeout_path or flow.leads_only_to(last, index):
            continue
        message = (
            f"`{join}` does not stop the loop: its `timeout_path` leads elsewhere; and as its condition always holds, "
            f"`{name}` never leads to `{join}`"
        )
        yield Problem(f"/nodes/{name}/loop/timeout_path", message, _to(source, name, index))


def _joins(flow: Flow, last: int) -> list[int]:
    """The joins behind the loop that stop what leads to them alone."""
    spot = flow.spots[last]
    handlers = {other for way in spot.caught for other in way}
    return [
        one for one in spot.after if one not in handlers and flow.spots[one].need and flow.spots[one].cancels
    ]


def _to(source: Source, name: str, index: int) -> str:
    """Say how to write it so that the loop leads to this join and nowhere else."""
    join = source.flow.names[index]
    is_after = name in source.nodes[join].after
    besides = f"take `{name}` out of `after` there" if is_after else f"name `{join}` nowhere else at `{name}`"
    return f"write `timeout_path: {join}` here, so that `{join}` stops the loop, and {besides}"


def _left(flow: Flow) -> set[int]:
    """The last nodes of the loops that another of their nodes may leave."""
    found: set[int] = set()
    for index, spot in enumerate(flow.spots):
        if spot.around:
            level = min(flow.going(index, way)[0] for way in (*spot.ways, *spot.caught))
            found.update(last for last in spot.around[level:] if last != index)
    return found


def _half_meant(source: Source) -> Iterator[Problem]:
    """Nodes that say they come after a loop, which then leads to them only when its rounds are used up."""
    for name, node in source.nodes.items():
        if node.loop is None:
            continue
        otherwise = {*node.loop.break_path, *(named for _, named in chosen(name, node))}
        for other in node.loop.timeout_path:
            follower = source.nodes.get(other)
            if follower is not None and name in follower.after and other not in otherwise:
                message = f"`{name}` leads here only when its rounds are used up, by its `timeout_path`"
                hint = f"take `{name}` out of `after`, or name `{other}` in its `break_path` too"
                yield Problem(f"/nodes/{escape(other)}/after", message, hint)


def always_holds(condition: Condition | None) -> bool:
    """Whether it certainly does, whatever the values are."""
    return condition is not None and _constant(condition) is True


def _constant(condition: Condition) -> bool | None:
    """The answer of a constant condition; None for one that depends on a value, or breaks."""
    if isinstance(condition, AllOf):
        return _of_all(map(_constant, condition.conditions))
    if isinstance(condition, AnyOf):
        return _not(_of_all(map(_not, map(_constant, condition.conditions))))
    if isinstance(condition, Not):
        return _not(_constant(condition.condition))
    if isinstance(condition, Matches) and (isinstance(condition.schema, bool) or condition.schema == {}):
        return (condition.schema is not False) != condition.invert
    if isinstance(condition, Python) or names_of(condition):
        return None
    try:
        return judge(condition, _NO_VALUES.__getitem__, {}, {})
    except ConditionError:
        return None


def _of_all(values: Iterable[bool | None]) -> bool | None:
    found = set(values)
    return False if False in found else None if None in found else True


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


_NO_VALUES: dict[Path, object] = {}
