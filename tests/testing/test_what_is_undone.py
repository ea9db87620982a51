"""Documents that undo what was done when a step fails: what may go away is tried again first, and what is permanent never."""

from __future__ import annotations

from typing import Any

import pytest

from baton import StepFailure, tool
from baton.testing import Result, run
from baton.tools.define import Registry
from tests.kit.sentences import Says
from tests.kit.views import as_json, explain

ORDER = """
name: order
{rule}
nodes:
  hold: {{tool: shop.hold}}
  pay: {{tool: shop.pay, after: hold{node}}}
"""


class Shop:
    """A shop whose payments fail. `calls`: what it was asked to do, in that order."""

    def __init__(self, code: str, kind: str = "", times: int = 99) -> None:
        self.code, self.kind, self.times = code, kind, times
        self.calls: list[str] = []

    @property
    def paid(self) -> int:
        return self.calls.count("pay")

    def tools(self) -> Registry:
        registry = Registry()

        @tool("shop.hold", undo="shop.free", registry=registry)
        async def hold() -> str:
            self.calls.append("hold")
            return "table 7"

        @tool("shop.free", registry=registry)
        async def free(output: str) -> None:
            self.calls.append(f"free {output}")

        @tool("shop.pay", registry=registry)
        async def pay() -> str:
            self.calls.append("pay")
            if self.paid <= self.times:
                raise StepFailure(self.code, "no", kind=self.kind, happened=False)
            return "receipt"

        return registry

    def run(self, document: str, **more: object) -> Result:
        return run(document, tools=self.tools(), **more)  # type: ignore[arg-type]  # as a test of an application does

    def order(self, rule: str = "", node: str = "", **more: object) -> Result:
        return self.run(ORDER.format(rule=rule, node=node and f", {node}"), **more)


CLASSES = [
    ("service_unavailable", "", 6),
    ("rate_limited", "", 10),
    ("tool_error", "", 4),
    ("unauthorized", "", 1),
    ("login_required", "", 1),
    ("database_down", "", 1),
    ("bad_request", "", 1),
    ("card_declined", "permanent", 1),
    ("printer_on_fire", "catastrophic", 1),
]


@pytest.mark.parametrize(("code", "kind", "attempts"), CLASSES)
@pytest.mark.parametrize("at", ["document", "node"])
def test_rollback_tries_again_what_may_go_away_then_undoes_and_asks_no_person(
    at: str, code: str, kind: str, attempts: int
) -> None:
    shop, word = Shop(code, kind), "on_failure: rollback"
    result = shop.order(word) if at == "document" else shop.order(node=word)
    assert (result.status, shop.paid, result.parked, result.questions) == ("rolled_back", attempts, None, [])
    assert shop.calls[-1] == "free table 7"


def test_what_goes_away_in_time_undoes_nothing() -> None:
    shop = Shop("service_unavailable", times=3)
    assert shop.order("on_failure: rollback").status == "completed"
    assert shop.calls == ["hold", "pay", "pay", "pay", "pay"]


def test_its_own_retries_count_beside_the_word() -> None:
    shop = Shop("service_unavailable")
    assert shop.order("on_failure: rollback\nretry: {max_attempts: 2, base: 1s}").status == "rolled_back"
    assert shop.paid == 2


@pytest.mark.parametrize(
    "rule",
    [
        "on_failure: {any: [retry, rollback]}",
        "on_failure: [retry, rollback]",
        "on_failure: {any: {ladder: [retry, rollback], retry: critical}}",
        "on_failure: {any: {class: transient, ladder: [retry, rollback]}}",
        "on_failure: rollback\nretry: {max_attempts: 7, on: [card_lost, transient]}",
        "on_failure: rollback\nfailover: [{name: again, then: retry, at_most: 3}]",
        "on_failure: rollback\nfailover: [{name: again, when: {tool: shop.*, attempt: {from: 1, to: 9}}, then: retry, at_most: 3}]",
    ],
)
def test_no_rule_for_all_failures_charges_a_declined_card_twice(rule: str) -> None:
    shop = Shop("card_declined", "permanent")
    assert (shop.order(rule).status, shop.paid) == ("rolled_back", 1)


@pytest.mark.parametrize(
    "rule",
    [
        "on_failure: {card_declined: {ladder: [retry, rollback], retry: {max_attempts: 3}}}",
        "on_failure: {permanent: {ladder: [retry, rollback], retry: {max_attempts: 3}}}",
        "on_failure: rollback\nretry: {max_attempts: 3, on: card_declined}",
        "on_failure: {any: rollback, card_declined: {class: transient}}\nretry: {max_attempts: 3}",
        "on_failure: rollback\nfailover: [{name: again, when: {code: card_declined}, then: retry, at_most: 2}]",
        "on_failure: rollback\nfailover: [{name: again, when: {class: permanent}, then: retry, at_most: 2}]",
        "on_failure: rollback\nfailover: [{name: again, when: {if: 'last_error.attempt < 3'}, then: retry, at_most: 9}]",
    ],
)
def test_a_rule_that_names_what_is_permanent_has_it_tried_again(rule: str) -> None:
    shop = Shop("card_declined", "permanent")
    assert (shop.order(rule).status, shop.paid) == ("rolled_back", 3)


def test_a_rule_for_one_failure_undoes_at_once() -> None:
    shop = Shop("sold_out")
    assert (shop.order("on_failure: {sold_out: rollback}").status, shop.paid) == ("rolled_back", 1)


def test_what_is_caught_is_not_undone() -> None:
    shop = Shop("service_unavailable")
    document = ORDER.format(rule="on_failure: rollback", node=", catch: later") + "  later: {value: 1}\n"
    assert (shop.run(document).status, shop.paid) == ("completed", 6)
    assert not shop.calls[-1].startswith("free")


@pytest.mark.parametrize("rule", ["on_failure: escalate", "on_failure: {card_declined: escalate}"])
def test_a_person_who_gives_up_an_incident_has_what_was_done_undone(rule: str) -> None:
    shop = Shop("card_declined", "permanent")
    result = shop.order(rule, answers={"pay": "fail"})
    assert (result.status, shop.paid, shop.calls[-1]) == ("rolled_back", 1, "free table 7")


def test_fail_still_undoes_nothing() -> None:
    shop = Shop("card_declined", "permanent")
    assert shop.order("on_failure: fail").status == "failed"
    assert shop.calls == ["hold", "pay"]


# ---- children ------------------------------------------------------------------------------------------------------

NESTED = """
name: evening
on_failure: rollback
nodes:
  shop: {graph: order, %s}
graphs:
  order:
    nodes:
      hold: {tool: shop.hold}
      pay: {tool: shop.pay, after: hold, retry: none}
"""
DEEPER = """
name: night
on_failure: rollback
nodes:
  evening: {graph: evening, %s}
graphs:
  evening: {nodes: {shop: {graph: order}}}
  order: {nodes: {pay: {tool: shop.pay, retry: none}}}
"""


@pytest.mark.parametrize("document", [NESTED, DEEPER])
@pytest.mark.parametrize(
    "rule",
    [
        "retry: {max_attempts: 3, base: 1s}",
        "retry: {max_attempts: 3, base: 1s}, on_failure: {any: [retry, rollback]}",
        "retry: {max_attempts: 3, base: 1s}, on_failure: rollback",
    ],
)
def test_no_other_child_follows_one_that_has_failed_with_what_is_permanent(rule: str, document: str) -> None:
    declined = Shop("card_declined", "permanent")
    declined.run(document % rule)
    assert declined.paid == 1
    busy = Shop("shop_busy", "transient")
    busy.run(document % rule)
    assert busy.paid == 3


@pytest.mark.parametrize("rule", ["on: [card_declined]", "on: [permanent]"])
def test_another_child_follows_where_the_rule_names_what_is_permanent(rule: str) -> None:
    shop = Shop("card_declined", "permanent")
    shop.run(NESTED % f"retry: {{max_attempts: 3, base: 1s, {rule}}}")
    assert shop.paid == 3


BATCH = """
name: evening
on_failure: fail
nodes:
  shop: {graph: order, map: {over: [1, 2], tolerated_failures: 2}}
graphs:
  order: {nodes: {pay: {tool: shop.pay, retry: none}}}
output: "${ctx.shop.output.results[0].error}"
"""


@pytest.mark.parametrize("path", ["error", "error.errors[0].code"])
def test_a_batch_says_what_each_child_has_failed_with(path: str) -> None:
    shop = Shop("card_declined", "permanent")
    result = shop.run(BATCH.replace("results[0].error", f"results[0].{path}"))
    if path != "error":
        assert result.output == "card_declined"
        return
    assert result.output["code"] == "child_failed"
    assert result.output["errors"] == [{"node": "pay", "code": "card_declined", "message": "no"}]


# ---- what people are told ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("then", ["{tool: shop.owe}", "retry"])
def test_the_message_of_a_policy_that_asks_no_person_is_told_to_the_user_and_explained(
    then: str, says: Says
) -> None:
    shop = Shop("card_declined", "transient", times=1)
    registry = shop.tools()

    @tool("shop.owe", registry=registry)
    async def owe() -> str:
        return "owed"

    rule = f"failover: [{{name: later, when: {{code: card_declined}}, then: {then}, message: You can pay later.}}]"
    result = run(ORDER.format(rule=rule, node=""), tools=registry)
    assert result.status == "completed"
    told = [
        (event["notice"]["to"], event["notice"]["message"], event["notice"]["code"])
        for entry in result.entries
        for event in entry["events"]
        if event["kind"] == "notice_due"
    ]
    assert told == [("user", "You can pay later.", "card_declined")]
    failed = story_of(result)["iterations"][0]["attempts"][0]["text"]
    says(failed)


def story_of(result: Result) -> Any:
    return as_json(explain(result.story, "pay", 100))
