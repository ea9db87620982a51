"""The local run's own token issuer: one RSA key per run, tokens for users, and the pages that publish the key.

Checking tokens is the gateway's business (see jwt_authorizer.py), which asks these pages over HTTP like
any other issuer's.
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
    ) -> str:
        """A signed token for `user` (claim `sub`) of `tenant`, by default with every role and in no group.

        A `ttl_s` below zero makes one that has expired; `roles` None makes one without that claim.
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
        if groups:
            claims[self._groups_claim] = list(groups)
        return jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": self._key_id})

    def pages(self) -> list[Page]:
        async def configuration(_: Request) -> JSONResponse:
            return JSONResponse({"issuer": self.issuer, "jwks_uri": f"{self.issuer}/.well-known/jwks.json"})

        async def keys(_: Request) -> JSONResponse:
            key = json.loads(RSAAlgorithm.to_jwk(self._key.public_key()))
            return JSONResponse({"keys": [{**key, "kid": self._key_id, "alg": "RS256", "use": "sig"}]})

        return [
            Page("/.well-known/openid-configuration", configuration),
            Page("/.well-known/jwks.json", keys),
        ]
