"""The routes. Each reads its request, calls one use case, and answers JSON."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, TypeVar

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.event_handler.api_gateway import Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError

from baton.core.toolspec import nearest
from baton.errors import CorruptLog, EngineFault, UnknownEntry, UserError
from baton.runtime.parts import Engine
from baton.runtime.service import Caller, Service
from baton.settings import ApiSettings
from baton.web import problems
from baton.web.identity import caller_of
from baton.web.requests import (
    CancelBody,
    ForkBody,
    SignalBody,
    StartBody,
    idempotency_key,
    read_body,
    text_of,
    whole_number,
)

logger = logging.getLogger("baton.api")

ANSWER_RESERVE_MS = 500
DEFAULT_PAGE = 100
MAX_PAGE_BYTES = 2_000_000  # a third of what Lambda may answer: quotes in a log can double, and double again
T = TypeVar("T")


class Api:
    """The HTTP API over an engine. `handle` takes a payload 2.0 event and a Lambda context."""

    def __init__(self, engine: Engine, config: ApiSettings) -> None:
        self._engine = engine
        self._config = config
        self._loop = asyncio.Runner()
        self._app = APIGatewayHttpResolver()
        self._routes: list[tuple[str, str]] = []
        self._add_routes()

    def handle(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        return self._app.resolve(event, context)

    def _add_routes(self) -> None:
        app = self._app
        self._add("GET", "/health", self._health)
        self._add("POST", "/workflows", self._register)
        self._add("POST", "/sagas", self._start)
        self._add("GET", "/sagas/<saga>", self._show)
        self._add("GET", "/sagas/<saga>/events", self._events)
        self._add("POST", "/sagas/<saga>/cancel", self._cancel)
        self._add("POST", "/sagas/<saga>/signals/<name>", self._signal)
        self._add("POST", "/sagas/<saga>/resume", self._resume)
        self._add("POST", "/sagas/<saga>/forks", self._fork)
        app.exception_handler(UserError)(problems.of_user_error)
        app.exception_handler(EngineFault)(_engine_fault)
        app.exception_handler(Exception)(_defect)
        app.not_found(self._no_route)

    def _add(self, method: str, path: str, handler: Callable[..., Response[str]]) -> None:
        self._routes.append((method, path))
        self._app.route(path, method=method)(handler)

    def _run(self, use: Callable[[Service], Awaitable[T]], caller: Caller | None = None) -> T:
        deadline = self._engine.clock.now() + self._app.lambda_context.get_remaining_time_in_millis()
        who = caller or caller_of(self._app.current_event.raw_event, self._config.tenant_claim)
        service = Service(self._engine, who, deadline - ANSWER_RESERVE_MS)

        async def answer() -> T:
            return await use(service)

        return self._loop.run(answer())

    def _text(self) -> str:
        event = self._app.current_event
        return text_of(event.body or "", bool(event.is_base64_encoded), self._config.max_body_bytes)

    def _key(self) -> str:
        headers = self._app.current_event.headers
        return idempotency_key({name.lower(): value for name, value in headers.items()})

    def _health(self) -> Response[str]:
        nobody = Caller(tenant="-", user="-", request="health")
        return _json(HTTPStatus.OK, self._run(lambda service: service.health(), nobody))

    def _register(self) -> Response[str]:
        text = self._text()
        kind = self._app.current_event.headers.get("content-type", "")
        registered = self._run(lambda service: service.register(text, json_only="json" in kind.lower()))
        definition = registered.definition
        status = HTTPStatus.CREATED if registered.is_new else HTTPStatus.OK
        return _json(
            status, {"name": definition.name, "version": definition.version, "graph": definition.graph}
        )

    def _start(self) -> Response[str]:
        body, key = read_body(StartBody, self._text()), self._key()
        view, is_new = self._run(lambda service: service.start(body.workflow, body.input, key))
        status = HTTPStatus.CREATED if is_new else HTTPStatus.OK
        return _json(status, view, {"Location": f"/sagas/{view['id']}"})

    def _show(self, saga: str) -> Response[str]:
        return _json(HTTPStatus.OK, self._run(lambda service: service.show(saga)))

    def _events(self, saga: str) -> Response[str]:
        query = self._app.current_event.query_string_parameters or {}
        after = whole_number("after", query.get("after"), 0)
        limit = whole_number("limit", query.get("limit"), DEFAULT_PAGE)
        page = self._run(lambda service: service.events(saga, after, limit))
        return _json(HTTPStatus.OK, _cut(page))

    def _cancel(self, saga: str) -> Response[str]:
        body = read_body(CancelBody, self._text())
        return _json(
            HTTPStatus.ACCEPTED,
            self._run(lambda service: service.cancel(saga, body.reason, body.grace_ms)),
        )

    def _signal(self, saga: str, name: str) -> Response[str]:
        body, key = read_body(SignalBody, self._text()), self._key()
        return _json(
            HTTPStatus.ACCEPTED,
            self._run(lambda service: service.signal(saga, name, body.payload, key)),
        )

    def _resume(self, saga: str) -> Response[str]:
        return _json(HTTPStatus.ACCEPTED, self._run(lambda service: service.resume(saga)))

    def _fork(self, saga: str) -> Response[str]:
        body, key = read_body(ForkBody, self._text()), self._key()
        return _json(
            HTTPStatus.ACCEPTED,
            self._run(lambda service: service.fork(saga, body.version, body.reason, key)),
        )

    def _no_route(self, error: NotFoundError) -> Response[str]:
        """404, or 405 with what is allowed where only the method is wrong."""
        method, path = self._app.current_event.http_method, self._app.current_event.path
        allowed = [known for known, pattern in self._routes if _matches(pattern, path)]
        if allowed and method not in allowed:
            detail = f"{method} is not allowed here; {', '.join(allowed)} is"
            refusal = problems.of_status(HTTPStatus.METHOD_NOT_ALLOWED, "method-not-allowed", detail)
            refusal.headers["Allow"] = ", ".join(allowed)
            return refusal
        hint = nearest(path[:200], [pattern for _, pattern in self._routes])
        detail = f"there is no route `{path[:200]}`. {hint}".strip()
        return problems.of_status(HTTPStatus.NOT_FOUND, "no-route", detail)


def _matches(pattern: str, path: str) -> bool:
    return re.fullmatch(re.sub("<[a-z]+>", "[^/]+", pattern), path) is not None


def _cut(page: dict[str, Any]) -> dict[str, Any]:
    """As many of a page's entries, at least one, as an answer has room for; `next` continues it."""
    size = 0
    entries: list[Any] = page["entries"]
    for index, entry in enumerate(entries):
        size += len(json.dumps(entry, ensure_ascii=False).encode())
        if index and size > MAX_PAGE_BYTES:
            return {"entries": entries[:index], "next": entries[index - 1]["version"]}
    return page


def _json(status: HTTPStatus, body: Any, headers: dict[str, str | list[str]] | None = None) -> Response[str]:
    return Response(
        status_code=status.value,
        content_type="application/json",
        body=json.dumps(body, ensure_ascii=False),
        headers=headers,
    )


def _engine_fault(error: EngineFault) -> Response[str]:
    logger.error("engine fault", extra={"fault": repr(error)})
    if isinstance(error, UnknownEntry | CorruptLog):
        detail = f"this saga's log cannot be read by the version that runs here: {error}"
        return problems.of_status(HTTPStatus.INTERNAL_SERVER_ERROR, "unreadable-log", detail)
    return problems.of_status(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "unavailable",
        "the store did not answer in time; try again with the same key",
    )


def _defect(error: Exception) -> Response[str]:
    logger.error("engine defect", exc_info=error)
    return problems.of_status(
        HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "a defect in Baton; it has been logged"
    )
