"""Commands that run Baton on this machine: up, token, demo, failover."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import click

from baton.cli.documents.app import app_option
from baton.cli.terminal.shared import Shared, console, json_option, print_json
from baton.cli.terminal.values import Whole, read_pairs
from baton.client.connection import command_line, other_run, project_root
from baton.client.exits import NO, USAGE, CommandFailed

PORT = 8080


@click.command()
@click.option(
    "--port",
    type=Whole(0, 65535),
    default=PORT,
    show_default=True,
    help="Port of the API on 127.0.0.1; 0 is any free one.",
)
@click.option(
    "--aws-port",
    type=Whole(0, 65534),
    default=0,
    help="Port of the embedded AWS on 127.0.0.1; the local Lambda API gets the next one. Default: any free ones.",
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
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Keep tables and objects in this directory, and go on with what is there. Default: nothing is kept.",
)
@click.option(
    "--keep-logs", is_flag=True, help="Leave .baton/run-… with the logs of all functions in place at the end."
)
@click.option(
    "--debug",
    is_flag=True,
    help="Run each function in one process, in which `breakpoint()` stops in this terminal.",
)
@app_option
@json_option
def up(
    port: int,
    aws_port: int,
    tenant: str,
    user: str,
    pairs: tuple[str, ...],
    data: Path | None,
    keep_logs: bool,
    debug: bool,
    app: str,
    as_json: bool,
) -> None:
    """Run everything on this machine until Ctrl-C.

    The API, the functions and the tables are those of template.yaml. Workflows of the application are
    registered. When a file of the application changes, it is reloaded without a restart, and running sagas
    continue. The example's external services are started if they are part of the project. With --json: one
    document once everything runs.
    """
    root = project_root()
    parameters = {name: str(value) for name, value in read_pairs(pairs, "--parameter").items()}
    if debug and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandFailed(USAGE, "--debug needs a terminal", "Run it in one, without a pipe.")
    owner = other_run(root)
    if owner and port and port in (PORT, owner.port):
        raise CommandFailed(
            NO,
            f"Baton is running here already: {owner.url}, process {owner.pid}",
            f"The commands in {root} speak to it. Stop it with Ctrl-C there, or with: kill {owner.pid}",
            f"To run another one beside it: {command_line('up --port 0')}",
        )
    import asyncio

    from baton.cli.machine.running import RunOptions, run_until_stopped

    wanted = RunOptions(root, port, aws_port, tenant, user, parameters, app, data, keep_logs, as_json, debug)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run_until_stopped(wanted))


@click.command(short_help="Print a token of `baton up` for another user.")
@click.argument("user")
@click.option("--group", "groups", metavar="NAME", multiple=True, help="A group of the user; repeat it.")
@click.option(
    "--role",
    "roles",
    metavar="ROLE",
    multiple=True,
    default=("read", "run", "answer"),
    show_default=True,
    help="Role of the user: read, run, answer or operate; repeat the option for more.",
)
@json_option
@click.pass_obj
def token(shared: Shared, user: str, groups: tuple[str, ...], roles: tuple[str, ...], as_json: bool) -> None:
    """Print a token of `baton up` for another user, to try groups, claims and roles.

    The user is of the same tenant. Pass the token with --token or BATON_TOKEN. It is valid until the run
    ends, and for twelve hours at most.
    """
    signed = shared.token_for(user, groups, roles)
    if as_json:
        print_json({"user": user, "groups": list(groups), "roles": list(roles), "token": signed})
    else:
        click.echo(signed)


@click.command()
@click.option("--sagas", type=Whole(4, 200), default=20, show_default=True, help="Number of evenings.")
@click.option(
    "--evidence",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write everything the figures are computed from to this file.",
)
@json_option
def demo(sagas: int, evidence: Path | None, as_json: bool) -> None:
    """Run real sagas, kill workers under them, show figures.

    Takes about a minute.

    Exit status 0 only if every saga ended as expected and nothing was done twice.
    """
    import asyncio

    from baton.cli.machine.demonstrating import Options, run_demo
    from baton.demo.scenario import DemoPlan
    from baton.local.processes import LocalRunError

    options = Options(project_root(), DemoPlan(sagas=sagas), evidence, as_json)
    try:
        kept = asyncio.run(run_demo(options, console(stderr=as_json)))
    except LocalRunError as error:
        raise CommandFailed(NO, str(error)) from error
    if not kept:
        raise click.exceptions.Exit(NO)


@click.command(short_help="Run a dinner for each fault of a service.")
@click.option(
    "--only", metavar="TEXT", default="", help="Only the faults whose name has this text, such as `full`."
)
@json_option
def failover(only: str, as_json: bool) -> None:
    """Run the demonstration of failover: a dinner for each fault of a service, with the path that each took.

    Takes about half a minute. Each dinner is in a city where table-stack has another fault: it times out,
    answers 503, is full, is slow, answers nonsense or refuses the login. The document defines the alternative
    that leads to dinner.

    Exit status 0 only if every dinner took the path of its document and the services' books are right.
    """
    import asyncio

    from baton.cli.machine.failing_over import run_failover
    from baton.demo.failover import CASES
    from baton.local.processes import LocalRunError

    cases = [case for case in CASES if only in case.fault]
    if not cases:
        known = "; ".join(case.fault for case in CASES)
        raise click.BadParameter(
            f"no fault has `{only}` in its name; there are: {known}", param_hint="--only"
        )
    try:
        passed = asyncio.run(run_failover(project_root(), cases, console(stderr=as_json), as_json=as_json))
    except LocalRunError as error:
        raise CommandFailed(NO, str(error)) from error
    if not passed:
        raise click.exceptions.Exit(NO)
