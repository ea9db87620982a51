"""The routes of the HTTP API as Python calls, for the commands and the demo.

How a request travels is in transport.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from itertools import chain
from typing import Any, Self
from urllib.parse import quote

import httpx

from baton.client.connection import Connection
from baton.client.exits import UNREACHABLE, USAGE, Failed
from baton.client.letters import LetterCalls
from baton.client.outside import EventCalls
from baton.client.prefixes import RECENT, SHORTEST, whole
from baton.client.schedules import ScheduleCalls
from baton.client.steering import SteeringCalls, new_key
from baton.client.transport import TOTAL_S, Answer, Transport

EVENTS = 500
WAY = 1_000  # the whole log is read for every page
PAGE = 100
_CREATED = 201
_SUMMED = ("sagas", "input", "output", "usd")
_TOO_SHORT = f"The beginning of an id names a saga if it has at least {SHORTEST} characters."


class Api(EventCalls, LetterCalls, ScheduleCalls, SteeringCalls):
    """One API for one caller. Every call raises `Failed`, which says how the command ends."""

    def __init__(self, connection: Connection, *, connections: int = 16) -> None:
        self._url = connection.url
        self._transport = Transport(connection, connections)
        self._whole: dict[str, str] = {}  # ids by the beginnings that were given for them

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.close()

    # ---- sagas

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

    async def sagas(
        self, filters: Mapping[str, str], limit: int | None, cursor: str | None
    ) -> AsyncIterator[tuple[list[dict[str, Any]], str | None]]:
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

    async def cost(self, saga: str) -> dict[str, Any]:
        """`GET /sagas/{id}/cost`."""
        return await self._get_of(saga, "cost", has="usd")

    async def live(self, saga: str) -> dict[str, Any]:
        """`GET /sagas/{id}/live`."""
        return await self._get_of(saga, "live", has="texts")

    async def costs(self, by: str, day: str | None, of: str = "") -> dict[str, Any]:
        """`GET /costs`, its pages added up."""
        query = {"by": by, **({"day": day} if day else {}), **({"of": of} if of else {})}
        page = await self._get("/costs", query, has="costs")
        sums, left_out = {row["key"]: row for row in page["costs"]}, list(page.get("left_out") or ())
        while page["next"] is not None:
            page = await self._get(
                "/costs", {**query, "day": page["day"], "cursor": page["next"]}, has="costs"
            )
            left_out += page.get("left_out") or ()
            for row in page["costs"]:
                before = sums.setdefault(row["key"], {**row, **dict.fromkeys(_SUMMED, 0)})
                before.update({name: before[name] + row[name] for name in _SUMMED})
        costs = sorted(sums.values(), key=lambda row: (-row["usd"], row["key"]))
        return {"day": page["day"], "by": by, "costs": costs, **({"left_out": left_out} if of else {})}

    async def budget(self) -> dict[str, Any]:
        """`GET /budget`."""
        return await self._get("/budget", has="spent_usd")

    async def error_budgets(self, day: str | None = None) -> list[dict[str, Any]]:
        """`GET /error-budgets`, its pages."""
        pages: list[dict[str, Any]] = []
        query = {"day": day} if day else {}
        while not pages or pages[-1]["next"] is not None:
            pages.append(await self._get("/error-budgets", query, has="workflows"))
            query = {"day": pages[0]["day"], "cursor": pages[-1]["next"]}
        return pages

    def breakers(self) -> AsyncIterator[tuple[list[dict[str, Any]], str | None]]:
        """`GET /breakers`, all pages."""
        return self._pages("/breakers", "breakers", {}, None, None)

    async def breaker(self, name: str) -> dict[str, Any]:
        """`GET /breakers/{name}`."""
        return await self._get(_path("breakers", name), has="state")

    async def set_breaker(self, name: str, do: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """`POST /breakers/{name}/open` or `/reset`."""
        answer = await self._transport.ask("POST", _path("breakers", name, do), body=body)
        return self._shaped(answer.document or {}, "state")

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

    async def answer(self, saga: str, body: Mapping[str, Any], key: str | None = None) -> dict[str, Any]:
        """`POST /sagas/{id}/answer`; without a key the same answer to a question still counts once."""
        return await self._send_to(saga, "answer", body=body, key=key)

    async def claim(self, saga: str, ask: str, *, release: bool = False) -> dict[str, Any]:
        """`POST /sagas/{id}/claim`; with `release`, the question is for all of its audience again."""
        return await self._send_to(saga, "claim", body={"ask": ask, "release": release})

    async def remind(self, saga: str, ask: str) -> dict[str, Any]:
        """`POST /sagas/{id}/remind`."""
        return await self._send_to(saga, "remind", body={"ask": ask})

    async def resume(self, saga: str, budget_usd: str | None = None) -> dict[str, Any]:
        """`POST /sagas/{id}/resume`, of a parked saga."""
        body = {} if budget_usd is None else {"budget_usd": budget_usd}
        return await self._send_to(saga, "resume", body=body)

    # ---- questions and incidents

    async def questions(
        self, limit: int | None, cursor: str | None
    ) -> AsyncIterator[tuple[list[dict[str, Any]], str | None]]:
        """`GET /questions` page by page, as `sagas`."""
        async for page in self._pages("/questions", "questions", {}, limit, cursor):
            yield page

    async def questions_of(self, saga: str, limit: int) -> list[dict[str, Any]]:
        """`GET /questions?saga=`."""
        query = {"limit": str(min(limit, PAGE))}
        answer = await self._named(
            saga, lambda known: self._transport.ask("GET", "/questions", query={"saga": known, **query})
        )
        return list(self._shaped(answer.document or {}, "questions")["questions"])

    async def incidents(
        self, filters: Mapping[str, str], limit: int | None, cursor: str | None
    ) -> AsyncIterator[tuple[list[dict[str, Any]], str | None]]:
        """`GET /incidents` page by page, as `sagas`."""
        async for page in self._pages("/incidents", "incidents", filters, limit, cursor):
            yield page

    async def incident(self, incident: str) -> dict[str, Any]:
        """`GET /incidents/{id}`"""
        return await self._get(_path("incidents", incident), has="status")

    async def set_incident(self, incident: str, do: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """`POST /incidents/{id}/acknowledge` and `resolve`; repeating it changes nothing."""
        return await self._send(_path("incidents", incident, do), body)

    # ---- workflows, and what they are made of

    async def register(self, text: str, *, is_json: bool = False) -> dict[str, Any]:
        """`POST /workflows` with a document as it was written; registering it again changes nothing.

        The answer, and in `new` whether this made a new version.
        """
        kind = "application/json" if is_json else "application/yaml"
        answer = await self._transport.ask("POST", "/workflows", text=text, content_type=kind)
        return {**self._shaped(answer.document or {}, "name"), "new": answer.status == _CREATED}

    async def workflows(
        self, limit: int | None, cursor: str | None
    ) -> AsyncIterator[tuple[list[dict[str, Any]], str | None]]:
        """`GET /workflows` page by page, as `sagas`."""
        async for page in self._pages("/workflows", "workflows", {}, limit, cursor):
            yield page

    async def workflow(self, name: str, version: str | None = None) -> dict[str, Any]:
        """`GET /workflows/{name}`, or one of its versions."""
        return await self._get(_path("workflows", name, *([] if version is None else [version])), has="nodes")

    async def tools(self) -> dict[str, Any]:
        """`GET /tools`."""
        return await self._get("/tools", has="tools")

    async def node_types(self) -> dict[str, Any]:
        """`GET /node-types`."""
        return await self._get("/node-types", has="node_types")

    async def health(self) -> dict[str, Any]:
        """`GET /health`."""
        return await self._get("/health", has="status")

    # ---- how

    async def _of(self, saga: str, method: str, *more: str, **said: Any) -> Answer:
        """What the API answers about a saga, which may be named by the beginning of its id."""
        return await self._named(
            saga, lambda known: self._transport.ask(method, _path("sagas", known, *more), **said)
        )

    async def _named(self, saga: str, ask: Callable[[str], Awaitable[Answer]]) -> Answer:
        """The answer to what is asked with the whole id of a saga, of which the beginning may be given."""
        known = self._whole.get(saga, saga)
        try:
            return await ask(known)
        except Failed as refusal:
            if known != saga or refusal.problem.get("detail") != f"there is no saga `{saga}`":
                raise
            if len(saga) < SHORTEST:
                raise refusal.hinting(_TOO_SHORT) from refusal
            if (found := await self._begun_with(saga)) in (None, saga):
                raise
        self._whole[saga] = str(found)
        return await self._named(saga, ask)

    async def _begun_with(self, beginning: str) -> str | None:
        """The id that begins so among those of the latest sagas. Raises `Failed` where several do."""
        try:
            pages = [page async for page, _ in self.sagas({}, RECENT, None)]
        except Failed:
            return None  # a caller who may not list sagas has to write whole ids
        return whole(beginning, chain.from_iterable(pages))

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

    async def _send(self, path: str, body: Mapping[str, Any], key: str | None = None) -> dict[str, Any]:
        return self._shaped(
            (await self._transport.ask("POST", path, body=body, key=key)).document or {}, "id"
        )

    def _shaped(self, document: dict[str, Any], has: str) -> dict[str, Any]:
        """The document, if it has the field by which an answer of a Baton API is known."""
        if document.get(has) is None:
            raise Failed(UNREACHABLE, f"{self._url} answers, but not as a Baton API does: `{has}` is missing")
        return document

    async def _pages(
        self, path: str, name: str, filters: Mapping[str, str], limit: int | None, cursor: str | None
    ) -> AsyncIterator[tuple[list[dict[str, Any]], str | None]]:
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
                raise Failed(UNREACHABLE, f"{path} answers every page with the same cursor")


class Reader:
    """JSON from and to services that are not Baton, such as the books of the demo; shows no token."""

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
        return (await self._answer("GET", url)).json()

    async def put(self, url: str, document: Any) -> None:
        """Replace a document. Raises `Failed`."""
        await self._answer("PUT", url, document)

    async def _answer(self, method: str, url: str, document: Any = None) -> httpx.Response:
        try:
            async with asyncio.timeout(TOTAL_S):
                answer = await self._http.request(method, url, json=document)
            return answer.raise_for_status()
        except (TimeoutError, httpx.HTTPError) as error:
            raise Failed(UNREACHABLE, f"{url}: {error}") from error


def _path(*segments: str) -> str:
    for segment in segments:
        # Every program on the way takes these for another path.
        if segment in ("", ".", ".."):
            raise Failed(USAGE, f"`{segment}` is no name")
    return "".join("/" + quote(segment, safe="") for segment in segments)
