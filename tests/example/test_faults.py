"""Faults of the services that are switched on while they run: where they hold, and what has been done all the same."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from examples.services.faults import Fault, Faults, place_of
from tests.kit.patience import PATIENCE_S

HOLD = {"reference": "s", "guest": "ada", "table": "graz/lantern/2", "party": 4, "at": "2026-12-24T19:30:00Z"}
ORDER = {
    "reference": "s",
    "guest": "ada",
    "items": ["Soup"],
    "address": "Home of ada, Graz",
    "at": HOLD["at"],
}


def switch(url: str, place: str, *faults: dict[str, Any]) -> int:
    return httpx.put(f"{url}/faults/{place}", json=list(faults)).status_code


def effects(url: str) -> list[str]:
    return [effect["kind"] for effect in httpx.get(f"{url}/books").json()["effects"]]


@pytest.fixture
def tables(services: dict[str, str]) -> str:
    return services["TABLE_STACK_URL"]


@pytest.mark.parametrize("kind", ["unavailable", "login", "full"])
def test_what_is_refused_because_of_a_fault_is_not_done(tables: str, kind: str) -> None:
    switch(tables, "graz", {"kind": kind})
    assert httpx.post(f"{tables}/holds", json=HOLD).status_code in (401, 409, 503)
    assert effects(tables) == []


@pytest.mark.parametrize("kind", ["nonsense", "shapeless"])
def test_what_is_answered_with_nonsense_is_done(tables: str, kind: str) -> None:
    switch(tables, "graz", {"kind": kind})
    answer = httpx.post(f"{tables}/holds", json=HOLD)
    assert (answer.is_success, "hold" in answer.text) == (True, False)
    assert effects(tables) == ["hold"]


def test_a_caller_that_does_not_wait_is_noticed_and_of_a_late_answer_the_hold_is_there(tables: str) -> None:
    switch(tables, "graz", {"kind": "late", "operations": ["hold"]}, {"kind": "hangs"})
    soon = httpx.Timeout(PATIENCE_S, read=0.05)
    for path, method in (("holds", "POST"), ("tables?city=Graz&party=4&at=2026-12-24T19:30:00Z", "GET")):
        with pytest.raises(httpx.ReadTimeout):
            httpx.request(method, f"{tables}/{path}", json=HOLD if method == "POST" else None, timeout=soon)
    while not effects(tables):  # a busy machine has not begun with it yet
        time.sleep(0.01)
    assert effects(tables) == ["hold"]


def test_a_fault_holds_at_its_place_and_below_and_until_it_is_switched_off(tables: str) -> None:
    switch(tables, "graz/lantern", {"kind": "unavailable"})
    other = HOLD | {"table": "graz/quayside/2", "reference": "t"}
    assert httpx.post(f"{tables}/holds", json=other).status_code == 201
    assert httpx.post(f"{tables}/holds", json=HOLD).status_code == 503
    assert switch(tables, "graz/lantern") == 204
    assert httpx.post(f"{tables}/holds", json=HOLD).status_code == 201


def test_a_fault_that_holds_for_a_number_of_times_is_over_then(tables: str) -> None:
    switch(tables, "graz", {"kind": "unavailable", "operations": ["hold"], "times": 2})
    statuses = [httpx.post(f"{tables}/holds", json=HOLD).status_code for _ in range(3)]
    assert statuses == [503, 503, 201]


def test_what_is_sold_out_in_a_city_is_not_ordered_there(services: dict[str, str]) -> None:
    url = services["OPEN_DELIVERY_URL"]
    cents = httpx.post(f"{url}/quotes", json={"city": "Graz", "items": ["Soup"], "at": HOLD["at"]}).json()[
        "total_cents"
    ]
    switch(url, "graz/soup", {"kind": "full"})
    refused = httpx.post(f"{url}/orders", json=ORDER | {"total_cents": cents})
    assert (refused.status_code, refused.json()["title"]) == (410, "Sold out")
    elsewhere = ORDER | {"address": "Lantern, Ghent", "total_cents": cents}
    assert httpx.post(f"{url}/orders", json=elsewhere).status_code == 201


def test_what_is_no_fault_is_refused(tables: str) -> None:
    assert switch(tables, "graz", {"kind": "tired"}) == 422
    assert httpx.post(f"{tables}/holds", json=HOLD).status_code == 201


def test_a_fault_of_one_time_is_no_fault_at_another() -> None:
    faults = Faults()
    evening = Fault.model_validate({"kind": "full", "at": HOLD["at"]})
    faults._by_place["graz"] = [evening]
    assert evening.at is not None
    assert faults.find("search", "graz", evening.at) == evening
    assert faults.find("search", "graz", evening.at.replace(hour=20)) is None
    assert faults.find("search", "graz/lantern/2", evening.at, ["full"]) == evening
    assert faults.find("search", "graz", evening.at, ["late"]) is None
    assert faults.find("search", "grazing", evening.at) is None


def test_places_are_written_in_one_way() -> None:
    assert place_of(" Graz ", "Olive Yard") == "graz/olive-yard"
