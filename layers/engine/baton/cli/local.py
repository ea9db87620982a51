"""The commands that run Baton on this machine: up, demo.

Belongs here: starting, announcing, stopping. What runs is baton.local; what the demo does is baton.demo.
Both are imported when needed, because they bring half of AWS along.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from baton.cli.app import app_option, documents, load_app
from baton.cli.client import Api
from baton.cli.connection import TEMPLATE, Connection, project_root, remove_local, write_local
from baton.cli.exits import NO, Failed
from baton.cli.sagas import register_file
from baton.cli.shared import console
from baton.cli.values import read_pairs

if TYPE_CHECKING:
    from baton.local.run import LocalRun

EXAMPLE_INPUT = '{"city": "Lisbon", "party": 4, "at": "2026-12-24T19:30:00Z"}'


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port of the API on 127.0.0.1; 0 is any free one.",
)
@click.option("--tenant", default="local", show_default=True, help="Tenant of the token.")
@click.option("--user", default="me", show_default=True, help="User of the token.")
@click.option(
    "--parameter",
    "pairs",
    metavar="NAME=VALUE",
    multiple=True,
    help="A parameter of the template; repeat it.",
)
@app_option
def up(port: int, tenant: str, user: str, pairs: tuple[str, ...], app: str) -> None:
    """Run everything on this machine until Ctrl-C.

    The API, the functions and the tables are those of template.yaml. Workflows of the application are
    registered; the example's outside services are started where they are part of the project.
    """
    root = project_root()
    parameters = {name: str(value) for name, value in read_pairs(pairs, "--parameter").items()}
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_up(root, port, (tenant, user), parameters, app))


@click.command()
@click.option(
    "--sagas", type=click.IntRange(4, 200), default=20, show_default=True, help="How many evenings."
)
@click.option(
    "--evidence",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write everything the figures are computed from to this file.",
)
def demo(sagas: int, evidence: Path | None) -> None:
    """Run real sagas, kill workers under them, show figures.

    Takes about half a minute.

    Exit status 0 only if every saga ended as it should and nothing was done twice.
    """
    from baton.demo.run import Options, run_demo
    from baton.demo.scenario import Plan
    from baton.local.problems import LocalRunError

    try:
        kept = asyncio.run(run_demo(Options(project_root(), Plan(sagas=sagas), evidence), console()))
    except LocalRunError as error:
        raise Failed(NO, str(error)) from error
    if not kept:
        raise click.exceptions.Exit(NO)


async def _up(root: Path, port: int, identity: tuple[str, str], parameters: dict[str, str], app: str) -> None:
    from baton.demo.services import Services
    from baton.local.problems import LocalRunError
    from baton.local.run import LocalRun

    module = load_app(app, root)
    async with contextlib.AsyncExitStack() as stack:
        given = {"AppModule": app}
        outside: dict[str, str] = {}
        if Services.exist(root):
            services = await stack.enter_async_context(Services(root))
            given |= services.parameters
            outside = services.urls
        try:
            local = await stack.enter_async_context(
                LocalRun(root / TEMPLATE, parameters=given | parameters, api_port=port)
            )
        except LocalRunError as error:
            raise Failed(NO, str(error)) from error
        tenant, user = identity
        connection = Connection(local.url, local.token(user, tenant))
        async with Api(connection) as api:
            names = [str((await register_file(api, document))["name"]) for document in documents(module)]
        path = write_local(root, connection)
        stack.callback(remove_local, root)
        _announce(local, connection, path.relative_to(root), names, outside)
        await _until_stopped()
        click.echo("Stopping …", err=True)


def _announce(
    local: LocalRun, connection: Connection, path: Path, names: list[str], outside: dict[str, str]
) -> None:
    workflow = "dinner" if "dinner" in names or not names else names[0]
    body = f'{{"workflow": "{workflow}", "input": {EXAMPLE_INPUT if workflow == "dinner" else "{}"}}}'
    lines = [
        "Baton is running. Ctrl-C stops it.",
        f"  API            {connection.url}   (AWS endpoint {local.endpoint})",
        *(f"  {name:<14} {url}/books" for name, url in outside.items()),
        f"  workflows      {', '.join(names) or 'none yet: put a .yaml file into your app, or `baton register FILE`'}",
        f"  token          also in {path}, where the baton command finds it",
        "",
        f"export TOKEN={connection.token}",
        f"curl -s {connection.url}/sagas -H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json' \\",
        f"     -H \"Idempotency-Key: evening-1\" -d '{body}'",
        f'curl -s {connection.url}/sagas/ID -H "Authorization: Bearer $TOKEN"',
        "",
        f"baton start {workflow} --watch" + (f" --input '{EXAMPLE_INPUT}'" if workflow == "dinner" else ""),
    ]
    for line in lines:
        click.echo(line)


async def _until_stopped() -> None:
    """Wait for Ctrl-C or a polite end; the processes that were started are ended by who started them."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    await stopped.wait()
