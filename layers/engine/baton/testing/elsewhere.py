"""Work elsewhere in a test: what is said of it, and when.

What was handed over, and how time passes, is in deployment.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from baton.core.expressions.durations import parse_duration
from baton.core.failures.classes import code_of
from baton.core.log.folding.callbacks import FAILURE, HEARTBEAT, SUCCESS, Said


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """What becomes of work that a step has handed over: `after` so long it succeeds with `output`, or fails with `code`.

    heartbeat: so often it gives a sign of life until then. silent: nothing is ever said of it, but for heartbeats until
    `after`.
    """

    output: Any = None
    code: str = ""
    message: str = ""
    retryable: bool | None = None
    after: str | float = 0
    heartbeat: str | float = 0
    silent: bool = False

    def says(self) -> Iterator[tuple[int, Said]]:
        """Milliseconds after the handover, and what is said then. Raises `ValueError`."""
        end = parse_duration(self.after) if self.after else 0
        every = parse_duration(self.heartbeat) if self.heartbeat else 0
        for at in range(every, end, every) if every else ():
            yield at, Said(status=HEARTBEAT)
        if not self.silent:
            status = FAILURE if self.code else SUCCESS
            yield (
                end,
                Said(
                    status=status,
                    output=json.loads(json.dumps(self.output, allow_nan=False)),
                    code=code_of(self.code) if self.code else "",
                    message=self.message,
                    retryable=self.retryable,
                ),
            )


Plans = Mapping[str, Sequence[Elsewhere]]


def plans_of(given: Mapping[str, Any]) -> dict[str, list[Elsewhere]]:
    """By node, what becomes of each handover; of more than there are, the same as of the last. Raises `ValueError`."""
    found = {node: given[node] if _is_list(given[node]) else [given[node]] for node in given}
    plans = {
        node: [one if isinstance(one, Elsewhere) else Elsewhere(output=one) for one in several]
        for node, several in found.items()
    }
    for node, several in plans.items():
        try:
            for one in several:
                list(one.says())
        except (TypeError, ValueError) as error:
            raise ValueError(f"the callback of `{node}`: {error}") from error
    return plans


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, Elsewhere) for one in value)


class Handovers:
    """What is still to be said of each, in the order of time."""

    def __init__(self, plans: Plans) -> None:
        self._plans = plans
        self._count: dict[tuple[str, str], int] = {}
        self._known: set[tuple[str, str]] = set()
        self._ahead: list[tuple[int, int, str, str, Said]] = []

    def meet(self, saga: str, node: str, callback: str, at: int) -> None:
        """A step waits for this callback since `at`."""
        if node not in self._plans or (saga, callback) in self._known:
            return
        self._known.add((saga, callback))
        number = self._count[saga, node] = self._count.get((saga, node), 0) + 1
        plan = self._plans[node][min(number, len(self._plans[node])) - 1]
        for after, said in plan.says():
            self._ahead.append((at + after, len(self._ahead), saga, callback, said))
        self._ahead.sort(key=lambda one: one[:2])

    def next_moment(self) -> int | None:
        """When something is said next, in epoch ms."""
        return self._ahead[0][0] if self._ahead else None

    def due(self, now: int) -> tuple[str, str, Said] | None:
        """The saga, its callback, and what is said of it now."""
        if not self._ahead or self._ahead[0][0] > now:
            return None
        _, _, saga, callback, said = self._ahead.pop(0)
        return saga, callback, said
