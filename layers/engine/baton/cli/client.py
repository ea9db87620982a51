"""The HTTP API as Python calls, for the commands and the demo: the one file here that speaks HTTP.

Belongs here: paths, headers, repeating what may be repeated, problem documents to errors. Does not
belong here: what a command prints.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any, Self
from urllib.parse import quote

import httpx

from baton.cli.connection import Connection
from baton.cli.exits import UNREACHABLE, Failed, refused

TOTAL_S = 20.0
TRIES = 4
PAUSE_S = 0.25
PAGE = 500
_AGAIN = frozenset({429, 500, 502, 503, 504})


class Api:
    """One API for one caller. Every call raises `Failed`, which says how the command ends.

    Each call may be repeated: reads by nature, writes by their `Idempotency-Key`. So a connection that
    breaks, or a server that is busy, is tried again before anybody hears of it.
    """

    def __init__(self, connection: Connection, *, connections: int = 16) -> None:
        self._connection = connection
        self._http = httpx.AsyncClient(
            base_url=connection.url,
            headers={"Authorization": f"Bearer {connection.token}"},
            timeout=TOTAL_S,
            limits=httpx.Limits(max_connections=connections, keepalive_expiry=2),
            # A proxy of the surrounding shell must not be asked about this machine.
            mounts={"all://127.0.0.1": None, "all://localhost": None},
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def start(self, workflow: str, given: Any, key: str | None = None) -> dict[str, Any]:
        """`POST /sagas`."""
        body = {"workflow": workflow, "input": given}
        return await self._call("POST", "/sagas", body=body, key=key or new_key())

    async def show(self, saga: str) -> dict[str, Any]:
        """`GET /sagas/{id}`."""
        return await self._call("GET", f"/sagas/{quote(saga, safe='')}")

    async def events(
        self, saga: str, after: int | None = None, limit: int | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """The entries of a saga in order, at most `limit` of them, page by page."""
        left = limit
        while left is None or left > 0:
            query = {"limit": str(min(PAGE, left or PAGE))}
            if after is not None:
                query["after"] = str(after)
            page = await self._call("GET", f"/sagas/{quote(saga, safe='')}/events", query=query)
            for entry in page["entries"]:
                yield entry
            if left is not None:
                left -= len(page["entries"])
            after = page.get("next")
            if after is None:
                return

    async def cancel(self, saga: str, reason: str, mode: str, grace_s: float | None = None) -> dict[str, Any]:
        """`POST /sagas/{id}/cancel`; repeating it changes nothing."""
        body: dict[str, Any] = {"reason": reason, "mode": mode}
        if grace_s is not None:
            body["grace_s"] = grace_s
        return await self._call("POST", f"/sagas/{quote(saga, safe='')}/cancel", body=body, key=new_key())

    async def signal(self, saga: str, name: str, payload: Any, key: str | None = None) -> dict[str, Any]:
        """`POST /sagas/{id}/signals/{name}`."""
        path = f"/sagas/{quote(saga, safe='')}/signals/{quote(name, safe='')}"
        return await self._call("POST", path, body={"payload": payload}, key=key or new_key())

    async def resume(self, saga: str) -> dict[str, Any]:
        """`POST /sagas/{id}/resume`, of a parked saga."""
        return await self._call("POST", f"/sagas/{quote(saga, safe='')}/resume", body={})

    async def fork(self, saga: str, version: int, reason: str, key: str | None = None) -> dict[str, Any]:
        """`POST /sagas/{id}/forks`."""
        body = {"version": version, "reason": reason}
        return await self._call(
            "POST", f"/sagas/{quote(saga, safe='')}/forks", body=body, key=key or new_key()
        )

    async def register(self, text: str, *, json: bool = False) -> dict[str, Any]:
        """`POST /workflows` with a document as it was written; registering it again changes nothing."""
        kind = "application/json" if json else "application/yaml"
        return await self._call("POST", "/workflows", text=text, content_type=kind)

    async def health(self) -> dict[str, Any]:
        """`GET /health`."""
        return await self._call("GET", "/health")

    async def _call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        text: str | None = None,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> dict[str, Any]:
        headers = {"Idempotency-Key": key} if key else {}
        if text is not None:
            headers["Content-Type"] = content_type
        try:
            async with asyncio.timeout(TOTAL_S):
                answer = await self._send(method, path, body, text, query, headers)
        except TimeoutError as error:
            raise self._unreachable(f"no answer in {TOTAL_S:.0f} s") from error
        except httpx.TransportError as error:
            raise self._unreachable(str(error) or type(error).__name__) from error
        document = _document(answer)
        if answer.is_success:
            return document
        raise refused(answer.status_code, document)

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        text: str | None,
        query: Mapping[str, str] | None,
        headers: Mapping[str, str],
    ) -> httpx.Response:
        for left in reversed(range(TRIES)):
            try:
                answer = await self._http.request(
                    method, path, json=body, content=text, params=query, headers=headers
                )
                if answer.status_code not in _AGAIN or not left:
                    return answer
            except httpx.TransportError:
                if not left:
                    raise
            # Full jitter, so that twenty callers who were refused together do not return together.
            await asyncio.sleep(PAUSE_S * 2 ** (TRIES - 1 - left) * random.random())  # noqa: S311  # not for secrets
        raise AssertionError("unreachable")

    def _unreachable(self, why: str) -> Failed:
        return Failed(UNREACHABLE, f"{self._connection.url} could not be reached: {why}")


def new_key() -> str:
    """An idempotency key that nobody has used."""
    return str(uuid.uuid4())


def _document(answer: httpx.Response) -> dict[str, Any]:
    try:
        document = answer.json()
    except ValueError:
        document = None
    if isinstance(document, dict):
        return document
    if answer.is_success:
        raise Failed(
            UNREACHABLE, f"{answer.request.url} did not answer with a JSON object: is this a Baton API?"
        )
    return {"title": answer.reason_phrase or "Error", "detail": answer.text[:300]}


class Reader:
    """Reads JSON from services that are not Baton, such as the books of the demo; shows no token."""

    def __init__(self) -> None:
        self._http = httpx.AsyncClient(
            timeout=TOTAL_S, limits=httpx.Limits(keepalive_expiry=2), trust_env=False
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def get(self, url: str) -> Any:
        """One document. Raises `Failed`."""
        try:
            async with asyncio.timeout(TOTAL_S):
                answer = await self._http.get(url)
            answer.raise_for_status()
        except (TimeoutError, httpx.HTTPError) as error:
            raise Failed(UNREACHABLE, f"{url}: {error}") from error
        return answer.json()
