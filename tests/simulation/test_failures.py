"""Steps that fail at random, at any call of any tool, alone and with crashes, stalls and lost answers; people who decide.

What comes of a saga is then open, but never whether its log can be believed: see tests/kit/audit.py for what must hold.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.kit.corpus import Scenario
from tests.kit.failure_bugs import FAILURE_BUGS
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, STALL, Chaos, Plan
from tests.kit.found_at import first
from tests.kit.ordeal import SCENARIOS, Ordeal, endure, some_faults
from tests.kit.schedule import undisturbed
from tests.kit.troubles import CLASSES, Drawn, Script, says
from tests.kit.verdict import run

IN_MAKE_TEST = 26  # seeds at most: a scenario in which all that may come up has come up gets no more
SEEDS = int(os.environ.get("BATON_FAILURES", str(IN_MAKE_TEST)))
IS_ALL = SEEDS != IN_MAKE_TEST or bool(os.environ.get("BATON_CRASH_POINTS"))
FEWEST = 2  # runs of each scenario
SEARCHED = 40  # seeds in which a planted bug has to show

pytestmark = [
    pytest.mark.simulation,
    pytest.mark.timeout(120 if SEEDS <= 100 else 0),
]

CALLS_NOTHING = frozenset(
    {
        "signal-then-end",
        "parent-cancelled",
        "parent-forked",
        "crowd",
        "cancelled-early",
        "ticked",
        "announced",
    }
)
# A call or two in the whole saga: too few for every class to come up. (One that is called off at once ends there.)
CALLS_LITTLE = frozenset({"left-alone", "called-off"})
MET = {
    "mishaps": {"retry", "replan", "ask_user", "escalate", "rollback", "catch", "fail", "completed", "failed"}
    | {"answer retry", "answer use", "answer fail", "answer expired"},
    "effects": {"look", "recorded", "completed", "failed", "cancelled"},
    "resumed": {"parked", "cancelled", "completed", "failed", "answer expired"},
    "routes": {"tolerated", "replan"},
    "handed": {"retry", "rollback", "completed", "failed"},
}
"""What comes up in a scenario besides the classes: every strategy, every answer, every end."""


SHOWING = {
    "long-wait": (0, 1, 2, 3, 4, 17),
    "resumed": (0, 3, 9, 10, 16),
    "failing": (4, 10, 14, 15),
    "effects": (1, 4, 13),
    "mishaps": (0, 1, 18, 25),
    "losers": (12, 14, 20),
    "losers-at-the-end": (0, 3, 11),
    "early-end": (0, 3, 4, 11),
    "replans": (0, 3, 7),
    "chain": (0, 7, 24),
    "parent": (0, 20),
    "killer": (5, 16, 19, 20, 24),
    "forked": (7, 16, 24),
    "questions": (3, 10, 11, 19, 23),
    "escalated": (0, 1, 4, 17, 19),
    "lends-again": (5, 9, 10),
    "handled": (0, 4, 17),
    "handed": (10, 12, 19),
    "watched": (3, 4),
    "forgets": (9, 17, 19),
    "kids": (12, 14, 16, 17),
    "chosen": (0, 4, 11),
    "ponders": (0, 17, 19),
}
"""The seeds in which everything came up before, where others come to nothing new: `make test` begins with them."""


def ordeals(scenario: Scenario) -> Iterator[tuple[str, Ordeal]]:
    """Every run, by what it was drawn from. In `make test` every third has faults, in `make failures` each seed is run with and without."""
    known = SHOWING.get(scenario.name, ())
    for seed in (*known, *(seed for seed in range(SEEDS) if seed not in known)):
        if seed % 3 or SEEDS > IN_MAKE_TEST:
            yield f"{scenario.name}, seed {seed}", endure(scenario, seed, Plan())
        if seed % 3 == 0 or SEEDS > IN_MAKE_TEST:
            yield f"{scenario.name}, seed {seed} with faults", endure(scenario, seed, some_faults(seed))


# `make test` takes every other one, and those in which the most can come up; `make soak` and `make failures` take all.
TAKEN = [one for place, one in enumerate(SCENARIOS) if IS_ALL or place % 2 or one.name in MET]


@pytest.mark.parametrize("scenario", TAKEN, ids=lambda scenario: scenario.name)
def test_whatever_fails_wherever_the_log_can_be_believed_and_nothing_is_lost(scenario: Scenario) -> None:
    expected = undisturbed(scenario)
    met: set[str] = set()
    calls_little = scenario.name in CALLS_NOTHING | CALLS_LITTLE
    wanted = set() if calls_little else {*CLASSES} | MET.get(scenario.name, set())
    for count, (where, ordeal) in enumerate(ordeals(scenario), 1):
        assert ordeal.broken == (), f"{where}: {ordeal.faults}"
        assert not ordeal.is_comparable or ordeal.output == expected.output, where
        met |= ordeal.met
        if SEEDS == IN_MAKE_TEST and count >= FEWEST and met >= wanted:
            break
    assert SEEDS < IN_MAKE_TEST or met >= wanted, "not everything came up"


def test_the_same_seed_gives_the_same_failures() -> None:
    scenario = SCENARIOS[0]
    first, second = (endure(scenario, 3, some_faults(3)) for _ in range(2))
    assert first == second
    assert first.failures
    assert first.faults


ACTED_THEN_STUCK: Script = {
    ("pay", "pay"): [Drawn("recoverable", says("unauthorized"), doubtful=False)],
    ("pay", "log_in"): [None, Drawn("permanent", says("business_rule"), doubtful=False)],
}
"""Its second attempt acts; if its process dies then, the same attempt does not come as far again."""


@pytest.mark.parametrize("fate", [CRASH_BEFORE, CRASH_AFTER])
def test_what_may_have_acted_before_a_death_is_looked_at_though_the_next_try_fails_before_it(
    fate: str,
) -> None:
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == "effects")
    acted = 0
    for write in range(8, 40, 1 if IS_ALL else 3):
        ordeal = endure(scenario, 0, Plan({write: fate}), ACTED_THEN_STUCK)
        assert ordeal.broken == (), f"{fate} at write {write}"
        acted += ordeal.failures > 1
    assert acted, "no process ever died in between"


def searched() -> Iterator[tuple[int, Plan]]:
    """Where a planted bug is looked for."""
    for seed in range(SEARCHED):
        yield seed, Plan()
        yield seed, some_faults(seed)
    for one in range(8, 11):  # one stall before a call, and one that keeps everybody else from noticing
        for another in range(one + 1, one + 11):
            yield 0, Plan({one: STALL, another: STALL})


def found_by(name: str) -> int:
    """The number of the ordeal that shows a planted bug; -1 if none does."""
    bug, scenario = FAILURE_BUGS[name][0], _scenario_of(name)
    with bug():
        return first(name, [*searched()], lambda drawn: bool(endure(scenario, *drawn).broken))


def _scenario_of(name: str) -> Scenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == FAILURE_BUGS[name][1])


@pytest.mark.parametrize("name", FAILURE_BUGS)
def test_a_planted_bug_about_failures_shows_here_and_nowhere_else(name: str) -> None:
    bug, scenario = FAILURE_BUGS[name][0], _scenario_of(name)
    assert found_by(name) >= 0, bug.__doc__
    with bug():
        for plan in (Plan(), Chaos(seed=0)):
            assert run(scenario, plan).broken == (), "it shows without failures at random, too"
