"""The API's description in OpenAPI 3.1, made from the table of routes, the bodies and the models of answers.

Imported only when a caller asks for the description.
A fuzzer holds it against the running API (tests/e2e/test_openapi.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from baton.core.documents.schema import document_schema, unwrapped
from baton.core.version import VERSION
from baton.settings import ApiSettings
from baton.web import replies
from baton.web.bodies import answers, events, failures, graphs
from baton.web.bodies.requests import MAX_KEY
from baton.web.parameters import Parameter, Route
from baton.web.routes import ROUTES

# The models of answers by name, for the table of routes names them only: it is read at every cold start.
_ANSWERS = {name: model for file in (answers, events, failures, graphs) for name, model in vars(file).items()}
_REF = "#/components/schemas/"
_JSON, _YAML = "application/json", "application/yaml"
# Statuses that API Gateway itself can answer with, before a function is called or in its place.
_GATEWAYS_OWN = frozenset({401, 403, 413, 429, 500, 503})
_WHY = {
    304: "The caller has this body already (`If-None-Match`).",
    400: "The request cannot be read: its query, its encoding, its syntax.",
    401: "Who is calling is not known.",
    403: "The caller lacks the role, or may not do this to this saga.",
    404: "There is no such thing for this tenant.",
    409: "The present state does not allow it.",
    410: "It is not waited for any more, so the work can stop.",
    413: "Larger than a limit, which the answer names.",
    422: "The body is not as it must be; `errors` lists every fault with its place.",
    429: "The tenant has used up its requests for now, or the user the money of the day; or too many requests were not signed.",
    500: "A defect, or a log that this version cannot read.",
    503: "The store did not answer in time; the same request, with the same key, may be repeated.",
}


def describe(config: ApiSettings) -> dict[str, Any]:
    """The OpenAPI document of the API with these settings."""
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
                    "description": "A token of the deployment's issuer (AuthMode jwt).",
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
        "Long AI-agent workflows on short-lived functions. Times are RFC 3339, errors are problems after RFC 9457.\n\n"
        f"The tenant is the token's claim `{config.tenant_claim}`, the user its `sub`; the roles are in its claim "
        f"`{config.roles_claim}` (without it: {config.default_roles}). A caller who signs with AWS credentials has "
        "all roles.\n\n"
        "An unknown path is answered with 404, a wrong method with 405 and `Allow`. A query parameter that is not "
        "listed is refused."
    )


def _operation(route: Route[Any], config: ApiSettings) -> dict[str, Any]:
    role = "The token says for whom it is." if route.by_token else "Open to everybody."
    if route.roles:
        role = f"Needs the role {' or '.join(f'`{role}`' for role in route.roles)}."
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
        found.append(("If-None-Match", "The ETag of a body that the caller has.", {"type": "string"}))
    if route.has_key:
        text = "A name for this request: repeated with it, the request is carried out once."
        found.append(("Idempotency-Key", text, {"type": "string", "maxLength": MAX_KEY}))
    return [
        {"name": name, "in": "header", "required": False, "description": text, "schema": schema}
        for name, text, schema in found
    ]


def _body(route: Route[Any], config: ApiSettings) -> dict[str, Any]:
    most = min(route.most_bytes or config.max_body_bytes, config.max_body_bytes)
    described = f"At most {most} bytes."
    if route.takes_text and not route.roles:
        return {
            "required": True,
            "description": f"What was signed, as it is. {described}",
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
    """Every status that can come: those of the row, and those that follow from the rest of it."""
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
                "Names this very body; strong.", {"type": "string", "pattern": '^"[0-9a-f]{32}"$'}
            ),
            "Cache-Control": _header("Ask before using a kept body.", {"const": "private, no-cache"}),
        }
    if route.method == "POST" and status in (HTTPStatus.OK, HTTPStatus.CREATED):
        return {"Location": _header("Where it is.", {"type": "string", "pattern": "^/"})}
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        described = "Seconds to wait. API Gateway's own refusals have none."
        return {"Retry-After": _header(described, {"type": "integer", "minimum": 1}, required=False)}
    return {}


def _header(description: str, schema: Mapping[str, Any], *, required: bool = True) -> dict[str, Any]:
    return {"description": description, "required": required, "schema": dict(schema)}


def _links(route: Route[Any], status: int) -> dict[str, Any]:
    """Links to the requests that can follow an answer, for programs that follow links."""
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
    shown: list[type[BaseModel]] = [_ANSWERS[name] for name in sorted(names)]
    shown += [answers.Problem, answers.GatewayMessage]
    _, made = models_json_schema(
        [
            *((model, "validation") for model in bodies.values()),
            *((_ANSWERS[name], "validation") for route in ROUTES for name in route.takes.values()),
            *((model, "serialization") for model in shown),
        ],
        ref_template=_REF + "{model}",
    )
    schemas: dict[str, Any] = unwrapped(made["$defs"])
    return schemas


def _document() -> dict[str, Any]:
    """The schema of a workflow document, with its references leading to where it stands here."""
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
