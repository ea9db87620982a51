"""`std.search_tools`: tools by words, of those that its caller may use."""

from __future__ import annotations

from typing import Any

from baton.core.effects.toolspec import Grants
from baton.ports import StepContext
from baton.tools.define import Registry, tool
from baton.tools.perform import ToolPerformer
from baton.tools.standard import standard_tools, with_standard
from tests.tools.outside import context, services
from tests.tools.test_performing import run


def app() -> Registry:
    registry = Registry()

    @tool("table.search", registry=registry)
    async def search(city: str, party: int = 2) -> int:
        """Find a free table."""
        return 0

    @tool("table.hold", registry=registry)
    async def hold(id: str) -> int:
        """Keep it free for a guest, without a payment."""
        return 0

    @tool("deposit.pay", registry=registry)
    async def pay(cents: int) -> int:
        return 0

    return registry


def found(query: str, grants: str = "std.search_tools", at: StepContext | None = None, **more: Any) -> Any:
    registry = with_standard(app(), services(), Grants.of(grants))
    return run(ToolPerformer(registry).perform("std.search_tools", {"query": query, **more}, at or context()))


def names(answer: Any) -> list[str]:
    return [one["name"] for one in answer["tools"]]


def test_tools_are_found_by_words_of_names_before_those_of_descriptions() -> None:
    answer = found("Tables, free!")
    assert answer["tools"][0] == {
        "name": "table.search", "description": "Find a free table.", "parameters": ["city", "party"], "required": ["city"],
    }  # fmt: skip
    assert names(answer) == ["table.search", "table.hold"]
    assert names(found("payments")) == ["deposit.pay", "table.hold"]
    assert names(found("search"))[:2] == ["std.search_tools", "table.search"]
    assert found("xylophone") == {"tools": [], "found": 0}


def test_so_many_are_given_as_are_asked_for_and_all_are_counted() -> None:
    answer = found("free", limit=1)
    assert (len(answer["tools"]), answer["found"]) == (1, 2)


def test_a_tenant_finds_what_it_may_use() -> None:
    grants = "std.search_tools std.pay=globex"
    assert names(found("payment phases std", grants, context(tenant="globex")))
    assert "std.pay" in names(found("pay", grants, context(tenant="globex")))
    assert "std.pay" not in names(found("pay", grants))


def test_it_looks_among_named_tools_only() -> None:
    assert names(found("free", among=["table.search", "no.such"])) == ["table.search"]


def test_it_is_pure() -> None:
    assert standard_tools()["std.search_tools"].spec.effect == "pure"
