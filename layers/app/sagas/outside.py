"""Calls to external services: address, deadline, idempotency key, trace, and readable failures."""

import asyncio
import os
import ssl
import time
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from baton import Context, StepFailure

Model = TypeVar("Model", bound=BaseModel)

# Under the tools' own timeout, so that a slow service is reported as such and by name.
TOTAL_S = 4.5

NOT_BEGUN = 503
"""Status with which the services refuse a request before they begin it. It had no effect, so no person needs
to be asked.
"""
REFUSED = frozenset({400, 403, 404, 410, 422})
"""Statuses with which the services refuse a request after they have looked up its key. No earlier call with
that key had an effect.
"""

_shared: tuple[asyncio.AbstractEventLoop, httpx.AsyncClient] | None = None


class OutsideError(Exception):
    """Error of a service that refused or could not be reached.

    The message names the service, the reason and the answer. The engine reads status and `Retry-After` from
    `response`, and the fault from the cause.
    """

    def __init__(self, message: str, response: httpx.Response | None = None) -> None:
        super().__init__(message)
        self.response = response


async def call(
    context: Context,
    service: str,
    method: str,
    path: str,
    *,
    body: Mapping[str, Any] | None = None,
    query: Mapping[str, Any] | None = None,
    part: str = "",
) -> Any:
    """Call a service and return its answer as parsed JSON.

    `service` names the variable with its address: `table-stack` is `TABLE_STACK_URL`. The whole call,
    connection and body included, has TOTAL_S seconds, or less if the step has less. A step with several calls
    names each `part`, so that each has a key of its own.

    Raises: OutsideError, and StepFailure for an answer that is not JSON, or whose status is NOT_BEGUN.
    """
    total_s = min(TOTAL_S, context.deadline_ms / 1000 - time.time())
    headers = {"Idempotency-Key": context.idempotency_key + (f"/{part}" if part else "")}
    if context.traceparent:
        headers["traceparent"] = context.traceparent
    url = _address(service) + path
    try:
        async with asyncio.timeout(total_s):
            answer = await _client().request(
                method, url, json=body, params=query, headers=headers, timeout=total_s
            )
    except TimeoutError as error:
        raise OutsideError(f"{service} did not answer {method} {path} in {total_s:.1f} s") from error
    except httpx.TransportError as error:
        reason = str(error) or type(error).__name__
        raise OutsideError(f"{service} could not be reached: {reason}") from error
    if answer.is_success:
        try:
            return answer.json()
        except ValueError as error:
            raise _strange(service, method, path, "what is not JSON") from error
    text = f"{service} answered {answer.status_code}: {_detail(answer)}"
    if answer.status_code == NOT_BEGUN:
        wait = answer.headers.get("retry-after", "")
        raise StepFailure("service_unavailable", text, status=NOT_BEGUN, retry_after=wait, happened=False)
    if answer.status_code in REFUSED:
        raise StepFailure("", text, status=answer.status_code, happened=False)
    raise OutsideError(text, answer)


def read(model: type[Model], answer: Any, service: str, **more: Any) -> Model:
    """Return the answer of a service as the model, with the fields in `more` added.

    An invalid answer is retryable: the next one may be valid. Raises: StepFailure.
    """
    try:
        return model.model_validate({**answer, **more})
    except (TypeError, ValidationError) as error:
        raise _strange(service, "", "", f"no {model.__name__}") from error


def _strange(service: str, method: str, path: str, what: str) -> StepFailure:
    where = f" {method} {path}" if path else ""
    return StepFailure("invalid_response", f"{service} answered{where} with {what}", happened=True)


def _address(service: str) -> str:
    variable = service.upper().replace("-", "_") + "_URL"
    address = os.environ.get(variable, "").rstrip("/")
    if not address:
        raise OutsideError(f"{service} has no address: the environment has no {variable}")
    return address


def _client() -> httpx.AsyncClient:
    """Return the client of this process. Connections belong to an event loop, so a new loop gets a new
    client.
    """
    global _shared
    loop = asyncio.get_running_loop()
    if _shared is None or _shared[0] is not loop:
        # Idle connections are given up early: a process that was frozen for minutes must not send
        # its next request into one that the other side has long closed.
        limits = httpx.Limits(max_connections=100, keepalive_expiry=2)
        transport = httpx.AsyncHTTPTransport(retries=1, limits=limits, verify=_certificates())
        _shared = (loop, httpx.AsyncClient(transport=transport))
    return _shared[1]


@cache
def _certificates() -> ssl.SSLContext:
    """Return the machine's certificates. To read them takes longer than most requests."""
    return httpx.create_ssl_context()


def _detail(answer: httpx.Response) -> str:
    try:
        problem = answer.json()
    except ValueError:
        return answer.text[:300] or answer.reason_phrase
    if isinstance(problem, dict) and "title" in problem:
        return f"{problem['title']}: {problem.get('detail', '')}"
    return str(problem)[:300]
