"""An agent whose worker, store, messages or model fail at any moment: same answer, same effects, and nothing asked or paid for twice."""

from __future__ import annotations

import os
from functools import cache

import pytest

from tests.kit.corpus import CORPUS
from tests.kit.faults import (
    CRASH_AFTER,
    CRASH_BEFORE,
    DELAYED,
    FREEZE,
    HANG,
    LATE,
    LOST,
    STALL,
    THROTTLE,
    TWICE,
    Plan,
)
from tests.kit.schedule import SCENARIOS, Schedule, trial, undisturbed
from tests.kit.verdict import run

pytestmark = pytest.mark.simulation

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))  # `make soak` draws twice as many seeds and places

OF_ANSWERS = (CRASH_BEFORE, CRASH_AFTER, THROTTLE, HANG, LATE, STALL, FREEZE)


@cache
def answers(scenario: str = "thinks") -> list[int]:
    """The numbers of the reads that are requests to the model."""
    plan = Plan()
    run(next(one for one in CORPUS if one.name == scenario), plan)
    return [number for number, read in enumerate(plan.reads, 1) if read == "answer"]


def test_five_requests_are_made_where_nothing_goes_wrong() -> None:
    assert len(answers()) == 5, "four turns, and one answer that is corrected"


@pytest.mark.parametrize("fate", OF_ANSWERS)
def test_a_model_that_fails_or_dies_with_its_worker_changes_nothing(fate: str) -> None:
    for number in answers()[:: 1 if IS_ALL else 3]:
        found = trial(Schedule("thinks", 0, faults=(("read", number, fate),)))
        assert any("a model's answer" in fault for fault in found.verdict.faults)
        assert found.broken == (), f"{fate} at read {number}"


def test_a_model_that_is_asked_about_each_item_of_a_list_and_fails_or_dies_changes_nothing() -> None:
    assert len(answers("surveys")) == 5, "four items, and one answer that is corrected"
    for fate in OF_ANSWERS:
        for number in answers("surveys")[:: 1 if IS_ALL else 4]:
            found = trial(Schedule("surveys", 0, faults=(("read", number, fate),)))
            assert found.broken == (), f"{fate} at read {number}"
    for number in range(1, len(undisturbed(SCENARIOS["surveys"]).writes) + 1, 1 if IS_ALL else 6):
        for fate in (CRASH_BEFORE, CRASH_AFTER):
            found = trial(Schedule("surveys", 0, faults=(("write", number, fate),)))
            assert found.broken == (), f"{fate} at write {number}"


def test_a_request_is_lost_with_its_worker_again_and_again_and_each_is_counted() -> None:
    first, *_ = answers()
    twice = tuple(("read", number, CRASH_AFTER) for number in answers())
    assert trial(Schedule("thinks", 0, faults=twice)).broken == ()
    assert trial(Schedule("thinks", 0, faults=(("read", first, CRASH_BEFORE), *twice[1:]))).broken == ()


@pytest.mark.parametrize("fate", [LOST, TWICE, DELAYED])
def test_messages_that_are_lost_late_or_doubled_change_nothing(fate: str) -> None:
    for number in range(1, 9, 1 if IS_ALL else 4):
        assert trial(Schedule("thinks", 0, faults=(("message", number, fate),))).broken == ()


@pytest.mark.parametrize("seed", range(12 if IS_ALL else 3))
def test_a_dozen_faults_at_once_and_clocks_that_differ_change_nothing(seed: int) -> None:
    schedule = Schedule("thinks", seed, skew_ms=(0, 1_000, 3_000)[seed % 3], is_warm=bool(seed % 2))
    found = trial(schedule)
    assert found.broken == (), found.schedule


def test_an_account_that_does_not_answer_and_a_worker_that_dies_then_lose_no_more_than_is_said() -> None:
    writes = undisturbed(SCENARIOS["thinks"]).writes
    moves = [number for number, write in enumerate(writes, 1) if write == "move"]
    assert len(moves) > 8
    for move in moves[:: 1 if IS_ALL else 4]:
        for fate in (HANG, LATE):
            faults = (("write", move, fate), ("write", move + 2, CRASH_AFTER))
            assert trial(Schedule("thinks", 0, faults=faults)).broken == (), faults
    assert trial(Schedule("asked", 2204)).broken == (), "a settling write hangs, and its worker dies"


# ---- a model that puts something else in the place of a step -----------------------------------------------------


def test_a_plan_takes_two_requests_where_nothing_goes_wrong() -> None:
    assert len(answers("replans")) == 2, "one answer is corrected"
    assert run(next(one for one in CORPUS if one.name == "replans"), Plan()).output == ["remit 5", 6, 7]


@pytest.mark.parametrize("fate", OF_ANSWERS)
def test_a_plan_whose_model_fails_or_dies_with_its_worker_is_the_same(fate: str) -> None:
    for number in answers("replans"):
        found = trial(Schedule("replans", 0, faults=(("read", number, fate),)))
        assert any("a model's answer" in fault for fault in found.verdict.faults)
        assert found.broken == (), f"{fate} at read {number}"


@pytest.mark.parametrize("seed", range(6 if IS_ALL else 2))
def test_a_plan_is_the_same_with_a_dozen_faults_at_once(seed: int) -> None:
    schedule = Schedule("replans", seed, skew_ms=(0, 1_000, 3_000)[seed % 3], is_warm=bool(seed % 2))
    found = trial(schedule)
    assert found.broken == (), found.schedule
