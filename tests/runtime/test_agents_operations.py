"""An agent calls those operations of APIs that its document lists, and no others, whatever its model asks for."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from baton import StepFailure, tool
from baton.core.documents.compile import compile_document
from baton.core.log.events import QuestionOpened
from baton.core.log.questions import Answer
from baton.errors import InvalidDefinition
from baton.tools.standard.openapi import Listed
from tests.kit.corpus import start
from tests.kit.scripted import Scripted, asks_for, by_turn, says
from tests.kit.world import World
from tests.runtime.test_agents import ran

AGENT = """
name: w
nodes:
  tend: {agent: {model: m, prompt: p, tools: [std.openapi, sum.add], operations: {shop: [listOrders, getOrder], mail: send}}}
output: ${ctx.tend.output}
"""


def declared(world: World) -> list[tuple[str, str]]:
    """The calls that the tool gets."""
    called: list[tuple[str, str]] = []

    @tool("std.openapi", registry=world.registry)
    async def openapi(
        api: str,
        operation: str,
        parameters: dict[str, Any] | None = None,
        body: Any = None,
        operations: Listed = None,
    ) -> str:
        assert operations is not None
        assert operation in operations[api]
        called.append((api, operation))
        return "done"

    @tool("sum.add", registry=world.registry)
    async def add(a: int) -> int:
        return a

    world.tools = world.registry.specs()
    return called


def errors_of(model: Scripted) -> list[Any]:
    results = [one["content"] for one in model.requests[-1].messages if one["role"] == "tool"]
    return [json.loads(one)["error"] for one in results if one.startswith('{"error"')]


async def test_each_operation_is_a_tool_of_its_own_and_no_other_can_be_called() -> None:
    world = World.start()
    called = declared(world)
    others = ("std_openapi", "shop_restart", "mail_listOrders", "other_listOrders", "shop_listorders")
    asks = asks_for(("shop_getOrder", {}), *((name, {}) for name in others))
    world.models = model = Scripted(by_turn(asks, says("ok")))
    shown = await ran(world, AGENT, {})
    assert (shown["status"], called) == ("completed", [("shop", "getOrder")])
    offered = [one.name for one in model.requests[0].tools]
    assert offered == ["sum_add", "mail_send", "shop_getOrder", "shop_listOrders"]
    assert [one["code"] for one in errors_of(model)] == ["call_not_allowed"] * len(others)


async def test_a_model_can_name_neither_an_operation_nor_a_list_of_its_own() -> None:
    world = World.start()
    called = declared(world)
    other = {"api": "shop", "operation": "restart", "operations": {"shop": ["restart"]}}
    asks = asks_for(("shop_getOrder", other), ("shop_listOrders", {"parameters": other}))
    world.models = model = Scripted(by_turn(asks, says("ok")))
    shown = await ran(world, AGENT, {})
    assert (shown["status"], called) == ("completed", [("shop", "listOrders")])
    assert [one["code"] for one in errors_of(model)] == ["input_invalid"]
    (offer,) = [one for one in model.requests[0].tools if one.name == "shop_getOrder"]
    assert set(offer.parameters["properties"]) == {"parameters", "body"}


@pytest.mark.parametrize("is_there", [True, False])
async def test_a_model_is_told_what_the_description_of_the_api_says(is_there: bool) -> None:
    world = World.start()
    called = declared(world)
    schema = {"type": "object", "properties": {"parameters": {"type": "object", "required": ["id"]}}}
    seen: list[Any] = []

    @tool("std.describe_operations", registry=world.registry, effect="pure")
    async def describe(operations: Listed = None) -> list[Any]:
        seen.append(operations)
        if not is_there:
            raise StepFailure("service_unavailable", "not now")
        return [{"api": "shop", "operation": "getOrder", "text": "One order.", "parameters": schema}]

    world.tools = world.registry.specs()
    asks = asks_for(("shop_getOrder", {"parameters": {}}), ("mail_send", {}))
    world.models = model = Scripted(by_turn(asks, says("ok")))
    shown = await ran(world, AGENT, {})
    offers = {one.name: one for one in model.requests[1].tools}
    assert shown["status"] == "completed"
    assert seen == [{"shop": ["listOrders", "getOrder"], "mail": ["send"]}], "asked once an invocation"
    assert (offers["shop_getOrder"].description == "One order.") is is_there
    assert (offers["shop_getOrder"].parameters == schema) is is_there
    assert sorted(called) == [("mail", "send"), *([] if is_there else [("shop", "getOrder")])]


@pytest.mark.parametrize("action", ["approve", "reject"])
async def test_a_call_that_the_agent_has_to_ask_about_waits_for_a_person_and_others_go_on(
    action: str,
) -> None:
    world = World.start()
    called = declared(world)
    words = "requires_approval: {'shop:getOrder': {to: {group: finance}, title: 'For ${saga.user}?'}, sum.add: true}"
    text = AGENT.replace("prompt: p,", f"prompt: p, {words},")
    asks = asks_for(("shop_getOrder", {}), ("shop_listOrders", {}), ("sum_add", {"a": 1}))
    world.models = model = Scripted(by_turn(asks, says("ok")))
    saga = await start(world, text, {}, "w")
    await asyncio.sleep(200)
    assert called == [("shop", "listOrders")]
    shown = await world.queries().show(saga)
    questions = {one["title"]: one for one in shown["questions"]}
    mine = questions.pop("For ann?")
    (asked,) = [one.ask for one in world.events(saga) if isinstance(one, QuestionOpened) and one.ask.to]
    assert (asked.id, asked.to) == (mine["id"], "group:finance")
    (other,) = questions.values()
    for one, how in ((mine, action), (other, "approve")):
        await world.service().answer(saga, Answer(ask=one["id"], action=how), f"k{one['id']}")
    await world.settle()
    shown = await world.queries().show(saga)
    assert (shown["status"], shown["result"]) == ("completed", "ok")
    assert called == [("shop", "listOrders"), *([("shop", "getOrder")] if action == "approve" else [])]
    assert [one["code"] for one in errors_of(model)] == ([] if action == "approve" else ["rejected"])


RISK = "risk: {'shop:getOrder': {action: payment, amount: body.cents, currency_is: USD, minor: true}, 'mail:send': high}"
ASKS = "requires_approval: {'shop:getOrder': {always: false, to: {group: finance}}}"
RULES = "risk: [{level: high, action: payment, above: 100}]\nnodes:"


async def test_an_operation_asks_by_its_risk_and_the_rules_of_the_document() -> None:
    world = World.start()
    called = declared(world)
    text = AGENT.replace("prompt: p,", f"prompt: p, {RISK}, {ASKS},").replace("nodes:", RULES)
    pays = [("shop_getOrder", {"body": {"cents": cents}}) for cents in (10_000, 10_001)]
    asks = asks_for(*pays, ("mail_send", {}), ("shop_listOrders", {}))
    world.models = Scripted(by_turn(asks, says("ok")))
    saga = await start(world, text, {}, "w")
    await asyncio.sleep(60)
    assert sorted(called) == [("shop", "getOrder"), ("shop", "listOrders")]
    opened = {one.item: one.ask for one in world.events(saga) if isinstance(one, QuestionOpened)}
    assert {item: (ask.to, ask.risk) for item, ask in opened.items()} == {
        "t1-1": ("group:finance", "high"),
        "t1-2": ("", "high"),
    }
    for ask in opened.values():
        await world.service().answer(saga, Answer(ask=ask.id, action="approve"), ask.id)
    await world.settle()
    assert len(called) == 4


@pytest.mark.parametrize(
    ("approvals", "path", "message"),
    [
        ("{shop:getorder: true}", "/shop:getorder", "shop:getOrder"),
        ("{std.openapi: true}", "/std.openapi", "no call"),
        ("{sum.sign: false}", "/sum.sign", "requires an approval itself"),
        ("{sum.add: false}", "/sum.add", "declares no risk"),
        ("{sum.add: {title: '${ctx.gone.output}'}}", "/sum.add/title", "gone"),
    ],
)
async def test_the_approvals_of_an_agent_are_of_its_calls_and_take_nothing_away(
    approvals: str, path: str, message: str
) -> None:
    world = World.start()
    declared(world)

    @tool("sum.sign", registry=world.registry, requires_approval=True)
    async def sign() -> int:
        return 1

    text = AGENT.replace("sum.add]", f"sum.*], requires_approval: {approvals}")
    with pytest.raises(InvalidDefinition) as caught:
        compile_document(text, world.registry.specs())
    (problem,) = caught.value.problems
    assert problem.path == f"/nodes/tend/agent/requires_approval{path}"
    assert message in f"{problem.message} {problem.suggestion}"


async def test_a_step_that_a_model_does_another_way_keeps_to_its_list() -> None:
    world = World.start()
    called = declared(world)

    @tool("broken", registry=world.registry)
    async def broken() -> str:
        raise ValueError("no")

    world.tools = world.registry.specs()
    merits = {
        "reliability": 0.9,
        "cost": 1,
        "latency": 1,
        "fit": 1,
        "preference": 0.5,
        "why": "",
        "trade_offs": "",
    }
    steps = [
        {"tool": "std.openapi", "arguments": {"api": "shop", "operation": name}}
        for name in ("restart", "getOrder")
    ]
    answer = {"alternatives": [{"steps": [step], **merits} for step in steps]}
    world.models = Scripted(by_turn(says(json.dumps(answer))))
    text = """
name: w
nodes:
  a:
    tool: broken
    on_failure: [replan, fail]
    replan: {model: m, tools: std.openapi, operations: {shop: [listOrders, getOrder], mail: send}}
output: ${ctx.a.output}
"""
    shown = await ran(world, text, {})
    assert (shown["status"], shown["result"], called) == ("completed", "done", [("shop", "getOrder")]), shown
