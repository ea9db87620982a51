"""What each protocol costs in write units, counted from the requests that are really sent (see tests/kit/meter)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from baton.adapters.aws import Aws
from baton.adapters.dynamo.letters import DynamoLetters
from baton.adapters.dynamo.log import DynamoLog
from baton.core.letters import REDRIVEN, Letter
from baton.ports import SWEEP, SagaRef, Wake
from tests.contract.stores import SHARDS, a_head, a_release, an_entry
from tests.kit.meter import Meter
from tests.kit.table import create_table

TABLE = "sagas"
# An id and a tenant of the length that real ones have.
SAGA = SagaRef(tenant="acme-restaurants", id="01939f6e7c3d4f0a8b2c5d6e7f801234")


@pytest.fixture
def log_and_meter(moto_aws: Aws) -> tuple[DynamoLog, Meter]:
    aws = Aws()  # clients of its own: what listens to them goes with the test
    create_table(aws.dynamodb, TABLE)
    return DynamoLog(aws.dynamodb, TABLE, SHARDS), Meter(aws)


def spent(meter: Meter) -> int:
    units = sum(meter.units)
    meter.clear()
    return units


def test_each_protocol_costs_what_the_design_says(log_and_meter: tuple[DynamoLog, Meter]) -> None:
    log, meter = log_and_meter

    log.create_head(a_head(SAGA))
    log.append(SAGA, an_entry(1), Wake(v=1))
    assert spent(meter) == 4, "start"

    log.take(SAGA, "invocation-1", 90_000, 0, 93_000, True)
    assert spent(meter) == 1, "take"

    log.append(SAGA, an_entry(2, b'{"kind":"step.completed","result":"' + b"r" * 600 + b'"}'))
    assert spent(meter) == 1, "step"

    log.release(SAGA, "invocation-1", 1, a_release(folded=2, due_at=88_000, wake=Wake(v=2)))
    log.take(SAGA, "invocation-2", 190_000, 1, 193_000, True)
    assert spent(meter) == 4, "yield and take"

    log.append(SAGA, an_entry(3))
    assert spent(meter) == 1, "last step"

    finished = a_release(folded=3, status="completed", group="done", group_at=150_000, due_at=None)
    log.release(SAGA, "invocation-2", 2, finished)
    assert spent(meter) == 4, "finish"


@pytest.mark.ministack
def test_the_embedded_aws_bills_the_same(ministack: str) -> None:
    aws, billed = Aws(ministack), []

    def ask(params: dict[str, Any], **_: object) -> None:
        params["ReturnConsumedCapacity"] = "TOTAL"

    def note(parsed: Mapping[str, Any], **_: object) -> None:
        billed.append(parsed["ConsumedCapacity"]["CapacityUnits"])

    create_table(aws.dynamodb, "billed-sagas")
    for event in ("PutItem", "UpdateItem"):
        aws.dynamodb.meta.events.register(f"provide-client-params.dynamodb.{event}", ask)
        aws.dynamodb.meta.events.register(f"after-call.dynamodb.{event}", note)
    log = DynamoLog(aws.dynamodb, "billed-sagas", SHARDS)
    log.create_head(a_head(SAGA))
    log.append(SAGA, an_entry(1), Wake(v=1))
    log.take(SAGA, "invocation-1", 90_000, 0, 93_000, True)
    log.append(SAGA, an_entry(2))
    log.release(SAGA, "invocation-1", 1, a_release(folded=2, due_at=88_000, wake=Wake(v=2)))
    log.take(SAGA, "invocation-2", 190_000, 1, 193_000, True)
    finished = a_release(folded=2, status="completed", group="done", group_at=150_000, due_at=None)
    log.release(SAGA, "invocation-2", 2, finished)
    assert billed == [3, 1, 1, 1, 3, 1, 4]


def test_a_take_before_the_saga_is_due_moves_its_row(log_and_meter: tuple[DynamoLog, Meter]) -> None:
    log, meter = log_and_meter
    log.create_head(a_head(SAGA, due_at=9_000_000))
    spent(meter)
    log.take(SAGA, "invocation-1", 90_000, 0, 93_000)
    assert spent(meter) == 3


def test_a_look_that_finds_nothing_is_one_update(log_and_meter: tuple[DynamoLog, Meter]) -> None:
    log, meter = log_and_meter
    quiet = a_head(SAGA, start=b"", lane=SWEEP, quiet_since=1_000)
    log.create_head(quiet)
    spent(meter)
    assert log.defer(quiet, 9_000_000, SWEEP)
    assert spent(meter) == 3


def test_a_nudge_and_a_snapshot_cost_one_unit(log_and_meter: tuple[DynamoLog, Meter]) -> None:
    log, meter = log_and_meter
    log.create_head(a_head(SAGA))
    log.take(SAGA, "invocation-1", 90_000, 0, 93_000)
    spent(meter)
    log.leave_wake(SAGA, "invocation-1", 1, 4)
    assert spent(meter) == 1
    log.put_snapshot(SAGA, an_entry(1))
    assert spent(meter) == 1


def test_a_timer_release_costs_as_much_as_a_yield(log_and_meter: tuple[DynamoLog, Meter]) -> None:
    log, meter = log_and_meter
    log.create_head(a_head(SAGA))
    log.take(SAGA, "invocation-1", 90_000, 0, 93_000)
    spent(meter)
    log.release(SAGA, "invocation-1", 1, a_release(due_at=400_000, wake=Wake(v=1, at=400_000)))
    assert spent(meter) == 3


def test_a_refused_write_costs_one_unit(log_and_meter: tuple[DynamoLog, Meter]) -> None:
    log, meter = log_and_meter
    log.append(SAGA, an_entry(1))
    spent(meter)
    assert not log.append(SAGA, an_entry(1))
    assert spent(meter) == 1


def test_an_entry_that_zlib_can_bring_under_a_kilobyte_costs_one_unit(
    log_and_meter: tuple[DynamoLog, Meter],
) -> None:
    log, meter = log_and_meter
    log.append(SAGA, an_entry(1, b'{"menu":"' + b"soup, bread, soup, wine, " * 200 + b'"}'))
    assert spent(meter) == 1


def test_a_dead_letter_costs_three_units_and_a_redrive_four(moto_aws: Aws) -> None:
    aws = Aws()
    create_table(aws.dynamodb, TABLE)
    letters, meter = DynamoLetters(aws.dynamodb, TABLE), Meter(aws)
    letter = Letter(
        id=SAGA.id,
        tenant=SAGA.tenant,
        saga=SAGA.id,
        code="unreadable_log",
        reason="CorruptLog: an entry does not decode: JSON is malformed (byte 0)",
        body=f'{{"saga":"{SAGA}","v":3}}',
        seen=("0d3c7a3e-6a1f-4a58-9c0a-111111111111",),
        since=1_790_000_000_000,
        number=1,
        expires=32_503_680_000_000,
    )
    assert letters.write(letter, 0)
    assert spent(meter) == 3, "itself, and its rows in two indexes"
    assert letters.write(replace(letter, number=2, messages=2), 1)
    assert spent(meter) == 2, "itself, and the row that shows it"
    assert letters.write(replace(letter, number=3, status=REDRIVEN), 2, Wake(v=3))
    assert spent(meter) == 4, "itself, out of one index, to another place in the other"
