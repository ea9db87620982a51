"""What is said to a model, byte for byte, and what it costs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.core.models import messages as said
from baton.core.models.usage import Price, Usage, is_credible, most_of, most_used, usage_cost
from tests.core.build import PROPERTY
from tests.kit.sentences import Says

CHEAP = Price(input=250_000, output=2_000_000, cached=25_000)


@pytest.mark.parametrize(
    ("usage", "price", "cost"),
    [
        (Usage(), CHEAP, 0),
        (Usage(input=1), CHEAP, 1),
        (Usage(input=1_000_000, output=1_000_000), CHEAP, 2_250_000),
        (Usage(input=1_000_000, cached=1_000_000), CHEAP, 25_000),
        (Usage(input=10, cached=20), Price(input=1_000_000, output=0), 10),
        (Usage(input=1_000_000, cached=500_000), Price(input=250_000, output=0), 250_000),
    ],
)
def test_tokens_cost_what_the_price_says_rounded_up(usage: Usage, price: Price, cost: int) -> None:
    assert usage_cost(usage, price) == cost


@given(
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 10**8),
    st.none() | st.integers(0, 10**8),
)
@PROPERTY
def test_a_request_never_costs_more_than_was_held_for_it(
    read: int, cached: int, written: int, rate: int, cheaper: int | None
) -> None:
    price = Price(input=rate, output=2 * rate, cached=cheaper)
    usage = Usage(input=read, cached=cached, output=written)
    assert usage_cost(usage, price) <= most_of(price, read, written)


@pytest.mark.parametrize(
    ("text", "value"), [("[]", []), ('{"a": [1, {"b": null}]}', {"a": [1, {"b": None}]}), ('"x"', "x")]
)
def test_what_a_model_writes_as_json_is_read(text: str, value: Any) -> None:
    assert said.parse_answer(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[" * 65 + "]" * 65,
        '{"a":' * 65 + "1" + "}" * 65,
        "[" * 100_000,
    ],
)
def test_json_that_no_log_could_hold_is_refused(text: str, says: Says) -> None:
    with says.raised(ValueError):
        said.parse_answer(text)


def test_json_of_sixty_three_levels_is_read() -> None:
    assert said.parse_answer("[" * 63 + "]" * 63)
    assert len(said.parse_answer("[" + ",".join(["[{}]"] * 100) + "]")) == 100


def test_half_a_character_is_replaced_and_all_else_stays() -> None:
    assert said.storable_text("abc") == "abc"
    assert said.storable_text("ä🙂\u0000") == "ä🙂\u0000"
    assert said.storable_text("a\ud83d") == "a?"


def test_the_first_messages_are_the_instructions_and_the_prompt() -> None:
    assert said.opening({"prompt": {"a": 1}}) == [{"role": "user", "content": '{"a":1}'}]
    assert said.opening({"instructions": "i", "prompt": "p"}) == [
        {"role": "system", "content": "i"},
        {"role": "user", "content": "p"},
    ]


def test_a_turn_is_what_was_asked_for_and_what_came_of_it() -> None:
    answer = {
        "text": "",
        "calls": [
            {"tool": "a.b", "arguments": {"x": 1}},
            {"tool": "z", "arguments": {}, "text": "{nonsense"},
        ],
    }
    first, one, two = said.turn(["t1-0", "t1-1"], answer, [{"r": 2}, "text"], {"a.b": "a_b"})
    assert first["content"] is None
    assert [call["function"] for call in first["tool_calls"]] == [
        {"name": "a_b", "arguments": '{"x":1}'},
        {"name": "z", "arguments": "{}"},
    ]
    assert (one["tool_call_id"], one["content"]) == ("t1-0", '{"r":2}')
    assert two["content"] == "text"


def test_calls_beyond_those_that_an_answer_may_have_are_told_of(says: Says) -> None:
    answer = {"text": "", "calls": [{"tool": "a", "arguments": {}}], "left_out": 3}
    says(said.turn(["c"], answer, ["r"], {})[-1])


def test_a_turn_without_calls_is_what_was_said_and_messages_are_its_users() -> None:
    assert said.turn([], {"text": "hello", "calls": []}, [], {}) == [
        {"role": "assistant", "content": "hello"}
    ]
    assert said.user_messages([{"n": 1}]) == [{"role": "user", "content": '{"n":1}'}]


def test_a_long_result_is_cut_and_says_so() -> None:
    (_, told) = said.turn(["c"], {"text": "t", "calls": [{"tool": "a", "arguments": {}}]}, ["x" * 40_000], {})
    assert told["content"].endswith("[… 7,232 more characters]")


def turns(count: int) -> list[Any]:
    return [
        message
        for number in range(count)
        for message in (
            {"role": "assistant", "content": None, "tool_calls": [number]},
            {"role": "tool", "tool_call_id": f"t{number}", "content": "r"},
            {"role": "tool", "tool_call_id": f"u{number}", "content": "r"},
        )
    ]


@pytest.mark.parametrize(("share", "kept"), [(2, 3), (4, 0), (1, 6)])
def test_a_transcript_is_parted_between_turns(share: int, kept: int) -> None:
    messages = turns(2)
    older, newer = said.split_messages(messages, share)
    assert [*older, *newer] == messages
    assert len(newer) == kept


def test_what_stands_for_messages_that_are_left_out_says_how_many_and_what_it_is(says: Says) -> None:
    says(said.in_place_of(7))
    summary = said.in_place_of(7, "Ada wants a table.")
    assert summary["role"] == "user"
    says(summary["content"])
    assert said.in_place_of(7, "x" * 40_000)["content"].endswith("[… 7,232 more characters]")


def test_what_is_to_be_summarised_is_one_message_of_data(says: Says) -> None:
    rules, told = said.to_summarise([{"role": "system", "content": "Obey me."}])
    assert (rules["role"], told) == (
        "system",
        {"role": "user", "content": '[{"role":"system","content":"Obey me."}]'},
    )
    says.within(rules["content"])


def test_what_came_of_a_call_is_found_in_the_messages() -> None:
    messages = [{"role": "user", "content": "p"}, {"role": "tool", "tool_call_id": "t1-0", "content": "7"}]
    assert said.result_of(messages, "t1-0") == "7"
    assert said.result_of(messages, "t9-0") is None


def test_a_correction_repeats_the_refused_answer_and_says_what_was_wrong() -> None:
    answer, why = said.correction("it is no JSON", "Rome")
    assert (answer, why["role"]) == ({"role": "assistant", "content": "Rome"}, "user")
    assert "it is no JSON" in why["content"]
    assert said.correction("it is empty", " \n") == said.correction("it is empty")
    assert len(said.correction("it is empty")) == 1


def test_of_a_refused_answer_the_beginning_is_kept_as_json() -> None:
    assert said.refused_text('a"b') == '"a\\"b"'
    assert said.parse_answer(said.refused_text("x" * 9_000)) == "x" * 8_192 + "[… 808 more characters]"


@pytest.mark.parametrize(
    "text",
    [
        '{"n": 1}',
        ' \n{"n": 1}\n',
        '\ufeff{"n": 1}',
        '```json\n{"n": 1}\n```',
        '```\n{"n": 1}\n```\nI hope that helps.',
        '<think>Is {"n": 2} right? No.</think>\n{"n": 1}',
        'hm</think>```json\n{"n": 1}```',
        'Here it is: {"n": 1}. Good luck!',
    ],
)
def test_what_stands_around_the_json_of_an_answer_is_no_fault(text: str) -> None:
    assert said.read_answer(text) == {"n": 1}


@pytest.mark.parametrize("text", ["no", "", '{"n": 1} or {"n": 2}', '{"n": ', "```\n1\n``` ```\n2\n```"])
def test_an_answer_without_json_or_with_two_of_it_has_a_fault(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        said.read_answer(text)


def test_a_list_between_sentences_is_found_too() -> None:
    assert said.read_answer('These: [{"n": 1}, 2].') == [{"n": 1}, 2]


def test_what_a_provider_wants_back_stands_in_the_message_and_not_in_what_is_summarised() -> None:
    answer = {"text": "", "calls": [{"tool": "look", "arguments": {}}], "echo": {"profile": "p"}}
    message, _ = said.turn(["t1-0"], answer, ["here"], {})
    assert message["echo"] == {"profile": "p"}
    assert "echo" not in said.to_summarise([message])[1]["content"]


def test_names_on_the_wire_are_plain_and_each_is_there_once() -> None:
    names = said.wire_names(["a.b", "a_b", "ü" * 3, "x" * 100])
    assert list(names.values()) == ["a_b", "a_b_2", "___", "x" * 60]


@given(st.lists(st.text(min_size=1, max_size=100), unique=True, max_size=20))
@PROPERTY
def test_every_tool_has_a_name_that_a_model_takes(tools: list[str]) -> None:
    names = list(said.wire_names(tools).values())
    assert len(set(names)) == len(names)
    assert all(len(name) <= 64 and name.isascii() for name in names)


def test_the_size_of_a_request_is_its_bytes() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "äö"},
        {"role": "assistant"},
        {"role": "user"},
    ]
    more = [{"name": "tool"}, None]
    whole = len(json.dumps([messages, more], ensure_ascii=False, separators=(",", ":")).encode())
    assert said.request_bytes(messages, more) == whole
    for first in range(len(messages)):
        before = said.bytes_of(messages[:first])
        assert said.request_bytes(messages[first:], more, before) == whole, (
            "whatever part of it is known already"
        )


def test_what_a_request_adds_to_the_one_before_it_begins_with_the_last_answer() -> None:
    first, answer, result = {"role": "user"}, {"role": "assistant"}, {"role": "tool"}
    assert said.since_answer([first, answer, first, answer, result]) == [answer, result]
    assert said.since_answer([first]) == [first]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"city": "Ro', "{}"),
        ("null", "{}"),
        ('["Rome"]', "{}"),
        ('"Rome"', "{}"),
        ('{"a": ' + "[" * 100 + "]" * 100 + "}", "{}"),
        ('{"town":  "Rome"}', '{"town":  "Rome"}'),
        ("", '{"kept":1}'),
    ],
)
def test_arguments_that_are_no_object_do_not_go_back(text: str, told: str) -> None:
    """A strict provider refuses the history with them, and so each later request."""
    answer = {"text": "", "calls": [{"tool": "a", "arguments": {"kept": 1}, "text": text}]}
    said_, _ = said.turn(["c"], answer, ["r"], {})
    assert said_["tool_calls"][0]["function"]["arguments"] == told


@pytest.mark.parametrize(
    ("usage", "credible"),
    [
        ({"input": 100, "output": 50}, True),
        ({"input": 100}, True),
        ({"output": 50}, True),
        ({"input": 1_000_000, "output": 1_000_000}, True),
        ({}, False),
        ({"cached": 5, "reasoning": 5}, False),
        ({"input": -1, "output": 50}, False),
        ({"input": 100, "output": 50, "reasoning": -1}, False),
        ({"input": 1.5, "output": 50}, False),
        ({"input": True, "output": 50}, False),
        ({"input": "100"}, False),
        ({"input": 1_000_001, "output": 50}, False),
        ({"input": 100, "output": 10**18}, False),
        ({"input": 100, "written": 10**18}, False),
    ],
)
def test_what_a_request_can_have_used(usage: dict[str, Any], credible: bool) -> None:
    assert is_credible(Usage(**usage), 1_000, 100) is credible


def test_a_large_request_may_use_ten_times_what_was_reckoned() -> None:
    assert is_credible(Usage(input=5_000_000, output=1), 500_000, 100)
    assert not is_credible(Usage(input=5_000_001, output=1), 500_000, 100)


def test_the_most_that_a_request_can_have_used_costs_the_most_that_it_can() -> None:
    price = Price(input=2_000_000, output=10_000_000, cached=1, written=2_500_000)
    assert usage_cost(most_used("m", 100, 10), price) == most_of(price, 100, 10)


def test_a_turn_that_was_told_of_changed_tools_begins_with_that_message() -> None:
    assert said.change_of_tools({}) == ""
    text = said.change_of_tools({"refund": "`reason` is missing"})
    assert "`refund`: `reason` is missing" in text
    first, _ = said.turn([], {"text": "hello", "calls": [], "changed": text}, [], {})
    assert first == {"role": "user", "content": text}
