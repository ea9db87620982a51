"""The scripted provider of models as a program, with the script that it has by itself."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from jsonschema_rs import is_valid

from examples.services.models import example_of
from tests.example.conftest import Start

LOOK = {
    "type": "object",
    "properties": {"at": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["at"],
}
ANSWER = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


def offered(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": "", "parameters": LOOK}}


def test_it_calls_each_tool_once_and_then_answers_by_the_schema(start_service: Start) -> None:
    url = start_service("models", "--delay", "all=0")
    assert httpx.get(f"{url}/health").json() == {"status": "ok", "service": "models"}
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    body = {
        "model": "m",
        "messages": messages,
        "tools": [offered("one"), offered("two")],
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": ANSWER}},
    }
    called = []
    for _ in range(3):
        answer = httpx.post(f"{url}/v1/chat/completions", json=body).json()["choices"][0]
        messages.append(answer["message"])
        for call in answer["message"].get("tool_calls") or ():
            called.append((call["function"]["name"], call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": "seen"})
    assert called == [("one", '{"at": "x"}'), ("two", '{"at": "x"}')]
    assert messages[-1]["content"] == '{"ok": true}'
    assert httpx.get(f"{url}/books").json()["summary"]["effects"] == 3


def test_the_same_requests_have_the_same_answers_and_every_nth_is_refused(start_service: Start) -> None:
    def answers() -> list[Any]:
        url = start_service("models", "--delay", "all=0", "--busy-every", "2")
        body = {"model": "m", "messages": [{"role": "user", "content": "go"}]}
        found = [httpx.post(f"{url}/v1/chat/completions", json=body) for _ in range(2)]
        assert found[1].headers["retry-after"] == "1"
        return [(one.status_code, one.json()) for one in found]

    first = answers()
    assert [status for status, _ in first] == [200, 429]
    assert answers() == first


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "array", "items": ANSWER, "minItems": 2}}},
        {"enum": ["b", "c"]},
        {"const": 4},
        {"type": "integer", "minimum": 7},
        {"type": ["string", "null"], "minLength": 3},
        {"anyOf": [LOOK, {"type": "null"}]},
        {"type": "number", "default": 2.5},
        {"type": "null"},
        True,
    ],
)
def test_an_example_is_allowed_by_its_schema(schema: Any) -> None:
    assert is_valid(schema, example_of(schema))
