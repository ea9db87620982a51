"""The scripted provider in the dialects of Anthropic (Messages) and of Amazon Bedrock (Converse).

A request is read as one of the chat completions API, and the parts of its answer are written in the other form.
"""

import json
import struct
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any
from zlib import crc32

_STOPS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}


def from_messages(body: Mapping[str, Any]) -> dict[str, Any]:
    """A request to `POST /v1/messages` as one of the chat completions API."""
    system = [{"role": "system", "content": one["text"]} for one in body.get("system", ())]
    tools = [
        {"function": {"name": one["name"], "parameters": one["input_schema"]}}
        for one in body.get("tools", ())
    ]
    said = [_of_messages(turn["role"], block) for turn in body["messages"] for block in turn["content"]]
    return {**body, "messages": [*system, *said], "tools": tools}


def _of_messages(role: str, block: Mapping[str, Any]) -> dict[str, Any]:
    if block["type"] == "tool_use":
        return _calling(block["id"], block["name"], block["input"])
    if block["type"] == "tool_result":
        return {"role": "tool", "tool_call_id": block["tool_use_id"], "content": block["content"]}
    return {"role": role, "content": block.get("text", ""), "block": block}


def from_converse(body: Mapping[str, Any], model: str) -> dict[str, Any]:
    """A request to `POST /model/MODEL/converse-stream` as one of the chat completions API."""
    system = [{"role": "system", "content": one["text"]} for one in body.get("system", ()) if "text" in one]
    offered = [one["toolSpec"] for one in body.get("toolConfig", {}).get("tools", ())]
    tools = [{"function": {"name": one["name"], "parameters": one["inputSchema"]["json"]}} for one in offered]
    said = [
        _of_converse(turn["role"], block)
        for turn in body["messages"]
        for block in turn["content"]
        if "cachePoint" not in block
    ]
    return {**body, "model": model, "messages": [*system, *said], "tools": tools}


def _of_converse(role: str, block: Mapping[str, Any]) -> dict[str, Any]:
    if call := block.get("toolUse"):
        return _calling(call["toolUseId"], call["name"], call["input"])
    if result := block.get("toolResult"):
        return {"role": "tool", "tool_call_id": result["toolUseId"], "content": result["content"][0]["text"]}
    return {"role": role, "content": block.get("text", ""), "block": block}


def _calling(id_: str, name: str, arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id_, "function": function}]}


def _steps(part: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the steps of a part of a chat completion."""
    for choice in part.get("choices", ()):
        delta = choice["delta"]
        if delta.get("content"):
            yield "text", delta["content"]
        for call in delta.get("tool_calls", ()):
            if call.get("id"):
                yield "call", (call["index"], call["id"], call["function"]["name"])
            yield "arguments", (call["index"], call["function"]["arguments"])
        if choice["finish_reason"]:
            yield "end", _STOPS[choice["finish_reason"]]
    if usage := part.get("usage"):
        kept = usage["prompt_tokens_details"]
        cached, written = kept["cached_tokens"], kept["cache_write_tokens"]
        yield (
            "usage",
            (usage["prompt_tokens"] - cached - written, cached, written, usage["completion_tokens"]),
        )


def messages_events(parts: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """The events of a stream of Messages."""
    end, usage, model = "", {}, ""
    body: list[dict[str, Any]] = []
    for part in parts:
        model = str(part["model"])
        for kind, said in _steps(part):
            if kind == "text":
                body.append(
                    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": said}}
                )
            elif kind == "call":
                block = {"type": "tool_use", "id": said[1], "name": said[2], "input": {}}
                body.append({"type": "content_block_start", "index": said[0] + 1, "content_block": block})
            elif kind == "arguments":
                delta = {"type": "input_json_delta", "partial_json": said[1]}
                body.append({"type": "content_block_delta", "index": said[0] + 1, "delta": delta})
            elif kind == "end":
                end = said
            else:
                names = (
                    "input_tokens",
                    "cache_read_input_tokens",
                    "cache_creation_input_tokens",
                    "output_tokens",
                )
                usage = dict(zip(names, said, strict=True))
    begun = {"id": "msg_1", "model": model, "usage": {**usage, "output_tokens": 1} if usage else {}}
    yield _event({"type": "message_start", "message": begun})
    yield _event({"type": "ping"})
    yield from map(_event, body)
    last = {"output_tokens": usage["output_tokens"]} if usage else {}
    yield _event({"type": "message_delta", "delta": {"stop_reason": end}, "usage": last})
    yield _event({"type": "message_stop"})


def _event(data: Mapping[str, Any]) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()


def converse_frames(parts: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """The frames of a stream of Converse."""
    yield frame("messageStart", {"role": "assistant"})
    for kind, said in (step for part in parts for step in _steps(part)):
        if kind == "text":
            yield frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": said}})
        elif kind == "call":
            start = {"toolUse": {"toolUseId": said[1], "name": said[2]}}
            yield frame("contentBlockStart", {"contentBlockIndex": said[0] + 1, "start": start})
        elif kind == "arguments":
            delta = {"toolUse": {"input": said[1]}}
            yield frame("contentBlockDelta", {"contentBlockIndex": said[0] + 1, "delta": delta})
        elif kind == "end":
            yield frame("messageStop", {"stopReason": said})
        else:
            names = ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens", "outputTokens")
            yield frame("metadata", {"usage": dict(zip(names, said, strict=True))})


def frame(kind: str, data: Mapping[str, Any], *, is_error: bool = False) -> bytes:
    """One frame of AWS's event streams."""
    names = (
        {":message-type": "exception", ":exception-type": kind}
        if is_error
        else {":message-type": "event", ":event-type": kind}
    )
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in names.items()
    )
    payload = json.dumps(data).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    whole = prelude + struct.pack(">I", crc32(prelude)) + headers + payload
    return whole + struct.pack(">I", crc32(whole))


async def sent(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
