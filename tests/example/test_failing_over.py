"""The dinner fails over, on the real engine and against the services: each case of `make failover`, in virtual time."""

from __future__ import annotations

from typing import Any

import anyio._backends._asyncio  # noqa: F401  # httpx imports it with the first request, which takes long enough to be told of
import httpx
import pytest

from baton.demo.failover import CASES, DELIVERY, TABLES, Case, judge
from baton.testing import Result, run
from sagas import outside

URLS = {TABLES: "TABLE_STACK_URL", DELIVERY: "OPEN_DELIVERY_URL"}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside, "TOTAL_S", 0.15)


def switch(services: dict[str, str], case: Case) -> None:
    for service, places in case.faults.items():
        for place, faults in places.items():
            httpx.put(f"{services[URLS[service]]}/faults/{place}", json=list(faults)).raise_for_status()


def dinner(services: dict[str, str], case: Case, **more: Any) -> Result:
    switch(services, case)
    return run("dinner", case.given, **more)


def books(services: dict[str, str]) -> list[dict[str, Any]]:
    return [httpx.get(f"{url}/books").json() for url in services.values()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.fault)
def test_a_fault_of_the_tables_leads_another_way_and_leaves_the_books_right(
    services: dict[str, str], case: Case
) -> None:
    result = dinner(services, case)
    outcome = judge(case, result.view, result.entries, books(services))
    assert outcome.problems == [], result
    assert outcome.attempts
    assert result.questions == []
    assert result.took_s < 60
