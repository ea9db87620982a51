"""Answers race against the expiry of their question, and against each other: one counts, and the log says which."""

from __future__ import annotations

import asyncio
import os
from collections import Counter

import pytest

from baton.core.log.events import QuestionClosed
from baton.core.log.questions import Answer
from baton.errors import NotAllowedNow, NotFound
from tests.kit.corpus import Scenario, shown, start
from tests.kit.faults import FREEZE, HANG, STALL, Plan
from tests.kit.mishaps import answering, with_books
from tests.kit.schedule import Schedule, trial
from tests.kit.verdict import run
from tests.kit.virtual_time import VirtualClock, run_virtual
from tests.kit.world import World

pytestmark = pytest.mark.simulation

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))  # `make soak` has twice as many moments

DOCUMENT = """
name: how
nodes: {how: {human: {title: How?, options: [{id: a}, {id: b}, {id: c, default: true}], expires: 10s}}}
output: '${ctx.how.output}'
"""


def answered(at_s: float, *actions: str) -> tuple[list[str], dict[str, str], list[QuestionClosed]]:
    """What was accepted of answers that all come `at_s` after the question; the output; and how it was closed."""

    async def main() -> tuple[list[str], dict[str, str], list[QuestionClosed]]:
        world = World.start()
        world.slow["append"] = 0.02
        saga = await start(world, DOCUMENT, {}, "how")
        while not (questions := (await world.queries().show(saga))["questions"]):
            await asyncio.sleep(0.05)
        opened = world.entries(saga)[-1].at
        ask = questions[0]["id"]
        await asyncio.sleep(at_s - (VirtualClock().now() - opened) / 1_000)

        async def say(number: int, action: str) -> str:
            try:
                said = await world.service().answer(saga, Answer(ask=ask, action=action), f"k{number}")
            except (NotAllowedNow, NotFound):
                return ""
            return action if said["changed"] else ""

        said = await asyncio.gather(*(say(number, action) for number, action in enumerate(actions)))
        await world.settle()
        view = await world.queries().show(saga)
        closed = [event for event in world.events(saga) if isinstance(event, QuestionClosed)]
        assert view["status"] == "completed"
        return [action for action in said if action], view["result"], closed

    return run_virtual(main())


def test_of_an_answer_and_an_expiry_in_one_instant_one_wins() -> None:
    ends: Counter[str] = Counter()
    for step in range(-20, 20, 1 if IS_ALL else 2):
        accepted, output, closed = answered(10 + step / 200, "a")
        assert [event.action for event in closed] == (accepted or ["expired"])
        assert (output["answer"], output["source"]) == (("a", "person") if accepted else ("c", "default"))
        ends[output["answer"]] += 1
    assert ends["a"] > 0
    assert ends["c"] > 0


def test_of_a_hundred_answers_at_once_one_counts() -> None:
    accepted, output, closed = answered(3, *("ab" * 50))
    assert len(accepted) == len(closed) == 1
    assert output["answer"] == accepted[0] == closed[0].action


KILLED = "name: w\ntimeout: 15m\nnodes: {asks: {tool: send, with: {n: 3}}, kills: {tool: die}}"


def test_the_person_of_the_scenarios_resumes_what_is_parked_for_more_than_the_question() -> None:
    """An answer alone sets no saga free that has killed its workers, so those scenarios would never end."""

    async def drive(world: World) -> str:
        saga = await start(world, KILLED, {}, "w")
        await asyncio.sleep(600)
        view = await shown(world, saga)
        assert (view["parked"]["code"], len(view["questions"])) == (
            "worker_killed",
            2,
        )  # the parking asks, too
        await answering(world, saga, shown, with_books(world.books))
        return saga

    found = run(Scenario("killed", drive, "failed"), Plan())
    assert found.broken == ()
    assert found.kinds >= {"resumed", "question_closed"}
    assert found.done == ("asks",)


THREE_DEATHS = Schedule(
    "approved", 129, gap_s=3, faults=(("write", 20, STALL), ("write", 29, STALL), ("write", 39, STALL))
)


def test_the_person_of_the_approvals_resumes_what_was_parked_in_between() -> None:
    found = trial(THREE_DEATHS)
    assert found.broken == ()
    assert found.verdict.kinds >= {"parked", "resumed"}


CHANGED_ITS_MIND = Schedule(
    "asked",
    2072,
    is_warm=True,
    gap_s=20,
    late_s=14,
    stall_s=22,
    start_late_s=4,
    slow=(("release", 0.04),),
    faults=(("write", 8, FREEZE), ("write", 10, STALL), ("read", 53, HANG)),
)
"""A first answer whose hearing got lost on its way back, and books that say something else when it is repeated."""


def test_the_person_of_the_scenarios_takes_it_that_the_first_answer_counts() -> None:
    assert trial(CHANGED_ITS_MIND).broken == ()
