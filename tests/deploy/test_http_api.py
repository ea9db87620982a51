"""The HTTP API: no request gets in without an identity, but for the health check and the API's description."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from baton.local.processes import TemplateProblem
from baton.local.template import check_rules
from baton.web.routes import ROUTES
from tests.deploy.stack import Stack, stack

JWT = {"AuthMode": "jwt", "JwtIssuer": "https://issuer.example/", "JwtAudience": "baton,console"}


_OPEN = {
    "GET /health",
    "GET /openapi.json",
    "POST /callbacks/{token}",
    "POST /confirm",
    "POST /models/{profile}/webhook",
}
# Pages: the function itself asks who has signed in.
_PAGES = {"GET /console", "GET /console/{page+}", "POST /console/{page+}"}


def routes(of: Stack) -> dict[str, dict[str, Any]]:
    return {route["RouteKey"]: route for route in of.of_type("AWS::ApiGatewayV2::Route").values()}


def test_only_the_routes_without_roles_are_open() -> None:
    without_roles = {f"{route.method} {route.path}" for route in ROUTES if not route.roles}
    for mode in (JWT, {"AuthMode": "iam"}):
        found = routes(stack(**mode))
        assert set(found) == {*_OPEN, *_PAGES, "$default"}
        opened = {key for key, route in found.items() if route["AuthorizationType"] == "NONE"}
        assert opened - _PAGES == without_roles == _OPEN
        assert opened >= _PAGES


def test_no_page_of_another_origin_may_call_it_by_default() -> None:
    (api,) = stack(**JWT).of_type("AWS::ApiGatewayV2::Api").values()
    assert "CorsConfiguration" not in api


def test_pages_of_the_origins_that_are_named_may_call_it_without_cookies() -> None:
    of = stack(**JWT, CorsOrigins="https://chat.example.com,http://127.0.0.1:8080")
    (api,) = of.of_type("AWS::ApiGatewayV2::Api").values()
    assert api["CorsConfiguration"]["AllowOrigins"] == ["https://chat.example.com", "http://127.0.0.1:8080"]
    assert api["CorsConfiguration"]["AllowCredentials"] in (False, "false")
    found = routes(of)
    assert found["OPTIONS /{path+}"]["AuthorizationType"] == "NONE", "a browser asks without a token"
    assert {*found} == {*_OPEN, *_PAGES, "$default", "OPTIONS /{path+}"}


@pytest.mark.parametrize("origins", ["*", "https://*", "chat.example.com", "https://chat.example.com/page"])
def test_origins_that_are_none_are_refused(origins: str) -> None:
    spec = stack(**JWT).template.parameters["CorsOrigins"]
    assert re.fullmatch(spec["AllowedPattern"].strip("^$"), origins) is None
    assert re.fullmatch(spec["AllowedPattern"].strip("^$"), "https://a.example, http://127.0.0.1:8080")


def test_a_console_with_an_issuer_but_without_its_client_is_refused() -> None:
    of = stack(**JWT, ConsoleIssuer="https://issuer.example")
    with pytest.raises(TemplateProblem, match="ConsoleClient"):
        check_rules(of.template, of.resolver)


def test_by_default_callers_show_a_token() -> None:
    of = stack(**JWT)
    (authorizer,) = of.of_type("AWS::ApiGatewayV2::Authorizer").values()
    assert authorizer["AuthorizerType"] == "JWT"
    assert authorizer["IdentitySource"] == ["$request.header.Authorization"]
    assert authorizer["JwtConfiguration"] == {
        "Issuer": "https://issuer.example/",
        "Audience": ["baton", "console"],
    }
    default = routes(of)["$default"]
    assert (default["AuthorizationType"], default["AuthorizerId"]) == ("JWT", "JwtAuthorizer")


def test_with_iam_callers_sign_and_there_is_no_authorizer() -> None:
    of = stack(AuthMode="iam")
    assert of.of_type("AWS::ApiGatewayV2::Authorizer") == {}
    default = routes(of)["$default"]
    assert default["AuthorizationType"] == "AWS_IAM"
    assert "AuthorizerId" not in default


@pytest.mark.parametrize("missing", ["JwtIssuer", "JwtAudience"])
def test_a_deployment_with_tokens_but_without_their_issuer_is_refused(missing: str) -> None:
    of = stack(**{name: value for name, value in JWT.items() if name != missing})
    with pytest.raises(TemplateProblem, match=missing):
        check_rules(of.template, of.resolver)


@pytest.mark.parametrize("parameters", [JWT, {"AuthMode": "iam"}], ids=["jwt", "iam"])
def test_a_complete_deployment_is_let_through(parameters: dict[str, str]) -> None:
    of = stack(**parameters)
    check_rules(of.template, of.resolver)


def test_requests_go_to_the_api_function_as_format_two() -> None:
    ((name, integration),) = stack().of_type("AWS::ApiGatewayV2::Integration").items()
    assert integration["IntegrationUri"] == stack().arn("ApiFunction")
    assert integration["PayloadFormatVersion"] == "2.0"
    assert {route["Target"] for route in routes(stack()).values()} == {f"integrations/{name}"}


def test_the_function_gives_up_before_the_gateway_does() -> None:
    (integration,) = stack().of_type("AWS::ApiGatewayV2::Integration").values()
    timeout_ms = int(stack().properties("ApiFunction")["Timeout"]) * 1000
    assert timeout_ms < integration["TimeoutInMillis"] <= 30_000  # 30 s: the HTTP API's own limit


def test_requests_are_throttled_by_parameter() -> None:
    (stage,) = stack(ApiRateLimit="5", ApiBurstLimit="9").of_type("AWS::ApiGatewayV2::Stage").values()
    limits = {name: str(value) for name, value in stage["DefaultRouteSettings"].items()}
    assert limits == {"ThrottlingRateLimit": "5", "ThrottlingBurstLimit": "9"}
    assert stage["AutoDeploy"] is True


def test_announcements_of_models_have_a_throttle_of_their_own() -> None:
    of = stack(ModelWebhookRateLimit="7")
    ((name, stage),) = of.of_type("AWS::ApiGatewayV2::Stage").items()
    route = "POST /models/{profile}/webhook"
    (settings,) = stage["RouteSettings"].values()
    assert {key: str(value) for key, value in settings.items()} == {
        "ThrottlingRateLimit": "7",
        "ThrottlingBurstLimit": "7",
    }
    assert set(stage["RouteSettings"]) == {route} <= set(routes(of))
    waits_for = of.template.resources[name]["DependsOn"]
    assert of.template.resources[waits_for]["Properties"]["RouteKey"] == route


def test_the_access_log_is_json_and_holds_nothing_secret() -> None:
    (stage,) = stack().of_type("AWS::ApiGatewayV2::Stage").values()
    fields = json.loads(stage["AccessLogSettings"]["Format"])
    assert {"$context.requestId", "$context.status", "$context.routeKey"} <= set(fields.values())
    assert not any(word in value.lower() for value in fields.values() for word in ("header", "query", "path"))
