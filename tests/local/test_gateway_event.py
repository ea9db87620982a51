"""The shape of an HTTP API's events and answers, payload format 2.0, and which route a request takes."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import replace
from typing import Any, cast

import pytest

from baton.local.gateway import (
    Gateway,
    HttpRequest,
    MalformedAnswer,
    Router,
    TokenBucket,
    claims_as_text,
    to_answer,
    to_event,
)
from baton.local.stack import HttpApi, Route

JSON = ("content-type", "application/json; charset=utf-8")


def event(request: HttpRequest, **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "route_key": "$default",
        "path_parameters": {},
        "claims": None,
        "scopes": None,
        "api_id": "local",
        "request_id": "request",
        "now": 1_583_348_638.39,
    }
    return to_event(request, **{**given, **more})


def request(**more: Any) -> HttpRequest:
    given: dict[str, Any] = {"method": "GET", "path": "/", "query": "", "headers": [], "body": b""}
    return HttpRequest(**{**given, **more})


def test_a_whole_event_looks_as_in_the_documentation() -> None:
    seen = event(
        request(
            method="POST",
            path="/sagas/a%20b",
            query="parameter1=value1&parameter1=value2&parameter2=va%20lue",
            headers=[
                ("host", "127.0.0.1:8080"),
                ("user-agent", "agent"),
                ("cookie", "cookie1=a; cookie2=b"),
                ("x-many", "1"),
                ("x-many", "2"),
                JSON,
            ],
            body=b'{"a":1}',
        ),
        route_key="POST /sagas/{id}",
        path_parameters={"id": "a b"},
        claims={"sub": "u"},
        scopes=("write",),
    )
    assert seen == {
        "version": "2.0",
        "routeKey": "POST /sagas/{id}",
        "rawPath": "/sagas/a b",
        "rawQueryString": "parameter1=value1&parameter1=value2&parameter2=va%20lue",
        "cookies": ["cookie1=a", "cookie2=b"],
        "headers": {
            "host": "127.0.0.1:8080",
            "user-agent": "agent",
            "x-many": "1,2",
            "content-type": "application/json; charset=utf-8",
            "x-forwarded-for": "127.0.0.1",
            "x-forwarded-proto": "http",
        },
        "queryStringParameters": {"parameter1": "value1,value2", "parameter2": "va lue"},
        "pathParameters": {"id": "a b"},
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "local",
            "authorizer": {"jwt": {"claims": {"sub": "u"}, "scopes": ["write"]}},
            "domainName": "127.0.0.1:8080",
            "domainPrefix": "local",
            "http": {
                "method": "POST",
                "path": "/sagas/a b",
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": "agent",
            },
            "requestId": "request",
            "routeKey": "POST /sagas/{id}",
            "stage": "$default",
            "time": "04/Mar/2020:19:03:58 +0000",
            "timeEpoch": 1583348638390,
        },
        "body": '{"a":1}',
        "isBase64Encoded": False,
    }


def test_what_is_empty_is_left_out() -> None:
    seen = event(request())
    assert not {"body", "cookies", "queryStringParameters", "pathParameters"} & set(seen)
    assert "authorizer" not in seen["requestContext"]


@pytest.mark.parametrize(
    ("headers", "body", "as_text"),
    [
        ([JSON], b"{}", True),
        ([("content-type", "application/problem+json")], b"{}", True),
        ([("content-type", "text/yaml")], b"a: 1", True),
        ([("content-type", "application/octet-stream")], b"a", False),
        ([], b"a", False),
        ([JSON], b"\xff", False),
        ([JSON, ("content-encoding", "gzip")], b"{}", False),
    ],
)
def test_a_body_is_text_only_if_its_type_says_so(headers: Any, body: bytes, as_text: bool) -> None:
    seen = event(request(method="POST", headers=headers, body=body))
    assert seen["isBase64Encoded"] is not as_text
    assert seen["body"] == (body.decode() if as_text else base64.b64encode(body).decode())


def test_claims_arrive_as_text() -> None:
    claims = {"exp": 5, "groups": ["a", "b"], "admin": True, "address": {"city": "x"}, "sub": "u"}
    assert claims_as_text(claims) == {
        "exp": "5",
        "groups": "[a b]",
        "admin": "true",
        "address": '{"city": "x"}',
        "sub": "u",
    }


@pytest.mark.parametrize(
    ("answer", "status", "body", "headers"),
    [
        ({"statusCode": 204}, 204, b"", []),
        (
            {"statusCode": "201", "body": "{}", "headers": {"Content-Type": "application/json", "X-N": 5}},
            201,
            b"{}",
            [("content-type", "application/json"), ("x-n", "5")],
        ),
        (
            {"statusCode": 200, "cookies": ["a=1", "b=2"]},
            200,
            b"",
            [("set-cookie", "a=1"), ("set-cookie", "b=2")],
        ),
        (
            {"statusCode": 200, "body": "/w==", "isBase64Encoded": True, "headers": {"content-type": "a/b"}},
            200,
            b"\xff",
            [("content-type", "a/b")],
        ),
        ({"statusCode": 200, "body": "x"}, 200, b"x", [("content-type", "text/plain; charset=utf-8")]),
        ({"a": 1}, 200, b'{"a": 1}', [("content-type", "application/json")]),
        ("text", 200, b"text", [("content-type", "application/json")]),
        (None, 200, b"null", [("content-type", "application/json")]),
    ],
)
def test_an_answer_becomes_a_response(answer: Any, status: int, body: bytes, headers: Any) -> None:
    seen = to_answer(json.dumps(answer).encode())
    assert (seen.status, seen.body, list(seen.headers)) == (status, body, headers)


@pytest.mark.parametrize(
    "answer",
    [
        b"nothing",
        b'{"statusCode": "soon"}',
        b'{"statusCode": 99}',
        b'{"statusCode": 200, "body": {"a": 1}}',
        b'{"statusCode": 200, "body": "%", "isBase64Encoded": true}',
    ],
)
def test_an_answer_that_api_gateway_would_not_understand_is_refused(answer: bytes) -> None:
    with pytest.raises(MalformedAnswer):
        to_answer(answer)


def routes(*keys: str) -> Router:
    return Router([Route(key, "F", 30, None) for key in keys])


@pytest.mark.parametrize(
    ("method", "path", "key", "parameters"),
    [
        ("GET", "/health", "GET /health", {}),
        ("POST", "/health", "$default", {}),
        ("GET", "/sagas/a%2Fb", "ANY /sagas/{id}", {"id": "a/b"}),
        ("POST", "/sagas/1", "POST /sagas/{id}", {"id": "1"}),
        ("GET", "/sagas/mine", "GET /sagas/mine", {}),
        ("GET", "/sagas/1/events/2", "GET /sagas/{rest+}", {"rest": "1/events/2"}),
        ("GET", "/healthy", "$default", {}),
    ],
)
def test_the_most_specific_route_is_taken(
    method: str, path: str, key: str, parameters: dict[str, str]
) -> None:
    router = routes(
        "$default",
        "GET /sagas/{rest+}",
        "ANY /sagas/{id}",
        "POST /sagas/{id}",
        "GET /sagas/mine",
        "GET /health",
    )
    found = router.find(method, path)
    assert found is not None
    assert (found[0].key, found[1]) == (key, parameters)


def test_without_a_default_route_an_unknown_path_is_not_found() -> None:
    assert routes("GET /health").find("GET", "/x") is None


def test_a_stage_lets_a_burst_through_and_then_its_rate() -> None:
    bucket = TokenBucket(rate=2, burst=3, now=0)
    assert [bucket.take(0) for _ in range(4)] == [True, True, True, False]
    assert [bucket.take(0.5), bucket.take(0.5)] == [True, False]
    assert all(TokenBucket(0, 0, 0).take(0) for _ in range(9))


class Answering:
    """A function that answers with 200."""

    ok, payload = True, b'{"statusCode": 200}'

    def find(self, name: str) -> Answering:
        return self

    async def invoke(self, payload: bytes, kind: str) -> Answering:
        return self


def test_a_route_with_a_throttle_of_its_own_leaves_the_others_alone() -> None:
    async def statuses(key: str) -> list[int]:
        method, path = key.split()
        return [(await gateway._handle(request(method=method, path=path))).status for _ in range(4)]

    own, other = "POST /open", "GET /other"
    routes = tuple(Route(key, "api", 1, None) for key in (own, other))
    api = HttpApi("Api", routes, rate=100, burst=100, throttles={own: (0.001, 2)})
    gateway = Gateway(api, "id", cast("Any", Answering()))
    assert asyncio.run(statuses(own)) == [200, 200, 429, 429]
    assert asyncio.run(statuses(other)) == [200] * 4


def test_pages_of_named_origins_get_their_headers_and_a_browser_is_answered_first() -> None:
    origin = "http://127.0.0.1:8080"
    api = HttpApi(
        "Api",
        (Route("GET /x", "api", 1, None),),
        origins=frozenset({origin}),
        cors={"access-control-allow-methods": "GET"},
    )
    gateway = Gateway(api, "id", cast("Any", Answering()))

    def asked(method: str, origin: str) -> tuple[int, dict[str, str]]:
        headers = [("origin", origin), ("access-control-request-method", "GET")]
        answer = asyncio.run(gateway._allowed(replace(request(method=method, path="/x"), headers=headers)))
        return answer.status, dict(answer.headers)

    status, headers = asked("OPTIONS", origin)
    assert (status, headers["access-control-allow-origin"]) == (204, origin)
    assert headers["access-control-allow-methods"] == "GET"
    status, headers = asked("GET", origin)
    assert (status, headers["access-control-allow-origin"]) == (200, origin)
    for method in ("OPTIONS", "GET"):
        _, headers = asked(method, "http://elsewhere.example")
        assert "access-control-allow-origin" not in headers
