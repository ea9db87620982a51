"""The journal of a step in the core: units that the log has, in the order in which they were done, and how long."""

from __future__ import annotations

import pytest
from msgspec.structs import asdict, replace

from baton.cli.text.render import EventLines
from baton.core.decide.outcomes import STOPPED, UNIT, Outcome, spent_by, undecided_outcome
from baton.core.log import events as ev
from baton.core.log.slots import Slot
from baton.core.log.state import FAULT
from baton.core.log.work import Journal, units_in
from baton.core.read.places import SHOWN
from baton.core.read.views import entry_view, saga_view
from tests.core.build import T0, Saga, child, done, failed, interrupted, program, task
from tests.core.told import whole, why
from tests.kit.sentences import Says
from tests.kit.views import as_json

LARGE = ev.Value(ref="cas://sha256/" + "a" * 64, size=9_000)


def unit(slot: str, name: str, attempt: int = 1, output: ev.Value | None = None, cost: int = 0) -> Outcome:
    """Return the outcome of an attempt that goes on: one unit of its work is done."""
    value = output or ev.Value(v=f"{name} is done")
    place, key = Slot.parse(slot).fields, f"{slot}/{name}"
    event = ev.UnitRecorded(**place, name=name, key=key, output=value, size=10, at=T0)
    return Outcome(slot=slot, attempt=attempt, started_at=T0, ended_at=T0, why=UNIT, unit=event, cost=cost)


def of(*names: str) -> Saga:
    saga = Saga(program(*map(task, names or ("a",))))
    saga.go()
    return saga


def recorded(saga: Saga) -> list[tuple[int, str, int]]:
    """Version, name, and the version of those before."""
    return [
        (entry.version, event.name, event.prior)
        for entry in saga.entries
        for event in entry.events
        if isinstance(event, ev.UnitRecorded)
    ]


def test_a_unit_is_an_entry_and_names_the_one_before() -> None:
    saga = of()
    for name in ("x", "y", "z"):
        saga.go(unit("a", name), running=["a"])
    assert recorded(saga) == [(2, "x", 0), (3, "y", 2), (4, "z", 3)]
    assert saga.state.journals == {"a": Journal(head=4, units=3, size=30)}
    assert saga.decision.commands == (), "the step runs on"
    saga.go(done("a"))
    assert saga.state.ended is not None
    assert saga.state.journals == {}


def test_units_of_one_entry_are_read_back_the_newest_first() -> None:
    saga = of("a", "b")
    saga.go(unit("a", "x"), running=["a", "b"])
    saga.go(unit("a", "y"), unit("b", "w"), unit("a", "z"), running=["a", "b"])
    found = units_in(saga.entries[2].events, "a")
    assert ([one.name for one in found.units], found.prior) == (["z", "y"], 2)
    assert units_in(saga.entries[2].events, "b").prior == 0
    assert units_in(saga.entries[0].events, "b") == ([], 0)


@pytest.mark.parametrize("why", ["settled", "failed", "stopped"])
def test_a_unit_that_the_saga_does_not_wait_for_is_dropped(why: str) -> None:
    saga = of("a", "b")
    one = unit("a", "x")
    if why == "settled":
        saga.go(done("a"), running=["b"])
    elif why == "failed":
        one = unit("a", "x", attempt=0)
        saga.put(
            ev.AttemptFailed(
                node="a", attempt=1, failure=ev.Failure("e", "m", "a"), started_at=T0, ended_at=T0, tool="t",
                tool_version="1", schema_hash="",
            )
        )  # fmt: skip
    else:
        one = Outcome(slot="a", attempt=1, started_at=T0, ended_at=T0, why=STOPPED, unit=one.unit)
    before = saga.state.version
    saga.go(one, running=["b"])
    assert (recorded(saga), saga.state.version) == ([], before)
    late = ev.UnitRecorded(node="c", name="x", key="k", output=ev.Value(), size=1, at=T0)
    saga.put(late)
    assert saga.state.journals == {}, "a fold trusts no event about a slot that is not there"


def test_a_unit_of_a_cancelled_saga_counts_as_long_as_its_step_runs() -> None:
    saga = of()
    saga.cancel(grace_ms=10_000)
    saga.go(unit("a", "x"), running=["a"])
    assert [name for _, name, _ in recorded(saga)] == ["x"]


def test_a_unit_is_progress() -> None:
    """Neither deaths nor interruptions before it count any more; those of other steps do."""
    saga = of("a", "b")
    for number in range(2):
        saga.go(interrupted("a"), interrupted("b"))
        saga.epoch += 1
        saga.put(ev.Revived(dead="i", dead_epoch=saga.epoch - 1, dead_until=T0, at=T0))
        assert saga.state.recovery.consecutive_crashes == number + 1
    saga.go(unit("a", "x"), running=["a", "b"])
    recovery = saga.state.recovery
    assert (recovery.consecutive_crashes, recovery.interruptions, recovery.deaths) == (0, {"b": 2}, {"b": 2})
    assert "a" in recovery.possibly_running, "what may have acted may still have"


def test_a_fork_has_the_units_up_to_its_cut() -> None:
    saga = of()
    for name in ("x", "y"):
        saga.go(unit("a", name), running=["a"])
    saga.go(done("a"))
    saga.put(ev.Forked(cut=2, branch=1, by="ann", at=T0), epoch=0)
    assert saga.state.journals == {"a": Journal(head=2, units=1, size=10)}


def test_a_step_that_fails_the_saga_keeps_its_units_for_a_fork() -> None:
    saga = of()
    saga.go(unit("a", "x"), running=["a"])
    saga.go(failed("a"))
    assert saga.state.ended is not None
    version = saga.state.version
    saga.put(ev.Forked(cut=version - 1, branch=1, by="ann", at=T0), epoch=0)
    assert saga.state.journals["a"].units == 1


def test_units_are_shown(says: Says) -> None:
    saga = of()
    saga.go(unit("a", "x"), running=["a"])
    view = as_json(saga_view(saga.state, saga.program, {}))
    assert view["active"][0]["units"] == 1
    says(why(saga, "a"))
    saga.go(unit("a", "y", output=ev.Value(v="very " * 100)), running=["a"])
    saga.go(unit("a", "z", output=LARGE), running=["a"])
    says(why(saga, "a"))
    for number in range(60):
        saga.go(unit("a", f"{number}"), running=["a"])
    saga.go(done("a"))
    says(why(saga, "a"))
    (page,) = whole(saga, "a")
    assert len(page["units"]) == SHOWN
    assert [one["name"] for one in page["units"]][:2] == ["x", "11"]
    assert [one["version"] for one in page["units"]][-1] == saga.state.version - 1


def test_each_unit_has_a_line(says: Says) -> None:
    lines = EventLines()
    event = unit("a", "pay").unit
    large = unit("a", "fetch", output=LARGE).unit
    of_item = unit("a#3", "pay").unit
    packed = unit("a", "checkpoint 1", output=ev.Value(v="msgpack:kpWjcHV0gaxj")).unit
    assert event is not None
    assert large is not None
    assert of_item is not None
    assert packed is not None
    entry = ev.Entry(version=2, at=T0, epoch=1, invocation="i", events=(event, large, of_item, packed))
    says([" ".join(str(line)[21:].split()) for line in lines.of(entry_view(entry))][1:])


def test_a_step_beside_a_child_has_a_journal_of_its_own() -> None:
    saga = Saga(program(task("a"), child("b")))
    saga.go()
    saga.go(unit("a", "x"), running=["a"])
    assert saga.state.journals.keys() == {"a"}


def test_of_attempts_that_are_of_no_use_only_their_costs_are_left() -> None:
    """Units that were to be recorded go with the branch that they were done in."""
    paid = Outcome(slot="a", attempt=1, started_at=T0, ended_at=T0, cost=5, output=ev.Value(v=1))
    (left,) = spent_by([unit("a", "x"), done("b"), paid])
    assert (left.slot, left.cost, left.why) == ("a", 5, STOPPED)
    undecided = undecided_outcome(Outcome(**{**asdict(paid), "cost": -3, "assumed": -2}))
    assert (undecided.why, undecided.cost, undecided.assumed, undecided.output) == (FAULT, 0, 0, None)


def test_what_a_unit_has_cost_is_in_the_log_with_it() -> None:
    saga = of("a", "b")
    saga.go(unit("a", "x", cost=3), unit("b", "y"), unit("a", "z", cost=4), running=["a", "b"])
    units = [one for one in saga.entries[-1].events if isinstance(one, ev.UnitRecorded)]
    assert [one.cost for one in units] == [3, 0, 4]
    assert saga.state.money.spent == 7
    saga.go(replace(done("a"), cost=5), running=["b"])
    assert saga.state.money.spent == 12


def test_what_a_dropped_unit_has_cost_counts_all_the_same() -> None:
    saga = of("a", "b")
    saga.go(done("a"), running=["b"])
    saga.go(unit("a", "x", cost=3), running=["b"])
    (event,) = saga.entries[-1].events
    assert isinstance(event, ev.StepInterrupted)
    assert (event.cost, event.why, saga.state.money.spent) == (3, STOPPED, 3)
    (left,) = spent_by([unit("b", "y", cost=2), unit("b", "z")])
    saga.go(left, running=["b"])
    assert (saga.state.money.spent, recorded(saga)) == (5, [])
