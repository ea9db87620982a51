"""rollback: nothing that was done can be undone yet, so to undo it all is to do nothing, and the step has failed."""

from __future__ import annotations

from baton.core.failures.strategies.base import Strategy


class Rollback(Strategy):
    name = "rollback"
    says = "Undo what was done, and end."
    largest_at_most = 1
    undoes = True
    ends = True
