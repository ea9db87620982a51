"""Users as lines of text. Pure: an answer of the API in, lines out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.core.money import usd
from baton.words.text import plain


def user_rows(found: Mapping[str, Any]) -> list[str]:
    """A line for each: the name, what was spent of what, and the state; and one that names the day."""
    rows = found["users"]
    width = max((len(str(row["user"])) for row in rows), default=0)
    money = [_money(row) for row in rows]
    room = max(map(len, money), default=0)
    lines = [
        f"{row['user']:<{width}}  {spent:<{room}}  {_state(row)}".rstrip()
        for row, spent in zip(rows, money, strict=True)
    ]
    said = "spent today" if rows else "no saga is at work, and none has ended"
    return [plain(line) for line in (*lines, f"{found['day']} (UTC): {said}")]


def user_lines(row: Mapping[str, Any]) -> list[str]:
    """One user, a line for each fact."""
    facts = {"user": row["user"], "state": row["state"], "spent": _money(row)}
    facts["reserved"] = usd(row["reserved_usd"]) if row["reserved_usd"] else ""
    facts["limit"] = "of this user alone" if row["own_limit_usd"] is not None else ""
    facts["decided"] = f"{_time(row['at'])} by {row['by']}" if row["by"] else ""
    facts["note"] = row["note"] or ""
    return [plain(f"{name:<8}  {said}") for name, said in facts.items() if said]


def _money(row: Mapping[str, Any]) -> str:
    limit = row["limit_usd"]
    return f"{usd(row['spent_usd'])} of {usd(limit)}" if limit is not None else "nothing is counted"


def _state(row: Mapping[str, Any]) -> str:
    own = "(a limit of its own)" if row["own_limit_usd"] is not None else ""
    if row["state"] == "blocked":
        note = f": {row['note']}" if row["note"] else ""
        return f"blocked since {_time(row['at'])} by {row['by']}{note}"
    return " ".join(part for part in ("spent" if row["state"] == "spent" else "", own) if part)


def _time(value: Any) -> str:
    return str(value)[:19].replace("T", " ")
