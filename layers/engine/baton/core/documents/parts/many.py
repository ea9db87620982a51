"""What is done for each item of a list: the shape of `map`.

What it means is on docs/semantics.md; what becomes of it in a graph is in nodes/map.py.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field
from pydantic.types import JsonValue

from baton.core.documents.parts.control import Rest, Share, Tolerated, WaitFor
from baton.core.documents.parts.fields import Given, Model, between, counted, defined, refuse

MOST_AT_ONCE, AT_ONCE = 256, 40
"""The most items at a time: each is a part of the saga's state while it is at work."""
MOST_ITEMS, MOST_CHILDREN = 1_000, 10_000
"""The longest list: of items that the saga works on itself, and of those that have a child saga each."""


def _list(value: Any) -> Any:
    if not isinstance(value, (list, str)) or (isinstance(value, str) and "${" not in value):
        raise refuse("must be a list, or an expression that gives one", "write for example `${input.guests}`")
    return value


class MapModel(Share, Model):
    """The node is done once for each item of a list: `${item}` is the item, `${index}` its place in the list, from 0."""

    short: ClassVar[str] = "over"

    over: Annotated[JsonValue, BeforeValidator(_list), Given, defined("list")] = Field(
        description=f"The list. At most {MOST_ITEMS:,} items; {MOST_CHILDREN:,} where each is a child `workflow`.",
        examples=["${input.guests}", ["Bonn", "Kiel"]],
    )
    concurrency: Annotated[
        int, between(1, MOST_AT_ONCE), Given, counted(1, MOST_AT_ONCE)
    ] = Field(default=AT_ONCE, description=f"How many items are at work at the same time, at most. Without it, {AT_ONCE}.", examples=[5])  # fmt: skip
    wait_for: WaitFor = Field(
        default="all",
        description="How many items have to succeed: `all`, `any` (one), or a number.",
        examples=["any", 3],
    )
    tolerated: Tolerated = Field(
        default=None,
        alias="tolerated_failures",
        description="How many items may fail, as a number or as a share of them, rounded down. Without it, and with `wait_for: all`, the "
        "first that fails fails the node.",
        examples=[1, "10%"],
    )
    rest: Rest = Field(
        default="cancel",
        description="What becomes of the other items once it is known how it ends: those at work are stopped and no more begin (`cancel`), "
        "or all come to their ends (`run`). With `run` and a number of items to wait for, the saga goes on with the last of these, and "
        "the other items run beside what follows; otherwise all are done first.",
        examples=["run"],
    )

    @property
    def goes_on(self) -> bool:
        """Whether what comes after it begins before all items have ended, and these run on."""
        return self.rest == "run" and self.wait_for != "all"

    @property
    def tells_all(self) -> bool:
        """Whether not all items have to succeed, so that the output says of each what became of it."""
        return self.wait_for != "all" or self.tolerated is not None
