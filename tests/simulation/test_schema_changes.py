"""A deploy that a step of running sagas does not fit, while workers of both codes take turns, and one that fits again."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from baton import Context, tool
from baton.core.decide import schema_changes
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.ports import SagaRef
from baton.runtime.engine.parts import Engine
from baton.runtime.steps import steps
from baton.tools.define import Registry
from tests.kit.bugs import replaced
from tests.kit.corpus import patiently
from tests.kit.deploy_runs import Deploys, _poke
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, NO_ANSWER, Plan
from tests.kit.process import RUNS_IN, Process
from tests.kit.toolbox import Books, make_registry
from tests.kit.virtual_time import run_virtual
from tests.kit.world import TENANT

pytestmark = pytest.mark.simulation

WORKFLOW = """
name: w
nodes:
  pay: {tool: shop.pay}
  rest: {wait: {for: 200s}, after: pay}
  look: {tool: shop.look, after: rest}
  mail: {tool: shop.mail, after: look, with: {price: '${ctx.look.output.price}'}}
"""
SAGAS = 4
UNFIT = "b2"


@dataclass
class Found:
    price: int


@dataclass
class Other:
    cost: int


@dataclass
class Changing(Deploys):
    """A world whose tools differ from build to build. `acted`: what was done, with the build that did it."""

    codes: dict[str, Registry] = field(default_factory=dict)
    acted: list[tuple[str, str, str]] = field(default_factory=list)

    def code_of(self, process: Process) -> Registry:
        build = self.build_of(process)
        if build not in self.codes:
            self.codes[build] = _declared(self, build)
        return self.codes[build]

    def _new_engine(self, process: Process) -> Engine:
        self.tools = self.code_of(process).specs()
        return super()._new_engine(process)


def _declared(world: Changing, build: str) -> Registry:
    registry = make_registry(Books())

    def act(what: str, context: Any) -> None:
        assert RUNS_IN.get() is not None
        world.acted.append((context.saga, what, build))

    @tool("shop.pay", undo="shop.refund", registry=registry)
    async def pay(context: Context) -> str:
        act("pay", context)
        return "paid"

    @tool("shop.refund", registry=registry)
    async def refund(context: Context) -> None:
        act("refund", context)

    @tool("shop.mail", registry=registry)
    async def mail(price: int, context: Context) -> None:
        act("mail", context)

    if build == UNFIT:

        @tool("shop.look", registry=registry)
        async def other(context: Context) -> Other:
            act("look", context)
            return Other(1)

    else:

        @tool("shop.look", registry=registry)
        async def look(context: Context) -> Found:
            act("look", context)
            return Found(1)

    return registry


def changing(seed: int, **faults: Any) -> tuple[list[str], Plan]:
    """What is broken when a deploy does not fit the sagas that run, and the next one does."""
    plan = Plan(**faults)

    async def main() -> list[str]:
        world = Changing(make_registry(Books()), plan=plan, seed=seed, is_warm=True)
        world.turns = random.Random(f"turns {seed}")
        world.limits = replace(Limits(), build="b1")
        world.switch_on()
        await patiently(world, lambda service: service.register(WORKFLOW, json_only=False))
        sagas = []
        for number in range(SAGAS):
            view, _ = await patiently(world, lambda service, n=number: service.start("w", {}, f"k{n}"))  # type: ignore[misc]
            sagas.append(str(view["id"]))
        await asyncio.sleep(60)
        rolling = asyncio.create_task(world.deploy(UNFIT))
        while not rolling.done():
            await _poke(world, sagas[0])
            await asyncio.sleep(20)
        await asyncio.sleep(1_800)
        await world.deploy("b3")
        await asyncio.sleep(1_800)
        return list(_broken(world, sagas))

    return run_virtual(main()), plan


def _broken(world: Changing, sagas: list[str]) -> Iterator[str]:
    for saga in sagas:
        head, events = world.log.read_head(SagaRef(TENANT, saga)), world.events(saga)
        assert head is not None
        if head.status != "completed":
            yield f"{saga} is {head.status} after the deploy that it fits"
        codes = {one.failure.code for one in events if isinstance(one, ev.AttemptFailed | ev.StepFailed)}
        if codes - {"schema_changed"}:
            yield f"{saga} failed with {sorted(codes)}"
    counts = Counter((saga, what) for saga, what, _ in world.acted)
    has_died = bool(world.faults)
    if not has_died and (more := [one for one, times in counts.items() if times > 1]):
        yield f"done twice: {more}"
    if any(what == "refund" for _, what, _ in world.acted):
        yield "something was undone"
    if any(what == "look" and build == UNFIT for _, what, build in world.acted):
        yield "a tool acted that no longer gives what is read of it"
    for error in world.endings:
        yield f"{error!r}"


@pytest.mark.parametrize("seed", range(2))
def test_each_saga_waits_for_code_that_it_fits_and_nothing_is_undone(seed: int) -> None:
    assert changing(seed)[0] == []


@pytest.mark.parametrize("fate", [CRASH_BEFORE, CRASH_AFTER, NO_ANSWER])
def test_whatever_dies_at_a_write(fate: str) -> None:
    _, plan = changing(0)
    found = {
        number: broken
        for number in range(1, len(plan.writes) + 1, 150)
        if (broken := changing(0, at={number: fate})[0])
    }
    assert found == {}


@contextmanager
def results_are_not_compared() -> Iterator[None]:
    with replaced(schema_changes, "unfit_results", lambda *_: {}):
        yield


@contextmanager
def a_change_is_a_failure_of_business() -> Iterator[None]:
    with replaced(steps, "SCHEMA_CHANGED", "not_found"):
        yield


def test_a_planted_bug_is_found() -> None:
    with results_are_not_compared():
        assert any("no longer gives" in one for one in changing(1)[0])
    with a_change_is_a_failure_of_business():
        assert any("failed with" in one for one in changing(1)[0])
