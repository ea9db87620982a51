"""A map: the same work for each item of a list, several at a time, until enough have succeeded or too many
have failed.

Items are begun in the order of the list. Their outputs leave the state in parts, so that a state holds the
items at work and little more. The map's state is in core/log/scopes.py; the work for an item is a node of
another kind, which the compiler has made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from baton.core.graph.graph import Each, Node, graph_name
from baton.core.log import events as ev
from baton.core.log.folding.workflow_limits import ASKED
from baton.core.log.scopes import FAILED, NOT_BEGUN, RUNNING, STOPPED, SUCCEEDED, Map, late_end
from baton.core.log.work import Open
from baton.core.nodes.base import Activation, Done, Failed, Kind, Moved, Next, NodeContext, Opened, UnfitError

MAP_FAILED, MAP_INVALID = "map_failed", "map_invalid"
TOGETHER, HELD_BYTES = 100, 32_768
"""Number and bytes of results that are gathered in one part: the state holds no more."""
_encode = msgspec.json.Encoder().encode


class MapKind(Kind):
    """A map. It goes on when the outcome is known: at once, or when all items have ended.

    With `rest: run` and a number of items to wait for, it goes on with the last of these, and the others run
    beside the nodes after it. If it fails, all items end first, because the saga may stop with it.
    """

    name = "map"
    has_attempts = True

    def part(self, node: Node, work: Open | None, item: str) -> Node:
        """Return the node for an item; its requests to models are checked against the limits of the whole."""
        do = _each(node).do
        if node.limits and (asked := {name: cap for name, cap in node.limits.items() if name in ASKED}):
            return replace(do, limits=asked)
        return do

    def keeps_failure(self, item: str) -> bool:
        return bool(item)

    def tolerates(self, node: Node, work: Open | None) -> bool:
        assert isinstance(work, Map), "nothing else is opened here"
        each, failed = _each(node), work.lost + len(work.failures) + 1
        return work.is_late or (each.tells_all and not _has_failed(each, work, _Tally(failed=failed)))

    def begin(self, at: Activation, context: NodeContext) -> Next | None:
        given, each = context.value(at), _each(at.node)
        if not isinstance(given.v, list):
            return _invalid(at, f"`map.over` gives {_kind_of(given.v)}, and a map is over a list")
        size = len(given.v)
        if size > each.most:
            more = "" if each.do.workflow else "; a child workflow for each item can have more"
            return _invalid(at, f"the list has {size:,} items, and at most {each.most:,} are possible{more}")
        if size < each.need:
            has = f"the list has {size:,} item{'' if size == 1 else 's'}"
            have = "1 has" if each.need == 1 else f"{each.need:,} have"
            return Failed(ev.failed_with(MAP_FAILED, f"{has}, and {have} to succeed", at.node.name))
        if size:
            return Opened(ev.MapBegan(**at.place.fields, over=given, size=size))
        return _done(at, each, [], _Tally(), context)

    def resume(self, at: Activation, work: Open, context: NodeContext) -> Next | None:
        assert isinstance(work, Map), "nothing else is opened here"
        if work.failure is not None:
            return Failed(work.failure)
        each, items = _each(at.node), context.state.items_of(at.slot)
        if work.late is not None:
            if not items and work.begun == work.size:
                return Moved(late_end(at.place, work, 0))
            return _begins(at, each, work, len(items), context)
        ended = {item: value for item, value in items.items() if value is not None}
        tally = _tally(work, ended, len(items))
        is_over = tally.ended == work.size
        has_failed = bool(tally.failed) and _has_failed(each, work, tally)
        if is_over or each.rest == "cancel" or (each.rest == "beside" and not has_failed):
            if has_failed:
                results = _results(at, work, items, context)
                batch = _told(at, each, results, tally, context)
                failure = _why(at, each, work, tally)
                return Moved(ev.MapStopped(**at.place.fields, failure=failure, batch=batch))
            if is_over or 0 < each.need <= tally.succeeded:
                return _done(at, each, _results(at, work, items, context), tally, context)
        if len(ended) >= TOGETHER or _bytes(ended.values()) > HELD_BYTES:
            if (most := _bytes((*work.parts, *ended.values()), whole=True)) > context.most_bytes:
                text = (
                    f"what the items give is too large: the first {tally.ended:,} have given {most:,} bytes"
                )
                return Failed(ev.Failure("value_too_large", text, at.node.name))
            results = [
                _result(item, value, work, context, at) for item, value in sorted(ended.items(), key=_by)
            ]
            return Moved(
                ev.ItemsGathered(
                    **at.place.fields,
                    items=tuple(sorted(map(int, ended))),
                    results=ev.Value(v=results),
                )
            )
        return _begins(at, each, work, len(items) - len(ended), context)

    def node_view(self, node: Node) -> dict[str, Any]:
        each = _each(node)
        shown: dict[str, Any] = {"over": node.arguments, "of": each.do.kind, "at_once": each.at_once}
        graph = graph_name(each.do.workflow)
        named = {"tool": each.do.tool, "graph": graph, "workflow": "" if graph else each.do.workflow}
        return shown | {key: value for key, value in named.items() if value}


class _Tally(Struct, frozen=True):
    """Numbers of items of a map that have succeeded, have failed, run, and have not begun."""

    succeeded: int = 0
    failed: int = 0
    running: int = 0
    not_begun: int = 0

    @property
    def ended(self) -> int:
        return self.succeeded + self.failed


def _tally(work: Map, ended: Mapping[str, Any], held: int) -> _Tally:
    failed = work.lost + len(work.failures)
    return _Tally(work.gathered + len(ended) - failed, failed, held - len(ended), work.size - work.begun)


def _begins(at: Activation, each: Each, work: Map, running: int, context: NodeContext) -> Moved | None:
    """Return the event for as many further items as may be at work."""
    free = min(each.at_once - running, work.size - work.begun)
    if free <= 0:
        return None
    return Moved(ev.ItemsBegan(**at.place.fields, first=work.begun, count=free, at=context.now))


def _bytes(values: Iterable[ev.Value], *, whole: bool = False) -> int:
    """Return the bytes of these values in the state; `whole`: with those of blobs."""
    return sum((one.size if whole else 0) if one.ref else len(_encode(one.v)) for one in values)


def _each(node: Node) -> Each:
    assert node.each is not None, "the compiler gives it one"
    return node.each


def _kind_of(value: Any) -> str:
    names = {dict: "an object", str: "a text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _invalid(at: Activation, why: str) -> Failed:
    return Failed(ev.failed_with(MAP_INVALID, why, at.node.name))


def _most_failures(each: Each, size: int) -> int:
    """Return the most items that may fail; -1: no number is set."""
    return size * each.share // 100 if each.share >= 0 else each.tolerated


def _has_failed(each: Each, work: Map, tally: _Tally) -> bool:
    """Return true if too many items have failed, or too few are left."""
    most = _most_failures(each, work.size)
    if most >= 0 and tally.failed > most:
        return True
    if each.need:
        return work.size - tally.failed < each.need
    return most < 0


def _why(at: Activation, each: Each, work: Map, tally: _Tally) -> ev.Failure:
    """Return the failure of the map: that of the item, if each has to succeed."""
    if not each.tells_all:
        # Those that have left the state have not failed: the map would be over.
        item, failure = next(iter(work.failures.items()))
        text = f"item {item}: {failure.message}"
        return replace(failure, message=text, node=at.node.name, errors=work.first, doubt=False)
    most, count = _most_failures(each, work.size), tally.failed
    text = f"{count} of {work.size:,} items {'has' if count == 1 else 'have'} failed"
    if most >= 0:
        text += f", and {most or 'none'} may"
    if each.need and not 0 <= most < count:
        text += f"; {each.need} have to succeed"
    first = "; ".join(f"{one.node}: {one.code}: {one.message}"[:200] for one in work.first[:5])
    failure = ev.failed_with(MAP_FAILED, f"{text}: {first}" if first else text, at.node.name)
    return replace(failure, errors=work.first)


def _done(
    at: Activation, each: Each, results: list[dict[str, Any]], tally: _Tally, context: NodeContext
) -> Done:
    goes_on = each.rest == "beside" and bool(tally.running or tally.not_begun)
    output: Any = _batch(results, tally, each) if each.tells_all else [one.get("output") for one in results]
    return Done(
        ev.MapClosed(
            **at.place.fields,
            output=context.made(at, output),
            succeeded=tally.succeeded,
            failed=tally.failed,
            stopped=0 if goes_on else tally.running,
            not_begun=tally.not_begun,
            running=tally.running if goes_on else 0,
            goes_on=goes_on,
        )
    )


def _told(
    at: Activation, each: Each, results: list[dict[str, Any]], tally: _Tally, context: NodeContext
) -> ev.Value:
    """Return the batch result of a failed map; without the outputs, if they are too large together."""
    try:
        return context.made(at, _batch(results, tally, each))
    except UnfitError:
        bare = [{**one, "output": None} if "output" in one else one for one in results]
        return context.made(at, _batch(bare, tally, each))


def _batch(results: list[dict[str, Any]], tally: _Tally, each: Each) -> dict[str, Any]:
    """Return the results of the items: the number of each fate, and each by its index."""
    return {
        SUCCEEDED: tally.succeeded,
        FAILED: tally.failed,
        **({RUNNING: tally.running, STOPPED: 0} if each.rest == "beside" else {STOPPED: tally.running}),
        NOT_BEGUN: tally.not_begun,
        "results": results,
    }


def _results(
    at: Activation, work: Map, items: Mapping[str, ev.Value | None], context: NodeContext
) -> list[dict[str, Any]]:
    """Return the result of each item, in the order of the list."""
    fate = RUNNING if _each(at.node).rest == "beside" else STOPPED
    found = {row["index"]: row for part in context.contents(at, work.parts) for row in part}
    for item, value in items.items():
        found[int(item)] = (
            {"index": int(item), "status": fate} if value is None else _result(item, value, work, context, at)
        )
    return [found.get(index) or {"index": index, "status": NOT_BEGUN} for index in range(work.size)]


def _result(item: str, value: ev.Value, work: Map, context: NodeContext, at: Activation) -> dict[str, Any]:
    failure = work.failures.get(item)
    if failure is None:
        return {"index": int(item), "status": SUCCEEDED, "output": context.content(at, value)}
    return {"index": int(item), "status": FAILED, "error": failure.of_an_item()}


def _by(pair: tuple[str, Any]) -> int:
    return int(pair[0])
