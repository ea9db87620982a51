"""The servers of the local run listen on loopback, where every web page in the developer's browser can send requests: which of them are refused.

Pure, and without imports of its own package, so that the process of the embedded AWS can load it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

_HERE = frozenset({"127.0.0.1", "localhost", "::1"})
# Containers of `sam local` reach this machine by this name, which no web page can give an address.
_CONTAINERS = "host.docker.internal"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_SIMPLE = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data")

Scope = MutableMapping[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]


def refusal(method: str, headers: Iterable[tuple[bytes, bytes]], port: int, *, programs_only: bool) -> str:
    """The reason why a request is refused; empty for one that is taken.

    programs_only: no page of this server is for browsers, so that whatever a page sends is refused. Else pages of this machine are taken,
    and of others what only reads.
    """
    said = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
    if not _is_here(f"//{said.get('host', '')}", port):
        return "the Host is not the address of this server: another name may lead here by a page's own DNS"
    origin, site = said.get("origin", ""), said.get("sec-fetch-site", "none")
    if programs_only:
        return "no web page may call this server" if origin or site not in ("none", "same-origin") else ""
    if method in _SAFE:
        return ""
    is_strange = origin not in ("", "null") and not _is_here(origin)
    if is_strange or site == "cross-site" or (origin == "null" and site == "none"):
        return "the request comes from a page of another site"
    return ""


def is_simple(content_type: str) -> bool:
    """Tell whether a page of any site may send this type without asking first."""
    return content_type.partition(";")[0].strip().lower() in _SIMPLE


def _is_here(address: str, port: int = 0) -> bool:
    try:
        parts = urlsplit(address)
        name, found = parts.hostname or "", parts.port or 80
    except ValueError:
        return False
    is_name = name in _HERE or name.endswith(".localhost") or name == _CONTAINERS
    # A container may reach the port by another one.
    return is_name and (not port or found == port or name == _CONTAINERS)


def guarded(application: Application, port: int, *, programs_only: bool) -> Application:
    """The ASGI application, for those who may call it. Cross-origin answers are not allowed by anything behind it."""

    async def guard(scope: Scope, receive: Any, send: Any) -> None:
        why = ""
        if scope["type"] in ("http", "websocket"):
            method = scope.get("method", "GET")
            why = refusal(method, scope["headers"], port, programs_only=programs_only)
        if not why:
            await application(scope, receive, _quiet(send) if programs_only else send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            body = f'{{"message": "refused: {why}"}}'.encode()
            kind = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
            await send({"type": "http.response.start", "status": 403, "headers": kind})
            await send({"type": "http.response.body", "body": body})

    return guard


def _quiet(send: Any) -> Any:
    """Without the headers that let pages of other sites read an answer."""

    async def passed(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = message.get("headers", ())
            kept = [one for one in headers if not one[0].lower().startswith(b"access-control-")]
            message = {**message, "headers": kept}
        await send(message)

    return passed
