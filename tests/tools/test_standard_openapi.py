"""`std.openapi`: operations by their id, arguments held against the description, and credentials that go nowhere else."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pytest

from baton.adapters.clock import SystemClock
from baton.adapters.credentials import Credentials
from baton.adapters.http_client import LazyHttpClient
from baton.tools.openapi.named import Apis
from baton.tools.standard import Services, standard_tools
from tests.tools.outside import THREADS, Outside, context, failure, perform, performer, services

KEY = "ak-4711-of-the-weather"
WEATHER: dict[str, Any] = {
    "openapi": "3.0.3",
    "servers": [{"url": "/v1"}],
    "paths": {
        "/cities/{city}/forecast": {
            "parameters": [{"name": "city", "in": "path", "required": True, "schema": {"type": "string"}}],
            "get": {
                "operationId": "forecast",
                "parameters": [
                    {"$ref": "#/components/parameters/Days"},
                    {"name": "unit", "in": "query", "schema": {"type": "string", "enum": ["c", "f"]}},
                    {
                        "name": "fields",
                        "in": "query",
                        "schema": {"type": "array", "items": {"type": "string"}},
                    },
                    {"name": "X-Trace", "in": "header", "schema": {"type": "integer"}},
                    {"name": "lang", "in": "cookie", "schema": {"type": "string"}},
                ],
            },
        },
        "/reports": {
            "post": {
                "operationId": "report",
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Report"}}},
                },
            }
        },
    },
    "components": {
        "parameters": {
            "Days": {
                "name": "days",
                "in": "query",
                "required": True,
                "schema": {"type": "integer", "maximum": 7},
            }
        },
        "schemas": {
            "Report": {
                "type": "object",
                "required": ["id", "city", "degrees"],
                "properties": {
                    "id": {"type": "string", "readOnly": True},
                    "city": {"type": "string"},
                    "degrees": {"type": "number", "minimum": -90, "exclusiveMinimum": True},
                    "note": {"type": "string", "nullable": True},
                    "before": {"$ref": "#/components/schemas/Report"},
                },
            }
        },
    },
}


class Vault:
    """Secrets that a test changes."""

    def __init__(self, **kept: str) -> None:
        self.kept = kept

    def read(self, name: str) -> str:
        return self.kept.get(name, "")

    def where(self, name: str) -> str:
        return f"the drawer `{name}`"


def with_api(
    server: Outside, document: Any, vault: Vault | None = None, at: str = "", name: str = "weather"
) -> Services:
    """The deployment that names an API whose description is this one."""
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    url = server.page("/openapi.json", body=data)
    pin = hashlib.sha256(data).hexdigest()
    clock = SystemClock()
    return services(
        apis=Apis(f"{name}={url}#sha256:{pin}{at}"),
        credentials=Credentials(vault or Vault(), clock, THREADS, "the API"),
        most_bytes=1_000_000,
    )


def changed(**parts: Any) -> dict[str, Any]:
    return {**WEATHER, **parts}


def secured(scheme: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    components = WEATHER["components"] | {"securitySchemes": {"it": scheme}}
    return changed(components=components, security=[{"it": []}], **more)


def forecast(of: Services, **parameters: Any) -> Any:
    given = {"city": "Graz", "days": 3} | parameters
    return perform("std.openapi", of, api="weather", operation="forecast", parameters=given)


def refusal(of: Services, operation: str = "forecast", api: str = "weather", **given: Any) -> tuple[str, str]:
    found = failure("std.openapi", of, api=api, operation=operation, **given)
    return found.code, found.message


# ---- requests ------------------------------------------------------------------------------------------------


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


def test_an_api_or_an_operation_that_there_is_not_is_refused_with_what_there_is(server: Outside) -> None:
    here = with_api(server, WEATHER)
    assert refusal(here, api="wether") == (
        "input_invalid", "`OpenApis` of the deployment names no API `wether`: there is `weather`",
    )  # fmt: skip
    assert refusal(services(), api="a")[1].endswith("names no API `a`: it names none")
    assert "forecast" in refusal(here, "forcast")[1]
    assert "it has `forecast`, `report`" in refusal(here, "zzz")[1].replace("It has", "it has")


@pytest.mark.parametrize("city", ["..", ".", "", "../admin", "a/../../admin", "..\\admin"])
def test_no_argument_makes_another_path_of_a_path(city: str, server: Outside) -> None:
    code, message = refusal(with_api(server, WEATHER), parameters={"city": city, "days": 1})
    assert (code, "/parameters/city: it is a part of the path" in message) == ("input_invalid", True)


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
        ({"style": "form", "explode": False}, ["a", "b"], "p=a%2Cb"),
        ({"style": "pipeDelimited", "explode": False}, [1, 2], "p=1%7C2"),
        (
            {"style": "deepObject", "explode": True},
            {"k": "v", "l": [1, 2]},
            "p%5Bk%5D=v&p%5Bl%5D=1&p%5Bl%5D=2",
        ),
        ({"explode": True}, {"k": True, "l": None}, "k=true&l=null"),
        ({"explode": False}, {"k": 1.5}, "p=k%2C1.5"),
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
        ("application/x-www-form-urlencoded", {"a": "b c", "n": [1, True]}, b"a=b+c&n=1&n=true"),
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
    assert set(spec.parameters["properties"]) == {"api", "operation", "parameters", "body"}


# ---- descriptions --------------------------------------------------------------------------------------------


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


def test_a_description_that_differs_from_its_pin_is_refused_with_what_to_do(server: Outside) -> None:
    here = with_api(server, WEATHER)
    now = json.dumps(changed(servers=[{"url": "/v2"}])).encode()
    server.page("/openapi.json", body=now)
    code, message = refusal(here, parameters={"city": "Graz", "days": 1})
    assert code == "description_invalid"
    assert (
        f"See what has changed in it; if it is to be used, write `#sha256:{hashlib.sha256(now).hexdigest()}`"
        in message
    )
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


def with_schema(schema: Any, **components: Any) -> dict[str, Any]:
    """A description whose operation takes one argument of this schema."""
    said = [{"name": "p", "in": "query", "schema": schema}]
    paths = {"/x": {"get": {"operationId": "forecast", "parameters": said}}}
    return changed(paths=paths, components={"schemas": components})


@pytest.mark.parametrize(
    "reference", ["file:///etc/passwd", "http://127.0.0.1/x", "other.json#/a", "#elsewhere", 7]
)
def test_only_references_inside_of_it_are_followed(reference: Any, server: Outside) -> None:
    seen = len(server.seen)
    said = f"it refers to `{reference}`: nothing but references inside of it"
    assert said in refused_description(server, with_schema({"$ref": reference}))
    paths = {"/x": {"get": {"operationId": "forecast", "parameters": [{"$ref": reference}]}}}
    assert said in refused_description(server, changed(paths=paths))
    assert said in refused_description(server, changed(paths={"/x": {"$ref": reference}}))
    assert {path for _, path, _, _ in server.seen[seen:]} == {"/openapi.json"}


def test_a_reference_to_nothing_is_named(server: Outside) -> None:
    assert "there is no `#/components/schemas/Gone`" in refused_description(
        server, with_schema({"$ref": "#/components/schemas/Gone"})
    )


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


def test_schemas_that_grow_or_go_too_deep_are_refused(server: Outside) -> None:
    deep: Any = {"type": "string"}
    for _ in range(150):
        deep = {"items": deep}
    assert "too large, or nested too deeply" in refused_description(server, with_schema(deep))
    wide = {"properties": {f"p{n}": True for n in range(3_000)}}
    refs = [{"$ref": f"#/components/schemas/S{n}"} for n in range(10)]
    many = with_schema({"anyOf": refs}, **{f"S{n}": wide for n in range(10)})
    assert "too large, or nested too deeply" in refused_description(server, many)
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
def test_a_description_sends_nobody_elsewhere(url: str, server: Outside) -> None:
    assert "elsewhere than the description" in refused_description(server, changed(servers=[{"url": url}]))
    paths = json.loads(json.dumps(WEATHER["paths"]))
    paths["/cities/{city}/forecast"]["get"]["servers"] = [{"url": url}]
    assert "name it in `OpenApis`, behind the hash" in refused_description(server, changed(paths=paths))


def test_a_server_that_the_deployment_names_counts_and_must_be_on_its_list(server: Outside) -> None:
    elsewhere = changed(servers=[{"url": "https://elsewhere.example/v1"}])
    there = with_api(server, elsewhere, at=f"@{server.url}/own")
    server.page("/own/cities/Graz/forecast", body=b"{}")
    assert forecast(there)["status"] == 200
    far = with_api(server, elsewhere, at="@https://elsewhere.example")
    few = services(apis=far.apis, http=LazyHttpClient(["127.0.0.1"]))
    code, message = refusal(few, parameters={"city": "Graz", "days": 1})
    assert (code, "elsewhere.example is not called from here" in message) == ("permission_denied", True)


def test_variables_of_a_server_have_their_defaults(server: Outside) -> None:
    own = [{"url": "/{version}/w", "variables": {"version": {"default": "v7"}}}]
    here = with_api(server, changed(servers=own))
    server.page("/v7/w/cities/Graz/forecast", body=b"{}")
    assert forecast(here)["status"] == 200


# ---- credentials ---------------------------------------------------------------------------------------------

HERE = "/v1/cities/Graz/forecast"


@pytest.mark.parametrize(
    ("scheme", "header", "value"),
    [
        ({"type": "http", "scheme": "Bearer"}, "authorization", f"Bearer {KEY}"),
        ({"type": "oauth2", "flows": {}}, "authorization", f"Bearer {KEY}"),
        ({"type": "apiKey", "in": "header", "name": "X-Api-Key"}, "x-api-key", KEY),
        ({"type": "apiKey", "in": "cookie", "name": "sid"}, "cookie", f"sid={KEY}"),
    ],
)
def test_the_credential_of_the_apis_name_stands_where_the_description_wants_it(
    scheme: dict[str, Any], header: str, value: str, server: Outside
) -> None:
    server.page(HERE, body=b"{}")
    forecast(with_api(server, secured(scheme), Vault(weather=KEY, other="no")))
    assert server.headers[header] == value
    assert KEY not in str(server.seen[-2]), "it is not sent for the description"


def test_as_a_user_with_a_password_and_in_the_query(server: Outside) -> None:
    server.page(HERE, body=b"{}")
    forecast(with_api(server, secured({"type": "http", "scheme": "basic"}), Vault(weather="ada:s3cret")))
    assert server.headers["authorization"] == "Basic YWRhOnMzY3JldA=="
    asked = {"type": "apiKey", "in": "query", "name": "key"}
    forecast(with_api(server, secured(asked), Vault(weather="a&b/c-d")))
    assert server.seen[-1][1].endswith("?days=3&key=a%26b%2Fc-d")


def test_an_argument_never_takes_the_place_of_the_credential(server: Outside) -> None:
    paths = json.loads(json.dumps(WEATHER["paths"]))
    paths["/cities/{city}/forecast"]["get"]["parameters"] += [
        {"name": name, "in": "header", "schema": {"type": "string"}}
        for name in ("X-Api-Key", "Authorization")
    ]
    scheme = {"type": "apiKey", "in": "header", "name": "X-API-Key"}
    here = with_api(server, secured(scheme, paths=paths), Vault(weather=KEY))
    server.page(HERE, body=b"{}")
    forecast(here, **{"X-Api-Key": "mine"})
    assert server.headers["x-api-key"] == KEY
    assert "Authorization" in refusal(here, parameters={"city": "G", "days": 1, "Authorization": "x"})[1]


BEARER = {"type": "http", "scheme": "bearer"}


def test_a_missing_credential_is_said_with_where_it_belongs_and_nothing_is_sent(server: Outside) -> None:
    server.page(HERE, body=b"{}")
    code, message = refusal(with_api(server, secured(BEARER)), parameters={"city": "Graz", "days": 1})
    assert (code, message) == (
        "missing_credentials", "the API `weather` has no credential: put it into the drawer `weather`",
    )  # fmt: skip
    assert server.seen[-1][1] == "/openapi.json"


def test_an_operation_that_needs_none_gets_none(server: Outside) -> None:
    server.page(HERE, body=b"{}")
    forecast(with_api(server, WEATHER, Vault(weather=KEY)))
    assert "authorization" not in server.headers
    forecast(with_api(server, secured(BEARER) | {"security": [{}, {"it": []}]}))
    assert "authorization" not in server.headers


def test_a_redirect_is_not_followed_and_gets_no_credential(server: Outside) -> None:
    here = with_api(server, secured(BEARER), Vault(weather=KEY))
    for there in ("/v1/there", "https://elsewhere.example/"):
        server.page(HERE, status=302, location=there)
        assert refusal(here, parameters={"city": "Graz", "days": 1})[0] == "resource_moved"
        assert server.seen[-1][1].startswith(HERE)


@pytest.mark.parametrize("status", [200, 400, 500])
def test_a_service_that_repeats_the_credential_is_not_quoted(status: int, server: Outside) -> None:
    for scheme, key in ((BEARER, 'ak/47"11/of'), ({"type": "http", "scheme": "basic"}, "ada:s3cret/x")):
        here = with_api(server, secured(scheme), Vault(weather=key))
        said = json.dumps({"detail": f"you sent {key}"}).replace("/", r"\/").encode()
        server.page(HERE, status=status, body=said, etag="Basic YWRhOnMzY3JldC94", location=key)
        found = (
            str(forecast(here)) if status == 200 else refusal(here, parameters={"city": "Graz", "days": 1})[1]
        )
        assert "[redacted]" in found
        for secret in (key, "s3cret/x", "YWRhOnMzY3JldC94" if scheme is not BEARER else key):
            assert secret not in found


def test_a_credential_that_was_replaced_is_read_anew_and_one_that_stays_refused_is_not_quoted(
    server: Outside,
) -> None:
    vault = Vault(weather="an-old-one")
    here = with_api(server, secured(BEARER), vault)
    clock = Shifted()
    here = services(apis=here.apis, credentials=Credentials(vault, clock, THREADS, "the API"))

    def guarded(at: Any) -> None:
        is_right = at.headers["authorization"] == "Bearer a-new-one"
        body = b"{}" if is_right else b'{"detail": "an-old-one"}'
        at.send_response(200 if is_right else 401)
        at.send_header("content-length", str(len(body)))
        at.end_headers()
        at.wfile.write(body)

    server.pages[HERE] = guarded
    code, message = refusal(here, parameters={"city": "Graz", "days": 1})
    assert (code, "an-old-one" in message) == ("unauthorized", False)
    assert "does not accept the credential of the API `weather`" in message
    vault.kept["weather"], clock.by = "a-new-one", 20_000
    assert forecast(here)["status"] == 200


class Shifted:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.by = 0

    def now(self) -> int:
        return SystemClock().now() + self.by


def test_each_api_is_named_once() -> None:
    one = f"a=https://a.example/x#sha256:{'0' * 64}"
    with pytest.raises(ValueError, match="each API is named once"):
        Apis(f"{one} {one}")
