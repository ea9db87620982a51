"""Items of the table: keys, names of attributes, sizes, and conversion of structs. No requests."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from baton.core.effects.rows import Row, RowRoom
from baton.errors import CorruptLog, PoisonMessage
from baton.ports import Head, Listed, Record, SagaRef, StoreLimits, Wake
from baton.ports.log import NO_LANE, pack, shard_of, unpack

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef, UniversalAttributeValueTypeDef

    Item: TypeAlias = dict[str, UniversalAttributeValueTypeDef]
    StoredItem: TypeAlias = Mapping[str, AttributeValueTypeDef]

ATTRIBUTES: Mapping[str, str] = {
    "pk": "partition key",
    "sk": "sort key",
    # head
    "wf": "workflow",
    "gh": "hash of its graph",
    "user": "user who started it",
    "created": "time of the start; of a definition, of its registration",
    "start": "entry 1, until it is known to exist",
    "start_hash": "hash of the body that started it",
    "st": "status, a cache; of an effect, its status",
    "st_key": "partition of StatusIndex: tenant, group of the status, shard",
    "st_at": "sort key of StatusIndex: time of the last change of group",
    "br": "branch",
    "folded": "version that the last holder had folded",
    "snap": "version of the newest snapshot; absent: none",
    "owner": "holder of the lease; absent: free; of an effect, holder of the claim",
    "until": "end of the lease; absent: free",
    "epoch": "number of takes",
    "nudge": "pending wake: version left for the holder; absent: none",
    "inbox": "number of announced ends of children since a holder took them in; absent: none",
    "due_shard": "partition of DueIndex: lane, shard",
    "due_at": "sort key of DueIndex; absent: in no index",
    "quiet": "in lane `sweep`: time of the last event; absent: another lane",
    "timer": "in lane `sweep`: time of the next timer; absent: none, or another lane",
    "armed": "deadline of a caller about to append; absent: none",
    "wake": "reason for the stream to pass the item on; also of an entry",
    "build": "code of a worker, which alone may run the saga of a workflow function; absent: any may",
    "watched": "end of the time for which a viewer watches; also the place of the next entry, in an expired item",
    # entry and snapshot
    "d": "the data: JSON, or zlib of it",
    # definition
    "doc": "reference of the document's blob",
    "by": "user who registered it; of an incident, the person who resolved it",
    "types": "two lists of types of events: those that its rules name, and those that rules of earlier versions named; a third for sagas of earlier versions that may wait for events: type, template of the correlation key, end (ms); absent: none",
    "mcp": "of a workflow that is a tool at `/mcp`; absent: it is none",
    "pauses": "of the newest version: pauses with which new sagas of the workflow begin (JSON); absent: none",
    # tag
    "moves": "versions that the tag has named, newest first, each with who set it, when and why (JSON); version 0: deleted",
    # notice
    "told": "time of the sending; absent: a worker is about to send it; of a user's day, the part of the spent that its tenant counts, in micro-dollars",
    "at": "time of the notice",
    # incident
    "saga": "saga of the incident",
    "node": "node of the incident",
    "code": "code of the failure",
    "said": "text of the incident",
    "severity": "low, medium, high or critical",
    "resolved": "time at which a person resolved it (`by`); absent: open",
    "acked": "time at which an operator acknowledged it (`owner`, note: `message`)",
    # requests of a tenant in a window of time
    "spent": "number of requests; of a user's day, micro-dollars spent",
    # a user's day; besides, r#ID an open reservation, x#ID one that was freed
    "held": "micro-dollars spent and reserved together",
    "open": "number of invocations that hold a reservation",
    "drawn": "amount drawn from the tenant's day",
    "rule": "version of an operator's rule about the user",
    "cap": "amount that the rule allows on a day, in micro-dollars; -1: nothing; absent: the limit of all users",
    # effect
    "about": "hash of its parameters, if its key has fewer",
    "scope": "place of its saga in all branches, if that is not its id",
    "tool": "tool of the effect",
    "slot": "slot of the effect",
    "updated": "time of the last write",
    "gen": "generation of its key; absent: the first",
    "ref": "blob of the result",
    "shared": "end of the time for which other places get the result; absent: as long as the item exists",
    "message": "message of the failure; also the reason why a channel never takes a notice; of a definition, the description of a patch",
    "kind": "class of the failure",
    # entity and circuit breaker
    "ver": "version: number of writes; of a subscription, the version of the workflow",
    "keys": "idempotency keys of its newest writes, in order",
    "was": "data that the newest write of an entity has replaced, if kept",
    "ttl": "time from which DynamoDB may delete the item, in epoch seconds; absent: never",
    # question
    "ask_key": "partition of InboxIndex: tenant, shard, audience of the question; absent: closed; of a dead letter: tenant, status",
    "ask_at": "sort key of InboxIndex: time at which the question expires; of a dead letter, since when it is pending",
    "seq": "least number that a write of the question may have: twice the log's version, and one more once people were notified; of a dead letter, number of changes",
    "labels": "of a head: JSON of other data of lists; `models`: by name, tokens read and written, micro-dollars; `own`: its labels",
    "parent": "of a head: reserved, and projected, because a projection cannot change",
}


ITEM_BYTES = 400 * 1024  # names included
ROWS = RowRoom(rows=90, bytes=3_500_000)  # a transaction has 100 items and 4 MB at most, the entry among them
OPEN_RESERVATIONS = 200  # the item they are in must stay small


def limits(shards: int, status_shards: int) -> StoreLimits:
    """Return the limits of a table whose indexes are spread over so many partitions."""
    return StoreLimits(item_bytes=ITEM_BYTES, rows=ROWS, due_shards=shards, status_shards=status_shards)


class _Labels(msgspec.Struct, omit_defaults=True):
    models: dict[str, tuple[int, int, int]] = {}
    own: dict[str, str] = {}


_decode = msgspec.json.Decoder(_Labels).decode
_encode = msgspec.json.Encoder().encode


def labels_text(models: Mapping[str, tuple[int, int, int]], own: Mapping[str, str]) -> str:
    """Return the models and the saga's own labels as one stored text."""
    return _encode(_Labels(dict(models), dict(own))).decode()


def row_filter(equal: Mapping[str, str], own: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return a filter's terms and values, for rows with these attributes (empty: any) and labels."""
    values = {f":{name}": value for name, value in equal.items() if value}
    terms = [f"#{name[1:]} = {name}" for name in values]
    for number, (name, value) in enumerate(own.items()):
        # It stands so in the attribute of no other saga: a quote inside of a text is escaped.
        values[f":label{number}"] = f"{_encode(name).decode()}:{_encode(value).decode()}"
        terms.append(f"contains(#labels, :label{number})")
    return terms, values


def labels_in(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the models and labels of an item, as fields of a head. Raises `ValueError`."""
    if "labels" not in item:
        return {}
    found = _decode(item["labels"]["S"])
    return {"models": found.models, "labels": found.own}


HEAD = "HEAD"
LIVE = "LIVE"
DUE_INDEX = "DueIndex"
STATUS_INDEX = "StatusIndex"
INBOX_INDEX = "InboxIndex"


def saga_pk(ref: SagaRef) -> str:
    """Return the partition key of one saga. Messages name the saga by it, too."""
    return str(ref)


def saga_of(pk: str) -> SagaRef:
    """Return the saga of a partition key, as `saga_pk` made it. Raises `ValueError`."""
    return SagaRef.parse(pk)


def entry_sk(branch: int, version: int) -> str:
    """Return the sort key of an entry of the log."""
    return f"LOG#{branch:04d}#{version:010d}"


def snapshot_sk(branch: int, version: int) -> str:
    """Return the sort key of a snapshot."""
    return f"SNAP#{branch:04d}#{version:010d}"


def inbox_pk(ref: SagaRef, window: int) -> str:
    """Return the partition key of a window of a saga's inbox."""
    return f"{saga_pk(ref)}#IN#{window}"


_LONGEST_AUDIENCE = 1_500  # bytes; a partition key has 2,048 at most
MAX_VERSION = 10**10 - 1  # what the ten digits of a sort key hold


def definition_pk(tenant: str, name: str) -> str:
    """Return the partition key of the versions of a workflow."""
    return f"T#{tenant}#WF#{name}"


def definition_sk(version: int) -> str:
    """Return the sort key of a version of a workflow."""
    return f"V#{version:06d}"


def tags_pk(tenant: str, workflow: str) -> str:
    """Return the partition of the tags of a workflow."""
    return f"T#{tenant}#TAGS#{workflow}"


def names_pk(tenant: str) -> str:
    """Return the partition key of a tenant's workflow names, one item each, the name as sort key."""
    return f"T#{tenant}#WF"


def rate_pk(tenant: str) -> str:
    """Return the partition key of a tenant's numbers of requests."""
    return f"T#{tenant}#RATE"


def rate_sk(window: int) -> str:
    """Return the sort key of a window of requests."""
    return f"{window:014d}"


def budget_pk(tenant: str, user: str) -> str:
    """Return the partition key of the accounts of a user."""
    return f"T#{tenant}#BUDGET#{user}"


def budget_sk(day: int) -> str:
    """Return the sort key of the account of a day."""
    return f"{day:06d}"


RULE = "RULE"  # beside the days of a user, behind all of them


def ruled_pk(tenant: str) -> str:
    """Return the partition key of a tenant's users with an operator's rule; sort key: the user."""
    return f"T#{tenant}#RULED"


def notice_pk(tenant: str, key: str) -> str:
    """Return the partition key of a notice, which is hashed: a key may be longer than a partition key."""
    return f"T#{tenant}#NOTICE#{hashlib.sha256(key.encode()).hexdigest()}"


def question_sk(ask: str) -> str:
    """Return the sort key of a question's row among the items of its saga."""
    return f"ASK#{ask}"


def ask_key(tenant: str, audience: str, shard: int) -> str:
    """Return the partition key of a part of an audience's questions, hashed if it would be too long."""
    long = len(audience.encode()) > _LONGEST_AUDIENCE
    name = hashlib.sha256(audience.encode()).hexdigest() if long else audience
    return f"T#{tenant}#ASKED{shard or ''}#{name}"


INCIDENT_SHARDS = 8  # for ever: an incident's place follows from its id


def incidents_pk(tenant: str, shard: int) -> str:
    """Return the partition key of a part of a tenant's incidents, the id as sort key."""
    return f"T#{tenant}#INCIDENTS#{shard:02d}"


def incident_pk(tenant: str, id: str) -> str:
    """Return the partition key of an incident."""
    return incidents_pk(tenant, shard_of(id, INCIDENT_SHARDS))


def incidents_of_pk(tenant: str, saga: str) -> str:
    """Return the partition key of the ids of one saga's incidents."""
    return f"T#{tenant}#INCIDENTS#OF#{saga}"


def thread_pk(tenant: str, thread: str) -> str:
    """Return the partition of a thread."""
    return f"T#{tenant}#THREAD#{thread}"


def entity_pk(tenant: str, type: str) -> str:
    """Return the partition key of a tenant's entities of a type, the id as sort key."""
    return f"T#{tenant}#ENTITY#{type}"


def due_shard(lane: str, shard: int) -> str:
    """Return the partition key of a lane and shard of the due index."""
    return f"DUE#{lane}#{shard:03d}"


def status_key(tenant: str, group: str, shard: int) -> str:
    """Return the partition key of a group and shard of the status index."""
    return f"T#{tenant}#{group}#{shard:02d}"


def text_attribute(value: str) -> UniversalAttributeValueTypeDef:
    """Return a text as an attribute."""
    return {"S": value}


def number(value: int) -> UniversalAttributeValueTypeDef:
    """Return a whole number as an attribute."""
    return {"N": str(value)}


def key(pk: str, sk: str) -> Item:
    """Return the primary key of an item."""
    return {"pk": text_attribute(pk), "sk": text_attribute(sk)}


def row_item(tenant: str, row: Row) -> Item:
    """Return the item of a tool's own row, with DynamoDB's own types, which others can query."""
    attributes = {name: attribute(value) for name, value in row.attributes.items()}
    return {**attributes, **key(f"T#{tenant}#ROW#{row.key}", row.sort)}


def attribute(value: Any) -> UniversalAttributeValueTypeDef:
    """Return a JSON value as an attribute."""
    if value is None:
        return {"NULL": True}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, (int, float)):
        return {"N": str(value)}
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, dict):
        return {"M": {str(name): attribute(item) for name, item in value.items()}}
    return {"L": [attribute(item) for item in value]}


def names_in(*expressions: str) -> dict[str, str]:
    """Return the `ExpressionAttributeNames` of expressions that write an attribute `owner` as `#owner`."""
    found = {name for expression in expressions for name in re.findall(r"#(\w+)", expression)}
    if unknown := found - ATTRIBUTES.keys():
        raise KeyError(f"no attributes of the table: {sorted(unknown)}")
    return {f"#{name}": name for name in found}


def item_size(item: Mapping[str, Any]) -> int:
    """Return the bytes of an item by DynamoDB's rule: names, text and binary as they are,
    two digits of a number to a byte and one more. Only the types that this table uses.
    """
    size = 0
    for name, value in item.items():
        ((kind, content),) = value.items()
        size += len(name.encode())
        if kind == "S":
            size += len(content.encode())
        elif kind == "B":
            size += len(content)
        elif kind == "N":
            digits = content.lstrip("-")
            size += (len(digits) + 1) // 2 + 1 + content.startswith("-")
        else:
            raise TypeError(f"attribute {name} has a type this table does not use: {kind}")
    return size


def _packed(item: Item, name: str, data: bytes) -> Item:
    item[name] = {"B": pack(data, item_size(item) + len(name), ITEM_BYTES)}
    return item


def wake_text(wake: Wake) -> str:
    """Return the wake as the text of an attribute."""
    return msgspec.json.encode(wake).decode()


def head_item(head: Head, limits: StoreLimits) -> Item:
    """Return the item of a new head. Raises `ItemTooLarge`."""
    item = {
        **key(saga_pk(head.ref), HEAD),
        "wf": text_attribute(head.workflow),
        "gh": text_attribute(head.graph),
        "user": text_attribute(head.user),
        "created": number(head.created),
        "start_hash": text_attribute(head.start_hash),
        "st": text_attribute(head.status),
        "st_key": text_attribute(
            status_key(head.ref.tenant, head.group, shard_of(head.ref.id, limits.status_shards))
        ),
        "st_at": number(head.created),
        "br": number(head.branch),
        "folded": number(head.folded),
        "epoch": number(head.epoch),
        "due_shard": text_attribute(due_shard(head.lane, shard_of(head.ref.id, limits.due_shards))),
    }
    counts = {"snap": head.snapshot, "nudge": head.pending_wake, "armed": head.armed, "inbox": head.inbox}
    for name, count in (counts | {"quiet": head.quiet_since, "timer": head.timer}).items():
        if count:
            item[name] = number(count)
    if head.owner:
        item["owner"], item["until"] = text_attribute(head.owner), number(head.until)
    if head.due_at is not None:
        item["due_at"] = number(head.due_at)
    if head.wake is not None:
        item["wake"] = text_attribute(wake_text(head.wake))
    if head.build:
        item["build"] = text_attribute(head.build)
    if head.expires:
        item["ttl"] = ttl(head.expires)
    if head.models or head.labels:
        item["labels"] = text_attribute(labels_text(head.models, head.labels))
    return _packed(item, "start", head.start) if head.start else item


def head_of(item: StoredItem) -> Head:
    """Decode a head. Raises `CorruptLog`."""
    try:
        return Head(
            ref=saga_of(item["pk"]["S"]),
            workflow=item["wf"]["S"],
            graph=item["gh"]["S"],
            user=item["user"]["S"],
            created=int(item["created"]["N"]),
            start_hash=item["start_hash"]["S"],
            start=unpack(item["start"]["B"]) if "start" in item else b"",
            status=item["st"]["S"],
            group=item["st_key"]["S"].rsplit("#", 2)[1],
            branch=int(item["br"]["N"]),
            folded=int(item["folded"]["N"]),
            snapshot=_count(item, "snap"),
            owner=item["owner"]["S"] if "owner" in item else "",
            until=_count(item, "until"),
            epoch=int(item["epoch"]["N"]),
            pending_wake=_count(item, "nudge"),
            inbox=_count(item, "inbox"),
            due_at=int(item["due_at"]["N"]) if "due_at" in item else None,
            lane=item["due_shard"]["S"].split("#")[1] if "due_shard" in item else NO_LANE,
            quiet_since=_count(item, "quiet"),
            timer=_count(item, "timer"),
            armed=_count(item, "armed"),
            wake=msgspec.json.decode(item["wake"]["S"], type=Wake) if "wake" in item else None,
            expires=expires(item),
            watched=_count(item, "watched"),
            build=item["build"]["S"] if "build" in item else "",
            **labels_in(item),
        )
    except (KeyError, IndexError, ValueError, CorruptLog) as error:
        raise CorruptLog(f"head {item.get('pk')} cannot be read: {error!r}") from error


def ttl(moment: int) -> UniversalAttributeValueTypeDef:
    """Return a time to live, which DynamoDB takes in whole seconds, not before the moment."""
    return number(-(-moment // 1_000))


def expires(item: StoredItem) -> int:
    """Return the time at which the item counts as deleted, in ms; 0: never."""
    return 1_000 * _count(item, "ttl")


def _count(item: StoredItem, name: str) -> int:
    return int(item[name]["N"]) if name in item else 0


def listed_of(item: StoredItem) -> Listed:
    """Return the row of the status index that an item has. Raises `CorruptLog`."""
    try:
        return Listed(
            id=saga_of(item["pk"]["S"]).id,
            workflow=item["wf"]["S"],
            status=item["st"]["S"],
            user=item["user"]["S"],
            created=int(item["created"]["N"]),
            changed=int(item["st_at"]["N"]),
            **labels_in(item),
        )
    except (KeyError, ValueError) as error:
        raise CorruptLog(f"head {item.get('pk')} cannot be listed: {error!r}") from error


def record_item(ref: SagaRef, sk: str, record: Record, wake: Wake | None = None) -> Item:
    """Return the item of an entry or a snapshot. Raises `ItemTooLarge`."""
    item = key(saga_pk(ref), sk)
    if wake is not None:
        item["wake"] = text_attribute(wake_text(wake))
    if record.expires:
        item["ttl"] = ttl(record.expires)
    return _packed(item, "d", record.data)


def record_of(item: StoredItem) -> Record:
    """Decode an entry or a snapshot. One that cannot be unpacked has the stored bytes, which do not decode:
    its place is known, and so are the entries behind it.
    """
    _, branch, version = item["sk"]["S"].split("#")
    stored = item.get("d", {}).get("B", b"")
    try:
        data = unpack(stored)
    except CorruptLog:
        data = stored
    return Record(int(branch), int(version), data, item_size(item), expires(item))


def changing(changes: Mapping[str, Any]) -> tuple[str, Item]:
    """Return an update expression that sets each attribute to its value, or removes it where that is None."""
    sets = [f"#{name} = :{name}" for name, value in changes.items() if value is not None]
    removes = [f"#{name}" for name, value in changes.items() if value is None]
    values = {f":{name}": value for name, value in changes.items() if value is not None}
    return f"SET {', '.join(sets)} REMOVE {', '.join(removes)}", values


def unchanged_condition(seen: Mapping[str, Any]) -> tuple[str, Item]:
    """Return a condition that each attribute has the value that was seen, or is absent where that is None."""
    terms = [
        f"attribute_not_exists(#{name})" if value is None else f"#{name} = :seen_{name}"
        for name, value in seen.items()
    ]
    values = {f":seen_{name}": value for name, value in seen.items() if value is not None}
    return " AND ".join(terms), values


def image_wake(image: Mapping[str, Any]) -> tuple[SagaRef, Wake]:
    """Return the saga and the wake of a stream record's new image. Raises `PoisonMessage`."""
    try:
        return saga_of(image["pk"]["S"]), msgspec.json.decode(image["wake"]["S"], type=Wake)
    except (KeyError, TypeError, ValueError) as error:
        raise PoisonMessage(f"no wake in a stream image: {error!r}") from error
