"""A map over a `model` node: which limits an item's request is held against, and where its corrections are counted."""

from __future__ import annotations

from typing import Any

from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.log.folding.received import breaker_of
from baton.core.nodes.registry import KINDS
from tests.core.build import T0, Saga, done, replay
from tests.core.nodes.test_breaker import wrong

TEXT = "name: w\nnodes: {{m: {{map: [1, 2], model: {{name: m, prompt: p, corrections: 10}}, output_schema: {{}}{0}}}}}\noutput: '${{ctx.m.output}}'"


def saga(more: str = "") -> Saga:
    one = Saga(Program(compile_document(TEXT.format(more), {}), KINDS))
    one.go()
    return one


def limits_of(one: Saga) -> dict[str, Any]:
    return dict(one.program.node_at(one.state, "m#0").limits)


def test_an_item_has_the_limits_of_the_whole_that_a_request_is_held_against() -> None:
    assert set(limits_of(saga(", limits: {tokens: 5000, cost_usd: 1, wall_time: 1h}"))) == {"tokens", "cost"}
    assert limits_of(saga(", limits: {wall_time: 1h}")) == {}
    assert limits_of(saga()) == {}


def test_the_corrections_of_an_item_are_its_own_until_it_is_done() -> None:
    one = saga()
    for attempt in (1, 2, 3, 4):
        one.now = T0 + attempt
        one.go(wrong("m#0", attempt, one.now))
    assert breaker_of(one.state, "m#0")
    assert not breaker_of(one.state, "m#1")
    one.go(done("m#1", 7))
    assert breaker_of(one.state, "m#0"), "another item says nothing of it"
    one.now += 3_600_000
    one.go()
    one.go(done("m#0", 8, attempt=5))
    assert not one.state.corrections
    assert replay(one.entries) == one.state
