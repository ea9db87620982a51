"""The sign-in of a local run: a page where one says who to be, as an OpenID Connect issuer's page asks who one is.

It shows nothing secret and checks no password. A code is good for one sign-in of this run's console, for a minute.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import html
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route as Page

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
    """The pages. token: signs one for a user of a tenant with roles, groups, and further claims."""

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
