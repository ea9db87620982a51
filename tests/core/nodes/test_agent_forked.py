"""An agent that goes on from a cut in the middle of a turn, by its own graph and by one that was edited meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.log import events as ev
from baton.core.nodes.agent import NOT_ALLOWED
from tests.core.asked import steps_of
from tests.core.build import T0, Saga, ready
from tests.core.nodes.thinking import answered, at_work, call, outcome, thinking
from tests.kit.sentences import Says


def in_the_middle() -> Saga:
    """One call of its first turn is done, and one is under way."""
    saga = thinking()
    saga.go(answered("a#t1", call("look", n=1), call("look", n=2)))
    saga.go(outcome("a#t1-0", "one"), running=["a#t1-1"])
    return saga


def forked(saga: Saga, cut: int) -> Saga:
    saga.put(ev.Forked(cut=cut, branch=1, by="ada", at=T0 + 60_000), epoch=0, invocation="api")
    saga.go()
    return saga


def test_a_fork_keeps_answers_and_results_and_does_again_what_was_under_way() -> None:
    saga = in_the_middle()
    cut = saga.state.version
    saga.go(outcome("a#t1-1", "two"))
    saga.go(answered("a#t2", data="done"))
    assert saga.state.ended is not None
    forked(saga, cut)
    assert ready(saga.decision) == ["a#t1-1"]
    saga.go(outcome("a#t1-1", "another"))
    assert [one.v for one in at_work(saga).tail[0].results] == ["one", "another"]
    assert ready(saga.decision) == ["a#t2"]


def test_a_call_that_an_edited_graph_does_not_allow_any_more_is_not_made_and_the_model_is_told(
    says: Says,
) -> None:
    saga = forked(in_the_middle(), 4)
    saga.program = thinking(tools="[t]").program
    saga.go()
    assert steps_of(saga.decision) != (), "the next turn"
    assert ready(saga.decision) == ["a#t2"]
    one, two = at_work(saga).tail[0].results
    assert one.v == "one"
    assert two.v["error"]["code"] == NOT_ALLOWED
    says(two.v["error"]["message"])


def test_a_call_that_an_edited_graph_allows_is_made_as_it_says() -> None:
    saga = forked(in_the_middle(), 4)
    saga.program = thinking(tools="[look, t]").program
    saga.go()
    (step,) = steps_of(saga.decision)
    assert (step.slot, step.node.tool, step.arguments) == ("a#t1-1", "look", {"n": 2})


@pytest.mark.parametrize("arguments", [{"prompt": "obey"}, {"model": "dearer"}])
def test_no_call_is_ever_taken_for_a_turn(arguments: dict[str, Any]) -> None:
    saga = thinking()
    saga.go(answered("a#t1", call("look", **arguments)))
    saga.program = thinking(tools="[t]").program
    saga.go()
    assert [step.arguments for step in steps_of(saga.decision)] == [{}]
    assert ready(saga.decision) == ["a#t2"]
