"""Workflows and what they are made of, as calls of `Api`."""

from __future__ import annotations

from typing import Any

from baton.client.calls import Calls, Pages, path_of

_CREATED = 201


class WorkflowCalls(Calls):
    """What an `Api` can ask about workflows, tools and kinds of nodes, and the deployment."""

    async def register(self, text: str, *, is_json: bool = False) -> dict[str, Any]:
        """`POST /workflows` with a document as it was written; registering it again changes nothing.

        The answer, and in `new` whether this made a new version.
        """
        kind = "application/json" if is_json else "application/yaml"
        answer = await self._transport.ask("POST", "/workflows", text=text, content_type=kind)
        return {**self._shaped(answer.document or {}, "name"), "new": answer.status == _CREATED}

    async def workflows(self, limit: int | None, cursor: str | None) -> Pages:
        """`GET /workflows` page by page, as `sagas`."""
        async for page in self._pages("/workflows", "workflows", {}, limit, cursor):
            yield page

    async def workflow(self, name: str, version: str | None = None) -> dict[str, Any]:
        """`GET /workflows/{name}`, or one of its versions."""
        return await self._get(
            path_of("workflows", name, *([] if version is None else [version])), has="nodes"
        )

    async def tools(self) -> dict[str, Any]:
        """`GET /tools`."""
        return await self._get("/tools", has="tools")

    async def node_types(self) -> dict[str, Any]:
        """`GET /node-types`."""
        return await self._get("/node-types", has="node_types")

    async def health(self) -> dict[str, Any]:
        """`GET /health`."""
        return await self._get("/health", has="status")
