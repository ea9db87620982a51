"""The contract of `Models` for requests in the background: in memory, and by the client against a provider on loopback."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from baton.adapters.clock import SystemClock
from baton.adapters.models.requests import background_body_of
from baton.core.models.usage import Usage
from baton.errors import Unauthenticated
from baton.ports import StepFailure
from baton.ports.models import (
    CALLS,
    LENGTH,
    STOP,
    ModelAnswer,
    ModelCall,
    ModelFailure,
    ModelRequest,
    Models,
    Over,
    ToolOffer,
)
from examples.services.models import Refusal, Reply
from examples.services.responses import SECRET, announcement
from tests.kit.memory_models import MemoryModels
from tests.kit.provider import KEY, Served, models, served

USER = {"role": "user", "content": "hello"}
LONG = "t" * 1_300
"""A token longer than one value of a provider's metadata."""
Scenario = Callable[[Models], Awaitable[Any]]


def a_request(**fields: Any) -> ModelRequest:
    return ModelRequest(**{"model": "m", "messages": (USER,), "key": "s/n/1", "token": LONG, **fields})


class Runner:
    """Runs a scenario with models that answer as a reply says."""

    def __init__(self, run: Callable[[Reply, Scenario], Any]) -> None:
        self.run = run


def in_memory() -> Iterator[Runner]:
    def run(reply: Reply, scenario: Scenario) -> Any:
        async def script(_: ModelRequest) -> ModelAnswer:
            if reply.after:
                await asyncio.Event().wait()
            if reply.fault == "failed":
                raise StepFailure("server_error", "It broke.")
            calls = tuple(ModelCall(id="c", name=name, arguments=str(given)) for name, given in reply.calls)
            usage = Usage(input=reply.input or 0, cached=reply.cached, output=reply.output or 0)
            return ModelAnswer(text=reply.text, calls=calls, finish=reply.finish or STOP, usage=usage)

        async def main() -> Any:
            return await scenario(MemoryModels(script, SystemClock()))

        return asyncio.run(main())

    yield Runner(run)


def adapter_of(provider: Served) -> Any:
    return models(f"openai={provider.url}/v1", lambda name: SECRET if name.endswith("-webhook") else KEY)


def by_client() -> Iterator[Runner]:
    with served() as provider:

        def run(reply: Reply, scenario: Scenario) -> Any:
            provider.script = lambda _: reply

            async def main() -> Any:
                adapter = adapter_of(provider)
                try:
                    return await scenario(adapter)
                finally:
                    await adapter.aclose()

            return asyncio.run(main())

        yield Runner(run)


@pytest.fixture(params=[in_memory, by_client])
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    yield from request.param()


async def asked(found: Models, **fields: Any) -> ModelAnswer:
    response = await found.submit(a_request(**fields))
    while (answer := await found.collect("m", response)) is None:
        await asyncio.sleep(0)
    return answer


def test_an_answer_is_fetched_whole_with_what_it_has_used(runner: Runner) -> None:
    reply = Reply("ü" * 100, input=40, cached=8, output=60)
    answer = runner.run(reply, asked)
    assert (answer.text, answer.finish, answer.calls) == ("ü" * 100, STOP, ())
    assert answer.usage == Usage(model="m", input=40, cached=8, output=60)


def test_calls_come_with_the_arguments_as_the_model_wrote_them(runner: Runner) -> None:
    answer = runner.run(Reply("", calls=[("look", '{"at": unquoted')]), asked)
    assert [(one.name, one.arguments) for one in answer.calls] == [("look", '{"at": unquoted')]
    assert (answer.finish, bool(answer.calls[0].id)) == (CALLS, True)


def test_an_answer_at_the_limit_of_its_length_says_so(runner: Runner) -> None:
    assert runner.run(Reply("half a", finish="length"), asked).finish == LENGTH


def test_what_is_under_way_has_no_answer_and_can_be_cancelled_twice(runner: Runner) -> None:
    async def scenario(found: Models) -> None:
        response = await found.submit(a_request())
        assert await found.collect("m", response) is None
        assert await found.heard("openai", *signed(response)) is None, "it is not over"
        await found.cancel("m", response)
        await found.cancel("m", response)
        await asyncio.sleep(0)
        with pytest.raises(ModelFailure) as caught:
            await found.collect("m", response)
        assert (caught.value.code, caught.value.usage) == ("service_unavailable", None)

    runner.run(Reply("late", after=3_600), scenario)


def test_a_request_that_fails_there_has_no_usage_and_is_billed(runner: Runner) -> None:
    async def scenario(found: Models) -> None:
        with pytest.raises(ModelFailure) as caught:
            await asked(found)
        failure = caught.value
        assert (failure.code, failure.usage, failure.happened) == ("server_error", None, True)

    runner.run(Reply("", fault="failed"), scenario)


def test_of_what_the_provider_does_not_know_there_is_no_answer(runner: Runner) -> None:
    async def scenario(found: Models) -> None:
        with pytest.raises(ModelFailure) as caught:
            await found.collect("m", "resp-none")
        assert caught.value.code == "invalid_response"

    runner.run(Reply(""), scenario)


def signed(response: str, status: str = "completed", *, at: float = 0, secret: str = SECRET) -> Any:
    body, headers = announcement(response, status, int(at or time.time()), secret)
    return headers, body


# ---- by the client alone


@pytest.fixture
def provider() -> Iterator[Served]:
    with served() as one:
        yield one


def of(provider: Served, reply: Reply | Refusal, scenario: Scenario) -> Any:
    provider.script = lambda _: reply

    async def main() -> Any:
        adapter = adapter_of(provider)
        try:
            return await scenario(adapter)
        finally:
            await adapter.aclose()

    return asyncio.run(main())


@pytest.mark.parametrize("status", ["completed", "failed", "incomplete", "cancelled"])
def test_an_end_that_is_announced_brings_the_token_of_its_request(provider: Served, status: str) -> None:
    async def scenario(found: Models) -> Any:
        response = await found.submit(a_request())
        assert await found.heard("openai", *signed(response, "queued")) is None
        return response, await found.heard("openai", *signed(response, status))

    response, over = of(provider, Reply("x"), scenario)
    assert over == Over(response=response, token=LONG)


@pytest.mark.parametrize(
    ("profile", "changed"),
    [
        ("openai", {"secret": "whsec_Zm9yZ2Vk"}),
        ("openai", {"secret": "whsec_"}),
        ("openai", {"late": -301}),
        ("openai", {"late": 302}),
        ("other", {}),
        ("openai", {"header": ("webhook-timestamp", "١٢٣")}),
        ("openai", {"header": ("webhook-timestamp", "")}),
        ("openai", {"header": ("webhook-signature", "v1,")}),
        ("openai", {"header": ("webhook-signature", "")}),
        ("openai", {"header": ("webhook-id", "another")}),
        ("openai", {"body": b"{}"}),
    ],
)
def test_what_is_not_signed_by_the_provider_or_too_long_ago_is_refused(
    provider: Served, profile: str, changed: dict[str, Any]
) -> None:
    async def scenario(found: Models) -> None:
        response = await found.submit(a_request())
        at = time.time() + changed.get("late", 0)
        headers, body = signed(response, at=at, secret=changed.get("secret", SECRET))
        if "header" in changed:
            headers = {**headers, changed["header"][0]: changed["header"][1]}
        with pytest.raises(Unauthenticated):
            await found.heard(profile, headers, changed.get("body", body))

    of(provider, Reply("x"), scenario)
    assert len(provider.asked) == 1


def test_one_signature_of_several_is_enough_as_while_a_secret_is_replaced(provider: Served) -> None:
    async def scenario(found: Models) -> Any:
        response = await found.submit(a_request())
        headers, body = signed(response)
        several = f"v1,AAAA v0,{'A' * 44} {headers['webhook-signature']}"
        return await found.heard("openai", {**headers, "webhook-signature": several}, body)

    assert of(provider, Reply("x"), scenario) is not None


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b'{"type": "response.completed"}', b'{"type": "batch.completed", "data": {"id": "b"}}'],
)
def test_a_signed_event_about_something_else_is_nothing_of_ours(provider: Served, body: bytes) -> None:
    import base64
    import hashlib
    import hmac

    at = str(int(time.time()))
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    proof = base64.b64encode(hmac.new(key, f"w.{at}.".encode() + body, hashlib.sha256).digest()).decode()
    headers = {"webhook-id": "w", "webhook-timestamp": at, "webhook-signature": f"v1,{proof}"}

    async def scenario(found: Models) -> Any:
        return await found.heard("openai", headers, body)

    assert of(provider, Reply("x"), scenario) is None


@pytest.mark.parametrize(
    ("refusal", "code", "says"),
    [
        (
            Refusal(429, "rate_limit_exceeded", "Slow down.", headers={"Retry-After": "7"}),
            "rate_limited",
            "Slow",
        ),
        (Refusal(404, "", "Not Found"), "model_unavailable", "`background` needs"),
        (Refusal(400, "", "Unknown parameter: 'background'."), "bad_request", "`background` needs"),
        (Refusal(400, "context_length_exceeded", "Too long."), "context_exceeded", "Too long."),
        (Refusal(503, "", "Away."), "service_unavailable", "Away."),
    ],
)
def test_a_handover_that_is_refused_says_why_and_costs_nothing(
    provider: Served, refusal: Refusal, code: str, says: str
) -> None:
    async def scenario(found: Models) -> None:
        with pytest.raises(StepFailure) as caught:
            await found.submit(a_request())
        failure = caught.value
        assert (failure.code, bool(failure.happened)) == (code, False)
        assert says in failure.message
        assert KEY not in failure.message

    of(provider, refusal, scenario)


def test_a_look_that_is_refused_is_no_end_of_the_request(provider: Served) -> None:
    async def scenario(found: Models) -> ModelAnswer | None:
        response = await found.submit(a_request())
        for _ in range(2):
            with pytest.raises(StepFailure) as caught:
                await found.collect("m", response)
            assert not isinstance(caught.value, ModelFailure)
        return await found.collect("m", response)

    answer = of(provider, Reply("there", fault="away"), scenario)
    assert answer is not None
    assert answer.text == "there"


@pytest.mark.parametrize("reply", [Reply("", fault="filtered"), Reply("", refusal="I will not.", output=4)])
def test_what_is_filtered_or_refused_is_billed_by_what_it_has_used(provider: Served, reply: Reply) -> None:
    async def scenario(found: Models) -> None:
        with pytest.raises(ModelFailure) as caught:
            await asked(found)
        assert caught.value.code == "content_policy"
        assert caught.value.usage is not None

    of(provider, reply, scenario)


def test_a_provider_that_is_not_there_has_not_got_the_request() -> None:
    async def scenario() -> None:
        adapter = models("openai=http://127.0.0.1:9/v1")
        with pytest.raises(StepFailure) as caught:
            await adapter.submit(a_request())
        assert (caught.value.code, caught.value.happened) == ("connection_failed", None)
        await adapter.aclose()

    asyncio.run(scenario())


# ---- what is sent


def test_messages_are_items_and_equal_beginnings_are_equal_bytes() -> None:
    call = {"id": "t1-0", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    talk = (
        {"role": "system", "content": "Be brief."},
        USER,
        {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t1-0", "content": "3"},
    )
    tool = ToolOffer(name="look", description="Looks.", parameters={"type": "object"})
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    body = background_body_of(
        a_request(messages=talk, tools=(tool,), schema=schema, most_output=9, temperature=0.0), "m"
    )
    assert body["input"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "t1-0", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "t1-0", "output": "3"},
    ]
    assert (body["background"], body["store"], body["max_output_tokens"], body["temperature"]) == (
        True,
        True,
        9,
        0.0,
    )
    assert body["tools"][0] == {
        "type": "function",
        "name": "look",
        "description": "Looks.",
        "parameters": {"type": "object"},
        "strict": False,
    }
    assert body["text"]["format"] == {
        "type": "json_schema",
        "name": "answer",
        "schema": schema,
        "strict": True,
    }
    assert "".join(body["metadata"].values()) == LONG
    assert all(len(value) <= 512 for value in body["metadata"].values())
    first = background_body_of(a_request(messages=talk[:2]), "m")
    assert body["input"][: len(first["input"])] == first["input"]


def test_a_request_names_itself_by_its_key_and_carries_the_credential(provider: Served) -> None:
    of(provider, Reply("x"), asked)
    assert (provider.asked[0].key, provider.asked[0].authorization) == ("s/n/1", f"Bearer {KEY}")
