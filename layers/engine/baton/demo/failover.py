"""Failing over: the dinner's reactions to each fault of table-stack, judged by its log and the services'
books.

The reactions are in its document, sagas/dinner.yaml; the faults are in examples/services/faults.py.
cli/machine/failing_over.py starts a run.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from baton.client.api import Api
from baton.client.transport import Reader
from baton.core.log.state import FINISHED
from baton.demo.figures import ROLLED_BACK, events_of
from baton.words.text import counted, epoch_ms, span

Json = Mapping[str, Any]

AT = "2026-12-01T19:30:00+00:00"
PARTY = 4
LOOK_EVERY_S = 0.5
TABLES, DELIVERY = "table-stack", "open-delivery"

HOME, WAITLIST, TIME, HOUSE = "delivery", "waitlist", "another time", "another restaurant"
NONE, UNDONE = "none", "undone"
_BY_NODE = {"order_dinner": HOME, "waitlist": WAITLIST}
_BY_POLICY = {"later": TIME, "earlier": TIME, "another_restaurant": HOUSE}

EVENING = MappingProxyType({"hold": 2, "deposit": 1, "confirm": 2, "order": 3})
STANDS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {TIME: EVENING, HOUSE: EVENING, WAITLIST: {"waitlist": 1}, HOME: {"order": 1}, UNDONE: {}, NONE: EVENING}
)
"""Expected entries in the books of both services after each kind of dinner, each exactly once."""


@dataclass(frozen=True, slots=True)
class Case:
    """A fault of the services in one city, and the expected way of the dinner. `faults` contains, by service,
    those of each place. `undone` lists effects on the way that must be undone.
    """

    fault: str
    city: str
    faults: Mapping[str, Mapping[str, Sequence[Json]]]
    way: str
    undone: tuple[str, ...] = ()

    @property
    def given(self) -> dict[str, Any]:
        """Input of the case's saga."""
        return {"city": self.city, "party": PARTY, "at": AT}


def _tables(fault: str, city: str, way: str, kind: str, *operations: str, **more: Any) -> Case:
    """Return the case of one fault of table-stack, in the whole city or in a `house` of it."""
    place, undone = f"{city.lower()}{more.pop('house', '')}", more.pop("undone", ())
    found = {"kind": kind, "operations": operations, **more}
    return Case(fault, city, {TABLES: {place: [found]}}, way, undone)


CASES = (
    _tables("times out", "Aarhus", HOME, "hangs"),
    _tables("answers 503", "Basel", HOME, "unavailable"),
    _tables("answers 503 once the deposit is paid", "Cork", HOME, "unavailable", "confirm", undone=("hold", "deposit", "order")),
    _tables("is full at that time", "Delft", TIME, "full", "search", at=AT),
    _tables("is full all evening", "Essen", WAITLIST, "full"),
    _tables("gives the table to another guest", "Faro", HOUSE, "full", "hold", house="/lantern"),
    _tables("is slow, and holds a table", "Gdansk", HOME, "late", "hold", undone=("hold",)),
    _tables("holds a table, and answers nonsense", "Hull", HOME, "nonsense", "hold", undone=("hold",)),
    _tables("answers something else", "Izmir", HOME, "shapeless", "search"),
    _tables("refuses the login", "Jena", HOME, "login"),
    Case(
        "answers 503 once the deposit is paid, and there is no dinner to order",
        "Kiel",
        {TABLES: {"kiel": [{"kind": "unavailable", "operations": ["confirm"]}]}, DELIVERY: {"kiel/soup": [{"kind": "full"}]}},
        UNDONE,
        ("hold", "deposit", "order"),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """Result of a case. `attempts`: of steps that failed at least once. `trace`: W3C id."""

    case: Case
    saga: str
    status: str
    way: str
    took_ms: int
    attempts: int
    trace: str
    problems: list[str] = field(default_factory=list)


class Failover:
    """A run of all cases in parallel. `urls`: addresses of the services, by name."""

    def __init__(
        self,
        api: Api,
        reader: Reader,
        urls: Mapping[str, str],
        say: Callable[[str], None],
        limit_s: float = 180.0,
    ) -> None:
        self._api = api
        self._reader = reader
        self._urls = urls
        self._say = say
        self._limit_s = limit_s

    async def run(self, cases: Sequence[Case] = CASES) -> list[CaseOutcome]:
        """Return the outcome of each case after every saga has ended or the time is up."""
        for case in cases:
            for service, places in case.faults.items():
                for place, faults in places.items():
                    await self._reader.put(f"{self._urls[service]}/faults/{place}", list(faults))
        started = await asyncio.gather(*(self._api.start("dinner", case.given) for case in cases))
        sagas = [str(saga["id"]) for saga in started]
        self._say(f"{len(sagas)} dinners started, each in a city where something else is wrong")
        ends, running = time.monotonic() + self._limit_s, dict(zip(sagas, cases, strict=True))
        while running and time.monotonic() < ends:
            await asyncio.sleep(LOOK_EVERY_S)
            for saga, case in list(running.items()):
                seen = await self._api.show(saga)
                if seen["status"] in FINISHED:
                    del running[saga]
                    self._say(f"{case.city}, where table-stack {case.fault}: {seen['status']}")
        views = await asyncio.gather(*map(self._api.show, sagas))
        logs = await asyncio.gather(*map(self._log, sagas))
        books = await asyncio.gather(*(self._reader.get(f"{url}/books") for url in self._urls.values()))
        return [judge_case(*one, books) for one in zip(cases, views, logs, strict=True)]

    async def _log(self, saga: str) -> list[Json]:
        return [entry async for entry in self._api.events(saga)]


def judge_case(case: Case, saga: Json, log: Sequence[Json], books: Sequence[Json]) -> CaseOutcome:
    """Return the result of one case. `problems` is empty if it is as expected."""
    failing = {event["node"] for event in events_of(log) if event["kind"] == "attempt_failed"}
    failing |= {event["node"] for event in events_of(log) if event["kind"] == "step_failed"}
    ended = [event for event in events_of(log) if event["kind"] == "saga_ended"]
    times = [epoch_ms(entry["at"]) or 0 for entry in log]
    return CaseOutcome(
        case=case,
        saga=str(saga["id"]),
        status=str(saga["status"]),
        way=way_of(log),
        took_ms=max(times) - min(times) if ended else 0,
        attempts=sum(
            event["node"] in failing
            for event in events_of(log)
            if event["kind"] in ("attempt_failed", "step_failed", "step_succeeded")
        ),
        trace=str(log[0].get("traceparent", "")).partition("-")[2].partition("-")[0],
        problems=list(_problems(case, saga, log, books)),
    )


def way_of(log: Sequence[Json]) -> str:
    """Return the kind of dinner that resulted, by the recorded actions and policies."""
    if any(event["kind"] == "saga_ended" and event["status"] == ROLLED_BACK for event in events_of(log)):
        return UNDONE
    done = {event["node"] for event in events_of(log) if event["kind"] == "step_succeeded"}
    policies = [event["policy"] for event in events_of(log) if event["kind"] == "strategy_chosen"]
    by_node = [way for node, way in _BY_NODE.items() if node in done]
    by_policy = [_BY_POLICY[policy] for policy in reversed(policies) if policy in _BY_POLICY]
    return next(iter([*by_node, *by_policy]), NONE)


def _problems(case: Case, saga: Json, log: Sequence[Json], books: Sequence[Json]) -> Iterator[str]:
    wanted_status = ROLLED_BACK if case.way == UNDONE else "completed"
    if saga["status"] != wanted_status:
        error = saga.get("error") or {}
        why = f": {error.get('code')}: {error.get('message')}" if error else ""
        yield f"it should be {wanted_status} and is {saga['status']}{why}"
    if (way := way_of(log)) != case.way:
        yield f"the document says {case.way}, and the way taken is {way}"
    mine = [
        effect
        for book in books
        for effect in book["effects"]
        if effect["identity"].get("reference") == saga["id"] and effect["kind"] != "cancel"
    ]
    standing = Counter(effect["kind"] for effect in mine if effect["undone_by"] is None)
    wanted = STANDS[case.way]
    if standing != Counter(wanted):
        yield f"in the books stands {_listed(standing)}: it should be {_listed(wanted)}"
    undone = {effect["kind"] for effect in mine if effect["undone_by"] is not None}
    for kind in case.undone:
        if kind not in undone:
            yield f"no {kind} was made and given back: the fault was not met where it should be"
    for book in books:
        for double in book["double_bookings"]:
            if double["identity"].get("reference") == saga["id"]:
                yield f"{book['service']} carried out {double['kind']} twice"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items())) or "nothing"


def print_cases(console: Console, outcomes: Sequence[CaseOutcome]) -> None:
    """Print the table, then the problems in words."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("table-stack …", min_width=14)
    table.add_column("", no_wrap=True)
    table.add_column("way taken", min_width=10)
    table.add_column("time", no_wrap=True, justify="right")
    table.add_column("attempts", no_wrap=True, justify="right")
    table.add_column("saga", no_wrap=True)
    for one in outcomes:
        passed = Text("failed", style="red") if one.problems else Text("passed", style="green")
        time = span(one.took_ms) if one.took_ms else "not ended"
        table.add_row(one.case.fault, passed, one.way, time, str(one.attempts), one.saga)
    console.print(table)
    for one in outcomes:
        for problem in one.problems:
            console.print(Text(f"table-stack {one.case.fault}: {problem}", style="red"))
    failed = sum(bool(one.problems) for one in outcomes)
    if failed:
        console.print(
            Text(
                f"{failed} of {counted(len(outcomes), 'dinner')} did not go the way that the document says.",
                style="red",
            )
        )
    else:
        said = f"All {counted(len(outcomes), 'dinner')} went the way that the document says, and the services' books are right."
        console.print(Text(said, style="green"))


def cases_document(outcomes: Sequence[CaseOutcome]) -> dict[str, Any]:
    """Return the outcomes as JSON for programs."""
    return {
        "passed": not any(one.problems for one in outcomes),
        "cases": [
            {
                "fault": one.case.fault,
                "passed": not one.problems,
                "expected": one.case.way,
                "way": one.way,
                "status": one.status,
                "took_ms": one.took_ms,
                "attempts": one.attempts,
                "saga": one.saga,
                "trace": one.trace,
                "problems": one.problems,
            }
            for one in outcomes
        ],
    }
