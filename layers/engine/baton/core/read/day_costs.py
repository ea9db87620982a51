"""Sums of the costs of many sagas on a day, by workflow, user or model.

A file of its own: the command line reads its names without loading a library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from baton.core.on_demand import OnDemand

if TYPE_CHECKING:
    from baton.core import money
    from baton.core.read import costs
else:
    money, costs = OnDemand("baton.core.money"), OnDemand("baton.core.read.costs")  # they load a library

BY = ("workflow", "user", "model")
OF = MODELS, AWS = ("models", "aws")
"""Bills that a sum may be of."""


class DayCosts:
    """Sums of sagas, each with its workflow, its user and its sums by model."""

    def __init__(self, by: str) -> None:
        self._by = by
        self._sums: dict[str, list[float]] = {}

    def add(self, workflow: str, user: str, models: Mapping[str, Iterable[float]]) -> None:
        """Add the next saga. One that has asked no model is not counted."""
        keys = set()
        for model, numbers in models.items():
            key = (workflow, user, model)[BY.index(self._by)]
            sums = self._sums.setdefault(key, [0] * 4)
            sums[0] += key not in keys
            keys.add(key)
            for index, number in enumerate(numbers, 1):
                sums[index] += number

    def rows(self) -> list[costs.CostRow]:
        """Return the sums, the highest cost first."""
        ordered = sorted(self._sums.items(), key=lambda pair: (-pair[1][3], pair[0]))
        return [
            costs.CostRow(
                key=key, sagas=int(sagas), input=int(read), output=int(written), usd=cost / money.MICRO
            )
            for key, (sagas, read, written, cost) in ordered
        ]
