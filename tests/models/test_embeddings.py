"""Texts embedded by a provider with the API of OpenAI: what is sent, what is taken, what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from baton.adapters.clock import SystemClock
from baton.ports import StepFailure
from baton.ports.models import Embedding
from examples.services.models import Refusal, words_embedded
from tests.kit.provider import Served, models
from tests.models.asking import adapter_of

FAR = SystemClock().now() + 3_600_000


def embedded(url: str, model: str = "text-embedding-3-small", adapter: Any = None) -> Embedding:
    adapter = adapter or adapter_of(url)

    async def asked() -> Embedding:
        try:
            found: Embedding = await adapter.embed(model, "likes window seats", FAR)
            return found
        finally:
            await adapter.aclose()

    return asyncio.run(asked())


def refusal(url: str, **fields: Any) -> StepFailure:
    with pytest.raises(StepFailure) as caught:
        embedded(url, **fields)
    return caught.value


def test_a_text_is_embedded_in_256_numbers_with_the_tokens_that_it_cost(provider: Served) -> None:
    found = embedded(provider.url)
    assert provider.provider.embedded == [
        {
            "model": "text-embedding-3-small",
            "input": "likes window seats",
            "encoding_format": "float",
            "dimensions": 256,
        }
    ]
    assert (len(found.vector), found.usage.input, found.usage.model) == (256, 3, "text-embedding-3-small")


def test_a_model_whose_vectors_have_one_length_is_asked_without_a_length(provider: Served) -> None:
    def one_length(body: Mapping[str, Any]) -> Any:
        if "dimensions" in body:
            return Refusal(400, message="This model does not support specifying dimensions.")
        return words_embedded(body)

    provider.provider.embeds = one_length
    assert len(embedded(provider.url).vector) == 1_536


@pytest.mark.parametrize("vector", [[], [0.0, 0.0], ["x"], [0.5] * 4_097, "text"])
def test_an_answer_that_is_no_vector_is_a_failure_that_may_have_cost_something(
    provider: Served, vector: Any
) -> None:
    provider.provider.embeds = lambda _: vector
    failed = refusal(provider.url)
    assert (failed.code, failed.happened, failed.status) == ("invalid_response", True, 0)


def test_a_refused_text_costs_nothing(provider: Served) -> None:
    provider.provider.embeds = lambda _: Refusal(429, message="slow down")
    assert (refusal(provider.url).code, refusal(provider.url).status) == ("rate_limited", 429)


def test_a_provider_without_that_api_is_not_asked(provider: Served) -> None:
    anthropic = models(f"anthropic=anthropic+{provider.url}/v1", lambda _: "key")
    failed = refusal(provider.url, model="anthropic/claude", adapter=anthropic)
    assert (failed.code, failed.unsent, provider.provider.embedded) == ("model_unavailable", True, [])
