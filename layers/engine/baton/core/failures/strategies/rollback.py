"""rollback: the step has failed, and the saga with it unless its graph goes on; the saga's effects are then
undone.

Undoing is in core/decide/undoing.py.
"""

from __future__ import annotations

from baton.core.failures.strategies.base import Strategy


class Rollback(Strategy):
    """Fail the step, and the saga unless its graph goes on, and undo the saga's effects."""

    name = "rollback"
    says = "Undo what was done, and end."
    largest_at_most = 1
    reverts = True
    ends = True
