"""The simulation can see: every planted engine bug of kit/bugs.py turns it red."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.bugs import BUGS
from tests.kit.corpus import CORPUS
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, FREEZE, STALL, Chaos, Plan
from tests.kit.races import race
from tests.kit.verdict import run

pytestmark = pytest.mark.simulation


def plans(writes: int) -> Iterator[Plan]:
    yield Plan()
    for number in range(1, writes + 1):
        for fate in (CRASH_BEFORE, CRASH_AFTER, STALL, FREEZE):
            yield Plan({number: fate})
    for seed in range(60):
        yield Chaos(seed=seed)


def is_seen(scenario_name: str) -> bool:
    if scenario_name == "race":
        return any(race(step / 1_000, "signal").seconds > 5 for step in range(160))
    scenario = next(scenario for scenario in CORPUS if scenario.name == scenario_name)
    for plan in plans(EXPECTED[scenario_name].writes.__len__()):
        try:
            verdict = run(scenario, plan)
        except Exception:  # noqa: BLE001  # a planted bug may show as any error at all
            return True
        if verdict.broken or verdict.result != EXPECTED[scenario_name].result:
            return True
    return False


EXPECTED = {scenario.name: run(scenario, Plan()) for scenario in CORPUS}


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_turns_the_simulation_red(name: str) -> None:
    bug, scenario = BUGS[name]
    with bug():
        assert is_seen(scenario), f"nothing showed: {bug.__doc__}"


@pytest.mark.parametrize("scenario", sorted({scenario for _, scenario in BUGS.values()}))
def test_without_a_bug_the_same_search_stays_green(scenario: str) -> None:
    assert not is_seen(scenario)
