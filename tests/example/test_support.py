"""The support agent refunds an order after a person has approved it, once, whatever becomes of its worker."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from baton.testing import run
from examples.support import agent as example
from examples.support.agent import Shop, answer, support_agent

GIVEN = {"customer": "ann", "question": "My order 7 never came."}


async def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Look the order up, refund it, and say so."""
    said = [ToolCallPart("order", {"number": 7}), ToolCallPart("refund", {"number": 7, "cents": 4_200})]
    last = ToolCallPart(info.output_tools[0].name, {"text": "Done.", "refunded_cents": 4_200})
    return ModelResponse(parts=[[*said, last][len(messages) // 2]])


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setattr(example, "SHOP", Shop())
    monkeypatch.setattr(example, "agent", support_agent(FunctionModel(script)))
    return example.SHOP


@pytest.mark.parametrize("kills", [{}, {"refund": "after"}, {"support[1]/model#2": "after"}])
def test_a_refund_that_a_person_approves_is_paid_once(shop: Shop, kills: dict[str, Any]) -> None:
    result = run(answer, GIVEN, answers={"refund": "approve"}, kills=kills)
    assert result.status == "completed", result.view
    assert result.output == {"text": "Done.", "refunded_cents": 4_200}
    assert shop.refunds == {7: 4_200}


def test_a_refund_that_a_person_rejects_is_not_paid(shop: Shop) -> None:
    result = run(answer, GIVEN, answers={"refund": "reject"})
    assert (result.status, shop.refunds) == ("completed", {})
