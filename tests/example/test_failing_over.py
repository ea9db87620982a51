"""The dinner fails over, on the real engine and against the services: each case of `make failover`, in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import anyio._backends._asyncio  # noqa: F401  # httpx imports it with the first request, which takes long enough to be told of
import httpx
import pytest
from starlette.requests import Request as HttpRequest

from baton import StepFailure
from baton.demo.failover import CASES, DELIVERY, HOME, NONE, TABLES, UNDONE, WAITLIST, Case, judge_case
from baton.demo.scenario import FALLING, evening, service_faults
from baton.testing import Result, run
from examples.services.desk import Desk
from sagas import outside
from tests.example.conftest import MOMENTS
from tests.kit.sentences import Says


class Caller:
    """Gives a call up as soon as its service holds the answer back, and not after a time that a busy machine needs itself.

    That a call is given up in TOTAL_S is tested in test_dinner_tools.
    """

    def __init__(self) -> None:
        self._client, self._hold_back = outside._client, Desk._unless_hung_up
        self._calls: dict[str, tuple[asyncio.AbstractEventLoop, asyncio.Timeout]] = {}

    def stand_in(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def hold_back(desk: Desk, http: HttpRequest, seconds: float) -> None:
            loop, ends = self._calls[http.headers["Idempotency-Key"]]
            loop.call_soon_threadsafe(ends.reschedule, 0)
            await self._hold_back(desk, http, seconds)

        monkeypatch.setattr(Desk, "_unless_hung_up", hold_back)
        monkeypatch.setattr(outside, "_client", lambda: self)

    async def request(self, method: str, url: str, headers: dict[str, str], **more: Any) -> httpx.Response:
        async with asyncio.timeout(None) as ends:
            self._calls[headers["Idempotency-Key"]] = asyncio.get_running_loop(), ends
            return await self._client().request(method, url, headers=headers, **more)


URLS = {TABLES: "TABLE_STACK_URL", DELIVERY: "OPEN_DELIVERY_URL"}


def switch(services: dict[str, str], case: Case) -> None:
    for service, places in case.faults.items():
        for place, found in places.items():
            httpx.put(f"{services[URLS[service]]}/faults/{place}", json=list(found)).raise_for_status()


def dinner(services: dict[str, str], case: Case, **more: Any) -> Result:
    switch(services, case)
    return run("dinner", case.given, **more)


def books(services: dict[str, str]) -> list[dict[str, Any]]:
    return [httpx.get(f"{url}/books").json() for url in services.values()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.fault)
def test_a_fault_of_the_tables_leads_another_way_and_leaves_the_books_right(
    services: dict[str, str], case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    Caller().stand_in(monkeypatch)
    result = dinner(services, case)
    outcome = judge_case(case, result.view, result.entries, books(services))
    assert outcome.problems == [], result
    assert outcome.attempts
    assert len(outcome.trace) == 32
    assert result.questions == []
    assert result.took_s < 60


def named(fault: str) -> Case:
    (case,) = [case for case in CASES if case.fault == fault]
    return case


FALLS = Case("is well", evening(FALLING)["city"], {}, UNDONE, ("hold", "deposit", "confirm", "order"))
GIVING_BACK = {"cancel", "refund"}
PAID = named("answers 503 once the deposit is paid")


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("node", ["give_back", "order_dinner"])
def test_a_worker_that_dies_while_it_goes_another_way_gives_back_and_orders_once(
    services: dict[str, str], node: str, moment: str
) -> None:
    result = dinner(services, PAID, kills={node: moment})
    assert judge_case(PAID, result.view, result.entries, books(services)).problems == [], result
    assert result.output["evening"][0] == "Given back: 1 table(s), 32.00 refunded"


def test_an_evening_in_which_nothing_fails_gives_nothing_back(services: dict[str, str]) -> None:
    as_planned = Case("is well", "Kiel", {}, NONE)
    result = dinner(services, as_planned)
    assert result.output["way"] == "table"
    assert "give_back" not in result.way
    outcome = judge_case(as_planned, result.view, result.entries, books(services))
    assert (outcome.problems, outcome.way, outcome.attempts) == ([], NONE, 0)


def test_a_deposit_whose_answer_is_nonsense_is_looked_for_and_not_paid_again(
    services: dict[str, str],
) -> None:
    """No other way is needed: the money has moved, and the table is there."""
    fault = {"kind": "nonsense", "operations": ["deposit"]}
    case = Case("takes the deposit", "Kiel", {TABLES: {"kiel": [fault]}}, NONE)
    result = dinner(services, case)
    assert result.output["way"] == "table"
    assert judge_case(case, result.view, result.entries, books(services)).problems == []


@pytest.mark.parametrize("kill", ["", "deposit", "confirm", "order_snack"])
def test_an_evening_that_falls_through_at_its_end_takes_back_all_that_it_has_done(
    services: dict[str, str], kill: str
) -> None:
    """As one of the demo. A worker that dies when it has acted knows nothing of it, and it is taken back all the same."""
    case = replace(FALLS, faults={DELIVERY: service_faults()})
    result = dinner(services, case, kills={kill: "after"} if kill else {})
    assert judge_case(case, result.view, result.entries, books(services)).problems == [], result


def test_what_a_dead_worker_may_have_ordered_is_taken_back_when_the_saga_fails_before_it_is_ordered_again(
    services: dict[str, str],
) -> None:
    """The wine is ordered beside the deposit; the cake is refused for good after the death."""
    case = replace(FALLS, city="Kiel", faults={DELIVERY: {"kiel/cherry-cake": [{"kind": "full"}]}})
    result = dinner(services, case, kills={"deposit": "after"})
    assert result.status == "rolled_back", result
    standing = [
        one["kind"] for book in books(services) for one in book["effects"] if one["undone_by"] is None
    ]
    assert {*standing} <= GIVING_BACK, standing


def test_where_there_is_no_waitlist_either_dinner_comes_home(services: dict[str, str]) -> None:
    """The service is full, and breaks down before the guest is on its list."""
    faults: list[dict[str, Any]] = [{"kind": "full"}, {"kind": "unavailable", "operations": ["waitlist"]}]
    case = Case("is full", "Kiel", {TABLES: {"kiel": [faults[1], faults[0]]}}, HOME)
    result = dinner(services, case)
    assert result.way[-4:] == ["waitlist", "quote_dinner", "order_dinner", "itinerary"]
    assert judge_case(case, result.view, result.entries, books(services)).problems == []


# ---- what the judgement finds ------------------------------------------------------------------------------------


def test_a_dinner_that_went_another_way_than_it_should_does_not_pass(
    services: dict[str, str], says: Says
) -> None:
    result = dinner(services, PAID)
    other = replace(PAID, way=WAITLIST)
    says(judge_case(other, result.view, result.entries, books(services)).problems)


def test_a_fault_that_was_not_met_does_not_pass(services: dict[str, str], says: Says) -> None:
    result = dinner(services, named("answers 503"))
    case = replace(named("answers 503"), undone=("hold",))
    (problem,) = judge_case(case, result.view, result.entries, books(services)).problems
    says(problem)


def test_a_table_that_is_given_up_and_still_held_does_not_pass(services: dict[str, str], says: Says) -> None:
    """A document that forgets it, as when `give_back` is not there."""
    case = named("holds a table, and answers nonsense")
    nothing = {"holds": [], "refunded_cents": 0, "orders": []}
    result = dinner(services, case, stand_ins={"dinner.give_back": lambda **_: nothing})
    says(judge_case(case, result.view, result.entries, books(services)).problems)


def test_a_saga_that_does_not_complete_does_not_pass(services: dict[str, str], says: Says) -> None:
    def closed(**_: Any) -> None:
        raise StepFailure("closed", "no kitchen is open", kind="permanent")

    result = dinner(services, named("answers 503"), stand_ins={"delivery.quote": closed})
    outcome = judge_case(named("answers 503"), result.view, result.entries, books(services))
    assert (outcome.status, outcome.way) == ("failed", NONE)
    says(outcome.problems[0])
