"""The page of where the time of a saga went: the chart as SVG, the shares in words."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from baton.console.acting import ENDED, pace
from baton.console.gantt import NAMES, Bar, Gantt, gantt, took
from baton.console.rendering import span, words
from baton.console.shell import printing
from baton.console.visits import Answer, Html, Unchanged, Visit, tag_of

_ENTRIES: Final = "1000"
MOST_LANES: Final = 100
MOST_BARS: Final = 600
_LEFT, _WIDE, _ROW, _HEAD = 190, 760, 24, 26
_TICKS: Final = 4
_GROWS: Final = 10_000  # ms


async def timeline(visit: Visit) -> Answer:
    """Where the time went."""
    saga = visit.path["saga"]
    view = await visit.call("showSaga", {"saga": saga})
    # What still goes on gets longer.
    grown = 0 if view["status"] in ENDED else visit.now // _GROWS
    if (tag := tag_of(view["version"], grown)) == visit.seen:
        return Unchanged()
    page = await visit.call("listEvents", {"saga": saga}, {"limit": _ENTRIES})
    is_whole = page["next"] is None
    now = visit.now if is_whole else 0
    found = gantt(page["entries"], now, is_over=view["status"] in ENDED or not is_whole)
    data = {
        "saga": view,
        "found": found,
        "drawn": chart(found, f"/console/sagas/{saga}") if found else None,
        "names": NAMES,
        "is_whole": is_whole,
        "most": MOST_LANES,
        "took": took,
        "commands": printing(visit.api, saga),
    }
    return Html(template="time.html", title=f"Time of {saga}", data=data, tag=tag, every=pace(view))


def chart(found: Gantt, there: str) -> Markup:
    """A row for each node and round; bars lead to the entry that ended them."""
    whole = max(found.end - found.begin, 1)
    lanes = list(found.lanes.items())[:MOST_LANES]
    height = _HEAD + _ROW * len(lanes) + 8
    width = _LEFT + _WIDE + 20

    def place(at: int) -> float:
        return round(_LEFT + _WIDE * min(max(at - found.begin, 0), whole) / whole, 1)

    parts = [
        Markup(
            '<svg class="gantt" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="group" aria-label="{2}">'
        ).format(width, height, f"What ran and what waited, {len(lanes)} lanes over {span(whole)}")
    ]
    for tick in range(_TICKS + 1):
        x = _LEFT + _WIDE * tick // _TICKS
        parts.append(
            Markup(
                '<line class="tick" x1="{0}" y1="18" x2="{0}" y2="{1}"/><text class="small" x="{0}" y="13" text-anchor="{2}">{3}</text>'
            ).format(
                x,
                height,
                "end" if tick == _TICKS else "middle" if tick else "start",
                span(whole * tick / _TICKS),
            )
        )
    left = MOST_BARS
    for row, (lane, bars) in enumerate(lanes):
        y = _HEAD + _ROW * row
        name = words(lane or "the saga", 128)
        short = name if len(name) <= 24 else f"{name[:23]}…"
        parts.append(Markup('<text x="0" y="{}"><title>{}</title>{}</text>').format(y + 15, name, short))
        parts += [_bar(bar, place(bar.begin), place(bar.end), y, there) for bar in bars[:left]]
        left = max(left - len(bars), 0)
    return Markup("").join([*parts, Markup("</svg>")])


def _bar(bar: Bar, x: float, end: float, y: int, there: str) -> Markup:
    said = f"{words(bar.lane or 'the saga', 128)}: {NAMES[bar.kind]}, {took(bar)}, {bar.words}"
    rect = Markup(
        '<rect class="bar {}" x="{}" y="{}" width="{}" height="16" rx="2"><title>{}</title></rect>'
    ).format(f"{bar.kind} critical" if bar.critical else bar.kind, x, y + 3, max(round(end - x, 1), 2), said)
    if not bar.version:
        return rect
    return Markup('<a href="{}/log/{}" aria-label="{}">{}</a>').format(there, bar.version, said, rect)
