"""Forks at an entry of pure steps: what people write first (docs/adr/0126-an-entry-is-the-unit-of-a-fork.md)."""

from __future__ import annotations

from typing import Any

from baton import tool
from baton.core.log import events as ev
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World
from tests.runtime.functions import Application

SALE = """
name: sale
nodes:
  charge: {tool: echo, with: {what: charged}}
  rate: {tool: %s, after: charge}
  parse: {tool: parse, with: {text: '${ctx.rate.output}'}, after: rate}
  price: {tool: price, with: {n: '${ctx.parse.output}'}, after: parse}
  wait: {wait: {for: 1h}, after: price}
output: '${ctx.price.output}'
"""


class Shop:
    """A sale: it charges, looks up a rate, and computes. `rates`: those of each look-up. `mistake`: of its price."""

    def __init__(self) -> None:
        self.app = Application()
        self.rates, self.mistake = iter(("2", "3")), 100

        @tool("parse", registry=self.app.registry, effect="pure")
        async def parse(text: str) -> int:
            self.app.calls.append("parse")
            return int(text)

        @tool("price", registry=self.app.registry, effect="pure")
        async def price(n: int) -> int:
            return n * 10 + self.mistake

        @tool("rate", registry=self.app.registry)
        @tool("rate.pure", registry=self.app.registry, effect="pure")
        async def rate() -> str:
            self.app.calls.append("rate")
            return next(self.rates)

    def sell(self, rate: str, keeps: str) -> tuple[Any, Any]:
        """Return the result of a sale, and that of its fork behind the entry of the step `keeps`, once the code is right."""

        async def main() -> tuple[Any, Any]:
            world = World(self.app.registry)
            world.switch_on()
            await world.service().register(SALE % rate, json_only=False)
            view, _ = await world.service().start("sale", {}, "key")
            await world.settle()
            before = (await world.queries().show(view["id"]))["result"]
            self.mistake = 0
            (cut,) = [
                entry.version
                for entry in world.entries(view["id"])
                for event in entry.events
                if isinstance(event, ev.StepSucceeded) and event.node == keeps
            ]
            await world.service().fork(view["id"], cut, "the price was wrong")
            await world.settle()
            return before, (await world.queries().show(view["id"]))["result"]

        return run_virtual(main())


def test_a_corrected_step_runs_again_with_its_neighbours_and_what_acted_before_does_not() -> None:
    shop = Shop()
    assert shop.sell("rate.pure", keeps="charge") == (120, 30)
    assert shop.app.calls == ["charged", "rate", "parse", "rate", "parse"]


def test_an_answer_that_has_to_stay_is_that_of_a_step_with_an_entry_of_its_own() -> None:
    shop = Shop()
    assert shop.sell("rate", keeps="rate") == (120, 20)
    assert shop.app.calls == ["charged", "rate", "parse", "parse"]
