"""A `fail` node ends the saga as failed, with the author's code and message; nothing comes after it."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.documents.models import kind_named
from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.state import status_of
from baton.core.nodes.registry import KINDS
from tests.core.build import Saga, child, done, failed, program, ready, task
from tests.core.compiling import TOOLS, compiled, document, reads, told
from tests.kit.sentences import Says

FAIL = "{code: out_of_stock, message: '${ctx.a.output.next} is sold out'}"


def saga_of(nodes: str, given: Any = None, *more: str, **started: Any) -> Saga:
    text = document(nodes, *more)
    return Saga(Program(compile_document(text, TOOLS), KINDS), given, **started)


def failure_of(saga: Saga) -> ev.Failure:
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert status_of(saga.state) == "failed"
    return saga.state.ended.failure


# ---- what it does


def test_the_saga_ends_as_failed_with_the_code_the_message_and_the_class() -> None:
    saga = saga_of(f"a: {{}}, no: {{fail: {FAIL}, after: a}}")
    saga.go()
    saga.go(done("a", {"next": "Riesling"}))
    assert saga.kinds == ["step_succeeded", "step_failed", "saga_ended"]
    expected = ev.Failure("out_of_stock", "Riesling is sold out", "no", "permanent")
    assert failure_of(saga) == expected


@pytest.mark.parametrize("last", ["", "fail", "escalate"])
@pytest.mark.parametrize("class_", ["transient", "user_resolvable", "catastrophic", "unknown"])
def test_nothing_is_done_about_it_whatever_the_defaults_and_the_document_say(last: str, class_: str) -> None:
    fail = f"{{code: rate_limited, message: no, class: {class_}}}"
    saga = saga_of(f"no: {{fail: {fail}}}", None, "on_failure: ask_user", "retry: critical", last=last)
    saga.go()
    assert saga.kinds == ["step_failed", "saga_ended"]
    assert failure_of(saga).kind == class_
    assert saga.state.outbox.due == ()


def test_a_code_of_the_table_has_the_class_of_the_table_unless_another_is_named() -> None:
    (node,) = compiled("no: {fail: {code: timeout, message: late}}").nodes
    assert node.value == {"code": "timeout", "message": "late", "class": "transient"}


def test_a_message_that_is_no_text_is_written_as_json() -> None:
    saga = saga_of("no: {fail: {code: odd, message: '${input}'}}", {"n": 1})
    saga.go()
    assert failure_of(saga).message == '{"n": 1}'


def test_a_message_whose_values_are_not_there_does_not_hide_the_code(says: Says) -> None:
    saga = saga_of("no: {fail: {code: odd, message: '${input.who.name}'}}", {"who": {}})
    saga.go()
    found = failure_of(saga)
    assert found.code == "odd"
    says(found.message)


def test_secrets_in_the_message_are_masked() -> None:
    saga = saga_of(
        "no: {fail: {code: odd, message: 'login ${input.said}'}}", {"said": "password=hunter2secret"}
    )
    saga.go()
    assert "hunter2secret" not in failure_of(saga).message


def test_what_still_runs_may_end_as_with_any_failure() -> None:
    saga = saga_of("a: {}, b: {}, no: {fail: {code: odd, message: m}, after: a}")
    saga.go()
    saga.go(done("a"), running=["b"])
    assert (saga.state.ended, saga.kinds) == (None, ["step_succeeded", "step_failed"])
    saga.go(done("b"))
    assert failure_of(saga).code == "odd"


def test_a_fail_whose_when_says_no_is_skipped() -> None:
    saga = saga_of("no: {fail: {code: odd, message: m}, when: input.bad}", {"bad": False}, "output: fine")
    saga.go()
    assert saga.kinds == ["node_skipped", "saga_ended"]
    assert status_of(saga.state) == "completed"


def test_a_handler_can_fail_with_a_code_of_its_own() -> None:
    saga = saga_of(
        "a: {catch: no, on_failure: [rollback]}, no: {fail: {code: declined, message: '${last_error.code}: ${last_error.message}'}}"
    )
    saga.go()
    saga.go(failed("a", "not_found"))
    found = failure_of(saga)
    assert (found.code, found.message) == ("declined", "not_found: it broke")


def test_a_fail_that_a_loop_is_left_for_ends_the_saga() -> None:
    saga = saga_of(
        "a: {branch: {rules: [{if: output.score < 0, then: no}], default: t}},"
        " t: {loop: {AGAIN, back_to: a, max_iterations: 9}, after: a},"
        " no: {fail: {code: odd, message: 'round ${ctx.a.output.score}'}}"
    )
    saga.go()
    saga.go(done("a@0", {"score": 1}))
    saga.go(done("t@0", {"score": 1}))
    saga.go(done("a@1", {"score": -1}))
    assert (failure_of(saga).code, failure_of(saga).message) == ("odd", "round -1")


def test_a_parent_sees_the_code_and_the_message_of_its_child(says: Says) -> None:
    saga = Saga(program(child("c"), task("h", "c")))
    saga.go()
    why = ev.Failure("out_of_stock", "the wine is sold out", "no", "permanent")
    saga.put(
        ev.ChildReported(slot="c", child="s1.0.c", status="failed", failure=why), epoch=0, invocation="relay"
    )
    saga.go()
    found = failure_of(saga)
    assert found.code == "child_failed"
    says(found.message)
    says(found.errors)


def test_a_join_that_tolerates_failures_is_stopped_with_the_saga() -> None:
    saga = saga_of(
        "a: {}, b: {}, no: {fail: {code: odd, message: m}, after: a},"
        " j: {after: [a, b], join: {wait_for: all, tolerated_failures: 1}}"
    )
    saga.go()
    saga.go(done("a"), running=["b"])
    decision = saga.go(done("b"))
    assert ready(decision) == []
    assert failure_of(saga).code == "odd"


def test_what_waits_for_it_and_what_fails_are_decided_in_the_order_of_the_graph() -> None:
    """Whatever begins in the same moment cannot make the saga fail otherwise."""
    saga = saga_of(
        "a: {branch: {rules: [{if: output.score < 0, then: no}], default: b}},"
        " b: {}, c: {}, no: {fail: {code: odd, message: m}},"
        " j: {after: [b, c], value: '${ctx.b.output.score}'}"
    )
    saga.go()
    saga.go(done("c"), done("a", {"score": -1}))
    assert failure_of(saga).code == "odd"


# ---- how it is written


def problem(nodes: str) -> tuple[str, str, str]:
    (found,) = told(nodes)
    return found


@pytest.mark.parametrize(
    "after",
    ["b: {after: no}", "b: {after: [a, no]}", "b: {after: [a, no], join: {tolerated_failures: 1}}"],
)
def test_nothing_comes_after_it(after: str, says: Says) -> None:
    says(problem(f"a: {{}}, no: {{fail: {FAIL}, after: a}}, {after}"))


@pytest.mark.parametrize(
    "field", ["catch: b", "branch: {choose: input.x, among: b}", "retry: quick", "output_schema: {}"]
)
def test_what_goes_on_from_a_node_is_refused(field: str, says: Says) -> None:
    path, message, _ = problem(f"no: {{fail: {{code: x, message: m}}, {field}}}, b: {{}}")
    assert path == "/nodes/no"
    says(message)


@pytest.mark.parametrize(
    ("fail", "path", "hint"),
    [
        ("out_of_stock", "/nodes/no/fail", "write `fail: {code: out_of_stock, message: …}`"),
        ("{code: TimeoutError, message: m}", "/nodes/no/fail/code", "timeout"),
        ("{code: permanent, message: m}", "/nodes/no/fail/code", "class: permanent"),
        ("{code: timeot, message: m}", "/nodes/no/fail/code", "`timeout`"),
        ("{code: x, message: m, class: fatal}", "/nodes/no/fail/class", ""),
        ("{code: x}", "/nodes/no/fail/message", ""),
        ("{code: x, message: '${ctx.zzz.output}'}", "/nodes/no/fail/message", ""),
        ("{code: x, message: m, reason: y}", "/nodes/no/fail/reason", "message"),
    ],
)
def test_what_is_wrong_with_it_is_told(fail: str, path: str, hint: str, says: Says) -> None:
    found = told(f"no: {{fail: {fail}}}")
    assert found[0][0] == path
    says(found[0][1])
    assert hint in found[0][2]


def test_what_only_a_way_into_a_fail_is_without_is_sure_elsewhere() -> None:
    nodes = (
        "a: {branch: {rules: [{if: output.score < 0, then: no}], default: b}}, b: {}, c: {after: [b]},"
        " no: {fail: {code: odd, message: m}}"
    )
    assert reads("", "b", nodes)
    assert reads("c", "b", nodes)
    assert not reads("", "b", nodes.replace("message: m}", "message: m}, when: input.x"))


def test_what_is_caught_only_to_fail_is_sure_to_have_run() -> None:
    nodes = "a: {catch: no}, b: {after: a}, c: {}, d: {after: [b, c]}, no: {fail: {code: odd, message: m}}"
    assert reads("", "a", nodes)
    assert reads("", "d", nodes)


SHARED = "a: {branch: {rules: [{if: output.score > 1, then: b}], default: no}}, b: {catch: %s}%s, no: {fail: {code: odd, message: m}%s}"


def test_what_only_ways_into_a_shared_fail_are_without_is_sure_elsewhere() -> None:
    nodes = SHARED % ("no", ", z: {after: [a, b]}, y: {after: a}", "")
    assert reads("", "b", nodes)
    assert reads("z", "b", nodes), "it does not begin beside the end"
    assert not reads("y", "b", nodes)


def test_what_begins_while_a_shared_fail_still_waits_cannot_count_on_that() -> None:
    nodes = SHARED % ("no", ", slow: {}, z: {after: [a, b]}, x: {after: [a, b, slow]}", ", after: slow")
    assert reads("", "b", nodes)
    assert not reads("z", "b", nodes)
    assert reads("x", "b", nodes)


def test_a_shared_fail_behind_handlers_ends_every_saga_that_they_run_in() -> None:
    nodes = (
        "a: {}, b: {after: a, catch: h}, q: {after: a, catch: k}, h: {}, k: {}, d: {after: [b, q]},"
        " no: {fail: {code: odd, message: m}, after: [h, k]%s}"
    )
    assert reads("", "d", nodes % "")
    assert reads("", "d", nodes % ", join: any")
    assert not reads("", "d", nodes % ", join: 2")
    assert not reads("", "d", nodes.replace("k: {}", "k: {when: input.x}") % "")


@pytest.mark.parametrize(
    ("branch", "is_sure"),
    [
        ("{rules: [{if: output.score > 1, then: b}], default: no}", True),
        ("{rules: [{if: output.score > 1, then: [b, no]}], default: no}", False),
        ("{choose: output.next, among: [b, no]}", False),
        ("{choose: output.next, among: [b, no], default: no}", False),
    ],
)
def test_of_two_ways_out_of_a_branch_one_loses_no_edge_of_the_other(branch: str, *, is_sure: bool) -> None:
    """`b` chooses the fail, too, and a failure of it is caught: an edge into the fail is lost only where `b` was chosen."""
    nodes = (
        f"a: {{branch: {branch}}}, b: {{catch: h, branch: {{rules: [{{if: output.score > 1, then: c}}], default: no}}}}, c: {{}},"
        " h: {}, g: {after: [b, h], join: any}, no: {fail: {code: odd, message: m}}"
    )
    assert reads("", "g", nodes) == is_sure
    assert not reads("", "b", nodes)


def test_a_graph_says_only_what_is_needed() -> None:
    (node,) = compiled("no: {fail: {code: odd, message: m}}").nodes
    assert node == Node(name="no", kind="fail", value={"code": "odd", "message": "m", "class": "permanent"})


def test_it_is_shown_with_its_code_wherever_it_is_drawn() -> None:
    node = compiled("no: {fail: {code: odd, message: m}}").nodes[0]
    shown = {"kind": "fail", **KINDS["fail"].node_view(node)}
    assert (shown["code"], shown["class"]) == ("odd", "permanent")
    assert kind_named("fail").summary(shown, str) == "fail with odd"
    assert kind_named("fail").summary({"kind": "fail"}, str) == "fail"
    assert told("no: {fail: [1]}")[0][2] == ""
