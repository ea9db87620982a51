"""Small pieces of text: times and amounts written, foreign strings made harmless."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def plain(text: str) -> str:
    """The text without control characters: what a service says must not steer the terminal."""
    return "".join(c if c in "\n\t" or _is_seen(c) else "\N{REPLACEMENT CHARACTER}" for c in text)


def one_line(text: str) -> str:
    """The text with `\\n` and the like where a line would end: what a
    service says must not look like another line.
    """
    return text.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")


def escaped(json_text: str) -> str:
    """The same JSON, with what a terminal could take for a command written as `\\uXXXX`."""
    if json_text.replace("\n", "").isprintable():
        return json_text
    return "".join(c if c == "\n" or c.isprintable() else json.dumps(c)[1:-1] for c in json_text)


def _is_seen(character: str) -> bool:
    # Python counts all spaces but one among what cannot be printed; other scripts are full of them.
    return character.isprintable() or unicodedata.category(character) == "Zs"


def epoch_ms(value: object) -> int | None:
    """A time as the API writes it, ISO 8601 or epoch milliseconds, as epoch milliseconds."""
    if isinstance(value, bool) or value is None or value == "":
        return None
    if isinstance(value, int | float):
        return int(value)
    moment = datetime.fromisoformat(str(value))
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def clock(ms: int | None) -> str:
    """The time of day in UTC, to the millisecond."""
    return "" if ms is None else datetime.fromtimestamp(ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]


def span(ms: float | None) -> str:
    """A length of time as a person says it: `340 ms`, `2.1 s`, `3 min 5 s`, `2 h 10 min`, `2 d 3 h`."""
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
    """A moment at which something has happened, and how long ago that is; both in epoch milliseconds."""
    return _moment(moment, now, f"{span(now - moment)} ago" if moment < now else "now")


def when(moment: int, now: int) -> str:
    """A moment at which something is to happen, and how far away it is; both in epoch milliseconds."""
    return _moment(moment, now, f"in {span(moment - now)}" if moment > now else "now")


def _moment(moment: int, now: int, away: str) -> str:
    day = datetime.fromtimestamp(moment / 1_000, UTC).strftime("%Y-%m-%d %H:%M")
    return f"{clock(moment) if abs(moment - now) < 43_200_000 else day} UTC ({away})"


def cut(text: str, room: int) -> str:
    """At most so many characters, the last of them `…` if some are missing."""
    return text if len(text) <= room else text[: room - 1] + "…"


def counted(number: int, one: str, many: str = "") -> str:
    """`1 saga`, `2 sagas`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def course(foretold: Mapping[str, Any]) -> list[str]:
    """What happens when a step fails for good, and in a line each the nodes that do something else."""
    nodes = [f"`{name}`: {words}" for name, words in (foretold.get("nodes") or {}).items()]
    return [str(foretold.get("steps") or ""), *nodes]


def attempts(by_class: Mapping[str, Any]) -> list[str]:
    """Attempts of a failed step by the class of its failure, and what is
    undone; in a line each the nodes that differ.
    """
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
