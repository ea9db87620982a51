"""What decisions have to keep to, whatever the saga: sizes, deaths, money, rows of tools."""

from __future__ import annotations

from msgspec import Struct

from baton.core.decide.spending import ANY_AMOUNT, SpendingLimits
from baton.core.effects.rows import ANY_ROWS, RowRoom
from baton.core.limits import Limits

_DEFAULTS = Limits()


class Bounds(Struct, frozen=True, kw_only=True):
    """The limits of a deployment and of its store, as far as decisions know them.

    `entry_bytes`: of the events of one entry together; one is always taken. `value_bytes`: of a value that is made here. `deaths`: so many
    in a row, then a person has to decide. `rows`: of tools, that the store takes together with an entry.
    """

    entry_bytes: int = _DEFAULTS.entry_bytes
    value_bytes: int = _DEFAULTS.result_bytes
    deaths: int = _DEFAULTS.max_deaths
    money: SpendingLimits = ANY_AMOUNT
    rows: RowRoom = ANY_ROWS


DEFAULT = Bounds()
