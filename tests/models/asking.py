"""How the tests of this room ask a model: by the adapter, of a provider on loopback. No assertions here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from baton.adapters.models.deployed import DeployedModels
from baton.ports import StepFailure
from baton.ports.models import ModelAnswer, ModelRequest
from tests.kit.provider import KEY, models


def a_request(text: str = "hello", **fields: Any) -> ModelRequest:
    return ModelRequest(**{"model": "gpt-5-mini", "messages": ({"role": "user", "content": text},), **fields})


def ask(adapter: DeployedModels, *requests: ModelRequest) -> list[ModelAnswer]:
    """One after the other, on one event loop."""

    async def asked() -> list[ModelAnswer]:
        try:
            return [await adapter.answer(request) for request in requests]
        finally:
            await adapter.aclose()

    return asyncio.run(asked())


def failure(adapter: DeployedModels, request: ModelRequest | None = None) -> StepFailure:
    with pytest.raises(StepFailure) as caught:
        ask(adapter, request or a_request())
    return caught.value


def adapter_of(url: str, variable: Callable[[str], str] = lambda _: KEY) -> DeployedModels:
    """With the one profile `openai`."""
    return models(f"openai={url}/v1", variable)
