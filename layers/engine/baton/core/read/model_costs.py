"""What models have read and written for a saga, and what they were paid: read off its log, by model and node."""

from __future__ import annotations

from typing import Any

from baton.core.log import events as ev
from baton.core.log.folding.model_sums import UNANSWERED
from baton.core.log.state import node_of
from baton.core.models.usage import Usage
from baton.core.money import MICRO


class ModelCosts:
    """Sums over a log, whatever branch an entry is in: what was asked in a branch that was left is paid for, too."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], list[int]] = {}
        self.agent_steps = 0
        """Turns of agents, and the calls that they have made."""

    def add(self, entry: ev.Entry) -> None:
        """The next entry."""
        for event in entry.events:
            self.agent_steps += isinstance(event, ev.Settles) and bool(event.item)
            for usage in getattr(event, "usage", ()):
                self._add(getattr(event, "node", ""), usage, is_request=usage.model != UNANSWERED)
            if isinstance(event, ev.Revived):
                for slot, cost in event.assumed.items():
                    read, *written = event.tokens.get(slot) or (0,)
                    usage = Usage(model=UNANSWERED, input=read, output=sum(written), cost=cost)
                    self._add(node_of(slot)[0], usage)
            elif cost := getattr(event, "assumed", 0):
                self._add(getattr(event, "node", ""), Usage(model=UNANSWERED, cost=cost))

    def _add(self, node: str, usage: Usage, *, is_request: bool = True) -> None:
        sums = self._sums.setdefault((usage.model, node), [0] * 5)
        # What was held for a request and comes back is a request less without an answer.
        for index, number in enumerate(
            (is_request * (1 if usage.cost >= 0 else -1), usage.input, usage.cached, usage.output, usage.cost)
        ):
            sums[index] += number

    def lines(self) -> list[dict[str, Any]]:
        """One line for each model at each node: a charge, with the tokens that it is made of."""
        return [
            {
                "what": model,
                "node": node,
                "quantity": read + written,
                "unit": "tokens",
                "usd": cost / MICRO,
                "requests": requests,
                "input": read,
                "cached": cached,
                "output": written,
            }
            for (model, node), (requests, read, cached, written, cost) in sorted(self._sums.items())
            if requests or cost
        ]
