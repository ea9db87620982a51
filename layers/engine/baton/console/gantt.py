"""Where the time of a saga went, from its log: what ran and what waited, beside each other, and what held the whole up. Pure.

The log has when attempts ran, and when entries were written. What no bar covers is hand-over: queues, starts of functions, checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from baton.console.rendering import milliseconds, span

RUNS, PERSON, WAITS, ELSEWHERE, BREAKER, HANDS_OVER = (
    "run",
    "person",
    "wait",
    "elsewhere",
    "breaker",
    "handover",
)
NAMES: Final = {
    RUNS: "execution",
    PERSON: "waiting for a person",
    WAITS: "waiting for a signal or a timer",
    ELSEWHERE: "work elsewhere",
    BREAKER: "waiting for a circuit breaker",
    HANDS_OVER: "hand-over and pauses",
}
# Of what goes on at the same time, the first one is what the saga did.
_ORDER: Final = (RUNS, ELSEWHERE, PERSON, WAITS, BREAKER)
IDLE_MOST: Final = 20
_OPENS: Final = {
    "wait_opened": WAITS,
    "question_opened": PERSON,
    "callback_opened": ELSEWHERE,
    "child_opened": ELSEWHERE,
    "step_held": BREAKER,
}
_HELP: Final = {
    RUNS: "Steps themselves took most of the time: make the longest one faster, or let it run beside others.",
    PERSON: "People took most of the time: remind them earlier, ask more of them at once, or let a question decide itself (`escalate`).",
    WAITS: "Signals and timers took most of the time: the workflow asked for it.",
    ELSEWHERE: "Work elsewhere, or child sagas, took most of the time: look at what they did.",
    BREAKER: "A target was down for most of the time: let the step go another way (`failover`).",
    HANDS_OVER: "Most of the time nothing ran: pauses before retries, the queue, and cold starts. Look at failed attempts, the number of workers and "
    "`WorkerConcurrency`.",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that went on from one moment to another (epoch ms). version: of the entry that ended it, 0: it still goes on."""

    lane: str
    kind: str
    begin: int
    end: int
    version: int
    words: str
    critical: bool = False


@dataclass(frozen=True, slots=True)
class Share:
    """So much of the whole time was this."""

    kind: str
    ms: int
    percent: float


@dataclass(frozen=True, slots=True)
class Gantt:
    """lanes: by their first bar. critical: by the times alone, what held each other up, the first one first."""

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
        return any(one.kind == HANDS_OVER and one.percent > IDLE_MOST for one in self.shares)


def gantt(entries: Sequence[Mapping[str, Any]], now: int, *, is_over: bool) -> Gantt | None:
    """None for a log of which nothing can be said."""
    times = [at for one in entries if (at := milliseconds(one["at"]))]
    if not times:
        return None
    bars = _bars(entries, now, is_over=is_over)
    begin = min([times[0], *(bar.begin for bar in bars)])
    end = max([times[-1] if is_over else now, *(bar.end for bar in bars if bar.version)], default=now)
    critical = _critical(bars, begin, end)
    lanes: dict[str, list[Bar]] = {}
    for bar in sorted(bars, key=lambda bar: (bar.begin, bar.end)):
        is_critical = bar in critical
        shown = Bar(bar.lane, bar.kind, bar.begin, bar.end, bar.version, bar.words, is_critical)
        lanes.setdefault(bar.lane, []).append(shown)
    shares = _shares(bars, begin, end)
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


def _bars(entries: Iterable[Mapping[str, Any]], now: int, *, is_over: bool) -> list[Bar]:
    found: list[Bar] = []
    opened: dict[
        tuple[str, str], tuple[int, str]
    ] = {}  # by slot and kind of wait: since when, in which words
    last = 0
    for entry in entries:
        at, version = milliseconds(entry["at"]) or last, int(entry["version"])
        last = at
        for event in entry["events"]:
            kind, lane = str(event["kind"]), _lane(event)
            if (opens := _OPENS.get(kind)) is not None:
                opened.setdefault((lane, opens), (at, kind.replace("_", " ")))
                if "started_at" not in event:
                    continue
            begin, end = milliseconds(event.get("started_at")), milliseconds(event.get("ended_at"))
            if begin and end:
                # Clocks differ: a bar does not end before it begins, nor behind the entry that tells of it by much.
                words = f"attempt {event.get('attempt', 1)}: {kind.replace('_', ' ')}"
                found.append(Bar(lane, RUNS, begin, max(begin, end), version, words))
            if kind in ("saga_ended", "forked"):
                found += [
                    Bar(one, waits, since, max(since, at), version, words)
                    for (one, waits), (since, words) in opened.items()
                ]
                opened.clear()
                continue
            for waits in _ORDER:
                if kind not in _OPENS and _closes(kind, waits) and (lane, waits) in opened:
                    since, words = opened.pop((lane, waits))
                    found.append(Bar(lane, waits, since, max(since, at), version, words))
    if not is_over:
        found += [
            Bar(lane, waits, since, max(since, now), 0, f"{words}, still open")
            for (lane, waits), (since, words) in opened.items()
        ]
    return found


def _closes(kind: str, waits: str) -> bool:
    """Whether an event about a node ends what the node waited for."""
    if kind.endswith(("_closed", "_passed", "_skipped", "_failed", "_succeeded")):
        return True
    return waits == BREAKER and kind in ("attempt_failed", "node_began")


def _lane(event: Mapping[str, Any]) -> str:
    node, rounds = str(event.get("node") or ""), event.get("iteration") or ()
    return f"{node}@{'.'.join(map(str, rounds))}" if rounds else node


def _critical(bars: Sequence[Bar], begin: int, end: int) -> list[Bar]:
    """Backwards from the end: what ended last before it, what ended last before that one began, and so on."""
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


def _shares(bars: Sequence[Bar], begin: int, end: int) -> list[Share]:
    """Each moment belongs to one kind of what went on; those of nothing are hand-over."""
    whole = max(end - begin, 1)
    changes = sorted(
        (moment, step, bar.kind)
        for bar in bars
        for moment, step in ((max(bar.begin, begin), 1), (min(max(bar.end, bar.begin), end), -1))
    )
    going, sums, before = dict.fromkeys(_ORDER, 0), dict.fromkeys(NAMES, 0), begin
    for moment, step, kind in [*changes, (end, 0, RUNS)]:
        does = next((one for one in _ORDER if going[one] > 0), HANDS_OVER)
        sums[does] += max(moment - before, 0)
        before = max(moment, before)
        going[kind] += step
    found = [Share(kind, ms, 100 * ms / whole) for kind, ms in sums.items() if ms]
    return sorted(found, key=lambda one: -one.ms)


def took(bar: Bar) -> str:
    return span(bar.end - bar.begin)
