"""The port to the inbox of questions: one row for each open question, found by whom it is for.

The log decides what is asked. A row follows it, so that lists need no log; what a row says is made in runtime/people/question_rows.py.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, TypeAlias

import msgspec

from baton.ports.log import SagaRef

Spot: TypeAlias = tuple[int, str, str]
"""Of a row in a list: when its question expires (NEVER, if it does not), its saga, its id."""
NEVER = 10**15
"""In the order of a list, the time of what never expires: behind everything else."""


class QuestionRow(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An open question as lists show it. `to` is its audience in one word: `user:ada`, `group:ops`, `role:answer`, `on_call`.

    `expires_at`: when it is closed without an answer; 0: never. `told`: its audience was told of it; otherwise it waits for a place among a person's pending ones.
    `title` and `message` may be cut.
    """

    saga: str
    workflow: str
    ask: str
    type: str
    kind: str
    title: str
    message: str
    to: str
    actions: tuple[str, ...] = ()
    asked_at: int = 0
    expires_at: int = 0
    told: bool = False
    risk: str = ""

    @property
    def spot(self) -> Spot:
        return self.expires_at or NEVER, self.saga, self.ask


class Questions(Protocol):
    """The rows of open questions.

    Calls about one question carry a number that grows with the saga's log. What lands late, behind a call with a higher
    number, changes nothing: no row comes back that was removed.
    """

    def put(self, tenant: str, row: QuestionRow, number: int, until: int) -> None:
        """Put or replace a row. The store may delete it after `until`; 0: never."""
        ...

    def remove(self, ref: SagaRef, ask: str, number: int, until: int) -> None:
        """Take a row out, there or not. Until `until` at least, the store knows that it did."""
        ...

    def removed(self, ref: SagaRef, number: int) -> Collection[str]:
        """The questions of a saga whose rows were taken out with this number or a higher one. Strongly consistent."""
        ...

    def listed(
        self, tenant: str, audience: str, now: int, limit: int, after: Spot | None = None
    ) -> tuple[Sequence[QuestionRow], Spot | None]:
        """At most `limit` questions of an audience that expire after `now`, soonest first, and where to go on (None: at its end).

        Those that expire at the same moment come in an order of the store's own, always the same. Eventually consistent.
        """
        ...
