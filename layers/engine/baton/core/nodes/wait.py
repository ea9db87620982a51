"""A wait until a time, for a signal, or for the first of both."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from baton.core.expressions import parse_duration, parse_time
from baton.core.failures import sanitised
from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.records import TIMED_OUT
from baton.core.log.work import Open
from baton.core.nodes.base import Activation, Done, Failed, Kind, Next, NodeContext, Opened


class WaitKind(Kind):
    """A wait.

    The first signal of its name ends it, before or after its beginning; a fresh wait takes only later
    signals.
    A signal after the end of its time does not end it, even if no worker has noticed that end yet.
    """

    name = "wait"

    def template(self, node: Node) -> Any:
        return {"for": node.wait_for, "until": node.wait_until}

    def begin(self, at: Activation, context: NodeContext) -> Next | None:
        node, given = at.node, context.value(at).v
        until = None if node.wait_ms is None else context.now + node.wait_ms
        try:
            if node.wait_for is not None:
                until = context.now + parse_duration(given["for"])
            elif node.wait_until is not None:
                until = parse_time(given["until"])
        except ValueError as error:
            which = "for" if node.wait_for is not None else "until"
            # A part of a secret would not be known for one.
            is_plain = sanitised(str(given[which])) == str(given[which])
            text = str(error) if is_plain else "it is neither time nor duration"
            return Failed(ev.failed_with("wait_invalid", f"wait.{which}: {text}", node.name))
        return Opened(
            ev.WaitOpened(
                **at.place.fields,
                until=until,
                signal=node.signal,
                fresh=node.fresh,
            )
        )

    def resume(self, at: Activation, work: Open, context: NodeContext) -> Next | None:
        for signal in context.state.signals:
            if signal.name != work.signal or not signal.is_in_time(work.due):
                continue
            if signal.failure is not None:
                return Failed(replace(signal.failure, node=at.node.name), by=signal.key)
            return Done(_closed(at, signal.key, signal.payload), by=signal.key)
        if work.due is None or work.due > context.now:
            return None
        # With a signal to wait for, the time is not what was expected: the output says so.
        return Done(_closed(at, "time", ev.Value(v=TIMED_OUT if work.signal else None)), has_schema=False)

    def node_view(self, node: Node) -> dict[str, Any]:
        shown: dict[str, Any] = {"wait_ms": node.wait_ms, "signal": node.signal or None}
        shown |= {"fresh": True} if node.fresh else {}
        templates = {"wait_for": node.wait_for, "wait_until": node.wait_until}
        return shown | {name: template for name, template in templates.items() if template is not None}


def _closed(at: Activation, by: str, output: ev.Value) -> ev.WaitClosed:
    return ev.WaitClosed(**at.place.fields, by=by, output=output)
