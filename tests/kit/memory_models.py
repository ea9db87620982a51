"""`Models` in memory, which the suites of the port run against beside the real client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from baton.core.models.usage import Price, Usage
from baton.ports import Clock, StepFailure
from baton.ports.models import CALLS, STOP, ModelAnswer, ModelFailure, ModelRequest, Over

Script = Callable[[ModelRequest], ModelAnswer | Awaitable[ModelAnswer]]


class MemoryModels:
    """Models that answer by a script, which may raise `StepFailure`, and keep the requests."""

    def __init__(
        self, script: Script, clock: Clock, prices: Mapping[str, Price] | Price | None = None
    ) -> None:
        """Create the fake models. `prices`: by the model's name, or of any."""
        self._script, self._clock, self._prices = script, clock, prices
        self.requests: list[ModelRequest] = []
        self._ids: dict[str, str] = {}
        self._handed: dict[str, tuple[ModelRequest, asyncio.Future[ModelAnswer]]] = {}

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        self.requests.append(request)
        left = request.until - self._clock.now() if request.until else None
        if left is not None and left <= 0:
            raise StepFailure("timeout", "there was no time left to ask the model")
        try:
            async with asyncio.timeout(None if left is None else left / 1_000):
                answer = self._script(request)
                found = answer if isinstance(answer, ModelAnswer) else await answer
        except TimeoutError as error:
            raise StepFailure(
                "timeout", f"the model did not give the whole answer within {left} ms", happened=True
            ) from error
        return _filled(request, found, len(self.requests))

    async def submit(self, request: ModelRequest) -> str:
        """Ask the script at once; the first poll finds its answer."""
        response = self._ids.setdefault(
            request.key or f"request-{len(self.requests)}", f"resp-{len(self._ids) + 1}"
        )
        if response not in self._handed:
            self.requests.append(request)
            self._handed[response] = (request, asyncio.ensure_future(self._later(request)))
        return response

    async def _later(self, request: ModelRequest) -> ModelAnswer:
        answer = self._script(request)
        return answer if isinstance(answer, ModelAnswer) else await answer

    async def collect(self, model: str, response: str) -> ModelAnswer | None:
        if response not in self._handed:
            raise ModelFailure("invalid_response", f"there is no response `{response}`", None)
        request, answer = self._handed[response]
        await asyncio.sleep(0)
        if not answer.done():
            return None
        if answer.cancelled():
            raise ModelFailure("service_unavailable", "the request was cancelled", None)
        if (error := answer.exception()) is not None:
            code = error.code if isinstance(error, StepFailure) else "server_error"
            raise ModelFailure(code, str(error), None) from error
        return _filled(request, answer.result(), len(self.requests))

    async def cancel(self, model: str, response: str) -> None:
        if response in self._handed:
            self._handed[response][1].cancel()

    async def heard(self, profile: str, headers: Mapping[str, str], body: bytes) -> Over | None:
        """Read the body as the id of a response; no signature is needed."""
        request, answer = self._handed.get(body.decode(), (None, None))
        if request is None or answer is None or not answer.done():
            return None
        return Over(response=body.decode(), token=request.token)

    def price(self, model: str) -> Price | None:
        return self._prices.get(model) if isinstance(self._prices, Mapping) else self._prices


def _filled(request: ModelRequest, answer: ModelAnswer, number: int) -> ModelAnswer:
    usage = answer.usage
    if not (usage.input or usage.output):
        written = [answer.text, *(call.name + call.arguments for call in answer.calls)]
        usage = Usage(
            input=-(-len(msgspec.json.encode(request.messages)) // 4),
            output=-(-sum(len(text.encode()) for text in written) // 4),
        )
    model = answer.model or request.model.rpartition("/")[2]
    return msgspec.structs.replace(
        answer,
        usage=msgspec.structs.replace(usage, model=usage.model or model),
        model=model,
        id=answer.id or f"answer-{number}",
        finish=CALLS if answer.calls and answer.finish == STOP else answer.finish,
    )
