"""Chart of a saga's time by node, from its log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from markupsafe import Markup

from baton.console.rendering import milliseconds, short_text, span
from baton.console.visits import ENDED, Visit
from baton.core.log import work
from baton.core.log.events import Closing, Opening

PERSON, WAITS, ELSEWHERE = work.PERSON, work.SIGNAL, work.ELSEWHERE
RUNS, BREAKER, MONEY, PAUSES, OVER = "run", "breaker", "money", "pause", "over"
HANDS_OVER, STARTS, WRITES = "handover", "cold", "checkpoint"
NAMES: Final = {
    RUNS: "execution",
    PERSON: "waiting for a person",
    WAITS: "waiting for a signal or a timer",
    ELSEWHERE: "work elsewhere",
    BREAKER: "waiting for a circuit breaker",
    MONEY: "waiting for money that others hold",
    PAUSES: "pause before a retry",
    OVER: "over, until a person had it go on",
    HANDS_OVER: "hand-over to another invocation",
    STARTS: "cold start",
    WRITES: "checkpoint",
}
# Of what goes on at the same time, the first one is what the saga did.
_ORDER: Final = (RUNS, ELSEWHERE, PERSON, WAITS, BREAKER, MONEY, PAUSES, OVER)
_IDLE: Final = (PAUSES, HANDS_OVER, STARTS, WRITES)
_SMALLEST: Final = 0.005  # of the whole: idle time that is drawn
IDLE_MOST: Final = 20
_OPENS: Final = {
    **{str(event.__struct_config__.tag): event.awaits for event in get_args(Opening) if event.awaits},
    "step_held": BREAKER,
}
_PARKED: Final = "parked"
_CLOSES: Final = frozenset(
    {
        *(str(event.__struct_config__.tag) for event in get_args(Closing)),
        *("question_closed", "attempt_failed", "step_failed", "node_skipped"),
    }
)
_TAKES_UP: Final = frozenset({"signal_received", "cancel_requested", "forked", "undo_began"})
"""Events by which an ended saga continues."""
_HELP: Final = {
    RUNS: "Steps themselves took most of the time: make the longest one faster, or let it run beside others.",
    PERSON: "People took most of the time: remind them earlier, ask more of them at once, or let a question decide itself (`escalate`).",
    WAITS: "Signals and timers took most of the time: the workflow asked for it.",
    ELSEWHERE: "Work elsewhere, or child sagas, took most of the time: look at what they did.",
    BREAKER: "A target was down for most of the time: let the step go another way (`failover`).",
    MONEY: "Steps waited most of the time for money that others held: raise the limit, or let fewer of them run at once.",
    PAUSES: "Pauses before retries took most of the time: look at why attempts failed, and at `retry`.",
    OVER: "Most of the time the saga was over, before it was rolled back or forked.",
    HANDS_OVER: "Most of the time the saga waited in the queue for a worker: look at the number of workers and `WorkerConcurrency`.",
    STARTS: "Cold starts took most of the time: keep workers provisioned, or let the saga do more in one invocation.",
    WRITES: "Writing checkpoints took most of the time: let small steps be one, or have them run beside each other.",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """A period (epoch ms) of one activity. version: of the entry that ended it, 0 if it is in progress."""

    lane: str
    kind: str
    begin: int
    end: int
    version: int
    words: str
    critical: bool = False


@dataclass(frozen=True, slots=True)
class Share:
    """Share of one activity of the total time."""

    kind: str
    ms: int
    percent: float


@dataclass(frozen=True, slots=True)
class Gantt:
    """Chart of a saga. lanes: ordered by first bar. critical: bars that delayed each other, by time."""

    begin: int
    end: int
    lanes: Mapping[str, Sequence[Bar]]
    shares: Sequence[Share]
    critical: Sequence[Bar]
    cold: int
    invocations: int
    longest: str
    help: str

    @property
    def is_idle(self) -> bool:
        return self.idle > IDLE_MOST

    @property
    def idle(self) -> float:
        """Percentage of the time in which nothing ran and nothing was waited for."""
        return sum(one.percent for one in self.shares if one.kind in _IDLE)


def gantt(entries: Sequence[Mapping[str, Any]], now: int, *, is_over: bool) -> Gantt | None:
    """Return the chart, or None for a log without content."""
    times = [at for one in entries if (at := milliseconds(one["at"]))]
    if not times:
        return None
    bars = _bars(entries, now, is_over=is_over)
    begin = min([times[0], *(bar.begin for bar in bars)])
    end = max([times[-1] if is_over else now, *(bar.end for bar in bars if bar.version)], default=now)
    critical = _critical(bars, begin, end)
    parts = list(_parts(bars, entries, begin, end))
    least = max((end - begin) * _SMALLEST, 1)
    idle = [
        Bar("", part.kind, part.begin, part.end, part.version, "no step ran")
        for part in parts
        if part.kind in _IDLE and part.kind != PAUSES and part.end - part.begin >= least
    ]
    lanes: dict[str, list[Bar]] = {}
    for bar in sorted([*bars, *idle], key=lambda bar: (bar.begin, bar.end)):
        is_critical = bar in critical
        shown = Bar(bar.lane, bar.kind, bar.begin, bar.end, bar.version, bar.words, is_critical)
        lanes.setdefault(bar.lane, []).append(shown)
    shares = _shares(parts, begin, end)
    most = max(shares, key=lambda one: one.ms, default=None)
    by_lane: dict[str, int] = {}
    for bar in critical:
        by_lane[bar.lane] = by_lane.get(bar.lane, 0) + bar.end - bar.begin
    return Gantt(
        begin=begin,
        end=end,
        lanes=lanes,
        shares=shares,
        critical=critical,
        cold=len({one["invocation"] for one in entries if one["cold"] and one["epoch"]}),
        invocations=len({one["invocation"] for one in entries if one["epoch"]}),
        longest=max(by_lane, key=lambda lane: by_lane[lane], default=""),
        help=_HELP[most.kind] if most else "",
    )


def _bars(entries: Sequence[Mapping[str, Any]], now: int, *, is_over: bool) -> list[Bar]:
    bars, last = _Bars(), 0
    ends = (milliseconds(entries[-1]["at"]) or now) if is_over else now
    for entry in entries:
        bars.at, bars.version = milliseconds(entry["at"]) or last, int(entry["version"])
        last = bars.at
        for event in entry["events"]:
            bars.hear(event, ends)
    if not is_over:
        bars.found += [
            Bar(bars.shown(lane, item), waits, since, max(since, now), 0, f"{words}, still open")
            for (lane, item, waits), (since, words) in bars.opened.items()
        ]
    return bars.found


class _Bars:
    """Bars of a log, collected event by event. Each belongs to the entry `version`, written `at`. `opened`:
    by lane, item and kind, start time and label. An operation of a function has a lane of its own.
    """

    def __init__(self) -> None:
        self.found: list[Bar] = []
        self.opened: dict[tuple[str, str, str], tuple[int, str]] = {}
        self.at = self.version = 0
        self._labels: dict[tuple[str, str], str] = {}

    def shown(self, lane: str, item: str) -> str:
        """Return the lane of an item: that of its node, or of its own for an operation of a function."""
        return self._labels.get((lane, item), lane)

    def hear(self, event: Mapping[str, Any], ends: int) -> None:
        """Process an event. `ends`: latest end of the last bar."""
        kind, lane, item = str(event["kind"]), _lane(event), str(event.get("item") or "")
        for one in event.get("operations") or ():
            self._labels[lane, str(one["item"])] = str(one.get("label") or one["item"])
        shown = self.shown(lane, item)
        if (opens := _opened(event, kind)) is not None:
            self.opened.setdefault((lane, item, opens), (self.at, _words(kind)))
            if "started_at" not in event:
                return
        begin, end = milliseconds(event.get("started_at")), milliseconds(event.get("ended_at"))
        if begin and end:
            # Clocks differ: a bar does not end before it begins, nor behind the entry that tells of it by much.
            words = f"attempt {event.get('attempt', 1)}: {kind.replace('_', ' ')}"
            self.found.append(Bar(shown, RUNS, begin, max(begin, end), self.version, words))
        if kind in ("saga_ended", "forked"):
            self._close([*self.opened])
            if kind == "saga_ended":
                self.opened["", "", OVER] = (self.at, "over")
            return
        # A retry: it is due at a moment that the entry names.
        if (due := milliseconds(event.get("due_at"))) and due > self.at:
            until = max(min(due, ends), self.at)
            self.found.append(Bar(shown, PAUSES, self.at, until, self.version, "until the next attempt"))
        self._close([place for place in self.opened if self._is_closed(place, kind, lane, item)])

    def _is_closed(self, place: tuple[str, str, str], kind: str, lane: str, item: str) -> bool:
        """Return true if the event ends the wait at this place; the end of a node ends those of its items."""
        there, its, waits = place
        if waits == OVER:
            return kind in _TAKES_UP
        if kind == "resumed":
            return self.opened[place][1] == _PARKED
        return there == lane and item in ("", its) and kind not in _OPENS and _closes(kind, waits)

    def _close(self, places: Sequence[tuple[str, str, str]]) -> None:
        for lane, item, waits in places:
            since, words = self.opened.pop((lane, item, waits))
            lane = self.shown(lane, item)
            self.found.append(Bar(lane, waits, since, max(since, self.at), self.version, words))


def _opened(event: Mapping[str, Any], kind: str) -> str | None:
    """Return the wait that this event begins, or None."""
    is_asked = kind == _PARKED or (kind == "strategy_chosen" and event.get("ask"))
    is_money = kind == "step_held" and event.get("limit")
    return PERSON if is_asked else MONEY if is_money else _OPENS.get(kind)


def _words(kind: str) -> str:
    return "a question about its failure" if kind == "strategy_chosen" else kind.replace("_", " ")


def _closes(kind: str, waits: str) -> bool:
    """Return true if an event about a node ends the node's wait."""
    return kind in _CLOSES or (waits in (BREAKER, MONEY) and kind == "node_began")


def _lane(event: Mapping[str, Any]) -> str:
    node, rounds = str(event.get("node") or ""), event.get("iteration") or ()
    return f"{node}@{'.'.join(map(str, rounds))}" if rounds else node


def _critical(bars: Sequence[Bar], begin: int, end: int) -> list[Bar]:
    """Return the critical bars, backwards from the end: the bar that ended last before it, the bar that ended
    last before that one began, and so on.
    """
    chain: list[Bar] = []
    until = end
    left = sorted(bars, key=lambda bar: (bar.end, bar.begin))
    while left:
        bar = left.pop()
        if bar.end <= until and bar.begin < until:
            chain.append(bar)
            until = bar.begin
        if until <= begin:
            break
    return chain[::-1]


@dataclass(frozen=True, slots=True)
class SagaPhase:
    """A period of the saga as a whole, with its activity. version: of the entry that ended idle time."""

    kind: str
    begin: int
    end: int
    version: int = 0


def _parts(
    bars: Sequence[Bar], entries: Sequence[Mapping[str, Any]], begin: int, end: int
) -> Iterator[SagaPhase]:
    """Yield parts that assign each moment to one kind of activity."""
    changes = sorted(
        (moment, step, bar.kind)
        for bar in bars
        for moment, step in ((max(bar.begin, begin), 1), (min(max(bar.end, bar.begin), end), -1))
    )
    going, before = dict.fromkeys(_ORDER, 0), begin
    written = [(milliseconds(one["at"]) or begin, one) for one in entries if one["epoch"]]
    for moment, step, kind in [*changes, (end, 0, RUNS)]:
        if moment > before:
            does = next((one for one in _ORDER if going[one] > 0), "")
            yield SagaPhase(does, before, moment) if does else _idle(written, before, moment)
        before = max(moment, before)
        going[kind] += step


def _idle(written: Sequence[tuple[int, Mapping[str, Any]]], begin: int, end: int) -> SagaPhase:
    """Return idle time with its kind, determined by the worker's entry before it and the next entry."""
    last = next((one for at, one in reversed(written) if at <= begin), None)
    after = next((one for at, one in written if at >= end), None)
    if after is None:
        return SagaPhase(HANDS_OVER, begin, end)
    if last is not None and last["invocation"] == after["invocation"]:
        return SagaPhase(WRITES, begin, end, int(after["version"]))
    return SagaPhase(STARTS if after["cold"] else HANDS_OVER, begin, end, int(after["version"]))


def _shares(parts: Sequence[SagaPhase], begin: int, end: int) -> list[Share]:
    whole, sums = max(end - begin, 1), dict.fromkeys(NAMES, 0)
    for part in parts:
        sums[part.kind] += part.end - part.begin
    found = [Share(kind, ms, 100 * ms / whole) for kind, ms in sums.items() if ms]
    return sorted(found, key=lambda one: -one.ms)


def took(bar: Bar) -> str:
    """Return the duration of a bar in words."""
    return span(bar.end - bar.begin)


MOST_LANES: Final = 60
MOST_BARS: Final = 200
_TICKS: Final = 4
_SMALLEST_SHARE: Final = 0.3  # percent: narrower bars are not seen


def time_data(
    visit: Visit, view: Mapping[str, Any], page: Mapping[str, Any], then: int = 0
) -> dict[str, Any]:
    """Return the data of the part of a page about time. page: the first entries of the log. then: the time
    (epoch ms) of the version that the page shows, 0 for the newest one.
    """
    is_whole = page["next"] is None
    is_over = view["status"] in ENDED or not is_whole
    found = gantt(page["entries"], visit.now if is_whole else 0, is_over=is_over)
    return {
        "found": found,
        "drawn": chart(found, f"/console/sagas/{view['id']}", then) if found else None,
        "names": NAMES,
        "is_whole": is_whole,
        "most": MOST_LANES,
        "took": took,
    }


def chart(found: Gantt, there: str, then: int = 0) -> Markup:
    """Return the chart: a row for each node and round, whose bars link to the entry that ended them. Its
    places are in percent of the page's width. then: a time (epoch ms) that is marked; later bars are pale.
    """
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
        name = short_text(lane or "the saga", 128)
        drawn = [
            _bar(bar, place(bar.begin), place(bar.end), there, " later" if 0 < then < bar.begin else "")
            for bar in bars[:left]
        ]
        if then:
            drawn.append(_MARK.format(place(then)))
        parts.append(
            Markup('<span class="lane">{}</span><svg class="bars" height="18">{}</svg>').format(
                name, Markup("").join(drawn)
            )
        )
        left = max(left - len(bars), 0)
    return Markup("").join([*parts, Markup("</div>")])


_MARK: Final = Markup('<line class="mark" x1="{0}%" x2="{0}%" y1="0" y2="24"/>')


def _bar(bar: Bar, begin: float, end: float, there: str, later: str) -> Markup:
    said = f"{short_text(bar.lane or 'the saga', 128)}: {NAMES[bar.kind]}, {took(bar)}, {bar.words}"
    wide = max(round(end - begin, 2), _SMALLEST_SHARE)
    rect = Markup(
        '<rect class="bar {}" x="{}%" y="1" width="{}%" height="16" rx="2"><title>{}</title></rect>'
    ).format(f"{bar.kind}{' critical' if bar.critical else ''}{later}", min(begin, 100 - wide), wide, said)
    if not bar.version:
        return rect
    return Markup('<a href="{}/log/{}" aria-label="{}">{}</a>').format(there, bar.version, said, rect)
