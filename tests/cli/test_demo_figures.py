"""The demo's figures, computed from the recorded evidence of a real run and from small made-up logs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from baton.core.read.costs import per_million_steps
from baton.demo import report
from baton.demo.evidence import FunctionRun, item_bytes, item_kind, reduce_invocation
from baton.demo.figures import (
    Approval,
    ChangedPlans,
    Planning,
    UndoFigures,
    WorkFigures,
    approvals_of,
    bill,
    compute,
    handovers_of,
    legs_of,
    looked_up_of,
    quantile,
)
from baton.local.processes import InvocationRecord
from tests.cli.evidence import recorded
from tests.docs.pages import ROOT

BASE = 1795298400000


def entry(at: int, epoch: int, *events: dict[str, Any], cold: bool = False) -> dict[str, Any]:
    return {
        "version": 1,
        "at": BASE + at,
        "epoch": epoch,
        "invocation": f"i{epoch}.x",
        "cold": cold,
        "events": list(events),
    }


def step(started: int) -> dict[str, Any]:
    return {
        "kind": "step_succeeded",
        "node": "n",
        "started_at": BASE + started,
        "ended_at": BASE + started + 5,
    }


REVIVED = {"kind": "revived", "dead": "i1.x", "dead_until": BASE, "at": BASE + 10}
CANCEL = {"kind": "cancel_requested", "at": BASE}
OPENED = {"kind": "question_opened", "ask": {"id": "0.hold", "title": "Hold it?", "asked_at": BASE + 110}}
SAID = {"kind": "signal_received", "key": "key", "by": "grace", "at": BASE + 900}
CLOSED = {"kind": "question_closed", "ask": "0.hold", "action": "approve", "by": "key", "at": BASE + 950}


def test_the_recorded_run_gives_the_figures_it_showed() -> None:
    figures = compute(recorded())
    assert figures.statuses == {"completed": 4, "cancelled": 1, "rolled_back": 1}
    assert (figures.steps, figures.failed_steps, figures.entries) == (95, 5, 126)
    assert figures.worker_outcomes == {"ok": 48, "killed": 3}
    assert (figures.worker_invocations, figures.cold_starts) == (51, 9)
    assert (figures.fewest_invocations, figures.most_invocations, figures.yields) == (3, 4, 7)
    assert (figures.effects, figures.requests, figures.repeated, figures.replays) == (44, 88, 10, 4)
    assert figures.double_bookings == 0
    assert round(figures.writes_per_step, 2) == 1.33
    assert (quantile(figures.handovers_ms, 0.5), quantile(figures.handovers_ms, 0.95)) == (248, 340)
    assert (figures.payments, figures.looked_up, figures.found_paid) == (7, 1, 1)
    assert (figures.retries, figures.asked) == ({"service_unavailable": 4, "rate_limited": 2}, 0)
    assert (figures.questions, [approval.waited_ms for approval in figures.approvals]) == (1, [5653])


@pytest.mark.parametrize("page", ["docs/demo.md", "README.md"])
def test_the_pages_show_rows_that_are_printed(page: str) -> None:
    printed = [label for label, *_ in report.rows(compute(recorded())) if label == label.strip()]
    block = (ROOT / page).read_text("utf-8").partition("What happened\n")[2].partition("```")[0]
    shown = re.findall(r"^  (\S.*?)  +\S", block, re.MULTILINE)
    assert shown == [label for label in printed if label in shown or page != "README.md"]


def test_what_the_agent_of_the_recorded_run_did_is_counted_in_its_log_and_in_the_book_of_its_model() -> None:
    figures = compute(recorded())
    assert figures.agent == Planning(
        turns=6, calls=10, failed=4, repeated=2, tokens=4275, usd=0.001715, requests=8, answers=6
    )
    assert figures.guest == ChangedPlans(confirmed=2, given_back=2)
    assert figures.undone == UndoFigures(sagas=1, steps=7, effects=7, deposits=1)


def test_each_kill_of_the_recorded_run_is_matched_with_the_sagas_it_hit() -> None:
    evidence = recorded()
    survivals = compute(evidence).survivals
    assert [list(survival.revived.values()) for survival in survivals] == [
        [1624],
        [1358],
        [1394],
    ]
    assert {saga for survival in survivals for saga in survival.revived} <= set(evidence.logs)


def test_evidence_is_the_same_after_saving_and_loading(tmp_path: Path) -> None:
    evidence = recorded()
    evidence.save(tmp_path / "copy.json")
    assert type(evidence).load(tmp_path / "copy.json") == evidence


def test_a_leg_is_what_one_invocation_wrote_and_the_api_has_none() -> None:
    log = [entry(0, 0), entry(1, 1), entry(2, 1), entry(3, 0, CANCEL), entry(4, 1), entry(5, 2)]
    assert [[e["at"] - BASE for e in leg] for leg in legs_of(log)] == [[1, 2, 4], [5]]


def test_a_handover_is_from_the_last_entry_to_the_first_step_start() -> None:
    log = [entry(100, 1, step(50)), entry(400, 2, step(330), cold=True), entry(500, 2, step(310))]
    assert list(handovers_of(log)) == [(210, True)]


def test_a_wait_for_a_person_is_no_handover_and_the_way_on_from_there_has_its_own() -> None:
    log = [
        entry(100, 1, step(50)),
        entry(110, 1, OPENED),
        entry(120, 1, {"kind": "notices_sent"}),
        entry(900, 0, SAID),
        entry(950, 2, CLOSED),
        entry(1400, 2, step(960)),
        entry(2000, 3, step(1440)),
    ]
    assert list(handovers_of(log)) == [(40, False)]


@pytest.mark.parametrize(("epoch", "runs"), [(2, 0), (4, 2)])
def test_an_approval_has_its_wait_its_person_and_the_workers_that_ran_meanwhile(
    epoch: int, runs: int
) -> None:
    log = [entry(110, 1, OPENED), entry(900, 0, SAID), entry(950, epoch, CLOSED)]
    assert list(approvals_of("s", log)) == [
        Approval(saga="s", title="Hold it?", by="grace", waited_ms=790, runs=runs, version=1)
    ]


@pytest.mark.parametrize("closed", [{"action": "reject"}, {"action": "expired"}, {"by": "policy"}])
def test_what_was_not_approved_is_no_approval(closed: dict[str, str]) -> None:
    log = [entry(110, 1, OPENED), entry(900, 0, SAID), entry(950, 2, CLOSED | closed)]
    assert list(approvals_of("s", log)) == []


def test_a_revival_is_no_handover() -> None:
    log = [entry(100, 1, step(50)), entry(400, 2, REVIVED), entry(500, 2, step(410))]
    assert list(handovers_of(log)) == []


def test_an_invocation_that_started_no_step_has_no_handover() -> None:
    log = [entry(100, 1, step(50)), entry(400, 2, {"kind": "saga_ended", "status": "cancelled"})]
    assert list(handovers_of(log)) == []


@pytest.mark.parametrize(
    ("values", "share", "found"),
    [
        ([], 0.5, None),
        ([7], 0.95, 7),
        ([1, 2, 3, 4], 0.5, 2),
        (list(range(1, 101)), 0.95, 95),
        ([1, 2], 0.95, 2),
    ],
)
def test_a_quantile_is_a_value_that_was_measured(values: list[int], share: float, found: int | None) -> None:
    assert quantile(values, share) == found


def test_only_what_changes_something_is_on_the_bill() -> None:
    evidence = recorded()
    looking = FunctionRun("ApiFunction", "r", "ok", cold=False, duration_ms=1e9, changes=False)
    reconciling = FunctionRun("ReconcilerFunction", "r", "ok", cold=False, duration_ms=1e9)
    before = compute(evidence).usd_per_million_steps
    evidence.invocations.extend([looking, reconciling])
    assert compute(evidence).usd_per_million_steps == before


def test_the_bill_is_the_counts_times_the_prices() -> None:
    work = WorkFigures(
        steps=100,
        log_units=110,
        starts=10,
        takes=20,
        yields=10,
        finishes=10,
        messages=20,
        invocations=30,
        gb_seconds=50,
        effect_units=4,
    )
    charges: dict[str, tuple[Any, Any]] = {
        charge.what: (charge.quantity, charge.usd) for charge in bill(work)
    }
    assert charges["DynamoDB writes, log"] == (110, pytest.approx(110 * 0.625e-6))
    assert charges["DynamoDB writes, heads"][0] == 10 * 3 + 20 * 1 + 10 * 3 + 10 * 4
    assert charges["DynamoDB writes, effects"] == (4, pytest.approx(4 * 0.625e-6))
    assert charges["DynamoDB reads"] == (60, pytest.approx(60 * 0.125e-6))
    assert charges["SQS requests"][0] == 60
    total = sum(usd for _, usd in charges.values())
    assert per_million_steps(bill(work), 100) == pytest.approx(total * 10_000)


def test_a_payment_that_was_looked_for_and_not_there_is_told_from_one_that_was() -> None:
    book = {
        "effects": [{"kind": "deposit", "request": 1}, {"kind": "hold", "request": 3}],
        "requests": [
            {"n": 1, "operation": "deposit", "key": "a"},
            {"n": 2, "operation": "find_deposit", "key": "a"},
            {"n": 3, "operation": "hold", "key": "b"},
            {"n": 4, "operation": "find_deposit", "key": "c"},
            {"n": 5, "operation": "find_deposit", "key": "c"},
        ],
    }
    assert looked_up_of(book) == (2, 1)


def test_no_steps_cost_nothing_per_step() -> None:
    assert per_million_steps([], 0) == 0


@pytest.mark.parametrize(
    ("event", "wakes", "changes"),
    [
        ({"Records": [{}, {}]}, 2, True),
        ({"wakes": []}, 0, True),
        ({"requestContext": {"http": {"method": "GET"}}}, 0, False),
        ({"requestContext": {"http": {"method": "POST"}}}, 0, True),
        (None, 0, True),
    ],
)
def test_an_invocation_keeps_what_the_figures_need_of_its_event(
    event: Any, wakes: int, changes: bool
) -> None:
    raw = InvocationRecord("F", "r", "sqs", event, 0, 5, False, "ok", 5.0, 0.0, 1)
    reduced = reduce_invocation(raw)
    assert (reduced.wakes, reduced.changes, reduced.duration_ms) == (wakes, changes, 5.0)


def test_items_are_counted_by_kind_and_size() -> None:
    kinds = [
        item_kind(key)
        for key in ("HEAD", "LOG#0000#0000000001", "SNAP#0000#0000000008", "V#000001", "EFFECT", "ASK#1")
    ]
    assert kinds == ["head", "entry", "snapshot", "definition", "effect", "other"]
    assert (
        item_bytes({"pk": {"S": "é"}, "n": {"N": "-1234"}, "d": {"B": b"abc"}, "b": {"BOOL": True}})
        == 4 + 4 + 4 + 2
    )


def test_programs_get_every_figure_as_json() -> None:
    document = json.loads(json.dumps(report.figures_document(compute(recorded()), ["one thing"])))
    assert (document["kept"], document["problems"]) == (False, ["one thing"])
    figures = document["figures"]
    assert len(figures["survivals"]) == 3
    assert {charge["unit"] for charge in figures["charges"]}
    assert sum(figures["statuses"].values()) == 6
