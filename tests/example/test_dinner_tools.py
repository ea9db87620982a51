"""Each tool of the dinner against the running services, as the engine calls it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

import sagas.dinner  # registers the tools
from baton.ports import StepContext, StepFailure
from baton.tools.define import REGISTRY
from baton.tools.perform import ToolPerformer
from sagas import outside
from tests.example.conftest import Start
from tests.kit.sentences import Says

AT = "2026-12-24T19:30:00Z"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def context(key: str = "key", **changed: Any) -> StepContext:
    fields: dict[str, Any] = {
        "saga": "saga-1",
        "tenant": "t",
        "user": "ada",
        "node": "node",
        "idempotency_key": key,
        "deadline_ms": round(time.time() * 1000) + 5000,
        "traceparent": TRACE,
    }
    return StepContext(**fields | changed)


def perform(*calls: tuple[str, Mapping[str, Any], StepContext]) -> list[Any]:
    """Run tools one after the other in one event loop, as a worker does."""

    async def run() -> list[Any]:
        performer = ToolPerformer(REGISTRY)
        try:
            return [await performer.perform(*call) for call in calls]
        finally:
            # Its sockets are of this loop; left to the garbage collector they fail some other test.
            await outside._client().aclose()

    return asyncio.run(run())


def hold(key: str = "h", table: str = "lisbon/lantern/2") -> tuple[str, Mapping[str, Any], StepContext]:
    return "table.hold", {"table": table, "party": 4, "at": AT}, context(key)


def summary(url: str) -> dict[str, int]:
    found: dict[str, int] = httpx.get(f"{url}/books?summary=1").json()["summary"]
    return found


def test_the_tools_of_the_example_are_registered() -> None:
    assert sagas.dinner.TABLES == "table-stack"
    effects = {
        name: tool.spec.effect
        for name, tool in REGISTRY.items()
        if name.startswith(("table.", "bar.", "deliv", "dinner"))
    }
    assert effects == {
        "table.search": "pure",
        "table.hold": "idempotent",
        "bar.hold": "idempotent",
        "table.deposit": "once",
        "table.find_deposit": "pure",
        "table.confirm": "idempotent",
        "table.cancel": "idempotent",
        "table.waitlist": "idempotent",
        "table.leave_waitlist": "idempotent",
        "delivery.quote": "pure",
        "delivery.order": "idempotent",
        "delivery.cancel": "idempotent",
        "dinner.give_back": "idempotent",
        "dinner.itinerary": "pure",
    }


def test_a_table_is_found_some_hours_later_in_a_bar(services: dict[str, str]) -> None:
    arguments = {"city": "Lisbon", "party": 4, "at": AT, "kind": "bar", "hours_later": 3}
    (found,) = perform(("table.search", arguments, context()))
    assert found["at"] == "2026-12-24T22:30:00+00:00"
    assert found["tables"][0] == {
        "id": "lisbon/cellar-9/2",
        "house": "Cellar 9",
        "city": "Lisbon",
        "seats": 4,
        "deposit_cents": 0,
    }


def test_a_table_is_held_paid_for_confirmed_and_given_back(services: dict[str, str]) -> None:
    kept, deposit, booking, given_back = perform(
        hold(),
        ("table.deposit", {"hold": "hold-1", "amount_cents": 3200}, context("d")),
        ("table.confirm", {"hold": "hold-1"}, context("c")),
        ("table.cancel", {"hold": "hold-1", "reason": "ill"}, context("x")),
    )
    assert (kept["id"], kept["deposit_cents"], deposit["amount_cents"]) == ("hold-1", 3200, 3200)
    assert (booking["table"], given_back["refunded_cents"]) == ("lisbon/lantern/2", 3200)


def test_a_delivery_is_quoted_ordered_and_called_off(services: dict[str, str]) -> None:
    items = ["Cherry cake"]
    (quote,) = perform(("delivery.quote", {"city": "Lisbon", "items": items, "at": AT}, context()))
    wanted = {"items": items, "address": "Lantern", "at": AT, "total_cents": quote["total_cents"]}
    order, cancelled = perform(
        ("delivery.order", wanted, context("o")), ("delivery.cancel", {"id": "order-1"}, context("x"))
    )
    assert (order["id"], cancelled["status"]) == ("order-1", "cancelled")


def test_a_deposit_is_found_once_it_is_paid_and_is_not_protected_by_its_key(services: dict[str, str]) -> None:
    look = ("table.find_deposit", {"hold": "hold-1"}, context("d"))
    pay = ("table.deposit", {"hold": "hold-1", "amount_cents": 3200}, context("d"))
    _, before, paid, after, _ = perform(hold(), look, pay, look, pay)
    assert (before, after) == ({"happened": False, "result": None}, {"happened": True, "result": paid})
    assert summary(services["TABLE_STACK_URL"])["double_bookings"] == 1


def test_a_busy_service_says_when_to_come_again_and_has_done_nothing(
    start_service: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = start_service("table_stack", "--delay", "all=0", "--busy-every", "1")
    monkeypatch.setenv("TABLE_STACK_URL", url)
    with pytest.raises(StepFailure) as failure:
        perform(hold())
    said = failure.value
    assert (said.code, said.kind, said.status, said.retry_after) == (
        "service_unavailable",
        "transient",
        503,
        "1",
    )
    assert summary(url)["effects"] == 0


PLANNED: dict[str, Any] = {
    "table": {"code": "T-1", "table": "lisbon/lantern/2"},
    "bar": {"code": "T-1", "table": "lisbon/cellar-9/2"},
    "waiting": None,
    "deposit_cents": 8000,
    "orders": [{"id": "order-1", "total_cents": 950}, None],
    "given_back": None,
}


def test_the_itinerary_lists_what_was_arranged() -> None:
    (itinerary,) = perform(("dinner.itinerary", PLANNED, context()))
    assert (itinerary["way"], len(itinerary["lines"]), itinerary["total_cents"]) == ("table", 3, 8950)


def test_the_itinerary_of_an_evening_that_was_given_back_names_no_table_and_counts_no_order_of_it() -> None:
    given_back = {"holds": ["hold-1"], "refunded_cents": 8000, "orders": ["order-1"]}
    orders = [*PLANNED["orders"], {"id": "order-2", "total_cents": 100}]
    arguments = PLANNED | {"bar": None, "orders": orders, "given_back": given_back}
    (itinerary,) = perform(("dinner.itinerary", arguments, context()))
    assert itinerary == {
        "way": "home",
        "lines": ["Given back: 1 table(s), 80.00 refunded", "Delivery order-2, 1.00"],
        "total_cents": 100,
    }


def test_all_is_given_back_by_the_saga_alone_and_nothing_more_is_held_for_it(
    services: dict[str, str],
) -> None:
    """A hold whose answer never came has no id to give back, and may even come after it."""
    held, paid, back, again = perform(
        hold(),
        ("table.deposit", {"hold": "hold-1", "amount_cents": 3200}, context("d")),
        ("dinner.give_back", {"orders": [None]}, context("g")),
        ("dinner.give_back", {"orders": [None]}, context("g")),
    )
    assert (back["holds"], back["refunded_cents"], back["orders"]) == ([held["id"]], paid["amount_cents"], [])
    assert back == again
    with pytest.raises(StepFailure, match="Given back") as failure:
        perform(hold("late", "lisbon/quayside/2"))
    assert failure.value.code == "conflict"
    assert summary(services["TABLE_STACK_URL"])["double_bookings"] == 0


def test_a_waitlist_is_joined_and_left(services: dict[str, str]) -> None:
    wanted = {"city": "Lisbon", "party": 4, "at": AT}
    first, second, left = perform(
        ("table.waitlist", wanted, context("a")),
        ("table.waitlist", wanted, context("b", user="bob")),
        ("table.leave_waitlist", {"id": "wait-1"}, context("l")),
    )
    assert (first["position"], second["position"], left["status"]) == (1, 2, "cancelled")
    (third,) = perform(("table.waitlist", wanted, context("c", user="eve")))
    assert third["position"] == 2


@pytest.mark.parametrize(
    ("kind", "code", "said"),
    [
        ("nonsense", "invalid_response", "table-stack answered POST /holds with what is not JSON"),
        ("shapeless", "invalid_response", "table-stack answered with no Hold"),
        ("login", "unauthorized", "table-stack answered 401: Login required"),
        ("unavailable", "service_unavailable", "table-stack answered 503: Not available"),
        ("full", "conflict", "table-stack answered 409: Table taken"),
    ],
)
def test_each_fault_of_a_service_is_told_by_its_code(
    services: dict[str, str], kind: str, code: str, said: str
) -> None:
    httpx.put(f"{services['TABLE_STACK_URL']}/faults/lisbon/lantern", json=[{"kind": kind}])
    with pytest.raises(StepFailure, match=said) as failure:
        perform(hold())
    assert failure.value.code == code
    (elsewhere,) = perform(hold("other", "lisbon/quayside/2"))
    assert elsewhere["house"] == "Quayside"


def test_a_step_that_runs_again_with_its_key_acts_once(services: dict[str, str]) -> None:
    first, again = perform(hold(), hold())
    assert first == again
    assert summary(services["TABLE_STACK_URL"]) == {
        "requests": 2,
        "replays": 1,
        "effects": 1,
        "double_bookings": 0,
    }


def test_key_trace_saga_and_user_reach_the_service(services: dict[str, str]) -> None:
    perform(hold("the-key"))
    books = httpx.get(f"{services['TABLE_STACK_URL']}/books").json()
    assert (books["requests"][0]["key"], books["requests"][0]["traceparent"]) == ("the-key", TRACE)
    identity = books["effects"][0]["identity"]
    assert (identity["reference"], identity["guest"]) == ("saga-1", "ada")


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        (
            "table.confirm",
            {"hold": "hold-9"},
            "table-stack answered 404: No such hold: There is no hold 'hold-9'.",
        ),
        ("table.search", {"city": "Lisbon", "party": 99, "at": AT}, "table-stack answered 422"),
        ("table.search", {"city": "Lisbon", "party": 2, "at": "soon"}, "Invalid isoformat string: 'soon'"),
        ("delivery.cancel", {"id": "order-9"}, "open-delivery answered 404: No such order"),
    ],
)
def test_a_refusal_says_who_refused_and_why(
    services: dict[str, str], tool: str, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(StepFailure, match=r"answered|isoformat") as failure:
        perform((tool, arguments, context()))
    assert said in failure.value.message


def test_no_free_table_is_told_with_city_party_and_time(services: dict[str, str], says: Says) -> None:
    taken = [hold(f"key-{house}", f"lisbon/{house}/6") for house in ("lantern", "quayside", "olive-yard")]
    with says.raised(StepFailure) as failure:
        perform(*taken, ("table.search", {"city": "Lisbon", "party": 12, "at": AT}, context()))
    assert (failure.value.code, failure.value.kind) == ("no_tables", "user_resolvable")


def test_a_service_without_an_address_is_named_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TABLE_STACK_URL", raising=False)
    with pytest.raises(StepFailure, match="no TABLE_STACK_URL"):
        perform(hold())


def test_a_service_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch, says: Says) -> None:
    monkeypatch.setenv("TABLE_STACK_URL", "http://127.0.0.1:1")
    with says.raised(StepFailure):
        perform(hold())


def test_a_slow_service_is_given_up_in_total_time(
    start_service: Start, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setenv("TABLE_STACK_URL", start_service("table_stack", "--delay", "hold=0.8"))
    monkeypatch.setattr(outside, "TOTAL_S", 0.2)
    with says.raised(StepFailure):
        perform(hold())


def test_a_step_with_little_time_left_gives_up_before_its_deadline(services: dict[str, str]) -> None:
    tool, arguments, _ = hold()
    with pytest.raises(StepFailure, match="did not answer"):
        perform((tool, arguments, context(deadline_ms=round(time.time() * 1000) - 1)))


def test_one_connection_serves_the_calls_of_a_process(services: dict[str, str]) -> None:
    async def run() -> bool:
        performer = ToolPerformer(REGISTRY)
        await performer.perform(*hold("one"))
        first = outside._client()
        try:
            await performer.perform(*hold("two"))
            return outside._client() is first
        finally:
            await first.aclose()

    assert asyncio.run(run())
