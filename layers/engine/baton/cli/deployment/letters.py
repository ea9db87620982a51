"""Commands about dead letters: dlq list, show, redrive, discard."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from baton.cli.terminal.shared import (
    Listing,
    Shared,
    gather_pages,
    json_option,
    list_options,
    print_json,
    print_lines,
    print_more,
    terminal_width,
)
from baton.client.connection import command_line
from baton.client.exits import REFUSED, USAGE, CommandFailed

if TYPE_CHECKING:
    from baton.client.api import Api

_SHOWN = (
    "status", "saga", "node", "version", "code", "reason", "source", "messages", "attempts", "first_at",
    "last_at",
)  # fmt: skip
_SHOWN_BELOW = ("redrives", "redrives_left", "decided_at", "decided_by", "why", "expires_at", "message")
_saga = click.option("--saga", metavar="SAGA", help="Only that of this saga.")
_node = click.option("--node", metavar="NODE", help="Only those about this node.")
_reason = click.option(
    "--reason", metavar="TEXT", help="Only those with this code, or with this text in their reason."
)


@click.group(short_help="List, redrive or discard what could not be delivered or read.")
def dlq() -> None:
    """List, redrive or discard dead letters: sagas whose wakes no worker could handle,
    and messages that name no saga.

    The reconciler moves them here from the dead-letter queues, once a minute.
    """


@dlq.command("list", short_help="List dead letters, the oldest first.")
@click.option(
    "--status",
    type=click.Choice(["pending", "redriven", "discarded"]),
    default="pending",
    show_default=True,
    help="Only these.",
)
@_saga
@_node
@_reason
@list_options("dead letters")
@json_option
@click.pass_obj
def list_letters(
    shared: Shared,
    status: str,
    saga: str | None,
    node: str | None,
    reason: str | None,
    listing: Listing,
    as_json: bool,
) -> None:
    """List dead letters, oldest first. With --json: {"dead_letters": […], "next": CURSOR or null}."""
    filters = {"status": status, **_wanted(saga, node, reason)}
    found, after = shared.call(
        lambda api: gather_pages(api.dead_letters(filters, listing.most, listing.cursor), "dead letter")
    )
    if as_json:
        print_json({"dead_letters": found, "next": after})
        return
    from baton.cli.text.tables import letter_rows

    print_lines(letter_rows(found, terminal_width()))
    if not found:
        click.echo(f"no dead letters are {status}", err=True)
    elif status == "pending":
        if any(letter.get("saga") for letter in found):
            click.echo("Mend the cause, then: " + command_line("dlq redrive LETTER"), err=True)
        if not all(letter.get("saga") for letter in found):
            text = "A letter without a saga cannot be redriven. Take it off the list: "
            click.echo(text + command_line("dlq discard LETTER --reason TEXT"), err=True)
    print_more(after)


@dlq.command("show", short_help="Show a dead letter.")
@click.argument("letter")
@json_option
@click.pass_obj
def show_letter(shared: Shared, letter: str, as_json: bool) -> None:
    """Show a dead letter. LETTER is its id, which equals that of its saga, if it has one."""
    found = shared.call(lambda api: api.dead_letter(letter))
    if as_json:
        print_json(found)
        return
    for name in (*_SHOWN, *_SHOWN_BELOW):
        if found.get(name) is not None:
            click.echo(f"{name.replace('_', ' '):14} {_plain(found[name])}")


@dlq.command("redrive", short_help="Have workers look at dead sagas again.")
@click.argument("letters", metavar="[LETTER]...", nargs=-1)
@_saga
@_node
@_reason
@click.option("--all", "everything", is_flag=True, help="All that are pending.")
@click.option("--dry-run", is_flag=True, help="Only say how many it would be.")
@click.option("--force", is_flag=True, help="Those, too, that were redriven as often as they may.")
@click.option("--yes", is_flag=True, help="Do not ask before more than one is redriven.")
@json_option
@click.pass_obj
def redrive(
    shared: Shared,
    letters: tuple[str, ...],
    saga: str | None,
    node: str | None,
    reason: str | None,
    everything: bool,
    dry_run: bool,
    force: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Have a worker process each saga again, after the cause is repaired.

    Give the ids of dead letters, or select pending ones with --saga, --node, --reason or --all. A saga that
    fails again makes its letter pending again; after three redrives it requires --force.
    """
    wanted = _wanted(saga, node, reason)
    if bool(letters) == bool(wanted or everything):
        raise CommandFailed(USAGE, "which dead letters? give their ids, or --saga, --node, --reason or --all")
    if letters and dry_run:
        raise CommandFailed(
            USAGE, "--dry-run counts what --saga, --node, --reason or --all select; with ids, leave it out"
        )
    if letters:
        says = "{id}  is redriven, {redrives_left} redrives are left"
        _each(shared, letters, lambda api, one: api.redrive(one, force=force), says, as_json=as_json)
    else:
        body = {**wanted, "force": force}
        _matching(shared, "redrive", "redriven", body, dry_run=dry_run, yes=yes, as_json=as_json)


def _each(
    shared: Shared,
    letters: tuple[str, ...],
    do: Callable[[Api, str], Awaitable[dict[str, Any]]],
    says: str,
    *,
    as_json: bool,
) -> None:
    """Send one request for each letter over one connection, until one is refused."""
    done: list[dict[str, Any]] = []

    async def run(api: Api) -> None:
        for one in letters:
            done.append(await do(api, one))
            if not as_json:
                click.echo(says.format_map(done[-1]))

    try:
        shared.call(run)
    finally:  # what was done before one is refused is said
        if as_json:
            print_json({"dead_letters": done})


def _matching(
    shared: Shared, what: str, done: str, body: dict[str, Any], *, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Count all matching pending letters, ask the person, then send requests for many at once."""
    if dry_run or not yes:
        counted = shared.call(lambda api: _asked(api, what, {**body, "dry_run": True, "limit": 1_000}))
        many = f"{counted['matched']}{' or more' if counted['next'] else ''}"
        if dry_run:
            print_json(counted) if as_json else click.echo(f"{many} would be {done}")
            return
        if counted["matched"] > 1 or counted["next"]:
            click.confirm(f"{what.capitalize()} {many} dead letters?", abort=True, err=True)
    total = shared.call(lambda api: _all(api, what, done, body))
    if as_json:
        print_json(total)
    else:
        click.echo(f"{total[done]} of {total['matched']} are {done}")
        for one in total["refused"]:
            click.echo(f"{one['id']}  {_plain(one['why'])}", err=True)
    if total["refused"]:
        raise SystemExit(REFUSED)


@dlq.command("discard", short_help="Say that dead letters are not to be redriven.")
@click.argument("letters", metavar="[LETTER]...", nargs=-1)
@_saga
@_node
@click.option("--all", "everything", is_flag=True, help="All that are pending.")
@click.option("--dry-run", is_flag=True, help="Only say how many it would be.")
@click.option("--yes", is_flag=True, help="Do not ask before more than one is discarded.")
@click.option("--reason", metavar="TEXT", help="Reason, which is kept with each letter.")
@json_option
@click.pass_obj
def discard(
    shared: Shared,
    letters: tuple[str, ...],
    saga: str | None,
    node: str | None,
    everything: bool,
    dry_run: bool,
    yes: bool,
    reason: str | None,
    as_json: bool,
) -> None:
    """Discard pending dead letters.

    Give the ids of dead letters, or select pending ones with --saga, --node or --all: their number is shown
    first. Their records stay for 30 days: who discarded them, when and why. They can still be redriven.
    """
    wanted = _wanted(saga, node, None)
    if bool(letters) == bool(wanted or everything):
        raise CommandFailed(USAGE, "which dead letters? give their ids, or --saga, --node or --all")
    if letters and dry_run:
        raise CommandFailed(
            USAGE, "--dry-run counts what --saga, --node or --all select; with ids, leave it out"
        )
    if not reason and not dry_run:
        raise CommandFailed(USAGE, "why? say it with --reason")
    if letters:
        says = "{id}  is discarded, by {decided_by}"
        _each(shared, letters, lambda api, one: api.discard(one, reason or ""), says, as_json=as_json)
    else:
        body = {**wanted, "why": reason or "no reason given"}  # nothing is discarded where it is not
        _matching(shared, "discard", "discarded", body, dry_run=dry_run, yes=yes, as_json=as_json)


async def _asked(api: Api, what: str, body: dict[str, Any]) -> dict[str, Any]:
    return await (api.redrive_all(body) if what == "redrive" else api.discard_all(body))


async def _all(api: Api, what: str, done: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the sums of all requests until no letters are left."""
    total: dict[str, Any] = {"matched": 0, done: 0, "refused": []}
    cursor: str | None = ""
    while cursor is not None:
        answer = await _asked(api, what, {**wanted, "cursor": cursor})
        for name in total:
            total[name] += answer[name]
        cursor = answer["next"]
    return total


def _wanted(saga: str | None, node: str | None, reason: str | None) -> dict[str, str]:
    given = {"saga": saga, "node": node, "reason": reason}
    return {name: value for name, value in given.items() if value}


def _plain(value: Any) -> str:
    from baton.words.text import plain

    return plain(str(value))
