"""Answers of providers in the forms that their documentation and their users show, with what each one means.

Written by hand. A form is a body with its status and its type; `meant` is the answer in it, or the code of its failure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from baton.ports.models import CALLS, LENGTH, STOP

SSE, JSON, HTML = "text/event-stream", "application/json", "text/html"
ROME, OSLO = '{"city":"Rome"}', '{"city":"Oslo"}'
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
COUNTED = (10, 5)


class Answer(NamedTuple):
    """The text, the calls as (name, arguments), the end, and tokens read and written (None: the most possible)."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish: str = STOP
    tokens: tuple[int, int] | None = COUNTED


class Failure(NamedTuple):
    """The code, a text that the message quotes, and whether the provider bills it."""

    code: str
    says: str = ""
    billed: bool = False


class Form(NamedTuple):
    name: str
    raw: bytes
    meant: Answer | Failure
    media: str = SSE
    status: int = 200


def sse(*parts: Any, end: str = "data: [DONE]\n\n") -> bytes:
    """A stream of these parts; text is a line of its own."""
    lines = (part if isinstance(part, str) else f"data: {json.dumps(part)}\n\n" for part in parts)
    return ("".join(lines) + end).encode()


def part(delta: Any, finish: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "id": "c1",
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **more,
    }


def stream(*deltas: Any, finish: Any = "stop", usage: Any = USAGE, end: str = "data: [DONE]\n\n") -> bytes:
    last = part({}, finish, **({} if usage is None else {"usage": usage}))
    return sse(*(part(one) for one in deltas), last, end=end)


def called(index: Any, id_: Any, name: Any, arguments: Any) -> dict[str, Any]:
    return {"index": index, "id": id_, "function": {"name": name, "arguments": arguments}}


def calling(*parts: dict[str, Any], finish: str = "tool_calls") -> bytes:
    return stream(*({"tool_calls": [one]} for one in parts), finish=finish)


def whole(message: dict[str, Any], finish: Any = "stop", **more: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return json.dumps({"id": "c1", "model": "m", "choices": [choice], "usage": USAGE, **more}).encode()


def asks(*arguments: str) -> Answer:
    return Answer(calls=tuple(("look", one) for one in arguments), finish=CALLS)


HI = Answer("hi")
TWO = asks(ROME, OSLO)


def forms_of_calls() -> Iterator[Form]:
    yield Form(
        "two calls, one index", calling(called(0, "a", "look", ROME), called(0, "b", "look", OSLO)), TWO
    )
    yield Form(
        "two calls, no index", calling(called(None, "a", "look", ROME), called(None, "b", "look", OSLO)), TWO
    )
    yield Form(
        "two calls in one part, no index",
        stream(
            {"tool_calls": [called(None, "a", "look", ROME), called(None, "b", "look", OSLO)]},
            finish="tool_calls",
        ),
        TWO,
    )
    yield Form("no ids", calling(called(0, None, "look", ROME), called(0, None, "look", OSLO)), TWO)
    yield Form("empty ids", calling(called(0, "", "look", ROME), called(1, "", "look", OSLO)), TWO)
    yield Form(
        "one id twice, one index", calling(called(0, "a", "look", ROME), called(0, "a", "look", OSLO)), TWO
    )
    yield Form(
        "one id twice, two indexes", calling(called(0, "a", "look", ROME), called(1, "a", "look", OSLO)), TWO
    )
    yield Form("numbers as ids", calling(called(0, 7, "look", ROME), called(1, 8, "look", OSLO)), TWO)
    yield Form("index as text", calling(called("0", "a", "look", ROME), called("1", "b", "look", OSLO)), TWO)
    yield Form(
        "a call whole, and once more",
        calling(called(0, "a", "look", ROME), called(0, "a", "look", ROME)),
        asks(ROME),
    )
    yield Form(
        "id and name with each piece",
        calling(called(0, "a", "look", ROME[:6]), called(0, "a", "look", ROME[6:])),
        asks(ROME),
    )
    yield Form(
        "name in the second part",
        calling(called(0, "a", None, ""), called(0, "a", "look", ""), called(0, None, None, ROME)),
        asks(ROME),
    )
    yield Form("arguments as an object", calling(called(0, "a", "look", {"city": "Rome"})), asks(ROME))
    yield Form("arguments null", calling(called(0, "a", "look", None)), asks(""))
    yield Form("arguments empty", calling(called(0, "a", "look", "")), asks(""))
    yield Form("arguments that are no object", calling(called(0, "a", "look", "[1]")), asks("[1]"))
    yield Form("arguments broken", calling(called(0, "a", "look", '{"city": Ro')), asks('{"city": Ro'))
    yield Form(
        "whole, arguments as an object",
        whole(
            {"content": None, "tool_calls": [{"function": {"name": "look", "arguments": {"city": "Rome"}}}]},
            "tool_calls",
        ),
        asks(ROME),
        JSON,
    )
    yield Form("the end says stop", calling(called(0, "a", "look", ROME), finish="stop"), asks(ROME))
    yield Form(
        "function_call of before",
        stream(
            {"function_call": {"name": "look", "arguments": ROME[:6]}},
            {"function_call": {"arguments": ROME[6:]}},
            finish="function_call",
        ),
        asks(ROME),
    )
    yield Form(
        "text before the call",
        stream({"content": "hi"}, {"tool_calls": [called(0, "a", "look", ROME)]}, finish="tool_calls"),
        Answer("hi", (("look", ROME),), CALLS),
    )


THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}


def forms_of_content() -> Iterator[Form]:
    yield Form("content in parts", stream({"content": [{"type": "text", "text": "hi"}]}), HI)
    yield Form("content as texts", stream({"content": ["h", "i"]}), HI)
    yield Form("thinking in parts", stream({"content": [THOUGHT]}, {"content": "hi"}), HI)
    yield Form(
        "thinking and text in one",
        whole({"content": [THOUGHT, {"type": "text", "text": "hi"}]}),
        HI,
        JSON,
    )
    yield Form("thinking beside", stream({"content": None, "reasoning_content": "hm"}, {"content": "hi"}), HI)
    yield Form("only thinking", stream({"content": None, "reasoning": "hm"}), Answer(""))
    yield Form("content null", whole({"content": None}), Answer(""), JSON)
    yield Form("delta null", sse(part(None), part({"content": "hi"}), part(None, "stop", usage=USAGE)), HI)
    yield Form(
        "choices null",
        sse({"choices": None}, part({"content": "hi"}), part({}, "stop"), {"choices": None, "usage": USAGE}),
        HI,
    )
    yield Form("no choices", sse(part({"content": "hi"}), part({}, "stop"), {"usage": USAGE}), HI)
    yield Form("a number as id", sse(part({"content": "hi"}, "stop", id=7, created=1.5, usage=USAGE)), HI)
    yield Form(
        "refusal in a part",
        stream({"content": [{"type": "refusal", "refusal": "No, not that."}]}),
        Failure("content_policy", "No, not that.", billed=True),
    )
    yield Form(
        "refusal beside",
        stream({"refusal": "No, not that."}),
        Failure("content_policy", "No, not that.", billed=True),
    )


def forms_of_ends() -> Iterator[Form]:
    for reason in ("eos", "end", "end_turn", "STOP", "stop_sequence", "COMPLETE", "eos_token", "unheard_of"):
        yield Form(f"end {reason}", stream({"content": "hi"}, finish=reason), HI)
    for reason in ("length", "max_tokens", "MAX_TOKENS", "model_length", "model_context_window_exceeded"):
        yield Form(f"end {reason}", stream({"content": "hi"}, finish=reason), Answer("hi", finish=LENGTH))
    for reason in ("content_filter", "SAFETY", "refusal", "PROHIBITED_CONTENT", "guardrail_intervened"):
        meant = Failure("content_policy", billed=True)
        yield Form(f"end {reason}", stream({"content": "hi"}, finish=reason), meant)
    yield Form("end tool_use", calling(called(0, "a", "look", ROME), finish="tool_use"), asks(ROME))
    yield Form("end empty", stream({"content": "hi"}, finish=""), HI)
    yield Form("end null", stream({"content": "hi"}, finish=None), HI)
    yield Form("end null, whole", whole({"content": "hi"}, None), HI, JSON)
    for reason in ("error", "MALFORMED_FUNCTION_CALL", "abort"):
        meant = Failure("invalid_response", reason, billed=True)
        yield Form(f"end {reason}", stream({"content": "hi"}, finish=reason), meant)


def forms_of_usage() -> Iterator[Form]:
    def said(name: str, usage: Any, tokens: tuple[int, int] | None = COUNTED) -> Form:
        return Form(f"usage {name}", stream({"content": "hi"}, usage=usage), Answer("hi", tokens=tokens))

    yield said("none", None, None)
    yield said("all null", {"prompt_tokens": None, "completion_tokens": None, "total_tokens": None}, None)
    yield said("zeros", {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, None)
    yield said("as text", "many", None)
    yield said("one null", {"prompt_tokens": 10, "completion_tokens": None, "total_tokens": 15})
    yield said("details null", {**USAGE, "prompt_tokens_details": None, "completion_tokens_details": None})
    yield said("floats", {"prompt_tokens": 10.0, "completion_tokens": 5.0, "total_tokens": 15.0})
    yield said("by other names", {"input_tokens": 10, "output_tokens": 5})
    yield said("in camel case", {"promptTokens": 10, "completionTokens": 5, "totalTokens": 15})
    yield said(
        "of Gemini",
        {"promptTokenCount": 10, "candidatesTokenCount": 3, "thoughtsTokenCount": 2, "totalTokenCount": 15},
    )
    yield said("of Ollama", {"prompt_eval_count": 10, "eval_count": 5})
    yield said("with negative figures", {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": -1})
    yield said(
        "thinking beside the output",
        {
            "prompt_tokens": 10,
            "completion_tokens": 2,
            "total_tokens": 15,
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
    )
    yield said(
        "thinking above the output",
        {"prompt_tokens": 10, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 3}},
    )
    first = part({"content": "hi"}, usage={"prompt_tokens": 10, "completion_tokens": 0, "total_tokens": 10})
    yield Form("usage with each part", sse(first, part({}, "stop", usage=USAGE)), HI)
    yield Form(
        "usage of Groq",
        sse(part({"content": "hi"}), part({}, "stop", x_groq={"id": "r", "usage": USAGE})),
        HI,
    )
    in_choice = part({"content": "hi"}, "stop")
    in_choice["choices"][0]["usage"] = USAGE
    yield Form("usage in the choice", sse(in_choice), HI)


LIMITED = {"error": {"message": "Slow down, please.", "code": 429}}
BUSY = {"error": {"message": "Upstream is busy.", "code": 502}}
HALF = part({"content": "hi"})


def forms_of_bodies() -> Iterator[Form]:
    rest = [part({}, "stop", usage=USAGE)]
    yield Form("whole JSON", whole({"content": "hi"}), HI, JSON)
    yield Form("whole JSON said to be a stream", whole({"content": "hi"}), HI)
    yield Form("a list of one", b"[" + whole({"content": "hi"}) + b"]", HI, JSON)
    yield Form("a mark of byte order", b"\xef\xbb\xbf" + whole({"content": "hi"}), HI, JSON)
    yield Form(
        "a page", b"<!doctype html><title>Sign in</title>", Failure("invalid_response", "Sign in"), HTML
    )
    yield Form("a text", b"no healthy upstream", Failure("invalid_response", "no healthy upstream"), HTML)
    yield Form(
        "an error behind 200", json.dumps(LIMITED).encode(), Failure("rate_limited", "Slow down"), JSON
    )
    yield Form("an error first", sse(LIMITED), Failure("rate_limited", "Slow down"))
    yield Form(
        "an error in a list", json.dumps([LIMITED]).encode(), Failure("rate_limited", "Slow down"), JSON
    )
    yield Form("an error in the middle", sse(HALF, BUSY), Failure("service_unavailable", "busy", billed=True))
    yield Form("an error behind the end", sse(HALF, *rest, BUSY), HI)
    named = f"event: error\ndata: {json.dumps(BUSY)}\n\n"
    yield Form("an event error", sse(HALF, named), Failure("service_unavailable", "busy", billed=True))
    bare = 'event: error\ndata: {"message": "Upstream is busy.", "type": "overloaded_error"}\n\n'
    yield Form("an event error, bare", sse(HALF, bare), Failure("service_unavailable", "busy", billed=True))
    text = "event: error\ndata: Upstream is busy\n\n"
    yield Form("an event error in words", sse(HALF, text), Failure("server_error", "busy", billed=True))
    inside = part({"content": ""}, "error")
    inside["choices"][0]["error"] = BUSY["error"]
    yield Form(
        "an error in the choice", sse(HALF, inside), Failure("service_unavailable", "busy", billed=True)
    )
    beside = {**part({"content": ""}, "error"), **BUSY}
    yield Form(
        "an error beside the choice", sse(HALF, beside), Failure("service_unavailable", "busy", billed=True)
    )
    yield Form("comments", sse(": wait\n\n", HALF, ": wait\n\n", *rest), HI)
    yield Form("pings", sse("event: ping\ndata: {}\n\n", HALF, 'data: {"type": "ping"}\n\n', *rest), HI)
    yield Form("data that is empty", sse("data:\n\n", HALF, "data: \n\n", *rest), HI)
    yield Form("data that is null", sse("data: null\n\n", HALF, *rest), HI)
    yield Form("lines as Windows ends them", sse(HALF, *rest).replace(b"\n", b"\r\n"), HI)
    yield Form("no space behind data", sse(HALF, *rest).replace(b"data: ", b"data:"), HI)
    yield Form("no DONE", sse(HALF, *rest, end=""), HI)
    yield Form(
        "no DONE and no end", sse(HALF, end=""), Failure("invalid_response", "before its end", billed=True)
    )
    yield Form("cut in a part", sse(HALF, end='data: {"cho'), Failure("invalid_response", "", billed=True))
    yield Form("nothing", b"", Failure("invalid_response", "before its end", billed=True))
    yield Form("DONE alone", sse(), Failure("invalid_response", "before its end", billed=True))


def error(message: Any, code: Any = None, type_: Any = None) -> Any:
    return {"error": {"message": message, "type": type_, "code": code}}


TOO_LONG = [
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
    "Your input exceeds the context window of this model.",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "Input is too long for requested model.",
    "The model returned the following errors: too many input tokens",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Please reduce the length of the messages or completion.",
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    "too many tokens: size limit exceeded by 1000 tokens.",
    "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
    "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 20 `max_new_tokens`",
    "`inputs` must have less than 4097 tokens. Given: 5000",
    "the request exceeds the available context size, try increasing it",
    "prompt too long; exceeded max context length by 12 tokens",
    "This model's maximum prompt length is 131072 but the request contains 150000 tokens.",
    "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
    "Requested token count exceeds the model's maximum context length of 4096 tokens.",
    "Your request exceeded model token limit: 131072",
    "Prompt exceeds max length",
    "Range of input length should be [1, 30720]",
    "invalid params, context window exceeds limit",
    "prompt token count of 130000 exceeds the limit of 128000",
    "The number of tokens to keep from the initial prompt is greater than the context length",
]  # fmt: skip
NOT_TOO_LONG = [
    "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
    "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for this model",
    "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64.",
    "Invalid 'messages[0].tool_calls': array too long. Expected at most 128 items.",
]
PER_MINUTE = "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 7000, please reduce your message size."


def forms_of_refusals() -> Iterator[Form]:
    def refused(name: str, status: int, body: Any, code: str, says: str = "", media: str = JSON) -> Form:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Form(name, raw, Failure(code, says), media, status)

    for text in TOO_LONG:
        yield refused(
            f"too long: {text}", 400, error(text, None, "invalid_request_error"), "context_exceeded"
        )
    for text in NOT_TOO_LONG:
        yield refused(f"not too long: {text}", 400, error(text, None, "invalid_request_error"), "bad_request")
    yield refused("too long, 422", 422, {"message": TOO_LONG[0]}, "context_exceeded")
    yield refused(
        "too long, 500", 500, error(TOO_LONG[13], 500, "exceed_context_size_error"), "context_exceeded"
    )
    yield refused(
        "too long, its code", 400, error("Too much.", "context_length_exceeded"), "context_exceeded"
    )
    yield refused(
        "tokens per minute, 413",
        413,
        error(PER_MINUTE, "rate_limit_exceeded", "tokens"),
        "rate_limited",
        "TPM",
    )
    yield refused(
        "tokens per minute, 429", 429, error(PER_MINUTE, "rate_limit_exceeded", "tokens"), "rate_limited"
    )
    yield refused("tokens per minute, 413 without a code", 413, error(PER_MINUTE), "rate_limited")
    yield refused(
        "413 of a proxy",
        413,
        b"<html><title>413 Request Entity Too Large</title>",
        "context_exceeded",
        media=HTML,
    )
    missing = [{"loc": ["body", "messages"], "msg": "Field required", "type": "missing"}]
    yield refused("detail as a list", 422, {"detail": missing}, "invalid_input", "Field required")
    yield refused(
        "detail in a message",
        422,
        {"object": "error", "message": {"detail": missing}},
        "invalid_input",
        "Field required",
    )
    yield refused("detail as a text", 400, {"detail": "No such thing."}, "bad_request", "No such thing.")
    yield refused("a list", 400, [error("Unknown name.", 400)], "bad_request", "Unknown name.")
    yield refused("a list, 429", 429, [error("Quota exceeded.", 429)], "rate_limited", "Quota exceeded.")
    yield refused("an error in words", 400, {"error": "No such thing."}, "bad_request", "No such thing.")
    yield refused("errors", 400, {"errors": [{"message": "No such thing."}]}, "bad_request", "No such thing.")
    yield refused(
        "flat",
        503,
        {"object": "error", "message": "Loading.", "code": 503},
        "service_unavailable",
        "Loading.",
    )
    yield refused(
        "a page, 502",
        502,
        b"<html><title>Bad gateway</title></html>",
        "service_unavailable",
        "Bad gateway",
        HTML,
    )
    yield refused("nothing, 500", 500, b"", "server_error")
    yield refused("no JSON, 400", 400, b'{"error": ', "bad_request")
    yield refused(
        "a model that is not there, 400", 400, error("No such model.", "model_not_found"), "model_unavailable"
    )
    yield refused("filtered", 400, error("Filtered.", "content_filter"), "content_policy")


FORMS = {
    area: tuple(make())
    for area, make in {
        "calls": forms_of_calls,
        "content": forms_of_content,
        "ends": forms_of_ends,
        "usage": forms_of_usage,
        "bodies": forms_of_bodies,
        "refusals": forms_of_refusals,
    }.items()
}
