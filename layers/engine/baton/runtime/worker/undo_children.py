"""Part of the performer of children that has them undo their steps, and collects the results."""

from __future__ import annotations

from baton.core.decide.decision import TendChildren
from baton.core.log.events import CancelRequested, ChildUndone, Event, Failure, Forked
from baton.core.log.slots import Slot
from baton.core.log.state import FORK_KEY, State
from baton.ports import Head, SagaRef, Wake
from baton.runtime.engine.parts import InvocationScope
from baton.runtime.engine.run import LogWriter, Run
from baton.runtime.log.history import History

WHY = "its parent is undone"


class ChildUndoer:
    """Performer of undoing children.
    A child that has ended continues in a new branch, once for each rollback of its parent; one that runs is
    cancelled.
    """

    def __init__(self, scope: InvocationScope, writer: LogWriter) -> None:
        self._p = scope
        self._writer = writer

    async def perform(self, run: Run, command: TendChildren) -> bool:
        """Undo effects of children. Return true once one of them is done."""
        work = run.history.state.undo.work
        if work is None:
            return True
        found: list[Event] = []
        for slot, child in command.children:
            key = f"undo/{run.lease.ref.id}/{run.history.state.lineage.branch}.{work.first}"
            step = work.steps.get(slot)
            may_lack = step is not None and step.stopped
            if (said := await self._ask(run.lease.ref, slot, child.saga, key, may_lack)) is not None:
                found.append(said)
        if not found:
            return False
        if not await self._writer.append(run.lease, run.history, tuple(found)):
            await self._writer.catch_up(run)
        return True

    async def _ask(
        self, parent: SagaRef, slot: str, child: str, key: str, may_lack: bool
    ) -> ChildUndone | None:
        """Ask one child to undo its steps.
        Return its result, None while it is at work.

        `may_lack`: the child was stopped while its parent went on; if it does not exist, it could never
        start. One that runs at the end of its parent exists: it has been asked to stop.
        """
        ref = SagaRef(parent.tenant, child)
        place = Slot.parse(slot)
        head = await self._p.call(self._p.log.read_head, ref)
        if head is None and may_lack:
            return ChildUndone(**place.fields, child=child, nothing=True)
        if head is None:
            gone = Failure("child_failed", f"there is no child saga {child} any more", place.node)
            return ChildUndone(**place.fields, child=child, failure=gone)
        history = History(self._p.log, self._p.blobs, self._p.call, ref)
        await history.load(head)
        while True:
            state = history.state
            left = state.undo.is_left
            if state.ended is not None and (not left or FORK_KEY + key in state.keys):
                failure = None
                if state.undo.can or state.undo.fails:
                    text = f"the child saga {child} ended {state.ended.status}: `baton rollback {child}` takes it up again"
                    failure = Failure("child_failed", text, place.node)
                elif state.undo.unknown:
                    named = ", ".join(f"`{one}`" for one in state.undo.in_doubt[:3])
                    text = (
                        f"it is not known whether {named} of the child saga {child} has happened: look there"
                    )
                    failure = Failure("child_failed", text, place.node)
                report = state.ended.undone
                cost = state.money.spent - await self._before(history)
                return ChildUndone(
                    **place.fields,
                    child=child,
                    failure=failure,
                    cost=max(cost, 0),
                    nothing=failure is None and (report is None or not report.done),
                )
            event = _next(state, str(parent), key, self._p.clock.now())
            if event is None or await _put(self._p, head, history, event):
                return None
            await history.catch_up()

    async def _before(self, history: History) -> int:
        """Return the sum that the child had spent before its rollback; 0 for one that was cancelled before it
        ended, of which its parent has counted nothing.
        """
        closed = history.state.lineage.closed
        return (await history.state_at(closed[-1].last)).money.spent if closed else 0


async def _put(scope: InvocationScope, head: Head, history: History, event: Event) -> bool:
    """Append the event that starts the rollback of a child. Return false if another entry was first."""
    if isinstance(event, Forked):
        await _arm(scope, head)
    entry = history.next_entry(
        (event,),
        at=scope.clock.now(),
        invocation=scope.invocation.id,
        trace=history.state.origin.traceparent,
    )
    return await history.append(entry, wake=Wake(v=entry.version))


async def _arm(scope: InvocationScope, head: Head) -> None:
    seen: Head | None = head
    while seen is not None:
        until = scope.clock.now() + scope.limits.fork_deadline_ms
        if await scope.call(scope.log.arm, seen, until):
            return
        seen = await scope.call(scope.log.read_head, head.ref)


def _next(state: State, by: str, key: str, now: int) -> Event | None:
    """Return the event that starts the rollback of a child; None if it is under way."""
    if state.ended is not None:
        return Forked(
            cut=state.version, branch=state.lineage.branch + 1, by=by, at=now, reason=WHY, key=key, undo=True
        )
    if state.reverts_to is not None:
        return None
    return CancelRequested(reason=WHY, by=by, at=now, grace_ms=0, undo=True)
