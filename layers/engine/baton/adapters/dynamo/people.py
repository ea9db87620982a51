"""Notices, incidents and questions on DynamoDB."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from baton.adapters.aws import ConditionFailed
from baton.adapters.clock import SystemClock
from baton.adapters.dynamo import items
from baton.adapters.dynamo.items import INCIDENT_SHARDS, ITEM_BYTES, number, saga_pk, text_attribute
from baton.adapters.dynamo.table import TablePort
from baton.core.log.events import Notice
from baton.errors import ChannelRefused, Throttled
from baton.ports import Clock, QuestionRow, SagaRef, Spot
from baton.ports.log import pack, shard_of, unpack
from baton.ports.people import CLAIM_MS, WINDOW_MS, Incident, incident_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import UniversalAttributeValueTypeDef

    from baton.adapters.dynamo.items import Item, StoredItem

_SK = "NOTICE"
_LOOKED_AT = 200  # incidents that one page looks at to find those with a status
# After the window, which is judged by `told` because DynamoDB deletes when it likes: longer than any channel is tried.
_KEPT_S = 259_200

_CLAIM = "SET #at = :at, #owner = :owner, #until = :until REMOVE #told, #ttl, #message"
# Never the same notice again: it stays due as long as another channel fails, which can be for days.
_IF_NEW = "attribute_not_exists(#pk) OR (#told <= :forgotten AND #at <> :at)"
_TAKE_OVER = "SET #owner = :owner, #until = :until"
_IF_AS_SEEN = "attribute_not_exists(#told) AND #until = :seen AND #owner = :before"
_IS_THERE = "attribute_exists(#pk)"
_TOLD = "SET #told = :now, #ttl = :ttl REMOVE #owner, #until"
_REFUSED = "SET #told = :now, #ttl = :ttl, #message = :message REMOVE #owner, #until"
_RESOLVE = "SET #resolved = :now, #by = :by"
_IF_OPEN = "attribute_exists(#pk) AND attribute_not_exists(#resolved)"
_ACKNOWLEDGE = "SET #acked = :now, #owner = :by, #message = :note"
_IF_UNACKED = f"{_IF_OPEN} AND attribute_not_exists(#acked)"
_IF_ACKED = f"{_IF_OPEN} AND #acked = :seen"
_ALL_OF = "#pk = :pk"
_BELOW = "#pk = :pk AND #sk < :after"
_FILTERS = {
    "open": "attribute_not_exists(#resolved)",
    "unacknowledged": "attribute_not_exists(#resolved) AND attribute_not_exists(#acked)",
    "resolved": "attribute_exists(#resolved)",
}
_OF_NODE = "#node = :node"


class DynamoNoticeRecord(TablePort):
    """`NoticeRecord` on one table."""

    # -- claims

    def claim(self, tenant: str, saga: str, notice: Notice, now: int) -> Notice | None:
        place = items.key(items.notice_pk(tenant, notice.key), _SK)
        mine: Item = {":owner": text_attribute(saga), ":until": number(now + CLAIM_MS)}
        try:
            given = {":at": number(notice.at), ":forgotten": number(now - WINDOW_MS)}
            self._change(place, _CLAIM, mine | given, _IF_NEW)
        except ConditionFailed as refused:
            claimed = refused.item
            if "message" in claimed:
                raise ChannelRefused(claimed["message"]["S"]) from refused
            if "told" in claimed:
                return None
            if claimed["owner"]["S"] != saga and int(claimed["until"]["N"]) > now:
                raise Throttled(f"another saga is sending the notice {notice.key}") from refused
            seen: Item = {
                ":seen": number(int(claimed["until"]["N"])),
                ":before": text_attribute(claimed["owner"]["S"]),
            }
            try:
                self._change(place, _TAKE_OVER, mine | seen, _IF_AS_SEEN)
            except ConditionFailed as late:
                raise Throttled(f"another saga has begun to send the notice {notice.key}") from late
            return msgspec.structs.replace(notice, at=int(claimed["at"]["N"]))
        return notice

    def sent(self, tenant: str, key: str, now: int, refused: str = "") -> None:
        expiry = (now + WINDOW_MS) // 1_000 + _KEPT_S
        place = items.key(items.notice_pk(tenant, key), _SK)
        values: Item = {":now": number(now), ":ttl": number(expiry)}
        if refused:
            values[":message"] = text_attribute(refused)
        self._change(place, _REFUSED if refused else _TOLD, values, _IS_THERE)

    # -- incidents

    def open(self, tenant: str, saga: str, notice: Notice, expires: int = 0) -> None:
        incident = incident_of(tenant, saga, notice)
        lasts: Item = {"ttl": items.ttl(expires)} if expires else {}
        # What finds it by its saga first: whatever is in the list can be resolved.
        found_by = items.key(items.incidents_of_pk(tenant, saga), incident.id) | {
            "node": text_attribute(incident.node)
        }
        self._put_new(found_by | lasts)
        self._put_new(_item(incident) | lasts)

    def listed(
        self, tenant: str, *, status: str = "", limit: int, after: str = ""
    ) -> tuple[Sequence[Incident], str]:
        shards = [self._shard(tenant, shard, status, limit, after) for shard in range(INCIDENT_SHARDS)]
        # Below the place where some shard stopped it may have incidents that no page has shown yet.
        floor = max(place for _, place in shards)
        known = (one for found, _ in shards for one in found if one.id >= floor)
        shown = sorted(known, key=lambda one: one.id, reverse=True)
        return (shown, floor) if len(shown) <= limit else (shown[:limit], shown[limit - 1].id)

    def _shard(
        self, tenant: str, shard: int, status: str, limit: int, after: str
    ) -> tuple[Sequence[Incident], str]:
        """Return the incidents of one page of a shard, and the id to continue after; the empty text: end."""
        values: Item = {":pk": text_attribute(items.incidents_pk(tenant, shard))}
        if after:
            values[":after"] = text_attribute(after)
        found, last = self._page(
            _BELOW if after else _ALL_OF,
            values,
            ScanIndexForward=False,
            ConsistentRead=True,
            Limit=max(limit, _LOOKED_AT) if status else limit,
            **({"FilterExpression": _FILTERS[status]} if status else {}),
        )
        return [_incident(tenant, item) for item in found], last["sk"]["S"] if last else ""

    def of_saga(self, tenant: str, saga: str, node: str = "") -> Sequence[str]:
        values: Item = {":pk": text_attribute(items.incidents_of_pk(tenant, saga))}
        options: dict[str, Any] = {}
        if node:
            values[":node"], options["FilterExpression"] = text_attribute(node), _OF_NODE
        found = self._query(_ALL_OF, values, ConsistentRead=True, **options)
        return [item["sk"]["S"] for item in found]

    def find(self, tenant: str, id: str) -> Incident | None:
        found = self._get(items.key(items.incident_pk(tenant, id), id))
        return _incident(tenant, found) if found else None

    def acknowledge(
        self, tenant: str, id: str, by: str, note: str, now: int, seen: int = 0
    ) -> Incident | None:
        values: Item = {":now": number(now), ":by": text_attribute(by), ":note": text_attribute(note)}
        if seen:
            return self._decided(tenant, id, _ACKNOWLEDGE, values | {":seen": number(seen)}, _IF_ACKED)
        return self._decided(tenant, id, _ACKNOWLEDGE, values, _IF_UNACKED)

    def resolve(self, tenant: str, id: str, by: str, now: int) -> Incident | None:
        return self._decided(tenant, id, _RESOLVE, {":now": number(now), ":by": text_attribute(by)}, _IF_OPEN)

    def _decided(
        self, tenant: str, id: str, expression: str, values: Item, condition: str
    ) -> Incident | None:
        """Return the incident after the write or, where the condition refused it, as it is stored."""
        place = items.key(items.incident_pk(tenant, id), id)
        try:
            item = self._change(place, expression, values, condition)
        except ConditionFailed as refused:
            if not refused.item:
                return None
            item = refused.item
        return _incident(tenant, item)

    def _change(self, place: Item, expression: str, values: Item, condition: str) -> StoredItem:
        both: dict[str, Any] = {"ReturnValues": "ALL_NEW", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        return self._update(place, expression, condition, values, **both)


def _item(incident: Incident) -> Item:
    return {
        **items.key(items.incident_pk(incident.tenant, incident.id), incident.id),
        "saga": text_attribute(incident.saga),
        "node": text_attribute(incident.node),
        "code": text_attribute(incident.code),
        "said": text_attribute(incident.message),
        "severity": text_attribute(incident.severity),
        "at": number(incident.opened),
    }


def _incident(tenant: str, item: StoredItem) -> Incident:
    return Incident(
        tenant=tenant,
        id=item["sk"]["S"],
        saga=item["saga"]["S"],
        node=item["node"]["S"],
        code=item["code"]["S"],
        message=item["said"]["S"],
        severity=item["severity"]["S"],
        opened=int(item["at"]["N"]),
        resolved=int(item["resolved"]["N"]) if "resolved" in item else 0,
        by=item["by"]["S"] if "by" in item else "",
        acked=int(item["acked"]["N"]) if "acked" in item else 0,
        holder=item["owner"]["S"] if "owner" in item else "",
        note=item["message"]["S"] if "message" in item else "",
    )


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


class DynamoQuestions(TablePort):
    """`Questions`. `table_of` finds the table of a saga; a list is of this deployment's own, `table`."""

    def __init__(
        self, client: DynamoDBClient, table: str, table_of: Callable[[SagaRef], str], clock: Clock = SYSTEM
    ) -> None:
        super().__init__(client, table)
        self._clock = clock
        self._table_of = table_of

    def put(self, tenant: str, row: QuestionRow, number: int, until: int) -> None:
        ref = SagaRef(tenant, row.saga)
        item = _question_item(ref, row, number, until)
        with suppress(ConditionFailed):  # this one lands late
            self._put(item, _IS_LATER, {":seq": item["seq"], ":now": self._now()}, self._table_of(ref))

    def remove(self, ref: SagaRef, ask: str, number: int, until: int) -> None:
        place = items.key(saga_pk(ref), items.question_sk(ask))
        values = {":seq": items.number(number), ":ttl": items.ttl(until), ":now": self._now()}
        with suppress(ConditionFailed):
            self._update(place, _REMOVE, _IS_LATER, values, table=self._table_of(ref))

    def removed(self, ref: SagaRef, number: int) -> Collection[str]:
        values = {
            ":pk": text_attribute(saga_pk(ref)),
            ":ask": text_attribute(items.question_sk("")),
            ":seq": items.number(number),
        }
        rows = self._query(
            _OF_SAGA,
            values,
            table=self._table_of(ref),
            FilterExpression=_IS_OUT,
            ProjectionExpression="#sk",
            ConsistentRead=True,
        )
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
        """Return the next rows of a part of a list, and true if these are all.
        Of rows that expire at one moment the first shard's come first.
        """
        key, since = text_attribute(items.ask_key(tenant, audience, shard)), now
        options: dict[str, Any] = {}
        if after is not None and after[0] > now:
            at = _shard_of(audience, after[1])
            if shard == at:
                # A position, not an item: it may have been taken out since.
                place = items.key(saga_pk(SagaRef(tenant, after[1])), items.question_sk(after[2]))
                options["ExclusiveStartKey"] = {**place, "ask_key": key, "ask_at": number(after[0])}
            else:
                since = after[0] if shard < at else after[0] - 1
        values = {":key": key, ":now": number(since)}
        page, last = self._page(_ASKED, values, IndexName=items.INBOX_INDEX, Limit=limit, **options)
        rows = [_row(item) for item in page]
        return rows, last is None or not rows


def shards_of(audience: str) -> int:
    """Return the number of partitions of an audience: one outage can ask the people on call often."""
    return 1 if audience.startswith("user:") else ASK_SHARDS


def _shard_of(audience: str, saga: str) -> int:
    return shard_of(saga, shards_of(audience))


def _question_item(ref: SagaRef, row: QuestionRow, count: int, until: int) -> Item:
    item: Item = {
        **items.key(saga_pk(ref), items.question_sk(row.ask)),
        "ask_key": text_attribute(items.ask_key(ref.tenant, row.to, _shard_of(row.to, ref.id))),
        "ask_at": number(row.spot[0]),
        "seq": number(count),
    }
    if until:
        item["ttl"] = items.ttl(until)
    item["d"] = {"B": pack(_encode(row), items.item_size(item) + 1, ITEM_BYTES)}
    return item


def _row(item: StoredItem) -> QuestionRow:
    return _decode(unpack(item["d"]["B"]))
