"""`Models` of a deployment: which profile is asked with which credential, until when, and what it costs.

As cheap as nothing until a model is called: the client and the prices are imported by the first call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final

from baton.adapters.credentials import Credentials
from baton.adapters.models.profiles import Profile, Profiles
from baton.core.models.usage import Price
from baton.ports import Clock, Offload, StepFailure
from baton.ports.models import ModelAnswer, ModelRequest

if TYPE_CHECKING:
    from baton.adapters.models.openai_exchange import OpenAIExchange
    from baton.adapters.models.prices import Prices

LONGEST_MS: Final = 600_000  # of a request that says no end
_UNAUTHORIZED: Final = 401


class DeployedModels:
    """One for a process."""

    def __init__(
        self,
        profiles: Profiles,
        credentials: Credentials,
        clock: Clock,
        offload: Offload,
        *,
        prices: Callable[[], Prices] | None = None,
    ) -> None:
        """prices: in place of those that are packaged."""
        self._profiles, self._credentials = profiles, credentials
        self._clock, self._offload = clock, offload
        self._make_prices = prices
        self._exchange: OpenAIExchange | None = None
        self._prices: Prices | None = None

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        profile, model = self._profiles.of(request.model)
        left = (request.until - self._clock.now()) if request.until else LONGEST_MS
        if left <= 0:
            raise StepFailure("timeout", f"there was no time left to ask {profile.host}")
        try:
            async with asyncio.timeout(left / 1_000):
                return await self._ask(request, profile, model)
        except TimeoutError as error:
            what = f"{profile.host} did not give the whole answer within {left} ms"
            raise StepFailure("timeout", what, happened=True) from error

    async def _ask(self, request: ModelRequest, profile: Profile, model: str) -> ModelAnswer:
        from baton.adapters.models.requests import body_of

        body = body_of(request, model)
        exchange = await self._opened()
        credential = await self._credentials.of(profile.name, is_optional=profile.is_private)
        try:
            return await exchange.ask(profile, credential, body, request.key, request.draft)
        except StepFailure as error:
            if error.status != _UNAUTHORIZED or not credential:
                raise
            # It may have been replaced since it was read. A request that was refused has cost nothing.
            renewed = await self._credentials.of(
                profile.name, is_optional=profile.is_private, is_refused=True
            )
            if renewed == credential:
                raise
        return await exchange.ask(profile, renewed, body, request.key, request.draft)

    def price(self, model: str) -> Price | None:
        if self._prices is None:
            from baton.adapters.models.prices import Prices

            self._prices = Prices.packaged() if self._make_prices is None else self._make_prices()
        profile, name = self._profiles.of(model)
        return self._prices.of(profile, name, self._clock.now())

    async def aclose(self) -> None:
        """Ends the connections of this event loop. A process that lives as long as its loop need not."""
        if self._exchange is not None:
            await self._exchange.aclose()

    async def _opened(self) -> OpenAIExchange:
        if self._exchange is None:
            # In a thread, because others run on this loop. Two first requests make two clients; the later one stays.
            module = await self._offload(import_module, "baton.adapters.models.openai_exchange")
            self._exchange = module.OpenAIExchange()
        assert self._exchange is not None
        return self._exchange
