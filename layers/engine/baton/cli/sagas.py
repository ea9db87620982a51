"""The commands that speak about sagas over the API: start, show, events, cancel, signal,
resume, fork, register.

Belongs here: one function per command, from arguments to exit status. Layout is in render, HTTP in
client.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import click
from rich.live import Live

from baton.cli.client import Api
from baton.cli.exits import NO, Failed
from baton.cli.render import event_lines, saga_line, saga_table
from baton.cli.shared import Shared, console, json_option, key_option, print_json
from baton.cli.values import read_pairs, read_text, read_value
from baton.core.durations import parse_duration
from baton.core.state import FINISHED


class _Duration(click.ParamType):
    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return parse_duration(value if isinstance(value, float) else _bare(value)) / 1000
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _bare(text: str) -> str | float:
    """A number without a unit is seconds."""
    try:
        return float(text)
    except ValueError:
        return text


every_option = click.option(
    "--every", type=_Duration(), default="1s", show_default=True, help="How often --watch looks."
)


@click.command()
@click.argument("workflow")
@click.option(
    "--input", "given", metavar="JSON", help="The input: JSON, @FILE (JSON or YAML), or - for standard input."
)
@click.option(
    "--set", "pairs", metavar="NAME=VALUE", multiple=True, help="One property of the input; repeat it."
)
@click.option("--watch", is_flag=True, help="Go on as `baton show --watch` does.")
@every_option
@key_option
@json_option
@click.pass_obj
def start(
    shared: Shared,
    workflow: str,
    given: str | None,
    pairs: tuple[str, ...],
    watch: bool,
    every: float,
    key: str | None,
    as_json: bool,
) -> None:
    """Start a saga of a registered workflow."""
    value = read_value(given, "--input")
    if pairs:
        if value is not None and not isinstance(value, dict):
            raise click.BadParameter("can only be added to an input that is an object", param_hint="--set")
        value = (value or {}) | read_pairs(pairs, "--set")
    value = {} if value is None else value

    async def run(api: Api) -> None:
        saga = await api.start(workflow, value, key)
        if as_json and not watch:
            print_json(saga)
        elif not as_json:
            click.echo(f"{saga['id']}  {workflow}, {saga['status']}")
        if watch:
            await _watch(api, str(saga["id"]), every, as_json)
        elif not as_json:
            click.echo(f"Follow it with: baton show {saga['id']} --watch", err=True)

    shared.call(run)


@click.command()
@click.argument("saga")
@click.option(
    "--watch", is_flag=True, help="Stay until the saga ends or needs a person; status 1 unless it completed."
)
@every_option
@json_option
@click.pass_obj
def show(shared: Shared, saga: str, watch: bool, every: float, as_json: bool) -> None:
    """Show where a saga is. With --json --watch: a line of JSON for each change."""

    async def run(api: Api) -> None:
        if watch:
            await _watch(api, saga, every, as_json)
            return
        found = await api.show(saga)
        if as_json:
            print_json(found)
        else:
            console().print(saga_table(found))

    shared.call(run)


@click.command()
@click.argument("saga")
@click.option("--after", type=click.IntRange(min=0), help="Only entries with a version above this.")
@click.option("--limit", type=click.IntRange(min=1), help="At most this many entries. Default: all.")
@json_option
@click.pass_obj
def events(shared: Shared, saga: str, after: int | None, limit: int | None, as_json: bool) -> None:
    """Show the log of a saga. With --json: one entry per line."""

    async def run(api: Api) -> None:
        entries = []
        async for entry in api.events(saga, after, limit):
            if as_json:
                print_json(entry, line=True)
            entries.append(entry)
        if not as_json:
            for line in event_lines(entries):
                console().print(line)

    shared.call(run)


@click.command()
@click.argument("saga")
@click.option("--reason", default="", help="Why; it is written into the log.")
@click.option(
    "--forced", is_flag=True, help="Interrupt running steps at once instead of letting them finish."
)
@click.option("--grace", type=_Duration(), help="How long running steps may go on, e.g. 10s.")
@json_option
@click.pass_obj
def cancel(shared: Shared, saga: str, reason: str, forced: bool, grace: float | None, as_json: bool) -> None:
    """Cancel a saga: nothing new starts, running steps may finish."""
    if forced and grace:
        raise click.UsageError("--forced leaves no time for --grace: give one of them")
    mode = "forced" if forced else "graceful"
    answer = shared.call(lambda api: api.cancel(saga, reason, mode, grace))
    if as_json:
        print_json(answer)
    else:
        click.echo(f"{saga}  asked to cancel ({mode})")


@click.command()
@click.argument("saga")
@click.argument("name")
@click.option("--payload", metavar="JSON", help="What to say: JSON, @FILE, or - for standard input.")
@key_option
@json_option
@click.pass_obj
def signal(shared: Shared, saga: str, name: str, payload: str | None, key: str | None, as_json: bool) -> None:
    """Send a signal to a saga that waits for it, or soon will."""
    value = read_value(payload, "--payload")
    answer = shared.call(lambda api: api.signal(saga, name, value, key))
    if as_json:
        print_json(answer)
    else:
        click.echo(f"{saga}  was sent {name}")


@click.command()
@click.argument("saga")
@json_option
@click.pass_obj
def resume(shared: Shared, saga: str, as_json: bool) -> None:
    """Let a parked saga try again."""
    answer = shared.call(lambda api: api.resume(saga))
    if as_json:
        print_json(answer)
    else:
        click.echo(f"{saga}  tries again")


@click.command()
@click.argument("saga")
@click.argument("version", type=click.IntRange(min=1))
@click.option("--reason", default="", help="Why; it is written into the log.")
@key_option
@json_option
@click.pass_obj
def fork(shared: Shared, saga: str, version: int, reason: str, key: str | None, as_json: bool) -> None:
    """Go on from the state at VERSION of a saga's log, in a new branch; what was is kept."""
    answer = shared.call(lambda api: api.fork(saga, version, reason, key))
    if as_json:
        print_json(answer)
    else:
        click.echo(f"{saga}  goes on from version {version}")


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@json_option
@click.pass_obj
def register(shared: Shared, files: tuple[Path, ...], as_json: bool) -> None:
    """Compile workflow documents at the API and make them known there."""

    async def run(api: Api) -> None:
        for file in files:
            answer = await register_file(api, file)
            if as_json:
                print_json(answer, line=True)
            else:
                click.echo(f"{file}: {answer.get('name')} is version {answer.get('version')}")

    shared.call(run)


async def register_file(api: Api, file: Path) -> dict[str, Any]:
    """Register one document; the failure names the file."""
    text = read_text(file)
    try:
        return await api.register(text, json=file.suffix == ".json")
    except Failed as error:
        raise Failed(error.exit_code, f"{file}: {error.message}", *error.more) from error


async def _watch(api: Api, saga: str, every: float, as_json: bool) -> None:
    out = console()
    # Without a screen there is nothing to redraw: a line for each change then.
    live = Live(console=out, auto_refresh=False) if out.is_terminal and not as_json else None
    last: tuple[object, ...] = ()
    with live or contextlib.nullcontext():
        while True:
            found = await api.show(saga)
            seen = (found.get("version"), found.get("status"), found.get("invocations"))
            if live:
                live.update(saga_table(found), refresh=True)
            elif seen != last and as_json:
                print_json(found, line=True)
            elif seen != last:
                out.print(saga_line(found))
            last = seen
            if found["status"] in FINISHED or found["status"] == "parked":
                break
            await asyncio.sleep(every)
    if live is None and not as_json:
        out.print(saga_table(found))
    if found["status"] != "completed":
        raise Failed(
            NO, f"the saga ended {found['status']}" if found["status"] != "parked" else "the saga is parked"
        )
