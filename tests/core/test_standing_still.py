"""A saga that is parked for a defect: its time stands still, and other code that is deployed tries it again."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from baton.core.decide.context import Standing
from baton.core.decide.decision import Decision, LookAtStanding
from baton.core.expressions import iso
from baton.core.limits import DAY_MS
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.questions import awaited_question
from baton.core.log.state import status_of
from baton.core.log.work import Callback
from baton.core.nodes.registry import KINDS
from baton.core.read.views import saga_view
from baton.errors import NotAllowedNow
from tests.core.build import T0, Saga, done, ready
from tests.core.failing import answer, broken
from tests.core.test_defects import HOUR, MAIL, PAID, compiled, defect, saga_of
from tests.kit.views import as_json


def failure_of(saga: Saga) -> str:
    return "" if saga.state.failure is None else saga.state.failure.code


def deploy(saga: Saga, text: str, build: str) -> None:
    saga.program = compiled(text, build)


# ---- its time stands still

LIMITED = """\
name: w
limits: {wall_time: 2h}
nodes:
  pay: {tool: pay}
  a: {tool: t, after: pay}
  b: {wait: {signal: go, timeout: 1h}, after: pay}
  c: {human: {type: decision, title: which, options: [{id: x}, {id: y}], expires: 3h}, after: pay}
  d: {wait: {for: 4h}, after: pay}
"""


def standing() -> Saga:
    saga = saga_of(LIMITED)
    saga.go(defect())
    saga.note_told()
    return saga


def test_time_stands_still_while_a_saga_is_parked_for_a_defect() -> None:
    saga = standing()
    decision = saga.go(after_ms=100 * HOUR)
    assert (decision.due, decision.record, status_of(saga.state)) == (None, (), "parked")
    slot = next(slot for slot, work in saga.state.open.items() if work.ask is not None)
    ask = saga.state.open[slot].ask
    assert ask is not None
    assert awaited_question(saga.state, ask.id, saga.now) == (slot, ask)


def test_what_would_have_run_out_has_as_much_time_left_as_before() -> None:
    saga = standing()
    before = saga.state
    saga.now += 100 * HOUR
    saga.put(ev.Resumed(by="ada", at=saga.now), epoch=0, invocation="api")
    decision = saga.go()
    assert ready(decision) == ["a"]
    assert saga.state.open["b"].due == (before.open["b"].due or 0) + 100 * HOUR
    assert saga.state.open["c"].due == (before.open["c"].due or 0) + 100 * HOUR
    assert "d" not in saga.state.open, "the time that it was to wait for has come"
    assert saga.state.stood == 100 * HOUR
    saga.go(done("a", attempt=2), after_ms=30 * 60_000)
    assert failure_of(saga) == ""
    saga.go(after_ms=2 * HOUR)
    assert failure_of(saga) == "limit_wall_time"


def test_a_question_that_has_expired_otherwise_can_not_be_answered() -> None:
    saga = saga_of(LIMITED)
    saga.go()
    ask = saga.state.open["c"].ask
    assert ask is not None
    with pytest.raises(NotAllowedNow, match="has expired"):
        awaited_question(saga.state, ask.id, saga.now + 3 * HOUR)


def test_retries_polls_and_limits_of_nodes_have_their_time_after_it() -> None:
    text = """\
name: w
nodes:
  pay: {tool: pay}
  a: {tool: t, after: pay}
  b: {tool: t, after: pay, retry: {schedule: [1s, 1s, 1s], budget: 1h}}
  c: {tool: t, after: pay, poll: {every: 1m, within: 1h, until: 'output == 1'}}
  e: {tool: t, after: pay, limits: {wall_time: 1h}}
"""
    saga = saga_of(text)
    saga.go(broken("b"), done("c@0", 0))
    saga.go(defect())
    before = saga.state
    saga.now += 100 * HOUR
    saga.put(ev.Resumed(by="ada", at=saga.now), epoch=0, invocation="api")
    after = saga.state
    assert after.failing["b"].history.since == before.failing["b"].history.since + 100 * HOUR
    assert after.pauses["c@1"].ends_by == before.pauses["c@1"].ends_by + 100 * HOUR
    assert after.begun["e"] == before.begun["e"] + 100 * HOUR
    saga.go()
    assert saga.state.failure is None


def test_the_end_of_its_days_undoes_nothing() -> None:
    saga = saga_of(ends_by=T0 + DAY_MS)
    saga.go(defect())
    saga.note_told()
    saga.go(after_ms=DAY_MS)
    assert saga.state.failure is not None
    assert (saga.state.failure.code, saga.state.undo.stays) == ("limit_wall_time", True)
    assert saga.state.ended is not None
    assert saga.state.ended.status == "failed"


def test_the_end_of_its_days_undoes_what_was_done_otherwise() -> None:
    saga = saga_of(ends_by=T0 + DAY_MS)
    saga.go(after_ms=DAY_MS)
    assert saga.state.undo.work is not None


# ---- other code


def test_other_code_tries_it_again_and_the_same_code_does_not() -> None:
    saga = saga_of()
    saga.go(defect())
    saga.note_told()
    assert ready(saga.go(after_ms=HOUR)) == []
    deploy(saga, MAIL, "b2")
    assert ready(saga.go(after_ms=HOUR)) == ["a"]
    assert saga.kinds == ["resumed"]
    saga.go(done("a", attempt=2))
    assert saga.state.ended is not None
    assert saga.state.ended.status == "completed"


def test_code_that_mends_nothing_parks_it_again_and_tells_no_one() -> None:
    saga = saga_of()
    saga.go(defect())
    saga.note_told()
    for number, build in enumerate(["b2", "b3"], 2):
        deploy(saga, MAIL, build)
        saga.go()
        saga.go(defect(attempt=number))
        assert saga.kinds == ["attempt_failed", "strategy_chosen", "parked"]
        assert saga.state.parked is not None
        assert saga.state.parked.build == build
    assert saga.state.failing["a"].builds == ("b1", "b2", "b3")
    for build in ("b1", "b2", "b3", ""):
        deploy(saga, MAIL, build)
        saga.note_told()
        assert ready(saga.go(after_ms=HOUR)) == [], (
            "two versions of the code that alternate try nothing again"
        )


def test_another_defect_under_other_code_is_told() -> None:
    saga = saga_of()
    saga.go(defect())
    saga.note_told()
    deploy(saga, MAIL, "b2")
    saga.go()
    saga.go(defect(attempt=2, code="result_invalid"))
    assert "notice_due" in saga.kinds


def test_where_the_code_is_not_known_a_person_has_to_say_so() -> None:
    saga = saga_of(build="")
    saga.go(defect())
    saga.note_told()
    assert saga.state.stands_still
    deploy(saga, MAIL, "b2")
    assert ready(saga.go(after_ms=HOUR)) == []


TWO = PAID + "  a: {tool: t, after: pay}\n  b: {tool: t, after: pay%s}\n"


def test_two_defects_are_tried_again_together_and_time_stands_still_from_the_first() -> None:
    saga = saga_of(TWO % "")
    saga.go(defect("a"))
    first = saga.now
    saga.go(defect("b", at=T0 + HOUR), after_ms=HOUR)
    assert saga.state.parked is not None
    assert saga.state.parked.at == first
    saga.note_told()
    deploy(saga, TWO % "", "b2")
    assert ready(saga.go()) == ["a", "b"]


def test_an_incident_of_business_beside_a_defect_stays_open_when_code_is_deployed() -> None:
    text = TWO % ", on_failure: {login_required: escalate}"
    saga = saga_of(text)
    saga.go(defect("a"))
    saga.go(broken("b", "login_required"))
    assert saga.state.stands_still
    saga.note_told()
    deploy(saga, text, "b2")
    assert ready(saga.go(after_ms=HOUR)) == []
    assert saga.state.parked is not None
    assert (saga.state.parked.at, list(saga.state.failing)) == (0, ["a", "b"])
    answer_b = saga.state.failing["b"].ask
    assert answer_b is not None
    answer(saga, "retry")
    assert ready(saga.go()) == ["a", "b"]


def test_a_cancel_ends_a_saga_that_is_parked_for_a_defect() -> None:
    saga = saga_of()
    saga.go(defect())
    saga.note_told()
    saga.cancel()
    saga.go()
    assert saga.state.ended is not None
    assert saga.state.ended.status == "cancelled"


def test_a_fork_to_before_a_defect_does_it_again() -> None:
    saga = saga_of()
    cut = saga.state.version
    saga.go(defect())
    saga.note_told()
    saga.put(ev.Forked(cut=cut, branch=1, by="ada", at=saga.now), epoch=0, invocation="api")
    assert (ready(saga.go()), saga.state.stands_still) == (["a"], False)


# ---- a child of it


def test_a_child_whose_time_has_stood_still_gets_as_much_more() -> None:
    saga = Saga(compiled("name: w\nnodes: {c: {workflow: other, timeout: 1h}}"))
    saga.go()
    first = saga.state.children["c"].until
    saga.go(after_ms=HOUR)
    assert (saga.kinds, saga.state.children["c"].overdue) == (["child_overdue"], True)
    later = ev.ChildOverdue(node="c", at=saga.now, until=first + 5 * HOUR)
    saga.put(later)
    child = saga.state.children["c"]
    assert (child.overdue, child.until, child.stood) == (False, first + 5 * HOUR, 5 * HOUR)
    assert "stood still" in KINDS["workflow"].says(later)[1]
    saga.go(after_ms=4 * HOUR)
    assert not saga.state.children["c"].overdue
    saga.go(after_ms=HOUR)
    assert saga.state.children["c"].overdue


def test_work_elsewhere_a_map_and_a_time_that_is_waited_for() -> None:
    text = (
        PAID
        + "  a: {tool: t, after: pay}\n  m: {tool: t, map: '${input}', after: pay}\n  w: {wait: {for: 1h}, after: pay}\n"
    )
    saga = saga_of(text, given=[1])
    saga.go(defect())
    before = saga.state.open
    callback = Callback(id="0.x.1", since=1, until=HOUR, heartbeat_ms=60_000, heard_at=2)
    assert callback.postponed(5) == replace(callback, until=HOUR + 5, heard_at=7)
    saga.now += 2 * HOUR
    saga.put(ev.Resumed(by="ada", at=saga.now), epoch=0, invocation="api")
    assert saga.state.open == before
    assert before["w"].due is not None
    assert before["w"].due < saga.now


def test_a_view_says_since_when_it_waits_for_other_code() -> None:
    saga = saga_of()
    assert as_json(saga_view(saga.state, saga.program))["parked"] is None
    saga.go(defect())
    shown = as_json(saga_view(saga.state, saga.program))["parked"]
    assert (shown["stands_still_since"], shown["build"]) == (iso(saga.now), "b1")


# ---- so does the time of a saga that waits for one

WAITS = """
name: w
limits: {wall_time: 2h}
nodes:
  k: {workflow: other}
  b: {wait: {signal: go, timeout: 3h}}
"""


def waiting() -> Saga:
    saga = Saga(compiled(WAITS))
    saga.go()
    return saga


def looked(saga: Saga, ms: int, lasts: int = 0) -> Decision:
    """The decision once its child was looked at."""
    (child,) = (work.orphan for work in saga.state.open.values() if work.orphan is not None)
    return saga.go(standing=Standing(saga.now, ms, child.saga, lasts))


def test_a_saga_whose_time_is_over_looks_first_whether_a_child_stands_still() -> None:
    saga = waiting()
    decision = saga.go(after_ms=2 * HOUR)
    assert [type(one) for one in decision.commands] == [LookAtStanding]
    assert (decision.is_lacking, failure_of(saga)) == (True, "")
    looked(saga, 0)
    assert failure_of(saga) == "limit_wall_time"


def test_its_time_stands_still_as_long_as_that_of_the_child() -> None:
    saga = waiting()
    saga.go(after_ms=2 * HOUR)
    decision = looked(saga, HOUR, HOUR)
    assert (status_of(saga.state), decision.due) == ("parked", saga.now + HOUR)
    saga.go(after_ms=HOUR)
    assert (status_of(saga.state), saga.state.stood) == ("waiting", 2 * HOUR)
    saga.go(after_ms=HOUR - 1)
    assert failure_of(saga) == ""
    decision = saga.go(after_ms=1)
    assert [type(one) for one in decision.commands] == [LookAtStanding]
    looked(saga, 2 * HOUR)
    assert failure_of(saga) == "limit_wall_time"


def test_it_goes_on_at_once_where_the_child_does_not_stand_any_more() -> None:
    saga = waiting()
    saga.go(after_ms=2 * HOUR)
    looked(saga, 60)
    assert saga.kinds == ["parked", "resumed"]
    assert (status_of(saga.state), saga.state.stood) == ("waiting", 60)


def test_a_saga_without_children_looks_at_none() -> None:
    saga = Saga(compiled(WAITS.replace("workflow: other", "wait: {signal: no, timeout: 3h}")))
    saga.go()
    saga.go(after_ms=2 * HOUR)
    assert failure_of(saga) == "limit_wall_time"


# ---- the code that a saga of a function stays with


@pytest.mark.parametrize(
    ("parked", "stays"),
    [
        (ev.Parked(code="code_gone", message="m", at=T0), ""),
        (ev.Parked(code="worker_killed", message="m"), "b1"),
        (ev.Parked(code="escalated", message="m", at=T0, until=T0 + HOUR), "b1"),
    ],
)
def test_only_a_saga_that_is_parked_for_its_own_code_leaves_it(parked: ev.Parked, stays: str) -> None:
    saga = Saga(compiled(LIMITED, "b1"))
    state = replace(saga.state, pinned="b1")
    assert apply(state, parked).pinned == stays
