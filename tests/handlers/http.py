"""Requests to the api function, made from the payloads in events/ so that their shape is API Gateway's.

Calling and reading; what must hold is in the tests.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import Any

from tests.handlers.deployment import Context, payload

PROBLEM = "application/problem+json"
ALL_ROLES = "[read run answer operate]"  # as API Gateway hands a claim on that is a list
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Answer:
    """`body` is parsed; `headers` have names in lower case."""

    status: int
    body: Any
    headers: dict[str, str]

    def problem(self, status: int, code: str) -> dict[str, Any]:
        """The document of a problem, which must be one of RFC 9457 with this status and code."""
        assert self.status == status, self
        assert self.headers["content-type"] == PROBLEM
        document: dict[str, Any] = self.body
        assert {"type", "title", "status", "detail"} <= set(document)
        assert (document["type"], document["status"]) == (f"urn:baton:problem:{code}", status)
        assert all(isinstance(document[key], str) and document[key] for key in ("title", "detail"))
        return document


class Http:
    """`module` is the imported functions/api/app.py. The caller is Ada of Acme unless told otherwise."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.engine = module._api._engine

    def send(self, event: dict[str, Any], milliseconds: int = 15_000) -> Answer:
        """Call the handler with an event."""
        answer = self.module.handler(event, Context(milliseconds))
        headers = {name.lower(): str(value) for name, value in answer["headers"].items()}
        assert not answer.get("isBase64Encoded")
        json.dumps(answer)  # Lambda's answer must be JSON
        body = json.loads(answer["body"]) if answer["body"] else None
        return Answer(answer["statusCode"], body, headers)

    def event(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        tenant: str = "acme",
        user: str = "ada",
        roles: str | None = ALL_ROLES,
        key: str = "",
    ) -> dict[str, Any]:
        """A request's event. A body that is no text is sent as JSON; with `roles` None there is no such claim."""
        event = payload("api", "start") | {"rawPath": path}
        event["requestContext"]["http"] |= {"method": method, "path": path}
        event["requestContext"]["requestId"] = f"http-{next(_numbers)}"
        claims = event["requestContext"]["authorizer"]["jwt"]["claims"]
        claims |= {"tenant": tenant, "sub": user, "roles": roles}
        if roles is None:
            del claims["roles"]
        del event["headers"]["idempotency-key"], event["body"]
        event["headers"] |= headers or {}
        if key:
            event["headers"]["idempotency-key"] = key
        if query:
            event["queryStringParameters"] = query
            event["rawQueryString"] = "&".join(f"{name}={value}" for name, value in query.items())
        if body is not None:
            event["body"] = body if isinstance(body, str) else json.dumps(body)
        return event

    def get(self, path: str, **options: Any) -> Answer:
        return self.send(self.event("GET", path, **options))

    def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        return self.send(self.event("POST", path, body, **options))

    def register(self, document: str, **options: Any) -> dict[str, Any]:
        """Register a workflow; what was answered."""
        answer = self.post("/workflows", document, headers={"content-type": "application/yaml"}, **options)
        assert answer.status in (200, 201), answer
        registered: dict[str, Any] = answer.body
        return registered

    def start(self, workflow: str, given: Any = None, **options: Any) -> str:
        """Start a saga; its id."""
        answer = self.post("/sagas", {"workflow": workflow, "input": given}, **options)
        assert answer.status in (200, 201), answer
        return str(answer.body["id"])
