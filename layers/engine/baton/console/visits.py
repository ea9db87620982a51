"""One request for a page and its answer, with the session and the cookies of the browser."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from urllib.parse import parse_qs, quote

from baton.errors import UserError

SESSION_MS: Final = 8 * 3_600_000
SIGNING_IN_MS: Final = 600_000
MOST_COOKIE: Final = 3_800  # bytes; browsers keep 4,096 with the name and the attributes
SESSION, SIGNING_IN = "session", "signing-in"


class Seal:
    """Signature of values with a secret. Each purpose has its own key and accepts no other's values."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def close(self, purpose: str, value: Mapping[str, Any], until: int) -> str:
        """Return the value with its end (epoch ms), as text for a cookie."""
        body = _encoded(json.dumps([until, value], separators=(",", ":")).encode())
        return f"{body}.{_encoded(self._mac(purpose, body))}"

    def open(self, purpose: str, text: str, now: int) -> dict[str, Any] | None:
        """Return the value, or None for one that has expired or was not signed here for this purpose."""
        body, _, mac = text.partition(".")
        if not hmac.compare_digest(_encoded(self._mac(purpose, body)).encode(), mac.encode()):
            return None
        try:
            until, value = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        except (ValueError, binascii.Error):
            return None
        return value if isinstance(value, dict) and now < until else None

    def _mac(self, purpose: str, body: str) -> bytes:
        key = hmac.digest(self._secret, f"baton console {purpose}".encode(), "sha256")
        return hmac.digest(key, body.encode(), "sha256")


@dataclass(frozen=True, slots=True)
class Session:
    """A signed-in person: the claims of the issuer, and the CSRF token of the session's forms."""

    claims: Mapping[str, Any]
    csrf: str

    @property
    def user(self) -> str:
        return str(self.claims.get("sub", ""))

    def close(self, seal: Seal, now: int) -> str:
        return seal.close(SESSION, {"claims": dict(self.claims), "csrf": self.csrf}, now + SESSION_MS)

    @classmethod
    def open(cls, seal: Seal, text: str, now: int) -> Session | None:
        found = seal.open(SESSION, text, now) if text else None
        return None if found is None else cls(found["claims"], found["csrf"])

    def admits(self, shown: str) -> bool:
        """Return true if a form was made for this session."""
        return hmac.compare_digest(self.csrf.encode(), shown.encode())


def challenge_of(verifier: str) -> str:
    """Return the challenge of a verifier in the request for a code (RFC 7636, S256)."""
    return _encoded(hashlib.sha256(verifier.encode()).digest())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


ENDED: Final = frozenset({"completed", "failed", "cancelled", "rolled_back", "rollback_failed"})
OFTEN: Final = 2_000
SLOWEST_POLL_MS: Final = 30_000
"""Milliseconds between checks of an ended saga, which changes only if it is rolled back or forked."""


class Calls(Protocol):
    """The routes of the API for the visitor, with their roles, checks and answers."""

    @property
    def roles(self) -> frozenset[str]: ...

    @property
    def tenant(self) -> str: ...

    async def __call__(
        self,
        route: str,
        path: Mapping[str, str] = ...,
        query: Mapping[str, str] = ...,
        body: Mapping[str, Any] | None = None,
        key: str = "",
    ) -> Any:
        """Return the JSON answer of the route with this operation id. Raises `UserError`, `EngineFault`."""
        ...


@dataclass(frozen=True, kw_only=True)
class Visit:
    """A visit. path: the names in the page's path. form: submitted fields, each name with all its values,
    without the token.

    now: epoch ms. token: a fresh random name. api: the address of the deployment. seen: the tag of the
    content that a self-renewing page has.
    """

    session: Session
    call: Calls
    path: Mapping[str, str]
    query: Mapping[str, str]
    form: Mapping[str, Sequence[str]]
    now: int
    token: str
    api: str
    seen: str = ""

    def said(self, name: str) -> str:
        """Return the first value of a field of the form, empty without one."""
        return next(iter(self.form.get(name, ())), "").strip()


@dataclass(frozen=True, kw_only=True)
class Html:
    """A page: a template and its data.

    tag: a name that changes with the content of the template's element `live`; with one, the page renews
    itself. every: ms until its first check for changes. adds: id of the element to which the live part is
    added, if that part contains only new content. pictures: source outside of the console that the page may
    show images of.
    """

    template: str
    title: str
    data: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    tag: str = ""
    every: int = OFTEN
    adds: str = ""
    pictures: str = ""


@dataclass(frozen=True)
class Unchanged:
    """Answer 304 for a browser that has the present content of the page."""


@dataclass(frozen=True)
class Redirect:
    """A redirect to another page of the console, by GET."""

    to: str


@dataclass(frozen=True, kw_only=True)
class Download:
    """A file that the browser saves."""

    name: str
    kind: str
    body: str


Answer = Html | Redirect | Download | Unchanged


def tag_of(*parts: object) -> str:
    """Return a tag for the data of a page."""
    text = json.dumps(parts, default=str, sort_keys=True)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:16]}"'


ROOT: Final = "/console"
MOST_FORM: Final = 262_144
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


def form_of(event: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the fields of a form, each with its values. Raises `UserError`."""
    body = str(event.get("body") or "")
    try:
        raw = base64.b64decode(body, validate=True).decode() if event.get("isBase64Encoded") else body
        if len(raw) > MOST_FORM:
            raise UserError(f"a form has at most {MOST_FORM:,} characters")
        return parse_qs(raw, keep_blank_values=True, strict_parsing=bool(raw), max_num_fields=2_000)
    except ValueError as error:
        raise UserError("what was sent is no form") from error


def cookies(event: Mapping[str, Any]) -> dict[str, str]:
    """Return the cookies of a request, by name."""
    pairs = (str(cookie).partition("=") for cookie in event.get("cookies") or ())
    return {name.strip(): value.strip() for name, _, value in pairs}


def header(event: Mapping[str, Any], name: str) -> str:
    """Return a header of the request, empty without one."""
    return str((event.get("headers") or {}).get(name, ""))


def here(event: Mapping[str, Any]) -> str:
    """Return the address of the requested page on this host."""
    query = str(event.get("rawQueryString") or "")
    return f"{quote(str(event['rawPath']))}{'?' if query else ''}{query}"


def is_secure(event: Mapping[str, Any]) -> bool:
    """Return true if the browser uses TLS. It does with API Gateway, and not with a local run."""
    return header(event, "x-forwarded-proto") != "http"


def cookie_name(event: Mapping[str, Any], purpose: str) -> str:
    """Return the name of a cookie that the browser accepts from this host over TLS only."""
    return f"__Host-baton-{purpose}" if is_secure(event) else f"baton-{purpose}"


def address_of(event: Mapping[str, Any]) -> str:
    """Return the address under which this deployment was requested."""
    scheme = "https" if is_secure(event) else "http"
    return f"{scheme}://{event['requestContext'].get('domainName', 'localhost')}"


def page_response(
    status: int, body: str, headers: Mapping[str, str], kept: list[str] | None = None
) -> dict[str, Any]:
    return {"statusCode": status, "headers": dict(headers), "cookies": kept or [], "body": body}
