"""A scripted MCP server in the place of the HTTP client: its tools, its sessions, and what goes wrong there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from baton.core.effects.toolspec import Pins
from baton.ports import StepFailure
from baton.ports.outside import HttpAnswer, HttpRequest
from baton.tools.standard.mcp import STATELESS, WantedServer, WantedTool, pin_server

URL = "https://crm.example.com/mcp"
LOOKUP: dict[str, Any] = {
    "name": "lookup",
    "description": "Look a customer up.",
    "inputSchema": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"email": {"type": "string"}, "limit": {"$ref": "#/$defs/limit"}},
        "required": ["email"],
        "additionalProperties": False,
        "$defs": {"limit": {"type": "integer", "maximum": 9}},
    },
    "outputSchema": {
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
    },
    "annotations": {"readOnlyHint": True},
}
NOTE: dict[str, Any] = {
    "name": "add-note",
    "description": "Add a note.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "annotations": {"idempotentHint": True},
}
Said = Mapping[str, Any]


def texts(*said: str, **more: Any) -> dict[str, Any]:
    """The result of a tool that says these texts."""
    return {"content": [{"type": "text", "text": one} for one in said], **more}


class RemoteServer:
    """An `HttpClient` that is the server. `calls` are the calls of its tools; `seen` every request."""

    def __init__(self, *tools: dict[str, Any], stateless: bool = False, credential: str = "") -> None:
        self.tools = {one["name"]: one for one in tools or (LOOKUP, NOTE)}
        self.stateless, self.credential = stateless, credential
        self.sessions: set[str] = set()
        self.begun = 0
        self.calls: list[tuple[str, Any]] = []
        self.seen: list[tuple[str, HttpRequest]] = []
        self.streams = False
        self.does: Callable[[str, Said], Any] = lambda name, given: (
            texts(structuredContent={"id": 7}) if name == "lookup" else texts("noted")
        )
        self.answers: Callable[[str, HttpRequest], HttpAnswer | None] = lambda method, request: None
        """An answer in the place of the server's own, before it has done anything."""

    async def send(self, request: HttpRequest) -> HttpAnswer:
        await asyncio.sleep(0)
        body = json.loads(request.body)
        method = body["method"]
        self.seen.append((method, request))
        if (instead := self.answers(method, request)) is not None:
            return instead
        if self.credential and request.headers.get("authorization") != f"Bearer {self.credential}":
            return answer(401, {"error": f"not {request.headers.get('authorization')}"})
        if "id" not in body:
            return HttpAnswer(status=202, headers={}, body=b"")
        return self._answered(method, body, request)

    async def aclose(self) -> None:
        pass

    def _answered(self, method: str, body: dict[str, Any], request: HttpRequest) -> HttpAnswer:
        headers: dict[str, str] = {}
        if self.stateless:
            assert request.headers["mcp-method"] == method
            assert body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == STATELESS
        elif method == "initialize":
            self.begun += 1
            headers["mcp-session-id"] = f"s{self.begun}"
            self.sessions = {headers["mcp-session-id"]}
        elif method != "server/discover" and request.headers.get("mcp-session-id") not in self.sessions:
            return answer(404, {"error": "no such session"})
        try:
            said: dict[str, Any] = {"result": self._result(method, body["params"])}
        except KeyError as error:
            said = {"error": {"code": -32602 if method == "tools/call" else -32601, "message": f"no {error}"}}
        return answer(200, {"jsonrpc": "2.0", "id": body["id"], **said}, streams=self.streams, **headers)

    def _result(self, method: str, params: dict[str, Any]) -> Any:
        if method == "initialize":
            assert params["capabilities"] == {}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
        if method == "server/discover" and self.stateless:
            return {"supportedVersions": [STATELESS]}
        if method == "tools/list":
            names = sorted(self.tools)
            at = names.index(params.get("cursor", names[0]))
            more = {"nextCursor": names[at + 1]} if at + 1 < len(names) else {}
            return {"tools": [self.tools[names[at]]], **more}
        if method == "tools/call":
            self.tools[params["name"]]
            self.calls.append((params["name"], params["arguments"]))
            return self.does(params["name"], params["arguments"])
        raise KeyError(method)


def answer(status: int, body: Any, *, streams: bool = False, **headers: str) -> HttpAnswer:
    """An answer with JSON, or with a stream of events in which it is the last."""
    data = json.dumps(body).encode()
    kind = "application/json"
    if streams:
        kind = "text/event-stream"
        ping = json.dumps({"jsonrpc": "2.0", "id": body.get("id"), "method": "elicitation/create"}).encode()
        data = b": hello\n\nevent: message\ndata: " + ping + b"\n\nid: 1\ndata: " + data + b"\n\n"
    return HttpAnswer(status=status, headers={"content-type": kind, **headers}, body=data)


async def pins_of(server: RemoteServer, *, trust_hints: bool = False, **tools: WantedTool) -> Pins:
    """The pins of this server under the name `crm`."""
    wanted = WantedServer(
        url=URL,
        credential="bearer" if server.credential else "",
        trust_hints=trust_hints,
        tools=tools or {name: WantedTool() for name in server.tools},
    )

    async def send(body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        signed = {**headers, "authorization": f"Bearer {server.credential}"}
        return await server.send(
            HttpRequest(method="POST", url=URL, headers=signed, body=body, within_ms=1_000, most=10_000)
        )

    return Pins(servers={"crm": await pin_server("crm", wanted, send)})


def died(*_: Any) -> HttpAnswer:
    """What a client finds of a server that dies while it works."""
    raise StepFailure("connection_failed", "crm.example.com: the connection was closed")
