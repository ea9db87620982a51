"""An agent in the simulation whose model is asked in the background and takes few messages: what it was told is cut, and summarised."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from baton import StepFailure
from baton.ports.models import ModelAnswer, ModelRequest
from tests.kit.scripted import asks_for, says
from tests.kit.simulated_models import THINKS, Announcing, is_corrected, is_of_a_summary, length_of, through

if TYPE_CHECKING:
    from tests.kit.world import World

MOST, TURNS = 7, 4
"""Messages that fit, and turns with a call."""


class Forgetting(Announcing):
    """Refuses what is too long when it is handed over. What it says depends on the last turn that it is told of."""

    most = MOST

    def __init__(self, world: World, patiently: Callable[..., Any]) -> None:
        super().__init__(world, patiently)
        self.script = _script

    async def submit(self, request: ModelRequest) -> str:
        if length_of(request) > self.most:
            raise StepFailure("context_exceeded", "too long", happened=False)
        return await super().submit(request)


def _script(request: ModelRequest, _: int) -> ModelAnswer:
    if is_of_a_summary(request):
        return says("Some work was done.", read=50, written=5)
    turns = [
        int(one["tool_call_id"][1:].partition("-")[0]) for one in request.messages if one["role"] == "tool"
    ]
    last = max(turns, default=0)
    if last < TURNS:
        return asks_for(("work", {"n": last + 1}), ("add", {"numbers": [last]}))
    if is_corrected(request.messages[-1]):
        return says(json.dumps({"heard": [last]}))
    return says("That is all.")


async def forgets(world: World, start: Callable[..., Awaitable[str]], patiently: Callable[..., Any]) -> str:
    said = THINKS.replace("name: thinks", "name: forgets").replace("timeout: 20s", "timeout: 10m")
    more = "      model: m\n      background: true\n      summarise: {max_output: 50}\n"
    document = said.replace("      model: m\n", more)
    return await through(world, start, patiently, Forgetting(world, patiently), document, "forgets")
