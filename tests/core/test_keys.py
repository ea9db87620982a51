"""Idempotency keys: what is in each, which parameters are the same, and what is wrong with a rule."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import baton
from baton.core.effects.keys import (
    STRATEGIES,
    Key,
    KeyIncomplete,
    KeyRule,
    canonical,
    check_rule,
    key_of,
)
from tests.core.build import JSON, PROPERTY
from tests.kit.sentences import Says

NOW = 1_790_000_000_000
PARAMETERS = {
    "id": "i-7",
    "at": "2026-11-22T14:00Z",
    "order": {"id": 4, "lines": [1]},
    "text": "hello",
    "version": 1,
}

ANY: Any = Key  # with arguments of any type, as an author may write them

RULES: dict[str, KeyRule] = {
    "node": Key.node(),
    "saga": Key.saga(),
    "user": Key.user("id"),
    "schedule": Key.schedule("id", "at"),
    "event": Key.event("id"),
    "request": Key.request(),
    "content": Key.content("id", "text"),
    "window": Key.window("5m"),
    "business": Key.business("invoice", "id", version="version"),
    "given": Key.given("id"),
}
# What makes another key of it, beyond tenant and tool, which always do.
COUNTS: dict[str, set[str]] = {
    "node": {"user", "saga", "node", "occurrence", "text", "id"},
    "saga": {"user", "saga", "occurrence", "text", "id"},
    "user": {"user", "id"},
    "schedule": {"id", "at of schedule"},
    "event": {"id"},
    "request": {"user", "text", "id"},
    "content": {"user", "text", "id"},
    "window": {"user", "at"},
    "business": {"id"},
    "given": {"user", "id"},
}
OTHER: dict[str, dict[str, Any]] = {
    "user": {"user": "bob"},
    "saga": {"saga": "s2"},
    "node": {"node": "again"},
    "occurrence": {"occurrence": (1,)},
    "text": {"parameters": {**PARAMETERS, "text": "bye"}},
    "id": {"parameters": {**PARAMETERS, "id": "i-8"}},
    "at of schedule": {"parameters": {**PARAMETERS, "at": "2026-11-23T14:00Z"}},
    "at": {"at": NOW + 300_000},
}


def key(rule: KeyRule | None = None, **changed: Any) -> str:
    fields: dict[str, Any] = {
        "tenant": "acme",
        "user": "ada",
        "saga": "s1",
        "node": "pay",
        "tool": "pay.card",
        "parameters": PARAMETERS,
        "occurrence": (0,),
        "at": NOW,
    }
    return key_of(rule or KeyRule(), **fields | changed)


def of(parameters: Any) -> str:
    return key(parameters=parameters)


# ---- what is in a key --------------------------------------------------------------------------------------------


def test_there_is_a_rule_for_every_strategy() -> None:
    assert RULES.keys() == STRATEGIES.keys() == COUNTS.keys()
    assert {name: rule.strategy for name, rule in RULES.items()} == {name: name for name in STRATEGIES}
    assert baton.Key is Key


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_key_changes_with_what_is_in_it_and_with_nothing_else(name: str) -> None:
    rule = RULES[name]
    assert len(key(rule)) == 32
    counts = {what for what, changed in OTHER.items() if key(rule, **changed) != key(rule)}
    assert counts - COUNTS[name] <= {"at of schedule"}, "all parameters are in some of them"
    assert counts >= COUNTS[name]
    for changed in ({"tenant": "globex"}, {"tool": "pay.bank"}, {"generation": 1}):
        assert key(rule, **changed) != key(rule)


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_table_of_strategies_says_what_is_in_a_key(name: str) -> None:
    strategy = STRATEGIES[name]
    assert bool(strategy.user) == ("user" in COUNTS[name])
    assert strategy.saga == ("saga" in COUNTS[name])
    assert (strategy.parameters == "all") == ({"text", "id"} <= COUNTS[name] and name != "content")


def test_two_strategies_have_no_key_in_common() -> None:
    assert len({key(rule) for rule in RULES.values()}) == len(RULES)


@pytest.mark.parametrize(
    ("rule", "always"),
    [
        (KeyRule(), "9d890f4948b7cc6b30cc7601a7b4c9c7"),
        (Key.node(in_progress="refuse"), "9d890f4948b7cc6b30cc7601a7b4c9c7"),
        (Key.saga(in_progress="refuse"), "7e122239a12dadf111f6114fb1f1096b"),
    ],
)
def test_a_key_of_a_saga_is_what_it_has_always_been(rule: KeyRule, always: str) -> None:
    """A step that runs again after a deployment must carry the key that it had before."""
    parameters = {"table": "t-1", "at": "19:30", "party": 4.0}
    assert key(rule, tool="t", parameters=parameters, occurrence=()) == always


def test_a_tool_that_says_nothing_acts_once_at_each_node() -> None:
    assert KeyRule() == Key.node()
    assert key(KeyRule(), **OTHER["node"]) != key(KeyRule())
    assert key(Key.saga(), **OTHER["node"]) == key(Key.saga())


def test_anyone_leaves_the_user_out() -> None:
    for rule in (Key.request(anyone=True), Key.content("id", anyone=True), Key.given("id", anyone=True)):
        assert key(rule, user="bob") == key(rule) == key(rule, user="")


def test_a_user_action_without_names_is_made_of_all_parameters() -> None:
    assert key(Key.user(), **OTHER["text"]) != key(Key.user())
    assert key(Key.user(), saga="s2") == key(Key.user())


def test_calls_of_one_window_are_the_same(says: Says) -> None:
    rule, begin = Key.window("5m", "id"), NOW - NOW % 300_000
    assert key(rule, at=begin) == key(rule, at=begin + 299_999) != key(rule, at=begin + 300_000)
    assert key(rule, **OTHER["id"]) != key(rule)
    assert key(rule, **OTHER["text"]) == key(rule)
    assert key(Key.window("10m"), at=600_001) != key(Key.window("5m"), at=300_001), "number 1 of both"
    with says.raised(KeyIncomplete):
        key(rule, at=0)


def test_another_version_of_a_thing_of_the_business_is_another_action() -> None:
    rule = RULES["business"]
    assert key(rule, parameters={**PARAMETERS, "version": 2}) != key(rule)
    assert key(Key.business("order", "id", version="version")) != key(rule)
    assert key(Key.business("invoice", "id", "version")) != key(Key.business("invoice", "version", "text"))


def test_a_part_may_be_inside_of_a_parameter() -> None:
    rule = Key.event("order.id")
    assert key(rule, parameters={"order": {"id": 4.0, "lines": []}}) == key(rule)
    assert key(rule, parameters={"order": {"id": "4"}}) != key(rule)


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES.values() if rule.parts and rule.strategy != "content"]
)
@pytest.mark.parametrize("given_", [{}, {"id": None}, {"id": "  "}, "text"])
def test_a_part_that_is_not_there_is_told(rule: KeyRule, given_: Any, says: Says) -> None:
    with says.raised(KeyIncomplete):
        key(rule, parameters=given_)


def test_what_is_inside_of_something_else_is_not_there() -> None:
    with pytest.raises(KeyIncomplete, match=r"`order\.id\.x`"):
        key(Key.event("order.id.x"))
    with pytest.raises(KeyIncomplete, match="`version`"):
        key(RULES["business"], parameters={"id": 1})


def test_content_may_be_without_some_of_its_parts_and_not_without_all() -> None:
    rule = Key.content("id", "text")
    assert (
        len(
            {
                key(rule, parameters=given_)
                for given_ in ({"id": 1}, {"id": 1, "text": None}, {"id": 1, "text": ""})
            }
        )
        == 3
    )
    with pytest.raises(KeyIncomplete, match="`id`"):
        key(rule, parameters={})


def test_a_key_that_is_made_of_the_user_needs_one(says: Says) -> None:
    with says.raised(KeyIncomplete):
        key(Key.request(), user="")


# ---- which parameters are the same -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spellings",
    [
        ["14:00", "14:00:00", " 14:00", "2 pm", "2:00 PM", "02:00pm", "2 p.m.", "14:00:00.000"],
        ["9:05", "09:05", "9:05am", "9:05 A.M."],
        ["00:00", "0:00", "12 am", "12:00 AM"],
        ["12:00", "12pm"],
        ["24:00", "24:00:00"],
        ["14:00Z", "14:00:00+00:00", "14:00 UTC", "14:00+0000", "14:00-00"],
        ["14:00+01:00", "14:00:00 +01", "14:00+0100"],
        ["14:00:00.5", "14:00:00,50"],
        ["2026-11-22T14:00Z", "2026-11-22 14:00:00+00:00", "2026-11-22t14:00:00.000z", "2026-11-22T15:00+01",
         "2026-11-22  14:00 UTC", "2026-11-22T09:00-05:00", "2026-11-22T19:30+0530"],
        ["2026-11-22T9:00", "2026-11-22 09:00:00"],
        ["2026-11-22T24:00Z", "2026-11-23T00:00:00Z", "2026-11-23T01:00+01:00"],
        ["2026-12-31T24:00", "2027-01-01T00:00"],
        ["2026-11-22T14:00:00.1234567Z", "2026-11-22T15:00:00.12345670+01:00"],
        ["caf\u00e9", "cafe\u0301"],
        [{"caf\u00e9 ": 1}, {"cafe\u0301": 1.0}],
        [10**30, 1e30],
        [{"deep": [{"at": "14:00", "n": [1.0, None]}]}, {" deep": [{"n": [1, None], "at ": "2pm"}]}],
    ],
)  # fmt: skip
def test_spellings_of_one_thing_have_one_key(spellings: list[Any]) -> None:
    assert len({of(spelling) for spelling in spellings}) == 1


@pytest.mark.parametrize(
    "things",
    [
        ["24:00", "00:00", "24:01", "25:00", "24:00:00.1", "0:60"],
        ["14:00", "14:00Z", "14:00+01:00", "14:00-01:00", "14:00:00.5", "14:00:00.500001"],
        ["2 pm", "2 am", "2", "0 pm", "13 pm", "14 pm"],
        ["2026-11-22T14:00:00.1234567Z", "2026-11-22T14:00:00.1234568Z", "2026-11-22T14:00:00Z"],
        ["2026-11-22", "2026-11-22T00:00", "2026-11-22T00:00Z"],
        ["2026-02-29T14:00Z", "2026-03-01T14:00Z"],
        ["2026-11-22T24:01Z", "2026-11-23T00:01Z"],
        ["9999-12-31T24:00", "9999-12-31T00:00"],
        ["0001-01-01T00:00+01:00", "0001-01-01T00:00Z"],
        ["2026-11-22T14:00+25:00", "2026-11-22T14:00"],
        ["\uff11\uff14:00", "14:00"],
        ["\ufb01n", "fin", "FIN"],
        ["a  b", "a b", "a\u200bb"],
        ["1", 1, True, 1.5, "1.0"],
        [{"a": 1}, {"a ": 1, "a": 1}, {"a": 1, " a": 2}, {"a": 2, " a": 1}],
        [[], {}, None, "", "null", [[]]],
        [[1, 2], [2, 1]],
    ],
)
def test_different_things_have_different_keys(things: list[Any]) -> None:
    assert len({of(thing) for thing in things}) == len(things)


@PROPERTY
@given(
    JSON
    | st.from_regex(r"\A[0-9]{1,2}:[0-5][0-9](:[0-5][0-9])?( ?(am|pm|Z|\+01))?\Z")
    | st.from_regex(
        r"\A20[0-9]{2}-[01][0-9]-[0-3][0-9][T ][0-9]{2}:[0-5][0-9](:00\.[0-9]{1,9})?(Z|[+-][0-9]{4})?\Z"
    )
    | st.dictionaries(st.sampled_from(["a", " a", "a ", "b", "\u00e9", "e\u0301"]), st.integers())
)
def test_the_canonical_form_is_its_own(value: Any) -> None:
    assert canonical(canonical(value)) == canonical(value)


# ---- rules -------------------------------------------------------------------------------------------------------

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "invoice_id": {"type": "string"},
        "at": {"type": "string"},
        "order": {"$ref": "#/$defs/Order"},
        "any": {},
        "free": {"type": "object"},
        "maybe": {"anyOf": [{"$ref": "#/$defs/Order"}, {"type": "null"}]},
        "many": {"type": "array"},
        "closed": {"type": "object", "additionalProperties": False},
        "lost": {"$ref": "#/$defs/Nowhere"},
        "true": True,
    },
    "$defs": {"Order": {"type": "object", "properties": {"id": {"type": "integer"}}}},
}


@pytest.mark.parametrize(
    "rule",
    [
        Key.node(),
        Key.saga(),
        Key.user(),
        Key.user("invoice_id", keep="1h"),
        Key.schedule("invoice_id", "at"),
        Key.event("order.id"),
        Key.event("any.thing.at.all"),
        Key.event("free.thing"),
        Key.event("maybe.id"),
        Key.event("lost.thing"),
        Key.event("true.thing"),
        Key.request(anyone=True, in_progress="refuse"),
        Key.content("invoice_id", "at"),
        Key.window("1d", "invoice_id", anyone=True),
        Key.business("invoice", "invoice_id", version="order.id"),
        Key.given("invoice_id"),
    ],
)
def test_a_rule_that_fits_its_tool_has_no_problem(rule: KeyRule) -> None:
    assert check_rule(rule, SCHEMA) == ""


@pytest.mark.parametrize(
    "rule",
    [
        Key.event("invoce_id"),
        Key.event("xyz"),
        Key.event("order.ix"),
        Key.event("order.zzz"),
        Key.event("invoice_id.x"),
        Key.event("many.x"),
        Key.event("closed.x"),
        Key.business("invoice", "at", version="v"),
        KeyRule(strategy="daily"),
    ],
)
def test_a_rule_that_does_not_fit_its_tool_is_told(rule: KeyRule, says: Says) -> None:
    says(check_rule(rule, SCHEMA))


def test_a_tool_without_parameters_is_told(says: Says) -> None:
    told = check_rule(Key.event("id"), {"type": "object", "properties": {}})
    says(told)


@pytest.mark.parametrize(
    "make",
    [
        Key.content,
        lambda: Key.business("invoice"),
        lambda: Key.business(" ", "id"),
        lambda: ANY.business(5, "id"),
        lambda: ANY.event(5),
        lambda: Key.event("order..id"),
        lambda: Key.event(""),
        lambda: Key.schedule("id", "id"),
        lambda: Key.business("invoice", "id", version="id"),
        lambda: Key.window("soon"),
        lambda: ANY.window(None),
        lambda: Key.request(keep="for ever"),
        lambda: Key.request(in_progress="wiat"),
        lambda: Key.node(keep="24h"),
        lambda: Key.saga(keep="24h"),
        lambda: Key.user(anyone=True),
        lambda: Key.event("id", anyone=True),
    ],
)
def test_what_is_no_rule_is_refused_where_it_is_written(make: Any, says: Says) -> None:
    with pytest.raises(ValueError, match="Key") as refused:
        make()
    says(str(refused.value))


def test_an_option_that_there_is_none_of_is_refused() -> None:
    with pytest.raises(TypeError, match="keeep"):
        Key.request(keeep="24h")
