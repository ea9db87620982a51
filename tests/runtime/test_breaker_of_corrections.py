"""A model that has to be corrected again and again in a short time is not asked any more: a person is."""

from __future__ import annotations

from typing import Any

import pytest

from baton import StepFailure
from baton.core.log.events import AttemptFailed
from baton.core.log.questions import Answer
from baton.ports.models import ModelAnswer, ModelRequest
from tests.kit.scripted import Scripted, asks_for, in_turn, says
from tests.kit.sentences import Says
from tests.kit.world import World
from tests.runtime.test_agents import Desk, document, of_kind, ran

TYPED = ", output_schema: {type: object, required: [sum], properties: {sum: {type: integer}}}"
MODEL = (
    "name: w\nnodes: {find: {model: {name: m, prompt: x, corrections: 10}"
    + TYPED
    + "}}\noutput: ${ctx.find.output}"
)
NO_TOOL, WRONG, FAILS = (
    asks_for(("nothing", {})),
    asks_for(("sum_add", {"a": 1})),
    asks_for(("sum_broken", {})),
)
RIGHT = says('{"sum": 3}')


@pytest.mark.parametrize(
    "answers",
    [
        [FAILS] * 4,
        [NO_TOOL, WRONG, FAILS, WRONG],
        [says("{}"), NO_TOOL, says("three"), FAILS],
    ],
)
async def test_a_fourth_correction_in_a_minute_is_not_made_but_a_person_is_asked(
    answers: list[ModelAnswer], says: Says
) -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(in_turn(*answers, RIGHT))
    shown = await ran(world, document(node=TYPED), {"a": 1})
    assert shown["status"] == "suspended", shown
    await world.settle(7_200)
    assert len(model.requests) == 4, "nothing is asked while no person has answered"
    spent = shown["spent_usd"]
    (question,) = shown["questions"]
    says(question["message"])
    await world.service().answer(shown["id"], Answer(ask=question["id"], action="retry"), "k")
    await world.settle()
    shown = await world.queries().show(shown["id"])
    assert (shown["status"], shown["result"]) == ("completed", {"sum": 3})
    assert spent == 4 * 0.0002


async def test_a_model_node_has_the_breaker_too_whatever_its_corrections() -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(in_turn(says("three")))
    shown = await ran(world, MODEL, {"a": 1})
    assert (shown["status"], len(model.requests)) == ("suspended", 4)
    assert [one.failure.code for one in of_kind(world, shown["id"], AttemptFailed)] == [
        *["answer_invalid"] * 4,
        "too_many_corrections",
    ]
    (question,) = shown["questions"]
    assert "it is no JSON" in question["message"], "the person sees what was wrong"
    await world.service().answer(
        shown["id"], Answer(ask=question["id"], action="use", output={"sum": 4}), "k"
    )
    await world.settle()
    assert (await world.queries().show(shown["id"]))["result"] == {"sum": 4}


async def test_corrections_that_take_their_time_are_as_many_as_the_document_says() -> None:
    world = World.start()
    Desk(world)
    answers: list[ModelAnswer | Exception] = []
    for _ in range(5):
        answers += [says("three"), StepFailure("rate_limited", "slow down", retry_after="25")]
    world.models = model = Scripted(in_turn(*answers, RIGHT))
    assert (await ran(world, MODEL, {"a": 1}))["result"] == {"sum": 3}
    assert len(model.requests) == 11


async def test_a_call_that_succeeds_between_them_closes_it() -> None:
    world = World.start()
    Desk(world)
    numbers = iter(range(100))

    def script(_: ModelRequest, number: int) -> ModelAnswer:
        if number == 15:
            return RIGHT
        return asks_for(("sum_add", {"a": next(numbers), "b": 2})) if number % 4 == 3 else FAILS

    world.models = Scripted(script)
    assert (await ran(world, document(node=TYPED), {"a": 1}))["result"] == {"sum": 3}


async def test_a_saga_goes_on_where_its_document_catches_the_failure() -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(in_turn(FAILS))
    text = document(node=", catch: b").replace("\noutput:", "\n  b: {value: '${last_error.code}'}\noutput:")
    shown = await ran(world, text.replace("find.output}", "b.output?}"), {"a": 1})
    assert (shown["status"], shown["result"]) == ("completed", "too_many_corrections")
    assert len(model.requests) == 4


@pytest.mark.parametrize(
    "then",
    [StepFailure("rate_limited", "slow down", retry_after="7"), StepFailure("context_exceeded", "too long")],
)
@pytest.mark.parametrize("kind", ["agent", "model"])
async def test_a_correction_survives_an_attempt_that_fails_otherwise(then: Any, kind: str) -> None:
    world = World.start()
    Desk(world)
    world.models = model = Scripted(in_turn(says('{"sum": "3"}'), then, RIGHT))
    shown = await ran(world, document(node=TYPED) if kind == "agent" else MODEL, {"a": 1})
    assert shown["result"] == {"sum": 3}
    told = [
        [one["content"] for one in request.messages if "was refused" in str(one["content"])]
        for request in model.requests
    ]
    assert [len(one) for one in told] == [0, 1, 1]
    assert "at /sum" in told[-1][0]
