"""Baton as an MCP server: `POST /mcp` by streamable HTTP, with JSON answers and without sessions.

A tool is a route of the API, called with the caller's own identity, so its roles, checks and refusals are
those of the route. A workflow whose document says `mcp: true` is a tool, too.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType
from pydantic import Field
from pydantic.types import JsonValue

from baton.core.read.answers import OpenView
from baton.core.version import VERSION
from baton.errors import BatonError, EngineFault, Forbidden, UserError
from baton.runtime.requests.lists import WorkflowTool
from baton.web.bodies.requests import MAX_KEY, Body, StartBody, idempotency_key, read_body
from baton.web.replies import Ask, Reply, RouteCalls

STATELESS: Final = "2026-07-28"
_VERSIONS: Final = (STATELESS, "2025-11-25", "2025-06-18", "2025-03-26")
_VERSION_HEADER: Final = "mcp-protocol-version"
_NO_METHOD, _INVALID_PARAMS = -32601, -32602
MOST_WAIT_S: Final = 20
_WAIT_S: Final = 5
_LOOK_MS: Final = 1_000
"""Time for the last look at a saga, before an answer is due."""
_MOST_TEXT: Final = 100_000
_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 2.0
_RUNNING: Final = frozenset({"pending", "running", "compensating"})
_WATCHED: Final = _RUNNING | {"waiting"}
_WAIT: Final[dict[str, Any]] = {
    "type": "integer",
    "minimum": 0,
    "maximum": MOST_WAIT_S,
    "default": _WAIT_S,
    "description": "Seconds to wait for the end of the saga, or for a question.",
}
_KEY: Final[dict[str, Any]] = {
    "type": "string",
    "maxLength": MAX_KEY,
    "description": "Idempotency key. Repeated calls with the same key act once.",
}
_INSTRUCTIONS: Final = (
    "Each tool that starts a saga returns its id and its status after a short wait. `watch_saga` waits on. A saga with "
    "the status `suspended` waits for an answer to one of its questions: `answer_question`."
)


class McpBody(Body):
    """A JSON-RPC message of an MCP client: a request with an `id`, or a notification."""

    jsonrpc: Literal["2.0"]
    id: str | int | None = None
    method: str = Field(min_length=1, max_length=128, examples=["tools/list"])
    params: dict[str, JsonValue] = Field(
        default_factory=dict, description="Parameters, as the Model Context Protocol has them."
    )


class McpAnswer(OpenView):
    """The answer to a message of an MCP client: a JSON-RPC response, or nothing for a notification."""

    jsonrpc: Annotated[Literal["2.0"] | UnsetType, "Absent for a notification."] = UNSET
    id: Annotated[str | int | UnsetType | None, "Identifier of the request."] = UNSET
    result: dict[str, Any] | UnsetType = UNSET
    error: Annotated[dict[str, Any] | UnsetType, "`code` and `message` of a request that failed."] = UNSET


class ShownSaga(msgspec.Struct, omit_defaults=True):
    """The fields of a saga that a tool returns, where they are not empty."""

    id: str
    workflow: str
    status: str
    reason: str | None = None
    result: Any = None
    large_result: Any = None
    error: Any = None
    questions: list[Any] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteTool:
    """A tool that calls a route. `watches`: it returns the saga after a wait, and not the route's answer."""

    name: str
    route: str
    text: str
    watches: bool = False
    hints: Mapping[str, bool]


_READS: Final = {"readOnlyHint": True}
_ACTS: Final = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True}
TOOLS: Final = (
    RouteTool(
        name="list_workflows",
        route="listWorkflows",
        hints=_READS,
        text="List the workflows that can be started.",
    ),
    RouteTool(
        name="start_saga",
        route="startSaga",
        watches=True,
        hints={**_ACTS, "idempotentHint": False},
        text="Start a saga of a workflow. Returns the saga's id, and its status after a short wait.",
    ),
    RouteTool(
        name="watch_saga",
        route="showSaga",
        watches=True,
        hints=_READS,
        text="Wait for the end of a saga, or for a question. Returns its status, result and open questions.",
    ),
    RouteTool(
        name="signal_saga", route="sendSignal", hints=_ACTS, text="Send a signal that a saga waits for."
    ),
    RouteTool(
        name="answer_question",
        route="answerQuestion",
        hints=_ACTS,
        text="Answer an open question of a saga as its caller.",
    ),
    RouteTool(
        name="cancel_saga",
        route="cancelSaga",
        hints={**_ACTS, "destructiveHint": True},
        text="Cancel a saga. With `undo`, its steps are undone first.",
    ),
)
_BY_NAME: Final = {tool.name: tool for tool in TOOLS}


class _RpcError(Exception):
    def __init__(self, code: int, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(message)


async def serve(ask: Ask[None]) -> Reply:
    """Return the answer to a message. Raises `UserError` for another version of the protocol, and for a page
    of a browser, as the protocol demands.
    """
    if "origin" in ask.headers:
        raise Forbidden("pages of browsers are no clients of `/mcp`: a request with `Origin` is refused")
    version = ask.headers.get(_VERSION_HEADER, "")
    if version and version not in _VERSIONS:
        raise UserError(f"`MCP-Protocol-Version` is one of {', '.join(_VERSIONS)}")
    message, where = read_body(McpBody, ask.text), {"Location": "/mcp"}
    if "id" not in message.model_fields_set:  # a notification, and none of a client changes anything here
        return Reply(HTTPStatus.ACCEPTED, {})
    said: dict[str, Any] = {"jsonrpc": "2.0", "id": message.id}
    try:
        result = await _result(ask, message.method, message.params)
    except _RpcError as error:
        return Reply(HTTPStatus.OK, {**said, "error": {"code": error.code, "message": error.message}}, where)
    if version == STATELESS:
        result = {"resultType": "complete", **result}
        if message.method in ("tools/list", "server/discover"):
            result |= {"ttlMs": 0, "cacheScope": "private"}
    return Reply(HTTPStatus.OK, {**said, "result": result}, where)


async def _result(ask: Ask[None], method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    about = {"capabilities": {"tools": {}}, "instructions": _INSTRUCTIONS}
    server = {"serverInfo": {"name": "baton", "version": VERSION}}
    if method == "initialize":
        wanted = params.get("protocolVersion")
        version = wanted if wanted in _VERSIONS[1:] else _VERSIONS[1]
        return {"protocolVersion": version, **about, **server}
    if method == "server/discover":
        return {"supportedVersions": [*_VERSIONS], **about, **server}
    if method == "ping":
        return {}
    if method == "tools/list":
        return await _tools(ask, params.get("cursor", ""))
    if method == "tools/call":
        return await _called(ask, params)
    raise _RpcError(_NO_METHOD, f"there is no method `{method[:40]}`")


# ---- tools


async def _tools(ask: Ask[None], cursor: Any) -> dict[str, Any]:
    """Return the tools that the caller's roles permit."""
    if not isinstance(cursor, str):
        raise _RpcError(_INVALID_PARAMS, "`cursor` is a text")
    calls = ask.calls()
    own = [] if cursor else [one for one in TOOLS if not calls.roles.isdisjoint(calls.row(one.route).roles)]
    found = [_shown_route(one, calls) for one in own]
    if calls.roles.isdisjoint(calls.row("startSaga").roles):
        return {"tools": found}
    try:
        workflows, after = await ask.service.workflow_tools(cursor)
    except UserError as error:
        raise _RpcError(_INVALID_PARAMS, error.detail) from error
    found += map(_shown_workflow, workflows)
    return {"tools": found, **({"nextCursor": after} if after else {})}


def _shown_route(tool: RouteTool, calls: RouteCalls) -> dict[str, Any]:
    row = calls.row(tool.route)
    body: dict[str, Any] = row.body.model_json_schema() if row.body is not None else {}
    places = {
        one.name: {**one.schema, "description": one.description} for one in (*row.parameters, *row.query)
    }
    properties = places | body.get("properties", {})
    if row.has_key:
        properties["idempotency_key"] = _KEY
    if tool.watches:
        properties["wait_s"] = _WAIT
    required = [*(one.name for one in row.parameters), *body.get("required", ())]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    if "$defs" in body:
        schema["$defs"] = body["$defs"]
    return {
        "name": tool.name,
        "description": tool.text,
        "inputSchema": schema,
        "annotations": dict(tool.hints),
    }


def _shown_workflow(tool: WorkflowTool) -> dict[str, Any]:
    text = f"{tool.text or f'Run the workflow `{tool.name}`.'}\n\nReturns the saga's id, and its status after a short wait."
    schema = {**(tool.input_schema or {}), "type": "object"}
    return {"name": tool.name, "description": text, "inputSchema": schema}


# ---- calls


async def _called(ask: Ask[None], params: Mapping[str, Any]) -> dict[str, Any]:
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise _RpcError(
            _INVALID_PARAMS, "a call has the `name` of a tool, and `arguments` that are an object"
        )
    calls = ask.calls()
    try:
        if (tool := _BY_NAME.get(name)) is not None:
            answer = await _of_route(calls, tool, arguments, ask.key)
        elif await ask.service.is_workflow_tool(name):
            body = StartBody(workflow=name, input=arguments)
            started = await calls("startSaga", body=body.model_dump(exclude_unset=True), key=ask.key)
            answer = await _begun(calls, started, _WAIT_S)
        else:
            raise _RpcError(_INVALID_PARAMS, f"there is no tool `{name[:64]}`")
    except UserError as error:  # the model that called may correct it
        return {"content": _text(_refusal(error)), "isError": True}
    return {"content": _text(answer), "structuredContent": answer, "isError": False}


def _text(answer: Any) -> list[dict[str, str]]:
    text = json.dumps(answer, ensure_ascii=False)
    if len(text) > _MOST_TEXT:  # twice it may have no room in an answer of Lambda
        text = f"The answer is in `structuredContent`: it has {len(text):,} characters."
    return [{"type": "text", "text": text}]


def _refusal(error: UserError) -> dict[str, Any]:
    refusal: dict[str, Any] = {"status": error.status, "code": error.code, "detail": error.detail}
    if error.problems:
        refusal["errors"] = [{"path": one.path, "message": one.message} for one in error.problems[:20]]
    return refusal


async def _of_route(calls: RouteCalls, tool: RouteTool, arguments: dict[str, Any], key: str) -> Any:
    row, given = calls.row(tool.route), dict(arguments)
    path = {one.name: _word(given.pop(one.name, "")) for one in row.parameters}
    query = {one.name: _word(given.pop(one.name)) for one in row.query if one.name in given}
    if row.has_key:
        key = idempotency_key({"idempotency-key": _word(given.pop("idempotency_key", key))})
    wait = given.pop("wait_s", _WAIT_S) if tool.watches else 0
    if type(wait) is not int or not 0 <= wait <= MOST_WAIT_S:
        raise _RpcError(_INVALID_PARAMS, f"`wait_s` is a whole number from 0 to {MOST_WAIT_S}")
    if row.body is None and given:
        raise _RpcError(_INVALID_PARAMS, f"`{next(iter(given))[:64]}` is not known here")
    if tool.watches and row.body is None:
        calls.need(row.roles)
        return await _watched(calls, {"id": path["saga"]}, wait, _WATCHED)
    answer = await calls(tool.route, path, query, given, key if row.has_key else "")
    return await _begun(calls, answer, wait) if tool.watches else answer


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


async def _begun(calls: RouteCalls, started: Mapping[str, Any], wait_s: int) -> dict[str, Any]:
    """Return a saga after the wait, or the answer to its start: a client that is told of a failure starts a
    second saga.
    """
    try:
        return await _watched(calls, started, wait_s)
    except BatonError:
        return dict(started)


async def _watched(
    calls: RouteCalls, started: Mapping[str, Any], wait_s: int, going: frozenset[str] = _RUNNING
) -> dict[str, Any]:
    """Return a saga when its status is none of `going`, or after the wait; for a caller who may not read
    sagas, the answer to its start.
    """
    if calls.roles.isdisjoint(calls.row("showSaga").roles):
        return dict(started)
    left, pause, until = float(wait_s), _PAUSE_S, calls.deadline - _LOOK_MS
    saga = await calls("showSaga", {"saga": started["id"]})
    while saga["status"] in going and (left := min(left, (until - calls.now()) / 1_000)) > 0:
        await asyncio.sleep(min(pause, left))
        left, pause = left - pause, min(pause * 1.5, _LONGEST_PAUSE_S)
        try:
            saga = await calls("showSaga", {"saga": started["id"]})
        except EngineFault:  # the store has no time left, or is ill: what was seen is true, too
            break
    shown: dict[str, Any] = msgspec.to_builtins(msgspec.convert(saga, ShownSaga))
    return shown
