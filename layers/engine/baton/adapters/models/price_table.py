"""The form in which prices of models are stored: by provider and by the model's names. Looking one up is in prices.py."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Final

import msgspec

from baton.core.models.usage import Price

FILE: Final = "prices.json"
"""Beside this file in a layer, where baton.shipping puts it."""

_DAY_MS: Final = 86_400_000


class Named(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which names are meant: every given part has to hold. Names are in lower case."""

    equals: str = ""
    begins: str = ""
    ends: str = ""
    contains: str = ""
    regex: str = ""
    any: tuple[Named, ...] = ()
    all: tuple[Named, ...] = ()

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


class Dated(msgspec.Struct, frozen=True, omit_defaults=True):
    """A price, from a day on (ISO 8601), or between two times of each day (UTC, milliseconds since midnight)."""

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


class Model(msgspec.Struct, frozen=True):
    """`prices`: the last one that holds counts, and the first where none does."""

    names: Named
    prices: tuple[Dated, ...]


class Provider(msgspec.Struct, frozen=True, omit_defaults=True):
    """`address` is a regular expression for the beginning of a URL; `names` are of models that are this provider's.

    `others` are providers whose prices count for models that it does not list.
    """

    id: str
    address: str
    models: tuple[Model, ...]
    names: Named | None = None
    others: tuple[str, ...] = ()


class Table(msgspec.Struct, frozen=True):
    """All of it, with the version of the package that it comes from."""

    version: str
    providers: tuple[Provider, ...]


def write(table: Table) -> bytes:
    return msgspec.json.encode(table)


def read(data: bytes) -> Table:
    return msgspec.json.decode(data, type=Table)
