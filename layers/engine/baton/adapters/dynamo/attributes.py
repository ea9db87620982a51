"""The attributes of the table's items, with what each holds. A name that is missing here is refused by `names_in` of items.py."""

from __future__ import annotations

from collections.abc import Mapping

ATTRIBUTES: Mapping[str, str] = {
    "pk": "partition key",
    "sk": "sort key",
    # head
    "wf": "workflow",
    "gh": "hash of its graph (also of a definition)",
    "user": "who started it",
    "created": "when (also of a definition)",
    "start": "entry 1, until that is known to exist",
    "start_hash": "hash of the body that started it",
    "st": "status, a cache (also of an effect)",
    "st_key": "partition of StatusIndex: tenant, group of the status, shard",
    "st_at": "sort key of StatusIndex: when the group last changed",
    "br": "branch",
    "folded": "version that the last holder had folded",
    "snap": "version of the newest snapshot; absent: none",
    "owner": "holder of the lease; absent: free (also who claims an effect)",
    "until": "end of the lease; absent: free",
    "epoch": "number of takes",
    "nudge": "pending wake: version left for the holder; absent: none",
    "inbox": "number of times that ends of children were announced since a holder took them in; absent: none",
    "due_shard": "partition of DueIndex: lane, shard",
    "due_at": "sort key of DueIndex; absent: in no index",
    "quiet": "in lane `sweep`: when something last happened; absent: in another",
    "timer": "in lane `sweep`: when something is due by itself; absent: nothing is, or in another",
    "armed": "deadline of a caller about to append; absent: none",
    "wake": "why the stream passes the item on (also of an entry)",
    "watched": "until when a viewer watches (also where the next entry will be, in an item that has expired)",
    # entry and snapshot
    "d": "the data: JSON, or zlib of it",
    # definition
    "doc": "reference of the document's blob",
    "by": "who registered it (also who resolved an incident)",
    "types": "types of events, two lists: that it has rules for, and that earlier versions had rules for; a third where sagas of earlier versions may wait for events: type, template of the correlation key, until when (ms); absent: none",
    # notice
    "told": "when it was told; absent: a worker is about to send it (also, in micro-dollars, what of a user's day its tenant's counts)",
    "at": "when the notice was made",
    # incident
    "saga": "whose incident it is",
    "node": "of which node",
    "code": "code of the failure",
    "said": "what was told",
    "severity": "low, medium, high or critical",
    "resolved": "when a person did something about it (who: `by`); absent: it is open",
    "acked": "when an operator acknowledged the incident (who: `owner`, note: `message`)",
    # requests of a tenant in a window of time
    "spent": "how many there were; of a user's day, what was spent, in micro-dollars",
    # a user's day; besides, r#ID an open reservation, x#ID one that was freed
    "held": "what was spent and what is reserved together",
    "open": "number of invocations that hold something",
    "drawn": "what it has of its tenant's day",
    "rule": "version of an operator's rule about the user",
    "cap": "what that rule allows on a day, in micro-dollars; -1: nothing, absent: what all users may spend",
    # effect
    "about": "hash of its parameters, where its key is made of less",
    "scope": "place of its saga in all branches, where that is not its id",
    "tool": "whose effect",
    "slot": "where in its saga",
    "updated": "when it was last written",
    "gen": "generation of its key; absent: the first",
    "ref": "the blob that holds what came of it",
    "shared": "until when others than its own place are given what came of it; absent: as long as it is there",
    "message": "why it failed (also why a channel never takes a notice)",
    "kind": "class of that failure",
    # entity and circuit breaker
    "ver": "version: the number of its writes (also the version of a workflow that a subscription is of)",
    "keys": "idempotency keys of its newest writes, in their order",
    "was": "what the newest write of an entity has replaced, if that was kept",
    "ttl": "when DynamoDB may delete the item, in epoch seconds; absent: never",
    # question
    "ask_key": "partition of InboxIndex: tenant, shard, whom the question is for; absent: it is not open any more (also of a dead letter: tenant, status)",
    "ask_at": "sort key of InboxIndex: when the question expires (also since when a dead letter is pending)",
    "seq": "what a write of the question must not be below: twice the log's version, and one more once it was told (also how often a dead letter has changed)",
    "labels": "of a head: JSON of what lists show besides; `models`: by name, tokens read and written, micro-dollars; `own`: its labels",
    "parent": "of a head: not written yet, but projected, because a projection cannot be changed",
}
