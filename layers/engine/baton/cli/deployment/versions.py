"""The command `versions`: the code with which sagas of workflow functions stay."""

from __future__ import annotations

import asyncio

import click
from msgspec import to_builtins

from baton.cli.terminal.shared import json_option, print_json, print_lines
from baton.client.exits import REFUSED, CommandFailed
from baton.errors import BatonError


@click.command(short_help="List the versions of the code with which sagas stay.")
@click.option("--stack", required=True, envvar="BATON_STACK", help="Name of the stack.  [env: BATON_STACK]")
@click.option("--delete", is_flag=True, help="Delete those with which no open saga stays.")
@json_option
def versions(stack: str, delete: bool, as_json: bool) -> None:
    """List the versions of the worker with which sagas of workflow functions stay, and how many open sagas do.

    Looks with your AWS credentials, at each open saga of all tenants. With --delete: deletes versions with which
    none stays, and lists these. With --json: {"versions": [{"build", "version", "sagas", "kept"}, …]}.
    """
    from baton.wiring import look_at_builds

    try:
        found = asyncio.run(look_at_builds(stack, delete=delete))
    except BatonError as error:
        raise CommandFailed(REFUSED, str(error)) from error
    if as_json:
        print_json({"versions": to_builtins(found)})
        return
    done = "deleted" if delete else "no open saga stays with it: --delete deletes it"
    print_lines(f"{one.version or '-':>6}  build {one.build}: {one.kept or done}" for one in found)
    if not found:
        print_lines(["no version is drained" if delete else "no saga stays with a version"])
