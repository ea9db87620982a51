"""A failure that says that code is wrong parks its saga and undoes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.outcomes import Outcome
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.effects.toolspec import ONCE
from baton.core.failures.codes import DEFECTS, SCHEMA_CHANGED, is_on_purpose
from baton.core.log import events as ev
from baton.core.log.state import UNKNOWN_OUTCOME, status_of
from baton.core.nodes.registry import KINDS
from tests.core.asked import notices_of
from tests.core.build import T0, TOOLS, Saga, done, ready, tool_spec
from tests.core.failing import answer, broken, chosen
from tests.core.nodes.thinking import answered, at_work, call, outcome, thinking

KNOWN = {
    **TOOLS,
    "pay": replace(tool_spec("pay"), effect="idempotent", undo="refund"),
    "refund": replace(tool_spec("refund"), effect="idempotent"),
    "once": replace(tool_spec("once"), effect=ONCE),
}
PAID = "name: w\nnodes:\n  pay: {tool: pay}\n"
MAIL = PAID + "  a: {tool: t, after: pay}\n"
HOUR = 3_600_000


def compiled(text: str, build: str = "b1") -> Program:
    return Program(compile_document(text, KNOWN), KINDS, build=build)


def saga_of(text: str = MAIL, build: str = "b1", **more: Any) -> Saga:
    saga = Saga(compiled(text, build), **more)
    saga.go(done("pay"))
    return saga


def defect(slot: str = "a", code: str = "tool_defect", *, attempt: int = 1, **more: Any) -> Outcome:
    return broken(slot, code, attempt=attempt, **more)


def is_paid(saga: Saga) -> bool:
    """Tell whether nothing was undone, and nothing is about to be."""
    return saga.state.failure is None and saga.state.undo.work is None


# ---- what is done about one


@pytest.mark.parametrize("code", DEFECTS)
def test_a_defect_opens_an_incident_and_parks_the_saga_which_undoes_nothing(code: str) -> None:
    saga = saga_of()
    decision = saga.go(defect(code=code))
    assert saga.kinds == ["attempt_failed", "strategy_chosen", "notice_due", "parked"]
    status = "reflecting" if code == SCHEMA_CHANGED else "parked"
    assert (status_of(saga.state), is_paid(saga), ready(decision)) == (status, True, [])
    (notice,) = notices_of(decision)
    assert (notice.to, notice.incident, notice.severity, notice.code) == ("on_call", True, "high", code)
    assert saga.state.parked == ev.Parked(
        code="escalated", message=notice.message, node="a", at=saga.now, build="b1"
    )


@pytest.mark.parametrize(
    "rule",
    [
        "on_failure: fail",
        "on_failure: rollback",
        "on_failure: {permanent: fail, any: rollback}",
        "retry: {max_attempts: 9, on: [permanent]}",
        "failover: [{name: all, then: rollback}]",
    ],
)
def test_a_rule_for_all_failures_or_for_a_class_is_about_the_business(rule: str) -> None:
    for text in (f"{MAIL}{rule}", f"{PAID}  a: {{tool: t, after: pay, {rule}}}\n"):
        saga = saga_of(text)
        saga.go(defect())
        assert (status_of(saga.state), is_paid(saga)) == ("parked", True)


def test_a_catch_of_all_failures_does_not_take_a_defect_and_neither_does_a_tolerant_join() -> None:
    caught = saga_of(PAID + "  a: {tool: t, after: pay, catch: b}\n  b: {tool: t}\n")
    joined = saga_of(
        PAID + "  a: {tool: t, after: pay}\n  b: {tool: t, after: pay}\n"
        "  c: {tool: t, after: [a, b], join: {tolerated_failures: 1}}\n"
    )
    for saga in (caught, joined):
        saga.go(defect())
        assert status_of(saga.state) == "parked"


def test_a_catch_that_names_the_code_takes_it_at_once() -> None:
    saga = saga_of(PAID + "  a: {tool: t, after: pay, catch: {code: tool_defect, then: b}}\n  b: {tool: t}\n")
    assert ready(saga.go(defect())) == ["b"]
    assert saga.kinds == ["step_failed"]


def test_an_earlier_catch_of_all_failures_does_not_take_it_either() -> None:
    rules = "[{class: permanent, then: b}, {code: tool_defect, then: c}]"
    saga = saga_of(
        PAID + f"  a: {{tool: t, after: pay, catch: {rules}}}\n  b: {{tool: t}}\n  c: {{tool: t}}\n"
    )
    saga.go(defect())
    assert status_of(saga.state) == "parked"


@pytest.mark.parametrize(
    "rule",
    [
        "retry: {max_attempts: 3, on: [tool_defect]}",
        "on_failure: {tool_defect: {retry: quick, ladder: [retry, rollback]}}",
    ],
)
def test_a_rule_of_retries_that_names_the_code_tries_it_again(rule: str) -> None:
    for text in (f"{MAIL}{rule}", f"{PAID}  a: {{tool: t, after: pay, {rule}}}\n"):
        saga = saga_of(text)
        saga.go(defect())
        assert chosen(saga) == ["retry"]
        assert saga.state.parked is None


def test_a_rule_that_names_the_code_decides_what_is_done() -> None:
    saga = saga_of(MAIL + "on_failure: {tool_defect: rollback}")
    saga.go(defect())
    assert saga.state.failure is not None
    policy = "failover: [{name: other, when: {code: tool_defect}, then: {tool: table.hold}}]"
    saga = saga_of(f"{MAIL}{policy}")
    saga.go(defect())
    assert chosen(saga) == ["replan"]


def test_a_deployment_that_lets_steps_fail_parks_a_saga_with_a_defect() -> None:
    saga = saga_of(last="fail")
    saga.go(defect())
    assert (status_of(saga.state), is_paid(saga)) == ("parked", True)


def test_a_parent_that_goes_on_from_a_failure_of_its_child_does_not_take_the_defect_in_it() -> None:
    saga = saga_of(handled=True)
    saga.go(defect())
    assert status_of(saga.state) == "parked"


def test_what_may_have_happened_only_once_is_found_out_first() -> None:
    saga = saga_of(PAID + "  a: {tool: once, after: pay}\n")
    outcome = defect()
    assert outcome.failure is not None
    saga.go(replace(outcome, failure=replace(outcome.failure, doubt=True)))
    assert (chosen(saga), saga.state.parked) == (["retry"], None)
    assert saga.state.failing["a"].look
    second = replace(outcome, attempt=2, failure=replace(outcome.failure, doubt=True))
    saga.go(second, after_ms=60_000)
    assert saga.state.failing["a"].failure.code == UNKNOWN_OUTCOME
    assert status_of(saga.state) == "suspended"


def test_a_person_who_lets_the_step_fail_has_decided_about_the_business() -> None:
    saga = saga_of()
    saga.go(defect())
    saga.note_told()
    answer(saga, "fail")
    saga.go()
    assert (saga.state.parked, saga.state.failure is not None) == (None, True)
    assert saga.state.undo.work is not None


def test_a_person_may_let_it_try_again_under_the_same_code_and_is_told_again() -> None:
    saga = saga_of()
    saga.go(defect())
    saga.note_told()
    saga.put(ev.Resumed(by="ada", at=saga.now), epoch=0, invocation="api")
    assert ready(saga.go()) == ["a"]
    assert saga.state.failing["a"].builds == ()
    saga.go(defect(attempt=2))
    assert "notice_due" in saga.kinds


# ---- a map, an agent, an inverse

EACH = "  a: {tool: t, map: {over: '${input}'%s}, after: pay}\n"


def test_an_items_defect_is_a_failure_of_that_item_as_far_as_the_map_tolerates_it() -> None:
    saga = saga_of(PAID + EACH % ", tolerated_failures: 1", given=[1, 2, 3])
    saga.go(defect("a#0"))
    assert (saga.state.parked, list(saga.state.failing)) == (None, [])
    saga.go(defect("a#1"))
    assert (status_of(saga.state), list(saga.state.failing)) == ("parked", ["a#1"])


def test_an_items_defect_parks_the_saga_where_each_item_has_to_succeed() -> None:
    for more in ("", ", wait_for: 3"):
        saga = saga_of(PAID + EACH % more, given=[1, 2, 3])
        saga.go(defect("a#1"))
        assert status_of(saga.state) == "parked"


def test_a_map_that_catches_the_code_fails_with_its_item() -> None:
    each = "  a: {tool: t, map: '${input}', after: pay, catch: {code: tool_defect, then: b}}\n"
    saga = saga_of(PAID + each + "  b: {tool: t}\n", given=[1, 2])
    saga.go(defect("a#1"))
    assert saga.state.parked is None


def test_nothing_follows_from_items_that_a_map_has_left_running() -> None:
    saga = saga_of(PAID + EACH % ", wait_for: 1, rest: run", given=[1, 2])
    saga.go(done("a#0"))
    assert saga.state.late == {"a"}
    saga.go(defect("a#1"))
    assert (saga.state.parked, saga.state.failing) == (None, {})


def undoing(**more: Any) -> tuple[Saga, str]:
    """A saga whose refund has a defect, and the slot of that."""
    saga = saga_of(**more)
    saga.put(ev.CancelRequested(reason="no", by="ada", at=saga.now, grace_ms=0, undo=True), epoch=0)
    (slot,) = ready(saga.go())
    assert ready(saga.go(defect(slot))) == []
    assert (status_of(saga.state), saga.state.parked and saga.state.parked.build) == ("parked", "b1")
    saga.note_told()
    return saga, slot


def test_an_inverse_with_a_defect_parks_the_saga_until_other_code_is_there() -> None:
    saga, slot = undoing()
    assert ready(saga.go(after_ms=100 * HOUR)) == []
    saga.program = compiled(MAIL, "b2")
    assert ready(saga.go()) == [slot]
    assert ready(saga.go(defect(slot, attempt=2))) == []
    assert (status_of(saga.state), "notice_due" in saga.kinds) == ("parked", False)
    saga.program = compiled(MAIL, "b3")
    assert ready(saga.go()) == [slot]
    saga.go(done(slot, attempt=3))
    assert status_of(saga.state) == "rolled_back"


def test_a_person_may_let_an_inverse_be_tried_again_or_give_it_up() -> None:
    saga, slot = undoing()
    saga.put(ev.Resumed(by="ada", at=saga.now), epoch=0, invocation="api")
    assert ready(saga.go()) == [slot]
    saga.go(done(slot, attempt=2))
    assert status_of(saga.state) == "rolled_back"
    saga, slot = undoing()
    answer(saga, "fail")
    saga.go()
    assert (status_of(saga.state), [one.slot for one in saga.state.undo.failed]) == (
        "rollback_failed",
        ["pay"],
    )


def test_a_second_cancel_leaves_the_inverse_to_be_mended() -> None:
    saga, _ = undoing()
    saga.put(ev.CancelRequested(reason="now", by="ada", at=saga.now, grace_ms=0), epoch=0)
    saga.go()
    assert status_of(saga.state) == "parked"


def test_an_inverse_that_no_code_mends_is_given_up_with_the_last_day() -> None:
    saga, _ = undoing(ends_by=T0 + 200 * HOUR)
    saga.go(after_ms=300 * HOUR)
    assert (status_of(saga.state), [one.slot for one in saga.state.undo.failed]) == (
        "rollback_failed",
        ["pay"],
    )


def test_the_last_day_gives_up_the_inverse_with_the_defect_and_none_beside_it() -> None:
    both = "name: w\ncompensate: parallel\nnodes:\n  pay: {tool: pay}\n  too: {tool: pay}\n  a: {tool: t, after: [pay, too]}\n"
    saga = saga_of(both, ends_by=T0 + 200 * HOUR)
    saga.go(done("too"))
    saga.put(ev.CancelRequested(reason="no", by="ada", at=saga.now, grace_ms=0, undo=True), epoch=0)
    first, second = ready(saga.go())
    saga.go(defect(first), running=[second])
    saga.note_told()
    saga.go(after_ms=300 * HOUR)
    assert first not in saga.state.failing
    assert saga.state.parked is None


def test_a_rule_of_the_inverse_that_names_the_code_takes_its_defect() -> None:
    rule = "compensate: {tool: refund, retry: {max_attempts: 2, on: [tool_defect]}}"
    saga = saga_of(f"name: w\nnodes:\n  pay: {{tool: pay, {rule}}}\n  a: {{tool: t, after: pay}}\n")
    saga.put(ev.CancelRequested(reason="no", by="ada", at=saga.now, grace_ms=0, undo=True), epoch=0)
    (slot,) = ready(saga.go())
    saga.go(defect(slot))
    assert (chosen(saga), saga.state.parked) == (["retry"], None)


def test_a_result_or_a_bug_in_a_tool_of_an_agent_is_not_the_models_to_mend() -> None:
    for code in ("tool_defect", "result_invalid", "tool_missing"):
        saga = thinking()
        saga.go(answered("a#t1", call("look", n=1), call("look", n=2)))
        saga.go(defect("a#t1-0", code), running=["a#t1-1"])
        assert (status_of(saga.state), list(saga.state.failing)) == ("parked", ["a#t1-0"])
        saga.note_told()
        assert ready(saga.go(outcome("a#t1-1", "two"))) == [], "the model hears of it when there is a result"
        saga.put(ev.Resumed(by="ada", at=saga.now), epoch=0)
        assert ready(saga.go()) == ["a#t1-0"]
        assert ready(saga.go(replace(outcome("a#t1-0", "one"), attempt=2))) == ["a#t2"]


def test_arguments_that_a_model_wrote_are_the_models_to_correct() -> None:
    saga = thinking()
    saga.go(answered("a#t1", call("look", n=1)))
    assert ready(saga.go(defect("a#t1-0", "input_invalid"))) == ["a#t2"]
    assert at_work(saga).tail[0].results[0].v["error"]["code"] == "input_invalid"


def test_a_catch_of_the_agent_does_not_take_the_defect_of_its_tool_but_that_of_its_turn() -> None:
    after = ", catch: {code: tool_defect, then: b}"
    saga = thinking(node=after, rest="\n  b: {tool: t}")
    saga.go(answered("a#t1", call("look", n=1)))
    saga.go(defect("a#t1-0"))
    assert status_of(saga.state) == "parked"
    saga = thinking(node=after, rest="\n  b: {tool: t}")
    assert ready(saga.go(defect("a#t1"))) == ["b"]


def test_only_a_map_tolerates_failures_of_items() -> None:
    saga = saga_of()
    assert not KINDS["task"].tolerates(saga.program.nodes["a"], None)


def test_what_a_tool_says_on_purpose_is_no_defect_whatever_its_code() -> None:
    saga = saga_of()
    found = defect(code="input_invalid")
    assert found.failure is not None
    saga.go(replace(found, failure=replace(found.failure, on_purpose=True)))
    assert "parked" not in saga.kinds
    assert saga.state.failure is not None


def test_the_code_of_a_defect_is_a_tools_own_word_where_it_came_with_a_class() -> None:
    assert is_on_purpose("input_invalid", "permanent")
    assert not is_on_purpose("input_invalid", ""), "the engine found it"
    assert not is_on_purpose("tool_defect", "unknown")
    assert not is_on_purpose("sold_out", "permanent")


def test_a_failed_child_says_in_a_batch_what_it_has_failed_with() -> None:
    blamed = ev.Blamed(node="pay", code="card_declined", message="no")
    failure = ev.Failure("child_failed", "the child has failed", errors=(blamed,))
    assert failure.of_an_item()["errors"] == [{"node": "pay", "code": "card_declined", "message": "no"}]
    assert "errors" not in ev.Failure("timeout", "late", errors=(blamed,)).of_an_item()
