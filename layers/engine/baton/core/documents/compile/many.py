"""Nodes with `map`: what is wrong with it, what such a node gives, and what becomes of it in the graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from baton.core.documents.compile.analysis.flow import waits_for
from baton.core.documents.compile.checks.known import follow
from baton.core.documents.nodes.base import REPLAN
from baton.core.expressions import expressions_in, lone_path
from baton.core.graph.graph import Each, Node
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.compile.analysis.source import Source
    from baton.core.documents.parts.many import MapModel


def check(source: Source) -> Iterator[Problem]:
    """What a `map` is over, how many of its items have to succeed, and fields that do not go with it."""
    for name, node in source.nodes.items():
        if node.map is None:
            continue
        place = f"/nodes/{name}/map"
        yield from _over(source, place, name, node.map)
        if node.map.goes_on:
            yield from _left_at_once(source, place, name)
        if node.cancel_on is not None:
            message = "a signal cancels one child, and with `map` there is one for each item"
            yield Problem(f"/nodes/{name}/cancel_on", message, "let the child itself wait for the signal")
        if REPLAN in node.model_fields_set:
            message = "a model puts nothing in the place of one item of a list"
            yield Problem(
                f"/nodes/{name}/{REPLAN}",
                message,
                "start a child `workflow` for each item; what it does can have it",
            )


def _left_at_once(source: Source, place: str, name: str) -> Iterator[Problem]:
    """The end of a round stops what is left of it, so that items cannot run on behind a node that ends one."""
    flow = source.flow
    index = flow.at.get(name)
    if index is None:
        return  # it stands on a circle, or behind one: that is told elsewhere
    spot, level = flow.spots[index], flow.level(index)
    if spot.is_tail or any(flow.going(index, way)[0] < level for way in spot.ways):
        message = "the node ends the round of its loop, and with it the items that are left: none can run on"
        yield Problem(
            f"{place}/rest", message, "leave `rest` out, or let a node behind this one end the round"
        )


def _over(source: Source, place: str, name: str, model: MapModel) -> Iterator[Problem]:
    over, most = model.over, source.kinds[name].most_items
    need, _, _ = waits_for(model, 0)
    if isinstance(over, list):
        if len(over) > most:
            yield Problem(place, f"the list has {len(over):,} items, and at most {most:,} are possible")
        if need > len(over):
            message = f"this waits for {need} items, and there are {len(over)}: it always fails"
            yield Problem(place, message, "wait for fewer, or for `all`")
        return
    path = lone_path(over)
    if any(isinstance(found, Exception) for _, found in expressions_in(over)):
        return  # told where all expressions are
    if path is None:
        yield Problem(place, "a text is no list", "write one expression and nothing else, or a list")
        return
    types = follow(source, path, name)[0].types()
    if types and "array" not in types:
        yield Problem(place, f"`{path.text}` is no list", "name a list")


def mapped(source: Source, name: str, kept: dict[str, Any], schema: Any) -> dict[str, Any]:
    """The fields of the graph's node that are done for each item, as those of one node that does."""
    model = source.nodes[name].map
    assert model is not None, "the caller has looked"
    need, _, cancels = waits_for(model, 0)
    do = Node(name=name, output_schema=schema, **{**kept, REPLAN: None})
    each = Each(
        do=do,
        at_once=model.concurrency,
        most=source.kinds[name].most_items,
        need=need,
        tolerated=-1 if model.tolerated_failures is None else model.tolerated_failures,
        share=-1 if model.tolerated_share is None else model.tolerated_share,
        rest="beside" if model.goes_on else "cancel" if cancels else "run",
    )
    whole = {key: getattr(do, key) for key in ("failures", "failover", "signal", "stays", "domain")}
    return {"kind": "map", "arguments": model.over, "each": each, **whole}
