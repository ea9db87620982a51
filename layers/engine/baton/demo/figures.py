"""Computation of the figures from the evidence. promises.py checks them; report.py shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from baton.core.failures.strategies.registry import of
from baton.core.log.questions import APPROVE
from baton.core.log.slots import scope_of
from baton.core.models.usage import MODEL
from baton.core.money import MICRO
from baton.core.read import costs
from baton.core.read.costs import REQUESTS_PER_MESSAGE, CostLine, Price, per_million_steps
from baton.demo.evidence import Course, Evidence, Kill, request_of, tally
from baton.words.text import epoch_ms

# Write units of one update of the head: the item itself, and the index entries that move with it
# (a changed index key is a delete and a put). Entries are apart: they are counted by their size.
START_UNITS = 3
TAKE_UNITS = 1
YIELD_UNITS = 3
FINISH_UNITS = 4
# Read units of one take: the head, the newest snapshot, the tail of the log, all strongly consistent.
TAKE_READS = 3
# An effect that happens once is claimed before it, and its result is recorded after it.
WRITES_PER_EFFECT = 2


@dataclass(frozen=True, slots=True)
class WorkFigures:
    """Counts of work. `log_units`: write units of entries and snapshots; `effect_units`: of effects."""

    steps: int
    log_units: int
    starts: int
    takes: int
    yields: int
    finishes: int
    messages: int
    invocations: int
    gb_seconds: float
    effect_units: int = 0


def bill(work: WorkFigures) -> list[CostLine]:
    """Return the charges for `work`."""
    head = (
        work.starts * START_UNITS
        + work.takes * TAKE_UNITS
        + work.yields * YIELD_UNITS
        + work.finishes * FINISH_UNITS
    )
    return [
        _charge("DynamoDB writes, log", costs.WRITE_UNIT, work.log_units),
        _charge("DynamoDB writes, heads", costs.WRITE_UNIT, head),
        _charge("DynamoDB writes, effects", costs.WRITE_UNIT, work.effect_units),
        _charge("DynamoDB reads", costs.READ_UNIT, work.takes * TAKE_READS),
        _charge("Lambda GB-seconds", costs.GB_SECOND, work.gb_seconds),
        _charge("Lambda requests", costs.LAMBDA_REQUEST, work.invocations),
        _charge("SQS requests", costs.SQS_REQUEST, work.messages * REQUESTS_PER_MESSAGE),
    ]


def _charge(what: str, price: Price, quantity: float) -> CostLine:
    return CostLine(what, quantity, price.unit, price.usd(quantity))


WORKER = "WorkerFunction"
PAYMENT, LOOKED_UP = "deposit", "find_deposit"
OPENED, CLOSED = "question_opened", "question_closed"
CONFIRM = "confirm"
ROLLED_BACK = "rolled_back"
SETTLED = frozenset({"step_succeeded", "step_failed"})

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Survival:
    """One kill, and its sagas with the ms from the end of the lease to the entry that revived each."""

    kill: Kill
    revived: dict[str, int]


@dataclass(frozen=True, slots=True)
class Approval:
    """An approved question. `runs`: workers that took the saga before; `version`: the closing entry."""

    saga: str
    title: str
    by: str
    waited_ms: int
    runs: int
    version: int


@dataclass(frozen=True, slots=True)
class Planning:
    """Work of agents: turns, calls and costs by the logs; `requests` and `answers` by the provider's book."""

    turns: int
    calls: int
    failed: int
    repeated: int
    tokens: int
    usd: float
    requests: int
    answers: int


@dataclass(frozen=True, slots=True)
class ChangedPlans:
    """The evening of words: plans `confirmed`, and arrangements `given_back` for the changed wish."""

    confirmed: int
    given_back: int


@dataclass(frozen=True, slots=True)
class UndoFigures:
    """Rollbacks: their `steps`, by the logs; `effects` and `deposits` undone, by the services' books."""

    sagas: int
    steps: int
    effects: int
    deposits: int


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures of the final table."""

    statuses: dict[str, int]
    steps: int
    failed_steps: int
    entries: int
    worker_invocations: int
    worker_outcomes: dict[str, int]
    cold_starts: int
    most_sagas_in_one: int
    fewest_invocations: int
    most_invocations: int
    yields: int
    interruptions: int
    revivals: int
    survivals: list[Survival]
    handovers_ms: list[int]
    warm_handovers_ms: list[int]
    requests: int
    replays: int
    repeated: int
    effects: int
    double_bookings: int
    payments: int
    looked_up: int
    found_paid: int
    retries: dict[str, int]
    asked: int
    questions: int
    approvals: list[Approval]
    agent: Planning
    guest: ChangedPlans
    undone: UndoFigures
    charges: list[CostLine]
    usd_per_million_steps: float
    duration_ms: int

    @property
    def writes_per_step(self) -> float:
        """Log writes per settled step, including starts, revivals and cancels."""
        return self.entries / self.steps if self.steps else 0.0


def compute(evidence: Evidence) -> Figures:
    """Return all figures of one run."""
    logs = evidence.logs
    ours = [item for item in evidence.invocations if item.function == WORKER]
    steps = sum(1 for log in logs.values() for event in events_of(log) if event["kind"] in SETTLED)
    is_planned = evidence.course.is_planned
    # The guest's evening waits for the guest and for a child saga: what is between its legs is no hand-over.
    alike = {saga: log for saga, log in logs.items() if not is_planned(saga)}
    handovers = sorted(gap for log in alike.values() for gap in handovers_of(log))
    per_saga = [len(legs_of(log)) for saga, log in alike.items() if saga != evidence.course.cancelled]
    approvals = [found for saga, log in logs.items() for found in approvals_of(saga, log)]
    # A saga that waits for a person is given back as one that yields.
    work = _work(evidence, steps, len(handovers) + len(approvals))
    charges = bill(work)
    chosen = [
        event for log in logs.values() for event in events_of(log) if event["kind"] == "strategy_chosen"
    ]
    return Figures(
        statuses=tally(str(saga.get("status")) for saga in evidence.sagas),
        steps=steps,
        failed_steps=sum(event["kind"] == "step_failed" for log in logs.values() for event in events_of(log)),
        entries=evidence.items.counts.get("entry", 0),
        worker_invocations=len(ours),
        worker_outcomes=tally(item.outcome for item in ours),
        cold_starts=sum(item.cold for item in ours),
        most_sagas_in_one=max(_sagas_per_invocation(logs).values(), default=0),
        fewest_invocations=min(per_saga, default=0),
        most_invocations=max(per_saga, default=0),
        yields=len(handovers),
        interruptions=sum(
            event["kind"] == "step_interrupted" for log in logs.values() for event in events_of(log)
        ),
        revivals=sum(event["kind"] == "revived" for log in logs.values() for event in events_of(log)),
        survivals=survivals_of(evidence.course, logs),
        handovers_ms=[gap for gap, _ in handovers],
        warm_handovers_ms=[gap for gap, cold in handovers if not cold],
        requests=_sum(evidence.books, "requests"),
        replays=_sum(evidence.books, "replays"),
        repeated=sum(_repeated(book) for book in evidence.books),
        effects=_sum(evidence.books, "effects"),
        double_bookings=_sum(evidence.books, "double_bookings"),
        payments=sum(effect["kind"] == PAYMENT for book in evidence.books for effect in book["effects"]),
        looked_up=sum(looked_up_of(book)[0] for book in evidence.books),
        found_paid=sum(looked_up_of(book)[1] for book in evidence.books),
        retries=tally(event["code"] for event in chosen if of(event["strategy"]).repeats),
        asked=sum(bool(of(event["strategy"]).asks) for event in chosen),
        questions=sum(event["kind"] == OPENED for log in alike.values() for event in events_of(log)),
        approvals=approvals,
        agent=planning_of(evidence),
        guest=change_of(evidence),
        undone=undoing_of(evidence),
        charges=charges,
        usd_per_million_steps=per_million_steps(charges, steps),
        duration_ms=evidence.course.ended_ms - evidence.course.started_ms,
    )


def events_of(log: Sequence[Json]) -> Iterator[Json]:
    """Yield the events of a log in order."""
    for entry in log:
        yield from entry["events"]


def legs_of(log: Sequence[Json]) -> list[list[Json]]:
    """Return the entries that workers wrote, one list for each invocation that continued the saga."""
    legs: list[list[Json]] = []
    for entry in log:
        if not entry.get("epoch"):
            continue  # the API's own: a start, a cancel, a signal
        if not legs or legs[-1][-1]["epoch"] != entry["epoch"]:
            legs.append([])
        legs[-1].append(entry)
    return legs


def handovers_of(log: Sequence[Json]) -> Iterator[tuple[int, bool]]:
    """Yield, for each hand-over, milliseconds from the last entry of one invocation to the first step of the
    next, and true if the next one began with a cold start.

    A revival is no hand-over, because the invocation before it left nothing but its lease. A wait for a
    person is none either.
    """
    for before, after in pairwise(legs_of(log)):
        if any(event["kind"] == "revived" for event in events_of(after)) or _ends_with_a_question(before):
            continue
        starts = [ms for event in events_of(after) if (ms := epoch_ms(event.get("started_at"))) is not None]
        last = epoch_ms(before[-1]["at"])
        if starts and last is not None:
            yield min(starts) - last, bool(after[0].get("cold"))


def _ends_with_a_question(leg: Sequence[Json]) -> bool:
    return [event["kind"] for event in events_of(leg) if event["kind"] in (OPENED, CLOSED)][-1:] == [OPENED]


def approvals_of(saga: str, log: Sequence[Json]) -> Iterator[Approval]:
    """Yield the approved questions of a saga. Epochs show the workers that ran meanwhile."""
    placed = [(entry, event) for entry in log for event in entry["events"]]
    asked = {e["ask"]["id"]: (entry, e["ask"]) for entry, e in placed if e["kind"] == OPENED}
    said = {event["key"]: event for _, event in placed if event["kind"] == "signal_received"}
    for entry, event in placed:
        if event["kind"] != CLOSED or event["action"] != APPROVE or event["by"] not in said:
            continue
        before, ask = asked[event["ask"]]
        answer = said[event["by"]]
        waited_ms = (epoch_ms(answer["at"]) or 0) - (epoch_ms(ask["asked_at"]) or 0)
        runs = entry["epoch"] - before["epoch"] - 1
        yield Approval(saga, ask["title"], answer["by"], waited_ms, runs, entry["version"])


def planning_of(evidence: Evidence) -> Planning:
    """Return the work of agents and the cost of their models."""
    events = [event for log in evidence.logs.values() for event in events_of(log)]
    asked = [call for event in events if event["kind"] == "calls_began" for call in event["calls"]]
    used = [usage for event in events for usage in event.get("usage") or ()]
    return Planning(
        turns=sum(event["kind"] == "step_succeeded" and event["tool"] == MODEL for event in events),
        calls=len(asked),
        failed=sum(event["kind"] == "step_failed" and "-" in event.get("item", "") for event in events),
        repeated=sum(bool(call.get("repeats")) for call in asked),
        tokens=sum(usage["input"] + usage["output"] for usage in used),
        usd=sum(usage["cost"] for usage in used) / MICRO,
        requests=_sum(evidence.models, "requests"),
        answers=_sum(evidence.models, "effects"),
    )


def change_of(evidence: Evidence) -> ChangedPlans:
    """Return the plans that the guest confirmed, and the arrangements given back."""
    log = evidence.logs.get(evidence.course.planning, ())
    confirmed = sum(event["kind"] == CLOSED and event["action"] == CONFIRM for event in events_of(log))
    effects = [effect for book in evidence.books for effect in book["effects"] if effect["undone_by"]]
    mine = [one for one in effects if evidence.course.is_planned(str(one["identity"].get("reference")))]
    return ChangedPlans(confirmed, len(mine))


def undoing_of(evidence: Evidence) -> UndoFigures:
    """Return the undone steps of sagas that are rolled back."""
    sagas = [str(saga["id"]) for saga in evidence.sagas if saga.get("status") == ROLLED_BACK]
    events = [event for saga in sagas for event in events_of(evidence.logs[saga])]
    effects = [
        effect["kind"]
        for book in evidence.books
        for effect in book["effects"]
        if effect["undone_by"] and effect["identity"].get("reference") in sagas
    ]
    return UndoFigures(
        sagas=len(sagas),
        steps=sum(
            event["kind"] == "step_succeeded" and scope_of(event.get("item", "")) != "" for event in events
        ),
        effects=len(effects),
        deposits=effects.count(PAYMENT),
    )


def survivals_of(course: Course, logs: Mapping[str, Sequence[Json]]) -> list[Survival]:
    """Return, for each kill, the sagas that were revived from its invocation."""
    return [
        Survival(
            kill,
            {
                saga: (epoch_ms(event["at"]) or 0) - (epoch_ms(event["dead_until"]) or 0)
                for saga, log in logs.items()
                for event in events_of(log)
                if event["kind"] == "revived" and request_of(event["dead"]) == kill.request_id
            },
        )
        for kill in course.kills
    ]


def looked_up_of(book: Json) -> tuple[int, int]:
    """Return the number of payments verified before paying (again), and of those found made."""
    of = {request["n"]: request["key"] for request in book["requests"]}
    paid = {of[effect["request"]] for effect in book["effects"] if effect["kind"] == PAYMENT}
    looked = {request["key"] for request in book["requests"] if request["operation"] == LOOKED_UP}
    return len(looked), len(looked & paid)


def quantile(sorted_values: Sequence[int], share: float) -> int | None:
    """Return the smallest value that at least `share` of the values do not exceed, or None for no values."""
    if not sorted_values:
        return None
    return sorted_values[max(0, -(-int(share * 100) * len(sorted_values) // 100) - 1)]


def _work(evidence: Evidence, steps: int, yields: int) -> WorkFigures:
    units = evidence.items.units
    # Looking at a saga is not running it: the demo's own polling is not on the bill.
    billed = [item for item in evidence.invocations if item.function != "ReconcilerFunction" and item.changes]
    mb_ms = sum(item.duration_ms * evidence.memory_mb.get(item.function, 0) for item in billed)
    return WorkFigures(
        steps=steps,
        log_units=units.get("entry", 0) + units.get("snapshot", 0),
        effect_units=WRITES_PER_EFFECT * units.get("effect", 0),
        starts=len(evidence.logs),
        takes=evidence.items.takes,
        yields=yields,
        finishes=len(evidence.logs),
        messages=sum(item.wakes for item in evidence.invocations if item.function == WORKER),
        invocations=len(billed),
        gb_seconds=mb_ms / 1024 / 1000,
    )


def _sagas_per_invocation(logs: Mapping[str, Sequence[Json]]) -> dict[str, int]:
    return tally(
        str(invocation)
        for log in logs.values()
        for invocation in {entry["invocation"] for leg in legs_of(log) for entry in leg}
    )


def _sum(books: Sequence[Json], name: str) -> int:
    return sum(int(book["summary"][name]) for book in books)


def _repeated(book: Json) -> int:
    """Return the number of requests that repeated an earlier one, by their idempotency key."""
    asked = (request for request in book["requests"] if request.get("key"))
    keys = tally(f"{request['operation']} {request['key']}" for request in asked)
    return sum(count - 1 for count in keys.values())
