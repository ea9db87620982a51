"""Every form of a provider's answer is read as what it means: by the adapter, from a provider on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from baton.core.failures.codes import CODES
from baton.ports import StepFailure
from baton.ports.models import ModelRequest, ToolOffer
from examples.services.models import Asked, Refusal, Reply
from tests.contract.provider_forms import (
    COUNTED,
    FORMS,
    ROME,
    SSE,
    Answer,
    Form,
    called,
    sse,
    stream,
)
from tests.kit.provider import KEY, Served, models, served

MOST = (3_000, 500)
LOOK = ToolOffer(name="look", description="Looks.", parameters={"type": "object"})
PROMPT = {"role": "user", "content": "Where?"}


@pytest.fixture
def provider() -> Iterator[Served]:
    with served() as one:
        yield one


def asked_of(provider: Served, *requests: tuple[dict[str, Any], ...], **fields: Any) -> list[Any]:
    """Return the answers to requests with these messages, one after the other, or the failure of one."""

    async def asked() -> list[Any]:
        adapter, found = models(f"openai={provider.url}/v1"), list[Any]()
        try:
            for messages in requests:
                request = ModelRequest(
                    model="m", messages=messages, most_input=MOST[0], most_output=MOST[1], key="k", **fields
                )
                found.append(await adapter.answer(request))
        except StepFailure as failure:
            found.append(failure)
        finally:
            await adapter.aclose()
        return found

    return asyncio.run(asked())


@pytest.mark.parametrize(
    "form", [form for area in FORMS.values() for form in area], ids=lambda form: form.name
)
def test_a_form_is_read_as_what_it_means(form: Form, provider: Served) -> None:
    provider.script = lambda asked: Reply(
        raw=form.raw, status=form.status, headers={"content-type": form.media}
    )
    (found,) = asked_of(provider, (PROMPT,))
    if isinstance(form.meant, Answer):
        assert not isinstance(found, StepFailure), str(found)
        calls = tuple((call.name, call.arguments) for call in found.calls)
        assert (found.text, calls, found.finish) == form.meant[:3]
        assert (found.usage.input, found.usage.output) == (form.meant.tokens or MOST)
        assert len({call.id for call in found.calls}) == len(calls)
    else:
        assert isinstance(found, StepFailure), found
        assert (found.code, form.meant.says in found.message) == (form.meant.code, True), str(found)
        assert (bool(found.happened), found.code in CODES) == (form.meant.billed, True)
        assert KEY not in found.message


HELLO = Reply("hi", input=COUNTED[0], output=COUNTED[1])
RESULT = {"role": "tool", "tool_call_id": "t1-1", "content": "sunny"}


def refusing(status: int, message: str, takes: Callable[[Asked], bool]) -> Callable[[Asked], Reply | Refusal]:
    """A server that refuses what it does not take."""
    return lambda asked: (
        HELLO if takes(asked) else Refusal(status, message=message, type="invalid_request_error")
    )


def roles(asked: Asked) -> list[str]:
    return [one["role"] for one in asked.messages]


DEMANDS = {
    "the new name of the limit": refusing(
        400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'.",
        lambda asked: "max_completion_tokens" in asked.body and "max_tokens" not in asked.body,
    ),
    "no stream_options": refusing(
        422, "body.stream_options: Extra inputs are not permitted", lambda asked: "stream_options" not in asked.body
    ),
    "no user behind a result": refusing(
        400, "Unexpected role 'user' after role 'tool'", lambda asked: "tool user" not in " ".join(roles(asked))
    ),
    "roles that alternate": refusing(
        400, "Conversation roles must alternate user/assistant/user/assistant/...",
        lambda asked: "user user" not in " ".join(roles(asked)),
    ),
    "no schema": refusing(
        400, "This response_format type is unavailable now", lambda asked: "response_format" not in asked.body and "n" in str(asked.messages[0])
    ),
}  # fmt: skip


@pytest.mark.parametrize("demand", DEMANDS)
def test_what_a_server_refuses_is_sent_in_another_form_and_from_then_on_at_once(
    demand: str, provider: Served
) -> None:
    provider.script = DEMANDS[demand]
    first = (
        PROMPT,
        *turn("{}"),
        RESULT,
        {"role": "user", "content": "And?"},
        {"role": "user", "content": "Well?"},
    )
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    one, two = asked_of(provider, first, (*first, {"role": "user", "content": "Hello?"}), schema=schema)
    assert (one.text, two.text) == ("hi", "hi")
    assert len(provider.asked) == 3, "the first one twice"
    said = [asked.body["messages"] for asked in provider.asked[1:]]
    assert said[1][: len(said[0])] == said[0], "what they share is the same"


def turn(arguments: str, **more: Any) -> tuple[dict[str, Any], ...]:
    call = {"id": "t1-1", "type": "function", "function": {"name": "look", "arguments": arguments}}
    return ({"role": "assistant", "content": None, "tool_calls": [call], **more},)


def test_what_no_other_form_helps_is_the_servers_refusal(provider: Served) -> None:
    provider.script = refusing(
        400, "max_tokens is not supported, nor is max_completion_tokens", lambda asked: False
    )
    (found,) = asked_of(provider, (PROMPT,))
    assert (found.code, len(provider.asked)) == ("bad_request", 2)


SIGNED = {"google": {"thought_signature": "c2ln"}}
THINKING: dict[str, list[Any]] = {
    "reasoning_content": [{"reasoning_content": "Rome, "}, {"reasoning_content": "I think."}],
    "reasoning_details": [
        {"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "Rome, "}]},
        {"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "I think.", "signature": "s"}]},
        {"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "", "signature": None}]},
    ],
}
ECHOED = {
    "reasoning_content": "Rome, I think.",
    "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "Rome, I think.", "signature": "s"}],
}


@pytest.mark.parametrize("field", [*THINKING, "extra_content"])
def test_what_a_provider_wants_back_with_its_calls_is_sent_back_to_it_alone(
    field: str, provider: Served
) -> None:
    call = {**called(0, "a", "look", ROME), **({"extra_content": SIGNED} if field == "extra_content" else {})}
    raw = stream(*THINKING.get(field, []), {"tool_calls": [call]}, finish="tool_calls")
    provider.script = lambda asked: Reply(raw=raw) if asked.n == 1 else HELLO
    (answer,) = asked_of(provider, (PROMPT,))
    (_,) = asked_of(provider, (PROMPT, *turn(ROME, echo=answer.echo), RESULT))
    sent = provider.asked[-1].messages[1]
    if field == "extra_content":
        assert sent["tool_calls"][0]["extra_content"] == SIGNED
    else:
        assert sent[field] == ECHOED[field]
    assert "echo" not in sent
    (_,) = asked_of(provider, (PROMPT, *turn(ROME, echo={**answer.echo, "profile": "other"}), RESULT))
    assert provider.asked[-1].messages[1] == turn(ROME)[0]


def test_thinking_without_calls_is_not_kept(provider: Served) -> None:
    provider.script = lambda asked: Reply(raw=stream({"reasoning_content": "hm"}, {"content": "hi"}))
    (answer,) = asked_of(provider, (PROMPT,))
    assert answer.echo is None


@pytest.mark.parametrize("size", [1, 3, 17, 64])
def test_a_form_means_the_same_in_pieces_of_any_size(size: int) -> None:
    from baton.adapters.models.answers import parts_of

    raw = sse(": wait\n\n", {"a": "ü\n"}, "event: ping\ndata: {}\n\n", {"b": [1]}).replace(
        b"\n\n", b"\r\n\r\n", 1
    )

    async def pieces() -> Any:
        for at in range(0, len(raw), size):
            yield raw[at : at + size]

    async def read() -> list[Any]:
        return [part async for part in parts_of(pieces(), "host", SSE)]

    assert asyncio.run(read()) == [{"a": "ü\n"}, {}, {"b": [1]}, "[DONE]"]
