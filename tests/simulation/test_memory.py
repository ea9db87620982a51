"""Facts of users and kept results, while workers die and stores lose their answers."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import cycle, product
from typing import Any

import pytest

from tests.kit.memory_runs import FATES, MEMORY_BUGS, found_by, places, remembered

pytestmark = pytest.mark.simulation
IS_ALL = bool(
    os.environ.get("BATON_CRASH_POINTS")
)  # else the writes meet the fates in turn, every other one of them


def test_each_tenants_user_has_the_fact_that_was_kept_once_whatever_happens_to_its_write() -> None:
    broken, writes = remembered()
    assert broken == []
    assert len(places(writes)) >= 6
    drawn = product(FATES, places(writes)) if IS_ALL else zip(cycle(FATES), places(writes)[::2], strict=False)
    found = {(fate, at): remembered(fate, at)[0] for fate, at in drawn}
    assert not any(found.values()), {at: what for at, what in found.items() if what}


@pytest.mark.parametrize("bug", MEMORY_BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_is_found(bug: Callable[[], Any]) -> None:
    assert found_by(bug) >= 0, bug.__doc__
