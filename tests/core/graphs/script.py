"""How each step of a random graph ends: values that its conditions can be asked about, or failures.

Drawn from a seed and the slot alone, so that it does not depend on what else happened, nor on the order.
"""

from __future__ import annotations

import random
from typing import Any

from tests.core.graphs.facts import Slot, slot_name
from tests.core.graphs.items import tells_all
from tests.core.graphs.plan import Plan
from tests.core.graphs.shapes import GO

INPUT = {"go": "red", "again": True, "items": [{"no": 1}, {"no": 2}, {"no": 3}], "none": []}
CODES = (
    *("timeout", "timeout", "tool_error", "server_error", "not_found", "conflict", "content_policy"),
    *("bad_request", "disk_full"),
)
FOR_EVER = 99


class Script:
    """The scripted ends of one run of a graph. Failures are never, where the graph goes on from them, or anywhere."""

    def __init__(self, plan: Plan, seed: str) -> None:
        self.plan = plan
        self.seed = seed
        draw = random.Random(seed)
        self.tolerated = draw.choice((0.0, 0.2, 0.4))
        self.anywhere = draw.choice((0.0, 0.0, 0.0, 0.04))
        self.strange = draw.choice((0.0, 0.0, 0.0, 0.0, 0.1))
        self.troubled = 0.0 if plan.document.get("on_failure") == ["rollback"] else draw.choice((0.2, 0.5))
        self.codes = draw.sample(CODES, 3)

    def value(self, slot: Slot) -> dict[str, Any]:
        draw = random.Random(f"{self.seed}/{slot_name(slot)}")
        among = self.plan.of(slot[0]).get("branch", {}).get("among", ())
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

    def fails(self, slot: Slot, attempt: int) -> str:
        """The code with which this attempt fails; empty if it does not."""
        if self.plan.kind(slot[0]) not in ("task", "child"):
            return ""
        draw = random.Random(f"{self.seed}!{slot_name(slot)}")
        node = self.plan.of(slot[0])
        is_caught = "catch" in node
        if draw.random() < self.troubled * (1.5 if is_caught else 1):
            many = draw.choice((1, 1, 2, 2, 3, 5, FOR_EVER))
            if is_caught and draw.random() < 0.7:
                many = FOR_EVER
            codes = draw.choices(self.codes, k=many)
            return codes[attempt - 1] if attempt <= many else ""
        is_tolerated = slot[0].partition("#")[0] in self.plan.tolerated or ("map" in node and tells_all(node))
        chance = self.tolerated if is_tolerated else self.anywhere
        return "tool_error" if draw.random() < chance else ""
