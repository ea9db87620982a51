"""A call of a tool, the question whether it may act, and the wait for work that it has handed over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.core.effects.approvals import is_for_a_person
from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.answers import REJECTED
from baton.core.log.maps import is_index
from baton.core.log.replans import CHOICE, Replanning, label_of
from baton.core.log.work import Callback, Open
from baton.core.nodes import elsewhere
from baton.core.nodes.base import STEP, Activation, Desk, Done, Failed, Granted, Kind, Next, Run
from baton.core.nodes.human import HumanKind

_QUESTIONS = HumanKind()


class TaskKind(Kind):
    """Retries, policies and what may happen only once are decided around it, for every kind that has attempts.

    Its open work is the question whether the tool may act, which an attempt opens when all arguments are known; work
    elsewhere, which the tool has handed over; or what a model has put in its place, whose calls are its items.
    """

    name = "task"
    load = STEP
    has_attempts = True
    active = "asking"

    def part(self, node: Node, work: Open | None, item: str) -> Node:
        if node.replan is None or not isinstance(work, Replanning):
            return node
        from baton.core.nodes import replanning  # few steps are done another way by a model

        return replanning.part_of(node, node.replan, work, item)

    def keeps_failure(self, item: str) -> bool:
        return bool(item)

    def begin(self, at: Activation, desk: Desk) -> Next | None:
        if at.item and not is_index(at.item):
            from baton.core.nodes import replanning

            return replanning.begun(at, desk)
        # Work that was handed over can be done before the log knows that it was: the worker died, or the tool failed after.
        if at.node.callback is not None and (said := elsewhere.told(at, desk)) is not None:
            return said
        arguments = desk.arguments(at)
        return Run(arguments) if desk.may_spend(at) else None

    def returned(self, at: Activation, callback: str, ran: Mapping[str, Any]) -> ev.CallbackOpened:
        times = at.node.callback
        assert times is not None, "no other hands anything over"
        until, often = ran["ended_at"] + times.timeout_ms, times.heartbeat_ms
        skew = ran["skew_ms"] if often else 0
        return ev.CallbackOpened(
            **{**ran, "skew_ms": skew}, callback=callback, until=until, heartbeat_ms=often
        )

    def word(self, work: Open) -> str:
        if isinstance(work, Replanning):
            return "running"
        return "waiting" if isinstance(work, Callback) else self.active

    def resume(self, at: Activation, work: Open, desk: Desk) -> Next | None:
        """A question as any other; but an answer lets the tool act, and is no output."""
        if isinstance(work, Callback):
            return elsewhere.resumed(at, work, desk)
        if isinstance(work, Replanning):
            from baton.core.nodes import replanning

            return replanning.resumed(at, work, desk)
        said = _QUESTIONS.resume(at, work, desk)
        if not isinstance(said, Done) or at.item == CHOICE:
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

    def open_view(self, node: Node, work: Open) -> dict[str, Any]:
        if isinstance(work, Callback):
            return elsewhere.shown(work)
        if isinstance(work, Replanning):
            return {"alternative": work.alternative or None}
        return _QUESTIONS.open_view(node, work)

    def words(self, event: ev.Opens) -> str:
        work = event.work()
        if isinstance(work, Replanning):
            return "what a model puts in its place"
        return elsewhere.in_words(work) if isinstance(work, Callback) else _QUESTIONS.words(event)

    def label(self, work: Open | None, item: str) -> str:
        return label_of(item, work.calls.get(item, "") if isinstance(work, Replanning) else "")
