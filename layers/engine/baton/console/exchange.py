"""A request and an answer in API Gateway's payload format 2.0: forms, cookies, addresses, and the headers of every page."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs, quote

from baton.errors import UserError

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
    """The fields of a form, each with its values. Raises `UserError`."""
    body = str(event.get("body") or "")
    try:
        raw = base64.b64decode(body, validate=True).decode() if event.get("isBase64Encoded") else body
        if len(raw) > MOST_FORM:
            raise UserError(f"a form has at most {MOST_FORM:,} characters")
        return parse_qs(raw, keep_blank_values=True, strict_parsing=bool(raw), max_num_fields=2_000)
    except ValueError as error:
        raise UserError("what was sent is no form") from error


def cookies(event: Mapping[str, Any]) -> dict[str, str]:
    """Those of a request, by name."""
    pairs = (str(cookie).partition("=") for cookie in event.get("cookies") or ())
    return {name.strip(): value.strip() for name, _, value in pairs}


def header(event: Mapping[str, Any], name: str) -> str:
    """A header of the request, or nothing."""
    return str((event.get("headers") or {}).get(name, ""))


def here(event: Mapping[str, Any]) -> str:
    """The address of the page that was asked for, on this host."""
    query = str(event.get("rawQueryString") or "")
    return f"{quote(str(event['rawPath']))}{'?' if query else ''}{query}"


def is_secure(event: Mapping[str, Any]) -> bool:
    """Whether the browser speaks TLS with us; it does with API Gateway, and not with a local run."""
    return header(event, "x-forwarded-proto") != "http"


def cookie_name(event: Mapping[str, Any], purpose: str) -> str:
    """The prefix has the browser refuse such a cookie from anywhere but this very host over TLS."""
    return f"__Host-baton-{purpose}" if is_secure(event) else f"baton-{purpose}"


def address_of(event: Mapping[str, Any]) -> str:
    """The address under which this deployment was asked."""
    scheme = "https" if is_secure(event) else "http"
    return f"{scheme}://{event['requestContext'].get('domainName', 'localhost')}"


def answer(
    status: int, body: str, headers: Mapping[str, str], kept: list[str] | None = None
) -> dict[str, Any]:
    return {"statusCode": status, "headers": dict(headers), "cookies": kept or [], "body": body}
