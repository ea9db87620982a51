"""Promises of the demo as checks of the evidence. Each check yields the violations in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from baton.core.log.slots import slot_of
from baton.core.models.usage import MODEL
from baton.demo.evidence import Evidence
from baton.demo.figures import LOOKED_UP, PAYMENT, ROLLED_BACK, Figures, events_of
from baton.words.text import counted, epoch_ms

OK = 200
WANTED_PARTY = 6
EVENING, CANCEL = ("hold", "deposit", "confirm", "order"), "cancel"
EFFECT_OF = {
    "table.hold": ("table-stack", "hold"),
    "bar.hold": ("table-stack", "hold"),
    "table.deposit": ("table-stack", "deposit"),
    "table.confirm": ("table-stack", "confirm"),
    "table.waitlist": ("table-stack", "waitlist"),
    "delivery.order": ("open-delivery", "order"),
}
"""Effects of the dinner's tools: the service with the book, and the name of the effect in it."""


def broken(evidence: Evidence, figures: Figures) -> list[str]:
    """Return every violated promise. Empty for a correct run."""
    checks = (
        _all_ended,
        _nothing_twice,
        _books_and_logs_agree,
        _doubts_looked_up,
        _failures_retried,
        _asked_first,
        _planned,
        _changed,
        _undone,
        _paid_once,
        _several_invocations,
        _kills_survived,
        _in_time,
    )
    return [text for check in checks for text in check(evidence, figures)]


def _all_ended(evidence: Evidence, figures: Figures) -> Iterator[str]:
    course = evidence.course
    if not course.cancelled:
        yield "no saga was cancelled on the way"
    for saga in evidence.sagas:
        wanted = {course.cancelled: "cancelled", course.falling: ROLLED_BACK}.get(saga["id"], "completed")
        if saga.get("status") != wanted:
            why = saga.get("error") or saga.get("reason") or ""
            yield f"saga {saga['id']} should be {wanted} and is {saga.get('status')} {why}".rstrip()


def _nothing_twice(evidence: Evidence, figures: Figures) -> Iterator[str]:
    for book in evidence.books:
        for double in book["double_bookings"]:
            identity = ", ".join(f"{k} {v}" for k, v in double["identity"].items())
            yield f"{book['service']} carried out {double['kind']} twice: {identity}"
        if not book.get("idempotency", True):
            yield f"{book['service']} ran without honouring idempotency keys"
    for saga, log in evidence.logs.items():
        times = Counter(
            (event["node"], event.get("item"), tuple(event.get("iteration") or ()))
            for event in events_of(log)
            if event["kind"] == "step_succeeded"
        )
        for (node, item, _), count in times.items():
            if count > 1:
                yield f"saga {saga}: {item or node} is in the log {count} times"
        versions = [entry["version"] for entry in log]
        if versions != list(range(1, len(versions) + 1)):
            yield f"saga {saga}: its versions have gaps or repeats"


def _books_and_logs_agree(evidence: Evidence, figures: Figures) -> Iterator[str]:
    """Check that the effects of the services for a completed saga are exactly those in its log."""
    done = Counter(
        (book["service"], effect["kind"], effect["identity"]["reference"])
        for book in evidence.books
        for effect in book["effects"]
    )
    # What a service did for a worker that was killed, and whose saga was called off before another could go on.
    unknown = Counter(
        (kill.effect, kill.saga) for kill in evidence.course.kills if _was_called_off(evidence, kill.saga)
    )
    completed = [saga["id"] for saga in evidence.sagas if saga.get("status") == "completed"]
    for saga in completed + [saga for saga in evidence.logs if "." in saga]:
        log = evidence.logs[saga]
        logged = Counter(
            EFFECT_OF[event["tool"]]
            for event in events_of(log)
            if event["kind"] == "step_succeeded" and event["tool"] in EFFECT_OF
        )
        for service, kind in sorted(set(EFFECT_OF.values())):
            carried_out = done[service, kind, saga]
            if carried_out not in (logged[service, kind], logged[service, kind] + unknown[kind, saga]):
                yield (
                    f"saga {saga}: the log has {kind} {counted(logged[service, kind], 'time')}, "
                    f"{service}'s books {counted(carried_out, 'time')}"
                )


def _doubts_looked_up(evidence: Evidence, figures: Figures) -> Iterator[str]:
    """Check that a payment whose worker was killed before the answer was verified, not repeated."""
    for kill in evidence.course.kills:
        if kill.effect != PAYMENT or _was_called_off(evidence, kill.saga):
            continue
        for book in evidence.books:
            requests = {request["n"]: request for request in book["requests"]}
            for effect in book["effects"]:
                if (effect["kind"], effect["identity"]["reference"]) != (PAYMENT, kill.saga):
                    continue
                key = requests[effect["request"]]["key"]
                if (LOOKED_UP, key) not in {(r["operation"], r["key"]) for r in book["requests"]}:
                    yield f"saga {kill.saga}: no worker verified that its {PAYMENT} had been paid"


def _was_called_off(evidence: Evidence, saga: str) -> bool:
    """Return true if the saga was cancelled, itself or with the guest's evening."""
    ended = [event for event in events_of(evidence.logs.get(saga, ())) if event["kind"] == "saga_ended"]
    return any(event["status"] == "cancelled" for event in ended)


def _failures_retried(evidence: Evidence, figures: Figures) -> Iterator[str]:
    if not figures.retries:
        yield "no service was busy: no step was tried again"
    if figures.asked:
        yield f"{counted(figures.asked, 'failure')} went to a person"


def _asked_first(evidence: Evidence, figures: Figures) -> Iterator[str]:
    """Check that the large party's saga did nothing before its one question was approved."""
    asking = evidence.course.asking
    if (figures.questions, len(figures.approvals)) != (1, 1):
        opened = f"{counted(figures.questions, 'question')} {_were(figures.questions)} opened"
        yield f"{opened}, and {len(figures.approvals)} of them approved: it should be one"
    for approval in figures.approvals:
        if approval.saga != asking:
            yield f"saga {approval.saga} asked and was approved instead of {asking}"
            continue
        for entry in evidence.logs[asking]:
            for event in entry["events"] if entry["version"] < approval.version else ():
                if event["kind"] == "step_succeeded" and event["tool"] in EFFECT_OF:
                    yield f"saga {asking}: {event['node']} was done before the approval"
    for book in evidence.books:
        for effect in book["effects"]:
            is_early = effect["at_ms"] < evidence.course.approved_ms
            if is_early and effect["identity"]["reference"] == asking:
                yield f"saga {asking}: {book['service']}'s books have {effect['kind']} before the approval"


def _planned(evidence: Evidence, figures: Figures) -> Iterator[str]:
    agent = figures.agent
    if not (agent.turns and agent.failed and agent.repeated):
        yield (
            f"the agent had {counted(agent.turns, 'turn')}, {counted(agent.failed, 'failed call')} and "
            f"{counted(agent.repeated, 'repeated call')}: it should have each of them"
        )


def _changed(evidence: Evidence, figures: Figures) -> Iterator[str]:
    """Check that the guest's evening asked first, and fulfilled the changed wish once."""
    course = evidence.course
    for saga in evidence.sagas:
        if saga["id"] == course.planning:
            result = saga.get("result") or {}
            parties = [table["party"] for table in result.get("tables", ())]
            if not result.get("arranged") or parties != [WANTED_PARTY]:
                yield f"saga {course.planning} should have a table for {WANTED_PARTY}, and has tables for {parties}"
    if figures.guest.confirmed != 2 or not course.changed_ms:
        yield f"the guest confirmed {counted(figures.guest.confirmed, 'plan')}, and should have changed one and confirmed two"
    standing = Counter(
        effect["kind"]
        for book in evidence.books
        for effect in book["effects"]
        if course.is_planned(str(effect["identity"].get("reference")))
        and effect["undone_by"] is None
        and effect["kind"] != CANCEL
    )
    if standing != Counter(dict.fromkeys(EVENING, 1)):
        yield f"of the guest's evening stand {dict(standing)}: it should be each of {', '.join(EVENING)} once"


def _undone(evidence: Evidence, figures: Figures) -> Iterator[str]:
    """Check that the rolled-back evening had paid, and has nothing left, by its report and the books."""
    falling = evidence.course.falling
    if not falling:
        yield "no evening fell through"
        return
    mine = [
        effect
        for book in evidence.books
        for effect in book["effects"]
        if effect["identity"].get("reference") == falling and effect["kind"] != CANCEL
    ]
    if standing := Counter(effect["kind"] for effect in mine if effect["undone_by"] is None):
        yield f"saga {falling} fell through, and of it stand {dict(standing)}"
    if PAYMENT not in {effect["kind"] for effect in mine}:
        yield f"saga {falling} fell through before its {PAYMENT} was paid: no refund was exercised"
    for event in events_of(evidence.logs.get(falling, ())):
        if event["kind"] == "saga_ended" and (event.get("undone") or {}).get("failed"):
            yield f"saga {falling}: {counted(len(event['undone']['failed']), 'step')} could not be undone"


def _paid_once(evidence: Evidence, figures: Figures) -> Iterator[str]:
    """Check that a logged answer was not requested again: only a killed worker repeats."""
    requests = [request for book in evidence.models for request in book["requests"]]
    for saga, log in evidence.logs.items():
        again = 0
        for event in events_of(log):
            if event["kind"] != "step_succeeded" or event["tool"] != MODEL:
                continue
            # The demo forks nothing: all of its history is of the first branch.
            key = f"{saga}/0/{slot_of(event['node'], tuple(event.get('iteration') or ()), event['item'])}/"
            asked = [request for request in requests if str(request["key"]).startswith(key)]
            again += sum(request["status"] == OK for request in asked) - 1
            if not asked:
                yield f"saga {saga}: the provider's book has no request for {event['item']}"
            if any(request["at_ms"] > (epoch_ms(event["ended_at"]) or 0) for request in asked):
                yield f"saga {saga}: {event['item']} was asked again after its answer was recorded"
        lost = sum(event["kind"] in ("revived", "step_interrupted") for event in events_of(log))
        if again > lost:
            yield f"saga {saga}: the model answered {counted(again, 'time')} more than there are turns, and {counted(lost, 'worker')} ended"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _several_invocations(evidence: Evidence, figures: Figures) -> Iterator[str]:
    if figures.fewest_invocations < 2:
        yield "a saga needed fewer than two invocations: the hand-over was not exercised by all"


def _kills_survived(evidence: Evidence, figures: Figures) -> Iterator[str]:
    course = evidence.course
    kills = len(course.kills)
    if kills < course.kills_wanted:
        yield f"only {counted(kills, 'worker')} of {course.kills_wanted} could be killed at work"
    for survival in figures.survivals:
        if not survival.revived:
            yield f"the kill of process {survival.kill.pid} hit no saga: it was not in mid-step"


def _in_time(evidence: Evidence, figures: Figures) -> Iterator[str]:
    limit = evidence.course.asked_to_end_by_ms
    if limit and evidence.course.ended_ms > limit:
        yield f"the sagas took longer than {(limit - evidence.course.started_ms) / 1000:.0f} s"
