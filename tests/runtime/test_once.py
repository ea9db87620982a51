"""Exactly-once effects: every way to meet an effect that is there already, and a crash at every point.

One rule holds in all of them: what may have happened is done again only after somebody has looked.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

import pytest
from msgspec.structs import replace

from baton.adapters.memory import MemoryBlobs
from baton.adapters.memory_effects import MemoryEffects
from baton.core.events import Value
from baton.core.keys import Key, KeyRule, key_of
from baton.core.limits import Limits
from baton.core.toolspec import ToolSpec
from baton.errors import StoreUnavailable
from baton.ports import Effect, NoRoom, StepContext, StepFailure
from baton.ports.effects import COMPLETED, FAILED, FREED, IN_PROGRESS
from baton.runtime.once import Done, Once
from baton.runtime.patience import Patience
from tests.kit.virtual import SeededEntropy, VirtualClock, run_virtual

P = ParamSpec("P")
T = TypeVar("T")
Story = Callable[["Place"], Coroutine[Any, Any, None]]
DAY = 86_400_000
DINNER = {"restaurant": "Luigi's", "at": "19:30"}


class Killed(BaseException):
    """The process is gone."""


class Invocation:
    """One process: its own `Once`, and what of it reaches the store."""

    def __init__(self, place: Place, seed: int) -> None:
        self.place, self.calls = place, list[str]()
        self.die_before: str = ""
        self.die_after: str = ""
        self.lose_answer_of: str = ""
        self.entropy = SeededEntropy(seed)
        call = Patience(self.offload, place.clock, self.entropy, place.limits, place.clock.now() + 600_000)
        self.once = Once(place.effects, place.blobs, place.clock, self.entropy, place.limits, call)

    async def offload(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        await asyncio.sleep(0.002)
        name = function.__name__
        self.calls.append(name)
        if name == self.die_before:
            raise Killed
        result = function(*args, **kwargs)
        if name == self.die_after:
            raise Killed
        if name == self.lose_answer_of:
            self.lose_answer_of = ""
            raise StoreUnavailable("no answer")
        return result

    async def run(
        self,
        saga: str = "s1",
        slot: str = "book#0",
        arguments: Any = DINNER,
        *,
        act: Callable[[], Awaitable[Any]] | None = None,
        key: KeyRule | None = None,
        verify: Callable[[], Awaitable[Any]] | None = None,
        iteration: tuple[int, ...] = (),
        lasts: int = 30_000,
        decided_at: int = 0,
        rows: int = 0,
    ) -> Done:
        """One attempt of a step, as the engine makes it."""
        place = self.place
        rule = key or Key.saga()
        now = place.clock.now()
        context = StepContext(
            saga=saga,
            tenant="acme",
            user="ada",
            node=slot.partition("#")[0],
            idempotency_key=key_of(
                rule,
                tenant="acme",
                user="ada",
                saga=saga,
                tool="table.book",
                parameters=arguments,
                occurrence=iteration,
                at=now,
            ),
            deadline_ms=now + lasts,
            rows=[],
        )

        async def book() -> Any:
            for number in range(rows):
                context.put_row("bookings", str(number), {"at": "19:30"})
            return await place.book(context.idempotency_key)

        spec = replace(SPEC, key=rule, verify="table.find" if verify else "")
        return await self.once.run(spec, slot, context, act or book, verify, decided_at=decided_at)


SPEC = ToolSpec(
    name="table.book",
    version="1",
    effect="once",
    parameters={},
    result={"type": "object", "required": ["number"]},
)


class Place:
    """What there is outside of all invocations: the stores, and the restaurant."""

    def __init__(self) -> None:
        self.clock, self.limits = VirtualClock(), Limits()
        self.effects, self.blobs = MemoryEffects(), MemoryBlobs()
        self.booked = Counter[str]()
        self.seconds = 1.0
        self._seed = 0

    def invocation(self) -> Invocation:
        self._seed += 1
        return Invocation(self, self._seed)

    async def book(self, key: str) -> Any:
        await asyncio.sleep(self.seconds)
        self.booked[key] += 1
        return {"number": self.booked.total()}

    @property
    def effect(self) -> Effect:
        (effect,) = self.effects.stored.values()
        return effect

    async def finds(self) -> Any:
        """A `verify` that knows."""
        return {"happened": True, "result": {"number": 1}} if self.booked else {"happened": False}


def play(story: Story) -> None:
    run_virtual(story(Place()))


async def failed(attempt: Awaitable[Any]) -> StepFailure:
    with pytest.raises(StepFailure) as caught:
        await attempt
    return caught.value


async def killed(attempt: Awaitable[Any]) -> None:
    with pytest.raises(Killed):
        await attempt


def raising(error: BaseException) -> Callable[[], Awaitable[Any]]:
    async def act() -> Any:
        raise error

    return act


def saying(verdict: Any) -> Callable[[], Awaitable[Any]]:
    async def verify() -> Any:
        return verdict

    return verify


# ---- when nothing goes wrong ---------------------------------------------------------------------------------------


def test_an_effect_costs_two_writes_and_no_read() -> None:
    async def story(place: Place) -> None:
        one = place.invocation()
        done = await one.run()
        assert (done.value.v, done.is_recorded) == ({"number": 1}, False)
        assert one.calls == ["claim", "change"]
        assert (place.effect.status, place.effect.code) == (COMPLETED, "")

    play(story)


def test_a_result_that_is_recorded_is_given_again_for_one_refused_write() -> None:
    async def story(place: Place) -> None:
        await place.invocation().run(rows=2)
        again = place.invocation()
        done = await again.run(rows=2)
        assert (done.value.v, done.is_recorded, len(done.rows)) == ({"number": 1}, True, 2)
        assert again.calls == ["claim"]
        assert place.booked.total() == 1

    play(story)


def test_a_claim_has_no_end_and_a_result_outlives_its_saga() -> None:
    async def story(place: Place) -> None:
        attempt = asyncio.create_task(place.invocation().run())
        await asyncio.sleep(0.5)
        assert (place.effect.status, place.effect.expires) == (IN_PROGRESS, 0)
        await attempt
        assert 400 * DAY <= place.effect.expires - place.clock.now() < 400 * DAY + 1_000
        await place.invocation().run("s2", key=Key.request(keep="24h"))
        kept = [effect.expires - place.clock.now() for effect in place.effects.stored.values()]
        assert DAY <= kept[1] < DAY + 1_000

    play(story)


def test_what_is_kept_no_longer_happens_again() -> None:
    async def story(place: Place) -> None:
        key = Key.request(keep="24h")
        await place.invocation().run(key=key)
        await asyncio.sleep(86_399 - 2)
        assert (await place.invocation().run("s2", key=key)).is_recorded
        await asyncio.sleep(10)
        assert not (await place.invocation().run("s3", key=key)).is_recorded
        assert place.booked.total() == 2

    play(story)


def test_a_large_result_is_in_a_blob_and_so_are_large_rows() -> None:
    async def story(place: Place) -> None:
        async def act() -> Any:
            return {"number": "9" * 10_000}

        done = await place.invocation().run(act=act)
        assert (done.value.v, done.value.size) == (None, 10_013)
        assert (await place.invocation().run(act=act)).value == done.value
        assert not place.effect.ref
        assert len(place.blobs.stored) == 1

        many = await place.invocation().run("s2", rows=25, arguments={"text": "x" * 200})
        assert len(many.rows) == 25

    play(story)


def test_what_is_too_large_for_an_item_is_in_a_blob_as_a_whole() -> None:
    async def story(place: Place) -> None:
        one = place.invocation()
        one.once._limits = Limits(inline_bytes=256)
        first = await one.run(rows=25)
        assert place.effect.ref
        assert not place.effect.data
        again = await place.invocation().run()
        assert (again.value, again.rows) == (first.value, first.rows)

    play(story)


def test_a_result_that_is_too_large_has_happened_and_is_not_done_again() -> None:
    async def story(place: Place) -> None:
        async def act() -> Any:
            place.booked["it"] += 1
            return "9" * 6_000_000

        assert (await failed(place.invocation().run(act=act))).code == "result_too_large"
        assert (await failed(place.invocation().run(act=act))).code == "unknown_outcome"
        assert place.booked.total() == 1

    play(story)


# ---- which actions are the same ----------------------------------------------------------------------------------


def test_twenty_equal_dinners_of_one_user_are_twenty_bookings() -> None:
    async def story(place: Place) -> None:
        one = place.invocation()
        done = await asyncio.gather(*(one.run(f"saga-{n}") for n in range(20)))
        assert sorted(each.value.v["number"] for each in done) == list(range(1, 21))
        assert set(place.booked.values()) == {1}

    play(story)


def test_a_saga_that_was_planned_anew_does_not_repeat_an_action_at_another_node() -> None:
    async def story(place: Place) -> None:
        await place.invocation().run(slot="book#0", rows=1)
        elsewhere = await place.invocation().run(slot="reserve#0", arguments={"at": "19:30:00 ", **DINNER})
        assert (elsewhere.value.v, elsewhere.is_recorded, len(elsewhere.rows)) == ({"number": 1}, True, 1)
        assert place.booked.total() == 1

    play(story)


def test_the_second_round_of_a_loop_acts_again() -> None:
    async def story(place: Place) -> None:
        for round_ in (0, 1, 1):
            await place.invocation().run(slot=f"book#{round_}", iteration=(round_,))
        assert place.booked.total() == 2

    play(story)


def test_of_fifty_sagas_that_do_the_same_one_acts_and_all_have_its_result() -> None:
    async def story(place: Place) -> None:
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

    play(story)


def test_a_second_caller_is_refused_at_once_where_the_tool_says_so() -> None:
    async def story(place: Place) -> None:
        key = Key.request(in_progress="refuse")
        first = asyncio.create_task(place.invocation().run(key=key))
        await asyncio.sleep(0.5)
        failure = await failed(place.invocation().run("s2", key=key))
        assert (failure.code, "being done by saga s1" in failure.message) == ("in_progress", True)
        assert (await first).value.v == {"number": 1}
        assert (await place.invocation().run("s2", key=key)).is_recorded

    play(story)


def test_whoever_waits_does_so_for_the_time_of_the_step_and_no_longer() -> None:
    async def story(place: Place) -> None:
        place.seconds = 20
        first = asyncio.create_task(place.invocation().run(key=Key.request()))
        await asyncio.sleep(1)
        began = place.clock.now()
        failure = await failed(place.invocation().run("s2", key=Key.request(), lasts=7_000))
        assert failure.code == "in_progress"
        assert 7_000 <= place.clock.now() - began < 7_100
        await first

    play(story)


def test_two_branches_of_one_saga_that_do_the_same_do_it_once() -> None:
    async def story(place: Place) -> None:
        one = place.invocation()
        done = await asyncio.gather(one.run(slot="left#0"), one.run(slot="right#0"))
        assert [each.value.v for each in done] == [{"number": 1}] * 2

    play(story)


def test_what_failed_for_the_first_is_tried_by_the_next_that_waits() -> None:
    async def story(place: Place) -> None:
        async def act() -> Any:
            await asyncio.sleep(1)
            raise StepFailure("business_rule", "closed on Mondays")

        first = asyncio.create_task(failed(place.invocation().run(key=Key.request(), act=act)))
        await asyncio.sleep(0.5)
        second = await place.invocation().run("s2", key=Key.request())
        assert (second.value.v, (await first).code) == ({"number": 1}, "business_rule")

    play(story)


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
def test_whatever_the_point_of_a_crash_it_happens_once(
    point: str, with_verify: int, bookings: int | None
) -> None:
    """None: nobody can tell, so a person is asked, and it happened at most once."""

    async def story(place: Place) -> None:
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

    play(story)


def test_a_saga_whose_invocation_died_does_not_wait_for_the_dead_one() -> None:
    async def story(place: Place) -> None:
        first = place.invocation()
        first.die_before = "change"
        await killed(first.run())
        began = place.clock.now()
        await place.invocation().run(slot="elsewhere#0", verify=place.finds)
        assert place.clock.now() - began < 100

    play(story)


def test_another_saga_waits_until_the_time_of_a_dead_attempt_is_over_and_looks_then() -> None:
    async def story(place: Place) -> None:
        first = place.invocation()
        first.die_before = "change"
        await killed(first.run(key=Key.request(), lasts=10_000))
        began = place.clock.now()
        done = await place.invocation().run("s2", key=Key.request(), verify=place.finds)
        assert (done.value.v, done.is_recorded, place.booked.total()) == ({"number": 1}, True, 1)
        grace = place.limits.effect_grace_ms
        assert 9_000 + grace <= place.clock.now() - began + 1_000 <= 10_100 + grace

    play(story)


def test_an_attempt_that_is_cut_off_leaves_its_claim() -> None:
    async def story(place: Place) -> None:
        one = place.invocation()
        attempt = asyncio.create_task(one.run())
        await asyncio.sleep(0.5)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        assert place.effect.status == IN_PROGRESS
        assert (await failed(one.run())).code == "unknown_outcome"
        assert (await one.run(verify=place.finds)).value.v == {"number": 1}

    play(story)


@pytest.mark.parametrize("call", ["claim", "change"])
def test_an_answer_of_the_store_that_was_lost_does_no_harm(call: str) -> None:
    async def story(place: Place) -> None:
        one = place.invocation()
        one.lose_answer_of = call
        done = await one.run()
        assert (done.value.v, done.is_recorded, place.booked.total()) == ({"number": 1}, False, 1)
        assert place.effect.status == COMPLETED

    play(story)


@pytest.mark.parametrize("when", ["taking over", "recording what was found"])
def test_neither_does_one_that_was_lost_after_a_crash(when: str) -> None:
    async def story(place: Place) -> None:
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

    play(story)


def test_a_store_that_stays_away_is_a_fault_and_the_next_attempt_looks() -> None:
    async def story(place: Place) -> None:
        class Away(Invocation):
            async def offload(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
                if function.__name__ == "change":
                    raise StoreUnavailable("away")
                return await super().offload(function, *args, **kwargs)

        with pytest.raises(StoreUnavailable):
            await Away(place, 99).run()
        assert (await place.invocation().run(verify=place.finds)).value.v == {"number": 1}
        assert place.booked.total() == 1

    play(story)


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
def test_a_failure_after_which_it_may_have_happened_is_not_tried_again_before_somebody_looked(
    error: Exception,
) -> None:
    async def story(place: Place) -> None:
        one = place.invocation()
        with pytest.raises(type(error)):
            await one.run(act=raising(error))
        assert place.effect.status == IN_PROGRESS
        assert (await failed(one.run())).code == "unknown_outcome"
        assert not place.booked
        done = await one.run(verify=place.finds)
        assert (done.value.v, done.is_recorded) == ({"number": 1}, False)

    play(story)


@pytest.mark.parametrize(
    "error",
    [
        StepFailure("rate_limited", "429"),
        StepFailure("bad_request", "no such table"),
        StepFailure("card_declined", "no money", kind="permanent"),
        StepFailure("connection_failed", "refused", happened=False),
    ],
)
def test_a_failure_that_says_that_it_has_not_happened_is_simply_tried_again(error: StepFailure) -> None:
    async def story(place: Place) -> None:
        one = place.invocation()
        assert await failed(one.run(act=raising(error))) is error
        assert (place.effect.status, place.effect.code) == (FAILED, error.code)
        assert (await place.invocation().run()).value.v == {"number": 1}
        assert (place.effect.status, place.effect.code) == (COMPLETED, "")

    play(story)


@pytest.mark.parametrize(("key", "days"), [(Key.saga(), 7), (Key.saga(retry_window="2d"), 2)])
def test_after_its_window_what_failed_is_refused_with_its_failure(key: KeyRule, days: int) -> None:
    async def story(place: Place) -> None:
        error = StepFailure("bad_request", "password=hunter2 is not accepted")
        await failed(place.invocation().run(act=raising(error), key=key))
        await asyncio.sleep((days * DAY - 10_000) / 1_000)
        await failed(place.invocation().run(act=raising(error), key=key))
        await asyncio.sleep(20)
        failure = await failed(place.invocation().run(key=key))
        assert (failure.code, failure.happened) == ("bad_request", False)
        assert "its time to be tried again is over" in failure.message
        assert "hunter2" not in failure.message
        assert not place.booked

    play(story)


def test_a_tool_that_found_no_room_has_done_nothing_and_frees_its_claim() -> None:
    async def story(place: Place) -> None:
        one = place.invocation()
        with pytest.raises(NoRoom):
            await one.run(act=raising(NoRoom("full")))
        assert place.effect.status == FREED
        assert (await one.run()).value.v == {"number": 1}

    play(story)


def test_whoever_waits_for_an_attempt_that_finds_no_room_has_its_turn() -> None:
    async def story(place: Place) -> None:
        async def act() -> Any:
            await asyncio.sleep(1)
            raise NoRoom("full")

        async def first() -> None:
            with pytest.raises(NoRoom):
                await place.invocation().run(act=act, key=Key.request())

        _, second = await asyncio.gather(first(), place.invocation().run("s2", key=Key.request()))
        assert second.value.v == {"number": 1}

    play(story)


# ---- verify ------------------------------------------------------------------------------------------------------


async def in_doubt(place: Place) -> Invocation:
    """An invocation after another whose attempt broke off."""
    await failed(place.invocation().run(act=raising(StepFailure("connection_failed", "reset"))))
    return place.invocation()


@pytest.mark.parametrize(
    ("verdict", "code", "says"),
    [
        ({"happened": None}, "unknown_outcome", "`table.find` cannot tell"),
        ({"happened": True, "result": {"no": 1}}, "unknown_outcome", "gives no result that `table.book` could have"),
        ({"happened": True}, "unknown_outcome", "what came of it is not known"),
        ({"happened": "yes"}, "result_invalid", "must return an object with `happened`"),
        ({}, "result_invalid", "must return an object with `happened`"),
        ([], "result_invalid", "must return an object with `happened`"),
    ],
)  # fmt: skip
def test_a_verify_that_does_not_say_leaves_the_doubt(verdict: Any, code: str, says: str) -> None:
    async def story(place: Place) -> None:
        one = await in_doubt(place)
        failure = await failed(one.run(verify=saying(verdict)))
        assert failure.code == code
        assert says in failure.message
        assert place.effect.status == IN_PROGRESS
        assert not place.booked

    play(story)


def test_a_verify_that_fails_is_the_failure_and_it_can_be_asked_again() -> None:
    async def story(place: Place) -> None:
        one = await in_doubt(place)
        failure = await failed(
            one.run(verify=raising(StepFailure("rate_limited", "slow down", retry_after="3")))
        )
        assert (failure.code, failure.retry_after) == ("rate_limited", "3")
        assert failure.message == "`table.find` could not look whether `table.book` has happened: slow down"
        assert (await one.run(verify=saying({"happened": False}))).value.v == {"number": 1}

    play(story)


def test_a_result_that_verify_found_is_recorded_for_all() -> None:
    async def story(place: Place) -> None:
        one = await in_doubt(place)
        found = saying({"happened": True, "result": {"number": 77}})
        assert (await one.run(verify=found)).is_recorded
        assert one.calls == ["claim", "change"]
        assert (await place.invocation().run()).value.v == {"number": 77}
        assert not place.booked

    play(story)


def test_of_two_that_look_at_the_same_time_one_acts() -> None:
    async def story(place: Place) -> None:
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

    play(story)


def test_of_two_that_find_it_at_the_same_time_both_have_what_the_first_recorded() -> None:
    async def story(place: Place) -> None:
        key = Key.request()
        error = StepFailure("connection_failed", "reset")
        await failed(place.invocation().run(act=raising(error), key=key, lasts=1_000))
        await asyncio.sleep(10)
        found = (saying({"happened": True, "result": {"number": number}}) for number in (1, 2))
        runs = (place.invocation().run(f"s{n}", key=key, verify=verify) for n, verify in enumerate(found))
        done = await asyncio.gather(*runs)
        assert [each.value.v for each in done] == [{"number": 1}] * 2

    play(story)


def test_of_those_who_wait_for_a_claim_that_somebody_deletes_one_acts() -> None:
    async def story(place: Place) -> None:
        first = place.invocation()
        first.die_before = "change"
        await killed(first.run(key=Key.request()))
        place.booked.clear()
        others = asyncio.gather(*(place.invocation().run(f"s{n}", key=Key.request()) for n in (2, 3)))
        await asyncio.sleep(1)
        place.effects.stored.clear()
        assert sorted(done.is_recorded for done in await others) == [False, True]
        assert place.booked.total() == 1

    play(story)


def test_who_records_too_late_has_what_the_others_have() -> None:
    async def story(place: Place) -> None:
        async def act() -> Any:
            await asyncio.sleep(60)  # far beyond its time, as a frozen process is
            return {"number": 99}

        first = asyncio.create_task(place.invocation().run(act=act, key=Key.request(), lasts=10_000))
        await asyncio.sleep(20)
        second = await place.invocation().run("s2", key=Key.request(), verify=saying({"happened": False}))
        assert (await first).value == second.value

    play(story)


def test_who_records_while_another_has_taken_over_has_its_own_result() -> None:
    async def story(place: Place) -> None:
        async def act() -> Any:
            await asyncio.sleep(60)
            return {"number": 99}

        place.seconds = 50
        first = asyncio.create_task(place.invocation().run(act=act, key=Key.request(), lasts=10_000))
        await asyncio.sleep(20)
        verify = saying({"happened": False})
        second = asyncio.create_task(
            place.invocation().run("s2", key=Key.request(), verify=verify, lasts=90_000)
        )
        assert (await first).value.v == {"number": 99}
        assert (await second).value.v == {"number": 1}

    play(story)


# ---- a person ----------------------------------------------------------------------------------------------------


def test_a_person_who_says_that_it_has_not_happened_frees_it_for_the_next_attempt() -> None:
    async def story(place: Place) -> None:
        one = await in_doubt(place)
        await failed(one.run())
        said = place.clock.now()
        await asyncio.sleep(1)
        done = await one.run(decided_at=said)
        assert (done.value.v, place.booked.total()) == ({"number": 1}, 1)

    play(story)


def test_what_a_person_said_of_one_attempt_does_not_hold_for_the_next() -> None:
    async def story(place: Place) -> None:
        one = await in_doubt(place)
        await failed(one.run())
        said = place.clock.now()
        await asyncio.sleep(1)
        await failed(one.run(decided_at=said, act=raising(StepFailure("connection_failed", "again"))))
        assert (await failed(place.invocation().run(decided_at=said))).code == "unknown_outcome"
        assert not place.booked

    play(story)


def test_what_a_person_says_came_of_it_is_recorded() -> None:
    async def story(place: Place) -> None:
        one = await in_doubt(place)
        await failed(one.run())
        context = StepContext(
            saga="s1", tenant="acme", user="ada", node="book", idempotency_key=place.effect.key
        )
        value = Value(v={"number": 5})
        assert not await one.once.happened(SPEC, "book#0", context, value, place.effect.updated - 1)
        one.lose_answer_of = "change"
        assert await one.once.happened(SPEC, "book#0", context, value, place.clock.now())
        assert not await one.once.happened(SPEC, "book#0", context, value, place.clock.now())
        assert (await place.invocation().run()).value.v == {"number": 5}
        nobody = replace(context, idempotency_key="0" * 32)
        assert not await one.once.happened(SPEC, "book#0", nobody, value, place.clock.now())

    play(story)
