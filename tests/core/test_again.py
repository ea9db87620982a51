"""What is done again: polls and loops that rest, children that are started anew; and the handler of a saga that has failed."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.context import FetchedValues
from baton.core.decide.decide import decide
from baton.core.decide.decision import FetchValues, StartHandler
from baton.core.decide.handler import takes_failure
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.documents.compile.notes import children_of, notes_of
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.nodes.registry import KINDS
from baton.core.read.definition_views import control_view
from baton.core.read.views import entry_view, saga_view
from tests.core.build import Saga, done, tool_spec
from tests.history.again import overdue, polled
from tests.kit.sentences import Says
from tests.kit.views import as_json

TOOLS = {"t": tool_spec("t", x={})}


def saga_of(nodes: str, given: Any = None, head: str = "") -> Saga:
    return Saga(Program(compile_document(f"name: w\n{head}nodes: {{{nodes}}}", TOOLS), KINDS), given)


def answered(saga: Saga, slot: str, output: Any, attempt: int = 1) -> Saga:
    answer = done(slot, output, attempt=attempt)
    saga.go(replace(answer, started_at=saga.now, ended_at=saga.now + 5))
    return saga


def kinds_of(saga: Saga) -> list[str]:
    return [type(event).__name__ for entry in saga.entries for event in entry.events]


# ---- polls and pauses --------------------------------------------------------------------------------------------------


def test_a_poll_gives_up_with_its_last_answer() -> None:
    saga = polled()
    assert saga.state.ended is not None
    assert saga.state.ended.status == "completed"
    passed = next(event for event in saga.entries[-1].events if isinstance(event, ev.NodePassed))
    assert passed.output.v == {"ready": False, "n": 2}


def test_a_round_waits_for_its_pause_and_is_shown_so() -> None:
    saga = answered(saga_of("a: {tool: t, poll: {until: output.ready, every: 1m}}"), "a@0", {"ready": False})
    assert saga.decision.due == saga.now + 60_005
    shown = as_json(saga_view(saga.state, saga.program))
    assert shown["status"] == "waiting"
    assert shown["active"][0]["state"] == "waiting"
    assert "until" in shown["active"][0]
    (event,) = entry_view(saga.entries[-1])["events"]
    assert event["paused"]["ends_by"] is None
    saga.now += 61_000
    saga.go()
    assert saga.decision.commands


@pytest.mark.parametrize(
    ("pause", "output", "length"),
    [
        ("{first: 10s, factor: 3}", {"again": True}, 10_000),
        ("'${output.s}s'", {"again": True, "s": 7}, 7_000),
    ],
)
def test_how_long_a_pause_is(pause: str, output: Any, length: int) -> None:
    saga = answered(saga_of(f"a: {{tool: t, loop: {{while: output.again, pause: {pause}}}}}"), "a@0", output)
    assert saga.state.pauses["a@1"].until == saga.entries[-1].events[0].ended_at + length  # type: ignore[union-attr]


def test_no_pause_and_one_that_is_none() -> None:
    nodes = "a: {tool: t, loop: {while: output.again, pause: '${output.s}s'}}"
    assert answered(saga_of(nodes), "a@0", {"again": True, "s": 0}).state.pauses == {}
    failed = answered(saga_of(nodes), "a@0", {"again": True, "s": "x"})
    assert failed.state.failure is not None
    assert failed.state.failure.code == "wait_invalid"
    lacking = answered(saga_of(nodes), "a@0", {"again": True})
    assert lacking.state.failure is not None


@pytest.mark.parametrize("size", [1, 9_000])
def test_a_poll_without_tries_left(size: int) -> None:
    nodes = "a: {tool: t, poll: {until: output.ready, every: 1s, tries: 1}}"
    saga = answered(saga_of(nodes), "a@0", {"ready": False, "x": "x" * size})
    assert saga.state.failure is not None
    assert saga.state.failure.code == "poll_exhausted"
    assert len(saga.state.failure.answer) < 5_000


def test_a_pause_that_is_no_time_is_told_of_the_poll() -> None:
    saga = answered(
        saga_of("a: {tool: t, poll: {until: output.ready, every: '${output.s}'}}"),
        "a@0",
        {"ready": False, "s": "x"},
    )
    assert saga.state.failure is not None
    assert "poll.every" in saga.state.failure.message


def test_what_is_shown_of_a_loop_that_rests() -> None:
    nodes = (
        "a: {tool: t, loop: {while: output.x, pause: 1s, initial: 3}}, b: {tool: t, loop: {while: output.x, pause: '${output.s}'}}, "
        "c: {tool: t, poll: {until: output.x, every: {first: 1s, factor: 2}}}"
    )
    shown = {node.name: control_view(node)["loop"] for node in saga_of(nodes).program.graph.nodes}
    assert (shown["a"]["pause"], shown["a"]["initial"]) == ("1000ms", 3)
    assert shown["b"]["pause"] == "${output.s}"
    assert shown["c"]["pause"]["factor"] == 2


def test_what_the_first_round_reads() -> None:
    nodes = "b: {value: 5}, a: {tool: t, after: b, with: {x: '${ctx.a.previous}'}, loop: {while: output.again, initial: '${ctx.b.output}'}}"
    saga = saga_of(nodes)
    saga.go()
    (run,) = saga.decision.commands
    assert run.steps[0].arguments == {"x": 5}  # type: ignore[attr-defined]


def test_the_first_round_may_read_what_the_saga_was_given() -> None:
    nodes = (
        "a: {value: '${ctx.b.previous}'}, "
        "b: {value: '${ctx.a.output}', after: a, loop: {while: 'loop.iteration < 1', back_to: a, initial: '${input.n}'}}"
    )
    saga = saga_of(nodes, {"n": 7}, "output: '${ctx.b.output}'\n")
    saga.go()
    assert saga.state.ended is not None
    assert saga.state.ended.output.v == 7


# ---- children ----------------------------------------------------------------------------------------------------------


def test_a_child_that_lasts_too_long_is_followed_by_another() -> None:
    saga = overdue()
    assert kinds_of(saga).count("ChildOpened") == 2
    assert "ChildOverdue" in kinds_of(saga)


CHILD = "c: {workflow: v, %s}"


def reported(nodes: str, code: str = "service_unavailable", **more: Any) -> Saga:
    saga = saga_of(nodes)
    saga.go()
    report = {"status": "failed", "failure": ev.Failure(code, "no"), **more}
    saga.put(ev.ChildReported(slot="c", child="s1.0.c", **report))
    saga.go()
    return saga


@pytest.mark.parametrize(
    ("rules", "code", "again"),
    [
        ("retry: quick", "service_unavailable", True),
        ("retry: quick", "business_rule", False),
        ("retry: {max_attempts: 3, on: [business_rule]}", "business_rule", True),
        ("retry: {max_attempts: 3, never: [service_unavailable]}", "service_unavailable", False),
        ("on_failure: fail", "service_unavailable", False),
    ],
)
def test_which_failures_have_another_child(rules: str, code: str, again: bool) -> None:
    saga = reported(CHILD % rules, code)
    assert ("AttemptFailed" in kinds_of(saga)) is again
    assert (saga.state.failure is None) is again


def test_a_child_that_stands_is_not_followed() -> None:
    assert reported(CHILD % "retry: quick", status="rollback_failed").state.failure is not None
    assert reported(CHILD % "retry: quick", "cancelled", status="cancelled").state.failure is not None


def test_a_child_whose_rules_let_the_saga_fail_leaves_what_was_done() -> None:
    """Its ladder has no rollback, so that what the other child has done stands."""
    saga = saga_of("b: {workflow: v}, c: {workflow: v, on_failure: fail}")
    saga.go()
    saga.put(ev.ChildReported(slot="c", child="s1.0.c", status="failed", failure=ev.Failure("x", "no")))
    saga.go()
    (failed,) = (
        event for entry in saga.entries for event in entry.events if isinstance(event, ev.StepFailed)
    )
    assert failed.stays


def test_a_child_does_not_ask_where_its_parent_says_what_is_done_about_it() -> None:
    for rules, goes_on in (("retry: quick", True), ("timeout: 1m", False)):
        saga = saga_of(CHILD % rules)
        saga.go()
        assert takes_failure(saga.program, saga.state, "c") is goes_on


def test_a_child_with_a_time_is_shown_with_it() -> None:
    saga = saga_of(CHILD % "timeout: 1m")
    saga.go()
    assert saga.decision.due == saga.now + 60_000
    shown = as_json(saga_view(saga.state, saga.program))["active"][0]
    assert shown["overdue"] is False


# ---- the failure handler -----------------------------------------------------------------------------------------------


def test_a_saga_that_fails_starts_its_handler_before_its_end(says: Says) -> None:
    saga = saga_of("a: {fail: {code: x, message: y}}", {"n": 1}, "failure_handler: v\n")
    saga.go()
    start = saga.decision.of(StartHandler)
    assert start is not None
    assert start.child.saga == "s1.0.failure-handler"
    assert start.child.input.v["error"]["code"] == "x"
    assert start.child.input.v["undone"] is None
    assert children_of(saga.program.graph) == ("v",)
    says(notes_of(saga.program.graph, TOOLS, invocation_ms=1_000, unknown={"v": "none"}))


@pytest.mark.parametrize("failure", [None, ev.Failure("not_found", "there is no `v`")])
def test_the_end_names_the_handler_that_has_started_or_says_why_none_has(failure: ev.Failure | None) -> None:
    saga = saga_of("a: {fail: {code: x, message: y}}", {}, "failure_handler: v\n")
    start = saga.go().of(StartHandler)
    assert start is not None
    assert saga.state.ended is None
    found = FetchedValues(handlers={start.child.saga: failure})
    (end,) = decide(saga.program, saga.state, saga.now, found=found).record
    assert isinstance(end, ev.SagaEnded)
    assert (end.handler, end.unhandled) == (("", failure) if failure else (start.child.saga, None))


def test_it_starts_once_the_failure_is_recorded_although_all_nodes_have_ended() -> None:
    saga = saga_of("a: {value: 1}", {}, "failure_handler: v\noutput: '${input.nothing}'\n")
    assert saga.go().of(StartHandler) is not None
    assert saga.kinds[-1] == "limit_reached"


def test_what_cannot_be_given_to_it_is_told() -> None:
    saga = saga_of(
        "a: {fail: {code: x, message: y}}", {}, "failure_handler: {workflow: v, with: {x: '${input.n}'}}\n"
    )
    saga.go()
    assert saga.state.ended is not None
    assert saga.state.ended.unhandled is not None


@pytest.mark.parametrize(("on_cancel", "has_one"), [("", False), (", on_cancel: true", True)])
def test_a_cancel_starts_it_only_where_the_document_says_so(on_cancel: str, has_one: bool) -> None:
    saga = saga_of("a: {wait: {for: 1h}}", {}, f"failure_handler: {{workflow: v{on_cancel}}}\n")
    saga.go()
    saga.cancel(grace_ms=0)
    saga.go()
    assert (saga.decision.of(StartHandler) is not None) is has_one


def test_a_report_waits_for_an_input_that_is_a_blob() -> None:
    saga = saga_of(
        "a: {fail: {code: x, message: y}}", ev.Value(ref="cas://sha256/0", size=9), "failure_handler: v\n"
    )
    saga.go()
    assert saga.decision.of(FetchValues) is not None


def test_a_time_that_is_over_for_what_has_ended_changes_nothing() -> None:
    saga = overdue()
    late = ev.ChildOverdue(node="c", at=saga.now)
    assert apply(saga.state, late) == saga.state
    assert KINDS["workflow"].says(late)[0] == ""


def test_what_a_person_has_changed_goes_to_the_next_child() -> None:
    saga = saga_of(
        "c: {workflow: v, with: {x: 1, y: 2}, on_failure: {any: {ladder: [ask_user], may_change: [x]}}}"
    )
    saga.go()
    failure = ev.Failure("service_unavailable", "no")
    saga.put(ev.ChildReported(slot="c", child="s1.0.c", status="failed", failure=failure))
    saga.go()
    failing = saga.state.failing["c"]
    again = replace(failing, ask=None, strategy="", arguments={"x": 7})
    state = replace(saga.state, failing={"c": again})
    (opened,) = (
        event for event in decide(saga.program, state, saga.now).record if isinstance(event, ev.ChildOpened)
    )
    assert opened.input.v == {"x": 7, "y": 2}
