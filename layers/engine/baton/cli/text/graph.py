"""A workflow's graph as text and as a Mermaid flowchart. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from baton.words.text import counted, plain, span

if TYPE_CHECKING:
    from baton.core.documents.nodes.base import NodeDocument
    from baton.core.graph.graph import Graph, Node

WIDTH = 110
# So many nodes with the same neighbours hang on one lane instead of having one each.
BUNDLE = 5
# Room that is kept for names and what they do; the rest of the width is for lanes.
_LABELS = 50
_FEWEST_LANES = 6
_NAME = 32
_JOINED = 4

_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_LINES = {
    0: " ",
    _UP | _DOWN: "│",
    _LEFT | _RIGHT: "─",
    _DOWN | _RIGHT: "╭",
    _DOWN | _LEFT: "╮",
    _UP | _RIGHT: "╰",
    _UP | _LEFT: "╯",
    _UP | _DOWN | _RIGHT: "├",
    _UP | _DOWN | _LEFT: "┤",
    _DOWN | _LEFT | _RIGHT: "┬",
    _UP | _LEFT | _RIGHT: "┴",
    _UP | _DOWN | _LEFT | _RIGHT: "┼",
}
_PLAIN = str.maketrans("│─●○◆◇◂▸←↺…╭╮╰╯├┤┬┴┼", "|-*o#=<><@.+++++++++")


@dataclass(frozen=True, slots=True)
class Box:
    """A node of the drawing: its kind, its work in a few words, and its predecessors.

    `joins` describes the join if it does not wait for all predecessors, `note` the continuation. `edges` are
    the kinds of the edges from `before`, in their order. `back` is the node to which its loop returns.
    `starts`: the graph of the document that it runs.
    """

    name: str
    kind: str
    what: str
    before: tuple[str, ...] = ()
    joins: str = ""
    note: str = ""
    edges: tuple[str, ...] = ()
    back: str = ""
    starts: str = ""


@dataclass(frozen=True, slots=True)
class DrawnPart:
    """A separate part of the drawing: a document's nodes, or those of a graph that it names."""

    name: str
    boxes: Sequence[Box]


@dataclass(frozen=True, slots=True)
class GraphShape:
    """A definition: its parts, the document's first; in words the handler of its failure, and its graph."""

    parts: Sequence[DrawnPart]
    handler: str = ""
    handled: str = ""

    @property
    def boxes(self) -> Sequence[Box]:
        """Return the document's own boxes."""
        return self.parts[0].boxes


def box_kind(box: Box) -> NodeDocument:
    """Return the kind of the box, or the simplest kind for one that only a newer deployment knows."""
    from baton.core.documents.models import kind_named  # pydantic is for those who draw

    return kind_named(box.kind)


class _TooWide(Exception):
    """Error for a graph with more lanes than fit the width."""


def draw(boxes: Sequence[Box], width: int = WIDTH, *, plain: bool = False) -> list[str]:
    """Return the graph as lines of at most `width` characters, unless names are longer. `plain` restricts
    them to ASCII.

    `boxes` are in topological order. A graph with too many lanes is shown as layers, each node with its
    predecessors.
    """
    try:
        rows = _Lanes(boxes, max(_FEWEST_LANES, (width - _LABELS) // 2)).rows()
    except _TooWide:
        rows = list(_as_layers(boxes))
    lines = _labelled(rows, width)
    return [line.translate(_PLAIN) for line in lines] if plain else lines


def layers(boxes: Iterable[Box]) -> dict[str, int]:
    """Return the layer of each node, counted from 1: the longest path to it from a first node."""
    found: dict[str, int] = {}
    for box in boxes:
        found[box.name] = 1 + max((found[name] for name in box.before), default=0)
    return found


def draw_all(shape: GraphShape, width: int = WIDTH, *, plain: bool = False) -> list[str]:
    """Return the document's graph, and below it each graph that it names, under its name."""
    first, *named = shape.parts
    lines = draw(first.boxes, width, plain=plain)
    for part in named:
        handles = ", the failure handler" if part.name == shape.handled else ""
        lines += ["", f"graph {part.name}{handles}", *draw(part.boxes, width, plain=plain)]
    return lines


# ---- lanes -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Unit:
    """The content of one place of the drawing: a node, or nodes with the same neighbours."""

    boxes: list[Box]
    layer: int
    before: list[_Unit] = field(default_factory=list)
    after: list[_Unit] = field(default_factory=list)
    open: int = 0
    """Number of `before` units that are not drawn yet."""


Row = tuple[str, Box | None]


class _Lanes:
    """Drawing from top to bottom. `lanes` contains the target unit of each column."""

    def __init__(self, boxes: Sequence[Box], most: int) -> None:
        self._units = _units(boxes)
        self._most = most
        self._lanes: list[_Unit | None] = []
        self._rows: list[Row] = []

    def rows(self) -> list[Row]:
        """Return the rows. Raises `_TooWide`."""
        sources = [unit for unit in self._units if not unit.before]
        sources.reverse()
        for _ in self._units:
            column = self._ready()
            if column is None:
                self._draw(self._free(0), sources.pop())
            else:
                unit = self._lanes[column]
                assert unit is not None, "a ready lane leads somewhere"
                self._draw(column, unit)
        return self._rows

    def _ready(self) -> int | None:
        """Return the leftmost lane whose unit can be drawn: a chain is finished before the next."""
        return next((c for c, unit in enumerate(self._lanes) if unit is not None and not unit.open), None)

    def _free(self, from_: int) -> int:
        for column in range(from_, len(self._lanes)):
            if self._lanes[column] is None:
                return column
        self._lanes.append(None)
        if len(self._lanes) > self._most:
            raise _TooWide
        return len(self._lanes) - 1

    def _draw(self, column: int, unit: _Unit) -> None:
        if not unit.before and self._rows and self._rows[-1][0][2 * column :][:1].strip():
            # What stands below something follows it; so what follows nothing keeps a distance.
            self._rows.append((self._line({}), None))
        # The column is taken while its node is drawn, whether or not a lane has led here.
        self._lanes[column] = unit
        if len(unit.boxes) == 1:
            box = unit.boxes[0]
            self._rows.append((self._line({column: box_kind(box).icon}), box))
        else:
            self._bundle(column, unit)
        self._go_on(column, unit)
        for follower in unit.after:
            follower.open -= 1

    def _bundle(self, column: int, unit: _Unit) -> None:
        end = max(c for c, other in enumerate(self._lanes) if other is not None) + 1
        last = len(unit.boxes) - 1
        for index, box in enumerate(unit.boxes):
            up = _UP if unit.before or index else 0
            down = _DOWN if unit.after or index < last else 0
            glyphs = {column: _LINES[up | down | _RIGHT], end: box_kind(box).icon}
            self._rows.append((self._line(glyphs, (column, end)), box))

    def _go_on(self, column: int, unit: _Unit) -> None:
        """Lead the lane to its successors, with a row of connections if it forks or joins."""
        there = {id(other): c for c, other in enumerate(self._lanes) if other is not None and c != column}
        # What comes late keeps the lane, so that it runs straight and its siblings come back to it.
        followers = sorted(unit.after, key=lambda follower: -follower.layer)
        new = [follower for follower in followers if id(follower) not in there]
        self._lanes[column] = new[0] if new else None
        joined = [there[id(follower)] for follower in followers if id(follower) in there]
        # With one way out there is one way to read the line.
        arrows = joined if joined and (new or len(joined) > 1) else []
        ends = dict.fromkeys(joined, _UP | _DOWN)
        for follower in new[1:]:
            fresh = self._free(column + 1)
            self._lanes[fresh] = follower
            ends[fresh] = _DOWN
        if ends:
            ends[column] = _UP | (_DOWN if new else 0)
            low, high = min(ends), max(ends)
            glyphs = {
                c: "│"
                if c in arrows
                else _LINES[sides | (_LEFT if c > low else 0) | (_RIGHT if c < high else 0)]
                for c, sides in ends.items()
            }
            line = list(self._line(glyphs, (low, high)))
            for c in arrows:
                line[2 * c + (1 if c < column else -1)] = "◂" if c < column else "▸"
            self._rows.append(("".join(line), None))
        while self._lanes and self._lanes[-1] is None:
            self._lanes.pop()

    def _line(self, glyphs: dict[int, str], span: tuple[int, int] = (0, 0)) -> str:
        """Return one row: `glyphs` by column, a horizontal line over `span`, and the lanes that pass."""
        low, high = span
        text = []
        for column in range(max(len(self._lanes), max(glyphs, default=0) + 1)):
            passes = column < len(self._lanes) and self._lanes[column] is not None
            across = "─" if low < column < high else " "
            text.append(glyphs.get(column) or ("│" if passes else across))
            text.append("─" if low <= column < high else " ")
        return "".join(text).rstrip()


def _units(boxes: Sequence[Box]) -> list[_Unit]:
    """Return the boxes as units with their neighbours, in the order of the boxes."""
    after: dict[str, list[str]] = {box.name: [] for box in boxes}
    for box in boxes:
        for name in box.before:
            after[name].append(box.name)
    alike: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Box]] = {}
    for box in boxes:
        alike.setdefault((box.before, tuple(after[box.name])), []).append(box)
    layer = layers(boxes)
    unit_of: dict[str, _Unit] = {}
    units: list[_Unit] = []
    for box in boxes:
        group = alike[box.before, tuple(after[box.name])]
        if len(group) < BUNDLE:
            group = [box]
        if group[0] is box:
            units.append(_Unit(group, layer[box.name]))
        unit_of[box.name] = units[-1] if group[0] is box else unit_of[group[0].name]
    for unit in units:
        befores = {id(unit_of[name]): unit_of[name] for name in unit.boxes[0].before}
        unit.before = list(befores.values())
        unit.open = len(unit.before)
        for before in unit.before:
            before.after.append(unit)
    return units


# ---- layers and labels -----------------------------------------------------------------------------------------


def _as_layers(boxes: Sequence[Box]) -> Iterator[Row]:
    layer = layers(boxes)
    shown = 0
    # Sorting is stable: within a layer the boxes keep their order.
    for box in sorted(boxes, key=lambda box: layer[box.name]):
        if layer[box.name] != shown:
            shown = layer[box.name]
            yield f"layer {shown}", None
        yield f"  {box_kind(box).icon}", box


def _labelled(rows: Sequence[Row], width: int) -> list[str]:
    gutter = max((len(text) for text, box in rows if box), default=0) + 2
    names = min(_NAME, max((len(box.name) for _, box in rows if box), default=0))
    whats = min(_NAME, max((len(box.what) for _, box in rows if box), default=0))
    # Where every edge is a lane only joins are said again; in layers there are no lanes.
    says: Callable[[Box], bool] = (
        (lambda box: bool(box.before)) if rows and rows[0][1] is None else (lambda box: len(box.before) > 1)
    )
    lines = []
    for text, box in rows:
        if box is None:
            lines.append(text)
            continue
        line = f"{text:<{gutter}}{box.name:<{names}}  {box.what:<{whats}}"
        line += f"  ← {_listed(box.before)}{box.joins}" if says(box) else ""
        line = f"{line.rstrip()}  {box.note}" if box.note else line
        # A name is never cut: users search for it.
        most = max(width, gutter + len(box.name) + 1)
        line = line.rstrip()
        lines.append(line if len(line) <= most else line[: most - 1] + "…")
    return lines


def _listed(names: Sequence[str]) -> str:
    if len(names) <= _JOINED:
        return ", ".join(names)
    return f"{', '.join(names[: _JOINED - 1])} and {len(names) - _JOINED + 1} more"


_QUOTE = '"'  # around every text: braces and brackets are words of the language
# Edges that are not always taken are dotted.
_ARROWS = {
    "branch": "-. branch .->",
    "catch": "-. catch .->",
    "timeout": "-. timeout .->",
    "break": "-- break -->",
    "again": "-. again .->",
}


def mermaid(shape: GraphShape) -> str:
    """Return all parts in the Mermaid language. Dotted lines lead to named graphs, the subgraphs."""
    first, *named = shape.parts
    frames = {part.name: f"g{index}" for index, part in enumerate(named)}
    lines = ["flowchart TD", *_chart(first.boxes, "n", frames)]
    for part in named:
        frame = frames[part.name]
        lines += [
            f'  subgraph {frame}["graph {part.name}"]',
            *_chart(part.boxes, f"{frame}n", frames),
            "  end",
        ]
    if shape.handler:
        lines.append(f'  failed[["failure handler<br/>{shape.handler}"]]')
        lines += [f"  failed -.-> {frames[shape.handled]}"] if shape.handled in frames else []
    return "\n".join(lines)


def _chart(boxes: Sequence[Box], prefix: str, frames: Mapping[str, str]) -> list[str]:
    """Return the lines of a chart. Nodes have generated ids, because `end` is a reserved word of Mermaid."""
    ids, lines = {box.name: f"{prefix}{index}" for index, box in enumerate(boxes)}, []
    for box in boxes:
        opening, closing = box_kind(box).outline
        text = "<br/>".join(part for part in (box.name, box.what) if part).replace('"', "#quot;")
        lines.append(f'  {ids[box.name]}{opening.rstrip(_QUOTE)}"{text}"{closing.lstrip(_QUOTE)}')
    for box in boxes:
        kinds = box.edges or ("after",) * len(box.before)
        for before, kind in zip(box.before, kinds, strict=True):
            lines.append(f"  {ids[before]} {_ARROWS.get(kind, '-->')} {ids[box.name]}")
    lines += [f"  {ids[box.name]} {_ARROWS['again']} {ids[box.back]}" for box in boxes if box.back]
    return lines + [f"  {ids[box.name]} -.-> {frames[box.starts]}" for box in boxes if box.starts in frames]


def shape_of(workflow: Mapping[str, Any]) -> GraphShape:
    """Return the graph of `GET /workflows/{name}`, the graphs that it names, and its failure handler."""
    parts = [DrawnPart("", boxes(workflow))]
    parts += [DrawnPart(plain(str(one["name"])), boxes(one)) for one in workflow.get("graphs", ())]
    handler = workflow.get("failure_handler") or {}
    graph = str(handler.get("graph") or "")
    return GraphShape(parts, plain(handler_words(workflow)), plain(graph))


def handler_words(workflow: Mapping[str, Any]) -> str:
    """Return the failure handler of the workflow in words, empty without one."""
    if not (handler := workflow.get("failure_handler")):
        return ""
    what = f"graph {handler['graph']}" if handler["graph"] else f"workflow {handler['workflow']}"
    return what + (", also when it was cancelled" if handler["on_cancel"] else "")


def version_text(saga: Mapping[str, Any]) -> str:
    """Return the version of a saga's workflow, its tag, and when another graph came in its place."""
    text = f", version {saga['workflow_version']}" if saga.get("workflow_version") else ""
    text += f", by the tag {saga['workflow_tag']}" if saga.get("workflow_tag") else ""
    if former := saga.get("former_graphs"):
        text += f", with another graph since version {former[-1]['last_version'] + 1} of its log"
    return text


def workflow_label(workflow: str) -> str:
    """Return the name of a workflow, or of a graph of one, with its kind."""
    from baton.core.graph.graph import graph_name, starter_of  # loads a library

    graph = graph_name(workflow)
    return f"{workflow}, the graph {graph} of {starter_of(workflow)}" if graph else workflow


def boxes(workflow: Mapping[str, Any]) -> list[Box]:
    """Return the boxes of `nodes` and `edges` of `GET /workflows/{name}`, in their order."""
    before: dict[str, list[tuple[str, str]]] = {}
    back: dict[str, str] = {}
    for edge in workflow["edges"]:
        sender, receiver, kind = str(edge["from"]), str(edge["to"]), str(edge.get("kind", "after"))
        if kind == "again":
            back[sender] = receiver
        else:
            before.setdefault(receiver, []).append((sender, kind))
    from baton.core.documents.models import kind_named  # pydantic is for those who draw

    found = []
    for node in workflow["nodes"]:
        name = str(node["name"])
        edges = before.get(name, ())
        found.append(
            Box(
                plain(name),
                str(node["kind"]),
                plain(kind_named(str(node["kind"])).summary(node, span)),
                tuple(sender for sender, _ in edges),
                joins=_joins(node, len(edges)),
                note=plain(_note(node)),
                edges=tuple(kind for _, kind in edges),
                back=back.get(name, ""),
                starts=plain(str(node.get("graph") or "")),
            )
        )
    return found


def _joins(node: Mapping[str, Any], count: int) -> str:
    """Return the condition of a join in brackets, if it does not wait for all edges or tolerates failures."""
    join = node.get("join") or {}
    need, tolerated = join.get("wait_for", "all"), join.get("tolerated_failures")
    words = [] if need == "all" else ["any" if need == 1 else f"{need} of {count}"]
    words += [] if tolerated is None else [f"{tolerated} may fail"]
    return f" ({', '.join(words)})" if words else ""


def _note(node: Mapping[str, Any]) -> str:
    """Return the condition of a node, and the targets of its branch, its catch and its loop."""
    parts = [f"if {_condition(node['when'])}"] if node.get("when") else []
    if branch := node.get("branch"):
        ways = [", ".join(rule["then"]) for rule in branch["rules"]] or list(branch["among"])
        ways += [f"else {', '.join(branch['default'])}"] if branch["default"] else []
        parts.append(f"? {' | '.join(ways)}")
    if catch := node.get("catch"):
        parts.append(f"! {' | '.join(', '.join(rule['then']) for rule in catch)}")
    if loop := node.get("loop"):
        late = f", then {', '.join(loop['timeout_path'])}" if loop["timeout_path"] else ""
        parts.append(f"↺ {loop['back_to']}, at most {counted(loop['max_iterations'], 'round')}{late}")
    return "  ".join(parts)


def _condition(condition: Mapping[str, Any]) -> str:
    """Return an expression as written, or the kind of another condition."""
    return " ".join(str(condition.get("expression") or condition.get("is")).split())


def model_nodes(graph: Graph) -> list[dict[str, Any]]:
    """Return a description of each node that asks a model, including those of the document's graphs.

    Contains `node`, `model`, `fallbacks`, `max_output`, the limits of an agent, and costs. `replan`: the node
    asks for a replacement of its step. `background`: no worker waits for the answer. `answers_usd`: maximum
    cost of all its answers, including corrected ones, by the price in the document, None without one.
    `cost_usd`: its limit, or its document's.
    """
    from baton.core.models.usage import MODEL

    steps = [(node, node if node.agent is None else node.agent.turn) for node in graph.work]
    # When nothing else has helped.
    steps += [(node, node.replan.plan) for node in graph.nodes if node.replan is not None]
    own = [_asked(graph, node, step) for node, step in steps if step.tool == MODEL]
    return own + [one for inner in graph.graphs.values() for one in model_nodes(inner)]


def models_to_price(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of models for which the document has no price; `rows` are those of `model_nodes`."""
    priced = {one["model"] for one in rows if one["answers_usd"] is not None}
    asked = {name for one in rows for name in (one["model"], *one["fallbacks"])} - priced
    return sorted(name for name in asked if isinstance(name, str) and "${" not in name)


def models_in_background(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of models that are asked in the background; `rows` are those of `model_nodes`."""
    return sorted({name for one in rows if "background" in one for name in (one["model"], *one["fallbacks"])})


def _asked(graph: Graph, node: Node, step: Node) -> dict[str, Any]:
    from baton.core.models.usage import REFUSED, USUAL_OUTPUT, Price, most_of
    from baton.core.money import MICRO

    given: Mapping[str, Any] = node.arguments if node.replan is None else step.arguments
    found: dict[str, Any] = {"node": node.name, "model": given["model"]}
    found["fallbacks"] = [way.arguments["model"] for way in step.ways if "model" in way.arguments]
    most = found["max_output"] = int(given.get("max_output") or USUAL_OUTPUT)
    turns = 1
    if (parts := node.agent) is not None:
        turns = parts.turns
        found |= {
            "tools": [call.tool for call in parts.calls],
            "turns": turns,
            "calls": parts.calls_in_all,
            "calls_in_a_turn": parts.calls_in_a_turn,
            "tokens": parts.tokens or None,
        }
    if step.callback is not None:
        found["background"] = True
    if node.replan is not None:
        found |= {"replan": True, "tools": [call.tool for call in node.replan.calls]}
    price, again = given.get("price"), step.failures[REFUSED].retry
    answers = turns * ((again.max_attempts if again is not None else 0) or 1)
    found["answers_usd"] = most_of(Price(**price), 0, answers * most) / MICRO if price else None
    caps = [its.limits["cost"].most / MICRO for its in (node, graph) if "cost" in its.limits]
    found["cost_usd"] = min(caps, default=None)
    return found


def model_line(one: Mapping[str, Any]) -> str:
    """Return a line about one of these nodes."""
    from baton.core.money import usd

    models = ", else ".join([one["model"], *one["fallbacks"]])
    answers = f"{one['max_output']:,} tokens of an answer"
    said = [answers]
    if "turns" in one:
        calls = f"{counted(one['calls'], 'call')} ({one['calls_in_a_turn']} of one answer)"
        said = [counted(one["turns"], "turn"), calls, answers]
        said += [f"{one['tokens']:,} tokens in all"] if one["tokens"] else []
        models += f" with {counted(len(one['tools']), 'tool') if one['tools'] else 'no tools'}"
    parts = [f"{models}: at most {', '.join(said)}"]
    if one["answers_usd"] is not None:
        parts.append(f"its answers cost at most {usd(one['answers_usd'])}")
    if one["cost_usd"] is not None:
        parts.append(f"its limit is {usd(one['cost_usd'])}")
    when = ", when it has failed," if one.get("replan") else ""
    return f"`{one['node']}`{when} asks {'; '.join(parts)}"
