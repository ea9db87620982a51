"""Lists and facts as something a person reads: sagas, costs, workflows, tools.

Belongs here: laying out. Pure: documents in, rich text out. A row is one line, however wide: what a list is
asked for is mostly an id to copy, or lines to search in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from baton.cli.render import COLOURS
from baton.cli.text import counted, cut, epoch_ms, one_line, plain, span

_GAP = "  "
_NARROWEST = 8
SHORT = 8  # characters of a shortened id, at least


def rows(
    header: Sequence[str], cells: Iterable[Sequence[str]], *, right: frozenset[int] = frozenset()
) -> Iterator[Text]:
    """Aligned columns below their header, `right` ones to the right; a status has its colour. Nothing if empty."""
    lines = [[plain(cell) for cell in row] for row in cells]
    if not lines:
        return
    widths = [max(len(row[index]) for row in (list(header), *lines)) for index in range(len(header))]
    yield Text(_row(header, widths, right), style="dim")
    for line in lines:
        text = Text(_row(line, widths, right))
        if "status" in header and (colour := COLOURS.get(line[header.index("status")])):
            text.highlight_words([line[header.index("status")]], colour)
        yield text


def saga_rows(sagas: Sequence[Mapping[str, Any]], width: int | None = None) -> Iterator[Text]:
    """The rows of `GET /sagas`. Where they are too wide: with short ids, then without the start, then cut."""
    columns = {
        "id": [str(saga["id"]) for saga in sagas],
        "workflow": [str(saga["workflow"]) for saga in sagas],
        "status": [str(saga["status"]) for saga in sagas],
        "started (UTC)": [_moment(saga.get("created_at")) for saga in sagas],
        "changed (UTC)": [_moment(saga.get("changed_at")) for saga in sagas],
    }

    def made() -> list[Text]:
        return list(rows(tuple(columns), zip(*columns.values(), strict=True)))

    def over() -> int:
        return 0 if width is None else max((line.cell_len for line in made()), default=0) - width

    if over() > 0:
        columns["id"] = short_ids(columns["id"])
    if over() > 0:
        del columns["started (UTC)"]
    if (more := over()) > 0:
        room = max(_NARROWEST, max(map(len, columns["workflow"])) - more)
        columns["workflow"] = [cut(name, room) for name in columns["workflow"]]
    for line in made():
        if width is not None:
            line.truncate(width, overflow="ellipsis")
        yield line


def short_ids(ids: Sequence[str]) -> list[str]:
    """Each id cut to the shortest beginning, of `SHORT` characters or more, that no other of them has.

    Of a child saga's, the part of the saga that it descends from is cut.
    """
    roots = {name.partition(".")[0] for name in ids}
    for length in range(SHORT, max(map(len, roots), default=0)):
        if len({root[:length] for root in roots}) == len(roots):
            break
    else:
        return list(ids)
    return [name.partition(".")[0][:length] + "".join(name.partition(".")[1:]) for name in ids]


def incident_rows(incidents: Iterable[Mapping[str, Any]]) -> Iterator[Text]:
    """The rows of `GET /incidents`."""
    return rows(
        ("incident", "opened (UTC)", "status", "severity", "saga", "node", "what happened"),
        [
            (
                str(found["id"]),
                _moment(found.get("opened_at")),
                str(found["status"]),
                str(found["severity"]),
                str(found["saga"]),
                str(found.get("node") or ""),
                one_line(f"{found['code']}: {found['message']}"),
            )
            for found in incidents
        ],
    )


def version_rows(versions: Iterable[Mapping[str, Any]]) -> Iterator[Text]:
    """Workflows, or versions of one."""
    return rows(
        ("workflow", "registered (UTC)", "by", "graph"),
        [
            (
                f"{found['name']}@{found['version']}",
                _moment(found.get("created_at")),
                str(found.get("by") or ""),
                str(found["graph"])[:12],
            )
            for found in versions
        ],
    )


def workflow_table(workflow: Mapping[str, Any]) -> Table:
    """One version of a workflow, one fact a line."""
    return _facts(
        workflow=f"{workflow['name']}@{workflow['version']}",
        graph=str(workflow["graph"]),
        registered=f"{_moment(workflow.get('created_at'))} UTC by {workflow.get('by') or 'nobody known'}",
        input=_properties(workflow.get("input")),
    )


def tool_rows(tools: Iterable[Mapping[str, Any]]) -> Iterator[Text]:
    """The rows of `GET /tools`; what they are about and cost, if any of them says so."""
    columns: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "tool": lambda tool: str(tool["name"]),
        "version": lambda tool: str(tool["version"]),
        "effect": lambda tool: str(tool["effect"]),
        "timeout": _timeout,
        "domain": lambda tool: str(tool.get("domain") or ""),
        "cost": _cost,
        "description": lambda tool: str(tool.get("description") or "").strip().partition("\n")[0],
    }
    found = list(tools)
    cells = {name: [of(tool) for tool in found] for name, of in columns.items()}
    header = [name for name in columns if name not in {"domain", "cost"} or any(cells[name])]
    return rows(header, zip(*(cells[name] for name in header), strict=True))


def tool_table(tool: Mapping[str, Any]) -> Table:
    """One tool without its schemas, one fact a line."""
    return _facts(
        tool=f"{tool['name']}, version {tool['version']}",
        description=" ".join(str(tool.get("description") or "").split()),
        effect=str(tool["effect"]),
        domain=str(tool.get("domain") or ""),
        cost=_cost(tool),
        timeout=_timeout(tool),
        schemas=str(tool.get("schema_hash") or ""),
    )


def cost_lines(cost: Mapping[str, Any]) -> Iterator[Text]:
    """`GET /sagas/{id}/cost`: what was used, what it costs, and by which prices."""
    # What was not used is part of the document, but nothing to read.
    charges = [one for one in (*cost.get("aws", ()), *cost.get("models", ())) if one["quantity"]]
    cells = [
        (str(one["what"]), _number(one["quantity"]), str(one["unit"]), usd(one["usd"])) for one in charges
    ]
    total = cost["usd"]
    yield from rows(
        ("what", "quantity", "unit", "USD"),
        [*cells, ("total", "", "", usd(total["total"]))],
        right=frozenset({1, 3}),
    )
    yield Text(
        f"{counted(cost['steps'], 'step')} in {counted(cost['invocations'], 'invocation')}, {cost['status']}; "
        f"estimated with the prices of {cost['priced']['region']}, {cost['priced']['date']}",
        style="dim",
    )
    if cost.get("usd_per_million_steps") is not None:
        yield Text(f"a million steps like these: {usd(cost['usd_per_million_steps'])}", style="dim")


def budget_table(budget: Mapping[str, Any]) -> Table:
    """`GET /budget`: what a user's sagas have spent on a day, and may spend."""
    limit, of_saga, until = budget["limit_usd"], budget["saga_limit_usd"], budget["blocked_until"]
    left = (
        "any amount, and nothing is counted"
        if limit is None
        else f"{usd(budget['left_usd'])} of {usd(limit)}"
    )
    return _facts(
        user=str(budget["user"]),
        day=f"{budget['day']} (UTC)",
        spent="" if limit is None else usd(budget["spent_usd"]),
        reserved=usd(budget["reserved_usd"]) if budget["reserved_usd"] else "",
        left=left,
        blocked=f"until {_moment(until)} UTC" if until else "",
        saga="any amount" if of_saga is None else f"{usd(of_saga)} each",
    )


def usd(amount: float) -> str:
    """Dollars: two decimals from one cent on, below that as many as the amount needs."""
    if amount == 0 or abs(amount) >= 0.01:
        return f"${amount:,.2f}"
    return f"${amount:.10f}".rstrip("0")


def _cost(tool: Mapping[str, Any]) -> str:
    """Of one attempt, at most."""
    return usd(float(tool["cost_usd"])) if tool.get("cost_usd") else ""


def _row(cells: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> str:
    return _GAP.join(
        f"{cell:>{width}}" if index in right else f"{cell:<{width}}"
        for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ).rstrip()


def _facts(**facts: str) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        if value:
            table.add_row(name, plain(value))
    return table


def _moment(value: object) -> str:
    ms = epoch_ms(value)
    return "" if ms is None else datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _timeout(tool: Mapping[str, Any]) -> str:
    return span(tool["timeout_ms"]) if tool.get("timeout_ms") else "default"


def _properties(schema: Any) -> str:
    """What an input needs, in brackets what it may leave out."""
    if not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping):
        return ""
    required = schema.get("required") or ()
    return ", ".join(name if name in required else f"[{name}]" for name in schema["properties"])


def _number(value: float) -> str:
    return f"{value:,.6f}".rstrip("0").rstrip(".")
