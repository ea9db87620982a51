"""Drawing of a saga's graph as SVG: placement of the nodes, and their shapes. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final
from zlib import crc32

from markupsafe import Markup

from baton.console.rendering import label, part, short_text
from baton.core.log.scopes import is_index
from baton.core.log.slots import scope_of
from baton.core.nodes.registry import KINDS

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
    """An edge. kind: as in the API; `again` leads back."""

    sender: str
    receiver: str
    kind: str


@dataclass(frozen=True, slots=True)
class Line:
    """The line of an edge: its points, from top to bottom unless it leads back."""

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
    """Placement of a graph. places: the upper left corner of each node."""

    places: Mapping[str, Point]
    lines: Sequence[Line]
    frames: Sequence[Frame]
    width: int
    height: int


@dataclass(slots=True, eq=False)
class _Spot:
    """A node in its layer, or the point at which an edge passes the layer."""

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
    """Return the layout. `nodes`: in topological order. `loops`: last nodes of the loops around each."""
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
    """Return the spots of each edge: one in each layer that it passes, unless that is too many."""
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
    """Sort each spot near the middle of its neighbours, so that few edges cross."""
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
    """Set the left edge of each spot, with each layer centred, and return the total width."""
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
    """Return the line from the right side of the last node of a loop to the right side of its first."""
    (x, y), (to_x, to_y) = places[edge.sender], places[edge.receiver]
    return Line(edge, ((x + WIDTH, y + HEIGHT // 2), (to_x + WIDTH, to_y + HEIGHT // 2)))


_GAP: Final = 20  # between two rows
_LANE: Final = 11


def lay_out_rows(nodes: Sequence[str], edges: Sequence[Edge], loops: Mapping[str, Sequence[str]]) -> Layout:
    """Return the layout of `lay_out` for a narrow screen: a node in each row, edges in lanes on the left.

    Edges of a node share a lane with those of the same kind. An edge to the next row needs none.
    """
    rows = {name: index for index, name in enumerate(nodes)}
    known = [edge for edge in edges if edge.sender in rows and edge.receiver in rows]
    ends: dict[tuple[int, str], int] = {}
    for edge in known:
        first, last = rows[edge.sender], rows[edge.receiver]
        if edge.kind != "again" and last - first > 1:
            ends[first, edge.kind] = max(ends.get((first, edge.kind), 0), last)
    free: list[int] = []  # the row from which each lane is free
    lanes: dict[tuple[int, str], int] = {}
    for (first, kind), last in sorted(ends.items()):
        lane = next((index for index, row in enumerate(free) if row <= first), len(free))
        free[lane : lane + 1] = [last]
        lanes[first, kind] = lane
    left = _MARGIN + _LANE * (len(free) + 1)
    places = {name: (left, _MARGIN + row * (HEIGHT + _GAP)) for name, row in rows.items()}
    lines = [
        _back(edge, places)
        if edge.kind == "again"
        else Line(edge, _in_lane(edge, places, lanes.get((rows[edge.sender], edge.kind), 0), left))
        for edge in known
    ]
    height = 2 * _MARGIN + len(nodes) * (HEIGHT + _GAP) - _GAP
    return Layout(places, lines, _frames(places, loops), left + WIDTH + 2 * _MARGIN, height)


def _in_lane(edge: Edge, places: Mapping[str, Point], lane: int, left: int) -> tuple[Point, ...]:
    (_, y), (_, to_y) = places[edge.sender], places[edge.receiver]
    if to_y - y == HEIGHT + _GAP:
        return (left + WIDTH // 2, y + HEIGHT), (left + WIDTH // 2, to_y)
    out, enters, x = y + HEIGHT * 2 // 3, to_y + HEIGHT // 3, left - _LANE * (lane + 1)
    return (left, out), (x, out), (x, enters), (left, enters)


def _frames(places: Mapping[str, Point], loops: Mapping[str, Sequence[str]]) -> list[Frame]:
    """Return the frames, outermost first, so that the inner ones are drawn over them."""
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


_LETTERS: Final = 21
_NOT_TAKEN: Final = frozenset({"skipped", "dropped", "joining", "unreached"})
_EDGES: Final = {
    "branch": "dotted",
    "catch": "catch",
    "timeout": "dotted",
    "break": "",
    "again": "dotted again",
}
_TIP: Final = Markup(
    '<defs><marker id="{}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>'
)


@dataclass(frozen=True, slots=True)
class Became:
    """State of a node: a word. rounds: number of rounds.

    items: for a map, the number of ended items, and the number of failed ones. differs: another saga, with
    which the page compares this one, has another result here.
    """

    word: str
    rounds: int = 1
    items: int = 0
    failed: int = 0
    differs: bool = False

    @property
    def folded(self) -> str:
        """Return the summary of a map, in place of its items."""
        failed = f", {self.failed} failed" if self.failed else ""
        return f", {self.items} item{'s' if self.items > 1 else ''}{failed}" if self.items else ""


def became(view: Mapping[str, Any], way: Mapping[str, Any] | None) -> dict[str, Became]:
    """Return the current or last state of each known node; `asking` where one of its items asks a person.

    A node whose work a rollback takes back, or that of its items, is `undone`, `not_undone` or `undoing`.
    """
    found: dict[str, Became] = {}
    done, failed = Counter[str](), Counter[str]()
    for step in way["steps"] if way else ():
        item = str(step.get("item") or "")
        if scope_of(item) and step["node"] in found:
            word = "not_undone" if step["became"] == "failed" else "undone"
            found[step["node"]] = replace(found[step["node"]], word=word)
        elif not item:
            rounds = found[step["node"]].rounds + 1 if step["node"] in found else 1
            found[step["node"]] = Became(str(step["became"]), rounds)
        elif is_index(item):
            done[step["node"]] += 1
            failed[step["node"]] += step["became"] == "failed"
    for active in view["active"]:
        state = str(active["state"])
        if active.get("item") and state != "asking":
            if not scope_of(str(active["item"])):
                continue  # its node says that it runs; a person is asked wherever the question is
            state = "undoing"
        before = found.get(active["node"])
        found[active["node"]] = Became(state, before.rounds if before else 1)
    return {name: replace(one, items=done[name], failed=failed[name]) for name, one in found.items()}


def draw_svg(
    workflow: Mapping[str, Any], known: Mapping[str, Became], there: str, percent: int | None = 100
) -> Markup:
    """Return the drawing. `there` is the path of the saga's page, which shows the node of a link. If empty,
    nodes link to `#node-NAME` of the page.

    percent: size in percent; None: as wide as the page.
    """
    return _draw(lay_out(*_graph(workflow)), workflow, known, there, percent)


WIDEST, _LARGEST = 1_200, 40
"""Width and nodes of a drawing beside a panel. The nodes of a larger one would be too small to be read."""
_MOST_ROWS: Final = 200


def drawings(
    workflow: Mapping[str, Any],
    known: Mapping[str, Became],
    there: str,
    *,
    page: str = "",
    chosen: str = "",
    is_beside: bool = False,
) -> list[tuple[str, Markup]]:
    """Return the drawings, each with the screens that show it: `desk`, `phone` or `any`.

    page: the page with `#node-NAME`, for a drawing below that of its document. chosen: the node that the page
    shows. is_beside: there is a panel beside it.
    """
    layers = lay_out(*_graph(workflow))
    is_large = len(layers.places) > _LARGEST or layers.width > WIDEST
    found = list[tuple[str, Layout]]()
    if not (is_beside and is_large):
        found.append(("desk", layers))
    if len(layers.places) <= _MOST_ROWS:
        found.append(("phone", lay_out_rows(*_graph(workflow))))
    return [
        (screens if len(found) > 1 else "any", _draw(made, workflow, known, there, page=page, chosen=chosen))
        for screens, made in found
    ]


def draw_rows(workflow: Mapping[str, Any], known: Mapping[str, Became], there: str, *, page: str) -> Markup:
    """Return the drawing with a node in each row, so that two of them can stand side by side. page: a name
    of this drawing on its page.
    """
    return _draw(lay_out_rows(*_graph(workflow)), workflow, known, there, page=page)


def _graph(workflow: Mapping[str, Any]) -> tuple[list[str], list[Edge], dict[str, list[str]]]:
    """Return the nodes, the edges, and the loops around each node."""
    nodes = [str(node["name"]) for node in workflow["nodes"]]
    edges = [Edge(str(one["from"]), str(one["to"]), str(one["kind"])) for one in workflow["edges"]]
    loops = {str(node["name"]): [str(one) for one in node.get("loops", ())] for node in workflow["nodes"]}
    return nodes, edges, loops


def _draw(
    made: Layout,
    workflow: Mapping[str, Any],
    known: Mapping[str, Became],
    there: str,
    percent: int | None = 100,
    *,
    page: str = "",
    chosen: str = "",
) -> Markup:
    kinds = {str(node["name"]): _shown(str(node["kind"])) for node in workflow["nodes"]}
    taken = {name for name, one in known.items() if one.word not in _NOT_TAKEN}
    tip = f"tip-{made.width}-{made.height}-{crc32(page.encode())}"  # a page may have several drawings
    parts = [
        Markup('<svg class="graph" {3} viewBox="0 0 {0} {1}" role="group" aria-label="{2}">').format(
            made.width,
            made.height,
            f"The graph of {short_text(workflow['name'], 80)}, {len(kinds)} nodes",
            Markup('width="100%"')
            if percent is None
            else Markup('width="{}" height="{}"').format(
                made.width * percent // 100, made.height * percent // 100
            ),
        ),
        _TIP.format(tip),
    ]
    for frame in made.frames:
        text = f"loop of {short_text(frame.name, 30)}"
        parts.append(
            Markup(
                '<rect class="loop" x="{}" y="{}" width="{}" height="{}" rx="10"><title>{}</title></rect>'
            ).format(frame.x, frame.y, frame.width, frame.height, text)
        )
    parts += [_line(line, taken, tip) for line in made.lines]
    for name in kinds:
        drawn = _node(name, kinds[name], made.places[name], known.get(name), there, page, name == chosen)
        parts.append(drawn)
    return Markup("").join([*parts, Markup("</svg>")])


def _line(line: Line, taken: set[str], tip: str) -> Markup:
    kind = _EDGES.get(line.edge.kind, "")
    went = " went" if {line.edge.sender, line.edge.receiver} <= taken else ""
    (x, y), *rest = line.points
    path = f"M{x} {y}"
    if line.edge.kind == "again":
        (to_x, to_y), far = rest[0], max(x, rest[0][0]) + 26
        path += f"C{far} {y} {far} {to_y} {to_x} {to_y}"
    else:
        for to_x, to_y in rest:
            bend = (to_y - y) // 2
            path += f"C{x} {y + bend} {to_x} {to_y - bend} {to_x} {to_y}"
            x, y = to_x, to_y
    return Markup('<path class="edge {}" d="{}" marker-end="url(#{})"/>').format(f"{kind}{went}", path, tip)


def _shown(kind: str) -> str:
    """Return the name of a kind in documents."""
    known = KINDS.get(kind)
    return (known.shown if known else "") or kind


def _node(
    name: str, kind: str, place: Point, known: Became | None, there: str, page: str, is_chosen: bool
) -> Markup:
    x, y = place
    word = label(known.word) if known else "not reached"
    rounds = (f", {known.rounds} rounds" if known.rounds > 1 else "") + known.folded if known else ""
    to = f"{there}{'&' if '?' in there else '?'}node={part(name)}#node"
    said = f"{label(kind)}, {word}{rounds}{', differs' if known and known.differs else ''}"
    if not there:
        to, said = f"{page}#node-{part(name)}", label(kind)
    return Markup(
        '<a href="{to}" aria-label="{name}: {said}"{current}><g class="node {state}"><title>{name}: {said}</title>'
        '<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="7"/>'
        '<text x="{tx}" y="{t1}">{short}</text><text class="small" x="{tx}" y="{t2}">{said}</text></g></a>'
    ).format(
        to=to,
        current=Markup(' aria-current="true"') if is_chosen else "",
        name=short_text(name, 128),
        short=short_text(name, 128) if len(name) <= _LETTERS else f"{short_text(name[: _LETTERS - 1])}…",
        said=said,
        state=(part(known.word) + (" differs" if known.differs else ""))
        if known
        else "unreached"
        if there
        else "plain",
        x=x,
        y=y,
        w=WIDTH,
        h=HEIGHT,
        tx=x + 10,
        t1=y + 20,
        t2=y + 36,
    )
