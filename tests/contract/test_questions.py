"""Contract of `Questions`: rows by whom they are for, what expires first in front, and nothing comes back that was taken out."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from baton.ports import QuestionRow, SagaRef
from baton.ports.people import Spot
from tests.contract.stores import AwsStores, Stores
from tests.kit.meter import index_rows

ADA, OPS = "user:ada", "group:ops"
NOW, FAR = 1_000, 2_000_000_000_000


def a_row(saga: str = "s1", **changes: Any) -> QuestionRow:
    fields: dict[str, Any] = {"ask": "0.ask", "type": "approval", "kind": "approval", "title": "Pay?"}
    fields |= {"workflow": "w", "message": "", "to": ADA, "actions": ("approve", "reject")}
    return QuestionRow(saga=saga, **fields | {"asked_at": 500, "expires_at": 9_000, "told": True} | changes)


def put(stores: Stores, *rows: QuestionRow, number: int = 5) -> None:
    for row in rows:
        stores.questions.put("acme", row, number, FAR)


def asked(stores: Stores, audience: str = ADA, now: int = NOW, limit: int = 50) -> list[QuestionRow]:
    rows, after = stores.questions.listed("acme", audience, now, limit)
    assert after is None
    return list(rows)


def test_a_row_comes_back_as_it_was_put_for_its_audience_and_tenant_only(stores: Stores) -> None:
    mine, theirs = a_row(message="ü" * 300), a_row("s2", to=OPS, told=False)
    put(stores, mine, theirs)
    stores.questions.put("globex", a_row("s3"), 5, FAR)
    assert (asked(stores), asked(stores, OPS), asked(stores, "user:ad")) == ([mine], [theirs], [])


def test_what_expires_first_comes_first_and_what_never_does_comes_last(stores: Stores) -> None:
    rows = [a_row("s1", expires_at=0), a_row("s2", expires_at=7_000), a_row("s3", expires_at=3_000)]
    put(stores, *rows)
    assert [row.saga for row in asked(stores)] == ["s3", "s2", "s1"]


def test_what_has_expired_is_not_listed(stores: Stores) -> None:
    put(stores, a_row("s1", expires_at=3_000), a_row("s2", expires_at=3_001), a_row("s3", expires_at=0))
    assert [row.saga for row in asked(stores, now=3_000)] == ["s2", "s3"]


@pytest.mark.parametrize("audience", [ADA, OPS])
@pytest.mark.parametrize("limit", [1, 3, 4, 50])
def test_a_list_goes_on_behind_any_of_its_rows_and_those_of_one_moment_come_once(
    stores: Stores, audience: str, limit: int
) -> None:
    rows = [a_row(f"s{n}", to=audience, expires_at=4_000 + n // 7 if n < 14 else 0) for n in range(21)]
    put(stores, *rows)
    seen: list[QuestionRow] = []
    after: Spot | None = None
    while True:
        page, after = stores.questions.listed("acme", audience, NOW, limit, after)
        assert len(page) <= limit
        seen += page
        if after is None:
            break
    assert sorted(row.saga for row in seen) == sorted(row.saga for row in rows)
    assert [row.spot[0] for row in seen] == sorted(row.spot[0] for row in rows)


@pytest.mark.parametrize("audience", [ADA, OPS])
def test_a_list_goes_on_where_the_row_is_gone(stores: Stores, audience: str) -> None:
    put(stores, *(a_row(f"s{n}", to=audience, expires_at=4_000 + n) for n in range(4)))
    page, _ = stores.questions.listed("acme", audience, NOW, 2)
    stores.questions.remove(SagaRef("acme", "s1"), "0.ask", 8, FAR)
    rest, _ = stores.questions.listed("acme", audience, NOW, 9, page[-1].spot)
    assert [row.saga for row in rest] == ["s2", "s3"]
    assert stores.questions.listed("acme", audience, 4_003, 9, page[-1].spot) == ([], None)


def test_the_rows_of_a_group_are_spread_and_those_of_a_person_are_in_one_place(moto: AwsStores) -> None:
    put(moto, *(a_row(f"s{n}", to=OPS) for n in range(40)))
    put(moto, *(a_row(f"p{n}") for n in range(40)))
    keys = Counter(item["ask_key"]["S"] for item in moto.scan())
    assert keys.pop("T#acme#ASKED#user:ada") == 40
    assert set(keys) == {f"T#acme#ASKED{shard}#group:ops" for shard in ("", 1, 2, 3)}
    assert min(keys.values()) >= 4


def test_a_row_that_is_put_again_moves_with_its_audience_and_its_end(stores: Stores) -> None:
    put(stores, a_row())
    moved = a_row(to=OPS, expires_at=8_000)
    put(stores, moved, number=6)
    put(stores, moved, number=6)
    assert (asked(stores), asked(stores, OPS)) == ([], [moved])


def test_a_put_that_lands_after_the_removal_brings_nothing_back(stores: Stores) -> None:
    ref = SagaRef("acme", "s1")
    put(stores, a_row(), number=5)
    stores.questions.remove(ref, "0.ask", 8, FAR)
    put(stores, a_row(), number=5)
    assert asked(stores) == []
    stores.questions.remove(SagaRef("acme", "s9"), "0.ask", 8, FAR)  # it was never there
    put(stores, a_row("s9"), number=7)
    assert asked(stores) == []
    put(stores, a_row(), number=9)  # a fork has opened it again
    stores.questions.remove(ref, "0.ask", 8, FAR)
    assert asked(stores) == [a_row()]


def test_of_two_puts_the_one_with_the_higher_number_stays(stores: Stores) -> None:
    put(stores, a_row(told=True), number=11)
    put(stores, a_row(told=False), number=10)
    assert [row.told for row in asked(stores)] == [True]


def test_the_store_knows_what_was_taken_out_of_a_saga_and_as_of_which_number(stores: Stores) -> None:
    put(stores, a_row(), a_row(ask="0.b"), a_row("s2"))
    ref = SagaRef("acme", "s1")
    stores.questions.remove(ref, "0.ask", 8, FAR)
    stores.questions.remove(ref, "0.never", 6, FAR)
    stores.questions.remove(SagaRef("acme", "s3"), "0.c", 8, FAR)
    stores.questions.remove(SagaRef("globex", "s1"), "0.d", 8, FAR)
    found = [set(stores.questions.removed(ref, number)) for number in (6, 7, 9)]
    assert found == [{"0.ask", "0.never"}, {"0.ask"}, set()]
    put(stores, a_row(), number=9)
    assert set(stores.questions.removed(ref, 6)) == {"0.never"}


@pytest.mark.parametrize("audience", ["user:a#b/c", "group:" + "ü" * 3_000, "on_call"])
def test_any_name_has_an_inbox_of_its_own(stores: Stores, audience: str) -> None:
    put(stores, a_row(to=audience))
    assert (len(asked(stores, audience)), asked(stores, audience + "x")) == (1, [])


def test_a_row_that_was_taken_out_is_in_no_index_and_expires(moto: AwsStores) -> None:
    put(moto, a_row())
    (item,) = moto.scan()
    assert set(index_rows(item)) == {"InboxIndex"}
    moto.questions.remove(SagaRef("acme", "s1"), "0.ask", 8, FAR)
    (item,) = moto.scan()
    assert (set(index_rows(item)), set(item)) == (set(), {"pk", "sk", "seq", "ttl"})


def test_what_has_expired_keeps_no_later_saga_of_its_id_from_asking(moto: AwsStores) -> None:
    moto.questions.remove(SagaRef("acme", "s1"), "0.ask", 90, 1_000)
    put(moto, a_row(), number=5)
    assert asked(moto) == [a_row()]
