"""A workflow that runs as a child saga; its end is the node's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec.structs import replace

from baton.core.expressions import duration_text, iso
from baton.core.failures.codes import CHILD_FAILED, class_of
from baton.core.graph.graph import START, Node
from baton.core.log import events as ev
from baton.core.log.folding.received import cancelling_signal
from baton.core.log.records import LONGEST_MESSAGE, Child
from baton.core.log.scopes import Agent
from baton.core.log.state import LONGEST_ID
from baton.core.log.work import Open
from baton.core.nodes.base import (
    CHILD,
    Activation,
    Done,
    Failed,
    Kind,
    Moved,
    Next,
    NodeContext,
    Opened,
    Tend,
)

TIMEOUT = "timeout"
CALLED_OFF = "cancelled"
"""The key of the payload in the output of a node whose child was cancelled by a signal."""


class ChildKind(Kind):
    """Kind of a node that starts a child saga.
    The child has an id before it exists, so that starting it twice makes one child.
    """

    name = "workflow"
    load = CHILD
    detached: ClassVar[bool] = False

    def begin(self, at: Activation, context: NodeContext) -> Next | None:
        if not context.may_spend(at):
            return None
        failing = context.state.failing.get(at.slot)
        # No slot has two dots in a row: the second try has a name of its own.
        again = "" if failing is None else f"..{failing.attempts + 1}"
        child = self.saga_at(at.slot, context) + again
        if len(child) > LONGEST_ID:
            text = f"its id would have {len(child)} characters, more than {LONGEST_ID}: children and loops lie too deep"
            return Failed(ev.Failure(CHILD_FAILED, text, at.node.name))
        given, passed = self.given(at, context, {} if failing is None else failing.arguments)
        work = context.state.open.get(at.place.owner)
        agent = work if isinstance(work, Agent) else None
        return Opened(
            ev.ChildOpened(
                **at.place.fields,
                detached=self.detached,
                child=child,
                workflow=at.node.workflow,
                input=given,
                number=context.state.counts.children + 1,
                listens=at.node.signal,
                until=context.now + at.node.timeout_ms if at.node.timeout_ms else 0,
                passed=passed,
                allowed=None if self.detached else context.left_to_child(at, agent),
            )
        )

    def saga_at(self, slot: str, context: NodeContext) -> str:
        """Return the id of the saga that begins at this slot."""
        state = context.state
        return f"{state.origin.saga}.{state.lineage.branch}.{_in_id(slot)}"

    def given(
        self, at: Activation, context: NodeContext, changes: Mapping[str, Any]
    ) -> tuple[ev.Value, dict[str, ev.Value]]:
        """Return the input of the child, and the values of it that are passed by reference.

        `changes`: fields of its input that a person has changed for this attempt.
        """
        given = context.value(at)
        return (ev.Value(v={**given.v, **changes}) if changes and isinstance(given.v, dict) else given), {}

    def resume(self, at: Activation, work: Open, context: NodeContext) -> Next | None:
        assert isinstance(work, Child), "nothing else is opened here"
        if not work.status:
            if work.due is not None and context.now >= work.due:
                return Moved(ev.ChildOverdue(**at.place.fields, at=context.now))
            return Tend(work)
        signal = cancelling_signal(context.state, work)
        if signal is not None and work.status != "failed":
            if signal.failure is not None:
                return Failed(replace(signal.failure, node=at.node.name), by=signal.key)
            told, result = (context.content(at, one) for one in (signal.payload, work.output))
            output = ev.Value(v={CALLED_OFF: told, "result": result})
            return Done(_closed(at, work, context, output, signal.key), has_schema=False)
        if work.status == "completed":  # also if that was too late: it is done, and the result is there
            return Done(_closed(at, work, context, work.output))
        return _failed(at, work)

    def node_view(self, node: Node) -> dict[str, Any]:
        return {"workflow": node.workflow} | ({"signal": node.signal} if node.signal else {})

    def says(self, event: ev.Moving) -> tuple[str, str]:
        if isinstance(event, ev.ChildOverdue) and event.until:
            return "", f"its time has stood still: it is over at {iso(event.until)}"
        return "", "its time is over: the child is stopped and undoes what it has done"


class StartKind(ChildKind):
    """Kind of an operation that starts a saga without a parent; it is over as soon as that saga exists.

    The saga has the same id in each branch: a fork does not start it a second time.
    """

    name = START
    detached = True

    def saga_at(self, slot: str, context: NodeContext) -> str:
        return f"{context.state.origin.saga}.0.{_in_id(slot)}"


def _in_id(slot: str) -> str:
    return slot.replace("@", "-").replace("#", "-")


def _closed(
    at: Activation, work: Child, context: NodeContext, output: ev.Value, by: str = ""
) -> ev.ChildClosed:
    closed = ev.ChildClosed(**at.place.fields, child=work.saga, output=output, by=by)
    if not work.undoable:
        return closed
    return replace(closed, prior=context.state.undo.head, lasting=at.node.stays)


def _failed(at: Activation, work: Child) -> Failed:
    """Return the failure of the node.

    No rule starts a child anew that others have cancelled, or that could not undo its effects.
    """
    why = work.failure
    is_late = work.overdue and (why is None or why.code == "cancelled")
    is_attempt = work.status in {"failed", "rolled_back"} or (is_late and work.status == "cancelled")
    if is_late:
        text = f"the child saga {work.saga} had not ended after {duration_text(at.node.timeout_ms)}; it was stopped, and ended {work.status}"
        return Failed(ev.failed_with(TIMEOUT, text, at.node.name), is_attempt=is_attempt)
    cause = why.message if why else work.status
    if why and why.code != work.status:
        cause = f"{why.code}: {cause}"
    text = f"the child saga {work.saga} ended {work.status}: {cause}"
    errors = (_blamed(why),) if why else ()
    failure = replace(ev.failed_with(CHILD_FAILED, text, at.node.name), errors=errors)
    return Failed(failure, is_attempt=is_attempt)


def _blamed(why: ev.Failure) -> ev.Blamed:
    """Return the failure that a child has ended with.

    Its class is that of its root cause, however deep below.
    """
    first = why.errors[0] if why.code == CHILD_FAILED and why.errors else why
    return ev.Blamed(
        why.code, why.message[:LONGEST_MESSAGE], why.node, kind=first.kind or class_of(first.code)
    )
