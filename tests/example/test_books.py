"""The books of a service: what counts as a double booking, and what does not."""

from __future__ import annotations

from typing import Any

from examples.services.books import Books

LANTERN: dict[str, Any] = {
    "reference": "saga-1",
    "guest": "ada",
    "table": "lisbon/lantern/2",
    "at": "2026-12-24T19:30",
}


def book(books: Books, kind: str, **changed: str) -> Any:
    return books.carried_out(books.receive(kind, None, None), kind, LANTERN | changed)


def test_one_effect_of_each_kind_is_no_double_booking() -> None:
    books = Books("test")
    book(books, "hold")
    book(books, "deposit")
    assert list(books.double_bookings()) == []


def test_the_same_kind_for_the_same_identity_is_a_double_booking() -> None:
    books = Books("test")
    first, second = book(books, "hold"), book(books, "hold")
    (double,) = books.double_bookings()
    assert (double.kind, double.first, double.second) == ("hold", first.n, second.n)


def test_each_further_repetition_counts_once_more() -> None:
    books = Books("test")
    for _ in range(4):
        book(books, "hold")
    assert len(list(books.double_bookings())) == 3


def test_whatever_differs_in_the_identity_is_another_booking() -> None:
    books = Books("test")
    book(books, "hold")
    for name in LANTERN:
        book(books, "hold", **{name: "something else"})
    assert list(books.double_bookings()) == []


def test_what_was_taken_back_may_be_booked_again() -> None:
    books = Books("test")
    first, cancel = book(books, "hold"), book(books, "cancel")
    books.undone(first, cancel)
    book(books, "hold")
    assert list(books.double_bookings()) == []


def test_a_double_booking_stays_one_when_the_first_is_taken_back_later() -> None:
    books = Books("test")
    first = book(books, "hold")
    book(books, "hold")
    books.undone(first, book(books, "cancel"))
    assert len(list(books.double_bookings())) == 1


def test_the_document_holds_what_its_summary_counts() -> None:
    books = Books("test")
    book(books, "hold")
    book(books, "hold")
    books.receive("hold", "key", None).replay_of = 1
    document = books.document()
    assert document["summary"] == {"requests": 3, "replays": 1, "effects": 2, "double_bookings": 1}
    assert [len(document[name]) for name in ("requests", "effects", "double_bookings")] == [3, 2, 1]
