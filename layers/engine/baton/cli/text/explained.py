"""Which way a saga went, and why a node did not run, as something a person reads.

Pure: documents in, rich text out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from baton.cli.text.wrapping import wrapped
from baton.words.text import clock, counted, epoch_ms, one_line, plain

_COLOURS = {"failed": "red", "skipped": "yellow", "dropped": "yellow", "unreached": "yellow"}
_INDENT = " " * 9
_SPOKEN = {True: "taken", False: "not taken", None: "not known yet"}


def step_lines(steps: Iterable[Mapping[str, Any]], width: int | None = None) -> Iterator[Text]:
    """Steps of `GET /sagas/{id}/explain`. `width`: of the terminal; what it has no room for is below. None: a line each."""
    for step in steps:
        yield from _step(step, width)


def _step(step: Mapping[str, Any], width: int | None) -> Iterator[Text]:
    line = Text(f"{step['version']:>5}  {clock(epoch_ms(step['at']))}  ")
    became = str(step["became"])
    line.append(plain(f"{slot(step):<16} "))
    line.append(plain(f"{became:<8}"), style=_COLOURS.get(became, ""))
    by = [name for name in step["by"] if name]
    parts = [f"from {', '.join(by)}" if by else "", step["text"]]
    said = plain("; ".join(one_line(str(part)) for part in parts if part))
    if width is None or line.cell_len + cell_len(said) + 2 <= width:
        line.append(f"  {said}" if said else "", style="dim")
        yield line
        return
    yield _cut(line, width)
    yield from _said(said, width, _INDENT, _INDENT)


def start_lines(page: Mapping[str, Any], width: int | None = None) -> Iterator[Text]:
    """Above the first step: what has started the saga, where that was no caller."""
    if page.get("start"):
        yield from _said(one_line(f"started {page['start']}"), width, "start  ", style="cyan")


def rest_lines(page: Mapping[str, Any], width: int | None = None) -> Iterator[Text]:
    """Below the last step: what is not settled, and how the saga ended."""
    for node in page["open"]:
        yield from _said(one_line(str(node["text"])), width, "  now  ", style="cyan")
    if page["end"]:
        yield from _said(one_line(str(page["end"])), width, "  end  ", style="")


def node_lines(found: Mapping[str, Any], width: int | None = None) -> Iterator[Text]:
    """`GET /sagas/{id}/explain/{node}`: for each round the answer, and what its edges have said."""
    if found["left_out"]:
        yield Text(f"{counted(found['left_out'], 'earlier round')} left out", style="dim")
    for answer in found["iterations"]:
        state = str(answer["state"])
        line = Text(plain(f"{slot(answer | {'node': found['node']})}  "))
        line.append(plain(state), style=_COLOURS.get(state, ""))
        if answer["version"]:
            line.append(plain(f"  version {answer['version']}, {clock(epoch_ms(answer['at']))}"), style="dim")
        yield _cut(line, width)
        yield from _said(one_line(str(answer["text"])), width, style="")
        if len(answer["edges"]) > 1:
            for edge in answer["edges"]:
                yield from _said(_edge(edge), width)
        for item in answer.get("items") or ():
            failed = "failed: " if item.get("became") == "failed" else ""
            yield from _said(failed + one_line(str(item["text"])), width)
        for attempt in answer.get("attempts") or ():
            yield from _said(one_line(str(attempt["text"])), width)


def _edge(edge: Mapping[str, Any]) -> str:
    said = _SPOKEN[edge["alive"]] + (", too late" if edge["late"] else "")
    more = f"  {one_line(str(edge['text']))}" if edge["text"] else ""
    return f"from {edge['from'] or 'the start'}: {said}{more}"


def _said(
    text: str, width: int | None, first: str = "  ", rest: str = "", style: str = "dim"
) -> Iterator[Text]:
    """A sentence, in as many lines as it needs."""
    for line in wrapped(plain(text), width, first, rest or " " * (len(first) + 2)):
        yield Text(line, style=style)


def _cut(line: Text, width: int | None) -> Text:
    line.rstrip()
    if width is not None:
        line.truncate(width, overflow="ellipsis")
    return line


def slot(place: Mapping[str, Any]) -> str:
    """A round of a node: `book`, or `book@2.0`."""
    rounds = ".".join(map(str, place["iteration"]))
    return str(place["node"]) + (f"@{rounds}" if rounds else "")
