"""The OpenAPI document against the table of routes and against answers.

Those to every payload in events/api are held against it in test_api_payloads.py. That a fuzzer finds nothing either is for tests/e2e/test_openapi.py to show.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

import jsonschema_rs
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from baton.core.decide.program import Program
from baton.core.graph.graph import Cap, Graph, Node
from baton.core.nodes.registry import KINDS
from baton.core.read.views import saga_view
from baton.core.version import VERSION
from baton.settings import ApiSettings
from baton.web.openapi import describe
from baton.web.parameters import Route
from baton.web.routes import ROUTES
from tests.core.build import Saga
from tests.handlers.described import check, document, operation, validate
from tests.handlers.http import Answer, Http
from tests.kit.views import as_json


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


@pytest.mark.parametrize("route", [route for route in ROUTES if route.parameters], ids=lambda route: route.id)
def test_the_answer_to_a_name_that_cannot_exist_is_as_described(route: Route[Any], http: Http) -> None:
    for control_character_or_too_long in ("\x84", "-" * 500):
        path = re.sub(r"\{\w+\}", control_character_or_too_long, route.path)
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


@pytest.mark.soak
def test_it_is_valid_openapi_with_defaults_that_fit_their_schemas() -> None:
    problems = OpenAPIV31SpecValidator(json.loads(json.dumps(document()))).iter_errors()
    assert [problem.message for problem in problems] == []


def test_it_is_openapi_by_the_published_schema_and_what_is_none_would_be_seen() -> None:
    published = files("openapi_spec_validator") / "resources/schemas/v3.1/schema.json"
    openapi = json.loads(published.read_text("utf-8"))
    # It leaves the dialect of schemas open.
    openapi["$defs"]["schema"]["$ref"] = "https://json-schema.org/draft/2020-12/schema"
    valid = jsonschema_rs.Draft202012Validator(openapi)
    described = json.loads(json.dumps(document()))
    valid.validate(described)
    described["components"]["schemas"]["Started"]["properties"]["id"]["type"] = "text"
    described["paths"]["/health"]["get"]["parameters"] = [{"name": "x", "in": "nowhere"}]
    assert {error.instance_path[0] for error in valid.iter_errors(described)} == {"components", "paths"}


def test_the_documents_schema_in_it_takes_the_dinner_and_refuses_what_is_none() -> None:
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
