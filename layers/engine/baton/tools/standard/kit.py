"""Resources of the standard tools: ports, the deployment's settings, and the rest of a step's time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any, Final, ParamSpec, TypeVar, cast

import msgspec

from baton.core.expressions import parse_duration
from baton.core.failures.evidence import Evidence
from baton.ports import Clock, Offload, StepContext, StepFailure
from baton.ports.models import Embedder
from baton.ports.outside import (
    Credentials,
    Entities,
    Facts,
    HttpAnswer,
    HttpClient,
    HttpRequest,
    Mailer,
    Objects,
)
from baton.tools import define
from baton.tools.define import F, Registry, Tool
from baton.tools.openapi.description import Apis

P = ParamSpec("P")
T = TypeVar("T")

# So much before the engine's own end of the step, so that a slow service is reported by name.
EARLIER_MS = 50
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_HIDDEN: Final = "[redacted]"
_ESCAPED: Final = re.compile(rb"\\(?:\\|u00([2-6][0-9A-Fa-f]|7[0-9A-Ea-e]))")

_DECLARED: Final[dict[CodeType, Tool]] = {}


def standard_tool(name: str, *, registry: Registry, **options: Any) -> Callable[[F], F]:
    """Declare a standard tool as `define.tool` does; its schemas are made once in a process.

    Each deployment in a process declares the tools anew, with its own services.
    """

    def declare(function: F) -> F:
        code = function.__code__
        if code not in _DECLARED:
            alone = Registry()
            define.tool(name, registry=alone, **options)(function)
            _DECLARED[code] = alone[name]
        registry.add(replace(_DECLARED[code], function=function, shared=registry.raised))
        return function

    return declare


class _Nowhere:
    """Stands for `Services` and parts of them where tools are only known and never run."""

    def __getattr__(self, name: str) -> Any:
        raise StepFailure("tool_missing", "the standard tools are only declared here: nothing runs them")


NO_APIS: Final = Apis()
NO_CREDENTIALS: Final = cast("Credentials", _Nowhere())
NO_FACTS: Final = cast("Facts", _Nowhere())
NO_MODELS: Final = cast("Embedder", _Nowhere())


@dataclass(frozen=True, kw_only=True)
class Services:
    """Services of a process.

    `mail_from`, `payments_url`, `signing_key` and `embedding_model` may be empty: then their tools report the
    missing setting.
    The credentials are those of `apis`, and are read only for a deployment with an API.
    """

    http: HttpClient
    entities: Entities
    objects: Objects
    mailer: Mailer
    clock: Clock
    offload: Offload
    most_bytes: int = 5_242_880
    mail_from: str = ""
    payments_url: str = ""
    signing_key: str = ""
    facts: Facts = NO_FACTS
    embedder: Embedder = NO_MODELS
    embedding_model: str = ""
    apis: Apis = NO_APIS
    credentials: Credentials = NO_CREDENTIALS

    async def stored(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a synchronous port off the event loop."""
        return await self.offload(function, *args, **kwargs)


NOWHERE: Final = cast("Services", _Nowhere())


def milliseconds(timeout: str | float | None) -> int | None:
    """Return a duration as milliseconds. Raises `StepFailure`."""
    try:
        return None if timeout is None else parse_duration(timeout)
    except ValueError as error:
        raise StepFailure("input_invalid", f"timeout: {error}") from error


def left_ms(services: Services, context: StepContext, longest: int | None = None) -> int:
    """Return the ms that an exchange may take: to the end of the step, or less. Raises `StepFailure`."""
    left = context.deadline_ms - services.clock.now() - EARLIER_MS
    if left <= 0:
        raise StepFailure("timeout", "there was no time left to ask", unsent=True)
    return left if longest is None else min(left, longest)


async def exchange(
    services: Services,
    context: StepContext,
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes = b"",
    key: str = "",
    longest: int | None = None,
    named: bool = False,
) -> HttpAnswer:
    """Send one request with the idempotency key and the trace of its step. Raises `StepFailure`."""
    given = {name.lower(): value for name, value in headers.items()}
    if key:
        given.setdefault("idempotency-key", key)
    if context.traceparent:
        given.setdefault("traceparent", context.traceparent)
    within = left_ms(services, context, longest)
    request = HttpRequest(
        method=method,
        url=url,
        headers=given,
        body=body,
        within_ms=within,
        most=services.most_bytes,
        named=named,
    )
    return await services.http.send(request)


def response_failure(host: str, answer: HttpAnswer, code: str = "") -> StepFailure:
    """Return the failure for a status from 300 on: its code by what the service says, else by that."""
    body = read_json(answer.body)
    evidence = Evidence(services=tuple(_codes(body)), status=answer.status)
    verdict = evidence.verdict(code)
    said = _detail(body) or answer.body[:300].decode(errors="replace").strip()
    message = f"{host} answered {answer.status}{f': {said}' if said else ''}"
    return StepFailure(
        verdict.code, message, status=answer.status, retry_after=answer.headers.get("retry-after", "")[:100]
    )


def read_json(body: bytes) -> Any:
    """Return the JSON in the body, or None."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def redacted(answer: HttpAnswer, texts: Iterable[str]) -> HttpAnswer:
    """Return the answer of a service without texts that it was sent and repeats."""
    body, headers, secrets = answer.body, dict(answer.headers), [*texts]
    if b"\\u00" in body:  # some writers of JSON escape a `+`
        plain = _ESCAPED.sub(_unescaped, body)
        body = plain if any(secret.encode() in plain for secret in secrets) else body
    for secret in secrets:
        body = body.replace(secret.encode(), _HIDDEN.encode())
        headers = {name: value.replace(secret, _HIDDEN) for name, value in headers.items()}
    return msgspec.structs.replace(answer, body=body, headers=headers)


def _unescaped(found: re.Match[bytes]) -> bytes:
    character = bytes([int(found[1], 16)]) if found[1] else b"\\"
    return found[0] if character in b'\\"' else character


def _codes(body: Any) -> list[str]:
    """Return the codes that services set: at the top, or in an object `error`."""
    if not isinstance(body, dict):
        return []
    inner = body.get("error")
    places = [body, inner if isinstance(inner, dict) else {}]
    return [place[name] for place in places for name in ("code", "type") if isinstance(place.get(name), str)]


def _detail(body: Any) -> str:
    """Return the text for a person of a problem document (RFC 9457), or of a similar body."""
    if not isinstance(body, dict):
        return ""
    inner = body.get("error")
    places = [body, inner if isinstance(inner, dict) else {"message": inner}]
    found = [place.get(name) for place in places for name in ("title", "detail", "message")]
    return ": ".join(dict.fromkeys(text for text in found if isinstance(text, str) and text))[:500]
