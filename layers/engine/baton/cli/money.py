"""The command about money: what the caller's sagas may still spend today.

What a saga has cost AWS is in sagas.py.
"""

from __future__ import annotations

import click

from baton.cli.shared import Shared, json_option, print_json, print_table


@click.command(short_help="Show what your sagas have spent today.")
@json_option
@click.pass_obj
def budget(shared: Shared, as_json: bool) -> None:
    """Show what your sagas have spent today (UTC) on tools that cost, and may still spend."""
    found = shared.call(lambda api: api.budget())
    if as_json:
        print_json(found)
        return
    from baton.cli.tables import budget_table

    print_table(budget_table(found))
