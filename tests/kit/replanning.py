"""A step in the simulation that a model puts something else in the place of, and the model: it forgets how to answer until it is told."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from baton.ports.models import ModelAnswer, ModelRequest
from tests.kit.scripted import Scripted, says
from tests.kit.simulated_models import attended, is_corrected

if TYPE_CHECKING:
    from tests.kit.world import World

REPLANS = """
name: replans
retry: {base: 300ms, max_delay: 1s}
nodes:
  before: {tool: remit, with: {amount: 5}}
  step:
    tool: fails_as_told
    after: before
    with: {n: 5, fails: [file_not_found, file_not_found, file_not_found, file_not_found, file_not_found, file_not_found]}
    replan: {model: m, tools: [remit, work, fails_as_told], steps: 3, within: 10d}
  after: {tool: work, after: step, with: {n: '${ctx.step.output.n}'}}
output: ['${ctx.before.output.receipt}', '${ctx.step.output.n}', '${ctx.after.output.n}']
"""


def _way(fit: float, *steps: tuple[str, Any]) -> dict[str, Any]:
    merits = {"reliability": 0.9, "cost": 1, "latency": 1, "fit": fit, "preference": 0.5}
    calls = [{"tool": tool, "arguments": arguments} for tool, arguments in steps]
    return {"steps": calls, "why": "", "trade_offs": "", **merits}


_PAID = ("remit", {"amount": 5})
"""As the node before has done it."""
_PLAN = [
    _way(0.2, _PAID, ("remit", {"amount": 7}), ("work", {"n": {"$from": 0, "at": "/n"}})),
    _way(1.0, ("nonsense", {"n": 1})),
    _way(0.9, _PAID, ("remit", {"amount": 7}), ("fails_as_told", {"n": 1, "fails": ["bad_request"]})),
]


def planner() -> Scripted:
    """First no JSON, then alternatives, of which the first can never be tried and the second fails."""

    def script(request: ModelRequest, _: int) -> ModelAnswer:
        if not is_corrected(request.messages[-1]):
            return says("Try something else.")
        return says(json.dumps({"alternatives": _PLAN}))

    return Scripted(script)


async def replans(world: World, start: Callable[..., Awaitable[str]], patiently: Callable[..., Any]) -> str:
    """A step that fails, and what a model puts in its place: calls that were made before, one that fails, and one that works."""
    return await _through(world, start, patiently, REPLANS, "replans")


async def chosen(world: World, start: Callable[..., Awaitable[str]], patiently: Callable[..., Any]) -> str:
    """The same, where a person chooses among them: the one that works."""
    document = REPLANS.replace("name: replans", "name: chosen").replace(
        "within: 10d", "within: 10d, choose: person"
    )
    return await _through(world, start, patiently, document, "chosen")


async def _through(
    world: World,
    start: Callable[..., Awaitable[str]],
    patiently: Callable[..., Any],
    document: str,
    name: str,
) -> str:
    world.models = planner()
    saga = await start(world, document, {}, name)
    return await attended(world, saga, patiently, _says)


def _says(question: Mapping[str, Any]) -> str:
    return "approve" if question["type"] == "approval" else _that_works(question)


def _that_works(question: Mapping[str, Any]) -> str:
    """The alternative without a call that fails; to any other question, that it is over."""
    if question["type"] != "decision":
        return "fail"
    ways = question["details"]["alternatives"]
    return str(1 + next(number for number, way in enumerate(ways) if way["steps"][-1]["tool"] == "work"))
