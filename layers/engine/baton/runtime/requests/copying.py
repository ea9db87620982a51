"""Fork into a new saga: a log of its own begins with copies of the entries up to the cut.

The head comes last and makes the saga exist. Before that, nothing finds what is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Final

from msgspec.structs import replace

from baton.core.limits import DAY_MS
from baton.core.log.codec import PERIOD, decode_entry, encode_entry
from baton.core.log.events import Entry, Forked, GraphChanged, SagaStarted
from baton.core.log.folding.forks import fork_to
from baton.core.log.state import State
from baton.errors import KeyReused, NotAllowedNow, TooLarge, Unreadable, UserError
from baton.ports import WORK, Head, Record, SagaRef, Wake
from baton.runtime.engine.request import BY_FORK, Opened, Request, accepted_answer, named_id
from baton.runtime.log.history import PAGE, History, records_of
from baton.runtime.requests.fork_changes import Changes, ForkRequest, changes_of
from baton.runtime.requests.forking import check_fork
from baton.runtime.starting.start import body_hash

MOST_COPIED: Final = 2_000
"""The most entries that a new saga takes over: so many are written within one request."""
_AT_ONCE: Final = 16


async def fork_to_new(request: Request, source: Opened, wanted: ForkRequest, key: str) -> dict[str, Any]:
    """Start a saga that goes on from a version of another one. A repeated key starts no second one.

    Raises as a fork, `TooLarge` for a cut behind too many entries, and `KeyReused` for another body.
    """
    engine, caller, call = request.engine, request.caller, request.parts.call
    saga = source.history.state.origin.saga
    own = key or engine.entropy.token(96)
    ref = SagaRef(caller.tenant, named_id(engine.store.cell, BY_FORK, caller.tenant, caller.user, saga, own))
    hashed = body_hash([wanted.version, wanted.asked, "saga"])
    if (head := await call(engine.log.read_head, ref)) is not None:
        return await _answer(request, head, hashed, None, changed=False)
    first = await _first_copy(request, ref, hashed)
    if first is not None:  # an earlier request was cut short: its cut holds
        wanted = replace(wanted, version=_cut_in(first), before="", stable=False)
    cut, fork, changes = await plan_of_new(request, source, wanted)
    await engine.ledger_cache.refuse_the_blocked(call, caller.tenant, caller.user, fork.at)
    await request.parts.quota.admit(caller.tenant)
    for data, blob in changes.blobs:
        await call(engine.blobs.put, caller.tenant, data, blob.partition(PERIOD)[2])
    if not await _copy(request, source, cut, ref, hashed):
        return await fork_to_new(request, source, wanted, key)
    entry = Entry(
        version=cut.version + 1,
        branch=cut.lineage.branch,
        at=fork.at,
        invocation=_mark(hashed, cut.version),
        traceparent=caller.traceparent or request.parts.traceparent(cut.origin.traceparent),
        events=(fork, *changes.events),
    )
    expires = cut.origin.expires
    await call(
        engine.log.append, ref, Record(entry.branch, entry.version, encode_entry(entry), expires=expires)
    )
    graph = next((one for one in changes.events if isinstance(one, GraphChanged)), cut.origin)
    head = Head(
        ref=ref,
        workflow=graph.workflow,
        graph=graph.graph,
        user=cut.origin.user,
        created=fork.at,
        start_hash=hashed,
        branch=fork.branch,
        folded=entry.version,
        due_at=fork.at + engine.limits.start_due_ms,
        expires=expires,
        build=cut.pinned,
        labels=cut.origin.labels,
    )
    there = await call(engine.log.create_head, head)
    if there is None:
        await call(engine.log.defer, head, engine.clock.now(), WORK, Wake(v=entry.version))
    return await _answer(request, there or head, hashed, changes, changed=there is None)


async def plan_of_new(
    request: Request, source: Opened, wanted: ForkRequest, *, is_dry: bool = False
) -> tuple[State, Forked, Changes]:
    """Return the state at the cut, the fork's event, and its changes. Raises as `fork_to_new`."""
    history, now = source.history, request.engine.clock.now()
    if wanted.repeat:
        raise UserError("all effects of a new saga have keys of their own: leave `repeat` out")
    cut = await check_fork(request, history, wanted)
    if cut.version > MOST_COPIED:
        raise TooLarge(
            f"a new saga takes over at most {MOST_COPIED} entries, and version {cut.version} is behind more: "
            "fork the saga in place"
        )
    program = await request.parts.catalog.program(request.caller.tenant, cut.origin.graph)
    if slot := next(
        (one for one in cut.open if program.kinds[program.node_at(cut, one).kind].is_of_saga), ""
    ):
        raise UserError(
            f"function `{slot}` has begun at version {cut.version}, and its random numbers, callbacks and id are those of the other "
            "saga: fork the saga in place, or before the function"
        )
    if cut.origin.expires and cut.origin.expires - DAY_MS <= now:
        raise NotAllowedNow("the saga is about to be deleted, and its values with it: start a new one")
    fork = Forked(
        cut=cut.version,
        branch=cut.lineage.branch + 1,
        by=request.caller.by,
        at=now,
        reason=wanted.reason,
        source=history.state.origin.saga,
    )
    own = replace(cut, origin=replace(cut.origin, source=fork.source, copied=0))
    forked = fork_to(own, own, _entry(own, fork), fork)
    return cut, fork, await changes_of(request, history, wanted, cut, forked, is_dry=is_dry)


def _entry(cut: State, fork: Forked) -> Entry:
    return Entry(
        version=cut.version + 1, branch=cut.lineage.branch, at=fork.at, invocation="", events=(fork,)
    )


def _mark(hashed: str, cut: int) -> str:
    """Return the invocation of the copies, by which a repeated request recognises them."""
    return f"fork.{hashed}.{cut}"


def _cut_in(first: Entry) -> int:
    return int(first.invocation.rpartition(".")[2])


async def _first_copy(request: Request, ref: SagaRef, hashed: str) -> Entry | None:
    """Return entry 1 if an earlier request has written it. Raises `KeyReused` for one with another body."""
    found = await request.parts.call(request.engine.log.read_tail, ref, 0, 0, 1)
    if not found:
        return None
    first = decode_entry(found[0].data)
    if first.invocation != _mark(hashed, _cut_in(first)):
        raise KeyReused(f"this key has forked into saga {ref.id} with another body")
    return first


async def _copy(request: Request, source: Opened, cut: State, ref: SagaRef, hashed: str) -> bool:
    """Copy the entries up to the cut, entry 1 first. Return false if another request with the same key has
    written that for another cut, which holds. Raises `NotAllowedNow` if an entry cannot be read.
    """
    log, call, expires = request.engine.log, request.parts.call, cut.origin.expires
    slots = asyncio.Semaphore(_AT_ONCE)

    async def put(entry: Entry) -> None:
        # No worker of the new saga has written it: an epoch of its own begins with the head.
        data = encode_entry(replace(entry, epoch=0))
        async with slots:
            await call(log.append, ref, Record(entry.branch, entry.version, data, expires=expires))

    async with aclosing(_entries(request, source.history, cut)) as pages:
        async for page in pages:
            if page[0].version == 1:
                await put(_begun(request, page[0], ref, _mark(hashed, cut.version)))
                first = await _first_copy(request, ref, hashed)
                if first is None or _cut_in(first) != cut.version:
                    return False
                page = page[1:]
            await asyncio.gather(*map(put, page))
    return True


def _begun(request: Request, first: Entry, ref: SagaRef, mark: str) -> Entry:
    """Return entry 1 of the new saga, which has no saga above it."""
    started, *others = first.events
    assert isinstance(started, SagaStarted), "entry 1 begins with it"
    ends_by = request.engine.clock.now() + request.engine.limits.saga_days * DAY_MS
    own = replace(
        started,
        saga=ref.id,
        parent="",
        slot="",
        window=0,
        depth=0,
        scope="",
        handled=False,
        sent=None,
        before=(),
        keys=None,
        shared_limits=(),
        allowed=None,
        source=started.saga,
        ends_by=min(ends_by, started.expires - DAY_MS) if started.expires else ends_by,
    )
    return replace(first, invocation=mark, events=(own, *others))


async def _entries(request: Request, history: History, cut: State) -> AsyncGenerator[Sequence[Entry], None]:
    """Yield the log up to the cut, over all branches, a page at a time."""
    log, call = request.engine.log, request.parts.call
    expected = 1
    pages = records_of(log, call, history.ref, cut.lineage.branch + 1, 0, PAGE)
    async with aclosing(pages):
        async for page in pages:
            entries = list[Entry]()
            for record in page:
                if record.version > cut.version:
                    continue
                try:
                    entries.append(decode_entry(record.data))
                except Unreadable as error:
                    raise _unreadable(history, record.version) from error
                if record.version != expected:
                    raise _unreadable(history, expected)
                expected += 1
            if entries:
                yield entries
            if expected > cut.version:
                return
    raise _unreadable(history, expected)


def _unreadable(history: History, version: int) -> NotAllowedNow:
    saga = history.state.origin.saga
    return NotAllowedNow(f"version {version} of {saga} cannot be read, and so not copied: fork it in place")


async def _answer(
    request: Request, head: Head, hashed: str, changes: Changes | None, *, changed: bool
) -> dict[str, Any]:
    if head.start_hash != hashed:
        raise KeyReused(f"this key has forked into saga {head.ref.id} with another body")
    opened = await request.open(head.ref.id)
    plan = None if changes is None or not changed else changes.plan
    return accepted_answer(opened, changed=changed) | {"plan": plan}
