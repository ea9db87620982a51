"""A call of a tool, its approval, and the wait for work that it has handed over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from baton.core.effects.toolspec import ONCE, is_for_a_person
from baton.core.expressions import duration_text
from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.folding.received import callback_of, promise_of, said_of
from baton.core.log.questions import REJECTED
from baton.core.log.scopes import Replanning, label_of
from baton.core.log.state import UNKNOWN_OUTCOME
from baton.core.log.work import Callback, Open
from baton.core.nodes.base import (
    STEP,
    Activation,
    Completed,
    Done,
    Failed,
    Granted,
    Kind,
    Later,
    Next,
    NodeContext,
    Opened,
    Run,
)
from baton.core.nodes.human import HumanKind
from baton.core.on_demand import OnDemand

if TYPE_CHECKING:
    from baton.core.nodes import replanning
else:
    replanning = OnDemand("baton.core.nodes.replanning")

FIRST_MS: Final = 15_000
LONGEST_MS: Final = 300_000
_JITTER: Final = (
    4  # a pause is up to a fourth longer, so that requests that began together are not looked at together
)


def resumed_request(at: Activation, work: Callback, context: NodeContext) -> Run | Later:
    """Return a poll of the request if one is due: it was reported over, or the time has come.

    The last poll is at its end.
    """
    is_said = said_of(context.state, work.id) is not None
    looked, knew = context.looked(at) or (work.since, False)
    if (is_said and not knew) or next_look(work, looked) <= context.now:
        return Run({})
    return Later(next_look(work, context.now))


def next_look(work: Callback, after: int) -> int:
    """Return the first moment later than `after` at which a poll is due; once its time is over, each moment
    is.
    """
    pause, at = FIRST_MS, work.since
    assert work.response is not None, "nothing else is looked at"
    stretch = 1 + crc32(work.response.id.encode()) / 2**32 / _JITTER
    while at <= after < work.until:
        if pause == LONGEST_MS:
            longest = int(pause * stretch)
            return min(at + (max(after - at, 0) // longest + 1) * longest, work.until)
        at += int(pause * stretch)
        pause = min(2 * pause, LONGEST_MS)
    return min(at, work.until)


def resumed_work(at: Activation, work: Callback, context: NodeContext) -> Completed | Run | Later | None:
    """Return the end of the attempt, if it has ended, or a poll for it."""
    if work.response is not None:
        return resumed_request(at, work, context)
    if (said := callback_outcome(at, context)) is not None:
        return said
    if context.now < (work.due or 0):
        return None
    return Completed(work.id, failure=_too_late(at.node, work))


def callback_outcome(at: Activation, context: NodeContext) -> Completed | None:
    """Return the report of work elsewhere."""
    callback = callback_of(context.state, at.slot)
    said = said_of(context.state, callback)
    if said is None:
        return None
    return Completed(callback, None if said.failure else said.payload, said.failure)


def _too_late(node: Node, work: Callback) -> ev.Failure:
    if work.due == work.until:
        code, text = "timeout", f"no callback within {duration_text(work.until - work.since)}"
    else:
        code, text = "heartbeat_timeout", f"no heartbeat for {duration_text(work.heartbeat_ms)}"
    if node.effect != ONCE:
        return ev.failed_with(code, text, node.name)
    # What may happen only once may be done by now: it is not handed over again before a person has looked.
    return ev.failed_with(UNKNOWN_OUTCOME, f"{text}: it may have happened elsewhere", node.name)


_QUESTIONS = HumanKind()


class TaskKind(Kind):
    """A call of a tool.

    Retries, policies and once-only effects are decided around it, for every kind that has attempts.
    Its open work is the approval of the call, which an attempt opens when all arguments are known;
    work elsewhere, which the tool has handed over; or a model's alternative in its place, whose calls are its
    items.
    """

    name = "task"
    load = STEP
    has_attempts = True

    def part(self, node: Node, work: Open | None, item: str) -> Node:
        if node.replan is None or not isinstance(work, Replanning):
            return node
        return replanning.part_of(node, node.replan, work, item)

    def keeps_failure(self, item: str) -> bool:
        return bool(item)

    def begin(self, at: Activation, context: NodeContext) -> Next | None:
        # Work that was handed over can be done before the log knows that it was: the worker died, or the tool failed after.
        if at.node.callback is not None and (said := callback_outcome(at, context)) is not None:
            return said
        arguments = context.arguments(at)
        return Run(arguments) if context.may_spend(at) else None

    def gives(self, at: Activation, context: NodeContext) -> Mapping[str, Any] | None:
        """Return the arguments of a part of a model's alternative."""
        return replanning.given(at, context)

    def returned(self, at: Activation, callback: str, ran: Mapping[str, Any]) -> ev.CallbackOpened:
        times = at.node.callback
        assert times is not None, "no other hands anything over"
        until, often = ran["ended_at"] + times.timeout_ms, times.heartbeat_ms
        skew = ran["skew_ms"] if often else 0
        return ev.CallbackOpened(
            **{**ran, "skew_ms": skew}, callback=callback, until=until, heartbeat_ms=often
        )

    def resume(self, at: Activation, work: Open, context: NodeContext) -> Next | None:
        """Resume as any kind with a question; but an answer lets the tool act, and is no output."""
        if isinstance(work, Callback):
            return resumed_work(at, work, context)
        if isinstance(work, Replanning):
            return replanning.resume_replan(at, work, context)
        said = _QUESTIONS.resume(at, work, context)
        if not isinstance(said, Done):
            return said
        assert said.first is not None, "a question is closed before its node is done"
        assert work.ask is not None, "nothing else is opened here"
        if not said.first.by and is_for_a_person(work.ask.risk):
            why = f"no person has approved what is of {work.ask.risk} risk"
            return Failed(ev.failed_with(REJECTED, why, at.node.name), first=said.first)
        return Granted(said.first)

    def node_view(self, node: Node) -> dict[str, Any]:
        approval, times, view = node.approval, node.callback, dict[str, Any]()
        if approval is not None:
            asks = "always" if approval.always or approval.by_tool else "by_risk"
            view |= {"approval": asks, "action": approval.risk.action if approval.risk is not None else None}
        if times is not None:
            view["callback"] = {"timeout_ms": times.timeout_ms, "heartbeat_ms": times.heartbeat_ms or None}
        if node.replan is not None:
            plan = node.replan.plan.arguments
            view["replan"] = {"model": plan["model"], "tools": plan["tools"]}
        return view

    def label(self, work: Open | None, item: str) -> str:
        return label_of(item, work.calls.get(item, "") if isinstance(work, Replanning) else "")


class CallbackKind(TaskKind):
    """A callback without a tool: a function hands its token out itself, and waits for the report."""

    name = "callback"
    load = ""
    has_attempts = False

    def begin(self, at: Activation, context: NodeContext) -> Next | None:
        now = context.now
        times: dict[str, Any] = {"started_at": now, "ended_at": now, "skew_ms": context.skew_ms}
        by: dict[str, Any] = {"attempt": 1, "tool": "", "tool_version": "", "schema_hash": ""}
        return Opened(self.returned(at, promise_of(at.slot), {**at.place.fields, **times, **by}))
