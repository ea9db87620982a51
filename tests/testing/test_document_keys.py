"""The idempotency key of a step, given by its document."""

from __future__ import annotations

from typing import Any

import pytest

from baton import Context, Workflow
from baton.errors import InvalidDefinition
from baton.testing import run
from baton.tools.define import Registry, tool
from tests.kit.sentences import Says

TWO = """
name: two
nodes:
  first: {tool: t.pay, with: {cents: 5}, key: "invoice ${input.invoice}"}
  second: {tool: t.pay, after: first, with: {cents: 7}, key: "invoice ${input.other}"}
output: ["${ctx.first.output}", "${ctx.second.output}"]
"""
EACH = """
name: each
nodes:
  all:
    map: {over: "${input.invoices}"}
    tool: t.pay
    with: {cents: 5}
    key: "${item}"
output: "${ctx.all.output}"
"""


def tools() -> Registry:
    registry = Registry()

    @tool("t.pay", registry=registry)
    def pay(cents: int, context: Context) -> str:
        return context.idempotency_key

    @tool("t.once", effect="once", registry=registry)
    def once(cents: int) -> int:
        return cents

    @tool("t.plain", registry=registry)
    def plain(cents: int) -> int:
        return cents

    return registry


def keys(given: Any, text: str = TWO, **options: Any) -> Any:
    result = run(text, given, tools=tools(), **options)
    assert result.status == "completed", result.error
    return result.output


def test_calls_with_one_key_are_the_same_whatever_their_arguments_and_their_nodes() -> None:
    first, second = keys({"invoice": "A 1", "other": "A 1"})
    assert first == second


def test_calls_with_different_keys_are_two() -> None:
    first, second = keys({"invoice": "A 1", "other": "A 2"})
    assert first != second


def test_a_key_is_that_of_its_user_in_every_saga() -> None:
    given = {"invoice": "A 1", "other": "A 2"}
    assert keys(given) == keys(given)
    assert keys(given) != keys(given, user="bob")


def test_a_call_that_happens_once_happens_once_with_one_key() -> None:
    assert keys({"invoice": 1, "other": 1}, TWO.replace("t.pay", "t.once")) == [5, 5]


def test_items_of_a_map_have_keys_of_their_own() -> None:
    one, two, again = keys({"invoices": ["a", "b", "a"]}, EACH)
    assert one == again != two


@pytest.mark.parametrize("invoice", [None, " "])
def test_an_empty_key_fails_the_step(invoice: Any) -> None:
    text = TWO.replace('"invoice ${input.invoice}"', '"${input.invoice}"')
    result = run(text, {"invoice": invoice, "other": 1}, tools=tools(), on_failure="fail")
    assert (result.status, result.error.partition(":")[0]) == ("failed", "key_incomplete")


@pytest.mark.parametrize("key", ['"${ctx.first.outptu}"', '""', "{a: 1}", '"${ctx.third.output}"'])
def test_a_key_that_is_none_is_refused_where_it_stands(key: str, says: Says) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        run(TWO.replace('"invoice ${input.other}"', key), {"invoice": 1}, tools=tools())
    says(refused.value.__notes__)


def test_a_key_for_a_tool_that_sees_none_is_refused(says: Says) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        run(TWO.replace("t.pay", "t.plain"), {"invoice": 1, "other": 2}, tools=tools())
    says(refused.value.__notes__)


def test_the_builder_writes_it() -> None:
    flow = Workflow("two")
    flow.task("first", "t.pay", with_={"cents": 5}, key="invoice ${input.invoice}")
    assert 'key: "invoice ${input.invoice}"' in flow.to_yaml()
