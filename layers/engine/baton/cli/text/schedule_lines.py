"""Schedules as lines of text. Pure: an answer of the API in, lines out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from baton.words.text import counted, plain

_SHOWN = 10
_SAID = {
    "started": "started {saga}",
    "triggered": "started {saga} by hand",
    "skipped": "skipped: {saga} was still at work",
    "missed": "missed: overdue after an outage",
    "refused": "refused until the next tick had come: {why}",
    "failed": "cannot be started: {why}",
}


def schedule_rows(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each: its name, when its ticks are, the next one, and what is to be known of those before."""
    width = max((len(str(one["name"])) for one in found), default=0)
    when = max((len(_when(one)) for one in found), default=0)
    return [
        plain(f"{one['name']:<{width}}  {_when(one):<{when}}  {_next(one)}{_counts(one)}").rstrip()
        for one in found
    ]


def schedule_lines(one: Mapping[str, Any]) -> list[str]:
    """One with its last ticks, the newest first."""
    lines = [
        f"schedule  {one['name']}, version {one['version']}",
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


def _time(value: Any) -> str:
    return str(value)[:19].replace("T", " ")
