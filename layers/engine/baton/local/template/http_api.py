"""The HTTP API as the template declares it: routes, authorizers, limits. Values only.

Reads native resources (Api, Route, Integration, Authorizer, Stage), as the template has them, and refuses an
OpenAPI body, of which SAM makes an AWS::Serverless::HttpApi. Serving the routes is in http/gateway.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from baton.local.processes.problems import TemplateProblem, nearest
from baton.local.template.resolve import Resolver, text
from baton.local.template.stack import Stack

_HEADER = re.compile(r"\$request\.header\.([\w-]+)", re.IGNORECASE)
_DEFAULT_TIMEOUT_MS = 30_000


@dataclass(frozen=True)
class Authorizer:
    """Who issues the tokens, for whom, and the header (lower case) they come in."""

    issuer: str
    audiences: tuple[str, ...]
    header: str


@dataclass(frozen=True)
class Route:
    """`method` may be ANY; `path` is a pattern with {name} and {name+}; the default route has neither."""

    key: str
    function: str
    timeout_s: float
    authorizer: Authorizer | None
    scopes: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        return self.key.split(" ", 1)[0] if " " in self.key else "ANY"

    @property
    def path(self) -> str:
        return self.key.split(" ", 1)[1] if " " in self.key else ""


@dataclass(frozen=True)
class HttpApi:
    """`rate` (per second) and `burst` are those of the stage, 0 for none; `throttles`: those of routes that have their own."""

    logical_id: str
    routes: tuple[Route, ...]
    rate: float = 0.0
    burst: int = 0
    throttles: Mapping[str, tuple[float, int]] = field(default_factory=dict)


def read_http_api(stack: Stack, resolver: Resolver) -> HttpApi | None:
    """The template's HTTP API, if it has one. Raises `TemplateProblem`; more than one is not run locally."""
    apis = stack.present("AWS::ApiGatewayV2::Api")
    if len(apis) > 1:
        raise TemplateProblem(apis[1], f"one HTTP API can be run locally, and {apis[0]} is one already")
    if not apis:
        return None
    api = apis[0]
    if "Body" in resolver.properties(api):
        raise TemplateProblem(
            api, "an OpenAPI body (SAM: HttpApi) is not run locally; use AWS::ApiGatewayV2::Api and ::Route"
        )

    def parts(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for logical_id in stack.present(f"AWS::ApiGatewayV2::{kind}"):
            properties = resolver.properties(logical_id)
            if properties.get("ApiId") == resolver.ref(api, logical_id):
                yield logical_id, properties

    integrations = {
        text(resolver.ref(part, part)): _integration(stack, part, properties)
        for part, properties in parts("Integration")
    }
    authorizers = {
        text(resolver.ref(part, part)): _authorizer(part, properties)
        for part, properties in parts("Authorizer")
    }
    routes = [_route(part, properties, integrations, authorizers) for part, properties in parts("Route")]
    limits: Mapping[str, Any] = {}
    own: Mapping[str, Any] = {}
    for part, properties in parts("Stage"):
        if properties.get("StageName") != "$default":
            raise TemplateProblem(part, "only the stage $default is run locally")
        limits, own = (properties.get(name) or {} for name in ("DefaultRouteSettings", "RouteSettings"))
        if unknown := own.keys() - {route.key for route in routes}:
            raise TemplateProblem(part, f"RouteSettings: there is no route {min(unknown)}")
    rate, burst = _throttle(limits)
    return HttpApi(
        logical_id=api,
        routes=tuple(routes),
        rate=rate,
        burst=burst,
        throttles={key: _throttle(settings) for key, settings in own.items()},
    )


def _throttle(settings: Mapping[str, Any]) -> tuple[float, int]:
    return float(settings.get("ThrottlingRateLimit", 0)), int(settings.get("ThrottlingBurstLimit", 0))


def _integration(stack: Stack, where: str, properties: Mapping[str, Any]) -> tuple[str, float]:
    """The function, and the seconds that it may take."""
    kind, payload = properties.get("IntegrationType"), properties.get("PayloadFormatVersion")
    if text(kind) != "AWS_PROXY":
        raise TemplateProblem(where, f"integration type {kind}: only AWS_PROXY is run locally")
    if text(payload) != "2.0":
        raise TemplateProblem(where, f"payload format {payload}: only 2.0 is run locally")
    function = stack.function_of(text(properties.get("IntegrationUri", "")), where)
    return function, float(properties.get("TimeoutInMillis", _DEFAULT_TIMEOUT_MS)) / 1000


def _authorizer(where: str, properties: Mapping[str, Any]) -> Authorizer:
    if properties.get("AuthorizerType") != "JWT":
        raise TemplateProblem(where, "only JWT authorizers are run locally")
    source = (properties.get("IdentitySource") or [""])[0]
    header = _HEADER.fullmatch(source)
    if header is None:
        raise TemplateProblem(where, f"IdentitySource {source!r}: only $request.header.NAME is run locally")
    tokens = properties.get("JwtConfiguration") or {}
    return Authorizer(
        text(tokens.get("Issuer", "")), tuple(map(text, tokens.get("Audience", ()))), header[1].lower()
    )


def _route(
    where: str,
    properties: Mapping[str, Any],
    integrations: Mapping[str, tuple[str, float]],
    authorizers: Mapping[str, Authorizer],
) -> Route:
    target = text(properties.get("Target", "")).removeprefix("integrations/")
    if target not in integrations:
        raise TemplateProblem(
            where, f"Target: there is no integration {target}{nearest(target, integrations)}"
        )
    kind = properties.get("AuthorizationType", "NONE")
    if kind not in {"NONE", "JWT"}:
        raise TemplateProblem(
            where, f"AuthorizationType {kind} is not run locally; choose JWT by the template's parameters"
        )
    function, timeout_s = integrations[target]
    return Route(
        key=text(properties["RouteKey"]),
        function=function,
        timeout_s=timeout_s,
        authorizer=authorizers[properties["AuthorizerId"]] if kind == "JWT" else None,
        scopes=tuple(properties.get("AuthorizationScopes", ())),
    )
