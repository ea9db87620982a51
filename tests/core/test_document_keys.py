"""The key that a document gives to a call, and how long the question about a failed step waits."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.documents.compile import compile_document
from baton.core.effects.toolspec import ONCE
from baton.core.failures.policy import PolicyChange
from baton.errors import InvalidDefinition
from tests.core.asked import steps_of
from tests.core.build import TOOLS, Saga, failed, program, task
from tests.core.strategies import ASK_USER, ROLLBACK


def keyed(key: str, given: Any) -> Saga:
    saga = Saga(program(task("a", arguments={"n": 1}, key=key)), given)
    saga.go()
    return saga


@pytest.mark.parametrize(("given", "key"), [("A 1", "A 1"), (7, "7"), ({"b": 1}, '{"b":1}')])
def test_the_key_of_a_call_is_what_its_expression_gives(given: Any, key: str) -> None:
    (step,) = steps_of(keyed("${input}", given).decision)
    assert step.key == key


@pytest.mark.parametrize("given", [None, " "])
def test_an_empty_key_fails_the_step(given: Any) -> None:
    saga = keyed("${input}", given)
    assert saga.state.failure is not None
    assert saga.state.failure.code == "key_incomplete"


def test_a_key_that_cannot_be_made_fails_the_step() -> None:
    saga = keyed("${input.missing.further}", {})
    assert saga.state.failure is not None
    assert saga.state.failure.code == "input_unbound"


def test_a_question_waits_as_long_as_its_rule_says() -> None:
    rule = PolicyChange(ladder=(ASK_USER, ROLLBACK), expires_ms=5_000)
    saga = Saga(program(task("a"), failures={"any": rule}))
    saga.go()
    saga.go(failed("a"))
    (failing,) = saga.state.failing.values()
    assert failing.ask is not None
    assert failing.ask.expires_at == failing.ask.asked_at + 5_000


def compiled(fields: str, **spec: Any) -> Any:
    tools = {**TOOLS, "t": replace(TOOLS["t"], **spec)}
    return compile_document(f"name: w\nnodes:\n  a: {{tool: t, {fields}}}\n", tools)


@pytest.mark.parametrize("spec", [{"sees_key": True}, {"effect": ONCE, "sees_key": False}])
def test_a_task_has_the_key_of_its_document(spec: dict[str, Any]) -> None:
    (node,) = compiled('key: "${input.n}"', **spec).nodes
    assert node.key == "${input.n}"


@pytest.mark.parametrize("fields", ["key: one", "callback: 1h", "key: one, callback: 1h"])
def test_a_tool_that_takes_no_context_takes_no_key_and_no_callback(fields: str) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        compiled(fields, effect="idempotent", sees_key=False)
    assert {problem.path.rpartition("/")[2] for problem in refused.value.problems} <= {"key", "callback"}
