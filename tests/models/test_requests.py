"""What is sent: the fields of the API, the same bytes for the same beginning, and nothing of the environment."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.adapters.models.profiles import Profiles
from baton.adapters.models.requests import body_of, is_enforced
from baton.ports.models import ToolOffer
from examples.services.models import Reply
from tests.kit.provider import KEY, Served
from tests.models.asking import a_request, adapter_of, ask

OPENAI, _ = Profiles("openai").of("m")
STRICT = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
    "required": ["n", "tags"],
    "additionalProperties": False,
}


def sent(provider: Served, **fields: Any) -> dict[str, Any]:
    provider.script = lambda asked: Reply("x")
    ask(adapter_of(provider.url), a_request(**fields))
    return dict(provider.asked[-1].body)


def test_a_plain_request_says_no_more_than_it_must(provider: Served) -> None:
    assert sent(provider) == {
        "model": "gpt-5-mini",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_tools_schema_limit_and_temperature_are_sent_as_the_api_names_them(provider: Served) -> None:
    tool = ToolOffer(name="look", description="Looks.", parameters={"type": "object"})
    body = sent(provider, tools=(tool,), schema=STRICT, most_output=99, temperature=0.0)
    assert body["tools"] == [
        {
            "type": "function",
            "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}},
        }
    ]
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": STRICT, "strict": True},
    }
    assert (body["max_tokens"], body["temperature"]) == (99, 0.0)


def test_the_key_of_a_request_is_its_idempotency_key_and_the_credential_its_authorization(
    provider: Served,
) -> None:
    sent(provider, key="saga-1/plan/t1")
    assert (provider.asked[-1].key, provider.asked[-1].authorization) == ("saga-1/plan/t1", f"Bearer {KEY}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OPENAI_ORG_ID", "org-of-the-shell"),
        ("OPENAI_PROJECT_ID", "project-of-the-shell"),
        ("OPENAI_CUSTOM_HEADERS", "X-Secret: of-the-shell"),
        ("OPENAI_API_KEY", "key-of-the-shell"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:1/of-the-shell"),
        ("HTTP_PROXY", "http://127.0.0.1:1/of-the-shell"),
        ("ALL_PROXY", "http://127.0.0.1:1/of-the-shell"),
    ],
)
def test_nothing_of_the_environment_is_sent_and_no_proxy_is_used(
    name: str, value: str, provider: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for allowed in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(allowed, raising=False)
    monkeypatch.setenv(name, value)
    sent(provider)
    assert "of-the-shell" not in str(provider.asked[-1].headers)
    assert set(provider.asked[-1].headers) <= {
        "host", "accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "user-agent",
    }  # fmt: skip
    assert provider.asked[-1].headers["user-agent"].startswith("Baton/")


def test_requests_of_one_conversation_begin_with_the_same_bytes() -> None:
    tool = ToolOffer(name="look", description="Looks.", parameters={"type": "object"})
    first = ({"role": "system", "content": "You plan."}, {"role": "user", "content": "dinner"})
    second = (*first, {"role": "assistant", "content": "Where?"}, {"role": "user", "content": "here"})
    one, two = (
        json.dumps(body_of(a_request(messages=messages, tools=(tool,), schema=STRICT), "m", OPENAI))
        for messages in (first, second)
    )
    assert two.startswith(one.removesuffix("]}"))


@pytest.mark.parametrize(
    ("schema", "enforced"),
    [
        (STRICT, True),
        ({**STRICT, "additionalProperties": True}, False),
        ({**STRICT, "required": ["n"]}, False),
        ({**STRICT, "oneOf": []}, False),
        ({"type": "array", "items": STRICT}, False),
        ({**STRICT, "properties": {"n": {"anyOf": [{"type": "null"}, STRICT]}, "tags": STRICT}}, True),
        ({**STRICT, "properties": {"n": {"anyOf": [{"type": "object"}]}, "tags": STRICT}}, False),
        ({**STRICT, "properties": {"n": True, "tags": STRICT}}, False),
        ({"$ref": "#/x"}, False),
        (True, False),
    ],
)
def test_a_schema_is_a_rule_to_the_provider_where_it_is_one_that_providers_take(
    schema: Any, enforced: bool
) -> None:
    assert is_enforced(schema) is enforced
