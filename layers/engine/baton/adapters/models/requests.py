"""Requests for models and background responses in their providers' forms. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Annotated, Any, Final

import msgspec

from baton.adapters.models.answers import UsageCounts
from baton.adapters.models.dialects import NEW_LIMIT, OLD_LIMIT, THINKING, effort_of
from baton.adapters.models.profiles import Profile
from baton.core.models.usage import Usage
from baton.ports.models import (
    CALLS,
    LENGTH,
    STOP,
    Embedding,
    ModelAnswer,
    ModelCall,
    ModelFailure,
    ModelRequest,
)

# Of JSON Schema, what providers enforce while they write (OpenAI's guide to structured outputs).
_ENFORCED: Final = frozenset({
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "description", "title",
    "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
})  # fmt: skip


_TAKES_THE_NEW: Final = re.compile(r"(^|\.)(openai\.com|openai\.azure\.com|services\.ai\.azure\.com)$").search


def body_of(request: ModelRequest, model: str, profile: Profile) -> dict[str, Any]:
    """Return the body. What the requests of one conversation share comes first, byte for byte."""
    body: dict[str, Any] = {"model": model, "stream": True, "stream_options": {"include_usage": True}}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in request.tools
        ]
    if request.schema is not None:
        answer = {"name": "answer", "schema": request.schema, "strict": is_enforced(request.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": answer}
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.thinking is not None:
        body[THINKING] = request.thinking
    if request.most_output:
        body[NEW_LIMIT if _TAKES_THE_NEW(profile.host) else OLD_LIMIT] = request.most_output
    body["messages"] = [_echoed(message, profile.name) for message in request.messages]
    return body


def _echoed(message: Mapping[str, Any], profile: str) -> Mapping[str, Any]:
    """Return a message with what its provider wants to have back, and without what another one does."""
    if (echo := message.get("echo")) is None:
        return message
    plain = {name: value for name, value in message.items() if name != "echo"}
    if echo["profile"] != profile:
        return plain
    calls = [
        {**call, **({"extra_content": echo["calls"][str(number)]} if str(number) in echo["calls"] else {})}
        for number, call in enumerate(plain.get("tool_calls", ()))
    ]
    return {**plain, **echo["message"], **({"tool_calls": calls} if calls else {})}


def is_enforced(schema: Any, depth: int = 0) -> bool:
    """Return true if providers take this schema as a rule and not only as a hint: they refuse the others.

    An object at the top, in each object every property required and no other allowed, and only the keywords
    above.
    """
    if not isinstance(schema, dict) or not schema.keys() <= _ENFORCED or depth > 5:
        return False
    is_object = "properties" in schema or schema.get("type") == "object"
    if depth == 0 and schema.get("type") != "object":
        return False
    properties = schema.get("properties", {})
    if is_object and (
        schema.get("additionalProperties") is not False
        or not isinstance(properties, dict)
        or set(properties) != set(schema.get("required", ()))
    ):
        return False
    inner = [*properties.values(), *schema.get("anyOf", ())]
    if "items" in schema:
        inner.append(schema["items"])
    return all(is_enforced(one, depth + 1) for one in inner)


IS_ID: Final = re.compile("[A-Za-z0-9_-]{1,200}").fullmatch
_MARK: Final = "baton"  # the key of what a request carries; behind the first part, numbered ones
_MOST_VALUE, _MOST_PARTS = 512, 8  # characters of a value of the metadata, and values
_UNDER_WAY: Final = frozenset({"queued", "in_progress"})
_FAILURES: Final = {"rate_limit_exceeded": "rate_limited", "context_length_exceeded": "context_exceeded"}


class _Content(msgspec.Struct):
    type: str = ""
    text: str | None = None
    refusal: str | None = None


class _Item(msgspec.Struct):
    type: str = ""
    content: list[_Content] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None


class _Why(msgspec.Struct):
    code: str | None = None
    message: str | None = None
    reason: str | None = None


class PartialResponse(msgspec.Struct):
    """The fields of a provider's response that the engine reads."""

    id: str
    status: str
    model: str = ""
    output: list[_Item] | None = None
    usage: Any = None
    error: _Why | None = None
    incomplete_details: _Why | None = None
    metadata: dict[str, str] | None = None

    @property
    def is_over(self) -> bool:
        """True if the provider no longer works on the response."""
        return self.status not in _UNDER_WAY

    @property
    def token(self) -> str:
        """Token that the request carried; empty for a request of others."""
        said = self.metadata or {}
        return "".join(said.get(name, "") for name in _names())


def found_in(data: Any, host: str) -> PartialResponse:
    """Decode a response. Raises `ModelFailure` for invalid data."""
    try:
        found = msgspec.convert(data, PartialResponse)
    except msgspec.ValidationError as error:
        raise _unreadable(host, str(error), None) from error
    if not IS_ID(found.id):
        raise _unreadable(host, "its id is none", None)
    return found


def background_body_of(request: ModelRequest, model: str) -> dict[str, Any]:
    """Return the body of a request in the background.
    The part that the requests of one conversation share comes first, so that their bytes begin alike.
    """
    body: dict[str, Any] = {"model": model, "background": True, "store": True}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in request.tools
        ]
    if request.schema is not None:
        strict = is_enforced(request.schema)
        answer = {"type": "json_schema", "name": "answer", "schema": request.schema, "strict": strict}
        body["text"] = {"format": answer}
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.thinking is not None:
        body["reasoning"] = {"effort": effort_of(request.thinking)}
    if request.most_output:
        body["max_output_tokens"] = request.most_output
    body["input"] = [item for message in request.messages for item in _items(message)]
    if request.token:
        parts = range(0, len(request.token), _MOST_VALUE)
        body["metadata"] = {
            name: request.token[at : at + _MOST_VALUE] for name, at in zip(_names(), parts, strict=False)
        }
    return body


def model_answer(found: PartialResponse, host: str) -> ModelAnswer:
    """Return the answer of a response that has ended. Raises `ModelFailure`."""
    usage = _used(found)
    if found.status == "failed":
        why = found.error or _Why()
        code = _FAILURES.get(why.code or "", "server_error")
        raise ModelFailure(code, f"{host}: {(why.message or why.code or 'it failed')[:500]}", usage)
    if found.status == "cancelled":
        raise ModelFailure("service_unavailable", f"the request was cancelled at {host}", usage)
    reason = (found.incomplete_details or _Why()).reason or ""
    if reason == "content_filter":
        raise ModelFailure("content_policy", f"{host} has filtered the answer", usage)
    is_cut = found.status == "incomplete" and reason == "max_output_tokens"
    if not is_cut and found.status != "completed":
        raise _unreadable(host, f"it ended as `{(reason or found.status)[:40]}`", usage)
    said = [part for item in found.output or () if item.type == "message" for part in item.content or ()]
    if refusal := "".join(part.refusal or "" for part in said):
        raise ModelFailure("content_policy", f"the model refuses to answer: {refusal[:500]}", usage)
    text = "".join(part.text or "" for part in said)
    calls = tuple(_call(item, host, usage) for item in found.output or () if item.type == "function_call")
    finish = LENGTH if is_cut else CALLS if calls else STOP
    used = usage or Usage()  # what was held for it stays spent
    return ModelAnswer(text=text, calls=calls, finish=finish, usage=used, model=found.model, id=found.id)


def _names() -> Iterable[str]:
    return (_MARK if not number else f"{_MARK}_{number}" for number in range(_MOST_PARTS))


def _items(message: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Yield the items that stand for a message of the chat completions API."""
    if message["role"] == "tool":
        yield {
            "type": "function_call_output",
            "call_id": message["tool_call_id"],
            "output": message["content"],
        }
        return
    content = message["content"]
    if content is not None:
        yield {
            "role": message["role"],
            "content": [_input(one) for one in content] if isinstance(content, list) else content,
        }
    for call in message.get("tool_calls") or ():
        said = call["function"]
        yield {
            "type": "function_call",
            "call_id": call["id"],
            "name": said["name"],
            "arguments": said["arguments"],
        }


def _input(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of a message as one of the responses API."""
    match part:
        case {"image_url": {"url": url}}:
            return {"type": "input_image", "image_url": url}
        case {"file": file}:
            return {"type": "input_file", **file}
        case _:
            return {"type": "input_text", "text": part["text"]}


def _call(item: _Item, host: str, usage: Usage | None) -> ModelCall:
    if not item.call_id or not item.name:
        raise _unreadable(host, "a call in it has no name", usage)
    return ModelCall(id=item.call_id, name=item.name, arguments=item.arguments or "")


def _used(found: PartialResponse) -> Usage | None:
    """Return the usage; None if the response does not report all of it."""
    said = UsageCounts()
    said.see(found.usage)
    written = [part.text or part.refusal for item in found.output or () for part in item.content or ()]
    is_empty = not any(written) and not any(item.type == "function_call" for item in found.output or ())
    used = said.usage(found.model, 0, 0, is_empty=is_empty)
    return used if used.input and (used.output or is_empty) else None


def _unreadable(host: str, why: str, usage: Usage | None) -> ModelFailure:
    return ModelFailure("invalid_response", f"the answer of {host} cannot be read: {why}", usage)


TOLERANCE_MS: Final = 300_000
_SIGNS, _VERSION = "whsec_", "v1"
_OVER: Final = frozenset(
    {"response.completed", "response.failed", "response.cancelled", "response.incomplete"}
)


class _Data(msgspec.Struct):
    id: str


class _Event(msgspec.Struct):
    type: str
    data: _Data


def is_signed(headers: Mapping[str, str], body: bytes, secret: str, now: int) -> bool:
    """Return true if the signature is by this secret, within five minutes. `headers`: in lower case."""
    named, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not (at.isascii() and at.isdecimal() and len(at) <= 12 and abs(now - int(at) * 1_000) <= TOLERANCE_MS):
        return False
    try:
        key = base64.b64decode(secret.removeprefix(_SIGNS), validate=True)
    except (binascii.Error, ValueError):
        return False
    if not key:
        return False
    content = f"{named}.{at}.".encode() + body
    wanted = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest())
    given = [one.partition(",") for one in headers.get("webhook-signature", "").split()]
    # All are compared, so that the time says nothing of which one it was.
    proofs = [
        hmac.compare_digest(wanted, proof.encode()) for version, _, proof in given if version == _VERSION
    ]
    return any(proofs)


def over_in(body: bytes) -> str:
    """Return the id of the response whose end an event announces; empty for any other event."""
    try:
        event = msgspec.json.decode(body, type=_Event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    return event.data.id if event.type in _OVER else ""


class _Vector(msgspec.Struct):
    embedding: list[float]


class _Read(msgspec.Struct):
    prompt_tokens: int = 0


class _Embeddings(msgspec.Struct):
    data: Annotated[list[_Vector], msgspec.Meta(min_length=1, max_length=1)]
    usage: _Read = msgspec.field(default_factory=_Read)


_MOST_NUMBERS: Final = 4_096


def embedding_in(data: Any, model: str, host: str) -> Embedding:
    """Return the vector in the answer of a provider, of at least one number that is not 0.

    Raises `ModelFailure`, which counts as billed.
    """
    try:
        found = msgspec.convert(data, _Embeddings, strict=False)
    except msgspec.ValidationError as error:
        text = f"{host}: the answer is no embedding: {error}"
        raise ModelFailure("invalid_response", text, None) from error
    vector = found.data[0].embedding
    if len(vector) > _MOST_NUMBERS or not any(vector) or not all(map(isfinite, vector)):
        text = (
            f"{host}: the vector has {len(vector)} numbers; it has 1 to {_MOST_NUMBERS}, which are not all 0"
        )
        raise ModelFailure("invalid_response", text, None)
    return Embedding(vector=vector, usage=Usage(model=model, input=found.usage.prompt_tokens))
