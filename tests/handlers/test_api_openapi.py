"""The OpenAPI document against the table of routes and against the answers to every payload in events/api.

That a fuzzer finds nothing either is for tests/e2e/test_openapi.py to show.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import jsonschema_rs
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from baton.core.decide.program import Program
from baton.core.graph.graph import Cap, Graph, Node
from baton.core.nodes.registry import KINDS
from baton.core.read.views import saga_view
from baton.core.version import VERSION
from baton.ports import QuestionRow
from baton.settings import ApiSettings
from baton.web.app import matches
from baton.web.openapi import describe
from baton.web.parameters import Route
from baton.web.routes import ROUTES
from tests.core.build import Saga
from tests.handlers.deployment import ROOT, Deployment, payload, request_names
from tests.handlers.http import Answer, Http
from tests.handlers.sagas import ADA, GRACE, PARTY, SILENT, asking, begin
from tests.kit.views import as_json

DINNER = (ROOT / "layers/app/sagas/dinner.yaml").read_text("utf-8")


@cache
def document() -> dict[str, Any]:
    return describe(ApiSettings(table="t", bucket="b", worker="w"))


def operation(route: Route[Any]) -> dict[str, Any]:
    found: dict[str, Any] = document()["paths"][route.path][route.method.lower()]
    return found


def validate(schema: dict[str, Any], value: Any) -> None:
    """Raises `jsonschema_rs.ValidationError`."""
    validator = jsonschema_rs.Draft202012Validator(
        {**schema, "components": document()["components"]}, validate_formats=True
    )
    validator.validate(value)


def check(route: Route[Any], answer: Answer) -> None:
    """The answer is one of those that the document names for the route."""
    described = operation(route)["responses"][str(answer.status)]
    for name, header in described.get("headers", {}).items():
        value = answer.headers.get(name.lower())
        assert value is not None or not header["required"]
        if value is not None and header["schema"].get("type") != "integer":
            validate(header["schema"], value)
    if "content" not in described:
        assert answer.body is None
        return
    validate(described["content"][answer.headers["content-type"]]["schema"], answer.body)


def test_it_describes_exactly_the_routes_that_are_served(http: Http) -> None:
    described = {f"{method.upper()} {path}" for path, item in document()["paths"].items() for method in item}
    assert described == {f"{route.method} {route.path}" for route in ROUTES}
    ids = [route.id for route in ROUTES]
    assert sorted(set(ids)) == sorted(ids)
    assert http.get("/openapi.json").body == json.loads(json.dumps(describe(http.module._api._config)))


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.id)
def test_a_row_of_the_table_is_whole(route: Route[Any]) -> None:
    assert re.findall(r"\{(\w+)\}", route.path) == [parameter.name for parameter in route.parameters]
    assert bool(operation(route)["security"]) == bool(route.roles)
    assert all(f"`{role}`" in operation(route)["description"] for role in route.roles)
    assert set(route.answers) <= {200, 201, 202}
    if route.method == "GET":
        assert (route.body, route.takes_text, route.has_key) == (None, False, False)


@pytest.fixture(scope="module")
def _evening(shared_http: Http, shared_deployment: Deployment) -> None:
    """The dinner is known, one saga waits and one asks."""
    begin(shared_http.engine, ADA, PARTY)
    asking(shared_http.engine, GRACE, SILENT)
    row = QuestionRow(
        saga=GRACE.id,
        workflow="silent",
        ask="0.say.3",
        type="error",
        kind="error_resolution",
        title="",
        message="What now?",
        to="user:ada",
    )
    shared_http.engine.store.questions.put(GRACE.tenant, row, 1, 0)
    shared_http.register(DINNER)
    shared_deployment.keep()


@pytest.mark.usefixtures("_evening")
@pytest.mark.parametrize("name", request_names())
def test_the_answer_to_a_payload_is_as_described(name: str, http: Http) -> None:
    if name == "start-same-key-other-body":
        http.send(payload("api", "start"))
    event = payload("api", name)
    method = event["requestContext"]["http"]["method"]
    routes = [route for route in ROUTES if route.method == method and matches(route.path, event["rawPath"])]
    for route in routes:
        check(route, http.send(event))
    assert len(routes) == (name != "unknown-route")


@pytest.mark.parametrize("name", ["\x84", "-" * 500], ids=["a control character", "too long"])
@pytest.mark.parametrize("route", [route for route in ROUTES if route.parameters], ids=lambda route: route.id)
def test_the_answer_to_a_name_that_cannot_exist_is_as_described(
    route: Route[Any], name: str, http: Http
) -> None:
    path = re.sub(r"\{\w+\}", name, route.path)
    answer = http.send(http.event(route.method, path, None if route.method == "GET" else "{}"))
    assert answer.status in (401, 404), answer
    check(route, answer)


@pytest.mark.parametrize("limit", ["hops", "wall_time", "bytes", "cost"])
def test_what_was_used_of_each_limit_is_as_described(limit: str) -> None:
    graph = Graph(name="w", nodes=(Node(name="a", kind="task", tool="t"),), limits={limit: Cap(most=9)})
    saga = Saga(Program(graph, KINDS))
    (row,) = as_json(saga_view(saga.state, saga.program))["limits"]
    validate({"$ref": "#/components/schemas/LimitUse"}, row)


def test_an_answer_that_is_not_as_described_would_be_seen(http: Http) -> None:
    (route,) = [route for route in ROUTES if route.id == "listTools"]
    good = http.get("/tools")
    check(route, good)
    with pytest.raises(jsonschema_rs.ValidationError):
        check(route, Answer(200, {**good.body, "more": 1}, good.headers))
    with pytest.raises(KeyError):
        check(route, Answer(418, good.body, good.headers))


def test_its_references_lead_somewhere() -> None:
    text = json.dumps(document())
    for target in set(re.findall(r'"\$ref": "#/([^"]+)"', text)):
        place: Any = document()
        for step in target.split("/"):
            place = place[step]


def test_it_is_valid_openapi_with_defaults_that_fit_their_schemas() -> None:
    problems = OpenAPIV31SpecValidator(json.loads(json.dumps(document()))).iter_errors()
    assert [problem.message for problem in problems] == []


def test_what_is_no_openapi_would_be_seen() -> None:
    described = json.loads(json.dumps(document()))
    # Little of it: the whole is looked at above.
    health = described["paths"]["/health"]["get"]
    health["responses"] = {"200": health["responses"]["200"]}
    described["paths"] = {"/health": {"get": health}}
    schemas = described["components"]["schemas"]
    described["components"]["schemas"] = {name: schemas[name] for name in ("Health", "Started")}
    assert not list(OpenAPIV31SpecValidator(described).iter_errors())
    described["components"]["schemas"]["Started"]["properties"]["id"]["type"] = "text"
    health["parameters"] = [{"name": "x", "in": "nowhere"}]
    assert list(OpenAPIV31SpecValidator(described).iter_errors())


def test_the_documents_schema_in_it_takes_the_dinner_and_refuses_what_is_none(http: Http) -> None:
    schema = {"$ref": "#/components/schemas/WorkflowDocument"}
    validate(schema, {"name": "x", "nodes": {"a": {"tool": "t"}}})
    with pytest.raises(jsonschema_rs.ValidationError):
        validate(schema, {"name": "x", "nodes": {"a": {"tol": "t"}}})


def test_it_carries_the_version_of_the_project() -> None:
    assert document()["info"]["version"] == VERSION


def test_what_a_deployment_sets_is_in_it() -> None:
    config = ApiSettings(
        table="t", bucket="b", worker="w", max_body_bytes=4_096, roles_claim="groups", tenant_claim="org"
    )
    text = json.dumps(describe(config))
    assert "Maximum size: 4096 bytes." in text
    assert "`groups`" in text
    assert "`org`" in text
