"""What each call of the log asks DynamoDB for: one request, conditional if it writes, else consistent.

No embedded AWS lags behind, so that only the request itself shows whether a read would be stale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from baton.adapters.aws import Aws
from baton.adapters.dynamo.definitions import DynamoDefinitions
from baton.adapters.dynamo.log import DynamoLog
from tests.contract.stores import SAGA, SHARDS, a_definition, a_head, a_release, an_entry
from tests.kit.table import create_table

WRITES: dict[str, tuple[str, Callable[[DynamoLog], Any]]] = {
    "create_head": ("PutItem", lambda log: log.create_head(a_head())),
    "take": ("UpdateItem", lambda log: log.take(SAGA, "me", 90_000, 0, 93_000)),
    "renew": ("UpdateItem", lambda log: log.renew(SAGA, "me", 1, 90_000)),
    "nudge": ("UpdateItem", lambda log: log.leave_wake(SAGA, "me", 1, 4)),
    "release": ("UpdateItem", lambda log: log.release(SAGA, "me", 1, a_release())),
    "arm": ("UpdateItem", lambda log: log.arm(a_head(), 95_000)),
    "postpone": ("UpdateItem", lambda log: log.postpone(SAGA, 61_000, 99_000)),
    "append": ("PutItem", lambda log: log.append(SAGA, an_entry(1))),
}
READS: dict[str, tuple[str, Callable[[DynamoLog], Any]]] = {
    "read_head": ("GetItem", lambda log: log.read_head(SAGA)),
    "read_tail": ("Query", lambda log: log.read_tail(SAGA, 0, 0)),
    "read_snapshot": ("Query", lambda log: log.read_snapshot(SAGA, 0, 9)),
}


class Watched:
    """The AWS adapters on a table of moto's, with each request as (operation, parameters)."""

    def __init__(self) -> None:
        aws = Aws()  # clients of its own: what listens to them goes with the test
        create_table(aws.dynamodb, "sagas")
        self.log = DynamoLog(aws.dynamodb, "sagas", SHARDS)
        self.definitions = DynamoDefinitions(aws.dynamodb, "sagas")
        self.requests: list[tuple[str, dict[str, Any]]] = []
        aws.dynamodb.meta.events.register("provide-client-params.dynamodb.*", self._note)

    def _note(self, params: dict[str, Any], model: Any, **_: object) -> None:
        self.requests.append((model.name, params))


@pytest.fixture
def watched(moto_aws: Aws) -> Watched:
    return Watched()


@pytest.mark.parametrize("call", WRITES)
def test_every_write_is_one_conditional_write_of_one_item(watched: Watched, call: str) -> None:
    operation, make = WRITES[call]
    make(watched.log)
    ((asked, parameters),) = watched.requests
    assert asked == operation
    assert "ConditionExpression" in parameters


def test_a_second_start_needs_no_read_of_its_own_to_return_the_head(watched: Watched) -> None:
    watched.log.create_head(a_head())
    assert watched.log.create_head(a_head()) == a_head()
    assert [asked for asked, _ in watched.requests] == ["PutItem", "PutItem"]


@pytest.mark.parametrize("call", READS)
def test_every_read_of_a_saga_is_strongly_consistent(watched: Watched, call: str) -> None:
    operation, make = READS[call]
    make(watched.log)
    ((asked, parameters),) = watched.requests
    assert (asked, parameters["ConsistentRead"]) == (operation, True)


def test_definitions_are_read_strongly_consistent(watched: Watched) -> None:
    watched.definitions.get("acme", "dinner")
    watched.definitions.get("acme", "dinner", 1)
    watched.definitions.names("acme")
    assert [parameters["ConsistentRead"] for _, parameters in watched.requests] == [True, True, True]


def test_a_name_is_listed_before_its_version_is_registered(watched: Watched) -> None:
    watched.definitions.put(a_definition())
    assert [parameters["Item"]["pk"]["S"] for _, parameters in watched.requests] == [
        "T#acme#WF",
        "T#acme#WF#dinner",
    ]


def test_what_is_due_is_asked_of_the_index_and_not_of_the_table(watched: Watched) -> None:
    watched.log.due("work", 3, 0, 1_000, 10)
    ((asked, parameters),) = watched.requests
    assert (asked, parameters["IndexName"], parameters["Limit"]) == ("Query", "DueIndex", 10)


def test_a_limited_tail_reads_no_more_than_its_limit(watched: Watched) -> None:
    for version in range(1, 6):
        watched.log.append(SAGA, an_entry(version))
    watched.requests.clear()
    watched.log.read_tail(SAGA, 0, 0, 2)
    assert [parameters["Limit"] for _, parameters in watched.requests] == [2]
