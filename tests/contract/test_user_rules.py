"""Contract of `Budgets`: what an operator has decided about one user, and how the accounts of that user's days heed it."""

from __future__ import annotations

from functools import partial

import pytest

from baton.core.money import BLOCKED, NO_RULE, UserRule, blocked_rule, limited_rule, unblocked_rule
from baton.errors import CorruptLog
from baton.ports import Account, ReservationChange, Sums
from tests.contract.stores import AwsStores, Stores
from tests.contract.test_budgets import ADA, CENT, LIMIT, NOW, one, opened, opening
from tests.contract.test_concurrency import at_once

FIRST = UserRule(1, False, 3 * CENT, "op", NOW, "spends too fast")
FULL = UserRule(2, True, 3 * CENT, "op", NOW, "an abuser: “ß”")


def test_a_user_has_no_rule_at_first(stores: Stores) -> None:
    assert stores.budgets.read_rule("acme", ADA.user) == NO_RULE
    assert stores.budgets.read(ADA).rule == NO_RULE
    assert not stores.budgets.ruled("acme")


def test_a_rule_is_read_with_each_day_of_its_user(stores: Stores) -> None:
    opened(stores.budgets)
    assert stores.budgets.write_rule("acme", ADA.user, FIRST) is None
    assert stores.budgets.write_rule("acme", ADA.user, FULL) is None
    assert stores.budgets.read_rule("acme", ADA.user) == FULL
    assert stores.budgets.read(ADA) == Sums(0, 100 * CENT, 1, rule=FULL)
    assert stores.budgets.read(Account("acme", ADA.user, ADA.day + 400)) == Sums(rule=FULL)
    for other in (Account("acme", "bob", ADA.day), Account("other", ADA.user, ADA.day), ADA.of_tenant):
        assert stores.budgets.read(other) == Sums()


def test_a_rule_is_put_if_what_is_there_has_the_version_before(stores: Stores) -> None:
    assert stores.budgets.write_rule("acme", "ada", FULL) == NO_RULE
    assert stores.budgets.write_rule("acme", "ada", FIRST) is None
    assert stores.budgets.write_rule("acme", "ada", UserRule(1, by="another")) == FIRST
    assert stores.budgets.write_rule("acme", "ada", FIRST) == FIRST, "a repeated write finds itself"
    assert stores.budgets.read_rule("acme", "ada") == FIRST


def test_of_operators_who_decide_at_once_one_comes_first(concurrent_stores: Stores) -> None:
    budgets = concurrent_stores.budgets
    rules = [UserRule(1, by=f"op{number}") for number in range(6)]
    answers = at_once([partial(budgets.write_rule, "acme", "ada", rule) for rule in rules])
    assert answers.count(None) == 1
    assert budgets.read_rule("acme", "ada") == rules[answers.index(None)]


def test_users_with_a_rule_are_listed_by_their_names(stores: Stores) -> None:
    for user in ("c", "arn:aws:sts::1:assumed-role/x/y", "b"):
        stores.budgets.write_rule("acme", user, FIRST)
    stores.budgets.write_rule("other", "d", FIRST)
    assert list(stores.budgets.ruled("acme", limit=2)) == ["arn:aws:sts::1:assumed-role/x/y", "b"]
    assert list(stores.budgets.ruled("acme", "b")) == ["c"]


def test_the_account_of_a_day_says_the_latest_rule_that_it_was_told(stores: Stores) -> None:
    budgets = stores.budgets
    budgets.tell_rule(ADA, FULL)
    budgets.tell_rule(ADA, FIRST)
    refused = budgets.move(ADA, opening(), NOW)
    assert not refused.is_done
    assert refused.sums == Sums(rule=UserRule(2, True))
    lifted = unblocked_rule(FULL, "op", "", NOW)
    budgets.tell_rule(ADA, lifted)
    assert budgets.read(ADA).rule == UserRule(3, False, 3 * CENT)
    budgets.tell_rule(ADA, limited_rule(lifted, None, "op", "", NOW))
    assert budgets.read(ADA).rule == UserRule(4)


@pytest.mark.parametrize("known", [0, 1, 2])
def test_a_change_with_a_limit_is_refused_until_it_heeds_the_rule(stores: Stores, known: int) -> None:
    stores.budgets.tell_rule(ADA, FULL)
    change = ReservationChange("a", None, one(CENT), limit=LIMIT, rule=known)
    assert stores.budgets.move(ADA, change, NOW).is_done is (known == 2)


def test_what_was_held_before_is_settled_whatever_the_rule_says(stores: Stores) -> None:
    change = opened(stores.budgets)
    stores.budgets.tell_rule(ADA, FULL)
    answer = stores.budgets.move(ADA, ReservationChange("a", change.after, None, 70 * CENT), NOW)
    assert answer.is_done
    assert answer.sums == Sums(70 * CENT, 70 * CENT, 0, rule=UserRule(2, True))
    more = ReservationChange("a", None, one(1), limit=BLOCKED, rule=2)
    assert not stores.budgets.move(ADA, more, NOW).is_done, "nothing more is held for a user who is blocked"
    assert not stores.budgets.move(Account("acme", "new", 1), more, NOW).is_done, "nor on an empty account"


def test_a_rule_and_the_day_are_one_request(moto: AwsStores) -> None:
    opened(moto.budgets)
    moto.budgets.write_rule("acme", ADA.user, blocked_rule(NO_RULE, "op", "", NOW))
    asked = list[str]()
    moto._aws.dynamodb.meta.events.register(
        "before-call.dynamodb", lambda model, **_: asked.append(model.name)
    )
    moto.budgets.read(ADA)
    assert asked == ["Query"]


def test_a_rule_that_cannot_be_read_says_so(moto: AwsStores) -> None:
    moto.budgets.write_rule("acme", "ada", FIRST)
    moto._aws.dynamodb.put_item(
        TableName=moto._table,
        Item={"pk": {"S": "T#acme#BUDGET#ada"}, "sk": {"S": "RULE"}, "d": {"B": b"x"}},
    )
    with pytest.raises(CorruptLog, match="the rule of"):
        moto.budgets.read_rule("acme", "ada")
