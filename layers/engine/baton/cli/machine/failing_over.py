"""`baton failover` from start to end: start everything, run each dinner with its fault, check, show."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from baton.cli.documents.app import documents, load_app, read_file
from baton.cli.documents.workflows import register_document
from baton.cli.machine.example import Services
from baton.cli.terminal.shared import print_json
from baton.client.api import Api
from baton.client.connection import TEMPLATE, Connection
from baton.client.transport import Reader
from baton.demo import failover as report
from baton.demo.failover import Case, Failover
from baton.local.run import LocalRun

# A call that hangs is given up after 4.5 s: a worker has time for one, and for a few steps before and after it.
WORKER_TIMEOUT_S, WAKE_VISIBILITY_S = 12, 15
WORKERS, CONNECTIONS = 4, 4
TENANT, USER, WORKFLOW = "failover", "ada", "dinner"


async def run_failover(root: Path, cases: Sequence[Case], console: Console, *, as_json: bool) -> bool:
    """Run the cases of `baton failover` and return true if each passed."""
    load_app("sagas", root)
    console.print("Starting the embedded AWS, what template.yaml declares, and two services …", style="dim")
    async with Services(root) as services:
        parameters = services.parameters | {
            "WorkerTimeout": str(WORKER_TIMEOUT_S),
            "WakeVisibility": str(WAKE_VISIBILITY_S),
            "WorkerConcurrency": str(WORKERS),
            "TenantRateLimit": "0",  # one tenant looks at all sagas, twice a second
        }
        local = LocalRun(root / TEMPLATE, parameters=parameters)
        passed = False
        try:
            async with local:
                mine = Connection(local.url, local.token(USER, TENANT))
                async with Api(mine, connections=CONNECTIONS) as api, Reader() as reader:
                    for path in documents(load_app("sagas", root)):
                        if path.stem == WORKFLOW:
                            await register_document(api, read_file(path))
                    say = lambda text: console.print(Text(text))  # noqa: E731
                    outcomes = await Failover(api, reader, services.urls, say).run(cases)
            passed = not any(one.problems for one in outcomes)
        finally:
            if passed:
                shutil.rmtree(local.run_dir, ignore_errors=True)
            else:
                console.print(f"The logs of all functions are in {local.run_dir}.")
    if as_json:
        print_json(report.cases_document(outcomes))
    else:
        report.print_cases(console, outcomes)
    return passed
