"""Which way a saga went, and why a node did not run, as something a person reads.

Belongs here: laying out. Pure: documents in, rich text out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from baton.cli.text import clock, counted, epoch_ms, one_line, plain

_COLOURS = {"failed": "red", "skipped": "yellow", "dropped": "yellow", "unreached": "yellow"}
_SPOKEN = {True: "taken", False: "not taken", None: "not known yet"}


def step_line(step: Mapping[str, Any]) -> Text:
    """One step of `GET /sagas/{id}/explain`."""
    line = Text(f"{step['version']:>5}  {clock(epoch_ms(step['at']))}  ")
    became = str(step["became"])
    line.append(plain(f"{slot(step):<16} "))
    line.append(plain(f"{became:<8}"), style=_COLOURS.get(became, ""))
    by = [name for name in step["by"] if name]
    parts = [f"from {', '.join(by)}" if by else "", step["text"]]
    said = "; ".join(one_line(str(part)) for part in parts if part)
    line.append(plain(f"  {said}") if said else "", style="dim")
    return line


def rest_lines(page: Mapping[str, Any]) -> Iterator[Text]:
    """Below the last step: what is not settled, and how the saga ended."""
    for node in page["open"]:
        yield Text(plain(f"  now  {one_line(str(node['text']))}"), style="cyan")
    if page["end"]:
        yield Text(plain(f"  end  {one_line(str(page['end']))}"))


def node_lines(found: Mapping[str, Any]) -> Iterator[Text]:
    """`GET /sagas/{id}/explain/{node}`: for each round the answer, and what its edges have said."""
    if found["left_out"]:
        yield Text(f"{counted(found['left_out'], 'earlier round')} left out", style="dim")
    for answer in found["iterations"]:
        state = str(answer["state"])
        line = Text(plain(f"{slot(answer | {'node': found['node']})}  "))
        line.append(plain(state), style=_COLOURS.get(state, ""))
        if answer["version"]:
            line.append(plain(f"  version {answer['version']}, {clock(epoch_ms(answer['at']))}"), style="dim")
        yield line
        yield Text(plain(f"  {one_line(str(answer['text']))}"))
        if len(answer["edges"]) > 1:
            yield from map(_edge_line, answer["edges"])
        for attempt in answer.get("attempts") or ():
            yield Text(plain(f"  {one_line(str(attempt['text']))}"), style="dim")


def _edge_line(edge: Mapping[str, Any]) -> Text:
    said = _SPOKEN[edge["alive"]] + (", too late" if edge["late"] else "")
    more = f"  {one_line(str(edge['text']))}" if edge["text"] else ""
    return Text(plain(f"  from {edge['from'] or 'the start'}: {said}{more}"), style="dim")


def slot(place: Mapping[str, Any]) -> str:
    """A round of a node: `book`, or `book@2.0`."""
    rounds = ".".join(map(str, place["iteration"]))
    return str(place["node"]) + (f"@{rounds}" if rounds else "")
