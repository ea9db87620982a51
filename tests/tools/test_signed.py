"""Payments and mail say for which tenant and saga they are, signed, so that the receiver can tell."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import pytest

from baton.adapters.memory.outside import MemoryMailer
from baton.ports.outside import HttpAnswer, HttpRequest
from baton.testing.outside import SIGNING_KEY
from tests.kit.payments import payment_service
from tests.tools.outside import HTTP, context, failure, perform, services

WANTED: dict[str, Any] = {"amount": 2_500, "currency": "EUR", "to": "lantern"}
LETTER = {"to": "ada@home.example", "subject": "Tönight", "text": "At 8.", "html": "<p>At 8.</p>"}


class Noting:
    """The real client; the requests are kept."""

    def __init__(self) -> None:
        self.sent: list[HttpRequest] = []

    async def send(self, request: HttpRequest) -> HttpAnswer:
        self.sent.append(request)
        return await HTTP.send(request)

    async def aclose(self) -> None:
        await HTTP.aclose()


def proof(headers: Mapping[str, str], *parts: str, content: bytes, key: str = SIGNING_KEY) -> str:
    """As docs/tools.md tells a receiver to make it."""
    said = [headers["baton-tenant"], headers["baton-saga"], headers["baton-time"]]
    text = "\n".join(["v1", *said, *parts, hashlib.sha256(content).hexdigest()])
    return "v1=" + hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def test_every_request_of_a_payment_is_signed_for_its_tenant_and_saga() -> None:
    client = Noting()
    with payment_service() as books:
        at = context(tenant="globex", saga="s7")
        perform("std.pay", services(http=client), at, service=books.url, **WANTED)
    assert len(client.sent) == 4
    for request in client.sent:
        headers = request.headers
        assert (headers["baton-tenant"], headers["baton-saga"]) == ("globex", "s7")
        parts = (request.method, request.url, headers.get("idempotency-key", ""))
        assert headers["baton-signature"] == proof(headers, *parts, content=request.body)
        assert headers["baton-signature"] != proof(
            {**headers, "baton-tenant": "acme"}, *parts, content=request.body
        )
    assert len({request.headers["baton-signature"] for request in client.sent}) == 4


def test_a_mail_is_signed_for_its_tenant_and_saga() -> None:
    mailer = MemoryMailer()
    of = services(mailer=mailer, mail_from="a@b.c")
    perform("std.notify", of, context(tenant="globex", saga="s7"), **LETTER)
    (letter,) = mailer.sent
    headers = {name.lower().removeprefix("x-"): value for name, value in letter.headers.items()}
    assert (headers["baton-tenant"], headers["baton-saga"]) == ("globex", "s7")
    content = "\0".join((LETTER["subject"], LETTER["text"], LETTER["html"])).encode()
    assert headers["baton-signature"] == proof(headers, "MAIL", LETTER["to"], content=content)
    assert all(value.isascii() and len(value) < 300 for value in letter.headers.values())


@pytest.mark.parametrize(
    ("tool", "given"), [("std.pay", WANTED), ("std.find_payment", {}), ("std.notify", LETTER)]
)
def test_without_a_key_nothing_is_asked_for(tool: str, given: dict[str, Any]) -> None:
    client, mailer = Noting(), MemoryMailer()
    parts = {"payments_url": "https://payments.example", "mail_from": "a@b.c", "signing_key": ""}
    error = failure(tool, services(http=client, mailer=mailer, **parts), **given)
    assert (error.code, "SigningKey" in error.message) == ("input_invalid", True)
    assert not client.sent
    assert not mailer.sent


def test_only_the_service_that_the_deployment_names_needs_no_place_on_the_list() -> None:
    client = Noting()
    with payment_service() as books:
        perform("std.pay", services(http=client, payments_url=books.url), **WANTED)
        assert {request.named for request in client.sent} == {True}
        client.sent.clear()
        perform("std.pay", services(http=client, payments_url=books.url), service=books.url, **WANTED)
        assert {request.named for request in client.sent} == {False}
