"""What a load comes to: what gives way first and what one sets, what a day costs, what waiting and an outage take.

A closed form: the engine's own count (counts.py) times quotas, prices and parameters (ceilings.py). docs/scale.md is made of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from baton.core.limits import Limits
from baton.core.read import costs
from baton.core.read.costs import BillingSettings
from baton.runtime import reconcile
from benchmarks import quotas
from benchmarks.ceilings import (
    API_S,
    INVOKE_S,
    SETTING,
    Ceiling,
    Load,
    Setup,
    ceilings,
    counts_of_tenant,
    relay_batch,
    relayed_per_s,
    use_of,
)
from benchmarks.counts import Counts, counted
from benchmarks.figures import Bench, Figure, Sample
from benchmarks.quotas import ACCOUNT
from docs.settings_table import template

DAY_S = 86_400
GB = 1e9
MONTH_DAYS = 30
LOADS = (100, 1_000, 10_000)
CALM = Setup({"SweepShortestMs": 2 * DAY_S * 1_000, "SweepLongestMs": 7 * DAY_S * 1_000})  # where 100 M wait
HANDOVER_S = BillingSettings().handover / 1_000
SPARE = 1.25
TIGHT = {
    "SagaDays": 7.0,
    "RetentionDays": 8.0,
}  # what is kept of a saga, where hundreds of millions end in a day


# ---- what one sets


def first(load: Load, setup: Setup, counts: Counts, *kinds: str) -> Ceiling:
    """The lowest ceiling, or the lowest of some kinds."""
    return next(one for one in ceilings(load, setup, counts) if not kinds or one.holds_for in kinds)


def setup_for(load: Load, counts: Counts) -> Setup:
    """The defaults, and what has to be raised for a load, with a quarter to spare where that can be: first parameters, then
    quotas of the account for what these do not help."""
    setup = Setup()
    for kinds in ((SETTING,), (SETTING, ACCOUNT)):
        while (better := _raised(setup, load, counts, kinds)) != setup:
            setup = better
    return replace(setup, given=_together(setup))


def _raised(setup: Setup, load: Load, counts: Counts, kinds: tuple[str, ...]) -> Setup:
    """One parameter or quota more, of those that stand in the way; the same where nothing is left to raise."""
    wanted = load.starts * SPARE
    for one in ceilings(load, setup, counts):
        for name in one.raise_by if one.per_s < wanted and one.holds_for in kinds else ():
            if name in template()["Parameters"]:
                now = _in_effect(setup, name)
                if now < (value := next_value(name, now * wanted / one.per_s)):
                    return replace(setup, given={**setup.given, name: value})
            elif ACCOUNT in kinds:
                quota = next(one for one in quotas.QUOTAS if one.what == name)
                value = _rounded_up(setup.quota(quota) * wanted / one.per_s)
                return replace(setup, raised={**setup.raised, name: value})
    return setup


def _in_effect(setup: Setup, parameter: str) -> float:
    return {"WarmWrites": setup.warm_writes, "WarmReads": setup.warm_reads}.get(parameter, setup[parameter])


def _together(setup: Setup) -> dict[str, float]:
    """With what the template wants beside it: a window for large batches, and reads with writes."""
    given = dict(setup.given)
    if setup.batch > quotas.QUEUE_BATCH.value and not setup["WakeWindow"]:
        given["WakeWindow"] = 1.0
    if setup["WarmWrites"] or setup["WarmReads"]:
        given |= {"WarmWrites": setup.warm_writes, "WarmReads": setup.warm_reads}
    return given


def next_value(parameter: str, wanted: float) -> float:
    """The smallest round value of a parameter that is as high, or the largest that there is."""
    declared = template()["Parameters"][parameter]
    if "AllowedValues" in declared:
        return next((value for value in _allowed(declared) if value >= wanted), largest(parameter))
    return min(_rounded_up(wanted), largest(parameter))


def largest(parameter: str) -> float:
    declared = template()["Parameters"][parameter]
    return _allowed(declared)[-1] if "AllowedValues" in declared else float(declared["MaxValue"])


def _allowed(declared: Any) -> list[float]:
    return sorted(map(float, declared["AllowedValues"]))


def _rounded_up(value: float) -> float:
    """To two digits."""
    one: float = 10 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / one) * one


def grown_s(load: Load, setup: Setup) -> float:
    """Until the invocations that the queue keeps busy have grown to what a load takes, from a few."""
    return load.starts * load.lasts_s / setup.batch / quotas.POLLERS_MORE.value * 60


# ---- what a day costs


def a_day(load: Load, setup: Setup, counts: Counts, sharing: float | None = None) -> dict[str, float]:
    """Dollars a day by item. `sharing`: sagas in an invocation; without it as many as a batch has (see `least_sharing`)."""
    use, sagas = use_of(load, setup, counts), load.starts * DAY_S
    share = setup.batch if sharing is None else sharing
    limits = counts_of_tenant(load, setup, counts) * DAY_S
    passed = max(
        1.0, min(load.starts * use.relayed / 4, relay_batch())
    )  # together: it asks four times a second
    relayed = sagas * use.relayed / passed
    worker_s = sagas * (load.lasts_s + use.invocations * HANDOVER_S) / share
    gb_s = (
        sagas * API_S * BillingSettings().api_mb
        + relayed * BillingSettings().passing / 1_000 * BillingSettings().relay_mb
        + worker_s * setup["WorkerMemory"]
    ) / 1_024
    return {
        "writes": costs.WRITE_UNIT.usd(sagas * use.units),
        "reads": costs.READ_UNIT.usd(sagas * (use.reads + min(1, counts.definition_reads * API_S)) + limits),
        "Lambda's time": costs.GB_SECOND.usd(gb_s),
        "Lambda's requests": costs.LAMBDA_REQUEST.usd(sagas + relayed + sagas * use.invocations / share),
        "SQS": costs.SQS_REQUEST.usd(sagas * use.messages * 3 / min(passed, share, quotas.QUEUE_BATCH.value)),
        "API Gateway": costs.HTTP_REQUEST.usd(sagas),
        "storage": stored_gb(load, counts) * kept_days(setup) * per_gb_day(),
    }


def least_sharing(load: Load, setup: Setup) -> float:
    """Sagas in an invocation where all workers are busy all the time: no more of them than `WorkerConcurrency` are billed."""
    return max(1.0, min(setup.batch, load.starts * load.lasts_s / setup["WorkerConcurrency"]))


def stored_gb(load: Load, counts: Counts) -> float:
    """What the sagas of a day leave."""
    entries = load.steps * max(counts.entry_bytes, load.entry_bytes)
    return load.starts * DAY_S * (counts.item_bytes + entries) / GB


def kept_days(setup: Setup) -> float:
    """For how many days: a saga's items expire as long after its start."""
    return setup["SagaDays"] + setup["RetentionDays"]


def per_gb_day() -> float:
    return (quotas.STORED.value + quotas.RESTORE.value) / MONTH_DAYS


# ---- sagas that wait


@dataclass(frozen=True)
class Waiting:
    """So many sagas wait at any time, each for so many days and for nothing but others."""

    sagas: float
    days: float


def looks(setup: Setup, days: float) -> int:
    """How often the engine looks at a saga that waits so long: first after the shortest time, then after as long as it has waited."""
    shortest, longest = setup["SweepShortestMs"] / 1_000, setup["SweepLongestMs"] / 1_000
    found, at = 0, shortest
    while at < days * DAY_S:
        found += 1
        at += max(shortest, min(at, longest))
    return found


def looks_per_s(waiting: Waiting, setup: Setup) -> float:
    return waiting.sagas * looks(setup, waiting.days) / waiting.days / DAY_S


def waiting_a_day(waiting: Waiting, setup: Setup, counts: Counts) -> dict[str, float]:
    """Dollars a day for looks, and for keeping what waits."""
    each, found = counts.look, looks_per_s(waiting, setup) * DAY_S
    calls = found / reconcile.PER_CALL
    worker_gb_s = calls * HANDOVER_S * setup["WorkerMemory"] / 1_024
    reconciler_gb_s = calls * INVOKE_S / reconcile.SIDE_BY_SIDE * 512 / 1_024
    return {
        "writes": costs.WRITE_UNIT.usd(found * each.units),
        "reads": costs.READ_UNIT.usd(found * each.reads),
        "Lambda": costs.LAMBDA_REQUEST.usd(calls) + costs.GB_SECOND.usd(worker_gb_s + reconciler_gb_s),
        "SQS": costs.SQS_REQUEST.usd(found * each.messages * 3 / 10),
        "storage": waiting.sagas * (counts.item_bytes + counts.entry_bytes) / GB * per_gb_day(),
    }


def dearest_wait(sagas: float, setup: Setup, counts: Counts) -> float:
    """Dollars a day where each waits as long as costs most: a little longer than to one of its looks."""
    shortest, longest = setup["SweepShortestMs"] / 1_000 / DAY_S, setup["SweepLongestMs"] / 1_000 / DAY_S
    waits = [at + 1e-6 for at in (shortest, 2 * shortest, 4 * shortest, 8 * shortest, 100 * longest)]
    return max(sum(waiting_a_day(Waiting(sagas, days), setup, counts).values()) for days in waits)


# ---- an outage of the relay


@dataclass(frozen=True)
class Recovery:
    """`woken_per_s`: what the reconciler brings; `late_s`: how late a saga begins meanwhile, in the middle; `behind`: sagas that
    have not begun when the outage ends; `over_s`: until they have; `stale_s`: until the queue is rid of the wakes that the
    stream has kept. Until then the reconciler still brings new sagas."""

    woken_per_s: float
    late_s: float
    behind: float
    over_s: float
    stale_s: float


def outage(load: Load, setup: Setup, counts: Counts, minutes: float) -> Recovery:
    """What an outage of the relay comes to: new sagas are due after a minute, and the reconciler invokes workers for them.

    Those invocations are not bound by the queue's slots, but by what the account runs at once.
    """
    free = setup.quota(quotas.CONCURRENCY) - load.starts * API_S
    woken = min(setup.wakes_per_s, free * reconcile.PER_CALL / load.lasts_s)
    behind = max(0.0, load.starts - woken) * minutes * 60
    period = 60 * setup["ReconcileMinutes"]
    first_s = Limits().start_due_ms / 1_000
    kept_s = min(minutes * 60, setup["RelayMaxRecordAgeSeconds"])
    stale_s = _stale_s(load, setup, counts, load.starts * kept_s)
    over_s = backlog_s(load, setup, behind) + first_s + period
    return Recovery(woken, first_s + period / 2, behind, over_s, stale_s)


def _stale_s(load: Load, setup: Setup, counts: Counts, wakes: float) -> float:
    """Until workers have dropped so many wakes that say nothing new: a read each, but in batches with others that begin a saga."""
    arriving = max(relayed_per_s(load, setup, counts), load.starts)
    with_work = 1 - math.pow(arriving / (load.starts + arriving), setup.batch)
    batch_s = with_work * load.lasts_s + HANDOVER_S
    per_s = min(arriving, setup["WorkerConcurrency"] * setup.batch / batch_s)
    return wakes / per_s


def quota_for_outage(load: Load) -> float:
    """Invocations at once with which the reconciler alone brings all that is started."""
    return load.starts * (load.lasts_s / reconcile.PER_CALL + API_S)


def backlog_s(load: Load, setup: Setup, sagas: float) -> float:
    """Until so many sagas that are due have begun, while the queue brings new ones, which take workers, too."""
    at_once = setup.quota(quotas.CONCURRENCY) - load.starts * (API_S + load.lasts_s / setup.batch)
    left = min(setup.wakes_per_s, at_once * reconcile.PER_CALL / load.lasts_s)
    if not sagas:
        return 0.0
    return sagas / left if left > 0 else math.inf


# ---- the bench


def measure() -> Sample:
    counts = counted()
    sample: dict[str, float] = {}
    for starts in LOADS:
        load = Load(starts)
        setup = setup_for(load, counts)
        sample[f"default {starts}"] = first(load, Setup(), counts).per_s
        sample[f"set {starts}"] = first(load, setup, counts).per_s
        sample[f"usd {starts}"] = sum(
            a_day(load, replace(setup, given={**setup.given, **TIGHT}), counts).values()
        )
    most = setup_for(Load(10_000), counts)
    sample["own"] = first(Load(10_000), most, counts, *_OURS).per_s
    sample["waiting"] = dearest_wait(100e6, CALM, counts)
    sample["waiting default"] = sum(waiting_a_day(Waiting(100e6, 1), Setup(), counts).values())
    thousand = Load(1_000)
    sample["outage"] = outage(thousand, setup_for(thousand, counts), counts, 60).over_s / 60
    return sample


_OURS = (SETTING, quotas.AWS)


BENCH = Bench(
    "scale",
    "sagas of 10 steps of 1 s with entries of 1 KB, of one tenant and one workflow: the model of docs/scale.md",
    {
        **{
            key: figure
            for starts in LOADS
            for key, figure in {
                f"default {starts}": Figure(
                    f"{starts:,} starts/s, defaults: what gives way first, at", "starts/s", digits=0
                ),
                f"set {starts}": Figure(
                    "  as docs/scale.md says, at", "starts/s", starts, at_most=False, digits=0
                ),
                f"usd {starts}": Figure("  a day of it, kept for 15 days", "$", digits=0),
            }.items()
        },
        "own": Figure(
            "the first ceiling that is no quota of the account", "starts/s", 10_000, at_most=False, digits=0
        ),
        "waiting": Figure(
            "100 M sagas that wait, however long, looks after two days and then up to a week",
            "$ / day",
            150,
            digits=0,
        ),
        "waiting default": Figure("100 M sagas that wait a day, default looks", "$ / day", digits=0),
        "outage": Figure("an hour without relay at 1,000 starts/s is over in", "min", 15, digits=1),
    },
    measure,
    runs=1,
)
