"""The log on DynamoDB: every request that touches a head, an entry, a snapshot, an inbox or live texts.

A write is one conditional write of one item, but for an entry that comes with a tool's own rows; the
conditions are the protocol. The form of the items is in items.py; the runtime says when a call is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from baton.adapters.aws import ConditionFailed, translated
from baton.adapters.clock import SystemClock
from baton.adapters.dynamo import items
from baton.adapters.dynamo.items import (
    changing,
    labels_text,
    limits,
    names_in,
    number,
    row_filter,
    saga_pk,
    text_attribute,
    unchanged_condition,
)
from baton.adapters.dynamo.table import TablePort
from baton.core.effects.rows import Row
from baton.errors import NotFound, RowsRefused
from baton.ports import (
    WORK,
    Appended,
    Clock,
    Due,
    Head,
    Listed,
    Place,
    Record,
    Release,
    Report,
    SagaRef,
    Wake,
)
from baton.ports.log import NO_LABELS, LiveTexts, is_over, pack, shard_of, unpack

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from baton.adapters.dynamo.items import Item, StoredItem


# Only a take raises the epoch: the second alternative is this very request, repeated.
_IS_REPEATED = "#owner = :owner AND #epoch = :next AND #until <= :until"
_MAY_TAKE = f"attribute_exists(#pk) AND (#epoch = :seen OR ({_IS_REPEATED}))"
_TAKE = "SET #owner = :owner, #until = :until, #epoch = :next{} REMOVE #wake"
# A due time can change without a take: by an arming, a postponing, or the release of a holder that was thought dead.
_IS_DUE = "#due_at <= :due_at"
_BECOMES_DUE = ", #due_shard = :lane, #due_at = :due_at"
_DEFER = "SET #due_shard = :lane, #due_at = :due_at"

_MAY_RENEW = "#owner = :owner AND #epoch = :epoch AND #until <= :until"
_RENEW = "SET #until = :until"

_MAY_NUDGE = "#owner = :owner AND #epoch = :epoch AND (attribute_not_exists(#nudge) OR #nudge < :version)"
_NUDGE = "SET #nudge = :version"

_MAY_RELEASE = "#owner = :owner AND #epoch = :epoch AND (attribute_not_exists(#nudge) OR #nudge <= :folded)"

_MAY_POSTPONE = "#due_at <= :now AND (attribute_not_exists(#until) OR #until <= :now)"
_POSTPONE = "SET #due_at = :until"

SYSTEM = SystemClock()

# A put replaces only an expired item.
_IS_FREE = "attribute_not_exists(#pk) OR #ttl <= :now"

_DUE = "#due_shard = :shard AND #due_at BETWEEN :since AND :until"
_AT_WORK = "#st_key = :key"
_LISTED = "#st_key = :key AND #st_at >= :since"
_BETWEEN = "#pk = :pk AND #sk BETWEEN :first AND :last"


class DynamoLog(TablePort):
    """`Log` on one table. `clock`: for what expires.

    `shards` is the number of partitions that the due index is spread over, and the lists of each tenant
    unless they have a number of their own.
    """

    def __init__(
        self,
        client: DynamoDBClient,
        table: str,
        shards: int,
        clock: Clock = SYSTEM,
        cell: int = 0,
        status_shards: int | None = None,
    ) -> None:
        super().__init__(client, table)
        self._clock, self._cell = clock, cell
        self.limits = limits(shards, status_shards or shards)

    def table_of(self, ref: SagaRef) -> str:
        """Return the table of a saga. Raises `NotFound` for one of another cell."""
        if ref.cell != self._cell:
            raise NotFound(f"saga `{ref.id}` is in cell {ref.cell}, and this deployment is cell {self._cell}")
        return self._table

    # -- heads

    def create_head(self, head: Head) -> Head | None:
        there = self._put_or_read(
            items.head_item(head, self.limits), _IS_FREE, self._now(), self.table_of(head.ref)
        )
        return None if there is None else items.head_of(there)

    def read_head(self, ref: SagaRef) -> Head | None:
        found = self._get(items.key(saga_pk(ref), items.HEAD), table=self.table_of(ref))
        if not found or is_over(items.expires(found), self._clock.now()):
            return None
        return items.head_of(found)

    def take(
        self, ref: SagaRef, owner: str, until: int, epoch: int, due_at: int, stays: bool = False
    ) -> Head | None:
        values = {
            ":owner": text_attribute(owner),
            ":until": number(until),
            ":due_at": number(due_at),
            ":seen": number(epoch),
            ":next": number(epoch + 1),
        }
        if stays:
            update, condition = _TAKE.format(""), f"{_MAY_TAKE} AND {_IS_DUE}"
        else:
            update, condition = _TAKE.format(_BECOMES_DUE), _MAY_TAKE
            values[":lane"] = self._lane(ref, WORK)
        before = self._change(ref, update, condition, values)
        return None if before is None else items.head_of(before)

    def renew(self, ref: SagaRef, owner: str, epoch: int, until: int) -> bool:
        values = {":owner": text_attribute(owner), ":epoch": number(epoch), ":until": number(until)}
        return self._change(ref, _RENEW, _MAY_RENEW, values) is not None

    def leave_wake(self, ref: SagaRef, owner: str, epoch: int, version: int) -> bool:
        values = {":owner": text_attribute(owner), ":epoch": number(epoch), ":version": number(version)}
        return self._change(ref, _NUDGE, _MAY_NUDGE, values) is not None

    def release(self, ref: SagaRef, owner: str, epoch: int, release: Release) -> bool:
        changes: dict[str, Any] = {
            "owner": None,
            "until": None,
            "nudge": None,
            "folded": number(release.folded),
            "st": text_attribute(release.status),
            "br": number(release.branch),
            "snap": number(release.snapshot) if release.snapshot else None,
            "due_shard": self._lane(ref, release.lane),
            "due_at": None if release.due_at is None else number(release.due_at),
            "quiet": number(release.quiet_since) if release.quiet_since else None,
            "timer": number(release.timer) if release.timer else None,
            "wake": None if release.wake is None else text_attribute(items.wake_text(release.wake)),
        }
        if release.clear_start:
            changes["start"] = None
        if release.build is not None:
            changes["build"] = text_attribute(release.build) if release.build else None
        if release.models is not None:
            changes["labels"] = text_attribute(labels_text(release.models, release.labels))
        if release.group_at is not None:
            changes["st_key"] = text_attribute(
                items.status_key(ref.tenant, release.group, shard_of(ref.id, self.limits.status_shards))
            )
            changes["st_at"] = number(release.group_at)
        same = {"armed": number(release.armed) if release.armed else None}
        if release.inbox is not None:
            same["inbox"] = number(release.inbox) if release.inbox else None
            changes["inbox"] = None
        update, values = changing(changes)
        is_same, seen = unchanged_condition(same)
        condition = f"{_MAY_RELEASE} AND {is_same}"
        values |= seen | {":owner": text_attribute(owner), ":epoch": number(epoch)}
        return self._change(ref, update, condition, values) is not None

    def arm(self, seen: Head, until: int) -> bool:
        condition, values = _as_seen(seen)
        update = "SET #armed = :armed"
        values[":armed"] = number(max(seen.armed, until))
        if seen.due_at is None or seen.due_at > until or not seen.lane:
            update += ", #due_shard = :lane, #due_at = :until"
            values |= {":lane": self._lane(seen.ref, WORK), ":until": number(until)}
        return self._change(seen.ref, update, condition, values) is not None

    def defer(self, seen: Head, due_at: int, lane: str, wake: Wake | None = None) -> bool:
        condition, values = _as_seen(seen)
        values |= {":lane": self._lane(seen.ref, lane), ":due_at": number(due_at)}
        update = _DEFER
        if wake is not None:
            update += ", #wake = :wake"
            values[":wake"] = text_attribute(items.wake_text(wake))
        return self._change(seen.ref, update, condition, values) is not None

    def postpone(self, ref: SagaRef, now: int, until: int) -> bool:
        values = {":now": number(now), ":until": number(until)}
        return self._change(ref, _POSTPONE, _MAY_POSTPONE, values) is not None

    def _lane(self, ref: SagaRef, lane: str) -> Any:
        return text_attribute(items.due_shard(lane, shard_of(ref.id, self.limits.due_shards)))

    def _change(self, ref: SagaRef, update: str, condition: str, values: Item) -> StoredItem | None:
        """Return the head as it was before the update, or None when the condition did not hold."""
        place = items.key(saga_pk(ref), items.HEAD)
        try:
            return self._update(
                place, update, condition, values, table=self.table_of(ref), ReturnValues="ALL_OLD"
            )
        except ConditionFailed:
            return None

    # -- entries and snapshots

    def append(self, ref: SagaRef, record: Record, wake: Wake | None = None) -> Appended | None:
        item = items.record_item(ref, items.entry_sk(record.branch, record.version), record, wake)
        try:
            # What it replaces is free, and empty unless a viewer has left word there.
            before = self._put(item, _IS_FREE, self._now(), self.table_of(ref), ReturnValues="ALL_OLD")
        except ConditionFailed:
            return None
        return Appended(watched_until(before))

    def append_with_rows(
        self, ref: SagaRef, record: Record, rows: Sequence[Row], wake: Wake | None = None
    ) -> bool:
        table = self.table_of(ref)
        entry: dict[str, Any] = {
            "Item": items.record_item(ref, items.entry_sk(record.branch, record.version), record, wake),
            "ConditionExpression": _IS_FREE,
            "ExpressionAttributeNames": names_in(_IS_FREE),
            "ExpressionAttributeValues": self._now(),
        }
        last = {(row.key, row.sort): row for row in rows}  # a transaction may name an item only once
        puts = [entry, *({"Item": items.row_item(ref.tenant, row)} for row in last.values())]
        try:
            self._transact([{"Put": {"TableName": table, **put}} for put in puts], RowsRefused)
        except ConditionFailed:
            return False
        return True

    def read_tail(self, ref: SagaRef, branch: int, after: int, limit: int | None = None) -> Sequence[Record]:
        first, last = items.entry_sk(branch, after + 1), items.entry_sk(branch, items.MAX_VERSION)
        there = self._between(ref, first, last, limit, forward=True)
        found = (items.record_of(item) for item in there if not watched_until(item))
        now = self._clock.now()
        return [record for record in found if not is_over(record.expires, now)]

    def put_snapshot(self, ref: SagaRef, record: Record) -> None:
        sk = items.snapshot_sk(record.branch, record.version)
        self._put(items.record_item(ref, sk, record), table=self.table_of(ref))

    def read_snapshot(self, ref: SagaRef, branch: int, at_most: int) -> Record | None:
        first, last = items.snapshot_sk(branch, 0), items.snapshot_sk(branch, at_most)
        newest = next(self._between(ref, first, last, 1, forward=False), None)
        if newest is None or is_over(items.expires(newest), self._clock.now()):
            return None
        return items.record_of(newest)

    def _now(self) -> Item:
        return {":now": number(self._clock.now() // 1_000)}

    def _between(
        self, ref: SagaRef, first: str, last: str, limit: int | None, *, forward: bool
    ) -> Iterator[StoredItem]:
        values = {
            ":pk": text_attribute(saga_pk(ref)),
            ":first": text_attribute(first),
            ":last": text_attribute(last),
        }
        table = self.table_of(ref)
        return self._query(_BETWEEN, values, limit, table, ScanIndexForward=forward, ConsistentRead=True)

    # -- the due index

    def due(
        self, lane: str, shard: int, since: int, until: int, limit: int, after: Due | None = None
    ) -> Sequence[Due]:
        key = text_attribute(items.due_shard(lane, shard))
        values = {":shard": key, ":since": number(since), ":until": number(until)}
        options: dict[str, Any] = {"IndexName": items.DUE_INDEX}
        if after is not None:
            # A position, not an item: it may have moved on since.
            place = {"due_shard": key, "due_at": number(after[1])}
            options["ExclusiveStartKey"] = {**items.key(saga_pk(after[0]), items.HEAD), **place}
        found = self._query(_DUE, values, limit, **options)
        return [(items.saga_of(item["pk"]["S"]), int(item["due_at"]["N"])) for item in found]

    # -- the status index

    def at_work(self, tenant: str, shard: int, most: int) -> int:
        values = {":key": text_attribute(items.status_key(tenant, "open", shard))}
        options: dict[str, Any] = {}
        found = 0
        while found < most:
            with translated():
                page = self._client.query(
                    TableName=self._table,
                    IndexName=items.STATUS_INDEX,
                    KeyConditionExpression=_AT_WORK,
                    ExpressionAttributeNames=names_in(_AT_WORK),
                    ExpressionAttributeValues=values,
                    Select="COUNT",
                    Limit=most - found,
                    **options,
                )
            found += page["Count"]
            if "LastEvaluatedKey" not in page:
                break
            options["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        return found

    def listed(
        self,
        tenant: str,
        group: str,
        shard: int,
        *,
        limit: int,
        since: int = 0,
        workflow: str = "",
        status: str = "",
        user: str = "",
        labels: Mapping[str, str] = NO_LABELS,
        after: Place | None = None,
    ) -> tuple[Sequence[Listed], Place | None]:
        key = text_attribute(items.status_key(tenant, group, shard))
        terms, wanted = row_filter({"wf": workflow, "st": status, "user": user}, labels)
        values = {":key": key, ":since": number(since)}
        values |= {name: text_attribute(value) for name, value in wanted.items()}
        options: dict[str, Any] = {"FilterExpression": " AND ".join(terms)} if terms else {}
        if after is not None:
            # A position, not an item: it may have moved on since.
            place = items.key(saga_pk(SagaRef(tenant, after[1])), items.HEAD)
            options["ExclusiveStartKey"] = {**place, "st_key": key, "st_at": number(after[0])}
        found, last = self._page(
            _LISTED, values, IndexName=items.STATUS_INDEX, ScanIndexForward=False, Limit=limit, **options
        )
        now = self._clock.now()
        rows = [items.listed_of(item) for item in found if not is_over(items.expires(item), now)]
        return rows, None if last is None else (int(last["st_at"]["N"]), items.saga_of(last["pk"]["S"]).id)


def _as_seen(seen: Head) -> tuple[str, Item]:
    """Return a condition that a head is unchanged: every change touches one of these attributes."""
    return unchanged_condition(
        {
            "epoch": number(seen.epoch),
            "owner": text_attribute(seen.owner) if seen.owner else None,
            "nudge": number(seen.pending_wake) if seen.pending_wake else None,
            "armed": number(seen.armed) if seen.armed else None,
            "inbox": number(seen.inbox) if seen.inbox else None,
            "due_at": None if seen.due_at is None else number(seen.due_at),
        }
    )


_INBOX_IS_DUE = "attribute_exists(#due_at)"
_ANNOUNCE = "ADD #inbox :one"


class DynamoInbox(TablePort):
    """`Inbox` on one table."""

    def leave(self, reports: Sequence[Report], until: int) -> None:
        # A request may name an item only once.
        self._put_all(list({_place(one): _item(one, until) for one in reports}.values()))

    def announce(self, parent: SagaRef) -> bool:
        place = items.key(saga_pk(parent), items.HEAD)
        try:
            before = self._update(
                place, _ANNOUNCE, _INBOX_IS_DUE, {":one": number(1)}, ReturnValues="ALL_OLD"
            )
        except ConditionFailed:
            return False
        return "owner" not in before

    def read(self, parent: SagaRef, window: int) -> Sequence[Report]:
        found = self._sort_keys(items.inbox_pk(parent, window), "", None, ConsistentRead=True)
        places = (place.rpartition("#") for place in found)
        return [Report(parent, window, slot, child) for slot, _, child in places]


def _place(report: Report) -> tuple[str, str]:
    return items.inbox_pk(report.parent, report.window), f"{report.slot}#{report.child}"


def _item(report: Report, until: int) -> Item:
    return {**items.key(*_place(report)), "ttl": items.ttl(until)}


_KEPT_MS = 3_600_000  # after its last write; DynamoDB deletes it some time later
_ITEM_BYTES = 65_536  # far above what a worker writes

_LONG_AGO_MS = 60_000  # more than clocks differ by

_IS_UNTAKEN = "attribute_exists(#pk) AND attribute_not_exists(#owner) AND attribute_not_exists(#wake)"
_LEAVE_WORD = "SET #watched = :until"
_ENTRIES = "#pk = :pk AND #sk BETWEEN :first AND :last"
_MAY_WATCH = "attribute_not_exists(#until) OR #until < :unless"
_WATCH = "SET #until = :until, #ttl = :ttl"
_IS_LATER = "attribute_not_exists(#epoch) OR #epoch < :epoch OR (#epoch = :epoch AND #at < :now)"
_MAY_SHOW = f"#until > :now AND ({_IS_LATER})"
_SHOW = "SET #d = :d, #epoch = :epoch, #at = :now, #ttl = :ttl"


class DynamoLive(TablePort):
    """`Live`. `table_of` finds the table of a saga."""

    def __init__(self, client: DynamoDBClient, table: str, table_of: Callable[[SagaRef], str]) -> None:
        super().__init__(client, table)
        self._table_of = table_of

    def watch(self, ref: SagaRef, now: int, until: int, unless: int) -> bool:
        values = {":until": number(until), ":unless": number(unless), ":ttl": items.ttl(now + _KEPT_MS)}
        return self._is_updated(ref, items.LIVE, _WATCH, _MAY_WATCH, values)

    def leave_word(self, head: Head, now: int, until: int) -> bool:
        if not head.owner:
            return self._is_updated(head.ref, items.HEAD, _LEAVE_WORD, _IS_UNTAKEN, {":until": number(until)})
        newest = self._newest(head)
        if newest is None:
            return False
        version = int(newest["sk"]["S"].rpartition("#")[2]) + (not watched_until(newest))
        # Where the next entry will be, which replaces it: it has expired by every clock, so no reader takes it for one.
        word = {
            **items.key(saga_pk(head.ref), items.entry_sk(head.branch, version)),
            "watched": number(until),
            "ttl": items.ttl(now - _LONG_AGO_MS),
        }
        try:
            self._put(word, _IS_FREE, {":now": number(now // 1_000)}, self._table_of(head.ref))
        except ConditionFailed:
            return False
        return True

    def _newest(self, head: Head) -> StoredItem | None:
        values = {
            ":pk": text_attribute(saga_pk(head.ref)),
            ":first": text_attribute(items.entry_sk(head.branch, head.folded)),
            ":last": text_attribute(items.entry_sk(head.branch, items.MAX_VERSION)),
        }
        found = self._query(
            _ENTRIES,
            values,
            1,
            self._table_of(head.ref),
            ProjectionExpression="#sk, #watched",
            ScanIndexForward=False,
            ConsistentRead=True,
        )
        return next(found, None)

    def put_texts(self, ref: SagaRef, epoch: int, now: int, data: bytes) -> bool:
        values: Item = {
            ":d": {"B": pack(data, 0, _ITEM_BYTES)},
            ":epoch": number(epoch),
            ":now": number(now),
            ":ttl": items.ttl(now + _KEPT_MS),
        }
        return self._is_updated(ref, items.LIVE, _SHOW, _MAY_SHOW, values)

    def read(self, ref: SagaRef) -> LiveTexts | None:
        place = items.key(saga_pk(ref), items.LIVE)
        if not (item := self._get(place, is_consistent=False, table=self._table_of(ref))):
            return None
        until, epoch, at = (int(item[name]["N"]) if name in item else 0 for name in ("until", "epoch", "at"))
        return LiveTexts(until, epoch, at, unpack(item["d"]["B"]) if "d" in item else b"")

    def _is_updated(self, ref: SagaRef, sk: str, update: str, condition: str, values: Item) -> bool:
        place, table = items.key(saga_pk(ref), sk), self._table_of(ref)
        try:
            self._update(place, update, condition, values, table=table)
        except ConditionFailed:
            return False
        return True


def watched_until(item: StoredItem) -> int:
    """Return the time until which a viewer watches, as this item says; 0 if none does."""
    return int(item["watched"]["N"]) if "watched" in item else 0
