"""API Gateway's HTTP API on loopback: routes, limits, the JWT authorizer, and payload format 2.0."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
import time
import urllib.request
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, unquote

import jwt
from starlette.types import Receive, Scope, Send

from baton.local.aws import ACCOUNT
from baton.local.functions import Lambdas, Throttled
from baton.local.processes import LocalRunError
from baton.local.stack import Authorizer, HttpApi, Route

_TEXT = ("text/", "application/json", "application/javascript", "application/xml")


class MalformedAnswer(Exception):
    """Error for an answer of a function that API Gateway does not accept. The caller receives a 500."""


@dataclass(frozen=True)
class HttpRequest:
    """A request. `path` and `query` are percent-encoded; `headers` are in order, with names in lower case."""

    method: str
    path: str
    query: str
    headers: Sequence[tuple[str, str]]
    body: bytes
    client: str = "127.0.0.1"
    protocol: str = "HTTP/1.1"

    def header(self, name: str) -> str:
        return ",".join(value for key, value in self.headers if key == name)


@dataclass(frozen=True)
class HttpAnswer:
    status: int
    body: bytes
    headers: Sequence[tuple[str, str]] = field(default_factory=list)


def to_event(
    request: HttpRequest,
    *,
    route_key: str,
    path_parameters: Mapping[str, str],
    claims: Mapping[str, str] | None,
    scopes: Sequence[str] | None,
    api_id: str,
    request_id: str,
    now: float,
) -> dict[str, Any]:
    """Return the event of a request. `claims` None: the route has no authorizer. `now` is epoch seconds."""
    path = unquote(request.path)  # HTTP APIs decode it, unlike REST APIs and function URLs
    headers: dict[str, str] = {}
    for name, value in request.headers:
        if name != "cookie":
            headers[name] = f"{headers[name]},{value}" if name in headers else value
    headers.setdefault("x-forwarded-for", request.client)
    headers.setdefault("x-forwarded-proto", "http")
    cookies = [
        part.strip()
        for name, value in request.headers
        if name == "cookie"
        for part in value.split(";")
        if part.strip()
    ]
    query: dict[str, str] = {}
    for name, value in parse_qsl(request.query, keep_blank_values=True):
        query[name] = f"{query[name]},{value}" if name in query else value
    context: dict[str, Any] = {
        "accountId": ACCOUNT,
        "apiId": api_id,
        "domainName": headers.get("host", "localhost"),
        "domainPrefix": api_id,
        "http": {
            "method": request.method,
            "path": path,
            "protocol": request.protocol,
            "sourceIp": request.client,
            "userAgent": headers.get("user-agent", ""),
        },
        "requestId": request_id,
        "routeKey": route_key,
        "stage": "$default",
        "time": datetime.fromtimestamp(now, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000"),
        "timeEpoch": int(now * 1000),
    }
    if claims is not None:
        context["authorizer"] = {"jwt": {"claims": dict(claims), "scopes": list(scopes) if scopes else None}}
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route_key,
        "rawPath": path,
        "rawQueryString": request.query,
        "headers": headers,
        "requestContext": context,
        "isBase64Encoded": False,
    }
    # What is empty is left out, not sent as null.
    if cookies:
        event["cookies"] = cookies
    if query:
        event["queryStringParameters"] = query
    if path_parameters:
        event["pathParameters"] = dict(path_parameters)
    if request.body:
        event["body"], event["isBase64Encoded"] = _body(request)
    return event


def _body(request: HttpRequest) -> tuple[str, bool]:
    kind = request.header("content-type").lower()
    is_text = kind.startswith(_TEXT) or "+json" in kind or "+xml" in kind
    if is_text and not request.header("content-encoding"):
        try:
            return request.body.decode("utf-8"), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(request.body).decode(), True


def claims_as_text(claims: Mapping[str, Any]) -> dict[str, str]:
    """Return JWT claims as in an event: every value is text, a list is `[a b]`."""
    shown = {}
    for name, value in claims.items():
        if isinstance(value, bool):
            shown[name] = "true" if value else "false"
        elif value is None:
            shown[name] = "<nil>"
        elif isinstance(value, list):
            shown[name] = f"[{' '.join(map(str, value))}]"
        elif isinstance(value, dict):
            shown[name] = json.dumps(value)
        else:
            shown[name] = str(value)
    return shown


def to_answer(payload: bytes) -> HttpAnswer:
    """Return the answer from the payload of a function. Raises `MalformedAnswer`."""
    try:
        answer = json.loads(payload)
    except ValueError as error:
        raise MalformedAnswer(f"not JSON: {error}") from error
    if not isinstance(answer, dict) or "statusCode" not in answer:
        # No status code: the whole answer is the body.
        body = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        return HttpAnswer(200, body, [("content-type", "application/json")])
    try:
        status = int(answer["statusCode"])
    except (TypeError, ValueError):
        raise MalformedAnswer(f"statusCode {answer['statusCode']!r} is not a number") from None
    if not 100 <= status <= 599:
        raise MalformedAnswer(f"statusCode {status} is none of HTTP")
    headers = [
        (str(name).lower(), _header_value(value)) for name, value in (answer.get("headers") or {}).items()
    ]
    headers += [("set-cookie", str(cookie)) for cookie in answer.get("cookies") or []]
    data = _answer_body(answer)
    if data and not any(name == "content-type" for name, _ in headers):
        headers.append(("content-type", "text/plain; charset=utf-8"))
    return HttpAnswer(status, data, headers)


def _answer_body(answer: Mapping[str, Any]) -> bytes:
    body = answer.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        raise MalformedAnswer("body is not a string")
    if not answer.get("isBase64Encoded"):
        return body.encode()
    try:
        return base64.b64decode(body, validate=True)
    except ValueError as error:
        raise MalformedAnswer(f"body is not base64: {error}") from error


def _header_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


_KEYS_KEPT_S = 2 * 3600  # as API Gateway does
_TIMEOUT_S = 5.0
_ASK_AGAIN_S = 10.0


class Refused(Exception):
    """Refusal of a request: 401 for a missing or invalid token, 403 for one without the scope."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True)
class Caller:
    claims: dict[str, Any]
    scopes: tuple[str, ...]


class JwtAuthorizer:
    """JWT authorizer of the API. It caches the issuer's keys."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched = -_KEYS_KEPT_S * 1.0
        self._lock = asyncio.Lock()

    async def check(self, request: HttpRequest, wanted_scopes: tuple[str, ...]) -> Caller:
        """Return the caller. Raises `Refused`."""
        token = request.header(self._authorizer.header).strip()
        if token[:7].lower() == "bearer ":
            token = token[7:].strip()
        if not token:
            raise Refused(401, "there is no token")
        try:
            key = await self._key(str(jwt.get_unverified_header(token).get("kid", "")))
            claims = jwt.decode(
                token,
                key,
                algorithms=["RS256"],
                issuer=self._authorizer.issuer,
                options={"require": ["exp", "iss"], "verify_aud": False},
            )
        except jwt.PyJWTError as error:
            raise Refused(401, str(error)) from error
        self._check_audience(claims)
        scopes = scopes_of(claims)
        if wanted_scopes and not set(wanted_scopes) & set(scopes):
            raise Refused(403, f"needs one of the scopes {', '.join(wanted_scopes)}")
        return Caller(claims, tuple(scope for scope in scopes if scope in wanted_scopes))

    def _check_audience(self, claims: dict[str, Any]) -> None:
        # API Gateway looks at client_id only if there is no aud.
        audience = claims.get("aud", claims.get("client_id", ""))
        given = audience if isinstance(audience, list) else [audience]
        if not set(given) & set(self._authorizer.audiences):
            raise Refused(401, f"the audience {audience!r} is not one of {self._authorizer.audiences}")

    async def _key(self, key_id: str) -> jwt.PyJWK:
        async with self._lock:
            age_s = time.monotonic() - self._fetched
            if age_s > _KEYS_KEPT_S or (key_id not in self._keys and age_s > _ASK_AGAIN_S):
                try:
                    self._keys = await asyncio.to_thread(_fetch_keys, self._authorizer.issuer)
                except (OSError, ValueError, KeyError) as error:
                    raise Refused(401, f"the issuer's keys cannot be read: {error}") from error
                self._fetched = time.monotonic()
        if key_id not in self._keys:
            raise Refused(401, f"the issuer has no key {key_id!r}")
        return self._keys[key_id]


def scopes_of(claims: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the scopes of a token, which are a space-separated text or a list."""
    given = claims.get("scope", claims.get("scp"))
    values = given.split() if isinstance(given, str) else given if isinstance(given, list) else ()
    return tuple(value for value in values if isinstance(value, str))


def _fetch_keys(issuer: str) -> dict[str, jwt.PyJWK]:
    configuration = _get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    keys = jwt.PyJWKSet.from_dict(_get(configuration["jwks_uri"])).keys
    return {str(key.key_id): key for key in keys}


def _get(url: str) -> dict[str, Any]:
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url!r} is not an http(s) address")
    # No proxies: a proxy of the surrounding shell must not be asked about loopback.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=_TIMEOUT_S) as answer:
        document: dict[str, Any] = json.loads(answer.read())
    return document


_PARAMETER = re.compile(r"\{([\w.:-]+)(\+?)\}")


@dataclass(frozen=True)
class _Compiled:
    route: Route
    pattern: re.Pattern[str]
    rank: tuple[int, int, int]


class Router:
    def __init__(self, routes: Sequence[Route]) -> None:
        self._default = next((route for route in routes if route.key == "$default"), None)
        compiled = [_compile(route) for route in routes if route.key != "$default"]
        self._routes = sorted(compiled, key=lambda entry: entry.rank)

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        """Return the route and its path parameters, or None for 404. `path` is percent-encoded."""
        for entry in self._routes:
            if entry.route.method in ("ANY", method):
                match = entry.pattern.fullmatch(path)
                if match:
                    values = (unquote(value) for value in match.groups())
                    return entry.route, dict(zip(_names(entry.route.path), values, strict=True))
        return (self._default, {}) if self._default else None


def _names(path: str) -> list[str]:
    return [match[1] for match in _PARAMETER.finditer(path)]


def _compile(route: Route) -> _Compiled:
    source, end = "", 0
    greedy = parameters = 0
    for match in _PARAMETER.finditer(route.path):
        source += re.escape(route.path[end : match.start()]) + ("(.+)" if match[2] else "([^/]+)")
        greedy += bool(match[2])
        parameters += not match[2]
        end = match.end()
    source += re.escape(route.path[end:])
    # A method of its own comes before ANY on the same path.
    return _Compiled(route, re.compile(source), (greedy, parameters, route.method == "ANY"))


class TokenBucket:
    """Throttling of a stage: `burst` at once, `rate` per second. 0 means no limit."""

    def __init__(self, rate: float, burst: int, now: float) -> None:
        self._rate, self._burst = rate, float(burst)
        self._tokens, self._last = self._burst, now

    def take(self, now: float) -> bool:
        if not self._rate or not self._burst:
            return True
        self._tokens = min(self._burst, self._tokens + (now - self._last) * self._rate)
        self._last = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


log = logging.getLogger("baton.local")
_MAX_BODY_BYTES = 10 * 1024 * 1024
_MAX_EVENT_BYTES = 6 * 1024 * 1024


class Gateway:
    def __init__(self, api: HttpApi, api_id: str, lambdas: Lambdas) -> None:
        self._api_id, self._lambdas = api_id, lambdas
        self._origins, self._cors = api.origins, api.cors
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
        answer = (
            await self._allowed(request) if request is not None else _say(413, "Request Entity Too Large")
        )
        await _write(answer, send, is_head=scope["method"] == "HEAD")

    async def _allowed(self, request: HttpRequest) -> HttpAnswer:
        """Handle a request, with the headers for a page of another origin; a browser's question before it is
        answered here.
        """
        if (origin := request.header("origin")) not in self._origins:
            return await self._handle(request)
        headers = [("access-control-allow-origin", origin), ("vary", "origin"), *self._cors.items()]
        if request.method == "OPTIONS" and request.header("access-control-request-method"):
            return HttpAnswer(204, b"", headers)
        answer = await self._handle(request)
        return HttpAnswer(answer.status, answer.body, [*answer.headers, *headers])

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
    """Return the whole request, or None if its body exceeds API Gateway's limit."""
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
