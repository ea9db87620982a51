"""What a step has open while a model puts something else in its place, and the events that move it.

The request to the model, the question which alternative is taken, and the calls are steps at slots of items: `plan`, `choice`,
and `a2-1` for the first call of the second alternative. What is done with them is in core/nodes/replanning.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Self

import msgspec
from msgspec.structs import replace

from baton.core.effects.keys import canonical
from baton.core.log.opened import Work
from baton.core.log.records import About, Failure, Value

PLAN, CHOICE = "plan", "choice"
MADE_REMEMBERED = 200


class Made(msgspec.Struct, frozen=True, array_like=True):
    """A call that has succeeded: where, and what it gave."""

    slot: str
    output: Value


class Replanning(Work, msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="replanning"):
    """A step that is done another way. `until`: no alternative begins after it.

    `alternative` is the number of the one under way, 0 before the first; `calls`: those of its calls that have begun, by item, with
    their tools. `failed`: what the last of them has failed with.
    """

    until: int
    alternative: int = 0
    calls: dict[str, str] = {}
    failed: Failure | None = None

    def after_fork(self, before: Work | None, *, is_ending: bool, later: int = 0) -> Self:
        """What the model has answered is kept, and there is as much time left as at the cut."""
        return self.postponed(later)

    def postponed(self, later: int) -> Self:
        return replace(self, until=self.until + later)


class AlternativeBegan(About, frozen=True, tag="alternative_began", omit_defaults=True, kw_only=True):
    """The next call of the model's alternative of this `number`, or the first of the next one.

    `tool` is called, or an equal call was made before and has given what this one gives (`repeats` is its slot).
    """

    at: int
    number: int
    call: str
    tool: str
    digest: str = ""
    repeats: str = ""


class ReplanEnded(About, frozen=True, tag="replan_ended", omit_defaults=True, kw_only=True):
    """No alternative is left, or there is no time for it: what is done about the failure goes on. `why`: for people."""

    at: int
    why: str


def call_item(number: int, step: int) -> str:
    """`a2-1`: both count from 1."""
    return f"a{number}-{step}"


def call_place(item: str) -> tuple[int, int]:
    """The numbers of the alternative and of the call in it."""
    number, _, step = item[1:].partition("-")
    return int(number), int(step)


def label_of(item: str, tool: str = "") -> str:
    """`alternative 2, call 1 (table.search)`, in words for people."""
    if item in (PLAN, CHOICE):
        return f"the {item}"
    number, step = call_place(item)
    return f"alternative {number}, call {step}" + (f" ({tool})" if tool else "")


_encode = msgspec.json.Encoder(order="sorted").encode


def act_digest(user: str, tool: str, arguments: Mapping[str, Any]) -> str:
    """The same for calls that mean the same to one user, however their arguments are written."""
    return hashlib.sha256(_encode([user, tool, canonical(dict(arguments))])).hexdigest()[:32]


def remembered(made: dict[str, Made], digest: str, slot: str, output: Value) -> dict[str, Made]:
    """With one more call, and without the oldest where there are too many."""
    more = {**{key: one for key, one in made.items() if key != digest}, digest: Made(slot, output)}
    return dict(list(more.items())[-MADE_REMEMBERED:])
