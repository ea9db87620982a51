"""A fork goes back in time without going down in versions, and keeps what really happened.

`fork_to` is the fold of a fork's entry: it needs the state at the cut besides the state before it.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from baton.core import events as ev
from baton.core.fold import fork_to, lineage_to
from baton.core.state import Segment, State, status_of
from baton.errors import CorruptLog
from tests.core.build import T0, Saga, chain, done, entry, failed, interrupted, program, ready, task, wait


def fork(saga: Saga, cut: int) -> None:
    branch = saga.state.branch + 1
    saga.put(ev.Forked(cut=cut, branch=branch, by="ada", at=saga.now), epoch=0, invocation="api")


def test_the_new_branch_begins_with_the_state_at_the_cut_and_goes_on_counting_versions() -> None:
    saga = Saga(chain(3))
    saga.go(done("n0"))
    saga.go(done("n1"))
    fork(saga, cut=2)
    assert (saga.state.version, saga.state.branch, saga.state.branch_first) == (4, 1, 5)
    assert ready(saga.go()) == ["n1"]
    saga.go(done("n1"))
    assert (saga.entries[-1].branch, saga.entries[-1].version) == (1, 5)


def test_a_finished_saga_can_be_forked_and_ends_again() -> None:
    saga = Saga(chain(2))
    saga.go(done("n0"))
    saga.go(done("n1"))
    assert status_of(saga.state) == "completed"
    fork(saga, cut=2)
    assert status_of(saga.state) == "running"
    saga.go(done("n1"))
    assert status_of(saga.state) == "completed"


def test_a_fork_starts_afresh_after_failure_cancel_and_parking() -> None:
    saga = Saga(program(task("a"), task("b")))
    saga.cancel(grace_ms=9)
    saga.go(failed("a"), interrupted("b"), running=["b"])
    saga.put(ev.Parked(code="x", message="y"))
    saga.die()
    fork(saga, cut=saga.state.version)
    state = saga.state
    assert (state.cancel, state.failure, state.parked, state.ended) == (None, None, None, None)
    assert (state.tries, state.interruptions) == (0, {})
    assert ready(saga.go()) != []


def test_a_fork_keeps_what_really_happened() -> None:
    saga = Saga(chain(3))
    saga.signal("s", None, "k1")
    saga.go(interrupted("n0"))
    saga.die()
    saga.go(done("n0"))
    fork(saga, cut=1)
    state = saga.state
    assert (state.epoch, state.invocation, state.invocations) == (2, "i2", 2)
    assert (state.revivals, state.interrupted) == (1, 1)
    assert state.keys == ("k1",), "a signal that was used must not be used again by its second delivery"
    assert (state.signals, state.steps) == ((), 0)


def test_the_lineage_lists_every_segment_that_belongs_to_the_history() -> None:
    saga = Saga(chain(4))
    saga.go(done("n0"))
    saga.go(done("n1"))
    fork(saga, cut=2)  # entry 4
    assert lineage_to(saga.state) == (Segment(0, 1, 2),)
    saga.go(done("n1"))  # entry 5, in branch 1
    assert lineage_to(saga.state) == (Segment(0, 1, 2), Segment(1, 5, 5))
    fork(saga, cut=5)
    assert list(saga.state.lineage) == [Segment(0, 1, 2), Segment(1, 5, 5)]
    fork(saga, cut=1)
    assert list(saga.state.lineage) == [Segment(0, 1, 1)]


def test_a_fork_to_where_the_branch_just_began_adds_no_empty_segment() -> None:
    saga = Saga(chain(2))
    fork(saga, cut=1)
    fork(saga, cut=2)
    assert saga.state.lineage == (Segment(0, 1, 1),)


@pytest.mark.parametrize(("version", "branch"), [(2, 0), (4, 0), (3, 1)])
def test_a_fork_must_be_the_next_entry_of_its_branch(version: int, branch: int) -> None:
    saga = Saga(chain(2))
    saga.go(done("n0"))
    event = ev.Forked(cut=1, branch=2, by="ada", at=T0)
    with pytest.raises(CorruptLog, match=f"fork {branch}/{version} cannot follow 0/2"):
        fork_to(saga.state, saga.states[1], entry(version, event, branch=branch), event)


def test_an_open_wait_and_its_deadline_come_back_with_the_cut() -> None:
    saga = Saga(program(wait("w", signal="yes", ms=50), task("a", "w")))
    saga.go()
    saga.signal("yes")
    saga.go()
    fork(saga, cut=2)
    assert saga.go().due == T0 + 50


def test_an_outcome_from_before_the_fork_is_judged_by_the_new_branch() -> None:
    saga = Saga(chain(3))
    saga.go(done("n0"))
    fork(saga, cut=1)
    saga.go(done("n1"))
    assert saga.kinds == ["forked"], "n1 is not waiting there, so nothing was written"


def test_a_fork_changes_neither_of_the_states_it_is_made_of() -> None:
    saga = Saga(chain(3))
    saga.go(done("n0"))
    before, cut = saga.state, saga.states[1]
    copies = replace(before), replace(cut)
    fork(saga, cut=1)
    assert (before, cut) == copies
    assert State() == State(version=0)
