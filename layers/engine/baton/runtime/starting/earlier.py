"""The child that was in the place of a new one before a fork of its parent: the new one goes on from what that has left.

What the earlier child has done and not undone keeps its idempotency keys, so it is not done twice; what it has undone is done anew. That is what a
fork of the earlier child itself would come to. Loaded where a saga that was forked starts a child, and below such a child.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from baton.core.log.state import Origin, State, node_of
from baton.core.log.undos import Earlier, Keys, Undoable
from baton.errors import NotAllowedNow
from baton.ports import SagaRef
from baton.runtime.invocation.context import InvocationContext
from baton.runtime.log.history import History


class Left(Struct, frozen=True, kw_only=True):
    """What the earlier children have left. `unsettled`: one of them that has not ended, and may still undo what it has done."""

    before: tuple[Earlier, ...] = ()
    keys: Keys | None = None
    unsettled: str = ""


async def left_to(context: InvocationContext, parent: SagaRef, origin: Origin, saga: str, scope: str) -> Left:
    """What is left to the child `saga`, whose place in the sagas above it is `scope`.

    Raises `NotAllowedNow` where it is not known of what the earlier child has done whether it still stands.
    """
    earlier: dict[str, State] = {}
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
        if state.version and state.origin.scope != scope:
            break  # what it had done was undone by its parent: all is done anew
        _check(state, known)
        earlier[known] = state
    if not earlier:
        return Left()
    newest, state = next(iter(earlier.items()))
    return Left(
        before=(Earlier(newest, state.lineage.branch), *state.origin.before),
        keys=_keys([one.undo for one in earlier.values()]),
        unsettled=next((known for known, one in earlier.items() if _may_undo(one)), ""),
    )


def _keys(undone: Sequence[Undoable]) -> Keys | None:
    """Which steps act anew after all the earlier children, the newest first; None: none.

    One that came before another may have been undone since: of each node, the one counts that was undone most often.
    """
    if not any(one.is_anew for one in undone):
        return None
    nodes = {node for one in undone for node in one.rounds}
    of = {node: max(undone, key=lambda one: len(one.rounds.get(node, ()))) for node in nodes}
    standing = {
        slot: often
        for one in undone
        for slot, often in one.standing.items()
        if of.get(node_of(slot)[0], one) is one
    }
    alone = {slot: max(one.alone.get(slot, 0) for one in undone) for one in undone for slot in one.alone}
    return Keys(
        rounds={node: of[node].rounds[node] for node in sorted(nodes)}, standing=standing, alone=alone
    )


def _candidates(origin: Origin, saga: str) -> Iterator[str]:
    """The ids that it may have, the newest first."""
    branch, _, place = saga.removeprefix(f"{origin.saga}.").partition(".")
    for parent, newest in (
        (origin.saga, int(branch) - 1),
        *((one.saga, one.branch) for one in origin.before),
    ):
        yield from (f"{parent}.{number}.{place}" for number in range(newest, -1, -1))


def _may_undo(state: State) -> bool:
    """Whether it may still undo something: not where it is cancelled, and has done nothing that can be undone."""
    if state.ended is not None:
        return False
    is_stopped = state.cancel is not None and not state.cancel.undo and state.undo.work is None
    return not is_stopped or state.undo.is_left or bool(state.children)


def _check(state: State, saga: str) -> None:
    """Raises `NotAllowedNow`."""
    if unclear := next((one for one in state.undo.failed if one.unsure or one.left), None):
        raise NotAllowedNow(
            f"it is not known whether `{unclear.slot}` of the earlier child {saga} is undone ({unclear.code}: {unclear.message[:200]}); "
            f"`baton rollback {saga}` tries it again or asks about it, then fork again"
        )
    if state.undo.is_crowded:
        raise NotAllowedNow(
            f"so many steps of the earlier child {saga} could not be undone that it is not known of each whether its effect still stands; "
            f"`baton rollback {saga}` tries them again"
        )
