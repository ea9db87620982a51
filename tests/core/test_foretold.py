"""What will happen when a step fails for good, in words, as the compiled rules have it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.failures.policy import PolicyChange
from baton.core.log.state import status_of
from baton.core.nodes.registry import KINDS
from baton.core.read.definition_views import MOST, by_class, foretold
from baton.core.read.views import saga_view
from tests.core.asked import steps_of
from tests.core.build import TOOLS, Saga, program, task
from tests.core.failing import DAY, broken, chosen
from tests.core.test_undoing import undoable
from tests.kit.sentences import Says
from tests.kit.views import as_json

ASKS = "asks the starter for 24h"
ABOVE = "fails, and the saga above goes on"


def told(a: str = "tool: t", rest: str = "", **start: Any) -> Any:
    """For the task `a`, beside a node `h`."""
    text = f"name: w\n{rest}\nnodes: {{a: {{{a}}}, h: {{value: 1}}}}"
    return as_json(foretold(Program(compile_document(text, TOOLS), KINDS), **start))


@pytest.mark.parametrize(
    ("nodes", "rest"),
    [
        ("{f: {function: f}}", ""),
        ("{f: {function: f}}", "on_failure: fail"),
        ("{f: {function: f, catch: h}, h: {value: 1}}", ""),
        ("{f: {function: f}, h: {value: 1}}", ""),
    ],
)
def test_a_failed_step_of_a_function_raises_in_it(nodes: str, rest: str, says: Says) -> None:
    spec = replace(TOOLS["t"], name="f", calls=("t",), parameters={"type": "object"})
    graph = compile_document(f"name: w\n{rest}\nnodes: {nodes}", {**TOOLS, "f": spec})
    for handled in (False, True):
        found = foretold(Program(graph, KINDS), handled=handled)
        says([found.steps, *found.nodes.values()][-1])


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ("", f"{ASKS}, then fails; permanent: fails"),
        ("on_failure: fail", "fails"),
        ("on_failure: rollback", "fails"),
        ("on_failure: ask", f"{ASKS}, then fails"),
        ("on_failure: escalate", "opens an incident"),
        ("on_failure: [retry, ask, escalate]", f"{ASKS}, then opens an incident"),
        ("on_failure: {permanent: escalate}", f"{ASKS}, then fails; permanent: opens an incident"),
        (
            "on_failure: {any: {ladder: [ask, fail], escalate: [{after: 1h, remind: true}]}}",
            "asks the starter for 25h, then fails",
        ),
        (
            "on_failure: {any: {ladder: [ask, fail], escalate: [{after: 90m, decide: fail}]}}",
            "asks the starter for 1.5h, then fails",
        ),
        ("on_failure: {any: {at_most: {ask_user: 0}}}", "fails"),
    ],
)
def test_what_a_document_says_is_told_in_words(rest: str, words: str) -> None:
    assert told(rest=rest) == {"steps": words, "nodes": {}}


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ({"last": "fail"}, "fails"),
        ({"last": "escalate"}, "opens an incident; permanent: fails"),
        ({"handled": True}, ABOVE),
        ({"handled": True, "last": "escalate"}, ABOVE),
    ],
)
def test_what_a_saga_was_started_with_counts(start: dict[str, Any], words: str) -> None:
    assert told(**start)["steps"] == words


@pytest.mark.parametrize(
    "node",
    [
        "catch: h",
        "catch: h, on_failure: ask",
        "catch: {class: permanent, then: h}",
        "catch: {code: [timeout], then: h}",
        "catch: {if: 'last_error.attempt > 2', then: h}",
        "catch: {if: 'last_error.attempt > 2', then: h}, on_failure: ask",
        "on_failure: escalate",
    ],
)
def test_a_node_that_does_something_else_has_words_of_its_own(node: str, says: Says) -> None:
    says(told(f"tool: t, {node}")["nodes"])


def test_a_failure_that_a_join_tolerates_is_the_joins(says: Says) -> None:
    text = "name: w\nnodes: {a: {tool: t}, b: {tool: t}, j: {tool: t, after: [a, b], join: {tolerated_failures: 1}}}"
    found = as_json(foretold(Program(compile_document(text, TOOLS), KINDS)))
    says(found["nodes"])
    assert found["steps"].startswith(ASKS)


@pytest.mark.parametrize(
    ("join", "is_taken"),
    [
        ("join: any", False),
        ("join: {wait_for: 2, rest: run}, catch: h", False),
        # Also where one failure is too many: what fails then is the join.
        ("join: {tolerated_failures: 0}", True),
        ("join: {tolerated_failures: 49%}", True),
        ("join: {wait_for: 2, tolerated_failures: 1}", True),
    ],
)
def test_a_failure_is_the_joins_where_it_says_how_many_it_tolerates(
    join: str, *, is_taken: bool, says: Says
) -> None:
    text = f"name: w\nnodes: {{a: {{tool: t}}, b: {{tool: t}}, j: {{tool: t, after: [a, b], {join}}}, h: {{value: 1}}}}"
    found = as_json(foretold(Program(compile_document(text, TOOLS), KINDS)))
    if is_taken:
        says({found["nodes"][name] for name in "ab"})
    else:
        assert found["nodes"].keys().isdisjoint("ab")
        assert found["steps"].startswith(ASKS)


def test_a_join_around_takes_the_failure_of_one_that_takes_none(says: Says) -> None:
    text = (
        "name: w\nnodes: {a: {tool: t}, j: {tool: t, after: a, join: {tolerated_failures: 0}}, "
        "k: {tool: t, after: j, join: {tolerated_failures: 1}}}"
    )
    found = as_json(foretold(Program(compile_document(text, TOOLS), KINDS)))
    says(found["nodes"])


def classes(text: str) -> dict[str, Any]:
    return by_class(Program(compile_document(f"name: w\n{text}", TOOLS), KINDS))


def counts(found: dict[str, dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """Attempts and milliseconds of the classes that are tried again."""
    return {kind: (one["attempts"], one["over_ms"]) for kind, one in found.items() if one["attempts"] > 1}


def test_attempts_are_counted_by_class_with_the_time_that_their_pauses_last() -> None:
    usual = {"transient": (5, 15_000), "unknown": (4, 7_000)}
    found = classes(
        "nodes: {a: {tool: t}, b: {tool: t, retry: {schedule: [1s, 1m]}}, v: {value: 1}, "
        "c: {tool: t, on_failure: {any: [retry, rollback], permanent: {ladder: [retry], retry: immediate}}}, "
        "d: {tool: t, on_failure: [rollback]}, e: {tool: t, catch: v}}"
    )
    assert counts(found["steps"]) == usual
    assert found["nodes"].keys() == {"b", "c", "d"}
    assert counts(found["nodes"]["b"]) == {"transient": (3, 61_000), "unknown": (3, 61_000)}
    tried = dict.fromkeys(("transient", "recoverable", "user_resolvable", "catastrophic"), (5, 15000))
    assert counts(found["nodes"]["c"]) == {**tried, "unknown": (4, 7_000), "permanent": (3, 0)}
    assert counts(found["nodes"]["d"]) == {}


def test_it_is_said_after_which_classes_what_was_done_is_undone() -> None:
    pay = "pay: {tool: t, after: a, on_failure: {any: fail, permanent: rollback}}"
    found = classes(
        f"nodes: {{a: {{tool: t, compensate: {{tool: t, with: {{}}}}}}, {pay}, b: {{tool: t, catch: v}}, v: {{value: 1}}}}"
    )
    assert {one["undone"] for one in found["steps"].values()} == {True}
    assert [kind for kind, one in found["nodes"]["pay"].items() if one["undone"]] == ["permanent"]
    assert not any(one["undone"] for one in found["nodes"]["b"].values())


def test_the_attempts_of_a_few_nodes_are_told_one_by_one() -> None:
    few = ", ".join(f"n{index}: {{tool: t, retry: none}}" for index in range(MOST + 1))
    found = classes(f"nodes: {{{few}}}")
    assert (len(found["nodes"]), counts(found["steps"])) == (
        MOST,
        {"transient": (5, 15_000), "unknown": (4, 7_000)},
    )
    assert classes("nodes: {a: {tool: t, retry: none}}")["steps"] == {}
    assert classes("nodes: {a: {value: 1}}") == {"steps": {}, "nodes": {}}


def test_where_no_task_does_as_the_document_says_only_the_nodes_are_told() -> None:
    assert told("value: 1") == {"steps": "", "nodes": {}}
    assert told("tool: t, on_failure: fail") == {"steps": "", "nodes": {"a": "fails"}}


def test_of_many_nodes_only_the_first_are_told() -> None:
    own = {"any": PolicyChange(last="fail")}
    graph = program(*(task(f"n{i}", failures=own) for i in range(MOST + 5)), failures={})
    found = as_json(foretold(graph))
    assert (len(found["nodes"]), found["steps"][: len(ASKS)]) == (MOST, ASKS)


@pytest.mark.no_cover
@pytest.mark.parametrize("own", ["", "catch: h", "on_failure: escalate", "on_failure: ask, catch: h"])
@pytest.mark.parametrize(
    "rest", ["", "on_failure: ask", "on_failure: fail", "on_failure: [retry, ask, escalate]"]
)
@pytest.mark.parametrize("start", [{}, {"handled": True}, {"last": "fail"}, {"last": "escalate"}])
def test_what_is_foretold_is_what_happens(own: str, rest: str, start: dict[str, Any]) -> None:
    text = f"name: w\n{rest}\nnodes: {{a: {{tool: t, {own}}}, h: {{value: 1}}}}"
    graph = Program(compile_document(text, TOOLS), KINDS)
    found = as_json(foretold(graph, **start))
    saga = Saga(graph, **start)
    while saga.state.ended is None and saga.state.parked is None:
        if status_of(saga.state) == "suspended":
            saga.go(after_ms=DAY)
            continue
        step = steps_of(saga.go(after_ms=30_000))
        saga.go(*(broken("a", "tool_error", attempt=one.attempt, at=saga.now) for one in step))
    done = [strategy for strategy in chosen(saga) if strategy != "retry"]
    usual = found["nodes"].get("a", found["steps"]).partition(";")[0]
    assert (ASKS in usual, "an incident" in usual) == ("ask_user" in done, "escalate" in done)
    assert ("goes on with `h`" in usual) == (status_of(saga.state) == "completed")


def test_a_saga_that_goes_on_tells_it_and_one_that_has_ended_does_not() -> None:
    saga = Saga(program(task("a"), failures={}), last="fail")
    assert as_json(saga_view(saga.state, saga.program))["on_failure"] == {"steps": "fails", "nodes": {}}
    saga.cancel(grace_ms=0)
    saga.go()
    assert as_json(saga_view(saga.state, saga.program))["on_failure"] is None


@pytest.mark.parametrize(
    ("rules", "handled"),
    [
        ({"any": PolicyChange(ladder=("rollback",))}, False),
        ({"any": PolicyChange(ladder=("rollback",))}, True),
        ({"any": PolicyChange(last="fail")}, False),
    ],
)
def test_where_something_undoes_what_was_done_the_forecast_says_so(
    rules: dict[str, PolicyChange], handled: bool, says: Says
) -> None:
    found = as_json(foretold(program(replace(undoable("a"), failures=rules)), handled=handled))
    says((found["nodes"] or {"a": found["steps"]})["a"])
