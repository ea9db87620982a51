"""Paths, waits and values that a graph can have, one by one; all of them together are in graphs/."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.conditions import SandboxAnswer
from baton.core.decide.outcomes import Outcome
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.expressions import MOST_BYTES, MOST_ITEMS, excess_of, parse_time
from baton.core.graph.graph import Join
from baton.core.log import events as ev
from baton.core.log.state import status_of
from baton.core.nodes.registry import KINDS
from tests.core.asked import questions_of
from tests.core.build import T0, Saga, done, program, ready, task, tool_spec

LOOSE = tool_spec("t")
LOOSE.parameters["additionalProperties"] = True


def saga_of(nodes: str, given: Any = None) -> Saga:
    saga = Saga(Program(compile_document(f"name: w\nnodes: {{{nodes}}}", {"t": LOOSE}), KINDS), given)
    saga.go()
    return saga


def failure_of(saga: Saga) -> str:
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    return saga.state.ended.failure.code


def test_of_two_outcomes_the_second_is_heard_though_the_first_leaves_a_child_to_be_cancelled() -> None:
    saga = saga_of("a: {tool: t}, b: {tool: t}, c: {workflow: other}, j: {tool: t, after: [a, c], join: any}")
    saga.go(done("a"), done("b"))
    assert {event.node for event in saga.entries[-1].events if isinstance(event, ev.StepSucceeded)} <= {"b"}
    assert saga.state.counts.steps == 2
    assert ready(saga.decision) == ["j"]
    assert saga.state.orphaned_children == ()


def test_what_a_value_drops_when_it_leaves_a_loop_does_not_begin() -> None:
    saga = saga_of(
        "h: {tool: t}, a: {value: 1, after: h, branch: {rules: [{if: output == 1, then: z}], default: e}}, b: {tool: t, after: h}, "
        "e: {tool: t, after: b, loop: {while: output.again, back_to: h}}, z: {tool: t}"
    )
    assert ready(saga.go(done("h@0"))) == ["z"]


def test_an_answer_that_lets_a_step_run_is_noted_before_it_does() -> None:
    saga = saga_of("a: {tool: t, when: {python: 'def evaluate(output, context): return True'}}")
    (question,) = questions_of(saga.decision)
    decision = saga.go(answers={question.key: SandboxAnswer(value=True)})
    assert isinstance(saga.entries[-1].events[-1], ev.NodeAdmitted)
    assert ready(decision) == ["a"]
    assert ready(saga.go()) == ["a"], "and is not asked for again"


@pytest.mark.parametrize(
    ("when", "is_noted"),
    [
        ("{all: [input.yes, {python: CODE}]}", True),
        ("{any: [input.no, {python: CODE}]}", True),
        ("{not: {not: {python: CODE}}}", True),
        ("{all: [input.yes, {not: input.no}]}", False),
    ],
)
def test_only_what_python_has_answered_is_noted_wherever_it_was_asked(when: str, is_noted: bool) -> None:
    code = "'def evaluate(output, context): return True'"
    saga = saga_of(f"a: {{tool: t, when: {when.replace('CODE', code)}}}", {"yes": True, "no": False})
    answers = {question.key: SandboxAnswer(value=True) for question in questions_of(saga.decision)}
    assert ready(saga.go(answers=answers)) == ["a"]
    events = [event for entry in saga.entries for event in entry.events]
    assert any(isinstance(event, ev.NodeAdmitted) for event in events) == is_noted


def test_what_a_broken_condition_begins_begins_after_what_a_join_has_stopped() -> None:
    """A handler begins: it does not before everything has been heard that is over."""
    nodes = "s: {tool: t}, a: {tool: t, after: s, when: input.missing, catch: h}, h: {tool: t}"
    saga = saga_of(f"{nodes}, b: {{tool: t, after: s}}, j: {{value: 1, after: [a, b], join: any}}", {})
    decision = saga.go(done("s"))
    assert ready(decision) == ["b", "h"]
    failed = [event for event in saga.entries[-1].events if isinstance(event, ev.StepFailed)]
    assert [event.node for event in failed] == ["a"]


@pytest.mark.parametrize(
    ("wait", "given", "code"),
    [
        ("until: '${input.at}'", {}, "input_unbound"),
        ("until: '${input.at}'", {"at": "soon"}, "wait_invalid"),
        ("until: '${input.at}'", {"at": "2026-12-01T09:00:00"}, "wait_invalid"),
        ("for: '${input.at}'", {"at": "soon"}, "wait_invalid"),
    ],
)
def test_a_wait_whose_end_cannot_be_told_fails(wait: str, given: Any, code: str) -> None:
    assert failure_of(saga_of(f"w: {{wait: {{{wait}}}}}", given)) == code


def test_a_wait_lasts_as_long_as_an_expression_says() -> None:
    saga = saga_of("w: {wait: {for: '${input.at}'}}", {"at": "5s"})
    assert saga.state.open["w"].due == T0 + 5_000
    assert status_of(saga.state) == "waiting"
    assert parse_time("2026-12-01T10:00:00+01:00") == parse_time("2026-12-01T09:00:00Z")


def test_an_output_that_its_schema_does_not_allow_fails_the_step() -> None:
    saga = saga_of("a: {tool: t, output_schema: {type: integer}}")
    saga.go(done("a", "x"))
    assert saga.state.failing["a"].failure.code == "output_invalid"
    assert saga.state.stands_still, "it is the tool that is wrong"
    saga = saga_of("a: {value: x, output_schema: {type: integer}}")
    assert failure_of(saga) == "output_invalid"


@pytest.mark.parametrize(
    ("output", "code"),
    [({}, "branch_unbound"), ({"next": "a"}, "branch_not_allowed")],
    ids=["none", "strange"],
)
def test_a_choice_that_names_no_way_fails_the_node(output: Any, code: str) -> None:
    saga = saga_of("a: {tool: t, branch: {choose: output.next, among: [b, c]}}, b: {tool: t}, c: {tool: t}")
    saga.go(done("a", output))
    assert failure_of(saga) == code


def test_a_node_may_name_itself_where_it_says_how_it_goes_on() -> None:
    saga = saga_of(
        "a: {tool: t, branch: {rules: [{if: ctx.a.output.n > 1, then: b}], default: c}}, b: {tool: t}, c: {tool: t}"
    )
    assert ready(saga.go(done("a", {"n": 2}))) == ["b"]


def test_values_that_no_process_could_hold_are_not_fetched() -> None:
    """Neither for an argument nor for a condition."""
    huge = Outcome(
        slot="a",
        attempt=1,
        started_at=T0,
        ended_at=T0,
        output=ev.Value(ref="cas://sha256/11", size=MOST_BYTES // 2 + 1),
    )
    saga = saga_of("a: {tool: t}, b: {tool: t, after: a, with: {x: '${ctx.a.output}', y: '${ctx.a.output}'}}")
    saga.go(huge)
    assert failure_of(saga) == "input_unbound"
    both = "{compare: {left: '${ctx.a.output.x}', operator: '==', right: '${ctx.a.output.y}'}}"
    saga = saga_of(f"a: {{tool: t}}, b: {{tool: t, after: a, when: {both}}}")
    saga.go(huge)
    assert failure_of(saga) == "condition_too_large"


def test_what_is_too_large_is_said() -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    assert "levels deep" in excess_of(deep, 10**9)
    assert "parts" in excess_of([[0] * 1_000] * (MOST_ITEMS // 1_000 + 1), 10**9)
    assert "characters" in excess_of(["x" * 1_000_000] * (MOST_BYTES // 1_000_000 + 1), 10**9)
    assert "bytes" in excess_of("x" * 100, 50)
    assert excess_of({"a": [1, "b", None]}, 50) == ""


def test_a_join_of_all_that_tolerates_nothing_never_stops_a_node() -> None:
    graph = program(task("a"), task("b"), task("j", "a", "b", join=Join())).graph
    saga = Saga(Program(replace(graph), KINDS))
    saga.go()
    assert ready(saga.go(done("a"), running=["b"])) == []
    assert ready(saga.go(done("b"))) == ["j"]
