"""Credentials of APIs: sent where the description wants them, to that API only, and shown nowhere."""

from __future__ import annotations

import json
import logging
import traceback
from typing import Any

import pytest

from baton.adapters.credentials import Credentials
from tests.kit.sentences import Says
from tests.tools.apis import (
    KEY,
    WEATHER,
    Shifted,
    Vault,
    forecast,
    refusal,
    secured,
    with_api,
)
from tests.tools.outside import THREADS, Outside, failure, services

HERE = "/v1/cities/Graz/forecast"


@pytest.mark.parametrize(
    ("scheme", "header", "value"),
    [
        ({"type": "http", "scheme": "Bearer"}, "authorization", f"Bearer {KEY}"),
        ({"type": "oauth2", "flows": {}}, "authorization", f"Bearer {KEY}"),
        ({"type": "apiKey", "in": "header", "name": "X-Api-Key"}, "x-api-key", KEY),
        ({"type": "apiKey", "in": "cookie", "name": "sid"}, "cookie", f"sid={KEY}"),
    ],
)
def test_the_credential_of_the_apis_name_stands_where_the_description_wants_it(
    scheme: dict[str, Any], header: str, value: str, server: Outside
) -> None:
    server.page(HERE, body=b"{}")
    forecast(with_api(server, secured(scheme), Vault(weather=KEY, other="no")))
    assert server.headers[header] == value
    assert KEY not in str(server.seen[-2]), "it is not sent for the description"


def test_as_a_user_with_a_password_and_in_the_query(server: Outside) -> None:
    server.page(HERE, body=b"{}")
    forecast(with_api(server, secured({"type": "http", "scheme": "basic"}), Vault(weather="ada:s3cret")))
    assert server.headers["authorization"] == "Basic YWRhOnMzY3JldA=="
    asked = {"type": "apiKey", "in": "query", "name": "key"}
    forecast(with_api(server, secured(asked), Vault(weather="a&b/c-d")))
    assert server.seen[-1][1].endswith("?days=3&key=a%26b%2Fc-d")


def test_an_argument_never_takes_the_place_of_the_credential(server: Outside) -> None:
    paths = json.loads(json.dumps(WEATHER["paths"]))
    paths["/cities/{city}/forecast"]["get"]["parameters"] += [
        {"name": name, "in": "header", "schema": {"type": "string"}}
        for name in ("X-Api-Key", "Authorization")
    ]
    scheme = {"type": "apiKey", "in": "header", "name": "X-API-Key"}
    here = with_api(server, secured(scheme, paths=paths), Vault(weather=KEY))
    server.page(HERE, body=b"{}")
    forecast(here, **{"X-Api-Key": "mine"})
    assert server.headers["x-api-key"] == KEY
    assert "Authorization" in refusal(here, parameters={"city": "G", "days": 1, "Authorization": "x"})[1]


def test_neither_credential_nor_address_is_in_a_log_or_a_representation(
    server: Outside, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.page(HERE, status=500, body=b"{}")
    for scheme in ({"type": "apiKey", "in": "query", "name": "appid"}, BEARER):
        here = with_api(server, secured(scheme), Vault(weather=KEY))
        found = failure(
            "std.openapi", here, api="weather", operation="forecast", parameters={"city": "Graz", "days": 1}
        )
        assert found.code == "server_error"
        shown = "".join(traceback.format_exception(found)) + repr(here) + caplog.text
        assert [word for word in (KEY, "4711", "/cities/") if word in shown] == []


BEARER = {"type": "http", "scheme": "bearer"}


def test_a_missing_credential_is_said_with_where_it_belongs_and_nothing_is_sent(
    server: Outside, says: Says
) -> None:
    server.page(HERE, body=b"{}")
    code, message = refusal(with_api(server, secured(BEARER)), parameters={"city": "Graz", "days": 1})
    assert code == "missing_credentials"
    says(message)
    assert server.seen[-1][1] == "/openapi.json"


def test_an_operation_that_needs_none_gets_none(server: Outside) -> None:
    server.page(HERE, body=b"{}")
    forecast(with_api(server, WEATHER, Vault(weather=KEY)))
    assert "authorization" not in server.headers
    forecast(with_api(server, secured(BEARER) | {"security": [{}, {"it": []}]}))
    assert "authorization" not in server.headers


def test_a_redirect_is_not_followed_and_gets_no_credential(server: Outside) -> None:
    here = with_api(server, secured(BEARER), Vault(weather=KEY))
    for there in ("/v1/there", "https://elsewhere.example/"):
        server.page(HERE, status=302, location=there)
        assert refusal(here, parameters={"city": "Graz", "days": 1})[0] == "resource_moved"
        assert server.seen[-1][1].startswith(HERE)


@pytest.mark.parametrize("status", [200, 400, 500])
def test_a_service_that_repeats_the_credential_is_not_quoted(status: int, server: Outside) -> None:
    for scheme, key in ((BEARER, 'ak/47"11/of'), ({"type": "http", "scheme": "basic"}, "ada:s3cret/x")):
        here = with_api(server, secured(scheme), Vault(weather=key))
        said = json.dumps({"detail": f"you sent {key}"}).replace("/", r"\/").encode()
        server.page(HERE, status=status, body=said, etag="Basic YWRhOnMzY3JldC94", location=key)
        found = (
            str(forecast(here)) if status == 200 else refusal(here, parameters={"city": "Graz", "days": 1})[1]
        )
        assert "[redacted]" in found
        for secret in (key, "s3cret/x", "YWRhOnMzY3JldC94" if scheme is not BEARER else key):
            assert secret not in found


def test_a_credential_that_was_replaced_is_read_anew_and_one_that_stays_refused_is_not_quoted(
    server: Outside, says: Says
) -> None:
    vault = Vault(weather="an-old-one")
    here = with_api(server, secured(BEARER), vault)
    clock = Shifted()
    here = services(apis=here.apis, credentials=Credentials(vault, clock, THREADS, "the API"))

    def guarded(at: Any) -> None:
        is_right = at.headers["authorization"] == "Bearer a-new-one"
        body = b"{}" if is_right else b'{"detail": "an-old-one"}'
        at.send_response(200 if is_right else 401)
        at.send_header("content-length", str(len(body)))
        at.end_headers()
        at.wfile.write(body)

    server.pages[HERE] = guarded
    code, message = refusal(here, parameters={"city": "Graz", "days": 1})
    assert (code, "an-old-one" in message) == ("unauthorized", False)
    says(message)
    vault.kept["weather"], clock.by = "a-new-one", 20_000
    assert forecast(here)["status"] == 200
