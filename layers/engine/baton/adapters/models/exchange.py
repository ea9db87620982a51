"""One exchange with a provider by the `openai` client, which only this file imports.

Answers are streams of bounded size; deployed.py bounds their time. Requests are held to one origin and a few
headers below the client, whatever the client adds or follows, and are signed there for AWS.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

import httpx2
import openai

from baton.adapters.models.answers import AnswerCollector, error_in, parts_of, redact_credential, words_of
from baton.adapters.models.dialects import DIALECTS, Adaptation, adaptation_for, body_in
from baton.adapters.models.profiles import BEDROCK, Profile
from baton.core.failures import quoted
from baton.core.failures.evidence import evidence_of
from baton.core.failures.names import code_of_status
from baton.core.version import VERSION
from baton.errors import Unauthenticated
from baton.ports import StepFailure
from baton.ports.models import Draft, ModelAnswer

_TOLD: Final = 500
_TOO_LONG: Final = re.compile(
    r"context.?(length|window|size|limit)|(prompt|input) length|too many (input |total )?tokens|reduce the length"
    r"|exceed.{0,20}token limit"
    r"|\b(prompt|inputs?)\b.{0,40}(too long|too large|exceed|longer than|must )",
    re.IGNORECASE,
)
"""A request that the model cannot read whole, in the words of many servers."""
_PER_MINUTE: Final = re.compile(r"per.?min|\bTPM\b|rate.?limit", re.IGNORECASE)
_DECIDES: Final = frozenset({401, 403, 408, 429})
"""Statuses, besides those from 500 on, that say more than a code which many refusals share."""
_GENERIC: Final = frozenset(
    {"bad_request", "invalid_input", "client_error", "server_error", "tool_error", "unknown"}
)
_PAYMENT_REQUIRED, _FORBIDDEN, _NOT_FOUND, _TOO_LARGE = 402, 403, 404, 413
_OWN_FAULT: Final = 500
_NO_FORM: Final = frozenset({400, 403, 422})  # by these a server refuses the form of a request
_NO_MODEL: Final = re.compile("model identifier is invalid|inference profile", re.IGNORECASE)
_ERROR_TYPE: Final = "x-amzn-errortype"


def provider_failure(error: Exception, profile: Profile, model: str, credential: str) -> StepFailure:
    """Return the provider's error as a failure, without the credential, whatever the provider has quoted."""
    host = profile.host
    if isinstance(error.__cause__, StepFailure):  # of the transport; the client wraps it
        return error.__cause__
    if isinstance(error, openai.APITimeoutError):
        return StepFailure("timeout", f"{host} did not take the connection in time")
    if isinstance(error, openai.APIConnectionError | httpx2.TransportError):
        cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
        why = _clean(str(cause or ""), credential) or type(cause or error).__name__
        return StepFailure("connection_failed", f"{host}: {why}")
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError | httpx2.HTTPError | RecursionError):
        return StepFailure("invalid_response", f"the answer of {host} cannot be read")
    if isinstance(error, openai.APIError):
        error.body = _unwrapped(error)
    evidence = evidence_of(error)
    status = evidence.status or _number(error)
    said = _clean(_said(error), credential)
    code = _code(error, evidence.verdict().code, status, said)
    if code == "unauthorized":  # without what the provider says: it quotes the credential
        said = "it does not accept the credential of the profile"
    answered = f"{host} answered {status}" if status else f"{host} broke off"
    named = f" for the model `{model}`" if code == "model_unavailable" else ""
    return StepFailure(
        code,
        f"{answered}{named}{f': {said}' if said else ''}{_about(profile, status, code)}",
        status=status,
        retry_after=evidence.retry_after,
    )


def _unwrapped(error: openai.APIError) -> Any:
    """Return the body of an error out of its list, with the type that AWS says beside it."""
    body: Any = error.body
    while isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, Mapping) and isinstance(body.get("error"), Mapping):
        body = body["error"]
    if isinstance(error, openai.APIStatusError) and (said := error.response.headers.get(_ERROR_TYPE)):
        body = {**(body if isinstance(body, Mapping) else {}), "code": said.partition(":")[0]}
    return body


def _about(profile: Profile, status: int, code: str) -> str:
    """Return a hint about what the operator can change."""
    if profile.dialect == BEDROCK and status == _FORBIDDEN:
        return " (set `BedrockModels` so that the worker may ask it, and see that the account has access to the model)"
    if profile.dialect == BEDROCK and code == "model_unavailable":
        return f" (it was asked in {profile.region}; some models are asked there by an inference profile, as `eu.…`)"
    if status != _NOT_FOUND or profile.has_path or profile.dialect:
        return ""
    return f" (the address of the profile `{profile.name}` has no path, and that of most providers ends with `/v1`)"


def _code(error: Exception, known: str, status: int, said: str) -> str:
    if status == _NOT_FOUND or (status < _OWN_FAULT and _NO_MODEL.search(said)):
        return "model_unavailable"
    if status == _PAYMENT_REQUIRED:
        return "quota_exceeded"
    if known == "rate_limited" or (status == _TOO_LARGE and _PER_MINUTE.search(said)):
        return "rate_limited"  # of a minute, also where it says that the request is too large for it
    if status == _TOO_LARGE or (known in _GENERIC and status not in _DECIDES and _TOO_LONG.search(said)):
        return "context_exceeded"
    if isinstance(error, openai.APIStatusError) and 300 <= status < 400:
        return "resource_moved"  # redirects are not followed: a credential is for one host
    if known in _GENERIC and (status in _DECIDES or status >= _OWN_FAULT):
        return code_of_status(status)
    if known in ("unknown", "tool_error"):  # an error inside of an answer that had begun
        return code_of_status(status) or "server_error"
    return known


def _number(error: Exception) -> int:
    """Return a status that stands in the place of a code, as some providers send it inside of an answer."""
    body: Any = getattr(error, "body", None)
    inner = body if isinstance(body, Mapping) else {}
    for found in (
        getattr(error, "code", None),
        *(inner.get(name) for name in ("code", "status", "status_code")),
    ):
        text = str(found)
        if len(text) == 3 and text.isdecimal() and 400 <= int(text) <= 599:
            return int(text)
    return 0


def _said(error: Exception) -> str:
    text = words_of(getattr(error, "body", None))
    return text or ("" if isinstance(error, openai.APIStatusError) else str(error))


def _clean(text: str, credential: str) -> str:
    if credential:
        text = text.replace(credential, "[redacted]")
    return " ".join(quoted(text, _TOLD).split())


_CONNECT_S: Final = 5.0
# As for std.http: a process that was frozen for minutes must not send into a connection that is long closed.
_IDLE_S: Final = 2.0
_CONNECTIONS: Final = 1_000  # agents of a worker that ask at a time; the worker's own limits are lower
_MOST_BYTES: Final = (
    64 * 1_048_576
)  # of a stream: each word of an answer comes in an envelope of some hundred bytes
_SENT: Final = frozenset(
    {
        "accept",
        "anthropic-version",
        "authorization",
        "content-length",
        "content-type",
        "host",
        "idempotency-key",
        "transfer-encoding",
        "x-api-key",
    }
)
_LOST: Final = (httpx2.ReadError, httpx2.ReadTimeout, httpx2.RemoteProtocolError)  # after all was sent
_UNCERTAIN: Final = frozenset({"connection_failed", "invalid_response"})
_DRAIN_S: Final = 0.05  # for the end of an answer that is whole, so that its connection can be used again
_USER_AGENT: Final = f"Baton/{VERSION}"


# They write a line for each request, and one of them, where it may, the whole request.
for _name in ("openai", "httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.WARNING)


class Exchange:
    """Client of the providers. Connections belong to an event loop: a new one has new ones."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._clients: dict[str, openai.AsyncOpenAI] = {}
        self._learned: dict[tuple[str, str], list[Adaptation]] = {}

    async def ask(
        self,
        profile: Profile,
        credential: str,
        chat: Mapping[str, Any],
        key: str,
        draft: Draft | None = None,
        most_input: int = 0,
    ) -> ModelAnswer:
        """Send one request; the text can be read off the `draft` meanwhile.

        `chat`: body of the chat completions API. A request whose form the server refuses is sent in the other
        form: nothing was billed. Raises `StepFailure`; status 401 means that the credential was refused.
        """
        learned = self._learned.setdefault((profile.name, chat["model"]), [])
        known = [*learned]  # others may learn meanwhile
        while True:
            body = body_in(profile.dialect, chat, known)
            collected = AnswerCollector(profile.host, chat, most_input, profile.name)
            if draft is not None:
                draft.read = partial(_drafted, collected, credential)
            try:
                return await self._ask(profile, credential, body, key, collected)
            except StepFailure as failure:
                refused = failure.status in _NO_FORM and not failure.happened
                other = adaptation_for(failure.message, profile.dialect, chat, known) if refused else None
                if other is None:
                    failure.message += _media_hint(failure, chat)
                    raise
            known.append(other)
            learned += [] if other in learned else [other]
            key = f"{key}/{len(known)}" if key else ""

    async def _ask(
        self,
        profile: Profile,
        credential: str,
        body: Mapping[str, Any],
        key: str,
        collected: AnswerCollector,
    ) -> ModelAnswer:
        dialect, model, retry = DIALECTS[profile.dialect], collected.model, ""
        try:
            stream = await self._client(profile).post(
                dialect.path(model),
                body=body,
                options={"headers": _headers(profile, credential, key)},
                cast_to=object,
                stream=True,
                stream_cls=openai.AsyncStream[object],
            )
            async with stream:
                response = stream.response
                retry = response.headers.get("retry-after", "")[:100]
                chunks = response.aiter_bytes()
                async for part in parts_of(chunks, profile.host, response.headers.get("content-type", "")):
                    for one in dialect.parts(part):
                        if (said := error_in(one)) is None:
                            collected.take(one)
                        elif not collected.is_whole:  # what is wrong behind the answer does not take it back
                            raise openai.APIError(str(said["message"]), response.request, body=said)
                with suppress(TimeoutError, httpx2.HTTPError, StepFailure):
                    async with asyncio.timeout(_DRAIN_S):
                        async for _ in chunks:
                            pass
        except (openai.OpenAIError, httpx2.HTTPError, ValueError, RecursionError) as error:
            failure = provider_failure(error, profile, model, credential)
            failure.retry_after = failure.retry_after or retry
            # An answer that breaks off is billed, and so may be one that the provider was about to give.
            cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
            failure.happened = collected.has_begun or bool(failure.happened) or isinstance(cause, _LOST)
            raise failure from None
        return collected.answer()

    async def call(
        self,
        profile: Profile,
        credential: str,
        place: str,
        model: str,
        body: Mapping[str, Any] | None,
        key: str = "",
    ) -> Any:
        """Return the JSON answer of the profile's address `place`: to a `body` sent there, or to a read
        without one.

        Raises `StepFailure`; `happened` means that the provider may have received the request.
        """
        options: Any = {"headers": _headers(profile, credential, key)}
        provider = self._client(profile)
        try:
            if body is None:
                return await provider.get(place, options=options, cast_to=object)
            return await provider.post(place, body=body, options=options, cast_to=object)
        except (openai.OpenAIError, httpx2.HTTPError, ValueError, RecursionError) as error:
            failure = provider_failure(error, profile, model, credential)
            reached = not isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout)
            failure.happened = (failure.code in _UNCERTAIN and reached) or None
            raise failure from None

    async def aclose(self) -> None:
        """Close this event loop's connections. A process that lives no longer than its loop need not."""
        if self._loop is asyncio.get_running_loop():
            for opened in self._clients.values():
                await opened.close()
            self._loop = None

    def _client(self, profile: Profile) -> openai.AsyncOpenAI:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._clients = loop, {}
        if profile.name not in self._clients:
            self._clients[profile.name] = openai.AsyncOpenAI(
                # In place of what the client would look for in the environment; the credential is in each request's header.
                api_key="-",
                organization="",
                project="",
                webhook_secret="",
                base_url=profile.url,
                max_retries=0,
                timeout=httpx2.Timeout(None, connect=_CONNECT_S),
                http_client=httpx2.AsyncClient(
                    transport=_Held(profile.url, _signer(profile)),
                    # Nothing of the environment: neither a proxy nor certificates that it names.
                    trust_env=False,
                    follow_redirects=False,
                ),
            )
        return self._clients[profile.name]


_MEDIA: Final = re.compile("image|vision|multi-?modal|document|file|pdf|content", re.IGNORECASE)
_CLIENT: Final = range(400, 500)


def _media_hint(failure: StepFailure, chat: Mapping[str, Any]) -> str:
    """Return what the author can change about a refusal, where the prompt has an image or a file."""
    has_media = any(isinstance(one.get("content"), list) for one in chat["messages"])
    if not has_media or failure.status not in _CLIENT or not _MEDIA.search(failure.message):
        return ""
    return " (the prompt has an image or a file: ask a model, and a provider, that take it)"


def _headers(profile: Profile, credential: str, key: str) -> dict[str, Any]:
    own = DIALECTS[profile.dialect].headers(credential)
    named = {"Idempotency-Key": key} if key else {}
    return {"Authorization": openai.Omit(), **own, **named}


def _drafted(collected: AnswerCollector, credential: str) -> str:
    return str(redact_credential(collected.text(), credential))


Sign = Callable[[str, str, Mapping[str, str], bytes], dict[str, str]]


def _signer(profile: Profile) -> Sign | None:
    """Return the signature of the function's role, for a provider that knows it."""
    if profile.dialect != BEDROCK:
        return None
    from baton.adapters.aws_signer import Signer

    try:
        return Signer(profile.region, BEDROCK)
    except Unauthenticated as error:
        raise StepFailure("missing_credentials", f"{profile.host}: {error}", unsent=True) from error


_TLS: Final = httpx2.create_ssl_context()
"""Made by the import, which runs in a thread: the certificates of all authorities take some 0.1 s."""


class _Held(httpx2.AsyncHTTPTransport):
    """httpx2's own transport, held to one origin, to the headers that are meant, and to answers that end."""

    def __init__(self, url: str, sign: Sign | None = None) -> None:
        limits = httpx2.Limits(
            max_connections=_CONNECTIONS, max_keepalive_connections=20, keepalive_expiry=_IDLE_S
        )
        super().__init__(verify=_TLS, trust_env=False, limits=limits)
        self._origin = _origin(httpx2.URL(url))
        self._sign = sign

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if _origin(request.url) != self._origin:
            raise StepFailure("permission_denied", "a credential is sent to the host of its profile only")
        for name in list(request.headers):
            if name.lower() not in _SENT:
                del request.headers[name]
        request.headers["user-agent"] = _USER_AGENT
        request.headers["accept-encoding"] = "identity"
        if self._sign is not None and "authorization" not in request.headers:
            signed = self._sign(
                request.method, str(request.url), dict(request.headers), await request.aread()
            )
            request.headers.update(signed)
        answer = await super().handle_async_request(request)
        if answer.headers.get("content-encoding", "identity") != "identity":
            await answer.aclose()
            raise StepFailure(
                "invalid_response", f"{request.url.host} answers compressed, which was not asked for"
            )
        answer.stream = _Bounded(answer.stream, request.url.host)
        return answer


class _Bounded(httpx2.AsyncByteStream):
    """Bounded body of an answer. Raises `StepFailure` above the bound."""

    def __init__(self, inner: Any, host: str) -> None:
        self._inner, self._left, self._host = inner, _MOST_BYTES, host

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            self._left -= len(part)
            if self._left < 0:
                raise StepFailure("result_too_large", f"the answer of {self._host} does not end")
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}[url.scheme]
