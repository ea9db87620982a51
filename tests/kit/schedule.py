"""A schedule: all that is drawn of one run of the simulation, as a value that can be run again, made smaller, and told.

What a world can be like besides its faults, and how a schedule is drawn and run. The faults are in faults.py; what
must hold is in oracles.py.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from tests.kit.corpus import Scenario
from tests.kit.faults import EVERYTHING, Chaos, Plan, script_of, scripted
from tests.kit.long_scenarios import ALL
from tests.kit.oracles import RESULT
from tests.kit.process import HANGS, HEADS, INDEX, REFUSES, RENEWALS, Outage
from tests.kit.verdict import ENDLESS, Verdict, run
from tests.kit.world import World

SCENARIOS = {scenario.name: scenario for scenario in ALL}
MOST_SKEW_MS = 3_000
Fault = tuple[str, int, str]
_WORLD = (
    "outages",
    "skew_ms",
    "is_warm",
    "slow",
    "killed_late_s",
    "start_late_s",
    "gap_s",
    "late_s",
    "stall_s",
    "rolls_s",
    "lease_ms",
)


@dataclass(frozen=True)
class Schedule:
    """One run. `faults` None: drawn from the seed as they come up, else these and no others."""

    scenario: str
    seed: int
    skew_ms: int = 0
    is_warm: bool = False
    gap_s: float = 60
    late_s: float = 9
    stall_s: float = 16
    rolls_s: float = 0
    start_late_s: float = 0
    killed_late_s: float = 0
    slow: tuple[tuple[str, float], ...] = ()
    budget: int = 12
    outages: tuple[Outage, ...] = ()
    faults: tuple[Fault, ...] | None = None
    lease_ms: int = 0  # 0: that of the scenario

    @classmethod
    def drawn(cls, seed: int) -> Schedule:
        """Any schedule there is."""
        draw = random.Random(f"schedule {seed}")
        outages = [_outage(draw)] if draw.random() < 0.3 else []
        return cls(
            scenario=draw.choice([*SCENARIOS]),
            seed=seed,
            skew_ms=draw.choice([0, 1_000, MOST_SKEW_MS]),
            is_warm=draw.random() < 0.5,
            gap_s=draw.choice([3, 20, 60]),
            late_s=draw.choice([6, 9, 14, 30]),
            stall_s=draw.choice([12, 16, 22]),
            start_late_s=draw.choice([0, 0, 4]),
            killed_late_s=draw.choice([0, 0.9]),
            slow=draw.choice([(), (), (("append", 0.2),), (("release", 0.04),)]),
            budget=draw.choice([0, 3, 12]),
            outages=tuple(outages),
            rolls_s=draw.choice([0, 0, 0, 20, 120]),
            lease_ms=draw.choice([0, 2_500, 4_000]),
        )

    def plan(self) -> Plan:
        if self.faults is not None:
            return scripted(self.faults)
        return Chaos(seed=self.seed, budget=self.budget, kinds=EVERYTHING, of={"renew": 0.3})

    def furnish(self, world: World) -> None:
        """Make a world like that."""
        world.seed, world.skew_ms, world.is_warm = self.seed, self.skew_ms, self.is_warm
        world.reconciler_gap_s, world.late_s, world.stall_s = self.gap_s, self.late_s, self.stall_s
        world.reconciler_first_s, world.killed_late_s = self.gap_s, self.killed_late_s
        world.slow.update(self.slow)
        world.start_late_s, world.outages, world.rolls_s = self.start_late_s, self.outages, self.rolls_s
        if self.lease_ms:
            world.limits = replace(world.limits, lease_ms=self.lease_ms)

    def simpler(self) -> Iterator[Schedule]:
        """Schedules with a little less in them, the most promising first."""
        faults = self.faults or ()
        size = len(faults)
        while size:
            for start in range(0, len(faults), size):
                yield replace(self, faults=faults[:start] + faults[start + size :])
            size //= 2
        plain = Schedule(self.scenario, self.seed)
        for name in _WORLD:
            if getattr(self, name) != getattr(plain, name):
                yield replace(self, **{name: getattr(plain, name)})


def _outage(draw: random.Random) -> Outage:
    begin = draw.choice([0, 2, 10])
    service = draw.choice(["s3", "sqs", "lambda", "dynamodb", INDEX, HEADS, RENEWALS])
    return Outage(service, draw.choice([HANGS, REFUSES]), begin, begin + draw.choice([8, 60, 180]))


@lru_cache
def undisturbed(scenario: Scenario) -> Verdict:
    """What a scenario comes to when nothing goes wrong."""
    return run(scenario, Plan())


@dataclass(frozen=True)
class Trial:
    """A schedule that was run. `schedule` names its faults one by one; `broken` are the promises it broke."""

    schedule: Schedule
    verdict: Verdict
    broken: tuple[str, ...]

    @property
    def oracles(self) -> frozenset[str]:
        return frozenset(text.partition(":")[0] for text in self.broken)


def trial(schedule: Schedule) -> Trial:
    """Run it. Whatever it raises is the harness's own mistake, and no oracle's word."""
    scenario = SCENARIOS[schedule.scenario]
    plan, expected = schedule.plan(), undisturbed(scenario)
    verdict = run(scenario, plan, schedule.furnish)
    broken = verdict.broken
    if verdict.result != expected.result and not scenario.has_open_end:
        broken = (*broken, f"{RESULT}: {verdict.result} instead of {expected.result}")
    return Trial(replace(schedule, faults=tuple(script_of(plan))), verdict, broken)


def minimised(found: Trial, tries: int = 300) -> Trial:
    """The smallest schedule found that still breaks a promise of one of the same oracles."""
    best = found
    is_smaller = True
    while is_smaller and tries > 0:
        is_smaller = False
        for simpler in best.schedule.simpler():
            again = trial(simpler)
            tries -= 10 if again.verdict.status == ENDLESS else 1  # it takes so much longer
            if again.oracles & found.oracles:
                best, is_smaller = again, True
                break
            if tries <= 0:
                break
    return best
