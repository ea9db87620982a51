"""How a child workflow with rules, a time and any input is written, and what is refused."""

from __future__ import annotations

import pytest

from tests.core.compiling import node, told

PROBLEMS = [
    ("a: {workflow: v, on_failure: {any: replan}}", "/nodes/a/on_failure/any/ladder", "nothing else does the work of a child workflow"),
    ("a: {workflow: v, on_failure: retry}", "/nodes/a/on_failure/any/ladder", "nothing else does the work of a child workflow"),
    ("a: {workflow: v, retry: {on: chid_failed}}", "/nodes/a/retry/on", "no failure has the code `chid_failed`"),
    ("a: {retry: {on: child_failed}}", "/nodes/a/retry/on", "no attempt fails with `child_failed`, so nothing can be tried again, done another way or asked about it"),
    ("a: {workflow: v, with: {x: 1}, input: 2}", "/nodes/a/input", "`input` is the whole input of the child, and `with` makes one of its fields"),
    ("a: {input: 2}", "/nodes/a", "`input` goes with a `workflow` or a `graph`; did you mean `with`?"),
    ("a: {workflow: v, on_failure: {timeout: {ladder: [replan]}}}", "/nodes/a/on_failure/timeout/ladder", "nothing else does the work of a child workflow"),
    ("a: {workflow: v, on_failure: {any: {ladder: [retry], before_retry: [t]}}}", "/nodes/a/on_failure/any/before_retry", "`before_retry` is for the call of a tool, and a child workflow is none"),
    ("a: {workflow: w}", "/nodes/a/workflow", "every saga of this workflow would start another one, without end"),
    ("a: {}, b: {workflow: w, after: a}", "/nodes/b/workflow", "every saga of this workflow would start another one, without end"),
    ("a: {workflow: v, failover: [{name: x, when: {code: y}, then: {tool: t}}]}", "/nodes/a", "`failover` goes with a `tool`: nothing else is tried again or done another way; `catch` says where it goes on from a failure"),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "path", "message"), PROBLEMS)
def test_what_is_refused(nodes: str, path: str, message: str) -> None:
    assert (path, message) in [(place, text) for place, text, _ in told(nodes)]


@pytest.mark.parametrize(
    "nodes",
    [
        "a: {workflow: w, when: input.more}",
        "a: {branch: {rules: [{if: output.score > 1, then: b}]}}, b: {workflow: w}",
        "a: {workflow: w@3}",
        "a: {workflow: v, timeout: 30d, retry: critical, on_failure: {timeout: ask_user}, catch: {code: timeout, then: b}}, b: {}",
        "a: {workflow: v, retry: {max_attempts: 3, on: [child_failed, join_failed, limit_cost]}}",
        "a: {workflow: v, retry: {never: child_failed}, on_failure: {child_failed: ask, map_failed: [retry]}}",
        "a: {workflow: v, input: null}",
        "a: {workflow: v, input: ['${input.x}']}",
    ],
)
def test_what_is_not(nodes: str) -> None:
    assert told(nodes) == []


def test_a_child_without_any_of_it_is_compiled_as_before() -> None:
    plain = node("a", "a: {workflow: v, with: {x: 1}}")
    assert (plain.timeout_ms, plain.failures, plain.arguments) == (0, {}, {"x": 1})
    assert node("a", "a: {workflow: v}").arguments == {}
