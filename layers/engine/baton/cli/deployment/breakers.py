"""The commands about circuit breakers, and about how many sagas may fail."""

from __future__ import annotations

import click

from baton.cli.terminal.durations import Duration
from baton.cli.terminal.shared import Shared, console, gathered, json_option, print_json

_DEEDS = ("show", "open", "reset")


@click.command(short_help="List circuit breakers; show, open or reset one.")
@click.argument("deed", required=False, type=click.Choice(_DEEDS))
@click.argument("name", required=False)
@click.option(
    "--for", "for_", type=Duration(), help="With open: for so long, e.g. 10m; without it until it is reset."
)
@json_option
@click.pass_obj
def breakers(shared: Shared, deed: str | None, name: str | None, for_: float | None, as_json: bool) -> None:
    """List circuit breakers of which something is known; show one with its last failures, open it, or reset it.

    While a breaker is open, no call of a tool or node with it is made: steps wait.
    """
    if (deed is None) != (name is None):
        raise click.UsageError("give the NAME of a breaker behind show, open or reset")
    if for_ is not None and deed != "open":
        raise click.UsageError("--for goes with open")
    if deed is None or name is None:
        found, _ = shared.call(lambda api: gathered(api.breakers(), "breaker"))
        if as_json:
            print_json({"breakers": found})
            return
        from baton.cli.text.breaker_lines import breaker_rows

        for line in breaker_rows(found) or ["no call with a breaker has failed for 30 days"]:
            console().print(line, markup=False, highlight=False)
        return
    if deed == "show":
        one = shared.call(lambda api: api.breaker(name))
    else:
        body = {} if for_ is None else {"for_s": for_}
        one = shared.call(lambda api: api.set_breaker(name, deed, body))
    if as_json:
        print_json(one)
        return
    from baton.cli.text.breaker_lines import breaker_lines

    for line in breaker_lines(one):
        console().print(line, markup=False, highlight=False)
    if deed == "open" and len(one["transitions"]) == 1 and not one["failures"]:
        click.echo(
            f"Nothing was known of a breaker `{name}` before. It holds back the calls of tools and nodes that name it, and no others.",
            err=True,
        )


@click.command("error-budget", short_help="Show how many sagas have failed on a day, and may.")
@click.option("--day", metavar="YYYY-MM-DD", help="The day (UTC); without it today.")
@json_option
@click.pass_obj
def error_budget(shared: Shared, day: str | None, as_json: bool) -> None:
    """Show how many sagas of each workflow have failed on a day, and how many more may."""
    from baton.core.read.error_budgets import added_up

    found = added_up(shared.call(lambda api: api.error_budgets(day)))
    if as_json:
        print_json(found)
        return
    from baton.cli.text.breaker_lines import error_budget_lines

    for line in error_budget_lines(found):
        console().print(line, markup=False, highlight=False)
