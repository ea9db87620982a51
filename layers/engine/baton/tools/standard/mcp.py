"""Tools of MCP servers: the pins of a server's tools, and calls of them by streamable HTTP.

The file of the pins (`PINS`) lies in the application, and `baton mcp` writes it. A process without one does
not import this module. A server is trusted with nothing: a tool that is not pinned does not exist,
descriptions and schemas are those of the file, and a request of a server to its client is not answered.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, cast

import msgspec
from pydantic import TypeAdapter

from baton.core.conditions.schema import check_schema, violations
from baton.core.effects.toolspec import (
    EFFECTS,
    IDEMPOTENT,
    ONCE,
    PREFIX,
    PURE,
    PinnedServer,
    PinnedTool,
    Pins,
    ToolSpec,
)
from baton.core.failures.codes import SCHEMA_CHANGED
from baton.core.version import VERSION
from baton.ports import StepContext, StepFailure
from baton.ports.outside import HttpAnswer
from baton.tools.abilities import NAME
from baton.tools.define import Registry, SchemaMismatch, Tool, ToolError
from baton.tools.openapi.description import Scheme
from baton.tools.openapi.requests import OperationRequest, secrets
from baton.tools.standard.http import host_of
from baton.tools.standard.kit import Services, exchange, left_ms, read_json, redacted, response_failure

STATELESS: Final = "2026-07-28"
"""The protocol without sessions."""
_SESSIONS: Final = "2025-11-25"
"""The newest protocol with sessions; a server may answer with an older one."""
_OLDER: Final = frozenset({_SESSIONS, "2025-06-18", "2025-03-26"})
_PREFIX: Final = "io.modelcontextprotocol/"
_REFUSALS: Final = frozenset({-32700, -32600, -32601, -32602})
"""Errors of JSON-RPC for a request that was not carried out. Others are no evidence: -32001 is a time-out."""
_NO_SESSION, _INTERNAL_ERROR = -32000, -32603
_FAILED: Final = "client_error"
_TRANSIENT: Final = frozenset({408, 429})
_BAD_REQUEST, _UNAUTHORIZED, _NOT_FOUND = 400, 401, 404
_MOST_PAGES: Final = 100
_MOST_TOLD: Final = 10
_COMPARED_MS: Final = 600_000
"""Time for which the comparison of a server's schemas with the pins counts."""
_MOST_TEXT: Final = 2_000
"""Characters of a failure's message that a server writes."""
_CONTEXT: Final = " context"
"""The argument with the context of the step: no property of a schema that is pinned has this name."""
_TEXT_RESULT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "The texts of the answer, one after the other."},
        "content": {
            "type": "array",
            "items": {"type": "object"},
            "description": "Its other parts: images, audio, resources and links.",
        },
    },
    "required": ["text", "content"],
}
"""The result of a tool without an output schema."""


class WantedTool(msgspec.Struct, frozen=True):
    """The operator's settings of a tool. An empty `effect`: the server's hints, if they are trusted, else
    `once`.
    """

    effect: str = ""
    requires_approval: bool = False


class WantedServer(msgspec.Struct, frozen=True, kw_only=True):
    """The operator's settings of a server: `tools` lists those that may be called, by the server's names."""

    url: str
    credential: str = ""
    trust_hints: bool = False
    tools: dict[str, WantedTool]


class PinError(Exception):
    """Error for a server whose tools cannot be pinned; the message gives the reason."""


def read_pins(path: Path) -> Pins:
    """Return the pins in a file. Raises `ToolError`."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ToolError(f"{path.name} cannot be read: {error.strerror}") from error
    name = path.name
    try:
        pins = msgspec.json.decode(data, type=Pins)
    except ValueError as error:
        raise ToolError(f"{name} cannot be read: {error}; `baton mcp` writes it anew") from error
    for server, one in pins.servers.items():
        for called, tool in one.tools.items():
            whole = f"{server}.{called}"
            if not NAME.fullmatch(whole) or whole.startswith(PREFIX) or tool.effect not in EFFECTS:
                raise ToolError(f"{name}: `{whole}` has a wrong name or effect; `baton mcp` writes it anew")
            if schema_pin(tool.parameters, tool.result) != tool.sha256:
                raise ToolError(
                    f"{name}: the schemas of `{server}.{called}` are not those of its hash; `baton mcp` writes it anew"
                )
    return pins


def write_pins(pins: Pins) -> str:
    """Return the text of a file of pins, the same for the same pins."""
    return json.dumps(msgspec.to_builtins(pins), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def schema_pin(parameters: Any, result: Any) -> str:
    """Return the hash of the schemas of a tool."""
    return hashlib.sha256(msgspec.json.encode([parameters, result], order="deterministic")).hexdigest()


def declare(pins: Pins, services: Services) -> Registry:
    """Return the pinned tools of all servers."""
    registry = Registry()
    for name, server in pins.servers.items():
        calls = _Calls(name, server, services)
        for tool, pinned in server.tools.items():
            registry.add(_tool(f"{name}.{tool}", pinned, calls))
    return registry


class _Parameters:
    """The parameters of a tool by its JSON schema, in the place of the model of a function's hints."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        required = schema.get("required", ())
        self._schema = msgspec.json.encode(schema)
        self.model_fields = {
            name: SimpleNamespace(is_required=lambda is_required=name in required: is_required)
            for name in schema.get("properties", {})
        }

    def model_validate(self, arguments: dict[str, Any]) -> SimpleNamespace:
        """Return the arguments as attributes. Raises `ValueError` with all that is wrong with them."""
        if found := violations(self._schema, arguments):
            raise ValueError("; ".join(f"at {one.path or '/'}: {one.message}" for one in found[:_MOST_TOLD]))
        return SimpleNamespace(**arguments)


def _tool(name: str, pinned: PinnedTool, calls: _Calls) -> Tool:
    async def call(**given: Any) -> Any:
        context = given.pop(_CONTEXT)
        return await calls.call(pinned, given, context)

    call.__qualname__ = name
    spec = ToolSpec(
        name=name,
        version=pinned.sha256[:12],
        effect=pinned.effect,
        parameters=pinned.parameters,
        result=_TEXT_RESULT if pinned.result is None else pinned.result,
        description=pinned.description,
        domain="external_api",
        requires_approval=pinned.requires_approval,
    )
    return Tool(
        spec, call, cast("Any", _Parameters(pinned.parameters)), TypeAdapter(Any), _CONTEXT, is_async=True
    )


# ---- the protocol

Send = Callable[[bytes, Mapping[str, str]], Awaitable[HttpAnswer]]
"""Sends the body and the headers of a POST to the server."""


class RemoteError(Exception):
    """A JSON-RPC error of a server. `status`: that of its HTTP response."""

    def __init__(self, code: int, message: str, status: int = 200) -> None:
        self.code, self.message, self.status = code, message, status
        super().__init__(message)

    @property
    def is_refusal(self) -> bool:
        """Return true if the server has not carried the request out."""
        return self.code in _REFUSALS or (400 <= self.status < 500 and self.code != _INTERNAL_ERROR)


class _SessionOver(Exception):
    """The server does not know the session: it has not read the request. `failure` counts if it does not know
    a new one, either.
    """

    def __init__(self, failure: Exception) -> None:
        self.failure = failure
        super().__init__()


class _Session(NamedTuple):
    """The agreed protocol, and the session's id; empty for a server without sessions."""

    protocol: str
    id: str = ""


class _Message(NamedTuple):
    result: dict[str, Any]
    headers: Mapping[str, str]


class _LoopLock:
    """A lock for each event loop."""

    def __init__(self) -> None:
        self._made: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    def __call__(self) -> asyncio.Lock:
        loop = asyncio.get_running_loop()
        if self._made is None or self._made[0] is not loop:
            self._made = loop, asyncio.Lock()
        return self._made[1]


class Peer:
    """The client's side of one server: its protocol and its session."""

    def __init__(self, url: str, protocol: str) -> None:
        self._host = host_of(url)
        self._newest = protocol
        self._session = _Session(protocol) if protocol == STATELESS else None
        self._lock = _LoopLock()  # a server may have one session for each client
        self._ids = itertools.count(1)

    @property
    def protocol(self) -> str:
        """The protocol that the server speaks."""
        return self._newest if self._session is None else self._session.protocol

    async def _opened(self, send: Send) -> _Session:
        if self._session is None:
            async with self._lock():
                if self._session is None:
                    self._session = await self._begin(send)
        return self._session

    async def _begin(self, send: Send) -> _Session:
        """Return a new session. Raises `StepFailure`, `RemoteError`."""
        params = {"protocolVersion": _SESSIONS, "capabilities": {}, "clientInfo": _CLIENT}
        message = await self._ask(send, _Session(""), "initialize", params)
        version = message.result.get("protocolVersion")
        if version not in _OLDER:
            what = f"speaks the protocol {str(version)[:40]!r}, which Baton does not"
            raise RemoteError(0, what, _BAD_REQUEST)  # what was to be asked has not been sent
        session = _Session(version, message.headers.get("mcp-session-id", ""))
        told = _json({"jsonrpc": "2.0", "method": "notifications/initialized"})
        await send(told, _headers(session, "", ""))
        return session

    async def ask(self, send: Send, method: str, params: Mapping[str, Any], name: str = "") -> dict[str, Any]:
        """Return the result of a request, in a new session if there is none or the server has forgotten it.
        Raises `StepFailure`, `RemoteError`.
        """
        session = await self._opened(send)
        try:
            return (await self._ask(send, session, method, params, name)).result
        except _SessionOver:
            if self._session is session:  # no other call has opened a new one
                self._session = None
        session = await self._opened(send)
        try:
            return (await self._ask(send, session, method, params, name)).result
        except _SessionOver as error:
            raise error.failure from error

    async def tools(self, send: Send) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Yield the tools of the server with their names. Raises `StepFailure`, `RemoteError`."""
        cursor = None
        for _ in range(_MOST_PAGES):
            page = await self.ask(send, "tools/list", {} if cursor is None else {"cursor": cursor})
            tools = page.get("tools")
            for one in tools if isinstance(tools, list) else ():
                if isinstance(one, dict) and isinstance(one.get("name"), str):
                    yield one["name"], one
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str):
                break

    async def _ask(
        self, send: Send, session: _Session, method: str, params: Mapping[str, Any], name: str = ""
    ) -> _Message:
        number = next(self._ids)
        if session.protocol == STATELESS:
            about = {"protocolVersion": STATELESS, "clientCapabilities": {}, "clientInfo": _CLIENT}
            params = {**params, "_meta": {f"{_PREFIX}{key}": value for key, value in about.items()}}
        body = _json({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        answer = await send(body, _headers(session, method, name))
        if answer.status == _NOT_FOUND and session.id:
            raise _SessionOver(_cut(self._host, "ends each session at once"))
        message = _message(answer, number)
        if message is None or answer.status in _TRANSIENT or answer.status >= 500:
            if answer.status >= 300:
                raise response_failure(self._host, answer, "resource_moved" if answer.status < 400 else "")
            raise _cut(self._host, "ended its answer without a result")
        error, result = message.get("error"), message.get("result")
        if isinstance(error, dict):
            code, text = error.get("code"), str(error.get("message", ""))[:_MOST_TEXT]
            failure = RemoteError(code if isinstance(code, int) else 0, text, answer.status)
            if session.id and (answer.status, code) == (_BAD_REQUEST, _NO_SESSION):
                raise _SessionOver(failure)  # the words of many servers that have been restarted
            raise failure
        return _Message(result if isinstance(result, dict) else {}, answer.headers)


def _headers(session: _Session, method: str, name: str) -> dict[str, str]:
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    if session.protocol:
        headers["mcp-protocol-version"] = session.protocol
    if session.id:
        headers["mcp-session-id"] = session.id
    if session.protocol == STATELESS:
        headers["mcp-method"] = method
        if name:
            headers["mcp-name"] = name
    return headers


_CLIENT: Final = {"name": "baton", "version": VERSION}
_json = msgspec.json.encode


def _cut(host: str, what: str) -> StepFailure:
    return StepFailure("connection_failed", f"{host} {what}")


def _message(answer: HttpAnswer, number: int) -> dict[str, Any] | None:
    """Return the response to this request. Other messages in a stream are not for this client: it has
    declared no capability.
    """
    kind = answer.headers.get("content-type", "").lower()
    bodies = _events(answer.body) if kind.startswith("text/event-stream") else iter((answer.body,))
    for body in bodies:
        one = read_json(body)
        if not isinstance(one, dict) or "method" in one:
            continue
        # A request that was refused before it was read has no id.
        if one.get("id") == number or (one.get("id") is None and isinstance(one.get("error"), dict)):
            return one
    return None


def _events(body: bytes) -> Iterator[bytes]:
    """Yield the data of server-sent events."""
    for event in re.split(rb"\r\n\r\n|\n\n|\r\r", body):
        lines = (line for line in re.split(rb"\r\n|\n|\r", event) if line.startswith(b"data:"))
        if data := b"\n".join(line[5:].removeprefix(b" ") for line in lines):
            yield data


# ---- calls


class _Calls:
    """The calls of one server in a process. The first one compares its schemas with the pins."""

    def __init__(self, name: str, server: PinnedServer, services: Services) -> None:
        self._name, self._server, self._services = name, server, services
        self._scheme = scheme_of(server.credential)
        self._peer = Peer(server.url, server.protocol)
        self._names = frozenset(one.name for one in server.tools.values())
        self._found = dict[str, str]()
        self._until = 0
        self._lock = _LoopLock()  # calls that begin at once compare once

    async def call(self, tool: PinnedTool, arguments: dict[str, Any], context: StepContext) -> Any:
        """Return the result of a call. Raises `StepFailure`; no message has the credential."""
        if changed := await self._changed(tool, context):
            raise SchemaMismatch(SCHEMA_CHANGED, changed, unsent=True)
        keyed = self._sender(context, context.idempotency_key)
        params = {"name": tool.name, "arguments": arguments}
        try:
            result = await self._peer.ask(keyed, "tools/call", params, tool.name)
            return self._output(tool, result)
        except RemoteError as error:
            failure = self._refused(error)
        except StepFailure as error:
            failure = error
        if failure.code != _FAILED:  # it may have acted, whatever its schemas are now
            raise failure
        # Some servers answer so for a tool that they no longer have, or for arguments of an older schema.
        self._until = 0
        with suppress(StepFailure):
            if changed := await self._changed(tool, context):
                failure = SchemaMismatch(SCHEMA_CHANGED, f"{changed}. {failure.message}")
        raise failure

    async def _changed(self, tool: PinnedTool, context: StepContext) -> str:
        """Return the change of a tool whose schemas are no longer those of its pin, else an empty text.

        A failure says that this call was not sent, which says nothing of earlier ones with its key.
        """
        send = self._sender(context)
        try:
            async with asyncio.timeout(left_ms(self._services, context) / 1_000), self._lock():
                if self._until <= self._services.clock.now():
                    self._found = {  # of pinned tools only: a server may list any number of others
                        name: schema_pin(one.get("inputSchema"), one.get("outputSchema"))
                        async for name, one in self._peer.tools(send)
                        if name in self._names
                    }
                    self._until = self._services.clock.now() + _COMPARED_MS
        except TimeoutError as error:
            what = f"the MCP server `{self._name}` has not listed its tools in time"
            raise StepFailure("timeout", what, unsent=True) from error
        except RemoteError as error:
            raise _unsent(self._refused(error)) from error
        except StepFailure as failure:
            raise _unsent(failure) from None
        now = self._found.get(tool.name)
        if now == tool.sha256:
            return ""
        what = "no longer has it" if now is None else "has changed its schema"
        return (
            f"`{tool.name}` of the MCP server `{self._name}`: the server {what} since it was pinned ({tool.sha256[:12]}). "
            "See with `baton mcp --check` what has changed, then pin it with `baton mcp` and deploy"
        )

    def _refused(self, error: RemoteError) -> StepFailure:
        code = _FAILED if error.is_refusal else "server_error"
        return StepFailure(
            code, f"the MCP server `{self._name}` answered with an error ({error.code}): {error.message}"
        )

    def _output(self, tool: PinnedTool, result: Mapping[str, Any]) -> Any:
        of = f"`{tool.name}` of the MCP server `{self._name}`"
        content = result.get("content")
        parts = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
        texts = [
            one["text"] for one in parts if one.get("type") == "text" and isinstance(one.get("text"), str)
        ]
        if result.get("resultType", "complete") != "complete":
            raise StepFailure(_FAILED, f"{of} asks for more input, which Baton does not give to a server")
        if result.get("isError") is True:
            raise StepFailure(
                _FAILED, f"{of} failed: {' '.join(texts)[:_MOST_TEXT] or 'it does not say why'}"
            )
        if tool.result is None:
            others = [one for one in parts if one.get("type") != "text"]
            return {"text": "\n".join(texts), "content": others}
        if "structuredContent" not in result:
            raise SchemaMismatch(
                "result_invalid", f"{of} returned no structured content, which its output schema promises"
            )
        output = result["structuredContent"]
        if wrong := violations(tool.result, output):
            raise SchemaMismatch(
                "result_invalid",
                f"{of} returned what its output schema does not allow: at {wrong[0].path or '/'}: {wrong[0].message}",
            )
        return output

    def _sender(self, context: StepContext, key: str = "") -> Send:
        async def post(body: bytes, headers: Mapping[str, str], *, is_refused: bool = False) -> HttpAnswer:
            credential = ""
            if self._scheme is not None:
                credential = await self._services.credentials.of(self._name, is_refused=is_refused)
            asked = OperationRequest("POST", self._server.url, dict(headers), body)
            if self._scheme is not None:
                asked = asked.with_credential(self._scheme, credential)
            answer = await exchange(
                self._services,
                context,
                "POST",
                asked.url,
                headers=asked.headers,
                body=body,
                key=key,
                named=True,
            )
            if answer.status != _UNAUTHORIZED:
                return answer if self._scheme is None else redacted(answer, secrets(self._scheme, credential))
            if self._scheme is not None and not is_refused:
                # It may have been replaced since it was read.
                return await post(body, headers, is_refused=True)
            what = f"{host_of(self._server.url)} answered 401: it does not accept the credential of the MCP server `{self._name}`"
            raise StepFailure("unauthorized", what, status=answer.status)

        return post


def _unsent(failure: StepFailure) -> StepFailure:
    failure.happened, failure.unsent = False, True
    return failure


def scheme_of(credential: str) -> Scheme | None:
    """Return the place of a credential in requests; None for a server without one."""
    if not credential:
        return None
    return Scheme("bearer") if credential == "bearer" else Scheme("header", credential)


# ---- pinning


async def pin_server(name: str, wanted: WantedServer, post: Send, credential: str = "") -> PinnedServer:
    """Return the pins of a server, of the tools that the operator lists. Raises `PinError`."""
    scheme = scheme_of(wanted.credential)

    async def send(body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        asked = OperationRequest("POST", wanted.url, dict(headers), body)
        if scheme is None:
            return await post(body, asked.headers)
        answer = await post(body, asked.with_credential(scheme, credential).headers)
        return redacted(answer, secrets(scheme, credential))

    peer = Peer(wanted.url, STATELESS)
    try:
        if not await _is_stateless(peer, send):
            peer = Peer(wanted.url, _SESSIONS)
        found = {called: one async for called, one in peer.tools(send)}
    except RemoteError as error:
        raise PinError(
            f"`{name}`: the server answered with an error ({error.code}): {error.message}"
        ) from error
    except StepFailure as failure:
        raise PinError(f"`{name}`: {failure.message}") from failure
    tools = dict[str, PinnedTool]()
    for theirs, said in wanted.tools.items():
        if theirs not in found:
            known = ", ".join(f"`{one}`" for one in sorted(found)[:20]) or "none"
            raise PinError(f"`{name}`: the server has no tool `{theirs}`; it has {known}")
        ours = re.sub(r"[^a-z0-9_]", "_", theirs.lower())
        if not NAME.fullmatch(f"{name}.{ours}") or ours in tools:
            raise PinError(
                f"`{name}`: `{theirs}` would be the tool `{name}.{ours}`, which is no name or is there twice"
            )
        tools[ours] = _pinned(f"{name}.{theirs}", found[theirs], said, trusts=wanted.trust_hints)
    return PinnedServer(url=wanted.url, protocol=peer.protocol, credential=wanted.credential, tools=tools)


def changed_pins(before: Pins | None, now: Pins) -> list[str]:
    """Return a line for each tool that is new, gone or pinned otherwise."""
    old, new = _by_name(before), _by_name(now)
    return [
        f"{name}: {'new' if name not in old else 'gone' if name not in new else _difference(old[name], new[name])}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


def _by_name(pins: Pins | None) -> dict[str, tuple[PinnedServer, PinnedTool]]:
    servers = {} if pins is None else pins.servers
    return {
        f"{name}.{tool}": (msgspec.structs.replace(server, tools={}), pinned)
        for name, server in servers.items()
        for tool, pinned in server.tools.items()
    }


def _difference(old: tuple[PinnedServer, PinnedTool], new: tuple[PinnedServer, PinnedTool]) -> str:
    pairs = [
        (key, getattr(a, key), getattr(b, key))
        for a, b in zip(old, new, strict=True)
        for key in a.__struct_fields__
    ]
    return f"another {', '.join(key for key, a, b in pairs if a != b and key != 'sha256')}"


async def _is_stateless(peer: Peer, send: Send) -> bool:
    """Return true if the server speaks the protocol without sessions."""
    try:
        found = await peer.ask(send, "server/discover", {})
    except RemoteError:
        return False
    except StepFailure as failure:
        if failure.status in (400, 404, 405, 406, 415):
            return False
        raise
    versions = found.get("supportedVersions")
    return isinstance(versions, list) and STATELESS in versions


def _pinned(where: str, found: Mapping[str, Any], said: WantedTool, *, trusts: bool) -> PinnedTool:
    from baton.core.conditions.schemaplan import SchemaError  # only pinning needs it

    parameters, result = found.get("inputSchema"), found.get("outputSchema")
    if not isinstance(parameters, dict) or parameters.get("type") != "object":
        raise PinError(f"`{where}`: its input schema is none of an object")
    if result is not None and not isinstance(result, dict):
        raise PinError(f"`{where}`: its output schema is no object")
    if b'"x-mcp-header"' in msgspec.json.encode(parameters):
        raise PinError(
            f"`{where}`: it wants arguments in headers (`x-mcp-header`), which Baton does not send"
        )
    for schema in (parameters, *([] if result is None else [result])):
        try:
            check_schema(schema)
        except SchemaError as error:
            raise PinError(f"`{where}`: its schema cannot be used: {error}") from error
    effect = said.effect or (_hinted(found.get("annotations")) if trusts else ONCE)
    return PinnedTool(
        name=str(found["name"]),
        effect=effect,
        sha256=schema_pin(parameters, result),
        requires_approval=said.requires_approval,
        description=str(found.get("description") or found.get("title") or ""),
        parameters=parameters,
        result=result,
    )


def _hinted(hints: Any) -> str:
    """Return the effect that the hints of a tool say."""
    if not isinstance(hints, dict):
        return ONCE
    if hints.get("readOnlyHint") is True:
        return PURE
    return IDEMPOTENT if hints.get("idempotentHint") is True else ONCE
