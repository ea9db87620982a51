"""`python -m benchmarks.ramp [--rate N] [--seconds N]`: starts a second against the whole deployment on the embedded AWS.

The rate doubles from step to step as far as this machine carries it. It measures the stand-in for AWS, the local gateway and
the engine on the processors of one machine, and says nothing about AWS; what a stack on AWS carries is computed in scale.py.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from rich.console import Console
from rich.table import Table

from benchmarks.__main__ import where
from tests.e2e.deployment import FINAL, Deployment

NAME, STEPS = "ramp", 3
PARAMETERS = {
    "TenantRateLimit": "0",
    "ApiRateLimit": "10000",
    "ApiBurstLimit": "5000",
    "TenantSagas": "100000",
}
STEP_S = 10.0
IN_FLIGHT = 200  # requests of this client; what would be one more is not sent, and counts as refused
DRAIN_S = 60.0
CARRIED = 0.9  # of what was asked for
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Step:
    """So many starts a second for some time, and what became of them. Latency: from start to end, in ms, sorted.

    `in_time`: of those that finished, how many before a second after the last start.
    """

    rate: float
    seconds: float
    accepted: int = 0
    refused: int = 0
    finished: int = 0
    in_time: int = 0
    latency: Sequence[int] = ()
    cpu: Mapping[str, float] = field(default_factory=dict)

    @property
    def asked(self) -> int:
        return max(1, round(self.rate * self.seconds))

    @property
    def is_carried(self) -> bool:
        return self.in_time >= CARRIED * self.asked

    def percentile(self, share: float) -> int:
        return self.latency[min(len(self.latency) - 1, int(share * len(self.latency)))] if self.latency else 0


def document() -> str:
    lines = [f"name: {NAME}", "nodes:"]
    for number in range(STEPS):
        after = f", after: s{number - 1}" if number else ""
        lines.append(f"  s{number}: {{tool: trial.echo{after}, with: {{value: {number}}}}}")
    return "\n".join(lines) + "\n"


def rates(most: float) -> list[float]:
    """From a thirty-second of the rate, or one a second, to the rate itself."""
    found = [most]
    while found[0] > max(1.0, most / 32):
        found.insert(0, found[0] / 2)
    return found


async def _ask(deployment: Deployment, step: Step) -> set[str]:
    """Start sagas at the step's rate, whether or not they are answered. Those that were accepted."""
    headers = {"authorization": f"Bearer {deployment.run.token('ada', 'acme')}"}
    accepted: set[str] = set()

    async def start() -> None:
        try:
            answer = await http.post("/sagas", json={"workflow": NAME, "input": None}, headers=headers)
        except httpx.HTTPError:
            step.refused += 1
            return
        if answer.status_code == 201:
            step.accepted += 1
            accepted.add(answer.json()["id"])
        else:
            step.refused += 1

    limits = httpx.Limits(max_connections=IN_FLIGHT)
    async with httpx.AsyncClient(
        base_url=deployment.run.url, timeout=20, trust_env=False, limits=limits
    ) as http:
        begun, tasks = time.perf_counter(), set[asyncio.Task[None]]()
        for number in range(step.asked):
            await asyncio.sleep(max(0.0, begun + number / step.rate - time.perf_counter()))
            if len(tasks) >= IN_FLIGHT:
                step.refused += 1
                continue
            task = asyncio.create_task(start())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)
    return accepted


def _ended(deployment: Deployment) -> dict[str, tuple[int, int]]:
    """When each saga that has ended was started and ended, in epoch ms."""
    pages = (
        deployment.client("dynamodb")
        .get_paginator("scan")
        .paginate(
            TableName=deployment.run.physical["SagaTable"],
            FilterExpression="sk = :head",
            ExpressionAttributeValues={":head": {"S": "HEAD"}},
        )
    )
    return {
        item["pk"]["S"].rpartition("#")[2]: (int(item["created"]["N"]), int(item["st_at"]["N"]))
        for page in pages
        for item in page["Items"]
        if item["st"]["S"] in FINAL
    }


def ramp(deployment: Deployment, wanted: Sequence[float], step_s: float = STEP_S) -> Iterator[Step]:
    """Step after step, each drained, to the first that is not carried; that one had a second try, with warm processes."""
    deployment.register(document())
    deployment.wait_for(deployment.start(NAME))
    for rate in wanted:
        step = _hold(deployment, rate, step_s)
        if not step.is_carried:
            step = _hold(deployment, rate, step_s)
        yield step
        if not step.is_carried:
            return


def _hold(deployment: Deployment, rate: float, seconds: float) -> Step:
    step = Step(rate, seconds)
    before, began, began_at = _cpu_s(deployment), time.perf_counter(), time.time()
    sagas = asyncio.run(_ask(deployment, step))
    took = time.perf_counter() - began
    step.cpu = {name: (spent - before.get(name, 0)) / took for name, spent in _cpu_s(deployment).items()}
    _settle(deployment, sagas, step, (began_at + seconds + 1) * 1_000)
    return step


def _settle(deployment: Deployment, sagas: Set[str], step: Step, until: float) -> None:
    """Wait until all that were accepted have ended, or long enough; then count."""
    give_up = time.monotonic() + DRAIN_S
    while sagas - (ended := _ended(deployment)).keys() and time.monotonic() < give_up:
        time.sleep(0.3)
    mine = [ended[saga] for saga in sagas if saga in ended]
    step.finished = len(mine)
    step.latency = sorted(end - start for start, end in mine)
    step.in_time = sum(end <= until for _, end in mine)


def _cpu_s(deployment: Deployment) -> dict[str, float]:
    """Processor time so far, by what has used it: this process, the embedded AWS, and each function."""
    found = {"client, gateway, pollers": time.process_time()}
    known = {
        process.pid: f"{function.removesuffix('Function').lower()} function"
        for function in ("ApiFunction", "WorkerFunction", "RelayFunction", "ReconcilerFunction")
        for process in deployment.run.processes(function)
    }
    for pid, command in _children():
        name = known.get(pid, "embedded AWS" if "ministack" in command else "")
        if name:
            found[name] = found.get(name, 0) + _spent_s(pid)
    return found


def _children() -> Iterator[tuple[int, str]]:
    """The processes below this one, with their commands: others on this machine may have an embedded AWS, too."""
    parents = {pid: int(_stat(pid)[1]) for pid in _pids()}
    for pid in parents:
        above = pid
        while above > 1 and above != os.getpid():
            above = parents.get(above, 0)
        if above == os.getpid():
            with contextlib.suppress(OSError):
                yield pid, Path(f"/proc/{pid}/cmdline").read_text("utf-8", "replace")


def _pids() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]


def _stat(pid: int) -> list[str]:
    """The fields of a process behind its name; of one that is gone, zeros."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return ["0"] * 50


def _spent_s(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS


def show(steps: Sequence[Step], console: Console) -> None:
    table = Table(title=f"sagas of {STEPS} steps that do nothing, on the embedded AWS", title_justify="left")
    for column in (
        "asked, starts/s",
        "accepted/s",
        "refused",
        "finished in time/s",
        "finished later",
        "p50 ms",
        "p99 ms",
        "busiest, of one processor",
    ):
        table.add_column(column, justify="right" if column[-1] != "r" else "left")
    for step in steps:
        busiest = sorted(step.cpu.items(), key=lambda item: -item[1])[:4]
        table.add_row(
            f"{step.rate:g}",
            f"{step.accepted / step.seconds:.1f}",
            str(step.refused),
            f"{step.in_time / step.seconds:.1f}",
            f"{step.finished - step.in_time}",
            f"{step.percentile(0.5):,}",
            f"{step.percentile(0.99):,}",
            ", ".join(f"{name} {100 * share:.0f} %" for name, share in busiest),
        )
    console.print(table)
    console.print(verdict(steps))


def verdict(steps: Sequence[Step]) -> str:
    last, processors = steps[-1], os.cpu_count() or 1
    if last.is_carried:
        return f"{last.rate:g} starts/s are carried."
    carried = max((step.rate for step in steps if step.is_carried), default=0.0)
    busiest = max(last.cpu, key=lambda name: last.cpu[name])
    used = sum(last.cpu.values())
    return (
        f"It saturates between {carried:g} and {last.rate:g} starts/s: what comes then waits in the queue, and no saga is lost. The busiest is {busiest}, with {100 * last.cpu[busiest]:.0f} % "
        f"of a processor; all together take {used:.1f} of {processors}. This is the stand-in on this machine, not AWS."
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.ramp", description=__doc__)
    parser.add_argument("--rate", type=float, default=200.0, help="starts a second in the end")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="how long the last rate is held; each before it, 10 s"
    )
    options = parser.parse_args(arguments)
    if options.rate <= 0 or options.seconds <= 0:
        parser.error("--rate and --seconds must be above 0")
    console = Console(width=None if sys.stdout.isatty() else 160)
    steps: list[Step] = []
    with (
        tempfile.TemporaryDirectory(prefix="baton-load-") as folder,
        Deployment(Path(folder), PARAMETERS) as deployment,
    ):
        *before, most = rates(options.rate)
        for wanted, seconds in ((before, STEP_S), ([most], options.seconds)):
            if all(step.is_carried for step in steps):
                steps += ramp(deployment, wanted, seconds)
    show(steps, console)
    console.print(" · ".join(f"{key} {value}" for key, value in where().items()), style="dim")
    return 0


if __name__ == "__main__":
    sys.exit(main())
