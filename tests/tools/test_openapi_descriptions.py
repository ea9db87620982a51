"""Descriptions of APIs: fetched once, held to their hash, never followed elsewhere, and refused with the reason."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from baton.adapters.http_client import LazyHttpClient
from baton.tools.openapi.description import Apis
from tests.kit.sentences import Says
from tests.tools.apis import (
    WEATHER,
    changed,
    forecast,
    refusal,
    secured,
    with_api,
    with_schema,
)
from tests.tools.outside import Outside, context, perform, performer, services


def test_a_description_is_fetched_once_however_many_steps_begin_at_once(server: Outside) -> None:
    here = with_api(server, WEATHER)
    server.page("/v1/cities/Graz/forecast", body=b"{}")
    before = len(server.seen)

    async def together() -> None:
        call = {"api": "weather", "operation": "forecast", "parameters": {"city": "Graz", "days": 1}}
        await asyncio.gather(*(performer(here).perform("std.openapi", call, context()) for _ in range(5)))
        await here.http.aclose()

    asyncio.run(together())
    forecast(here)
    assert [path for _, path, _, _ in server.seen[before:]].count("/openapi.json") == 1


def test_a_description_that_differs_from_its_pin_is_refused_with_what_to_do(
    server: Outside, says: Says
) -> None:
    here = with_api(server, WEATHER)
    now = json.dumps(changed(servers=[{"url": "/v2"}])).encode()
    server.page("/openapi.json", body=now)
    code, message = refusal(here, parameters={"city": "Graz", "days": 1})
    assert code == "description_invalid"
    says(message)
    assert server.seen[-1][1] == "/openapi.json"


def test_it_is_fetched_under_the_rules_of_std_http(server: Outside) -> None:
    here = with_api(server, WEATHER)
    unlisted = services(http=LazyHttpClient(["a.example"]), apis=here.apis)
    assert refusal(unlisted)[0] == "permission_denied"
    small = services(apis=here.apis, most_bytes=1_000)
    assert refusal(small)[0] == "result_too_large"
    server.page("/openapi.json", status=404)
    assert refusal(here)[0] == "not_found"


def refused_description(server: Outside, document: Any) -> str:
    code, message = refusal(with_api(server, document), parameters={"city": "Graz", "days": 1})
    assert code == "description_invalid", (code, message)
    return message


@pytest.mark.parametrize(
    "reference", ["file:///etc/passwd", "http://127.0.0.1/x", "other.json#/a", "#elsewhere", 7]
)
def test_only_references_inside_of_it_are_followed(reference: Any, server: Outside, says: Says) -> None:
    seen = len(server.seen)
    says(refused_description(server, with_schema({"$ref": reference})))
    paths = {"/x": {"get": {"operationId": "forecast", "parameters": [{"$ref": reference}]}}}
    says(refused_description(server, changed(paths=paths)))
    says(refused_description(server, changed(paths={"/x": {"$ref": reference}})))
    assert {path for _, path, _, _ in server.seen[seen:]} == {"/openapi.json"}


def test_a_reference_to_nothing_is_named(server: Outside, says: Says) -> None:
    says(refused_description(server, with_schema({"$ref": "#/components/schemas/Gone"})))


def test_references_that_go_round_in_circles_end(server: Outside) -> None:
    loop = {
        "parameters": {"A": {"$ref": "#/components/parameters/B"}, "B": {"$ref": "#/components/parameters/A"}}
    }
    paths = {
        "/x": {"get": {"operationId": "forecast", "parameters": [{"$ref": "#/components/parameters/A"}]}}
    }
    assert "round in circles" in refused_description(server, changed(paths=paths, components=loop))
    server.page("/v1/x")
    for there in ({"$ref": "#/components/schemas/B"}, {"allOf": [{"$ref": "#/components/schemas/B"}]}):
        endless = with_schema(
            {"$ref": "#/components/schemas/A"}, A=there, B={"$ref": "#/components/schemas/A"}
        )
        found = perform(
            "std.openapi",
            with_api(server, endless),
            api="weather",
            operation="forecast",
            parameters={"p": 1},
        )
        assert found["status"] == 200


def test_schemas_that_grow_or_go_too_deep_are_refused(server: Outside, says: Says) -> None:
    deep: Any = {"type": "string"}
    for _ in range(150):
        deep = {"items": deep}
    says(refused_description(server, with_schema(deep)))
    wide = {"properties": {f"p{n}": True for n in range(3_000)}}
    refs = [{"$ref": f"#/components/schemas/S{n}"} for n in range(10)]
    many = with_schema({"anyOf": refs}, **{f"S{n}": wide for n in range(10)})
    says(refused_description(server, many))
    chain = {f"S{n}": {"items": {"$ref": f"#/components/schemas/S{n + 1}"}} for n in range(400)} | {
        "S400": {}
    }
    found = refusal(
        with_api(server, with_schema({"$ref": "#/components/schemas/S0"}, **chain)), parameters={"p": [[]]}
    )
    assert (found[0], "nested too deeply" in found[1]) == ("input_invalid", True)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (b"openapi: 3.0.3", "it is not OpenAPI 3.0 or 3.1 as JSON"),
        (b"[" * 100_000, "it is not OpenAPI"),
        ({"swagger": "2.0", "paths": {}}, "it is not OpenAPI"),
        (changed(paths={"/x/{y}": {"get": {"operationId": "forecast"}}}), "names that are no parameters"),
        (changed(paths={"x": {"get": {"operationId": "forecast"}}}), "no `/` first"),
        (changed(paths={"/x": {"get": {"operationId": "forecast", "parameters": [{"in": "query"}]}}}), "no `name`"),
        (changed(paths={"/x": {"get": {"operationId": "forecast", "parameters": [7]}}}), "an object is expected"),
        (changed(paths={"/x": {"get": {"operationId": "forecast", "parameters": [{"name": "a", "in": "query", "style": "own"}]}}}), "the style `own`"),
        (changed(paths={"/x": {"get": {"operationId": "forecast", "parameters": [{"name": "a", "in": "query", "content": {"text/xml": {}}}]}}}), "of the type `text/xml`"),
        (changed(paths={"/x": {"get": {"operationId": "forecast", "requestBody": {"content": {"multipart/form-data": {}}}}}}), "a body is of the type `multipart/form-data`"),
        (with_schema(7), "a schema is expected"),
        (secured({"type": "mutualTLS"}), "credentials of a kind that cannot be given"),
    ],
)  # fmt: skip
def test_a_description_that_cannot_be_used_says_why(document: Any, said: str, server: Outside) -> None:
    if isinstance(document, bytes) and len(document) > 50_000:
        document = document[:50_000]
    assert said in refused_description(server, document)


@pytest.mark.parametrize(
    "url", ["https://elsewhere.example/v1", "//elsewhere.example", "http://127.0.0.1:1/v1", "ftp://x"]
)
def test_a_description_leads_no_request_elsewhere(url: str, server: Outside, says: Says) -> None:
    says(refused_description(server, changed(servers=[{"url": url}])))
    paths = json.loads(json.dumps(WEATHER["paths"]))
    paths["/cities/{city}/forecast"]["get"]["servers"] = [{"url": url}]
    says(refused_description(server, changed(paths=paths)))


def test_a_server_that_the_deployment_names_counts_and_must_be_on_its_list(
    server: Outside, says: Says
) -> None:
    elsewhere = changed(servers=[{"url": "https://elsewhere.example/v1"}])
    there = with_api(server, elsewhere, at=f"@{server.url}/own")
    server.page("/own/cities/Graz/forecast", body=b"{}")
    assert forecast(there)["status"] == 200
    far = with_api(server, elsewhere, at="@https://elsewhere.example")
    few = services(apis=far.apis, http=LazyHttpClient(["127.0.0.1"]))
    code, message = refusal(few, parameters={"city": "Graz", "days": 1})
    assert code == "permission_denied"
    says(message)


def test_variables_of_a_server_have_their_defaults(server: Outside) -> None:
    own = [{"url": "/{version}/w", "variables": {"version": {"default": "v7"}}}]
    here = with_api(server, changed(servers=own))
    server.page("/v7/w/cities/Graz/forecast", body=b"{}")
    assert forecast(here)["status"] == 200


def test_each_api_is_named_once(says: Says) -> None:
    one = f"a=https://a.example/x#sha256:{'0' * 64}"
    with says.raised(ValueError):
        Apis(f"{one} {one}")
