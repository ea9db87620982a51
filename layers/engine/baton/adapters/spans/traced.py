"""Models and tools whose requests and calls are noted as spans. What they return and raise passes through unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol
from urllib.parse import urlsplit

from baton.core.models.usage import Price
from baton.core.tracing import CLIENT, FINISHES, INTERNAL, Attribute, Span, is_call, parent_of
from baton.ports import Clock, Entropy, Performer, StepContext, StepFailure
from baton.ports.models import ModelAnswer, ModelFailure, ModelRequest, Models, Over
from baton.ports.spans import Spans

_PORTS = {"https": 443, "http": 80}
Attributes = dict[str, Attribute]


class Provider(Protocol):
    """Where a model is."""

    @property
    def name(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def host(self) -> str: ...


class Tracer:
    """Notes what happens within a span."""

    def __init__(self, spans: Spans, clock: Clock, entropy: Entropy) -> None:
        self._spans, self._clock, self._entropy = spans, clock, entropy

    @contextmanager
    def span(self, traceparent: str, kind: int, said: Attributes, of: str) -> Iterator[None]:
        """One named by its operation and what it is `of`. `said` may grow until the end. Without a trace there is none."""
        parent, started, error = parent_of(traceparent), self._clock.now(), ""
        try:
            yield
        except StepFailure as failure:
            error = failure.code
            raise
        except BaseException as failure:  # a request that was given up, above all
            error = type(failure).__name__
            raise
        finally:
            if parent is not None:
                if error:
                    said["error.type"] = error
                span = Span(
                    trace=parent[0],
                    parent=parent[1],
                    id=self._entropy.token(64),
                    name=f"{said['gen_ai.operation.name']} {of}",
                    kind=kind,
                    started=started,
                    ended=self._clock.now(),
                    attributes=said,
                    error=error,
                )
                self._spans.note(span)


class TracedModels:
    """`Models`: a span of the kind `client` for each request but those in the background, whose end no worker sees."""

    def __init__(
        self, models: Models, provider_of: Callable[[str], tuple[Provider, str]], tracer: Tracer
    ) -> None:
        """provider_of: the provider of a model by its name here, and the name that it has there."""
        self._models, self._provider_of, self._tracer = models, provider_of, tracer

    def price(self, model: str) -> Price | None:
        return self._models.price(model)

    async def submit(self, request: ModelRequest) -> str:
        return await self._models.submit(request)

    async def collect(self, model: str, response: str) -> ModelAnswer | None:
        return await self._models.collect(model, response)

    async def cancel(self, model: str, response: str) -> None:
        await self._models.cancel(model, response)

    async def heard(self, profile: str, headers: Mapping[str, str], body: bytes) -> Over | None:
        return await self._models.heard(profile, headers, body)

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        provider, model = self._provider_of(request.model)
        place = urlsplit(provider.url)
        said: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider.name,
            "gen_ai.request.model": model,
            "gen_ai.request.max_tokens": request.most_output,
            "server.address": provider.host,
            "server.port": place.port or _PORTS[place.scheme],
        }
        if request.temperature is not None:
            said["gen_ai.request.temperature"] = request.temperature
        with self._tracer.span(request.traceparent, CLIENT, said, model):
            try:
                answer = await self._models.answer(request)
            except ModelFailure as failure:
                if failure.usage is not None:
                    said |= _used(failure.usage.input, failure.usage.output, failure.usage.cached)
                raise
            said["gen_ai.response.finish_reasons"] = [FINISHES.get(answer.finish, answer.finish)]
            said |= {
                name: value
                for name, value in (
                    ("gen_ai.response.model", answer.model),
                    ("gen_ai.response.id", answer.id),
                )
                if value
            }
            said |= _used(answer.usage.input, answer.usage.output, answer.usage.cached)
            return answer


def _used(read: int, written: int, cached: int) -> Attributes:
    return {
        "gen_ai.usage.input_tokens": read,
        "gen_ai.usage.output_tokens": written,
        **({"gen_ai.usage.cache_read.input_tokens": cached} if cached else {}),
    }


class TracedPerformer:
    """`Performer`: a span for each call of a tool that a model has asked for."""

    def __init__(self, performer: Performer, tracer: Tracer) -> None:
        self._performer, self._tracer = performer, tracer

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        if not is_call(context.item):
            return await self._performer.perform(tool, arguments, context)
        said: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.id": context.item,
            "gen_ai.tool.type": "function",
            "gen_ai.agent.name": context.node,
        }
        with self._tracer.span(context.traceparent, INTERNAL, said, tool):
            return await self._performer.perform(tool, arguments, context)
