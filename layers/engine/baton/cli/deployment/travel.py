"""Commands about earlier versions of sagas: their state then, and what differs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from baton.cli.terminal.completion import complete_sagas, saga_argument
from baton.cli.terminal.shared import (
    Shared,
    json_option,
    print_json,
    print_lines,
    print_table,
    terminal_width,
)
from baton.cli.terminal.values import Whole
from baton.client.exits import NO
from baton.words.text import counted, plain

if TYPE_CHECKING:
    from baton.client.api import Api

_LONGEST = 400  # characters of a value; --json has it whole


@click.command(short_help="Show a saga as it was at a version, with its outputs.")
@saga_argument
@click.option("--at", type=Whole(min=1), help="Version, a number of `baton events`. Default: as it is now.")
@json_option
@click.pass_obj
def state(shared: Shared, saga: str, at: int | None, as_json: bool) -> None:
    """Show the state of SAGA at a version of its log, with the newest output of each node."""

    async def run(api: Api) -> dict[str, Any]:
        found, outputs = dict[str, Any](), list[Any]()
        async for found in api.states(saga, at or 0):
            outputs += found["outputs"]
        return {**found, "outputs": outputs}

    found = shared.call(run)
    if as_json:
        print_json(found)
        return
    from baton.cli.terminal.watching import now
    from baton.cli.text.render import saga_table

    print_table(saga_table(found["saga"], now(), terminal_width()))
    click.echo()
    print_lines(f"v{one['version']}  {_place(one)}: {_value(one)}" for one in found["outputs"])


@click.command(short_help="Compare two sagas, or two versions of one.")
@saga_argument
@click.argument("second", required=False, shell_complete=complete_sagas)
@click.option("--at", type=Whole(min=1), help="Version of SAGA. Default: as it is now.")
@click.option("--to", type=Whole(min=1), help="Version of SECOND. Default: as it is now.")
@json_option
@click.pass_obj
def diff(
    shared: Shared, saga: str, second: str | None, at: int | None, to: int | None, as_json: bool
) -> None:
    """Compare SAGA with SECOND, or with itself at another version: input, status, result, and the last
    attempts at each node.

    The status is 1 if something differs, as that of diff.
    """
    found = shared.call(lambda api: api.compare(saga, second or saga, at or 0, to or 0))
    if as_json:
        print_json(found)
    else:
        print_lines(_difference_lines(found))
    if found["differences"]:
        raise click.exceptions.Exit(NO)


def _difference_lines(found: Mapping[str, Any]) -> Iterator[str]:
    for sign, name in (("-", "first"), ("+", "second")):
        side = found[name]
        yield plain(f"{sign} {side['saga']}  {side['workflow']}  {side['status']}  version {side['version']}")
    for one in found["differences"]:
        yield plain(_place(one) if one["what"] == "node" else one["what"])
        for sign, name in (("-", "first"), ("+", "second")):
            if one[name] is not None:
                yield f"  {sign} {_value(one[name]) if one['what'] == 'node' else _text(one[name])}"
    if found["more"]:
        yield f"and {counted(found['more'], 'more difference')}"
    yield f"{counted(found['equal'], 'node')} equal"


def _place(one: Mapping[str, Any]) -> str:
    rounds = "".join(f"[{number}]" for number in one["iteration"])
    item = f"#{one['item']}" if one["item"] else ""
    return plain(f"{one['node']}{rounds}{item}")


def _value(one: Mapping[str, Any]) -> str:
    """Return the output of a node, or its failure, in a line."""
    if (error := one.get("error")) is not None:
        return plain(f"{error['code']}: {error['message']}")[:_LONGEST]
    large = one["large_output"]
    return f"{large['size']} bytes, {large['ref']}" if large else _text(one["output"])


def _text(value: Any) -> str:
    return plain(json.dumps(value, ensure_ascii=False))[:_LONGEST]
