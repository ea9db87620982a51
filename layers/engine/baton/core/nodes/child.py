"""A workflow that runs as a child saga; its end is the node's."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.records import LONGEST_MESSAGE
from baton.core.log.signal_folds import call_off
from baton.core.log.state import LONGEST_ID
from baton.core.log.work import Child, Open
from baton.core.nodes.base import CHILD, Activation, Desk, Done, Failed, Kind, Next, Opened, Tend

CALLED_OFF = "cancelled"
"""The key of the payload in the output of a node whose child was called off by a signal."""


class ChildKind(Kind):
    """The child has an id before it exists, so that starting it twice makes one child."""

    name = "workflow"
    load = CHILD
    active = "child"

    def begin(self, at: Activation, desk: Desk) -> Next | None:
        if not desk.may_spend(at):
            return None
        slot = at.slot.replace("@", "-").replace("#", "-")
        child = f"{desk.state.origin.saga}.{desk.state.lineage.branch}.{slot}"
        if len(child) > LONGEST_ID:
            text = f"its id would have {len(child)} characters, more than {LONGEST_ID}: children and loops lie too deep"
            return Failed(ev.Failure("child_failed", text, at.node.name))
        return Opened(
            ev.ChildOpened(
                node=at.node.name,
                iteration=at.iteration,
                item=at.item,
                child=child,
                workflow=at.node.workflow,
                input=desk.value(at),
                number=desk.state.counts.children + 1,
                listens=at.node.signal,
            )
        )

    def resume(self, at: Activation, work: Open, desk: Desk) -> Next | None:
        assert isinstance(work, Child), "nothing else is opened here"
        if not work.status:
            return Tend(work)
        signal = call_off(desk.state, work)
        if signal is not None and work.status != "failed":
            if signal.failure is not None:
                return Failed(replace(signal.failure, node=at.node.name), by=signal.key)
            told, result = (desk.content(at, one) for one in (signal.payload, work.output))
            output = ev.Value(v={CALLED_OFF: told, "result": result})
            return Done(_closed(at, work, desk, output, signal.key), has_schema=False)
        if work.status == "completed":
            return Done(_closed(at, work, desk, work.output))
        why = work.failure
        cause = why.message if why else work.status
        if why and why.code != work.status:
            cause = f"{why.code}: {cause}"
        text = f"the child saga {work.saga} ended {work.status}: {cause}"
        errors = (ev.Blamed(why.code, why.message[:LONGEST_MESSAGE], why.node),) if why else ()
        return Failed(replace(ev.failed_with("child_failed", text, at.node.name), errors=errors))

    def node_view(self, node: Node) -> dict[str, Any]:
        return {"workflow": node.workflow} | ({"signal": node.signal} if node.signal else {})

    def open_view(self, node: Node, work: Open) -> dict[str, Any]:
        assert isinstance(work, Child), "nothing else is opened here"
        return {"saga": work.saga} | ({"signal": work.signal} if work.signal else {})

    def words(self, event: ev.Opens) -> str:
        assert isinstance(event, ev.ChildOpened), "nothing else is opened here"
        return f"the child saga `{event.child}`"


def _closed(at: Activation, work: Child, desk: Desk, output: ev.Value, by: str = "") -> ev.ChildClosed:
    closed = ev.ChildClosed(
        node=at.node.name, iteration=at.iteration, item=at.item, child=work.saga, output=output, by=by
    )
    if not work.undoable:
        return closed
    return replace(closed, prior=desk.state.undo.head, lasting=at.node.stays)
