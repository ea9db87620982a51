"""An API on loopback with its description, as a deployment names it: what the tests of `std.openapi` share.

No assertions here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from baton.adapters.clock import SystemClock
from baton.adapters.credentials import Credentials
from baton.tools.openapi.description import Apis
from baton.tools.standard import Services
from tests.tools.outside import THREADS, Outside, failure, perform, services

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


def with_schema(schema: Any, **components: Any) -> dict[str, Any]:
    """A description whose operation takes one argument of this schema."""
    said = [{"name": "p", "in": "query", "schema": schema}]
    paths = {"/x": {"get": {"operationId": "forecast", "parameters": said}}}
    return changed(paths=paths, components={"schemas": components})


class Shifted:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.by = 0

    def now(self) -> int:
        return SystemClock().now() + self.by
