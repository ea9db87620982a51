"""The risk of a tool's call: the tool's declaration of its arguments, and the rules that make a level of it.

Pure data and arithmetic. The choice of calls that need an approval is in toolspec.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any, Final

import msgspec

LOW, MEDIUM, HIGH, CRITICAL = LEVELS = ("low", "medium", "high", "critical")
ASKING: Final = frozenset({HIGH, CRITICAL})
"""The levels at which a person is asked first. No question of these is ever approved by default."""
PAYMENT, DEPOSIT, BOOKING, MESSAGE, OTHER = ACTIONS = ("payment", "deposit", "booking", "message", "other")
MOVES_MONEY: Final = frozenset({PAYMENT, DEPOSIT})

AMOUNT: Final = r"[0-9]{1,15}(\.[0-9]{1,6})?"
"""Pattern of an amount in a rule: few enough digits that no arithmetic rounds it."""
CURRENCY: Final = "[A-Z]{3}"
_is_number = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?", re.ASCII).fullmatch
# ISO 4217: the currencies whose smallest unit is no hundredth.
_DIGITS: Final[Mapping[str, int]] = {
    **dict.fromkeys(
        [
            "BIF",
            "CLP",
            "DJF",
            "GNF",
            "ISK",
            "JPY",
            "KMF",
            "KRW",
            "PYG",
            "RWF",
            "UGX",
            "UYI",
            "VND",
            "VUV",
            "XAF",
            "XOF",
            "XPF",
        ],
        0,
    ),
    **dict.fromkeys(["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"], 3),
    **dict.fromkeys(["CLF", "UYW"], 4),
}
_MISSING: Final = object()


class Risk(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """The kind of a tool's action, and the arguments that measure it.

    `amount`, `currency` and `party` are paths of arguments, such as `amount` or `order.total`. `currency_is`:
    the fixed currency. `minor`: the amount counts the smallest unit of the currency, such as cents. `level`:
    the level of every call, whatever the rules say.
    """

    action: str = OTHER
    amount: str = ""
    currency: str = ""
    currency_is: str = ""
    minor: bool = False
    party: str = ""
    level: str = ""


class RiskRule(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """A level for calls that fit: an action, an amount above `above` (decimal digits) of `currency`, a party
    above `party_above`.

    A field that is not set fits everything.
    """

    level: str
    action: str = ""
    above: str = ""
    currency: str = ""
    party_above: int | None = None


Rules = Sequence[RiskRule]
DEFAULT_RULES: Final = (
    RiskRule(level=CRITICAL, action=PAYMENT, above="500", currency="USD"),
    RiskRule(level=HIGH, action=PAYMENT),
    RiskRule(level=HIGH, action=DEPOSIT, above="100", currency="USD"),
    RiskRule(level=HIGH, party_above=8),
    RiskRule(level=MEDIUM, action=BOOKING),
    RiskRule(level=MEDIUM, action=MESSAGE),
)
"""The rules of a document that has none of its own."""


class AssessedRisk(msgspec.Struct, frozen=True):
    """An assessed level of risk, and its reason in words."""

    level: str
    why: str


class _UnclearError(Exception):
    """A value that the rules compare cannot be read."""


def mistake_of(risk: Risk) -> str:
    """Return the reason why fields do not go together; empty if they do."""
    if risk.action in MOVES_MONEY and not risk.amount:
        return f"a {risk.action} says which argument is its `amount`"
    if bool(risk.amount) != bool(risk.currency or risk.currency_is) or (risk.currency and risk.currency_is):
        return "`amount` goes with one of `currency` and `currency_is`"
    return "`minor` goes with `amount`" if risk.minor and not risk.amount else ""


def assess(risk: Risk, rules: Rules, arguments: Mapping[str, Any]) -> AssessedRisk:
    """Return the highest level of the rules that fit; low if none does.

    Critical if a rule compares an unclear argument: an amount that is missing, negative, no plain number or
    in a currency of no rule, a party that is no whole number.
    """
    if risk.level:
        return AssessedRisk(risk.level, "its document says so")
    about = [rule for rule in rules if rule.action in ("", risk.action)]
    try:
        money = _money(risk, rules, about, arguments)
        party = _party(risk, about, arguments)
    except _UnclearError as error:
        return AssessedRisk(CRITICAL, str(error))
    fitting = [rule for rule in about if _fits(rule, risk, money, party)]
    if not fitting:
        return AssessedRisk(LOW, f"no rule fits this {_named(risk.action)}")
    worst = max(fitting, key=lambda rule: LEVELS.index(rule.level))
    return AssessedRisk(worst.level, _words(worst, risk.action))


def least(risk: Risk, rules: Rules) -> str:
    """Return the level that every call has at least, whatever its arguments."""
    always = [
        rule.level
        for rule in rules
        if rule.action in ("", risk.action) and not rule.above and rule.party_above is None
    ]
    return risk.level or max(always, key=LEVELS.index, default=LOW)


def above_in_words(rule: RiskRule) -> str:
    """Return ` above 500 USD`, or nothing."""
    money = f" above {rule.above} {rule.currency}" if rule.above else ""
    return money + (f" for more than {rule.party_above} people" if rule.party_above is not None else "")


def rule_in_words(rule: RiskRule) -> str:
    """Return `payment above 500 USD: critical`."""
    return f"{rule.action or 'any action'}{above_in_words(rule)}: {rule.level}"


def _words(rule: RiskRule, action: str) -> str:
    return f"it is a {_named(action)}{above_in_words(rule)}"


def _named(action: str) -> str:
    return "call" if action == OTHER else action


def _fits(rule: RiskRule, risk: Risk, money: tuple[Decimal, str] | None, party: Decimal | None) -> bool:
    if rule.above:
        if money is None or money[1] != rule.currency:
            return False
        # The rule is made larger, not the amount smaller: nothing is rounded.
        unit = 10 ** _DIGITS.get(rule.currency, 2) if risk.minor else 1
        if money[0] <= Decimal(rule.above) * unit:
            return False
    return rule.party_above is None or (party is not None and party > rule.party_above)


def _money(
    risk: Risk, rules: Rules, about: Rules, arguments: Mapping[str, Any]
) -> tuple[Decimal, str] | None:
    """Return the amount and its currency; None if no rule compares it. Raises `_UnclearError`."""
    own = {rule.currency for rule in about if rule.above}
    known = own or {rule.currency for rule in rules if rule.above}
    if not risk.amount:
        if any(rule.above and rule.action for rule in about):
            raise _UnclearError(
                f"a rule compares the amount of a {risk.action}, and the tool does not name it"
            )
        return None
    if not known:
        return None
    amount = _number(risk.amount, arguments)
    currency = risk.currency_is or _at(risk.currency, arguments)
    if not isinstance(currency, str) or currency not in known:
        raise _UnclearError(f"its amount is not in {' or '.join(sorted(known))}, which the rules compare")
    return amount, currency


def _party(risk: Risk, about: Rules, arguments: Mapping[str, Any]) -> Decimal | None:
    """Return the size of the party; None if no rule compares it. Raises `_UnclearError`."""
    if not risk.party or all(rule.party_above is None for rule in about):
        return None
    size = _number(risk.party, arguments)
    if size != size.to_integral_value():
        raise _UnclearError(f"`{risk.party}` is no whole number")
    return size


def _number(path: str, arguments: Mapping[str, Any]) -> Decimal:
    """Return the number at a path, exactly as it is written. Raises `_UnclearError`."""
    value = _at(path, arguments)
    if value is _MISSING or value is None:
        raise _UnclearError(f"`{path}` is missing")
    if isinstance(value, int) and not isinstance(value, bool):
        number = Decimal(value)
    elif isinstance(value, float) and isfinite(value):
        number = Decimal(repr(value))
    elif isinstance(value, str) and _is_number(value):
        number = Decimal(value)
    else:
        raise _UnclearError(f"`{path}` is no plain number")
    if number < 0:
        raise _UnclearError(f"`{path}` is negative")
    return number


def _at(path: str, arguments: Any) -> Any:
    value = arguments
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return _MISSING
        value = value[name]
    return value
