"""Models that answer nonsense, ask for too much, say too much or never answer: the saga goes on, or a person is asked; nothing runs away."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from baton import StepFailure, tool
from baton.core.limits import Limits
from baton.core.log.events import AttemptFailed, CallsBegan, StepSucceeded
from baton.core.log.questions import Answer
from baton.core.models.messages import MOST_RESULT
from baton.ports.models import ModelAnswer, ModelRequest
from baton.runtime.models.model_caller import MOST_CALLS
from tests.kit.scripted import Scripted, asks_for, by_turn, in_turn, says
from tests.kit.world import World
from tests.runtime.test_agents import Desk, document, of_kind, ran

ADD = ("sum_add", {"a": 1, "b": 2})
TYPED = ", output_schema: {type: object, required: [sum], properties: {sum: {type: integer}}}"


def results(request: ModelRequest) -> list[Any]:
    return [json.loads(one["content"]) for one in request.messages if one["role"] == "tool"]


@pytest.mark.parametrize("distinct", [True, False])
async def test_of_one_tool_twenty_times_in_an_answer_sixteen_are_called_or_one(distinct: bool) -> None:
    world = World.start()
    desk = Desk(world)
    many = [("sum_add", {"a": n if distinct else 0, "b": 2}) for n in range(20)]
    world.models = model = Scripted(by_turn(asks_for(*many), says("done")))
    shown = await ran(world, document(), {"a": 1})
    assert shown["result"] == "done"
    assert len(desk.calls) == (16 if distinct else 1)
    told = results(model.requests[1])
    assert len(told) == 20, "each call has its result"
    refused = [one for one in told if isinstance(one, dict) and "error" in one]
    assert [one["error"]["code"] for one in refused] == ["too_many_calls"] * (4 if distinct else 0)


async def test_of_two_hundred_calls_in_one_answer_a_bounded_number_is_looked_at() -> None:
    world = World.start()
    desk = Desk(world)
    many = [("sum_add", {"a": n, "b": 2}) for n in range(200)]
    world.models = model = Scripted(by_turn(asks_for(*many), says("done")))
    shown = await ran(world, document(), {"a": 1})
    assert shown["result"] == "done"
    assert len(desk.calls) == 16
    assert len(results(model.requests[1])) == MOST_CALLS
    (began,) = of_kind(world, shown["id"], CallsBegan)
    assert len(began.calls) == MOST_CALLS


async def test_arguments_of_a_megabyte_are_passed_on_and_stay_out_of_log_and_state() -> None:
    world = World.start(limits=Limits(saga_budget_usd="100"))
    Desk(world)
    heard: list[int] = []

    @tool("sum.length", registry=world.registry)
    async def length(text: str) -> int:
        heard.append(len(text))
        return len(text)

    world.tools = world.registry.specs()
    world.models = model = Scripted(
        by_turn(asks_for(("sum_length", {"text": "x" * 1_000_000})), says("long"))
    )
    shown = await ran(world, document(), {"a": 1})
    assert (shown["result"], heard) == ("long", [1_000_000])
    assert results(model.requests[1]) == [1_000_000]
    (answered, *_) = of_kind(world, shown["id"], StepSucceeded)
    assert answered.output.ref, "in a blob"
    assert all(len(record.data) < 20_000 for record in world.log.read_tail(*_where(world), 0, 0))


def _where(world: World) -> tuple[Any]:
    return (world.log.heads()[0].ref,)


async def test_what_a_transcript_has_grown_to_is_paid_for_before_it_is_sent() -> None:
    """A megabyte is up to a million tokens: more than the saga may spend."""
    world = World.start()
    Desk(world)
    world.models = model = Scripted(
        by_turn(asks_for(("sum_add", {"a": 1, "b": 2, "c": "x" * 1_000_000})), says("done"))
    )
    shown = await ran(world, document(), {"a": 1})
    assert (shown["status"], shown["parked"]["code"]) == ("parked", "budget_saga")
    assert len(model.requests) == 1


async def test_an_answer_of_five_megabytes_is_a_failure_that_is_paid_for() -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(in_turn(says("x" * 5_300_000), says("short")))
    shown = await ran(world, document(node=", on_failure: {result_too_large: fail}"), {"a": 1})
    assert (shown["status"], shown["error"]["code"]) == ("failed", "result_too_large")
    assert len(model.requests) == 1
    assert shown["spent_usd"] == 0.0002


async def test_a_long_text_of_a_tool_is_cut_before_a_model_reads_it() -> None:
    world = World.start()
    Desk(world)

    @tool("sum.text", registry=world.registry)
    async def text() -> str:
        return "x" * (MOST_RESULT + 5)

    world.tools = world.registry.specs()
    world.models = model = Scripted(by_turn(asks_for(("sum_text", {})), says("done")))
    assert (await ran(world, document(), {"a": 1}))["result"] == "done"
    assert model.requests[1].messages[-1]["content"] == "x" * MOST_RESULT + "[… 5 more characters]"


@pytest.mark.parametrize(
    ("code", "most"),
    [("rate_limited", 11), ("server_error", 6), ("context_exceeded", 6), ("content_policy", 2)],
)
async def test_a_model_that_refuses_for_ever_is_asked_so_often_and_then_a_person_decides(
    code: str, most: int
) -> None:
    world = World.start()
    Desk(world)
    failure = StepFailure(code, "not now", retry_after="7" if code == "rate_limited" else "")
    world.models = model = Scripted(in_turn(failure))
    shown = await ran(world, document(), {"a": 1})
    assert shown["status"] in ("suspended", "failed"), shown
    assert 1 <= len(model.requests) <= most
    assert shown["spent_usd"] == 0
    began = [one.started_at for one in of_kind(world, shown["id"], AttemptFailed)]
    if code == "rate_limited":
        assert min(b - a for a, b in itertools.pairwise(began)) >= 7_000
    asked = len(model.requests)
    await world.settle(3_600)
    assert len(model.requests) == asked, "nothing is spent while a person has not answered"


async def test_answers_that_are_wrong_so_often_open_the_breaker_and_a_yes_of_a_person_closes_it() -> None:
    world = World.start()
    Desk(world)
    wrong = [says("{}"), says("[]"), says('{"sum": "3"}'), says("")]
    world.models = model = Scripted(in_turn(*wrong, says('{"sum": 3}')))
    shown = await ran(world, document(node=TYPED), {"a": 1})
    assert len(model.requests) == 4, "one, and three corrections"
    (question,) = shown["questions"]
    assert shown["status"] == "suspended"
    await world.service().answer(shown["id"], Answer(ask=question["id"], action="retry"), "k")
    await world.settle()
    shown = await world.queries().show(shown["id"])
    assert (shown["status"], shown["result"]) == ("completed", {"sum": 3})
    assert shown["spent_usd"] == 0.001
    sent = Counter(len(request.messages) for request in model.requests)
    assert sent == {2: 1, 4: 3, 3: 1}, "a correction repeats the last answer alone, if it says anything"
    assert [one["content"] for one in model.requests[2].messages if one["role"] == "assistant"] == ["[]"]


@pytest.mark.parametrize(
    "answer",
    [
        ModelAnswer(),
        says(""),
        says("\u0000\ud83d nonsense"),
        asks_for(("sum_\ud83d", {})),
        asks_for(("sum_add", '{"a": "\ud83d", "b": 2}')),
        asks_for(("", "")),
        asks_for(("sum_add", "null"), ("sum_add", "[[[[")),
        asks_for(("x" * 10_000, {})),
        asks_for(("sum_add", '{"a": 1, "b": 2, "c": "\\ud83d"}')),
        asks_for(("sum_add", "[" * 5_000)),
        asks_for(("sum_add", '{"a": 1, "b": 2, "c": ' + "[" * 900 + "]" * 900 + "}")),
        asks_for(("sum_add", '{"a": 1, "b": 2, "c": ' + "[" * 70 + "]" * 70 + "}")),
        asks_for(*[("sum_add", {"a": n, "b": "x" * 2_000}) for n in range(60)]),
        asks_for(("sum_add", '{"a": 1e999, "b": 2}')),
        asks_for(("sum_add", '{"a": 1, "b": 2, "b": 3}')),
    ],
)
async def test_no_answer_stops_the_engine(answer: ModelAnswer) -> None:
    world = World.start()
    Desk(world)
    world.models = Scripted(in_turn(answer, says("done")))
    shown = await ran(world, document(), {"a": 1})
    assert shown["status"] == "completed", shown
    assert shown["result"], "an empty answer is none"


async def test_a_correction_repeats_the_refused_answer_also_after_another_failure() -> None:
    world = World.start()
    Desk(world)
    answers = in_turn(says("[1]"), StepFailure("rate_limited", "not now"), says('{"sum": 3}'))
    world.models = model = Scripted(answers)
    shown = await ran(world, document(node=TYPED), {"a": 1})
    assert shown["result"] == {"sum": 3}
    _, second, third = model.requests
    assert second.messages == third.messages
    assert third.messages[-2] == {"role": "assistant", "content": "[1]"}


async def test_what_a_provider_wants_back_comes_with_every_later_turn() -> None:
    world = World.start()
    Desk(world)
    echo = {"profile": "p", "message": {"reasoning_content": "h\ud83dm"}, "calls": {}}
    first = replace(asks_for(ADD), echo=echo)
    world.models = model = Scripted(by_turn(first, asks_for(("sum_add", {"a": 9, "b": 2})), says("done")))
    assert (await ran(world, document(), {"a": 1}))["result"] == "done"
    said = [
        [one.get("echo") for one in request.messages if one["role"] == "assistant"]
        for request in model.requests
    ]
    kept = {**echo, "message": {"reasoning_content": "h?m"}}
    assert said == [[], [kept], [kept, None]]


@pytest.mark.parametrize("levels", [70, 900])
async def test_what_is_too_deep_to_be_read_again_is_not_kept_for_a_provider(levels: int) -> None:
    world = World.start()
    Desk(world)
    deep = json.loads("[" * levels + "]" * levels)
    first = replace(asks_for(ADD), echo={"profile": "p", "message": {"x": deep}, "calls": {}})
    world.models = model = Scripted(by_turn(first, says("done")))
    assert (await ran(world, document(), {"a": 1}))["result"] == "done"
    assert [one for one in model.requests[1].messages if "echo" in one] == []
