"""Work that a task has handed over: what was said of it, when it is too late, and what is shown of it.

The task itself is in task.py, ids and what is left of a callback in core/log/folding/callbacks.py.
"""

from __future__ import annotations

from typing import Any

from baton.core.effects.toolspec import ONCE
from baton.core.expressions.durations import lasting
from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.folding.callbacks import callback_of, said_of
from baton.core.log.state import UNKNOWN_OUTCOME
from baton.core.log.work import Callback
from baton.core.nodes import thinking
from baton.core.nodes.base import Activation, Completed, Desk, Later, Run
from baton.core.times import iso


def resumed(at: Activation, work: Callback, desk: Desk) -> Completed | Run | Later | None:
    """How the attempt has ended, if it has; or a look whether it has."""
    if work.response is not None:
        return thinking.resumed(at, work, desk)
    if (said := told(at, desk)) is not None:
        return said
    if desk.now < (work.due or 0):
        return None
    return Completed(work.id, failure=_too_late(at.node, work))


def shown(work: Callback) -> dict[str, Any]:
    by = work.heartbeat_by
    return {
        "callback": work.id,
        "since": iso(work.since),
        "until": iso(work.until),
        "heard_at": iso(work.heard_at) if by else None,
        "heartbeat_by": iso(by) if by else None,
    }


def in_words(work: Callback) -> str:
    if work.response is not None:
        return f"the answer of `{work.response.model}`, until {iso(work.until)} at most"
    often = f", with a heartbeat every {lasting(work.heartbeat_ms)}" if work.heartbeat_ms else ""
    return f"the callback `{work.id}`, until {iso(work.until)} at most{often}"


def told(at: Activation, desk: Desk) -> Completed | None:
    """What work elsewhere has said."""
    callback = callback_of(desk.state, at.slot)
    said = said_of(desk.state, callback)
    if said is None:
        return None
    return Completed(callback, None if said.failure else said.payload, said.failure)


def _too_late(node: Node, work: Callback) -> ev.Failure:
    if work.due == work.until:
        code, text = "timeout", f"no callback within {lasting(work.until - work.since)}"
    else:
        code, text = "heartbeat_timeout", f"no heartbeat for {lasting(work.heartbeat_ms)}"
    if node.effect != ONCE:
        return ev.failed_with(code, text, node.name)
    # What may happen only once may be done by now: it is not handed over again before a person has looked.
    return ev.failed_with(UNKNOWN_OUTCOME, f"{text}: it may have happened elsewhere", node.name)
