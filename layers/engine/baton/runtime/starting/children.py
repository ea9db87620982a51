"""Child sagas as seen by their parents: how one is started, how many
are handled at once, and what a parent hears.

When they are started, asked and cancelled is the business of runtime/worker/children.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from baton.core.decide.handler import takes_failure
from baton.core.decide.program import Program
from baton.core.decide.spending import SpendingLimits, kept_until, limits_at
from baton.core.graph.graph import graph_name, split
from baton.core.log.events import CancelRequested, ChildReported
from baton.core.log.folding.workflow_limits import used_of_caller
from baton.core.log.incarnations import Keys, ReplacedSaga, merged
from baton.core.log.records import Child, SharedLimit
from baton.core.log.slots import Slot
from baton.core.log.state import Origin, State
from baton.errors import NotAllowedNow, TooLarge
from baton.ports import SagaRef
from baton.runtime.invocation.context import InvocationContext
from baton.runtime.log.history import History
from baton.runtime.starting.catalog import Catalog
from baton.runtime.starting.start import Starter, StartRequest, body_hash

T = TypeVar("T")


class Children:
    """The children of the sagas of one invocation."""

    def __init__(self, context: InvocationContext, catalog: Catalog, starter: Starter) -> None:
        self._context = context
        self._blobs = context.blobs
        self._catalog = catalog
        self._starter = starter
        self._call = context.call
        self._clock = context.clock
        self._limits = context.limits
        self._invocation = context.invocation.id
        self._took = 0

    async def start(
        self,
        parent: SagaRef,
        ref: SagaRef,
        state: State,
        slot: str,
        child: Child,
        *,
        waits: bool = False,
        cancel: CancelRequested | None = None,
    ) -> bool:
        """Make a child exist. Raises `UserError` for one that can never start.

        Return false, where it `waits`, if the child that was in its place before a fork has not ended yet: it
        may still undo its effects. With `cancel`, its first entry has this, too: it runs nothing.
        """
        self._check_depth(state)
        left = await self._left_to(parent, state, child.saga)
        scope = _scope(state, slot) if left is None else left.scope or _scope(state, slot)
        if waits and left is not None and left.unsettled:
            return False
        definition, target = await self._catalog.startable(parent.tenant, child.workflow, state.origin.graph)
        work = state.open.get(slot) if child.passed else None
        if work is not None and (logged := work.orphan) is not None and logged.saga == child.saga:
            child = logged  # a decision does not know yet where its large values are kept
        given: Any = child.input.v
        if child.input.ref:
            given = msgspec.json.decode(await self._call(self._blobs.get, parent.tenant, child.input.ref))
        program = await self._catalog.program(parent.tenant, state.origin.graph)
        own, outer = split(child.workflow, given)
        passed = (child.passed,) if child.passed else ()
        await self._starter.start(
            StartRequest(
                ref=ref,
                definition=definition,
                program=target,
                given=own,
                outer=outer,
                passed=child.passed,
                user=state.origin.user,
                invocation=self._invocation,
                traceparent=state.origin.traceparent,
                body_hash=body_hash([child.workflow, given, *passed]),
                parent=str(parent),
                slot=slot,
                window=child.window,
                depth=state.origin.depth + 1,
                scope=scope,
                before=() if left is None else left.before,
                keys=None if left is None else left.keys,
                handled=takes_failure(program, state, slot),
                expires=state.origin.expires,
                shared_limits=self._shared_limits(program, state, slot),
                allowed=child.allowed,
                is_part=bool(graph_name(child.workflow)),
                cancel=cancel,
            )
        )
        return True

    async def _left_to(self, parent: SagaRef, state: State, saga: str) -> EarlierChildren | None:
        """Return the remains of the child in its place before a fork. Raises `UserError`."""
        if not (state.lineage.branch or state.origin.before):
            return None

        return await left_to(self._context, parent, state.origin, saga)

    def _check_depth(self, state: State) -> None:
        if state.origin.depth >= self._limits.nesting_depth:
            raise TooLarge(
                f"sagas start sagas at most {self._limits.nesting_depth} levels deep (`NestingDepth`)"
            )

    async def start_detached(
        self, by: SagaRef, ref: SagaRef, state: State, child: Child, slot: str = ""
    ) -> None:
        """Make a saga exist that has no parent: none waits for it. Without a slot it is the failure handler.
        Raises `UserError` for one that can never start.
        """
        self._check_depth(state)
        origin = state.origin
        definition, target = await self._catalog.startable(by.tenant, child.workflow, origin.graph)
        given = child.input.v
        if child.input.ref:
            given = msgspec.json.decode(await self._call(self._blobs.get, by.tenant, child.input.ref))
        own, outer = split(child.workflow, given)
        left = None if slot else await self._left_to(by, state, child.saga)
        program = await self._catalog.program(by.tenant, origin.graph)
        await self._starter.start(
            StartRequest(
                ref=ref,
                definition=definition,
                program=target,
                given=own,
                outer=outer,
                passed=child.passed,
                user=origin.user,
                invocation=self._invocation,
                traceparent=origin.traceparent,
                body_hash=body_hash([child.workflow, given if slot else child.saga]),
                depth=origin.depth + 1,
                scope=f"{origin.scope or origin.saga}/{slot or 'failure-handler'}",
                before=() if left is None else left.before,
                keys=None if left is None else left.keys,
                expires=origin.expires,
                shared_limits=self._shared_limits(program, state, slot),
            )
        )

    def _shared_limits(self, program: Program, state: State, slot: str = "") -> tuple[SharedLimit, ...]:
        """Return the limits of money of the sagas above a child,
        with those of the place that it is started from.
        """
        node = program.nodes[Slot.parse(slot).node] if slot else None
        cap, day = program.graph.limits.get("cost"), kept_until(state)
        return limits_at(state, node, cap, SpendingLimits.of(self._limits), day, shares=program.shares)

    def groups(self, all_of_them: Sequence[T], end: int) -> Iterator[Sequence[T]]:
        """Yield groups to run concurrently, for as long as the duration of the last group still fits before
        `end`.
        """
        width = self._limits.children_at_once
        for start in range(0, len(all_of_them), width):
            began = self._clock.now()
            if began + self._took >= end:
                return
            yield all_of_them[start : start + width]
            self._took = self._clock.now() - began


def _scope(state: State, slot: str) -> str:
    """Return the child's place in the sagas above it: a new one for each try."""
    failing = state.failing.get(slot)
    again = f"!{failing.attempts + 1}" if failing is not None else ""
    return f"{state.origin.scope or state.origin.saga}/{slot}{again}"


def is_news(parent: State, report: ChildReported) -> bool:
    """Return true if the parent still waits for this report."""
    work = parent.open.get(report.slot)
    return work is not None and work.hears(report.child)


def fitting_reports(reports: Sequence[ChildReported], room: int) -> list[ChildReported]:
    """Return as many reports as one entry has room for; at least one."""
    part: list[ChildReported] = []
    for report in reports:
        room -= len(msgspec.json.encode(report))
        if part and room < 0:
            break
        part.append(report)
    return part


def report_of(child: State, slot: str) -> ChildReported | None:
    """Return the end of a child as its parent records it; None while the child has not ended."""
    if child.ended is None:
        return None
    return ChildReported(
        slot=slot,
        child=child.origin.saga,
        status=child.ended.status,
        output=child.ended.output,
        failure=child.ended.failure,
        cost=child.money.spent,
        undoable=child.undo.is_left,
        used=used_of_caller(child),
    )


class EarlierChildren(Struct, frozen=True, kw_only=True):
    """Remains of the earlier children.
    `scope`: their place in the sagas above. `unsettled`: one of them that has not ended, and may still undo
    its steps.
    """

    scope: str = ""
    before: tuple[ReplacedSaga, ...] = ()
    keys: Keys | None = None
    unsettled: str = ""


async def left_to(context: InvocationContext, parent: SagaRef, origin: Origin, saga: str) -> EarlierChildren:
    """Return the remains for the child `saga`. It has the place of the newest child before it.

    Raises `NotAllowedNow` if it is not known that the results of the earlier child still stand.
    """
    earlier: dict[str, State] = {}
    scope = ""
    for known in _candidates(origin, saga):
        ref = SagaRef(parent.tenant, known)
        head = await context.call(context.log.read_head, ref)
        if head is None:
            continue
        history = History(context.log, context.blobs, context.call, ref)
        await history.load(head)
        state = history.state
        if state.origin.scope.endswith("/"):
            continue  # it was made only to be found cancelled, and has no place
        if state.version and state.origin.scope != (scope or state.origin.scope):
            break  # earlier versions moved a child whose parent had undone it: the keys of this one are others
        scope = scope or state.origin.scope
        _check(state, known)
        earlier[known] = state
    if not earlier:
        return EarlierChildren()
    newest, state = next(iter(earlier.items()))
    return EarlierChildren(
        scope=scope,
        before=(ReplacedSaga(newest, state.lineage.branch), *state.origin.before),
        keys=Keys.of(merged(one.undo.incarnation for one in earlier.values())),
        unsettled=next((known for known, one in earlier.items() if _may_undo(one)), ""),
    )


def _candidates(origin: Origin, saga: str) -> Iterator[str]:
    """Yield the ids that the child may have, the newest first."""
    branch, _, place = saga.removeprefix(f"{origin.saga}.").partition(".")
    for parent, newest in (
        (origin.saga, int(branch) - 1),
        *((one.saga, one.branch) for one in origin.before),
    ):
        yield from (f"{parent}.{number}.{place}" for number in range(newest, -1, -1))


def _may_undo(state: State) -> bool:
    """Return true if the saga may still undo something: not if it is cancelled, and has done nothing that can
    be undone.
    """
    if state.ended is not None:
        return False
    is_stopped = state.cancel is not None and state.reverts_to is None
    return not is_stopped or state.undo.is_left or any(child.may_undo for child in state.children.values())


def _check(state: State, saga: str) -> None:
    """Raise `NotAllowedNow` if the child must not start."""
    if unclear := next((one for one in state.undo.failed if one.unsure or one.left), None):
        raise NotAllowedNow(
            f"it is not known whether `{unclear.slot}` of the earlier child {saga} is undone ({unclear.code}: {unclear.message[:200]}); "
            f"`baton rollback {saga}` tries it again or asks about it, then fork again"
        )
    if state.undo.set_aside:
        raise NotAllowedNow(
            f"so many steps of the earlier child {saga} could not be undone that it is not known of each whether its effect still stands; "
            f"`baton rollback {saga}` tries them again"
        )
