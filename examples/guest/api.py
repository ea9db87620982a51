"""The routes of the public API that the guest's page uses, as a user with the roles `read`, `run` and `answer`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

TOTAL_S = 10.0
ENDED = frozenset({"completed", "failed", "cancelled", "rolled_back", "rollback_failed"})
"""The statuses of a saga that has ended."""


class RefusedError(Exception):
    """The API did not do it; the message is for the guest. `status`: 503 where it did not answer."""

    def __init__(self, message: str, status: int = 503) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Api:
    """Calls with the guest's token. `http` knows the address. Each raises `RefusedError`."""

    http: httpx.AsyncClient

    async def intend(self, words: str, at: str, key: str) -> str:
        """Starts an evening from words; the same key gives the same saga. Its id."""
        body = {"words": words, "input": {"at": at}}
        return str((await self._send("POST", "/intentions", body, key))["id"])

    async def start(self, workflow: str, given: Mapping[str, Any], key: str) -> str:
        """Starts a saga; the same key gives the same one. Its id."""
        return str((await self._send("POST", "/sagas", {"workflow": workflow, "input": given}, key))["id"])

    async def show(self, saga: str) -> Any:
        return await self._send("GET", f"/sagas/{_part(saga)}")

    async def steps(self, saga: str) -> list[Any]:
        """What it did, in order; of a long one the beginning."""
        found: list[Any] = (await self._send("GET", f"/sagas/{_part(saga)}/explain?limit=200"))["steps"]
        return found

    async def events(self, saga: str) -> list[Any]:
        """The beginning of its log."""
        entries = (await self._send("GET", f"/sagas/{_part(saga)}/events?limit=200"))["entries"]
        return [event for entry in entries for event in entry["events"]]

    async def answer(self, saga: str, ask: str, action: str, comment: str, key: str) -> None:
        body = {"ask": ask, "action": action} | ({"comment": comment} if comment else {})
        await self._send("POST", f"/sagas/{_part(saga)}/answer", body, key)

    async def say(self, saga: str, words: str, key: str) -> None:
        """Another wish, while the evening is arranged."""
        await self._send("POST", f"/sagas/{_part(saga)}/signals/follow_up", {"payload": words}, key)

    async def _send(self, method: str, path: str, body: Any = None, key: str = "") -> Any:
        try:
            headers = {"Idempotency-Key": key} if key else {}
            answer = await self.http.request(method, path, json=body, headers=headers, timeout=TOTAL_S)
        except httpx.HTTPError as error:
            raise RefusedError("Baton does not answer. Try it again in a moment.") from error
        if answer.is_success:
            return answer.json()
        try:
            detail = str(answer.json()["detail"])
        except (ValueError, KeyError, TypeError):
            detail = f"Baton has answered {answer.status_code}."
        raise RefusedError(detail, answer.status_code)


def _part(saga: str) -> str:
    return quote(saga, safe="")
