"""When a worker looks at a request that a provider of models has: by computed moments, by what is said, and not twice in between."""

from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec.structs import replace

from baton.core.log.records import Response
from baton.core.log.work import Callback, Open, Wait, responses_left
from baton.core.nodes.task import FIRST_MS, LONGEST_MS, next_look

HOUR = 3_600_000
WORK = Callback(id="1.ask.1", since=1_000, until=1_000 + HOUR, response=Response(id="resp_1", model="m"))


def looks(work: Callback) -> list[int]:
    found = [work.since]
    while found[-1] < work.until:
        found.append(next_look(work, found[-1]))
    return found


def test_pauses_double_up_to_five_minutes_and_are_up_to_a_fourth_longer() -> None:
    pauses = [after - before for before, after in pairwise(looks(WORK))]
    stretch = pauses[0] / FIRST_MS
    assert 1 <= stretch <= 1.25
    assert [round(pause / stretch / 1_000) for pause in pauses[:6]] == [15, 30, 60, 120, 240, 300]
    assert max(pauses) <= LONGEST_MS * 1.25


def test_the_last_look_is_at_the_end_of_its_time_and_after_it_each_one_is_due() -> None:
    assert looks(WORK)[-1] == WORK.until
    assert next_look(WORK, WORK.until) <= WORK.until
    assert next_look(WORK, WORK.until + 5) <= WORK.until
    assert next_look(replace(WORK, until=2_000), 1_000) == 2_000


@pytest.mark.parametrize("after", [1_001, 15_999, 60_000, 1_000_000, 3_000_000])
def test_the_next_look_is_later_and_the_same_however_often_it_is_asked_for(after: int) -> None:
    found = next_look(WORK, after)
    assert found > after
    assert found in looks(WORK)


def test_requests_that_began_together_are_looked_at_apart() -> None:
    others = [replace(WORK, response=Response(id=f"resp_{n}", model="m")) for n in range(20)]
    assert len({next_look(one, one.since) for one in others}) > 15


def test_left_is_what_nothing_waits_for_and_no_attempt_has_ended() -> None:
    plain = Callback(id="1.b.1", since=0, until=1)
    before: dict[str, Open] = {"ask": WORK, "b": plain, "c": Wait()}
    assert responses_left(before, before, ()) == []
    assert responses_left(before, {}, ()) == [WORK.response]
    assert responses_left(before, {}, {"1.ask.1"}) == []
    again = replace(WORK, response=Response(id="resp_2", model="m"))
    assert responses_left(before, {"ask": again}, ()) == [WORK.response]
