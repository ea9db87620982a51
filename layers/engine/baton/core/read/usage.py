"""The resources that a saga used, from its log: write and read units, requests, Lambda's time.

This is the cost model of AWS's bill, for a store on DynamoDB: arithmetic only, nothing
that the engine does depends on it. The protocols' known costs, replayed over the
entries; the table is "What it costs" of docs/protocols.md. Dollars are in costs.py.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from baton.core.effects.toolspec import ONCE
from baton.core.graph.graph import Graph
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.log.folding.fold import fold
from baton.core.log.folding.forks import fork_in, fork_to
from baton.core.log.folding.whole_folds import SweepSchedule, may_sweep_without_lease
from baton.core.log.scopes import is_index
from baton.core.log.slots import item_slots
from baton.core.log.snapshots import encode_moved, encode_state
from baton.core.log.state import Readiness, State, group_of, status_of
from baton.core.read.costs import (
    READ_BYTES,
    REQUESTS_PER_MESSAGE,
    BillingSettings,
    Usage,
    stored_bytes,
    units,
)

_ATTEMPTS = ev.StepSucceeded | ev.StepFailed | ev.AttemptFailed | ev.CallbackOpened


class Claims:
    """`nodes` are those whose tools may act only once, `calls` the agents and those of their tools."""

    def __init__(self, nodes: Collection[str] = (), calls: Collection[tuple[str, str]] = ()) -> None:
        self._nodes, self._calls = nodes, calls
        self._called: dict[str, str] = {}  # tools, by slot

    @classmethod
    def of(cls, graph: Graph) -> Claims:
        """Return the claims of a graph."""
        nodes = frozenset(node.name for node in graph.work if node.effect == ONCE)
        agents = [(node.name, node.agent) for node in graph.nodes if node.agent is not None]
        calls = frozenset(
            (name, call.tool) for name, parts in agents for call in parts.calls if call.effect == ONCE
        )
        return cls(nodes, calls)

    def has(self, event: ev.Event) -> bool:
        """Return true if the event, the next one of its log, is about an attempt with a claim."""
        if isinstance(event, ev.CallsBegan):
            slots = item_slots(event.slot, (one.item for one in event.calls))
            self._called |= zip(slots, (one.tool for one in event.calls), strict=True)
        if not isinstance(event, _ATTEMPTS):
            return False
        if event.callback and not isinstance(event, ev.CallbackOpened):
            return False  # it has ended elsewhere
        if not event.item or is_index(event.item):
            return event.node in self._nodes
        return (
            event.node,
            self._called.get(event.slot, ""),
        ) in self._calls


class DueRow(Struct, kw_only=True):
    """Row of one saga in the due index, from its start on.

    Times are epoch ms; `due` None: the saga is not in the index.
    `quiet_since`: time of the last event, if a look at the saga takes no lease.
    `timer`: time at which something is due by itself; None: nothing is.
    """

    limits: Limits
    due: int | None = None
    quiet_since: int | None = None
    timer: int | None = None

    def begin(self, at: int) -> None:
        self.due = at + self.limits.start_due_ms

    def arm(self, until: int) -> None:
        """Keep the row in the index until then, for a fork; 0 changes nothing."""
        if until:
            self.due = until if self.due is None else min(self.due, until)

    def is_moved_by_take(self, at: int) -> bool:
        """Return true if a take moves the row: it is due only after the lease.

        A take at 0 is of a due row, which stays in its place.
        """
        limits = self.limits
        lasts = min(limits.worker_timeout_s * 1_000 + limits.lease_grace_ms, limits.lease_ms)
        end = at + lasts + limits.clock_skew_ms
        if self.due is not None and (not at or self.due <= end):
            return False
        self.due = end
        return True

    def renewals(self, lasted: int) -> int:
        """Return the number of renewals of a lease that was held for `lasted` ms."""
        limits, ends, count = self.limits, self.limits.lease_ms, 0
        at, last = 0, limits.worker_timeout_s * 1_000 + limits.lease_grace_ms
        while ends < last and (at := at + (ends - limits.lease_grace_ms - at) // 2) < lasted:
            count, ends = count + 1, min(at + limits.lease_ms, last)
        return count

    def give_back(self, state: State, status: str, at: int, times: Sequence[int]) -> None:
        """Release the saga at `at` (0: its due time); at each of `times` something is due by itself."""
        self.quiet_since, self.timer = None, min(times, default=None)
        if state.ended is not None:
            self.due = None
        elif at and status == "running":
            self.due = at
        else:
            now, is_calm = at or self.due or 0, may_sweep_without_lease(state, status)
            self.due = look = SweepSchedule.of(self.limits, is_quiet=is_calm).next(state.last_at, now)
            if self.timer is not None and self.timer <= look:
                self.due = self.timer
            elif is_calm:
                self.quiet_since = state.last_at

    def looks(self, until: int) -> int:
        """Return the number of looks without a lease before `until`."""
        since, count, pace = self.quiet_since, 0, SweepSchedule.of(self.limits, is_quiet=True)
        while since is not None and self.due is not None and self.due < until:
            if self.timer is not None and self.timer - self.due <= self.limits.timer_by_message_ms:
                break
            count, look = count + 1, pace.next(since, self.due)
            self.due = look if self.timer is None else min(look, self.timer)
        return count


# An index row has less than a kilobyte: a unit to put or to delete it, two when its key changes.
ROW_MOVES, ROW_CHANGES = 2, 1
LONGEST_MS = 900_000  # that Lambda lets an invocation last
# Bytes of names and of values of a fixed length: in a head, in its lease, in a snapshot's item; the name of entry 1 on a head.
_HEAD, _LEASE, _SNAPSHOT, _START = 176, 18, 42, 5
_A_REFERENCE = "cas://sha256/" + "0" * 64
_QUESTION = 2  # to put or take out the row of a question, and its place in the index
_CLAIM = 260  # of a claim's item, with names of a usual length

_encode = msgspec.json.Encoder().encode


class _Turn(msgspec.Struct, kw_only=True):
    """One lease on the saga, as its entries show it. `first` and `last` are epoch ms.

    `state`, `data`, `size` and `armed` are the ledger's after the last entry.
    `owner`: length of the holder's name.
    """

    epoch: int = 0
    owner: int = 0
    first: int = 0
    last: int = 0
    is_cold: bool = False
    state: State = State()
    data: int = 0
    size: int = 0
    armed: int = 0


class Ledger:
    """Sums of a saga's resources over every entry of all its branches, in the order of versions.

    Write units are exact for a saga without disturbances.
    A log does not tell, and this leaves out: how many reports of children were counted together, writes
    refused for other reasons than an outside entry, repeated messages and requests, rows that a tool
    writes itself and the transaction they come in, sending notices and the places of their people,
    looking at the saga, the rate limit of its tenant, and what a process reads once for all its sagas.
    Lambda's time is an upper estimate where sagas share an invocation: each counts all of it.
    """

    def __init__(
        self,
        turns: Readiness,
        deployment: BillingSettings,
        *,
        cuts: Collection[int] | None = None,
        claims: Claims | None = None,
    ) -> None:
        """Create the ledger. `turns` is the saga's program; `claims` knows the tools that may act only once.
        `cuts` are the versions at which forks cut the log; None: any may be a cut.

        `cuts` are the versions at which forks cut the log; None: any may be a cut.
        Only the past states at cuts are kept in memory.
        """
        self._claims = claims or Claims()
        self.steps = 0
        self._cuts = cuts
        self._turns = turns
        self._deployment = deployment
        self._state = State()
        self._past: dict[int, State] = {}
        self._listed = "running"
        self._turn = _Turn()
        self._head = self._start = 0  # bytes of a free head, and of entry 1 while it is on the head
        self._around = 0  # bytes of a snapshot's item besides the snapshot
        self._data = self._size = 0  # to be read behind the newest snapshot: bytes, items
        self._snapshot = 0  # read units of that snapshot
        self._is_blob = False  # whether it is one
        self._blobs = self._gets = 0  # snapshots that are blobs, and how often one was read
        self._whole = [0, 0]  # data and size of the whole log
        self._news: list[int] = []  # sizes of outside entries since the holder's last
        self._row = DueRow(limits=deployment.limits)
        self._armed = 0  # until when a fork keeps the saga in the due index
        self._refs: set[str] = set()
        self._writes = self._reads = self._takes = self._looks = 0
        self._messages = self._passed = self._asked = 0
        self._worker_ms = 0

    # ---- entries

    def add(self, entry: ev.Entry, data: bytes, size: int) -> None:
        """Add the next entry: its `data` as encoded,
        and the `size` in bytes of the item that it is stored in.
        """
        if entry.version == 1:
            self._begin(entry, data)
        elif entry.epoch == 0:
            self._from_outside(entry, size)
        elif entry.epoch > self._turn.epoch:
            self._next_turn(entry)
        self._writes += units(size)
        self._fold(entry)
        self._read_later(entry, len(data), size)
        if entry.epoch:
            self._hold(entry)
        for event in entry.events:
            self._put_blobs(event)
            self._claim(event)
            if isinstance(event, ev.SagaEnded):
                is_child = bool(self._state.origin.parent)
                self._passed += is_child  # to the relay, which leaves it in the parent's inbox
                self._writes += is_child + _QUESTION * len(self._state.outbox.rows)
            elif isinstance(event, ev.NoticesSent):
                self._writes += _QUESTION * (len(event.shown) + len(event.withdrawn))
            elif isinstance(event, ev.ChildReported):
                self._writes += self._head_units(0)  # counted there; those that come together share it
                self._reads += 3  # its window, the child's head and log

    def add_copy(self, entry: ev.Entry, data: bytes, size: int) -> None:
        """Add the next entry, which is a copy of another saga's: only its write was done here."""
        if entry.version == 1:
            self._begin(entry, data)
        self._writes += units(size)
        self._fold(entry)
        self._read_later(entry, len(data), size)
        self.steps = 0

    def _fold(self, entry: ev.Entry) -> None:
        before, fork = self._state, fork_in(entry)
        if fork is not None:
            self._state = fork_to(before, self._past[fork.cut], entry, fork)
        else:
            self._state = fold(before, entry)
            self.steps += self._state.counts.steps - before.counts.steps
        if self._cuts is None or entry.version in self._cuts:
            self._past[entry.version] = self._state

    def _read_later(self, entry: ev.Entry, data: int, size: int) -> None:
        self._whole = [self._whole[0] + data, self._whole[1] + size]
        self._data, self._size = self._data + data, self._size + size
        if fork_in(entry) is not None:
            # A new branch is read from the start.
            (self._data, self._size), self._snapshot, self._is_blob = self._whole, 0, False

    def _begin(self, entry: ev.Entry, data: bytes) -> None:
        start = entry.events[0]
        assert isinstance(start, ev.SagaStarted)
        named = (start.saga, start.workflow, start.graph, start.user, start.tenant, start.tenant)
        self._head = _HEAD + sum(len(name.encode()) for name in named)
        self._around = _SNAPSHOT + len(start.tenant.encode()) + len(start.saga.encode())
        # The definition; and first the head, where the saga may be there already.
        self._reads += 2 if start.parent or start.saga.startswith("k") else 1
        self._asked += not start.parent
        self._row.begin(start.at)
        self._start = stored_bytes(data, self._head + _START) - self._head
        self._writes += self._head_units(0) + 2  # and a row in either index
        self._wake()

    def _from_outside(self, entry: ev.Entry, size: int) -> None:
        """Count an entry by the API or a parent. A heartbeat wakes no worker."""
        self._reads += self._load()
        if not any(isinstance(event, ev.CallbackHeartbeat) for event in entry.events):
            self._news.append(size)
            self._wake()
        for event in entry.events:
            if isinstance(event, ev.Forked):
                self._writes += self._head_units(0)
                self._writes += ROW_MOVES if self._state.ended is None else ROW_CHANGES
                self._armed = event.at + self._deployment.fork_deadline
        if not all(_is_engines(event, self._state.origin.parent) for event in entry.events):
            self._asked += 1

    def _hold(self, entry: ev.Entry) -> None:
        """Count an entry under a lease."""
        turn = self._turn
        if self._news:
            # Each wake was left for the holder, and the put that met the first of them was refused.
            self._writes += len(self._news) * self._head_units(turn.owner) + units(self._news[0])
            self._reads += 2
            self._news.clear()
        waited = max(entry.at - (turn.last or turn.first), 0)
        self._reads += waited // self._deployment.news_every  # a look at the log now and then
        turn.last, turn.is_cold = entry.at, turn.is_cold or entry.cold
        turn.state, turn.data, turn.size, turn.armed = self._state, self._data, self._size, self._armed

    def _claim(self, event: ev.Event) -> None:
        """Count an effect that may happen only once: the write of its claim, and of its result."""
        if self._claims.has(event):
            output = event.output if isinstance(event, ev.StepSucceeded) else ev.Value()
            self._writes += 1 + units(stored_bytes(_encode(output), _CLAIM))

    def _put_blobs(self, event: ev.Event) -> None:
        fields = asdict(event)
        values = (fields.get(name) for name in ("input", "output", "payload", "value"))
        self._refs.update(value.ref for value in values if isinstance(value, ev.Value) and value.ref)

    # ---- leases

    def _next_turn(self, entry: ev.Entry) -> None:
        dead = next((event for event in entry.events if isinstance(event, ev.Revived)), None)
        if self._turn.epoch:
            self._end(self._turn, dead)
        for epoch in range(self._turn.epoch + 1, entry.epoch):
            self._end(self._silent(epoch), dead)
        self._news.clear()  # entries from outside since then were there when this one loaded
        began = [event.started_at for event in entry.events if isinstance(event, ev.Attempted)]
        self._turn = _Turn(epoch=entry.epoch, owner=len(entry.invocation), first=min([*began, entry.at]))
        self._looks += (looks := self._row.looks(self._turn.first))
        self._writes += looks * (self._head_units(0) + ROW_MOVES)
        self._reads += looks  # of the log; that of the head is a wake's
        is_told = any(isinstance(event, ev.ChildReported) for event in entry.events)
        self._messages += is_told
        self._take(self._turn, is_told=is_told)

    def _silent(self, epoch: int) -> _Turn:
        """Count a lease under which nothing was written: a check of a saga that fell due, or a death."""
        turn = _Turn(epoch=epoch, owner=self._turn.owner, state=self._state, data=self._data, size=self._size)
        self._take(turn)
        return turn

    def _take(self, turn: _Turn, *, is_told: bool = False) -> None:
        self._takes += 1
        self._writes += self._head_units(turn.owner) + ROW_MOVES * self._row.is_moved_by_take(turn.first)
        open_children = sum(work.orphan is not None for work in self._state.open.values())
        # Each of them is asked once, unless reports of some have set it going: then those.
        self._reads += self._load() + (0 if is_told else 2 * open_children)

    def _end(self, turn: _Turn, dead: ev.Revived | None) -> None:
        """Record the end of a lease: given back, or left behind by `dead`."""
        lasted = turn.last - turn.first
        self._writes += self._row.renewals(lasted) * self._head_units(turn.owner)
        if dead is not None and dead.dead_epoch == turn.epoch:
            # To the end of its time. One that wrote nothing began no earlier than the entry before it.
            until = dead.dead_until - self._deployment.lease_grace
            lasted = min(max(lasted, until - (turn.first or self._state.last_at)), LONGEST_MS)
        else:
            self._release(turn)
        self._worker_ms += max(lasted, 0) + self._deployment.handover + turn.is_cold * self._deployment.init

    def _release(self, turn: _Turn) -> None:
        state, status = turn.state, status_of(turn.state, self._turns)
        self._writes += self._head_units(turn.owner)
        leaves = state.ended is not None and turn.last >= turn.armed
        self._writes += ROW_CHANGES if leaves else ROW_MOVES  # in the due index
        if group_of(status) != group_of(self._listed):
            self._writes += ROW_MOVES
        elif status != self._listed:
            self._writes += ROW_CHANGES
        self._listed, self._start = status, 0
        if turn.last and status == "running":
            self._wake()
        times = _times(state)
        self._row.give_back(state, status, turn.last, times)
        self._row.arm(self._armed if self._armed > turn.last else 0)
        if turn.last and times:
            self._messages += 1  # by the relay, or when the time is near by the reconciler
            self._passed += min(times) - turn.last <= self._deployment.timer_by_message
        self._save(turn)

    def _save(self, turn: _Turn) -> None:
        """Count the snapshot that is written with a release, by the rule of `History.save_snapshot`."""
        if turn.data < self._deployment.snapshot_tail or turn.state.ended is not None:
            return
        data = encode_state(turn.state)
        if len(data) > turn.data:
            return
        self._is_blob = len(data) > self._deployment.snapshot_blob
        if self._is_blob:
            self._blobs += 1
            data = encode_moved(_A_REFERENCE)
        size = stored_bytes(data, self._around)
        self._writes += units(size)
        self._snapshot = units(size, READ_BYTES)
        self._data, self._size = self._data - turn.data, self._size - turn.size

    # ---- sums

    def total(self, takes: int, *, is_held: bool) -> Usage:
        """Return everything so far; the ledger is closed by it.
        `takes`: the head's epoch; `is_held`: by a worker now.
        """
        last = max(takes, self._turn.epoch)
        turns = [self._turn] if self._turn.epoch else []
        turns += [self._silent(epoch) for epoch in range(self._turn.epoch + 1, last + 1)]
        held = turns.pop() if is_held and turns else None
        for turn in turns:
            self._end(turn, None)
        if held is not None:
            self._worker_ms += max(held.last - held.first, 0)
        deployment = self._deployment
        wakings = max(self._takes, self._messages) + self._looks
        mb_ms = (
            self._worker_ms * deployment.worker_mb
            + self._asked * deployment.request * deployment.api_mb
            + self._passed * deployment.passing * deployment.relay_mb
        )
        return Usage(
            write_units=self._writes,
            read_units=self._reads + wakings - self._takes,  # a wake with nothing to do reads the head
            sqs_requests=self._messages * REQUESTS_PER_MESSAGE,
            http_requests=self._asked,
            lambda_requests=self._asked + self._passed + wakings,
            gb_seconds=mb_ms / 1_024 / 1_000,
            blob_puts=len(self._refs) + self._blobs,
            blob_gets=len(self._refs) + self._gets,
        )

    def _head_units(self, owner: int) -> int:
        """Return the write units of a write to the head; `owner` 0: no lease is on it, before and after."""
        start, lease = _START + self._start if self._start else 0, _LEASE + owner if owner else 0
        return units(self._head + start + lease)

    def _load(self) -> int:
        """Return the read units of the head, the newest snapshot with its blob, and the entries behind it."""
        self._gets += self._is_blob
        return 1 + self._snapshot + units(self._size, READ_BYTES)

    def _wake(self) -> None:
        """Count a write that the relay turns into a message."""
        self._passed += 1
        self._messages += 1


def _times(state: State) -> list[int]:
    """Return the times at which something is due by itself.

    They are the end of a wait, a step's next attempt, a question's end, and more money.
    """
    if state.parked is not None:
        return [state.parked.until] if state.parked.until else []
    asked = [failing.ask.expires_at if failing.ask else failing.due_at for failing in state.failing.values()]
    waits = [work.due for work in state.open.values() if work.due is not None]
    return [*waits, *(held.until for held in state.held.values()), *(time for time in asked if time)]


def _is_engines(event: ev.Event, parent: str) -> bool:
    """Return true if the engine itself added this outside event, and no request to the API."""
    return isinstance(event, ev.CancelRequested) and bool(parent) and event.by == parent
