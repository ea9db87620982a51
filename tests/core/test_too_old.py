"""A saga lasts so many days, and no longer: what is stored of it is not kept for ever."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from baton.core.decide.decide import decide
from baton.core.log.events import LimitReached, Parked
from baton.core.log.state import State
from tests.core.build import Saga, program, task
from tests.kit.sentences import Says

DAY = 86_400_000


def state(ends_by: int, parked: Parked | None = None) -> State:
    known = Saga(program(task("a"))).state
    return replace(known, parked=parked, origin=replace(known.origin, started_at=DAY, ends_by=ends_by))


PARKED = Parked(code="escalated", message="", node="a")


@pytest.mark.parametrize("parked", [None, PARKED])
@pytest.mark.parametrize(
    ("ends_by", "now", "is_over"),
    [(0, 10**15, False), (4 * DAY, 4 * DAY - 1, False), (4 * DAY, 4 * DAY, True), (4 * DAY, 9 * DAY, True)],
)
def test_a_saga_fails_once_its_days_are_over_parked_or_not(
    ends_by: int, now: int, is_over: bool, parked: Parked | None, says: Says
) -> None:
    record = decide(program(task("a")), state(ends_by, parked), now).record
    if not is_over:
        assert not any(isinstance(event, LimitReached) for event in record)
        return
    (event,) = record
    assert isinstance(event, LimitReached)
    assert event.failure.code == "limit_wall_time"
    says(event.failure.message)
