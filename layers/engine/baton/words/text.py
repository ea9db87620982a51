"""Formatting of times and amounts, and neutralization of untrusted strings."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def plain(text: str) -> str:
    """Return the text without control characters, so that untrusted text cannot control the terminal."""
    return "".join(c if c in "\n\t" or _is_seen(c) else "\N{REPLACEMENT CHARACTER}" for c in text)


def one_line(text: str) -> str:
    """Return the text with line ends escaped, so that untrusted text cannot look like another line."""
    return text.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")


def escape_controls(json_text: str) -> str:
    """Return the same JSON with characters that a terminal could interpret written as Unicode escapes."""
    if json_text.replace("\n", "").isprintable():
        return json_text
    return "".join(c if c == "\n" or c.isprintable() else json.dumps(c)[1:-1] for c in json_text)


def _is_seen(character: str) -> bool:
    # Python counts all spaces but one among what cannot be printed; other scripts are full of them.
    return character.isprintable() or unicodedata.category(character) == "Zs"


def epoch_ms(value: object) -> int | None:
    """Return a time of the API, in ISO 8601 or epoch milliseconds, as epoch milliseconds."""
    if isinstance(value, bool) or value is None or value == "":
        return None
    if isinstance(value, int | float):
        return int(value)
    moment = datetime.fromisoformat(str(value))
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def clock(ms: int | None) -> str:
    """Return the time of day in UTC, to the millisecond."""
    return "" if ms is None else datetime.fromtimestamp(ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]


def span(ms: float | None) -> str:
    """Return a duration in words: `340 ms`, `2.1 s`, `3 min 5 s`, `2 h 10 min`, `2 d 3 h`."""
    if ms is None:
        return "–"
    if abs(ms) < 1000:
        return f"{ms:.0f} ms"
    seconds = ms / 1000
    if abs(seconds) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"


def since(moment: int, now: int) -> str:
    """Return a past moment and the time since then. Both arguments are in epoch milliseconds."""
    return _moment(moment, now, f"{span(now - moment)} ago" if moment < now else "now")


_LATE_MS = 10_000  # clocks differ, and a wake takes its time


def when(moment: int, now: int) -> str:
    """Return the moment of what is to come, and the time until then or its delay. Both arguments are in epoch
    milliseconds.
    """
    late = f"{span(now - moment)} overdue" if now - moment >= _LATE_MS else "now"
    return _moment(moment, now, f"in {span(moment - now)}" if moment > now else late)


def _moment(moment: int, now: int, away: str) -> str:
    day = datetime.fromtimestamp(moment / 1_000, UTC).strftime("%Y-%m-%d %H:%M")
    return f"{clock(moment) if abs(moment - now) < 43_200_000 else day} UTC ({away})"


def cut(text: str, room: int) -> str:
    """Return at most `room` characters of the text. The last is `…` if text is missing."""
    return text if len(text) <= room else text[: room - 1] + "…"


def counted(number: int, one: str, many: str = "") -> str:
    """Write a number with its noun: `1 saga`, `2 sagas`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def course(foretold: Mapping[str, Any]) -> list[str]:
    """Return the action after a permanent failure of a step, and a line for each node with another action."""
    nodes = [f"`{name}`: {words}" for name, words in (foretold.get("nodes") or {}).items()]
    return [str(foretold.get("steps") or ""), *nodes]


def attempts(by_class: Mapping[str, Any]) -> list[str]:
    """Return the attempts by class of failure, the rollback, and a line for each node that differs."""
    alike: dict[str, list[str]] = {}
    for name, found in by_class["nodes"].items():
        alike.setdefault(_attempts(found), []).append(f"`{name}`")
    nodes = [f"attempts of {', '.join(names)}: {said}" for said, names in alike.items()]
    steps = by_class["steps"]
    return [*([f"attempts: {_attempts(steps)}"] if steps else []), *nodes]


def _attempts(classes: Mapping[str, Mapping[str, Any]]) -> str:
    many = {kind: one for kind, one in classes.items() if one["attempts"] > 1}
    tried = [f"{kind} {one['attempts']} over {span(one['over_ms'])}" for kind, one in many.items()]
    rest = [] if len(many) == len(classes) else ["any other 1" if many else "1"]
    undone = [kind for kind, one in classes.items() if one["undone"]]
    what = "whatever it was" if len(undone) == len(classes) else f"after {', '.join(undone)}"
    return ", ".join([*tried, *rest]) + (f"; what was done is undone {what}" if undone else "")
