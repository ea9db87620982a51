"""Token issuer of a local run, and the page on which a developer signs in."""

from __future__ import annotations

import base64
import hashlib
import hmac
import html
import json
import secrets
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route as Page

from baton.core.expressions import nearest, with_hint
from baton.settings import ROLES

CLIENT_SECRET = "CLIENT"  # noqa: S105  # the name of its variable: BATON_CONSOLE_KEY_CLIENT
_CODE_S = 60.0
_LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})
_ASKED = ("client_id", "redirect_uri", "state", "nonce", "code_challenge")
_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Sign in to a local Baton</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<style>body{{font:1rem/1.5 system-ui,sans-serif;max-width:26rem;margin:3rem auto;padding:0 1rem}}
label,legend{{display:block;margin-top:1rem}}input[type=text]{{font:inherit;width:100%;padding:.5rem;box-sizing:border-box}}
fieldset{{border:0;padding:0;margin:0}}fieldset label{{display:inline-block;margin:0 1rem 0 0}}
button{{font:inherit;margin-top:1.5rem;padding:.6rem 1.2rem}}.wrong{{color:#c22}}</style></head><body><main>
<h1>Sign in to a local Baton</h1><p>This run asks for no password. Say who you want to be.</p>{wrong}
<form method="post"><input type="hidden" name="asked" value="{asked}">
<label for="user">User</label><input type="text" id="user" name="user" value="{user}" required autocomplete="off">
<label for="tenant">Tenant</label><input type="text" id="tenant" name="tenant" value="{tenant}" required autocomplete="off">
<label for="groups">Groups, separated by spaces</label><input type="text" id="groups" name="groups" value="{groups}" autocomplete="off">
<fieldset><legend>Roles</legend>{roles}</fieldset><button>Sign in</button></form></main></body></html>"""


@dataclass(frozen=True)
class _Code:
    asked: Mapping[str, str]
    user: str
    tenant: str
    roles: Sequence[str]
    groups: Sequence[str]
    until: float


class SignIn:
    """Pages of the sign-in. token: signs a token for a user with roles, groups, further claims."""

    def __init__(self, token: Callable[..., str], client: str, user: str, tenant: str) -> None:
        self.secret = secrets.token_urlsafe(32)
        self._token, self._client, self._user, self._tenant = token, client, user, tenant
        self._codes: dict[str, _Code] = {}

    def pages(self) -> list[Page]:
        return [
            Page("/sign-in", self._ask, methods=["GET"]),
            Page("/sign-in", self._said, methods=["POST"]),
            Page("/sign-in/token", self._redeem, methods=["POST"]),
        ]

    async def _ask(self, request: Request) -> Response:
        asked = {name: request.query_params.get(name, "") for name in _ASKED}
        if why := self._why_not(asked):
            return HTMLResponse(f"<h1>This is no sign-in</h1><p>{html.escape(why)}</p>", 400)
        return self._page(asked, self._user, self._tenant, "", ROLES)

    async def _said(self, request: Request) -> Response:
        said = parse_qsl((await request.body()).decode(), keep_blank_values=True)
        one = dict(said)
        asked, user, tenant = (
            dict(parse_qsl(one.get("asked", ""))),
            one.get("user", "").strip(),
            one.get("tenant", "").strip(),
        )
        roles = [value for name, value in said if name == "role" and value in ROLES]
        groups = one.get("groups", "").split()
        if why := self._why_not(asked):
            return HTMLResponse(f"<h1>This is no sign-in</h1><p>{html.escape(why)}</p>", 400)
        if user.split() != [user] or tenant.split() != [tenant] or "/" in tenant:
            wrong = "User and tenant are names without spaces; the tenant has no slash."
            return self._page(asked, user, tenant, one.get("groups", ""), roles, wrong)
        code = secrets.token_urlsafe(24)
        now = time.monotonic()
        self._codes = {key: known for key, known in self._codes.items() if known.until > now}
        self._codes[code] = _Code(asked, user, tenant, roles, groups, now + _CODE_S)
        back = urlencode({"code": code, "state": asked["state"]})
        return RedirectResponse(f"{asked['redirect_uri']}?{back}", 303)

    async def _redeem(self, request: Request) -> Response:
        said = dict(parse_qsl((await request.body()).decode()))
        code = self._codes.pop(said.get("code", ""), None)
        digest = hashlib.sha256(said.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        is_ours = hmac.compare_digest(said.get("client_secret", "").encode(), self.secret.encode())
        if (
            code is None
            or not is_ours
            or code.until < time.monotonic()
            or code.asked["redirect_uri"] != said.get("redirect_uri")
            or code.asked["code_challenge"] != challenge
        ):
            return JSONResponse({"error": "invalid_grant"}, 400)
        token = self._token(
            code.user, code.tenant, roles=code.roles, groups=code.groups, nonce=code.asked["nonce"]
        )
        return JSONResponse(
            {"id_token": token, "token_type": "Bearer"}, headers={"cache-control": "no-store"}
        )

    def _why_not(self, asked: Mapping[str, str]) -> str:
        place = urlsplit(asked.get("redirect_uri", ""))
        if asked.get("client_id") != self._client:
            return "This is not the console of this run."
        if place.scheme != "http" or place.hostname not in _LOCAL or place.path != "/console/sign-in/done":
            return "Only the console of a run on this machine signs people in here."
        if not all(asked.get(name) for name in _ASKED):
            return "Begin at the console: /console of the API's address."
        return ""

    def _page(
        self,
        asked: Mapping[str, Any],
        user: str,
        tenant: str,
        groups: str,
        roles: Sequence[str],
        wrong: str = "",
    ) -> Response:
        boxes = "".join(
            f'<label><input type="checkbox" name="role" value="{role}"{" checked" if role in roles else ""}> {role}</label>'
            for role in ROLES
        )
        shown = {
            "asked": html.escape(urlencode(asked)),
            "user": html.escape(user),
            "tenant": html.escape(tenant),
            "groups": html.escape(groups),
            "roles": boxes,
            "wrong": f'<p class="wrong" role="alert">{html.escape(wrong)}</p>' if wrong else "",
        }
        return HTMLResponse(_PAGE.format(**shown), 400 if wrong else 200, {"x-frame-options": "DENY"})


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
        """Return a signed token for `user` (claim `sub`) of `tenant`, by default with every role and in no
        group.

        A negative `ttl_s` yields an expired token; `roles` None omits that claim. nonce: of a sign-in.
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
        """Return a token for another user of the bearer's tenant."""
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
    """Return the fault in the user, the groups or the roles of a token, empty if they are valid."""
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
        ""
        if strange is None
        else with_hint(f"there is no role `{strange}`", nearest(strange, ROLES) or known)
    )
