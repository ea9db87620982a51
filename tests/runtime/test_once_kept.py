"""Once-only effects whose result is given to others for a while only (`keep`): after it others act, and their own place never.

A place is a slot of a saga, in all branches of it. Each test kills an invocation between two writes, and has it revived.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.effects.keys import Key
from baton.core.log.events import Value
from baton.ports import NoRoom, StepContext, StepFailure
from baton.ports.records import COMPLETED, FAILED
from tests.runtime.restaurant import SPEC, Killed, Place, failed, killed, raising, saying

KEY = Key.request(keep="5s")
LATER = 400 * 86_400 - 60  # almost as long as it is remembered at all


async def acted(place: Place, saga: str = "s1", **options: Any) -> int:
    """What came of an attempt that acted, now or before: the number of the booking."""
    return int((await place.invocation().run(saga, key=KEY, **options)).value.v["number"])


@pytest.mark.parametrize("later", [1, 6, LATER])
async def test_what_a_step_has_done_it_does_not_do_again_however_late_it_is_revived(later: float) -> None:
    place = Place()
    await acted(place, rows=1)  # and its invocation died before the entry
    await asyncio.sleep(later)
    one = place.invocation()
    done = await one.run(key=KEY, rows=1)
    assert (done.value.v, done.is_recorded, len(done.rows)) == ({"number": 1}, True, 1)
    assert one.calls == ["claim"]


@pytest.mark.parametrize("others", [1, 2])
async def test_neither_does_it_when_others_have_done_the_same_since(others: int) -> None:
    place = Place()
    await acted(place, rows=1)
    for number in range(others):
        await asyncio.sleep(6)
        assert await acted(place, f"other-{number}") == number + 2
    for _ in range(2):
        one = place.invocation()
        done = await one.run(key=KEY, rows=1)
        assert (done.value.v, done.is_recorded, len(done.rows)) == ({"number": 1}, True, 1)
        assert one.calls == ["claim", "read"]
        await asyncio.sleep(LATER)


@pytest.mark.parametrize("where", [{"slot": "book#1"}, {"slot": "reserve#0"}, {"saga": "s2"}])
async def test_another_place_is_given_the_result_within_the_window_and_acts_after_it(
    where: dict[str, str],
) -> None:
    place = Place()
    await acted(place)
    assert await acted(place, **where) == 1
    await asyncio.sleep(6)
    assert [await acted(place, **where) for _ in range(2)] == [2, 2]
    assert await acted(place, "s9") == 2, "the new one has a window of its own"


async def test_of_many_that_come_after_the_window_one_acts() -> None:
    place = Place()
    await acted(place)
    await asyncio.sleep(6)
    done = await asyncio.gather(*(acted(place, f"s{n}") for n in range(2, 12)))
    assert set(done) == {2}


@pytest.mark.parametrize("when", ["die_before", "die_after"])
@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5])
async def test_wherever_another_dies_that_takes_the_place_of_a_result_its_own_place_finds_it(
    when: str, nth: int
) -> None:
    """The writes: a refused claim, a look for what is kept, the keeping, the new claim, the new result."""
    place = Place()
    await acted(place)
    await asyncio.sleep(6)
    await killed(dying(place, when, nth).run("s2", key=KEY))
    for _ in range(2):
        assert await acted(place) == 1, "the one that acts by then"
        found = await acted(place, "s2", verify=place.finds)
        assert found in (1, 2)
        assert await acted(place, "s2", verify=place.finds) == found


async def test_what_verify_finds_of_the_claim_of_another_is_kept_for_that_one() -> None:
    place = Place()
    await killed(place.invocation().run(key=KEY, lasts=1_000, act=books_and_dies(place)))
    await asyncio.sleep(20)
    other = place.invocation()
    assert (await other.run("s2", key=KEY, verify=place.finds)).is_recorded
    assert other.calls == ["claim", "read", "claim", "change"]
    await asyncio.sleep(6)
    assert await acted(place, "s3") == 2
    assert [await acted(place, saga) for saga in ("s1", "s2", "s3")] == [1, 1, 2]


@pytest.mark.parametrize("when", ["die_before", "die_after"])
@pytest.mark.parametrize("nth", [1, 2, 3, 4])
async def test_wherever_one_dies_that_records_what_verify_found_the_claims_own_place_acts_no_more(
    when: str, nth: int
) -> None:
    place = Place()
    await killed(place.invocation().run(key=KEY, lasts=1_000, act=books_and_dies(place)))
    await asyncio.sleep(20)
    await killed(dying(place, when, nth).run("s2", key=KEY, verify=place.finds))
    assert await acted(place, verify=place.finds) == 1
    await asyncio.sleep(6)
    assert await acted(place, "s3") == 2
    assert await acted(place, verify=place.finds) == 1


async def test_what_a_person_says_of_the_claim_of_another_is_kept_for_that_one() -> None:
    place = Place()
    await killed(place.invocation().run(key=KEY, lasts=1_000, act=books_and_dies(place)))
    one, there = place.invocation(), place.effect
    context = StepContext(saga="s2", tenant="acme", user="ada", node="book", idempotency_key=there.key)
    spec = replace(SPEC, key=KEY)
    assert await one.once.happened(spec, "book#0", context, Value(v={"number": 7}), there.owner)
    await asyncio.sleep(6)
    await acted(place, "s3")
    assert [await acted(place, saga) for saga in ("s1", "s2")] == [7, 7]


async def test_one_that_acted_beyond_its_time_has_what_it_did_kept() -> None:
    place = Place()

    async def late() -> Any:
        await asyncio.sleep(60)
        return {"number": 99}

    first = asyncio.create_task(place.invocation().run(act=late, key=KEY, lasts=10_000))
    await asyncio.sleep(30)
    await acted(place, "s2", verify=saying({"happened": False}))
    await first
    await asyncio.sleep(6)
    assert await acted(place) == 99


@pytest.mark.parametrize("failed_between", [False, True])
async def test_one_that_takes_the_place_of_a_result_and_finds_no_room_leaves_it_there(
    failed_between: bool,
) -> None:
    """No attempt meets a freed claim: the place of the result would not look for it, and act again."""
    place = Place()
    await acted(place)
    await asyncio.sleep(6)
    other = place.invocation()
    if failed_between:
        await failed(other.run("s2", key=KEY, act=raising(StepFailure("bad_request", "no"))))
    for _ in range(2):
        with pytest.raises(NoRoom):
            await other.run("s2", key=KEY, act=raising(NoRoom("full")))
    assert await acted(place) == 1
    assert await acted(place, "s2") == 2
    assert [await acted(place, saga) for saga in ("s1", "s2")] == [1, 2]


async def test_a_failure_is_forgotten_with_its_window() -> None:
    place = Place()
    key = Key.request(keep="5s")
    refused = raising(StepFailure("bad_request", "no"))
    await failed(place.invocation().run(key=key, act=refused))
    assert place.effect.status == FAILED
    await asyncio.sleep(2 * 3_600)
    began = place.clock.now()
    await failed(place.invocation().run("s2", key=key, act=refused))
    assert place.effect.first >= began, "its time to be tried again begins anew"
    assert (await place.invocation().run("s2", key=key)).value.v == {"number": 1}
    assert place.effect.status == COMPLETED


async def test_without_a_window_nothing_more_is_written_or_read() -> None:
    place = Place()
    key = Key.request()
    await killed(place.invocation().run(key=key, lasts=1_000, act=books_and_dies(place)))
    await asyncio.sleep(20)
    one, other = place.invocation(), place.invocation()
    assert (await one.run("s2", key=key, verify=place.finds)).is_recorded
    assert one.calls == ["claim", "change"]
    assert (await other.run("s3", key=key)).is_recorded
    assert other.calls == ["claim"]


def books_and_dies(place: Place) -> Any:
    async def act() -> Any:
        await place.book("it")
        raise Killed

    return act


def dying(place: Place, when: str, nth: int) -> Any:
    """An invocation that dies at its nth call of the store."""
    one = place.invocation()
    real = one.offload

    async def offload(function: Any, /, *args: Any, **kwargs: Any) -> Any:
        if len(one.calls) + 1 == nth:
            setattr(one, when, function.__name__)
        return await real(function, *args, **kwargs)

    one.once._call._offload = offload
    return one
