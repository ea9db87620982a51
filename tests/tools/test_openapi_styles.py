"""How values are written into a request: each style of OpenAPI 3.0 and 3.1, exploded and not, for every shape of value."""

from __future__ import annotations

from typing import Any

import pytest

from baton.tools.openapi.description import Description, NamedApi, Operation
from baton.tools.openapi.requests import request, request_problems

API = NamedApi("shop", "https://shop.example/openapi.json", "0" * 64, "")
LIST: Any = ["a", "b,c"]
OBJECT: Any = {"R": 100, "G": "x y"}


def operation(
    parameters: list[dict[str, Any]], path: str = "/x", version: str = "3.1.0", **more: Any
) -> Operation:
    one = {"operationId": "it", "parameters": parameters, **more}
    method = "post" if "requestBody" in more else "get"
    found = Description(API, {"openapi": version, "paths": {path: {method: one}}}).operation("it")
    assert found is not None
    return found


def sent(place: str, value: Any, **said: Any) -> str:
    """What of the request says the value of the parameter `p`."""
    path = "/x/{p}" if place == "path" else "/x"
    one = operation([{"name": "p", "in": place, "required": place == "path", "schema": {}, **said}], path)
    assert request_problems(one, {"p": value}, None) == []
    made = request(one, {"p": value}, None)
    url = made.url.removeprefix("https://shop.example/x")
    return url if place in ("path", "query") else made.headers.get("cookie" if place == "cookie" else "p", "")


@pytest.mark.parametrize(
    ("style", "explode", "text", "several", "fields"),
    [
        ("simple", False, "/v%2F1", "/a,b%2Cc", "/R,100,G,x%20y"),
        ("simple", True, "/v%2F1", "/a,b%2Cc", "/R=100,G=x%20y"),
        ("label", False, "/.v%2F1", "/.a,b%2Cc", "/.R,100,G,x%20y"),
        ("label", True, "/.v%2F1", "/.a.b%2Cc", "/.R=100.G=x%20y"),
        ("matrix", False, "/;p=v%2F1", "/;p=a,b%2Cc", "/;p=R,100,G,x%20y"),
        ("matrix", True, "/;p=v%2F1", "/;p=a;p=b%2Cc", "/;R=100;G=x%20y"),
    ],
)
def test_values_of_a_path(style: str, explode: bool, text: str, several: str, fields: str) -> None:
    for value, written in (("v/1", text), (LIST, several), (OBJECT, fields)):
        assert sent("path", value, style=style, explode=explode) == written


@pytest.mark.parametrize("style", ["simple", "label", "matrix"])
@pytest.mark.parametrize("explode", [False, True])
@pytest.mark.parametrize("value", ["", None, [], {}, [None], {"k": None}, "..", "."])
def test_a_part_of_a_path_is_never_empty(style: str, explode: bool, value: Any) -> None:
    said = {"name": "p", "in": "path", "required": True, "style": style, "explode": explode, "schema": {}}
    one = operation([said], "/x/{p}")
    assert [problem.path for problem in request_problems(one, {"p": value}, None)][:1] == ["/parameters/p"]


@pytest.mark.parametrize(
    ("style", "explode", "several", "fields"),
    [
        ("form", True, "?p=a&p=b%2Cc", "?R=100&G=x%20y"),
        ("form", False, "?p=a,b%2Cc", "?p=R,100,G,x%20y"),
        ("spaceDelimited", False, "?p=a%20b%2Cc", "?p=R%20100%20G%20x%20y"),
        ("spaceDelimited", True, "?p=a&p=b%2Cc", "?R=100&G=x%20y"),
        ("pipeDelimited", False, "?p=a%7Cb%2Cc", "?p=R%7C100%7CG%7Cx%20y"),
        ("pipeDelimited", True, "?p=a&p=b%2Cc", "?R=100&G=x%20y"),
        ("deepObject", True, "?p%5B0%5D=a&p%5B1%5D=b%2Cc", "?p%5BR%5D=100&p%5BG%5D=x%20y"),
        ("deepObject", False, "?p%5B0%5D=a&p%5B1%5D=b%2Cc", "?p%5BR%5D=100&p%5BG%5D=x%20y"),
    ],
)
def test_values_of_a_query(style: str, explode: bool, several: str, fields: str) -> None:
    for value, written in ((LIST, several), (OBJECT, fields)):
        assert sent("query", value, style=style, explode=explode) == written
    for value, text in (("a&b", "a%26b"), (True, "true"), (7, "7"), (1.5, "1.5"), ("", "")):
        assert sent("query", value, style=style, explode=explode) == f"?p={text}"
    for value in (None, [], {}, [None], {"k": None}):
        assert sent("query", value, style=style, explode=explode) == ""


def test_deep_objects_are_as_deep_as_they_are() -> None:
    value = {"a": {"b": 1, "none": None}, "tags": ["x", "y"], "items": [{"n": 1}, {"n": 2}]}
    names = ["p[a][b]=1", "p[tags]=x", "p[tags]=y", "p[items][0][n]=1", "p[items][1][n]=2"]
    written = sent("query", value, style="deepObject").replace("%5B", "[").replace("%5D", "]")
    assert written == "?" + "&".join(names)


@pytest.mark.parametrize(
    ("value", "plain", "exploded"),
    [(LIST, "a,b,c", "a,b,c"), (OBJECT, "R,100,G,x y", "R=100,G=x y"), ("v", "v", "v"), (True, "true", "true"), (None, "", "")],
)  # fmt: skip
def test_values_of_a_header(value: Any, plain: str, exploded: str) -> None:
    assert sent("header", value, explode=False) == plain
    assert sent("header", value, explode=True) == exploded


@pytest.mark.parametrize(
    ("value", "plain", "exploded"),
    [(LIST, "p=a,b%2Cc", "p=a; p=b%2Cc"), (OBJECT, "p=R,100,G,x%20y", "R=100; G=x%20y"), ("v;w", "p=v%3Bw", "p=v%3Bw"),
     (None, "", ""), ([], "", "")],
)  # fmt: skip
def test_values_of_a_cookie(value: Any, plain: str, exploded: str) -> None:
    assert sent("cookie", value, explode=False) == plain
    assert sent("cookie", value, explode=True) == exploded


def test_a_parameter_that_is_json_keeps_its_nulls() -> None:
    content: dict[str, Any] = {"content": {"application/json": {"schema": {}}}}
    assert sent("query", {"k": None}, **content) == "?p=%7B%22k%22%3Anull%7D"
    assert sent("query", None, **content) == "?p=null"


@pytest.mark.parametrize(
    ("body", "encoding", "written"),
    [
        ({"amount": 5, "metadata": {"order": "A-1"}, "expand": ["customer"]},
         {name: {"style": "deepObject", "explode": True} for name in ("metadata", "expand")},
         "amount=5&metadata[order]=A-1&expand[0]=customer"),
        ({"tags": ["a", "b"]}, {"tags": {"style": "form", "explode": False}}, "tags=a,b"),
        ({"tags": ["a", "b"]}, {"tags": {"style": "pipeDelimited"}}, "tags=a%7Cb"),
        ({"at": {"x": 1}}, {"at": {"explode": True}}, "x=1"),
        ({"at": {"x": None}, "n": [1, None], "none": None}, {}, "at=%7B%22x%22%3Anull%7D&n=1"),
        ({"at": {"x": 1}}, {"at": {"contentType": "application/json"}}, "at=%7B%22x%22%3A1%7D"),
    ],
)  # fmt: skip
def test_fields_of_a_form(body: Any, encoding: Any, written: str) -> None:
    form = {"content": {"application/x-www-form-urlencoded": {"schema": {}, "encoding": encoding}}}
    one = operation([], requestBody=form)
    assert request(one, {}, body).body.decode().replace("%5B", "[").replace("%5D", "]") == written


def test_an_operation_without_an_id_is_called_by_its_method_and_path() -> None:
    paths = {
        "/orders/{id}": {
            "get": {},
            "delete": {"operationId": "drop"},
            "parameters": [{"name": "id", "in": "path", "schema": {}}],
        }
    }
    described = Description(API, {"openapi": "3.0.3", "paths": paths})
    found = described.operation("GET /orders/{id}")
    assert found is not None
    assert (found.method, request(found, {"id": 7}, None).url) == ("GET", "https://shop.example/orders/7")
    assert described.operation("drop") is not None
    assert described.operation("DELETE /orders/{id}") is None, (
        "an operation has one name, so that a list names it"
    )
    assert "GET /orders/{id}" in described.hint("zzz")
