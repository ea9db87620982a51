"""`baton token`: a token of the local run for another user, and for no other API."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says


def token_of(**claims: Any) -> str:
    body = urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{body}.c2ln"


def test_the_local_run_signs_a_token_for_another_user(api: FakeApi, baton: Baton) -> None:
    mine = token_of(iss=api.url, sub="me")
    api.on("POST /token", (200, {"token": "a.b.c"}))
    words = ["bob", "--group", "kitchen", "--group", "bar", "--role", "answer"]
    result = baton("token", *words, env={"BATON_TOKEN": mine})
    assert (result.exit_code, result.stdout) == (0, "a.b.c\n")
    (asked,) = api.asked
    assert asked.json == {"user": "bob", "groups": ["kitchen", "bar"], "roles": ["answer"]}
    assert asked.headers["authorization"] == f"Bearer {mine}"
    result = baton("token", "bob", "--json", env={"BATON_TOKEN": mine})
    usual = ["read", "run", "answer"]
    assert json.loads(result.stdout) == {"user": "bob", "groups": [], "roles": usual, "token": "a.b.c"}


def test_what_the_local_run_says_against_it_is_told(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("POST /token", (400, {"title": "No token is signed", "detail": "there is no role `x`"}))
    result = baton("token", "bob", "--role", "x", env={"BATON_TOKEN": token_of(iss=api.url)})
    assert result.exit_code == 3
    says(result.stderr)


@pytest.mark.parametrize(
    "token",
    [
        token_of(iss="https://issuer.example.com"),
        token_of(iss="http://127.0.0.1.example.com"),
        token_of(iss="http://127.0.0.1:1@example.com"),
        token_of(iss=["http://127.0.0.1:1"]),
        token_of(sub="me"),
        "e30.WzFd.c2ln",
        "opaque",
        "a.b\u00fcc.d",
    ],
)
def test_a_token_of_another_issuer_is_sent_nowhere(
    api: FakeApi, baton: Baton, token: str, says: Says
) -> None:
    result = baton("token", "bob", env={"BATON_TOKEN": token})
    assert result.exit_code in (2, 4)
    assert api.asked == []
    if token.isascii():
        says(result.stderr)
        assert "BATON_TOKEN" in result.stderr


def test_with_aws_credentials_there_is_no_token_to_sign(api: FakeApi, baton: Baton) -> None:
    result = baton("--aws", "token", "bob", env={"BATON_TOKEN": None, "AWS_REGION": "eu-central-1"})
    assert (result.exit_code, api.asked) == (4, [])
