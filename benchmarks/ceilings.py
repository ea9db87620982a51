"""How many sagas a second a deployment can start, and what gives way first: arithmetic on counts, quotas and parameters.

The counts are the engine's own (counts.py), the quotas AWS's (quotas.py), the parameters those of template.yaml. What it
costs, and what waiting and outages come to, is in scale.py.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from baton.adapters.dynamo.items import DUE_INDEX, STATUS_INDEX
from baton.core.read.costs import BillingSettings, units
from baton.runtime import reconcile
from baton.runtime.starting import start
from benchmarks import quotas
from benchmarks.cost import VCPU_MB
from benchmarks.counts import TABLE_ITSELF, Counts, Use
from benchmarks.money import attempts_per_second
from benchmarks.quotas import ACCOUNT, AWS
from docs.settings_table import template

SETTING = "a setting"
ROUND_TRIP_S = 0.005  # of a request to DynamoDB or SQS, as in cost.py
INVOKE_S = 0.05  # of an asynchronous invocation, from the reconciler's side; an assumption
WRITE_CPU_S = 0.0018  # of the worker for a step and its write over HTTP: the median of the bench `overhead`
WRITES_AROUND = 4  # as much again for taking a saga, reading it, and giving it back
API_S = BillingSettings().request / 1_000
STATE_MACHINE = Path(__file__).parents[1] / "statemachine/reconcile.asl.json"


@dataclass(frozen=True)
class Load:
    """Sagas of so many steps, one after the other, each with an entry of so many bytes. All of one tenant and one workflow.

    `is_spending`: all of one user, too, and each step costs something.
    """

    starts: float = 100
    steps: int = 10
    step_s: float = 1.0
    entry_bytes: int = 1_024
    is_spending: bool = False

    @property
    def lasts_s(self) -> float:
        return self.steps * self.step_s


@dataclass(frozen=True)
class Setup:
    """A deployment: parameters that are not at their defaults, and quotas of the account that were raised, by their `what`."""

    given: Mapping[str, float] = field(default_factory=dict)
    raised: Mapping[str, float] = field(default_factory=dict)

    def __getitem__(self, parameter: str) -> float:
        return float(self.given.get(parameter, template()["Parameters"][parameter]["Default"]))

    def quota(self, quota: quotas.Quota) -> float:
        return self.raised.get(quota.what, quota.value)

    # ---- what the template makes of its parameters

    @property
    def batch(self) -> float:
        return self["WakeBatch"]

    @property
    def warm_writes(self) -> float:
        """Write units a second that the table, and each index, takes at once."""
        return max(self["WarmWrites"], quotas.COLD_WRITES.value)

    @property
    def warm_reads(self) -> float:
        return max(self["WarmReads"], quotas.COLD_READS.value)

    @property
    def wakes_per_s(self) -> float:
        """Sagas a second that the reconciler wakes, over its period: while it runs, as many shards as its state machine takes."""
        return self._calls_per_s * reconcile.PER_CALL / INVOKE_S

    @property
    def times_per_s(self) -> float:
        """Timers a second that it sends ahead."""
        return self._calls_per_s * reconcile.PER_CALL / ROUND_TRIP_S

    @property
    def _calls_per_s(self) -> float:
        timeout_s = float(template()["Resources"]["ReconcilerFunction"]["Properties"]["Timeout"])
        share = min(1.0, (timeout_s - reconcile.RESERVE_MS / 1_000) / (60 * self["ReconcileMinutes"]))
        return min(self["Shards"], reconcile.RUNS, side_by_side()) * reconcile.SIDE_BY_SIDE * share


def relay_batch() -> int:
    """Wakes of one invocation of the relay at most."""
    events = template()["Resources"]["RelayFunction"]["Properties"]["Events"]
    return int(events["Outbox"]["Properties"]["BatchSize"])


@cache
def side_by_side() -> int:
    """Shards that the state machine goes through at once."""
    state = json.loads(STATE_MACHINE.read_text("utf-8"))["States"]["EachShard"]
    most = int(quotas.MAP_AT_ONCE.value)
    return min(int(state["MaxConcurrency"]) or most, most)


class Ceiling(NamedTuple):
    """So many starts a second, and no more. `holds_for`: SETTING, ACCOUNT or AWS; `raise_by`: parameters, or the quota."""

    what: str
    per_s: float
    holds_for: str
    raise_by: tuple[str, ...]


def turns(load: Load, setup: Setup) -> int:
    """Invocations of one saga, where others wait: none begins a step after its turn, or for which its time is too short."""
    most_s = min(setup["TurnMs"] / 1_000, setup["WorkerTimeout"] - setup["YieldReserveMs"] / 1_000)
    return math.ceil(load.steps / max(1, math.floor(most_s / load.step_s)))


def use_of(load: Load, setup: Setup, counts: Counts) -> Use:
    """What one saga uses from its start to its end."""
    entry = Use(writes={TABLE_ITSELF: counts.step.writes[TABLE_ITSELF] * (units(load.entry_bytes) - 1)})
    return counts.saga + (counts.step + entry) * load.steps + counts.further * (turns(load, setup) - 1)


def ceilings(load: Load, setup: Setup, counts: Counts) -> list[Ceiling]:
    """All of them, the lowest first."""
    return sorted(_ceilings(load, setup, counts), key=lambda ceiling: ceiling.per_s)


def _ceilings(load: Load, setup: Setup, counts: Counts) -> Iterator[Ceiling]:
    yield from _of_lambda(load, setup)
    yield from _of_tenant(load, setup)
    yield from _of_table(load, setup, counts)
    yield from _of_hand_overs(load, setup, counts)


def _of_lambda(load: Load, setup: Setup) -> Iterator[Ceiling]:
    slots = setup["WorkerConcurrency"] * setup.batch / load.lasts_s
    yield Ceiling("worker slots", slots, SETTING, ("WorkerConcurrency", "WakeBatch"))
    processors = min(1.0, setup["WorkerMemory"] / VCPU_MB) * setup["WorkerConcurrency"]
    yield Ceiling(
        "the workers' processors",
        processors / ((load.steps + WRITES_AROUND) * WRITE_CPU_S),
        SETTING,
        ("WorkerConcurrency", "WorkerMemory"),
    )
    at_once = load.lasts_s / setup.batch + API_S
    yield Ceiling(
        "Lambda's invocations at once",
        setup.quota(quotas.CONCURRENCY) / at_once,
        ACCOUNT,
        ("WakeBatch", quotas.CONCURRENCY.what),
    )


def _of_tenant(load: Load, setup: Setup) -> Iterator[Ceiling]:
    limit = setup["TenantRateLimit"]
    yield Ceiling("the tenant's rate", limit or math.inf, SETTING, ("TenantRateLimit",))
    yield Ceiling(
        "the tenant's sagas at work", setup["TenantSagas"] / load.lasts_s, SETTING, ("TenantSagas",)
    )
    yield Ceiling("the API's rate", setup["ApiRateLimit"], SETTING, ("ApiRateLimit",))
    if load.is_spending:
        yield Ceiling("the key of one user's day", of_one_user(load, setup), AWS, ())
    yield Ceiling("API Gateway", setup.quota(quotas.API_REQUESTS), ACCOUNT, (quotas.API_REQUESTS.what,))


def of_one_user(load: Load, setup: Setup) -> float:
    """Starts a second whose steps one user's key of the day can count, in as many invocations as serve that best (money.py)."""
    sagas = round(setup.batch)
    most = max(attempts_per_second(invocations, load.step_s, sagas) for invocations in range(1, 1_000))
    return most / load.steps


def _of_table(load: Load, setup: Setup, counts: Counts) -> Iterator[Ceiling]:
    use = use_of(load, setup, counts)
    most = max(use.writes.values())
    yield Ceiling(
        "the table's quota", setup.quota(quotas.TABLE_WRITES) / most, ACCOUNT, (quotas.TABLE_WRITES.what,)
    )
    yield Ceiling("a cold table, its writes", setup.warm_writes / most, SETTING, ("WarmWrites",))
    yield Ceiling("a cold table, its reads", setup.warm_reads / use.reads, SETTING, ("WarmReads",))
    for name, shards, parameter in (
        (DUE_INDEX, setup["Shards"], "Shards"),
        (STATUS_INDEX, setup["StatusShards"], "StatusShards"),
    ):
        per_s = quotas.PARTITION_WRITES.value * shards / use.hottest(name)
        yield Ceiling(f"{name}, its shards", per_s, SETTING, (parameter,))
    counting = counts_of_tenant(Load(1, load.steps, load.step_s), setup, counts)
    for what, most, holds_for, parameter in (
        ("its shards", setup["StatusShards"] * quotas.PARTITION_READS.value, SETTING, "StatusShards"),
        ("cold", setup.warm_reads, SETTING, "WarmReads"),
        ("its quota", setup.quota(quotas.TABLE_READS), ACCOUNT, quotas.TABLE_READS.what),
    ):
        name = f"{STATUS_INDEX}, {what}, read for `TenantSagas`"
        yield Ceiling(name, math.sqrt(most / counting), holds_for, (parameter,))
    key = quotas.PARTITION_READS.value / (counts.definition_reads * API_S)
    yield Ceiling("the newest version of one workflow", key, AWS, ())
    if load.entry_bytes > setup["InlineBytes"]:
        yield Ceiling("the bucket's PUTs", quotas.S3_PUTS.value / load.steps, AWS, ())


def counts_of_tenant(load: Load, setup: Setup, counts: Counts) -> float:
    """Read units a second for counting a tenant's sagas at work: each process of the API counts them every ten seconds.

    It grows with the square of the starts: so many processes count so many rows.
    """
    processes = load.starts * API_S
    rows = load.starts * load.lasts_s
    return processes / (start.GOOD_FOR_MS / 1_000) * rows * counts.at_work_bytes / 4_096 / 2


def relayed_per_s(load: Load, setup: Setup, counts: Counts) -> float:
    """Wakes a second that the relay can pass on. A stream has a shard for each partition, a table as many as its load takes."""
    one_s = BillingSettings().passing / 1_000 + relay_batch() / quotas.QUEUE_BATCH.value * ROUND_TRIP_S
    units_per_s = max(setup.warm_writes, load.starts * max(use_of(load, setup, counts).writes.values()))
    shards = units_per_s / quotas.PARTITION_WRITES.value
    return shards * setup["RelayParallelization"] * relay_batch() / one_s


def _of_hand_overs(load: Load, setup: Setup, counts: Counts) -> Iterator[Ceiling]:
    per_s = relayed_per_s(load, setup, counts) / use_of(load, setup, counts).relayed
    yield Ceiling("the relay", per_s, SETTING, ("RelayParallelization",))
    in_flight = setup.quota(quotas.QUEUE_IN_FLIGHT)
    yield Ceiling(
        "the queue's messages in flight", in_flight / load.lasts_s, ACCOUNT, (quotas.QUEUE_IN_FLIGHT.what,)
    )
    if counts.timed_at_work:
        runs = setup.times_per_s * 60 * setup["ReconcileMinutes"]
        yield Ceiling(
            "a run of the reconciler", runs / (load.lasts_s * counts.timed_at_work), SETTING, ("Shards",)
        )
