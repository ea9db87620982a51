"""`std.pay` against a payment service that keeps books: whatever happens on the way, one payment or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from baton.adapters.http_client import LazyHttpClient
from baton.testing.outside import HOSTS
from tests.kit.payments import DOWN, LOST, NO, SLOW, Payments, payment_service
from tests.kit.sentences import Says
from tests.tools.outside import Crash, CrashingClient, context, failure, perform, services

WANTED: dict[str, Any] = {"amount": 2_500, "currency": "EUR", "to": "lantern"}


HTTP = services()


@pytest.fixture
def books() -> Iterator[Payments]:
    with payment_service() as books:
        yield books


def pay(books: Payments, key: str = "k1", **changes: Any) -> Any:
    return perform("std.pay", HTTP, context(key), service=books.url, **WANTED | changes)


def refusal(books: Payments, seconds: float = 20, **changes: Any) -> Any:
    return failure("std.pay", HTTP, context(seconds=seconds), service=books.url, **WANTED | changes)


def find(books: Payments, key: str = "k1") -> Any:
    return perform("std.find_payment", HTTP, context(key), service=books.url)


def paid_once(books: Payments) -> bool:
    return (len(books.paid), books.accounts["default"], books.held) == (1, 97_500, 0)


def test_a_payment_is_reserved_executed_and_confirmed(books: Payments) -> None:
    assert pay(books) == {
        "payment": "p-1", "status": "confirmed", "amount": 2_500, "currency": "EUR", "to": "lantern", "reference": "k1",
    }  # fmt: skip
    assert paid_once(books)
    assert books.requests == [
        ("find", "k1"), ("reserve", "k1-reserve-1"), ("execute", "k1-execute-1"), ("confirm", "k1-confirm-1"),
    ]  # fmt: skip
    assert [one.status for one in books.paid] == ["confirmed"]


def test_the_same_key_is_the_same_payment_and_another_key_is_another(books: Payments) -> None:
    assert pay(books) == pay(books)
    assert paid_once(books)
    assert pay(books, "k2")["payment"] == "p-2"
    assert books.accounts["default"] == 95_000


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(4))
def test_after_a_crash_at_any_phase_the_same_payment_is_finished(
    books: Payments, at: int, after: bool
) -> None:
    client = CrashingClient(LazyHttpClient(HOSTS), at, after=after)
    died = failure("std.pay", services(http=client, payments_url=books.url), context(), **WANTED)
    assert isinstance(died.__cause__, Crash)
    assert client.died
    moved = len(books.paid) == 1
    assert find(books)["happened"] is moved
    assert pay(books)["payment"] == "p-1"
    assert paid_once(books)


@pytest.mark.parametrize("phase", ["find", "reserve", "execute", "confirm"])
def test_an_answer_that_is_lost_is_a_failure_that_the_next_attempt_mends(books: Payments, phase: str) -> None:
    books.faults[phase] = [LOST]
    assert refusal(books).code == "connection_failed"
    assert pay(books)["payment"] == "p-1"
    assert paid_once(books)


@pytest.mark.parametrize("phase", ["find", "reserve", "execute", "confirm"])
def test_a_service_that_is_closed_says_when_to_come_back(books: Payments, phase: str) -> None:
    books.faults[phase] = [DOWN]
    error = refusal(books)
    assert (error.code, error.status, error.retry_after) == ("service_unavailable", 503, "7")
    assert pay(books)["payment"] == "p-1"
    assert paid_once(books)


def test_a_service_that_is_slow_is_left_and_asked_again(books: Payments, says: Says) -> None:
    books.faults["execute"] = [SLOW]
    error = refusal(books, seconds=0.4)
    assert error.code == "timeout"
    says.within(error.message)
    assert find(books) == {"happened": True, "result": pay(books)}
    assert paid_once(books)


def test_a_refusal_releases_the_reservation_and_a_later_attempt_makes_another(books: Payments) -> None:
    books.refuse = 422
    for attempt in (1, 2):
        error = refusal(books)
        assert (error.code, error.status, error.happened) == ("business_rule", 422, False)
        assert error.message.endswith("is released: 127.0.0.1 answered 422: the payee is blocked")
        assert [one.status for one in books.reservations.values()] == ["released"] * attempt
    assert (books.paid, books.held, find(books)) == ([], 0, {"happened": False})
    books.refuse = 0
    assert pay(books)["payment"] == "p-1"
    assert paid_once(books)


def test_a_confirmation_that_is_refused_is_no_word_on_the_money(books: Payments, says: Says) -> None:
    books.faults["confirm"] = [NO, NO, NO]
    for error in (refusal(books), refusal(books), failure("std.find_payment", HTTP, service=books.url)):
        assert (error.code, error.status, error.happened) == ("invalid_input", 422, True)
        says(error.message)
    assert paid_once(books)
    assert [key for phase, key in books.requests if phase in ("execute", "release")] == ["k1-execute-1"]
    assert find(books) == {"happened": True, "result": pay(books)}
    assert paid_once(books)


@pytest.mark.parametrize("fault", [DOWN, LOST])
def test_a_release_that_fails_is_done_by_the_next_attempt(books: Payments, fault: str) -> None:
    books.refuse, books.faults["release"] = 402, [fault]
    assert refusal(books).code in ("service_unavailable", "connection_failed")
    books.refuse = 0
    if fault == DOWN:  # too late for this reservation: what its key was told stays
        assert refusal(books).code == "business_rule"
    assert pay(books)["payment"] == "p-1"
    assert [one.status for one in books.reservations.values()] == ["released", "confirmed"]
    assert paid_once(books)


@pytest.mark.parametrize("status", [401, 409, 425, 429])
def test_a_refusal_that_says_nothing_of_the_payment_keeps_its_reservation(
    books: Payments, status: int
) -> None:
    books.refuse = status
    assert refusal(books).status == status
    assert books.held == 2_500


def test_an_account_that_has_not_enough_is_a_failure_and_reserves_nothing(books: Payments) -> None:
    error = refusal(books, amount=100_001)
    assert (error.status, books.held, books.reservations) == (402, 0, {})


def test_a_key_under_which_something_else_was_paid_is_refused(books: Payments) -> None:
    pay(books)
    error = refusal(books, amount=1)
    assert error.code in ("conflict", "invalid_input")
    assert paid_once(books)


@pytest.mark.parametrize(
    "wrong", [{"amount": 0}, {"amount": -5}, {"amount": 2.5}, {"currency": "euro"}, {"to": ""}]
)
def test_what_is_no_payment_is_refused_before_the_service_is_asked(
    books: Payments, wrong: dict[str, Any]
) -> None:
    assert refusal(books, **wrong).code == "input_invalid"
    assert not books.requests


def test_a_deployment_names_its_payment_service(books: Payments) -> None:
    perform("std.pay", services(payments_url=books.url + "/"), context(), **WANTED)
    assert paid_once(books)


def test_without_a_service_the_failure_says_what_to_set() -> None:
    error = failure("std.pay", HTTP, **WANTED)
    assert (error.code, "PaymentsUrl" in error.message) == ("input_invalid", True)


def test_a_step_without_a_key_pays_nothing(books: Payments) -> None:
    error = failure("std.pay", HTTP, context(""), service=books.url, **WANTED)
    assert (error.code, books.requests) == ("input_invalid", [])


def test_where_nothing_was_moved_a_look_releases_what_is_reserved(books: Payments) -> None:
    books.faults["execute"] = [DOWN]
    assert refusal(books).happened is True
    assert books.held == 2_500
    assert find(books) == {"happened": False}
    assert (books.paid, books.held) == ([], 0)
    assert pay(books)["payment"] == "p-1"
    assert paid_once(books)


def test_a_look_that_cannot_release_does_not_say_that_nothing_has_happened(books: Payments) -> None:
    books.faults["execute"], books.faults["release"] = [DOWN], [DOWN]
    refusal(books)
    assert failure("std.find_payment", HTTP, service=books.url).status == 503


def test_a_call_that_could_only_look_is_not_in_doubt(books: Payments) -> None:
    books.faults["find"] = [DOWN]
    error = refusal(books)
    assert (error.status, error.happened, error.unsent) == (503, False, True)
