"""`std.openapi`: operations by their id, and arguments that are held against the description and put in their places."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.tools.standard import standard_tools
from tests.kit.sentences import Says
from tests.tools.apis import (
    WEATHER,
    changed,
    forecast,
    refusal,
    with_api,
)
from tests.tools.outside import Outside, context, failure, perform, services


def test_each_argument_stands_where_the_description_says(server: Outside) -> None:
    here = with_api(server, WEATHER)
    server.page("/v1/cities/S%C3%A3o%20Paulo%2F%3Fa%3D1/forecast", body=b'{"sky": "blue"}', etag='"1"')
    found = forecast(
        here, city="São Paulo/?a=1", unit="c", fields=["a", "b c"], **{"X-Trace": 7, "lang": "de"}
    )
    assert (found["status"], found["body"], found["headers"]["etag"]) == (200, {"sky": "blue"}, '"1"')
    method, path, headers, _ = server.seen[-1]
    assert (method, path.partition("?")[2]) == ("GET", "days=3&unit=c&fields=a&fields=b%20c")
    assert (headers["x-trace"], headers["cookie"]) == ("7", "lang=de")
    assert "idempotency-key" not in headers


def test_a_body_is_sent_as_the_description_says_with_the_key_of_the_step(server: Outside) -> None:
    here = with_api(server, WEATHER)
    server.page("/v1/reports", status=201, body=b"{}")
    report = {"city": "Graz", "degrees": 21.5, "note": None, "before": {"city": "Linz", "degrees": 1}}
    for attempt in (1, 2):
        at = context("k9", attempt=attempt)
        assert (
            perform("std.openapi", here, at, api="weather", operation="report", body=report)["status"] == 201
        )
        _, _, headers, body = server.seen[-1]
        assert json.loads(body) == report
        assert (headers["content-type"], headers["idempotency-key"]) == ("application/json", "k9")


def test_all_that_is_wrong_with_the_arguments_is_said_at_once_and_nothing_is_sent(server: Outside) -> None:
    here = with_api(server, WEATHER)
    server.page("/v1/reports")
    code, message = refusal(here, parameters={"days": 9, "unit": "k", "dyas": 1})
    assert code == "input_invalid"
    for said in (
        "`forecast` of `weather`",
        "/parameters/days: 9",
        "/parameters/unit:",
        "'dyas'",
        '"city" is a required',
    ):
        assert said in message
    wrong = {"city": 1, "degrees": -90, "before": {"city": "x"}}
    code, message = refusal(here, "report", parameters={"x": 1}, body=wrong)
    for said in ("/parameters", "/body/city", "/body/degrees", "/body/before"):
        assert said in message
    assert "body" in refusal(here, "report")[1]
    assert [path for _, path, _, _ in server.seen if path.startswith("/v1/reports")][2:] == []


def test_an_api_or_an_operation_that_there_is_not_is_refused_with_what_there_is(
    server: Outside, says: Says
) -> None:
    here = with_api(server, WEATHER)
    says(refusal(here, api="wether"))
    says(refusal(services(), api="a")[1])
    assert "forecast" in refusal(here, "forcast")[1]
    says(refusal(here, "zzz")[1].replace("It has", "it has"))


@pytest.mark.parametrize("city", ["..", ".", "", "../admin", "a/../../admin", "..\\admin"])
def test_no_argument_makes_another_path_of_a_path(city: str, server: Outside, says: Says) -> None:
    code, message = refusal(with_api(server, WEATHER), parameters={"city": city, "days": 1})
    assert code == "input_invalid"
    says(message)


def test_neither_do_two_of_them_together(server: Outside) -> None:
    names = [{"name": name, "in": "path", "schema": {"type": "string"}} for name in ("a", "b")]
    paths = {"/x/{a}{b}.{a}/y": {"get": {"operationId": "forecast", "parameters": names}}}
    here = with_api(
        server, changed(paths=paths | {"/x/.{a}": {"post": {"operationId": "dot", "parameters": names[:1]}}})
    )
    server.page("/v1/x/uv.u/y")
    perform("std.openapi", here, api="weather", operation="forecast", parameters={"a": "u", "b": "v"})
    assert "{a}" not in server.seen[-1][1]


@pytest.mark.parametrize(
    ("parameter", "value", "query"),
    [
        ({"style": "form", "explode": False}, ["a", "b"], "p=a,b"),
        ({"style": "pipeDelimited", "explode": False}, [1, 2], "p=1%7C2"),
        (
            {"style": "deepObject", "explode": True},
            {"k": "v", "l": [1, 2]},
            "p%5Bk%5D=v&p%5Bl%5D=1&p%5Bl%5D=2",
        ),
        ({"explode": True}, {"k": True, "l": None}, "k=true"),
        ({"explode": False}, {"k": 1.5}, "p=k,1.5"),
        ({"content": {"application/json": {"schema": {}}}}, {"k": [1]}, "p=%7B%22k%22%3A%5B1%5D%7D"),
    ],
)
def test_lists_and_objects_are_written_in_the_style_of_the_description(
    parameter: dict[str, Any], value: Any, query: str, server: Outside
) -> None:
    said = {"name": "p", "in": "query", **parameter}
    here = with_api(server, changed(paths={"/x": {"get": {"operationId": "forecast", "parameters": [said]}}}))
    server.page("/v1/x")
    perform("std.openapi", here, api="weather", operation="forecast", parameters={"p": value})
    assert server.seen[-1][1] == f"/v1/x?{query}"


def test_one_name_in_two_places_is_told_apart(server: Outside) -> None:
    twice = [
        {"name": "id", "in": place, "required": True, "schema": {"type": "integer"}}
        for place in ("path", "query")
    ]
    here = with_api(
        server, changed(paths={"/x/{id}": {"get": {"operationId": "forecast", "parameters": twice}}})
    )
    server.page("/v1/x/1")
    perform(
        "std.openapi", here, api="weather", operation="forecast", parameters={"path.id": 1, "query.id": 2}
    )
    assert server.seen[-1][1] == "/v1/x/1?id=2"


@pytest.mark.parametrize(
    ("kind", "body", "sent"),
    [
        ("application/x-www-form-urlencoded", {"a": "b c", "n": [1, True]}, b"a=b%20c&n=1&n=true"),
        ("text/plain", "hello", b"hello"),
        ("application/merge-patch+json", {"a": None}, b'{"a":null}'),
    ],
)
def test_bodies_of_other_types(kind: str, body: Any, sent: bytes, server: Outside) -> None:
    put = {"operationId": "put", "requestBody": {"content": {"image/png": {}, kind: {"schema": {}}}}}
    here = with_api(server, changed(paths={"/x": {"put": put}}))
    server.page("/v1/x")
    perform("std.openapi", here, api="weather", operation="put", body=body)
    assert (server.seen[-1][3], server.headers["content-type"]) == (sent, kind)


def test_a_key_that_a_description_wants_is_the_steps_own(server: Outside) -> None:
    wanted = [{"name": "Idempotency-Key", "in": "header", "required": True, "schema": {"type": "string"}}]
    here = with_api(server, changed(paths={"/x": {"post": {"operationId": "p", "parameters": wanted}}}))
    server.page("/v1/x")
    perform("std.openapi", here, context("k3"), api="weather", operation="p")
    assert server.headers["idempotency-key"] == "k3"


@pytest.mark.parametrize("name", ["Host", "Transfer-Encoding", "Baton-Tenant"])
def test_no_description_makes_a_header_an_argument_that_the_engine_sets(name: str, server: Outside) -> None:
    hostile = [{"name": name, "in": "header", "schema": {"type": "string"}}]
    here = with_api(
        server, changed(paths={"/x": {"get": {"operationId": "forecast", "parameters": hostile}}})
    )
    assert "the engine sets it" in refusal(here, parameters={name: "elsewhere.example"})[1]


def test_a_failure_of_the_service_is_the_steps_as_with_std_http(server: Outside) -> None:
    here = with_api(server, WEATHER)
    server.page("/v1/cities/Graz/forecast", status=429, body=b'{"detail": "Slow down."}', retry_after="7")
    found = failure(
        "std.openapi", here, api="weather", operation="forecast", parameters={"city": "Graz", "days": 1}
    )
    assert (found.code, found.retry_after, found.status) == ("rate_limited", "7", 429)
    assert "Slow down." in found.message


def test_it_is_idempotent_and_belongs_to_the_outside() -> None:
    spec = standard_tools()["std.openapi"].spec
    assert (spec.effect, spec.domain, spec.repeatable) == ("idempotent", "external_api", False)
    assert set(spec.parameters["properties"]) == {"api", "operation", "parameters", "body", "operations"}


@pytest.mark.parametrize("item", ["t1-0", "a2-1"])
def test_what_a_model_chooses_is_refused_unless_it_is_listed(item: str, server: Outside) -> None:
    """Whatever graph the call came from: one that was compiled before there were lists has none."""
    here, at = with_api(server, WEATHER), context(item=item)
    server.page("/v1/cities/Graz/forecast", body=b"{}")
    given: dict[str, Any] = {"operation": "forecast", "parameters": {"city": "Graz", "days": 1}}
    before = len(server.seen)
    for listed in (None, {}, {"weather": ["report"]}, {"other": ["forecast"]}):
        found = failure("std.openapi", here, at, api="weather", operations=listed, **given)
        assert (found.code, found.happened) == ("call_not_allowed", False)
    assert len(server.seen) == before
    done = perform("std.openapi", here, at, api="weather", operations={"weather": ["forecast"]}, **given)
    assert done["status"] == 200


def test_a_step_that_lists_operations_calls_no_other(server: Outside) -> None:
    here = with_api(server, WEATHER)
    found = failure(
        "std.openapi", here, api="weather", operation="report", operations={"weather": ["forecast"]}
    )
    assert (found.code, "`weather:forecast`" in found.message) == ("call_not_allowed", True)


def test_a_description_says_the_text_and_the_schema_of_the_listed_operations_it_has(server: Outside) -> None:
    paths = json.loads(json.dumps(WEATHER["paths"]))
    paths["/cities/{city}/forecast"]["get"] |= {"summary": "Forecast.", "description": "Of a city."}
    here = with_api(server, changed(paths=paths))
    listed = {"weather": ["forecast", "gone"], "other": ["forecast"]}
    (told,) = perform("std.describe_operations", here, operations=listed)
    assert (told["api"], told["operation"], told["text"]) == ("weather", "forecast", "Forecast.\nOf a city.")
    assert told["parameters"]["properties"]["parameters"]["required"] == ["city", "days"]
    assert perform("std.describe_operations", here) == []
