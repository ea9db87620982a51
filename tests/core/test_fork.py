"""A fork goes back in time without going down in versions, and keeps what really happened.

`fork_to` is the fold of a fork's entry: it needs the state at the cut besides the state before it.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.decide import decide
from baton.core.graph.graph import Cap
from baton.core.log import events as ev
from baton.core.log.folding.forks import fork_to, lineage_to
from baton.core.log.state import FORK_KEY, Segment, State, status_of
from baton.core.models.usage import Usage
from baton.core.read.answers import ForkedFrom
from baton.core.read.story import Story
from baton.core.read.views import saga_view
from baton.errors import CorruptLog
from tests.core.asked import cancels_of, children_of, steps_of
from tests.core.build import (
    T0,
    Saga,
    chain,
    child,
    done,
    entry,
    failed,
    interrupted,
    program,
    ready,
    task,
    wait,
)
from tests.kit.sentences import Says
from tests.kit.views import way


def fork(saga: Saga, cut: int, key: str = "") -> None:
    branch = saga.state.lineage.branch + 1
    saga.put(ev.Forked(cut=cut, branch=branch, by="ada", at=saga.now, key=key), epoch=0, invocation="api")


def test_the_new_branch_begins_with_the_state_at_the_cut_and_goes_on_counting_versions() -> None:
    saga = Saga(chain(3))
    saga.go(done("n0"))
    saga.go(done("n1"))
    fork(saga, cut=2)
    assert (saga.state.version, saga.state.lineage.branch, saga.state.lineage.first) == (4, 1, 5)
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
    assert (state.recovery.consecutive_crashes, state.recovery.interruptions) == (0, {})
    assert ready(saga.go()) != []


def test_a_fork_keeps_what_really_happened() -> None:
    saga = Saga(chain(3))
    saga.go(interrupted("n0"))
    saga.die()
    saga.go(done("n0"))
    fork(saga, cut=1)
    state = saga.state
    assert (state.epoch, state.invocation, state.counts.invocations) == (2, "i2", 2)
    assert (state.counts.revivals, state.counts.interrupted, state.counts.steps) == (1, 1, 0)


def test_a_fork_forgets_the_signals_behind_the_cut_so_that_they_can_be_sent_again() -> None:
    saga = Saga(program(wait("w", signal="s"), task("a", "w")))
    saga.signal("early", None, "k0")
    saga.go()
    saga.signal("s", "first", "k1")
    saga.go()
    fork(saga, cut=3)
    assert list(saga.state.keys) == ["early/k0"]
    saga.signal("s", "second", "k1")
    saga.go()
    assert saga.kinds == ["wait_closed"]


# ---- repeated forks ------------------------------------------------------------------------------------------------


def test_the_key_of_a_fork_is_remembered_in_every_branch_with_its_cut() -> None:
    saga = Saga(chain(2))
    fork(saga, cut=1, key="k1")
    fork(saga, cut=1, key="k2")
    fork(saga, cut=2)
    assert saga.state.keys == {f"{FORK_KEY}k1": "1", f"{FORK_KEY}k2": "1"}


def test_the_key_of_a_fork_is_not_that_of_a_signal_which_happens_to_be_called_fork() -> None:
    saga = Saga(chain(2))
    fork(saga, cut=1, key="k")
    saga.signal("fork", None, "k")
    assert len(saga.state.signals) == 1
    fork(saga, cut=1)
    assert list(saga.state.keys) == [f"{FORK_KEY}k"]


# ---- children ------------------------------------------------------------------------------------------------------

PARENT = program(task("a"), child("c", "a"), child("d"), task("z", "c", "d"))


def test_a_child_that_is_open_on_both_sides_goes_on() -> None:
    saga = Saga(PARENT)
    saga.go()  # 2: d is opened
    saga.go(done("a"))
    fork(saga, cut=2)
    assert {slot: one.saga for slot, one in saga.state.children.items()} == {"d": "s1.0.d"}
    assert [one.saga for one in saga.state.orphaned_children] == ["s1.0.c"]


def test_a_child_that_was_opened_behind_the_cut_is_cancelled_before_anything_else() -> None:
    saga = Saga(PARENT)
    saga.go()
    saga.go(done("a"))
    fork(saga, cut=2)
    decision = decide(saga.program, saga.state, saga.now)
    assert [(slot, one.saga) for slot, one in cancels_of(decision)] == [("", "s1.0.c")]
    assert ready(decision) == []
    decision = saga.go()
    assert (ready(decision), saga.kinds, saga.state.orphaned_children) == (["a"], ["children_abandoned"], ())
    assert ready(saga.go()) == ["a"]
    saga.go(done("a"))
    assert saga.state.children["c"].saga == "s1.1.c", "another one than that which was cancelled"


def test_children_that_were_left_are_remembered_over_further_forks() -> None:
    saga = Saga(PARENT)
    saga.go()
    saga.go(done("a"))
    fork(saga, cut=2)
    fork(saga, cut=1)
    assert [one.saga for one in saga.state.orphaned_children] == ["s1.0.c", "s1.0.d"]
    saga.go()
    assert saga.state.orphaned_children == ()


def test_a_child_that_had_reported_at_the_cut_has_reported() -> None:
    saga = Saga(PARENT)
    saga.go()
    saga.put(ev.ChildReported(slot="d", child="s1.0.d", status="completed", output=ev.Value(v=1)), epoch=0)
    saga.go()
    fork(saga, cut=3)
    saga.go()
    assert saga.kinds == ["child_closed"]


def test_a_child_that_ended_behind_the_cut_is_started_anew() -> None:
    saga = Saga(PARENT)
    saga.go()
    saga.put(ev.ChildReported(slot="d", child="s1.0.d", status="completed", output=ev.Value(v=1)), epoch=0)
    fork(saga, cut=2)
    assert (saga.state.children, saga.state.orphaned_children) == ({}, ())
    saga.go()
    assert saga.state.children["d"].saga == "s1.1.d"


@pytest.mark.parametrize("ending", ["cancelling", "failing", "cancelled"])
def test_children_of_a_saga_that_was_ending_do_not_go_on(ending: str) -> None:
    """Their parent has asked them to stop, or is about to."""
    saga = Saga(PARENT)
    saga.go()
    if ending == "failing":
        saga.go(failed("a"), running=["a"])
    else:
        saga.cancel()
    if ending == "cancelled":
        saga.go()
        assert status_of(saga.state) == "cancelled"
    fork(saga, cut=2)
    assert saga.state.children == {}
    assert [one.saga for one in saga.state.orphaned_children] == ([] if ending == "cancelled" else ["s1.0.d"])


def test_children_that_were_left_are_cancelled_even_if_the_saga_ends_first() -> None:
    saga = Saga(PARENT)
    saga.go()
    saga.go(done("a"))
    fork(saga, cut=2)
    saga.cancel()
    decision = saga.go()
    assert [(slot, one.saga) for slot, one in cancels_of(decision)] == [("", "s1.0.c")]
    assert [(slot, one.saga) for slot, one in children_of(decision)] == [("d", "s1.0.d")]
    assert (status_of(saga.state), saga.state.orphaned_children) == ("cancelled", ())


# ---- lineage -------------------------------------------------------------------------------------------------------


def test_the_lineage_lists_every_segment_that_belongs_to_the_history() -> None:
    saga = Saga(chain(4))
    saga.go(done("n0"))
    saga.go(done("n1"))
    fork(saga, cut=2)  # entry 4
    assert lineage_to(saga.state) == (Segment(0, 1, 2),)
    saga.go(done("n1"))  # entry 5, in branch 1
    assert lineage_to(saga.state) == (Segment(0, 1, 2), Segment(1, 5, 5))
    fork(saga, cut=5)
    assert list(saga.state.lineage.closed) == [Segment(0, 1, 2), Segment(1, 5, 5)]
    fork(saga, cut=1)
    assert list(saga.state.lineage.closed) == [Segment(0, 1, 1)]


def test_a_fork_to_where_the_branch_just_began_adds_no_empty_segment() -> None:
    saga = Saga(chain(2))
    fork(saga, cut=1)
    fork(saga, cut=2)
    assert saga.state.lineage.closed == (Segment(0, 1, 1),)


@pytest.mark.parametrize(("version", "branch"), [(2, 0), (4, 0), (3, 1)])
def test_a_fork_must_be_the_next_entry_of_its_branch(version: int, branch: int, says: Says) -> None:
    saga = Saga(chain(2))
    saga.go(done("n0"))
    event = ev.Forked(cut=1, branch=2, by="ada", at=T0)
    with says.raised(CorruptLog):
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


def test_money_and_tokens_spent_since_the_cut_stay_spent() -> None:
    spent = {"limits": {"cost": Cap(most=900), "tokens": Cap(most=900)}}
    saga = Saga(program(task("a", **spent), task("b", "a", **spent)))
    used = (Usage(model="m", input=3, output=4),)
    saga.go(replace(done("a"), cost=100, usage=used))
    saga.go(replace(failed("b"), cost=20, usage=used))
    before = saga.state
    assert (before.money.spent, before.used["b"].cost, before.used["b"].tokens) == (120, 20, 7)
    fork(saga, cut=2)
    assert (saga.state.money.spent, saga.state.used["b"].cost, saga.state.used["b"].tokens) == (120, 20, 7)
    assert saga.state.used["a"].cost == 100


# ---- changes -------------------------------------------------------------------------------------------------------


ATTEMPT: dict[str, Any] = {
    "attempt": 1,
    "started_at": T0,
    "ended_at": T0,
    "tool": "t",
    "tool_version": "1",
    "schema_hash": "",
}


def fork_with(saga: Saga, cut: int, *changes: ev.Event) -> None:
    branch = saga.state.lineage.branch + 1
    saga.put(ev.Forked(cut=cut, branch=branch, by="ada", at=saga.now), *changes, epoch=0, invocation="api")


def test_the_events_behind_a_fork_change_the_state_of_its_cut() -> None:
    saga = Saga(chain(2, x="${input.x}", y="${ctx.n0.output}"), given={"x": 1})
    saga.go(done("n0", 1))
    saga.go(done("n1"))
    changed = ev.ValueChanged(value=ev.Value(v={"x": 2})), ev.ValueChanged(node="n0", value=ev.Value(v=5))
    fork_with(saga, 2, *changed)
    assert (saga.state.origin.input.v, saga.state.outputs["n0"].v) == ({"x": 2}, 5)
    assert (saga.state.version, saga.state.lineage.first) == (4, 5)
    (step,) = steps_of(saga.go())
    assert step.arguments == {"x": 2, "y": 5}


def test_a_fork_without_the_changes_of_an_earlier_one_goes_on_with_the_values_of_its_cut() -> None:
    saga = Saga(chain(2, x="${input}"), given=1)
    fork_with(saga, 1, ev.ValueChanged(value=ev.Value(v=2)))
    fork_with(saga, 2)
    assert saga.state.origin.input.v == 2
    fork_with(saga, 1)
    assert saga.state.origin.input.v == 1


def test_repeated_slots_get_new_keys_and_all_other_slots_keep_theirs() -> None:
    saga = Saga(chain(3))
    saga.go(done("n0"))
    fork_with(saga, 1, ev.Repeats(slots=("n0", "n1#3")))
    keys = {slot: saga.state.undo.generation(slot) for slot in ("n0", "n0@1#x", "n1", "n1#3", "n2")}
    assert keys == {"n0": 1, "n0@1#x": 1, "n1": 0, "n1#3": 1, "n2": 0}
    fork_with(saga, 1, ev.Repeats(slots=("n0",)))
    assert saga.state.undo.generation("n0") == 2, "a later fork keeps the numbers"


def test_the_story_of_a_saga_has_the_values_that_its_forks_have_changed() -> None:
    saga = Saga(chain(2, x="${ctx.n0.output}"), given=1)
    saga.go(done("n0", 1))
    fork_with(saga, 2, ev.ValueChanged(node="n0", value=ev.Value(v=5)), ev.Repeats(slots=("n1",)))
    story = Story(saga.program)
    for one in saga.entries[:2]:
        story.add(one)
        story.change(one)
    assert story.changed == {}
    story.change(saga.entries[2])
    changed, when = story.changed["n0"]
    assert (changed.value.v, when.version, story.state.outputs["n0"].v) == (5, 3, 5)
    story.agree_with(saga.state)


def test_a_step_that_is_over_is_not_ahead() -> None:
    saga = Saga(chain(2))
    saga.go(done("n0"))
    ahead = saga.program.ahead_in(saga.state)
    assert [saga.program.is_ahead(name, ahead) for name in ("n0", "n1")] == [False, True]


# ---- new sagas -----------------------------------------------------------------------------------------------------


def copied(saga: Saga, cut: int) -> Saga:
    """The log of a new saga with copies of the entries up to the cut, in the place of that of `saga`."""
    first = saga.entries[0]
    (began,) = first.events
    assert isinstance(began, ev.SagaStarted)
    new = Saga(saga.program)
    new.states, new.entries, new.state, new.epoch = [State()], [], State(), 1
    new.now = saga.now + 5_000
    new.put(replace(began, saga="s2", source="s1"), epoch=0, invocation="api")
    for one in saga.entries[1:cut]:
        new.put(*one.events, epoch=0, invocation="api")
    branch = new.state.lineage.branch + 1
    new.put(ev.Forked(cut=cut, branch=branch, by="ada", at=new.now, source="s1"), epoch=0, invocation="api")
    return new


def test_a_new_saga_opens_its_own_children_and_has_nothing_of_what_the_other_one_did(says: Says) -> None:
    saga = Saga(program(task("a"), child("c", "a"), wait("w", "a", signal="s", ms=9_000)))
    saga.put(ev.Parked(code="x", message="y"), ev.Resumed(by="ada", at=T0))
    saga.go(done("a"))
    saga.go()
    opened = saga.state.children["c"].saga
    fork(saga, cut=saga.state.version, key="k")
    new = copied(saga, saga.state.version)
    state = new.state
    assert (state.origin.saga, state.origin.source, state.origin.copied) == ("s2", "s1", saga.state.version)
    assert (state.children, state.orphaned_children, state.keys) == ({}, (), {})
    assert (state.epoch, state.invocation, state.counts.invocations, state.counts.steps) == (0, "", 0, 1)
    assert state.open.keys() == {"w"}
    story = Story(new.program)
    story.agree_with(state)
    says(way(story, 0, 9, 9_000).start)
    assert way(story, 1, 9, 9_000).start is None
    assert saga_view(state, new.program).forked_from == ForkedFrom("s1", saga.state.version)
    new.go()
    assert new.state.children["c"].saga.startswith("s2.")
    assert new.state.children["c"].saga != opened
    assert cancels_of(new.decision) == ()


def test_a_log_that_was_copied_twice_is_copied_up_to_the_last_cut() -> None:
    """The second copy has the fork of the first one in it."""
    first = copied(Saga(chain(2)), 1)
    first.go(done("n0"))
    second = Saga(chain(2))
    second.states, second.entries, second.state = [State()], [], State()
    (began,) = first.entries[0].events
    assert isinstance(began, ev.SagaStarted)
    second.put(replace(began, saga="s3", source="s2"), epoch=0, invocation="api")
    for one in first.entries[1:]:
        second.put(*one.events, epoch=0, invocation="api")
        assert second.state.origin.copied == 0
    fork = ev.Forked(cut=3, branch=2, by="ada", at=second.now, source="s2")
    second.put(fork, epoch=0, invocation="api")
    assert (second.state.origin.source, second.state.origin.copied) == ("s2", 3)


def test_a_new_saga_has_an_account_a_list_to_undo_and_attempts_of_its_own() -> None:
    saga = Saga(program(task("a", limits={"cost": Cap(most=9)}), task("b", "a"), failures={}))
    saga.put(
        ev.NodeBegan(node="a", at=T0),
        ev.NoticeDue(notice=ev.Notice(key="k", to="user", code="x", message="y")),
        ev.AttemptFailed(node="a", failure=ev.Failure("x", "y"), key="key", acted=True, **ATTEMPT),
    )
    spent = replace(saga.state.money, spent=7, budget=9)
    saga.states[-1] = replace(saga.state, money=spent, approved={"a": ("digest",)})
    at_cut = replace(saga.states[-1], origin=replace(saga.state.origin, source="s1"))
    event = ev.Forked(cut=2, branch=1, by="ada", at=T0 + 9, source="s1")
    state = fork_to(at_cut, at_cut, entry(3, event), event)
    assert (state.money.spent, state.money.budget, state.approved) == (0, 9, {})
    assert at_cut.failing["a"].key == "key"
    assert replace(at_cut.failing["a"], key="", acted=False) == state.failing["a"], (
        "its calls are the other one's"
    )
    assert at_cut.outbox.due, "the other saga sends it"
    assert (state.outbox.due, state.outbox.rows) == ((), {})
    assert (state.undo.head, state.begun) == (0, {"a": T0 + 9})
    assert all((one.cost, one.tokens) == (0, 0) for one in state.used.values())
