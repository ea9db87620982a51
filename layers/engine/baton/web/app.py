"""The routes. Each reads its request, calls one use case, and answers JSON."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, TypeVar

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.event_handler.api_gateway import Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError

from baton.errors import EngineFault, UserError
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
T = TypeVar("T")


class Api:
    """The HTTP API over an engine. `handle` takes a payload 2.0 event and a Lambda context."""

    def __init__(self, engine: Engine, config: ApiSettings) -> None:
        self._engine = engine
        self._config = config
        self._loop = asyncio.Runner()
        self._app = APIGatewayHttpResolver()
        self._add_routes()

    def handle(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        return self._app.resolve(event, context)

    def _add_routes(self) -> None:
        app = self._app
        app.get("/health")(self._health)
        app.post("/workflows")(self._register)
        app.post("/sagas")(self._start)
        app.get("/sagas/<saga>")(self._show)
        app.get("/sagas/<saga>/events")(self._events)
        app.post("/sagas/<saga>/cancel")(self._cancel)
        app.post("/sagas/<saga>/signals/<name>")(self._signal)
        app.post("/sagas/<saga>/resume")(self._resume)
        app.post("/sagas/<saga>/forks")(self._fork)
        app.exception_handler(UserError)(problems.of_user_error)
        app.exception_handler(EngineFault)(_engine_fault)
        app.exception_handler(Exception)(_defect)
        app.not_found(_no_route)

    def _run(self, use: Callable[[Service], Awaitable[T]], caller: Caller | None = None) -> T:
        deadline = self._engine.clock.now() + self._app.lambda_context.get_remaining_time_in_millis()
        who = caller or caller_of(self._app.current_event.raw_event, self._config.tenant_claim)
        service = Service(self._engine, who, deadline - ANSWER_RESERVE_MS)

        async def answer() -> T:
            return await use(service)

        return self._loop.run(answer())

    def _text(self) -> str:
        event = self._app.current_event
        return text_of((event.decoded_body or "").encode(), self._config.max_body_bytes)

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
        return _json(HTTPStatus.OK, self._run(lambda service: service.events(saga, after, limit)))

    def _cancel(self, saga: str) -> Response[str]:
        body = read_body(CancelBody, self._text())
        return _json(
            HTTPStatus.ACCEPTED, self._run(lambda service: service.cancel(saga, body.reason, body.grace_ms))
        )

    def _signal(self, saga: str, name: str) -> Response[str]:
        body, key = read_body(SignalBody, self._text()), self._key()
        return _json(
            HTTPStatus.ACCEPTED, self._run(lambda service: service.signal(saga, name, body.payload, key))
        )

    def _resume(self, saga: str) -> Response[str]:
        return _json(HTTPStatus.ACCEPTED, self._run(lambda service: service.resume(saga)))

    def _fork(self, saga: str) -> Response[str]:
        body = read_body(ForkBody, self._text())
        return _json(
            HTTPStatus.ACCEPTED, self._run(lambda service: service.fork(saga, body.version, body.reason))
        )


def _json(status: HTTPStatus, body: Any, headers: dict[str, str | list[str]] | None = None) -> Response[str]:
    return Response(
        status_code=status.value,
        content_type="application/json",
        body=json.dumps(body, ensure_ascii=False),
        headers=headers,
    )


def _engine_fault(error: EngineFault) -> Response[str]:
    logger.error("engine fault", extra={"fault": repr(error)})
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


def _no_route(error: NotFoundError) -> Response[str]:
    return problems.of_status(
        HTTPStatus.NOT_FOUND, "no-route", "there is no such route; see the README's list of routes"
    )
