"""The argument and the answer of a handler, and errors as RFC 9457 problems."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from aws_lambda_powertools.event_handler.api_gateway import Response

from baton.errors import Problem, TooManyRequests, UserError
from baton.runtime.requests.queries import Queries
from baton.runtime.requests.service import Service

_TAG = re.compile(r'"[^"]*"')  # the name; the W/ of a weak one stands before it
_CACHE = "private, no-cache"  # keep it, and ask with its ETag before using it


@dataclass(frozen=True, slots=True)
class Reply:
    """A status and an answer: a struct, or a JSON value."""

    status: HTTPStatus
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


def write_reply(reply: Reply) -> Response[str]:
    """Return the reply as a JSON response."""
    text = msgspec.json.encode(reply.body).decode()
    return Response(reply.status.value, "application/json", text, {**reply.headers})


def read_reply(reply: Reply, if_none_match: str) -> Response[str]:
    """Return the reply to a GET with the ETag of its body, and without the body if the caller has it."""
    answer = write_reply(reply)
    body = answer.body or ""
    tag = f'"{hashlib.sha256(body.encode()).hexdigest()[:32]}"'
    answer.headers |= {"ETag": tag, "Cache-Control": _CACHE}
    if not _is_known(tag, if_none_match):
        return answer
    return Response(HTTPStatus.NOT_MODIFIED.value, None, "", {"ETag": tag, "Cache-Control": _CACHE})


def _is_known(tag: str, if_none_match: str) -> bool:
    """Return true if the tag is in the list (RFC 9110, 13.1.2), compared weakly. `*` matches any body."""
    return if_none_match.strip() == "*" or tag in _TAG.findall(if_none_match)


B = TypeVar("B")


class RouteCalls(Protocol):
    """Calls of the API's routes with a caller's identity."""

    @property
    def deadline(self) -> int:
        """Time by which the answer is due, in UTC epoch milliseconds."""
        ...

    @property
    def roles(self) -> frozenset[str]:
        """Roles of the caller."""
        ...

    def row(self, route: str) -> Any:
        """Return the row of a route in the table."""
        ...

    def now(self) -> int:
        """Return UTC epoch milliseconds."""
        ...

    def need(self, any_of: Sequence[str]) -> None:
        """Raise `Forbidden` unless the caller has one of these roles."""
        ...

    async def __call__(
        self,
        route: str,
        path: Mapping[str, str] = ...,
        query: Mapping[str, str] = ...,
        body: Mapping[str, Any] | None = None,
        key: str = "",
    ) -> Any:
        """Return the answer of a route. Raises as its handler does, and `Forbidden` as dispatch does."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask(Generic[B]):
    """Arguments of a handler.

    `path` and `query` are values by name. `body` is the route's model; `text` and `headers` are unchanged.
    `key` is the Idempotency-Key. `intentions` is the workflow for intentions. `calls` gives the calls of
    other routes, on a route with roles.
    """

    service: Service
    reader: Callable[[], Queries]
    path: Mapping[str, Any]
    query: Mapping[str, Any]
    body: B
    text: str
    headers: Mapping[str, str]
    is_json: bool
    key: str
    intentions: str
    describe: Callable[[], dict[str, Any]]
    calls: Callable[[], RouteCalls]

    @property
    def queries(self) -> Queries:
        """Reading use cases for the caller."""
        return self.reader()


MEDIA_TYPE = "application/problem+json"
MAX_ERRORS_BYTES = (
    1_000_000  # far below what Lambda may answer: quotes and backslashes can double, and double again
)


def problem(
    status: int, code: str, title: str, detail: str, problems: tuple[Problem, ...] = ()
) -> Response[str]:
    """Return a problem response with `problems` as its `errors`, as many as an answer can hold."""
    body: dict[str, Any] = {
        "type": f"urn:baton:problem:{code}",
        "title": title,
        "status": status,
        "detail": detail,
    }
    if problems:
        body["errors"] = errors = list(_errors(problems))
        if len(errors) < len(problems):
            body["detail"] += f" (the first {len(errors):,} of {len(problems):,} are listed)"
    return Response(status_code=status, content_type=MEDIA_TYPE, body=json.dumps(body, ensure_ascii=False))


def _errors(problems: Iterable[Problem]) -> Iterator[dict[str, Any]]:
    """Yield at least one error, and further ones up to the size limit."""
    room = MAX_ERRORS_BYTES
    for index, item in enumerate(problems):
        shown = {key: value for key, value in asdict(item).items() if value or key == "path"}
        room -= len(json.dumps(shown, ensure_ascii=False).encode())
        if index and room < 0:
            return
        yield shown


def of_user_error(error: UserError) -> Response[str]:
    """Return the problem document of an error that the caller can correct."""
    answer = problem(error.status, error.code, error.title, error.detail, error.problems)
    if isinstance(error, TooManyRequests):
        answer.headers["Retry-After"] = str(error.retry_after_s)
    return answer


def of_status(status: HTTPStatus, code: str, detail: str) -> Response[str]:
    """Return a problem document with this status, code and detail."""
    return problem(status.value, code, status.phrase, detail)
