"""The calls that change the course of a saga as a whole: cancel, fork and rollback. The others are in api.py."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any


def new_key() -> str:
    """An idempotency key that no request has used."""
    return str(uuid.uuid4())


class SteeringCalls:
    """What `Api` can do with a saga as a whole."""

    if TYPE_CHECKING:

        async def _send_to(
            self, saga: str, *more: str, body: Mapping[str, Any], key: str | None = None
        ) -> dict[str, Any]: ...

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
