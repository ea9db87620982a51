"""Graphs that a document names: what they see, what runs for each item, what they pin, and what a failure handler is told."""

from __future__ import annotations

from typing import Any

import pytest

from baton import StepFailure
from baton.errors import NotFound
from baton.testing import Result, run
from baton.tools.define import Registry, tool
from tests.kit.corpus import start
from tests.kit.sentences import Says
from tests.kit.world import World


class Shop:
    """`done` is what has happened, in its order."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def run(self, document: str, given: Any = None, **more: Any) -> Result:
        registry = Registry()

        @tool("shop.hold", registry=registry, undo="shop.release")
        def hold(city: str) -> dict[str, str]:
            self.done.append(f"hold {city}")
            return {"id": city.lower()}

        @tool("shop.release", registry=registry)
        def release(id: str) -> None:
            self.done.append(f"release {id}")

        @tool("shop.pay", registry=registry)
        def pay(id: str) -> None:
            if id == "kiel":
                raise StepFailure("card_declined", "no money", kind="permanent")

        @tool("shop.tell", registry=registry)
        def tell(what: Any) -> None:
            self.done.append(what)

        return run(document, given, tools=registry, **more)


TOUR = """
name: tour
nodes:
  rates: {value: {eur: 2}}
  trip: {map: {over: "${input.cities}", tolerated_failures: 1}, graph: visit, after: rates}
graphs:
  visit:
    nodes:
      hold: {tool: shop.hold, with: {city: "${item}"}}
      pay: {tool: shop.pay, with: {id: "${ctx.hold.output.id}"}, after: hold, on_failure: [rollback]}
    output: ["${item}", "${index}", "${input.host}", "${ctx.rates.output.eur}", "${saga.workflow}"]
output: "${ctx.trip.output.results}"
"""


def test_it_runs_for_each_item_and_sees_the_item_the_input_and_what_the_document_gave() -> None:
    shop = Shop()
    result = shop.run(TOUR, {"cities": ["Bonn", "Kiel", "Ulm"], "host": "Eva"})
    assert result.status == "completed"
    (bonn, kiel, ulm) = result.output
    assert bonn["output"] == ["Bonn", 0, "Eva", 2, "tour.visit"]
    assert ulm["output"] == ["Ulm", 2, "Eva", 2, "tour.visit"]
    assert (kiel["status"], kiel["error"]["code"]) == ("failed", "child_failed")
    assert sorted(shop.done) == ["hold Bonn", "hold Kiel", "hold Ulm", "release kiel"]


def test_large_items_and_large_outputs_are_seen_through_blobs() -> None:
    document = """
name: large
nodes:
  big: {value: "${input.big}"}
  each: {map: "${input.list}", graph: one, after: big}
graphs: {one: {nodes: {a: {value: ["${item.text}", "${ctx.big.output}"]}}, output: "${ctx.a.output}"}}
output: "${ctx.each.output}"
"""
    item = {"text": "x" * 200_000}
    result = Shop().run(document, {"big": "y" * 200_000, "list": [item]})
    assert result.output == [[item["text"], "y" * 200_000]]


def test_with_and_input_are_what_it_gets_in_place_of_the_input_of_its_starter() -> None:
    document = """
name: outer
nodes:
  a: {graph: one, with: {n: "${input.n}"}}
  b: {graph: any, input: ["${input.n}"]}
  c: {graph: nested}
graphs:
  one: {input: {type: object, required: [n]}, nodes: {x: {value: "${input.n}"}}, output: "${ctx.x.output}"}
  any: {nodes: {x: {value: "${input}"}}, output: "${ctx.x.output}"}
  nested: {nodes: {x: {map: ["p"], graph: inner}}, output: "${ctx.x.output}"}
  inner: {nodes: {x: {value: ["${item}", "${input.n}"]}}, output: "${ctx.x.output}"}
output: ["${ctx.a.output}", "${ctx.b.output}", "${ctx.c.output}"]
"""
    result = Shop().run(document, {"n": 7})
    assert result.output == [7, [7], [["p", 7]]]


def test_what_caught_a_failure_is_seen_in_the_graph_that_handles_it() -> None:
    document = """
name: caught
nodes:
  pay: {tool: shop.pay, with: {id: kiel}, on_failure: fail, catch: sorry}
  sorry: {graph: tell}
graphs:
  tell:
    nodes:
      say: {tool: shop.tell, with: {what: ["${last_error.code}", "${ctx.pay.output?}"]}}
      own: {tool: shop.pay, with: {id: kiel}, on_failure: fail, catch: mine, after: say}
      mine: {tool: shop.tell, with: {what: "${last_error.node}"}}
"""
    shop = Shop()
    assert shop.run(document).status == "completed"
    assert shop.done == [["card_declined", None], "own"]


def test_an_agent_or_several_run_for_each_item_with_what_their_node_sees() -> None:
    document = """
name: ask
nodes:
  topic: {value: {t: tea}}
  talk: {map: "${input}", agent: {model: m, prompt: "${index} ${item} ${ctx.topic.output.t}"}, after: topic}
  more: {map: ["x"], graph: both, after: talk}
graphs:
  both:
    nodes:
      word: {value: hello}
      chat: {map: ["y"], agent: {model: m, prompt: "${ctx.word.output} ${ctx.topic.output.t} ${item}"}, after: word}
    output: "${ctx.chat.output}"
output: ["${ctx.talk.output}", "${ctx.more.output}"]
"""
    heard: list[str] = []

    def model(request: Any) -> str:
        heard.append(str(request.messages[-1]["content"]))
        return f"said {len(heard)}"

    result = Shop().run(document, ["a", "b"], models=model)
    assert result.status == "completed", result.error
    assert sorted(heard[:2]) == ["0 a tea", "1 b tea"]
    assert heard[2:] == ["hello tea y"]
    assert result.output[1] == [["said 3"]]


HANDLED = """
name: order
failure_handler: {graph: tell%s}
nodes:
  hold: {tool: shop.hold, with: {city: Bonn}}
  pay: {tool: shop.pay, with: {id: kiel}, after: hold, on_failure: %s}
graphs:
  tell: {nodes: {a: {tool: shop.tell, with: {what: %s}}}}
"""
SEEN = '["${input.order}", "${last_error.message}", "${ctx.hold.output?}", "${ctx.pay.output?}"]'


@pytest.mark.parametrize(("rule", "before"), [("rollback", ["release bonn"]), ("fail", [])])
def test_a_failure_handler_sees_the_input_the_error_and_what_steps_gave(rule: str, before: list[str]) -> None:
    shop = Shop()
    result = shop.run(HANDLED % ("", rule, SEEN), {"order": 7})
    assert result.error == "card_declined: no money"
    assert shop.done == ["hold Bonn", *before, [7, "no money", {"id": "bonn"}, None]]


def test_a_failure_handler_gets_what_with_gives_it() -> None:
    shop = Shop()
    given = ', with: {id: "${ctx.hold.output?}", why: "${last_error.code}"}'
    shop.run(HANDLED % (given, "rollback", '"${input}"'), {"order": 7})
    assert shop.done[-1] == {"id": {"id": "bonn"}, "why": "card_declined"}


def test_a_failure_handler_names_the_saga_that_has_failed() -> None:
    names = '["${saga.id}", "${saga.workflow}", "${saga.user}"]'
    for given, what in (("", names), (f", with: {{seen: {names}}}", '"${input.seen}"')):
        shop = Shop()
        result = shop.run(HANDLED % (given, "rollback", what), {"order": 7})
        assert shop.done[-1] == [result.saga, "order", "tester"]


def test_a_graph_that_a_failure_handler_starts_names_its_own_saga() -> None:
    shop = Shop()
    document = HANDLED % ("", "rollback", '"${saga.id}"')
    document += "  outer: {nodes: {b: {graph: tell}}}\n"
    result = shop.run(document.replace("{graph: tell}", "{graph: outer}", 1), {"order": 7})
    assert shop.done[-1].startswith(f"{result.saga}.0.failure-handler.")


def test_the_failure_of_a_handler_does_not_hide_the_first_one() -> None:
    shop = Shop()
    document = HANDLED % ("", "rollback", SEEN)
    document = document.replace(
        "tool: shop.tell, with: {what: " + SEEN + "}", "fail: {code: broken, message: no}"
    )
    result = shop.run(document, {"order": 7})
    assert (result.status, result.error) == ("rolled_back", "card_declined: no money")


def test_a_call_of_a_model_in_a_graph_is_found_by_its_node() -> None:
    document = """
name: w
nodes: {a: {graph: one}}
graphs: {one: {nodes: {ask: {model: {name: m, prompt: hello}}}, output: "${ctx.ask.output}"}}
output: "${ctx.a.output}"
"""
    assert Shop().run(document, models={"ask": ["yes"]}).output == "yes"


# ---- versions ------------------------------------------------------------------------------------------------------------

PINNED = """
name: pinned
nodes:
  rest: {wait: {signal: go}}
  do: {graph: part, after: rest}
graphs: {part: {nodes: {a: {value: %s}}, output: "${ctx.a.output}"}}
output: "${ctx.do.output}"
"""


async def test_a_saga_runs_the_graph_of_its_own_version_when_the_document_has_none_any_more() -> None:
    world = World.start()
    saga = await start(world, PINNED % 1, {}, "pinned")
    await world.settle()
    await world.service().register("name: pinned\nnodes: {a: {value: 2}}", json_only=False)
    await world.service().signal(saga, "go", None, "k")
    await world.settle()
    assert (await world.queries().show(saga))["result"] == 1


async def test_nothing_but_a_saga_of_its_document_starts_a_graph_and_it_is_shown_by_its_name(
    says: Says,
) -> None:
    world = World.start()
    await world.service().register(PINNED % 1, json_only=False)
    with says.raised(NotFound):
        await world.service().start("pinned.part", None, "k")
    shown = await world.queries().workflow("pinned.part")
    assert (shown["name"], [node["name"] for node in shown["nodes"]]) == ("pinned.part", ["a"])
    assert [one["name"] for one in shown["versions"]] == ["pinned.part"]
    assert [one["name"] for one in (await world.queries().workflow("pinned", "1"))["graphs"]] == ["part"]
    with says.raised(NotFound):
        await world.queries().workflow("pinned.parts")
