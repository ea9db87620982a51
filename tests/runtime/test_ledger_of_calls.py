"""The money of the calls within attempts: what is held before each, and what a saga may still spend."""

from __future__ import annotations

from decimal import Decimal

import pytest

from baton.core.log.state import Outbox
from baton.ports import NoRoom, SagaRef, Sums
from baton.runtime.money.halting import Halted
from tests.kit.sentences import Says
from tests.runtime.desk import DAY, DOLLAR, Desk, run, state, step

# ---- several calls in one attempt


def test_a_call_is_covered_by_what_is_left_of_what_was_held_before_more_is() -> None:
    desk = Desk()
    ledger, spent = desk.ledger(), list[Decimal]()
    run(ledger.reserve(state(), step(300), spent))
    asked = desk.budgets.calls
    for _ in range(3):
        run(ledger.cover(state(), step(300), "t", 100))
        spent.append(Decimal("0.0001"))
    assert desk.budgets.calls == asked
    run(ledger.cover(state(), step(300), "t", 100))
    assert desk.sums() == Sums(300, 400, 1)
    run(ledger.settle(state(), step(300), 350))
    run(ledger.drain(SagaRef("acme", "s1")))
    assert desk.sums() == Sums(350, 350, 0)


def test_what_was_spent_without_having_been_held_counts_before_the_next_call_and_only_once() -> None:
    desk = Desk()
    ledger, spent = desk.ledger(), [Decimal(1)]
    run(ledger.reserve(state(), step(), spent))
    run(ledger.cover(state(), step(), "t", DOLLAR))
    assert desk.sums() == Sums(DOLLAR, 2 * DOLLAR, 1)
    spent.append(Decimal("0.5"))
    run(ledger.drain(SagaRef("acme", "s1")))
    assert desk.sums() == Sums(1_500_000, 1_500_000, 0)


def test_a_call_that_the_day_has_no_money_for_is_refused_whichever_saga_spent_it(says: Says) -> None:
    desk = Desk(user_day=250)
    ledger, spent = desk.ledger(), list[Decimal]()
    run(ledger.reserve(state(), step(200), spent))
    spent.append(Decimal("0.0002"))
    with pytest.raises(Halted) as refused:
        run(ledger.cover(state(), step(200), "other", 100))
    says(refused.value.halt.parked.message)
    assert refused.value.halt.parked.node == "a"
    keys = [notice.key for notice in run(ledger.settle(state(), step(200), 200))]
    assert keys == [f"budget80/user/ada/{DAY}"]
    assert desk.sums() == Sums(200, 200, 0)


def test_an_attempt_that_lacked_what_others_hold_begins_with_that_the_next_time() -> None:
    desk = Desk(user_day=500)
    ledger, other, spent = desk.ledger(), desk.ledger(), [Decimal("0.0001")]
    run(other.reserve(state("other"), step(300), []))
    run(ledger.reserve(state(), step(100), spent))
    with pytest.raises(NoRoom) as busy:
        run(ledger.cover(state(), step(100), "t", 150))
    assert not isinstance(busy.value, Halted)
    run(ledger.settle(state(), step(100), 100))
    run(other.settle(state("other"), step(300), 50))
    run(other.reserve(state("other"), step(150), []))
    with pytest.raises(NoRoom):
        run(ledger.reserve(state(), step(100), []))  # for which there would be room
    run(other.settle(state("other"), step(150), 0))
    run(ledger.reserve(state(), step(100), []))
    assert desk.sums() == Sums(150, 400, 1)


# ---- a saga's own limit


@pytest.mark.parametrize("user_day", [0, 5 * DOLLAR])
def test_a_saga_does_not_spend_more_than_it_may_call_by_call(user_day: int, says: Says) -> None:
    desk = Desk(user_day=user_day, saga=DOLLAR)
    ledger, spent, of = desk.ledger(), list[Decimal](), state(spent=500_000)
    run(ledger.reserve(of, step(300_000), spent))
    spent.append(Decimal("0.3"))
    with pytest.raises(Halted) as refused:
        run(ledger.cover(of, step(300_000), "other", 200_001))
    halt = refused.value.halt
    assert (halt.parked.code, halt.parked.node, halt.parked.until) == ("budget_saga", "a", 0)
    says(halt.parked.message)
    assert [notice.key for notice in halt.notices] == ["budget100/saga/s1/1000000"]
    assert desk.budgets.calls == (0 if not user_day else 1)


def test_what_a_saga_has_spent_counts_until_its_log_says_so_and_what_is_under_way_while_it_is() -> None:
    desk = Desk(user_day=0, saga=DOLLAR)
    ledger, of = desk.ledger(), state(tokens={"a": {}, "b": {}, "c": {}})
    run(ledger.reserve(of, step(300_000, "a"), []))
    run(ledger.reserve(of, step(300_000, "b"), over := list[Decimal]()))
    over.append(Decimal("0.4"))
    for _ in range(2):
        with pytest.raises(NoRoom) as busy:
            run(ledger.reserve(of, step(300_001, "c"), []))
        assert not isinstance(busy.value, Halted)
    run(ledger.settle(of, step(300_000, "a"), 250_000))
    run(ledger.reserve(of, step(350_000, "c"), []))
    run(ledger.settle(of, step(350_000, "c"), 0))
    for spent, running, fits in ((0, "ab", 350_000), (250_000, "b", 350_000), (650_000, "b", 0)):
        ledger.see(state(spent=spent, tokens=of.tokens), running)
        if fits:
            with pytest.raises(NoRoom):
                run(ledger.reserve(of, step(fits + 1, "c"), []))
        run(ledger.reserve(of, step(fits, "c"), []))
        run(ledger.settle(of, step(fits, "c"), 0))
    run(ledger.reserve(state("other"), step(DOLLAR), []))  # another saga has its own
    assert desk.budgets.calls == 0


def test_a_halted_saga_has_its_owner_told_once() -> None:
    desk = Desk(user_day=0, saga=DOLLAR)
    for of in (state(), state(outbox=Outbox(sent=("budget100/saga/s1/1000000",)))):
        with pytest.raises(Halted) as refused:
            run(desk.ledger().reserve(of, step(2 * DOLLAR), []))
        assert len(refused.value.halt.notices) == (not of.outbox.sent)
