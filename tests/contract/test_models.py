"""The contract of `Models`: in memory, and by the client against a provider on loopback in each of its dialects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import httpx
import msgspec
import pytest

from baton.adapters.clock import SystemClock
from baton.core.models.usage import Price, Usage
from baton.ports import StepFailure
from baton.ports.models import CALLS, LENGTH, STOP, ModelAnswer, ModelCall, ModelRequest, Models, ToolOffer
from examples.services.models import Refusal, Reply
from tests.kit.memory_models import MemoryModels
from tests.kit.provider import models, served

FOREVER = 3_600.0
LOOK = ToolOffer(
    name="look", description="Looks.", parameters={"type": "object", "properties": {"at": {"type": "string"}}}
)
Answers = Callable[[Sequence[dict[str, Any]]], Reply | Refusal]


class Asks:
    """A model that answers what a function of the messages says, asked through one adapter."""

    def __init__(self, ask: Callable[[Answers, ModelRequest], ModelAnswer], dialect: str = "") -> None:
        self._ask, self.dialect = ask, dialect

    def __call__(self, answers: Answers | Reply | Refusal, **fields: Any) -> ModelAnswer:
        given = fields.pop("said", "hello")
        request = ModelRequest(**{"model": "gpt-5-mini", "messages": (user(given),), **fields})
        return self._ask(answers if callable(answers) else lambda _: answers, request)

    def failure(self, answers: Answers | Reply | Refusal, **fields: Any) -> StepFailure:
        with pytest.raises(StepFailure) as caught:
            self(answers, **fields)
        return caught.value


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def in_memory() -> Iterator[Asks]:
    def ask(answers: Answers, request: ModelRequest) -> ModelAnswer:
        def script(asked: ModelRequest) -> ModelAnswer | Awaitable[ModelAnswer]:
            return later(answers(asked.messages))

        return asyncio.run(MemoryModels(script, SystemClock()).answer(request))

    yield Asks(ask)


async def later(reply: Reply | Refusal) -> ModelAnswer:
    """What a provider makes of the reply, without one."""
    if reply.after:
        await asyncio.Event().wait()
    if isinstance(reply, Refusal):
        code = {429: "rate_limited", 500: "server_error"}[reply.status]
        retry = reply.headers.get("Retry-After", "")
        raise StepFailure(code, reply.message, status=reply.status, retry_after=retry)
    calls = tuple(
        ModelCall(
            id=f"c{n}",
            name=name,
            arguments=given if isinstance(given, str) else msgspec.json.encode(given).decode(),
        )
        for n, (name, given) in enumerate(reply.calls)
    )
    text = reply.text if isinstance(reply.text, str) else msgspec.json.encode(reply.text).decode()
    usage = Usage(
        input=reply.input or 0, cached=reply.cached, output=reply.output or 0, reasoning=reply.reasoning
    )
    return ModelAnswer(text=text, calls=calls, finish=reply.finish or STOP, usage=usage)


PROFILES = {"": "openai={url}/v1", "anthropic": "a=anthropic+{url}/v1", "bedrock": "b=bedrock+{url}"}


def by_client(dialect: str = "") -> Iterator[Asks]:
    with served() as provider:

        def ask(answers: Answers, request: ModelRequest) -> ModelAnswer:
            provider.script = lambda asked: answers(asked.messages)  # type: ignore[arg-type]  # dicts, as they were sent

            async def asked() -> ModelAnswer:
                adapter = models(PROFILES[dialect].format(url=provider.url))
                try:
                    return await adapter.answer(request)
                finally:
                    await adapter.aclose()

            return asyncio.run(asked())

        yield Asks(ask, dialect)


def by_messages() -> Iterator[Asks]:
    yield from by_client("anthropic")


def by_converse() -> Iterator[Asks]:
    yield from by_client("bedrock")


@pytest.fixture(params=[in_memory, by_client, by_messages, by_converse])
def asks(request: pytest.FixtureRequest) -> Iterator[Asks]:
    yield from request.param()


def test_a_text_comes_whole_with_what_it_has_used(asks: Asks) -> None:
    answer = asks(Reply("ü" * 100, input=40, cached=8, output=60, reasoning=10))
    assert (answer.text, answer.finish, answer.calls) == ("ü" * 100, STOP, ())
    reasoning = 0 if asks.dialect else 10  # the other dialects do not say it
    assert answer.usage == Usage(model="gpt-5-mini", input=40, cached=8, output=60, reasoning=reasoning)
    assert answer.model == "gpt-5-mini"
    assert answer.id or asks.dialect == "bedrock"


def test_calls_come_with_the_arguments_as_the_model_wrote_them(asks: Asks) -> None:
    answer = asks(Reply(calls=[("look", {"at": "a" * 50}), ("look", '{"at": unquoted')]), tools=(LOOK,))
    assert [(call.name, call.arguments.replace(" ", "")) for call in answer.calls] == [
        ("look", '{"at":"' + "a" * 50 + '"}'),
        ("look", '{"at":unquoted'),
    ]
    assert len({call.id for call in answer.calls}) == 2
    assert answer.finish == CALLS


def test_an_answer_at_the_limit_of_its_length_says_so(asks: Asks) -> None:
    assert asks(Reply("half a", finish="length"), most_output=2).finish == LENGTH


def test_an_answer_by_schema_is_json(asks: Asks) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert msgspec.json.decode(asks(Reply({"n": 1}), schema=schema).text) == {"n": 1}


def test_an_answer_depends_on_the_messages_alone(asks: Asks) -> None:
    def echo(messages: Sequence[dict[str, Any]]) -> Reply:
        return Reply(messages[-1]["content"].upper())

    assert [asks(echo, said=text).text for text in ("one", "two", "one")] == ["ONE", "TWO", "ONE"]


def test_a_refusal_is_a_failure_of_the_step_and_is_not_tried_again(asks: Asks) -> None:
    times = []

    def busy(messages: Sequence[dict[str, Any]]) -> Refusal:
        times.append(1)
        return Refusal(429, "rate_limit_exceeded", "Slow down.", headers={"Retry-After": "7"})

    failure = asks.failure(busy)
    assert (failure.code, failure.status, failure.retry_after) == ("rate_limited", 429, "7")
    assert "Slow down." in failure.message
    assert not failure.happened, "what is refused is not billed"
    assert len(times) == 1


def test_what_takes_too_long_ends_in_time(asks: Asks) -> None:
    clock = SystemClock()
    begun = clock.now()
    failure = asks.failure(Reply("late", after=FOREVER), until=begun + 300)
    assert failure.code == "timeout"
    assert failure.happened, "the provider bills what it has begun"
    assert clock.now() - begun < 20_000


def test_without_time_left_no_request_is_made(asks: Asks) -> None:
    def never(messages: Sequence[dict[str, Any]]) -> Reply:
        raise AssertionError("a request was made")

    failure = asks.failure(never, until=SystemClock().now() - 1)
    assert (failure.code, failure.happened) == ("timeout", None)


def test_the_memory_adapter_keeps_requests_and_knows_prices_by_name() -> None:
    price = Price(input=1, output=2)
    adapter = MemoryModels(lambda request: ModelAnswer(text="abcdefgh"), SystemClock(), {"m": price})
    request = ModelRequest(model="m", messages=(user("hello"),))
    answer = asyncio.run(adapter.answer(request))
    assert adapter.requests == [request]
    assert (answer.usage.output, answer.usage.input > 0) == (2, True)
    found: Models = adapter
    assert (found.price("m"), found.price("other")) == (price, None)
    assert MemoryModels(lambda request: ModelAnswer(), SystemClock(), price).price("other") == price


def test_the_provider_of_the_examples_answers_without_a_stream_too() -> None:
    with served() as provider:
        provider.script = lambda asked: Reply("x", calls=[("look", {"at": "it"})], input=3, output=4)
        body = {"model": "m", "messages": [user("hello")]}
        whole = httpx.post(f"{provider.url}/v1/chat/completions", json=body).json()
    assert whole["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "look"
    assert whole["usage"]["total_tokens"] == 7


def test_an_answer_twice_for_one_key_is_in_the_books_of_the_provider() -> None:
    with served() as provider:
        provider.script = lambda asked: Reply("paid")

        async def twice() -> None:
            adapter = models(f"openai={provider.url}/v1")
            for _ in range(2):
                await adapter.answer(ModelRequest(model="m", messages=(user("x"),), key="turn-1"))
            await adapter.aclose()

        asyncio.run(twice())
        document = provider.provider.books.document()
    assert document["summary"] == {"requests": 2, "replays": 0, "effects": 2, "double_bookings": 1}
