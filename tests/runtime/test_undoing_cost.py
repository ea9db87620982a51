"""What a saga pays for what would undo it, when nothing does."""

from __future__ import annotations

from baton.core.log.codec import encode_entry
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World
from tests.runtime.undoing import Ledger, add_ledger, view_of

CHAIN = "name: w\nnodes:\n  s0: {tool: trip.book, with: {what: a}}\n" + "".join(
    f"  s{n}: {{tool: trip.book, with: {{what: a}}, after: s{n - 1}}}\n" for n in range(1, 8)
)
MOST_BYTES = 40
"""For each step: the place of the one before it, and the arguments that its inverse names."""


def test_a_saga_that_does_not_fail_pays_no_write_and_few_bytes_for_its_inverses() -> None:
    found: dict[str, tuple[list[str], int]] = {}
    for said in ("none", "sequential"):

        async def paid(said: str) -> None:
            world = World.start()
            add_ledger(world, Ledger())
            view = await view_of(world, f"compensate: {said}\n{CHAIN}")
            assert view["status"] == "completed"
            size = sum(len(encode_entry(entry)) for entry in world.entries(view["id"]))
            found[said] = list(world.plan.writes), size

        run_virtual(paid(said))
    assert found["none"][0] == found["sequential"][0]
    more = found["sequential"][1] - found["none"][1]
    assert 0 < more <= 8 * MOST_BYTES, f"{more / 8} bytes a step"
