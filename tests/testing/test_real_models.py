"""`models="real"`: a node asks its own model, of the environment, while the rest is as in any test."""

from __future__ import annotations

import pytest

from baton.testing import call, run
from baton.tools.define import Registry, tool
from examples.services.models import Reply
from tests.kit.provider import served
from tests.kit.sentences import Says

ADVICE = """
name: advice
nodes:
  find: {agent: {model: gpt-5-mini, prompt: "What do 3 teas cost?", tools: [order.price]}}
  later: {wait: {for: 1h}, after: find}
output: "${ctx.find.output}"
"""


def tools() -> Registry:
    registry = Registry()

    @tool("order.price", registry=registry)
    async def price(quantity: int) -> int:
        return 350 * quantity

    return registry


def test_a_real_model_is_asked_and_time_jumps_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    with served() as provider:
        replies = [Reply(calls=[("order_price", {"quantity": 3})]), Reply("$10.50")]
        provider.script = lambda _: replies.pop(0)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "k-1")
        result = run(ADVICE, tools=tools(), models="real")
    assert (result.status, result.output) == ("completed", "$10.50")
    assert [made.output for turn in result.turns("find") for made in turn.calls] == [1050]
    assert 3_600 <= result.took_s < 3_660


def test_without_a_key_a_real_model_is_refused(monkeypatch: pytest.MonkeyPatch, says: Says) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "BATON_MODEL_PROFILES"):
        monkeypatch.delenv(name, raising=False)
    with says.raised(ValueError):
        run(ADVICE, tools=tools(), models="real")


def test_the_others_are_scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k-1")
    result = run(ADVICE, tools=tools(), models={"find": [call("order.price", quantity=1), "350"]})
    assert result.output == "350"
