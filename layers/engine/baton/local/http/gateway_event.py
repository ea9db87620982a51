"""API Gateway's payload format 2.0: from an HTTP request to a function's event, and from its answer back. Pure.

Source: API Gateway developer guide, "Create AWS Lambda proxy integrations for HTTP APIs". Which route a
request takes is in routing.py, who may call in jwt_authorizer.py.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, unquote

from baton.local.aws.ministack import ACCOUNT

_TEXT = ("text/", "application/json", "application/javascript", "application/xml")


class MalformedAnswer(Exception):
    """The function's answer is none that API Gateway understands; the caller gets a 500."""


@dataclass(frozen=True)
class HttpRequest:
    """`path` and `query` as they came, still percent-encoded; `headers` in order, names in lower case."""

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
    """The event. `claims` None: the route has no authorizer. `now` is epoch seconds."""
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
    """JWT claims as the event holds them: every value is text, a list is `[a b]`."""
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
    """From the function's answer. Raises `MalformedAnswer`."""
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
