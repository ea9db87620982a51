"""Live texts for viewers, on DynamoDB: one item beside each saga's head, and word to its worker.

No item of these has a `wake`, so the stream's filter drops them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from baton.adapters.aws import ConditionFailed
from baton.adapters.dynamo import items
from baton.adapters.dynamo.items import number, saga_pk, text_attribute
from baton.adapters.dynamo.table import TablePort
from baton.ports.log import Head, LiveTexts, SagaRef, pack, unpack

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from baton.adapters.dynamo.items import Item, StoredItem

_KEPT_MS = 3_600_000  # after its last write; DynamoDB deletes it some time later
_ITEM_BYTES = 65_536  # far above what a worker writes

_LONG_AGO_MS = 60_000  # more than clocks differ by

_IS_UNTAKEN = "attribute_exists(#pk) AND attribute_not_exists(#owner) AND attribute_not_exists(#wake)"
_LEAVE_WORD = "SET #watched = :until"
_ENTRIES = "#pk = :pk AND #sk BETWEEN :first AND :last"
_IS_FREE = "attribute_not_exists(#pk) OR #ttl <= :now"
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
        values = {
            ":until": number(until),
            ":unless": number(unless),
            ":ttl": items.ttl(now + _KEPT_MS),
        }
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
