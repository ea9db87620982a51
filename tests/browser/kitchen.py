"""What is run for the browser: the dinner example over services in memory, and small workflows of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from baton import StepFailure
from baton.testing import call
from baton.testing.running import _with_stand_ins
from baton.tools.define import Registry
from baton.tools.standard import load_app
from tests.browser.hostile import hostile

EVENING = "2026-12-24T19:30:00Z"
FORM = """
name: guests
nodes:
  form:
    human:
      title: Who comes?
      message: "Each guest with a name. ${input.words?}"
      schema:
        type: object
        required: [seats, host]
        properties:
          seats: {type: integer, minimum: 1, maximum: 12, description: All who come.}
          host:
            type: object
            required: [name]
            properties: {name: {type: string, minLength: 2}, mail: {type: string, format: email}}
          guests:
            type: array
            items: {type: object, required: [name], properties: {name: {type: string}, diet: {enum: [none, vegan]}}}
      to: {role: answer}
      expires: 1h
output: "${ctx.form.output}"
"""
APPROVE = """
name: approve
nodes:
  look: {tool: delivery.quote, with: {city: Lisbon, items: [Soup], at: "2026-12-24T19:30:00Z"}}
  ask: {human: {title: "Order it?", type: approval, to: {role: answer}, expires: 1h}, after: look}
  order: {tool: delivery.order, after: ask, with: {items: [Soup], address: Here, at: "2026-12-24T19:30:00Z", total_cents: 1800}}
output: "${ctx.order.output}"
"""
WORDS = """
name: words
nodes:
  say: {value: "${input}"}
  later: {wait: {signal: go_on}, after: say}
output: "${ctx.say.output}"
"""
AGENT = """
name: plan
nodes:
  plan:
    agent:
      model: gpt-5-mini
      instructions: You plan an evening.
      prompt: "${input.words}"
      tools: [table.search, delivery.quote]
output: "${ctx.plan.output}"
"""


def wide(nodes: int) -> str:
    """A workflow of so many nodes, in rows of ten."""
    lines = ["name: wide", "nodes:", "  n0: {value: 0}"]
    lines += [f"  n{one}: {{value: {one}, after: n{max(one - 10, 0)}}}" for one in range(1, nodes)]
    return "\n".join([*lines, "  never: {wait: {signal: never}, after: n0}", ""])


def registry() -> Registry:
    """The tools of the example, each with its time, which is virtual."""
    return _with_stand_ins(load_app("sagas"), {name: _timed(*one) for name, one in _TOOLS.items()})


def models(said: str = "A table for four at the Lantern.") -> Mapping[str, Any]:
    """What the agent's model says: it looks for tables, asks for a price, and answers."""
    return {
        "plan": [
            call("table.search", city="Lisbon", party=4, at=EVENING, cuisine="thai"),
            [
                call("table.search", city="Lisbon", party=4, at=EVENING),
                call("delivery.quote", city="Lisbon", items=["Pad Thai"], at=EVENING),
            ],
            said,
        ],
        "scribe": [call("table.search", city=hostile("argument"), party=2, at=EVENING), hostile("model")],
    }


def _timed(seconds: float, result: Callable[[Mapping[str, Any]], Any]) -> Callable[..., Any]:
    async def stand_in(**given: Any) -> Any:
        await asyncio.sleep(seconds)
        return result(given)

    return stand_in


def _tables(given: Mapping[str, Any]) -> Any:
    if given.get("cuisine"):
        raise StepFailure(
            "no_tables",
            f"No {given['cuisine']} restaurant in {given['city']} is free",
            kind="user_resolvable",
        )
    if given["city"].startswith("Nowhere"):
        raise StepFailure("unknown_city", f"There are no restaurants in {given['city']}", kind="permanent")
    kind = given.get("kind", "restaurant")
    table = {"id": f"lisbon/{kind}/4", "house": "The Lantern", "city": given["city"], "seats": 4}
    return {"at": given["at"], "tables": [table | {"deposit_cents": 2000}]}


def _hold(given: Mapping[str, Any]) -> Any:
    return {
        "id": "h-1",
        "table": given["table"],
        "house": "The Lantern",
        "deposit_cents": 2000,
        "expires_at": EVENING,
    }


_TOOLS: Mapping[str, tuple[float, Callable[[Mapping[str, Any]], Any]]] = {
    "table.search": (0.9, _tables),
    "table.hold": (0.6, _hold),
    "bar.hold": (0.5, _hold),
    "table.deposit": (2.4, lambda given: {"receipt": "r-1", "amount_cents": given["amount_cents"]}),
    "table.confirm": (0.8, lambda given: {"code": "LAN-7", "table": "lisbon/lantern/4"}),
    "delivery.quote": (0.7, lambda given: {"total_cents": 1800, "minutes": 25}),
    "delivery.order": (1.2, lambda given: {"id": "o-1", "total_cents": given["total_cents"]}),
}
