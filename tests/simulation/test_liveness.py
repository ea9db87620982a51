"""The reconciler alone finishes every saga, and no service that is out of order keeps the others from doing their work.

In `make test` each scenario meets one outage in ten, others in turn, and every third one few faults; in `make soak` all of them.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from tests.kit.corpus import CORPUS, Scenario
from tests.kit.faults import LATE, Chaos, Plan
from tests.kit.process import HANGS, INDEX, REFUSES, Outage
from tests.kit.schedule import Schedule, trial, undisturbed
from tests.kit.verdict import run
from tests.kit.world import World

pytestmark = pytest.mark.simulation

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))
SEEDS = 6 if IS_ALL else 1
OUTAGES = (
    Outage("sqs", REFUSES),
    Outage("sqs", HANGS),
    Outage("lambda", REFUSES),
    Outage("lambda", HANGS),
    Outage("s3", HANGS, 0.1, 180),
    Outage("s3", REFUSES, 0.1, 180),
    Outage("dynamodb", HANGS, 1, 180),
    Outage("dynamodb", REFUSES, 1, 180),
    Outage(INDEX, REFUSES, 0.1, 180),
    Outage(INDEX, REFUSES, 3, 60),
)
MET = [
    (scenario, outage)
    for place, scenario in enumerate(CORPUS)
    for turn, outage in enumerate(OUTAGES)
    if IS_ALL or (place + turn) % 40 == 0
]


def nothing_but_the_reconciler(world: World) -> None:
    world.stream_on = world.queue_on = False


@pytest.mark.parametrize("scenario", CORPUS if IS_ALL else CORPUS[1::4], ids=lambda scenario: scenario.name)
def test_the_reconciler_alone_finishes_every_saga(scenario: Scenario) -> None:
    expected = undisturbed(scenario)
    verdict = run(scenario, Plan(), nothing_but_the_reconciler)
    assert verdict.result == expected.result or scenario.has_open_end
    assert verdict.broken == ()


@pytest.mark.parametrize("scenario", CORPUS if IS_ALL else CORPUS[::6], ids=lambda scenario: scenario.name)
def test_the_reconciler_alone_finishes_every_saga_through_faults_too(scenario: Scenario) -> None:
    expected = undisturbed(scenario)
    for seed in range(SEEDS):
        verdict = run(scenario, Chaos(seed=seed), nothing_but_the_reconciler)
        assert verdict.result == expected.result or scenario.has_open_end, f"seed {seed}: {verdict.faults}"
        assert verdict.broken == (), f"seed {seed}: {verdict.faults}"


@pytest.mark.parametrize(
    ("scenario", "outage"),
    MET,
    ids=[f"{scenario.name}-{outage.service} {outage.how} {outage.begin_s:g}" for scenario, outage in MET],
)
def test_a_service_that_is_out_of_order_delays_and_loses_nothing(scenario: Scenario, outage: Outage) -> None:
    """SQS and Lambda's invoke for good, the stores for three minutes: and no person has to come."""
    found = trial(Schedule(scenario.name, 0, outages=(outage,), faults=()))
    assert found.broken == ()


REFUSED_AND_SLOW = Schedule(
    "escalated",
    157,
    slow=(("append", 0.2),),
    outages=(Outage(INDEX, REFUSES, 10, 190),),
    faults=(("write", 6, LATE), ("write", 11, LATE)),
)
"""A table that frees no lease, and takes as long for an entry as an invocation has left when it gives up."""


def test_a_worker_that_can_neither_free_its_lease_nor_say_so_in_time_counts_as_dead() -> None:
    found = trial(REFUSED_AND_SLOW)
    assert found.broken == ()
    assert "revived" in found.verdict.kinds, "one is said to have died"
    quicker = trial(replace(REFUSED_AND_SLOW, slow=(("append", 0.02),)))
    assert quicker.broken == ()
    assert "revived" not in quicker.verdict.kinds, "with an entry that is in time there is no death"
    assert "gave_up" in quicker.verdict.kinds
