"""Circuit breakers and error budgets as lines of text. Pure: an answer of the API in, lines out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from baton.words.text import counted, plain

_SHOWN = 10


def breaker_rows(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each: its name, its state, and what is to be known of that."""
    width = max((len(str(one["name"])) for one in found), default=0)
    return [plain(f"{one['name']:<{width}}  {_state(one):<9}  {_more(one)}").rstrip() for one in found]


def breaker_lines(one: Mapping[str, Any]) -> list[str]:
    """One with its last failures and transitions, the newest first."""
    lines = [f"breaker   {one['name']}", f"state     {_state(one)}  {_more(one)}".rstrip()]
    for name, rows in (("failures", one["failures"]), ("changes", one["transitions"])):
        for number, row in enumerate(rows[:_SHOWN]):
            lines.append(f"{'' if number else name:<8}  {_time(row['at'])}  {_said(row)}")
        if more := len(rows[_SHOWN:]):
            lines.append(f"{'':<8}  … and {more} before")
    return [plain(line) for line in lines]


def error_budget_lines(found: Mapping[str, Any]) -> list[str]:
    """A line for each workflow, and one on what is allowed."""
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
