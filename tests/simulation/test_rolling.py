"""A release is rolled out, and perhaps back, while sagas run: workers of both take turns, and all ends as without it.

In `make test` every eighth scenario meets the one, and every eighth the other, in `make soak` all meet both (`BATON_CRASH_POINTS=all`).
"""

from __future__ import annotations

import os

import pytest

from tests.kit.faults import Plan
from tests.kit.schedule import SCENARIOS, undisturbed
from tests.kit.verdict import run
from tests.kit.world import World

pytestmark = pytest.mark.simulation


IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))
RELEASES = [(4, True), (150, False)]
CASES = [
    (name, *release)
    for place, name in enumerate(SCENARIOS)
    for turn, release in enumerate(RELEASES)
    if IS_ALL or 4 * turn == place % 8
]


@pytest.mark.parametrize(("name", "rolls_s", "is_warm"), CASES)
def test_what_the_newer_release_has_written_is_left_to_it(name: str, rolls_s: int, is_warm: bool) -> None:
    scenario, worlds = SCENARIOS[name], list[World]()

    def rolling(world: World) -> None:
        world.rolls_s, world.is_warm = rolls_s, is_warm
        worlds.append(world)

    found, expected = run(scenario, Plan(), rolling), undisturbed(scenario)
    assert found.broken == ()
    assert scenario.has_open_end or found.result == expected.result
    assert "revived" not in found.kinds - expected.kinds, "nothing has died"
    assert worlds[0].dead_letters.letters == []
