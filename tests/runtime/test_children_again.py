"""A child saga that fails or lasts too long: it is stopped and undone, and another one is started, as the node's rules say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from baton import StepFailure
from baton.testing import Result, run
from baton.tools.define import Registry, tool
from tests.kit.sentences import Says


class Shop:
    """The tools of the children. `done` is what has happened; `failing`: the numbers of the calls of `pay` that fail."""

    def __init__(self, *failing: int, code: str = "service_unavailable", kind: str = "transient") -> None:
        self.done: list[str] = []
        self.keys: list[str] = []
        self.failing, self.code, self.kind = failing, code, kind
        self.calls = 0

    def run(self, parent: str, child: str, given: Any = None, **more: Any) -> Result:
        registry = Registry()

        @tool("shop.hold", registry=registry, effect="idempotent")
        def hold(what: str) -> dict[str, str]:
            self.done.append(f"hold {what}")
            return {"id": what}

        @tool("shop.release", registry=registry, effect="idempotent")
        def release(what: str) -> None:
            self.done.append(f"release {what}")

        @tool("shop.pay", registry=registry, effect="idempotent")
        def pay(what: str) -> str:
            self.calls += 1
            if self.calls in self.failing:
                raise StepFailure(self.code, "no", kind=self.kind)
            self.done.append(f"pay {what}")
            return f"paid {self.calls}"

        return run(parent, given, tools=registry, workflows=[child], **more)


CHILD = """
name: buying
nodes:
  hold: {tool: shop.hold, with: {what: tea}, compensate: {tool: shop.release, with: {what: "${step.output.id}"}}}
  pay: {tool: shop.pay, after: hold, with: {what: tea}, retry: none, on_failure: {any: [rollback]}}
output: "${ctx.pay.output}"
"""
SLOW = CHILD.replace("  pay:", "  rest: {wait: {for: 3h}, after: hold}\n  pay:").replace(
    "after: hold, with: {what: tea}, retry", "after: rest, with: {what: tea}, retry"
)


def parent(rules: str, more: str = "") -> str:
    return f"""
name: parent
nodes:
  buy: {{workflow: buying, {rules}}}
{more}
output: "${{ctx.buy.output?}}"
"""


CAUGHT = "  tell: {value: {code: '${last_error.code}', message: '${last_error.message}'}}\n"


def events(result: Result, kind: str) -> list[Mapping[str, Any]]:
    return [event for entry in result.entries for event in entry["events"] if event["kind"] == kind]


def test_a_child_that_fails_is_started_anew_and_acts_anew() -> None:
    shop = Shop(1)
    result = shop.run(parent("retry: {max_attempts: 3, base: 10m}"), CHILD)
    assert result.output == "paid 2"
    assert shop.done == ["hold tea", "release tea", "hold tea", "pay tea"]
    first, second = (event["child"] for event in events(result, "child_opened"))
    assert second == f"{first}..2"
    assert 540 <= result.took_s < 900
    (failed,) = events(result, "attempt_failed")
    assert failed["failure"]["code"] == "child_failed"


def test_with_the_tries_used_up_the_node_fails_as_it_always_did(says: Says) -> None:
    result = Shop(1, 2, 3).run(parent("retry: {max_attempts: 2, base: 1m}"), CHILD)
    assert result.status == "failed"
    says(str(result.error))
    assert len(events(result, "child_opened")) == 2
    caught = Shop(1, 2).run(parent("retry: {max_attempts: 2, base: 1m}, catch: tell", CAUGHT), CHILD)
    assert caught.status == "completed"


def test_what_is_for_good_is_not_tried_again_unless_a_rule_names_it() -> None:
    again = "retry: {max_attempts: 3, base: 1m}"
    shop = Shop(1, code="sold_out", kind="permanent")
    child = CHILD.replace("  pay:", "  out: {fail: {code: business_rule, message: no}}\n  pay:")
    assert len(events(shop.run(parent(again), child), "child_opened")) == 1
    named = "retry: {max_attempts: 3, base: 1m, on: [business_rule]}"
    assert len(events(Shop().run(parent(named), child), "child_opened")) == 3
    never = "retry: {max_attempts: 3, base: 1m, never: [service_unavailable]}"
    assert len(events(Shop(1).run(parent(never), CHILD), "child_opened")) == 1


def test_a_child_that_lasts_too_long_is_stopped_and_undone(says: Says) -> None:
    shop = Shop()
    result = shop.run(parent("timeout: 1h, catch: {code: timeout, then: tell}", CAUGHT), SLOW)
    assert result.status == "completed"
    assert shop.done == ["hold tea", "release tea"]
    assert 3600 <= result.took_s < 3700
    says(str(result.steps["tell"].output))


def test_what_stays_by_the_document_is_not_undone_by_the_time() -> None:
    shop = Shop()
    shop.run(parent("timeout: 1h, compensate: none, catch: tell", CAUGHT), SLOW)
    assert shop.done == ["hold tea"]


def test_a_child_that_lasted_too_long_is_tried_again() -> None:
    shop = Shop()
    result = shop.run(parent("timeout: 1h, retry: {max_attempts: 2, base: 1m}"), SLOW)
    assert shop.done == ["hold tea", "release tea"] * 2
    assert str(result.error).startswith("timeout: ")


def test_a_child_in_time_is_not_stopped() -> None:
    result = Shop().run(parent("timeout: 4h"), SLOW)
    assert result.output == "paid 1"
    assert not events(result, "child_overdue")


def test_a_person_may_be_asked_about_a_child() -> None:
    asking = parent("on_failure: {any: ask_user}")
    again = Shop(1).run(asking, CHILD, answers={"buy": "retry"})
    assert again.output == "paid 2"
    used = Shop(1).run(asking, CHILD, answers={"buy": {"action": "use", "output": "by hand"}})
    assert used.output == "by hand"
    given_up = Shop(1).run(asking, CHILD, answers={"buy": "fail"})
    assert given_up.status == "failed"


ECHO = "name: buying\ninput: {type: [array, string, integer]}\nnodes: {a: {value: '${input}'}}\noutput: '${ctx.a.output}'"


@pytest.mark.parametrize(("written", "given"), [("[1, 2]", [1, 2]), ("'${input.x[1]}'", 7), ("text", "text")])
def test_the_input_of_a_child_may_be_any_value(written: str, given: Any) -> None:
    assert Shop().run(parent(f"input: {written}"), ECHO, {"x": [0, 7]}).output == given


def test_a_workflow_may_start_itself_as_deep_as_the_deployment_allows(says: Says) -> None:
    document = """
name: down
nodes:
  go: {value: "${input.levels[0]}"}
  next: {workflow: down, after: go, input: "${ctx.go.output}", when: "has(ctx.go.output.levels)"}
output: {here: "${ctx.go.output}", below: "${ctx.next.output?}"}
"""
    registry = Registry()
    shallow = run(document, {"levels": [{"levels": [{}]}]}, tools=registry)
    assert shallow.output["below"] == {"here": {}, "below": None}
    given: Any = {}
    for _ in range(12):
        given = {"levels": [given]}
    deep = run(document, given, tools=registry)
    assert deep.status == "failed"
    says.within(str(deep.error))
