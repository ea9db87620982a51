"""Spans of requests to models and of tool calls, sent as OTLP by HTTP."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

from baton.core.models.usage import Price
from baton.core.tracing import CLIENT, FINISHES, INTERNAL, Attribute, Span, is_call, parent_of
from baton.core.version import VERSION
from baton.ports import Clock, Entropy, Performer, StepContext, StepFailure
from baton.ports.models import ModelAnswer, ModelFailure, ModelRequest, Models, Over, Spans
from baton.ports.outside import HttpClient, HttpRequest

logger = logging.getLogger("baton.spans")
MOST = 2_000
"""Highest number of spans kept; later ones are not sent."""
AT_ONCE = 500
_MOST_ANSWER = 65_536  # bytes; nothing in it is read
_NANOS = 1_000_000
_ERROR = 2


class OtlpSpans:
    """Sender of spans to one address as OTLP. `service` is the name of the function."""

    def __init__(self, url: str, service: str, http: HttpClient) -> None:
        self._url, self._service, self._http = url, service, http
        self._kept: list[Span] = []
        self._lost = 0

    def note(self, span: Span) -> None:
        if len(self._kept) >= MOST:
            self._lost += 1
        else:
            self._kept.append(span)

    async def flush(self, within_ms: int) -> None:
        """Send the spans. All requests together have this time, and run concurrently."""
        import asyncio  # not for a process that sends nothing

        kept, self._kept = self._kept, []
        if not kept:
            return
        parts = [kept[first : first + AT_ONCE] for first in range(0, len(kept), AT_ONCE)]
        taken = await asyncio.gather(*(self._send(part, within_ms) for part in parts))
        lost, self._lost = self._lost + sum(taken), 0
        if lost:
            logger.warning("%s spans are lost", lost)

    async def _send(self, spans: Sequence[Span], within_ms: int) -> int:
        """Send spans. Return the number of spans that were not taken."""
        request = HttpRequest(
            method="POST",
            url=self._url,
            headers={"content-type": "application/json"},
            body=msgspec.json.encode(spans_body(self._service, spans)),
            within_ms=within_ms,
            most=_MOST_ANSWER,
            named=True,
        )
        try:
            answer = await self._http.send(request)
        except StepFailure as failure:
            logger.warning("no spans were sent: %s", failure.message)
            return len(spans)
        if answer.status // 100 == 2:  # 2xx
            return 0
        logger.warning("no spans were taken: the receiver answered %s", answer.status)
        return len(spans)


def spans_body(service: str, spans: Sequence[Span]) -> dict[str, Any]:
    """Return the body of a request that sends spans."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [_attribute("service.name", service)]},
                "scopeSpans": [
                    {"scope": {"name": "baton", "version": VERSION}, "spans": [_span(one) for one in spans]}
                ],
            }
        ]
    }


def _span(span: Span) -> dict[str, Any]:
    return {
        "traceId": span.trace,
        "spanId": span.id,
        "parentSpanId": span.parent,
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.started * _NANOS),
        "endTimeUnixNano": str(span.ended * _NANOS),
        "attributes": [_attribute(name, value) for name, value in span.attributes.items()],
        "status": {"code": _ERROR} if span.error else {},
    }


def _attribute(name: str, value: Attribute) -> dict[str, Any]:
    return {"key": name, "value": _value(value)}


def _value(value: Attribute) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


_PORTS = {"https": 443, "http": 80}
Attributes = dict[str, Attribute]


class Provider(Protocol):
    """Provider of a model."""

    @property
    def name(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def host(self) -> str: ...


class Tracer:
    """Tracer that records the operations within a span."""

    def __init__(self, spans: Spans, clock: Clock, entropy: Entropy) -> None:
        self._spans, self._clock, self._entropy = spans, clock, entropy

    @contextmanager
    def span(self, traceparent: str, kind: int, said: Attributes, of: str) -> Iterator[None]:
        """Record a span of an operation on `of`; `said` may grow. Without a trace, record none."""
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
    """`Models`: a span of the kind `client` for each request that is not in the background."""

    def __init__(
        self, models: Models, provider_of: Callable[[str], tuple[Provider, str]], tracer: Tracer
    ) -> None:
        """Trace the requests to models. `provider_of`: provider of a model, and its name there."""
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
