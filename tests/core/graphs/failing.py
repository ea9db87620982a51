"""A second reading of docs/failures.md: what is done about an attempt that failed, for a handful of codes and tools.

Shares no code with the engine, and is of another make: it keeps no counters. Of each step it keeps what was done about
its failures so far, and counts that anew. How a graph goes on from a step that has failed is in interpreter.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from tests.core.graphs.plan import Plan

RETRY, REPLAN, ASK, UNDO, ESCALATE = "retry", "replan", "ask_user", "rollback", "escalate"
ORDER = (RETRY, REPLAN, ASK, UNDO, ESCALATE)
DAY_MS = 86_400_000

CLASSES = {
    "timeout": "transient",
    "server_error": "transient",
    "service_unavailable": "transient",
    "tool_error": "unknown",
    "not_found": "recoverable",
    "conflict": "recoverable",
    "content_policy": "user_resolvable",
    "bad_request": "permanent",
    "disk_full": "catastrophic",
}
"""Of what tools fail with here. Whatever the engine itself says of a graph is permanent."""

LADDERS = {
    "transient": ORDER,
    "recoverable": ORDER[1:],
    "user_resolvable": ORDER[2:],
    "permanent": ORDER[3:],
    "catastrophic": (ESCALATE, UNDO),
    "unknown": ORDER,
}
CODES: Mapping[str, Mapping[str, Any]] = {
    "not_found": {"hints": ["find_alternative_resource"]},
    "conflict": {"ladder": ORDER, "pauses": (1_000, 2_000, 4_000, 8_000), "budget": 1_800_000},
    "service_unavailable": {
        "pauses": (1_000, 2_000, 4_000, 8_000, 16_000),
        "budget": 1_800_000,
        "hints": ["alternative_provider"],
    },
    "server_error": {"pauses": (1_000, 2_000, 4_000), "budget": 1_800_000},
    "content_policy": {"hints": ["rephrase_request"]},
}
PRESETS = {
    "standard": ((1_000, 2_000, 4_000, 8_000), 120_000),
    "quick": ((500, 500), 30_000),
    "immediate": ((0, 0), 10_000),
    "none": ((), 0),
}
MOST = {RETRY: 20, REPLAN: 3, ASK: 3, UNDO: 1, ESCALATE: 3}


@dataclass(frozen=True)
class Way:
    """How else a tool's work is done."""

    name: str
    hints: tuple[str, ...] = ()


_VALUES = (
    "fallback_model",
    "alternative_provider",
    "alternative_source",
    "alternative_path",
    "find_alternative_resource",
)
WAYS = {
    "fetch": (
        Way("fetch.other"),
        Way("source=b", _VALUES),
        Way("source=c", _VALUES),
    ),
}
"""By tool, the best first; the tools themselves are in pair.py."""


@dataclass(frozen=True)
class Did:
    """One thing that was done about a failure."""

    what: str
    code: str
    at: int
    way: str = ""


@dataclass(frozen=True)
class Trying:
    """A step some of whose attempts have failed, and what it waits for: a time, or an answer (`asks`).

    `decided`: so much had been done about it when a person last said that it is to be tried again.
    """

    attempts: int = 0
    code: str = ""
    did: tuple[Did, ...] = ()
    due: int = 0
    asks: bool = False
    decided: int = 0
    expires: int = 0
    arguments: Mapping[str, Any] = field(default_factory=dict)
    cause: str = ""
    kind: str = ""

    @property
    def doing(self) -> str:
        return self.did[-1].what if self.did else ""

    @property
    def way(self) -> str:
        """The last that was chosen holds from then on."""
        return next((did.way for did in reversed(self.did) if did.way), "")


@dataclass(frozen=True)
class Cell:
    """What is done about one kind of failure: `pauses` before retries, within a `budget` of milliseconds, 0 for any."""

    ladder: tuple[str, ...]
    pauses: tuple[int, ...]
    budget: int
    hints: tuple[str, ...] = ()
    at_most: Mapping[str, int] = field(default_factory=dict)


def class_of(code: str) -> str:
    return CLASSES.get(code, "permanent")


def after_failure(
    plan: Plan,
    name: str,
    trying: Trying,
    code: str,
    now: int,
    *,
    handled: bool,
    cause: str = "",
    kind: str = "",
) -> Trying | None:
    """The step once an attempt has failed; None when that was its last word. `cause`: what its child has failed with."""
    failed = replace(trying, attempts=trying.attempts + 1, code=code, cause=cause, kind=kind)
    return _climb(plan, name, failed, now, handled, "")


def after_silence(plan: Plan, name: str, trying: Trying, now: int, *, handled: bool) -> Trying | None:
    """The step once its question has expired: on to the next strategy."""
    return _climb(plan, name, trying, now, handled, ASK)


def _climb(plan: Plan, name: str, trying: Trying, now: int, handled: bool, behind: str) -> Trying | None:
    if trying.cause:
        cell = cell_of_child(plan, name, trying.cause, trying.kind)
    else:
        cell = cell_of(plan, name, trying.code, handled=handled)
    ladder = cell.ladder[cell.ladder.index(behind) + 1 :] if behind else cell.ladder
    for what in ladder:
        pause, way = 0, ""
        if what == RETRY:
            found = _pause(cell, trying, now)
            if found is None:
                continue
            pause = found
        elif _times(what, trying) >= cell.at_most.get(what, MOST[what]):
            continue
        elif what == REPLAN:
            way = _way(cell, plan.of(name)["tool"], {did.way for did in trying.did})
            if not way:
                continue
        elif what == UNDO:
            return None
        return replace(
            trying,
            did=(*trying.did, Did(what, trying.code, now, way)),
            due=now + pause if what == RETRY else 0,
            asks=what in (ASK, ESCALATE),
            expires=now + DAY_MS if what == ASK else 0,
        )
    return None


def _times(what: str, trying: Trying) -> int:
    """How often it was done; people are asked anew after they have decided."""
    did = trying.did[trying.decided :] if what in (ASK, ESCALATE) else trying.did
    return sum(one.what == what for one in did)


def _pause(cell: Cell, trying: Trying, now: int) -> int | None:
    """How long until it is tried again; None if it is not."""
    latest = [*takewhile(lambda did: did.what == RETRY, reversed(trying.did))]
    by_itself = takewhile(lambda did: did.what not in (ASK, ESCALATE), reversed(trying.did))
    count = len(latest)
    may = min(len(cell.pauses), cell.at_most.get(RETRY, len(cell.pauses)))
    if count >= may or sum(did.what == RETRY for did in by_itself) >= max(MOST[RETRY], may):
        return None
    pause = cell.pauses[count]
    since = latest[-1].at if latest else now
    return None if cell.budget and now + pause > since + cell.budget else pause


def _way(cell: Cell, tool: str, known: set[str]) -> str:
    left = [way for way in WAYS.get(tool, ()) if way.name not in known]
    fitting = [way for hint in cell.hints for way in left if hint in way.hints]
    return next((way.name for way in (*fitting, *left) if way in fitting or not way.hints), "")


def cell_of(plan: Plan, name: str, code: str, *, handled: bool) -> Cell:
    kind = class_of(code)
    pauses, budget = PRESETS["standard"]
    cell = Cell(LADDERS[kind], pauses[: 3 if kind == "unknown" else 4], budget)
    if kind == "catastrophic":
        cell = replace(cell, at_most={ESCALATE: 1})
    known = CODES.get(code, {})
    cell = replace(
        cell,
        ladder=known.get("ladder", cell.ladder),
        pauses=known.get("pauses", cell.pauses),
        budget=known.get("budget", cell.budget),
        hints=tuple(known.get("hints", ())),
    )
    if handled:
        cell = replace(cell, ladder=tuple(what for what in cell.ladder if what in (RETRY, REPLAN)))
    for key, rule in _rules(plan, name, code):
        is_final = class_of(code) == "permanent" and key == "any"
        cell = _changed(cell, rule, key, is_final=is_final)
    return cell


def cell_of_child(plan: Plan, name: str, cause: str, kind: str) -> Cell:
    """Another child is started by rules of the node alone, and by itself only for what goes away by itself."""
    cell = Cell((RETRY,) if RETRY in LADDERS[kind] else (), *PRESETS["none"])
    for key, rule in _rules(plan, name, cause, kind, (plan.of(name),)):
        cell = _changed(cell, rule, key, is_final=kind == "permanent" and key == "any")
    return cell


def _rules(
    plan: Plan, name: str, code: str, kind: str = "", levels: tuple[Any, ...] = ()
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What the document says, then what the node does; in each, what is said of any failure, of a class, of a code.

    Each with the name that it stands under.
    """
    for level in levels or (plan.document, plan.of(name)):
        said = level.get("on_failure", {})
        said = said if isinstance(said, Mapping) else {"any": said}
        if "retry" in level:
            yield "any", {"retry": level["retry"]}
        for key in ("any", kind or class_of(code), code):
            rule = said.get(key)
            if rule is not None:
                yield key, rule if isinstance(rule, Mapping) else {"ladder": rule}


def _changed(cell: Cell, rule: Mapping[str, Any], key: str, *, is_final: bool) -> Cell:
    """`is_final`: what is permanent is not tried again by a rule for all failures."""
    if "ladder" in rule:
        ladder = rule["ladder"]
        named = ORDER[ORDER.index(ladder) :] if isinstance(ladder, str) else tuple(ladder)
        if ladder == UNDO and key == "any":
            named = (*(one for one in cell.ladder if one in (RETRY, REPLAN)), UNDO)
        cell = replace(cell, ladder=tuple(one for one in named if not (is_final and one == RETRY)))
    if "retry" in rule:
        said = rule["retry"]
        if isinstance(said, str):
            pauses, budget = PRESETS[said]
        else:
            pauses, budget = tuple(int(text.removesuffix("ms")) for text in said["schedule"]), 0
        cell = replace(cell, pauses=pauses, budget=budget)
    if "hints" in rule:
        cell = replace(cell, hints=tuple(rule["hints"]))
    return replace(cell, at_most={**cell.at_most, **rule.get("at_most", {})})
