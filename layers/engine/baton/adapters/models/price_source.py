"""The figures of the package genai-prices, in the form of prices.py, for the build of a layer.

A model whose price does not follow from tokens of input and output has none: a document must give it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import time
from decimal import ROUND_CEILING, Decimal
from importlib.metadata import version
from typing import Any, Final

from genai_prices import types as source
from genai_prices.data_snapshot import get_snapshot

from baton.adapters.models.prices import DatedPrice, NamePattern, PricedModel, PriceTable, Provider
from baton.core.models.usage import Price

_MICRO: Final = 1_000_000
_FIELDS: Final = {
    "input_mtok": "input",
    "output_mtok": "output",
    "cache_read_mtok": "cached",
    "cache_write_mtok": "written",
}
# Charged beside these for every request, or in place of them.
_BEYOND: Final = ("requests_kcount", "output_reasoning_mtok", "input_mchars", "audio_hours")


def price_table() -> PriceTable:
    """Return the table of prices from the installed package."""
    providers = tuple(
        Provider(
            id=one.id,
            address=one.api_pattern,
            models=tuple(_models(one)),
            names=None if one.model_match is None else _named(one.model_match),
            others=tuple(one.fallback_model_providers or ()),
        )
        for one in get_snapshot().providers
    )
    return PriceTable(version("genai-prices"), providers)


def _models(provider: source.Provider) -> Iterator[PricedModel]:
    for one in provider.models:
        given = one.prices if isinstance(one.prices, list) else [source.ConditionalPrice(prices=one.prices)]
        prices = [_dated(price, answers="embed" not in one.id) for price in given]
        # One that cannot be said stays in the list without prices: another model's name might fit it as well.
        yield PricedModel(_named(one.match), tuple(price for price in prices if price) if all(prices) else ())


def _dated(given: source.ConditionalPrice, *, answers: bool) -> DatedPrice | None:
    """Return a price; `answers` false: of a model that embeds, whose output costs nothing."""
    figures = vars(given.prices)
    price = _price(
        figures
        if answers
        else {"output_mtok": Decimal(0)} | {k: v for k, v in figures.items() if v is not None}
    )
    if price is None:
        return None
    when = given.constraint
    if isinstance(when, source.StartDateConstraint):
        return DatedPrice(price, since=when.start_date.isoformat())
    if isinstance(when, source.TimeOfDateConstraint):
        return DatedPrice(price, hours=(_in_day(when.start_time), _in_day(when.end_time)))
    return DatedPrice(price)


def _in_day(given: time) -> int:
    offset = given.utcoffset()
    shift = 0 if offset is None else round(offset.total_seconds())
    return (given.hour * 3_600 + given.minute * 60 + given.second - shift) % 86_400 * 1_000


def _price(figures: Mapping[str, Any]) -> Price | None:
    given = {field: figures[name] for name, field in _FIELDS.items() if figures.get(name) is not None}
    if not {"input", "output"} <= given.keys() or any(figures.get(name) is not None for name in _BEYOND):
        return None
    steps = sorted(
        {tier.start for one in given.values() if isinstance(one, source.TieredPrices) for tier in one.tiers}
    )
    price: Price | None = None
    for start, above in reversed(list(zip([-1, *steps], [*steps, 0], strict=True))):
        at = {field: _at(one, start) for field, one in given.items()}
        price = Price(**at, above=above, then=price)
    return price


def _at(given: Decimal | source.TieredPrices, start: int) -> int:
    """Return the micro-dollars for a million tokens, in a request of more than `start` tokens of input."""
    usd = given if isinstance(given, Decimal) else given.base
    if isinstance(given, source.TieredPrices):
        usd = next((tier.price for tier in reversed(given.tiers) if tier.start <= start), usd)
    return int((usd * _MICRO).to_integral_value(ROUND_CEILING))


def _named(clause: Any) -> NamePattern:
    if isinstance(clause, source.ClauseOr):
        return NamePattern(any=tuple(map(_named, clause.or_)))
    if isinstance(clause, source.ClauseAnd):
        return NamePattern(all=tuple(map(_named, clause.and_)))
    if isinstance(clause, source.ClauseRegex):
        return NamePattern(regex=clause.regex)
    words = {
        source.ClauseEquals: ("equals", "equals"),
        source.ClauseStartsWith: ("begins", "starts_with"),
        source.ClauseEndsWith: ("ends", "ends_with"),
        source.ClauseContains: ("contains", "contains"),
    }
    ours, theirs = words[type(clause)]
    return NamePattern(**{ours: getattr(clause, theirs).lower()})
