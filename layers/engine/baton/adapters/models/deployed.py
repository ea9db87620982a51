"""`Models` of a deployment: profile, credential, deadline and price of each request.

It costs next to nothing until a model is called: the client and the prices are imported by the first call.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from baton.adapters.credentials import Credentials
from baton.adapters.models.answers import answer_without, redact_credential
from baton.adapters.models.profiles import Profile, Profiles
from baton.core.models.usage import Price
from baton.errors import Unauthenticated
from baton.ports import Clock, Offload, StepFailure
from baton.ports.models import (
    EMBEDDING_DIMENSIONS,
    Embedding,
    ModelAnswer,
    ModelFailure,
    ModelRequest,
    Over,
)

if TYPE_CHECKING:
    from baton.adapters.models.exchange import Exchange
    from baton.adapters.models.prices import Prices
    from baton.adapters.models.requests import PartialResponse

T = TypeVar("T")
_EXCHANGE: Final = "baton.adapters.models.exchange"
WEBHOOK: Final = "-webhook"
"""Suffix of a profile's name in the name of the secret that signs its webhooks."""
CALL_MS: Final = 20_000  # of a call that says no end and waits for no model
LONGEST_MS: Final = 600_000  # of a request that says no end
_UNAUTHORIZED, _NOT_FOUND = 401, 404
_OFFERS_NONE, _REFUSES, _OVER = frozenset({404, 405, 501}), frozenset({400, 422}), frozenset({400, 404, 409})
_NO_BACKGROUND: Final = "does not offer `POST /responses` of the responses API, which `background` needs"
_NO_EMBEDDINGS: Final = "does not offer `POST /embeddings` of the OpenAI API, which embeds facts"
_UNSIGNED: Final = "the signature is not that of a provider of this deployment"


class DeployedModels:
    """Models of a deployment; one object for a process."""

    def __init__(
        self,
        profiles: Profiles,
        credentials: Credentials,
        clock: Clock,
        offload: Offload,
        *,
        prices: Callable[[], Prices] | None = None,
    ) -> None:
        """Create the models of a deployment. `prices`: in place of the packaged ones."""
        self._profiles, self._credentials = profiles, credentials
        self._clock, self._offload = clock, offload
        self._make_prices = prices
        self._exchange: Exchange | None = None
        self._prices: Prices | None = None

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        profile, model = self._profiles.of(request.model)

        async def ask(credential: str) -> ModelAnswer:
            from baton.adapters.models.requests import body_of

            exchange = await self._opened()
            chat, most = body_of(request, model, profile), request.most_input
            answer = await exchange.ask(profile, credential, chat, request.key, request.draft, most)
            return answer_without(answer, credential)

        return await self._in_time(profile, request.until, ask)

    async def submit(self, request: ModelRequest) -> str:
        from baton.adapters.models.requests import background_body_of, found_in

        profile, model = self._profiles.of(request.model)
        if profile.dialect:
            raise StepFailure("model_unavailable", f"{profile.host} {_NO_BACKGROUND}", unsent=True)
        body = background_body_of(request, model)
        try:
            data = await self._called(profile, "/responses", model, body, request.key, until=request.until)
        except StepFailure as failure:
            is_none = failure.status in _OFFERS_NONE
            if is_none or (failure.status in _REFUSES and "background" in failure.message):
                text = f"{failure.message}; it {_NO_BACKGROUND}"
                code = "model_unavailable" if is_none else failure.code
                raise StepFailure(code, text, status=failure.status, happened=False) from failure
            raise
        return found_in(data, profile.host).id

    async def embed(self, model: str, text: str, until: int) -> Embedding:
        from baton.adapters.models.requests import embedding_in

        profile, name = self._profiles.of(model)
        if profile.dialect:
            text = f"{profile.host} {_NO_EMBEDDINGS}"
            raise StepFailure("model_unavailable", text, unsent=True)
        body = {"model": name, "input": text, "encoding_format": "float"}
        sized = body | {"dimensions": EMBEDDING_DIMENSIONS}
        try:
            data = await self._called(profile, "/embeddings", name, sized, until=until)
        except StepFailure as failure:  # of a model whose vectors have one length
            if failure.status not in _REFUSES or "dimension" not in failure.message.lower():
                raise
            data = await self._called(profile, "/embeddings", name, body, until=until)
        return embedding_in(data, name, profile.host)

    async def collect(self, model: str, response: str) -> ModelAnswer | None:
        from baton.adapters.models.requests import model_answer

        profile, name = self._profiles.of(model)
        found = await self._found(profile, response, name)
        return model_answer(found, profile.host) if found.is_over else None

    async def cancel(self, model: str, response: str) -> None:
        profile, name = self._profiles.of(model)
        try:
            await self._called(profile, f"{_path(response)}/cancel", name, {})
        except StepFailure as failure:
            if failure.status not in _OVER:
                raise

    async def heard(self, profile: str, headers: Mapping[str, str], body: bytes) -> Over | None:
        from baton.adapters.models.requests import is_signed, over_in

        if profile not in self._profiles.names():
            raise Unauthenticated(_UNSIGNED)
        of, name, now = self._profiles.named(profile), f"{profile}{WEBHOOK}", self._clock.now()
        secret = await self._credentials.of(name, is_optional=True)
        if not secret:
            raise Unauthenticated(_UNSIGNED)
        if not is_signed(headers, body, secret, now):  # it may have been replaced since it was read
            secret = await self._credentials.of(name, is_optional=True, is_refused=True)
            if not is_signed(headers, body, secret, now):
                raise Unauthenticated(_UNSIGNED)
        if not (response := over_in(body)):
            return None
        found = await self._found(of, response, "")
        return Over(response=response, token=found.token) if found.is_over and found.token else None

    async def _found(self, profile: Profile, response: str, model: str) -> PartialResponse:
        """Return the response. Raises `StepFailure`; `ModelFailure` if the provider does not know it."""
        from baton.adapters.models.requests import found_in

        try:
            data = await self._called(profile, _path(response), model, None)
        except StepFailure as failure:
            if failure.status != _NOT_FOUND:
                raise
            text = f"{profile.host} has no response `{response[:200]}` any more"
            raise ModelFailure("invalid_response", text, None) from failure
        return found_in(data, profile.host)

    async def _called(
        self,
        profile: Profile,
        place: str,
        model: str,
        body: Mapping[str, Any] | None,
        key: str = "",
        until: int = 0,
    ) -> Any:
        async def call(credential: str) -> Any:
            data = await (await self._opened()).call(profile, credential, place, model, body, key)
            return redact_credential(data, credential)

        return await self._in_time(profile, until or self._clock.now() + CALL_MS, call)

    async def _in_time(self, profile: Profile, until: int, ask: Callable[[str], Awaitable[T]]) -> T:
        left = (until - self._clock.now()) if until else LONGEST_MS
        if left <= 0:
            raise StepFailure("timeout", f"there was no time left to ask {profile.host}")
        try:
            async with asyncio.timeout(left / 1_000):
                return await self._with_credential(profile, ask)
        except TimeoutError as error:
            what = f"{profile.host} did not give the whole answer within {left} ms"
            raise StepFailure("timeout", what, happened=True) from error

    async def _with_credential(self, profile: Profile, ask: Callable[[str], Awaitable[T]]) -> T:
        credential = await self._credentials.of(profile.name, is_optional=profile.needs_no_credential)
        try:
            return await ask(credential)
        except StepFailure as error:
            if error.status != _UNAUTHORIZED or not credential:
                raise
            # It may have been replaced since it was read. A request that was refused has cost nothing.
            renewed = await self._credentials.of(
                profile.name, is_optional=profile.needs_no_credential, is_refused=True
            )
            if renewed == credential:
                raise
        return await ask(renewed)

    def price(self, model: str) -> Price | None:
        if self._prices is None:
            from baton.adapters.models.prices import Prices

            self._prices = Prices.packaged() if self._make_prices is None else self._make_prices()
        profile, name = self._profiles.of(model)
        now = self._clock.now()
        found = self._prices.of(profile, name, now)
        provider, _, rest = name.partition("/")
        if found is None and rest:  # of a program that asks its provider itself
            return self._prices.of(Profile(provider, "", ""), rest, now)
        return found

    async def aclose(self) -> None:
        """Close this event loop's connections. A process that lives no longer than its loop need not."""
        if self._exchange is not None:
            await self._exchange.aclose()

    async def _opened(self) -> Exchange:
        if self._exchange is None:
            # In a thread, because others run on this loop. Two first requests make two clients; the later one stays.
            try:
                module = await self._offload(_exchange_module)
            except ImportError as error:
                raise StepFailure(
                    "tool_missing",
                    f"requests to models are not installed ({error}): write `openai` into"
                    " layers/app/requirements.txt, then install and deploy it",
                    unsent=True,
                ) from error
            self._exchange = module.Exchange()
        assert self._exchange is not None
        return self._exchange


def _exchange_module() -> ModuleType:
    """Import the client, without collections of garbage: all of it stays, and later ones leave it out."""
    if (known := sys.modules.get(_EXCHANGE)) is not None:
        return known
    from baton.adapters.aws import without_garbage_collection

    with without_garbage_collection():
        module = import_module(_EXCHANGE)
        gc.freeze()
    return module


def _path(response: str) -> str:
    from baton.adapters.models.requests import IS_ID

    if not IS_ID(response):
        raise ModelFailure("invalid_response", "what the provider calls a response is no id", None)
    return f"/responses/{response}"
