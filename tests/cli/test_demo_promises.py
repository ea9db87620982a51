"""Each promise of the demo, broken on purpose in the evidence of a good run, is noticed and named."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from baton.demo import report
from baton.demo.evidence import Evidence
from baton.demo.figures import compute
from baton.demo.promises import broken
from tests.cli.evidence import completed, first, recorded
from tests.kit.sentences import Says


def judged(evidence: Evidence) -> list[str]:
    return broken(evidence, compute(evidence))


def without(evidence: Evidence, *kinds: str) -> None:
    """Takes all events of these kinds out of the logs."""
    for log in evidence.logs.values():
        for entry in log:
            entry["events"] = [event for event in entry["events"] if event["kind"] not in kinds]


def no_saga_was_cancelled(evidence: Evidence) -> str:
    evidence.course.cancelled = ""
    return "no saga was cancelled"


def a_saga_failed(evidence: Evidence) -> str:
    saga = evidence.sagas[[s["id"] for s in evidence.sagas].index(completed(evidence))]
    saga |= {"status": "failed", "error": {"code": "tool_error", "message": "Table taken"}}
    return f"saga {saga['id']} should be completed and is failed"


def the_cancelled_saga_completed(evidence: Evidence) -> str:
    next(saga for saga in evidence.sagas if saga["id"] == evidence.course.cancelled)["status"] = "completed"
    return "should be cancelled and is completed"


def a_table_was_booked_twice(evidence: Evidence) -> str:
    book = evidence.books[0]
    effect = book["effects"][0]
    double = {"kind": effect["kind"], "identity": effect["identity"], "first": 1, "second": 99}
    book["double_bookings"].append(double)
    return f"{book['service']} carried out {effect['kind']} twice: reference "


def a_service_ignored_its_keys(evidence: Evidence) -> str:
    evidence.books[1]["idempotency"] = False
    return "ran without honouring idempotency keys"


def a_step_is_in_the_log_twice(evidence: Evidence) -> str:
    saga = completed(evidence)
    log = evidence.logs[saga]
    log[-1]["events"].append(copy.deepcopy(first(log, "step_succeeded")))
    return f"saga {saga}: search is in the log 2 times"


def a_version_is_missing(evidence: Evidence) -> str:
    saga = completed(evidence)
    del evidence.logs[saga][3]
    return f"saga {saga}: its versions have gaps"


def a_service_did_what_no_log_knows(evidence: Evidence) -> str:
    saga = completed(evidence)
    book = next(book for book in evidence.books if book["service"] == "open-delivery")
    effect = next(effect for effect in book["effects"] if effect["identity"]["reference"] == saga)
    book["effects"].append(effect)
    return f"saga {saga}: the log has order 3 times, open-delivery's books 4 times"


def a_log_has_what_no_service_did(evidence: Evidence) -> str:
    saga = completed(evidence)
    book = next(book for book in evidence.books if book["service"] == "table-stack")
    book["effects"] = [
        effect
        for effect in book["effects"]
        if (effect["identity"]["reference"], effect["kind"]) != (saga, "deposit")
    ]
    return f"saga {saga}: the log has deposit 1 time, table-stack's books 0 times"


def one_invocation_did_it_all(evidence: Evidence) -> str:
    for entry in evidence.logs[completed(evidence)]:
        entry["epoch"] = min(entry["epoch"], 1)
    return "fewer than two invocations"


def no_worker_could_be_killed(evidence: Evidence) -> str:
    evidence.course.kills.clear()
    return "only 0 workers of 2 could be killed"


def a_kill_hit_no_saga(evidence: Evidence) -> str:
    object.__setattr__(evidence.course.kills[0], "request_id", "another")
    return "hit no saga"


def no_worker_looked_for_a_payment(evidence: Evidence) -> str:
    kill = next(kill for kill in evidence.course.kills if kill.effect == "deposit")
    for book in evidence.books:
        book["requests"] = [request for request in book["requests"] if request["operation"] != "find_deposit"]
    return f"saga {kill.saga}: no worker verified that its deposit had been paid"


def a_payment_was_made_again(evidence: Evidence) -> str:
    saga = completed(evidence)
    book = next(book for book in evidence.books if book["service"] == "table-stack")
    paid = [effect for effect in book["effects"] if effect["kind"] == "deposit"]
    book["effects"].append(next(effect for effect in paid if effect["identity"]["reference"] == saga))
    return f"saga {saga}: the log has deposit 1 time, table-stack's books 2 times"


def no_service_was_busy(evidence: Evidence) -> str:
    without(evidence, "strategy_chosen")
    return "no step was tried again"


def a_person_was_asked(evidence: Evidence) -> str:
    chosen = first([entry for log in evidence.logs.values() for entry in log], "strategy_chosen")
    chosen["strategy"] = "ask_user"
    return "1 failure went to a person"


def no_saga_asked(evidence: Evidence) -> str:
    without(evidence, "question_opened", "question_closed")
    return "0 questions were opened, and 0 of them approved"


def the_question_was_rejected(evidence: Evidence) -> str:
    first(evidence.logs[evidence.course.asking], "question_closed")["action"] = "reject"
    return "1 question was opened, and 0 of them approved"


def another_saga_asked_too(evidence: Evidence) -> str:
    opened = first(evidence.logs[evidence.course.asking], "question_opened")
    evidence.logs[completed(evidence)][-1]["events"].append(opened)
    return "2 questions were opened, and 1 of them approved"


def another_saga_asked_instead(evidence: Evidence) -> str:
    asking, evidence.course.asking = evidence.course.asking, evidence.course.cancelled
    return f"saga {asking} asked and was approved instead of {evidence.course.cancelled}"


def the_log_has_the_table_before_the_approval(evidence: Evidence) -> str:
    log = evidence.logs[evidence.course.asking]
    held = next(
        event
        for entry in log
        for event in entry["events"]
        if event["kind"] == "step_succeeded" and event["tool"] == "table.hold"
    )
    log[1]["events"].append(held | {"node": "hold_early"})
    return f"saga {evidence.course.asking}: hold_early was done before the approval"


def a_service_held_the_table_before_the_approval(evidence: Evidence) -> str:
    book = next(book for book in evidence.books if book["service"] == "table-stack")
    of = [effect for effect in book["effects"] if effect["identity"]["reference"] == evidence.course.asking]
    of[0]["at_ms"] = evidence.course.approved_ms - 1
    return f"saga {evidence.course.asking}: table-stack's books have hold before the approval"


def turns(evidence: Evidence) -> list[dict[str, Any]]:
    """The turns of the agent, as its log has them."""
    log = evidence.logs[evidence.course.planning]
    found = [event for entry in log for event in entry["events"] if event["kind"] == "step_succeeded"]
    return [event for event in found if event["tool"] == "std.model"]


def of_turn(evidence: Evidence, item: str) -> dict[str, Any]:
    """The last request for a turn in the provider's book."""
    requests: list[dict[str, Any]] = evidence.models[0]["requests"]
    return [request for request in requests if f"#{item}/" in request["key"]][-1]


def the_agent_had_no_turns(evidence: Evidence) -> str:
    evidence.logs[evidence.course.planning] = evidence.logs[evidence.course.planning][:2]
    return "the agent had 0 turns, 0 failed calls and 0 repeated calls"


def a_turn_was_asked_again_after_its_answer(evidence: Evidence) -> str:
    asked = of_turn(evidence, "t2")
    evidence.models[0]["requests"].append(asked | {"at_ms": asked["at_ms"] + 60_000})
    return f"saga {evidence.course.planning}: t2 was asked again after its answer was recorded"


def a_turn_was_paid_for_twice_although_no_worker_had_died(evidence: Evidence) -> str:
    without(evidence, "revived", "step_interrupted")
    evidence.models[0]["requests"].append(dict(of_turn(evidence, "t1")))
    return "more than there are turns, and 0 workers ended"


def a_turn_was_never_asked(evidence: Evidence) -> str:
    evidence.models[0]["requests"] = []
    return f"saga {evidence.course.planning}: the provider's book has no request for t1"


def a_turn_is_in_the_log_twice(evidence: Evidence) -> str:
    evidence.logs[evidence.course.planning][-1]["events"].append(turns(evidence)[0])
    return f"saga {evidence.course.planning}: t1 is in the log 2 times"


def the_agent_held_two_tables(evidence: Evidence) -> str:
    saga = [saga for saga in evidence.logs if "." in saga][-1]
    book = next(book for book in evidence.books if book["service"] == "table-stack")
    held = [effect for effect in book["effects"] if effect["identity"]["reference"] == saga]
    book["effects"].append(next(effect for effect in held if effect["kind"] == "hold"))
    return f"saga {saga}: the log has hold 1 time, table-stack's books 2 times"


def the_guest_has_the_old_table(evidence: Evidence) -> str:
    saga = next(saga for saga in evidence.sagas if saga["id"] == evidence.course.planning)
    saga["result"]["tables"][0]["party"] = 4
    return "should have a table for 6, and has tables for [4]"


def the_guest_was_not_heard(evidence: Evidence) -> str:
    evidence.course.changed_ms = 0
    return "should have changed one and confirmed two"


def the_old_table_was_not_given_back(evidence: Evidence) -> str:
    for book in evidence.books:
        for effect in book["effects"]:
            effect["undone_by"] = None
    return "of the guest's evening stand"


def no_evening_fell_through(evidence: Evidence) -> str:
    evidence.course.falling = ""
    return "no evening fell through"


def what_was_undone_stands(evidence: Evidence) -> str:
    for effect in of_the_falling(evidence):
        effect["undone_by"] = None
    return f"saga {evidence.course.falling} fell through, and of it stand"


def it_fell_through_before_it_was_paid(evidence: Evidence) -> str:
    for effect in of_the_falling(evidence):
        if effect["kind"] == "deposit":
            effect["kind"] = "another"
    return f"saga {evidence.course.falling} fell through before its deposit was paid"


def a_step_could_not_be_undone(evidence: Evidence) -> str:
    ended = first(evidence.logs[evidence.course.falling], "saga_ended")
    ended["undone"] = {"failed": [{"slot": "hold", "version": 3}]}
    return f"saga {evidence.course.falling}: 1 step could not be undone"


def of_the_falling(evidence: Evidence) -> list[dict[str, Any]]:
    effects = [effect for book in evidence.books for effect in book["effects"]]
    return [one for one in effects if one["identity"].get("reference") == evidence.course.falling]


def it_took_too_long(evidence: Evidence) -> str:
    evidence.course.ended_ms = evidence.course.asked_to_end_by_ms + 1
    return "took longer than 100 s"


BREAKAGES: list[Callable[[Evidence], str]] = [
    no_saga_was_cancelled,
    a_saga_failed,
    the_cancelled_saga_completed,
    a_table_was_booked_twice,
    a_service_ignored_its_keys,
    a_step_is_in_the_log_twice,
    a_version_is_missing,
    a_service_did_what_no_log_knows,
    a_log_has_what_no_service_did,
    one_invocation_did_it_all,
    no_worker_could_be_killed,
    a_kill_hit_no_saga,
    no_worker_looked_for_a_payment,
    a_payment_was_made_again,
    no_service_was_busy,
    a_person_was_asked,
    no_saga_asked,
    the_question_was_rejected,
    another_saga_asked_too,
    another_saga_asked_instead,
    the_log_has_the_table_before_the_approval,
    a_service_held_the_table_before_the_approval,
    the_guest_has_the_old_table,
    the_guest_was_not_heard,
    the_old_table_was_not_given_back,
    no_evening_fell_through,
    what_was_undone_stands,
    it_fell_through_before_it_was_paid,
    a_step_could_not_be_undone,
    the_agent_had_no_turns,
    a_turn_was_asked_again_after_its_answer,
    a_turn_was_paid_for_twice_although_no_worker_had_died,
    a_turn_was_never_asked,
    a_turn_is_in_the_log_twice,
    the_agent_held_two_tables,
    it_took_too_long,
]


def test_the_recorded_run_kept_every_promise() -> None:
    assert judged(recorded()) == []


def test_a_deposit_whose_worker_was_killed_and_whose_saga_was_called_off_may_be_in_no_log() -> None:
    """Nothing goes on with that saga, which would look for it; that it does not stand is another promise."""
    evidence = recorded()
    called_off = next(
        saga
        for saga, log in evidence.logs.items()
        if "." in saga and first(log, "saga_ended")["status"] == "cancelled"
    )
    log = evidence.logs[called_off]
    for entry in log:
        entry["events"] = [one for one in entry["events"] if one.get("tool") != "table.deposit"]
    kill = evidence.course.kills[-1]
    evidence.course.kills[-1] = replace(kill, saga=called_off, effect="deposit")
    assert judged(evidence) == []


@pytest.mark.parametrize("break_it", BREAKAGES, ids=lambda function: function.__name__)
def test_a_broken_promise_is_named(break_it: Callable[[Evidence], str]) -> None:
    evidence = recorded()
    said = break_it(evidence)
    assert any(said in text for text in judged(evidence)), judged(evidence)


def shown(evidence: Evidence) -> str:
    out = StringIO()
    console = Console(file=out, width=120, markup=False, highlight=False)
    report.print_figures(console, compute(evidence), judged(evidence))
    return out.getvalue()


def test_the_table_shows_every_figure_and_the_verdict(says: Says) -> None:
    text = shown(recorded())
    for name in (
        "sagas",
        "steps",
        "worker invocations",
        "yields",
        "kills survived",
        "double bookings",
        "payments",
        "retries",
        "approvals",
        "agent's turns",
        "plans confirmed",
        "undone",
        "log writes per step",
        "hand-over p50 / p95",
        "AWS per million steps",
    ):
        assert f"  {name} " in text
    assert "4 completed, 1 cancelled, 1 rolled_back" in text
    says.within(" ".join(text.split()), 2)
    says.within(text, 3)
    says.within(" ".join(text.split()), 3)
    says.within(text, 3)


def test_the_table_says_what_is_wrong_instead_of_praising(says: Says) -> None:
    evidence = recorded()
    a_table_was_booked_twice(evidence)
    text = shown(evidence)
    says.within(text)
    assert "All sagas ended" not in text


def test_a_run_in_which_nothing_happened_is_shown_and_judged() -> None:
    evidence = recorded()
    empty: dict[str, Any] = {"sagas": [], "logs": {}, "books": [], "models": [], "invocations": []}
    for name, value in empty.items():
        object.__setattr__(evidence, name, value)
    evidence.course.kills.clear()
    assert "worker invocations" in shown(evidence)
    assert judged(evidence) != []
