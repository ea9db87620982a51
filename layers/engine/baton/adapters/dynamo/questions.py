"""`Questions` on DynamoDB: an item beside each saga's log for each of its questions, and the sparse InboxIndex.

A row that is taken out leaves the index and stays as its number for a while, so that no put that lands late brings it back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from baton.adapters.aws import ConditionFailed, translated
from baton.adapters.clock import SystemClock
from baton.adapters.dynamo import items
from baton.adapters.dynamo.items import names_in, number, saga_pk, text
from baton.adapters.dynamo.limits import ITEM_BYTES
from baton.adapters.dynamo.requests import query
from baton.adapters.rules import pack, shard_of, unpack
from baton.ports import Clock, QuestionRow, SagaRef, Spot

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import UniversalAttributeValueTypeDef

    from baton.adapters.dynamo.items import Item, StoredItem

# What has expired is as good as deleted: another saga may have its id.
_IS_LATER = "attribute_not_exists(#pk) OR #seq <= :seq OR #ttl <= :now"
_REMOVE = "SET #seq = :seq, #ttl = :ttl REMOVE #d, #ask_key, #ask_at"
_OF_SAGA = "#pk = :pk AND begins_with(#sk, :ask)"
_IS_OUT = "attribute_not_exists(#ask_key) AND #seq >= :seq"
_ASKED = "#ask_key = :key AND #ask_at > :now"

ASK_SHARDS = 4  # for ever: a row's place follows from its saga's id

SYSTEM = SystemClock()

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(QuestionRow).decode


class DynamoQuestions:
    """`Questions`. `table_of` finds the table that a saga is in; a list is of this deployment's own, `table`."""

    def __init__(
        self,
        client: DynamoDBClient,
        table: str,
        table_of: Callable[[SagaRef], str],
        clock: Clock = SYSTEM,
    ) -> None:
        self._client = client
        self._clock = clock
        self._table = table
        self._table_of = table_of

    def put(self, tenant: str, row: QuestionRow, number: int, until: int) -> None:
        ref = SagaRef(tenant, row.saga)
        item = _item(ref, row, number, until)
        try:
            with translated():
                self._client.put_item(
                    TableName=self._table_of(ref),
                    Item=item,
                    ConditionExpression=_IS_LATER,
                    ExpressionAttributeNames=names_in(_IS_LATER),
                    ExpressionAttributeValues={":seq": item["seq"], ":now": self._now()},
                )
        except ConditionFailed:
            pass  # this one lands late

    def remove(self, ref: SagaRef, ask: str, number: int, until: int) -> None:
        try:
            with translated():
                self._client.update_item(
                    TableName=self._table_of(ref),
                    Key=items.key(saga_pk(ref), items.question_sk(ask)),
                    UpdateExpression=_REMOVE,
                    ConditionExpression=_IS_LATER,
                    ExpressionAttributeNames=names_in(_REMOVE, _IS_LATER),
                    ExpressionAttributeValues={
                        ":seq": items.number(number),
                        ":ttl": items.ttl(until),
                        ":now": self._now(),
                    },
                )
        except ConditionFailed:
            pass

    def removed(self, ref: SagaRef, number: int) -> Collection[str]:
        request = {
            "KeyConditionExpression": _OF_SAGA,
            "FilterExpression": _IS_OUT,
            "ProjectionExpression": "#sk",
            "ExpressionAttributeNames": names_in(_OF_SAGA, _IS_OUT),
            "ExpressionAttributeValues": {
                ":pk": text(saga_pk(ref)),
                ":ask": text(items.question_sk("")),
                ":seq": items.number(number),
            },
            "ConsistentRead": True,
        }
        rows = query(self._client, self._table_of(ref), request)
        return {row["sk"]["S"].removeprefix(items.question_sk("")) for row in rows}

    def _now(self) -> UniversalAttributeValueTypeDef:
        return number(self._clock.now() // 1_000)

    def listed(
        self, tenant: str, audience: str, now: int, limit: int, after: Spot | None = None
    ) -> tuple[Sequence[QuestionRow], Spot | None]:
        found, floors = [], []
        for shard in range(shards_of(audience)):
            rows, is_all = self._shard(tenant, audience, shard, now, limit, after)
            placed = [((row.spot[0], shard), row) for row in rows]
            found += placed
            if not is_all:
                floors.append(placed[-1][0])
        # Behind the place where some shard stopped it may have rows that come before those of the others.
        shown = [(place, row) for place, row in found if not floors or place <= min(floors)]
        shown.sort(key=lambda one: one[0])
        page = [row for _, row in shown[:limit]]
        return page, None if len(page) == len(found) and not floors else page[-1].spot

    def _shard(
        self, tenant: str, audience: str, shard: int, now: int, limit: int, after: Spot | None
    ) -> tuple[Sequence[QuestionRow], bool]:
        """The next rows of a part of a list, and whether these are all. Of rows that expire at one moment the first shard's come first."""
        key, since = text(items.ask_key(tenant, audience, shard)), now
        request: dict[str, Any] = {}
        if after is not None and after[0] > now:
            at = _shard_of(audience, after[1])
            if shard == at:
                # A position, not an item: it may have been taken out since.
                place = items.key(saga_pk(SagaRef(tenant, after[1])), items.question_sk(after[2]))
                request["ExclusiveStartKey"] = {**place, "ask_key": key, "ask_at": number(after[0])}
            else:
                since = after[0] if shard < at else after[0] - 1
        with translated():
            page = self._client.query(
                TableName=self._table,
                IndexName=items.INBOX_INDEX,
                KeyConditionExpression=_ASKED,
                ExpressionAttributeNames=names_in(_ASKED),
                ExpressionAttributeValues={":key": key, ":now": number(since)},
                Limit=limit,
                **request,
            )
        rows = [_row(item) for item in page["Items"]]
        return rows, "LastEvaluatedKey" not in page or not rows


def shards_of(audience: str) -> int:
    """Over so many partitions its questions are spread: an outage can ask the people on call as often as sagas start."""
    return 1 if audience.startswith("user:") else ASK_SHARDS


def _shard_of(audience: str, saga: str) -> int:
    return shard_of(saga, shards_of(audience))


def _item(ref: SagaRef, row: QuestionRow, count: int, until: int) -> Item:
    item: Item = {
        **items.key(saga_pk(ref), items.question_sk(row.ask)),
        "ask_key": text(items.ask_key(ref.tenant, row.to, _shard_of(row.to, ref.id))),
        "ask_at": number(row.spot[0]),
        "seq": number(count),
    }
    if until:
        item["ttl"] = items.ttl(until)
    item["d"] = {"B": pack(_encode(row), items.item_size(item) + 1, ITEM_BYTES)}
    return item


def _row(item: StoredItem) -> QuestionRow:
    return _decode(unpack(item["d"]["B"]))
