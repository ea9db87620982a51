"""The support agent refunds an order after a person has approved it, once, whatever becomes of its worker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from baton.testing import run
from tests.kit import support_script
from tests.kit.support_script import GIVEN


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    return support_script.example(monkeypatch)


@pytest.fixture
def asked(example: Any) -> Iterator[Counter[str]]:
    """Requests to the MCP server of orders, by method."""
    counted: Counter[str] = Counter()

    async def count(context: Any, go_on: Any) -> Any:
        counted[context.method] += 1
        return await go_on(context)

    example.orders.middleware.append(count)
    yield counted
    example.orders.middleware.remove(count)


OPERATIONS = ["get_tools", "model", "order", "model#2", "refund", "model#3"]
LOST = {"tools/list": 1, "tools/call": 1}


@pytest.mark.parametrize(
    ("kills", "again"),
    [
        ({}, {}),
        ({"refund": "after"}, {}),
        ({"support[1]/model#2": "after"}, {}),
        ({"support[1]/get_tools": "after"}, {"tools/list": 1}),
        ({"order": "before"}, {}),
        ({"order": "after"}, LOST),
        ({"support[1]/model#2": "before", "support[1]/model#3": "before"}, {}),
    ],
)
def test_a_refund_that_a_person_approves_is_paid_once(
    example: Any, asked: Counter[str], kills: dict[str, Any], again: dict[str, int]
) -> None:
    """Recorded answers of the MCP server are not asked for again; a connection for a call lists the tools."""
    result = run(example.answer, GIVEN, answers={"refund": "approve"}, kills=kills)
    assert result.status == "completed", result.view
    assert result.output == {"text": "Your order is paid back.", "refunded_cents": 4_200}
    assert example.SHOP.refunds == {7: 4_200}
    assert result.way == [f"support[1]/{name}" for name in OPERATIONS]
    made = {method: asked[method] - again.get(method, 0) for method in LOST}
    assert made == {"tools/list": 2, "tools/call": 1}


def test_a_refund_that_a_person_rejects_is_not_paid(example: Any) -> None:
    result = run(example.answer, GIVEN, answers={"refund": "reject"})
    assert (result.status, example.SHOP.refunds) == ("completed", {})
