"""Requests to Anthropic and Bedrock, and their answers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from baton.adapters.models.dialects import DIALECTS
from baton.adapters.models.profiles import Profiles
from baton.adapters.models.requests import background_body_of, body_of
from baton.ports import StepFailure
from baton.ports.models import CALLS, ToolOffer
from examples.services import concierge
from examples.services.dialects import frame
from examples.services.models import Asked, Refusal, Reply
from tests.contract.provider_forms import sse
from tests.kit.provider import KEY, Served, models
from tests.kit.sentences import Says
from tests.models.asking import a_request, ask, failure

LOOK = ToolOffer(name="look", description="Looks.", parameters={"type": "object"})
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
CALL = {"id": "t1-1", "type": "function", "function": {"name": "look", "arguments": '{"at":1}'}}
THOUGHT = {"index": 0, "type": "thinking", "thinking": "hm", "signature": "s"}
ECHO = {"profile": "p", "message": {"reasoning_details": [THOUGHT]}, "calls": {}}
TALK = (
    {"role": "system", "content": "You look."},
    {"role": "user", "content": "Where?"},
    {"role": "assistant", "content": "I look.", "tool_calls": [CALL], "echo": ECHO},
    {"role": "tool", "tool_call_id": "t1-1", "content": "here"},
    {"role": "user", "content": "And?"},
)


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")


def body(dialect: str, **fields: Any) -> dict[str, Any]:
    scheme = f"{dialect}+https" if dialect else "https"
    profile, _ = Profiles(f"p={scheme}://{dialect or 'a'}.example/v1", region="eu-west-1").of("m")
    request = a_request(
        **{
            "messages": TALK,
            "tools": (LOOK,),
            "most_output": 9,
            "temperature": 0.5,
            "model": "anthropic.m",
            **fields,
        }
    )
    return DIALECTS[dialect].body(body_of(request, request.model, profile))


KEEP = {"cache_control": {"type": "ephemeral"}}


def test_a_request_to_anthropic_has_its_thinking_back_and_marks_what_is_to_be_kept() -> None:
    assert body("anthropic") == {
        "model": "anthropic.m",
        "stream": True,
        "max_tokens": 9,
        "temperature": 0.5,
        "tools": [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}],
        "system": [{"type": "text", "text": "You look.", **KEEP}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Where?"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "t1-1", "name": "look", "input": {"at": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1-1", "content": "here"},
                    {"type": "text", "text": "And?", **KEEP},
                ],
            },
        ],
    }


def test_a_request_to_bedrock_has_the_same_in_its_words() -> None:
    mark = {"cachePoint": {"type": "default"}}
    thought = {**ECHO, "message": {"reasoning_details": [{"index": 0, "text": "hm", "signature": "s"}]}}
    talk = (*TALK[:2], {**TALK[2], "echo": thought}, *TALK[3:])
    assert body("bedrock", messages=talk) == {
        "inferenceConfig": {"maxTokens": 9, "temperature": 0.5},
        "toolConfig": {
            "tools": [
                {
                    "toolSpec": {
                        "name": "look",
                        "description": "Looks.",
                        "inputSchema": {"json": {"type": "object"}},
                    }
                }
            ]
        },
        "system": [{"text": "You look."}, mark],
        "messages": [
            {"role": "user", "content": [{"text": "Where?"}]},
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
                    {"text": "I look."},
                    {"toolUse": {"toolUseId": "t1-1", "name": "look", "input": {"at": 1}}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": "t1-1", "content": [{"text": "here"}]}},
                    {"text": "And?"},
                    mark,
                ],
            },
        ],
    }


@pytest.mark.parametrize("dialect", ["anthropic", "bedrock"])
def test_a_request_without_tools_is_marked_nowhere_and_says_its_schema_in_words(dialect: str) -> None:
    made = body(dialect, messages=(TALK[1],), tools=(), schema=SCHEMA)
    assert "cache" not in str(made)
    (system,) = made["system"]
    assert '"type": "integer"' in system["text"]


STRICT = {
    "type": "object",
    "properties": {"n": {"type": "integer", "description": "How many."}},
    "required": ["n"],
    "additionalProperties": False,
}
NATIVE = {
    "anthropic": {"output_config": {"format": {"type": "json_schema", "schema": STRICT}}},
    "bedrock": {
        "outputConfig": {
            "textFormat": {
                "type": "json_schema",
                "structure": {"jsonSchema": {"name": "answer", "schema": json.dumps(STRICT)}},
            }
        }
    },
}


@pytest.mark.parametrize("dialect", NATIVE)
def test_a_strict_schema_is_a_rule_to_the_provider(dialect: str) -> None:
    made = body(dialect, schema=STRICT)
    assert made.items() >= NATIVE[dialect].items()
    assert "integer" not in str(made["system"])
    bounded = {**STRICT, "properties": {"n": {"type": "integer", "minimum": 1}}}
    assert "minimum" in str(body(dialect, schema=bounded)["system"]), "a bound is a rule to OpenAI alone"


REFUSED_SCHEMAS = [
    ("anthropic", "output_config.format: Extra inputs are not permitted"),
    ("anthropic", "'m' does not support output format."),
    ("anthropic", "Schema is too complex for compilation."),
    ("bedrock", "This model doesn't support the outputConfig.textFormat field."),
]


@pytest.mark.parametrize(("dialect", "said"), REFUSED_SCHEMAS)
def test_a_schema_that_is_refused_as_a_rule_is_said_in_words(
    dialect: str, said: str, provider: Served
) -> None:
    provider.script = lambda asked: Refusal(400, "x", said) if asked.n == 1 else Reply('{"n": 1}')
    adapter = models(profile_of(dialect, provider.url))
    request = a_request(schema=STRICT, messages=TALK, tools=(LOOK,), model="anthropic.m")
    assert [answer.text for answer in ask(adapter, request, request)] == ['{"n": 1}'] * 2
    assert len(provider.asked) == 3, "it is refused once"
    for asked in provider.asked[1:]:
        assert not NATIVE[dialect].keys() & asked.body.keys()
        assert ['"additionalProperties"' in one["content"] for one in asked.messages[:2]] == [True, False]


@pytest.mark.parametrize("dialect", ["anthropic", "bedrock"])
def test_a_conversation_goes_on_in_the_words_that_it_began_with(dialect: str) -> None:
    one, two = body(dialect, messages=TALK[:2]), body(dialect)
    assert str(two["messages"])[1:].startswith(str(one["messages"][0])[:40])
    assert (two["system"], two.get("tools")) == (one["system"], one.get("tools"))


def profile_of(dialect: str, url: str) -> str:
    return f"p={dialect}+{url}" + ("" if dialect == "bedrock" else "/v1")


def test_anthropic_gets_the_credential_under_its_own_name(provider: Served) -> None:
    provider.script = lambda asked: Reply("hi")
    (answer,) = ask(models(profile_of("anthropic", provider.url)), a_request())
    sent = provider.asked[0].headers
    assert (answer.text, sent["x-api-key"], sent["anthropic-version"]) == ("hi", KEY, "2023-06-01")
    assert "authorization" not in sent


def test_bedrock_is_asked_by_the_signature_of_the_role_or_by_a_key_of_its_own(provider: Served) -> None:
    provider.script = lambda asked: Reply("hi")

    def key_of(_: str) -> str:
        return key

    for key, begins in (("", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"), (KEY, f"Bearer {KEY}")):
        model = "eu.anthropic.claude-x-v1:0"
        adapter = models(profile_of("bedrock", provider.url), key_of)
        (answer,) = ask(adapter, a_request(model=model))
        sent = provider.asked[-1].headers
        assert (answer.text, provider.asked[-1].model) == ("hi", model)
        assert sent["authorization"].startswith(begins)
        assert ("/eu-central-1/bedrock/aws4_request" in sent["authorization"]) == (not key)


FRAMES = {"content-type": "application/vnd.amazon.eventstream"}
EVENTS: list[tuple[str, dict[str, Any]]] = [
    ("messageStart", {"role": "assistant"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "h"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "m"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "s"}}}),
    ("contentBlockStop", {"contentBlockIndex": 0}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"reasoningContent": {"redactedContent": "d"}}}),
    ("contentBlockStart", {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "a", "name": "look"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '{"at"'}}}),
    ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": ":1}"}}}),
    ("messageStop", {"stopReason": "tool_use"}),
    ("metadata", {"usage": {"inputTokens": 7, "outputTokens": 5, "totalTokens": 12}}),
]
THINKS = {
    "anthropic": sse(
        {"type": "message_start", "message": {"id": "m1", "model": "m", "usage": {"input_tokens": 7, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "h"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "m"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "d"}},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "a", "name": "look", "input": {}}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"at"'}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ":1}"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
        end="",
    ),
    "bedrock": b"".join(frame(kind, data) for kind, data in EVENTS),
}  # fmt: skip
BACK: dict[str, list[Any]] = {
    "anthropic": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
    ],
    "bedrock": [
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
        {"reasoningContent": {"redactedContent": "d"}},
    ],
}


@pytest.mark.parametrize("dialect", THINKS)
def test_thinking_comes_back_with_the_calls_that_it_has_led_to(dialect: str, provider: Served) -> None:
    media = FRAMES if dialect == "bedrock" else {}
    provider.script = lambda asked: Reply(raw=THINKS[dialect], headers=media) if asked.n == 1 else Reply("hi")
    (answer,) = ask(models(profile_of(dialect, provider.url)), a_request(tools=(LOOK,)))
    assert (answer.finish, answer.text, answer.usage.input, answer.usage.output) == (CALLS, "", 7, 5)
    assert [(call.id, call.name, call.arguments) for call in answer.calls] == [("a", "look", '{"at":1}')]
    talk = ({**TALK[1]}, {**TALK[2], "echo": answer.echo}, TALK[3])
    ask(models(profile_of(dialect, provider.url)), a_request(messages=talk, tools=(LOOK,)))
    sent = [
        one["block"] for one in provider.asked[-1].messages if one["role"] == "assistant" and "block" in one
    ]
    assert sent[:2] == BACK[dialect]


@pytest.mark.parametrize("dialect", ["", "anthropic", "bedrock"])
def test_the_model_of_the_demonstration_speaks_each_dialect(dialect: str, provider: Served) -> None:
    provider.script = concierge.plan
    url = f"p={provider.url}/v1" if not dialect else profile_of(dialect, provider.url)
    words = json.dumps({"words": "For four in Graz, something Greek.", "at": "2026-12-24T19:30:00Z"})
    request = a_request(words, tools=(LOOK,), schema=STRICT)
    (answer,) = ask(models(url, lambda _: "scripted"), request)
    assert (answer.finish, [call.name for call in answer.calls]) == (CALLS, ["table_search"])
    assert json.loads(answer.calls[0].arguments)["city"] == "Graz"


WHOLE: dict[str, dict[str, Any]] = {
    "anthropic": {
        "id": "m1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "a", "name": "look", "input": {"at": 1}},
        ],
        "usage": {"input_tokens": 7, "output_tokens": 5},
    },
    "bedrock": {
        "output": {
            "message": {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
                    {"text": "I look."},
                    {"toolUse": {"toolUseId": "a", "name": "look", "input": {"at": 1}}},
                ],
            }
        },
        "stopReason": "tool_use",
        "usage": {"inputTokens": 7, "outputTokens": 5, "totalTokens": 12},
    },
}  # fmt: skip


@pytest.mark.parametrize("dialect", WHOLE)
def test_an_answer_that_comes_whole_is_like_one_of_a_stream(dialect: str, provider: Served) -> None:
    raw = json.dumps(WHOLE[dialect]).encode()
    provider.script = lambda asked: Reply(raw=raw, headers={"content-type": "application/json"})
    (answer,) = ask(models(profile_of(dialect, provider.url)), a_request(tools=(LOOK,)))
    assert (answer.finish, answer.text, answer.usage.input, answer.usage.output) == (CALLS, "I look.", 7, 5)
    assert [(call.id, call.name, call.arguments) for call in answer.calls] == [("a", "look", '{"at":1}')]
    talk = ({**TALK[1]}, {**TALK[2], "echo": answer.echo}, TALK[3])
    again = body(dialect, messages=talk) if answer.echo["profile"] == "p" else {}
    assert again["messages"][1]["content"][0] == BACK[dialect][0]


ERRORS = [
    ("anthropic", Refusal(400, message="prompt is too long: 9 tokens > 8 maximum", type="invalid_request_error"), "context_exceeded"),
    ("anthropic", Refusal(529, message="Overloaded", type="overloaded_error"), "service_unavailable"),
    ("anthropic", Refusal(401, message="invalid x-api-key", type="authentication_error"), "unauthorized"),
    ("bedrock", Refusal(400, "ValidationException", "Input is too long for requested model."), "context_exceeded"),
    ("bedrock", Refusal(400, "ValidationException", "The provided model identifier is invalid."), "model_unavailable"),
    ("bedrock", Refusal(403, "AccessDeniedException", "You don't have access to the model."), "forbidden"),
    ("bedrock", Refusal(404, "ResourceNotFoundException", "This model version has reached its end."), "model_unavailable"),
    ("bedrock", Refusal(408, "ModelTimeoutException", "Too slow."), "timeout"),
    ("bedrock", Refusal(429, "ThrottlingException", "Too many tokens, please wait before trying again."), "rate_limited"),
    ("bedrock", Refusal(503, "ServiceUnavailableException", "Later."), "service_unavailable"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "refusal", "code"), ERRORS)
def test_a_refusal_of_a_dialect_has_the_code_of_the_matrix(
    dialect: str, refusal: Refusal, code: str, provider: Served
) -> None:
    provider.script = lambda asked: refusal
    found = failure(models(profile_of(dialect, provider.url)))
    assert (found.code, bool(found.happened), len(provider.asked)) == (code, False, 1), str(found)


def test_what_an_operator_can_do_about_bedrock_is_said(provider: Served, says: Says) -> None:
    for refusal in (ERRORS[4][1], ERRORS[5][1]):
        provider.script = lambda asked, one=refusal: one  # type: ignore[misc]  # bound here
        says(failure(models(profile_of("bedrock", provider.url))).message)


def test_an_error_between_the_frames_is_that_error_and_is_billed(provider: Served) -> None:
    raw = frame("messageStart", {"role": "assistant"}) + frame(
        "throttlingException", {"message": "Slow down."}, is_error=True
    )
    for body_, code in ((raw, "rate_limited"), (raw[:-3] + b"abc", "invalid_response")):
        provider.script = lambda asked, one=body_: Reply(raw=one, headers=FRAMES)  # type: ignore[misc]  # bound here
        found = failure(models(profile_of("bedrock", provider.url)))
        assert (found.code, found.happened) == (code, True), str(found)


def test_an_error_in_a_stream_of_anthropic_is_that_error(provider: Served) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    provider.script = lambda asked: Reply(raw=sse(error, end=""))
    found = failure(models(profile_of("anthropic", provider.url)))
    assert (found.code, bool(found.happened)) == ("service_unavailable", False)


@pytest.mark.parametrize("dialect", ["anthropic", "bedrock"])
def test_a_request_in_the_background_is_not_sent_where_there_is_none(
    dialect: str, provider: Served, says: Says
) -> None:
    with pytest.raises(StepFailure) as caught:
        asyncio.run(models(profile_of(dialect, provider.url)).submit(a_request(token="t")))
    assert (caught.value.code, provider.asked) == ("model_unavailable", [])
    says(caught.value.message)


def test_a_server_that_keeps_nothing_is_asked_without_marks(provider: Served) -> None:
    provider.script = lambda asked: (
        Refusal(403, "AccessDeniedException", "Your request did not allow prompt caching: unsupported model.")
        if "cachePoint" in str(asked.body)
        else Reply("hi")
    )
    (answer,) = ask(
        models(profile_of("bedrock", provider.url)),
        a_request(model="anthropic.old", messages=TALK, tools=(LOOK,)),
    )
    assert (answer.text, len(provider.asked)) == ("hi", 2)


ADAPTIVE = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}


def budget(tokens: int) -> dict[str, Any]:
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}


THOUGHT_OF = [
    ("anthropic.m", "high", ADAPTIVE),
    ("anthropic.m", 2_000, budget(2_000)),
    ("anthropic.m", 3_000, budget(2_744)),  # 256 tokens are for the answer
    ("amazon.nova-2-lite-v1:0", "high", {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}}),
    ("openai.gpt-oss-120b-1:0", 2_048, {"reasoning_effort": "low"}),
    ("openai.gpt-oss-120b-1:0", 2_049, {"reasoning_effort": "medium"}),
    ("openai.gpt-oss-120b-1:0", 8_193, {"reasoning_effort": "high"}),
]  # fmt: skip


@pytest.mark.parametrize(("model", "wish", "fields"), THOUGHT_OF)
def test_a_model_is_asked_to_think_in_the_words_of_its_family(
    model: str, wish: str | int, fields: dict[str, Any]
) -> None:
    said = {"temperature": None, "most_output": 3_000, "thinking": wish}
    assert body("bedrock", model=model, **said)["additionalModelRequestFields"] == fields
    if model == "anthropic.m":
        assert body("anthropic", **said).items() >= fields.items()
    effort = body("", **said)["reasoning_effort"]
    assert effort in ("low", "medium", "high")
    assert [*body("", **said)][-1] == "messages", "what the requests of a conversation share comes first"
    made = background_body_of(a_request(thinking=wish), "m")
    assert made["reasoning"] == {"effort": effort}


def test_thinking_that_the_answer_has_no_room_for_is_left_out() -> None:
    for dialect in ("anthropic", "bedrock"):
        made = body(dialect, most_output=1_200, thinking=1_024)
        assert "thinking" not in made
        assert "additionalModelRequestFields" not in made
    assert body("anthropic", thinking="low", schema=STRICT)["output_config"].keys() == {"effort", "format"}


OLDER = "This model does not support the effort parameter."
NEWER = '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive".'
REFUSES_THINKING = [
    ("anthropic", "high", [OLDER], [ADAPTIVE, budget(3_000)]),
    ("anthropic", 2_000, [NEWER], [budget(2_000), {**ADAPTIVE, "output_config": {"effort": "low"}}]),
    ("anthropic", "high", [OLDER, "thinking is not supported"], [ADAPTIVE, budget(3_000), {}]),
    (
        "anthropic",
        "high",
        ["effort is wrong", "enabled is wrong", "effort is wrong"],
        [ADAPTIVE, budget(3_000), {**ADAPTIVE, "output_config": {"effort": "medium"}}, {}],
    ),
    ("", "low", ["Unrecognized request argument supplied: reasoning_effort"], [{"reasoning_effort": "low"}, {}]),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "wish", "refusals", "forms"), REFUSES_THINKING)
def test_a_model_that_refuses_a_form_of_thinking_gets_the_other_or_none(
    dialect: str, wish: str | int, refusals: list[str], forms: list[dict[str, Any]], provider: Served
) -> None:
    def script(asked: Asked) -> Refusal | Reply:
        return Refusal(400, "x", refusals[asked.n - 1]) if asked.n <= len(refusals) else Reply("hi")

    provider.script = script
    scheme = f"p={dialect}+{provider.url}/v1" if dialect else f"p={provider.url}/v1"
    request = a_request(thinking=wish, most_output=4_000)
    ask(models(scheme), request, request)
    names = {"thinking", "output_config", "reasoning_effort"}
    sent = [{name: value for name, value in one.body.items() if name in names} for one in provider.asked]
    assert sent == [*forms, forms[-1]], "it is learned"


def test_requests_beside_each_other_learn_the_same(provider: Served) -> None:
    both_are_here = asyncio.Barrier(2)

    async def refuse(asked: Asked) -> Refusal:
        await both_are_here.wait()
        return Refusal(400, "x", "reasoning_effort is not supported")

    provider.script = lambda asked: refuse(asked) if "reasoning_effort" in asked.body else Reply("hi")
    adapter = models(f"p={provider.url}/v1")

    async def both() -> list[Any]:
        await adapter.answer(a_request())  # which makes the client that both use
        return await asyncio.gather(*(adapter.answer(a_request(thinking="low")) for _ in range(2)))

    assert [answer.text for answer in asyncio.run(both())] == ["hi", "hi"]
