"""The child that goes on in the place of another since a fork of their parent: what it has been given is undone there.

How the new one comes by it is in runtime/starting/earlier.py. Loaded with the first child that is rolled back by hand.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from baton.core.log.state import State
from baton.errors import NotAllowedNow, NotFound
from baton.ports import SagaRef
from baton.runtime.engine.request import Request


async def check_followed(request: Request, state: State) -> None:
    """Raises `NotAllowedNow` where another child has what this one has done, and that is not undone."""
    async for other in _followers(request, state):
        if other.ended is None or other.undo.is_left:
            raise NotAllowedNow(
                f"the parent was forked, and child {other.origin.saga} has what this one has done; roll that back"
            )


async def _followers(request: Request, state: State) -> AsyncIterator[State]:
    """The children that are in its place since, the newest first; also below those that are in the place of its parent."""
    origin = state.origin
    if not origin.parent:
        return
    above = await _read(request, SagaRef.parse(origin.parent).id)
    if above is None:
        return
    branch, _, place = origin.saga.removeprefix(f"{above.origin.saga}.").partition(".")
    sagas = [f"{above.origin.saga}.{one}.{place}" for one in range(above.lineage.branch, int(branch), -1)]
    async for other in _followers(request, above):
        sagas += [f"{other.origin.saga}.{one}.{place}" for one in range(other.lineage.branch, -1, -1)]
    for saga in sagas:
        found = await _read(request, saga)
        if found is not None and any(one.saga == origin.saga for one in found.origin.before):
            yield found


async def _read(request: Request, saga: str) -> State | None:
    try:
        _, history = await request.read(saga)
    except NotFound:
        return None
    return history.state
