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
_TICKS: Final = 4
_SMALLEST: Final = 0.3  # percent: narrower bars are not seen
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
    """A row for each node and round; bars lead to the entry that ended them. It is as wide as the page: places are in percent."""
    whole = max(found.end - found.begin, 1)
    lanes = list(found.lanes.items())[:MOST_LANES]

    def place(at: int) -> float:
        return round(100 * min(max(at - found.begin, 0), whole) / whole, 2)

    ticks = [
        Markup('<text class="small" x="{}%" y="13" text-anchor="{}">{}</text>').format(
            100 * tick // _TICKS,
            "end" if tick == _TICKS else "middle" if tick else "start",
            span(whole * tick / _TICKS),
        )
        for tick in range(_TICKS + 1)
    ]
    parts = [
        Markup('<div class="gantt" role="group" aria-label="{}">').format(
            f"What ran and what waited, {len(lanes)} lanes over {span(whole)}"
        ),
        Markup('<span></span><svg height="18" aria-hidden="true">{}</svg>').format(Markup("").join(ticks)),
    ]
    left = MOST_BARS
    for lane, bars in lanes:
        name = words(lane or "the saga", 128)
        drawn = [_bar(bar, place(bar.begin), place(bar.end), there) for bar in bars[:left]]
        parts.append(
            Markup('<span class="lane">{}</span><svg class="bars" height="18">{}</svg>').format(
                name, Markup("").join(drawn)
            )
        )
        left = max(left - len(bars), 0)
    return Markup("").join([*parts, Markup("</div>")])


def _bar(bar: Bar, begin: float, end: float, there: str) -> Markup:
    said = f"{words(bar.lane or 'the saga', 128)}: {NAMES[bar.kind]}, {took(bar)}, {bar.words}"
    wide = max(round(end - begin, 2), _SMALLEST)
    rect = Markup(
        '<rect class="bar {}" x="{}%" y="1" width="{}%" height="16" rx="2"><title>{}</title></rect>'
    ).format(f"{bar.kind} critical" if bar.critical else bar.kind, min(begin, 100 - wide), wide, said)
    if not bar.version:
        return rect
    return Markup('<a href="{}/log/{}" aria-label="{}">{}</a>').format(there, bar.version, said, rect)
