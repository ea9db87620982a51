"""A conversation in the core: what it waits for, what it hears, and the ways in which it ends."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.state import State, Used, status_of
from baton.core.models.usage import Allowance
from baton.core.nodes.agent import EXHAUSTED
from baton.errors import InvalidDefinition
from tests.core.asked import steps_of
from tests.core.build import T0, Saga, ready, replay
from tests.core.nodes.thinking import answered, at_work, call, compiled, outcome, thinking
from tests.kit.sentences import Says

HOUR_MS = 3_600_000
TALKS = ", conversation: {idle: 1h}"
OUTPUT = ", output_schema: {type: object, required: [refund]}"


def talking(more: str = TALKS, **how: Any) -> Saga:
    """A conversation that has answered once, and waits."""
    saga = thinking(more=more, **how)
    saga.go(answered("a#t1", data="hello"))
    return saga


def ends(saga: Saga, key: str = "end") -> None:
    """A person says that no message follows."""
    failure = ev.failed_with("conversation_ended", "enough")
    event = ev.SignalReceived(
        name="message", key=key, payload=ev.Value(), by="ada", at=saga.now, failure=failure
    )
    saga.put(event, epoch=0, invocation="api")


def closed(saga: Saga) -> ev.AgentClosed:
    (event,) = [event for one in saga.entries for event in one.events if isinstance(event, ev.AgentClosed)]
    return event


def test_an_answer_waits_for_a_message_in_its_own_entry() -> None:
    saga = talking()
    assert saga.kinds == ["step_succeeded", "message_awaited"]
    assert status_of(saga.state, saga.program) == "waiting"
    assert not steps_of(saga.decision)
    work = at_work(saga)
    assert (work.due, work.signal, work.used.tokens) == (saga.now + HOUR_MS, "message", 110)
    assert saga.decision.due == work.due
    assert work.view(None)["signal"] == "message"


def test_a_message_begins_the_next_turn_and_waiting_begins_anew() -> None:
    saga = talking()
    saga.signal("message", "for four", "k1")
    saga.go(after_ms=HOUR_MS - 1)
    assert ready(saga.decision) == ["a#t2"]
    work = at_work(saga)
    assert ([value.v for value in work.heard], work.due, saga.state.signals) == (["for four"], None, ())
    saga.go(answered("a#t2", data="done"))
    assert at_work(saga).due == saga.now + HOUR_MS
    assert at_work(saga).used.tokens == 220
    assert replay(saga.entries) == saga.state


def test_two_messages_at_once_are_heard_once_in_one_turn_in_the_order_of_the_log() -> None:
    saga = talking()
    saga.signal("message", "one", "k1")
    saga.signal("message", "two", "k2")
    saga.go()
    assert [value.v for value in at_work(saga).heard] == ["one", "two"]
    saga.signal("message", "one", "k1")
    saga.go(answered("a#t2", data="done"))
    assert saga.kinds == ["step_succeeded", "message_awaited"], "a key that is known says nothing new"


def test_a_message_that_comes_with_the_answer_has_the_next_turn() -> None:
    saga = thinking(more=TALKS)
    saga.signal("message", "and outside", "k1")
    saga.go(answered("a#t1", data="hello"))
    assert saga.kinds == ["step_succeeded", "message_awaited", "turn_began", "node_began"]
    assert [value.v for value in at_work(saga).heard] == ["and outside"]


def test_its_calls_are_made_as_in_any_agent() -> None:
    saga = talking()
    saga.signal("message", "look", "k1")
    saga.go()
    saga.go(answered("a#t2", call("look", n=1)))
    saga.go(outcome("a#t2-0", "one"))
    assert ready(saga.decision) == ["a#t3"]


def test_when_its_idle_time_has_passed_its_last_answer_is_its_output() -> None:
    saga = talking()
    saga.go(after_ms=HOUR_MS)
    assert saga.kinds == ["agent_closed", "saga_ended"]
    assert (closed(saga).output.v, closed(saga).turns, closed(saga).by) == ("hello", 1, "")
    assert replay(saga.entries) == saga.state


def test_a_message_that_came_in_time_is_heard_however_late_a_worker_looks() -> None:
    saga = talking()
    saga.signal("message", "wait", "k1")
    saga.go(after_ms=2 * HOUR_MS)
    assert ready(saga.decision) == ["a#t2"]


def test_a_message_that_came_too_late_is_not() -> None:
    saga = talking()
    saga.now += HOUR_MS
    saga.signal("message", "wait", "k1")
    saga.go()
    assert saga.kinds == ["agent_closed", "saga_ended"]


def test_a_person_ends_it_after_what_was_said_before() -> None:
    saga = talking()
    saga.signal("message", "one", "k1")
    ends(saga)
    saga.signal("message", "two", "k2")
    saga.go()
    assert [value.v for value in at_work(saga).heard] == ["one"]
    saga.go(answered("a#t2", data="bye"))
    assert saga.kinds == ["step_succeeded", "message_awaited", "agent_closed", "saga_ended"]
    assert (closed(saga).output.v, closed(saga).by) == ("bye", "end")
    (began,) = [one for entry in saga.entries[4:] for one in entry.events if isinstance(one, ev.TurnBegan)]
    assert began.heard == ("k1",)
    assert replay(saga.entries) == saga.state


def test_an_end_that_came_first_is_not_told_as_a_message() -> None:
    saga = thinking(more=TALKS)
    ends(saga)
    saga.go(answered("a#t1", call("look", n=1)))
    saga.go(outcome("a#t1-0", "one"))
    assert at_work(saga).heard == ()
    saga.go(answered("a#t2", data="bye"))
    assert closed(saga).output.v == "bye"


def test_the_agent_ends_it_with_its_output() -> None:
    saga = talking(node=OUTPUT)
    saga.signal("message", "yes", "k1")
    saga.go()
    (turn,) = steps_of(saga.decision)
    assert turn.node.output_schema is None, "an answer is a text"
    offered = turn.node.arguments["offers"]["end_conversation"]["parameters"]
    assert offered["properties"]["output"] == {"type": "object", "required": ["refund"]}
    saga.go(answered("a#t2", data={"refund": 5}, ends=True))
    assert saga.kinds == ["step_succeeded", "agent_closed", "saga_ended"]
    assert closed(saga).output.v == {"refund": 5}


@pytest.mark.parametrize("by_person", [True, False])
def test_without_the_output_that_its_schema_asks_for_it_fails(by_person: bool, says: Says) -> None:
    saga = talking(node=f"{OUTPUT}, on_failure: fail")
    if by_person:
        ends(saga)
    saga.go(after_ms=0 if by_person else HOUR_MS)
    assert saga.state.ended is not None
    assert saga.state.failure is not None
    assert saga.state.failure.code == EXHAUSTED
    says(saga.state.failure.message)
    assert saga.state.signals == ()


def test_an_end_that_came_during_the_last_turn_is_taken_and_a_message_before_it_is_not() -> None:
    saga = talking(f"{TALKS}, turns: 2", rest="\n  b: {tool: t, after: a}")
    saga.signal("message", "one", "k1")
    saga.go()
    saga.signal("message", "two", "k2")
    ends(saga)
    saga.go(answered("a#t2", data="bye"))
    assert (closed(saga).output.v, closed(saga).by) == ("bye", "end")
    assert [one.key for one in saga.state.signals] == ["k2"]
    assert replay(saga.entries) == saga.state


@pytest.mark.parametrize("limit", ["turns: 1", "tokens: 200"])
def test_with_nothing_left_for_a_turn_its_answer_is_the_last(limit: str) -> None:
    saga = talking(f"{TALKS}, {limit}")
    assert saga.kinds == ["step_succeeded", "agent_closed", "saga_ended"]


def test_with_its_callers_last_turn_used_by_another_agent_its_answer_is_the_last() -> None:
    saga = talking()
    origin = replace(saga.state.origin, allowed=Allowance(turns=2))
    saga.state = replace(saga.state, origin=origin, used={"": Used(turns=2)})
    saga.signal("message", "one more", "k1")
    saga.go()
    assert closed(saga).output.v == "hello"


def test_it_waits_as_long_after_a_pause_and_after_a_fork() -> None:
    work = at_work(talking())
    assert work.postponed(5).due == T0 + HOUR_MS + 5
    assert work.after_fork(None, is_ending=False, later=7).due == T0 + HOUR_MS + 7


def test_a_wait_is_folded_once_and_only_by_an_agent() -> None:
    saga = talking()
    event = ev.MessageAwaited(node="a", until=1)
    assert apply(saga.state, event) == saga.state
    assert apply(State(), event) == State()


def test_an_agent_without_it_ends_with_its_answer() -> None:
    for more in ("", ", conversation: false", ", conversation: {enabled: false, idle: 1h}"):
        saga = talking(more)
        assert saga.kinds[1] == "agent_closed", more
        (node,) = saga.program.graph.nodes
        assert node.signal == ""


def test_it_takes_another_name_for_its_messages() -> None:
    (node,) = compiled(f"{TALKS}, signal: chat").graph.nodes
    assert node.signal == "chat"


def test_its_session_is_given_to_it_with_its_prompt() -> None:
    saga = thinking(more=", session: 'of ${input}'")
    assert at_work(saga).given.v["session"] == "of find a table"


def test_a_call_of_the_name_of_its_end_is_a_problem(says: Says) -> None:
    with says.raised(InvalidDefinition):
        compiled(TALKS, tools="[{ask: end_conversation}]")
