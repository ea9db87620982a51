"""The official SDK's server as the other side of tools of MCP servers, without a socket: with sessions, without, and as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations
from pydantic import BaseModel

from baton.core.effects.toolspec import Pins
from baton.ports import StepFailure
from baton.ports.outside import HttpAnswer, HttpRequest
from baton.tools.define import Registry
from baton.tools.perform import ToolPerformer
from baton.tools.standard import with_standard
from baton.tools.standard.mcp import WantedServer, WantedTool, pin_server
from tests.tools.outside import context, services

URL = "http://127.0.0.1:9/mcp"


class Customer(BaseModel):
    id: int
    email: str


def crm() -> MCPServer:
    server = MCPServer("crm", log_level="ERROR")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))  # type: ignore[untyped-decorator]  # the SDK's
    def lookup(email: str, limit: int = 3) -> Customer:
        """Look a customer up."""
        if "@" not in email:
            raise ValueError("this is no address")
        return Customer(id=limit, email=email)

    @server.tool(structured_output=False)  # type: ignore[untyped-decorator]  # the SDK's
    def note(text: str) -> str:
        return f"noted {text}"

    return server


class Asgi:
    """An `HttpClient` that calls an application in this process. `is_old`: as a server that knows no stateless
    protocol does, it refuses what is asked by it.
    """

    def __init__(self, app: Any, *, is_old: bool) -> None:
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:9")
        self._is_old = is_old

    async def send(self, request: HttpRequest) -> HttpAnswer:
        if self._is_old and "mcp-method" in request.headers:
            return HttpAnswer(status=400, headers={}, body=b"Bad Request: no session")
        answer = await self._client.post(request.url, content=request.body, headers=dict(request.headers))
        return HttpAnswer(status=answer.status_code, headers=dict(answer.headers), body=answer.content)

    async def aclose(self) -> None:
        await self._client.aclose()


@pytest.mark.parametrize("is_old", [True, False])
@pytest.mark.parametrize("is_json", [True, False])
def test_the_official_server_is_pinned_and_called(is_old: bool, is_json: bool) -> None:
    async def scene() -> None:
        server = crm()
        app = server.streamable_http_app(json_response=is_json)
        async with server.session_manager.run():
            http = Asgi(app, is_old=is_old)

            async def post(body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
                request = HttpRequest(method="POST", url=URL, headers=headers, body=body, within_ms=1, most=1)
                return await http.send(request)

            tools = {"lookup": WantedTool(), "note": WantedTool()}
            wanted = WantedServer(url=URL, trust_hints=True, tools=tools)
            pinned = await pin_server("crm", wanted, post)
            assert pinned.protocol == ("2025-11-25" if is_old else "2026-07-28")
            assert [pinned.tools[name].effect for name in ("lookup", "note")] == ["pure", "once"]
            assert pinned.tools["lookup"].description == "Look a customer up."
            application = Registry()
            application.pins = Pins(servers={"crm": pinned})
            performer = ToolPerformer(with_standard(application, services(http=http)))
            found = await performer.perform("crm.lookup", {"email": "a@b"}, context())
            assert found == {"id": 3, "email": "a@b"}
            said = await performer.perform("crm.note", {"text": "x"}, context())
            assert said == {"text": "noted x", "content": []}
            with pytest.raises(StepFailure, match="Error executing tool lookup") as caught:
                await performer.perform("crm.lookup", {"email": "a"}, context())
            assert caught.value.code == "client_error"
            if is_old:  # an instance that is restarted knows no session
                server.session_manager._server_instances.clear()
                assert (await performer.perform("crm.lookup", {"email": "a@b"}, context()))["id"] == 3
            server.remove_tool("lookup")
            with pytest.raises(StepFailure) as caught:
                await performer.perform("crm.lookup", {"email": "a@b"}, context())
            assert caught.value.code == "schema_changed"
            await http.aclose()

    asyncio.run(scene())
