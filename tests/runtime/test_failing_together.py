"""Two things go wrong at once: policies that break, answers that come too late, conditions that decide about failures."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton import StepFailure, tool
from baton.core.log.events import AttemptFailed, StepSucceeded
from baton.core.log.questions import Answer
from baton.errors import InvalidInput, NotFound
from tests.kit.corpus import start
from tests.kit.sentences import Says
from tests.kit.world import World

SECRET = "sk-ant-api03-AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH1234567890abcdef"


def add_tools(world: World, *codes: str, then_s: float = 0.1) -> list[str]:
    """`call` fails with these codes, one after the other, and then takes so long. Returns those that are left."""
    left = list(codes)

    @tool("call", registry=world.registry)
    async def call(text: str = "", password: str = "") -> str:
        if left:
            raise StepFailure(left.pop(0), "no")
        await asyncio.sleep(then_s)
        return text or "answer"

    @tool("large", registry=world.registry)
    async def large() -> str:
        return "x" * 1_500_000

    @tool("tells", registry=world.registry)
    async def tells() -> str:
        return f"for password=hunter2secret {SECRET}"

    world.tools = world.registry.specs()
    return left


async def shown(world: World, saga: str) -> dict[str, Any]:
    return await world.queries().show(saga)


async def question(world: World, saga: str) -> str:
    (found,) = (await shown(world, saga))["questions"]
    return str(found["id"])


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("${input.missing}", "`input.missing`"),
        ("${ctx.b.output}", "it is larger than 32768 bytes"),
    ],
)
async def test_every_attempt_is_in_the_log_whatever_a_policy_would_put_in_place_of_arguments(
    given: str, why: str
) -> None:
    world = World.start()
    add_tools(world, "service_unavailable")
    policy = f"{{name: f, when: {{code: service_unavailable}}, then: {{with: {{text: '{given}'}}}}}}"
    nodes = f"b: {{tool: large}}, a: {{tool: call, after: b, failover: [{policy}]}}"
    saga = await start(world, f"name: w\nnodes: {{{nodes}}}\noutput: ${{ctx.a.output}}", {}, "w")
    await world.settle()
    assert (await shown(world, saga))["result"] == "answer"
    attempts = [event.attempt for event in world.events(saga) if isinstance(event, AttemptFailed)]
    (done,) = [e for e in world.events(saga) if isinstance(e, StepSucceeded) and e.node == "a"]
    assert (attempts, done.attempt) == ([1], 2)
    assert max(len(event) for event in map(repr, world.events(saga))) < 2_000
    assert any(why in repr(event) for event in world.events(saga))


async def test_an_answer_to_an_incident_that_was_resumed_is_refused() -> None:
    world = World.start()
    add_tools(world, "disk_full", then_s=5)
    saga = await start(world, "name: w\nnodes: {a: {tool: call}}\noutput: ${ctx.a.output}", {}, "w")
    await asyncio.sleep(3)
    ask = await question(world, saga)
    await world.service().resume(saga)
    await asyncio.sleep(1)
    with pytest.raises(NotFound, match="no question is open"):
        await world.service().answer(saga, Answer(ask=ask, action="use", output="mine"), "")
    await world.settle()
    assert (await shown(world, saga))["result"] == "answer"


@pytest.mark.parametrize(("action", "way"), [("use", "b"), ("fail", "c")])
async def test_an_answer_to_an_incident_is_heard_where_python_decides_the_way(action: str, way: str) -> None:
    document = """
name: w
nodes:
  a:
    tool: call
    on_failure: escalate
    branch:
      rules: [{if: {python: "def evaluate(output, context):\\n    return True"}, then: b}]
      default: d
    catch:
      - {if: {python: "def evaluate(output, context):\\n    return True"}, then: c}
      - {then: e}
  b: {value: b}
  c: {value: c}
  d: {value: d}
  e: {value: e}
output: {b: "${ctx.b.output?}", c: "${ctx.c.output?}", d: "${ctx.d.output?}"}
"""
    world = World.start()
    add_tools(world, "business_rule")
    saga = await start(world, document, {}, "w")
    await asyncio.sleep(10)
    more: dict[str, Any] = {"output": "x"} if action == "use" else {}
    await world.service().answer(saga, Answer(ask=await question(world, saga), action=action, **more), "")
    await asyncio.sleep(60)
    view = await shown(world, saga)
    assert (view["status"], view["result"]) == (
        "completed",
        {"b": None, "c": None, "d": None} | {way: way},
    )


async def test_who_is_asked_for_credentials_cannot_put_them_into_the_log(says: Says) -> None:
    world = World.start()
    add_tools(world, "missing_credentials")
    may = "on_failure: {missing_credentials: {may_change: password}}"
    saga = await start(world, f"name: w\nnodes: {{a: {{tool: call, {may}}}}}", {}, "w")
    await asyncio.sleep(3)
    answer = Answer(ask=await question(world, saga), action="retry", arguments={"password": "hunter2"})
    with says.raised(InvalidInput):
        await world.service().answer(saga, answer, "")
    assert "hunter2" not in repr(world.events(saga))


@pytest.mark.parametrize("wait", ["for", "until"])
async def test_what_is_no_time_is_quoted_without_its_secrets(wait: str) -> None:
    world = World.start()
    add_tools(world)
    document = (
        f"name: w\nnodes: {{a: {{tool: tells}}, b: {{after: a, wait: {{{wait}: '${{ctx.a.output}}'}}}}}}"
    )
    saga = await start(world, document, {}, "w")
    await world.settle()
    error = (await shown(world, saga))["error"]
    assert error["code"] == "wait_invalid"
    assert "hunter2" not in str(error)
    assert "sk-ant" not in str(error)
