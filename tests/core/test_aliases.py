"""Aliases: which mistake of a model counts, how many propose one, and to which call one is applied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.models.aliases import (
    APPROVED,
    BY_SETTING,
    COUNTED,
    MOST_ALIASES,
    PROPOSED,
    REJECTED,
    Alias,
    count_mismatch,
    mismatch,
    names_for,
    useless_because,
)
from tests.kit.sentences import Says

REFUND = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string"},
        "amount": {"type": "integer", "default": 0},
        "notes": {"type": "string", "default": ""},
    },
    "required": ["order_id"],
    "additionalProperties": False,
}
FOUND = "refund", "orderid", "order_id"
ALIAS = Alias(tool="refund", given="orderid", parameter="order_id", status=APPROVED)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ({"orderid": "17"}, ("orderid", "order_id")),
        ({"number": "17"}, ("number", "order_id")),
        ({"order_id": "17", "user_notes": "late"}, ("user_notes", "notes")),
        ({"orderid": 17}, None),
        ({"orderid": "17", "user_notes": "late"}, None),
        ({"orderid": "17", "amount": "all"}, None),
        ({"order_id": "17", "zzz": "late"}, None),
        ({"order_id": "17", "amount": "all"}, None),
        ({"approve this name, please": "17"}, None),
        ({}, None),
    ],
)
def test_one_strange_name_with_a_value_that_fits_the_missing_parameter_is_a_mismatch(
    arguments: dict[str, Any], meant: tuple[str, str] | None
) -> None:
    assert mismatch(REFUND, arguments) == meant


def test_two_missing_parameters_leave_it_open_which_one_is_meant() -> None:
    assert mismatch({**REFUND, "required": ["order_id", "amount"]}, {"orderid": "17"}) is None


def _after(calls: Sequence[tuple[str, str]], *, approves: bool = False) -> Sequence[Alias]:
    aliases: Sequence[Alias] = ()
    for at, (saga, call) in enumerate(calls):
        aliases = count_mismatch(aliases, FOUND, saga, call, at, approves=approves)
    return aliases


def test_five_calls_propose_an_alias_and_a_call_counts_once() -> None:
    calls = [("s", f"a#t{turn}-0") for turn in range(5)]
    (four,) = _after(calls[:4] + calls[:4])
    (five,) = _after(calls)
    assert (four.status, len(four.seen)) == (COUNTED, 4)
    assert (five.status, five.sagas, five.by) == (PROPOSED, ("s",), "")
    assert _after([*calls, ("s", "a#t9-0"), ("other", "a#t1-0")]) == (five,), "further ones write nothing"


def test_the_setting_approves_after_five_sagas_and_not_after_five_calls_of_one() -> None:
    (alone,) = _after([("s", f"a#t{turn}-0") for turn in range(20)], approves=True)
    assert (alone.status, len(alone.seen)) == (PROPOSED, 5)
    (approved,) = _after([(f"s{n}", "a#t1-0") for n in range(5)], approves=True)
    assert (approved.status, approved.by) == (APPROVED, BY_SETTING)
    rival = replace(ALIAS, parameter="notes")
    aliases: Sequence[Alias] = (rival,)
    for number in range(9):
        aliases = count_mismatch(aliases, FOUND, f"s{number}", "a#t1-0", 0, approves=True)
    assert [one.status for one in aliases] == [APPROVED, PROPOSED], "a name has one alias"


def test_a_rejected_alias_is_not_counted() -> None:
    there = (replace(ALIAS, status=REJECTED),)
    assert count_mismatch(there, FOUND, "s", "a#t1-0", 0, approves=True) is there


def test_the_oldest_name_that_is_only_counted_makes_room_and_no_other() -> None:
    there = tuple(Alias(tool="refund", given=f"n{n}", parameter="notes", at=n) for n in range(MOST_ALIASES))
    after = count_mismatch(there, FOUND, "s", "a#t1-0", 99, approves=False)
    assert (len(after), after[0].given, after[-1].given) == (MOST_ALIASES, "n1", "orderid")
    full = tuple(replace(one, status=PROPOSED) for one in there)
    assert count_mismatch(full, FOUND, "s", "a#t1-0", 99, approves=False) is full


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"orderid": "17"}, {"orderid": "order_id"}),
        ({"orderid": "17", "order_id": "18"}, {}),
        ({"order_id": "17"}, {}),
    ],
)
def test_an_alias_is_applied_where_its_parameter_is_missing(
    arguments: dict[str, Any], names: dict[str, str]
) -> None:
    others = (
        replace(ALIAS, tool="pay"),
        replace(ALIAS, given="no", status=PROPOSED),
        replace(ALIAS, given="id"),
    )
    assert names_for((*others, ALIAS), "refund", REFUND, arguments) == names


def test_two_aliases_of_one_parameter_are_not_applied_together() -> None:
    both = (ALIAS, replace(ALIAS, given="id"))
    assert names_for(both, "refund", REFUND, {"orderid": "1", "id": "2"}) == {"orderid": "order_id"}


def test_an_alias_is_useless_once_the_tool_takes_the_name_or_lacks_the_parameter(says: Says) -> None:
    renamed = {**REFUND, "properties": {"order": {"type": "string"}}}
    itself = {**REFUND, "properties": {**REFUND["properties"], "orderid": {"type": "string"}}}  # type: ignore[dict-item]
    assert not useless_because(ALIAS, REFUND)
    says([useless_because(ALIAS, parameters) for parameters in (renamed, itself)])
    assert names_for((ALIAS,), "refund", itself, {"orderid": "17"}) == {}
