"""`Letters` on DynamoDB: an item beside each saga's log, found by its tenant and status in InboxIndex.

DueIndex has a pending letter in a lane of its own, where the reconciler finds those of all tenants. A redrive
writes `wake` into a saga's letter, so that the stream carries it as any other wake.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from baton.adapters.aws import ConditionFailed
from baton.adapters.clock import SystemClock
from baton.adapters.dynamo import items
from baton.adapters.dynamo.items import ITEM_BYTES, number, text_attribute
from baton.adapters.dynamo.table import TablePort
from baton.core.failures import quoted
from baton.core.letters import PENDING, UNREADABLE, Letter
from baton.errors import CorruptLog
from baton.ports import Clock, SagaRef, Wake
from baton.ports.log import is_over, pack, unpack
from baton.ports.operators import MOST_COUNTED, Outstanding

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from baton.adapters.dynamo.items import Item, StoredItem

DEAD = "DEAD"  # the sort key of a saga's letter
_LANE = items.due_shard("dead", 0)

_IS_NONE = "attribute_not_exists(#pk) OR #ttl <= :now"
_LETTER_IS_AS_SEEN = "#seq = :seen"
_LISTED = "#ask_key = :key"
_DEAD = "#due_shard = :lane"
_LONGEST_KEY = 2_048  # bytes of a partition key

SYSTEM = SystemClock()

_encode = msgspec.json.Encoder().encode
_decode_letter = msgspec.json.Decoder(Letter).decode


class DynamoLetters(TablePort):
    """`Letters` of one deployment, in its own table."""

    def __init__(self, client: DynamoDBClient, table: str, clock: Clock = SYSTEM) -> None:
        super().__init__(client, table)
        self._clock = clock

    def read(self, tenant: str, id: str) -> Letter | None:
        found = self._get(_letter_key(tenant, id))
        if not found or is_over(items.expires(found), self._clock.now()):
            return None
        return _letter(found)

    def write(self, letter: Letter, seen: int, wake: Wake | None = None) -> bool:
        item = _item(letter)
        if len(item["pk"]["S"].encode()) > _LONGEST_KEY:
            raise ValueError(f"no table takes the key of {letter.id[:80]!r}")
        if wake is not None:
            item["wake"] = text_attribute(items.wake_text(wake))
        condition = _LETTER_IS_AS_SEEN if seen else _IS_NONE
        values = {":seen": number(seen)} if seen else {":now": number(self._clock.now() // 1_000)}
        try:
            self._put(item, condition, values)
        except ConditionFailed:
            return False
        return True

    def listed(
        self, tenant: str, status: str, limit: int, after: Letter | None = None
    ) -> tuple[Sequence[Letter], bool]:
        key = text_attribute(_listed_at(tenant, status))
        options: dict[str, Any] = {"IndexName": items.INBOX_INDEX, "Limit": limit}
        if after is not None:
            # A position, not an item: it may have moved on since.
            place = {**_letter_key(tenant, after.id), "ask_key": key, "ask_at": number(after.since)}
            options["ExclusiveStartKey"] = place
        while True:
            page, last = self._page(_LISTED, {":key": key}, **options)
            now = self._clock.now()
            found = [letter for letter in map(_letter, page) if not is_over(letter.expires, now)]
            if found or last is None:
                return found, last is not None
            options["ExclusiveStartKey"] = last

    def outstanding(self) -> Outstanding:
        lane = {":lane": text_attribute(_LANE)}
        found = list(self._query(_DEAD, lane, MOST_COUNTED, IndexName=items.DUE_INDEX))
        return Outstanding(len(found), int(found[0]["due_at"]["N"]) if found else 0)


def _letter_key(tenant: str, id: str) -> Item:
    """Return the key of a letter. A letter with the id of a saga is stored beside the saga's log."""
    if "~" in id:
        return items.key(f"T#{tenant}#LETTERS", id)
    return items.key(items.saga_pk(SagaRef(tenant, id)), DEAD)


def _listed_at(tenant: str, status: str) -> str:
    return f"T#{tenant}#DEAD#{status}"


def _item(letter: Letter) -> Any:
    item = {
        **_letter_key(letter.tenant, letter.id),
        "ask_key": text_attribute(_listed_at(letter.tenant, letter.status)),
        "ask_at": number(letter.since),
        "seq": number(letter.number),
        "ttl": items.ttl(letter.expires),
    }
    if letter.status == PENDING:
        item["due_shard"] = text_attribute(_LANE)
        item["due_at"] = number(letter.since)
    item["d"] = {"B": pack(_encode(letter), items.item_size(item) + 1, ITEM_BYTES)}
    return item


def _letter(item: StoredItem) -> Letter:
    """Decode a letter. One that cannot be read is shown as such, so that it can be discarded."""
    try:
        return _decode_letter(unpack(item["d"]["B"]))
    except (KeyError, ValueError, CorruptLog) as error:
        _, tenant, *rest = item["pk"]["S"].split("#", 3)
        is_of_saga = item["sk"]["S"] == DEAD
        name = rest[1] if is_of_saga else item["sk"]["S"]
        since = int(item.get("ask_at", {"N": "0"})["N"])
        return Letter(
            id=name,
            tenant=tenant,
            saga=name if is_of_saga else "",
            status=item.get("ask_key", {"S": f"#{PENDING}"})["S"].rpartition("#")[2],
            code=UNREADABLE,
            reason=f"the record of this dead letter cannot be read: {quoted(repr(error), 300)}",
            first=since,
            since=since,
            last=since,
            number=int(item.get("seq", {"N": "0"})["N"]),
            expires=items.expires(item),
        )
