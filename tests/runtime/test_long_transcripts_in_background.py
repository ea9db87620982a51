"""Transcripts that do not fit, of agents whose model is asked in the background: what is cut goes with the request, and stays cut."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton import StepFailure
from baton.core.log.events import CallbackOpened, TurnBegan
from baton.core.models.messages import Message
from baton.ports.models import ModelAnswer, ModelFailure, ModelRequest
from tests.kit.scripted import Scripted, asks_for
from tests.kit.sentences import Says
from tests.kit.world import World
from tests.runtime.test_agents import Desk, document, of_kind, ran
from tests.runtime.test_long_transcripts import (
    MOST,
    SUMMARISE,
    Forgetful,
    answered,
    notes,
    outputs,
    scripted,
)

FORTY = ", turns: 40"
THINKS = FORTY + ", background: true"


class Refusing(Scripted):
    """It refuses what is too long when it is handed over, and answers the rest later."""

    script: Forgetful

    async def submit(self, request: ModelRequest) -> str:
        if len(request.messages) > self.script.most:
            self.script(request, len(self.requests))
        return await super().submit(request)


def thinking(script: Forgetful, kind: type[Scripted] = Refusing) -> Scripted:
    return kind(script, takes_s=0.1, known=("m", "n", "s"), thinks_s=5)


async def told(model: Scripted, more: str) -> tuple[list[list[Message]], list[Any]]:
    """Of an agent that comes to its end, in a world of its own: what its answered requests had, and the segments of each turn."""
    world = World.start()
    Desk(world)
    world.models = model
    shown = await ran(world, document(more), {"a": 1})
    assert (shown["status"], shown["result"]) == ("completed", "done"), shown
    segments = [one.segments for one in of_kind(world, shown["id"], TurnBegan)]
    return answered(model, model.script.most), segments  # type: ignore[attr-defined]


@pytest.mark.parametrize("more", ["", SUMMARISE])
@pytest.mark.parametrize("turns", [7, 20])
async def test_the_model_is_told_the_same_as_by_a_worker_that_waits(turns: int, more: str) -> None:
    waiting, handed = scripted(Forgetful(turns)), thinking(Forgetful(turns))
    assert await told(waiting, more + FORTY) == await told(handed, more + THINKS)
    assert len(handed.requests) == sum(len(one.messages) <= MOST for one in waiting.requests)


async def test_a_provider_that_finds_it_too_long_only_later_is_asked_with_less() -> None:
    class Later(Scripted):
        async def collect(self, model: str, response: str) -> ModelAnswer | None:
            try:
                return await super().collect(model, response)
            except StepFailure as error:  # it is the request that has failed, and not the look at it
                raise ModelFailure(error.code, error.message, None) from error

    later = thinking(Forgetful(20), Later)
    assert await told(scripted(Forgetful(20)), FORTY) == await told(later, THINKS)


async def test_a_long_transcript_without_a_cut_is_kept_as_by_a_worker_that_waits() -> None:
    waiting, handed = (Forgetful(turns=36, most=1_000) for _ in range(2))
    said, segments = await told(scripted(waiting), FORTY)
    assert (said, segments) == await told(thinking(handed), THINKS)
    assert sum(one is not None for one in segments) == 2


async def test_a_summary_is_in_the_log_with_the_request_and_counts_for_tokens_and_money() -> None:
    world = World.start()
    Desk(world)
    world.models = thinking(Forgetful(turns=7))
    shown = await ran(world, document(SUMMARISE + THINKS), {"a": 1})
    (cut,) = (one for one in of_kind(world, shown["id"], CallbackOpened) if one.usage)
    assert cut.response is not None
    assert cut.response.segments is not None
    assert (cut.item, cut.response.summary, cut.usage[0].cost) == ("t7", (320,), 500)
    assert cut.cost == cut.response.held + 500
    began = of_kind(world, shown["id"], TurnBegan)[-1]
    assert began.segments == cut.response.segments
    assert began.used.tokens == 7 * 110 + 320
    assert shown["spent_usd"] == pytest.approx((8 * 200 + 500) / 1_000_000)
    cost = await world.queries().cost(shown["id"])
    assert [(line["what"], line["requests"]) for line in cost["models"]] == [("scripted", 9)]
    assert cost["models"][0]["usd"] == pytest.approx(shown["spent_usd"])


async def test_why_there_is_no_summary_is_said_with_the_answer(says: Says) -> None:
    world = World.start()
    Desk(world)
    world.models = model = thinking(Forgetful(turns=7, summary=StepFailure("rate_limited", "later")))
    shown = await ran(world, document(SUMMARISE + THINKS), {"a": 1})
    (note,) = notes(list(model.requests[-1].messages))
    says(note)
    assert "rate_limited: later" in json.dumps(outputs(world, shown["id"]))


async def test_an_equal_call_whose_result_was_left_out_is_not_made_again() -> None:
    class Asks(Forgetful):
        def call(self) -> ModelAnswer:
            return asks_for(("sum_add", {"a": 1 if self.numbers == 12 else self.numbers, "b": 0}))

    world = World.start()
    desk = Desk(world)
    world.models = thinking(Asks(turns=13))
    shown = await ran(world, document(THINKS), {"a": 1})
    assert shown["result"] == "done"
    assert desk.calls.count(("add", (1, 0))) == 1


async def test_a_request_that_fails_after_the_cut_is_made_again_and_the_next_turn_begins_with_the_cut() -> (
    None
):
    class Fails(Forgetful):
        failed = 0

        def __call__(self, request: ModelRequest, number: int) -> ModelAnswer:
            if notes(list(request.messages)) and not self.failed and len(request.messages) <= self.most:
                self.failed += 1
                raise ModelFailure("server_error", "broken", None)
            return super().__call__(request, number)

    said, _ = await told(thinking(Fails(turns=7)), THINKS)
    first, *later = [talk for talk in said if notes(talk)]
    assert later
    assert all(talk[: len(first)] == first for talk in later)
