"""Where the nodes of a graph are drawn: in layers from top to bottom, loops in boxes. Pure: names and edges in, places out.

What is drawn there is in drawing.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

WIDTH, HEIGHT = 168, 46
_ACROSS: Final = 24
_DOWN: Final = 44
_NARROW: Final = 14  # of the place where an edge passes a layer
_MARGIN: Final = 22
_SWEEPS: Final = 6
MOST_BENDS: Final = 1_500
Point = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Edge:
    """kind: as the API has it; `again` leads back."""

    sender: str
    receiver: str
    kind: str


@dataclass(frozen=True, slots=True)
class Line:
    """An edge: the points that it goes through, from top to bottom unless it leads back."""

    edge: Edge
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """The box around the nodes of a loop, named by its last node."""

    name: str
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Layout:
    """places: the upper left corner of each node."""

    places: Mapping[str, Point]
    lines: Sequence[Line]
    frames: Sequence[Frame]
    width: int
    height: int


@dataclass(slots=True, eq=False)
class _Spot:
    """A node in its layer, or the place where an edge passes the layer."""

    name: str
    layer: int
    rank: float = 0.0
    x: int = 0
    above: list[_Spot] = field(default_factory=list)
    below: list[_Spot] = field(default_factory=list)

    @property
    def width(self) -> int:
        return WIDTH if self.name else _NARROW


def lay_out(nodes: Sequence[str], edges: Sequence[Edge], loops: Mapping[str, Sequence[str]]) -> Layout:
    """`nodes` are in a topological order; `loops` has the last nodes of the loops around each."""
    forward = [
        edge for edge in edges if edge.kind != "again" and edge.sender in nodes and edge.receiver in nodes
    ]
    spots = {name: _Spot(name, 0) for name in nodes}
    before: dict[str, list[str]] = {name: [] for name in nodes}
    for edge in forward:
        before[edge.receiver].append(edge.sender)
    for name in nodes:
        spots[name].layer = max((spots[one].layer + 1 for one in before[name]), default=0)
    layers: list[list[_Spot]] = [
        [] for _ in range(max((spot.layer for spot in spots.values()), default=-1) + 1)
    ]
    for name in nodes:
        layers[spots[name].layer].append(spots[name])
    ways = _ways(forward, spots, layers)
    _sort(layers)
    width = _place(layers)
    places = {name: (spots[name].x, _top(spots[name].layer)) for name in nodes}
    lines = [Line(edge, tuple(_points(way))) for edge, way in zip(forward, ways, strict=True)]
    lines += [
        _back(edge, places)
        for edge in edges
        if edge.kind == "again" and {edge.sender, edge.receiver} <= set(nodes)
    ]
    frames = _frames(places, loops)
    return Layout(places, lines, frames, width, _top(len(layers)) - _DOWN + _MARGIN)


def _top(layer: int) -> int:
    return _MARGIN + layer * (HEIGHT + _DOWN)


def _ways(
    edges: Sequence[Edge], spots: Mapping[str, _Spot], layers: Sequence[list[_Spot]]
) -> list[list[_Spot]]:
    """The spots that each edge goes through. A long one gets a place in every layer that it passes, while there are not too many."""
    ways, left = [], MOST_BENDS
    for edge in edges:
        first, last = spots[edge.sender], spots[edge.receiver]
        way, length = [first], last.layer - first.layer - 1
        if 0 < length <= left:
            left -= length
            for layer in range(first.layer + 1, last.layer):
                way.append(_Spot("", layer))
                layers[layer].append(way[-1])
        way.append(last)
        for upper, lower in pairwise(way):
            upper.below.append(lower)
            lower.above.append(upper)
        ways.append(way)
    return ways


def _sort(layers: Sequence[list[_Spot]]) -> None:
    """Each spot near the middle of those that it is joined to, so that few edges cross."""
    for layer in layers:
        _ranked(layer)
    for sweep in range(_SWEEPS):
        goes_down = sweep % 2 == 0
        for layer in layers if goes_down else reversed(layers):
            for spot in layer:
                joined = spot.above if goes_down else spot.below
                if joined:
                    spot.rank = sum(one.rank for one in joined) / len(joined)
            layer.sort(key=lambda spot: spot.rank)
            _ranked(layer)


def _ranked(layer: Sequence[_Spot]) -> None:
    for index, spot in enumerate(layer):
        spot.rank = (index + 0.5) / len(layer)


def _place(layers: Sequence[Sequence[_Spot]]) -> int:
    """The left edge of each spot, each layer in the middle; the width of the whole."""
    widths = [sum(spot.width + _ACROSS for spot in layer) - _ACROSS for layer in layers]
    widest = max(widths, default=0)
    for layer, width in zip(layers, widths, strict=True):
        x = _MARGIN + (widest - width) // 2
        for spot in layer:
            spot.x = x
            x += spot.width + _ACROSS
    return widest + 2 * _MARGIN + _ACROSS


def _points(way: Sequence[_Spot]) -> list[Point]:
    points: list[Point] = []
    for index, spot in enumerate(way):
        middle, top = spot.x + spot.width // 2, _top(spot.layer)
        if index > 0:
            points.append((middle, top))
        if index < len(way) - 1:
            points.append((middle, top + HEIGHT))
    return points


def _back(edge: Edge, places: Mapping[str, Point]) -> Line:
    """From the right side of the last node of a loop to the right side of its first."""
    (x, y), (to_x, to_y) = places[edge.sender], places[edge.receiver]
    return Line(edge, ((x + WIDTH, y + HEIGHT // 2), (to_x + WIDTH, to_y + HEIGHT // 2)))


def _frames(places: Mapping[str, Point], loops: Mapping[str, Sequence[str]]) -> list[Frame]:
    """The outermost first, so that the inner ones are drawn upon them."""
    members: dict[str, list[str]] = {}
    depth: dict[str, int] = {}
    for name, around in loops.items():
        for level, last in enumerate(around):
            members.setdefault(last, []).append(name)
            depth[last] = min(level, depth.get(last, level))
    frames = []
    for last in sorted(members, key=lambda name: depth[name]):
        inside = [places[name] for name in members[last] if name in places]
        if not inside:
            continue
        room = max(_MARGIN - 8 - 4 * depth[last], 4)
        left, top = min(x for x, _ in inside) - room, min(y for _, y in inside) - room
        right, bottom = max(x for x, _ in inside) + WIDTH + room, max(y for _, y in inside) + HEIGHT + room
        frames.append(Frame(last, left, top, right - left, bottom - top))
    return frames
