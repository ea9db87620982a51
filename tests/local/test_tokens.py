"""The local run's tokens: whom they name, and what their bearer may do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx
import jwt
import pytest
from starlette.applications import Starlette

from baton.local.gateway import scopes_of
from baton.local.sign_in import TokenIssuer
from baton.settings import ROLES


def claims(token: str) -> dict[str, Any]:
    read: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return read


@pytest.fixture(scope="module")
def issuer() -> TokenIssuer:
    return TokenIssuer("http://127.0.0.1:1", "org", roles_claim="groups")


def test_a_token_names_user_and_tenant_and_has_every_role(issuer: TokenIssuer) -> None:
    found = claims(issuer.token("ada", "acme"))
    assert (found["sub"], found["org"], found["groups"]) == ("ada", "acme", list(ROLES))
    assert found["exp"] - found["iat"] == 12 * 3_600


@pytest.mark.parametrize("roles", [(), ("read",), ("run", "answer")])
def test_a_token_can_be_made_with_fewer_roles(roles: Sequence[str], issuer: TokenIssuer) -> None:
    assert claims(issuer.token("ada", "acme", roles=roles))["groups"] == list(roles)


def test_a_token_can_be_made_without_the_claim(issuer: TokenIssuer) -> None:
    assert "groups" not in claims(issuer.token("ada", "acme", roles=None))


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({"scope": "read run"}, ("read", "run")),
        ({"scp": ["read", "run"]}, ("read", "run")),
        ({"scope": ["cannot operate"]}, ("cannot operate",)),
        ({"scope": ["operate", None, 7, True]}, ("operate",)),
        ({"scope": None}, ()),
        ({"scope": True}, ()),
        ({"scope": {"operate": True}}, ()),
        ({}, ()),
    ],
)
def test_the_scopes_of_a_token_are_exact_values(claims: dict[str, Any], scopes: tuple[str, ...]) -> None:
    assert scopes_of(claims) == scopes


# ---- tokens for other users


def asked(issuer: TokenIssuer, token: str, **body: Any) -> tuple[int, dict[str, Any]]:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=Starlette(routes=issuer.pages()))
        async with httpx.AsyncClient(transport=transport, base_url=issuer.issuer) as client:
            return await client.post("/token", json=said, headers=headers)

    said = {"user": "bob", "roles": ["answer"], "groups": [], **body}
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = asyncio.run(ask())
    return answer.status_code, answer.json()


def test_an_operator_gets_a_token_for_another_user_of_the_same_tenant() -> None:
    issuer = TokenIssuer("http://127.0.0.1:1")
    mine = issuer.token("ada", "acme")
    status, answer = asked(issuer, mine, groups=["kitchen", "night shift"])
    found = claims(answer["token"])
    assert (status, found["sub"], found["tenant"]) == (200, "bob", "acme")
    assert (found["roles"], found["groups"]) == (["answer"], ["kitchen", "night shift"])
    status, answer = asked(issuer, answer["token"], user="eve")
    assert (status, "`operate`" in answer["detail"]) == (403, True)


def test_only_a_token_of_this_run_that_is_good_gets_another_one(issuer: TokenIssuer) -> None:
    stranger = TokenIssuer("http://127.0.0.1:1", "org", roles_claim="groups")
    for token in ("", "nonsense", stranger.token("ada", "acme"), issuer.token("ada", "acme", ttl_s=-60)):
        assert asked(issuer, token)[0] == 401, token


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"roles": ["answr"]}, "there is no role `answr`. Did you mean `answer`?"),
        ({"user": ""}, "`user`"),
        ({"user": "bob smith"}, "`user`"),
        ({"user": 7}, "`user`"),
        ({"groups": [""]}, "`groups`"),
        ({"groups": "kitchen"}, "`groups`"),
        ({"roles": None}, "`roles`"),
    ],
)
def test_a_token_that_could_not_be_used_is_not_signed(
    issuer: TokenIssuer, body: dict[str, Any], says: str
) -> None:
    status, answer = asked(issuer, issuer.token("ada", "acme"), **body)
    assert (status, says in answer["detail"]) == (400, True), answer
