"""A scripted model provider: the chat completions API on loopback, deterministic, with the faults of real ones.
The same model answers in the dialects of Anthropic and Bedrock (dialects.py).

What it answers is a Python function of the request. It keeps books: an answer given twice for one idempotency key is one
that was paid for twice. What the model of the demonstration says is in concierge.
"""

import asyncio
import gzip
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from zlib import crc32

from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from examples.services.books import Books
from examples.services.desk import Sleep
from examples.services.dialects import converse_frames, from_converse, from_messages, messages_events, sent
from examples.services.responses import Responses
from examples.services.serve import Options, options, serve

DELAYS = {"chat": 0.4}
MAX_BODY_BYTES = 8 * 1024 * 1024
_CREATED = 1_790_000_000
_PIECE = 12  # characters of one part of a stream


@dataclass(frozen=True, slots=True)
class Asked:
    """A request. `n` counts them from 1, `body` is all of it."""

    n: int
    model: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[str]
    schema: Any
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def key(self) -> str:
        return self.headers.get("idempotency-key", "")

    @property
    def authorization(self) -> str:
        """The credential as a header, also of who sends it as Anthropic's clients do."""
        return self.headers.get("authorization") or f"Bearer {self.headers.get('x-api-key', '')}"

    @property
    def is_other(self) -> bool:
        """True for a request in another dialect than chat completions, which need not ask for its usage."""
        return "stream_options" not in self.body and (
            "max_tokens" in self.body or "inferenceConfig" in self.body
        )

    @property
    def said(self) -> str:
        """The text of the last message."""
        return str(self.messages[-1].get("content") or "") if self.messages else ""

    @property
    def results(self) -> list[str]:
        """What tools have answered since the user's last message."""
        texts: list[str] = []
        for message in reversed(self.messages):
            if message.get("role") == "user":
                break
            if message.get("role") == "tool":
                texts.insert(0, str(message.get("content") or ""))
        return texts


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: text, calls of tools as (name, arguments), or a refusal. `text` that is no text is sent as JSON.

    Without `input` and `output` four bytes are a token. `after`: seconds before it begins. `fault`: `drip` (a part every
    `pace` seconds, for ever), `cut` (the connection breaks in the middle), `broken` (JSON that is none), `page` (a page of
    HTML), `packed` (compressed, unasked), `open` (no end is said), `filtered`. `raw`: the body itself, with this `status`, of a stream unless its
    `headers` say otherwise.
    """

    text: Any = ""
    calls: Sequence[tuple[str, Any]] = ()
    refusal: str = ""
    finish: str = ""
    input: int | None = None
    cached: int = 0
    written: int = 0
    output: int | None = None
    reasoning: int = 0
    after: float = 0
    pace: float = 0
    fault: str = ""
    counted: bool = True
    raw: bytes | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error as providers send it. `late`: inside of an answer that has begun."""

    status: int
    code: str = ""
    message: str = ""
    type: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    after: float = 0
    late: bool = False

    def body(self) -> dict[str, Any]:
        code: Any = self.code or (self.status if self.late else None)
        return {
            "error": {
                "message": self.message or "Refused.",
                "type": self.type or None,
                "param": None,
                "code": code,
            }
        }


Script = Callable[[Asked], Reply | Refusal | Awaitable[Reply | Refusal]]


class Provider:
    """One provider with its script and its books. `asked` is what it got, `streaming` how many answers are under way."""

    def __init__(self, books: Books, script: Script, sleep: Sleep = asyncio.sleep, delay: float = 0) -> None:
        self.books, self.asked, self.streaming = books, list[Asked](), 0
        self._script, self._sleep, self._delay = script, sleep, delay
        self.responses = Responses(self)
        self.embedded: list[dict[str, Any]] = []
        self.embeds: Callable[[Mapping[str, Any]], Any] = words_embedded

    async def embeddings(self, http: HttpRequest) -> Response:
        """`POST /v1/embeddings`: the more words two texts share, the nearer are their vectors."""
        body = await http.json()
        self.embedded.append(body)
        if isinstance(reply := self.embeds(body), Refusal):
            return refused(reply)
        data = [{"object": "embedding", "index": 0, "embedding": reply}]
        tokens = len(str(body["input"]).split())
        return JSONResponse({"object": "list", "data": data, "usage": {"prompt_tokens": tokens}})

    async def chat(self, http: HttpRequest) -> Response:
        """`POST /v1/chat/completions`."""
        asked, reply = await self.received(http)
        if isinstance(reply, Refusal):
            return refused(reply)
        if reply.raw is not None:
            return Response(reply.raw, reply.status, dict(reply.headers), "text/event-stream")
        if reply.fault == "packed":
            packed = gzip.compress(_event(_part(asked, {"content": _text(reply.text)}, "stop")))
            return Response(packed, media_type="text/event-stream", headers={"content-encoding": "gzip"})
        if reply.fault == "page":
            return Response("<html>Please sign in.</html>", media_type="text/html")
        if not asked.body.get("stream"):
            return JSONResponse(_whole(asked, reply))
        return StreamingResponse(self._counted(asked, reply), media_type="text/event-stream")

    async def messages(self, http: HttpRequest) -> Response:
        """`POST /v1/messages`, as Anthropic has it."""
        asked, reply = await self.received(http, from_messages)
        if isinstance(reply, Refusal):
            return refused(reply)
        if reply.raw is not None:
            return Response(reply.raw, reply.status, dict(reply.headers), "text/event-stream")
        return StreamingResponse(sent(messages_events(_parts(asked, reply))), media_type="text/event-stream")

    async def converse(self, http: HttpRequest) -> Response:
        """`POST /model/MODEL/converse-stream`, as Amazon Bedrock has it."""
        asked, reply = await self.received(http, partial(from_converse, model=http.path_params["model"]))
        if isinstance(reply, Refusal):
            named = {"x-amzn-errortype": f"{reply.code}:http://internal.example"} if reply.code else {}
            return JSONResponse({"message": reply.message}, reply.status, {**named, **reply.headers})
        frames, media = converse_frames(_parts(asked, reply)), "application/vnd.amazon.eventstream"
        if reply.raw is not None:
            return Response(reply.raw, reply.status, dict(reply.headers), media)
        return StreamingResponse(sent(frames), media_type=media)

    async def received(
        self, http: HttpRequest, as_chat: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    ) -> tuple[Asked, Reply | Refusal]:
        """What is asked, and what the script says, once its time is over; a request in the background is answered at once."""
        key = http.headers.get("idempotency-key", "")
        request = self.books.receive("chat", key or None, http.headers.get("traceparent"))
        raw = await http.body()
        if len(raw) > MAX_BODY_BYTES:
            return _asked(request.n, {"model": ""}, {}), Refusal(
                413, "request_too_large", "The request is too large."
            )
        asked = _asked(request.n, as_chat(json.loads(raw)), dict(http.headers))
        self.asked.append(asked)
        answer = self._script(asked)
        reply = answer if isinstance(answer, Reply | Refusal) else await answer
        await self._sleep(0 if asked.body.get("background") else self._delay + reply.after)
        if isinstance(reply, Refusal):
            request.status = 200 if reply.late else reply.status
        else:
            request.status = 200
            self.books.carried_out(request, "answer", {"key": key or f"request-{request.n}"})
        return asked, reply

    async def _counted(self, asked: Asked, reply: Reply) -> AsyncIterator[bytes]:
        self.streaming += 1
        try:
            async for part in self._stream(asked, reply):
                yield part
        finally:
            self.streaming -= 1

    async def _stream(self, asked: Asked, reply: Reply) -> AsyncIterator[bytes]:
        parts = list(_parts(asked, reply))
        for number, part in enumerate(parts):
            if reply.fault == "drip":
                break
            if reply.fault == "cut" and number > len(parts) // 2:
                raise ConnectionAbortedError("the script cuts the connection")
            if reply.fault == "broken" and number == len(parts) // 2:
                yield b'data: {"id": "chatcmpl-\n\n'
            yield _event(part)
            await self._sleep(reply.pace)
        while reply.fault == "drip":
            yield _event(_part(asked, {"content": "and "}))
            await self._sleep(reply.pace or 0.05)
        if reply.fault != "open":
            yield b"data: [DONE]\n\n"


def _asked(n: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> Asked:
    form = (
        (body.get("response_format") or {}).get("json_schema") or (body.get("text") or {}).get("format") or {}
    )
    tools = [(tool.get("function") or tool)["name"] for tool in body.get("tools", ())]
    messages = body["messages"] if "messages" in body else [_message(item) for item in body.get("input", ())]
    return Asked(n, str(body["model"]), messages, tools, form.get("schema"), headers, body)


def _message(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """An item of the responses API as the message that says the same."""
    if item.get("type") == "function_call_output":
        return {"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]}
    if item.get("type") == "function_call":
        function = {"name": item["name"], "arguments": item["arguments"]}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": item["call_id"], "function": function}],
        }
    return item


def refused(reply: Refusal) -> Response:
    if reply.late:
        return Response(_event(reply.body()), media_type="text/event-stream")
    return JSONResponse(reply.body(), reply.status, headers=dict(reply.headers))


# ---- the shapes of the API ---------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _calls(asked: Asked, reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{asked.n}_{n}",
            "type": "function",
            "function": {"name": name, "arguments": _text(arguments)},
        }
        for n, (name, arguments) in enumerate(reply.calls)
    ]


def _finish(reply: Reply) -> str:
    if reply.fault == "filtered":
        return "content_filter"
    return reply.finish or ("tool_calls" if reply.calls else "stop")


def usage_of(asked: Asked, reply: Reply) -> dict[str, Any]:
    written = _text(reply.text) + "".join(name + _text(arguments) for name, arguments in reply.calls)
    given = -(-len(json.dumps(asked.messages).encode()) // 4) if reply.input is None else reply.input
    output = -(-len(written.encode()) // 4) + reply.reasoning if reply.output is None else reply.output
    return {
        "prompt_tokens": given,
        "completion_tokens": output,
        "total_tokens": given + output,
        "prompt_tokens_details": {"cached_tokens": reply.cached, "cache_write_tokens": reply.written},
        "completion_tokens_details": {"reasoning_tokens": reply.reasoning},
    }


def _whole(asked: Asked, reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": _text(reply.text) or None}
    message["refusal"] = reply.refusal or None
    if reply.calls:
        message["tool_calls"] = _calls(asked, reply)
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply), "logprobs": None}
    shared = {
        "id": f"chatcmpl-{asked.n}",
        "object": "chat.completion",
        "created": _CREATED,
        "model": asked.model,
    }
    return {**shared, "choices": [choice], **({"usage": usage_of(asked, reply)} if reply.counted else {})}


def _part(
    asked: Asked, delta: Mapping[str, Any] | None, finish: str | None = None, **more: Any
) -> dict[str, Any]:
    choices = (
        [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]
    )
    return {
        "id": f"chatcmpl-{asked.n}",
        "object": "chat.completion.chunk",
        "created": _CREATED,
        "model": asked.model,
        "choices": choices,
        **more,
    }


def _parts(asked: Asked, reply: Reply) -> Iterator[dict[str, Any]]:
    yield _part(asked, {"role": "assistant", "content": ""})
    for name, text in (("content", _text(reply.text)), ("refusal", reply.refusal)):
        for piece in _pieces(text):
            yield _part(asked, {name: piece})
    for index, call in enumerate(_calls(asked, reply)):
        arguments = call["function"]["arguments"]
        opened = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
        yield _part(asked, {"tool_calls": [opened]})
        for piece in _pieces(arguments):
            yield _part(asked, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    if reply.fault != "open":
        yield _part(asked, {}, _finish(reply))
    is_counted = (asked.body.get("stream_options") or {}).get("include_usage") or asked.is_other
    if reply.counted and is_counted:
        yield _part(asked, None, usage=usage_of(asked, reply))


def _pieces(text: str) -> list[str]:
    return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]


def _event(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


# ---- a script for any agent ------------------------------------------------------------------------------------------


def each_tool_once(asked: Asked) -> Reply:
    """Calls every tool that it is offered once, one after the other, then answers by the schema, if there is one."""
    called = {
        call["function"]["name"] for message in asked.messages for call in message.get("tool_calls") or ()
    }
    for tool in asked.body.get("tools", ()):
        offer = tool.get("function") or tool
        if offer["name"] not in called:
            return Reply(calls=[(offer["name"], example_of(offer.get("parameters") or {}))])
    if asked.schema is not None:
        return Reply(example_of(asked.schema))
    return Reply(f"{len(called)} tools were called.")


def example_of(schema: Any) -> Any:
    """A plain value that most schemas of this form allow."""
    if not isinstance(schema, Mapping):
        return None
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("anyOf"):
        return example_of(schema["anyOf"][0])
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: example_of(properties.get(name, {})) for name in schema.get("required", properties)}
    if kind == "array":
        return [example_of(schema.get("items", {}))] * max(1, schema.get("minItems", 1))
    least = schema.get("minimum", 1)
    return {
        "string": "x" * schema.get("minLength", 1),
        "integer": least,
        "number": least,
        "boolean": True,
    }.get(kind)


# ---- the program -----------------------------------------------------------------------------------------------------


def words_embedded(body: Mapping[str, Any]) -> list[float]:
    """A number for each word of the text: a vector that knows no meaning."""
    size = int(body.get("dimensions", 1_536))
    vector = [0.0] * size
    for word in str(body["input"]).lower().split():
        vector[crc32(word.strip(".,;:!?").encode()) % size] += 1.0
    return vector


def application(provider: Provider) -> Starlette:
    """The provider as an ASGI application."""

    async def health(http: HttpRequest) -> Response:
        return JSONResponse({"status": "ok", "service": provider.books.service})

    async def books(http: HttpRequest) -> Response:
        return JSONResponse(provider.books.document())

    return Starlette(
        routes=[
            Route("/health", health),
            Route("/books", books),
            Route("/v1/chat/completions", provider.chat, methods=["POST"]),
            Route("/v1/embeddings", provider.embeddings, methods=["POST"]),
            Route("/v1/messages", provider.messages, methods=["POST"]),
            Route("/model/{model}/converse-stream", provider.converse, methods=["POST"]),
            Route("/v1/responses", provider.responses.create, methods=["POST"]),
            Route("/v1/responses/{id}", provider.responses.fetch),
            Route("/v1/responses/{id}/cancel", provider.responses.cancel, methods=["POST"]),
        ]
    )


def build(chosen: Options, sleep: Sleep = asyncio.sleep, script: Script = each_tool_once) -> Starlette:
    """The service with books of its own; every `busy_every`-th request is refused with 429."""

    def answer(asked: Asked) -> Reply | Refusal | Awaitable[Reply | Refusal]:
        if chosen.busy_every and asked.n % chosen.busy_every == 0:
            return Refusal(429, "rate_limit_exceeded", "Slow down.", headers={"Retry-After": "1"})
        return script(asked)

    return application(Provider(Books("models"), answer, sleep, chosen.delays.get("chat", 0)))


def main(arguments: list[str] | None = None) -> int:
    """Run the service; see `--help`."""
    return serve("models", options("models", DELAYS, arguments), build)


if __name__ == "__main__":
    sys.exit(main())
