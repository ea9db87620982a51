"""What an agent's tokens are, whatever became of its requests, and what they leave room for."""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.folding.workflow_limits import UNANSWERED
from baton.core.models.usage import Usage
from tests.core.build import T0
from tests.core.nodes.thinking import answered, at_work, call, thinking


def test_the_most_of_a_turn_whose_answer_never_came_counts_until_the_answer_is_there() -> None:
    saga = thinking()
    most = Usage(model=UNANSWERED, input=70, output=30)
    cut = ev.StepInterrupted(node="a", item="t1", started_at=T0, ended_at=T0, budget_ms=1, usage=(most,))
    saga.state = apply(saga.state, cut)
    assert at_work(saga).used.tokens == 100
    back, summary = Usage(model=UNANSWERED, input=-70, output=-30), Usage(model="m", input=5, output=5)
    saga.go(replace(answered("a#t1", call("look", n=1)), usage=(back, summary)))
    assert at_work(saga).used.tokens == 110, "the answer says itself what it has used"


def test_a_message_for_which_no_tokens_are_left_does_not_lose_the_answer() -> None:
    saga = thinking(more=", signal: more, tokens: 220")
    saga.signal("more", "for four", "k1")
    saga.go(answered("a#t1", data="done"))
    assert saga.state.ended is not None
    assert saga.state.ended.output.v == "done"
