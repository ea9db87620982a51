"""Every saga of the corpus fails at each of its steps and is undone, with faults at writes and inverses that fail: the books are as before.

`make test` takes some of the steps and a few faults of each saga; `make soak` begins with all steps, and all faults at all writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache, partial

import pytest

from baton.core.decide import unknown_outcomes
from tests.kit.bugs import replaced
from tests.kit.corpus import CORPUS, Scenario, patiently, start
from tests.kit.faults import (
    CRASH_AFTER,
    CRASH_BEFORE,
    EVERYTHING,
    HANG,
    LATE,
    NO_ANSWER,
    STALL,
    Chaos,
    Plan,
    scripted,
)
from tests.kit.undo_bugs import the_step_that_failed_is_undone_too
from tests.kit.undo_runs import Deeds, Undone, run
from tests.kit.undoable_tools import stops_with_its_round
from tests.kit.verdict import run as judge

pytestmark = pytest.mark.simulation

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))
HALF, QUARTER, OTHERS = (CORPUS,) * 3 if IS_ALL else (CORPUS[::2], CORPUS[::4], CORPUS[1::4])
FATES = EVERYTHING if IS_ALL else (CRASH_AFTER, CRASH_BEFORE, LATE, NO_ANSWER, HANG)
STAY = {"killer", "resumed", "overlong"}
"""What they do is never known to have happened: their workers die of it."""
OF_LOANS = {"lends-again", "finds-closed", "tried", "just-in-time", "too-late", "lends-in-turn"}
"""What they do has inverses of its own, and is undone before an operator comes."""

ALONE = {"handled": "failure-handler", "promises": "promises-chain"}
"""The saga of theirs that goes on alone, and stays: a failure handler runs when all is undone."""


@cache
def whole(scenario: Scenario) -> Undone:
    """The saga as it is, and then undone by an operator."""
    return run(scenario)


@pytest.mark.parametrize("scenario", HALF, ids=lambda scenario: scenario.name)
def test_a_saga_that_is_undone_by_an_operator_leaves_the_books_as_before(scenario: Scenario) -> None:
    found = whole(scenario)
    if alone := ALONE.get(scenario.name):
        assert {text.partition(" ended ")[0].rpartition(".")[2] for text in found.broken} == {alone}
        return
    assert found.broken == ()
    assert found.undone or not found.places or scenario.name in {*STAY, *OF_LOANS}


def steps(scenario: Scenario) -> Iterator[int]:
    """The steps that fail, by the order in which they begin."""
    number = CORPUS.index(scenario)
    yield from (n for n in range(1, whole(scenario).places + 1) if IS_ALL or (n + number) % 20 == 0)


@pytest.mark.parametrize("scenario", OTHERS, ids=lambda scenario: scenario.name)
def test_a_saga_that_fails_at_any_step_is_undone(scenario: Scenario) -> None:
    for step in steps(scenario):
        broken = run(scenario, step, closed=step % 3).broken
        of_handlers = [text for text in broken if text.partition(" ended ")[0].endswith(".failure-handler")]
        assert [text for text in broken if text not in of_handlers] == [], f"step {step} fails"
        assert scenario.name == "handled" or not of_handlers


def points(scenario: Scenario) -> Iterator[tuple[int, int, str]]:
    """Which step fails, and which write meets which fate."""
    found, number = whole(scenario), CORPUS.index(scenario)
    last = found.places
    if not IS_ALL:
        yield last, 2 + 7 * number % len(found.writes), FATES[number % len(FATES)]
        return
    yield from ((last, write, fate) for write in range(1, len(found.writes) + 1) for fate in FATES)


@pytest.mark.parametrize("scenario", QUARTER, ids=lambda scenario: scenario.name)
def test_whatever_happens_at_any_one_write_all_is_undone(scenario: Scenario) -> None:
    for step, write, fate in points(scenario):
        found = run(scenario, step, step % 3, scripted((("write", write, fate),)))
        assert found.broken == (), f"step {step} fails, and write {write} meets {fate}"


STALLED = {"fan": (9, 10), "rows": (9,), "thinks": (23,), "watched": (29,), "kids": (44,)}
"""Writes in which a worker stands still beside a call that another worker makes again and takes back before it ends."""


@pytest.mark.parametrize("name", STALLED)
def test_a_call_that_ends_after_it_was_made_again_and_taken_back_does_nothing(name: str) -> None:
    scenario = next(one for one in CORPUS if one.name == name)
    step = whole(scenario).places
    for write in STALLED[name]:
        assert run(scenario, step, step % 3, scripted((("write", write, STALL),))).broken == ()


def test_the_books_answer_a_known_key_and_name_what_is_done_with_one_that_was_taken_back() -> None:
    deeds, place = Deeds(), ("saga", "a")
    deeds.acts(place, "k")
    deeds.take_back(place, "inverse")
    deeds.acts(place, "k", is_heard=False)
    assert (deeds.in_force, deeds.strange) == (set(), [])
    deeds.acts(place, "k")
    assert deeds.strange == ["taken for done, and was taken back: ('saga', 'a')"]
    deeds.acts(place, "k2")
    assert deeds.in_force == {place}


def test_that_something_is_undone_that_never_happened_is_found() -> None:
    scenario = next(one for one in CORPUS if one.name == "chain")
    with the_step_that_failed_is_undone_too():
        found = run(scenario, whole(scenario).places)
    assert any(text.startswith("what never happened is undone") for text in found.broken)


STOPPED = Scenario("stopped", partial(stops_with_its_round, start=start, patiently=patiently), "rolled_back")


@pytest.mark.parametrize("seed", range(24 if IS_ALL else 3))
def test_what_the_end_of_a_round_has_stopped_is_asked_about_and_undone(seed: int) -> None:
    verdict = judge(STOPPED, Chaos(seed=seed, kinds=EVERYTHING) if seed else Plan())
    assert (verdict.status, verdict.broken) == ("rolled_back", ())
    assert seed or "step_stopped" in verdict.kinds


def test_that_the_end_of_a_round_stops_steps_without_a_word_is_found() -> None:
    with replaced(unknown_outcomes, "stopped_notices", lambda *_: iter(())):
        verdict = judge(STOPPED, Plan())
    assert any("in force, and no log knows of it" in text for text in verdict.broken), verdict.broken
