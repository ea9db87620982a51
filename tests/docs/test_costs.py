"""The table of costs on the page of protocols is what the requests that are really sent would be billed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from moto import mock_aws

from baton.adapters.aws import Aws
from baton.adapters.dynamo.budgets import DynamoBudgets
from baton.adapters.dynamo.log import DynamoInbox, DynamoLog
from baton.core.read.costs import BillingSettings
from baton.ports import SWEEP, Account, Report, Reservation, ReservationChange, Sums, Wake
from tests.contract.stores import SHARDS, a_head, a_release, an_entry
from tests.contract.test_write_units import SAGA, TABLE, spent
from tests.docs.pages import ROOT
from tests.kit.meter import Meter
from tests.kit.table import create_table, table_properties

ADA = Account("acme", "ada", 20_700)


@pytest.fixture
def log_and_meter(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[DynamoLog, Meter]]:
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        aws = Aws()
        create_table(aws.dynamodb, TABLE)
        yield DynamoLog(aws.dynamodb, TABLE, SHARDS), Meter(aws)


def test_the_memory_that_an_estimate_assumes_is_the_templates() -> None:
    assumed = BillingSettings()
    assert table_properties("ApiFunction")["MemorySize"] == assumed.api_mb
    assert table_properties("RelayFunction")["MemorySize"] == assumed.relay_mb


def on_the_page() -> dict[str, int]:
    """Write units by the first words of a row: `release to wait, again` and the like."""
    text = (ROOT / "docs/protocols.md").read_text("utf-8")
    section = text.partition("## What it costs")[2].partition("\n## ")[0]
    return {what: int(units) for what, units in re.findall(r"^\| ([^|]+) \| (\d+) \|", section, re.MULTILINE)}


def test_every_row_costs_what_the_page_says(log_and_meter: tuple[DynamoLog, Meter]) -> None:
    log, meter = log_and_meter
    cost: dict[str, int] = {}

    log.create_head(a_head(SAGA))
    log.append(SAGA, an_entry(1), Wake(v=1))
    cost["start"] = spent(meter)
    log.take(SAGA, "i1", 90_000, 0, 93_000, True)
    cost["take"] = spent(meter)
    log.append(SAGA, an_entry(2))
    cost["step, signal, cancel, resume, reports of children, revival"] = spent(meter)
    budgets, hold = DynamoBudgets(meter.client, TABLE), Reservation(1, 5, 60_000)
    budgets.move(ADA, ReservationChange("i", None, hold, limit=10), 50_000)
    budgets.move(ADA, ReservationChange("i", hold, None, 4), 50_000)
    cost["an attempt of a tool that declares a cost"] = spent(meter)
    opened = Reservation(2, 0, 60_000)
    budgets.move(ADA, ReservationChange("i", None, opened), 50_000)
    budgets.move(ADA, ReservationChange("i", opened, None, 4), 50_000)
    cost["an attempt that only reports a cost"] = spent(meter)
    budgets.draw(ADA, Sums(spent=8), 10, 100)
    cost["a draw from the tenant's day, or what is given back of it"] = spent(meter)
    assert not log.append(SAGA, an_entry(2))
    cost["a refused write"] = spent(meter)
    log.release(SAGA, "i1", 1, a_release(folded=2, due_at=88_000, wake=Wake(v=2)))
    cost["yield"] = spent(meter)

    log.take(SAGA, "i2", 190_000, 1, 193_000)
    spent(meter)
    log.leave_wake(SAGA, "i2", 2, 3)
    cost["nudge"] = spent(meter)
    log.renew(SAGA, "i2", 2, 195_000)
    cost["renewal"] = spent(meter)
    inbox = DynamoInbox(meter.client, TABLE)
    inbox.leave([Report(SAGA, 3, "course", f"{SAGA.id}.0.course")], 1_790_000_000_000)
    inbox.announce(SAGA)
    cost["end of a child"] = spent(meter)
    waiting = a_release(
        folded=3, status="waiting", group="waiting", group_at=160_000, due_at=400_000, inbox=1
    )
    log.release(SAGA, "i2", 2, waiting)
    cost["release to wait"] = spent(meter)
    seen = log.read_head(SAGA)
    assert seen is not None
    assert log.defer(seen, 500_000, SWEEP)
    cost["look that finds nothing"] = spent(meter)
    log.take(SAGA, "i3", 290_000, 2, 293_000)
    cost["take before the saga is due"] = spent(meter)
    again = a_release(folded=3, status="waiting", group="waiting", group_at=None, due_at=500_000)
    log.release(SAGA, "i3", 3, again)
    cost["release to wait, again"] = spent(meter)

    log.take(SAGA, "i4", 390_000, 3, 393_000)
    spent(meter)
    parked = a_release(folded=3, status="parked", group="waiting", group_at=None, due_at=500_000)
    log.release(SAGA, "i4", 4, parked)
    cost["release that parks a waiting saga"] = spent(meter)

    log.take(SAGA, "i5", 390_000, 4, 393_000)
    spent(meter)
    ended = a_release(folded=4, status="completed", group="done", group_at=360_000, due_at=None)
    log.release(SAGA, "i5", 5, ended)
    cost["finish"] = spent(meter)
    head = log.read_head(SAGA)
    assert head is not None
    log.arm(head, 460_000)
    cost["arm a finished saga"] = spent(meter)

    assert on_the_page() == cost
