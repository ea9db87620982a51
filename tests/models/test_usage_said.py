"""What a provider says that a request has used, in the forms of many; what it does not say is the most that it can have been."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.adapters.models.answers import UsageCounts
from baton.core.models.usage import Usage, most_used
from examples.services.models import Reply
from tests.kit.provider import Served
from tests.models.asking import a_request, adapter_of, ask

READ, WRITTEN = 3_000, 500
MOST = most_used("m", READ, WRITTEN)
NAN, ENDLESS = float("nan"), float("inf")
NO_COUNTS: tuple[Any, ...] = (True, 1.5, NAN, ENDLESS, {}, [1])


def said(*usages: Any, is_empty: bool = False) -> Usage:
    one = UsageCounts()
    for usage in usages:
        one.see(usage)
    return one.usage("m", READ, WRITTEN, is_empty=is_empty)


def usage(**figures: int) -> Usage:
    return Usage(model="m", **figures)


def chat(read: Any, written: Any, total: Any = None, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": total, **more}


THOUGHT = {"completion_tokens_details": {"reasoning_tokens": 94}}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (chat(100, 50, 150), usage(input=100, output=50)),
        (chat(100, 50), usage(input=100, output=50)),
        (chat(100.0, 50.0), usage(input=100, output=50)),
        ({"input_tokens": 100, "output_tokens": 50}, usage(input=100, output=50)),
        (chat(32, 9, 135, **THOUGHT), usage(input=32, output=103, reasoning=94)),
        (chat(32, 9, **THOUGHT), usage(input=32, output=103, reasoning=94)),
        (chat(32, 103, 135, **THOUGHT), usage(input=32, output=103, reasoning=94)),
        (chat(20, 424, 1016), usage(input=20, output=996)),
        (chat(100, 50, 3), usage(input=100, output=50)),
        (chat(100, None, 180), usage(input=100, output=80)),
        (chat(None, 50, 180), usage(input=130, output=50)),
        ({"total_tokens": 400}, usage(input=0, output=400)),
        ({"total_tokens": 900}, usage(input=400, output=500)),
        (chat(100, 50, prompt_tokens_details={"cached_tokens": 30}), usage(input=100, output=50, cached=30)),
        (
            {
                "input_tokens": 9,
                "output_tokens": 5,
                "cache_read_input_tokens": 80,
                "cache_creation_input_tokens": 11,
            },
            usage(input=100, output=5, cached=80, written=11),
        ),
        (
            {"input_tokens": 9, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 4}},
            usage(input=9, output=5, reasoning=4),
        ),
    ],
)
def test_what_is_said_in_another_form_is_read(given: Any, found: Usage) -> None:
    assert said(given) == found


@pytest.mark.parametrize(
    "given",
    [
        *(None, {}, [], "many", 7, chat(0, 0, 0), chat(None, None), chat(-1, -2, -3), chat("100", "50")),
        *(chat(one, one, one) for one in NO_COUNTS),
    ],
    ids=str,
)
def test_what_is_not_said_or_is_no_number_is_the_most(given: Any) -> None:
    assert said(given) == MOST
    assert said(given, is_empty=True) == MOST


def test_a_part_that_is_not_said_is_the_most_of_that_part() -> None:
    assert said(chat(100, 0)) == usage(input=100, output=WRITTEN), "something was written"
    assert said(chat(100, None), is_empty=True) == usage(input=100, output=WRITTEN), "it may have thought"
    assert said(chat(100, 0), is_empty=True) == usage(input=100, output=0)
    assert said(chat(0, 50)) == usage(input=READ, output=50)
    assert said(chat(-7, 50)) == usage(input=READ, output=50)


def test_of_several_usages_the_highest_figures_count() -> None:
    assert said(chat(100, 50, 150), chat(0, 0, 0)) == usage(input=100, output=50)
    assert said(chat(100, 10), chat(100, 50), {}) == usage(input=100, output=50)
    assert said({"input_tokens": 100, "output_tokens": 1}, {"output_tokens": 50}) == usage(
        input=100, output=50
    )


def stream(*parts: dict[str, Any]) -> Reply:
    text = "".join(f"data: {json.dumps(part)}\n\n" for part in parts)
    return Reply(raw=f"{text}data: [DONE]\n\n".encode())


def answered(*usages: Any) -> Reply:
    choice = {"index": 0, "delta": {"content": "hello"}, "finish_reason": "stop"}
    return stream({"model": "m", "choices": [choice]}, *({"choices": [], "usage": one} for one in usages))


def test_an_answer_counts_whatever_is_said_of_its_usage(provider: Served) -> None:
    replies = [answered(), *map(answered, ({}, chat(None, None), chat(-1, "x"), "none", chat(NAN, 1e400)))]
    for reply in replies:
        provider.script = lambda asked, reply=reply: reply  # type: ignore[misc]  # bound here
        (answer,) = ask(adapter_of(provider.url), a_request(most_output=WRITTEN, most_input=READ))
        assert (answer.text, answer.usage) == ("hello", MOST)


def test_usage_beside_the_delta_is_read(provider: Served) -> None:
    choice = {"index": 0, "delta": {"content": "hello"}, "finish_reason": "stop", "usage": chat(9, 4)}
    provider.script = lambda asked: stream({"model": "m", "choices": [choice]})
    (answer,) = ask(adapter_of(provider.url), a_request())
    assert answer.usage == usage(input=9, output=4)


def test_a_request_without_bounds_of_its_own_has_used_a_token_for_each_byte(provider: Served) -> None:
    provider.script = lambda asked: Reply("ü" * 50, calls=[("look", '{"a":1}')], counted=False)
    (answer,) = ask(adapter_of(provider.url), a_request("x" * 1_000))
    assert answer.usage.output == 100 + len('look{"a":1}')
    assert 1_000 < answer.usage.input < 1_500
