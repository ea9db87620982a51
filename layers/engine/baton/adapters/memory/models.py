"""`Models` in memory: a function of the request. For tests, of applications too."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from baton.core.models.usage import Price, Usage
from baton.ports import Clock, StepFailure
from baton.ports.models import CALLS, STOP, ModelAnswer, ModelRequest

Script = Callable[[ModelRequest], ModelAnswer | Awaitable[ModelAnswer]]


class MemoryModels:
    """Answers what the script says, and keeps the requests.

    An answer that counts nothing has used a token for four bytes. The script may raise `StepFailure`, and may be asynchronous.
    """

    def __init__(
        self, script: Script, clock: Clock, prices: Mapping[str, Price] | Price | None = None
    ) -> None:
        """prices: by the model's name, or of any."""
        self._script, self._clock, self._prices = script, clock, prices
        self.requests: list[ModelRequest] = []

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
