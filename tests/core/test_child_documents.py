"""How a child workflow with rules, a time and any input is written, and what is refused."""

from __future__ import annotations

import pytest

from tests.core.compiling import node, told
from tests.kit.sentences import Says

PROBLEMS = [
    ("a: {workflow: v, on_failure: {any: replan}}", "/nodes/a/on_failure/any/ladder"),
    ("a: {workflow: v, on_failure: retry}", "/nodes/a/on_failure/any/ladder"),
    ("a: {workflow: v, retry: {on: chid_failed}}", "/nodes/a/retry/on"),
    ("a: {retry: {on: child_failed}}", "/nodes/a/retry/on"),
    ("a: {workflow: v, retry: {on: [child_failed, timeout]}}", "/nodes/a/retry/on/0"),
    ("a: {workflow: v, on_failure: {child_failed: ask}}", "/nodes/a/on_failure/child_failed"),
    ("a: {workflow: v, with: {x: 1}, input: 2}", "/nodes/a/input"),
    ("a: {input: 2}", "/nodes/a"),
    ("a: {workflow: v, on_failure: {timeout: {ladder: [replan]}}}", "/nodes/a/on_failure/timeout/ladder"),
    ("a: {workflow: v, on_failure: {any: {ladder: [retry], before_retry: [t]}}}", "/nodes/a/on_failure/any/before_retry"),
    ("a: {workflow: w}", "/nodes/a/workflow"),
    ("a: {}, b: {workflow: w, after: a}", "/nodes/b/workflow"),
    ("a: {workflow: v, failover: [{name: x, when: {code: y}, then: {tool: t}}]}", "/nodes/a"),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "path"), PROBLEMS)
def test_what_is_refused(nodes: str, path: str, says: Says) -> None:
    found = told(nodes)
    assert path in [place for place, _, _ in found]
    says(found)


@pytest.mark.parametrize(
    "nodes",
    [
        "a: {workflow: w, when: input.more}",
        "a: {branch: {rules: [{if: output.score > 1, then: b}]}}, b: {workflow: w}",
        "a: {workflow: w@3}",
        "a: {workflow: v, timeout: 30d, retry: critical, on_failure: {timeout: ask_user}, catch: {code: timeout, then: b}}, b: {}",
        "a: {workflow: v, retry: {max_attempts: 3, on: [join_failed, limit_cost]}}",
        "a: {workflow: v, retry: {never: join_failed}, on_failure: {any: ask, map_failed: [retry]}}",
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
