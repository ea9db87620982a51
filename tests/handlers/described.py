"""The OpenAPI document of the API, and answers that are held against it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema_rs

from baton.settings import ApiSettings
from baton.web.openapi import describe
from baton.web.parameters import Route
from tests.handlers.http import Answer


@cache
def document() -> dict[str, Any]:
    return describe(ApiSettings(table="t", bucket="b", worker="w"))


def operation(route: Route[Any]) -> dict[str, Any]:
    found: dict[str, Any] = document()["paths"][route.path][route.method.lower()]
    return found


@cache
def _validator(schema: str) -> jsonschema_rs.Draft202012Validator:
    """To read all components takes longer than to validate, and most answers have one of few schemas."""
    whole = {**json.loads(schema), "components": document()["components"]}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)


def validate(schema: dict[str, Any], value: Any) -> None:
    """Raises `jsonschema_rs.ValidationError`."""
    _validator(json.dumps(schema)).validate(value)


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
