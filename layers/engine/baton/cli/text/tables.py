"""Lists and facts as rich text. Outside of a terminal, a row is one line, to search it or copy from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table
from rich.text import Text

from baton.cli.text.graph import handler_words
from baton.cli.text.render import COLOURS, wrap_lines
from baton.core.money import usd
from baton.words.text import clock, counted, cut, epoch_ms, one_line, plain, span

if TYPE_CHECKING:
    from baton.local.logs import LogLine

_GAP = "  "
_NARROWEST = 8
_SENTENCE = 30  # characters of a description that say something
SHORT = 8  # characters of a shortened id, at least


def rows(
    header: Sequence[str], cells: Iterable[Sequence[str]], *, right: frozenset[int] = frozenset()
) -> Iterator[Text]:
    """Yield aligned columns below their header, `right` ones to the right. Empty lists yield nothing."""
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
    """Yield the rows of `GET /sagas`. Too wide, they have short ids, then no start, then cut cells."""
    columns = {
        "id": [str(saga["id"]) for saga in sagas],
        "workflow": [str(saga["workflow"]) for saga in sagas],
        "status": [str(saga["status"]) for saga in sagas],
        "started (UTC)": [_moment(saga.get("created_at")) for saga in sagas],
        "changed (UTC)": [_moment(saga.get("changed_at")) for saga in sagas],
    }

    if width is not None and _over(columns, width) > 0:
        columns["id"] = short_ids(columns["id"])
    yield from _fitted(columns, width, without=("started (UTC)",), cutting="workflow")


def _fitted(
    columns: dict[str, list[str]],
    width: int | None,
    *,
    without: Sequence[str],
    cutting: str,
    least: int | None = None,
    right: frozenset[int] = frozenset(),
) -> Iterator[Text]:
    """Yield the rows. Too wide ones lose columns, then cells of one are cut, to `least` characters."""
    if width is not None:
        longest = max(map(len, columns[cutting]), default=0)
        spare = 0 if least is None else max(longest - least, 0)
        for name in without:
            if _over(columns, width) > spare:
                columns.pop(name, None)  # some have it only where a row does
        if (more := _over(columns, width)) > 0:
            room = max(_NARROWEST, longest - more)
            columns[cutting] = [cut(cell, room) for cell in columns[cutting]]
    for line in rows(tuple(columns), zip(*columns.values(), strict=True), right=right):
        if width is not None:
            line.truncate(width, overflow="ellipsis")
        yield line


def _over(columns: Mapping[str, Sequence[str]], width: int) -> int:
    """Return the number of characters by which the rows exceed the terminal."""
    lines = rows(tuple(columns), zip(*columns.values(), strict=True))
    return max((line.cell_len for line in lines), default=0) - width


def short_ids(ids: Sequence[str]) -> list[str]:
    """Return each id cut to its shortest unique beginning, in a child's the part of its ancestor."""
    roots = {name.partition(".")[0] for name in ids}
    for length in range(SHORT, max(map(len, roots), default=0)):
        if len({root[:length] for root in roots}) == len(roots):
            break
    else:
        return list(ids)
    return [name.partition(".")[0][:length] + "".join(name.partition(".")[1:]) for name in ids]


def incident_rows(incidents: Sequence[Mapping[str, Any]], width: int | None = None) -> Iterator[Text]:
    """Yield the rows of `GET /incidents`. Too wide, they have short ids, and the message below."""
    columns = {
        "incident": [str(found["id"]) for found in incidents],
        "opened (UTC)": [_moment(found.get("opened_at")) for found in incidents],
        "status": [_status_of(found) for found in incidents],
        "severity": [str(found["severity"]) for found in incidents],
        "saga": [str(found["saga"]) for found in incidents],
        "node": [str(found.get("node") or "") for found in incidents],
        "what happened": [one_line(f"{found['code']}: {found['message']}") for found in incidents],
    }
    return _with_text_below(columns, width, without=("status", "severity", "opened (UTC)"), cutting="node")


def _status_of(incident: Mapping[str, Any]) -> str:
    has_it = incident["status"] == "open" and incident.get("acknowledged_by")
    return "acknowledged" if has_it else str(incident["status"])


def letter_rows(letters: Sequence[Mapping[str, Any]], width: int | None = None) -> Iterator[Text]:
    """Yield the rows of `GET /dead-letters`, as those of incidents."""
    columns = {
        "letter": [str(found["id"]) for found in letters],
        "first (UTC)": [_moment(found.get("first_at")) for found in letters],
        "status": [str(found["status"]) for found in letters],
        "node": [str(found.get("node") or "") for found in letters],
        "version": [str(found.get("version") or "") for found in letters],
        "attempts": [str(found["attempts"]) for found in letters],
        "redrives": [str(found["redrives"]) for found in letters],
        "why": [one_line(f"{found['code']}: {found['reason']}") for found in letters],
    }
    return _with_text_below(
        columns, width, without=("status", "version", "redrives", "attempts", "first (UTC)"), cutting="node"
    )


def question_rows(questions: Sequence[Mapping[str, Any]], width: int | None = None) -> Iterator[Text]:
    """Yield the rows of `GET /questions`, as those of incidents."""
    columns = {
        "saga": [str(found["saga"]) for found in questions],
        "ask": [str(found["id"]) for found in questions],
        "type": [str(found["type"]) for found in questions],
        "expires (UTC)": [_moment(found.get("expires_at")) for found in questions],
        "for": [_audience(found.get("for") or {}) for found in questions],
        "told": ["yes" if found.get("told") else "no" for found in questions],
        "question": [
            one_line(": ".join(str(found[name]) for name in ("title", "message") if found.get(name)))
            for found in questions
        ],
    }
    return _with_text_below(columns, width, without=("told", "for", "type"), cutting="ask")


def answer_rows(questions: Sequence[Mapping[str, Any]], width: int | None = None) -> Iterator[Text]:
    """Yield the rows of closed questions with their answers."""
    columns = {
        "saga": [str(found["saga"]) for found in questions],
        "ask": [str(found["id"]) for found in questions],
        "answered (UTC)": [_moment(found["answer"]["at"]) for found in questions],
        "answer": [str(found["answer"]["action"]) for found in questions],
        "by": [str(found["answer"]["by"] or "") for found in questions],
        "comment": [one_line(str(found["answer"]["comment"])) for found in questions],
    }
    return _with_text_below(columns, width, without=("by",), cutting="ask")


def _audience(of: Mapping[str, Any]) -> str:
    return " ".join(str(of[name]) for name in ("kind", "name") if of.get(name))


def _with_text_below(
    columns: dict[str, list[str]], width: int | None, *, without: Sequence[str], cutting: str
) -> Iterator[Text]:
    """Yield the rows. Too wide, they have short ids of sagas, and the last column on the next line."""
    if width is None or _over(columns, width) <= 0:
        yield from rows(tuple(columns), zip(*columns.values(), strict=True))
        return
    columns["saga"] = short_ids(columns["saga"])
    _, texts = columns.popitem()
    header, *lines = _fitted(columns, width, without=without, cutting=cutting, least=20)
    yield header
    for line, text in zip(lines, texts, strict=True):
        yield line
        yield from map(Text, wrap_lines(plain(text), width, _GAP, _GAP))


def version_rows(versions: Iterable[Mapping[str, Any]], width: int | None = None) -> Iterator[Text]:
    """Yield workflows, or versions of one."""
    found = list(versions)
    columns = {
        "workflow": [f"{one['name']}@{one['version']}" for one in found],
        "registered (UTC)": [_moment(one.get("created_at")) for one in found],
        "by": [str(one.get("by") or "") for one in found],
        "graph": [str(one["graph"])[:12] for one in found],
    }
    if any(one.get("description") for one in found):
        columns["change"] = [str(one.get("description") or "") for one in found]
    if any(one.get("pauses") for one in found):
        columns["paused"] = ["paused" if one.get("pauses") else "" for one in found]
    return _fitted(columns, width, without=("graph", "by", "change"), cutting="workflow")


def tag_words(workflow: Mapping[str, Any]) -> str:
    """Return the tags of a workflow with their versions: `canary 4, main 3`."""
    return ", ".join(f"{one['tag']} {one['version']}" for one in workflow.get("tags") or ())


def tag_rows(tags: Iterable[Mapping[str, Any]], width: int | None = None) -> Iterator[Text]:
    """Yield the moves of tags: a row each, the newest of a tag first and with its name."""
    moves = [
        (one["tag"] if not number else "", move) for one in tags for number, move in enumerate(one["moves"])
    ]
    columns = {
        "tag": [name for name, _ in moves],
        "version": [str(move["version"] or "deleted") for _, move in moves],
        "since (UTC)": [_moment(move["at"]) for _, move in moves],
        "by": [move["by"] for _, move in moves],
        "reason": [move["reason"] for _, move in moves],
    }
    return _fitted(columns, width, without=("by",), cutting="reason")


def workflow_table(workflow: Mapping[str, Any]) -> Table:
    """Return one version of a workflow, one fact a line."""
    return _facts(
        workflow=f"{workflow['name']}@{workflow['version']}",
        graph=str(workflow["graph"]),
        registered=f"{_moment(workflow.get('created_at'))} UTC by {workflow.get('by') or 'an unknown user'}",
        input=_properties(workflow.get("input")),
        **({"tags": words} if (words := tag_words(workflow)) else {}),
        **({"when failed": words} if (words := handler_words(workflow)) else {}),
        **{
            f"{'workflow' if one['code'] == 'workflow_paused' else 'tenant'} paused": plain(
                f"{_moment(one['at'])} UTC by {one['by']}{': ' if one['reason'] else ''}{one['reason']}"
            )
            for one in workflow.get("pauses") or ()
        },
    )


def tool_rows(tools: Iterable[Mapping[str, Any]], width: int | None = None) -> Iterator[Text]:
    """Yield the rows of `GET /tools`, with domain and cost if a tool declares them."""
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
    shown = {name: its for name, its in cells.items() if name not in {"domain", "cost"} or any(its)}
    without = [name for name in ("version", "timeout", "domain") if name in shown]
    return _fitted(shown, width, without=without, cutting="description", least=_SENTENCE)


def tool_table(tool: Mapping[str, Any]) -> Table:
    """Return one tool without its schemas, one fact a line."""
    return _facts(
        tool=f"{tool['name']}, version {tool['version']}",
        description=" ".join(str(tool.get("description") or "").split()),
        effect=str(tool["effect"]),
        domain=str(tool.get("domain") or ""),
        cost=_cost(tool),
        timeout=_timeout(tool),
        schemas=str(tool.get("schema_hash") or ""),
    )


def cost_lines(cost: Mapping[str, Any], width: int | None = None) -> Iterator[Text]:
    """Yield `GET /sagas/{id}/cost`: the use, the cost, and the prices."""
    # What was not used is part of the document, but nothing to read.
    aws = [one for one in cost.get("aws", ()) if one["quantity"]]
    cells = [(str(one["what"]), _number(one["quantity"]), str(one["unit"]), usd(one["usd"])) for one in aws]
    cells += [_model_cells(one) for one in cost.get("models", ())]
    cells.append(("total", "", "", usd(cost["usd"]["total"])))
    names = ("what", "quantity", "unit", "USD")
    columns = {name: list(column) for name, column in zip(names, zip(*cells, strict=True), strict=True)}
    yield from _fitted(columns, width, without=(), cutting="what", right=frozenset({1, 3}))
    inner = cost.get("agent_steps")
    more = f" and {counted(inner, 'turn or call', 'turns and calls')} of agents" if inner else ""
    said = (
        f"{counted(cost['steps'], 'step')}{more} in {counted(cost['invocations'], 'invocation')}, {cost['status']}; "
        f"estimated with the prices of {cost['priced']['region']}, {cost['priced']['date']}"
    )
    for line in wrap_lines(plain(said), width):
        yield Text(line, style="dim")
    if hits := cost.get("cache_hits", 0) + cost.get("cache_misses", 0):
        yield Text(f"{cost['cache_hits']} of {counted(hits, 'call')} answered by kept results", style="dim")
    if cost.get("usd_per_million_steps") is not None:
        yield Text(f"a million steps like these: {usd(cost['usd_per_million_steps'])}", style="dim")


def day_cost_lines(found: Mapping[str, Any]) -> Iterator[Text]:
    """Yield `GET /costs` with all pages added, most expensive first, and the total."""
    of_models = "left_out" not in found
    tokens = ("read", "written") if of_models else ()
    cells = [
        (
            str(row["key"]),
            str(row["sagas"]),
            *((f"{row['input']:,}", f"{row['output']:,}") if tokens else ()),
            usd(row["usd"]),
        )
        for row in found["costs"]
    ]
    head = (found["by"], "sagas", *tokens, "cost")
    yield from rows(head, cells, right=frozenset(range(1, len(head))))
    total = usd(sum(row["usd"] for row in found["costs"]))
    none = "no model was asked" if of_models else "there is no saga"
    yield Text(f"{total} on {found['day']} (UTC)" if cells else f"{none} on {found['day']} (UTC)")
    if left_out := found.get("left_out"):
        yield Text(f"not in the sum, because a request could not read their logs: {', '.join(left_out)}")


def _model_cells(line: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return the tokens that a model has read and written for a node, or an estimate."""
    what = f"{line['what']}, for {line['node']}" if line.get("node") else str(line["what"])
    if not line["quantity"]:
        return what, _number(line["requests"]), "requests, assumed", usd(line["usd"])
    cached = f", {line['cached']:,} cached" if line.get("cached") else ""
    tokens = f"tokens: {line['input']:,} in{cached}, {line['output']:,} out"
    return what, _number(line["quantity"]), tokens, usd(line["usd"])


def budget_table(budget: Mapping[str, Any]) -> Table:
    """Return `GET /budget`: spending of a user's sagas on a day, and its limits."""
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
        blocked="by an operator" if budget.get("blocked") else f"until {_moment(until)} UTC" if until else "",
        saga="any amount" if of_saga is None else f"{usd(of_saga)} each",
        tenant=_tenants_day(budget["tenant"]),
    )


def _tenants_day(day: Mapping[str, Any] | None) -> str:
    if day is None:
        return ""
    until = f", blocked until {_moment(day['blocked_until'])} UTC" if day["blocked_until"] else ""
    return f"{usd(day['left_usd'])} of {usd(day['limit_usd'])} left{until}"


def _cost(tool: Mapping[str, Any]) -> str:
    """Return the maximum cost of one attempt."""
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
    """Return the properties of an input, with optional ones in brackets."""
    if not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping):
        return ""
    required = schema.get("required") or ()
    return ", ".join(name if name in required else f"[{name}]" for name in schema["properties"])


def _number(value: float) -> str:
    return f"{value:,.6f}".rstrip("0").rstrip(".")


_SHOWN = 10


def breaker_rows(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each breaker: its name, its state, and details."""
    width = max((len(str(one["name"])) for one in found), default=0)
    return [plain(f"{one['name']:<{width}}  {_state(one):<9}  {_more(one)}").rstrip() for one in found]


def breaker_lines(one: Mapping[str, Any]) -> list[str]:
    """Return one breaker with its last failures and transitions, newest first."""
    lines = [f"breaker   {one['name']}", f"state     {_state(one)}  {_more(one)}".rstrip()]
    for name, rows in (("failures", one["failures"]), ("changes", one["transitions"])):
        for number, row in enumerate(rows[:_SHOWN]):
            lines.append(f"{'' if number else name:<8}  {_time(row['at'])}  {_said(row)}")
        if more := len(rows[_SHOWN:]):
            lines.append(f"{'':<8}  … and {more} before")
    return [plain(line) for line in lines]


def alias_rows(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each alias: its status, its tool, the names, and who has decided."""
    rows = []
    for one in found:
        count = counted(one["mismatches"], "mismatch", "mismatches")
        by = f"by {one['by']}" if one["by"] else f"{count} in {counted(len(one['sagas']), 'saga')}"
        why = f"; not applied: {one['useless_because']}" if one["useless_because"] else ""
        rows.append(
            plain(f"{one['status']:<8}  {one['tool']}: {one['given']} -> {one['parameter']}  {by}{why}")
        )
    return rows


def claim_rows(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each claim: its key, its status, its tool, and the saga that holds or made it."""
    tools = max((len(str(one["tool"])) for one in found), default=0)
    return [
        plain(f"{one['key']}  {one['status']:<15}  {one['tool']:<{tools}}  {_of_claim(one)}") for one in found
    ]


def claim_lines(one: Mapping[str, Any]) -> list[str]:
    """Return one claim with its result, its failure, or the operator who freed it."""
    lines = [
        f"claim     {one['key']}",
        f"tool      {one['tool']}",
        f"status    {one['status']}",
        f"saga      {_of_claim(one)}",
        f"since     {_time(one['since'])}, last changed {_time(one['updated_at'])}",
    ]
    if one["held_until"]:
        lines.append(f"held      until {_time(one['held_until'])}")
    if one["error"]:
        lines.append(f"failure   {one['error']['code']}: {one_line(one['error']['message'])}")
    if one["status"] == "completed":
        large = one["large_result"]
        said = f"{large['ref']}, {large['size']:,} bytes" if large else one_line(json.dumps(one["result"]))
        lines.append(f"result    {said}")
    if one["freed_by"]:
        lines.append(f"freed by  {one['freed_by']}: {one['freed_because']}")
    if one["shared_until"]:
        lines.append(f"shared    until {_time(one['shared_until'])}")
    if one["expires_at"]:
        lines.append(f"kept      until {_time(one['expires_at'])}")
    return [plain(line) for line in lines]


def _of_claim(one: Mapping[str, Any]) -> str:
    place = "@".join(
        [str(one["node"]), *([".".join(map(str, one["iteration"]))] if one["iteration"] else [])]
    )
    item = f"#{one['item']}" if one.get("item") else ""
    attempt = f", attempt {one['attempt']}" if one["attempt"] else ""
    return f"{one['saga']} at {place}{item}{attempt}"


def error_budget_lines(found: Mapping[str, Any]) -> list[str]:
    """Return a line for each workflow, and one about the error budget."""
    rows, percent = found["workflows"], found["percent"]
    width = max((len(str(row["key"])) for row in rows), default=0)
    lines = [
        f"{row['key']:<{width}}  {row['failed']:,} of {row['completed'] + row['failed']:,} failed{_left(row)}"
        for row in rows
    ]
    said = f"{percent:g} % may fail" if percent else "no error budget is set (`ErrorBudgetPercent`)"
    return [plain(line) for line in (*lines, f"{found['day']} (UTC): {said}")]


def _left(row: Mapping[str, Any]) -> str:
    left = row["left"]
    if left is None:
        return ""
    return f", {left:,} more may" if left > 0 else f", used up ({row['allowed']:,} may)"


def _state(one: Mapping[str, Any]) -> str:
    return str(one["state"]).replace("_", "-")


def _more(one: Mapping[str, Any]) -> str:
    if one["state"] == "closed":
        return f"since {_time(one['since'])}" if one["since"] else ""
    since = f"since {_time(one['since'])}"
    if one["state"] == "half_open":
        return f"{since}, {counted(one['probes'], 'probe')} under way"
    probe = one["next_probe_at"]
    return f"{since}, next probe at {_time(probe)}" if probe else f"{since}, until an operator resets it"


def _said(row: Mapping[str, Any]) -> str:
    if "to" in row:
        return f"{str(row['to']).replace('_', '-')}: {row['why']} ({row['by']})"
    return f"{row['code']}, {row['count']} of {counted(row['calls'], 'call')}"


def _time(value: Any) -> str:
    return str(value)[:19].replace("T", " ")


_SAID = {
    "started": "started {saga}",
    "triggered": "started {saga} by hand",
    "skipped": "skipped: {saga} was still at work",
    "missed": "missed: overdue after an outage",
    "refused": "refused until the next tick had come: {why}",
    "failed": "cannot be started: {why}",
}


def schedule_rows(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each schedule: its name, its ticks, the next one, and the results of earlier ones."""
    width = max((len(str(one["name"])) for one in found), default=0)
    when = max((len(_when(one)) for one in found), default=0)
    return [
        plain(f"{one['name']:<{width}}  {_when(one):<{when}}  {_next(one)}{_counts(one)}").rstrip()
        for one in found
    ]


def schedule_lines(one: Mapping[str, Any]) -> list[str]:
    """Return one schedule with its last ticks, newest first."""
    by_tag = f", starts by the tag {one['tag']}" if one["tag"] else ""
    lines = [
        f"schedule  {one['name']}, version {one['version']}{by_tag}",
        f"when      {_when(one)}",
        f"overlap   {one['overlap']}, catch up {one['catch_up']}",
        f"user      {one['user']}",
        f"state     {_next(one)}",
    ]
    if one["starting_at"]:
        refused = f", refused so far: {one['refused']}" if one["refused"] else ""
        lines.append(f"starting  {_time(one['starting_at'])}{refused}")
    lines.append(f"ticks     {', '.join(f'{count:,} {name}' for name, count in one['ticks'].items())}")
    for number, tick in enumerate(one["recent"][:_SHOWN]):
        many = f" ({counted(tick['count'], 'tick')} up to this one)" if tick["count"] > 1 else ""
        said = _SAID[tick["what"]].format(saga=tick["saga"], why=tick["why"])
        lines.append(f"{'' if number else 'last':<8}  {_time(tick['tick'])}  {said}{many}")
    return [plain(line) for line in lines]


def _when(one: Mapping[str, Any]) -> str:
    return f"{one['cron']} ({one['timezone']})" if one["cron"] else f"every {one['rate']}"


def _next(one: Mapping[str, Any]) -> str:
    if one["state"] == "paused":
        return f"paused since {_time(one['paused_at'])} by {one['paused_by']}"
    return f"next {_time(one['next_at'])}"


def _counts(one: Mapping[str, Any]) -> str:
    said = [f"{count:,} {name}" for name, count in one["ticks"].items() if count and name != "started"]
    return f"  {', '.join(said)}" if said else ""


def user_rows(found: Mapping[str, Any]) -> list[str]:
    """Return a line for each user with name, spending, limit and state, and a line with the day."""
    rows = found["users"]
    width = max((len(str(row["user"])) for row in rows), default=0)
    money = [_money(row) for row in rows]
    room = max(map(len, money), default=0)
    lines = [
        f"{row['user']:<{width}}  {spent:<{room}}  {_user_state(row)}".rstrip()
        for row, spent in zip(rows, money, strict=True)
    ]
    said = "spent today" if rows else "no saga is at work, and none has ended"
    return [plain(line) for line in (*lines, f"{found['day']} (UTC): {said}")]


def fact_rows(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each fact of a user: its time, its source and its text."""
    lines = [f"{_time(row['at'])}  {row['saga'][:SHORT]}  {row['text']}" for row in found]
    return [plain(line) for line in lines or ["nothing is remembered about this user"]]


def user_lines(row: Mapping[str, Any]) -> list[str]:
    """Return one user, a line for each fact."""
    facts = {"user": row["user"], "state": row["state"], "spent": _money(row)}
    facts["reserved"] = usd(row["reserved_usd"]) if row["reserved_usd"] else ""
    facts["limit"] = "of this user alone" if row["own_limit_usd"] is not None else ""
    facts["decided"] = f"{_time(row['at'])} by {row['by']}" if row["by"] else ""
    facts["note"] = row["note"] or ""
    return [plain(f"{name:<8}  {said}") for name, said in facts.items() if said]


def _money(row: Mapping[str, Any]) -> str:
    limit = row["limit_usd"]
    return f"{usd(row['spent_usd'])} of {usd(limit)}" if limit is not None else "nothing is counted"


def _user_state(row: Mapping[str, Any]) -> str:
    own = "(a limit of its own)" if row["own_limit_usd"] is not None else ""
    if row["state"] == "blocked":
        note = f": {row['note']}" if row["note"] else ""
        return f"blocked since {_time(row['at'])} by {row['by']}{note}"
    return " ".join(part for part in ("spent" if row["state"] == "spent" else "", own) if part)


_LEVELS = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}


def printed_lines(line: LogLine, *, with_time: bool = False) -> Iterator[str]:
    """Yield the lines of text of a log line. The id of its saga is shortened."""
    root, dot, below = line.saga.partition(".")
    of = f"{root[:SHORT]}{dot}{below}"
    attempt = f"attempt {line.attempt}" if line.attempt else ""
    place = " ".join(filter(None, (clock(epoch_ms(line.at)) if with_time else "", of, line.slot, attempt)))
    head = click.style(f"{place or 'worker'} | ", dim=True)
    for text in line.text.replace("\r", "\n").rstrip("\n").split("\n"):
        shown = plain(text.replace("\u00a0", " "))
        yield head + (click.style(shown, fg=_LEVELS[line.level]) if line.level in _LEVELS else shown)
