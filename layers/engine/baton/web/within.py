"""Calls of the API's routes without HTTP, by the console and MCP clients: same table, roles and checks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import msgspec

from baton.runtime.engine.parts import Engine
from baton.runtime.requests.queries import Queries
from baton.runtime.requests.rates import RateLimiter
from baton.runtime.requests.service import Service
from baton.settings import ApiSettings
from baton.web.bodies.requests import read_body
from baton.web.identity import Identity, identity_of
from baton.web.parameters import Route, read_path, read_query
from baton.web.replies import Ask, Reply
from baton.web.routes import ROUTES

_BY_ID = {route.id: route for route in ROUTES}
_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Within:
    """The calls of one visit or request. `deadline` in epoch ms."""

    engine: Engine
    config: ApiSettings
    identity: Identity
    deadline: int

    @property
    def roles(self) -> frozenset[str]:
        return self.identity.roles

    @property
    def tenant(self) -> str:
        return self.identity.caller.tenant

    def row(self, route: str) -> Route[Any]:
        return _BY_ID[route]

    def now(self) -> int:
        return self.engine.clock.now()

    def need(self, any_of: Sequence[str]) -> None:
        self.identity.need(any_of)

    async def __call__(
        self,
        route: str,
        path: Mapping[str, str] = _NONE,
        query: Mapping[str, str] = _NONE,
        body: Mapping[str, Any] | None = None,
        key: str = "",
    ) -> Any:
        """Return the answer of the route. Raises as its handler does, and `Forbidden` as dispatch does."""
        row, caller = _BY_ID[route], self.identity.caller
        self.identity.need(row.roles)
        ask = Ask(
            service=Service(self.engine, caller, self.deadline),
            reader=lambda: Queries(self.engine, caller, self.deadline),
            path=read_path(row.parameters, path),
            query=read_query(row.query, query),
            body=read_body(row.body, json.dumps(body or {})) if row.body is not None else None,
            text="",
            headers=_NONE,
            is_json=True,
            key=key,
            intentions=self.config.intention_workflow,
            describe=dict,
            calls=lambda: self,
        )
        answer = await row.handler(ask)
        return msgspec.to_builtins(answer.body if isinstance(answer, Reply) else answer)


@dataclass(frozen=True, slots=True)
class Admission:
    """Admission of a signed-in person, with the rights of a token. A page counts as one request."""

    engine: Engine
    config: ApiSettings
    limiter: RateLimiter
    deadline: Callable[[], int]

    async def __call__(self, claims: Mapping[str, Any], event: Mapping[str, Any]) -> Within:
        context = event.get("requestContext") or {}
        shown = {
            "headers": {},
            "requestContext": {
                "authorizer": {"jwt": {"claims": claims}},
                "requestId": context.get("requestId", ""),
            },
        }
        identity = identity_of(shown, self.config)
        await self.limiter.admit(identity.caller.tenant, len(event.get("body") or ""))
        return Within(self.engine, self.config, identity, self.deadline())
