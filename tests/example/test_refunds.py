"""The LangGraph agent of examples/refunds: it is run by a scripted model, killed, refused and undone."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from baton.testing import Result, run
from examples.refunds import bank, workflow


class Script(BaseChatModel):
    """Looks the order up, pays it back and answers."""

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind()

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        calls = [("find_order", {"number": 7}), ("refund", {"number": 7, "cents": 12_000})]
        said = [str(one.content) for one in messages if one.type == "tool"]
        wanted = [{"name": name, "args": args, "id": name} for name, args in calls[len(said) : len(said) + 1]]
        message = AIMessage("" if wanted else f"OK, {said[-1]}", tool_calls=wanted)
        return ChatResult(generations=[ChatGeneration(message=message)])


@pytest.fixture(autouse=True)
def _scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflow, "chat_model", Script)
    bank.paid.clear()


def served(answer: str = "approve", **options: Any) -> Result:
    given = {"message": "Order 7 came broken."}
    return run(workflow.refund_request, given, answers={"ask": answer}, **options)


@pytest.mark.parametrize("kills", [{}, {"agent": "after"}, {"agent#2": ["before", "after"]}])
def test_a_refund_is_approved_and_paid_once(kills: dict[str, Any]) -> None:
    result = served(kills=kills)
    assert (result.output, [*bank.paid.values()]) == ("OK, receipt 7-12000", [12_000])
    assert result.way == ["agent", "ask_person[1]/ask", "agent#2"]


def test_a_refused_refund_is_not_paid() -> None:
    assert (served("reject").output, bank.paid) == ("OK, refused", {})
