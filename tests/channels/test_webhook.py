"""Webhooks against a receiver on loopback that checks them as the Standard Webhooks specification says."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from msgspec.structs import replace

from baton.adapters.channels.webhook import WebhookNotices, signatures
from baton.adapters.http_client import LazyHttpClient
from baton.errors import ChannelRefused, StoreUnavailable, Throttled
from tests.channels.test_words import AT, TOLD
from tests.tools.conftest import server as server  # a fixture
from tests.tools.outside import Outside

OLD, NEW = (f"whsec_{base64.b64encode(bytes([number]) * 32).decode()}" for number in (1, 2))


def hook(url: str, secrets: str = NEW, hosts: tuple[str, ...] = ("127.0.0.1",)) -> WebhookNotices:
    return WebhookNotices(url, secrets, lambda: LazyHttpClient(hosts))


def verified(seen: tuple[str, str, dict[str, str], bytes], secret: str) -> Any:
    """What a receiver with this secret reads of a request; None if none of the signatures is right."""
    method, _, headers, body = seen
    assert (method, headers["content-type"]) == ("POST", "application/json")
    message, timestamp = headers["webhook-id"], headers["webhook-timestamp"]
    key = base64.b64decode(secret.split("_", 1)[1])
    content = f"{message}.{timestamp}.{body.decode()}".encode()
    expected = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    for each in headers["webhook-signature"].split(" "):
        version, _, signature = each.partition(",")
        if version == "v1" and hmac.compare_digest(signature, expected):
            return json.loads(body)
    return None


def test_the_signature_is_that_of_the_specifications_own_libraries() -> None:
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = signatures([key], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b'{"test": 2432232314}')
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_receiver_can_verify_it_while_the_secret_changes_and_knows_a_repetition(server: Outside) -> None:
    url = server.page("/hook", 204)
    hook(url, f"{NEW} {OLD}").tell(TOLD)
    hook(url).tell(replace(TOLD, now=AT + 60_000))
    first, again = server.seen[-2:]
    for secret, is_valid in ((OLD, True), (NEW, True), (f"whsec_{'A' * 32}", False)):
        assert (verified(first, secret) is not None) == is_valid
    assert verified(again, OLD) is None
    said = verified(again, NEW)
    assert (said["type"], said["timestamp"]) == ("baton.question.asked", "2026-09-21T14:13:20.000Z")
    assert said["data"]["question"]["id"] == "0.how"
    assert first[2]["webhook-id"] == again[2]["webhook-id"]
    assert [int(one[2]["webhook-timestamp"]) for one in (first, again)] == [AT // 1_000, AT // 1_000 + 60]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        *((status, None) for status in (200, 202, 204, 299)),
        *((status, ChannelRefused) for status in (400, 401, 404, 410, 422)),
        *((status, StoreUnavailable) for status in (301, 307, 408, 409, 425, 500, 503)),
        (429, Throttled),
    ],
)
def test_what_an_answer_means(server: Outside, status: int, error: type[Exception] | None) -> None:
    url, before = server.page("/hook", status, location=f"{server.url}/elsewhere"), len(server.seen)
    if error is None:
        hook(url).tell(TOLD)
    else:
        with pytest.raises(error, match=str(status)):
            hook(url).tell(TOLD)
    assert [path for _, path, *_ in server.seen[before:]] == ["/hook"], "no redirect is followed"


@pytest.mark.parametrize(
    ("url", "hosts", "why"),
    [
        ("https://elsewhere.example/hook?token=hush", ("127.0.0.1",), "HttpHosts"),
        ("https://169.254.169.254/hook?token=hush", ("*",), "speak to themselves"),
        ("http://hooks.example/hook?token=hush", ("*",), "without TLS"),
    ],
)
def test_no_host_is_called_that_is_not_allowed_nor_without_tls(
    url: str, hosts: tuple[str, ...], why: str
) -> None:
    with pytest.raises(ChannelRefused, match=why) as refused:
        hook(url, hosts=hosts).tell(TOLD)
    assert "hush" not in str(refused.value)


def test_a_receiver_that_is_away_is_asked_again(server: Outside) -> None:
    with pytest.raises(StoreUnavailable):
        hook("http://127.0.0.1:1/hook").tell(TOLD)


@pytest.mark.parametrize("secrets", ["", "plain", "whsec_%%%", "whsec_", f"{NEW} hush"])
def test_a_secret_that_is_none_is_said_without_saying_it(secrets: str) -> None:
    with pytest.raises(ValueError, match="secret") as wrong:
        hook("https://a.example", secrets)
    assert "hush" not in str(wrong.value)
