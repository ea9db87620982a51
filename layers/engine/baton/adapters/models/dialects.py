"""Dialects: the forms in which providers are asked and answer, and other forms for who refuses one. Pure.

Anthropic's Messages and Bedrock's Converse are dialects of chat completions: a request is translated into
theirs, and each part of their answers into one of its, so that there is one reader of answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import quote

from baton.adapters.models.answers import DONE, LIMITS
from baton.core.models.usage import LEAST_THINKING, USUAL_OUTPUT
from baton.ports import StepFailure

NEW_LIMIT, OLD_LIMIT = LIMITS
_SCHEMA_WORDS: Final = "Answer with JSON that matches this JSON Schema, and with no other text: {schema}"
Body = dict[str, Any]


class Adaptation(NamedTuple):
    """Another form of a request, for a server whose `refusal` matches: a regular expression.

    `change` returns the body as it is where it has none of what is refused. `is_of_chat`: it changes the
    request of the chat completions API, before a dialect translates it.
    """

    refusal: str
    change: Callable[[Body], Body]
    is_of_chat: bool = False


def _other_limit(body: Body) -> Body:
    names = {NEW_LIMIT: OLD_LIMIT, OLD_LIMIT: NEW_LIMIT}
    return {names.get(name, name): value for name, value in body.items()}


def _without_stream_options(body: Body) -> Body:
    return _without(body, "stream_options")


def _schema_in_words(body: Body) -> Body:
    match body:
        case {"response_format": {"json_schema": {"schema": schema}}, "messages": messages}:
            said = {"role": "system", "content": _words(schema)}
            return {**_without(body, "response_format"), "messages": [said, *messages]}
        case {"output_config": {"format": {"schema": schema}} as config}:
            rest = _without(body, "output_config") | _some("output_config", _without(config, "format"))
            return {**rest, "system": [{"type": "text", "text": _words(schema)}, *body.get("system", ())]}
        case {"outputConfig": {"textFormat": {"structure": {"jsonSchema": {"schema": schema}}}}}:
            said = {"text": _words(json.loads(schema))}
            return {**_without(body, "outputConfig"), "system": [said, *body.get("system", ())]}
        case _:
            return body


def _words(schema: Any) -> str:
    return _SCHEMA_WORDS.format(schema=json.dumps(schema))


def _without(body: Mapping[str, Any], *names: str) -> Body:
    return {name: value for name, value in body.items() if name not in names}


def _some(name: str, value: Mapping[str, Any]) -> Body:
    return {name: value} if value else {}


THINKING: Final = "thinking"
_EFFORTS: Final = {"low": 0.25, "medium": 0.5, "high": 0.75}
"""Share of thinking in the tokens of an answer."""
_LEAST_ANSWER: Final = 256
_LITTLE, _MUCH = 2_048, 8_192


def effort_of(thinking: str | int) -> str:
    """Return thinking in words."""
    if isinstance(thinking, str):
        return thinking
    return "low" if thinking <= _LITTLE else "medium" if thinking <= _MUCH else "high"


def _thinking(chat: Mapping[str, Any]) -> Body:
    """Return the fields by which models of Anthropic think; none without a wish, or without room for it."""
    wish = chat.get(THINKING)
    if isinstance(wish, str):
        return {THINKING: {"type": "adaptive"}, "output_config": {"effort": wish}}
    tokens = min(wish or 0, _most_output(chat) - _LEAST_ANSWER)
    return {THINKING: {"type": "enabled", "budget_tokens": tokens}} if tokens >= LEAST_THINKING else {}


def _by_tokens(chat: Body) -> Body:
    wish = chat.get(THINKING)
    if not isinstance(wish, str):
        return chat
    return {**chat, THINKING: max(int(_most_output(chat) * _EFFORTS[wish]), LEAST_THINKING)}


def _by_effort(chat: Body) -> Body:
    return {**chat, THINKING: effort_of(chat[THINKING])} if THINKING in chat else chat


def _unthinking(chat: Body) -> Body:
    return _without(chat, THINKING)


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


_UNKNOWN: Final = r"(?i)(?=.*(n[o'’]t (support|permit|allow|recogn|available)|un(support|recogn|known|expect|avail)|extra (input|field)))"
_OF_SCHEMAS: Final = "response_format|json_schema|output_?config|text_?format|output format|structured output"
ADAPTATIONS: Final = (
    Adaptation(rf"{_UNKNOWN}.*max_(completion_)?tokens", _other_limit),
    Adaptation(rf"{_UNKNOWN}.*stream_options", _without_stream_options),
    Adaptation(
        rf"{_UNKNOWN}.*({_OF_SCHEMAS})|(?i:schema|grammar).*(?i:too (complex|large|many)|compil)",
        _schema_in_words,
    ),
    Adaptation("(?i)adaptive|effort", _by_tokens, is_of_chat=True),
    Adaptation("(?i)enabled|budget", _by_effort, is_of_chat=True),
    Adaptation("(?i)thinking|reasoning|effort", _unthinking, is_of_chat=True),
    Adaptation(r"(?i)role.*(after|alternat)|(after|alternat).*role", _alternating),
    Adaptation(rf"{_UNKNOWN}.*cach(e|ing)", _unmarked),
)
"""Other forms of requests; a server that has refused one gets the other from then on."""


_MESSAGES_VERSION: Final = "2023-06-01"


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
        if THINKING not in chat:
            return dict(chat)
        effort = {"reasoning_effort": effort_of(chat[THINKING])}
        return (
            {name: value for name, value in chat.items() if name not in (THINKING, "messages")}
            | effort
            | {"messages": chat["messages"]}
        )

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


class _Medium(NamedTuple):
    """An image, or a PDF with its name: in base64, or of an address that has no type."""

    name: str
    type: str
    data: str


_Block = str | _Call | _Result | _Medium | dict[str, Any]
"""Text, a call, the result of one, an image or a file, or thinking as its provider has written it."""


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
    if isinstance(content, list):
        yield from map(_of_part, content)
    elif content:
        yield content
    for call in message.get("tool_calls") or ():
        said = call["function"]
        yield _Call(call["id"], said["name"], json.loads(said["arguments"] or "{}"))


def _of_part(part: Mapping[str, Any]) -> _Block:
    match part:
        case {"type": "image_url", "image_url": {"url": url}}:
            name = ""
        case {"file": {"filename": name, "file_data": url}}:
            pass
        case _:
            return str(part["text"])
    head, _, data = url.partition(";base64,")
    return _Medium(name, head.removeprefix("data:"), data) if data else _Medium(name, "", url)


def _instructions(chat: Mapping[str, Any]) -> list[str]:
    """Return the instructions, with the schema in words where it is no rule to these providers."""
    texts = [one["content"] for one in chat["messages"] if one["role"] == "system"]
    if (form := chat.get("response_format")) and _rule(chat) is None:
        texts.append(_words(form["json_schema"]["schema"]))
    return texts


_OF_RULES: Final = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "description", "title"}
)  # fmt: skip


def _rule(chat: Mapping[str, Any]) -> Any:
    """Return a schema that Anthropic and Bedrock enforce: a strict one, without bounds and patterns."""
    said = chat.get("response_format", {}).get("json_schema", {})
    return said["schema"] if said.get("strict") and _is_plain(said["schema"]) else None


def _is_plain(schema: Mapping[str, Any]) -> bool:
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    inner += [schema["items"]] if "items" in schema else []
    return schema.keys() <= _OF_RULES and all(map(_is_plain, inner))


def _most_output(chat: Mapping[str, Any]) -> int:
    return next((int(chat[name]) for name in LIMITS if chat.get(name)), USUAL_OUTPUT)


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
        body |= _thinking(chat)
        if (schema := _rule(chat)) is not None:
            rule = {"format": {"type": "json_schema", "schema": schema}}
            body["output_config"] = {**body.get("output_config", {}), **rule}
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
            case _Medium(name, type_, data):
                source = {"type": "base64", "media_type": type_, "data": data}
                if not type_:
                    source = {"type": "url", "url": data}
                return (
                    {"type": "document", "source": source, "title": name}
                    if name
                    else {"type": "image", "source": source}
                )
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
            case {"delta": {"type": "thinking_delta" | "signature_delta"} as thought}:
                yield _delta(reasoning_details=[{**thought, "index": index, "type": "thinking"}])
            case {"type": "message_delta", "delta": {"stop_reason": reason}}:
                yield {**_delta(reason), "usage": part.get("usage")}
            case _ if kind == "message_stop":
                yield DONE
            case {"type": "message"}:
                yield from self._whole(part)
            case _ if "choices" in part or "message" in part:  # of what stands before it
                yield part

    def _whole(self, message: Mapping[str, Any]) -> Iterator[Any]:
        """Yield the parts of an answer that comes whole although a stream was asked for."""
        yield {name: message.get(name) for name in ("id", "model", "usage")}
        for at, block in enumerate(message.get("content") or ()):
            yield from self.parts({"index": at, "content_block": block})
            if isinstance(block, Mapping) and block.get("type") == "tool_use":
                yield _called(at, None, json.dumps(block.get("input"), separators=(",", ":")))
        yield _delta(message.get("stop_reason"))


def _document_name(name: str) -> str:
    """Return a name in the letters that Bedrock takes."""
    return (
        " ".join("".join(c if c.isascii() and c.isalnum() else " -"[c in "-._"] for c in name).split())[:200]
        or "file"
    )


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
        body |= _some("additionalModelRequestFields", self._more(chat))
        if (schema := _rule(chat)) is not None:
            said = {"jsonSchema": {"name": "answer", "schema": json.dumps(schema)}}
            body["outputConfig"] = {"textFormat": {"type": "json_schema", "structure": said}}
        if system:
            body["system"] = [*system, *mark]
        if turns:
            turns[-1] = {**turns[-1], "content": [*turns[-1]["content"], *mark]}
        return {**body, "messages": turns}

    @staticmethod
    def _more(chat: Mapping[str, Any]) -> Body:
        """Return the fields by which the model thinks: those of its own family."""
        wish, model = chat.get(THINKING), chat["model"]
        if wish is None or "anthropic." in model:
            return _thinking(chat)
        if "amazon.nova" in model:
            return {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort_of(wish)}}
        return {"reasoning_effort": effort_of(wish)}

    @staticmethod
    def _block(block: _Block) -> dict[str, Any]:
        match block:
            case str():
                return {"text": block}
            case _Call():
                return {"toolUse": {"toolUseId": block.id, "name": block.name, "input": block.arguments}}
            case _Result():
                return {"toolResult": {"toolUseId": block.id, "content": [{"text": block.text or "-"}]}}
            case _Medium(_, ""):
                raise StepFailure(
                    "validation_failed",
                    "Amazon Bedrock takes an image by its content, and the prompt has its address: give it in base64",
                    unsent=True,
                )
            case _Medium(name, type_, data):
                said = {"format": type_.partition("/")[2], "source": {"bytes": data}}
                return {"document": {"name": _document_name(name), **said}} if name else {"image": said}
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
            case {"output": {"message": {"content": [*blocks]}}}:  # whole, although a stream was asked for
                yield {"usage": part.get("usage")}
                for at, block in enumerate(blocks):
                    yield from self._block_of_whole(at, block)
                yield _delta(part.get("stopReason"))
            case {"error": _} | {"choices": _} | {"message": _}:
                yield part
            case str():
                yield part

    @staticmethod
    def _block_of_whole(at: int, block: Any) -> Iterator[Any]:
        match block:
            case {"text": text}:
                yield _delta(content=text)
            case {"toolUse": call}:
                arguments = json.dumps(call.get("input"), separators=(",", ":"))
                yield _called(at, call.get("name"), arguments, call.get("toolUseId"))
            case {"reasoningContent": {"reasoningText": thought} | ({"redactedContent": _} as thought)}:
                yield _delta(reasoning_details=[{**thought, "index": at}])


DIALECTS: Final[Mapping[str, Dialect]] = {
    "": ChatCompletions(),
    "anthropic": Anthropic(),
    "bedrock": Bedrock(),
}


def body_in(dialect: str, chat: Mapping[str, Any], learned: Sequence[Adaptation]) -> Body:
    """Return the body of a request for a server that is known to refuse some forms."""
    for one in learned:
        chat = one.change(dict(chat)) if one.is_of_chat else chat
    body = DIALECTS[dialect].body(chat)
    for one in learned:
        body = body if one.is_of_chat else one.change(body)
    return body


def adaptation_for(
    refusal: str, dialect: str, chat: Mapping[str, Any], learned: Sequence[Adaptation]
) -> Adaptation | None:
    """Return another form that the server may take; None if there is none but the `learned` ones."""
    refused = body_in(dialect, chat, learned)
    fits = (one for one in ADAPTATIONS if one not in learned and re.search(one.refusal, refusal))
    return next((one for one in fits if body_in(dialect, chat, [*learned, one]) != refused), None)
