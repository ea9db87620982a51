"""The routes about users, as calls of `Api`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.client.calls import Calls


class UserCalls(Calls):
    """The routes about users, as calls of `Api`."""

    async def users(self) -> dict[str, Any]:
        """`GET /users`, its pages put together: each user once, by what was spent."""
        page = await self._get("/users", has="users")
        found, day = {row["user"]: row for row in page["users"]}, page["day"]
        while page["next"] is not None:
            page = await self._get("/users", {"cursor": page["next"]}, has="users")
            found |= {row["user"]: row for row in page["users"]}
        return {"day": day, "users": sorted(found.values(), key=lambda row: (-row["spent_usd"], row["user"]))}

    async def user(self, name: str) -> dict[str, Any]:
        """`GET /users?user=…`: also a user of whom nothing is known."""
        page = await self._get("/users", {"user": name}, has="users")
        return self._shaped(page["users"][0] if page["users"] else {}, "state")

    async def set_user(self, do: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """`POST /users/block`, `/unblock` or `/limit`."""
        answer = await self._transport.ask("POST", f"/users/{do}", body=body)
        return self._shaped(answer.document or {}, "state")
