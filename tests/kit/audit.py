"""What must hold of all sagas of a world in which anything may fail, whatever they came to.

Promises about failures, attempts, ends, deeds and notices, read from logs and books. Those that hold without failures,
too, are in verdict.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby

from baton.core.failures.codes import class_of
from baton.core.log import events as ev
from baton.core.log.slots import Slot, slot_of
from baton.ports import Head
from tests.kit.callback_oracles import MADE_AT_THE_END
from tests.kit.oracles import of_saga, of_world
from tests.kit.people import ONCE, deed_of
from tests.kit.world import TENANT, World

MOST_ATTEMPTS: Mapping[str, int] = {
    "rate_limited": 10,
    "service_unavailable": 6,
    "server_error": 4,
    "conflict": 5,
    "transient": 5,
    "unknown": 4,
    "answer_invalid": 4,
}
"""By code, else by class, where the document says nothing else: what docs/failures.md says. Written down once more."""
SAID: Mapping[tuple[str, str], int] = {("mishaps", "late"): 2, ("tried", "c"): 3, ("too-late", "c"): 2} | {
    ("handed", job): 6 for job in ("quick", "lively", "silent", "broken", "trusted")
}
"""What a document says of a node."""
MOST_UNDOING = 5  # attempts of an inverse, whatever the failure
MOST_RETRIES, MOST_WAYS = 20, 3  # of one step: retries since a person last decided, and alternatives
UNKNOWN_OUTCOME = "unknown_outcome"

_OF_ATTEMPTS = (ev.AttemptFailed, ev.StepFailed, ev.StepSucceeded, ev.StrategyChosen, ev.QuestionClosed)


class Audit:
    """`met`: which classes, strategies, answers, alternatives and ends there were."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._heads = sorted(world.log.heads(), key=lambda head: (head.created, head.ref.id))
        self._events = {head.ref.id: world.events(head.ref.id) for head in self._heads}
        self._told = {notice.key for notice in world.notices.said}
        self.first = self._heads[0].ref.id
        self.met: set[str] = set()

    def complaints(self) -> Iterator[str]:
        """Every broken promise in a sentence."""
        for head in self._heads:
            saga = head.ref.id
            yield from of_saga(self._world, saga)
            for _, entries in groupby(self._world.entries(saga), key=lambda entry: entry.branch):
                events = [event for entry in entries for event in entry.events]
                yield from (f"{saga}: {text}" for text in self._attempts(head, events))
            yield from (f"{saga}: {text}" for text in self._end(head))
            yield from (f"{saga}: {text}" for text in self._notices(saga))
        yield from of_world(self._world)
        yield from self._deeds()

    # ---- one branch

    def _attempts(self, head: Head, events: list[ev.Event]) -> Iterator[str]:
        """Attempts are counted one by one, and there are no more of them than allowed."""
        counted: dict[str, int] = {}
        steps: dict[str, _Climb] = defaultdict(_Climb)
        for event in events:
            if not isinstance(event, _OF_ATTEMPTS):
                continue
            slot = event.slot
            if isinstance(event, ev.AttemptFailed | ev.StepFailed | ev.StepSucceeded):
                before = counted.get(slot, event.attempt - 1)
                # A step can fail without another attempt: it was given up, or its time is over.
                is_last_word = isinstance(event, ev.StepFailed) and event.failure.attempt in {0, before}
                if event.attempt != before + 1 and not is_last_word:
                    yield f"{slot}: attempt {event.attempt} follows on attempt {before}"
                counted[slot] = event.attempt
                self._meet(event)
            if isinstance(event, ev.AttemptFailed):
                steps[slot].failure = event.failure
            elif isinstance(event, ev.StrategyChosen):
                self.met.add("look" if event.look else event.strategy)
                most = MOST_UNDOING if Slot.parse(slot).scope else SAID.get((head.workflow, event.node), 0)
                yield from (f"{slot}: {text}" for text in steps[slot].climb(event, most))
            elif isinstance(event, ev.QuestionClosed):
                self.met.add(f"answer {event.action}")

    def _meet(self, event: ev.AttemptFailed | ev.StepFailed | ev.StepSucceeded) -> None:
        if isinstance(event, ev.StepSucceeded):
            self.met |= {"recorded"} if event.recorded else set()
            return
        kind = event.failure.kind or class_of(event.failure.code)
        self.met.add(kind)
        if isinstance(event, ev.StepFailed):
            way = "catch" if event.way else "tolerated" if event.emits else "fail"
            self.met.add("rollback" if way == "fail" and kind == "permanent" else way)

    # ---- a saga

    def _end(self, head: Head) -> Iterator[str]:
        """Whatever it came to, the log says why."""
        events = self._events[head.ref.id]
        last = max((i for i, event in enumerate(events) if isinstance(event, ev.Forked)), default=-1)
        events = events[last + 1 :]
        end = next((event for event in reversed(events) if isinstance(event, ev.SagaEnded)), None)
        status = head.status if end is None else end.status
        self.met.add(status)
        if end is None:
            yield from self._parked(head, events)
        elif status == "failed":
            yield from _failed(end, events)
        elif status == "completed":
            yield from _completed(events)
        elif status != "cancelled":
            if not any(isinstance(event, ev.UndoBegan) for event in events):
                yield f"it is {status}, and its log does not say that it was undone"
        elif not any(isinstance(event, ev.CancelRequested) for event in events):
            yield f"it is {status}, and no caller asked for that"

    def _parked(self, head: Head, events: list[ev.Event]) -> Iterator[str]:
        parked = next((event for event in reversed(events) if isinstance(event, ev.Parked)), None)
        if parked is None or not (parked.code and parked.message):
            yield f"it is {head.status}, and nothing says why"
        elif parked.code == "escalated":
            asked = [event.ask for event in events if isinstance(event, ev.StrategyChosen) and event.ask]
            closed = {event.ask for event in events if isinstance(event, ev.QuestionClosed)}
            if not any(ask.id not in closed for ask in asked):
                yield "it waits for an answer, and no question is open"
            found, _ = self._world.store.notice_record.listed(TENANT, status="open", limit=100)
            if head.ref.id not in {incident.saga for incident in found}:
                yield "it waits for the person on call, and no incident is open"

    def _notices(self, saga: str) -> Iterator[str]:
        events = self._events[saga]
        due = {event.notice.key: event.notice for event in events if isinstance(event, ev.NoticeDue)}
        sent = {key for event in events if isinstance(event, ev.NoticesSent) for key in event.keys}
        cancels = [event for event in events if isinstance(event, ev.CancelRequested)]
        is_cancelled = bool(cancels) and not any(event.undo for event in cancels)
        # No person is told of a question that is over.
        rows = {row.ask for _, row in self._world.store.questions.rows() if row.saga == saga}
        has_forks = any(isinstance(event, ev.Forked) for event in events)
        for key, notice in due.items():
            # A cancel that undoes nothing waits only for notices about effects whose outcome a person has to find out.
            is_over = not notice.incident and notice.ask and notice.ask not in rows
            if (
                key not in self._told
                and not is_over
                and not (is_cancelled and notice.code != UNKNOWN_OUTCOME)
            ):
                yield f"{key} was never told"
        for key in sorted(sent - due.keys()):
            if not has_forks:  # what is asked at the cut is told again, and no event says so
                yield f"{key} was told and never due"
        for key in sorted(sent - self._told):
            yield f"{key} is noted as sent, and was not"

    # ---- all of them

    def _deeds(self) -> Iterator[str]:
        """Every deed is known: the log has what came of it, or a person was told that it is in doubt."""
        known: set[str] = set()
        doubted: set[tuple[str, str]] = set()
        for saga, events in self._events.items():
            for event in events:
                if isinstance(event, ev.StepSucceeded) and isinstance(event.output.v, dict):
                    known.add(str(event.output.v.get("receipt")))
                elif isinstance(event, ev.NoticeDue) and event.notice.code == UNKNOWN_OUTCOME:
                    doubted.add((saga, event.notice.node))
        ended = {head.ref.id for head in self._heads if head.group == "done"}  # others may look yet
        for called in self._world.troubles.calls:
            is_known = called.saga not in ended or (called.saga, called.node) in doubted
            if called.tool in ONCE and is_known:
                known.add(deed_of(called.tool, called.arguments))
        for deed in sorted({*self._world.books.happened} - known):
            yield f"it has happened, and no log knows: {deed}"


class _Climb:
    """What was done about the failures of one step until now."""

    def __init__(self) -> None:
        self.failure = ev.Failure("", "")
        self.retries = self.total = self.ways = 0

    def climb(self, event: ev.StrategyChosen, said: int) -> Iterator[str]:
        """What is too much of this."""
        code = self.failure.code or event.code
        if event.strategy != "retry":
            self.retries = 0
            self.total *= event.strategy == "replan"
            self.ways += event.strategy == "replan"
            if self.ways > MOST_WAYS:
                yield f"done another way for the {self.ways}th time"
            return
        kind = self.failure.kind or class_of(code)
        most = said or MOST_ATTEMPTS.get(code) or MOST_ATTEMPTS.get(kind, 1)
        if not event.look and self.retries + 1 >= most:
            yield f"tried again after {self.retries + 1} attempts, for {code}"
        self.retries, self.total = self.retries + 1, self.total + 1
        if not event.look and self.total > MOST_RETRIES:
            yield f"tried again for the {self.total}th time, and no person was asked"


def _failed(end: ev.SagaEnded, events: list[ev.Event]) -> Iterator[str]:
    failure = end.failure
    if failure is None or not (failure.code and failure.message):
        yield "it failed, and nothing says why"
        return
    causes = [event.failure for event in events if isinstance(event, ev.StepFailed | ev.LimitReached)]
    causes += [
        event.fault for event in events if isinstance(event, ev.StepSucceeded | ev.NodePassed) and event.fault
    ]
    if failure.code not in {*MADE_AT_THE_END, *(cause.code for cause in causes)}:
        yield f"it failed with {failure.code}, which nothing in it failed with"


def _completed(events: list[ev.Event]) -> Iterator[str]:
    """Every step whose attempts failed was done after all, or a person decided about it, or the graph goes on without it."""
    open_: set[str] = set()
    used: set[str] = set()
    for event in events:
        if isinstance(event, ev.Settles) and event.ends:
            return  # early: retries are dropped, and what still ran may end as it likes
        if not hasattr(event, "node") or isinstance(event, ev.Parked):
            continue
        slot = slot_of(event.node, getattr(event, "iteration", ()), getattr(event, "item", ""))
        if isinstance(event, ev.AttemptFailed):
            open_.add(slot)
        elif isinstance(event, ev.QuestionClosed) and event.action == "use":
            used.add(slot)
        elif isinstance(event, ev.StepSucceeded | ev.NodeSkipped | ev.ChildClosed):
            open_.discard(slot)
        elif isinstance(event, ev.NodePassed) and slot in open_:
            open_.discard(slot)
            if slot not in used:
                yield f"{slot} has an output, and no attempt gave it one"
        elif isinstance(event, ev.StepFailed):
            open_.discard(slot)
            # A map that gives up stops its items, those between two attempts, too.
            open_ = {one for one in open_ if not one.startswith(f"{slot}#")}
            if not (event.emits or event.is_result):
                yield f"{slot} has failed, and the saga is completed"
    if open_:
        yield f"it is completed, and nothing came of {sorted(open_)}"
