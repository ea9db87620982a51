"""The command about users: what they have spent today, and what an operator decides about one."""

from __future__ import annotations

from typing import Any

import click

from baton.cli.terminal.shared import Shared, console, json_option, print_json

_DEEDS = ("show", "block", "unblock", "limit", "unlimit")


@click.command(short_help="List users with what they spent; block or limit one.")
@click.argument("deed", required=False, type=click.Choice(_DEEDS))
@click.argument("user", required=False)
@click.argument("usd", required=False)
@click.option("--note", help="With all but show: why, for operators who look at it next.")
@json_option
@click.pass_obj
def users(
    shared: Shared, deed: str | None, user: str | None, usd: str | None, note: str | None, as_json: bool
) -> None:
    """List users with what they have spent today (UTC); show one, block or unblock it, or give it a limit of its own.

    No saga of a blocked user starts, and none goes on to spend. `limit USER USD` sets what this user may spend on a day in the
    place of the limit of all users; `unlimit USER` gives that back.
    """
    _check(deed, user, usd, note)
    if deed is None or user is None:
        found = shared.call(lambda api: api.users())
        if as_json:
            print_json(found)
            return
        from baton.cli.text.user_lines import user_rows

        for line in user_rows(found):
            console().print(line, markup=False, highlight=False)
        return
    one = _asked(shared, deed, user, usd, note)
    if as_json:
        print_json(one)
        return
    from baton.cli.text.user_lines import user_lines

    for line in user_lines(one):
        console().print(line, markup=False, highlight=False)
    if deed == "block" and not one["spent_usd"]:
        click.echo(
            f"`{user}` has spent nothing today. A user is named as `baton show` names that of a saga.",
            err=True,
        )
    elif deed not in ("show", "block"):
        click.echo(
            "Sagas that were parked before go on when the day turns (UTC), or with `baton resume SAGA`.",
            err=True,
        )


def _check(deed: str | None, user: str | None, usd: str | None, note: str | None) -> None:
    """Raises `UsageError` for words that do not go together."""
    if (deed is None) != (user is None):
        raise click.UsageError("give the USER behind show, block, unblock, limit or unlimit")
    if (deed == "limit") != (usd is not None):
        raise click.UsageError("an amount of dollars goes with limit, and limit needs one: limit USER USD")
    if note is not None and deed in (None, "show"):
        raise click.UsageError("--note goes with block, unblock, limit and unlimit")


def _asked(shared: Shared, deed: str, user: str, usd: str | None, note: str | None) -> dict[str, Any]:
    if deed == "show":
        return shared.call(lambda api: api.user(user))
    body: dict[str, Any] = {"user": user}
    if note:
        body["note"] = note
    if deed in ("limit", "unlimit"):
        body["limit_usd"] = usd
    return shared.call(lambda api: api.set_user("limit" if deed == "unlimit" else deed, body))
