"""How each step of a random graph ends: a value that its conditions can be asked about, or a failure.

Drawn from a seed and the slot alone, so that it does not depend on what else happened, nor on the order.
"""

from __future__ import annotations

import random
from typing import Any

from tests.core.graphs.facts import Slot, slot_name
from tests.core.graphs.plan import Plan
from tests.core.graphs.shapes import GO

INPUT = {"go": "red", "again": True}


class Script:
    """The scripted ends of one run of a graph. `fate` says how often failures are: never, where tolerated, anywhere."""

    def __init__(self, plan: Plan, seed: str) -> None:
        self.plan = plan
        self.seed = seed
        draw = random.Random(seed)
        self.tolerated = draw.choice((0.0, 0.2, 0.4))
        self.anywhere = draw.choice((0.0, 0.0, 0.0, 0.04))
        self.strange = draw.choice((0.0, 0.0, 0.0, 0.0, 0.1))

    def value(self, slot: Slot) -> dict[str, Any]:
        draw = random.Random(f"{self.seed}/{slot_name(slot)}")
        among = self.plan.nodes[slot[0]].get("branch", {}).get("among", ())
        value = {
            "of": slot_name(slot),
            "go": draw.choice(GO),
            "again": draw.random() < 0.5,
            "next": draw.choice([None, [], list(among), *among, *among]),
        }
        if draw.random() < self.strange:
            # What a condition asks for may not be there: it breaks.
            del value[draw.choice(("go", "again", "next"))]
        return value

    def fails(self, slot: Slot) -> bool:
        chance = self.tolerated if slot[0] in self.plan.tolerated else self.anywhere
        return (
            self.plan.kind(slot[0]) == "task"
            and random.Random(f"{self.seed}!{slot_name(slot)}").random() < chance
        )
