"""The support agent of examples/support with a model that follows a script: it looks order 7 up and refunds it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from pydantic_ai import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

GIVEN = {"customer": "ann", "question": "My order 7 never came."}
Example = Any  # the module, whose import takes two seconds of the processor: no test makes it before it runs


def example(monkeypatch: pytest.MonkeyPatch) -> Example:
    """Return the example with a shop of its own."""
    found = import_module("examples.support.agent")
    monkeypatch.setattr(found, "SHOP", found.Shop())
    monkeypatch.setattr(found, "agent", found.support_agent(FunctionModel(_answer, model_name="scripted")))
    return found


async def _answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Look the order up, refund it, and say so."""
    last = {"text": "Your order is paid back.", "refunded_cents": 4_200}
    turns: list[list[TextPart | ToolCallPart]] = [
        [TextPart("I look your order up."), ToolCallPart("order", {"number": 7})],
        [ToolCallPart("refund", {"number": 7, "cents": 4_200})],
        [ToolCallPart(info.output_tools[0].name, last)],
    ]
    return ModelResponse(parts=turns[len(messages) // 2])
