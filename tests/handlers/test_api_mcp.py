"""`/mcp`: the API as tools, by JSON-RPC and for the official SDK's client. A caller may do there what it may do elsewhere."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from baton.errors import StoreUnavailable, TooManyRequests
from baton.runtime.requests.queries import MAX_SHOWN, Queries
from baton.web import mcp as served
from tests.handlers.deployment import Deployment
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, PARTY, begin
from tests.handlers.test_api_questions import DOCUMENT, asking

PARAMETERS = {"AppModule": "tests.kit.app.trial"}
GREET = """
name: greet
description: Greet a guest.
mcp: true
input: {type: object, required: [name], properties: {name: {type: string}}, additionalProperties: false}
nodes:
  say: {tool: trial.echo, with: {value: "${input.name}"}}
output: "${ctx.say.output}"
"""
NOT_OFFERED = GREET.replace("greet", "hide").replace("mcp: true\n", "")
OWN = ["list_workflows", "start_saga", "watch_saga", "signal_saga", "answer_question", "cancel_saga"]


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses between looks at a saga, which take no time."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(served, "asyncio", SimpleNamespace(sleep=sleep))
    return pauses


def rpc(http: Http, method: str, params: Any = None, **options: Any) -> dict[str, Any]:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    answer = http.post("/mcp", body, **options)
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.body
    assert (found["jsonrpc"], found["id"]) == ("2.0", 1)
    return found


def call(http: Http, tool: str, /, *, of: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    answer = rpc(http, "tools/call", {"name": tool, "arguments": arguments}, **of or {})
    found: dict[str, Any] = answer.get("result") or answer["error"]
    return found


def names(http: Http, **options: Any) -> list[str]:
    return [one["name"] for one in rpc(http, "tools/list", **options)["result"]["tools"]]


def test_the_session_begins_as_the_protocol_says_and_has_no_id(http: Http) -> None:
    for wanted, spoken in (("2025-06-18", "2025-06-18"), ("2031-01-01", "2025-11-25"), (None, "2025-11-25")):
        result = rpc(http, "initialize", {"protocolVersion": wanted})["result"]
        assert (result["protocolVersion"], result["capabilities"]) == (spoken, {"tools": {}})
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert http.post("/mcp", told).status == 202
    assert rpc(http, "ping")["result"] == {}
    assert rpc(http, "resources/list")["error"]["code"] == -32601
    assert http.get("/mcp").status == 405
    http.post("/mcp", told, headers={"mcp-protocol-version": "1.0"}).problem(400, "bad-request")
    http.post("/mcp", [told]).problem(422, "invalid-input")


def test_a_workflow_is_a_tool_where_its_document_says_so(http: Http) -> None:
    http.register(GREET)
    http.register(NOT_OFFERED)
    (tool,) = [one for one in rpc(http, "tools/list")["result"]["tools"] if one["name"] not in OWN]
    assert tool["name"] == "greet"
    assert tool["description"].startswith("Greet a guest.")
    assert tool["inputSchema"]["required"] == ["name"]
    http.register(GREET.replace("mcp: true", "mcp: false"))
    assert names(http) == OWN
    assert call(http, "greet", name="Ada")["code"] == -32602
    assert call(http, "hide", name="Ada")["code"] == -32602


@pytest.mark.parametrize(
    ("roles", "shown"),
    [
        ("[read]", ["list_workflows", "watch_saga"]),
        ("[run]", ["start_saga", "signal_saga", "cancel_saga", "greet"]),
        ("[answer]", ["signal_saga", "answer_question"]),
        ("[operate]", ["answer_question"]),
    ],
)
def test_a_caller_sees_and_calls_the_tools_of_its_roles(roles: str, shown: list[str], http: Http) -> None:
    http.register(GREET)
    begin(http.engine, ADA, PARTY)
    assert names(http, roles=roles) == shown
    given = {"saga": ADA.id, "name": "guests_changed", "ask": "a", "action": "approve", "workflow": "greet"}
    for tool in {*OWN, "greet"} - {*shown}:
        route = {"watch_saga": ["saga"], "signal_saga": ["saga", "name"], "cancel_saga": ["saga"]}
        takes = {
            "list_workflows": [],
            "start_saga": ["workflow"],
            "answer_question": ["saga", "ask", "action"],
        }
        arguments = {name: given[name] for name in (route | takes).get(tool, ["name"])}
        refused = call(http, tool, of={"roles": roles}, **arguments)
        assert refused["isError"] is True, tool
        assert '"status": 403' in refused["content"][0]["text"]


def test_another_tenants_caller_finds_nothing(http: Http) -> None:
    http.register(GREET)
    begin(http.engine, ADA, PARTY)
    assert names(http, tenant="globex") == OWN
    for tool in ("watch_saga", "cancel_saga"):
        assert '"status": 404' in call(http, tool, of={"tenant": "globex"}, saga=ADA.id)["content"][0]["text"]
    assert call(http, "greet", of={"tenant": "globex"}, name="Ada")["code"] == -32602


def test_a_started_saga_is_returned_after_a_wait_and_once_for_a_key(http: Http, slept: list[float]) -> None:
    http.register(GREET)
    first = call(http, "greet", of={"key": "k"}, name="Ada")["structuredContent"]
    again = call(http, "greet", of={"key": "k"}, name="Ada")["structuredContent"]
    assert (first["workflow"], first["status"]) == ("greet", "running")
    assert again["id"] == first["id"]
    assert sum(slept) == pytest.approx(10)
    one = call(http, "start_saga", workflow="greet", input={"name": "Ada"}, idempotency_key="l", wait_s=0)
    two = call(http, "start_saga", workflow="greet", input={"name": "Ada"}, idempotency_key="l", wait_s=0)
    assert one["structuredContent"]["id"] == two["structuredContent"]["id"] != first["id"]
    refused = call(http, "greet", nmae="Ada")
    assert refused["isError"] is True
    assert "/input" in refused["content"][0]["text"]
    assert (
        call(http, "start_saga", of={"roles": "[run]"}, workflow="greet", input={"name": "A"})["isError"]
        is False
    )


def test_a_watched_saga_shows_its_questions_and_is_answered_signalled_and_cancelled(
    http: Http, deployment: Deployment
) -> None:
    asking(http)
    seen = call(http, "watch_saga", saga=ADA.id)["structuredContent"]
    assert (seen["status"], [one["id"] for one in seen["questions"]]) == ("suspended", ["0.form"])
    said = {"saga": ADA.id, "ask": "0.form", "action": "submit", "data": {"seats": 4}}
    ada = {"roles": "[answer]"}
    assert call(http, "answer_question", of=ada, **said)["isError"] is True, "she is not in the group"
    eve = {"user": "eve", "roles": "[operate]"}
    assert call(http, "answer_question", of=eve, **said)["structuredContent"]["changed"] is True
    assert call(http, "signal_saga", saga=ADA.id, name="no", payload=1)["isError"] is True
    assert call(http, "cancel_saga", saga=ADA.id, reason="enough")["isError"] is False


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("watch_saga", {"saga": ADA.id, "wait_s": 21}),
        ("watch_saga", {"saga": ADA.id, "wait_s": "1"}),
        ("watch_saga", {"saga": ADA.id, "more": 1}),
        ("nothing", {}),
    ],
)
def test_arguments_that_a_tool_does_not_take_are_refused(tool: str, arguments: Any, http: Http) -> None:
    assert call(http, tool, **arguments)["code"] == -32602
    assert rpc(http, "tools/call", {"name": 1})["error"]["code"] == -32602
    assert rpc(http, "tools/list", {"cursor": 1})["error"]["code"] == -32602
    assert rpc(http, "tools/list", {"cursor": "!"})["error"]["code"] == -32602


def test_a_wait_ends_when_the_answer_is_due(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks at the saga take time, too."""
    http.register(GREET)
    left, begun, clock = [], call(http, "greet", name="Ada")["structuredContent"]["id"], http.engine.clock
    began, late = clock.now(), [0.0]

    async def sleep(seconds: float) -> None:
        left.append(15_000 - 500 - late[0] - seconds * 1_000)
        late[0] += seconds * 1_000 + 1_000  # a slow store

    monkeypatch.setattr(served, "asyncio", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(type(clock), "now", lambda _: began + round(late[0]))
    call(http, "watch_saga", saga=begun, wait_s=20)
    assert left
    assert min(left) >= 0


def test_a_page_of_a_browser_is_no_client(http: Http) -> None:
    """The address of a page may have been made to stand for this machine (DNS rebinding)."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for origin in ("https://evil.example", "http://localhost:3000", "null"):
        http.post("/mcp", ping, headers={"origin": origin}).problem(403, "forbidden")


def test_a_key_is_one_as_the_api_takes_it(http: Http) -> None:
    http.register(GREET)
    given: dict[str, Any] = {"workflow": "greet", "input": {"name": "A"}}
    assert call(http, "start_saga", idempotency_key="k" * 256, **given)["isError"] is True
    one, two = (call(http, "start_saga", idempotency_key=key, **given) for key in ("k", " k "))
    assert one["structuredContent"]["id"] == two["structuredContent"]["id"]


@pytest.mark.parametrize("error", [TooManyRequests("slowly", 1), StoreUnavailable("no answer")])
def test_a_saga_that_was_started_is_returned_though_it_cannot_be_read(
    error: Exception, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that is told of a failure starts a second one."""
    http.register(GREET)

    async def show(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(Queries, "show", show)
    begun = [call(http, "greet", name="Ada"), call(http, "start_saga", workflow="greet", input={"name": "A"})]
    assert [one["isError"] for one in begun] == [False, False]
    assert all(one["structuredContent"]["id"] for one in begun)


def test_the_largest_result_fits_into_an_answer_of_lambda(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def show(*_: Any, **__: Any) -> Any:
        return {"id": ADA.id, "workflow": "w", "status": "completed", "result": ["a"] * (MAX_SHOWN // 4)}

    monkeypatch.setattr(Queries, "show", show)
    asked = {"name": "watch_saga", "arguments": {"saga": ADA.id}}
    event = http.event("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked})
    given = http.module.handler(event, _Context())
    assert len(json.dumps(given)) < 6_291_556
    result = json.loads(given["body"])["result"]
    assert len(result["structuredContent"]["result"]) == MAX_SHOWN // 4
    assert "structuredContent" in result["content"][0]["text"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_starts_and_watches_a_saga(mode: Any, http: Http, slept: list[float]) -> None:
    http.register(GREET)
    http.register(DOCUMENT)

    async def answer(request: httpx2.Request) -> httpx2.Response:
        event = http.event(request.method, request.url.path, request.content.decode() or None)
        event["headers"] = {**event["headers"], **dict(request.headers)}
        given = await asyncio.to_thread(http.module.handler, event, _Context())
        return httpx2.Response(given["statusCode"], headers=given["headers"], content=given.get("body") or "")

    async def scene() -> None:
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as client:
            transport = streamable_http_client("http://api.test/mcp", http_client=client)
            async with Client(transport, mode=mode) as peer:
                assert peer.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")
                tools = {tool.name for tool in (await peer.list_tools()).tools}
                assert tools == {*OWN, "greet"}
                begun = await peer.call_tool("greet", {"name": "Ada"})
                assert begun.structured_content["status"] == "running"
                seen = await peer.call_tool(
                    "watch_saga", {"saga": begun.structured_content["id"], "wait_s": 0}
                )
                assert seen.structured_content == begun.structured_content
                assert (await peer.call_tool("greet", {})).is_error is True

    asyncio.run(scene())


class _Context:
    aws_request_id = "mcp"

    def get_remaining_time_in_millis(self) -> int:
        return 15_000
