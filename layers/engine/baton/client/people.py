"""Questions and incidents, as calls of `Api`: what people decide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.client.calls import PAGE, Calls, Pages, path_of


class PeopleCalls(Calls):
    """What an `Api` can do with questions and incidents."""

    async def questions(self, limit: int | None, cursor: str | None) -> Pages:
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

    async def answer(self, saga: str, body: Mapping[str, Any], key: str | None = None) -> dict[str, Any]:
        """`POST /sagas/{id}/answer`; without a key the same answer to a question still counts once."""
        return await self._send_to(saga, "answer", body=body, key=key)

    async def claim(self, saga: str, ask: str, *, release: bool = False) -> dict[str, Any]:
        """`POST /sagas/{id}/claim`; with `release`, the question is for all of its audience again."""
        return await self._send_to(saga, "claim", body={"ask": ask, "release": release})

    async def remind(self, saga: str, ask: str) -> dict[str, Any]:
        """`POST /sagas/{id}/remind`."""
        return await self._send_to(saga, "remind", body={"ask": ask})

    async def incidents(self, filters: Mapping[str, str], limit: int | None, cursor: str | None) -> Pages:
        """`GET /incidents` page by page, as `sagas`."""
        async for page in self._pages("/incidents", "incidents", filters, limit, cursor):
            yield page

    async def incident(self, incident: str) -> dict[str, Any]:
        """`GET /incidents/{id}`"""
        return await self._get(path_of("incidents", incident), has="status")

    async def set_incident(self, incident: str, do: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """`POST /incidents/{id}/acknowledge` and `resolve`; repeating it changes nothing."""
        return await self._send(path_of("incidents", incident, do), body)
