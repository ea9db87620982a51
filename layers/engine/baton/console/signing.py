"""Signing in and out: to the issuer, back from it with a code, and the cookies that remember it."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from baton.console.exchange import (
    HEADERS,
    ROOT,
    address_of,
    answer,
    cookie_name,
    cookies,
    form_of,
    is_secure,
)
from baton.console.issuer import Issuer
from baton.console.sessions import (
    MOST_COOKIE,
    SESSION,
    SESSION_MS,
    SIGNING_IN,
    SIGNING_IN_MS,
    Seal,
    Session,
    challenge_of,
)
from baton.errors import Forbidden, NotFound, Unauthenticated
from baton.ports import Clock, Entropy

CALLBACK: Final = f"{ROOT}/sign-in/done"


class Signing:
    """The sign-in of a deployment. kept: the claims of which a session is made; others are not kept."""

    def __init__(self, issuer: Issuer | None, kept: tuple[str, ...], clock: Clock, entropy: Entropy) -> None:
        self._issuer, self._kept, self._clock, self._entropy = issuer, kept, clock, entropy

    @property
    def is_set_up(self) -> bool:
        return self._issuer is not None

    async def seal(self) -> Seal:
        """By what cookies are signed: a key that only those who know the client secret can make."""
        assert self._issuer is not None, "no page is served without an issuer"
        return Seal(await self._issuer.secret())

    async def handle(self, path: str, event: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a path that begins with `/console/sign-`."""
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
            begun["to"],
            [_cookie(event, SESSION, sealed, SESSION_MS), _cookie(event, SIGNING_IN, "", 0)],
        )

    async def _out(self, event: Mapping[str, Any]) -> dict[str, Any]:
        shown = cookies(event).get(cookie_name(event, SESSION), "")
        session = Session.open(await self.seal(), shown, self._clock.now())
        if session is not None and not session.admits(next(iter(form_of(event).get("csrf", [])), "")):
            raise Forbidden("this form is not of your sign-in; you are still signed in")
        return _away(ROOT, [_cookie(event, SESSION, "", 0)])


def _inside(there: str) -> str:
    """A page of the console, and nothing that a browser takes for another place."""
    is_ours = there == ROOT or there.startswith((f"{ROOT}/", f"{ROOT}?"))
    return quote(there, safe="/?&=%:.~_-") if is_ours and "\\" not in there and "//" not in there else ROOT


def _cookie(event: Mapping[str, Any], purpose: str, value: str, for_ms: int) -> str:
    secure = "; Secure" if is_secure(event) else ""
    name, seconds = cookie_name(event, purpose), for_ms // 1_000
    return f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"


def _away(to: str, kept: list[str]) -> dict[str, Any]:
    return answer(HTTPStatus.SEE_OTHER.value, "", {**HEADERS, "location": to}, kept)
