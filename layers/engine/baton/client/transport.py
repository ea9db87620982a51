"""HTTP client of one API: authentication, retries of repeatable requests, and errors from problem documents.

The paths are in api.py.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import threading
import uuid
from base64 import urlsafe_b64decode
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from itertools import chain
from time import time
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

import httpx

from baton.client.connection import RECENT, SHORTEST, Connection, command_line, full_saga_id
from baton.client.exits import DENIED, UNREACHABLE, USAGE, Busy, CommandFailed, problem_failure
from baton.errors import Unauthenticated

TOTAL_S = 20.0
TRIES = 4
PAUSE_S = 0.25
GLANCE_S = 1.0
pause: Callable[[float], Any] = asyncio.sleep
_AGAIN = frozenset({429, 500, 502, 503, 504})
_BUSY = 429
_UNCHANGED = 304
# A proxy of the surrounding shell must not be asked about this machine.
_DIRECT = {"all://127.0.0.1": None, "all://localhost": None, "all://[::1]": None}


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """A successful answer: its document, or None if the caller's ETag is current."""

    status: int
    document: dict[str, Any] | None
    etag: str


class Transport:
    """HTTP client of one API for one caller.
    Each call raises `CommandFailed`, which determines the command's exit status.

    All calls can be repeated: reads by nature, writes by their `Idempotency-Key`. Therefore broken
    connections and busy servers are retried before the caller receives an error.
    """

    def __init__(self, connection: Connection, connections: int) -> None:
        self._connection = connection
        self._http = httpx.AsyncClient(
            base_url=connection.url,
            auth=_auth(connection),
            timeout=TOTAL_S,
            limits=httpx.Limits(max_connections=connections, keepalive_expiry=2),
            mounts=_DIRECT,
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def ask(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        text: str | None = None,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
        key: str | None = None,
        etag: str = "",
    ) -> ApiAnswer:
        """Send a request within `TOTAL_S`, retries included. `etag` is the caller's version."""
        headers = {"Idempotency-Key": key} if key else {}
        if text is not None:
            headers["Content-Type"] = content_type
        if etag:
            headers["If-None-Match"] = etag
        # Spaces as %20: a signature is made over that spelling.
        url = f"{path}?{urlencode(query, quote_via=quote, safe='')}" if query else path
        try:
            request = self._http.build_request(method, url, json=body, content=text, headers=headers)
            async with asyncio.timeout(TOTAL_S) as limit:
                answer = await self._send(request, limit.when() or 0.0)
        except TimeoutError as error:
            raise self._unreachable(f"no answer in {TOTAL_S:.0f} s") from error
        except httpx.RequestError as error:
            raise self._unreachable(str(error) or type(error).__name__) from error
        except httpx.InvalidURL as error:
            raise CommandFailed(USAGE, f"this cannot be part of an address: {error}") from error
        except Unauthenticated as error:
            raise CommandFailed(DENIED, error.detail, *_credentials_hints()) from error
        if answer.status_code == _UNCHANGED and etag:
            return ApiAnswer(_UNCHANGED, None, etag)
        document = _document(answer)
        if answer.is_success:
            return ApiAnswer(answer.status_code, document, answer.headers.get("ETag", ""))
        failure = problem_failure(answer.status_code, document, aws=self._connection.aws)
        if answer.status_code == _BUSY:
            busy = Busy(_asked_pause(answer) or PAUSE_S, failure.message, *failure.more)
            busy.problem = failure.problem
            raise busy
        raise failure

    async def _send(self, request: httpx.Request, until: float) -> httpx.Response:
        for left in reversed(range(TRIES)):
            # Full jitter, so that twenty callers who were refused together do not return together.
            wait = PAUSE_S * 2 ** (TRIES - 1 - left) * random.random()  # noqa: S311  # not for secrets
            try:
                answer = await self._http.send(request)
                wait = max(wait, _asked_pause(answer))
                too_long = asyncio.get_running_loop().time() + wait > until
                if answer.status_code not in _AGAIN or not left or too_long:
                    return answer
            except httpx.TransportError:
                if not left:
                    raise
            await pause(wait)
        raise AssertionError("unreachable")

    def _unreachable(self, why: str) -> CommandFailed:
        here = urlsplit(self._connection.url).hostname in ("127.0.0.1", "localhost", "::1")
        hints = (f"Is it running? It is started with `{command_line('up')}`.",) if here else ()
        return CommandFailed(UNREACHABLE, f"{self._connection.url} could not be reached: {why}", *hints)


def glance(connection: Connection, path: str) -> Any:
    """Return the answer of a path within `GLANCE_S`, else None, from a thread that delays no end."""
    found: list[Any] = []

    def look() -> None:
        try:
            with httpx.Client(auth=_auth(connection), timeout=GLANCE_S, mounts=_DIRECT) as http:
                answer = http.get(connection.url + path)
                found.append(answer.json() if answer.is_success else None)
        except Exception:  # noqa: BLE001  # whatever it is, there is nothing to offer
            found.append(None)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(GLANCE_S)
    return found[0] if found else None


class _Token(httpx.Auth):
    def __init__(self, token: str) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Any:
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


class _Signed(httpx.Auth):
    """Signature of each request and each retry. A signature is valid for five minutes."""

    requires_request_body = True

    def __init__(self, region: str) -> None:
        self._region = region
        self._signer: Callable[[str, str, Mapping[str, str], bytes], dict[str, str]] | None = None

    def auth_flow(self, request: httpx.Request) -> Any:
        self._sign(request)
        yield request

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        await request.aread()
        # Credentials may have to be fetched or renewed.
        await asyncio.to_thread(self._sign, request)
        yield request

    def _sign(self, request: httpx.Request) -> None:
        if self._signer is None:
            from baton.wiring import make_signer  # botocore is only for those who sign

            self._signer = make_signer(self._region)
        given = self._signer(request.method, str(request.url), dict(request.headers), request.content)
        request.headers.update(given)


def _auth(connection: Connection) -> httpx.Auth:
    return _Signed(connection.region) if connection.aws else _Token(connection.token)


def _credentials_hints() -> tuple[str, ...]:
    return (
        "Requests are signed with the credentials that the AWS tools use: AWS_PROFILE, `aws sso login`, or",
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. To show a token instead: --token or BATON_TOKEN.",
    )


def _asked_pause(answer: httpx.Response) -> float:
    """Return the seconds in `Retry-After`, given as a number or a date. 0 without the header."""
    asked = answer.headers.get("Retry-After", "").strip()
    if not asked:
        return 0.0
    if asked.isdecimal():
        return float(asked)
    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - time())
    except ValueError:
        return 0.0


def _document(answer: httpx.Response) -> dict[str, Any]:
    try:
        document = answer.json()
    except ValueError:
        document = None
    if isinstance(document, dict):
        return document
    if answer.is_success:
        raise CommandFailed(
            UNREACHABLE, f"{answer.request.url} did not answer with a JSON object: is this a Baton API?"
        )
    return {"title": answer.reason_phrase or "Error", "detail": answer.text[:300]}


class Reader:
    """Client that reads and replaces documents without a token."""

    def __init__(self) -> None:
        self._http = httpx.AsyncClient(
            timeout=TOTAL_S, limits=httpx.Limits(keepalive_expiry=2), trust_env=False
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def get(self, url: str) -> Any:
        """Return a document. Raises `CommandFailed`."""
        return (await self._answer("GET", url)).json()

    async def put(self, url: str, document: Any) -> None:
        """Replace a document. Raises `CommandFailed`."""
        await self._answer("PUT", url, document)

    async def _answer(self, method: str, url: str, document: Any = None) -> httpx.Response:
        try:
            async with asyncio.timeout(TOTAL_S):
                answer = await self._http.request(method, url, json=document)
            return answer.raise_for_status()
        except (TimeoutError, httpx.HTTPError) as error:
            raise CommandFailed(UNREACHABLE, f"{url}: {error}") from error


PAGE = 100
Pages = AsyncIterator[tuple[list[dict[str, Any]], str | None]]
"""Pages of a list, each with the cursor of the next page."""
_TOO_SHORT = f"The beginning of an id names a saga if it has at least {SHORTEST} characters."


class Calls:
    """Calls to one API for one caller. Each raises `CommandFailed` with the command's exit status."""

    def __init__(self, connection: Connection, *, connections: int = 16) -> None:
        self._url = connection.url
        self._transport = Transport(connection, connections)
        self._whole: dict[str, str] = {}  # ids by the beginnings that were given for them

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.close()

    async def _of(self, saga: str, method: str, *more: str, **said: Any) -> ApiAnswer:
        """Return the API's answer about a saga, whose id may be abbreviated to its beginning."""
        return await self._named(
            saga, lambda known: self._transport.ask(method, path_of("sagas", known, *more), **said)
        )

    async def _named(self, saga: str, ask: Callable[[str], Awaitable[ApiAnswer]]) -> ApiAnswer:
        """Return the answer of `ask` for the full id of a saga. The given id may be its beginning."""
        known = self._whole.get(saga, saga)
        try:
            return await ask(known)
        except CommandFailed as refusal:
            if known != saga or refusal.problem.get("detail") != f"there is no saga `{saga}`":
                raise
            if len(saga) < SHORTEST:
                raise refusal.hinting(_TOO_SHORT) from refusal
            if (found := await self._begun_with(saga)) in (None, saga):
                raise
        self._whole[saga] = str(found)
        return await self._named(saga, ask)

    async def _begun_with(self, beginning: str) -> str | None:
        """Return the one id with this beginning among the latest sagas. Raises `CommandFailed`."""
        try:
            pages = [page async for page, _ in self._pages("/sagas", "sagas", {}, RECENT, None)]
        except CommandFailed:
            return None  # a caller who may not list sagas has to write whole ids
        return full_saga_id(beginning, chain.from_iterable(pages))

    async def _get_of(
        self, saga: str, *more: str, query: Mapping[str, str] | None = None, has: str
    ) -> dict[str, Any]:
        return self._shaped((await self._of(saga, "GET", *more, query=query)).document or {}, has)

    async def _send_to(
        self, saga: str, *more: str, body: Mapping[str, Any], key: str | None = None
    ) -> dict[str, Any]:
        return self._shaped((await self._of(saga, "POST", *more, body=body, key=key)).document or {}, "id")

    async def _get(self, path: str, query: Mapping[str, str] | None = None, *, has: str) -> dict[str, Any]:
        return self._shaped((await self._transport.ask("GET", path, query=query)).document or {}, has)

    async def _send(
        self, path: str, body: Mapping[str, Any], key: str | None = None, *, has: str = "id"
    ) -> dict[str, Any]:
        answer = await self._transport.ask("POST", path, body=body, key=key)
        return self._shaped(answer.document or {}, has)

    def _shaped(self, document: dict[str, Any], has: str) -> dict[str, Any]:
        """Return the document, if it has the field that identifies an answer of a Baton API."""
        if document.get(has) is None:
            raise CommandFailed(
                UNREACHABLE, f"{self._url} answers, but not as a Baton API does: `{has}` is missing"
            )
        return document

    async def _pages(
        self, path: str, name: str, filters: Mapping[str, str], limit: int | None, cursor: str | None
    ) -> Pages:
        left = limit
        while left is None or left > 0:
            query = {**filters, "limit": str(min(PAGE, left or PAGE))}
            if cursor:
                query["cursor"] = cursor
            page = await self._get(path, query, has=name)
            before, cursor = cursor, page.get("next")
            yield page[name], cursor
            if left is not None:
                left -= len(page[name])
            if not cursor:
                return
            if cursor == before:
                raise CommandFailed(UNREACHABLE, f"{path} answers every page with the same cursor")


def path_of(*segments: str) -> str:
    """Return the path made of these names. Raises `CommandFailed` for an invalid name."""
    for segment in segments:
        # Every program on the way takes these for another path.
        if segment in ("", ".", ".."):
            raise CommandFailed(USAGE, f"`{segment}` is no name")
    return "".join("/" + quote(segment, safe="") for segment in segments)


def new_key() -> str:
    """Return a new idempotency key."""
    return str(uuid.uuid4())


_HERE = re.compile(r"http://127\.0\.0\.1:[0-9]{1,5}")


async def token_for(connection: Connection, user: str, groups: Sequence[str], roles: Sequence[str]) -> str:
    """Return a token for another user of the same tenant. Raises `CommandFailed`."""
    transport = Transport(Connection(_issuer_of(connection), connection.token), connections=1)
    try:
        body = {"user": user, "groups": list(groups), "roles": list(roles)}
        answer = await transport.ask("POST", "/token", body=body)
    finally:
        await transport.close()
    return str((answer.document or {}).get("token", ""))


def _issuer_of(connection: Connection) -> str:
    """Return the address of the local run that signed the current token. Raises `CommandFailed`."""
    try:
        body = connection.token.split(".")[1]
        issuer = json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))["iss"]
    except (IndexError, KeyError, TypeError, ValueError):
        issuer = None
    if connection.aws or not isinstance(issuer, str) or not _HERE.fullmatch(issuer):
        raise CommandFailed(
            DENIED,
            f"only `baton up` signs tokens, and the one at hand for {connection.url} is not one of its own",
            "Without BATON_URL and BATON_TOKEN the commands use that of the run in this directory. A token for any other API",
            "is signed by the issuer of that API; show it with --token or BATON_TOKEN.",
        )
    return issuer
