"""Rendering of pages as HTML: the Jinja environment, static files, and commands to copy."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from baton.console.visits import ENDED, ROOT
from baton.core.log.scopes import is_index, item_words

_HERE: Final = Path(__file__).parent / "static"
_ICON: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" fill="#0b57a4"/>'
    '<path d="M4 12 12 4" stroke="#fff" stroke-width="3" stroke-linecap="round"/></svg>'
)
_KINDS: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FILES: Final = ("console.css", "console.js", "htmx.min.js")


@dataclass(frozen=True)
class Asset:
    """A static file. version: name of this very content."""

    text: str
    kind: str
    version: str


@cache
def asset(name: str) -> Asset | None:
    """Return the file, or None for an unknown name."""
    file = _HERE / name
    if name == "icon.svg":
        text = _ICON
    elif name in _FILES and file.is_file():
        text = file.read_text("utf-8")
    else:
        return None
    kind = f"{_KINDS[name.rpartition('.')[2]]}; charset=utf-8"
    return Asset(text, kind, hashlib.sha256(text.encode()).hexdigest()[:16])


def address(name: str) -> str:
    """Return the address of the file, empty for an unknown name."""
    found = asset(name)
    return f"{ROOT}/static/{name}?v={found.version}" if found else ""


HERE: Final = Path(__file__).parent
MOST_SHOWN: Final = 2_000  # characters of one text on a page
_BEGIN, _END = "<!--live-->", "<!--end-->"
_CODE: Final = re.compile(r"(?<![\w`])`([^`\s](?:[^`\n]*[^`\s])?)`(?![\w`])")
_AS_CODE: Final = Markup("<code>{}</code>")
_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def render(template: str, data: Mapping[str, Any]) -> str:
    """Return the page. Raises the errors of Jinja for an invalid template."""
    return _environment().get_template(template).render(**data)


def live_part(html: str) -> str:
    """Return the part of a page that renews itself, between comments that no text can contain."""
    return html.partition(_BEGIN)[2].partition(_END)[0]


@cache
def _environment() -> Environment:
    made = Environment(
        autoescape=True,
        loader=FileSystemLoader(HERE / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        text=outside_text,
        prose=prose,
        words=short_text,
        usd=usd,
        pretty=pretty,
        part=part,
        query=urlencode,
        label=label,
    )
    made.globals.update(
        moment=moment,
        asset=address,
        span=span,
        many=many,
        clock=clock,
        took=took,
        took_by=took_by,
        item_name=item_name,
    )
    return made


def short_text(value: object, most: int = MOST_SHOWN) -> str:
    """Return a text without control characters, cut to the maximum length with a note."""
    whole = "" if value is None else str(value)
    # Only the beginning is looked at: a text may have a megabyte.
    seen = "".join(
        one if one.isprintable() or one in "\n\t\u00a0\u3000" else _hidden(one) for one in whole[:most]
    )
    return seen if len(whole) <= most else f"{seen}… (the first {most:,} of {len(whole):,} characters)"


_CUTS: Final = (20_000, 4_000, 1_500, 600, 250, 100)


def fitting_length(texts: Sequence[str], room: int) -> int:
    """Return the number of characters that each text of a page may have. room: bytes of all as HTML."""
    for most in _CUTS:
        if sum(len(escape(one[:most]).encode()) for one in texts) <= room:
            return most
    return _CUTS[-1]


def _hidden(character: str) -> str:
    """Return the replacement of an invisible character. Joiners, which combine emoji, and direction marks,
    which scripts need, are kept; `<bdi>` contains them.
    """
    return character if character in "\u200c\u200d\u200e\u200f" else "\N{REPLACEMENT CHARACTER}"


def outside_text(value: object, most: int = MOST_SHOWN) -> Markup:
    """Return a text of a user, a tool or a model, isolated from its surroundings in any writing direction."""
    return Markup("<bdi>{}</bdi>").format(short_text(value, most))


def prose(value: object, most: int = MOST_SHOWN) -> Markup:
    """Return sentences as `text` does, with code between backticks and no other elements."""
    parts = _CODE.split(short_text(value, most))  # every second one is code
    said = [_AS_CODE.format(one) if at % 2 else one for at, one in enumerate(parts)]
    return Markup("<bdi>{}</bdi>").format(Markup("").join(said))


def pretty(value: object) -> str:
    """Return JSON for reading."""
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=False, default=str)


def part(value: object) -> str:
    """Return a part of a path."""
    return quote(str(value), safe="")


def label(value: object) -> str:
    """Return a name of the API as words: `rolled_back` is rolled back."""
    return str(value).replace("_", " ")


def usd(value: float | None) -> str:
    """Return dollars with the significant digits."""
    if value is None:
        return "–"
    return (
        f"${value:,.2f}"
        if value >= 1 or value == 0
        else f"${value:.4f}"
        if value >= 0.0001
        else "under $0.0001"
    )


def many(number: int, word: str) -> str:
    """Return a number with its word: `1 turn`, `1,200 turns`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def span(ms: float) -> str:
    """Return a duration in at most two units: `340 ms`, `2.1 s`, `3 min 5 s`."""
    whole = round(ms)
    if whole < 1_000:
        return f"{whole} ms"
    if whole < 10_000:
        return f"{whole / 1_000:.1f} s"
    parts: list[str] = []
    for size, unit in _UNITS:
        count, whole = divmod(whole, size)
        if count and len(parts) < 2:
            parts.append(f"{count} {unit}")
        elif parts:
            break
    return " ".join(parts)


def milliseconds(value: object) -> int | None:
    """Return a time of the API, ISO 8601 or epoch milliseconds, as epoch milliseconds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value) or None
    try:
        return round(datetime.fromisoformat(str(value)).timestamp() * 1_000) if value else None
    except ValueError:
        return None


def moment(value: object, now: int) -> Markup:
    """Return a time, relative and absolute with its zone, also in machine-readable form."""
    ms = milliseconds(value)
    if ms is None:
        return Markup("–")
    at = datetime.fromtimestamp(ms / 1_000, UTC)
    away = f"in {span(ms - now)}" if ms > now else f"{span(now - ms)} ago" if now - ms >= 1_000 else "now"
    html = Markup('<time datetime="{}">{} <span class="quiet">{}</span></time>')
    return html.format(at.isoformat(timespec="milliseconds"), away, f"{at:%Y-%m-%d %H:%M:%S} UTC")


def clock(value: object) -> Markup:
    """Return the time of day of an event, with its date for machines."""
    ms = milliseconds(value)
    if ms is None:
        return Markup("–")
    at = datetime.fromtimestamp(ms / 1_000, UTC)
    return Markup('<time class="quiet" title="{}">{}</time>').format(
        f"{at:%Y-%m-%d %H:%M:%S} UTC", f"{at:%H:%M:%S}.{at.microsecond // 1_000:03}"
    )


def took(row: Mapping[str, Any], now: int) -> str:
    """Return the duration of a saga, up to now for one that has not ended."""
    begin, end = milliseconds(row["created_at"]), milliseconds(row["changed_at"])
    last = end if row["status"] in ENDED else now
    return span(max(last - begin, 0)) if begin and last else "–"


def item_name(item: str) -> str:
    """Return an item in words: `item 3` of a map, `turn 1, call 2` of an agent."""
    return f"item {item}" if is_index(item) else item_words(item)


def took_by(run: Mapping[str, Any]) -> str:
    """Return the duration of an attempt as the end of a sentence, empty if it is not known."""
    begin, end = milliseconds(run["started_at"]), milliseconds(run["ended_at"])
    return f" in {span(max(end - begin, 0))}" if begin and end else ""


# What the reader's shell fills in.
_AUTHORIZED = "Authorization: Bearer $BATON_TOKEN"
_KEY = "Idempotency-Key: $(uuidgen)"


def commands(
    api: str, path: str, baton: Sequence[str], body: Mapping[str, Any] | None = None, *, has_key: bool = False
) -> str:
    """Return the commands, one per line. Each run makes a new idempotency key."""
    curl = ["curl", f"{api}{path}", "-H", _AUTHORIZED]
    if body is not None:
        curl[1:1] = ["-X", "POST"]
        curl += ["-H", "Content-Type: application/json"]
        if has_key:
            curl += ["-H", _KEY]
        curl += ["-d", json.dumps(body, ensure_ascii=False)]
    return f"{_line(['baton', *baton])}\n{_line(curl)}"


def printing(api: str, saga: str, after: str = "0", limit: str = "") -> str:
    """Return the commands that print the log of a saga, or entries of it."""
    asked = {name: value for name, value in (("after", after), ("limit", limit)) if value not in ("", "0")}
    path = f"/sagas/{quote(saga, safe='')}/events"
    words = [word for name, value in asked.items() for word in (f"--{name}", value)]
    return commands(api, f"{path}?{urlencode(asked)}" if asked else path, ["events", saga, *words])


def _line(words: Sequence[str]) -> str:
    """Return the words quoted for a shell."""
    return " ".join(f'"{word}"' if word in (_AUTHORIZED, _KEY) else shlex.quote(word) for word in words)
