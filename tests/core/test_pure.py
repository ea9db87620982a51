"""Pure steps in the core, and entries that hold several of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from baton.core.decide.decide import advance
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.nodes.registry import KINDS
from tests.core.build import T0, Saga, chain, done, tool_spec

TOOLS = {"look": tool_spec("look"), "act": replace(tool_spec("act"), effect="idempotent")}


def test_the_next_end_is_decided_from_the_state_that_the_entry_leads_to() -> None:
    saga = Saga(chain(2))
    first = advance(saga.program, saga.state, [done("n0")], T0)
    both = first.then(advance(saga.program, first.state, [done("n1")], T0))
    assert [type(event).__name__ for event in both.events] == ["StepSucceeded", "StepSucceeded", "SagaEnded"]
    assert both.taken == 1, "of the outcomes that the entry was begun with"
    assert both.state.ended is not None


@pytest.mark.parametrize(
    ("node", "is_pure"),
    [
        ("{tool: look}", True),
        ("{tool: act}", False),
        ("{map: {over: [1]}, tool: look}", True),
        ("{map: {over: [1]}, tool: act}", False),
        ("{agent: {model: m, prompt: Go., tools: [act, look]}}", True),
        ("{agent: {model: m, prompt: Go., tools: [act]}}", False),
    ],
)
def test_a_program_knows_whether_it_has_pure_steps(node: str, *, is_pure: bool) -> None:
    graph = compile_document(f"name: w\nnodes: {{a: {node}}}", TOOLS)
    assert Program(graph, KINDS).has_pure is is_pure
