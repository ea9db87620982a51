"""Whatever attempts of a step come to, a rollback leaves no effect of them that the saga does not know of: the books of the service judge."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from baton import Context, StepFailure, tool
from tests.kit.faults import Crash
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World
from tests.runtime.undoing import Ledger, add_ledger, view_of

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))  # `make soak`
ONWARD = ("again", "arguments", "tool", "both")
"""The codes of failures, by what the document does about them."""


class Fate(Struct, frozen=True):
    """What becomes of one call: whether it acts, and what comes back. No code: its worker dies. `says`: the tool says that it has acted."""

    acts: bool
    code: str
    says: bool = False


FATES = st.builds(Fate, st.booleans(), st.sampled_from((*ONWARD, "")), st.booleans())


def few_deaths(fates: list[Fate]) -> bool:
    """After three deaths in a row a saga is parked for a person."""
    return sum(not fate.code for fate in fates) < 3


DOCUMENT = """
name: w
nodes:
  a:
    tool: KIND.hold
    with: {seat: 0}
    retry: {max_attempts: 8, base: 1s}
    failover:
      - {name: again, when: {code: again}, then: {strategy: retry}, at_most: 20}
      - {name: other, when: {code: arguments}, then: {strategy: replan, with: {seat: "${last_error.attempt}"}}, at_most: 20}
      - {name: tool, when: {code: tool}, then: {tool: KIND.keep}, at_most: 20}
      - {name: both, when: {code: both}, then: {tool: KIND.hold, with: {seat: "${last_error.attempt}"}}, at_most: 20}
  b: {tool: trip.fail, after: a}
"""


class Desk(Struct):
    """Holds seats, each call of one tool with one key once, until they are released; `fates`: those of the next calls, and `last` of all after them."""

    fates: list[Fate]
    last: Fate | None = None
    held: dict[str, int] = {}
    lost: int = 0
    """How often a worker has died in it."""

    def call(self, world: World, tool: str, seat: int, context: Context) -> dict[str, str]:
        fate = self.fates.pop(0) if self.fates else self.last
        key = context.idempotency_key
        if fate is None or fate.acts:
            self.held[key] = seat
        if fate is None:
            return {"id": key}
        if not fate.code:
            self.lost += 1
            world.running[context.saga, context.node].is_dead = True
            raise Crash
        said: dict[str, Any] = {"kind": "permanent"}
        if fate.acts:
            said = {"kind": "permanent", "happened": True} if fate.says else {"status": 503}
        raise StepFailure(fate.code, "it broke", **said)


def add_desk(world: World, desk: Desk) -> None:
    """Holds that are released by the key of the call (`keyed`), and by what they gave (`plain`)."""

    def add(kind: str, name: str) -> None:
        @tool(f"{kind}.{name}", undo=f"{kind}.release", registry=world.registry)
        async def hold(seat: int, context: Context) -> dict[str, str]:
            return desk.call(world, name, seat, context)

    for kind in ("keyed", "plain"):
        add(kind, "hold")
        add(kind, "keep")

    @tool("keyed.release", registry=world.registry)
    async def release(step_key: str) -> None:
        desk.held.pop(step_key, None)

    @tool("plain.release", registry=world.registry)
    async def release_it(id: str) -> None:
        desk.held.pop(id, None)

    world.tools = world.registry.specs()


@pytest.mark.parametrize("kind", ["keyed", "plain"])
@settings(max_examples=100 if IS_ALL else 7, derandomize=not IS_ALL, deadline=None)
@given(fates=st.lists(FATES, max_size=5).filter(few_deaths), ends=st.sampled_from(["", "lost", "refused"]))
def test_no_effect_of_any_attempt_stands_unknown_to_the_saga(kind: str, fates: list[Fate], ends: str) -> None:
    desk = Desk(list(fates), Fate(ends == "lost", "fatal") if ends else None)

    async def main() -> None:
        world = World.start()
        add_ledger(world, Ledger())
        add_desk(world, desk)
        view = await view_of(world, DOCUMENT.replace("KIND", kind), settle_s=7 * 86_400)
        assert not desk.fates, "each fate was met"
        undone = view["undo"]
        if view["status"] == "rolled_back":
            assert not desk.held
        elif view["status"] == "failed":
            assert not desk.held
            assert undone is None or not undone["doubtful"]
        else:
            assert view["status"] == "rollback_failed"
            assert set(undone["doubtful"]) == {"a"}
            end = world.end(view["id"])
            assert end is not None
            assert end.undone is not None
            assert len(desk.held) <= end.undone.doubts
        if kind == "keyed" and not desk.lost:
            assert view["status"] in {"rolled_back", "failed"}, "by its key each call is taken back"

    run_virtual(main())
