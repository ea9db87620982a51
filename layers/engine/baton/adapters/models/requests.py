"""Requests for models and background responses in their providers' forms. Pure.

Anthropic's Messages and Bedrock's Converse are dialects of chat completions: a request is translated into
theirs, and each part of their answers into one of its, so that there is one reader of answers.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import quote

import msgspec

from baton.adapters.models.answers import DONE, LIMITS, UsageCounts
from baton.adapters.models.profiles import Profile
from baton.core.models.usage import Usage
from baton.ports.models import CALLS, LENGTH, STOP, ModelAnswer, ModelCall, ModelFailure, ModelRequest

# Of JSON Schema, what providers enforce while they write (OpenAI's guide to structured outputs).
_ENFORCED: Final = frozenset({
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "description", "title",
    "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
})  # fmt: skip


_NEW_LIMIT, _OLD_LIMIT = LIMITS
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
    if request.most_output:
        body[_NEW_LIMIT if _TAKES_THE_NEW(profile.host) else _OLD_LIMIT] = request.most_output
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


_SCHEMA_WORDS: Final = "Answer with JSON that matches this JSON Schema, and with no other text: {schema}"
Body = dict[str, Any]


class Adaptation(NamedTuple):
    """Another form of a request, for a server whose refusal matches.

    `change` returns the body as it is where it has none of what is refused.
    """

    refusal: re.Pattern[str]
    change: Callable[[Body], Body]


def _other_limit(body: Body) -> Body:
    names = {_NEW_LIMIT: _OLD_LIMIT, _OLD_LIMIT: _NEW_LIMIT}
    return {names.get(name, name): value for name, value in body.items()}


def _without_stream_options(body: Body) -> Body:
    return {name: value for name, value in body.items() if name != "stream_options"}


def _schema_in_words(body: Body) -> Body:
    if (form := body.get("response_format")) is None:
        return body
    words = _SCHEMA_WORDS.format(schema=msgspec.json.encode(form["json_schema"]["schema"]).decode())
    rest = {name: value for name, value in body.items() if name != "response_format"}
    return {**rest, "messages": [{"role": "system", "content": words}, *body["messages"]]}


def _alternating(body: Body) -> Body:
    """Put a word of the assistant's before each message of the user that follows another one, or a result."""
    messages = list[Any]()
    for message in body["messages"]:
        if message["role"] == "user" and messages and messages[-1]["role"] in ("user", "tool"):
            messages.append({"role": "assistant", "content": "Understood."})
        messages.append(message)
    return {**body, "messages": messages}


def _unmarked(value: Any) -> Any:
    """Return the body without the marks of what is to be kept."""
    if isinstance(value, dict):
        return {name: _unmarked(one) for name, one in value.items() if name != "cache_control"}
    if isinstance(value, list):
        return [_unmarked(one) for one in value if not (isinstance(one, dict) and "cachePoint" in one)]
    return value


_UNKNOWN: Final = r"(?i)(?=.*(not (support|permit|allow|recogn|available)|un(support|recogn|known|expect|avail)|extra (input|field)))"
ADAPTATIONS: Final = (
    Adaptation(re.compile(rf"{_UNKNOWN}.*max_(completion_)?tokens"), _other_limit),
    Adaptation(re.compile(rf"{_UNKNOWN}.*stream_options"), _without_stream_options),
    Adaptation(re.compile(rf"{_UNKNOWN}.*(response_format|json_schema)"), _schema_in_words),
    Adaptation(re.compile(r"(?i)role.*(after|alternat)|(after|alternat).*role"), _alternating),
    Adaptation(re.compile(rf"{_UNKNOWN}.*cach(e|ing)"), _unmarked),
)
"""Other forms of requests; a server that has refused one gets the other from then on."""


def adaptation_for(refusal: str, body: Body) -> Adaptation | None:
    """Return the form of a refused request that its server may take; None if there is none."""
    fits = (one for one in ADAPTATIONS if one.refusal.search(refusal))
    return next((one for one in fits if one.change(body) != body), None)


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


_MESSAGES_VERSION: Final = "2023-06-01"
_USUAL_OUTPUT: Final = 4_096


class Dialect(Protocol):
    """The form in which a provider is asked and answers."""

    def path(self, model: str) -> str:
        """Return the path behind the address of the profile."""
        ...

    def body(self, chat: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body in place of one of the chat completions API."""
        ...

    def headers(self, credential: str) -> dict[str, str]:
        """Return the headers that carry the credential."""
        ...

    def parts(self, part: Any) -> Iterable[Any]:
        """Yield the parts of a chat completion in place of a part of an answer."""
        ...


class ChatCompletions:
    """The chat completions API itself."""

    def path(self, model: str) -> str:
        return "/chat/completions"

    def body(self, chat: Mapping[str, Any]) -> dict[str, Any]:
        return dict(chat)

    def headers(self, credential: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {credential}"} if credential else {}

    def parts(self, part: Any) -> Iterable[Any]:
        return (part,)


class _Call(NamedTuple):
    id: str
    name: str
    arguments: dict[str, Any]


class _Result(NamedTuple):
    id: str
    text: str


_Block = str | _Call | _Result | dict[str, Any]
"""Text, a call, the result of one, or a piece of thinking as its provider has written it."""


def _turns(messages: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[_Block]]]:
    """Return who says what, in turns: these APIs refuse two messages of one role after each other."""
    turns: list[tuple[str, list[_Block]]] = []
    for message in messages:
        role = "assistant" if message["role"] == "assistant" else "user"
        for block in _blocks(message) if message["role"] != "system" else ():
            if not turns or turns[-1][0] != role:
                turns.append((role, []))
            turns[-1][1].append(block)
    return turns


def _blocks(message: Mapping[str, Any]) -> Iterator[_Block]:
    content = message.get("content") or ""
    if message["role"] == "tool":
        yield _Result(message["tool_call_id"], content)
        return
    yield from message.get("reasoning_details") or ()
    if content:
        yield content
    for call in message.get("tool_calls") or ():
        said = call["function"]
        yield _Call(call["id"], said["name"], json.loads(said["arguments"] or "{}"))


def _instructions(chat: Mapping[str, Any]) -> list[str]:
    """Return the instructions, with the schema of the answer in words."""
    texts = [one["content"] for one in chat["messages"] if one["role"] == "system"]
    if form := chat.get("response_format"):
        texts.append(_SCHEMA_WORDS.format(schema=json.dumps(form["json_schema"]["schema"])))
    return texts


def _most_output(chat: Mapping[str, Any]) -> int:
    return next((int(chat[name]) for name in LIMITS if chat.get(name)), _USUAL_OUTPUT)


def _offers(chat: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one["function"] for one in chat.get("tools", ())]


def _delta(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _called(index: int, name: str | None, arguments: str, id_: str | None = None) -> dict[str, Any]:
    call = {"index": index, "id": id_, "function": {"name": name, "arguments": arguments}}
    return _delta(tool_calls=[call])


_KEEP: Final = {"type": "ephemeral"}


class Anthropic:
    """Anthropic's Messages API. Marks the part that an agent's next request begins with, to be kept."""

    def path(self, model: str) -> str:
        return "/messages"

    def headers(self, credential: str) -> dict[str, str]:
        return {"anthropic-version": _MESSAGES_VERSION, **({"x-api-key": credential} if credential else {})}

    def body(self, chat: Mapping[str, Any]) -> dict[str, Any]:
        offers = _offers(chat)
        keep = {"cache_control": _KEEP} if offers else {}
        system: list[dict[str, Any]] = [{"type": "text", "text": text} for text in _instructions(chat)]
        turns = [
            {"role": role, "content": [self._block(one) for one in blocks]}
            for role, blocks in _turns(chat["messages"])
        ]
        for marked in (system, *(turn["content"] for turn in turns[-1:])):
            if isinstance(marked, list) and marked:
                marked[-1] = {**marked[-1], **keep}
        body: dict[str, Any] = {"model": chat["model"], "stream": True, "max_tokens": _most_output(chat)}
        if "temperature" in chat:
            body["temperature"] = chat["temperature"]
        if offers:
            body["tools"] = [
                {"name": one["name"], "description": one["description"], "input_schema": one["parameters"]}
                for one in offers
            ]
        if system:
            body["system"] = system
        return {**body, "messages": turns}

    @staticmethod
    def _block(block: _Block) -> dict[str, Any]:
        match block:
            case str():
                return {"type": "text", "text": block}
            case _Call():
                return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.arguments}
            case _Result():
                return {"type": "tool_result", "tool_use_id": block.id, "content": block.text}
            case _:
                return {name: value for name, value in block.items() if name != "index"}

    def parts(self, part: Any) -> Iterator[Any]:
        if not isinstance(part, Mapping) or "error" in part:
            yield part
            return
        index, kind = part.get("index", 0), part.get("type")
        match part:
            case {"type": "message_start", "message": {"id": id_, "model": model} as message}:
                yield {**_delta(), "id": id_, "model": model, "usage": message.get("usage")}
            case {"content_block": {"type": "tool_use", "id": id_, "name": name}}:
                yield _called(index, name, "", id_)
            case {"content_block": {"type": "text", "text": text}} | {
                "delta": {"type": "text_delta", "text": text}
            }:
                yield _delta(content=text)
            case {"content_block": {"type": "thinking" | "redacted_thinking"} as thought}:
                yield _delta(reasoning_details=[{**thought, "index": index}])
            case {"delta": {"type": "input_json_delta", "partial_json": text}}:
                yield _called(index, None, text)
            case {"delta": {"type": "thinking_delta", "thinking": text}}:
                yield _delta(reasoning_details=[{"index": index, "type": "thinking", "thinking": text}])
            case {"delta": {"type": "signature_delta", "signature": text}}:
                yield _delta(reasoning_details=[{"index": index, "type": "thinking", "signature": text}])
            case {"type": "message_delta", "delta": {"stop_reason": reason}}:
                yield {**_delta(reason), "usage": part.get("usage")}
            case _ if kind == "message_stop":
                yield DONE
            case _ if "choices" in part or "message" in part:  # of what stands before it
                yield part


class Bedrock:
    """Converse of Amazon Bedrock. Only models of Anthropic get marks of the part to be kept."""

    def path(self, model: str) -> str:
        return f"/model/{quote(model, safe='')}/converse-stream"

    def headers(self, credential: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {credential}"} if credential else {}

    def body(self, chat: Mapping[str, Any]) -> dict[str, Any]:
        offers = _offers(chat)
        mark = [{"cachePoint": {"type": "default"}}] if offers and "anthropic." in chat["model"] else []
        system = [{"text": text} for text in _instructions(chat)]
        turns = [
            {"role": role, "content": [self._block(one) for one in blocks]}
            for role, blocks in _turns(chat["messages"])
        ]
        settings: dict[str, Any] = {"maxTokens": _most_output(chat)}
        if "temperature" in chat:
            settings["temperature"] = chat["temperature"]
        body: dict[str, Any] = {"inferenceConfig": settings}
        if offers:
            body["toolConfig"] = {
                "tools": [
                    {
                        "toolSpec": {
                            "name": one["name"],
                            "description": one["description"],
                            "inputSchema": {"json": one["parameters"]},
                        }
                    }
                    for one in offers
                ]
            }
        if system:
            body["system"] = [*system, *mark]
        if turns:
            turns[-1] = {**turns[-1], "content": [*turns[-1]["content"], *mark]}
        return {**body, "messages": turns}

    @staticmethod
    def _block(block: _Block) -> dict[str, Any]:
        match block:
            case str():
                return {"text": block}
            case _Call():
                return {"toolUse": {"toolUseId": block.id, "name": block.name, "input": block.arguments}}
            case _Result():
                return {"toolResult": {"toolUseId": block.id, "content": [{"text": block.text or "-"}]}}
            case {"redactedContent": data}:
                return {"reasoningContent": {"redactedContent": data}}
            case _:
                said = {name: value for name, value in block.items() if name in ("text", "signature")}
                return {"reasoningContent": {"reasoningText": said}}

    def parts(self, part: Any) -> Iterator[Any]:
        match part:
            case {"messageStart": _}:
                yield _delta()
            case {"contentBlockStart": {"contentBlockIndex": index, "start": {"toolUse": call}}}:
                yield _called(index, call.get("name"), "", call.get("toolUseId"))
            case {"contentBlockDelta": {"delta": {"text": text}}}:
                yield _delta(content=text)
            case {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"toolUse": {"input": text}}}}:
                yield _called(index, None, text)
            case {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"reasoningContent": thought}}}:
                yield _delta(reasoning_details=[{**thought, "index": index}])
            case {"messageStop": {"stopReason": reason}}:
                yield _delta(reason)
            case {"metadata": {"usage": usage}}:
                yield {"usage": usage}
                yield DONE
            case {"error": _} | {"choices": _} | {"message": _}:
                yield part
            case str():
                yield part


DIALECTS: Final[Mapping[str, Dialect]] = {
    "": ChatCompletions(),
    "anthropic": Anthropic(),
    "bedrock": Bedrock(),
}


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
    if message["content"] is not None:
        yield {"role": message["role"], "content": message["content"]}
    for call in message.get("tool_calls") or ():
        said = call["function"]
        yield {
            "type": "function_call",
            "call_id": call["id"],
            "name": said["name"],
            "arguments": said["arguments"],
        }


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
