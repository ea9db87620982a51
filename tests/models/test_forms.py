"""What comes where a stream was asked for is classed by what it is: an answer, an error or a page, whole or in parts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.core.models.usage import Usage
from baton.ports.models import CALLS, STOP
from examples.services.models import Reply
from tests.kit.provider import Served
from tests.models.asking import a_request, adapter_of, ask, failure

JSON, SSE = "application/json", "text/event-stream"
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def whole(value: Any, media: str = JSON) -> Reply:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return Reply(raw=raw, headers={"content-type": media})


def completion(message: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": USAGE}


def limited(code: Any = 429) -> dict[str, Any]:
    return {"error": {"message": "Rate limit exceeded: free-models-per-day", "code": code}, "user_id": "u"}


ERRORS = [
    (limited(), "rate_limited", "free-models-per-day"),
    (limited("429"), "rate_limited", "free-models-per-day"),
    ([limited()], "rate_limited", "free-models-per-day"),
    (limited("insufficient_quota"), "quota_exceeded", "free-models-per-day"),
    (limited("context_length_exceeded"), "context_exceeded", ""),
    (limited(401), "unauthorized", "does not accept the credential"),
    (limited("unheard_of"), "server_error", "free-models-per-day"),
    ({"error": {"message": "Busy", "status": 503}}, "service_unavailable", "Busy"),
    ({"error": "the model is loading"}, "server_error", "the model is loading"),
    ({"object": "error", "message": "too many", "code": 429}, "rate_limited", "too many"),
    ({"object": "error"}, "server_error", "it says no more"),
    ({"detail": "Not authenticated", "status": 403}, "forbidden", "Not authenticated"),
]


def test_an_error_is_that_error_and_costs_nothing_whole_or_as_the_first_part_of_a_stream(
    provider: Served,
) -> None:
    for body, code, said in ERRORS:
        one = body[0] if isinstance(body, list) else body
        first = f": wait\n\ndata: {json.dumps(one)}\n\n".encode()
        for reply in (*(whole(body, media) for media in (JSON, SSE, "text/plain")), whole(first, SSE)):
            provider.script = lambda asked, reply=reply: reply  # type: ignore[misc]  # bound here
            found = failure(adapter_of(provider.url))
            assert (found.code, said in found.message, bool(found.happened)) == (code, True, False), body


def test_what_an_error_behind_200_says_to_wait_is_told(provider: Served) -> None:
    headers = {"retry-after": "7", "content-type": JSON}
    provider.script = lambda asked: Reply(raw=json.dumps(limited()).encode(), headers=headers)
    assert failure(adapter_of(provider.url)).retry_after == "7"


def test_an_error_behind_the_beginning_of_an_answer_is_billed(provider: Served) -> None:
    part = {"choices": [{"index": 0, "delta": {"content": "I th"}, "finish_reason": None}]}
    error = {"object": "error", "message": "too many", "code": 429}
    raw = "".join(f"data: {json.dumps(one)}\n\n" for one in (part, error)).encode()
    provider.script = lambda asked: whole(raw, SSE)
    found = failure(adapter_of(provider.url))
    assert (found.code, found.happened) == ("rate_limited", True)


@pytest.mark.parametrize("before", [b"", b"\n \r\n", b"\xef\xbb\xbf", b" " * 5_000])
def test_a_completion_that_comes_whole_is_an_answer(provider: Served, before: bytes) -> None:
    raw = json.dumps(completion({"content": "held"}), indent=2).encode()
    provider.script = lambda asked: whole(before + raw)
    (answer,) = ask(adapter_of(provider.url), a_request())
    assert (answer.text, answer.finish, answer.usage) == ("held", STOP, Usage(model="m", input=10, output=5))


def test_calls_of_a_completion_that_comes_whole_are_calls(provider: Served) -> None:
    asked = [{"id": f"c{n}", "function": {"name": "look", "arguments": f'{{"at":{n}}}'}} for n in (1, 2)]
    provider.script = lambda _: whole(completion({"content": None, "tool_calls": asked}, "tool_calls"))
    (answer,) = ask(adapter_of(provider.url), a_request())
    assert answer.finish == CALLS
    assert [one.arguments for one in answer.calls] == ['{"at":1}', '{"at":2}']


def test_a_message_beside_the_last_part_of_a_stream_is_not_told_twice(provider: Served) -> None:
    parts = [
        {"choices": [{"delta": {"content": "hel"}}]},
        {"choices": [{"delta": {"content": "lo"}}]},
        {"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}], "usage": USAGE},
    ]
    provider.script = lambda asked: whole(
        "".join(f"data: {json.dumps(one)}\n\n" for one in parts).encode(), SSE
    )
    (answer,) = ask(adapter_of(provider.url), a_request())
    assert answer.text == "hello"


PAGES = [
    (b"<!doctype html><html><head><title>Please\n sign in</title>", "a page (`Please sign in`)"),
    (b"<html>" + b"x" * 100_000, "a page;"),
    (b"\n\n<?xml version='1.0'?><Error/>", "a page;"),
    (b"upstream connect error or disconnect/reset before headers", "upstream connect error"),
    (b"error: no healthy upstream", "no healthy upstream"),
    (b'"hello"', "hello"),
]


def test_a_page_or_another_text_is_no_answer_and_costs_nothing(provider: Served) -> None:
    for raw, said in PAGES:
        for media in ("text/html", SSE):
            reply = whole(raw, media)
            provider.script = lambda asked, reply=reply: reply  # type: ignore[misc]  # bound here
            found = failure(adapter_of(provider.url))
            assert (found.code, said in found.message) == ("invalid_response", True), found.message
            assert not found.happened


@pytest.mark.parametrize("raw", [b"[1]", b'{"choices": [', b'{"a": "\xff"}', b"[" * 100_000])
def test_json_that_cannot_be_read_may_have_been_an_answer(provider: Served, raw: bytes) -> None:
    provider.script = lambda asked: whole(raw)
    found = failure(adapter_of(provider.url))
    assert (found.code, found.happened) == ("invalid_response", True)


@pytest.mark.parametrize(
    "raw", [b"", b"\n\n", b": keep-alive\n\n", b"data: [DONE]\n\n", b"event: ping\ndata: {}\n\n"]
)
def test_a_stream_without_an_answer_has_no_end(provider: Served, raw: bytes) -> None:
    provider.script = lambda asked: whole(raw, SSE)
    found = failure(adapter_of(provider.url))
    assert (found.code, "before its end" in found.message) == ("invalid_response", True)


# ---- calls -------------------------------------------------------------------------------------------------------


def part_of(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"tool_calls": list(calls)}}]}


def call(index: int | None, id_: str | None, name: str | None, arguments: str | None) -> dict[str, Any]:
    return {"index": index, "id": id_, "function": {"name": name, "arguments": arguments}}


ROME, OSLO = '{"city":"Rome"}', '{"city":"Oslo"}'


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ([call(0, "a", "f", ROME), call(0, "b", "f", OSLO)], [ROME, OSLO]),
        ([call(0, "a", "f", ROME), call(0, "b", "f", ROME)], [ROME, ROME]),
        ([call(0, "", "f", ROME), call(0, "", "f", OSLO)], [ROME, OSLO]),
        ([call(None, None, "f", ROME), call(None, None, "f", OSLO)], [ROME, OSLO]),
        ([call(0, "a", "f", ""), call(0, "b", "f", "")], ["", ""]),
        ([call(0, None, "f", ""), call(0, None, "g", "")], ["", ""]),
        # in pieces, one after the other and mixed
        ([call(0, "a", "f", ROME[:5]), call(0, None, None, ROME[5:]), call(0, "b", "f", OSLO)], [ROME, OSLO]),
        (
            [
                call(0, "a", "f", ROME[:5]),
                call(0, "b", "f", OSLO[:5]),
                call(0, "a", None, ROME[5:]),
                call(0, "b", None, OSLO[5:]),
            ],
            [ROME, OSLO],
        ),
        ([call(1, "b", "f", OSLO), call(0, "a", "f", ROME)], [ROME, OSLO]),
        # one call: id and name repeated with each piece, or another id without a name
        ([call(0, "a", "f", ROME[:5]), call(0, "a", "f", ROME[5:])], [ROME]),
        ([call(0, None, "f", ROME[:5]), call(0, None, "f", ROME[5:])], [ROME]),
        ([call(0, "a", "f", ROME[:5]), call(0, "b", None, ROME[5:])], [ROME]),
        ([call(0, "", "f", '{"a":"}'), call(0, "", "f", '{"}')], ['{"a":"}{"}']),
        ([call(0, "a", "f", ROME), call(0, "", "f", "")], [ROME]),
    ],
)
def test_two_calls_with_one_index_are_two_calls(
    provider: Served, parts: list[dict[str, Any]], found: list[str]
) -> None:
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}], "usage": USAGE}
    sent = [*map(part_of, parts), last]
    provider.script = lambda asked: whole(
        "".join(f"data: {json.dumps(one)}\n\n" for one in sent).encode(), SSE
    )
    (answer,) = ask(adapter_of(provider.url), a_request())
    assert [one.arguments for one in answer.calls] == found
    assert len({one.id for one in answer.calls}) == len(found), "each has an id of its own"
