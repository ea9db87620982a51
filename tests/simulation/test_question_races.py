"""Answers race against the escalation of their question, and claims against each other: one wins, and the log says which."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from baton.core.log.events import Event, QuestionClaimed, QuestionClosed, QuestionEscalated
from baton.core.log.questions import Answer
from baton.errors import Forbidden, NotAllowedNow, NotFound
from baton.runtime.requests.service import Service
from tests.kit.corpus import start
from tests.kit.oracles import of_saga
from tests.kit.virtual_time import VirtualClock, run_virtual
from tests.kit.world import World

pytestmark = pytest.mark.simulation

DOCUMENT = """
name: who
nodes:
  who:
    human:
      title: Who?
      to: {group: hosts}
      options: [{id: a}, {id: b}]
      escalate: [{after: 10s, hand_on: {group: leads}}, {after: 20s, decide: b}]
output: '${ctx.who.output}'
"""
Act = Callable[[Service, str], Awaitable[object]]


def raced(at_s: float, *acts: tuple[str, Act]) -> tuple[list[int], list[Event], dict[str, Any]]:
    """What users do, all of it `at_s` after the question: which of it was accepted, the log's events, and the output."""

    async def main() -> tuple[list[int], list[Event], dict[str, Any]]:
        world = World.start(groups={name: frozenset({"hosts"}) for name in ("ada", "bo")})
        world.slow["append"] = 0.02
        saga = await start(world, DOCUMENT, {}, "who")
        while not (await world.queries().show(saga))["questions"]:
            await asyncio.sleep(0.05)
        opened = world.entries(saga)[-1].at
        await asyncio.sleep(at_s - (VirtualClock().now() - opened) / 1_000)

        async def do(user: str, act: Act) -> bool:
            try:
                await act(world.service(user=user), saga)
            except (Forbidden, NotAllowedNow, NotFound):
                return False
            return True

        said = await asyncio.gather(*(do(user, act) for user, act in acts))
        await world.settle()
        view = await world.queries().show(saga)
        assert view["status"] == "completed"
        assert [*of_saga(world, saga)] == []
        return [number for number, is_done in enumerate(said) if is_done], world.events(saga), view["result"]

    return run_virtual(main())


def answers(service: Service, saga: str) -> Awaitable[object]:
    return service.answer(saga, Answer(ask="0.who", action="a"), "k")


def claims(service: Service, saga: str) -> Awaitable[object]:
    return service.questions.claim(saga, "0.who")


@pytest.mark.parametrize("at_s", [10, 20], ids=["handed on", "decided"])
def test_of_an_answer_and_a_step_of_the_escalation_in_one_instant_one_wins(at_s: int) -> None:
    ends: Counter[str] = Counter()
    for step in range(-12, 12):
        accepted, events, output = raced(at_s + step / 120, ("ada", answers))
        (closed,) = [event for event in events if isinstance(event, QuestionClosed)]
        is_handed_on = any(isinstance(event, QuestionEscalated) for event in events)
        if accepted:
            assert (output["answer"], output["source"], output["by"]) == ("a", "person", "ada")
            assert closed.by == "0.who/k"
            assert is_handed_on == (at_s > 10)
        else:
            assert (output["answer"], output["source"], output["by"]) == ("b", "policy", None)
            assert closed.by == ""
        ends[output["source"]] += 1
    # A member of the former group answers until it is handed on.
    assert ends["policy"] > 0
    assert ends["person"] > 0 or at_s > 10


def test_of_many_claims_at_once_one_wins_and_the_others_learn_who_has_it() -> None:
    accepted, events, _ = raced(3, *(("ada", claims), ("bo", claims)) * 10)
    (claimed,) = [event for event in events if isinstance(event, QuestionClaimed)]
    # A claim of one's own that is repeated changes nothing.
    assert {number % 2 for number in accepted} == {("user:ada", "user:bo").index(claimed.to)}


def test_of_a_claim_and_an_answer_of_another_at_once_one_wins() -> None:
    ends = Counter[str]()
    for user in ("ada", "bo"):
        accepted, events, output = raced(3, (user, claims), ("ada", answers), ("bo", claims))
        claimed = [event.to for event in events if isinstance(event, QuestionClaimed)]
        assert (1 in accepted) == (output["by"] == "ada")
        assert output["by"] == "ada" or claimed == ["user:bo"]
        ends[output["source"]] += 1
    assert ends
