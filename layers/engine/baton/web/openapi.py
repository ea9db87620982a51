"""OpenAPI 3.1 document of the API, from routes and models. Import it only when a caller requests it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, get_type_hints

from msgspec.json import schema_components
from msgspec.structs import fields
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from baton.core.documents.schema import document_schema, unwrap_descriptions
from baton.core.read import answers as shared
from baton.core.read import costs, definition_views, explain, left_effects, places, step_runs, views
from baton.core.read.answers import View
from baton.core.version import VERSION
from baton.runtime import recovery
from baton.runtime.requests import (
    aliases,
    claims,
    facts,
    lists,
    messages,
    operators,
    patching,
    queries,
    schedules,
    steering,
    travel,
    versions,
)
from baton.runtime.requests import answers as people
from baton.settings import ApiSettings
from baton.web import mcp, replies
from baton.web.bodies import answers, events
from baton.web.bodies.requests import MAX_KEY
from baton.web.parameters import Parameter, Route
from baton.web.routes import ROUTES

# The answers by name, for the table of routes names them only: it is read at every cold start.
_FILES = (
    aliases,
    answers,
    claims,
    events,
    costs,
    definition_views,
    explain,
    facts,
    left_effects,
    step_runs,
    lists,
    mcp,
    messages,
    operators,
    steering,
    patching,
    people,
    places,
    queries,
    recovery,
    travel,
    schedules,
    shared,
    versions,
    views,
)
_ANSWERS: dict[str, Any] = {
    **{
        name: one
        for file in _FILES
        for name, one in vars(file).items()
        if getattr(one, "__module__", "") == file.__name__
    }
}
_REF = "#/components/schemas/"
_JSON, _YAML = "application/json", "application/yaml"
# Statuses that API Gateway itself can answer with, before a function is called or in its place.
_GATEWAYS_OWN = frozenset({401, 403, 413, 429, 500, 503})
_WHY = {
    304: "The client's copy is current (`If-None-Match`).",
    400: "The query, the encoding or the syntax of the request is invalid.",
    401: "The request has no valid credentials.",
    403: "The caller lacks the required role, or is not permitted to perform the action on this saga.",
    404: "The tenant has no such resource.",
    409: "The current state of the resource does not permit the request.",
    410: "The callback or the link is no longer valid. External work can stop.",
    413: "The request or the answer exceeds a size limit. The answer names the limit.",
    422: "The body is invalid. `errors` lists all faults with their locations.",
    429: "The tenant has exceeded its request rate, the user has exhausted the daily budget, or the API "
    "has received too many unsigned requests.",
    500: "Internal error, or a log that this version cannot read.",
    503: "The store did not respond in time. Repeat the request with the same idempotency key.",
}


def describe(config: ApiSettings) -> dict[str, Any]:
    """Return the OpenAPI document of the API with these settings."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, config)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Baton", "version": VERSION, "description": _introduction(config)},
        "paths": paths,
        "components": {
            "schemas": {**_schemas(), "WorkflowDocument": _document()},
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "JWT",
                    "description": "JSON Web Token of the deployment's issuer (AuthMode jwt).",
                },
                "signature": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "x-amazon-apigateway-authtype": "awsSigv4",
                    "description": "AWS Signature Version 4 for the service execute-api (AuthMode iam).",
                },
            },
        },
    }


def _introduction(config: ApiSettings) -> str:
    return (
        "Baton runs long AI-agent workflows (sagas) on short-lived AWS Lambda functions. Times are in RFC 3339 format. "
        "Errors are problem details as defined by RFC 9457.\n\n"
        f"The token's claim `{config.tenant_claim}` identifies the tenant, and its claim `sub` identifies the user. "
        f"The claim `{config.roles_claim}` contains the caller's roles; without it, the roles are "
        f"{config.default_roles}. A caller who signs requests with AWS credentials has all roles.\n\n"
        "The API answers unknown paths with status 404, and unsupported methods with status 405 and the header `Allow`. "
        "It refuses query parameters that are not listed."
    )


def _operation(route: Route[Any], config: ApiSettings) -> dict[str, Any]:
    role = "The token identifies the tenant." if route.by_token else "Requires no credentials."
    if route.roles:
        role = f"Requires the role {' or '.join(f'`{role}`' for role in route.roles)}."
    operation: dict[str, Any] = {
        "operationId": route.id,
        "summary": route.summary,
        "description": role,
        "security": [{"token": []}, {"signature": []}] if route.roles else [],
    }
    parameters = [
        *_parameters("path", route.parameters),
        *_parameters("query", route.query),
        *_headers(route),
    ]
    if parameters:
        operation["parameters"] = parameters
    if route.takes_text or route.body is not None:
        operation["requestBody"] = _body(route, config)
    operation["responses"] = {str(status): _response(route, status) for status in _statuses(route)}
    return operation


def _parameters(place: str, parameters: Iterable[Parameter]) -> list[dict[str, Any]]:
    return [
        {
            "name": parameter.name,
            "in": place,
            "required": place == "path",
            "description": parameter.description,
            "schema": dict(parameter.schema),
            **({"example": parameter.example} if parameter.example is not None else {}),
        }
        for parameter in parameters
    ]


def _headers(route: Route[Any]) -> list[dict[str, Any]]:
    found: list[tuple[str, str, dict[str, Any]]] = []
    if route.method == "GET":
        found.append(("If-None-Match", "ETag of the client's copy.", {"type": "string"}))
    if route.has_key:
        text = "Idempotency key of the request. Baton executes repeated requests with the same key once."
        found.append(("Idempotency-Key", text, {"type": "string", "maxLength": MAX_KEY}))
    return [
        {"name": name, "in": "header", "required": False, "description": text, "schema": schema}
        for name, text, schema in found
    ]


def _body(route: Route[Any], config: ApiSettings) -> dict[str, Any]:
    most = min(route.most_bytes or config.max_body_bytes, config.max_body_bytes)
    described = f"Maximum size: {most} bytes."
    if route.takes_text and not route.roles:
        return {
            "required": True,
            "description": f"Signed body, unmodified. {described}",
            "content": {_JSON: {"schema": {"type": "object"}}},
        }
    if route.takes:
        return {
            "required": True,
            "description": described,
            "content": {kind: {"schema": {"$ref": _REF + model}} for kind, model in route.takes.items()},
        }
    if route.takes_text:
        return {
            "required": True,
            "description": f"A workflow document. {described}",
            "content": {kind: {"schema": {"$ref": f"{_REF}WorkflowDocument"}} for kind in (_JSON, _YAML)},
        }
    assert route.body is not None
    required = any(field.is_required() for field in route.body.model_fields.values())
    return {
        "required": required,
        "description": described,
        "content": {_JSON: {"schema": {"$ref": _REF + route.body.__name__}}},
    }


def _statuses(route: Route[Any]) -> list[int]:
    """Return all statuses of the route: those in its row, and those that its other fields imply."""
    refusals = {400, 429, 500, 503, *route.refusals}
    if route.method == "GET":
        refusals.add(304)
    if route.roles:
        refusals |= {401, 403}
    if route.parameters:
        refusals.add(404)  # no value that does not match can exist
    if route.takes_text or route.body is not None:
        refusals |= {413, 422}
    return sorted([*route.answers, *refusals])


def _response(route: Route[Any], status: int) -> dict[str, Any]:
    response: dict[str, Any]
    if status in route.answers:
        name = route.answers[status]
        response = {
            "description": " ".join((_ANSWERS[name].__doc__ or "").split()),
            "content": {_JSON: {"schema": {"$ref": _REF + name}}},
        }
    else:
        response = {"description": _WHY[status]}
        if status >= HTTPStatus.BAD_REQUEST:
            response["content"] = _refusal(status)
    if headers := _answer_headers(route, status):
        response["headers"] = headers
    if links := _links(route, status):
        response["links"] = links
    return response


def _refusal(status: int) -> dict[str, Any]:
    content = {replies.MEDIA_TYPE: {"schema": {"$ref": f"{_REF}Problem"}}}
    if status in _GATEWAYS_OWN:
        content[_JSON] = {"schema": {"$ref": f"{_REF}GatewayMessage"}}
    return content


def _answer_headers(route: Route[Any], status: int) -> dict[str, Any]:
    if route.method == "GET" and status in (HTTPStatus.OK, HTTPStatus.NOT_MODIFIED):
        return {
            "ETag": _header(
                "Strong entity tag of this body.", {"type": "string", "pattern": '^"[0-9a-f]{32}"$'}
            ),
            "Cache-Control": _header(
                "Clients must revalidate a cached body before use.", {"const": "private, no-cache"}
            ),
        }
    if route.method == "POST" and status in (HTTPStatus.OK, HTTPStatus.CREATED):
        return {"Location": _header("Path of the resource.", {"type": "string", "pattern": "^/"})}
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        described = "Number of seconds to wait. Refusals by API Gateway do not have this header."
        return {"Retry-After": _header(described, {"type": "integer", "minimum": 1}, required=False)}
    return {}


def _header(description: str, schema: Mapping[str, Any], *, required: bool = True) -> dict[str, Any]:
    return {"description": description, "required": required, "schema": dict(schema)}


def _links(route: Route[Any], status: int) -> dict[str, Any]:
    """Return OpenAPI links to the requests that can follow an answer."""
    if status not in (HTTPStatus.OK, HTTPStatus.CREATED) or route.method != "POST":
        return {}
    name, field = ("name", "name") if route.takes_text else ("saga", "id")
    parameter = {name: f"$response.body#/{field}"}
    links = {}
    for other in (other for other in ROUTES if other.path.startswith(f"{route.path}/{{{name}}}")):
        values: dict[str, Any] = dict(parameter)
        if any(known.name == "version" for known in other.parameters):
            values["version"] = "$response.body#/version"
        links[other.id] = {"operationId": other.id, "parameters": values}
    return links


def _schemas() -> dict[str, Any]:
    bodies: dict[str, type[BaseModel]] = {r.body.__name__: r.body for r in ROUTES if r.body is not None}
    names = {name for route in ROUTES for name in route.answers.values()}
    shown = [_ANSWERS[name] for name in sorted({*names, "Problem", "GatewayMessage"})]
    _, made = models_json_schema(
        [
            *((model, "validation") for model in bodies.values()),
            *((_ANSWERS[name], "validation") for route in ROUTES for name in route.takes.values()),
        ],
        ref_template=_REF + "{model}",
    )
    schemas: dict[str, Any] = unwrap_descriptions({**made["$defs"], **_of_structs(shown)})
    return schemas


def _of_structs(views: Sequence[type[View]]) -> dict[str, Any]:
    """Return the schemas of these structs and of all that they contain, with their fields' descriptions."""
    _, schemas = schema_components(views, ref_template=_REF + "{name}")
    for name, schema in schemas.items():
        hints = get_type_hints(_ANSWERS[name], include_extras=True)
        for field in fields(_ANSWERS[name]):
            for text in getattr(hints[field.name], "__metadata__", ()):
                if isinstance(text, str):
                    schema["properties"][field.encode_name]["description"] = text
    return schemas


def _document() -> dict[str, Any]:
    """Return the schema of a workflow document, with references for their place in this document."""
    schema = _rebased(document_schema())
    return {name: value for name, value in schema.items() if name not in ("$id", "$schema")}


def _rebased(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: item.replace("#/$defs/", f"{_REF}WorkflowDocument/$defs/")
            if name == "$ref" and isinstance(item, str)
            else _rebased(item)
            for name, item in value.items()
        }
    return [_rebased(item) for item in value] if isinstance(value, list) else value
