"""A fault at every single write of every shape of saga: a crash, a lost answer, a hang, a late landing, a freeze: same end, nothing lost.

`make test` lets each kind of write meet each fate about once, through the whole corpus: the first of its kind in a scenario or the last, in turn.
`make soak` begins with all fates at all writes.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from inspect import isfunction
from itertools import chain, cycle
from pkgutil import iter_modules

import pytest

from baton import ports
from baton.core.log.codec import TAGS
from tests.kit.corpus import CORPUS, Scenario
from tests.kit.faults import CALLS, EVERYTHING, READS, WRITES
from tests.kit.schedule import Schedule, trial, undisturbed

pytestmark = pytest.mark.simulation

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))


def test_the_corpus_has_every_kind_of_event_and_every_write() -> None:
    verdicts = [undisturbed(scenario) for scenario in CORPUS]
    # That a worker gives up takes a store that refuses (test_liveness.py), that no alternative is left a model that knows none
    # (runtime/test_replanning.py), that a step is held a target that is down (test_breakers.py), and late items are in test_maps.py,
    # steps that are stopped while they act in test_taking_back.py, and damaged logs in test_recovery.py.
    rare = {"gave_up", "replan_ended", "step_held", "map_ended", "step_stopped", "workflow_recovered"}
    assert set().union(*(verdict.kinds for verdict in verdicts)) >= TAGS - rare
    # An invocation of its own needs a batch (runtime/test_killers.py), what is postponed a head that cannot be read, a draw a
    # tenant's day (the scenario `tenants` of long_scenarios.py), a breaker a target that is down (test_breakers.py), letters their own
    # worlds (test_dead_letters.py), pauses of workflows are in test_pauses.py, and requests are counted where they come in (test_limits_of_requests.py).
    elsewhere = {
        "invoke",
        "postpone",
        "draw",
        "write_breaker",
        "write_rule",
        "tell_rule",
        "write_pauses",
        "write_tag",
        "write",
        "delete",
        "spend",
        "acknowledge",
    }
    assert {write for verdict in verdicts for write in verdict.writes} >= WRITES - elsewhere


def test_every_call_of_a_port_is_known_as_a_write_or_as_a_read() -> None:
    """One that is not would never lose its answer, and never die behind what it has written."""
    # Of the process itself, or played by another part of a world: tools, services, models (simulated_models.py), entities (payments.py),
    # workers of other builds (test_versions.py). Facts are written and read as rows of `Checkpoints`.
    own = "Builds DeployedBuilds UnitLog CallJournal WorkflowFunctions FunctionSession Clock Meter Pulse Entropy Offload Performer Watch Watchdog Sandbox HttpClient Credentials Mailer Objects Models Embedder Facts Spans Store"
    modules = (import_module(f"{ports.__name__}.{module.name}") for module in iter_modules(ports.__path__))
    calls = {
        port.__name__: {name for name, call in vars(port).items() if isfunction(call) and name[0] != "_"}
        for module in modules
        for port in vars(module).values()
        if getattr(port, "_is_protocol", False) and port.__name__ not in {*own.split(), "Protocol"}
    }
    calls["Notices"].remove("reaches")  # whether a channel reaches people is a setting of its process
    assert {port: {*writes.split(), *reads.split()} for port, (writes, reads) in CALLS.items()} == calls
    assert not WRITES & READS  # a fate knows a call by its name


@pytest.mark.parametrize("scenario", CORPUS, ids=lambda scenario: scenario.name)
def test_an_undisturbed_saga_ends_as_it_should(scenario: Scenario) -> None:
    verdict = undisturbed(scenario)
    assert verdict.status == scenario.expected
    assert verdict.broken == ()


@cache
def points() -> Mapping[tuple[str, str], list[tuple[int, str]]]:
    """By scenario and fate, the writes that meet it: among those of one kind the fates take turns, through the whole corpus."""
    chosen: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    all_writes = [undisturbed(scenario).writes for scenario in CORPUS]
    places = [
        [*enumerate(its, 1)] if IS_ALL else [*_one_of_a_kind(its, turn)]
        for turn, its in enumerate(all_writes)
    ]
    counts = Counter(write for _, write in chain(*places))
    turns = {write: _fates_in_turn(count) for write, count in counts.items()}
    for scenario, its in zip(CORPUS, places, strict=True):
        for number, write in its:
            for fate in EVERYTHING if IS_ALL else next(turns[write]):
                chosen[scenario.name, fate].append((number, write))
    return chosen


def _fates_in_turn(count: int) -> Iterator[Sequence[str]]:
    """Fates of the writes of a kind that so many scenarios have: rare ones share them all, of the others some have none."""
    if count < len(EVERYTHING):
        return iter([EVERYTHING[first::count] for first in range(count)])
    apart = count // len(EVERYTHING)
    return cycle(chain.from_iterable(((fate,), *[()] * (apart - 1)) for fate in EVERYTHING))


def _one_of_a_kind(writes: Sequence[str], turn: int) -> Iterator[tuple[int, str]]:
    """Of each kind of write the first or the last, with its number."""
    places: dict[str, list[int]] = defaultdict(list)
    for number, write in enumerate(writes, 1):
        places[write].append(number)
    for write, numbers in places.items():
        yield numbers[-(turn % 2)], write


@pytest.mark.parametrize("fate", EVERYTHING)
def test_every_kind_of_write_meets_every_fate_somewhere(fate: str) -> None:
    there = {write for scenario in CORPUS for write in undisturbed(scenario).writes}
    assert {write for (_, its), found in points().items() if its == fate for _, write in found} == there


@pytest.mark.parametrize("fate", EVERYTHING)
@pytest.mark.parametrize("scenario", CORPUS, ids=lambda scenario: scenario.name)
def test_whatever_happens_at_any_one_write_the_end_is_the_same(scenario: Scenario, fate: str) -> None:
    for number, write in points().get((scenario.name, fate), ()):
        found = trial(Schedule(scenario.name, 0, faults=(("write", number, fate),)))
        assert found.broken == (), f"{fate} at write {number}, {write}"
