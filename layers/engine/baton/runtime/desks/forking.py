"""Forking: the entry with which a saga goes on, in a new branch, from a version of its log. Loaded with the first fork.

The branch that a rollback opens is in rolling_back.py.
"""

from __future__ import annotations

from typing import Any

from baton.core.log.events import Forked
from baton.core.log.folding.workflow_limits import too_old
from baton.core.log.state import FORK_KEY
from baton.errors import KeyReused, NotAllowedNow, UserError
from baton.ports import Wake
from baton.runtime.engine.request import Opened, Request, accepted
from baton.runtime.log.history import History


async def fork(request: Request, opened: Opened, cut: int, reason: str, key: str) -> dict[str, Any]:
    """See `Service.fork`.

    The head is armed first: an ended saga is in no index, and the wake of the entry may be lost.
    """
    history, clock = opened.history, request.engine.clock
    remembered = FORK_KEY + key
    armed = 0
    while True:
        state, now = history.state, clock.now()
        if key and remembered in state.keys:
            _check_key(state.keys[remembered], cut)
            return accepted(opened, changed=False)
        if state.undo.work is not None:
            raise NotAllowedNow("the saga undoes what it has done; fork it once that is over")
        # By the state that the entry follows: while the head was armed, a rollback may have begun and ended.
        await _check_cut(history, cut)
        if (failure := too_old(state, now)) is not None:
            raise NotAllowedNow(f"{failure.message}: start a new one with the same input")
        if now >= armed:
            armed = await request.arm(opened.head)
        forked = Forked(
            cut=cut, branch=state.lineage.branch + 1, by=request.caller.by, at=now, reason=reason, key=key
        )
        entry = request.entry(history, forked, now)
        if await history.append(entry, wake=Wake(v=entry.version)):
            return accepted(opened, changed=True)
        await history.catch_up()


async def _check_cut(history: History, cut: int) -> None:
    """Raises `UserError` for a version from which no saga goes on."""
    last = history.state.version
    if not 1 <= cut <= last:
        raise UserError(f"version {cut} is not in the log; its last is {last}")
    at_cut = await history.state_at(cut)
    is_undone = at_cut.undo.work is not None or (at_cut.cancel is not None and at_cut.cancel.undo)
    undo = history.state.undo
    if undo.spans or undo.is_crowded or undo.failed or undo.ways or is_undone:
        from baton.runtime.desks.rolling_back import check_cut

        check_cut(history.state, at_cut)
    if at_cut.ended is not None:
        raise UserError(f"version {cut} is the end of its branch; the last to go on from is {cut - 1}")


def _check_key(known: str, cut: int) -> None:
    """Raises `KeyReused` unless the key was used to fork at this version. A negative version is that of a rollback."""
    if known != str(cut):
        what = "was used for a rollback" if known[0] == "-" else f"forked at version {known}"
        raise KeyReused(f"this key {what}")
