"""Effects that may happen only once and may have happened: nothing ends, replaces or repeats their step before a look."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton import Context, Key, StepFailure, tool
from baton.core.log.questions import Answer
from baton.runtime.invocation.attempt import UnknownOutcome
from tests.kit.corpus import start
from tests.kit.faults import Crash
from tests.kit.world import World


def add_bank(world: World, deeds: list[str], *, seconds: float = 0.1, verify: bool = True) -> None:
    """Two tools that pay; the card's takes its time, and the money is gone at its beginning."""

    @tool("card", registry=world.registry, effect="once", verify="find_card" if verify else "")
    async def card() -> str:
        deeds.append("card")
        await asyncio.sleep(seconds)
        return "by card"

    @tool("find_card", registry=world.registry, effect="pure")
    async def find_card() -> dict[str, Any]:
        return {"happened": "card" in deeds, "result": "by card" if "card" in deeds else None}

    @tool("transfer", registry=world.registry)
    async def transfer() -> str:
        deeds.append("transfer")
        return "by transfer"

    world.tools = world.registry.specs()


async def view_of(world: World, document: str, settle_s: float = 7_200) -> dict[str, Any]:
    saga = await start(world, document, {}, "w")
    await world.settle(settle_s)
    return await world.queries().show(saga)


OR_TRANSFER = "catch: other}\n  other: {tool: transfer}\noutput: ['${ctx.a.output?}', '${ctx.other.output?}']"


async def test_a_limit_of_time_strikes_neither_while_it_acts_nor_between_the_doubt_and_the_look() -> None:
    world = World.start()
    deeds: list[str] = []
    add_bank(world, deeds, seconds=10)
    document = f"name: w\nnodes:\n  a: {{tool: card, timeout: 2s, limits: {{wall_time: 3s}}, {OR_TRANSFER}"
    view = await view_of(world, document)
    assert (view["status"], view["result"], deeds) == ("completed", ["by card", None], ["card"])


async def test_a_rule_for_any_failure_does_not_speak_of_a_doubt() -> None:
    world = World.start()
    deeds: list[str] = []
    add_bank(world, deeds, seconds=10, verify=False)
    document = f"name: w\non_failure: [rollback]\nnodes:\n  a: {{tool: card, timeout: 2s, {OR_TRANSFER}"
    view = await view_of(world, document, 600)
    assert (view["status"], deeds) == ("suspended", ["card"])


async def test_a_rule_that_names_the_doubt_does() -> None:
    world = World.start()
    deeds: list[str] = []
    add_bank(world, deeds, seconds=10, verify=False)
    rule = "on_failure: {any: [rollback], unknown_outcome: rollback}"
    document = f"name: w\n{rule}\nnodes: {{a: {{tool: card, timeout: 2s}}}}"
    view = await view_of(world, document, 600)
    assert (view["status"], view["error"]["code"]) == ("failed", "unknown_outcome")


async def test_a_person_is_told_where_a_join_goes_on_without_it() -> None:
    world = World.start()
    deeds: list[str] = []
    add_bank(world, deeds, seconds=10)
    document = """
name: w
nodes:
  a: {tool: card}
  b: {tool: transfer}
  j: {value: done, after: [a, b], join: any}
"""
    view = await view_of(world, document)
    assert view["status"] == "completed"
    (notice,) = world.notices.said
    assert (notice.code, notice.to, notice.node) == ("unknown_outcome", "on_call", "a")


async def test_a_person_is_told_where_a_cancel_has_stopped_it() -> None:
    world = World.start()
    deeds: list[str] = []
    add_bank(world, deeds, seconds=60)
    saga = await start(world, "name: w\nnodes: {a: {tool: card, timeout: 90s}}", {}, "w")
    await asyncio.sleep(2)
    await world.service().cancel(saga, "changed my mind", 0)
    await world.settle()
    assert (await world.queries().show(saga))["status"] == "cancelled"
    assert [notice.code for notice in world.notices.said] == ["unknown_outcome"]


async def test_a_call_that_was_refused_may_be_corrected_under_the_same_key() -> None:
    world = World.start()
    billed: list[int] = []

    @tool("bill", registry=world.registry, effect="once", key=Key.business("invoice", "invoice"))
    async def bill(invoice: str, cents: int) -> int:
        if cents > 100:
            raise StepFailure("invalid_input", "at most 100")
        billed.append(cents)
        return cents

    world.tools = world.registry.specs()
    document = (
        "name: w\nnodes: {a: {tool: bill, with: {invoice: i, cents: 500}, "
        "on_failure: {any: {may_change: cents}}}}\noutput: ${ctx.a.output}"
    )
    saga = await start(world, document, {}, "w")
    await world.settle(60)
    (question,) = (await world.queries().show(saga))["questions"]
    answer = Answer(ask=question["id"], action="retry", arguments={"cents": 50})
    await world.service().answer(saga, answer, "")
    await world.settle()
    assert ((await world.queries().show(saga))["result"], billed) == (50, [50])
    second = document.replace("name: w", "name: v").replace("500", "60")
    await world.service().register(second, json_only=False)
    other, _ = await world.service().start("v", {}, "key-2")
    await world.settle()
    view = await world.queries().show(other["id"])
    assert (view["status"], view["error"]["code"]) == ("failed", "idempotency_key_reused")
    assert billed == [50]


async def test_a_step_that_waits_for_an_answer_is_not_at_work() -> None:
    world = World.start()
    document = """
name: w
limits: {fan_out: {max: 1, then: throttle}}
nodes:
  a: {tool: refuse, on_failure: ask_user}
  b: {tool: work, with: {n: 1}}
  c: {tool: work, with: {n: 2}}
"""
    view = await view_of(world, document, 600)
    assert view["status"] == "suspended"
    assert view["steps"] == 2


CHEQUE = """
name: w
on_failure: {unauthorized: {ladder: [replan], hints: [sign_in]}}
nodes: {a: {tool: cheque}}
output: ${ctx.a.output}
"""


@pytest.mark.parametrize("has_acted", [False, True])
async def test_after_a_death_a_look_begins_with_the_claim_and_not_with_what_goes_before_a_call(
    has_acted: bool,
) -> None:
    world = World.start()
    deeds: list[str] = []
    signings = ["well", "refused", "well"] if has_acted else ["dies", "refused"]
    begun: list[str] = []

    @tool("sign_in", registry=world.registry)
    async def sign_in(context: Context) -> None:
        begun.append(signings[len(begun)])
        if begun[-1] == "refused":
            raise StepFailure("business_rule", "the account is closed")
        if begun[-1] == "dies":
            world.running[context.saga, context.node].is_dead = True
            raise Crash

    @tool("cheque", registry=world.registry, effect="once", verify="find_cheque")
    async def cheque(context: Context) -> str:
        if not begun:
            raise StepFailure("unauthorized", "log in", happened=False)
        deeds.append("cheque")
        world.running[context.saga, context.node].is_dead = True
        raise Crash

    @tool("find_cheque", registry=world.registry, effect="pure")
    async def find_cheque() -> dict[str, Any]:
        return {"happened": bool(deeds), "result": "by cheque" if deeds else None}

    world.tools = world.registry.specs()
    view = await view_of(world, CHEQUE)
    assert (view["questions"], begun) == ([], signings)
    if has_acted:
        assert (view["status"], view["result"], deeds) == ("completed", "by cheque", ["cheque"])
    else:
        assert (view["status"], view["error"]["code"], deeds) == ("failed", "business_rule", [])


def test_a_step_that_has_no_key_is_in_no_doubt_after_a_death() -> None:
    assert UnknownOutcome(before=False, acting=True).after(StepFailure("business_rule", "no", happened=False))
    assert not UnknownOutcome(before=False, acting=True).after(StepFailure("key_incomplete", "no id"))
    assert UnknownOutcome(before=True, acting=True).after(StepFailure("key_incomplete", "no id"))
