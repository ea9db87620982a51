"""Going on from a failure: which nodes run and which do not, in loops too, and what `last_error` says there."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.context import NOTHING, EvaluationContext
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.log import events as ev
from baton.core.log.state import status_of
from baton.core.nodes.registry import KINDS
from tests.core.asked import steps_of
from tests.core.build import T0, Saga, done, ready, tool_spec
from tests.core.build import failed as broken
from tests.core.compiling import document
from tests.core.failing import chosen
from tests.kit.sentences import Says

FETCH = replace(tool_spec("fetch", {}, x={}, y={}, z={}), domain="external_api")
AT_ONCE = "on_failure: [rollback]"


def saga(nodes: str, *more: str) -> Saga:
    text = document(nodes.replace("a: {", "a: {tool: fetch, "), *(more or (AT_ONCE,)))
    tools = {"t": tool_spec("t", {}, x={}, y={}, z={}), "fetch": FETCH}
    return Saga(Program(compile_document(text, tools), KINDS))


def given(saga: Saga) -> Any:
    (run,) = steps_of(saga.decision)
    return run.arguments


def skipped(saga: Saga) -> list[str]:
    events = (event for entry in saga.entries for event in entry.events)
    return [event.node for event in events if isinstance(event, ev.NodeSkipped)]


def test_handlers_are_skipped_when_nothing_has_failed() -> None:
    one = saga("a: {catch: [{code: timeout, then: h}, {then: [h, k]}]}, b: {after: a}, h: {}, k: {}")
    assert ready(one.go(done("a"))) == ["b"]
    assert sorted(skipped(one)) == ["h", "k"]
    one.go(done("b"))
    assert status_of(one.state) == "completed"


def test_only_the_handlers_of_the_rule_that_fits_run() -> None:
    rules = "[{if: last_error.code == 'other', then: h}, {class: permanent, then: h}, {then: k}]"
    one = saga(f"a: {{catch: {rules}}}, b: {{after: a}}, h: {{}}, k: {{}}")
    assert ready(one.go(broken("a"))) == ["k"]
    assert sorted(skipped(one)) == ["b", "h"]
    (event,) = (event for event in one.entries[-1].events if isinstance(event, ev.StepFailed))
    assert event.way == "catch 3"


def test_the_last_error_says_all_that_is_known_of_the_failure() -> None:
    one = saga("a: {catch: h}, h: {with: {x: '${last_error}'}}")
    failure = ev.Failure("rate_limited", "wait a bit", "a", status=429)
    one.go(replace_failure(broken("a"), failure))
    assert given(one) == {
        "x": {
            "code": "rate_limited",
            "class": "transient",
            "message": "wait a bit",
            "retryable": True,
            "node": "a",
            "action": "fetch",
            "domain": "external_api",
            "status": 429,
            "attempt": 1,
            "at": "2023-11-14T22:13:20.005Z",
            "errors": [],
        }
    }


JOINED = (
    "a: {}, b: {}, c: {}, "
    "j: {after: [a, b, c], join: {%s}, catch: [{if: \"last_error.errors.exists(e, e.code == 'no_b')\", then: h}, {then: k}]}, "
    "h: {with: {x: '${last_error.errors}', y: '${ctx.a.output?}', z: '${ctx.c.output?}'}}, k: {}"
)


def test_what_catches_a_failed_join_reads_the_errors_and_the_outputs_of_its_branches() -> None:
    one = saga(JOINED % "tolerated_failures: 1")
    one.go(done("a", {"n": 1}))
    one.go(broken("b", "no_b"))
    assert ready(one.go(broken("c", "no_c"))) == ["h"]
    assert given(one) == {
        "x": [
            {"node": "c", "code": "no_c", "message": "it broke"},
            {"node": "b", "code": "no_b", "message": "it broke"},
        ],
        "y": {"n": 1},
        "z": None,
    }


@pytest.mark.parametrize("order", ["abc", "cab", "bca"])
def test_the_last_error_of_a_handler_that_several_share_is_the_newest(order: str) -> None:
    one = saga(
        "a: {catch: h}, b: {catch: h}, c: {catch: h}, h: {with: {x: '${last_error.code}', y: '${join.errors}'}}"
    )
    for name in order:
        one.go(broken(name, f"no_{name}"))
    assert given(one)["x"] == f"no_{order[-1]}"
    assert [error["node"] for error in given(one)["y"]] == [*reversed(order)]


@pytest.mark.parametrize(
    ("join", "fail"),
    [
        ("tolerated_failures: 0", "b"),
        ("tolerated_failures: 1", "bc"),
        ("wait_for: 3, tolerated_failures: 2", "b"),
    ],
)
def test_a_failed_join_says_how_many_have_failed_and_how_many_may(join: str, fail: str, says: Says) -> None:
    one = saga((JOINED % join).partition(", catch")[0] + ", catch: h}, h: {with: {x: '${last_error}'}}")
    for name in fail:
        one.go(broken(name, f"no_{name}"))
    failure = given(one)["x"]
    assert failure["code"] == "join_failed"
    says(failure["message"])


@pytest.mark.parametrize(
    "join", ["tolerated_failures: 0", "tolerated_failures: 33%", "wait_for: 3, tolerated_failures: 2"]
)
def test_a_saga_fails_with_the_join_that_a_failure_before_it_fails(join: str) -> None:
    one = saga((JOINED % join).partition(", catch")[0] + "}")
    one.go(broken("b", "no_b"))
    failure = one.state.failure or (one.state.ended and one.state.ended.failure)
    assert failure
    assert (failure.code, failure.node, [error.code for error in failure.errors]) == (
        "join_failed",
        "j",
        ["no_b"],
    )
    assert status_of(one.state) == "failed"


def test_a_step_before_a_join_that_counts_failures_asks_no_person() -> None:
    nodes = "a: {}, b: {}, j: {after: [a, b], join: {tolerated_failures: 0}}"
    one = saga(nodes, "")
    one.go(broken("b", "login_required"))
    assert chosen(one) == []


def test_a_failure_that_was_caught_on_the_way_is_not_counted_with_those_that_failed(says: Says) -> None:
    one = saga("a: {catch: j}, b: {}, c: {}, j: {after: [b, c], join: {tolerated_failures: 1}}")
    one.go(broken("a", "no_a"))
    one.go(broken("b", "no_b"))
    one.go(broken("c", "no_c"))
    failure = one.state.failure or (one.state.ended and one.state.ended.failure)
    assert failure
    says(failure.message)


def test_a_failed_join_carries_a_bounded_part_of_what_failed() -> None:
    many = [f"n{number}" for number in range(30)]
    one = saga(
        ", ".join(f"{name}: {{}}" for name in many)
        + f", j: {{after: [{', '.join(many)}], join: {{tolerated_failures: 29}}, catch: h}}, h: {{with: {{x: '${{last_error}}'}}}}"
    )
    for name in many:
        outcome = broken(name)
        one.go(replace_failure(outcome, ev.Failure("no", "x" * 2_000, name)))
    (error, *others) = given(one)["x"]["errors"]
    assert (len(error["message"]), len(others)) == (500, 19)


def replace_failure(outcome: Any, failure: ev.Failure) -> Any:
    return type(outcome)(
        slot=outcome.slot, attempt=1, started_at=T0, ended_at=outcome.ended_at, failure=failure
    )


def test_a_failure_that_was_no_attempt_is_caught_like_any_other() -> None:
    one = saga(
        "s: {}, a: {after: s, with: {x: '${ctx.s.output.x}'}, catch: h}, h: {with: {x: '${last_error}'}}"
    )
    assert ready(one.go(done("s", {}))) == ["h"]
    error = given(one)["x"]
    assert (error["code"], error["class"], error["at"], error["attempt"]) == (
        "input_unbound",
        "permanent",
        None,
        0,
    )


def test_what_was_done_but_cannot_go_on_is_caught_and_has_given_nothing() -> None:
    one = saga(
        "a: {catch: h, branch: {rules: [{if: output.x > 1, then: b}]}}, b: {}, h: {with: {x: '${ctx.a.output?}'}}"
    )
    assert ready(one.go(done("a", {}))) == ["h"]
    assert given(one) == {"x": None}


def test_a_node_behind_a_handler_knows_nothing_of_the_failure() -> None:
    one = saga("a: {catch: h}, h: {}, z: {after: [h], with: {x: '${last_error}'}}")
    one.go(broken("a"))
    one.go(done("h"))
    assert given(one) == {"x": None}


def test_a_handler_of_several_knows_what_failed_and_what_did_not() -> None:
    one = saga(
        "a: {catch: h}, b: {catch: h}, c: {}, h: {after: c, join: {tolerated_failures: 1}, "
        "with: {x: '${join.errors}', y: '${join.outputs}', z: '${last_error.node}'}}"
    )
    one.go(broken("c"))
    one.go(done("a", 1))
    one.go(broken("b"))
    assert [error["node"] for error in given(one)["x"]] == ["b", "c"]
    assert (given(one)["y"], given(one)["z"]) == ({}, "b")


LOOP = "f: {}, a: {after: f, %s}, t: {after: a, loop: {while: 'true', max_iterations: 3, timeout_path: z, back_to: f}}, z: {}"


def test_a_failure_leads_out_of_its_loop() -> None:
    one = saga(LOOP % "catch: h" + ", h: {with: {x: '${last_error.code}'}}")
    for slot in ("f@0", "a@0", "t@0", "f@1"):
        one.go(done(slot))
    assert ready(one.go(broken("a@1"))) == ["h"]
    one.go(done("h"))
    assert status_of(one.state) == "completed"
    assert "z" in skipped(one)


def test_a_failure_whose_handler_is_in_the_loop_stays_in_it() -> None:
    one = saga((LOOP % "catch: h").replace("t: {after: a,", "h: {}, t: {after: [a, h],"))
    one.go(done("f@0"))
    assert ready(one.go(broken("a@0"))) == ["h@0"]
    assert ready(one.go(done("h@0"))) == ["t@0"]
    assert ready(one.go(done("t@0"))) == ["f@1"]


@pytest.mark.parametrize("fails", [True, False])
def test_the_last_node_of_a_loop_leaves_it_by_its_failure_or_when_its_rounds_are_used_up(
    *, fails: bool
) -> None:
    one = saga("a: {loop: {while: 'true', max_iterations: 2}, catch: h}, b: {after: a}, h: {with: {x: '${last_error.code}'}}")  # fmt: skip
    one.go(done("a@0"))
    assert ready(one.go(broken("a@1") if fails else done("a@1"))) == ["h"]
    assert given(one) == {"x": "tool_error" if fails else "loop_exhausted"}
    assert skipped(one) == ["b"]


def test_in_a_policy_the_last_error_has_the_parameters_too() -> None:
    one = saga("a: {}")
    scope = EvaluationContext(one.program, one.state, NOTHING, "a")
    failure = ev.Failure("timeout", "slow", "gone", kind="unknown")
    path = one.program.arguments["a"]
    assert path.paths == ()
    about = scope.blaming(failure, {"x": 1})._last_error(failure)
    assert (about["parameters"], about["class"], about["retryable"], about["domain"]) == (
        {"x": 1},
        "unknown",
        True,
        "",
    )
    assert "parameters" not in scope.blaming(failure)._last_error(failure)
