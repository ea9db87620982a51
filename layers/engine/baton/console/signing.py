"""Sign-in by OpenID Connect's authorization code flow, and sign-out."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from baton.console.visits import (
    HEADERS,
    MOST_COOKIE,
    ROOT,
    SESSION,
    SESSION_MS,
    SIGNING_IN,
    SIGNING_IN_MS,
    Seal,
    Session,
    address_of,
    challenge_of,
    cookie_name,
    cookies,
    form_of,
    is_secure,
    page_response,
)
from baton.errors import Forbidden, NotFound, Unauthenticated
from baton.ports import Clock, Entropy, StepFailure
from baton.ports.outside import Credentials, HttpAnswer, HttpClient, HttpRequest

SCOPE: Final = "openid profile"
_WITHIN_MS: Final = 5_000
_MOST_BYTES: Final = 100_000
_SKEW_S: Final = 60
_KNOWN_MS: Final = 3_600_000


class Issuer:
    """The issuer of a deployment. Its addresses are read from its configuration, once an hour."""

    def __init__(
        self, issuer: str, client: str, http: HttpClient, secrets: Credentials, clock: Clock
    ) -> None:
        self._issuer, self._client = issuer.rstrip("/"), client
        self._claimed = issuer
        self._http, self._secrets, self._clock = http, secrets, clock
        self._known: tuple[dict[str, Any], int] = ({}, 0)

    async def secret(self) -> str:
        """Return the client secret. Raises `Unauthenticated`."""
        try:
            return await self._secrets.of("client")
        except StepFailure as failure:
            raise Unauthenticated(f"the console cannot read its client secret: {failure}") from failure

    async def address(self, *, redirect: str, state: str, nonce: str, challenge: str) -> str:
        """Return the address of the sign-in. Raises `Unauthenticated` if the issuer is silent."""
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
        """Return the issuer's claims about the person who returned with a code. Raises `Unauthenticated`."""
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


CALLBACK: Final = f"{ROOT}/sign-in/done"


class Signing:
    """The sign-in of a deployment. kept: names of the claims that a session contains; others are dropped."""

    def __init__(self, issuer: Issuer | None, kept: tuple[str, ...], clock: Clock, entropy: Entropy) -> None:
        self._issuer, self._kept, self._clock, self._entropy = issuer, kept, clock, entropy

    @property
    def is_set_up(self) -> bool:
        return self._issuer is not None

    async def seal(self) -> Seal:
        """Return the seal of cookies, whose key requires knowledge of the client secret."""
        assert self._issuer is not None, "no page is served without an issuer"
        return Seal(await self._issuer.secret())

    async def handle(self, path: str, event: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a path that begins with `/console/sign-`."""
        method = event["requestContext"]["http"]["method"]
        if (method, path) == ("GET", f"{ROOT}/sign-in"):
            return await self._begin(event)
        if (method, path) == ("GET", CALLBACK):
            return await self._end(event)
        if (method, path) == ("POST", f"{ROOT}/sign-out"):
            return await self._out(event)
        raise NotFound("the console has no such page")

    async def _begin(self, event: Mapping[str, Any]) -> dict[str, Any]:
        assert self._issuer is not None
        state, nonce, verifier = (self._entropy.token(256) for _ in range(3))
        there = _inside((event.get("queryStringParameters") or {}).get("to", ""))
        kept = {"state": state, "nonce": nonce, "verifier": verifier, "to": there}
        sealed = (await self.seal()).close(SIGNING_IN, kept, self._clock.now() + SIGNING_IN_MS)
        page = await self._issuer.address(
            redirect=address_of(event) + CALLBACK, state=state, nonce=nonce, challenge=challenge_of(verifier)
        )
        return _away(page, [_cookie(event, SIGNING_IN, sealed, SIGNING_IN_MS)])

    async def _end(self, event: Mapping[str, Any]) -> dict[str, Any]:
        assert self._issuer is not None
        query, seal, now = event.get("queryStringParameters") or {}, await self.seal(), self._clock.now()
        begun = seal.open(SIGNING_IN, cookies(event).get(cookie_name(event, SIGNING_IN), ""), now)
        if begun is None or begun["state"] != query.get("state"):
            raise Unauthenticated(
                "this sign-in did not begin in this browser, or too long ago; begin it anew"
            )
        if "code" not in query:
            raise Unauthenticated(
                f"the issuer has not let you in: {query.get('error', 'it gives no reason')[:100]}"
            )
        redirect = address_of(event) + CALLBACK
        claims = await self._issuer.claims(
            code=query["code"], redirect=redirect, verifier=begun["verifier"], nonce=begun["nonce"]
        )
        mine = {name: claims[name] for name in self._kept if name in claims}
        sealed = Session(mine, self._entropy.token(128)).close(seal, now)
        if len(sealed) > MOST_COOKIE:
            raise Unauthenticated(
                f"the claims {', '.join(self._kept)} have more than a cookie holds; give this user fewer groups"
            )
        return _away(
            begun["to"], [_cookie(event, SESSION, sealed, SESSION_MS), _cookie(event, SIGNING_IN, "", 0)]
        )

    async def _out(self, event: Mapping[str, Any]) -> dict[str, Any]:
        shown = cookies(event).get(cookie_name(event, SESSION), "")
        session = Session.open(await self.seal(), shown, self._clock.now())
        if session is not None and not session.admits(next(iter(form_of(event).get("csrf", [])), "")):
            raise Forbidden("this form is not of your sign-in; you are still signed in")
        return _away(ROOT, [_cookie(event, SESSION, "", 0)])


def _inside(there: str) -> str:
    """Return the address if it is a page of the console, else the first page: no other host."""
    is_ours = there == ROOT or there.startswith((f"{ROOT}/", f"{ROOT}?"))
    return quote(there, safe="/?&=%:.~_-") if is_ours and "\\" not in there and "//" not in there else ROOT


def _cookie(event: Mapping[str, Any], purpose: str, value: str, for_ms: int) -> str:
    secure = "; Secure" if is_secure(event) else ""
    name, seconds = cookie_name(event, purpose), for_ms // 1_000
    return f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"


def _away(to: str, kept: list[str]) -> dict[str, Any]:
    return page_response(HTTPStatus.SEE_OTHER.value, "", {**HEADERS, "location": to}, kept)
