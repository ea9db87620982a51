"""The two services over their own HTTP: what they do, refuse, and never do twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from examples.services import open_delivery, table_stack
from examples.services.serve import Options

AT = "2026-12-24T19:30:00Z"
HOLD = {"reference": "saga-1", "guest": "ada", "table": "lisbon/lantern/2", "party": 4, "at": AT}
ORDER = {"reference": "saga-1", "guest": "ada", "items": ["Cherry cake"], "address": "Lantern", "at": AT}


class Gate:
    """Stands in for `asyncio.sleep`: every operation stops there until the gate is opened."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.arrived = asyncio.Event()

    async def __call__(self, _: float) -> None:
        self.arrived.set()
        await self.open.wait()


def client(
    build: Callable[..., Any], *, honour_keys: bool = True, gate: Gate | None = None
) -> httpx.AsyncClient:
    options = Options(port=0, delays={}, honour_keys=honour_keys, until_eof=False)
    app = build(options, gate) if gate else build(options)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://service")


def using(
    build: Callable[..., Any], use: Callable[[httpx.AsyncClient], Awaitable[None]], **options: Any
) -> None:
    async def run() -> None:
        async with client(build, **options) as http:
            await use(http)

    asyncio.run(run())


async def books(http: httpx.AsyncClient) -> dict[str, Any]:
    document: dict[str, Any] = (await http.get("/books")).json()
    return document


async def price(http: httpx.AsyncClient) -> int:
    quote = (await http.post("/quotes", json={"city": "Lisbon", "items": ORDER["items"], "at": AT})).json()
    return int(quote["total_cents"])


def keyed(key: str) -> dict[str, str]:
    return {"Idempotency-Key": key}


def test_a_table_is_searched_held_paid_for_and_confirmed() -> None:
    async def use(http: httpx.AsyncClient) -> None:
        found = (await http.get("/tables", params={"city": "Lisbon", "party": 4, "at": AT})).json()["tables"]
        assert found[0]["seats"] == 4
        hold = (await http.post("/holds", json=HOLD | {"table": found[0]["id"]})).json()
        assert hold["deposit_cents"] == 3200
        deposit = await http.post(f"/holds/{hold['id']}/deposit", json={"amount_cents": 3200})
        confirm = await http.post(f"/holds/{hold['id']}/confirm")
        assert (deposit.status_code, confirm.status_code) == (201, 201)
        assert [effect["kind"] for effect in (await books(http))["effects"]] == ["hold", "deposit", "confirm"]

    using(table_stack.build, use)


def test_a_table_that_is_held_is_not_found_and_not_held_by_another() -> None:
    async def use(http: httpx.AsyncClient) -> None:
        await http.post("/holds", json=HOLD)
        found = (await http.get("/tables", params={"city": "Lisbon", "party": 4, "at": AT})).json()["tables"]
        assert HOLD["table"] not in [table["id"] for table in found]
        other = await http.post("/holds", json=HOLD | {"guest": "grace", "reference": "saga-2"})
        assert (other.status_code, other.json()["title"]) == (409, "Table taken")

    using(table_stack.build, use)


def test_a_bar_asks_for_no_deposit_and_a_restaurant_does() -> None:
    async def use(http: httpx.AsyncClient) -> None:
        bar = (await http.post("/holds", json=HOLD | {"table": "lisbon/night-heron/2"})).json()
        assert (await http.post(f"/holds/{bar['id']}/confirm")).status_code == 201
        table = (await http.post("/holds", json=HOLD)).json()
        assert (await http.post(f"/holds/{table['id']}/confirm")).json()["title"] == "Deposit missing"
        wrong = await http.post(f"/holds/{table['id']}/deposit", json={"amount_cents": 1})
        assert wrong.json()["title"] == "Wrong deposit"

    using(table_stack.build, use)


def test_a_cancelled_table_is_free_again_refunded_and_may_be_booked_again() -> None:
    async def use(http: httpx.AsyncClient) -> None:
        hold = (await http.post("/holds", json=HOLD)).json()
        await http.post(f"/holds/{hold['id']}/deposit", json={"amount_cents": 3200})
        cancelled = (await http.post(f"/holds/{hold['id']}/cancel", json={"reason": "ill"})).json()
        assert cancelled == {"id": hold["id"], "status": "cancelled", "refunded_cents": 3200}
        assert (await http.post(f"/holds/{hold['id']}/confirm")).json()["title"] == "Hold ended"
        assert (await http.post("/holds", json=HOLD)).status_code == 201
        assert (await books(http))["summary"]["double_bookings"] == 0

    using(table_stack.build, use)


def test_a_delivery_is_quoted_ordered_at_that_price_and_called_off() -> None:
    async def use(http: httpx.AsyncClient) -> None:
        cents = await price(http)
        assert (await http.post("/orders", json=ORDER | {"total_cents": 1})).json()[
            "title"
        ] == "Price changed"
        order = (await http.post("/orders", json=ORDER | {"total_cents": cents})).json()
        assert (await http.post(f"/orders/{order['id']}/cancel")).json()["status"] == "cancelled"
        assert [effect["kind"] for effect in (await books(http))["effects"]] == ["order", "cancel"]

    using(open_delivery.build, use)


def test_the_same_key_and_body_get_the_same_answer_and_no_second_effect() -> None:
    async def use(http: httpx.AsyncClient) -> None:
        first = await http.post("/holds", json=HOLD, headers=keyed("k"))
        again = await http.post("/holds", json=HOLD, headers=keyed("k"))
        assert (again.status_code, again.json()) == (first.status_code, first.json())
        assert again.headers["Idempotency-Replayed"] == "true"
        assert (await books(http))["summary"] == {
            "requests": 2,
            "replays": 1,
            "effects": 1,
            "double_bookings": 0,
        }

    using(table_stack.build, use)


@pytest.mark.parametrize("path", ["/holds", "/holds/hold-1/cancel"])
def test_the_same_key_for_another_body_or_path_is_refused(path: str) -> None:
    async def use(http: httpx.AsyncClient) -> None:
        await http.post("/holds", json=HOLD, headers=keyed("k"))
        other = await http.post(path, json=HOLD | {"party": 5}, headers=keyed("k"))
        assert other.status_code == 422
        assert "'k'" in other.json()["detail"]
        assert (await books(http))["summary"]["effects"] == 1

    using(table_stack.build, use)


def test_a_repeat_that_overtakes_its_first_waits_for_it() -> None:
    async def run() -> None:
        gate = Gate()
        async with client(table_stack.build, gate=gate) as http:
            first = asyncio.create_task(http.post("/holds", json=HOLD, headers=keyed("k")))
            await gate.arrived.wait()
            second = asyncio.create_task(http.post("/holds", json=HOLD, headers=keyed("k")))
            while len((await books(http))["requests"]) < 2:  # nothing signals an arrival
                await asyncio.sleep(0)
            assert not second.done()
            gate.open.set()
            assert (await first).json() == (await second).json()
            assert (await books(http))["summary"]["effects"] == 1

    asyncio.run(run())


def test_a_caller_that_hangs_up_has_its_effect_once_and_hears_of_it_when_it_asks_again() -> None:
    async def run() -> None:
        gate = Gate()
        async with client(table_stack.build, gate=gate) as http:
            first = asyncio.create_task(http.post("/holds", json=HOLD, headers=keyed("k")))
            await gate.arrived.wait()
            first.cancel()
            gate.open.set()
            answer = await http.post("/holds", json=HOLD, headers=keyed("k"))
            assert answer.status_code == 201
            assert (await books(http))["summary"]["effects"] == 1

    asyncio.run(run())


def test_a_refusal_is_not_remembered_so_that_its_key_can_be_used_again() -> None:
    async def use(http: httpx.AsyncClient) -> None:
        hold = (await http.post("/holds", json=HOLD)).json()
        confirm = f"/holds/{hold['id']}/confirm"
        assert (await http.post(confirm, headers=keyed("c"))).status_code == 409
        await http.post(f"/holds/{hold['id']}/deposit", json={"amount_cents": 3200})
        assert (await http.post(confirm, headers=keyed("c"))).status_code == 201

    using(table_stack.build, use)


@pytest.mark.parametrize("service", ["table-stack", "open-delivery"])
def test_with_idempotency_switched_off_the_books_catch_the_double_booking(service: str) -> None:
    """The proof that 0 double bookings means something: without keys the same calls are counted."""

    async def table(http: httpx.AsyncClient) -> None:
        for _ in range(2):
            await http.post("/holds", json=HOLD, headers=keyed("k"))
        (double,) = (await books(http))["double_bookings"]
        assert (double["kind"], double["identity"]["reference"]) == ("hold", "saga-1")

    async def delivery(http: httpx.AsyncClient) -> None:
        cents = await price(http)
        for _ in range(2):
            await http.post("/orders", json=ORDER | {"total_cents": cents}, headers=keyed("k"))
        document = await books(http)
        assert (document["summary"]["double_bookings"], document["idempotency"]) == (1, False)

    if service == "table-stack":
        using(table_stack.build, table, honour_keys=False)
    else:
        using(open_delivery.build, delivery, honour_keys=False)


def test_a_new_key_for_the_same_booking_is_caught_as_well() -> None:
    async def use(http: httpx.AsyncClient) -> None:
        await http.post("/holds", json=HOLD, headers=keyed("one"))
        await http.post("/holds", json=HOLD, headers=keyed("two"))
        assert (await books(http))["summary"]["double_bookings"] == 1

    using(table_stack.build, use)


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b'{"reference": ', 400, "line 1 column"),
        (b"{}", 422, "/reference: Field required"),
        (b'{"reference": 1}', 422, "/reference: Input should be a valid string"),
        (b" " * 70_000, 413, "65536 bytes"),
    ],
)
def test_a_bad_request_is_told_what_is_wrong_and_changes_nothing(body: bytes, status: int, said: str) -> None:
    async def use(http: httpx.AsyncClient) -> None:
        answer = await http.post("/holds", content=body)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
        assert said in answer.json()["detail"]
        assert (await books(http))["summary"]["effects"] == 0

    using(table_stack.build, use)


def test_requests_are_in_the_books_with_their_key_and_trace() -> None:
    async def use(http: httpx.AsyncClient) -> None:
        await http.post("/holds", json=HOLD, headers=keyed("k") | {"traceparent": "00-ab-cd-01"})
        (request,) = (await books(http))["requests"]
        assert (request["key"], request["traceparent"], request["status"]) == ("k", "00-ab-cd-01", 201)

    using(table_stack.build, use)
