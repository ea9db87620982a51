"""What the compiler lets a document read without `?` is there, in every random graph: whatever it says is sure, is.

The documents themselves read less than that: what they read is drawn by sure.py, which knows less than the compiler.
"""

from __future__ import annotations

import json
import random

import pytest

from baton.core.documents.compile.available_outputs import AvailableOutputs
from baton.core.documents.compile.source import Source
from baton.core.documents.read import read_definition
from tests.core.graphs.driver import Luck, carry_on
from tests.core.graphs.facts import Slot, owner_of, slot_name
from tests.core.graphs.pair import TOOLS, Pair
from tests.core.graphs.script import Script
from tests.core.graphs.shapes import Doc
from tests.core.graphs.test_random_graphs import SCALE, graphs

COUNTS = {5: 15, 7: 15, 9: 8}

pytestmark = [pytest.mark.no_cover, pytest.mark.timeout(120 * SCALE)]


def produced_of(document: Doc) -> AvailableOutputs:
    model, problems, _, _ = read_definition(document)
    assert model is not None
    assert not problems
    found = Source(model, TOOLS, True).produced
    assert found is not None
    return found


class Watched(Pair):
    """A pair that looks, whenever a node has begun, whether all is there that it may count on."""

    def watch(self, produced: AvailableOutputs) -> Watched:
        plan = self.world.plan
        self.pairs = {
            name: [
                other
                for other in plan.nodes
                if other != name and name in plan.ahead[other] and produced.has(name, other)
            ]
            for name in plan.nodes
        }
        self.at_the_end = [name for name in plan.nodes if produced.has_at_the_end(name)]
        self.at_every_end = [name for name in plan.nodes if produced.has_at_every_end(name)]
        self.seen: set[Slot] = set()
        self.looked = 0
        return self

    def compare(self) -> None:
        super().compare()
        # What is ready in the moment in which an end is reached does not begin.
        open_slots = () if self.world.is_early else self.world.open
        for slot in [slot for slot in open_slots if slot not in self.seen]:
            self.seen.add(slot)
            for other in self.pairs[owner_of(slot)[0]]:
                self._check(owner_of(slot), other)
        if self.world.ended is None:
            return
        certain = self.at_every_end if self.world.is_early else []
        if self.world.ended.status == "completed" and not self.world.is_early:
            certain = self.at_the_end
            assert {*self.at_every_end} <= {*certain}
        for other in certain:
            self._check(("", ()), other)

    def _check(self, reader: Slot, other: str) -> None:
        world = self.world
        common = world.plan.common(reader[0], other) if reader[0] else 0
        fate = world.became.get(world.last(other, reader[1][:common]))
        became = fate.kind if fate is not None else "not reached"
        assert became == "done", f"{slot_name(reader)} counts on {other}, which is {became}"
        self.looked += 1


class Failing(Script):
    """Whatever the graph goes on from fails often, and nothing else does."""

    def fails(self, slot: Slot, attempt: int) -> str:
        name, draw = owner_of(slot)[0], random.Random(f"{self.seed}!{slot_name(slot)}")
        is_handled = "catch" in self.plan.nodes[name] or name in self.plan.tolerated
        return draw.choice(self.codes) if is_handled and draw.random() < 0.5 else ""


@pytest.mark.parametrize("size", COUNTS)
def test_what_the_compiler_counts_on_is_there(size: int) -> None:
    looked = 0
    for seed, document, program in graphs("counted", size, round(COUNTS[size] * SCALE)):
        pair = Watched(document, program).watch(produced_of(document))
        try:
            pair.go()
            carry_on(pair, Failing(pair.world.plan, seed), random.Random(seed), Luck(together=2))
        except Exception as error:
            error.add_note(f"graph {seed}: {json.dumps(document)}")
            raise
        looked += pair.looked
    assert looked > COUNTS[size] * SCALE
