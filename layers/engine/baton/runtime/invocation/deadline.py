"""The rest of an invocation's time, and whether a step still fits into it."""

from __future__ import annotations

from msgspec import Struct, field

from baton.core.limits import Limits
from baton.runtime.invocation.context import Invocation


class Turn(Struct):
    """Whether the sagas of an invocation have to yield, because others wait for a worker (runtime/invocation/turns.py)."""

    is_over: bool = False


class Deadline(Struct, frozen=True):
    """The time of one invocation, as seen by one saga. All values are epoch ms or ms."""

    started: int
    end: int
    reserve: int
    turn: Turn = field(default_factory=Turn)

    @classmethod
    def of(cls, invocation: Invocation, limits: Limits) -> Deadline:
        """The reserve is never more than a third of the whole, so that short invocations still do something."""
        whole = invocation.deadline - invocation.started
        return cls(invocation.started, invocation.deadline, min(limits.yield_reserve_ms, whole // 3))

    @classmethod
    def without_reserve(cls, invocation: Invocation) -> Deadline:
        """Of an invocation that runs no steps, and so has nothing to hand over."""
        return cls(invocation.started, invocation.deadline, 0)

    @property
    def cut_off(self) -> int:
        """When running steps are interrupted; the rest of the time is for the append and the hand-over."""
        return self.end - self.reserve * 2 // 3

    def fits(self, now: int, expected: float) -> bool:
        """Whether a step of `expected` ms would be done before the reserve, and it is still this invocation's turn."""
        return not self.turn.is_over and now + expected <= self.end - self.reserve

    def is_spent(self, now: int) -> bool:
        """Whether what needs no step has to go on in another invocation."""
        return self.turn.is_over or now >= self.cut_off
