"""Exactly-once effects: what makes two actions the same, who waits for whom, and a crash at every point.

One rule holds in all of them: what may have happened is done again only after `verify` or a person has looked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from baton.core.effects.keys import Key, KeyRule
from baton.core.limits import Limits
from baton.errors import StoreUnavailable
from baton.ports import StepFailure
from baton.ports.records import COMPLETED, IN_PROGRESS
from tests.kit.sentences import Says
from tests.runtime.restaurant import (
    DAY,
    DINNER,
    Invocation,
    Killed,
    P,
    Place,
    T,
    failed,
    killed,
    raising,
)

# ---- when nothing goes wrong ---------------------------------------------------------------------------------------


async def test_an_effect_costs_two_writes_and_no_read() -> None:
    place = Place()
    one = place.invocation()
    done = await one.run()
    assert (done.value.v, done.is_recorded) == ({"number": 1}, False)
    assert one.calls == ["claim", "change"]
    assert (place.effect.status, place.effect.code) == (COMPLETED, "")


async def test_a_result_that_is_recorded_is_given_again_for_one_refused_write() -> None:
    place = Place()
    await place.invocation().run(rows=2)
    again = place.invocation()
    done = await again.run(rows=2)
    assert (done.value.v, done.is_recorded, len(done.rows)) == ({"number": 1}, True, 2)
    assert again.calls == ["claim"]
    assert place.booked.total() == 1


async def test_a_claim_has_no_end_and_a_result_outlives_its_saga() -> None:
    place = Place()
    attempt = asyncio.create_task(place.invocation().run())
    await asyncio.sleep(0.5)
    assert (place.effect.status, place.effect.expires) == (IN_PROGRESS, 0)
    await attempt
    assert 400 * DAY <= place.effect.expires - place.clock.now() < 400 * DAY + 1_000
    assert place.effect.shared_until == 0
    await place.invocation().run("s2", key=Key.request(keep="24h"))
    kept_longer = place.invocation()
    kept_longer.once._records._limits = Limits(effect_ttl_days=1)
    await kept_longer.run("s3", key=Key.user(keep="3d"))
    _, day, three = place.effects.stored.values()
    assert 400 * DAY <= day.expires - day.updated < 400 * DAY + 1_000, "its own saga needs it"
    assert day.shared_until - day.updated == DAY
    assert three.expires >= three.shared_until == three.updated + 3 * DAY


async def test_what_is_kept_no_longer_happens_again() -> None:
    place = Place()
    key = Key.request(keep="24h")
    await place.invocation().run(key=key)
    await asyncio.sleep(86_399 - 2)
    assert (await place.invocation().run("s2", key=key)).is_recorded
    await asyncio.sleep(10)
    assert not (await place.invocation().run("s3", key=key)).is_recorded
    assert place.booked.total() == 2


async def test_a_large_result_is_in_a_blob_and_so_are_large_rows() -> None:
    place = Place()

    async def act() -> Any:
        return {"number": "9" * 10_000}

    done = await place.invocation().run(act=act)
    assert (done.value.v, done.value.size) == (None, 10_013)
    assert (await place.invocation().run(act=act)).value == done.value
    assert not place.effect.ref
    assert len(place.blobs.stored) == 1

    many = await place.invocation().run("s2", rows=25, arguments={"text": "x" * 200})
    assert len(many.rows) == 25


async def test_what_is_too_large_for_an_item_is_in_a_blob_as_a_whole() -> None:
    place = Place()
    one = place.invocation()
    one.once._records._limits = Limits(inline_bytes=256)
    first = await one.run(rows=25)
    assert place.effect.ref
    assert not place.effect.data
    again = await place.invocation().run()
    assert (again.value, again.rows) == (first.value, first.rows)


async def test_a_result_that_is_too_large_has_happened_and_is_not_done_again() -> None:
    place = Place()

    async def act() -> Any:
        place.booked["it"] += 1
        return "9" * 6_000_000

    assert (await failed(place.invocation().run(act=act))).code == "result_too_large"
    assert (await failed(place.invocation().run(act=act))).code == "unknown_outcome"
    assert place.booked.total() == 1


# ---- which actions are the same ----------------------------------------------------------------------------------


async def test_twenty_equal_dinners_of_one_user_are_twenty_bookings() -> None:
    place = Place()
    one = place.invocation()
    done = await asyncio.gather(*(one.run(f"saga-{n}") for n in range(20)))
    assert sorted(each.value.v["number"] for each in done) == list(range(1, 21))
    assert set(place.booked.values()) == {1}


async def test_what_acts_once_in_a_saga_is_not_repeated_at_another_node() -> None:
    place = Place()
    await place.invocation().run(slot="book#0", rows=1, key=Key.saga())
    again: Any = {"slot": "reserve#0", "arguments": {"at": "19:30:00 ", **DINNER}}
    elsewhere = await place.invocation().run(**again, key=Key.saga())
    assert (elsewhere.value.v, elsewhere.is_recorded, len(elsewhere.rows)) == ({"number": 1}, True, 1)
    assert place.booked.total() == 1


async def test_the_second_round_of_a_loop_acts_again() -> None:
    place = Place()
    for round_ in (0, 1, 1):
        await place.invocation().run(slot=f"book#{round_}", iteration=(round_,))
    assert place.booked.total() == 2


async def test_of_fifty_sagas_that_do_the_same_one_acts_and_all_have_its_result() -> None:
    place = Place()
    place.seconds = 5
    invocations = [place.invocation() for _ in range(10)]
    done = await asyncio.gather(
        *(invocations[n % 10].run(f"saga-{n}", key=Key.request(), rows=1) for n in range(50))
    )
    assert {each.value.v["number"] for each in done} == {1}
    assert sorted(each.is_recorded for each in done) == [False] + [True] * 49
    assert sorted(len(each.rows) for each in done) == [0] * 49 + [1], "rows are in one saga's entry"
    reads = sum(one.calls.count("read") for one in invocations)
    assert reads < 49 * 12


async def test_a_second_caller_is_refused_at_once_where_the_tool_says_so(says: Says) -> None:
    place = Place()
    key = Key.request(in_progress="refuse")
    first = asyncio.create_task(place.invocation().run(key=key))
    await asyncio.sleep(0.5)
    failure = await failed(place.invocation().run("s2", key=key))
    assert failure.code == "in_progress"
    says(failure.message)
    assert (await first).value.v == {"number": 1}
    assert (await place.invocation().run("s2", key=key)).is_recorded


async def test_an_attempt_waits_for_the_time_of_its_step_and_no_longer() -> None:
    place = Place()
    place.seconds = 20
    first = asyncio.create_task(place.invocation().run(key=Key.request()))
    await asyncio.sleep(1)
    began = place.clock.now()
    failure = await failed(place.invocation().run("s2", key=Key.request(), lasts=7_000))
    assert failure.code == "in_progress"
    assert 7_000 <= place.clock.now() - began < 7_100
    await first


@pytest.mark.parametrize(("key", "numbers"), [(Key.saga(), [1, 1]), (Key.node(), [1, 2])])
async def test_two_branches_of_one_saga_that_do_the_same_do_it_once_where_the_key_is_the_sagas(
    key: KeyRule, numbers: list[int]
) -> None:
    place = Place()
    one = place.invocation()
    done = await asyncio.gather(one.run(slot="left#0", key=key), one.run(slot="right#0", key=key))
    assert sorted(each.value.v["number"] for each in done) == numbers


async def test_what_failed_for_the_first_is_tried_by_the_next_that_waits() -> None:
    place = Place()

    async def act() -> Any:
        await asyncio.sleep(1)
        raise StepFailure("business_rule", "closed on Mondays")

    first = asyncio.create_task(failed(place.invocation().run(key=Key.request(), act=act)))
    await asyncio.sleep(0.5)
    second = await place.invocation().run("s2", key=Key.request())
    assert (second.value.v, (await first).code) == ({"number": 1}, "business_rule")


# ---- crashes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "with_verify", "bookings"),
    [
        ("before claim", 1, 1),
        ("after claim", 1, 1),
        ("while acting", 1, 1),
        ("after acting", 1, 1),
        ("before change", 1, 1),
        ("after change", 1, 1),
        ("before claim", 0, 1),
        ("after claim", 0, None),
        ("while acting", 0, None),
        ("after acting", 0, None),
        ("before change", 0, None),
        ("after change", 0, 1),
    ],
)
async def test_whatever_the_point_of_a_crash_it_happens_once(
    point: str, with_verify: int, bookings: int | None
) -> None:
    """None: no `verify` can tell, so a person is asked, and it happened at most once."""
    place = Place()
    first = place.invocation()
    when, _, what = point.partition(" ")
    act = None
    if what == "acting":

        async def act() -> Any:
            if when == "after":
                await place.book("it")
            raise Killed

    elif when == "before":
        first.die_before = what
    else:
        first.die_after = what
    await killed(first.run(act=act))
    verify = place.finds if with_verify else None
    if bookings is None:
        failure = await failed(place.invocation().run(verify=verify))
        assert failure.code == "unknown_outcome"
        assert "at `book#0` began at 2026-09-21T" in failure.message
        assert place.booked.total() <= 1
        assert place.effect.status == IN_PROGRESS
    else:
        done = await place.invocation().run(verify=verify)
        assert done.value.v == {"number": 1}
        assert place.booked.total() == bookings
        assert place.effect.status == COMPLETED


async def test_a_saga_whose_invocation_died_does_not_wait_for_the_dead_one() -> None:
    place = Place()
    first = place.invocation()
    first.die_before = "change"
    await killed(first.run(key=Key.saga()))
    began = place.clock.now()
    await place.invocation().run(slot="elsewhere#0", verify=place.finds, key=Key.saga())
    assert place.clock.now() - began < 100


async def test_another_saga_waits_until_the_time_of_a_dead_attempt_is_over_and_looks_then() -> None:
    place = Place()
    first = place.invocation()
    first.die_before = "change"
    await killed(first.run(key=Key.request(), lasts=10_000))
    began = place.clock.now()
    done = await place.invocation().run("s2", key=Key.request(), verify=place.finds)
    assert (done.value.v, done.is_recorded, place.booked.total()) == ({"number": 1}, True, 1)
    grace = place.limits.effect_grace_ms + place.limits.clock_skew_ms
    assert 9_000 + grace <= place.clock.now() - began + 1_000 <= 10_100 + grace


async def test_an_attempt_that_is_cut_off_leaves_its_claim() -> None:
    place = Place()
    one = place.invocation()
    attempt = asyncio.create_task(one.run())
    await asyncio.sleep(0.5)
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    assert place.effect.status == IN_PROGRESS
    assert (await failed(one.run())).code == "unknown_outcome"
    assert (await one.run(verify=place.finds)).value.v == {"number": 1}


@pytest.mark.parametrize("call", ["claim", "change"])
async def test_an_answer_of_the_store_that_was_lost_does_no_harm(call: str) -> None:
    place = Place()
    one = place.invocation()
    one.lose_answer_of = call
    done = await one.run()
    assert (done.value.v, done.is_recorded, place.booked.total()) == ({"number": 1}, False, 1)
    assert place.effect.status == COMPLETED


@pytest.mark.parametrize("when", ["taking over", "recording what was found"])
async def test_neither_does_one_that_was_lost_after_a_crash(when: str) -> None:
    place = Place()
    first = place.invocation()
    first.die_before = "change"
    if when == "taking over":
        await killed(first.run(act=raising(Killed())))
    else:
        await killed(first.run())
    second = place.invocation()
    second.lose_answer_of = "change"
    done = await second.run(verify=place.finds)
    assert (done.value.v, place.booked.total()) == ({"number": 1}, 1)


async def test_a_store_that_stays_away_is_a_fault_and_the_next_attempt_looks() -> None:
    place = Place()

    class Away(Invocation):
        async def offload(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
            if function.__name__ == "change":
                raise StoreUnavailable("away")
            return await super().offload(function, *args, **kwargs)

    with pytest.raises(StoreUnavailable):
        await Away(place, 99).run()
    assert (await place.invocation().run(verify=place.finds)).value.v == {"number": 1}
    assert place.booked.total() == 1
