"""The commands about money: what sagas may still spend today, what one has cost, and what models have cost on a day."""

from __future__ import annotations

import click

from baton.cli.terminal.completion import complete_sagas
from baton.cli.terminal.shared import Shared, console, json_option, print_json, print_table, terminal_width
from baton.core.read.day_costs import AWS, BY


@click.command(short_help="Show what your sagas have spent today.")
@json_option
@click.pass_obj
def budget(shared: Shared, as_json: bool) -> None:
    """Show what your sagas have spent today (UTC) on tools that cost, and may still spend."""
    found = shared.call(lambda api: api.budget())
    if as_json:
        print_json(found)
        return
    from baton.cli.text.tables import budget_table

    print_table(budget_table(found))


@click.command(short_help="Show what a saga has cost, estimated, or models on a day.")
@click.argument("saga", required=False, shell_complete=complete_sagas)
@click.option(
    "--by",
    type=click.Choice(BY),
    help="Add up what models have cost all sagas of a day.",
)
@click.option("--day", metavar="YYYY-MM-DD", help="With --by: the day (UTC); without it today.")
@click.option(
    "--aws", is_flag=True, help="With --by: what AWS has cost, for which the log of each saga is read."
)
@json_option
@click.pass_obj
def cost(shared: Shared, saga: str | None, by: str | None, day: str | None, aws: bool, as_json: bool) -> None:
    """Show what a saga has cost so far, estimated from its log. With --by, what models or AWS have cost all sagas of a day."""
    if by is not None and saga is None:
        _costs_of_a_day(shared, by, day, AWS if aws else "", as_json)
        return
    if saga is None or by is not None or day is not None or aws:
        raise click.UsageError("give either a saga, or --by with or without --day and --aws")
    found = shared.call(lambda api: api.cost(saga))
    if as_json:
        print_json(found)
        return
    from baton.cli.text.tables import cost_lines

    for line in cost_lines(found, terminal_width()):
        console().print(line)


def _costs_of_a_day(shared: Shared, by: str, day: str | None, of: str, as_json: bool) -> None:
    found = shared.call(lambda api: api.costs(by, day, of))
    if as_json:
        print_json(found)
        return
    from baton.cli.text.tables import day_cost_lines

    for line in day_cost_lines(found):
        console().print(line)
