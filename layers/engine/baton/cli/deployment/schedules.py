"""The commands about schedules: schedule list, show, pause, resume, trigger."""

from __future__ import annotations

from typing import Any

import click

from baton.cli.terminal.shared import Shared, console, gathered, json_option, key_option, print_json

_name = click.argument("name")


@click.group(short_help="List schedules; pause, resume or trigger one.")
def schedule() -> None:
    """Schedules: workflows that are started by themselves, because their documents have a `schedule`."""


@schedule.command("list", short_help="List schedules.")
@json_option
@click.pass_obj
def list_schedules(shared: Shared, as_json: bool) -> None:
    """List schedules by the names of their workflows, with the next tick of each and what became of those before."""
    found, _ = shared.call(lambda api: gathered(api.schedules(), "schedule"))
    if as_json:
        print_json({"schedules": found})
        return
    from baton.cli.text.schedule_lines import schedule_rows

    _print(schedule_rows(found) or ["no workflow has a schedule: write `schedule` into its document"])


@schedule.command(short_help="Show a schedule and its last ticks.")
@_name
@json_option
@click.pass_obj
def show(shared: Shared, name: str, as_json: bool) -> None:
    """Show the schedule of a workflow, and what became of its last ticks."""
    _show(shared.call(lambda api: api.schedule(name)), as_json)


@schedule.command(short_help="Start nothing more until it is resumed.")
@_name
@json_option
@click.pass_obj
def pause(shared: Shared, name: str, as_json: bool) -> None:
    """Start nothing more by the schedule of a workflow until it is resumed. Sagas that it has started go on."""
    _show(shared.call(lambda api: api.set_schedule(name, "pause")), as_json)


@schedule.command(short_help="Go on with the next tick.")
@_name
@json_option
@click.pass_obj
def resume(shared: Shared, name: str, as_json: bool) -> None:
    """Go on with the next tick of a schedule. Ticks of the pause are not made up for."""
    _show(shared.call(lambda api: api.set_schedule(name, "resume")), as_json)


@schedule.command(short_help="Start a saga now, as the schedule would.")
@_name
@key_option
@json_option
@click.pass_obj
def trigger(shared: Shared, name: str, key: str | None, as_json: bool) -> None:
    """Start a saga now, with the input of the schedule, whether or not another one is at work."""
    started = shared.call(lambda api: api.trigger(name, key or ""))
    if as_json:
        print_json(started)
        return
    _print([f"{started['id']}  {started['status']}"])


def _show(one: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(one)
        return
    from baton.cli.text.schedule_lines import schedule_lines

    _print(schedule_lines(one))


def _print(lines: list[str]) -> None:
    for line in lines:
        console().print(line, markup=False, highlight=False)
