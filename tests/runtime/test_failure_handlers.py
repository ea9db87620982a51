"""The workflow that is started when a saga has failed for good: when, with what, how often, and what comes of its own failure."""

from __future__ import annotations

from typing import Any

import pytest

from baton import StepFailure
from baton.testing import Result, run
from baton.tools.define import Registry, tool
from tests.kit.sentences import Says


class Shop:
    """`done` is what has happened, in its order."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def run(self, document: str, *children: str, **more: Any) -> Result:
        registry = Registry()

        @tool("shop.hold", registry=registry, undo="shop.release")
        def hold() -> dict[str, str]:
            self.done.append("hold")
            return {"id": "h1"}

        @tool("shop.release", registry=registry)
        def release(id: str) -> None:
            self.done.append(f"release {id}")

        @tool("shop.pay", registry=registry)
        def pay() -> None:
            raise StepFailure("card_declined", "no money", kind="permanent")

        @tool("shop.tell", registry=registry)
        def tell(what: Any) -> None:
            self.done.append(what)

        return run(document, {"order": 7}, tools=registry, workflows=children, **more)


TELL = "name: tell\nnodes: {a: {tool: shop.tell, with: {what: '${input}'}}}"
ORDER = """
name: order
%s
nodes:
  hold: {tool: shop.hold, compensate: {tool: shop.release, with: {id: "${step.output.id}"}}}
  pay: {tool: shop.pay, after: hold, on_failure: [rollback]}
"""


def order(handler: str) -> str:
    return ORDER % f"failure_handler: {handler}"


def test_it_is_started_once_all_is_undone_and_told_what_has_happened() -> None:
    shop = Shop()
    result = shop.run(order("tell"), TELL)
    assert result.status == "rolled_back"
    assert shop.done[:2] == ["hold", "release h1"]
    (report,) = shop.done[2:]
    assert report["error"]["code"] == "card_declined"
    assert report["error"]["node"] == "pay"
    assert (report["input"], report["status"], report["workflow"]) == ({"order": 7}, "rolled_back", "order")
    assert report["undone"] == {"done": 1, "failed": [], "stands": [], "doubtful": []}
    ended = result.entries[-1]["events"][-1]
    assert ended["handler"].endswith(".0.failure-handler")


def test_the_document_may_say_what_it_gets() -> None:
    shop = Shop()
    given = '{workflow: tell, with: {order: "${input.order}", why: "${last_error.message}"}}'
    shop.run(order(given), TELL)
    assert shop.done[2:] == [{"order": 7, "why": "no money"}]


def test_a_saga_that_completes_or_catches_has_none() -> None:
    shop = Shop()
    caught = order("tell").replace(
        "on_failure: [rollback]}", "on_failure: [rollback], catch: end}\n  end: {value: 1}"
    )
    assert shop.run(caught, TELL).status == "completed"
    assert shop.done == ["hold"]


@pytest.mark.parametrize(
    ("node", "code"),
    [("fail: {code: mine, message: x}", "mine"), ("value: '${input.nothing}'", "input_unbound")],
)
def test_any_failure_for_good_has_one(node: str, code: str) -> None:
    shop = Shop()
    result = shop.run(f"name: w\nfailure_handler: tell\nnodes: {{a: {{{node}}}}}", TELL)
    assert result.status == "failed"
    assert [one["error"]["code"] for one in shop.done] == [code]
    assert shop.done[0]["undone"] is None


def test_a_result_that_cannot_be_made_is_a_failure_like_any() -> None:
    shop = Shop()
    shop.run("name: w\nfailure_handler: tell\nnodes: {a: {value: 1}}\noutput: '${input.nothing}'", TELL)
    assert [one["error"]["code"] for one in shop.done] == ["output_unbound"]


def test_its_own_failure_is_its_own() -> None:
    shop = Shop()
    broken = "name: tell\nnodes: {a: {fail: {code: broken, message: x}}}"
    result = shop.run(order("tell"), broken)
    assert (result.status, str(result.error)) == ("rolled_back", "card_declined: no money")
    assert [child["status"] for child in result.children] == ["failed"]


def test_one_that_cannot_be_started_is_told_in_the_end(says: Says) -> None:
    result = Shop().run(order("unknown"))
    ended = result.entries[-1]["events"][-1]
    assert (result.status, ended["handler"]) == ("rolled_back", "")
    says(ended["unhandled"]["message"])
    odd = Shop().run(order('{workflow: tell, with: {x: "${input.nothing}"}}'), TELL)
    says(odd.entries[-1]["events"][-1]["unhandled"]["message"])


@pytest.mark.parametrize("kills", [["before"], ["after"]])
def test_a_worker_that_dies_starts_no_second_one(kills: list[str]) -> None:
    shop = Shop()
    shop.run(order("tell"), TELL, kills={"hold": kills})
    assert len([one for one in shop.done if isinstance(one, dict)]) == 1
