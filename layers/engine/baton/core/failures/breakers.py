"""Circuit breakers as data: the admission of a call to its target, and the effect of its outcome on the
breaker.

One breaker is for one target of one tenant. Nothing is stored or awaited here: the record is a port
(ports/operators.py), the cache of a process is in runtime/steps/breaking.py.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec.structs import replace

from baton.core.failures.codes import TRANSIENT, class_of

CLOSED, OPEN, HALF_OPEN = "closed", "open", "half_open"
BREAKER_OPEN = "breaker_open"
"""The code of a failure in place of a wait, if the document has a rule for it."""

TOOL, HOST, OFF = "tool", "host", "none"
"""Words in place of a name: the target is the tool, or the host of its argument `url`; or the call has no
breaker.
"""

NAME_PATTERN = "[a-z0-9][a-z0-9_.-]{0,63}"
_is_name = re.compile(NAME_PATTERN).fullmatch
_HOST = re.compile(r"https?://(?:[^/?#@]*@)?(\[[0-9a-f:.]+\]|[^/?#:]+)(?::(\d+))?", re.IGNORECASE)

MOST_MOVES = 20
MOST_FAILED = 20
_SILENT = frozenset(
    {BREAKER_OPEN, "rate_limited", "deadlock", "file_locked", "element_not_found", "heartbeat_timeout"}
)
"""Codes of transient failures that give no evidence about the target: others may call it."""


class BreakerTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions under which breakers open and close.

    A breaker opens after `failures` failures within `window_ms`, if they are at least `percent` of the calls
    reported with them.
    No call is then made for `pause_ms`, twice as long after each failed probe, up to `longest_pause_ms`.
    After that `probes` calls pass at a time; the breaker closes after the same number of answers.
    """

    failures: int = 5
    window_ms: int = 60_000
    percent: int = 50
    pause_ms: int = 30_000
    longest_pause_ms: int = 300_000
    probes: int = 1
    spread_ms: int = 60_000


class FailureReport(msgspec.Struct, frozen=True, array_like=True):
    """A report of one process: number of failures with this code among a number of calls, the last of them at
    `at`.
    """

    at: int
    code: str
    count: int
    calls: int
    by: str


class Move(msgspec.Struct, frozen=True, array_like=True):
    """A change of a breaker's state, and its reason. `by`: the operator, or the invocation."""

    at: int
    to: str
    why: str
    by: str


class Probe(msgspec.Struct, frozen=True, array_like=True):
    """A call that an open breaker let through. It is over at `until`, with any outcome."""

    by: str
    until: int


class Breaker(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One breaker. Times are epoch milliseconds; the default is a breaker without any report.

    `version` counts its writes. `since`: the start of `state`. `until`: the earliest time of a probe; 0 while
    open: an operator decides. `rounds`: number of times that it has opened without closing. `passed`: probes
    that had an answer since it became half-open.
    """

    version: int = 0
    state: str = CLOSED
    since: int = 0
    until: int = 0
    rounds: int = 0
    failed: tuple[FailureReport, ...] = ()
    probes: tuple[Probe, ...] = ()
    passed: int = 0
    moves: tuple[Move, ...] = ()


# ---- what a target is ---------------------------------------------------------------------------------------------


def target_of(said: str, tool: str, arguments: Any) -> str:
    """Return the name of the breaker for one call; empty if it has none.

    `said` is the declaration of the tool or the document.
    """
    if said in ("", OFF):
        return ""
    if said == TOOL:
        return tool
    return host_of(arguments) if said == HOST else said


def host_of(arguments: Any) -> str:
    """Return the host, with its port if any, of the argument `url`; empty without one."""
    url = arguments.get("url") if isinstance(arguments, dict) else None
    found = _HOST.match(url) if isinstance(url, str) else None
    if found is None:
        return ""
    host, port = found.group(1).lower().strip("[]").replace(":", "-"), found.group(2)
    name = f"{host}-{port}" if port else host
    return name if _is_name(name) else ""


def name_problem(said: Any) -> str:
    """Return the problem of a breaker's name; empty for a valid name."""
    if isinstance(said, str) and _is_name(said):
        return ""
    return f"`{str(said)[:100]}` names no breaker; write 1 to 64 lower-case letters, digits, `_`, `.` and `-`"


def speaks_of_target(code: str, kind: str = "", status: int = 0) -> bool:
    """Return true if a failure is evidence that the target is down, and not that the call was wrong."""
    if code in _SILENT or 400 <= status < 500:
        return False
    return status >= 500 or code == "database_down" or (kind or class_of(code)) == TRANSIENT


# ---- may a call go through? -----------------------------------------------------------------------------------------


def may_pass(breaker: Breaker) -> bool:
    """Return true if calls pass as if the breaker did not exist."""
    return breaker.state == CLOSED


def may_probe(breaker: Breaker, terms: BreakerTerms, now: int) -> bool:
    """Return true if a probe may pass now."""
    if breaker.state == OPEN:
        return 0 < breaker.until <= now
    live = sum(probe.until > now for probe in breaker.probes)
    return breaker.state == HALF_OPEN and live + breaker.passed < terms.probes


def next_look(breaker: Breaker, terms: BreakerTerms, now: int, draw: float) -> int:
    """Return the time at which a refused step asks again.

    `draw` of [0, 1) spreads the steps that wait for the same breaker.
    """
    spread, known = min(pause_of(breaker, terms), terms.spread_ms), breaker.until
    if breaker.state != OPEN:
        known = now + spread // 4  # a probe is quick to end
    elif not known:  # an operator decides, maybe in days, and each look is an entry
        known = now + terms.longest_pause_ms // 2
    return max(known, now) + 1_000 + round(spread * draw)


def pause_of(breaker: Breaker, terms: BreakerTerms) -> int:
    """Return the milliseconds for which it stays open, by the number of its openings in a row."""
    pause = terms.pause_ms << min(max(breaker.rounds - 1, 0), 20)
    return min(pause, max(terms.longest_pause_ms, terms.pause_ms))


def is_quiet(breaker: Breaker, terms: BreakerTerms, now: int) -> bool:
    """Return true if no failure of the target is known: then no process reads the record."""
    return breaker.state == CLOSED and not _recent(breaker, terms, now)


# ---- what changes it ------------------------------------------------------------------------------------------------
# Each returns the breaker as it is to be written, or the same one where nothing is to be written.


def with_reports(
    breaker: Breaker, reports: tuple[FailureReport, ...], terms: BreakerTerms, now: int, draw: float
) -> Breaker:
    """Return the breaker with failures of calls that no probe has made.

    A report that is there already counts once.
    """
    if breaker.state != CLOSED:
        return breaker  # they were under way when it opened
    known = {(one.at, one.code, one.by) for one in breaker.failed}
    new = tuple(one for one in reports if (one.at, one.code, one.by) not in known)
    if not new:
        return breaker
    after = replace(breaker, failed=_kept((*breaker.failed, *new), _first(breaker, terms, now)))
    recent = _recent(after, terms, now)
    failures, calls = sum(one.count for one in recent), sum(one.calls for one in recent)
    if failures < terms.failures or failures * 100 < max(calls, failures) * terms.percent:
        return _next(after)
    why = f"{failures} of {max(calls, failures)} calls failed, the last with `{new[-1].code}`"
    return _opened(after, why, new[-1].by, terms, now, draw)


def with_probe(breaker: Breaker, by: str, until: int, terms: BreakerTerms, now: int) -> Breaker:
    """Return the breaker with a probe of `by`, if one may pass. Expired probes are forgotten."""
    if any(probe.by == by for probe in breaker.probes) or not may_probe(breaker, terms, now):
        return breaker
    live = tuple(probe for probe in breaker.probes if probe.until > now)
    after = replace(breaker, probes=(*live, Probe(by, until)))
    if breaker.state == HALF_OPEN:
        return _next(after)
    return _moved(replace(after, passed=0, until=0), HALF_OPEN, "a call is let through", by, now)


def with_verdict(
    breaker: Breaker, by: str, verdict: str | None, terms: BreakerTerms, now: int, draw: float
) -> Breaker:
    """Return the breaker after the end of the probe of `by`.

    `verdict`: the code of its failure, an empty text for an answer, None without evidence.
    """
    if breaker.state != HALF_OPEN or all(probe.by != by for probe in breaker.probes):
        return breaker  # it is over, or an operator has decided
    rest = tuple(probe for probe in breaker.probes if probe.by != by)
    after = replace(breaker, probes=rest)
    if verdict is None:
        return _next(after)
    if verdict:
        failed = (*after.failed, FailureReport(now, verdict, 1, 1, by))[-MOST_FAILED:]
        after = replace(after, failed=failed)
        return _opened(after, f"a call that was let through failed with `{verdict}`", by, terms, now, draw)
    after = replace(after, passed=after.passed + 1)
    if after.passed < terms.probes:
        return _next(after)
    return _closed(after, "the target answers", by, now)


def forced_open(breaker: Breaker, by: str, until: int, now: int) -> Breaker:
    """Return the breaker opened by an operator, until a moment or (0) until it is reset."""
    after = replace(breaker, until=until, probes=(), passed=0, rounds=max(breaker.rounds, 1))
    return _moved(after, OPEN, "opened by an operator", by, now)


def reset(breaker: Breaker, by: str, now: int) -> Breaker:
    """Return the breaker closed by an operator: its earlier failures no longer count."""
    return _closed(breaker, "reset by an operator", by, now)


def _closed(breaker: Breaker, why: str, by: str, now: int) -> Breaker:
    # The failures stay to be read, and no longer count: see `_recent`.
    after = replace(breaker, probes=(), passed=0, until=0, rounds=0)
    return _moved(after, CLOSED, why, by, now)


def _opened(breaker: Breaker, why: str, by: str, terms: BreakerTerms, now: int, draw: float) -> Breaker:
    after = replace(breaker, rounds=breaker.rounds + 1, probes=(), passed=0)
    pause = pause_of(after, terms)
    return _moved(replace(after, until=now + pause + round(pause * draw / 5)), OPEN, why, by, now)


def _moved(breaker: Breaker, to: str, why: str, by: str, now: int) -> Breaker:
    moves = (*breaker.moves, Move(now, to, why, by))[-MOST_MOVES:]
    return _next(replace(breaker, state=to, since=now, moves=moves))


def _next(breaker: Breaker) -> Breaker:
    return replace(breaker, version=breaker.version + 1)


def _kept(failed: tuple[FailureReport, ...], first: int) -> tuple[FailureReport, ...]:
    """Return the last failures.

    Of those after `first`, the oldest are added up, so that none is forgotten while it counts.
    """
    while len(failed) > MOST_FAILED:
        old, next_one, *rest = failed
        if old.at > first:
            count, calls = old.count + next_one.count, old.calls + next_one.calls
            rest.insert(0, replace(next_one, at=old.at, count=count, calls=calls))
        else:
            rest.insert(0, next_one)
        failed = tuple(rest)
    return failed


def _recent(breaker: Breaker, terms: BreakerTerms, now: int) -> list[FailureReport]:
    """Return the failures that count: those of the window, since the last closing."""
    first = _first(breaker, terms, now)
    return [one for one in breaker.failed if one.at > first]


def _first(breaker: Breaker, terms: BreakerTerms, now: int) -> int:
    return max(now - terms.window_ms, breaker.since)
