"""One saga's log, folded as far as it was read: load, catch up, append, and go back for a fork.

Reads a snapshot and the tail behind it, never more, so a resume costs the same at any age of a saga.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

import msgspec

from baton.core.effects.rows import Row
from baton.core.limits import Limits
from baton.core.log.codec import decode_entry, encode_entry, node_in
from baton.core.log.events import (
    Entry,
    Event,
    Forked,
    Gives,
    GraphChanged,
    SagaEnded,
    Value,
    ValueChanged,
)
from baton.core.log.folding.fold import closed, fold
from baton.core.log.folding.forks import fork_in, fork_to, lineage_to, recovery_cut
from baton.core.log.state import Segment, State
from baton.core.on_demand import OnDemand
from baton.errors import CorruptLog, EngineFault, RowsRefused, TooLarge, Unreadable
from baton.ports import Blobs, Clock, Head, Log, Record, SagaRef, Wake
from baton.ports.log import period_of
from baton.runtime.invocation.context import StoreRetrier

if TYPE_CHECKING:
    from baton.core import recovery
    from baton.core.log import snapshots
else:
    recovery = OnDemand("baton.core.recovery")
    snapshots = OnDemand("baton.core.log.snapshots")

PAGE = 200  # entries of the past that are read at once: a long log is never in memory as a whole
MOST_OUTPUTS = 262_144  # bytes of outputs in an entry; large ones are references
LAST = 9_999_999_999  # no log has a version above it

logger = logging.getLogger("baton.history")


class Superseded(Exception):
    """Error that ends work on a saga: another invocation holds it now, or the time of this one is over."""


class History:
    """The state of a saga at the newest version that was read.

    `tail_bytes` is the size of the log behind the newest snapshot, at `snapshot`. Of earlier states it keeps
    those that were asked for, and the one that it began with. `watched`: until when a viewer watches, as the
    last append has found out. `unanswered`: an append whose outcome a fault has left unknown. `owes_death`:
    the log may lack the death of the worker that had the saga before.
    """

    unread: recovery.Damage | None = None
    """Damage before which a reader has stopped."""
    _passed: Entry | None = None
    """Entry in place of those that cannot be read, and that were passed."""

    def __init__(self, log: Log, blobs: Blobs, call: StoreRetrier, ref: SagaRef) -> None:
        self._log = log
        self._blobs = blobs
        self._call = call
        self.ref = ref
        self.state = State()
        self.snapshot = 0
        self.tail_bytes = 0
        self.watched = 0
        self.owes_death = False
        self.unanswered: tuple[Entry, Sequence[Row]] | None = None
        self._past: dict[int, State] = {}

    def hurry(self, call: StoreRetrier) -> None:
        """Make all calls by this one from now on."""
        self._call = call

    async def state_of(self, saga: str) -> State | None:
        """Return the present state of another saga of the tenant; None if it does not exist."""
        ref = SagaRef(self.ref.tenant, saga)
        head = await self._call(self._log.read_head, ref)
        if head is None:
            return None
        other = History(self._log, self._blobs, self._call, ref)
        await other.load(head)
        return other.state

    async def load(self, head: Head) -> Sequence[Entry]:
        """Fold all entries. Return the entries that were read (not those before a snapshot)."""
        if head.snapshot:
            await self._from_snapshot(head.branch, head.snapshot)
        return await self.catch_up(head.folded)

    async def catch_up(self, folded: int = 0) -> Sequence[Entry]:
        """Fold the entries that others have appended since. Return them; empty when there are none.
        Raises `CorruptLog` for a log that ends before `folded`, to which a worker has read it.
        """
        news: list[Entry] = []
        while True:
            branch = self.state.lineage.branch
            records = await self._call(self._log.read_tail, self.ref, branch, self.state.version)
            news.extend([await self._fold(record) for record in records])
            if self.state.lineage.branch == branch:
                return news if self.state.version >= folded else await self._past_the_end(news, folded)

    async def replayed(self) -> AsyncIterator[tuple[State, Entry]]:
        """Fold on, a page at a time. Yield each entry with the state before it.
        Raises `Unreadable` at damage that no recovery leads past; no snapshot does.
        """
        is_over = False
        while not is_over:
            branch = self.state.lineage.branch
            page = await self._call(self._log.read_tail, self.ref, branch, self.state.version, PAGE)
            for record in page:
                before = self.state
                entry = await self._fold(record)
                if not entry.events:
                    error = CorruptLog(f"entries {before.version + 1} to {entry.version} cannot all be read")
                    error.version = before.version + 1
                    raise error
                if self.state.version > before.version:
                    yield before, entry
            is_over = len(page) < PAGE and self.state.lineage.branch == branch

    async def snapshot_state(self, branch: int, version: int) -> State | None:
        """Return the state of a stored snapshot; None if there is none that this release can read."""
        other = History(self._log, self._blobs, self._call, self.ref)
        await other._from_snapshot(branch, version)
        return other.state if other.snapshot == version else None

    async def append(
        self,
        entry: Entry,
        rows: Sequence[Row] = (),
        after: State | None = None,
        *,
        wake: Wake | None = None,
    ) -> bool:
        """Put the next entry and fold it. False when another writer's is there: catch up and decide again.
        Raises `Superseded` if it was put before, and a newer holder has written since.

        With `rows` it is a transaction.
        `after`: the state behind its events, where the caller knows it already.
        `wake`: what the stream carries then; the end of a child is told to its parent.
        """
        expires = self.state.origin.expires
        record = Record(entry.branch, entry.version, encode_entry(entry), expires=expires)
        wake, self.unanswered = wake or _wake_of_end(self.state, entry), (entry, rows)
        try:
            if rows:
                done = await self._call(self._log.append_with_rows, self.ref, record, rows, wake)
            else:
                appended = await self._call(self._log.append, self.ref, record, wake)
                done = appended is not None
                self.watched = max(self.watched, appended.watched if appended else 0)
        except RowsRefused:
            self.unanswered = None
            raise
        if done:
            self.unanswered = None
            if after is None:
                await self._take_in(entry, len(record.data))
            else:
                self.tail_bytes += len(record.data)
                self.state = closed(self.state, entry, after)
            return True
        there = await self._call(self._log.read_tail, self.ref, entry.branch, entry.version - 1)
        self.unanswered = None
        if not (there and is_own(decode_entry(there[0].data), entry)):
            return False
        if entry.epoch and any(decode_entry(one.data).epoch > entry.epoch for one in there[1:]):
            # The refusal of its next entry would come too late: it acts on this one first.
            raise Superseded
        await self._fold(there[0])
        return True

    def next_entry(
        self,
        events: Sequence[Event],
        *,
        at: int,
        invocation: str,
        epoch: int = 0,
        cold: bool = False,
        trace: str = "",
    ) -> Entry:
        """Return the entry that would follow the state as it is now."""
        return Entry(
            version=self.state.version + 1,
            branch=self.state.lineage.branch,
            at=at,
            epoch=epoch,
            invocation=invocation,
            cold=cold,
            traceparent=trace,
            events=tuple(events),
        )

    async def save_snapshot(self, limits: Limits, now: int) -> None:
        """Write a snapshot if the tail has outgrown it, so that all of them cost no more than the log.

        A snapshot only saves reading: one that cannot be written must not hold up the worker.
        """
        if self.tail_bytes < limits.snapshot_tail_bytes or self.state.ended is not None:
            return
        data = snapshots.encode_state(self.state)
        if len(data) > self.tail_bytes:
            return
        size, expires = len(data), self.state.origin.expires
        call = self._call.until(min(now + limits.snapshot_ms, self._call.deadline))
        try:
            if size > limits.snapshot_blob_bytes:
                period = period_of(now, expires)
                data = snapshots.encode_moved(await call(self._blobs.put, self.ref.tenant, data, period))
            record = Record(self.state.lineage.branch, self.state.version, data, expires=expires)
            await call(self._log.put_snapshot, self.ref, record)
        except (EngineFault, ValueError):
            logger.warning("no snapshot", exc_info=True, extra={"saga": str(self.ref), "bytes": size})
            return
        self.snapshot = self.state.version
        self.tail_bytes = 0

    async def state_at(self, version: int) -> State:
        """Return the state right after `version`, whichever branch wrote it.
        Raises `CorruptLog` for no such version.
        """
        if version not in self._past:
            self._past[version] = await self._read_to(version)
        return self._past[version]

    async def approach(self, version: int) -> None:
        """Take in the newest snapshot up to a version, from which `state_at` reads on: a log may be long."""
        past = History(self._log, self._blobs, self._call, self.ref)
        past._past = self._past
        for branch in range(self.state.lineage.branch, -1, -1):
            await past._from_snapshot(branch, version)
            if past.snapshot:
                return

    async def entries_to(self, version: int, most: int = PAGE) -> Sequence[Entry]:
        """Return the entry of this version of the saga's history, and those before it, at most so many.
        Raises `CorruptLog` for no such version.
        """
        lineage = self.state.lineage
        own = Segment(lineage.branch, lineage.first, self.state.version)
        part = next((one for one in (own, *lineage.closed) if one.first <= version <= one.last), None)
        if part is None:
            raise CorruptLog(f"version {version} is no part of the history of {self.ref}")
        after = max(part.first - 1, version - most)
        records = await self._call(self._log.read_tail, self.ref, part.branch, after, version - after)
        return [decode_entry(record.data) for record in records]

    async def entries_back(self, state: State) -> AsyncGenerator[Entry, None]:
        """Yield the entries of the history of a state, the newest first, and those of the forks in it."""
        own = Segment(state.lineage.branch, state.lineage.first, state.version)
        for part in (own, *reversed(state.lineage.closed)):
            version = part.last
            while version >= part.first:
                after = max(part.first - 1, version - PAGE)
                records = await self._call(self._log.read_tail, self.ref, part.branch, after, version - after)
                for record in reversed(records):
                    yield decode_entry(record.data)
                version = after
            if part.branch:  # the entry that began it is in the branch before
                for record in await self._call(
                    self._log.read_tail, self.ref, part.branch - 1, part.first - 2, 1
                ):
                    yield decode_entry(record.data)

    async def entries(self, state: State | None = None) -> AsyncGenerator[Entry, None]:
        """Yield the entries of the history of a state, by default of the present one, in order."""
        for part in lineage_to(state or self.state):
            after = part.first - 1
            while after < part.last:
                most = min(PAGE, part.last - after)
                records = await self._call(self._log.read_tail, self.ref, part.branch, after, most)
                if not records:
                    raise CorruptLog(f"{self.ref} has no version {after + 1} in branch {part.branch}")
                for record in records:
                    yield decode_entry(record.data)
                after = records[-1].version

    async def walk(self) -> AsyncGenerator[tuple[Entry, State], None]:
        """Yield the entries of the whole log up to this state, in the order of versions, each with the state
        after it.
        """
        past = History(self._log, self._blobs, self._call, self.ref)
        past._past = self._past
        while (at := past.state.version) < self.state.version:
            most = min(self.state.version - at, PAGE)
            for record in await self._call(
                self._log.read_tail, self.ref, past.state.lineage.branch, at, most
            ):
                yield await past._fold(record), past.state

    async def _read_to(self, version: int) -> State:
        """Read on from the nearest state that is known.

        Versions are never used twice, so reading on from any state in their
        order passes through all later ones.
        """
        past = History(self._log, self._blobs, self._call, self.ref)
        past._past = self._past  # what one of them works out, all of them know
        known = [*self._past.values(), self.state]
        past.state = max((one for one in known if one.version <= version), key=_version, default=State())
        while (at := past.state.version) < version:
            most = min(version - at, PAGE)
            records = await self._call(self._log.read_tail, self.ref, past.state.lineage.branch, at, most)
            if not records or records[-1].version > version:
                raise CorruptLog(f"{self.ref} has no version {version}")
            for record in records:
                await past._fold(record)
        return past.state

    async def _from_snapshot(self, branch: int, at_most: int) -> None:
        try:
            record = await self._call(self._log.read_snapshot, self.ref, branch, at_most)
            if record is None:
                return
            data, ref = record.data, snapshots.moved_to(record.data)
            if ref:
                data = await self._call(self._blobs.get, self.ref.tenant, ref)
            self.state = snapshots.decode_state(data)
        except (msgspec.DecodeError, CorruptLog):
            return  # damaged, or written by another version; the log has it all
        self.snapshot = record.version
        self._past[record.version] = self.state

    async def _past_the_end(self, news: Sequence[Entry], folded: int) -> Sequence[Entry]:
        """Go on behind entries that are missing at the end, by their recovery. Raises `CorruptLog`."""
        entry = await self._past_damage(folded)
        if entry is None:
            error = CorruptLog(f"{self.ref} ends at version {self.state.version}, and was read to {folded}")
            error.version = self.state.version + 1
            raise error
        return [*news, entry, *await self.catch_up()]

    async def damage(self, folded: int) -> recovery.Damage | None:
        """Return what follows the state and cannot be read; None if the log ends there, at `folded` or later.

        It reads all that is left, over all branches.
        """
        expected, tail, branch = self.state.version + 1, self.state.version, self.state.lineage.branch
        first, last, why, is_certain, is_newer = 0, 0, "", True, False
        later: list[Entry] = []
        async for record in self._behind():
            missing, entry, reason = record.version > expected, None, ""
            try:
                entry = decode_entry(record.data)
            except Unreadable as error:
                reason, is_newer = str(error), is_newer or not isinstance(error, CorruptLog)
                is_certain = is_certain and not _is_json(record.data)
            else:
                later.append(entry)
            if missing or entry is None:
                first, last = first or expected, record.version if entry is None else record.version - 1
                why = why or reason or "it is missing"
            expected, tail, branch = record.version + 1, record.version, record.branch
        if tail < folded:
            first, last, tail = first or tail + 1, folded, folded
            why = why or "it is missing, and a worker had read it"
        if not first and later:  # they decode, and the fold refuses the first of them
            first = last = self.state.version + 1
            why, is_certain = await self._refusal(), False
        if not first:
            return None
        return recovery.Damage(
            first=first,
            last=last,
            branch=branch,
            tail=tail,
            why=why,
            is_certain=is_certain,
            is_newer=is_newer,
            later=tuple(later),
        )

    async def _refusal(self) -> str:
        try:
            await self.catch_up()
        except Unreadable as error:
            return str(error)
        return ""

    async def _behind(self) -> AsyncIterator[Record]:
        """Yield the stored entries behind the state, of its branch and those after it, a page at a time."""
        after, branch = self.state.version, self.state.lineage.branch
        is_last = False
        while not is_last:
            page = await self._call(self._log.read_tail, self.ref, branch, after, PAGE)
            for record in page:
                yield record
                after = record.version
            if len(page) < PAGE:  # the entry that leads on to the next branch may be what is missing
                is_last, branch = not page and branch > self.state.lineage.branch, branch + 1

    async def _past_damage(self, version: int) -> Entry | None:
        """Take in the recovery behind an entry that cannot be read, or else a snapshot. Return an entry in
        place of those that are passed; None if there is neither.
        """
        if self._passed is not None and version <= self.state.version:
            return self._passed
        branch = self.state.lineage.branch
        async for one in self._behind():
            branch = one.branch
            for entry in readable((one,)):
                if (cut := recovery_cut(entry)) is not None and cut <= self.state.version:
                    self._passed = entry
                    await self._take_in(entry, len(one.data))
                    return entry
        return await self._past_by_snapshot(branch)

    async def _past_by_snapshot(self, last: int) -> Entry | None:
        """Take in the newest snapshot behind the state that can be read, of branch `last` or one before."""
        first, read = self.state.version, self._log.read_snapshot
        for branch in range(last, -1, -1):
            at_most = LAST
            while (record := await self._call(read, self.ref, branch, at_most)) and record.version > first:
                await self._from_snapshot(branch, record.version)
                if (state := self.state).version > first:
                    self._passed = Entry(
                        version=state.version, branch=branch, at=state.last_at, invocation="", events=()
                    )
                    return self._passed
                at_most = record.version - 1
        return None

    async def _fold(self, record: Record) -> Entry:
        try:
            entry = decode_entry(record.data)
            await self._take_in(entry, len(record.data))
        except Unreadable as error:
            if (recovery := await self._past_damage(record.version)) is not None:
                return recovery
            if not error.version:  # else it is one before a fork
                error.version, error.node = record.version, node_in(record.data)
            raise
        return entry

    async def _take_in(self, entry: Entry, size: int) -> None:
        self.tail_bytes += size
        if Forked in map(type, entry.events) and (fork := fork_in(entry)):
            self.state = fork_to(self.state, await self.state_at(fork.cut), entry, fork)
        else:
            self.state = fold(self.state, entry)


async def records_of(
    log: Log, call: StoreRetrier, ref: SagaRef, branches: int, after: int, at_once: int
) -> AsyncGenerator[Sequence[Record], None]:
    """Yield the whole log behind a version, over all branches, in the order of versions:
    `at_once` at a time.
    """
    for branch in range(branches):
        is_full = True
        while is_full:
            page = await call(log.read_tail, ref, branch, after, at_once)
            is_full = len(page) == at_once
            if page:
                yield page
                after = page[-1].version


def _is_json(data: bytes) -> bool:
    """Return true if some release may have written the bytes."""
    try:
        return isinstance(msgspec.json.decode(data), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _version(state: State) -> int:
    return state.version


def readable(page: Sequence[Record]) -> Iterator[Entry]:
    """Yield the entries of a page that can be read."""
    for record in page:
        with suppress(Unreadable):
            yield decode_entry(record.data)


def is_own(there: Entry, mine: Entry) -> bool:
    """Return true if the stored entry is the one that this writer put before."""
    return (there.version, there.epoch, there.invocation) == (mine.version, mine.epoch, mine.invocation)


def _wake_of_end(state: State, entry: Entry) -> Wake | None:
    """Return the wake of an entry that ends a child: it tells the parent. None for other entries."""
    if not state.origin.parent or not any(isinstance(event, SagaEnded) for event in entry.events):
        return None
    origin = state.origin
    return Wake(entry.version, parent=origin.parent, slot=origin.parent_slot, window=origin.parent_window)


_OF, _SHARE = 3, 2  # two thirds of the time; the answer to a log takes less than half as long as reading it


class ReadingTime:
    """Time limit for reading a log, from now on,
    for a request that must be answered by `deadline` (epoch ms).
    """

    def __init__(self, clock: Clock, deadline: int) -> None:
        now = clock.now()
        self._clock = clock
        self._until = now + (deadline - now) * _SHARE // _OF

    def check(self, what: str, versions: int, came_to: int) -> None:
        """Check the time before each further page. Raises `TooLarge`."""
        if self._clock.now() >= self._until:
            raise TooLarge(
                f"the log of this saga is too long to be {what} within one request: of {versions} versions it came "
                f"to {came_to}; `GET /sagas/{{saga}}/events` gives all of them, page by page"
            )


async def outputs_of(history: History, state: State, names: Mapping[str, str]) -> dict[str, Value]:
    """Return the newest outputs of nodes in the history of a state. `names`: new names by those in the state.
    Raises `TooLarge`.
    """
    found, wanted = dict[str, Value](), set(names.values())
    async with aclosing(history.entries_back(state)) as entries:
        while wanted - found.keys() and (entry := await anext(entries, None)) is not None:
            for event in reversed(entry.events):
                match event:
                    case Gives(node=node, item="", output=value) | ValueChanged(node=node, value=value):
                        if node in names:
                            found.setdefault(names[node], value)
                    case GraphChanged(renamed=renamed) if renamed:
                        before = {new: old for old, new in renamed.items()}
                        there = {name for name in names if name in before or name not in renamed}
                        names = {before.get(name, name): names[name] for name in there}
    if len(msgspec.json.encode(found)) > MOST_OUTPUTS:
        raise TooLarge("the new graph reads too many earlier outputs: fork the saga from before them")
    return found
