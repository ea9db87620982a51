"""The HTTP side that both services share: one operation from the bytes to the answer.

It reads requests, honours `Idempotency-Key`, delays answers and writes problem documents. What an operation means is
in table_stack and open_delivery.
"""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, TypeVar

import pydantic
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, JSONResponse, Response

from examples.services.books import Books, Request
from examples.services.faults import HANGS_S, LATE_S, Fault, Faults

MAX_BODY_BYTES = 64 * 1024
HUNG_UP = 499
LOOK_EVERY_S = 0.1  # whether a caller that is kept waiting is still there

Sleep = Callable[[float], Awaitable[None]]
Body = TypeVar("Body", bound=pydantic.BaseModel)
Meets = Callable[[Body], tuple[str, datetime | None]]
"""Where and when an operation is carried out, by its body: the place and the time of the faults that it meets."""


class Refusal(Exception):
    """The operation was refused and nothing happened: `409`, `404` and the like."""

    def __init__(
        self, status: int, title: str, detail: str, headers: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(f"{title}: {detail}")
        self.status = status
        self.headers = headers or {}
        self.body = {"type": "about:blank", "title": title, "status": status, "detail": detail}
        self.body |= more


@dataclass(frozen=True, slots=True)
class Answer:
    """What an operation answers: a status and a JSON object."""

    status: int
    body: Mapping[str, Any]


@dataclass(slots=True)
class _Remembered:
    fingerprint: str
    request: int
    answer: asyncio.Task[Answer]


@dataclass(slots=True)
class Desk:
    """Receives requests for one service and writes them into its books.

    `delays` is the time in seconds an operation takes. Its effect is carried out half-way, so that a
    caller that dies while it waits has had its effect without having heard of it: the case that
    idempotency keys exist for. With `honour_keys` off the service does what it is told every time.
    Every `busy_every`-th request is refused before anything is done about it; 0: none is. An operation meets
    the `faults` of the place and the time that its caller's `meets` says.
    """

    books: Books
    delays: Mapping[str, float]
    honour_keys: bool = True
    sleep: Sleep = asyncio.sleep
    busy_every: int = 0
    faults: Faults = field(default_factory=Faults)
    _remembered: dict[str, _Remembered] = field(default_factory=dict)

    async def act(
        self,
        http: HttpRequest,
        operation: str,
        model: type[Body],
        carry_out: Callable[[Request, Body], Answer],
        *,
        meets: Meets[Body] | None = None,
        takes_keys: bool = True,
    ) -> Response:
        """Answer an operation that has an effect; `carry_out` is called once per key, if it takes keys."""
        request = self._receive(http, operation)
        try:
            self._unless_busy(request)
            raw = await self._read(http)
            body = _parse(model, raw)
            fault = await self._met(http, operation, meets, body)
            if request.key is None or not (self.honour_keys and takes_keys):
                answer = await self._carry_out(request, body, carry_out)
            else:
                what = f"{http.url.path}\n{body.model_dump_json()}"
                answer = await self._once(request, request.key, what, body, carry_out)
            answered = await self._late_or_strange(http, fault)
        except Refusal as refusal:
            return _refused(request, refusal)
        except ClientDisconnect:
            request.status = HUNG_UP
            return Response(status_code=HUNG_UP)
        request.status = answer.status
        if answered is not None:
            return answered
        replayed = {"Idempotency-Replayed": "true"} if request.replay_of else {}
        return JSONResponse(dict(answer.body), answer.status, headers=replayed)

    async def look(
        self,
        http: HttpRequest,
        operation: str,
        model: type[Body],
        find: Callable[[Body], Answer],
        *,
        meets: Meets[Body] | None = None,
    ) -> Response:
        """Answer an operation that only looks something up."""
        request = self._receive(http, operation)
        try:
            self._unless_busy(request)
            if http.method == "GET":
                query = _parse(model, json.dumps(dict(http.query_params)).encode())
            else:
                query = _parse(model, await self._read(http))
            fault = await self._met(http, operation, meets, query)
            await self.sleep(self.delays.get(operation, 0))
            answer = find(query)
            answered = await self._late_or_strange(http, fault)
        except Refusal as refusal:
            return _refused(request, refusal)
        except ClientDisconnect:
            request.status = HUNG_UP
            return Response(status_code=HUNG_UP)
        request.status = answer.status
        return answered or JSONResponse(dict(answer.body), answer.status)

    async def show_books(self, http: HttpRequest) -> Response:
        """`GET /books`; with `?summary=1` the summary alone."""
        document = self.books.document() | {"idempotency": self.honour_keys}
        if http.query_params.get("summary"):
            document = {k: v for k, v in document.items() if k not in ("effects", "requests")}
        return JSONResponse(document)

    async def show_unanswered(self, http: HttpRequest) -> Response:
        """`GET /books/unanswered`: what was done and not yet told, at this moment."""
        effects = [asdict(effect) for effect in self.books.unanswered()]
        return JSONResponse({"service": self.books.service, "effects": effects})

    async def health(self, http: HttpRequest) -> Response:
        """`GET /health`."""
        return JSONResponse({"status": "ok", "service": self.books.service})

    def _receive(self, http: HttpRequest, operation: str) -> Request:
        headers = http.headers
        return self.books.receive(operation, headers.get("idempotency-key"), headers.get("traceparent"))

    def _unless_busy(self, request: Request) -> None:
        if self.busy_every and request.n % self.busy_every == 0:
            raise Refusal(503, "Busy", "Come again in a second.", {"Retry-After": "1"})

    async def _met(
        self, http: HttpRequest, operation: str, meets: Meets[Body] | None, body: Body
    ) -> Fault | None:
        """The fault that an operation meets, if any. Raises `Refusal` for one because of which nothing is done."""
        fault = None if meets is None else self.faults.find(operation, *meets(body))
        if fault is None:
            return None
        if fault.kind == "hangs":
            await self._unless_hung_up(http, HANGS_S)
        if fault.kind in ("hangs", "unavailable"):
            raise Refusal(503, "Not available", "Something is broken here.")
        if fault.kind == "login":
            raise Refusal(401, "Login required", "This login is not known here.")
        return fault

    async def _unless_hung_up(self, http: HttpRequest, seconds: float) -> None:
        """Let the caller wait. Raises `ClientDisconnect` as soon as it does so no longer."""
        for _ in range(round(seconds / LOOK_EVERY_S)):
            await self.sleep(LOOK_EVERY_S)
            if await http.is_disconnected():
                raise ClientDisconnect

    async def _late_or_strange(self, http: HttpRequest, fault: Fault | None) -> Response | None:
        """What is answered in place of the truth about what was done; None for the truth, perhaps late."""
        if fault is None:
            return None
        if fault.kind == "late":
            await self._unless_hung_up(http, LATE_S)
        if fault.kind == "nonsense":
            return HTMLResponse("<h1>It works!</h1>")
        return JSONResponse({"ok": True}) if fault.kind == "shapeless" else None

    async def _read(self, http: HttpRequest) -> bytes:
        raw = bytearray()
        async for chunk in http.stream():
            raw += chunk
            if len(raw) > MAX_BODY_BYTES:
                raise Refusal(413, "Body too large", f"The limit is {MAX_BODY_BYTES} bytes.")
        return bytes(raw)

    async def _once(
        self,
        request: Request,
        key: str,
        what: str,
        body: Body,
        carry_out: Callable[[Request, Body], Answer],
    ) -> Answer:
        fingerprint = hashlib.sha256(what.encode()).hexdigest()
        known = self._remembered.get(key)
        if known is not None:
            if known.fingerprint != fingerprint:
                raise Refusal(
                    422,
                    "Idempotency key used for something else",
                    f"The key {key!r} was first used with another path or body.",
                )
            request.replay_of = known.request
            # A first request that is still at work is waited for, never overtaken.
            return await asyncio.shield(known.answer)
        # A task of its own: a caller that hangs up half-way changes nothing about what happens.
        work = asyncio.create_task(self._carry_out(request, body, carry_out))
        self._remembered[key] = _Remembered(fingerprint, request.n, work)
        try:
            return await asyncio.shield(work)
        except Refusal:
            # Nothing happened, so nothing is remembered: the key may be used again.
            del self._remembered[key]
            raise

    async def _carry_out(
        self, request: Request, body: Body, carry_out: Callable[[Request, Body], Answer]
    ) -> Answer:
        delay = self.delays.get(request.operation, 0)
        await self.sleep(delay / 2)
        answer = carry_out(request, body)
        await self.sleep(delay / 2)
        return answer


def _parse(model: type[Body], raw: bytes) -> Body:
    try:
        return model.model_validate_json(raw or b"{}")
    except pydantic.ValidationError as error:
        errors = [
            {"path": "/" + "/".join(map(str, problem["loc"])), "message": problem["msg"]}
            for problem in error.errors(include_url=False)
        ]
        status = 400 if error.errors()[0]["type"] == "json_invalid" else 422
        listed = "; ".join(f"{problem['path']}: {problem['message']}" for problem in errors)
        raise Refusal(status, "Not a valid request", listed, errors=errors) from error


def _refused(request: Request, refusal: Refusal) -> Response:
    request.status = refusal.status
    headers = {"Content-Type": "application/problem+json", **refusal.headers}
    return JSONResponse(refusal.body, refusal.status, headers=headers)
