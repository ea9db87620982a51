"""Dispatch of an event to a route: identity, roles, rate limit and checks, then the handler's answer.

The table is routes.py; the handlers are in handlers.py.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.event_handler.api_gateway import Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError

from baton.core.expressions import nearest, with_hint
from baton.errors import EngineFault, Unauthenticated, Unreadable, UserError
from baton.ports import Rates
from baton.ports.outside import Credentials, HttpClient
from baton.runtime.engine.parts import Engine
from baton.runtime.engine.request import Caller, Request
from baton.runtime.requests.queries import Queries
from baton.runtime.requests.rates import RateLimiter
from baton.runtime.requests.service import Service
from baton.settings import ApiSettings
from baton.web import replies
from baton.web.bodies.requests import body_text, idempotency_key, read_body
from baton.web.identity import Identity, UnsignedRequestLimiter, identity_of, traceparent_of
from baton.web.parameters import BY_TOKEN, CALLBACKS, Route, read_path, read_query
from baton.web.replies import Ask, Reply, RouteCalls
from baton.web.routes import ROUTES

if TYPE_CHECKING:
    from baton.console.site import Site

logger = logging.getLogger("baton.api")

ANSWER_RESERVE_MS = 500
CONSOLE = "/console"
_ANONYMOUS = Caller(tenant="-", user="-", request="open")


class Api:
    """The HTTP API over an engine. `handle` takes a payload 2.0 event and a Lambda context."""

    def __init__(
        self, engine: Engine, config: ApiSettings, rates: Rates, http: HttpClient, secrets: Credentials
    ) -> None:
        """Create the API. The console asks its issuer by `http` and `secrets` who a visitor is."""
        self._engine = engine
        self._config = config
        self._http, self._secrets = http, secrets
        limit, each = config.tenant_rate_limit, config.tenant_rate_bytes
        self._limiter = RateLimiter(rates, engine.clock, engine.offload, limit, each)
        self._limiters = {
            what: RateLimiter(rates, engine.clock, engine.offload, limit, each, what) for what in BY_TOKEN
        }
        self._unsigned_limiter = UnsignedRequestLimiter(engine.clock)
        self._loop = asyncio.Runner()
        self._app = APIGatewayHttpResolver()
        for route in ROUTES:
            rule = route.path.replace("{", "<").replace("}", ">")
            self._app.route(rule, method=route.method)(self._serving(route))
        self._app.exception_handler(UserError)(replies.of_user_error)
        self._app.exception_handler(EngineFault)(_engine_fault)
        self._app.exception_handler(Exception)(_defect)
        self._app.not_found(self._no_route)

    def handle(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        if "detail-type" in event:  # no request, but an event of a bus
            from baton.web.bodies.events import take_in  # few deployments have any

            until = self._until(context.get_remaining_time_in_millis())
            tenant, request = self._config.event_tenant, str(context.aws_request_id)
            return {"outcomes": self._loop.run(take_in(self._engine, tenant, event, request, until))}
        path = str(event.get("rawPath", ""))
        if path == CONSOLE or path.startswith(f"{CONSOLE}/"):
            self._left_ms = context.get_remaining_time_in_millis
            return self._loop.run(self._site.handle(event))
        return self._app.resolve(event, context)

    @cached_property
    def _site(self) -> Site:
        # Its templates are for those who look at pages: see tests/architecture/test_cold_start.py.
        from baton.console.signing import Issuer, Signing
        from baton.console.site import Site
        from baton.web.within import Admission

        engine, config = self._engine, self._config
        issuer = None
        if config.console_issuer:
            issuer = Issuer(
                config.console_issuer, config.console_client, self._http, self._secrets, engine.clock
            )
        kept = ("sub", config.tenant_claim, config.roles_claim, config.groups_claim)
        signing = Signing(issuer, kept, engine.clock, engine.entropy)
        admission = Admission(engine, config, self._limiter, lambda: self._until(self._left_ms()))
        return Site(signing, admission, engine.clock, engine.entropy)

    def _serving(self, route: Route[Any]) -> Callable[..., Response[str]]:
        def serve(**path: str) -> Response[str]:
            caller, reply = self._loop.run(self._answer(route, path))
            if route.method != "GET":
                response = replies.write_reply(reply)
            else:
                response = replies.read_reply(reply, self._headers().get("if-none-match", ""))
            self._limiter.answered(caller.tenant, len(response.body or ""))
            return response

        return serve

    async def _answer(self, route: Route[Any], path: dict[str, str]) -> tuple[Caller, Reply]:
        caller, identity = _ANONYMOUS, None
        if route.roles:
            identity = await self._admitted()
            identity.need(route.roles)
            caller = identity.caller
        elif route.by_token:
            caller = await self._holder(route, path)
        elif route.is_signed:
            return caller, Reply(HTTPStatus.ACCEPTED, await self._announced(route, path))
        answer = await route.handler(self._ask(route, path, caller, identity))
        return caller, answer if isinstance(answer, Reply) else Reply(HTTPStatus(min(route.answers)), answer)

    async def _admitted(self) -> Identity:
        """Return the caller, if the rate of its tenant allows the request. Refused requests count, too."""
        event = self._app.current_event
        identity = identity_of(event.raw_event, self._config)
        await self._limiter.admit(identity.caller.tenant, len(event.body or ""))
        return identity

    async def _holder(self, route: Route[Any], path: dict[str, str]) -> Caller:
        """Return the caller that the token stands for. It is checked before the rest of the body."""
        # Few deployments have any.
        if route.by_token == CALLBACKS:
            from baton.runtime.requests.callbacks import caller_with
        else:
            from baton.runtime.requests.answers import caller_with

        event = self._app.current_event
        context = event.raw_event.get("requestContext") or {}
        asking = replace(
            _ANONYMOUS, request=str(context.get("requestId", "")), traceparent=traceparent_of(event.raw_event)
        )
        assert route.body is not None, "what has a token says something, too"
        token = path.get("token") or read_body(route.body, self._text()).token
        caller = await caller_with(Request(self._engine, asking, self._deadline()), token)
        await self._limiters[route.by_token].admit(caller.tenant, len(event.body or ""))
        return replace(caller, request=asking.request)

    async def _announced(self, route: Route[Any], path: dict[str, str]) -> object:
        """Answer a request that must be signed. After many refusals, an address is not read any more."""
        http = (self._app.current_event.raw_event.get("requestContext") or {}).get("http") or {}
        address = str(http.get("sourceIp", ""))
        self._unsigned_limiter.check(address)
        try:
            return await route.handler(self._ask(route, path, _ANONYMOUS))
        except Unauthenticated:
            self._unsigned_limiter.refused(address)
            raise

    def _no_route(self, _: NotFoundError) -> Response[str]:
        """Return 404, or 405 with `Allow` if another method serves the path. The request counts."""
        try:
            self._loop.run(self._admitted())
        except Unauthenticated:
            pass  # no caller
        except UserError as error:
            return replies.of_user_error(error)
        return _unserved(self._app.current_event.http_method, self._app.current_event.path)

    def _calls(self, identity: Identity | None, deadline: int) -> RouteCalls:
        """Return the calls of other routes by this caller."""
        from baton.web.within import Within  # few requests make any

        assert identity is not None, "only routes with roles call others"
        return Within(self._engine, self._config, identity, deadline)

    def _ask(
        self, route: Route[Any], path: dict[str, str], caller: Caller, identity: Identity | None = None
    ) -> Ask[Any]:
        event, headers = self._app.current_event, self._headers()
        has_body = route.takes_text or route.body is not None
        text = self._text(route.most_bytes) if has_body else ""
        deadline = self._deadline()
        return Ask(
            service=Service(self._engine, caller, deadline),
            reader=lambda: Queries(self._engine, caller, deadline),
            path=read_path(route.parameters, path),
            query=read_query(route.query, event.query_string_parameters or {}),
            body=read_body(route.body, text) if route.body is not None else None,
            text=text,
            headers=headers,
            is_json="json" in headers.get("content-type", "").lower(),
            key=idempotency_key(headers) if route.has_key else "",
            intentions=self._config.intention_workflow,
            describe=lambda: self._description,
            calls=lambda: self._calls(identity, deadline),
        )

    def _text(self, most: int = 0) -> str:
        event, allowed = self._app.current_event, self._config.max_body_bytes
        return body_text(
            event.body or "", bool(event.is_base64_encoded), min(most, allowed) if most else allowed
        )

    def _deadline(self) -> int:
        return self._until(self._app.lambda_context.get_remaining_time_in_millis())

    def _until(self, left: int) -> int:
        return self._engine.clock.now() + left - ANSWER_RESERVE_MS

    @cached_property
    def _description(self) -> dict[str, Any]:
        from baton.web.openapi import describe  # its models would slow down every cold start

        return describe(self._config)

    def _headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self._app.current_event.headers.items()}


def _unserved(method: str, path: str) -> Response[str]:
    # A word in a path comes before a parameter: `/dead-letters/redrive` is that route, not a letter of this name.
    by_word = [route for route in ROUTES if route.path == path]
    allowed = [route.method for route in by_word or (one for one in ROUTES if matches(one.path, path))]
    if allowed and method == "OPTIONS":  # a browser asks first; API Gateway adds the origins that may go on
        return Response(HTTPStatus.NO_CONTENT, headers={"Allow": ", ".join(allowed)}, body="")
    if allowed and method not in allowed:
        detail = f"{method} is not allowed here; {', '.join(allowed)} {'is' if len(allowed) == 1 else 'are'}"
        refusal = replies.of_status(HTTPStatus.METHOD_NOT_ALLOWED, "method-not-allowed", detail)
        refusal.headers["Allow"] = ", ".join(allowed)
        return refusal
    hint = nearest(path[:200], list(dict.fromkeys(route.path for route in ROUTES)))
    detail = with_hint(f"there is no route `{path[:200]}`", hint)
    return replies.of_status(HTTPStatus.NOT_FOUND, "no-route", detail)


def matches(pattern: str, path: str) -> bool:
    """Return true if the path matches the pattern of a route."""
    return re.fullmatch(re.sub("{[a-z]+}", "[^/]+", pattern), path) is not None


def _engine_fault(error: EngineFault) -> Response[str]:
    logger.error("engine fault", extra={"fault": repr(error)})
    if isinstance(error, Unreadable):
        return replies.of_status(HTTPStatus.INTERNAL_SERVER_ERROR, "unreadable-log", error.detail)
    return replies.of_status(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "unavailable",
        "the store did not answer in time; try again with the same key",
    )


def _defect(error: Exception) -> Response[str]:
    logger.error("engine defect", exc_info=error)
    return replies.of_status(
        HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "a defect in Baton; it has been logged"
    )
