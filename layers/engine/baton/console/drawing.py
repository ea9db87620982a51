"""The graph of a saga's workflow as SVG, with what became of each node. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from markupsafe import Markup

from baton.console.layout import HEIGHT, WIDTH, Edge, Line, lay_out
from baton.console.rendering import label, part, words
from baton.core.log.maps import is_index
from baton.core.nodes.registry import KINDS

_LETTERS: Final = 21
_NOT_TAKEN: Final = frozenset({"skipped", "dropped", "joining"})
_EDGES: Final = {
    "branch": "dotted",
    "catch": "catch",
    "timeout": "dotted",
    "break": "",
    "again": "dotted again",
}
_TIP: Final = Markup(
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>'
)


@dataclass(frozen=True, slots=True)
class Became:
    """What became of a node: a word, and the version of the log that says so (0: none does yet). rounds: how often.

    items: of a map, how many have come to an end, and how many of them failed.
    """

    word: str
    version: int = 0
    rounds: int = 1
    items: int = 0
    failed: int = 0

    @property
    def folded(self) -> str:
        """What a map is, where its items would be drawn."""
        failed = f", {self.failed} failed" if self.failed else ""
        return f", {self.items} item{'s' if self.items > 1 else ''}{failed}" if self.items else ""


def became(view: Mapping[str, Any], way: Mapping[str, Any] | None) -> dict[str, Became]:
    """Of each node that is known: what it does now, or what it did last."""
    found: dict[str, Became] = {}
    done, failed = Counter[str](), Counter[str]()
    for step in way["steps"] if way else ():
        if not (item := str(step.get("item") or "")):
            rounds = found[step["node"]].rounds + 1 if step["node"] in found else 1
            found[step["node"]] = Became(str(step["became"]), int(step["version"]), rounds)
        elif is_index(item):
            done[step["node"]] += 1
            failed[step["node"]] += step["became"] == "failed"
    for active in view["active"]:
        before = found.get(active["node"])
        found[active["node"]] = Became(
            str(active["state"]), before.version if before else 0, before.rounds if before else 1
        )
    return {name: replace(one, items=done[name], failed=failed[name]) for name, one in found.items()}


def draw(
    workflow: Mapping[str, Any],
    known: Mapping[str, Became],
    there: str,
    percent: int | None = 100,
    *,
    page: str = "",
) -> Markup:
    """`there`: the path of the saga's page, for links into its log. Empty: no saga's; nodes lead to `#node-NAME` of the page.

    percent: of its size; None: as wide as there is room. page: whose `#node-NAME` it is, of a drawing below that of its document.
    """
    nodes = [str(node["name"]) for node in workflow["nodes"]]
    kinds = {str(node["name"]): _shown(str(node["kind"])) for node in workflow["nodes"]}
    edges = [Edge(str(one["from"]), str(one["to"]), str(one["kind"])) for one in workflow["edges"]]
    loops = {str(node["name"]): [str(one) for one in node.get("loops", ())] for node in workflow["nodes"]}
    made = lay_out(nodes, edges, loops)
    taken = {name for name, one in known.items() if one.word not in _NOT_TAKEN}
    parts = [
        Markup('<svg class="graph" {3} viewBox="0 0 {0} {1}" role="group" aria-label="{2}">').format(
            made.width,
            made.height,
            f"The graph of {words(workflow['name'], 80)}, {len(nodes)} nodes",
            Markup('width="100%"')
            if percent is None
            else Markup('width="{}" height="{}"').format(
                made.width * percent // 100, made.height * percent // 100
            ),
        ),
        Markup("") if page else _TIP,
    ]
    for frame in made.frames:
        text = f"loop of {words(frame.name, 30)}"
        parts.append(
            Markup(
                '<rect class="loop" x="{}" y="{}" width="{}" height="{}" rx="10"><title>{}</title></rect>'
            ).format(frame.x, frame.y, frame.width, frame.height, text)
        )
    parts += [_line(line, taken) for line in made.lines]
    for name in nodes:
        parts.append(_node(name, kinds[name], made.places[name], known.get(name), there, page))
    return Markup("").join([*parts, Markup("</svg>")])


def _line(line: Line, taken: set[str]) -> Markup:
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
    return Markup('<path class="edge {}" d="{}" marker-end="url(#tip)"/>').format(f"{kind}{went}", path)


def _shown(kind: str) -> str:
    """What documents call a kind."""
    known = KINDS.get(kind)
    return (known.shown if known else "") or kind


def _node(
    name: str, kind: str, place: tuple[int, int], known: Became | None, there: str, page: str
) -> Markup:
    x, y = place
    word = label(known.word) if known else "not reached"
    rounds = (f", {known.rounds} rounds" if known.rounds > 1 else "") + known.folded if known else ""
    to = f"{there}/log/{known.version}" if known and known.version else f"{there}/nodes/{part(name)}"
    said = f"{label(kind)}, {word}{rounds}"
    if not there:
        to, said = f"{page}#node-{part(name)}", label(kind)
    return Markup(
        '<a href="{to}" aria-label="{name}: {said}"><g class="node {state}"><title>{name}: {said}</title>'
        '<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="7"/>'
        '<text x="{tx}" y="{t1}">{short}</text><text class="small" x="{tx}" y="{t2}">{said}</text></g></a>'
    ).format(
        to=to,
        name=words(name, 128),
        short=words(name, 128) if len(name) <= _LETTERS else f"{words(name[: _LETTERS - 1])}…",
        said=said,
        state=part(known.word) if known else "unreached" if there else "plain",
        x=x,
        y=y,
        w=WIDTH,
        h=HEIGHT,
        tx=x + 10,
        t1=y + 20,
        t2=y + 36,
    )
