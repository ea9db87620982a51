"""The routes of the HTTP API as Python calls: `Api` for the commands, `Client` for other programs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Self, TypeVar

from baton.client import transport
from baton.client.calls import (
    FIRST_PAUSE_S,
    AliasCalls,
    BreakerCalls,
    ClaimCalls,
    CostCalls,
    EventCalls,
    LetterCalls,
    PeopleCalls,
    SagaCalls,
    ScheduleCalls,
    UserCalls,
    WorkflowCalls,
)
from baton.client.connection import Connection, find_connection
from baton.client.exits import DENIED, UNREACHABLE, CommandFailed
from baton.client.transport import new_key


class Api(
    SagaCalls,
    PeopleCalls,
    CostCalls,
    AliasCalls,
    BreakerCalls,
    ClaimCalls,
    LetterCalls,
    ScheduleCalls,
    EventCalls,
    UserCalls,
    WorkflowCalls,
):
    """Client of one API for one caller. Each call raises `CommandFailed`, which sets the exit status."""


T = TypeVar("T")
_WORDS = {DENIED: "denied", UNREACHABLE: "unreachable"}
_DONE = frozenset({"completed", "failed", "cancelled", "rolled_back", "rollback_failed"})
_LONGEST_LOOK_S = 5.0
"""Between two looks at a saga."""


class ClientError(Exception):
    """Error of a call.

    `status` is that of the HTTP answer, 0 without an answer. `code` is the last word of the problem's type,
    such as `not-found`; without an answer `unreachable`, `denied` (no address or token is known) or `usage`.
    `errors` are the faults of an input: `path`, `message` and `suggestion`.
    """

    def __init__(self, status: int, code: str, detail: str, errors: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(status, code, detail, errors)
        self.status, self.code, self.detail, self.errors = status, code, detail, list(errors)

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"


class SagaFailed(ClientError):
    """Error of `Client.result` for a saga that has not completed.

    `code` and `detail` are those of its failure, else its status. `saga` is the answer of `Client.show`.
    """

    def __init__(self, saga: Mapping[str, Any]) -> None:
        error = saga.get("error") or {}
        code = str(error.get("code") or saga["status"])
        super().__init__(0, code, str(error.get("message") or f"saga {saga['id']} is {saga['status']}"))
        self.args = (saga,)
        self.saga = dict(saga)


class Client:
    """Client of one deployment for one caller, for one event loop.

    url, token: without them BATON_URL and BATON_TOKEN, else the local deployment of this directory or one
    above it (`baton up`). A function as token is called for the first request, and once more after a 401.
    aws: requests are signed with the AWS credentials of the program. Methods raise `ClientError`.
    """

    def __init__(self, url: str = "", token: str | Callable[[], str] = "", *, aws: bool = False) -> None:
        self._url, self._token, self._aws = url, token, aws
        self._connection: Connection | None = None
        self._api: Api | None = None
        self._replaced: list[Api] = []
        """Other calls may still use them."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        apis = [*self._replaced, *([self._api] if self._api else [])]
        self._replaced, self._api = [], None
        for api in apis:
            await api.__aexit__()

    async def start(
        self,
        workflow: str,
        input: Any = None,  # the API's own word
        *,
        key: str = "",
        labels: Mapping[str, str] | None = None,
        correlation_key: str = "",
    ) -> dict[str, Any]:
        """Start a saga of a workflow, and return it: `POST /sagas`.

        The same key starts one saga, however often it is sent. A workflow has one for a correlation_key.
        """
        return await self._call(lambda api: api.start(workflow, input, key, labels, correlation_key))

    async def show(self, saga: str) -> dict[str, Any]:
        """Return the state of a saga: `GET /sagas/{saga}`."""
        return await self._call(lambda api: api.show(saga))

    async def result(self, saga: str, *, wait: float | None = None) -> Any:
        """Wait for the end of a saga, at most `wait` seconds, and return its result.

        Raises `SagaFailed` for a saga that has not completed, and `TimeoutError`.
        """
        async with asyncio.timeout(wait):
            found = await self._ended(saga)
        if found["status"] != "completed":
            raise SagaFailed(found)
        if large := found.get("large_result"):
            digest = str(large["ref"]).rpartition("/")[2].partition("@")[0]
            return await self._call(lambda api: api.value(saga, digest))
        return found["result"]

    async def _ended(self, saga: str) -> dict[str, Any]:
        etag, pause_s = "", FIRST_PAUSE_S
        while True:
            asked = etag
            found, etag = await self._call(lambda api: api.show_changed(saga, asked))  # noqa: B023
            if found is not None and found["status"] in _DONE:
                return found
            await transport.pause(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_LOOK_S)

    async def signal(self, saga: str, name: str, payload: Any = None, *, key: str = "") -> dict[str, Any]:
        """Send a signal to a saga: `POST /sagas/{saga}/signals/{name}`. The same key counts once."""
        return await self._call(lambda api: api.signal(saga, name, payload, key or None))

    async def update(
        self, saga: str, name: str, payload: Any = None, *, key: str = "", wait: float = 30
    ) -> dict[str, Any]:
        """Send a signal, and wait for the answer of the function to it, at most `wait` seconds.

        `outcome` is `answered`, with the function's `answer`, or says why there is none.
        """
        same = key or new_key()  # also after another token: it is one signal
        return await self._call(lambda api: api.update(saga, name, payload, same, wait))

    async def answer(
        self, saga: str, action: str, *, ask: str = "", key: str = "", **more: Any
    ) -> dict[str, Any]:
        """Answer a question of a saga: `POST /sagas/{saga}/answer`.

        ask: the question's id, which is not needed for the only one. more: `data`, `comment`, `arguments` or
        `output`.
        """
        if not ask:
            asked = [str(one["id"]) for one in (await self.show(saga))["questions"]]
            if len(asked) != 1:
                raise ClientError(0, "usage", f"{saga} asks {len(asked)} questions: say which by `ask`")
            (ask,) = asked
        body = {"ask": ask, "action": action, **more}
        return await self._call(lambda api: api.answer(saga, body, key or None))

    async def cancel(
        self, saga: str, reason: str = "", *, undo: bool = False, grace: float | None = None
    ) -> dict[str, Any]:
        """Ask a saga to stop: `POST /sagas/{saga}/cancel`. undo: take back first what it has done."""
        return await self._call(lambda api: api.cancel(saga, reason, "graceful", grace, undo=undo))

    async def _call(self, make: Callable[[Api], Awaitable[T]]) -> T:
        try:
            api = self._opened()
            try:
                return await make(api)
            except CommandFailed as failure:
                if failure.problem.get("status") != HTTPStatus.UNAUTHORIZED or not self._has_renewed(api):
                    raise
            return await make(self._opened())
        except CommandFailed as failure:
            raise _error_of(failure) from failure

    def _opened(self) -> Api:
        if self._api is None:
            self._connection = self._connection or self._found()
            self._api = Api(self._connection)
        return self._api

    def _found(self) -> Connection:
        token = self._token() if callable(self._token) else self._token
        if self._url:
            return find_connection(self._url, token, "aws" if self._aws else None)
        environment = os.environ.get
        way = "aws" if self._aws else environment("BATON_AUTH") or None
        return find_connection(environment("BATON_URL"), token or environment("BATON_TOKEN"), way)

    def _has_renewed(self, api: Api) -> bool:
        """Return true if there is another token than the refused one of `api`, which is then used."""
        if self._api is api:  # else another call has found it
            found = self._found()
            if found == self._connection:
                return False
            self._connection, self._api = found, None
            self._replaced.append(api)
        return True


def _error_of(failure: CommandFailed) -> ClientError:
    problem = failure.problem
    status, errors = int(problem.get("status") or 0), problem.get("errors") or ()
    code = str(problem.get("type") or "").rpartition(":")[2]
    if not code:  # of a gateway, or no answer at all
        words = HTTPStatus(status).phrase if status else _WORDS.get(failure.exit_code, "usage")
        code = words.lower().replace(" ", "-")
    return ClientError(status, code, str(problem.get("detail") or failure.message), errors)
