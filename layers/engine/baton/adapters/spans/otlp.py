"""`Spans` sent as OTLP by HTTP, with JSON as its body.

Source: "OpenTelemetry Protocol Specification 1.x", OTLP/HTTP: ids are hexadecimal, 64-bit numbers are text, an answer of 2xx
means that the spans were taken.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from baton.core.tracing import Attribute, Span
from baton.core.version import VERSION
from baton.ports import StepFailure
from baton.ports.outside import HttpClient, HttpRequest

logger = logging.getLogger("baton.spans")
MOST = 2_000
"""So many are kept; those that come when there are as many are not sent."""
AT_ONCE = 500
_MOST_ANSWER = 65_536  # bytes; nothing in it is read
_NANOS = 1_000_000
_ERROR = 2


class OtlpSpans:
    """To one address. `service` is the name of the function."""

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
        """All requests together have this time, side by side."""
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
        """How many of them were not taken."""
        request = HttpRequest(
            method="POST",
            url=self._url,
            headers={"content-type": "application/json"},
            body=msgspec.json.encode(document(self._service, spans)),
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


def document(service: str, spans: Sequence[Span]) -> dict[str, Any]:
    """The body of a request."""
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
