"""An answer by a link, at every write: crashed, doubled, and raced with a colleague, a reminder, a hand-on, an expiry: one counts.

What a link is good for, one rule after the other, is in tests/runtime/test_links.py.
"""

from __future__ import annotations

import os
from functools import cache
from itertools import chain, cycle

import pytest

from baton.core.log.events import QuestionClosed, SignalReceived
from baton.core.log.state import ANSWER
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, EVERYTHING
from tests.kit.links import MOMENTS_S
from tests.kit.schedule import SCENARIOS, Schedule, Trial, trial
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

pytestmark = pytest.mark.simulation

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))
CRASHES = (CRASH_BEFORE, CRASH_AFTER)
ALONE, REMINDED, HANDED_ON, DECIDED = range(len(MOMENTS_S))


@cache
def writes(turn: int) -> tuple[str, ...]:
    return tried(turn).verdict.writes


def tried(turn: int, *faults: tuple[str, int, str], seed: int = 0) -> Trial:
    return trial(Schedule("confirmed", turn + len(MOMENTS_S) * seed, faults=faults))


@pytest.mark.parametrize("turn", range(len(MOMENTS_S)), ids=["alone", "reminded", "handed on", "decided"])
def test_whatever_happens_at_a_write_one_answer_counts_and_its_link_was_the_newest(turn: int) -> None:
    """At every second write a crash and another fate in turn, in two of the races the first of each two, in the others the second.

    `make soak`: all at all.
    """
    fates = chain.from_iterable(
        zip(cycle(CRASHES), cycle(fate for fate in EVERYTHING if fate not in CRASHES))
    )
    if turn % 2:
        next(fates)  # what crashes in one race meets something else in the next
    numbered = [*enumerate(writes(turn), 1)]
    for number, write in numbered if IS_ALL else numbered[turn::4]:
        for fate in EVERYTHING if IS_ALL else (next(fates),):
            found = tried(turn, ("write", number, fate))
            assert found.broken == (), f"{fate} at write {number}, {write}"


def test_every_one_wins_in_some_race() -> None:
    """So that none of the races is over before it begins."""
    wanted = {
        ALONE: {"0.on link:group:hosts", "0.on ada", "0.by link:group:hosts", "0.by ada"},
        REMINDED: {"0.on link:group:hosts", "0.on ada"},
        HANDED_ON: {"0.on ada", "0.on c", "0.by expired", "0.by link:group:hosts"},
        DECIDED: {"0.on c", "0.on link:group:leads", "0.by expired"},
    }
    for turn, missing in wanted.items():
        for seed in range(24):
            missing -= _winners(turn + len(MOMENTS_S) * seed)
            if not missing:
                break
        assert missing == set()


def _winners(seed: int) -> set[str]:
    """By question, who has answered it, or what closed it."""

    async def main() -> set[str]:
        world = World.start(seed=seed)
        world.slow["append"] = 0.02
        saga = await SCENARIOS["confirmed"].drive(world)
        await world.settle()
        events = world.events(saga)
        by = {one.key: one.by for one in events if isinstance(one, SignalReceived) and one.name == ANSWER}
        return {
            f"{one.ask} {by.get(one.by, one.action)}" for one in events if isinstance(one, QuestionClosed)
        }

    return run_virtual(main())
