"""What a saga costs on AWS: write units by DynamoDB's rule, of requests really sent, and dollars by core/read/costs.py.

All in: every request to AWS that a saga causes, and the engine's own time in Lambda, which is its measured
CPU at the share of a vCPU that the memory buys, and `ROUND_TRIP_MS` for each of its requests, with one saga
in an invocation (up to ten share one). Not in it: cold starts, the tools' own time (shown beside), storage,
logs, and looking at sagas. The peers' prices have no Lambda requests and no Lambda time in them either way.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from baton.adapters.aws import Aws
from baton.core.read import costs
from baton.core.read.costs import BillingSettings as Assumed
from baton.core.read.costs import Usage, bill, per_million_steps
from benchmarks import asked
from benchmarks.figures import Bench, Figure, Sample
from benchmarks.lifetime import API, RELAY, WORKER, Deployment, Life
from tests.kit import ministack
from tests.kit.meter import TABLE, Meter

STEPS, EVERY = 10, 4  # of a saga; of an invocation, where it has several: 4, 4 and 2
LONG, LONG_EVERY = 200, 20
SAGAS = 5  # whose CPU is averaged
ROUND_TRIP_MS = 5.0  # of a request to DynamoDB or SQS; AWS promises single-digit milliseconds
TOOL_MS = 100  # that the tool of a step waits, where that is shown
MEMORY_MB = {API: Assumed().api_mb, RELAY: Assumed().relay_mb, WORKER: Assumed().worker_mb}
VCPU_MB = 1_769  # the memory that comes with one vCPU, by Lambda's developer guide

# A deployment without any saga: a reconciler's run a minute over four shards, and the pollers of the queue.
MONTH_S, RUN_S, SHARDS = 30 * 86_400, 60, 4
RECONCILER_MS, RECONCILER_MB, EXPRESS_S, EXPRESS_MB = 50, 512, 1, 64
POLLERS, POLL_S = 5, 20


@dataclass
class Metered:
    """One life, and the units of all its writes and reads. `entries` are those of the log."""

    life: Life
    writes: float
    reads: float
    entries: int
    formula: float  # what the API's answer says for `own`
    own: float  # write units of the saga's own items: all but what the rate limit counts


async def metered(deployment: Deployment, meter: Meter, every: int) -> Metered:
    meter.clear()
    life = await deployment.live(every)
    written, read = list(meter.written), list(meter.read)
    shown = await deployment.cost(life.saga)
    return Metered(
        life=life,
        writes=sum(one.units for one in written),
        reads=sum(one.units for one in read),
        entries=sum(one.sk.startswith("LOG#") for one in written),
        formula=_quantity(shown, costs.WRITE_UNIT.what),
        own=sum(one.units for one in written if one.pk == str(life.saga) or "#EFFECT#" in one.pk),
    )


def _quantity(shown: dict[str, Any], what: str) -> float:
    return float(sum(line["quantity"] for line in shown["aws"] if line["what"] == what))


def gb_seconds(lives: Sequence[Life]) -> float:
    """The engine's own time in Lambda for one saga, all three functions together."""
    total = 0.0
    for name, mb in MEMORY_MB.items():
        roles = [life.roles[name] for life in lives]
        waits = sum(role.requests for role in roles) * ROUND_TRIP_MS
        works = sum(role.cpu_ms for role in roles) * max(1.0, VCPU_MB / mb)
        total += (waits + works) * mb / 1_024 / 1_000
    return total / len(lives)


def usage_of(found: Metered, lives: Sequence[Life]) -> Usage:
    """All that one saga uses. `lives`: unmetered ones of the same kind, for the time."""
    roles = found.life.roles.values()
    return Usage(
        write_units=round(found.writes),
        read_units=round(found.reads),
        sqs_requests=found.life.sqs,
        http_requests=found.life.roles[API].invocations,
        lambda_requests=sum(role.invocations for role in roles),
        gb_seconds=gb_seconds(lives),
        blob_puts=found.life.s3["PutObject"],
        blob_gets=found.life.s3["GetObject"],
    )


def dollars(usage: Usage) -> float:
    return per_million_steps(bill(usage), STEPS)


def idle() -> float:
    """Dollars a month for a deployment that does nothing."""
    runs = MONTH_S / RUN_S
    reconciler_gb_s = RECONCILER_MS / 1_000 * RECONCILER_MB / 1_024
    return (
        costs.SCHEDULER_INVOCATION.usd(runs)
        + costs.EXPRESS_REQUEST.usd(runs)
        + costs.EXPRESS_GB_SECOND.usd(runs * EXPRESS_S * EXPRESS_MB / 1_024)
        + costs.LAMBDA_REQUEST.usd(runs * (SHARDS + 1))
        + costs.GB_SECOND.usd(runs * (SHARDS + 1) * reconciler_gb_s)
        + costs.READ_UNIT.usd(runs * SHARDS * 0.5)
        + costs.SQS_REQUEST.usd(runs + POLLERS * MONTH_S / POLL_S)
    )


async def measured(endpoint: str) -> Sample:
    plain = Deployment(Aws(endpoint), "plain")
    await plain.prepare(STEPS)
    lives = [await plain.live(STEPS) for _ in range(SAGAS)]
    in_turns = [await plain.live(EVERY) for _ in range(SAGAS)]
    aws = Aws(endpoint)
    watched = Deployment(aws, TABLE)
    meter = Meter(aws)
    await watched.prepare(STEPS)
    one, several = await metered(watched, meter, STEPS), await metered(watched, meter, EVERY)
    await watched.prepare(STEPS, "once")
    effects = await metered(watched, meter, STEPS)
    await watched.prepare(LONG)
    long = await metered(watched, meter, LONG_EVERY)
    usage = usage_of(one, lives)
    turns = usage_of(several, in_turns)
    further = several.life.roles[WORKER].invocations - 1
    tool = TOOL_MS / 1_000 * STEPS * MEMORY_MB[WORKER] / 1_024
    return {
        "per step": (one.entries - 1) / STEPS,
        "fixed": one.writes - (one.entries - 1),
        "once": (effects.writes - one.writes) / STEPS,
        "further": (several.writes - one.writes) / further,
        "long": (long.writes - 1) / LONG,
        "formula": abs(one.own - one.formula)
        + abs(several.own - several.formula)
        + abs(effects.own - effects.formula)
        + abs(long.own - long.formula),
        "reads": usage.read_units,
        "sqs": usage.sqs_requests,
        "further sqs": (turns.sqs_requests - usage.sqs_requests) / further,
        "lambda": usage.lambda_requests,
        "further lambda": (turns.lambda_requests - usage.lambda_requests) / further,
        "s3": usage.blob_puts + usage.blob_gets,
        "time": usage.gb_seconds * 1_000,
        "usd": dollars(usage),
        "usd turns": dollars(turns),
        "usd requests": dollars(replace(usage, gb_seconds=0.0)),
        "usd tools": dollars(replace(usage, gb_seconds=usage.gb_seconds + tool)),
        "usd blob": costs.S3_PUT.usd_per_million + costs.S3_GET.usd_per_million,
        "usd idle": idle(),
    }


def measure() -> Sample:
    with tempfile.TemporaryDirectory() as folder, ministack.running(Path(folder)) as endpoint:
        return {**asyncio.run(measured(endpoint)), **asked.measured(endpoint)}


_PEERS = (
    f"{costs.DURABLE_OPERATION.what} ${costs.DURABLE_OPERATION.usd_per_million:g} + data, "
    f"{costs.STANDARD_TRANSITION.what} ${costs.STANDARD_TRANSITION.usd_per_million:g}"
)
_MILLION = "$ / million steps"

BENCH = Bench(
    "cost",
    f"sagas of {STEPS} steps; prices of {costs.REGION}, {costs.DATE}",
    {
        "per step": Figure("log writes per step", "", 1, digits=2),
        "once": Figure("and an effect that may happen only once", "write units more", 2, digits=2),
        "fixed": Figure(
            "fixed, one invocation, index rows and rate limit included", "write units", 12, digits=0
        ),
        "further": Figure("each further invocation, index rows included", "write units", 8, digits=1),
        "long": Figure(
            f"a step of a saga of {LONG}, a yield every {LONG_EVERY}, snapshots included",
            "write units",
            digits=2,
        ),
        "formula": Figure("difference to what GET /sagas/{id}/cost says", "write units", 0, digits=0),
        "reads": Figure("reads of a saga, one invocation", "read units", digits=0),
        "sqs": Figure("requests to SQS, one invocation", "requests", digits=0),
        "further sqs": Figure("and each further one", "requests", digits=1),
        "lambda": Figure("requests to Lambda, one invocation", "requests", digits=0),
        "further lambda": Figure("and each further one", "requests", digits=1),
        "s3": Figure("requests to S3", "requests", digits=0),
        "time": Figure(f"the engine's Lambda time, {ROUND_TRIP_MS:g} ms a request", "GB-ms / saga", digits=0),
        "usd": Figure("all in, one invocation", _MILLION, 2, peer=_PEERS, digits=2),
        "usd turns": Figure(f"all in, {-(-STEPS // EVERY)} invocations", _MILLION, digits=2),
        "usd requests": Figure("requests only, without Lambda's time", _MILLION, peer=_PEERS, digits=2),
        "usd tools": Figure(
            f"all in, and tools that wait {TOOL_MS} ms a step in {MEMORY_MB[WORKER]:,} MB",
            _MILLION,
            peer="both peers: + the same Lambda time",
            digits=2,
        ),
        **asked.FIGURES,
        "usd blob": Figure("a value above 8 KB, put and read once", "$ / million", digits=2),
        "usd idle": Figure("a deployment without any saga", "$ / month", digits=2),
    },
    measure,
    runs=3,
)
