"""The local run's own token issuer: one RSA key per run, tokens for users, and the pages that publish the key.

Checking tokens is the gateway's business (see jwt_authorizer.py), which asks these pages over HTTP like
any other issuer's. One page more signs tokens: an operator of the run gets them for other users of the tenant.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route as Page

from baton.core.expressions.spelling import hinted, nearest
from baton.settings import ROLES

AUDIENCE = "baton-local"
LIFETIME_S = 12 * 3600.0


class TokenIssuer:
    def __init__(
        self,
        issuer: str,
        tenant_claim: str = "tenant",
        audience: str = AUDIENCE,
        *,
        roles_claim: str = "roles",
        groups_claim: str = "groups",
    ) -> None:
        self.issuer, self.audience = issuer, audience
        self._tenant_claim, self._roles_claim, self._groups_claim = tenant_claim, roles_claim, groups_claim
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._key_id = uuid.uuid4().hex

    def token(
        self,
        user: str,
        tenant: str,
        ttl_s: float = LIFETIME_S,
        roles: Sequence[str] | None = ROLES,
        groups: Sequence[str] = (),
        nonce: str = "",
    ) -> str:
        """A signed token for `user` (claim `sub`) of `tenant`, by default with every role and in no group.

        A `ttl_s` below zero makes one that has expired; `roles` None makes one without that claim. nonce: of a sign-in.
        """
        now = time.time()
        claims: dict[str, Any] = {
            "iss": self.issuer,
            "aud": self.audience,
            "sub": user,
            self._tenant_claim: tenant,
            "iat": int(min(now, now + ttl_s)),
            "exp": int(now + ttl_s),
        }
        if roles is not None:
            claims[self._roles_claim] = list(roles)
        if nonce:
            claims["nonce"] = nonce
        if groups:
            claims[self._groups_claim] = list(groups)
        return jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": self._key_id})

    def pages(self) -> list[Page]:
        async def configuration(_: Request) -> JSONResponse:
            places = {
                "jwks_uri": "/.well-known/jwks.json",
                "authorization_endpoint": "/sign-in",
                "token_endpoint": "/sign-in/token",
            }
            found = {name: f"{self.issuer}{path}" for name, path in places.items()}
            return JSONResponse({"issuer": self.issuer, **found})

        async def keys(_: Request) -> JSONResponse:
            key = json.loads(RSAAlgorithm.to_jwk(self._key.public_key()))
            return JSONResponse({"keys": [{**key, "kid": self._key_id, "alg": "RS256", "use": "sig"}]})

        return [
            Page("/.well-known/openid-configuration", configuration),
            Page("/.well-known/jwks.json", keys),
            Page("/token", self._for_another, methods=["POST"]),
        ]

    async def _for_another(self, request: Request) -> JSONResponse:
        """A token for another user of the bearer's tenant."""
        shown = request.headers.get("authorization", "").removeprefix("Bearer ")
        key, audience = self._key.public_key(), self.audience
        try:
            claims = jwt.decode(shown, key, algorithms=["RS256"], audience=audience, issuer=self.issuer)
        except jwt.PyJWTError as error:
            return _refusal(401, f"show the token of this run: {error}")
        if "operate" not in claims.get(self._roles_claim, ()):
            return _refusal(403, "tokens for other users are for callers with the role `operate`")
        said = await request.json()
        if why := _why_not(said):
            return _refusal(400, why)
        tenant = claims[self._tenant_claim]
        token = self.token(said["user"], tenant, roles=said["roles"], groups=said["groups"])
        return JSONResponse({"token": token})


def _refusal(status: int, detail: str) -> JSONResponse:
    return JSONResponse({"title": "No token is signed", "detail": detail}, status)


def _why_not(said: dict[str, Any]) -> str:
    """What is wrong with the user, the groups or the roles of a token; empty where nothing is."""
    user, groups, roles = said.get("user"), said.get("groups"), said.get("roles")
    if not isinstance(user, str) or not user or user.split() != [user]:
        return "`user` is a text without spaces"
    if not isinstance(groups, list) or not all(isinstance(one, str) and one.strip() for one in groups):
        return "`groups` is a list of names"
    if not isinstance(roles, list):
        return f"`roles` is a list of {', '.join(ROLES)}"
    strange = next((str(one) for one in roles if one not in ROLES), None)
    known = f"there are: {', '.join(ROLES)}"
    return (
        "" if strange is None else hinted(f"there is no role `{strange}`", nearest(strange, ROLES) or known)
    )
