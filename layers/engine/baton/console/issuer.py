"""Who has signed in, as an OpenID Connect issuer says it: the authorization code flow with PKCE.

The ID token comes from the issuer itself over TLS, which stands for its signature (OpenID Connect Core, 3.1.3.7, 6).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from baton.errors import Unauthenticated
from baton.ports import Clock, StepFailure
from baton.ports.outside import Credentials, HttpAnswer, HttpClient, HttpRequest

SCOPE: Final = "openid profile"
_WITHIN_MS: Final = 5_000
_MOST_BYTES: Final = 100_000
_SKEW_S: Final = 60
_KNOWN_MS: Final = 3_600_000


class Issuer:
    """The issuer of a deployment. Its addresses are read from its configuration, once in an hour."""

    def __init__(
        self, issuer: str, client: str, http: HttpClient, secrets: Credentials, clock: Clock
    ) -> None:
        self._issuer, self._client = issuer.rstrip("/"), client
        self._claimed = issuer
        self._http, self._secrets, self._clock = http, secrets, clock
        self._known: tuple[dict[str, Any], int] = ({}, 0)

    async def secret(self) -> str:
        """The client secret. Raises `Unauthenticated`."""
        try:
            return await self._secrets.of("client")
        except StepFailure as failure:
            raise Unauthenticated(f"the console cannot read its client secret: {failure}") from failure

    async def address(self, *, redirect: str, state: str, nonce: str, challenge: str) -> str:
        """Where a person signs in. Raises `Unauthenticated` where the issuer does not answer."""
        asked = {
            "response_type": "code",
            "client_id": self._client,
            "redirect_uri": redirect,
            "scope": SCOPE,
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        page = (await self._configuration())["authorization_endpoint"]
        return f"{page}{'&' if urlsplit(page).query else '?'}{urlencode(asked)}"

    async def claims(self, *, code: str, redirect: str, verifier: str, nonce: str) -> dict[str, Any]:
        """What the issuer says of the person who came back with a code. Raises `Unauthenticated`."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect,
            "code_verifier": verifier,
            "client_id": self._client,
            "client_secret": await self.secret(),
        }
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        endpoint = (await self._configuration())["token_endpoint"]
        answer = await self._send("POST", endpoint, headers, urlencode(form).encode())
        if answer.status != 200:
            raise Unauthenticated("the issuer did not accept the sign-in; begin it anew")
        claims = _claims(_document(answer).get("id_token"))
        self._check(claims, nonce)
        return claims

    def _check(self, claims: Mapping[str, Any], nonce: str) -> None:
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        ends = claims.get("exp")
        if claims.get("iss") not in (self._issuer, self._claimed):
            raise Unauthenticated("the sign-in is of another issuer than `ConsoleIssuer`")
        if self._client not in audiences:
            raise Unauthenticated("the sign-in is for another client than `ConsoleClient`")
        if claims.get("nonce") != nonce:
            raise Unauthenticated("the sign-in is not the one that began here; begin it anew")
        if not isinstance(ends, int | float) or ends + _SKEW_S < self._clock.now() / 1_000:
            raise Unauthenticated("the sign-in has ended; begin it anew")

    async def _configuration(self) -> dict[str, Any]:
        found, read_at = self._known
        if not found or self._clock.now() - read_at > _KNOWN_MS:
            answer = await self._send("GET", f"{self._issuer}/.well-known/openid-configuration", {}, b"")
            found = _document(answer) if answer.status == 200 else {}
            places = [str(found.get(name, "")) for name in ("authorization_endpoint", "token_endpoint")]
            if not all(place.startswith(("https://", "http://")) for place in places):
                raise Unauthenticated("the issuer does not say where people sign in; look at `ConsoleIssuer`")
            self._known = found, self._clock.now()
        return found

    async def _send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        # `named`: the address is the operator's, and may be one that is not public.
        request = HttpRequest(
            method=method,
            url=url,
            headers=headers,
            body=body,
            within_ms=_WITHIN_MS,
            most=_MOST_BYTES,
            named=True,
        )
        try:
            return await self._http.send(request)
        except StepFailure as failure:
            raise Unauthenticated(f"the issuer does not answer: {failure}") from failure


def _document(answer: HttpAnswer) -> dict[str, Any]:
    try:
        found = json.loads(answer.body)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


def _claims(token: Any) -> dict[str, Any]:
    parts = str(token).split(".")
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (IndexError, ValueError, binascii.Error):
        found = None
    if not isinstance(found, dict):
        raise Unauthenticated("the issuer did not say who has signed in")
    return found
