"""What the commands that start sagas have in common: their options, and what is given with them."""

from __future__ import annotations

import shlex
from typing import Any

import click

from baton.cli.terminal.values import read_pairs, read_value


class Start(click.Command):
    """Knows what `name=Ada` was meant to be."""

    allow_extra_args = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        if rest and not ctx.resilient_parsing:
            many = "s" if len(rest) > 1 else ""
            are_pairs = all("=" in each.lstrip("=") for each in rest)
            pairs = " ".join(f"--set {shlex.quote(pair)}" for pair in rest)
            hint = f": write {pairs}" if are_pairs else ""
            ctx.fail(f"Got unexpected extra argument{many} ({' '.join(rest)}){hint}")
        return rest


input_option = click.option(
    "--input", "given", metavar="JSON", help="The input: JSON, @FILE (JSON or YAML), or - for standard input."
)
set_option = click.option(
    "--set", "pairs", metavar="NAME=VALUE", multiple=True, help="One property of the input; repeat it."
)
label_option = click.option(
    "--label",
    "labels",
    metavar="NAME=VALUE",
    multiple=True,
    help="A label, by which lists find it; repeat it.",
)
correlation_option = click.option(
    "--correlation-key",
    "correlation",
    default="",
    help="By which events from outside find it. There is one saga of the workflow with each.",
)


def given_input(given: str | None, pairs: tuple[str, ...]) -> Any:
    """The input of `--input` and `--set`."""
    value = read_value(given, "--input")
    if pairs:
        if value is not None and not isinstance(value, dict):
            raise click.BadParameter("can only be added to an input that is an object", param_hint="--set")
        value = (value or {}) | read_pairs(pairs, "--set")
    return {} if value is None else value


def given_labels(pairs: tuple[str, ...]) -> dict[str, str]:
    """The labels of `--label`."""
    from baton.core.log.labels import read_labels

    found: dict[str, str] = {}
    for pair in pairs:
        try:
            found |= read_labels(pair)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--label") from None
    return found
