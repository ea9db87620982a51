"""A paused saga: what holds it besides, its time, and its rollback."""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.limits import DAY_MS
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.questions import about_parking
from baton.core.log.state import status_of
from baton.core.read.views import saga_view
from tests.core.build import Saga, ready
from tests.core.failing import broken
from tests.core.test_defects import HOUR, MAIL, defect, saga_of
from tests.kit.views import as_json

TIMED = "name: w\nnodes: {q: {wait: {signal: go, timeout: 2h}}, a: {tool: t}}"


def pause(saga: Saga, code: str = ev.PAUSED, after_ms: int = 0) -> None:
    saga.now += after_ms
    saga.put(ev.Parked(code=code, message="so", at=saga.now, by="ada"), epoch=0, invocation="api")


def resume(saga: Saga, code: str = "", after_ms: int = 0) -> None:
    saga.now += after_ms
    saga.put(ev.Resumed(by="ada", at=saga.now, code=code), epoch=0, invocation="api")


def test_each_pause_is_ended_by_itself_and_time_stands_still_until_the_last() -> None:
    saga = saga_of(TIMED)
    saga.go()
    due = saga.state.open["q"].due or 0
    pause(saga, ev.WORKFLOW_PAUSED)
    pause(saga, after_ms=HOUR)
    pause(saga, ev.TENANT_PAUSED, after_ms=HOUR)
    pause(saga, after_ms=HOUR)
    assert saga.state.parked is not None
    assert [one.code for one in saga.state.parked.all] == [ev.TENANT_PAUSED, ev.PAUSED, ev.WORKFLOW_PAUSED]
    resume(saga, ev.PAUSED, after_ms=HOUR)
    resume(saga, ev.PAUSED)
    assert (ready(saga.go()), status_of(saga.state), saga.state.stood) == ([], "paused", 0)
    resume(saga, ev.TENANT_PAUSED)
    resume(saga, ev.WORKFLOW_PAUSED)
    assert ready(saga.go()) == ["a"]
    assert (saga.state.stood, saga.state.open["q"].due) == (4 * HOUR, due + 4 * HOUR)
    before = saga.state
    assert apply(before, ev.Resumed(by="ada", at=saga.now, code=ev.PAUSED)) == before


def test_a_defect_of_what_runs_is_behind_the_pauses() -> None:
    saga = saga_of("name: w\nnodes: {a: {tool: t}, b: {tool: t}}")
    assert ready(saga.go()) == ["a", "b"]
    pause(saga, ev.WORKFLOW_PAUSED)
    pause(saga)
    since = saga.now
    saga.go(defect(), running=["b"], after_ms=HOUR)
    saga.go(defect(slot="b"), after_ms=HOUR)
    parked = saga.state.parked
    assert parked is not None
    assert [one.code for one in parked.all] == [ev.PAUSED, ev.WORKFLOW_PAUSED, "escalated"]
    assert as_json(saga_view(saga.state, saga.program, {}))["status"] == "paused"
    resume(saga, ev.PAUSED)
    resume(saga, ev.WORKFLOW_PAUSED)
    assert (status_of(saga.state), saga.state.stood) == ("parked", 0)
    assert saga.state.parked is not None
    assert saga.state.parked.at == since


def test_a_parking_whose_time_goes_on_gets_its_question_back() -> None:
    saga = saga_of(TIMED)
    saga.go()
    saga.put(ev.Parked(code="worker_killed", message="died"), epoch=0, invocation="w")
    ask = about_parking(saga.state)
    pause(saga)
    assert about_parking(saga.state) is None
    resume(saga, ev.PAUSED, after_ms=HOUR)
    assert about_parking(saga.state) == ask
    assert saga.state.stood == HOUR


def test_a_failure_that_time_does_not_stand_still_for_stays_one() -> None:
    saga = saga_of("name: w\non_failure: escalate\nnodes: {a: {tool: t}}")
    saga.go()
    pause(saga)
    saga.go(broken("a", "bad_request"), after_ms=HOUR)
    resume(saga, ev.PAUSED)
    assert saga.state.parked is not None
    assert (saga.state.parked.at, saga.state.stood) == (0, HOUR)


def test_a_failed_saga_begins_no_rollback_while_it_is_paused() -> None:
    saga = saga_of(MAIL.replace("name: w", "name: w\non_failure: {any: [rollback]}"))
    pause(saga)
    decision = saga.go(broken("a", "bad_request"))
    assert (decision.record, decision.commands, status_of(saga.state)) == ((), (), "paused")
    resume(saga, ev.PAUSED)
    saga.go()
    assert status_of(saga.state) == "compensating"
    pause(saga)
    assert (ready(saga.go()), status_of(saga.state)) == ([], "paused")
    saga.put(ev.CancelRequested(reason="", by="ada", at=saga.now, grace_ms=0), epoch=0, invocation="api")
    assert status_of(saga.state) == "paused", "a rollback is not cancelled"
    resume(saga, ev.PAUSED)
    assert ready(saga.go())


def test_a_paused_saga_ends_on_its_last_day_all_the_same() -> None:
    saga = saga_of(MAIL.replace("name: w", "name: w\non_failure: fail"))
    saga.state = replace(saga.state, origin=replace(saga.state.origin, ends_by=saga.now + DAY_MS))
    pause(saga)
    saga.go(broken("a", "bad_request"))
    assert status_of(saga.state) == "paused"
    saga.go(after_ms=2 * DAY_MS)
    assert status_of(saga.state) == "failed"


def test_a_cancel_ends_a_paused_saga() -> None:
    saga = saga_of(TIMED)
    saga.go()
    pause(saga)
    saga.put(ev.CancelRequested(reason="", by="ada", at=saga.now, grace_ms=0), epoch=0, invocation="api")
    saga.go()
    assert status_of(saga.state) == "cancelled"
