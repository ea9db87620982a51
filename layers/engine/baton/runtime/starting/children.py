"""Child sagas as seen by their parents: how one is started, how many are handled at once, and what a parent hears.

When they are started, asked and cancelled is the business of runtime/performers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from baton.core.decide.handled import takes_failure
from baton.core.decide.program import Program
from baton.core.decide.spending import SpendingLimits, kept_until, limits_at
from baton.core.graph.inner import name_of, split
from baton.core.log.events import ChildReported
from baton.core.log.opened import Child
from baton.core.log.records import SharedLimit
from baton.core.log.state import State, node_of
from baton.errors import TooLarge
from baton.ports import SagaRef
from baton.runtime.invocation.context import InvocationContext
from baton.runtime.starting.catalog import Catalog
from baton.runtime.starting.start import Beginning, Starter, body_hash

if TYPE_CHECKING:
    from baton.runtime.starting.earlier import Left

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
        self, parent: SagaRef, ref: SagaRef, state: State, slot: str, child: Child, *, waits: bool = False
    ) -> bool:
        """Make a child exist. Raises `UserError` for one that can never start.

        False, where it `waits`: the child that was in its place before a fork has not ended yet, and may still undo what it has done.
        """
        self._check_depth(state)
        scope = _scope(state, slot)
        left = await self._left_to(parent, state, child.saga, scope)
        if waits and left is not None and left.unsettled:
            return False
        definition, graph = await self._catalog.startable(parent.tenant, child.workflow, state.origin.graph)
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
            Beginning(
                ref=ref,
                definition=definition,
                graph=graph,
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
                is_part=bool(name_of(child.workflow)),
            )
        )
        return True

    async def _left_to(self, parent: SagaRef, state: State, saga: str, scope: str) -> Left | None:
        """What the child in its place before a fork has left to it. Raises `UserError`."""
        if not (state.lineage.branch or state.origin.before):
            return None
        from baton.runtime.starting.earlier import left_to  # few sagas are forked

        return await left_to(self._context, parent, state.origin, saga, scope)

    def _check_depth(self, state: State) -> None:
        if state.origin.depth >= self._limits.nesting_depth:
            raise TooLarge(
                f"sagas start sagas at most {self._limits.nesting_depth} levels deep (`NestingDepth`)"
            )

    async def start_handler(self, failed: SagaRef, ref: SagaRef, state: State, child: Child) -> None:
        """Make the failure handler of a saga exist. It has no parent: none waits for it. Raises `UserError` for one that can never start."""
        self._check_depth(state)
        origin = state.origin
        definition, graph = await self._catalog.startable(failed.tenant, child.workflow, origin.graph)
        own, outer = split(child.workflow, child.input.v)
        scope = f"{origin.scope or origin.saga}/failure-handler"
        left = await self._left_to(failed, state, child.saga, scope)
        program = await self._catalog.program(failed.tenant, origin.graph)
        await self._starter.start(
            Beginning(
                ref=ref,
                definition=definition,
                graph=graph,
                given=own,
                outer=outer,
                passed=child.passed,
                user=origin.user,
                invocation=self._invocation,
                traceparent=origin.traceparent,
                body_hash=body_hash([child.workflow, child.saga]),
                depth=origin.depth + 1,
                scope=scope,
                before=() if left is None else left.before,
                keys=None if left is None else left.keys,
                expires=origin.expires,
                shared_limits=self._shared_limits(program, state),
            )
        )

    def _shared_limits(self, program: Program, state: State, slot: str = "") -> tuple[SharedLimit, ...]:
        """The limits of money of the sagas above a child, with those of the place that it is started from."""
        node = program.nodes[node_of(slot)[0]] if slot else None
        cap, day = program.graph.limits.get("cost"), kept_until(state)
        return limits_at(state, node, cap, SpendingLimits.of(self._limits), day, shares=program.shares)

    def groups(self, all_of_them: Sequence[T], end: int) -> Iterator[Sequence[T]]:
        """So many side by side as may be, for as long as what the last ones took still fits before `end`."""
        width = self._limits.children_at_once
        for start in range(0, len(all_of_them), width):
            began = self._clock.now()
            if began + self._took >= end:
                return
            yield all_of_them[start : start + width]
            self._took = self._clock.now() - began


def _scope(state: State, slot: str) -> str:
    """The child's place in the sagas above it: another one, once what it had done was undone, and for each try."""
    generation = state.undo.generation(*node_of(slot), slot)
    again = f"~{generation}" if generation else ""
    failing = state.failing.get(slot)
    again += f"!{failing.attempts + 1}" if failing is not None else ""
    return f"{state.origin.scope or state.origin.saga}/{slot}{again}"


def is_news(parent: State, report: ChildReported) -> bool:
    """Whether the parent still waits to hear this."""
    work = parent.open.get(report.slot)
    return work is not None and work.hears(report.child)


def cut(reports: Sequence[ChildReported], room: int) -> list[ChildReported]:
    """As many reports as one entry has room for; at least one."""
    part: list[ChildReported] = []
    for report in reports:
        room -= len(msgspec.json.encode(report))
        if part and room < 0:
            break
        part.append(report)
    return part


def report_of(child: State, slot: str) -> ChildReported | None:
    """The end of a child as its parent records it; None while the child has not ended."""
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
    )
