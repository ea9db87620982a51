"""Spans of requests to models and of their calls: what is in them, what never is, and that they harm nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from baton.adapters.clock import SystemEntropy
from baton.adapters.http_client import LazyHttpClient
from baton.adapters.models.profiles import Profiles
from baton.adapters.spans import AT_ONCE, MOST, OtlpSpans, TracedModels, TracedPerformer, Tracer
from baton.core.models.usage import Price, Usage
from baton.core.tracing import CLIENT, INTERNAL, Span
from baton.ports import StepContext, StepFailure
from baton.ports.models import CALLS, ModelAnswer, ModelFailure, ModelRequest
from tests.kit.memory_models import MemoryModels
from tests.kit.payments import serving
from tests.models.asking import a_request

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED, NOT_SAMPLED = f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-{PARENT}-00"
PROFILES = Profiles("openai=https://api.example.com/v1 own=http://127.0.0.1:8099/v1").of


class Kept:
    """Keeps the spans."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def note(self, span: Span) -> None:
        self.spans.append(span)

    async def flush(self, within_ms: int) -> None:
        raise AssertionError("the worker flushes")


class Ticking:
    """A clock that goes on by a second each time it is read."""

    def __init__(self) -> None:
        self.at = 0

    def now(self) -> int:
        self.at += 1_000
        return self.at


class Answers(MemoryModels):
    def __init__(self, answer: ModelAnswer | BaseException) -> None:
        self.answered = answer

    def price(self, model: str) -> Price | None:
        return Price(input=1, output=2)

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        if isinstance(self.answered, BaseException):
            raise self.answered
        return self.answered


def tracer(kept: Kept) -> Tracer:
    return Tracer(kept, Ticking(), SystemEntropy())


def asked(answer: ModelAnswer | BaseException, traceparent: str = SAMPLED, **fields: Any) -> list[Span]:
    kept = Kept()
    models = TracedModels(Answers(answer), PROFILES, tracer(kept))
    request = a_request("a secret", traceparent=traceparent, **fields)
    if isinstance(answer, BaseException):
        with pytest.raises(type(answer)) as caught:
            asyncio.run(models.answer(request))
        assert caught.value is answer or isinstance(answer, asyncio.CancelledError)
    else:
        assert asyncio.run(models.answer(request)) is answer
    return kept.spans


ANSWER = ModelAnswer(
    text="another secret",
    finish=CALLS,
    usage=Usage(input=100, cached=64, output=7),
    model="gpt-5-mini-2026",
    id="c-1",
)


def test_a_request_is_a_span_by_the_conventions() -> None:
    (span,) = asked(ANSWER, temperature=0.5, most_output=400)
    assert (span.trace, span.parent, span.kind) == (TRACE, PARENT, CLIENT)
    assert (span.name, span.error) == ("chat gpt-5-mini", "")
    assert span.ended - span.started == 1_000
    assert span.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5-mini",
        "gen_ai.request.max_tokens": 400,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.response.model": "gpt-5-mini-2026",
        "gen_ai.response.id": "c-1",
        "gen_ai.response.finish_reasons": ["tool_calls"],
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 64,
        "server.address": "api.example.com",
        "server.port": 443,
    }
    assert "secret" not in repr(span)


def test_the_profile_of_a_name_says_where_it_goes() -> None:
    (span,) = asked(ModelAnswer(), model="own/qwen3")
    told = span.attributes
    assert (told["gen_ai.provider.name"], told["gen_ai.request.model"]) == ("own", "qwen3")
    assert (told["server.address"], told["server.port"]) == ("127.0.0.1", 8099)
    assert "gen_ai.response.model" not in told
    assert TracedModels(Answers(ANSWER), PROFILES, tracer(Kept())).price("m") == Price(input=1, output=2)


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (StepFailure("rate_limited", "a secret"), "rate_limited"),
        (asyncio.CancelledError(), "CancelledError"),
        (ModelFailure("content_policy", "a secret", None), "content_policy"),
    ],
)
def test_a_failure_has_its_code_and_passes(failure: BaseException, error: str) -> None:
    (span,) = asked(failure)
    assert (span.error, span.attributes["error.type"]) == (error, error)
    assert "gen_ai.usage.input_tokens" not in span.attributes
    assert "secret" not in repr(span)


def test_the_tokens_of_an_answer_that_was_filtered_are_told() -> None:
    (span,) = asked(ModelFailure("content_policy", "no", Usage(input=9, output=1)))
    assert span.attributes["gen_ai.usage.input_tokens"] == 9


@pytest.mark.parametrize("traceparent", ["", "nonsense", NOT_SAMPLED])
def test_what_is_in_no_trace_or_in_one_that_is_not_sampled_has_no_span(traceparent: str) -> None:
    assert asked(ANSWER, traceparent) == []


class Tools:
    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        if tool == "broken":
            raise StepFailure("business_rule", "a secret")
        return {"secret": 1}


def called(tool: str, item: str) -> list[Span]:
    kept = Kept()
    context = StepContext(saga="s", tenant="t", user="u", node="find", item=item, traceparent=SAMPLED)

    async def call() -> None:
        try:
            assert await TracedPerformer(Tools(), tracer(kept)).perform(tool, {"secret": 2}, context)
        except StepFailure:
            assert tool == "broken"

    asyncio.run(call())
    return kept.spans


def test_a_call_that_a_model_asks_for_is_a_span_and_other_calls_are_none() -> None:
    assert called("sum.add", "") == []
    (span,) = called("sum.add", "t1-0")
    assert (span.name, span.kind, span.parent) == ("execute_tool sum.add", INTERNAL, PARENT)
    assert span.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "sum.add",
        "gen_ai.tool.call.id": "t1-0",
        "gen_ai.tool.type": "function",
        "gen_ai.agent.name": "find",
    }
    (span,) = called("broken", "t12-3")
    assert (span.error, "secret" in repr(span)) == ("business_rule", False)


# ---- how they are sent -------------------------------------------------------------------------------------


class Collector:
    """What a collector has got; `status` is what it answers."""

    def __init__(self) -> None:
        self.got: list[tuple[str, Any]] = []
        self.status = 200
        self.url = ""


@pytest.fixture
def collector() -> Iterator[Collector]:
    one = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            one.got.append((self.path, json.loads(body)))
            self.send_response(one.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with serving(Handler) as one.url:
        yield one


def a_span(number: int = 0, **fields: Any) -> Span:
    given: dict[str, Any] = {
        "trace": TRACE, "parent": PARENT, "id": f"{number:016x}", "name": "chat m", "kind": CLIENT,
        "started": 1_000, "ended": 2_500, "attributes": {"a": "x", "n": 7, "f": 0.5, "l": ["stop"]},
    }  # fmt: skip
    return Span(**{**given, **fields})


def sent(url: str, *spans: Span) -> None:
    async def send() -> None:
        http = LazyHttpClient(["0.0.0.0/0"])
        try:
            one = OtlpSpans(f"{url}/v1/traces", "w", http)
            await one.flush(5_000)
            for span in spans:
                one.note(span)
            await one.flush(5_000)
            await one.flush(5_000)
        finally:
            await http.aclose()

    asyncio.run(send())


def test_spans_are_sent_once_as_otlp_has_them(collector: Collector) -> None:
    sent(collector.url, a_span(1), a_span(2, error="timeout", kind=INTERNAL))
    ((path, body),) = collector.got
    assert path == "/v1/traces"
    (resource,) = body["resourceSpans"]
    assert resource["resource"]["attributes"] == [{"key": "service.name", "value": {"stringValue": "w"}}]
    first, second = resource["scopeSpans"][0]["spans"]
    assert first == {
        "traceId": TRACE,
        "spanId": "0000000000000001",
        "parentSpanId": PARENT,
        "name": "chat m",
        "kind": 3,
        "startTimeUnixNano": "1000000000",
        "endTimeUnixNano": "2500000000",
        "attributes": [
            {"key": "a", "value": {"stringValue": "x"}},
            {"key": "n", "value": {"intValue": "7"}},
            {"key": "f", "value": {"doubleValue": 0.5}},
            {"key": "l", "value": {"arrayValue": {"values": [{"stringValue": "stop"}]}}},
        ],
        "status": {},
    }
    assert (second["status"], second["kind"]) == ({"code": 2}, 1)


def test_many_are_sent_in_parts_and_no_more_are_kept_than_so_many(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    sent(collector.url, *(a_span(number) for number in range(MOST + 3)))
    parts = [len(body["resourceSpans"][0]["scopeSpans"][0]["spans"]) for _, body in collector.got]
    assert parts == [AT_ONCE] * (MOST // AT_ONCE)
    assert "3 spans are lost" in caplog.text


@pytest.mark.parametrize("how", ["refuses", "is not there"])
def test_a_collector_that_takes_none_harms_nothing(
    collector: Collector, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    collector.status = 503
    sent(collector.url if how == "refuses" else "http://127.0.0.1:1", a_span())
    assert "1 spans are lost" in caplog.text
