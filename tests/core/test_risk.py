"""How risky a call is: the rules by name, amounts that cannot be read, and what exactly an approval is for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.core.effects.risk import (
    ASKING,
    CRITICAL,
    DEFAULT_RULES,
    HIGH,
    LEVELS,
    LOW,
    MEDIUM,
    Risk,
    RiskRule,
    assess,
    rule_in_words,
)
from baton.core.effects.toolspec import ApprovalRequest, ToolSpec, digest_of, is_for_a_person, request_for
from tests.core.build import FEW, JSON
from tests.kit.sentences import Says

PAY = Risk(action="payment", amount="amount", currency="currency")
DEPOSIT = Risk(action="deposit", amount="amount", currency_is="USD")
CENTS = Risk(action="payment", amount="amount", currency="currency", minor=True)
BOOK = Risk(action="booking", party="party")
TELL = Risk(action="message")
OTHER = Risk()


def usd(amount: Any) -> dict[str, Any]:
    return {"amount": amount, "currency": "USD"}


@pytest.mark.parametrize(
    ("risk", "arguments", "level"),
    [
        (PAY, usd(500.01), CRITICAL),
        (PAY, usd("500.01"), CRITICAL),
        (PAY, usd(500), HIGH),
        (PAY, usd("500.00"), HIGH),
        (PAY, usd(0), HIGH),
        (CENTS, usd(50_001), CRITICAL),
        (CENTS, usd(50_000), HIGH),
        (DEPOSIT, {"amount": 100.01}, HIGH),
        (DEPOSIT, {"amount": 100}, LOW),
        (DEPOSIT, {"amount": 10**30}, HIGH),
        (BOOK, {"party": 9}, HIGH),
        (BOOK, {"party": "9"}, HIGH),
        (BOOK, {"party": 8}, MEDIUM),
        (Risk(party="party"), {"party": 9}, HIGH),
        (Risk(party="party"), {"party": 8}, LOW),
        (Risk(action="booking"), {}, MEDIUM),
        (TELL, {}, MEDIUM),
        (OTHER, {}, LOW),
    ],
)
def test_the_default_rules(risk: Risk, arguments: dict[str, Any], level: str) -> None:
    assert assess(risk, DEFAULT_RULES, arguments).level == level


NO_AMOUNTS = {
    "missing": {"currency": "USD"},
    "null": usd(None),
    "negative": usd(-1),
    "negative text": usd("-0.01"),
    "nan": usd(float("nan")),
    "infinite": usd(float("inf")),
    "true": usd(True),
    "empty": usd(""),
    "a list": usd([600]),
    "an object": usd({"value": 600}),
    "with its currency": usd("$600"),
    "with separators": usd("1,000"),
    "an exponent": usd("1e3"),
    "with spaces": usd(" 600"),
    "a line more": usd("600\n"),
    "nan as text": usd("NaN"),
    "other digits": usd("٦٠٠"),
    "no end of digits": usd("9" * 41),
    "another currency": {"amount": 1, "currency": "EUR"},
    "no currency": {"amount": 1},
    "small letters": {"amount": 1, "currency": "usd"},
    "a currency that is none": {"amount": 1, "currency": ["USD"]},
}


@pytest.mark.parametrize("risk", [PAY, CENTS, msgspec.structs.replace(PAY, action="booking")])
@pytest.mark.parametrize("arguments", NO_AMOUNTS.values(), ids=NO_AMOUNTS)
def test_an_amount_that_is_not_clear_is_critical(risk: Risk, arguments: dict[str, Any]) -> None:
    assert assess(risk, DEFAULT_RULES, arguments).level == CRITICAL


@pytest.mark.parametrize("party", [None, -1, 2.5, True, "many", [9]])
def test_a_party_that_is_not_clear_is_critical(party: Any) -> None:
    assert assess(BOOK, DEFAULT_RULES, {"party": party}).level == CRITICAL
    assert assess(BOOK, DEFAULT_RULES, {}).level == CRITICAL


def test_an_argument_may_lie_deeper(says: Says) -> None:
    risk = Risk(action="payment", amount="order.total", currency_is="USD")
    assert assess(risk, DEFAULT_RULES, {"order": {"total": 501}}).level == CRITICAL
    assert assess(risk, DEFAULT_RULES, {"order": {"total": 5}}).level == HIGH
    says(assess(risk, DEFAULT_RULES, {"order": 5}).why)


@pytest.mark.parametrize(
    ("currency", "amount", "level"),
    [("EUR", 20_001, HIGH), ("EUR", 20_000, LOW), ("JPY", 201, HIGH), ("KWD", 200_001, HIGH), ("KWD", 200_000, LOW)],
)  # fmt: skip
def test_a_document_compares_in_its_own_currency_and_that_has_its_own_smallest_unit(
    currency: str, amount: int, level: str
) -> None:
    rules = (RiskRule(level=HIGH, action="payment", above="200", currency=currency),)
    assert assess(CENTS, rules, {"amount": amount, "currency": currency}).level == level
    assert assess(CENTS, rules, usd(1)).level == CRITICAL


def test_rules_of_a_document_take_the_place_of_the_default_ones() -> None:
    assert assess(PAY, (), usd(10**9)).level == LOW
    assert assess(PAY, (), {"amount": "?"}).level == LOW, "nothing compares it"
    about_parties = (RiskRule(level=CRITICAL, party_above=2),)
    assert assess(PAY, about_parties, usd(-1)).level == LOW, "nothing compares amounts"
    assert assess(BOOK, about_parties, {"party": 3}).level == CRITICAL
    both = (RiskRule(level=HIGH, action="booking", party_above=2, above="50", currency="USD"),)
    risk = msgspec.structs.replace(PAY, action="booking", party="party")
    assert [assess(risk, both, {**usd(a), "party": p}).level for a, p in ((51, 3), (51, 2), (50, 3))] == [
        HIGH,
        LOW,
        LOW,
    ]


def test_a_rule_that_compares_what_a_tool_does_not_name_is_critical_there_and_passed_over_elsewhere() -> None:
    rules = (RiskRule(level=HIGH, action="booking", above="50", currency="USD"), RiskRule(level=HIGH, above="9", currency="USD"))  # fmt: skip
    assert assess(BOOK, rules, {"party": 2}).level == CRITICAL
    assert assess(TELL, rules, {}).level == LOW


def test_a_currency_of_other_rules_does_not_make_an_amount_comparable() -> None:
    rules = (
        RiskRule(level=CRITICAL, action="payment", above="500", currency="USD"),
        RiskRule(level=HIGH, action="deposit", above="90", currency="EUR"),
    )
    assert assess(PAY, rules, {"amount": 1, "currency": "EUR"}).level == CRITICAL
    known = msgspec.structs.replace(PAY, action="booking")
    assert assess(known, rules, {"amount": 1, "currency": "EUR"}).level == LOW


def test_a_level_says_why(says: Says) -> None:
    says(assess(PAY, DEFAULT_RULES, usd(600)).why)
    says(assess(BOOK, DEFAULT_RULES, {"party": 9}).why)
    says(assess(OTHER, DEFAULT_RULES, {}).why)
    says(assess(PAY, DEFAULT_RULES, usd("x")).why)
    says(rule_in_words(DEFAULT_RULES[0]))
    says(rule_in_words(DEFAULT_RULES[3]))


@FEW
@given(
    st.decimals(min_value=0, max_value=1_000, places=2), st.decimals(min_value=0, max_value=1_000, places=2)
)
def test_money_compares_exactly_in_every_spelling(amount: Any, above: Any) -> None:
    rules = (RiskRule(level=HIGH, action="payment", above=str(above), currency="USD"),)
    expected = HIGH if amount > above else LOW
    assert assess(PAY, rules, usd(str(amount))).level == expected
    assert assess(PAY, rules, usd(float(amount))).level == expected
    assert assess(CENTS, rules, usd(int(amount * 100))).level == expected


# ---- what is approved


def spec(name: str = "pay", **more: Any) -> ToolSpec:
    parameters = {"properties": {"amount": {}, "currency": {"default": "USD"}, "to": {}}}
    return ToolSpec(name=name, version="1", effect="once", parameters=parameters, result={}, **more)


def asked(arguments: dict[str, Any], tool: ToolSpec | None = None, **more: Any) -> ApprovalRequest | None:
    return request_for("pay", arguments, spec(risk=PAY) if tool is None else tool, **more)


def test_only_high_and_critical_calls_ask_and_those_of_a_tool_that_always_does(says: Says) -> None:
    assert {level for level in LEVELS if is_for_a_person(level)} == ASKING == {"high", "critical"}
    assert asked({"amount": 1}, spec()) is None
    small = spec(risk=DEPOSIT)
    assert asked({"amount": 1}, small) is None
    found = asked({"amount": 1}, spec(risk=DEPOSIT, requires_approval=True))
    assert found is not None
    assert found.level == LOW
    says(found.why)
    risky = asked({"amount": 101}, spec(risk=DEPOSIT, requires_approval=True))
    assert risky is not None
    assert risky.level == HIGH
    says(risky.why)
    assert asked({"amount": 1}, spec(), always=True) is not None
    assert asked({"amount": 1}, spec(), always=True, risks=[None]) is not None


def test_the_stricter_of_the_tool_now_and_when_the_graph_was_compiled_counts() -> None:
    then = asked({"amount": 600}, spec(), risks=[PAY])
    both = asked({"amount": 600}, spec(risk=OTHER), risks=[PAY])
    unknown = request_for("pay", {"amount": 600, "currency": "USD"}, None, risks=[PAY])
    assert [one and one.level for one in (then, both, unknown)] == [CRITICAL] * 3


@pytest.mark.parametrize(
    ("tool", "more", "is_for_a_person"),
    [
        (spec(risk=DEPOSIT), {"always": True}, False),
        (spec(), {"always": True, "risks": [DEPOSIT]}, False),
        (spec(), {"always": True}, True),
        (spec(risk=PAY), {"always": True}, True),
        (spec(risk=DEPOSIT, requires_approval=True), {}, True),
        (spec(risk=DEPOSIT), {"by_tool": True}, True),
    ],
)
def test_only_a_person_approves_what_is_risky_unsaid_or_guarded_by_its_tool(
    tool: ToolSpec, more: dict[str, Any], is_for_a_person: bool
) -> None:
    found = asked({"amount": 1}, tool, **more)
    assert found is not None
    assert found.is_for_a_person is is_for_a_person


def test_the_rules_of_the_document_are_those_that_count() -> None:
    assert asked({"amount": 600}, rules=()) is None
    assert asked({"amount": 600}, rules=[RiskRule(level=MEDIUM, action="payment")]) is None


def test_what_is_left_out_is_what_the_tool_takes_then() -> None:
    implied, said = asked({"amount": 600}), asked({"amount": 600, "currency": "USD"})
    assert implied is not None
    assert said is not None
    assert implied.digest == said.digest == digest_of("pay", {"currency": "USD", "amount": 600})
    assert implied.level == CRITICAL


@FEW
@given(JSON, JSON)
def test_a_digest_is_equal_only_for_what_is_equal_as_json(one: Any, other: Any) -> None:
    as_json = [msgspec.json.encode(value, order="deterministic") for value in (one, other)]
    assert (digest_of("t", {"a": one}) == digest_of("t", {"a": other})) == (as_json[0] == as_json[1])


@pytest.mark.parametrize("other", [1.0, "1", True, None, [1], {"a": 1}, float("nan"), 1.0000000000000002])
def test_a_digest_tells_apart_what_only_looks_alike(other: Any) -> None:
    assert digest_of("t", {"n": 1}) != digest_of("t", {"n": other})
    assert digest_of("t", {"n": 1}) != digest_of("u", {"n": 1}) != digest_of("u", {"n": 1, "m": None})
    assert digest_of("t", {"n": None}) != digest_of("t", {"n": float("nan")})
