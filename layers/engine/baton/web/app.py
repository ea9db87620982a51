"""Dispatch: from an event to a route of the table, through identity, roles, rate limit and checks, to an answer.

The table is routes.py; what a route does is in reads.py and commands.py.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from functools import cached_property
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.event_handler.api_gateway import Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError

from baton.core.toolspec import hinted, nearest
from baton.errors import CorruptLog, EngineFault, UnknownEntry, UserError
from baton.ports import Rates
from baton.runtime.parts import Engine
from baton.runtime.queries import Queries
from baton.runtime.rates import RateLimiter
from baton.runtime.request import Caller
from baton.runtime.service import Service
from baton.settings import ApiSettings
from baton.web import problems, replies
from baton.web.ask import Ask
from baton.web.identity import identity_of
from baton.web.parameters import read_path, read_query
from baton.web.replies import Reply
from baton.web.requests import idempotency_key, read_body, text_of
from baton.web.routes import ROUTES, Route

logger = logging.getLogger("baton.api")

ANSWER_RESERVE_MS = 500
_NOBODY = Caller(tenant="-", user="-", request="open")


class Api:
    """The HTTP API over an engine. `handle` takes a payload 2.0 event and a Lambda context."""

    def __init__(self, engine: Engine, config: ApiSettings, rates: Rates) -> None:
        self._engine = engine
        self._config = config
        self._limiter = RateLimiter(rates, engine.clock, engine.offload, config.tenant_rate_limit)
        self._loop = asyncio.Runner()
        self._app = APIGatewayHttpResolver()
        for route in ROUTES:
            rule = route.path.replace("{", "<").replace("}", ">")
            self._app.route(rule, method=route.method)(self._serving(route))
        self._app.exception_handler(UserError)(problems.of_user_error)
        self._app.exception_handler(EngineFault)(_engine_fault)
        self._app.exception_handler(Exception)(_defect)
        self._app.not_found(_no_route(self._app))

    def handle(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        return self._app.resolve(event, context)

    def _serving(self, route: Route[Any]) -> Callable[..., Response[str]]:
        def serve(**path: str) -> Response[str]:
            reply = self._loop.run(self._answer(route, path))
            if route.method != "GET":
                return replies.written(reply)
            return replies.read(reply, self._headers().get("if-none-match", ""))

        return serve

    async def _answer(self, route: Route[Any], path: dict[str, str]) -> Reply:
        caller = await self._admitted(route) if route.roles else _NOBODY
        return await route.handler(self._ask(route, path, caller))

    async def _admitted(self, route: Route[Any]) -> Caller:
        """The caller, if it may call this now. Roles first: whoever is refused spends nothing."""
        identity = identity_of(self._app.current_event.raw_event, self._config)
        identity.need(route.roles)
        await self._limiter.admit(identity.caller.tenant)
        return identity.caller

    def _ask(self, route: Route[Any], path: dict[str, str], caller: Caller) -> Ask[Any]:
        event, headers = self._app.current_event, self._headers()
        query = read_query(route.query, event.query_string_parameters or {})
        has_body = route.takes_text or route.body is not None
        text = (
            text_of(event.body or "", bool(event.is_base64_encoded), self._config.max_body_bytes)
            if has_body
            else ""
        )
        deadline = self._engine.clock.now() + self._app.lambda_context.get_remaining_time_in_millis()
        deadline -= ANSWER_RESERVE_MS
        return Ask(
            service=Service(self._engine, caller, deadline),
            queries=Queries(self._engine, caller, deadline),
            path=read_path(route.parameters, path),
            query=query,
            body=read_body(route.body, text) if route.body is not None else None,
            text=text,
            is_json="json" in headers.get("content-type", "").lower(),
            key=idempotency_key(headers) if route.has_key else "",
            describe=lambda: self._description,
        )

    @cached_property
    def _description(self) -> dict[str, Any]:
        from baton.web.openapi import describe  # its models would slow down every cold start

        return describe(self._config)

    def _headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self._app.current_event.headers.items()}


def _no_route(app: APIGatewayHttpResolver) -> Callable[[NotFoundError], Response[str]]:
    """404, or 405 with what is allowed where only the method is wrong."""

    def refuse(_: NotFoundError) -> Response[str]:
        method, path = app.current_event.http_method, app.current_event.path
        allowed = [route.method for route in ROUTES if matches(route.path, path)]
        if allowed and method not in allowed:
            detail = (
                f"{method} is not allowed here; {', '.join(allowed)} {'is' if len(allowed) == 1 else 'are'}"
            )
            refusal = problems.of_status(HTTPStatus.METHOD_NOT_ALLOWED, "method-not-allowed", detail)
            refusal.headers["Allow"] = ", ".join(allowed)
            return refusal
        hint = nearest(path[:200], list(dict.fromkeys(route.path for route in ROUTES)))
        detail = hinted(f"there is no route `{path[:200]}`", hint)
        return problems.of_status(HTTPStatus.NOT_FOUND, "no-route", detail)

    return refuse


def matches(pattern: str, path: str) -> bool:
    """Whether a path is one of a route's."""
    return re.fullmatch(re.sub("{[a-z]+}", "[^/]+", pattern), path) is not None


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
