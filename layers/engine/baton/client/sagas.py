"""Sagas, as calls of `Api`: what starts one, what one shows, and what changes its course.

Questions of sagas are in people.py, what sagas cost in costs.py.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from baton.client.calls import Calls, Pages, new_key

EVENTS = 500
WAY = 1_000  # the whole log is read for every page


class SagaCalls(Calls):
    """What an `Api` can do with sagas."""

    async def start(
        self,
        workflow: str,
        given: Any,
        key: str | None = None,
        labels: Mapping[str, str] | None = None,
        correlation_key: str = "",
    ) -> dict[str, Any]:
        """`POST /sagas`. With a `correlation_key` there is one saga, whatever the other key is: it takes none."""
        body = {"workflow": workflow, "input": given, **({"labels": dict(labels)} if labels else {})}
        if correlation_key:
            return await self._send("/sagas", {**body, "correlation_key": correlation_key}, key=key or "")
        return await self._send("/sagas", body, key=key or new_key())

    async def intend(self, words: str, given: Any, key: str | None = None) -> dict[str, Any]:
        """`POST /intentions`."""
        return await self._send("/intentions", {"words": words, "input": given}, key=key or new_key())

    async def show(self, saga: str) -> dict[str, Any]:
        """`GET /sagas/{id}`."""
        return await self._get_of(saga, has="status")

    async def show_changed(self, saga: str, etag: str) -> tuple[dict[str, Any] | None, str]:
        """`GET /sagas/{id}` if it is another than that of `etag` (else None), with the ETag to ask with next."""
        answer = await self._of(saga, "GET", etag=etag)
        return answer.document and self._shaped(answer.document, "status"), answer.etag

    async def events(
        self, saga: str, after: int | None = None, limit: int | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """The entries of a saga in order, at most `limit` of them, page by page."""
        left = limit
        while left is None or left > 0:
            query = {"limit": str(min(EVENTS, left or EVENTS))}
            if after is not None:
                query["after"] = str(after)
            page = await self._get_of(saga, "events", query=query, has="entries")
            for entry in page["entries"]:
                yield entry
            if left is not None:
                left -= len(page["entries"])
            after = page.get("next")
            if after is None:
                return

    async def events_changed(
        self, saga: str, after: int, etag: str
    ) -> tuple[list[dict[str, Any]], str, bool]:
        """One page after a version: its entries, its ETag, and whether there is more. Unchanged: no entries."""
        query = {"limit": str(EVENTS), "after": str(after)}
        answer = await self._of(saga, "GET", "events", query=query, etag=etag)
        page = {"entries": []} if answer.document is None else self._shaped(answer.document, "entries")
        return page["entries"], answer.etag, page.get("next") is not None

    async def sagas(self, filters: Mapping[str, str], limit: int | None, cursor: str | None) -> Pages:
        """`GET /sagas` page by page, at most `limit` sagas, each page with the cursor of what comes after."""
        async for page in self._pages("/sagas", "sagas", filters, limit, cursor):
            yield page

    async def value(self, saga: str, digest: str) -> Any:
        """`GET /sagas/{id}/values/{digest}`, its parts put together."""
        page = await self._get_of(saga, "values", digest, has="ref")
        if page["part"] is None:
            return page["value"]
        parts = [page["part"]]
        while page["next"] is not None:
            query = {"after": str(page["next"])}
            page = await self._get_of(saga, "values", digest, query=query, has="ref")
            parts.append(page["part"])
        return json.loads("".join(parts))

    async def live(self, saga: str) -> dict[str, Any]:
        """`GET /sagas/{id}/live`."""
        return await self._get_of(saga, "live", has="texts")

    async def way(
        self, saga: str, after: int | None = None, limit: int | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Which way a saga went, page by page, about `limit` steps."""
        left = limit
        while True:
            query = {"limit": str(WAY if left is None else min(WAY, left))}
            if after is not None:
                query["after"] = str(after)
            page = await self._get_of(saga, "explain", query=query, has="steps")
            yield page
            after = page.get("next")
            if left is not None:
                left -= len(page["steps"])
            if after is None or (left is not None and left <= 0):
                return

    async def explain(self, saga: str, node: str) -> dict[str, Any]:
        """`GET /sagas/{id}/explain/{node}`."""
        return await self._get_of(saga, "explain", node, has="iterations")

    async def signal(
        self,
        saga: str,
        name: str,
        payload: Any,
        key: str | None = None,
        failure: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """`POST /sagas/{id}/signals/{name}`: a payload, or a failure (`code`, `message`) in its place."""
        body = {"payload": payload} if failure is None else {"failure": dict(failure)}
        return await self._send_to(saga, "signals", name, body=body, key=key or new_key())

    async def cancel(
        self, saga: str, reason: str, mode: str, grace_s: float | None = None, *, undo: bool = False
    ) -> dict[str, Any]:
        """`POST /sagas/{id}/cancel`; repeating it changes nothing."""
        body: dict[str, Any] = {"reason": reason, "mode": mode}
        if grace_s is not None:
            body["grace_s"] = grace_s
        if undo:
            body["undo"] = True
        return await self._send_to(saga, "cancel", body=body, key=new_key())

    async def fork(self, saga: str, version: int, reason: str, key: str | None = None) -> dict[str, Any]:
        """`POST /sagas/{id}/forks`."""
        body = {"version": version, "reason": reason}
        return await self._send_to(saga, "forks", body=body, key=key or new_key())

    async def rollback(self, saga: str, body: Mapping[str, Any], key: str | None = None) -> dict[str, Any]:
        """`POST /sagas/{id}/rollback`."""
        return await self._send_to(saga, "rollback", body=dict(body), key=key or new_key())

    async def resume(self, saga: str, budget_usd: str | None = None) -> dict[str, Any]:
        """`POST /sagas/{id}/resume`, of a parked saga."""
        body = {} if budget_usd is None else {"budget_usd": budget_usd}
        return await self._send_to(saga, "resume", body=body)
