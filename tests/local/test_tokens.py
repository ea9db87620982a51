"""The local run's tokens: whom they name, and what their bearer may do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jwt
import pytest

from baton.local.jwt_authorizer import scopes_of
from baton.local.tokens import TokenIssuer
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
