"""A call of a tool."""

from __future__ import annotations

from baton.core.nodes.base import STEP, Activation, Desk, Kind, Next, Run


class TaskKind(Kind):
    """Retries, policies and what may happen only once are decided around it, for every kind that has attempts."""

    name = "task"
    load = STEP
    has_attempts = True

    def begin(self, at: Activation, desk: Desk) -> Next | None:
        arguments = desk.arguments(at)
        return Run(arguments) if desk.may_spend(at) else None
