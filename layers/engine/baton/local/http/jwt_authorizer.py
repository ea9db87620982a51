"""Decides whether a request's token is good, as API Gateway's JWT authorizer does.

Signature (RS256, by the issuer's published keys), issuer, audience or client_id, times, scopes. A token
without `exp` is refused.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from baton.local.http.gateway_event import HttpRequest
from baton.local.template.http_api import Authorizer

_KEYS_KEPT_S = 2 * 3600  # as API Gateway does
_TIMEOUT_S = 5.0
_ASK_AGAIN_S = 10.0


class Refused(Exception):
    """`status` is 401 for a token that is missing or not good, 403 for one without the scope."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True)
class Caller:
    claims: dict[str, Any]
    scopes: tuple[str, ...]


class JwtAuthorizer:
    """One per authorizer of the API; keeps the issuer's keys."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched = -_KEYS_KEPT_S * 1.0
        self._lock = asyncio.Lock()

    async def check(self, request: HttpRequest, wanted_scopes: tuple[str, ...]) -> Caller:
        """Who is calling. Raises `Refused`."""
        token = request.header(self._authorizer.header).strip()
        if token[:7].lower() == "bearer ":
            token = token[7:].strip()
        if not token:
            raise Refused(401, "there is no token")
        try:
            key = await self._key(str(jwt.get_unverified_header(token).get("kid", "")))
            claims = jwt.decode(
                token,
                key,
                algorithms=["RS256"],
                issuer=self._authorizer.issuer,
                options={"require": ["exp", "iss"], "verify_aud": False},
            )
        except jwt.PyJWTError as error:
            raise Refused(401, str(error)) from error
        self._check_audience(claims)
        scopes = scopes_of(claims)
        if wanted_scopes and not set(wanted_scopes) & set(scopes):
            raise Refused(403, f"needs one of the scopes {', '.join(wanted_scopes)}")
        return Caller(claims, tuple(scope for scope in scopes if scope in wanted_scopes))

    def _check_audience(self, claims: dict[str, Any]) -> None:
        # API Gateway looks at client_id only if there is no aud.
        audience = claims.get("aud", claims.get("client_id", ""))
        given = audience if isinstance(audience, list) else [audience]
        if not set(given) & set(self._authorizer.audiences):
            raise Refused(401, f"the audience {audience!r} is not one of {self._authorizer.audiences}")

    async def _key(self, key_id: str) -> jwt.PyJWK:
        async with self._lock:
            age_s = time.monotonic() - self._fetched
            if age_s > _KEYS_KEPT_S or (key_id not in self._keys and age_s > _ASK_AGAIN_S):
                try:
                    self._keys = await asyncio.to_thread(_fetch_keys, self._authorizer.issuer)
                except (OSError, ValueError, KeyError) as error:
                    raise Refused(401, f"the issuer's keys cannot be read: {error}") from error
                self._fetched = time.monotonic()
        if key_id not in self._keys:
            raise Refused(401, f"the issuer has no key {key_id!r}")
        return self._keys[key_id]


def scopes_of(claims: Mapping[str, Any]) -> tuple[str, ...]:
    """The scopes of a token: a text of scopes separated by spaces, or a list whose values are scopes."""
    given = claims.get("scope", claims.get("scp"))
    values = given.split() if isinstance(given, str) else given if isinstance(given, list) else ()
    return tuple(value for value in values if isinstance(value, str))


def _fetch_keys(issuer: str) -> dict[str, jwt.PyJWK]:
    configuration = _get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    keys = jwt.PyJWKSet.from_dict(_get(configuration["jwks_uri"])).keys
    return {str(key.key_id): key for key in keys}


def _get(url: str) -> dict[str, Any]:
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url!r} is not an http(s) address")
    # No proxies: a proxy of the surrounding shell must not be asked about loopback.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=_TIMEOUT_S) as answer:
        document: dict[str, Any] = json.loads(answer.read())
    return document
