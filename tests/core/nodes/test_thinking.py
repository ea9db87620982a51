"""A model that is asked in the background, from the handover to its answer: when the saga has it looked at."""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.log.events import CallbackOpened
from baton.core.log.records import Response
from baton.core.models.usage import Usage
from baton.core.nodes.registry import KINDS
from baton.core.nodes.task import FIRST_MS, TaskKind, next_look
from baton.core.read.metrics import Figures
from tests.core.build import Saga, ready
from tests.core.nodes.handing import HOUR, TOOLS, handed, last, say, work
from tests.kit.sentences import Says

ASKS = """
name: w
nodes:
  a: {model: {name: m, prompt: p, background: true, price: {input: 1, output: 1}}}
  then: {tool: t, after: a}
"""


def thinking() -> Saga:
    """The provider works on the request."""
    saga = Saga(Program(compile_document(ASKS, TOOLS), KINDS))
    saga.go()
    saga.go(replace(handed(saga), response=Response(id="resp_1", model="m", held=7)))
    return saga


def test_a_request_in_the_background_waits_and_is_looked_at_when_its_time_has_come() -> None:
    saga = thinking()
    first = next_look(work(saga), work(saga).since)
    assert (saga.kinds, saga.decision.commands, saga.decision.due) == (["callback_opened"], (), first)
    assert first - work(saga).since >= FIRST_MS
    assert ready(saga.go(after_ms=first - saga.now)) == ["a"]


def test_what_is_said_to_be_over_is_looked_at_at_once() -> None:
    saga = thinking()
    say(saga)
    assert ready(saga.go()) == ["a"]


def test_a_worker_that_has_looked_looks_again_at_the_next_moment_only() -> None:
    saga = thinking()
    say(saga)
    looked = {"a": (saga.now, True)}
    assert ready(saga.go(looked=looked)) == []
    assert saga.decision.due == next_look(work(saga), saga.now)


def test_what_a_summary_before_it_has_used_is_in_the_sums_of_models_and_in_the_metrics() -> None:
    saga = thinking()
    opened = replace(last(saga, CallbackOpened), usage=(Usage(model="s", input=300, output=20, cost=50),))
    figures = Figures()
    figures.heard("w", (opened,), 0)
    (document,) = (one for one in figures.take(10**9, 1, "d") if one.get("model") == "s")
    assert (document["InputTokens"], document["OutputTokens"]) == (300, 20)


def test_what_it_waits_for_is_named(says: Says) -> None:
    opened = last(thinking(), CallbackOpened)
    says(replace(opened, until=HOUR, response=Response(id="resp_1", model="m")).words)


def test_a_task_is_whole_unless_a_model_puts_something_else_in_its_place() -> None:
    node = thinking().program.nodes["then"]
    assert TaskKind().part(node, None, "item") is node
