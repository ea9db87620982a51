"""Forks and rollbacks that a caller asks for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.log.codec import PERIOD
from baton.core.log.events import (
    CancelRequested,
    Entry,
    Forked,
    Reversible,
    StepFailed,
    StepStopped,
    StepSucceeded,
)
from baton.core.log.folding.forks import fork_to, lineage_to
from baton.core.log.folding.undo_folds import links_of, undone_by
from baton.core.log.folding.workflow_limits import too_old
from baton.core.log.slots import Slot
from baton.core.log.state import FORK_KEY, State, status_of
from baton.core.log.undos import NAMED_IN_STATE, Undoable
from baton.errors import KeyReused, NotAllowedNow, NotFound, UserError
from baton.ports import SagaRef, Wake
from baton.runtime.engine.request import Opened, Request, accepted_answer, saga_summary
from baton.runtime.log.history import History
from baton.runtime.requests.fork_changes import Changes, ForkRequest, changes_of, cut_of


async def fork_saga(
    request: Request, opened: Opened, wanted: ForkRequest, key: str = "", *, lists: bool = True
) -> dict[str, Any]:
    """Fork a saga; see `Service.fork`. `lists`: the answer has a plan."""
    history, clock = opened.history, request.engine.clock
    remembered = FORK_KEY + key
    armed, is_stored = 0, False
    while True:
        state, now = history.state, clock.now()
        if key and remembered in state.keys:
            _check_key(state.keys[remembered], wanted)
            return accepted_answer(opened, changed=False) | ({"plan": None} if lists else {})
        cut = await check_fork(request, history, wanted)
        fork = _event_of(request, state, wanted, cut, key, now)
        changes = Changes()
        if lists or wanted.has_changes or state.origin.graph != cut.origin.graph:
            forked = fork_to(state, cut, request.entry(history, fork, now), fork)
            changes = await changes_of(request, history, wanted, cut, forked)
        if now >= armed:
            armed = await request.arm(opened.head)
        if not is_stored:  # a caller that is refused stores nothing
            for data, ref in changes.blobs:
                await request.parts.call(
                    request.engine.blobs.put, request.caller.tenant, data, ref.partition(PERIOD)[2]
                )
            is_stored = True
        entry = request.entry(history, (fork, *changes.events), now)
        if await history.append(entry, wake=Wake(v=entry.version)):
            if history.state.graphs != state.graphs:
                opened.program = await request.program_of(history)
            return accepted_answer(opened, changed=True) | ({"plan": changes.plan} if lists else {})
        await history.catch_up()


def _event_of(request: Request, state: State, wanted: ForkRequest, cut: State, key: str, now: int) -> Forked:
    return Forked(
        cut=cut.version,
        branch=state.lineage.branch + 1,
        by=request.caller.by,
        at=now,
        reason=wanted.reason,
        key=key,
        asked=wanted.asked,
    )


async def fork_plan(
    request: Request, opened: Opened, wanted: ForkRequest, *, refuses: bool = False
) -> dict[str, Any]:
    """Return what a fork would leave behind, and fork nothing. Raises as the fork; for effects that it might
    repeat only if it `refuses`.
    """
    history, now = opened.history, request.engine.clock.now()
    cut = await check_fork(request, history, wanted)
    fork = _event_of(request, history.state, wanted, cut, "", now)
    forked = fork_to(history.state, cut, request.entry(history, fork, now), fork)
    changes = await changes_of(request, history, wanted, cut, forked, is_dry=not refuses)
    return saga_summary(opened) | {"plan": changes.plan}


async def check_fork(request: Request, history: History, wanted: ForkRequest) -> State:
    """Return the state at the cut. Raises `UserError` for one from which no saga can continue, and
    `NotAllowedNow` for a saga that cannot be forked at present.
    """
    state = history.state
    if state.undo.work is not None:
        raise NotAllowedNow("the saga undoes what it has done; fork it once that is over")
    # By the state that the entry follows: while the head was armed, a rollback may have begun and ended.
    cut = await cut_of(request, history, wanted)
    at_cut = await _check_cut(history, cut)
    if (failure := too_old(state, request.engine.clock.now())) is not None:
        raise NotAllowedNow(f"{failure.message}: start a new one with the same input")
    return at_cut


async def _check_cut(history: History, cut: int) -> State:
    """Return the state at a cut. Raises `UserError` for a version from which no saga can continue."""
    last = history.state.version
    if not 1 <= cut <= last:
        raise UserError(f"version {cut} is not in the log; its last is {last}")
    _check_copied(history.state, cut)
    at_cut = await history.state_at(cut)
    undo = history.state.undo
    if undo.spans or undo.set_aside or undo.failed or undo.ways or at_cut.reverts_to is not None:
        check_cut(history.state, at_cut)
    if at_cut.ended is not None:
        raise UserError(f"version {cut} is the end of its branch; the last to go on from is {cut - 1}")
    if at_cut.was_made_cancelled:
        raise UserError(
            "this saga was cancelled before it began and has nothing to go on from: fork its parent"
        )
    return at_cut


def _check_copied(state: State, version: int) -> None:
    """Raise `UserError` for a version that is of the saga from which this one was forked."""
    if version <= state.origin.copied:
        raise UserError(
            f"version {version} is of saga {state.origin.source}, from which this one was forked; "
            f"its own begin with {state.origin.copied + 1}"
        )


def _check_key(known: str, wanted: ForkRequest) -> None:
    """Raise `KeyReused` unless the key was used for the same fork.
    A negative version is that of a rollback.
    """
    cut, _, asked = known.partition(" ")
    if asked != wanted.asked or not (asked or cut == str(wanted.version)):
        what = "was used for a rollback" if known[0] == "-" else f"forked at version {cut}"
        raise KeyReused(f"this key {what}{' with another body' if asked else ''}")


STEPS_IN_PLAN = 100
"""The most steps that a plan names."""
MOST_WALKED = 10_000
"""The most steps among which one is looked for by its name."""


async def rollback_plan(history: History, program: Program, back_to: int = 0) -> dict[str, Any]:
    """Return the steps that a rollback would undo, would ask about, and cannot undo; the newest of them by
    name.

    The counts are in the states at the two ends, so that only the entries of named steps are read. Raises
    `UserError` for a version that is not in the log.
    """
    undo = history.state.undo
    _check_version(history.state, back_to)
    steps: list[dict[str, Any]] = []
    failed = [one for one in undo.failed if one.version > back_to]
    steps += (
        {"step": one.slot, "version": one.version, "by": one.tool or None, "doubtful": one.doubt}
        for one in failed
    )
    doubtful = sum(one.doubt for one in failed)
    can, cannot = len(failed) - doubtful + undo.set_aside, 0
    if undo.head > back_to:
        before = (await history.state_at(back_to)).undo if back_to else Undoable()
        can += undo.can - before.can
        cannot += undo.cannot - before.cannot
        doubtful += max(undo.doubts - before.doubts, 0)
        polls: set[tuple[str, tuple[int, ...]]] = set()
        async for version, event in _listed(history, back_to):
            if len(steps) >= STEPS_IN_PLAN:
                break
            slot = event.slot
            if (
                isinstance(event, StepSucceeded)
                and program.at(version).is_poll(event.node)
                and not event.item
            ):
                poll = (event.node, event.iteration[:-1])
                if poll in polls:
                    can -= 1
                    continue
                polls.add(poll)
            if isinstance(event, StepStopped) and event.child and not await _has_acted(history, event.child):
                can -= 1
                continue
            in_doubt = isinstance(event, StepFailed | StepStopped) and not event.child
            is_left = bool(event.instead)
            if not in_doubt or is_left or version == undo.unsure.get(slot):
                by = undone_by(program.at(version).nodes, event) or None
                steps.append({"step": slot, "version": version, "by": by, "doubtful": in_doubt})
    parent = SagaRef.parse(of).id if (of := history.state.origin.parent) else None
    return {
        "parent": parent,
        "undoable": can,
        "doubtful": doubtful,
        "lasting": cannot,
        "steps": steps[:STEPS_IN_PLAN],
    }


async def _has_acted(history: History, child: str) -> bool:
    """Return true if a child that was stopped has done something that can be undone, or may have."""
    state = await history.state_of(child)
    return state is not None and (state.ended is None or state.undo.is_left)


async def _listed(history: History, back_to: int) -> AsyncIterator[tuple[int, Reversible]]:
    """Yield the steps that an undoing comes to, the newest first, with their versions.
    Reads a page at a time, as far as it is asked for.
    """
    known: dict[int, Entry] = {}
    version, below = history.state.undo.head, history.state.undo.below
    while version > back_to:
        if version not in known:
            known = {one.version: one for one in await history.entries_to(version)}
        links = links_of(known[version].events, below)
        for _, event in reversed(links):
            yield version, event
        version, below = links[0][1].prior or 0, -1


async def plan_to(history: History, program: Program, back_to: int, step: str) -> dict[str, Any]:
    """Return the plan of a rollback to a version, or to a `step` where one is named. Raises `UserError`."""
    return await rollback_plan(history, program, await version_of(history, step) if step else back_to)


async def version_of(history: History, step: str) -> int:
    """Return the version at which a step was done last, of those that a rollback comes to.
    A loop's node has the round behind it, `NODE@ROUND`.

    Raises `UserError`.
    """
    names: dict[str, None] = {}
    walked = 0
    async for version, event in _listed(history, 0):
        slot = event.slot
        if step in (slot, event.node):
            return version
        walked += 1
        if len(names) < NAMED_IN_STATE:
            names[slot] = None
        if walked >= MOST_WALKED:
            raise UserError(
                f"no step `{step[:80]}` is among the last {MOST_WALKED} that can be undone; name its version"
            )
    known = f"the last that are left are {', '.join(names)}" if names else "nothing is left to undo"
    raise UserError(f"no step `{step[:80]}` is among what can be undone; {known}")


async def roll_back(
    request: Request, opened: Opened, wanted: CancelRequested, key: str = "", step: str = ""
) -> dict[str, Any]:
    """Have the saga undo its steps; with a `step`, back to that step.
    Repeated with the same key, a no-op.

    Raises `NotAllowedNow` if nothing is left to undo, or the rollback is under way.
    """
    history = opened.history
    remembered = FORK_KEY + key
    armed = 0
    if history.state.origin.parent:
        await check_followed(request, history.state)
    while True:
        state, now = history.state, request.engine.clock.now()
        is_known = bool(key) and remembered in state.keys
        if step and not is_known:
            wanted = replace(wanted, back_to=await version_of(history, step))
        # Anew: another rollback may have come before.
        plan = await rollback_plan(history, opened.program, wanted.back_to)
        if is_known:
            if not step:  # a step that was undone is not in the list any more
                known = state.keys[remembered].partition(" ")[0]
                await _check_rollback_key(history, int(known), wanted)
            return accepted_answer(opened, changed=False) | {"plan": plan}
        _check_possible(state, plan, wanted)
        is_asked = state.ended is None and state.reverts_to is not None
        if is_asked and not key:
            return accepted_answer(opened, changed=False) | {"plan": plan}
        if state.ended is not None and now >= armed:
            armed = await request.arm(opened.head)
        entry = request.entry(history, _event(state, wanted, key, now), now)
        if await history.append(entry, wake=Wake(v=entry.version)):
            return accepted_answer(opened, changed=not is_asked) | {"plan": plan}
        await history.catch_up()


def _event(state: State, wanted: CancelRequested, key: str, now: int) -> CancelRequested | Forked:
    """Return the event that starts the rollback.
    If another request has started it, the event records its key only.
    """
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
    """Raise `UserError` for a version from which no saga can continue: its steps are undone, or were being
    undone.
    """
    cut = at_cut.version
    if state.undo.set_aside:
        raise UserError(
            "so many steps of it could not be undone that it is not known of each whether its effect still stands; "
            "roll it back again, or start another saga"
        )
    check_unsure(state.undo)
    if any(one not in at_cut.undo.ways and _is_raised(state.undo, one[0]) for one in state.undo.ways):
        slot, tool, _ = state.undo.ways[0]
        raise UserError(
            f"`{tool}` at `{slot}` may have happened, and other work of `{slot}` is undone: roll the saga back as a whole first"
        )
    shared = _shared(state, at_cut)
    for first, last in state.undo.spans:
        if first <= cut <= last:
            raise UserError(
                f"what was done from version {first} on is undone; the last version to go on from is {first - 1}"
            )
        if shared < cut < last:
            raise UserError(
                f"version {cut} is of a branch that was left, and what was done from version {first} on is undone; it may be the same by its keys. "
                f"The last version of that branch to go on from is {shared}"
            )
    cancel, begins = at_cut.cancel, at_cut.lineage.first == cut + 1
    is_about_to = any(not one.code for one in at_cut.undo.failed)
    if at_cut.undo.work is not None or is_about_to or (begins and cancel is not None and cancel.undo):
        raise UserError(
            f"at version {cut} the saga undoes what it has done; go on from a version before that"
        )


def _shared(state: State, at_cut: State) -> int:
    """Return the last version that the history of both has."""
    last = 0
    for one, other in zip(lineage_to(state), lineage_to(at_cut), strict=False):
        if (one.branch, one.first) != (other.branch, other.first):
            break
        last = min(one.last, other.last)
    return last


def check_unsure(undo: Undoable) -> None:
    """Raise `UserError` if it is unknown whether work that would not be done again still stands.

    That work could be the receipt of a refunded payment.
    """
    for one in undo.failed:
        if one.unsure:
            raise UserError(
                f"it is not known whether what `{one.slot}` has done is undone ({one.code}: {one.message[:200]}); "
                "roll the saga back again, which calls what undoes it once more or asks about it"
            )
        if one.left:
            raise UserError(
                f"it is not known whether something that `{one.slot}` has tried first still stands; roll the saga back again, which asks about it"
            )


def _is_raised(undo: Undoable, slot: str) -> bool:
    """Return true if work in the round of the slot is undone, whether the slot keeps its key or not."""
    return bool(undo.generation(f"{Slot.parse(slot).owner}/"))


def _check_version(state: State, back_to: int) -> None:
    if not 0 <= back_to < max(state.version, 1):
        raise UserError(
            f"version {back_to} is not in the log, or is its last; it goes back to one before {state.version}"
        )
    if back_to:
        _check_copied(state, back_to)


async def _check_rollback_key(history: History, cut: int, wanted: CancelRequested) -> None:
    """Raise `KeyReused` unless the fork at version `cut`, which has used the key, is the rollback that is
    wanted.

    Only a rollback continues from the end of a saga. A negative `cut` is the version at which a running saga
    was asked to roll back.
    """
    state = history.state
    if cut < 0:
        if not any(one.first <= -cut <= one.last for one in lineage_to(state)):
            raise KeyReused("this key was used for a rollback, and the saga was forked since")
        _check_same((await history.state_at(-cut)).reverts_to, wanted)
        return
    if (await history.state_at(cut)).ended is None:
        raise KeyReused("this key was used for a fork")
    first = cut + 2  # of the new branch: the fork's own entry is in neither
    if first not in {state.lineage.first, *(segment.first for segment in state.lineage.closed)}:
        raise KeyReused("this key was used for a rollback, and the saga was forked since")
    after = state if state.version < first else await history.state_at(first)
    _check_same(after.reverts_to, wanted)


def _check_same(known: int | None, wanted: CancelRequested) -> None:
    if known is not None and known != wanted.back_to:
        raise KeyReused(f"with this key the saga was rolled back {_until(known)}")


def _until(version: int) -> str:
    return f"to version {version}" if version else "as a whole"


def _check_possible(state: State, plan: dict[str, Any], wanted: CancelRequested) -> None:
    known = None if state.ended is not None else state.reverts_to
    if known is not None and known != wanted.back_to:
        raise NotAllowedNow(f"the saga is being rolled back {_until(known)}; ask again once that is over")
    if state.undo.work is not None:
        raise NotAllowedNow("the saga undoes what it has done already")
    if wanted.back_to and state.undo.set_aside:
        count = len(state.undo.failed) + state.undo.set_aside
        raise NotAllowedNow(
            f"{count} steps could not be undone; so many are taken up again only by a rollback as a whole"
        )
    if plan["undoable"] or plan["doubtful"] or (state.ended is None and not state.undo.cannot):
        return
    lasting = f"; nothing undoes what {plan['lasting']} of its steps have done" if plan["lasting"] else ""
    raise NotAllowedNow(f"nothing that can be undone is left: the saga is {status_of(state)}{lasting}")


async def check_followed(request: Request, state: State) -> None:
    """Raise `NotAllowedNow` if another child has the results of this one, and they are not undone."""
    async for other in _followers(request, state):
        if other.ended is None or other.undo.is_left:
            raise NotAllowedNow(
                f"the parent was forked, and child {other.origin.saga} has what this one has done; roll that back"
            )


async def _followers(request: Request, state: State) -> AsyncIterator[State]:
    """Yield the children that have replaced it since, the newest first;
    also below those that have replaced its parent.
    """
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
