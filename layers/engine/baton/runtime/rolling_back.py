"""Undoing by hand: what would be undone, and the entry that sets it going.

A saga that runs is cancelled, and undoes what it has done before it ends. One that has ended goes on in a new branch, from its end. What
is decided then is in core/decide/undoing.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.log.events import CancelRequested, Forked
from baton.core.log.forks import lineage_to
from baton.core.log.state import FORK_KEY, State, slot_of
from baton.core.log.status import status_of
from baton.errors import KeyReused, NotAllowedNow, UserError
from baton.ports import Head, Wake
from baton.runtime.history import History
from baton.runtime.request import Opened, Request, accepted

LISTED = 100
"""The most steps that a plan names."""
Arm = Callable[[Head], Awaitable[int]]


async def plan_of(history: History, program: Program, back_to: int = 0) -> dict[str, Any]:
    """What a rollback would undo, the newest first, and what nothing undoes. Reads the entries of these steps.

    Raises `UserError` for a version that is not in the log.
    """
    state = history.state
    _check_version(state, back_to)
    known: dict[int, Any] = {}
    steps: list[dict[str, Any]] = []
    can = cannot = 0
    for failed in state.undo.failed:
        if failed.version > back_to:
            can += 1
            steps.append({"step": failed.slot, "version": failed.version, "by": failed.tool or None})
    version, below = state.undo.head, state.undo.below
    while version > back_to:
        if version not in known:
            known = {one.version: one for one in await history.entries_to(version)}
        events = known[version].events if below < 0 else known[version].events[:below]
        links = [event for event in events if getattr(event, "prior", None) is not None]
        for event in reversed(links):
            by = _by(program, event)
            can, cannot = can + (by is not None), cannot + (by is None)
            if len(steps) < LISTED:
                steps.append(
                    {"step": slot_of(event.node, event.iteration, event.item), "version": version, "by": by}
                )
        version, below = links[0].prior, -1
    return {"undoable": can, "lasting": cannot, "steps": steps[:LISTED]}


def _by(program: Program, event: Any) -> str | None:
    """The tool that undoes it; None: nothing does."""
    node = program.nodes.get(event.node)
    if node is None or event.lasting:
        return None
    if hasattr(event, "child"):
        return str(event.child)
    undo = node.inverse(event.tool, event.item)
    return None if undo is None else undo.step.tool


async def roll_back(
    request: Request, opened: Opened, arm: Arm, wanted: CancelRequested, key: str = ""
) -> dict[str, Any]:
    """Have the saga undo what it has done. Repeated with the same key, a no-op.

    Raises `NotAllowedNow` where nothing is left to undo, or it is being undone.
    """
    history = opened.history
    remembered = FORK_KEY + key
    armed = 0
    while True:
        plan = await plan_of(
            history, opened.program, wanted.back_to
        )  # anew: another rollback may have come before
        state, now = history.state, request.engine.clock.now()
        if key and remembered in state.keys:
            await _check_key(history, int(state.keys[remembered]), wanted)
            return accepted(opened, changed=False) | {"plan": plan}
        _check_possible(state, plan, wanted)
        is_asked = state.ended is None and _is_asked(state)
        if is_asked and not key:
            return accepted(opened, changed=False) | {"plan": plan}
        if state.ended is not None and now >= armed:
            armed = await arm(opened.head)
        entry = request.entry(history, _event(state, wanted, key, now), now)
        if await history.append(entry, wake=Wake(v=entry.version)):
            return accepted(opened, changed=not is_asked) | {"plan": plan}
        await history.catch_up()


def _event(state: State, wanted: CancelRequested, key: str, now: int) -> CancelRequested | Forked:
    """What sets it going. Where another request has done so, it is there for its key only."""
    if state.ended is None:
        return replace(wanted, at=now, key=key)
    return Forked(
        cut=state.version,
        branch=state.lineage.branch + 1,
        by=wanted.by,
        at=now,
        reason=wanted.reason,
        key=key,
        undo=True,
        back_to=wanted.back_to,
        together=wanted.together,
    )


def check_cut(state: State, at_cut: State) -> None:
    """Raises `UserError` for a version from which no saga goes on: what was done there is undone, or was being undone."""
    cut = at_cut.version
    for first, last in state.undo.spans:
        if first <= cut <= last:
            raise UserError(
                f"what was done from version {first} on is undone; the last version to go on from is {first - 1}"
            )
    cancel, begins = at_cut.cancel, at_cut.lineage.first == cut + 1
    is_about_to = any(not one.code for one in at_cut.undo.failed)
    if at_cut.undo.work is not None or is_about_to or (begins and cancel is not None and cancel.undo):
        raise UserError(
            f"at version {cut} the saga undoes what it has done; go on from a version before that"
        )


def _is_asked(state: State) -> bool:
    return state.undo.work is not None or (state.cancel is not None and state.cancel.undo)


def _check_version(state: State, back_to: int) -> None:
    if not 0 <= back_to < max(state.version, 1):
        raise UserError(
            f"version {back_to} is not in the log, or is its last; it goes back to one before {state.version}"
        )


def _back_to(state: State) -> int | None:
    """How far back it is asked to undo, or is undone; None: it is not."""
    if state.undo.work is not None:
        return state.undo.work.back_to
    return state.cancel.back_to if state.cancel is not None and state.cancel.undo else None


async def _check_key(history: History, cut: int, wanted: CancelRequested) -> None:
    """Raises `KeyReused` unless the fork at version `cut`, which has used the key, is the rollback that is wanted.

    Only a rollback goes on from the end of a saga. A negative `cut` is the version at which a running saga was asked to roll back.
    """
    state = history.state
    if cut < 0:
        if not any(one.first <= -cut <= one.last for one in lineage_to(state)):
            raise KeyReused("this key was used for a rollback, and the saga was forked since")
        _check_same(_back_to(await history.state_at(-cut)), wanted)
        return
    if (await history.state_at(cut)).ended is None:
        raise KeyReused("this key was used for a fork")
    first = cut + 2  # of the new branch: the fork's own entry is in neither
    if first not in {state.lineage.first, *(segment.first for segment in state.lineage.closed)}:
        raise KeyReused("this key was used for a rollback, and the saga was forked since")
    _check_same(_back_to(state if state.version < first else await history.state_at(first)), wanted)


def _check_same(known: int | None, wanted: CancelRequested) -> None:
    if known is not None and known != wanted.back_to:
        raise KeyReused(f"with this key the saga was rolled back {_until(known)}")


def _until(version: int) -> str:
    return f"to version {version}" if version else "as a whole"


def _check_possible(state: State, plan: dict[str, Any], wanted: CancelRequested) -> None:
    known = None if state.ended is not None else _back_to(state)
    if known is not None and known != wanted.back_to:
        raise NotAllowedNow(f"the saga is being rolled back {_until(known)}; ask again once that is over")
    if state.undo.work is not None:
        raise NotAllowedNow("the saga undoes what it has done already")
    if plan["undoable"] or (state.ended is None and not state.undo.cannot):
        return
    lasting = f"; nothing undoes what {plan['lasting']} of its steps have done" if plan["lasting"] else ""
    raise NotAllowedNow(f"nothing that can be undone is left: the saga is {status_of(state)}{lasting}")
