"""The demo from start to end: start everything, run the scenario, collect, check, show."""

from __future__ import annotations

import asyncio
import json
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from baton.cli.documents.app import documents, load_app, read_file
from baton.cli.documents.workflows import register_document
from baton.cli.machine.example import FLAKY, MODELS, MODULES, PROFILE, PROVIDER, Services
from baton.cli.terminal.shared import print_json
from baton.client.api import Api
from baton.client.connection import TEMPLATE, Connection, command_line
from baton.client.transport import Reader
from baton.core.documents.text import parse_document
from baton.demo import figures, report
from baton.demo.evidence import Books, collect, lease_owner
from baton.demo.promises import broken
from baton.demo.report import Progress
from baton.demo.scenario import GUEST, WORDS, DemoPlan, Scenario, service_faults
from baton.local.aws import Aws
from baton.local.run import LocalRun
from baton.local.template import load
from baton.settings import local_key_variable

WORKER_TIMEOUT_S = 8
WAKE_VISIBILITY_S = 10
# One machine has one clock and kills in time: the sagas of a killed worker need not wait for more.
LEASE_GRACE_MS, CLOCK_SKEW_MS = 700, 200
SCHEDULE_PERIOD_S = 5.0
# Every process starts cold, and on two cores sixteen of them start one after the other: fewer workers
# with more sagas each are sooner done, and the API gets no more of our requests at once than this.
WORKERS = 8
CONNECTIONS = 4
TENANT, USER, OTHER = "demo", "ada", "grace"
WORKFLOWS = ("dinner", "concierge", "evening")
REFUSING = {MODELS: ("--busy-every", "3")}


@dataclass(frozen=True, slots=True)
class Options:
    """Options of `baton demo`."""

    root: Path
    plan: DemoPlan
    evidence: Path | None = None
    as_json: bool = False


async def run_demo(options: Options, console: Console) -> bool:
    """Run the demo and return true if every promise was kept."""
    load_app("sagas", options.root)
    console.print(
        "Starting the embedded AWS, what template.yaml declares, two services and a model …", style="dim"
    )
    async with Services(options.root, MODULES | PROVIDER, FLAKY | REFUSING) as services:
        parameters = services.parameters | {
            MODELS: f"{PROFILE}={services.parameters[MODELS]}/v1",
            "IntentionWorkflow": WORKFLOWS[1],
            "WorkerTimeout": str(WORKER_TIMEOUT_S),
            "WakeVisibility": str(WAKE_VISIBILITY_S),
            "LeaseGraceMs": str(LEASE_GRACE_MS),
            "ClockSkewMs": str(CLOCK_SKEW_MS),
            "WorkerConcurrency": str(WORKERS),
            "Shards": "1",  # or every look for what is due is four processes
            "TenantRateLimit": "0",  # all of it is one tenant, which looks at every saga every second
        }
        local = LocalRun(
            options.root / TEMPLATE,
            parameters=parameters,
            variables={local_key_variable("MODEL", PROFILE): PROFILE},
            schedule_period_s=SCHEDULE_PERIOD_S,
        )
        kept = False
        try:
            async with local:
                console.print(
                    f"Running at {local.url}: a worker has {WORKER_TIMEOUT_S} s and is killed then; "
                    f"an evening takes longer than that.",
                    style="dim",
                )
                kept = await _with_everything(options, console, local, services)
        finally:
            if kept:
                shutil.rmtree(local.run_dir, ignore_errors=True)
            else:
                console.print(f"The logs of all functions are in {local.run_dir}.")
    return kept


async def _with_everything(options: Options, console: Console, local: LocalRun, services: Services) -> bool:
    mine = Connection(local.url, local.token(USER, TENANT))
    hers = Connection(local.url, local.token(OTHER, TENANT, roles=["answer"]))
    async with (
        Api(mine, connections=CONNECTIONS) as api,
        Api(hers, connections=1) as other,
        Reader() as reader,
    ):
        provider = services.parameters[MODELS]
        books = Books(reader, [url for url in services.urls.values() if url != provider])
        steps = await _register(api, options.root)
        for place, wrong in service_faults().items():
            await books.switch(place, wrong)
        aws, table = Aws(local.endpoint), local.physical["SagaTable"]

        async def holder(saga: str) -> str:
            return await aws.call(lease_owner, aws.dynamodb, table, TENANT, saga)

        with Progress(console, steps) as screen:
            scenario = Scenario(options.plan, api, other, local, holder, books, screen, steps)
            course = await scenario.run()
        evidence = await collect(
            api,
            course,
            books,
            Books(reader, [provider]),
            local.invocations,
            aws,
            table,
            await asyncio.to_thread(_memory, options.root / TEMPLATE),
        )
        aws.close()
    if options.evidence:
        evidence.save(options.evidence)
        click.echo(f"The evidence is in {options.evidence}.", err=True)
    found = figures.compute(evidence)
    problems = broken(evidence, found)
    if options.as_json:
        print_json(report.figures_document(found, problems))
    else:
        report.print_figures(console, found, problems)
        start = command_line(
            f"start concierge --watch --input {shlex.quote(json.dumps({'words': WORDS, **GUEST}))}"
        )
        text = f"To ask for an evening yourself, in words: {command_line('up')}, and open the address that it names as dinner page."
        text += f"\nThe agent's model was a script. With a real one: OPENAI_API_KEY=… {command_line('up')}, and then {start}"
        console.print(
            f"{text}\nOther providers are in docs/models.md.", style="dim", markup=False, soft_wrap=True
        )
    return not problems


async def _register(api: Api, root: Path) -> int:
    """Register the workflows. Return the number of steps that the first one has without failures."""
    found = {path.stem: read_file(path) for path in documents(load_app("sagas", root))}
    for name in WORKFLOWS:
        await register_document(api, found[name])
    return as_planned(parse_document(found[WORKFLOWS[0]].text).value["nodes"])


def as_planned(nodes: Mapping[str, Any]) -> int:
    """Return the number of nodes that run without failures: those that no `catch` leads to."""
    others = {name for node in nodes.values() for name in _caught(node.get("catch", ()))}
    for name, node in nodes.items():
        after = node.get("after", ())
        before = {after} if isinstance(after, str) else set(after)
        if before and before <= others:
            others.add(name)
    return len(nodes) - len(others)


def _caught(rules: Any) -> Iterator[str]:
    """Yield the names in a `catch`, which is a name, a list of names, or rules."""
    for rule in rules if isinstance(rules, list) else [rules] if rules else ():
        then = rule["then"] if isinstance(rule, dict) else rule
        yield from [then] if isinstance(then, str) else then


def _memory(template: Path) -> dict[str, int]:
    """Return the megabytes of each function, as in the template."""
    expanded = load(template, {})
    found: dict[str, int] = {}
    for name, function in expanded.of_type("AWS::Lambda::Function"):
        size = function["Properties"].get("MemorySize", 128)
        if isinstance(size, dict) and "Ref" in size:
            size = expanded.parameters[size["Ref"]]["Default"]
        found[name] = int(size)
    return found
