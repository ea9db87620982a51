"""Prices of models: the figures of genai-prices, found by that package's rules, by address and by name.

A layer has them as a file, which baton.shipping writes; elsewhere they are read from the installed package,
when they are needed (price_source.py). No network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from importlib import import_module
from pathlib import Path
from typing import Final

import msgspec

from baton.adapters.models.profiles import Profile
from baton.core.models.usage import Price

FILE: Final = "prices.json"
"""Beside this file in a layer, where baton.shipping puts it."""

_DAY_MS: Final = 86_400_000


class NamePattern(msgspec.Struct, frozen=True, omit_defaults=True):
    """Rule for names: every condition that is set must hold. Names are in lower case."""

    equals: str = ""
    begins: str = ""
    ends: str = ""
    contains: str = ""
    regex: str = ""
    any: tuple[NamePattern, ...] = ()
    all: tuple[NamePattern, ...] = ()

    def fits(self, name: str) -> bool:
        return (
            (not self.equals or name == self.equals)
            and name.startswith(self.begins)
            and name.endswith(self.ends)
            and self.contains in name
            and (not self.regex or re.search(self.regex, name) is not None)
            and (not self.any or any(one.fits(name) for one in self.any))
            and all(one.fits(name) for one in self.all)
        )


class DatedPrice(msgspec.Struct, frozen=True, omit_defaults=True):
    """Price valid from a day on (ISO 8601), or between two times of a day (UTC, ms since midnight)."""

    price: Price
    since: str = ""
    hours: tuple[int, int] | None = None

    def holds(self, now: int) -> bool:
        if self.since and datetime.fromtimestamp(now / 1_000, UTC).date() < date.fromisoformat(self.since):
            return False
        if self.hours is None:
            return True
        first, last = self.hours
        time = now % _DAY_MS
        return first <= time < last if first <= last else time >= first or time < last


class PricedModel(msgspec.Struct, frozen=True):
    """Prices of one model. The last of `prices` that is valid counts, and the first where none is."""

    names: NamePattern
    prices: tuple[DatedPrice, ...]


class Provider(msgspec.Struct, frozen=True, omit_defaults=True):
    """`address` is a regular expression for the beginning of a URL; `names` are of models that are this
    provider's.

    `others` are providers whose prices count for models that it does not list.
    """

    id: str
    address: str
    models: tuple[PricedModel, ...]
    names: NamePattern | None = None
    others: tuple[str, ...] = ()


class PriceTable(msgspec.Struct, frozen=True):
    """Table of all prices, with the version of the package that they come from."""

    version: str
    providers: tuple[Provider, ...]


def write(table: PriceTable) -> bytes:
    """Encode the table as the package stores it."""
    return msgspec.json.encode(table)


def read_prices(data: bytes) -> PriceTable:
    return msgspec.json.decode(data, type=PriceTable)


_DATED: Final = re.compile("(?<=-)(20[0-9]{2})(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])(?=$|[-:@])")


class Prices:
    """Prices by model, each looked up once."""

    def __init__(self, table: PriceTable) -> None:
        self._table = table
        self._by_id = {provider.id: provider for provider in table.providers}
        self._found: dict[tuple[str, str, str], PricedModel | None] = {}

    @classmethod
    def packaged(cls) -> Prices:
        """Return the prices of the layer, or of the installed package; none if neither has any."""
        file = Path(__file__).with_name(FILE)
        if file.is_file():
            return cls(read_prices(file.read_bytes()))
        try:
            # By its name: a layer has the file and not this module.
            source = import_module("baton.adapters.models.price_source")
        except ImportError:
            return cls(PriceTable("", ()))
        return cls(source.price_table())

    @property
    def version(self) -> str:
        """Version of the package that the prices are from; empty if there are none."""
        return self._table.version

    def of(self, profile: Profile, model: str, now: int) -> Price | None:
        """Return a model's price at a provider, found by address, profile or model; None if unknown."""
        key = (profile.url, profile.name, model)
        if key not in self._found:
            self._found[key] = self._search(profile, model.lower())
        found = self._found[key]
        if found is None or not found.prices:
            return None
        holding = [dated for dated in found.prices if dated.holds(now)]
        return (holding[-1] if holding else found.prices[0]).price

    def _search(self, profile: Profile, model: str) -> PricedModel | None:
        provider = next(self._candidates(profile, model), None)
        if provider is None:
            return None
        full = _DATED.sub(r"\1-\2-\3", model)  # some write a date without its dashes
        places = [provider, *(self._by_id[other] for other in provider.others if other in self._by_id)]
        for name in dict.fromkeys((model, full)):
            for place in places:
                for known in place.models:
                    if known.names.fits(name):
                        return known
        return None

    def _candidates(self, profile: Profile, model: str) -> Iterator[Provider]:
        yield from (one for one in self._table.providers if re.match(one.address, profile.url))
        if profile.name in self._by_id:
            yield self._by_id[profile.name]
        yield from (one for one in self._table.providers if one.names is not None and one.names.fits(model))
