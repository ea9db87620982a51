"""Whole numbers as options and arguments, with a refusal that says which there can be.

Lengths of time are in durations.py.
"""

from __future__ import annotations

from typing import Any

import click


class Whole(click.IntRange):
    """A whole number from `min` up, or up to `max`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            to = "up" if self.max is None else f"to {self.max}"
            self.fail(f"{value!r} is not a whole number from {self.min} {to}", param, ctx)
