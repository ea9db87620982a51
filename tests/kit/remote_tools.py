"""A scripted MCP server in the place of the HTTP client: its tools, its sessions, and what goes wrong there."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from baton.core.effects.toolspec import PinnedServer, PinnedTool, Pins
from baton.core.log.questions import Answer
from baton.ports import StepContext, StepFailure
from baton.ports.outside import HttpAnswer, HttpRequest
from baton.runtime.invocation.context import inline
from baton.tools.define import Registry
from baton.tools.standard import Services
from baton.tools.standard.mcp import (
    STATELESS,
    Peer,
    WantedServer,
    WantedTool,
    _Calls,
    declare,
    pin_server,
    schema_pin,
)
from tests.kit.bugs import replaced
from tests.kit.process import RUNS_IN, pause
from tests.kit.virtual_time import VirtualClock

if TYPE_CHECKING:
    from tests.kit.toolbox import Books

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
    """Raise as a client does whose server dies while it works."""
    raise StepFailure("connection_failed", "crm.example.com: the connection was closed")


# ---- in the simulation

REMOTE = """
name: remote
retry: {base: 300ms, max_delay: 1s}
nodes:
  look: {tool: crm.note, with: {n: 1}}
  send: {tool: crm.send, after: look, with: {n: 3}}
output: ['${ctx.look.output.text}', '${ctx.send.output.receipt}']
"""
_TAKES: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
_GIVES: dict[str, Any] = {
    "type": "object",
    "properties": {"receipt": {"type": "string"}},
    "required": ["receipt"],
}
SENT = "crm 3"


def _pins() -> Pins:
    tools = {
        name: PinnedTool(
            name=name, effect=effect, sha256=schema_pin(_TAKES, gives), parameters=_TAKES, result=gives
        )
        for name, effect, gives in (("note", "idempotent", None), ("send", "once", _GIVES))
    }
    return Pins(servers={"crm": PinnedServer(url=URL, protocol="2025-11-25", tools=tools)})


class _Crm(RemoteServer):
    """A server that takes its time, forgets a session now and then, and once does not live to say what it has done.

    `note` recognises the key of a call; `send` does not.
    """

    def __init__(self, books: Books) -> None:
        note = {"name": "note", "inputSchema": _TAKES}
        super().__init__(note, {"name": "send", "inputSchema": _TAKES, "outputSchema": _GIVES})
        self.does = lambda name, given: (
            texts("noted") if name == "note" else texts(structuredContent={"receipt": f"crm {given['n']}"})
        )
        self._books = books

    async def send(self, request: HttpRequest) -> HttpAnswer:
        body = json.loads(request.body)
        is_call = body["method"] == "tools/call"
        name, n = (body["params"]["name"], body["params"]["arguments"]["n"]) if is_call else ("", 0)
        await pause(0.1, stands_still=name != "send")
        if is_call and len(self.seen) % 5 == 4:
            self.sessions.clear()
        answered = await super().send(request)
        if answered.status != 200 or not is_call:
            return answered
        if name == "note":
            self._books.act(request.headers.get("idempotency-key", ""), ["crm", n])
        else:
            self._books.calls[SENT] += 1
            self._books.do(f"crm {n}")
        await pause(0.1, stands_still=name != "send")
        if name == "send" and self._books.calls[SENT] == 1:
            died()
        return answered


def add_remote(registry: Registry, books: Books) -> None:
    """Declare the tools of a server. What a process knows of it dies with the process."""
    known: WeakKeyDictionary[Any, Registry] = WeakKeyDictionary()

    def of_process() -> Registry:
        process = RUNS_IN.get()
        if process is not None and process in known:
            return known[process]
        clock = VirtualClock() if process is None else process.clock
        made = declare(_pins(), replace(_SERVICES, http=_Crm(books), clock=clock))
        return made if process is None else known.setdefault(process, made)

    def wrapped(name: str) -> Callable[..., Any]:
        async def call(**given: Any) -> Any:
            return await of_process()[name].function(**given)

        return call

    for name, tool in declare(_pins(), _SERVICES).items():
        registry.add(replace(tool, function=wrapped(name)))


_SERVICES = Services(
    http=cast("Any", None),
    entities=cast("Any", None),
    objects=cast("Any", None),
    mailer=cast("Any", None),
    clock=VirtualClock(),
    offload=inline,
)


def with_the_crm(books: Books) -> Callable[[Mapping[str, Any]], Answer]:
    """A person who looks at the server where an outcome is unknown."""

    def answer(question: Mapping[str, Any]) -> Answer:
        if question["node"] == "send" and SENT in books.happened:
            return Answer(ask=question["id"], action="use", output={"receipt": SENT})
        return Answer(ask=question["id"], action="retry")

    return answer


@contextmanager
def a_cut_answer_is_asked_for_again() -> Iterator[None]:
    """A client that sends a request again when the connection breaks, as clients of HTTP do with a GET."""

    async def ask(self: Peer, *arguments: Any) -> Any:
        try:
            return await real(self, *arguments)
        except StepFailure as failure:
            if failure.code != "connection_failed":
                raise
            return await real(self, *arguments)

    real = Peer.ask
    with replaced(Peer, "ask", ask):
        yield


@contextmanager
def a_call_goes_without_its_key() -> Iterator[None]:
    """Each request is named by its own number, so that a server takes a further attempt for another action."""

    def sender(self: _Calls, context: StepContext, key: str = "") -> Any:
        return real(self, context, key and f"{key}-{next(numbers)}")

    real, numbers = _Calls._sender, itertools.count()
    with replaced(_Calls, "_sender", sender):
        yield
