"""The runner's part in transitions: stop nodes that a join does not wait for, ask conditions, hand over in loops."""

from __future__ import annotations

import asyncio

import pytest

from baton import tool
from baton.core.log.events import JoinFired, NodeAdmitted, NodePassed, NodeSkipped, StepSucceeded
from tests.kit.corpus import start
from tests.kit.world import World


@pytest.mark.parametrize("rest", ["cancel", "run"])
async def test_a_join_that_fires_early_stops_the_rest_or_lets_it_run(rest: str) -> None:
    world = World.start()
    stopped = []

    @tool("linger", registry=world.registry, timeout="10m")
    async def linger() -> int:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            stopped.append(asyncio.get_running_loop().time())
            raise
        return 7

    world.tools = world.registry.specs()
    document = f"""
name: race
nodes:
  fast: {{tool: work, with: {{n: 1, seconds: 1}}}}
  slow: {{tool: linger}}
  first: {{tool: work, after: [fast, slow], join: {{wait_for: any, rest: {rest}}}, with: {{n: 2, seconds: 1}}}}
output: {{n: '${{ctx.first.output.n}}', slow: '${{ctx.slow.output?}}'}}
"""
    began = asyncio.get_running_loop().time()
    saga = await start(world, document, {}, "race")
    await world.settle()
    view = await world.queries().show(saga)
    took = asyncio.get_running_loop().time() - began
    events = world.events(saga)
    assert sum(isinstance(event, JoinFired) for event in events) == 1
    if rest == "cancel":
        assert view["result"] == {"n": 3, "slow": None}
        assert len(stopped) == 1
        assert stopped[0] - began < 1.5, "as soon as the join fires, not when something else is done"
        assert [event.why for event in events if isinstance(event, NodeSkipped)] == ["join first"]
    else:
        assert view["result"] == {"n": 3, "slow": 7}
        assert stopped == []
        assert took >= 5, "a saga is complete when nothing of it runs any more"


async def test_the_children_of_the_rest_are_cancelled() -> None:
    document = """
name: race
nodes:
  fast: {wait: {for: 20s}}
  child: {workflow: other}
  first: {tool: work, after: [fast, child], join: any, with: {n: 2}}
"""
    world = World.start()
    await world.service().register("name: other\nnodes: {a: {wait: {for: 5d}}}", json_only=False)
    saga = await start(world, document, {}, "race")
    await world.settle()
    assert (await world.queries().show(saga))["status"] == "completed"
    child = await world.queries().show(f"{saga}.0.child")
    assert child["status"] == "cancelled"


async def test_an_answer_of_python_is_in_the_log_before_the_step_runs() -> None:
    document = """
name: asks
nodes:
  a: {tool: work, with: {n: '${input.n}'}}
  b:
    tool: work
    after: a
    with: {n: 5}
    when: {python: "def evaluate(output, context): return context['a']['output']['n'] > 1", needs: [ctx.a.output]}
output: '${ctx.b.output?}'
"""
    world = World.start()
    saga = await start(world, document, {"n": 1}, "asks")
    await world.settle()
    assert (await world.queries().show(saga))["result"] == {"n": 6}
    (together,) = [
        entry for entry in world.entries(saga) if any(isinstance(e, NodeAdmitted) for e in entry.events)
    ]
    assert isinstance(together.events[0], StepSucceeded), "no write of its own"


async def test_rounds_that_run_nothing_hand_over_when_the_invocation_ends() -> None:
    document = """
name: spin
nodes:
  spin:
    value: '${loop.iteration}'
    loop: {while: 'output < 5999', max_iterations: 6000, break_path: end}
  end: {value: 1}
output: '${ctx.spin.output}'
"""
    world = World.start()
    saga = await start(world, document, {}, "spin")
    await world.settle()
    view = await world.queries().show(saga)
    assert (view["status"], view["result"]) == ("completed", 5999)
    assert sum(isinstance(event, NodePassed) for event in world.events(saga)) == 6_001
    assert max(len(entry.events) for entry in world.entries(saga)) < 5_000


HUGE = "['${input}', '${input}', '${input}']"  # of an input that is within the limit


@pytest.mark.parametrize("read", ["", "output: '${ctx.p.output[3]}'"])
async def test_a_saga_does_not_complete_with_a_value_that_is_too_large(read: str) -> None:
    document = f"name: huge\nnodes: {{p: {{value: {HUGE[:-1]}, 1]}}}}\n{read}"
    world = World.start()
    saga = await start(world, document, "x" * 2_000_000, "huge")
    await world.settle()
    view = await world.queries().show(saga)
    assert (view["status"], view["error"] and view["error"]["code"]) == ("failed", "value_too_large")


async def test_a_value_that_is_too_large_can_be_tolerated() -> None:
    document = f"""
name: huge
nodes:
  p: {{value: {HUGE}}}
  j: {{after: p, join: {{wait_for: all, tolerated_failures: 1}}, value: '${{join.errors[0].code}}'}}
output: '${{ctx.j.output}}'
"""
    world = World.start()
    saga = await start(world, document, "x" * 2_000_000, "huge")
    await world.settle()
    assert (await world.queries().show(saga))["result"] == "value_too_large"


async def test_a_large_value_that_no_node_reads_does_not_fill_its_entry() -> None:
    world = World.start()
    saga = await start(world, "name: w\nnodes: {p: {value: '${input}'}}", "x" * 400_000, "w")
    await world.settle()
    (passed,) = (event for event in world.events(saga) if isinstance(event, NodePassed))
    assert passed.output.size == 400_002
    assert passed.output.v is None


@pytest.mark.parametrize("condition", ["{{schema: '{}'}}", "{{python: '{}', needs: [output]}}"])
async def test_a_condition_whose_blob_is_not_there_fails_its_node(condition: str) -> None:
    ref = "cas://sha256/" + "a" * 64
    rule = f"{{if: {condition.format(ref)}, then: b}}"
    world = World.start()
    document = f"name: w\nnodes: {{a: {{value: 1, branch: {{rules: [{rule}]}}}}, b: {{value: 2}}}}"
    saga = await start(world, document, {}, "w")
    await world.settle(30)
    view = await world.queries().show(saga)
    assert view["error"]["code"] == "condition_missing"
    assert f"{ref} is not there" in view["error"]["message"]


async def test_a_saga_whose_own_blob_is_gone_waits_for_a_person() -> None:
    world = World.start()
    document = "name: w\nnodes: {v: {wait: {for: 30s}}, p: {after: v, value: '${input.x}'}}"
    saga = await start(world, document, {"x": "y" * 9_000}, "w")
    await world.settle(10)
    ref = next(ref for tenant, ref in world.blobs.stored if b"yyyy" in world.blobs.stored[tenant, ref])
    del world.blobs.stored["acme", ref]
    await world.settle(200)
    assert (await world.queries().show(saga))["status"] in {"running", "waiting"}
    assert f"{ref} is not there" in world.dead_letters.letters[0][1]


async def test_a_value_that_doubles_every_round_fails_its_node_and_not_the_worker() -> None:
    document = """
name: doubling
nodes:
  twice:
    value: ['${ctx.twice.previous}', '${ctx.twice.previous}', some text]
    loop: {while: 'true', max_iterations: 100, timeout_path: end}
  end: {value: 1}
"""
    world = World.start()
    saga = await start(world, document, {}, "doubling")
    await world.settle()
    view = await world.queries().show(saga)
    assert view["error"]["code"] in {"value_too_large", "condition_too_large"}
