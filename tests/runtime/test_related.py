"""A saga's view and its way name the sagas that belong to it: children, the one that waits for it, its failure handler."""

from __future__ import annotations

from tests.kit.corpus import start
from tests.kit.world import World

TOUR = """
name: tour
failure_handler: {graph: tell}
nodes:
  trip: {map: [1, 2], graph: visit}
  last: {workflow: leaf, after: trip}
  end: {fail: {code: late, message: x}, after: last}
graphs:
  visit: {nodes: {a: {value: 1}}}
  tell: {nodes: {a: {value: "${last_error.code}"}}, output: "${ctx.a.output}"}
"""


async def test_children_parent_and_handler_are_named_where_they_are_looked_for() -> None:
    world = World.start()
    await world.service().register("name: leaf\nnodes: {a: {value: 1}}", json_only=False)
    saga = await start(world, TOUR, {}, "tour")
    await world.settle()
    queries = world.queries()
    steps = (await queries.way(saga, 0, 100))["steps"]
    children = [step["child"] for step in steps if "child" in step]
    assert children == [f"{saga}.0.trip-0", f"{saga}.0.trip-1", f"{saga}.0.last"]
    (trip,) = (await queries.explain(saga, "trip"))["iterations"]
    assert [item["child"] for item in trip["items"]] == children[:2]
    assert {(await queries.show(child))["parent"] for child in children} == {saga}
    shown = await queries.show(saga)
    handler = f"{saga}.0.failure-handler"
    assert shown["failure_handler"] == {"saga": handler, "why": None, "status": "completed"}
    assert (shown["parent"], shown["handles"]) == (None, None)
    told = await queries.show(handler)
    assert (told["parent"], told["handles"], told["result"]) == (None, saga, "late")
