"""What a decision asks for, by kind of command; empty where it has no such command."""

from __future__ import annotations

from collections.abc import Iterable

from baton.core.conditions import SandboxQuestion
from baton.core.decide.context import FetchedValues
from baton.core.decide.decision import (
    CancelChildren,
    Decision,
    FetchValues,
    JudgeConditions,
    RunStep,
    RunSteps,
    SendNotices,
    StopSteps,
    TendChildren,
)
from baton.core.decide.parking import ask_to_stop
from baton.core.log import events as ev
from baton.core.log.folding.received import PendingNotices
from baton.core.log.records import Child


def steps_of(decision: Decision) -> tuple[RunStep, ...]:
    return (decision.of(RunSteps) or RunSteps(())).steps


def stops_of(decision: Decision) -> tuple[str, ...]:
    return (decision.of(StopSteps) or StopSteps()).slots


def children_of(decision: Decision) -> tuple[tuple[str, Child], ...]:
    return (decision.of(TendChildren) or TendChildren(())).children


def cancels_of(decision: Decision) -> tuple[tuple[str, Child], ...]:
    return (decision.of(CancelChildren) or CancelChildren(())).children


def children_cancelled(children: Iterable[Child]) -> tuple[ev.Event, ...]:
    """The events that say of these children, which were left behind, that they were asked to stop."""
    asked = [("", child) for child in children]
    found = FetchedValues(cancelled={(child.saga, False) for _, child in asked})
    return ask_to_stop(asked, found).record


def children_ended(
    children: Iterable[tuple[str, Child]], *, undoable: bool = False
) -> tuple[ev.ChildReported, ...]:
    """The reports of these children, which a saga that stops waits for."""
    return tuple(
        ev.ChildReported(slot=slot, child=child.saga, status="cancelled", undoable=undoable)
        for slot, child in children
    )


def notices_of(decision: Decision) -> tuple[ev.Notice, ...]:
    return (decision.of(SendNotices) or SendNotices(PendingNotices())).pending.notices


def needs_of(decision: Decision) -> frozenset[str]:
    return (decision.of(FetchValues) or FetchValues(frozenset())).refs


def questions_of(decision: Decision) -> frozenset[SandboxQuestion]:
    return (decision.of(JudgeConditions) or JudgeConditions(frozenset())).questions
