"""The HTTP API as the template declares it: routes, authorizers, limits. Values only.

Reads native resources (Api, Route, Integration, Authorizer) and the OpenAPI body that SAM makes of an
AWS::Serverless::HttpApi; both become the same routes. Serving them is in gateway.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from baton.local.problems import TemplateProblem, nearest
from baton.local.resolve import Resolver, text
from baton.local.stack import Stack

_FUNCTION_IN_URI = re.compile(r"functions/(arn:[^/]+)/invocations$")
_HEADER = re.compile(r"\$request\.header\.([\w-]+)", re.IGNORECASE)
_DEFAULT_TIMEOUT_S = 30.0


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
    """`rate` (per second) and `burst` are those of the stage, 0 for none."""

    logical_id: str
    routes: tuple[Route, ...]
    rate: float = 0.0
    burst: int = 0


@dataclass
class _Reader:
    stack: Stack
    resolver: Resolver
    api: str
    integrations: dict[str, tuple[str, float]] = field(default_factory=dict)
    authorizers: dict[str, Authorizer] = field(default_factory=dict)

    def of_api(self, kind: str) -> list[tuple[str, dict[str, Any]]]:
        found = []
        for logical_id in self.stack.present(kind):
            properties = self.resolver.properties(logical_id)
            if properties.get("ApiId") == self.resolver.ref(self.api, logical_id):
                found.append((logical_id, properties))
        return found

    def reference(self, logical_id: str) -> str:
        return text(self.resolver.ref(logical_id, logical_id))

    # ---- native resources

    def native(self) -> list[Route]:
        for logical_id, properties in self.of_api("AWS::ApiGatewayV2::Integration"):
            self.integrations[self.reference(logical_id)] = self.integration(
                logical_id,
                properties.get("IntegrationType"),
                text(properties.get("IntegrationUri", "")),
                properties.get("PayloadFormatVersion"),
                properties.get("TimeoutInMillis"),
            )
        for logical_id, properties in self.of_api("AWS::ApiGatewayV2::Authorizer"):
            if properties.get("AuthorizerType") != "JWT":
                raise TemplateProblem(logical_id, "only JWT authorizers are run locally")
            source = properties.get("IdentitySource") or [""]
            self.authorizers[self.reference(logical_id)] = authorizer(
                logical_id, properties.get("JwtConfiguration") or {}, source[0]
            )
        return [self.route(i, properties) for i, properties in self.of_api("AWS::ApiGatewayV2::Route")]

    def route(self, logical_id: str, properties: Mapping[str, Any]) -> Route:
        target = text(properties.get("Target", "")).removeprefix("integrations/")
        if target not in self.integrations:
            raise TemplateProblem(
                logical_id, f"Target: there is no integration {target}{nearest(target, self.integrations)}"
            )
        kind = properties.get("AuthorizationType", "NONE")
        if kind not in {"NONE", "JWT"}:
            raise TemplateProblem(
                logical_id,
                f"AuthorizationType {kind} is not run locally; choose JWT by the template's parameters",
            )
        function, timeout_s = self.integrations[target]
        return Route(
            key=text(properties["RouteKey"]),
            function=function,
            timeout_s=timeout_s,
            authorizer=self.authorizers[properties["AuthorizerId"]] if kind == "JWT" else None,
            scopes=tuple(properties.get("AuthorizationScopes", ())),
        )

    def integration(
        self, where: str, kind: Any, uri: str, payload: Any, timeout_ms: Any
    ) -> tuple[str, float]:
        if text(kind).upper() != "AWS_PROXY":
            raise TemplateProblem(where, f"integration type {kind}: only AWS_PROXY is run locally")
        if text(payload) != "2.0":
            raise TemplateProblem(where, f"payload format {payload}: only 2.0 is run locally")
        match = _FUNCTION_IN_URI.search(uri)
        function = self.stack.function_of(match[1] if match else uri, where)
        return function, float(timeout_ms) / 1000 if timeout_ms else _DEFAULT_TIMEOUT_S

    # ---- the OpenAPI body

    def openapi(self, body: Mapping[str, Any]) -> list[Route]:
        schemes = (body.get("components") or {}).get("securitySchemes") or {}
        for name, scheme in schemes.items():
            settings = scheme.get("x-amazon-apigateway-authorizer")
            if settings and settings.get("type") == "jwt":
                configuration = settings.get("jwtConfiguration") or {}
                self.authorizers[name] = authorizer(self.api, configuration, settings["identitySource"])
        routes = []
        for path, methods in (body.get("paths") or {}).items():
            for method, operation in methods.items():
                if method.startswith("x-amazon-apigateway-any"):
                    method = "any"
                key = "$default" if path == "$default" else f"{method.upper()} {path}"
                routes.append(self.operation(key, operation))
        return routes

    def operation(self, key: str, operation: Mapping[str, Any]) -> Route:
        where = f"{self.api} {key}"
        settings = operation.get("x-amazon-apigateway-integration") or {}
        function, timeout_s = self.integration(
            where,
            settings.get("type"),
            text(settings.get("uri", "")),
            settings.get("payloadFormatVersion"),
            settings.get("timeoutInMillis"),
        )
        chosen, scopes = None, ()
        for requirement in operation.get("security") or []:
            ((name, wanted),) = requirement.items()
            if name == "NONE":
                continue
            if name not in self.authorizers:
                raise TemplateProblem(where, f"the authorizer {name} is not run locally (only JWT is)")
            chosen, scopes = self.authorizers[name], tuple(wanted)
        return Route(key, function, timeout_s, chosen, scopes)


def authorizer(where: str, configuration: Mapping[str, Any], source: str) -> Authorizer:
    """From either spelling of the configuration. Raises `TemplateProblem` for an identity source but a header."""
    lower = {key.lower(): value for key, value in configuration.items()}
    header = _HEADER.fullmatch(source)
    if header is None:
        raise TemplateProblem(where, f"IdentitySource {source!r}: only $request.header.NAME is run locally")
    audience = lower.get("audience") or []
    # A list parameter inside a list, as `audience: [!Ref List]` gives, means its items.
    flat = [item for entry in audience for item in (entry if isinstance(entry, list) else [entry])]
    return Authorizer(text(lower["issuer"]), tuple(map(text, flat)), header[1].lower())


def read_http_api(stack: Stack, resolver: Resolver) -> HttpApi | None:
    """The template's HTTP API, if it has one. Raises `TemplateProblem`; more than one is not run locally."""
    apis = stack.present("AWS::ApiGatewayV2::Api")
    if len(apis) > 1:
        raise TemplateProblem(apis[1], f"one HTTP API can be run locally, and {apis[0]} is one already")
    if not apis:
        return None
    reader = _Reader(stack, resolver, apis[0])
    body = resolver.properties(apis[0]).get("Body")
    routes = [*reader.native(), *(reader.openapi(body) if body else [])]
    limits: Mapping[str, Any] = {}
    for logical_id, properties in reader.of_api("AWS::ApiGatewayV2::Stage"):
        if properties.get("StageName") != "$default":
            raise TemplateProblem(logical_id, "only the stage $default is run locally")
        limits = properties.get("DefaultRouteSettings") or {}
    return HttpApi(
        logical_id=apis[0],
        routes=tuple(routes),
        rate=float(limits.get("ThrottlingRateLimit", 0)),
        burst=int(limits.get("ThrottlingBurstLimit", 0)),
    )
