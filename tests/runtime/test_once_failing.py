"""Exactly-once effects that fail or are in doubt: what is tried again, who looks, and what a person says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.effects.keys import Key
from baton.core.failures.codes import leaves_doubt
from baton.core.log.events import Value
from baton.ports import NoRoom, StepContext, StepFailure
from baton.ports.records import COMPLETED, FAILED, FREED, IN_PROGRESS
from baton.runtime.steps.effects import UndecidedClaim
from tests.kit.sentences import Says
from tests.runtime.restaurant import (
    DAY,
    SPEC,
    Invocation,
    Place,
    failed,
    in_doubt,
    killed,
    raising,
    saying,
)

INVERSE = "book#undo"

# ---- failures ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        StepFailure("connection_failed", "reset by peer"),
        StepFailure("tool_error", "KeyError: 'id'"),
        StepFailure("tool_crashed", "was killed by SIGKILL"),
        StepFailure("something_of_its_own", "?"),
        StepFailure("bad_request", "?", happened=True),
        TimeoutError(),
    ],
)
async def test_a_failure_after_which_it_may_have_happened_is_not_tried_again_before_a_look(
    error: Exception,
) -> None:
    place = Place()
    one = place.invocation()
    with pytest.raises(type(error)):
        await one.run(act=raising(error))
    assert place.effect.status == IN_PROGRESS
    assert (await failed(one.run())).code == "unknown_outcome"
    assert not place.booked
    done = await one.run(verify=place.finds)
    assert (done.value.v, done.is_recorded) == ({"number": 1}, False)


@pytest.mark.parametrize(
    "error",
    [
        StepFailure("rate_limited", "429"),
        StepFailure("bad_request", "no such table"),
        StepFailure("card_declined", "no money", kind="permanent"),
        StepFailure("connection_failed", "refused", happened=False),
    ],
)
async def test_a_failure_that_says_that_it_has_not_happened_is_simply_tried_again(error: StepFailure) -> None:
    place = Place()
    one = place.invocation()
    assert await failed(one.run(act=raising(error))) is error
    assert (place.effect.status, place.effect.code) == (FAILED, error.code)
    assert (await place.invocation().run()).value.v == {"number": 1}
    assert (place.effect.status, place.effect.code) == (COMPLETED, "")


@pytest.mark.parametrize("saga", ["s1", "s2"])
async def test_what_has_certainly_not_happened_is_done_by_the_next_caller_whenever_it_comes(
    saga: str,
) -> None:
    place, key = Place(), Key.business("table", "restaurant")
    await failed(
        place.invocation().run(
            act=raising(StepFailure("card_declined", "no money", kind="permanent")), key=key
        )
    )
    await asyncio.sleep(300 * DAY / 1_000)
    began = place.clock.now()
    done = await place.invocation().run(saga, key=key)
    assert (done.value.v, done.is_recorded) == ({"number": 1}, False)
    assert (place.effect.saga, place.effect.first >= began) == (saga, True)


async def test_an_inverse_that_failed_long_ago_waits_for_a_person(says: Says) -> None:
    place = Place()
    error = StepFailure("bad_request", "password=hunter2 is not accepted")
    await failed(place.invocation().run(slot=INVERSE, act=raising(error)))
    await asyncio.sleep((7 * DAY - 10_000) / 1_000)
    await failed(place.invocation().run(slot=INVERSE, act=raising(error)))
    await asyncio.sleep(20)
    failure = await in_doubt_of(place.invocation(), slot=INVERSE)
    assert failure.code == "unknown_outcome"
    says(failure.message)
    assert "hunter2" not in failure.message
    assert not place.booked
    assert (await place.invocation().run(slot=INVERSE, decided=failure.claim)).value.v == {"number": 1}


@pytest.mark.parametrize("is_taken", [False, True])
async def test_who_acts_under_a_claim_that_an_operator_has_freed_has_its_own_result(is_taken: bool) -> None:
    place, key = Place(), Key.request()

    async def act() -> Any:
        await asyncio.sleep(10)
        return {"number": 99}

    first = asyncio.create_task(place.invocation().run(act=act, key=key))
    await asyncio.sleep(5)
    seen = place.effect
    assert place.effects.change(seen, replace(seen, status=FREED, owner=f"{seen.owner}/freed")) is None
    if is_taken:
        assert (await place.invocation().run("s2", key=key)).value.v == {"number": 1}
    assert (await first).value.v == {"number": 1 if is_taken else 99}
    later = await place.invocation().run("s3", key=key)
    assert (later.value.v, later.is_recorded) == ({"number": 1 if is_taken else 99}, True)


async def test_a_tool_that_found_no_room_has_done_nothing_and_frees_its_claim() -> None:
    place = Place()
    one = place.invocation()
    with pytest.raises(NoRoom):
        await one.run(act=raising(NoRoom("full")))
    assert place.effect.status == FREED
    assert (await one.run()).value.v == {"number": 1}


async def test_after_an_attempt_that_finds_no_room_the_one_that_waits_acts() -> None:
    place = Place()

    async def act() -> Any:
        await asyncio.sleep(1)
        raise NoRoom("full")

    async def first() -> None:
        with pytest.raises(NoRoom):
            await place.invocation().run(act=act, key=Key.request())

    _, second = await asyncio.gather(first(), place.invocation().run("s2", key=Key.request()))
    assert second.value.v == {"number": 1}


# ---- verify ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        ({"happened": None}, "unknown_outcome"),
        ({"happened": True, "result": {"no": 1}}, "unknown_outcome"),
        ({"happened": True}, "unknown_outcome"),
        ({"happened": "yes"}, "result_invalid"),
        ({}, "result_invalid"),
        ([], "result_invalid"),
    ],
)  # fmt: skip
async def test_a_verify_that_does_not_say_leaves_the_doubt(verdict: Any, code: str, says: Says) -> None:
    place = Place()
    one = await in_doubt(place)
    failure = await failed(one.run(verify=saying(verdict)))
    assert failure.code == code
    says(failure.message)
    assert place.effect.status == IN_PROGRESS
    assert not place.booked


async def test_a_verify_that_fails_is_the_failure_and_it_can_be_asked_again(says: Says) -> None:
    place = Place()
    one = await in_doubt(place)
    failure = await failed(one.run(verify=raising(StepFailure("rate_limited", "slow down", retry_after="3"))))
    assert (failure.code, failure.retry_after) == ("rate_limited", "3")
    says(failure.message)
    assert (await one.run(verify=saying({"happened": False}))).value.v == {"number": 1}


async def test_a_result_that_verify_found_is_recorded_for_all() -> None:
    place = Place()
    one = await in_doubt(place)
    found = saying({"happened": True, "result": {"number": 77}})
    assert (await one.run(verify=found)).is_recorded
    assert one.calls == ["claim", "change"]
    assert (await place.invocation().run()).value.v == {"number": 77}
    assert not place.booked


async def test_of_two_that_look_at_the_same_time_one_acts() -> None:
    place = Place()
    key = Key.request()
    error = StepFailure("connection_failed", "reset")
    await failed(place.invocation().run(act=raising(error), key=key, lasts=1_000))
    await asyncio.sleep(10)

    async def slowly() -> Any:
        found = await place.finds()
        await asyncio.sleep(0.3)
        return found

    runs = (place.invocation().run(saga, key=key, verify=slowly) for saga in ("s2", "s3"))
    done = await asyncio.gather(*runs)
    assert [each.value.v for each in done] == [{"number": 1}] * 2


async def test_of_two_that_find_it_at_the_same_time_both_have_what_the_first_recorded() -> None:
    place = Place()
    key = Key.request()
    error = StepFailure("connection_failed", "reset")
    await failed(place.invocation().run(act=raising(error), key=key, lasts=1_000))
    await asyncio.sleep(10)
    found = (saying({"happened": True, "result": {"number": number}}) for number in (1, 2))
    runs = (place.invocation().run(f"s{n}", key=key, verify=verify) for n, verify in enumerate(found))
    done = await asyncio.gather(*runs)
    assert [each.value.v for each in done] == [{"number": 1}] * 2


async def test_of_those_who_wait_for_a_claim_that_is_deleted_one_acts() -> None:
    place = Place()
    first = place.invocation()
    first.die_before = "change"
    await killed(first.run(key=Key.request()))
    place.booked.clear()
    others = asyncio.gather(*(place.invocation().run(f"s{n}", key=Key.request()) for n in (2, 3)))
    await asyncio.sleep(1)
    place.effects.stored.clear()
    assert sorted(done.is_recorded for done in await others) == [False, True]
    assert place.booked.total() == 1


async def test_who_records_too_late_has_what_the_others_have() -> None:
    place = Place()

    async def act() -> Any:
        await asyncio.sleep(60)  # far beyond its time, as a frozen process is
        return {"number": 99}

    first = asyncio.create_task(place.invocation().run(act=act, key=Key.request(), lasts=10_000))
    await asyncio.sleep(20)
    second = await place.invocation().run("s2", key=Key.request(), verify=saying({"happened": False}))
    assert (await first).value == second.value


async def test_who_records_while_another_has_taken_over_has_its_own_result() -> None:
    place = Place()

    async def act() -> Any:
        await asyncio.sleep(60)
        return {"number": 99}

    place.seconds = 50
    first = asyncio.create_task(place.invocation().run(act=act, key=Key.request(), lasts=10_000))
    await asyncio.sleep(20)
    verify = saying({"happened": False})
    second = asyncio.create_task(place.invocation().run("s2", key=Key.request(), verify=verify, lasts=90_000))
    assert (await first).value.v == {"number": 99}
    assert (await second).value.v == {"number": 1}


# ---- a person ----------------------------------------------------------------------------------------------------


async def test_a_person_who_says_that_it_has_not_happened_frees_it_for_the_next_attempt() -> None:
    place = Place()
    one = await in_doubt(place)
    asked = (await in_doubt_of(one)).claim
    assert asked == place.effect.owner
    done = await one.run(decided=asked)
    assert (done.value.v, place.booked.total()) == ({"number": 1}, 1)


async def test_what_a_person_said_of_one_attempt_does_not_hold_for_the_next() -> None:
    place = Place()
    one = await in_doubt(place)
    asked = (await in_doubt_of(one)).claim
    await failed(one.run(decided=asked, act=raising(StepFailure("connection_failed", "again"))))
    later = await in_doubt_of(place.invocation(), decided=asked)
    assert (later.code, later.claim) == ("unknown_outcome", place.effect.owner)
    assert later.claim != asked
    assert not place.booked


async def test_what_was_said_of_a_claim_that_is_not_known_holds_for_none() -> None:
    place = Place()
    one = await in_doubt(place)
    assert (await in_doubt_of(one, decided="")).code == "unknown_outcome"
    assert not place.booked


@pytest.mark.parametrize(
    "verify",
    [
        raising(StepFailure("rate_limited", "slow down")),
        raising(TimeoutError()),
        saying("nonsense"),
        saying({"happened": True, "result": {"number": "9" * 6_000_000}}),
    ],
)
async def test_who_could_not_look_says_at_which_claim(verify: Callable[[], Awaitable[Any]]) -> None:
    place = Place()
    one = await in_doubt(place)
    failure = await in_doubt_of(one, verify=verify)
    assert failure.claim == place.effect.owner
    assert leaves_doubt(failure.code, failure.kind, failure.happened)


async def test_what_a_person_says_came_of_it_is_recorded() -> None:
    place = Place()
    one = await in_doubt(place)
    asked = (await in_doubt_of(one)).claim
    context, value = a_context(place), Value(v={"number": 5})
    assert not await one.once.happened(SPEC, "book#0", context, value, "another's")
    one.lose_answer_of = "change"
    assert await one.once.happened(SPEC, "book#0", context, value, asked)
    assert not await one.once.happened(SPEC, "book#0", context, value, asked)
    assert (await place.invocation().run()).value.v == {"number": 5}
    stranger = replace(context, idempotency_key="0" * 32)
    assert not await one.once.happened(SPEC, "book#0", stranger, value, asked)


@pytest.mark.parametrize(
    ("slot", "scope", "is_recorded"), [("book#0", "", True), ("book#1", "", False), ("book#0", "w/k", False)]
)
async def test_where_the_claim_is_not_known_what_a_person_says_is_recorded_at_that_of_this_place_only(
    slot: str, scope: str, is_recorded: bool
) -> None:
    place = Place()
    one = await in_doubt(place)
    value = Value(v={"number": 5})
    assert await one.once.happened(SPEC, slot, a_context(place), value, "", scope) is is_recorded
    assert place.effect.status == (COMPLETED if is_recorded else IN_PROGRESS)


async def test_what_a_person_says_of_the_claim_of_another_saga_is_recorded_as_ones_own() -> None:
    place = Place()
    one = await in_doubt(place)
    asked = (await in_doubt_of(one)).claim
    context = replace(a_context(place), saga="s2")
    assert await one.once.happened(SPEC, "pay#0", context, Value(v={"number": 5}), asked, "w/k")
    assert (place.effect.saga, place.effect.slot, place.effect.scope) == ("s2", "pay#0", "w/k")


async def in_doubt_of(one: Invocation, **options: Any) -> UndecidedClaim:
    """The failure of an attempt that could not find out what became of a claim."""
    failure = await failed(one.run(**options))
    assert isinstance(failure, UndecidedClaim)
    return failure


def a_context(place: Place) -> StepContext:
    return StepContext(saga="s1", tenant="acme", user="ada", node="book", idempotency_key=place.effect.key)
