"""Contract of `Log`: take, pending wake and release, the life of a lease."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from baton.ports import LANES, Head, Wake
from tests.contract.stores import OTHER, SAGA, Stores, a_head, a_release

UNTIL, DUE = 90_000, 93_000


def head_of(stores: Stores) -> Head:
    head = stores.log.read_head(SAGA)
    assert head is not None
    return head


def taken(stores: Stores, **changes: Any) -> None:
    """A saga whose lease `me` has taken once."""
    stores.log.create_head(a_head(**changes))
    assert stores.log.take(SAGA, "me", UNTIL, 0, DUE) is not None


# -- take


def test_taking_a_free_lease_makes_it_mine_and_due_when_others_may_take_it(stores: Stores) -> None:
    stores.log.create_head(a_head())
    assert stores.log.take(SAGA, "me", UNTIL, 0, DUE) == a_head()
    assert head_of(stores) == a_head(owner="me", until=UNTIL, due_at=DUE, epoch=1)


def test_a_worker_that_saw_the_head_before_another_took_it_is_refused(stores: Stores) -> None:
    taken(stores)
    before = head_of(stores)
    assert stores.log.take(SAGA, "you", UNTIL + 9, 0, DUE + 9) is None
    assert head_of(stores) == before


def test_an_expired_lease_is_taken_and_the_dead_holder_is_seen(stores: Stores) -> None:
    taken(stores)
    before = stores.log.take(SAGA, "you", UNTIL + 40_000, 1, DUE + 40_000)
    assert before is not None
    assert (before.owner, before.until, before.epoch) == ("me", UNTIL, 1)
    after = head_of(stores)
    assert (after.owner, after.until, after.due_at, after.epoch) == ("you", UNTIL + 40_000, DUE + 40_000, 2)


def test_taking_my_own_lease_again_succeeds_with_a_new_epoch(stores: Stores) -> None:
    taken(stores)
    before = stores.log.take(SAGA, "me", UNTIL + 5, 1, DUE + 5)
    assert before is not None
    assert before.owner == "me"
    assert (head_of(stores).until, head_of(stores).epoch) == (UNTIL + 5, 2)


def test_a_take_that_is_repeated_because_its_answer_was_lost_finds_itself(stores: Stores) -> None:
    taken(stores, folded=4)
    held = head_of(stores)
    assert stores.log.take(SAGA, "me", UNTIL, 0, DUE) == held
    assert head_of(stores) == held


def test_a_take_that_arrives_after_its_own_release_is_refused(stores: Stores) -> None:
    taken(stores)
    stores.log.release(SAGA, "me", 1, a_release())
    before = head_of(stores)
    assert stores.log.take(SAGA, "me", UNTIL, 0, DUE) is None
    assert head_of(stores) == before


@pytest.mark.parametrize("is_free", [False, True])
def test_a_take_that_arrives_after_that_of_another_is_refused(stores: Stores, is_free: bool) -> None:
    """Both had seen the same head; the client of the first has long given up."""
    stores.log.create_head(a_head())
    stores.log.take(SAGA, "you", UNTIL, 0, DUE)
    if is_free:
        stores.log.release(SAGA, "you", 1, a_release())
    before = head_of(stores)
    assert stores.log.take(SAGA, "me", UNTIL, 0, DUE) is None
    assert head_of(stores) == before


def test_a_take_that_arrives_after_a_later_one_of_the_same_owner_is_refused(stores: Stores) -> None:
    taken(stores)
    stores.log.take(SAGA, "me", UNTIL + 5, 1, DUE + 5)
    assert stores.log.take(SAGA, "me", UNTIL, 0, DUE) is None
    assert head_of(stores).until == UNTIL + 5


def test_taking_a_saga_without_a_head_is_refused_and_makes_none(stores: Stores) -> None:
    assert stores.log.take(SAGA, "me", UNTIL, 0, DUE) is None
    assert stores.log.read_head(SAGA) is None


def test_taking_removes_the_wake_and_returns_it(stores: Stores) -> None:
    stores.log.create_head(a_head(wake=Wake(v=3)))
    before = stores.log.take(SAGA, "me", UNTIL, 0, DUE)
    assert before is not None
    assert before.wake == Wake(v=3)
    assert head_of(stores).wake is None


def test_a_take_that_arrives_after_its_lease_was_renewed_is_refused(stores: Stores) -> None:
    """It would end the lease before its holder thinks that it ends."""
    taken(stores)
    assert stores.log.renew(SAGA, "me", 1, UNTIL + 5)
    assert stores.log.take(SAGA, "me", UNTIL, 0, DUE) is None
    assert head_of(stores).until == UNTIL + 5


def test_a_nudge_survives_a_take_that_arrives_twice(stores: Stores) -> None:
    """It came after the load that followed the first of the two."""
    taken(stores)
    stores.log.leave_wake(SAGA, "me", 1, 7)
    assert stores.log.take(SAGA, "me", UNTIL, 0, DUE) is not None
    assert head_of(stores).pending_wake == 7
    assert not stores.log.release(SAGA, "me", 1, a_release(folded=6))


def test_the_nudge_of_a_dead_holder_stays_for_its_heir_who_has_folded_it_by_the_release(
    stores: Stores,
) -> None:
    taken(stores)
    stores.log.leave_wake(SAGA, "me", 1, 7)
    before = stores.log.take(SAGA, "you", UNTIL + 40_000, 1, DUE + 40_000)
    assert before is not None
    assert before.pending_wake == head_of(stores).pending_wake == 7
    assert stores.log.release(SAGA, "you", 2, a_release(folded=7))
    assert head_of(stores).pending_wake == 0


@pytest.mark.parametrize("due_at", [61_000, DUE])
@pytest.mark.parametrize("lane", LANES)
def test_a_take_leaves_a_due_time_that_is_not_after_its_own_where_it_is(
    stores: Stores, due_at: int, lane: str
) -> None:
    stores.log.create_head(a_head(due_at=due_at, lane=lane, wake=Wake(v=3)))
    assert stores.log.take(SAGA, "me", UNTIL, 0, DUE, True) is not None
    assert head_of(stores) == a_head(owner="me", until=UNTIL, due_at=due_at, lane=lane, epoch=1)


@pytest.mark.parametrize("due_at", [DUE + 1, None])
def test_a_take_is_refused_where_the_due_time_that_was_to_stay_is_gone_or_later_by_now(
    stores: Stores, due_at: int | None
) -> None:
    """A holder that was thought dead has given it back since: the epoch does not tell."""
    taken(stores)
    stores.log.release(SAGA, "me", 1, a_release(due_at=due_at))
    before = head_of(stores)
    assert stores.log.take(SAGA, "you", UNTIL, 1, DUE, True) is None
    assert head_of(stores) == before


def test_a_take_that_left_the_due_time_and_is_repeated_finds_itself(stores: Stores) -> None:
    stores.log.create_head(a_head())
    stores.log.take(SAGA, "me", UNTIL, 0, DUE, True)
    held = head_of(stores)
    assert stores.log.take(SAGA, "me", UNTIL, 0, DUE, True) == held
    assert head_of(stores) == held


# -- renewal


def test_a_renewal_moves_the_end_and_nothing_else(stores: Stores) -> None:
    taken(stores)
    held = head_of(stores)
    assert stores.log.renew(SAGA, "me", 1, UNTIL + 5)
    assert head_of(stores) == msgspec.structs.replace(held, until=UNTIL + 5)
    assert stores.log.renew(SAGA, "me", 1, UNTIL + 5), "repeated, it finds itself"


def test_a_renewal_that_arrives_late_never_brings_the_end_nearer(stores: Stores) -> None:
    taken(stores)
    assert stores.log.renew(SAGA, "me", 1, UNTIL + 9)
    assert not stores.log.renew(SAGA, "me", 1, UNTIL + 5)
    assert head_of(stores).until == UNTIL + 9


def test_a_renewal_is_refused_after_any_other_take_and_after_the_release(stores: Stores) -> None:
    taken(stores)
    stores.log.take(SAGA, "me", UNTIL + 1, 1, DUE)
    assert not stores.log.renew(SAGA, "me", 1, UNTIL + 5)
    stores.log.take(SAGA, "you", UNTIL + 1, 2, DUE)
    assert not stores.log.renew(SAGA, "me", 2, UNTIL + 5)
    stores.log.release(SAGA, "you", 3, a_release())
    before = head_of(stores)
    assert not stores.log.renew(SAGA, "you", 3, UNTIL + 5)
    assert head_of(stores) == before


# -- postpone


def test_a_head_that_is_overdue_is_postponed_and_nothing_else_of_it_changes(stores: Stores) -> None:
    full = a_head(folded=3, epoch=2, pending_wake=3, armed=70_000, due_at=61_000)
    stores.log.create_head(full)
    assert stores.log.postpone(SAGA, 61_000, 99_000)
    assert head_of(stores) == msgspec.structs.replace(full, due_at=99_000)


@pytest.mark.parametrize("due_at", [61_001, None])
def test_a_head_that_is_not_due_is_not_postponed(stores: Stores, due_at: int | None) -> None:
    stores.log.create_head(a_head(due_at=due_at))
    assert not stores.log.postpone(SAGA, 61_000, 99_000)
    assert head_of(stores).due_at == due_at


def test_a_head_under_a_lease_is_not_postponed(stores: Stores) -> None:
    taken(stores)
    before = head_of(stores)
    assert not stores.log.postpone(SAGA, UNTIL, 999_000)
    assert head_of(stores) == before


@pytest.mark.parametrize(("now", "is_postponed"), [(UNTIL - 1, False), (UNTIL, True)])
def test_a_head_that_is_overdue_under_a_lease_is_postponed_once_that_is_over(
    stores: Stores, now: int, is_postponed: bool
) -> None:
    stores.log.create_head(a_head())
    stores.log.take(SAGA, "me", UNTIL, 0, DUE, True)
    assert stores.log.postpone(SAGA, now, 999_000) == is_postponed
    assert head_of(stores).due_at == (999_000 if is_postponed else 61_000)


def test_a_postponing_makes_no_head(stores: Stores) -> None:
    assert not stores.log.postpone(SAGA, 61_000, 99_000)
    assert stores.log.read_head(SAGA) is None


# -- pending wake


def test_a_nudge_leaves_its_version_for_the_holder(stores: Stores) -> None:
    taken(stores)
    assert stores.log.leave_wake(SAGA, "me", 1, 4)
    assert head_of(stores).pending_wake == 4


def test_a_higher_nudge_replaces_a_lower_one(stores: Stores) -> None:
    taken(stores)
    stores.log.leave_wake(SAGA, "me", 1, 4)
    assert stores.log.leave_wake(SAGA, "me", 1, 5)
    assert head_of(stores).pending_wake == 5


@pytest.mark.parametrize("version", [3, 4])
def test_a_nudge_that_is_not_higher_is_refused(stores: Stores, version: int) -> None:
    taken(stores)
    stores.log.leave_wake(SAGA, "me", 1, 4)
    assert not stores.log.leave_wake(SAGA, "me", 1, version)
    assert head_of(stores).pending_wake == 4


@pytest.mark.parametrize(("owner", "epoch"), [("you", 1), ("me", 2), ("me", 0)])
def test_a_nudge_for_another_lease_is_refused(stores: Stores, owner: str, epoch: int) -> None:
    taken(stores)
    assert not stores.log.leave_wake(SAGA, owner, epoch, 4)
    assert head_of(stores).pending_wake == 0


def test_a_nudge_for_a_lease_that_was_given_back_is_refused(stores: Stores) -> None:
    taken(stores)
    stores.log.release(SAGA, "me", 1, a_release())
    assert not stores.log.leave_wake(SAGA, "me", 1, 4)
    assert head_of(stores).pending_wake == 0


def test_a_nudge_makes_no_head(stores: Stores) -> None:
    assert not stores.log.leave_wake(SAGA, "me", 1, 4)
    assert stores.log.read_head(SAGA) is None


def test_a_nudge_changes_nothing_but_the_nudge(stores: Stores) -> None:
    taken(stores)
    before = head_of(stores)
    stores.log.leave_wake(SAGA, "me", 1, 4)
    assert head_of(stores) == msgspec.structs.replace(before, pending_wake=4)


# -- release


def test_a_release_frees_the_lease_clears_the_nudge_and_writes_what_was_folded(stores: Stores) -> None:
    taken(stores)
    stores.log.leave_wake(SAGA, "me", 1, 9)
    left = a_release(folded=9, status="waiting", branch=2, snapshot=5, due_at=200_000)
    assert stores.log.release(SAGA, "me", 1, left)
    assert head_of(stores) == a_head(
        start=b"", epoch=1, folded=9, status="waiting", branch=2, snapshot=5, due_at=200_000
    )


def test_a_released_lease_can_be_taken_at_once(stores: Stores) -> None:
    taken(stores)
    stores.log.release(SAGA, "me", 1, a_release())
    before = stores.log.take(SAGA, "you", UNTIL, 1, DUE)
    assert before is not None
    assert before.owner == ""


@pytest.mark.parametrize(("owner", "epoch"), [("you", 1), ("me", 2), ("me", 0)])
def test_a_release_of_a_lease_that_is_not_mine_is_refused(stores: Stores, owner: str, epoch: int) -> None:
    taken(stores)
    before = head_of(stores)
    assert not stores.log.release(SAGA, owner, epoch, a_release())
    assert head_of(stores) == before


def test_a_holder_whose_lease_was_taken_over_cannot_release(stores: Stores) -> None:
    taken(stores)
    stores.log.take(SAGA, "you", UNTIL + 40_000, 1, DUE + 40_000)
    before = head_of(stores)
    assert not stores.log.release(SAGA, "me", 1, a_release())
    assert head_of(stores) == before


def test_a_second_release_of_the_same_lease_is_refused(stores: Stores) -> None:
    taken(stores)
    stores.log.release(SAGA, "me", 1, a_release())
    assert not stores.log.release(SAGA, "me", 1, a_release(folded=2))
    assert head_of(stores).folded == 1


def test_a_release_makes_no_head(stores: Stores) -> None:
    assert not stores.log.release(SAGA, "me", 1, a_release())
    assert stores.log.read_head(SAGA) is None


def test_a_release_below_the_nudge_is_refused_and_writes_nothing(stores: Stores) -> None:
    taken(stores)
    stores.log.leave_wake(SAGA, "me", 1, 5)
    before = head_of(stores)
    assert not stores.log.release(SAGA, "me", 1, a_release(folded=4))
    assert head_of(stores) == before


@pytest.mark.parametrize("folded", [5, 6])
def test_a_release_that_has_folded_the_nudge_is_accepted(stores: Stores, folded: int) -> None:
    taken(stores)
    stores.log.leave_wake(SAGA, "me", 1, 5)
    assert stores.log.release(SAGA, "me", 1, a_release(folded=folded))


def test_a_release_is_refused_when_another_writer_armed_the_saga_since(stores: Stores) -> None:
    taken(stores)
    assert stores.log.arm(head_of(stores), 95_000)
    before = head_of(stores)
    assert not stores.log.release(SAGA, "me", 1, a_release(armed=0))
    assert head_of(stores) == before


def test_a_release_is_refused_when_another_writer_armed_an_armed_saga_again(stores: Stores) -> None:
    taken(stores, armed=70_000)
    assert stores.log.arm(head_of(stores), 95_000)
    assert not stores.log.release(SAGA, "me", 1, a_release(armed=70_000))


def test_a_release_that_knows_of_the_arming_is_accepted_and_keeps_it(stores: Stores) -> None:
    taken(stores)
    stores.log.arm(head_of(stores), 95_000)
    assert stores.log.release(SAGA, "me", 1, a_release(armed=95_000))
    assert head_of(stores).armed == 95_000


def test_a_release_with_a_wake_leaves_it_on_the_head(stores: Stores) -> None:
    taken(stores)
    stores.log.release(SAGA, "me", 1, a_release(wake=Wake(v=1, at=200_000)))
    assert head_of(stores).wake == Wake(v=1, at=200_000)


def test_a_release_without_a_wake_leaves_none(stores: Stores) -> None:
    taken(stores)
    stores.log.release(SAGA, "me", 1, a_release())
    assert head_of(stores).wake is None


def test_the_start_stays_on_the_head_until_a_release_clears_it(stores: Stores) -> None:
    taken(stores)
    stores.log.release(SAGA, "me", 1, a_release(clear_start=False))
    assert head_of(stores).start == a_head().start
    stores.log.take(SAGA, "me", UNTIL, 1, DUE)
    stores.log.release(SAGA, "me", 2, a_release(clear_start=True))
    assert head_of(stores).start == b""


def test_the_group_changes_only_with_the_time_of_its_change(stores: Stores) -> None:
    taken(stores)
    stores.log.release(SAGA, "me", 1, a_release(group="done", group_at=None))
    assert head_of(stores).group == "open"
    stores.log.take(SAGA, "me", UNTIL, 1, DUE)
    stores.log.release(SAGA, "me", 2, a_release(group="done", group_at=60_000))
    assert head_of(stores).group == "done"


def test_one_sagas_lease_holds_no_other_saga(stores: Stores) -> None:
    stores.log.create_head(a_head(OTHER))
    taken(stores)
    stores.log.leave_wake(SAGA, "me", 1, 4)
    assert stores.log.read_head(OTHER) == a_head(OTHER)


# -- the build that alone may run a saga


def test_a_release_writes_the_build_and_one_that_names_none_leaves_it(stores: Stores) -> None:
    taken(stores)
    assert stores.log.release(SAGA, "me", 1, a_release(build="12.3.4"))
    assert head_of(stores).build == "12.3.4"
    assert stores.log.take(SAGA, "me", UNTIL, 1, DUE) is not None
    assert stores.log.release(SAGA, "me", 2, a_release())
    assert head_of(stores).build == "12.3.4"


def test_a_release_removes_the_build(stores: Stores) -> None:
    taken(stores, build="12.3.4")
    assert stores.log.release(SAGA, "me", 1, a_release(build=""))
    assert head_of(stores).build == ""
