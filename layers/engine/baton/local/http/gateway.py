"""The HTTP API as a loopback ASGI application: limits, route, authorizer, function, answer.

Each of these is decided in a file of its own; here is only their order, and API Gateway's error bodies.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import Mapping
from typing import Any

from starlette.types import Receive, Scope, Send

from baton.local.functions.lambdas import Lambdas
from baton.local.functions.pool import Throttled
from baton.local.http.gateway_event import (
    HttpAnswer,
    HttpRequest,
    MalformedAnswer,
    claims_as_text,
    to_answer,
    to_event,
)
from baton.local.http.jwt_authorizer import Caller, JwtAuthorizer, Refused
from baton.local.http.routing import Router, TokenBucket
from baton.local.processes.problems import LocalRunError
from baton.local.template.http_api import Authorizer, HttpApi, Route

log = logging.getLogger("baton.local")
_MAX_BODY_BYTES = 10 * 1024 * 1024
_MAX_EVENT_BYTES = 6 * 1024 * 1024


class Gateway:
    def __init__(self, api: HttpApi, api_id: str, lambdas: Lambdas) -> None:
        self._api_id, self._lambdas = api_id, lambdas
        self._router = Router(api.routes)
        now = time.monotonic()
        self._bucket = TokenBucket(api.rate, api.burst, now)
        self._of_routes = {key: TokenBucket(*limits, now) for key, limits in api.throttles.items()}
        wanted = {route.authorizer for route in api.routes if route.authorizer is not None}
        self._authorizers: Mapping[Authorizer, JwtAuthorizer] = {a: JwtAuthorizer(a) for a in wanted}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = await _read(scope, receive)
        answer = await self._handle(request) if request is not None else _say(413, "Request Entity Too Large")
        await _write(answer, send, is_head=scope["method"] == "HEAD")

    async def _handle(self, request: HttpRequest) -> HttpAnswer:
        found = self._router.find(request.method, request.path)
        own = self._of_routes.get(found[0].key) if found is not None else None
        if not (own or self._bucket).take(time.monotonic()):
            return _say(429, "Too Many Requests")
        if found is None:
            return _say(404, "Not Found")
        route, parameters = found
        caller: Caller | None = None
        if route.authorizer is not None:
            try:
                caller = await self._authorizers[route.authorizer].check(request, route.scopes)
            except Refused as refused:
                log.info("%s %s refused: %s", request.method, request.path, refused)
                if refused.status == 403:
                    return _say(403, "Forbidden")
                return _say(401, "Unauthorized", [("www-authenticate", "Bearer")])
        event = to_event(
            request,
            route_key=route.key,
            path_parameters=parameters,
            claims=claims_as_text(caller.claims) if caller else None,
            scopes=caller.scopes if caller else None,
            api_id=self._api_id,
            request_id=str(uuid.uuid4()),
            now=time.time(),
        )
        return await self._call(route, event)

    async def _call(self, route: Route, event: dict[str, Any]) -> HttpAnswer:
        payload = json.dumps(event).encode()
        if len(payload) > _MAX_EVENT_BYTES:
            return _say(413, "Request Entity Too Large")
        invoking = asyncio.ensure_future(self._lambdas.find(route.function).invoke(payload, "http"))
        try:
            # Shielded: a function goes on when API Gateway has stopped waiting for it.
            result = await asyncio.wait_for(asyncio.shield(invoking), route.timeout_s)
        except (TimeoutError, Throttled, LocalRunError):
            return _say(503, "Service Unavailable")
        if not result.ok:
            return _say(500, "Internal Server Error")
        try:
            return to_answer(result.payload)
        except MalformedAnswer as error:
            log.error("%s: malformed answer: %s", route.function, error)
            return _say(500, "Internal Server Error")


def _say(status: int, message: str, headers: list[tuple[str, str]] | None = None) -> HttpAnswer:
    body = json.dumps({"message": message}, separators=(",", ":")).encode()
    return HttpAnswer(status, body, [("content-type", "application/json"), *(headers or [])])


async def _read(scope: Scope, receive: Receive) -> HttpRequest | None:
    """The whole request; None if its body is larger than API Gateway takes."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        body += message.get("body", b"")
        if len(body) > _MAX_BODY_BYTES:
            return None
        if not message.get("more_body"):
            break
    raw_path = scope.get("raw_path") or scope["path"].encode()
    client = scope.get("client") or ("127.0.0.1", 0)
    return HttpRequest(
        method=scope["method"],
        path=raw_path.split(b"?", 1)[0].decode("latin-1"),
        query=scope.get("query_string", b"").decode("latin-1"),
        headers=[
            (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]
        ],
        body=bytes(body),
        client=str(client[0]),
        protocol=f"HTTP/{scope.get('http_version', '1.1')}",
    )


async def _write(answer: HttpAnswer, send: Send, *, is_head: bool) -> None:
    headers = [
        (name, value) for name, value in answer.headers if name not in {"content-length", "connection"}
    ]
    headers.append(("content-length", str(len(answer.body))))
    headers.append(("apigw-requestid", uuid.uuid4().hex[:16]))
    encoded = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
    await send({"type": "http.response.body", "body": b"" if is_head else answer.body})
