"""Sagas of functions stay with the version of the code that they began with, over a deploy and whatever dies meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tests.kit import version_bugs
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, NO_ANSWER
from tests.kit.version_runs import ENDS, KEPT, LATER_S, Versioned, sagas_over_a_deploy

pytestmark = pytest.mark.simulation

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))  # `make soak`
FATES = [CRASH_BEFORE, CRASH_AFTER, NO_ANSWER]
BUGS: tuple[tuple[Callable[[], Any], str, int], ...] = (
    (version_bugs.a_worker_does_not_look_for_the_build, ENDS, 0),
    (version_bugs.the_head_alone_says_which_version, ENDS, 8),
    (version_bugs.a_version_with_sagas_counts_as_drained, KEPT, 0),
)
DELETED_AT = (60, LATER_S, LATER_S + 600, LATER_S + 7_200)


@cache
def undisturbed(deletes_at_s: tuple[int, ...] = ()) -> tuple[list[str], Versioned]:
    return sagas_over_a_deploy(deletes_at_s)


def test_old_sagas_end_by_the_old_code_and_new_ones_by_the_new() -> None:
    broken, world = undisturbed()
    assert broken == []
    assert list(world.versions) == ["1", "2"]


def test_a_version_is_deleted_when_its_last_saga_has_ended() -> None:
    broken, world = undisturbed(DELETED_AT)
    assert broken == []
    assert list(world.versions) == ["2"]


@pytest.mark.parametrize("fate", FATES)
def test_it_holds_when_a_process_dies_at_a_write(fate: str) -> None:
    first, step = (1, 1) if IS_ALL else (1 + 20 * FATES.index(fate), 20 * len(FATES))
    points = range(first, len(undisturbed(DELETED_AT)[1].plan.writes) + 1, step)
    found = {at: sagas_over_a_deploy(DELETED_AT, at={at: fate})[0] for at in points}
    assert {at: broken for at, broken in found.items() if broken} == {}


@pytest.mark.parametrize("at", range(1, 70) if IS_ALL else (8, 9, 19))
def test_the_worker_that_began_it_dies_and_code_is_deployed(at: int) -> None:
    assert sagas_over_a_deploy(DELETED_AT, deploys_after_s=0, at={at: CRASH_AFTER})[0] == []


def test_it_holds_when_a_message_is_lost() -> None:
    for number in range(1, undisturbed()[1].plan.messages + 1, 1 if IS_ALL else 10):
        assert sagas_over_a_deploy(at_messages={number: "lost"})[0] == []


@pytest.mark.parametrize(("bug", "oracle", "at"), BUGS, ids=lambda one: getattr(one, "__name__", ""))
def test_a_planted_bug_is_found(bug: Callable[[], Any], oracle: str, at: int) -> None:
    with bug():
        broken, _ = sagas_over_a_deploy(DELETED_AT, deploys_after_s=0 if at else 120, at={at: CRASH_AFTER})
    assert any(text.startswith(f"{oracle}: ") for text in broken), bug.__doc__
