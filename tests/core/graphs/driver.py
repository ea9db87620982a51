"""Carries a pair to its end: in which order steps end, how many at once, and with what bad luck.

Belongs here: the drawing of orders. What must hold is in pair.py.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from baton.core import events as ev
from baton.core.decide import ROOM
from baton.core.outcomes import Outcome
from tests.core.build import T0, done
from tests.core.graphs.cases import FAILS
from tests.core.graphs.facts import slot_of
from tests.core.graphs.pair import Pair
from tests.core.graphs.script import Script

MOST_STEPS = 400


@dataclass(frozen=True)
class Luck:
    """How one run goes: steps that end at once, room in an entry, chances of deaths, early signals, late outcomes."""

    together: int = 1
    room: int = ROOM
    death: float = 0.0
    early: float = 0.0
    late: float = 0.0
    look: float = 0.0


def outcome_of(script: Script, slot: str) -> Outcome:
    key = slot_of(slot)
    return failing(slot) if script.fails(key) else done(slot, script.value(key))


def failing(slot: str) -> Outcome:
    failure = ev.Failure("tool_error", "it broke", slot_of(slot)[0])
    return Outcome(slot=slot, attempt=1, started_at=T0, ended_at=T0 + 5, failure=failure)


def signal(pair: Pair, script: Script, name: str, number: int) -> None:
    pair.signal(name, script.value((name, (number,))))


def carry_on(pair: Pair, script: Script, draw: random.Random, luck: Luck) -> int:
    """Let everything end that can, in any order. How many entries a check looked at."""
    looks = 0
    seen: set[str] = set()
    for number in range(MOST_STEPS):
        if pair.world.ended is not None and not pair.running:
            return looks
        seen |= pair.running
        choices = sorted(pair.running) + sorted(f"signal {name}" for name in waiting(pair))
        chosen = draw.sample(choices, min(len(choices), draw.randint(1, luck.together)))
        for name in [*(one.removeprefix("signal ") for one in chosen if one.startswith("signal "))]:
            signal(pair, script, name, number)
        if draw.random() < luck.early:
            names = [name for name, node in pair.world.plan.nodes.items() if "wait" in node]
            if names and pair.world.ended is None:
                signal(pair, script, draw.choice(names), number)
        outcomes = [outcome_of(script, slot) for slot in chosen if not slot.startswith("signal ")]
        gone = sorted(seen - pair.running)
        if gone and draw.random() < luck.late:
            outcomes.insert(draw.randint(0, len(outcomes)), outcome_of(script, draw.choice(gone)))
        pair.go(*outcomes, dies=draw.random() < luck.death)
        if draw.random() < luck.look:
            looks += 1
            pair.check_restart()
            pair.check_twice(outcomes)
    raise AssertionError("it does not end")


def carry_on_together(pair: Pair, told: Sequence[tuple[str, Any]], most: int) -> None:
    """Tell what was told before, in the same order, but as much of it at once as is at work by then."""
    left = list(told)
    while left:
        outcomes: list[Outcome] = []
        while (
            left and len(outcomes) < most and (left[0][0] in pair.running or left[0][0].startswith("signal "))
        ):
            name, value = left.pop(0)
            if name.startswith("signal "):
                # What comes from outside is an entry of its own, and what was told before it is settled first.
                if outcomes:
                    left.insert(0, (name, value))
                    break
                pair.signal(name.removeprefix("signal "), value)
                break
            outcomes.append(failing(name) if value == FAILS else done(name, value))
        else:
            if not outcomes:
                left.pop(0)
        pair.go(*outcomes)


def waiting(pair: Pair) -> list[str]:
    """The waits that are open: each has a signal of its own name."""
    return [] if pair.world.ended is not None else [name for name, _ in pair.world.open_of("wait")]


def every_order(pair: Pair, script: Script, most: int) -> Iterator[Pair]:
    """Every order in which what is at work at the same time may end, one by one, up to `most` of them."""
    stack = [pair]
    while stack and most > 0:
        here = stack.pop()
        if here.world.ended is not None and not here.running:
            most -= 1
            yield here
            continue
        for slot in sorted(here.running):
            twin = here.fork()
            twin.go(outcome_of(script, slot))
            stack.append(twin)
        for name in waiting(here):
            twin = here.fork()
            signal(twin, script, name, len(here.entries))
            twin.go()
            stack.append(twin)
