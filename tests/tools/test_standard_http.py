"""`std.http` against servers on loopback: what is sent, what comes back, and everything that servers do wrong."""

from __future__ import annotations

import asyncio
import json
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from typing import Any

import httpx
import pytest

from baton.adapters.http_client import AllowedHosts, LazyHttpClient
from baton.adapters.httpx_exchange import AddressRefused, HttpxClient, check_address
from baton.ports import StepFailure
from baton.ports.outside import HttpRequest
from baton.testing.outside import HOSTS
from tests.kit.payments import serving
from tests.kit.sentences import Says
from tests.tools.outside import Outside, context, failure, perform, services

HTTP = services()


# ---- what is sent --------------------------------------------------------------------------------------------


def test_a_request_carries_key_trace_query_headers_and_json(server: Outside) -> None:
    url = server.page("/orders", 201, b'{"id": 7}', etag='"1"', set_cookie="a=b")
    at = context("key-1", traceparent="00-a-b-01")
    answer = perform(
        "std.http", HTTP, at, url=url, method="POST", json={"n": 1.5}, query={"a b": "ü&", "c": True}, headers={"X-A": "1"},
    )  # fmt: skip
    assert answer == {
        "status": 201, "body": {"id": 7}, "headers": {"content-type": "application/json", "etag": '"1"'},
    }  # fmt: skip
    method, path, headers, body = server.seen[-1]
    assert (method, path, json.loads(body)) == ("POST", "/orders?a+b=%C3%BC%26&c=true", {"n": 1.5})
    sent = ("idempotency-key", "traceparent", "x-a", "content-type")
    assert [headers[name] for name in sent] == ["key-1", "00-a-b-01", "1", "application/json"]


def test_every_attempt_carries_the_same_key_and_one_of_the_callers_own_counts(server: Outside) -> None:
    url = server.page("/put")
    for attempt in (1, 2):
        perform("std.http", HTTP, context(attempt=attempt), url=url, method="PUT", text="ü")
        assert server.seen[-1][2:] == (server.headers | {"idempotency-key": "k1"}, "ü".encode())
    perform("std.http", HTTP, url=url, method="DELETE", headers={"Idempotency-Key": "own"})
    assert server.headers["idempotency-key"] == "own"
    perform("std.http", HTTP, url=url)
    assert "idempotency-key" not in server.headers


def test_nothing_is_remembered_from_one_request_to_the_next(server: Outside) -> None:
    login, page = server.page("/login", set_cookie="session=1; Path=/"), server.page("/page")

    async def both() -> None:
        client = HttpxClient(HOSTS)
        for url in (login, page):
            await client.send(HttpRequest(method="GET", url=url, within_ms=9_000, most=9))
        await client.aclose()

    asyncio.run(both())
    assert server.seen[-1][1] == "/page"
    assert "cookie" not in server.headers


# ---- what comes back -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "body", "expect", "read"),
    [
        ("application/problem+json; charset=utf-8", b"[1]", "auto", [1]),
        ("text/plain; charset=latin-1", b"\xfc", "auto", "ü"),
        ("text/plain; charset=no-such", b"x\xff", "auto", "x�"),
        ("text/html", b'{"a": 1}', "json", {"a": 1}),
        ("application/json", b'{"a": 1}', "text", '{"a": 1}'),
        ("application/json", b"", "auto", None),
    ],
)
def test_a_body_is_json_or_text(server: Outside, kind: str, body: bytes, expect: str, read: Any) -> None:
    url = server.page("/body", body=body, kind=kind)
    assert perform("std.http", HTTP, url=url, expect=expect)["body"] == read


@pytest.mark.parametrize(
    ("kind", "body"),
    [("text/html", b"<p>"), ("application/json", b"{"), ("text/plain", b""), ("a/b", b"NaN")],
)
def test_what_is_not_json_where_json_was_asked_for_is_no_answer(
    server: Outside, kind: str, body: bytes
) -> None:
    error = failure("std.http", HTTP, url=server.page("/bad", body=body, kind=kind), expect="json")
    assert (error.code, error.status) == ("invalid_response", 200)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "bad_request"), (401, "unauthorized"), (403, "forbidden"), (404, "not_found"), (409, "conflict"),
        (418, "client_error"), (422, "invalid_input"), (429, "rate_limited"), (500, "server_error"),
        (503, "service_unavailable"), (302, "resource_moved"),
    ],
)  # fmt: skip
def test_a_status_of_an_error_is_a_failure_with_what_the_service_says(
    server: Outside, status: int, code: str
) -> None:
    body = b'{"title": "No", "detail": "not today"}'
    error = failure("std.http", HTTP, url=server.page("/no", status, body, retry_after="12"), method="POST")
    assert (error.code, error.status, error.retry_after) == (code, status, "12")
    assert error.message == f"127.0.0.1 answered {status}: No: not today"


def test_a_code_of_the_services_own_says_more_than_the_status(server: Outside) -> None:
    body = b'{"error": {"code": "insufficient_quota", "message": "pay first"}}'
    error = failure("std.http", HTTP, url=server.page("/quota", 429, body))
    assert (error.code, error.status) == ("quota_exceeded", 429)
    assert error.message.endswith("429: pay first")


def test_not_modified_is_an_answer(server: Outside) -> None:
    assert perform("std.http", HTTP, url=server.page("/same", 304))["status"] == 304


# ---- redirects -----------------------------------------------------------------------------------------------


def test_a_redirect_is_followed_without_telling_another_host_what_only_the_first_should_know(
    server: Outside,
) -> None:
    port = server.url.rpartition(":")[2]
    server.page("/here", body=b"1")
    url = server.page("/moved", 302, location="/here")
    assert perform("std.http", HTTP, url=url, headers={"Authorization": "x"})["body"] == 1
    assert server.headers["authorization"] == "x"
    url = server.page("/away", 301, location=f"http://localhost:{port}/here")
    given = {"Authorization": "x", "X-Api-Key": "y", "Accept": "a/b"}
    assert perform("std.http", HTTP, url=url, headers=given)["body"] == 1
    assert {"authorization", "x-api-key"}.isdisjoint(server.headers)
    assert server.headers["accept"] == "a/b"


@pytest.mark.parametrize(
    ("location", "code"),
    [
        ("/circle", "resource_moved"),
        ("ftp://x/", "permission_denied"),
        ("file:///etc/passwd", "permission_denied"),
        ("http://[", "invalid_response"),
        ("http://169.254.169.254/latest", "permission_denied"),
    ],
)
def test_a_redirect_that_leads_nowhere_good_is_a_failure(server: Outside, location: str, code: str) -> None:
    assert failure("std.http", HTTP, url=server.page("/circle", 302, location=location)).code == code


# ---- time and size -------------------------------------------------------------------------------------------


def dripping(server: Outside) -> str:
    def drip(at: BaseHTTPRequestHandler) -> None:
        at.close_connection = True
        at.send_response(200)
        at.send_header("content-type", "text/plain")
        at.end_headers()
        try:
            while not server.over.wait(0.02):
                at.wfile.write(b".")
                at.wfile.flush()
        except OSError:
            pass  # the client has gone

    server.pages["/drip"] = drip
    return server.url + "/drip"


def test_a_body_that_drips_for_ever_ends_with_the_step(server: Outside) -> None:
    error = failure("std.http", HTTP, context(seconds=0.3), url=dripping(server))
    assert error.code == "timeout"


def test_a_request_has_a_timeout_of_its_own_all_redirects_included(server: Outside) -> None:
    there = dripping(server)
    error = failure("std.http", HTTP, url=server.page("/late", 302, location=there), timeout="200ms")
    assert error.code == "timeout"
    assert "within" in error.message


def test_with_no_time_left_nothing_is_sent(server: Outside) -> None:
    before = len(server.seen)
    assert failure("std.http", HTTP, context(seconds=0.01), url=server.page("/")).code == "timeout"
    assert len(server.seen) == before


def test_an_answer_that_is_too_large_is_left_where_it_is(server: Outside, says: Says) -> None:
    error = failure("std.http", HTTP, url=server.page("/large", body=b"1" * 100_001))
    assert error.code == "result_too_large"
    says(error.message)


def test_a_connection_that_ends_early_is_a_failure(server: Outside) -> None:
    def cut(at: BaseHTTPRequestHandler) -> None:
        at.close_connection = True
        at.send_response(200)
        at.send_header("content-length", "10")
        at.end_headers()
        at.wfile.write(b"123")

    server.pages["/cut"] = cut
    assert failure("std.http", HTTP, url=server.url + "/cut").code == "connection_failed"


def test_an_address_without_a_server_is_a_failure() -> None:
    with serving(BaseHTTPRequestHandler) as gone:
        pass
    assert failure("std.http", HTTP, url=gone).code == "connection_failed"


# ---- where no tool may go ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254", "169.254.170.2", "169.254.100.1", "fd00:ec2::254", "fe80::1", "0.0.0.0", "::",
        "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "224.0.0.1", "ff02::1",
    ],
)  # fmt: skip
def test_addresses_by_which_machines_speak_to_themselves_are_refused_in_every_form(address: str) -> None:
    with pytest.raises(AddressRefused):
        check_address(ip_address(address), 443, AllowedHosts(["*", "0.0.0.0/0", "::/0"]))


@pytest.mark.parametrize(
    "url",
    [
        "https://169.254.169.254/", "https://[fd00:ec2::254]/", "https://2852039166/", "https://0xa9fea9fe/",
        "https://169.254.43518/",
    ],
)  # fmt: skip
def test_the_service_that_hands_out_a_machines_credentials_is_not_called(url: str) -> None:
    assert failure("std.http", HTTP, url=url, timeout="5s").code == "permission_denied"


def test_what_the_runtime_of_the_function_listens_on_is_not_called(server: Outside) -> None:
    closed = services(http=LazyHttpClient(HOSTS, closed=[server.url.removeprefix("http://")]))
    before = len(server.seen)
    for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]"):
        url = server.page("/").replace("127.0.0.1", host)
        assert failure("std.http", closed, url=url).code == "permission_denied", host
    assert len(server.seen) == before


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://example.org/", "permission_denied"),
        ("http://127.0.0.1.example.org/", "permission_denied"),
        ("ftp://example.org/", "bad_request"),
        ("file:///etc/passwd", "bad_request"),
        ("https://", "bad_request"),
        ("example.org", "bad_request"),
        ("https://127.0.0.1:99999/", "bad_request"),
        ("https://exa\nmple.org/", "bad_request"),
        ("", "bad_request"),
    ],
)
def test_an_address_is_https_or_on_loopback(url: str, code: str) -> None:
    assert failure("std.http", HTTP, url=url).code == code


def test_a_host_that_the_deployment_names_may_be_called_without_tls() -> None:
    for plain in (["inside.example"], ["*"]):
        HttpxClient(plain=plain).check_scheme(httpx.URL("http://inside.example/"))
    with pytest.raises(StepFailure, match="without TLS"):
        HttpxClient(plain=["inside.example"]).check_scheme(httpx.URL("http://other.example/"))


# ---- what is asked for wrongly, and what is never told ---------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"json": 1, "text": "x"},
        {"timeout": "soon"},
        {"method": "TRACE"},
        {"expect": "xml"},
        {"headers": {"a": 1}},
    ],
)
def test_a_request_that_contradicts_itself_is_not_sent(server: Outside, wrong: dict[str, Any]) -> None:
    before = len(server.seen)
    assert failure("std.http", HTTP, url=server.page("/"), **wrong).code == "input_invalid"
    assert len(server.seen) == before


@pytest.mark.parametrize("headers", [{"a b": "hush"}, {"a": "hush\r\nb: c"}, {"ä": "hush"}, {"a": "hüsh"}])
def test_headers_that_http_does_not_know_are_refused_without_being_quoted(
    server: Outside, headers: dict[str, str]
) -> None:
    before = len(server.seen)
    error = failure("std.http", HTTP, url=server.page("/"), headers=headers)
    assert error.code == "bad_request"
    assert "hush" not in error.message
    assert len(server.seen) == before


def test_no_message_has_more_of_an_address_than_its_host(server: Outside) -> None:
    inner = server.page("/bot-hush/send", 500, b"broken").removeprefix("http://")
    address = f"http://hush:hush@{inner}?token=hush"
    assert failure("std.http", HTTP, url=address).message == "127.0.0.1 answered 500: broken"
    assert server.headers["authorization"].startswith("Basic ")
    for broken in (
        "https://hush:hush@[/",
        "https://hush@no.invalid:x/?a=hush",
        "http://hush@no.invalid/hush",
    ):
        assert "hush" not in failure("std.http", HTTP, url=broken).message
