"""A workflow's graphs as a Mermaid flowchart. Pure: what is drawn in, text out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from baton.cli.text.graph import Box, Shape, kind_of

_QUOTE = '"'  # around every text: braces and brackets are words of the language
# Edges that are not always taken are dotted.
_ARROWS = {
    "branch": "-. branch .->",
    "catch": "-. catch .->",
    "timeout": "-. timeout .->",
    "break": "-- break -->",
    "again": "-. again .->",
}


def mermaid(shape: Shape) -> str:
    """All of it in the language of Mermaid: a named graph is a subgraph, to which a dotted line leads from what starts it."""
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
    """Nodes get ids of their own: `end` is a word of that language."""
    ids, lines = {box.name: f"{prefix}{index}" for index, box in enumerate(boxes)}, []
    for box in boxes:
        opening, closing = kind_of(box).outline
        text = "<br/>".join(part for part in (box.name, box.what) if part).replace('"', "#quot;")
        lines.append(f'  {ids[box.name]}{opening.rstrip(_QUOTE)}"{text}"{closing.lstrip(_QUOTE)}')
    for box in boxes:
        kinds = box.edges or ("after",) * len(box.before)
        for before, kind in zip(box.before, kinds, strict=True):
            lines.append(f"  {ids[before]} {_ARROWS.get(kind, '-->')} {ids[box.name]}")
    lines += [f"  {ids[box.name]} {_ARROWS['again']} {ids[box.back]}" for box in boxes if box.back]
    return lines + [f"  {ids[box.name]} -.-> {frames[box.starts]}" for box in boxes if box.starts in frames]
