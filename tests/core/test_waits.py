"""A wait ends at its time or with its signal, whichever is first; signals may come before the wait does.

A signal counts once, by its key, and only so many keys are remembered.

No clock here: `now` is an argument, and a wait's deadline is a number that `decide` compares with it.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.decide import advance
from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.folding.received import fingerprint, signal_key
from baton.core.log.state import FORK_KEY, KEYS_REMEMBERED, Signal, status_of
from baton.core.log.work import Wait
from tests.core.asked import needs_of, steps_of
from tests.core.build import T0, Saga, chain, done, program, ready, slots, task, wait
from tests.core.told import of


def test_a_wait_is_opened_with_its_deadline_counted_from_now() -> None:
    saga = Saga(program(wait("w", ms=500)))
    decision = saga.go(after_ms=30)
    assert saga.entries[-1].events == (ev.WaitOpened(node="w", until=T0 + 530),)
    assert decision.due == T0 + 530
    assert status_of(saga.state) == "waiting"


def test_a_wait_for_a_time_ends_at_that_time_and_not_before() -> None:
    saga = Saga(program(wait("w", ms=500), task("a", "w")))
    saga.go()
    assert saga.go(after_ms=499).due == T0 + 500
    assert len(saga.entries) == 2
    decision = saga.go(after_ms=1)
    assert saga.kinds == ["wait_closed"]
    assert (ready(decision), decision.due) == (["a"], None)


def test_a_deadline_is_not_counted_anew_by_a_later_worker() -> None:
    saga = Saga(program(wait("w", ms=500)))
    saga.go()
    saga.epoch += 1
    assert saga.go(after_ms=400).due == T0 + 500


def test_of_several_deadlines_the_nearest_is_told() -> None:
    saga = Saga(program(wait("v", ms=900), wait("w", ms=500), wait("x", ms=700), wait("y", signal="s")))
    assert saga.go().due == T0 + 500
    assert saga.go(after_ms=600).due == T0 + 700


def test_a_wait_for_a_signal_has_no_deadline_of_its_own() -> None:
    saga = Saga(program(wait("w", signal="yes")))
    assert saga.go().due is None
    assert saga.go(after_ms=10**12).due is None
    assert saga.state.open == {"w": Wait(signal="yes")}


def test_a_signal_ends_the_wait_and_its_payload_is_the_output() -> None:
    saga = Saga(program(wait("w", signal="yes"), task("a", "w", arguments={"x": "${ctx.w.output.n}"})))
    saga.go()
    saga.signal("yes", {"n": 4}, "k1")
    (step,) = steps_of(saga.go())
    assert step.arguments == {"x": 4}
    assert saga.entries[-1].events[0] == ev.WaitClosed(
        node="w", by="k1", output=ev.Value(v={"n": 4}), emits=(ev.Token("w", "a"),)
    )


def test_a_signal_of_another_name_ends_nothing() -> None:
    saga = Saga(program(wait("w", signal="yes")))
    saga.go()
    saga.signal("no")
    saga.go()
    assert saga.state.ended is None
    assert "w" in saga.state.open


def test_who_may_still_take_a_signal_is_who_can_be_reached() -> None:
    graph = program(wait("v", signal="yes"), wait("w", "v", signal="yes"), wait("x", "w", signal="no"))
    saga = Saga(graph)
    assert [node.name for node in graph.takers(saga.state, "yes")] == ["v", "w"]
    saga.go()
    saga.signal("yes", 1)
    saga.go()
    assert [node.name for node in graph.takers(saga.state, "yes")] == ["w"]
    assert [node.name for node in graph.takers(saga.state, "no")] == ["x"]
    saga.signal("yes", 1, "k2")
    saga.go()
    assert list(graph.takers(saga.state, "yes")) == []


def test_a_signal_that_came_before_the_wait_ends_it_as_soon_as_it_opens() -> None:
    saga = Saga(program(task("a"), wait("w", "a", signal="yes"), task("b", "w")))
    saga.signal("yes", 1)
    assert ready(saga.go(done("a"))) == ["b"]
    assert saga.kinds == ["step_succeeded", "wait_opened", "wait_closed"]


def test_a_signal_in_time_wins_over_a_deadline_that_has_passed() -> None:
    """Both are in the log when a worker decides: what a person said counts, not when the worker looked."""
    saga = Saga(program(wait("w", signal="yes", ms=50), task("b", "w", arguments={"x": "${ctx.w.output}"})))
    saga.go()
    saga.signal("yes", "in time")
    (step,) = steps_of(saga.go(after_ms=60))
    assert step.arguments == {"x": "in time"}


def test_a_wait_for_a_signal_that_times_out_says_so_in_its_output() -> None:
    saga = Saga(program(wait("w", signal="yes", ms=50), task("b", "w", arguments={"x": "${ctx.w.output}"})))
    saga.go()
    (step,) = steps_of(saga.go(after_ms=50))
    assert step.arguments == {"x": {"timed_out": True}}
    event = saga.entries[-1].events[0]
    assert isinstance(event, ev.WaitClosed)
    assert event.by == "time"


def test_a_signal_without_a_payload_is_not_taken_for_a_time_out() -> None:
    saga = Saga(program(wait("w", signal="yes", ms=50), task("b", "w", arguments={"x": "${ctx.w.output}"})))
    saga.signal("yes", None)
    (step,) = steps_of(saga.go())
    assert step.arguments == {"x": None}


def test_a_wait_for_a_time_alone_gives_null() -> None:
    saga = Saga(program(wait("w", ms=50), task("b", "w", arguments={"x": "${ctx.w.output}"})))
    saga.go()
    (step,) = steps_of(saga.go(after_ms=50))
    assert step.arguments == {"x": None}


STRICT = "w: {wait: {signal: yes, timeout: 1s}, output_schema: {type: object, required: [n]}}\nb: {tool: t, after: w}"


def test_a_time_out_is_not_held_against_the_schema_of_the_payload() -> None:
    saga = of(STRICT)
    saga.go()
    assert ready(saga.go(after_ms=1_000)) == ["b"]


def test_a_payload_that_came_is_held_against_it_still() -> None:
    saga = of(STRICT)
    saga.signal("yes", {})
    saga.go()
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert saga.state.ended.failure.code == "output_invalid"


@pytest.mark.parametrize("payload", [None, True, 4, "x", [], {}, {"n": 1}])
def test_a_condition_tells_a_time_out_from_any_payload(payload: Any) -> None:
    document = (
        "w: {wait: {signal: yes, timeout: 1s}, "
        """branch: {rules: [{if: 'output == {"timed_out": true}', then: late}], default: heard}}\n"""
        "late: {tool: t}\nheard: {tool: t}"
    )
    saga = of(document)
    saga.go()
    assert ready(saga.go(after_ms=1_000)) == ["late"]
    saga = of(document)
    saga.signal("yes", payload)
    assert ready(saga.go()) == ["heard"]


def test_a_signal_after_the_timeout_is_kept_for_a_wait_to_come() -> None:
    saga = Saga(program(wait("v", signal="yes", ms=50), task("a", "v"), wait("w", "a", signal="yes")))
    saga.go()
    saga.go(after_ms=50)
    saga.signal("yes", 1, "late")
    saga.go(done("a"))
    assert saga.state.ended is not None
    assert saga.kinds == ["step_succeeded", "wait_opened", "wait_closed", "saga_ended"]


def test_two_waits_for_one_signal_need_two_signals() -> None:
    saga = Saga(program(wait("v", signal="yes"), wait("w", signal="yes")))
    saga.go()
    saga.signal("yes", 1, "k1")
    saga.go()
    assert slots(saga.state) == {"w"}
    saga.signal("yes", 2, "k2")
    saga.go()
    assert status_of(saga.state) == "completed"


def test_two_signals_that_came_together_end_two_waits_in_their_order() -> None:
    output = {"v": "${ctx.v.output}", "w": "${ctx.w.output}"}
    saga = Saga(program(wait("v", signal="yes"), wait("w", signal="yes"), output=output))
    saga.signal("yes", 1, "k1")
    saga.signal("yes", 2, "k2")
    saga.go()
    assert saga.state.ended == ev.SagaEnded(status="completed", output=ev.Value(v={"v": 1, "w": 2}))


def test_two_waits_that_end_in_one_entry_leave_nothing_held_that_only_they_could_read() -> None:
    """Each is settled as if the other were in the log already."""
    saga = Saga(program(wait("v", signal="a"), wait("w", signal="b"), task("z", "v", "w")))
    saga.go()
    saga.signal("a", 1)
    saga.signal("b", 2)
    saga.go()
    assert saga.kinds == ["wait_closed", "wait_closed"]
    assert saga.state.outputs == {}


def test_a_step_that_runs_beside_a_wait_makes_the_saga_running() -> None:
    saga = Saga(program(wait("w", signal="yes"), task("a")))
    saga.go()
    assert status_of(saga.state, saga.program) == "running"
    saga.go(done("a"))
    assert status_of(saga.state, saga.program) == "waiting"


def test_a_payload_in_a_blob_stays_a_reference() -> None:
    saga = Saga(program(wait("w", signal="yes"), task("b", "w", arguments={"x": "${ctx.w.output}"})))
    saga.go()
    payload = ev.Value(ref="cas://p", size=9)
    saga.put(ev.SignalReceived(name="yes", key="k", payload=payload, by="ada", at=T0), epoch=0)
    assert needs_of(saga.go()) == {"cas://p"}
    assert saga.state.outputs == {"w": payload}


def test_facts_that_need_no_blob_are_held_back_until_the_blob_is_there() -> None:
    """One decision is one entry: it is made again, whole, once the blob was read."""
    saga = Saga(
        program(wait("w", ms=5), task("a", arguments={"x": "${input}"})), ev.Value(ref="cas://in", size=9)
    )
    step = advance(saga.program, saga.state, [], T0)
    assert step.events == ()
    assert needs_of(step.decision) == {"cas://in"}
    saga.go(blobs={"cas://in": 1})
    assert saga.kinds == ["wait_opened"]
    assert ready(saga.decision) == ["a"]


# ---- signals as such -----------------------------------------------------------------------------------------------


def received(name: str, key: str, payload: object = None) -> ev.SignalReceived:
    return ev.SignalReceived(name=name, key=key, payload=ev.Value(v=payload), by="eve", at=T0)


def test_a_signal_with_a_known_key_is_a_no_op() -> None:
    saga = Saga(chain(2))
    saga.signal("yes", 1, "k1")
    before = saga.state
    assert apply(before, received("yes", "k1", 2)) is before
    assert before.signals == (Signal("yes", "k1", ev.Value(v=1), at=T0),)


def test_two_signals_of_different_names_may_have_one_key() -> None:
    saga = Saga(chain(2))
    saga.signal("yes", 1, "k1")
    saga.signal("no", 2, "k1")
    assert [signal.name for signal in saga.state.signals] == ["yes", "no"]


def test_a_key_is_remembered_after_its_signal_was_used_with_what_it_came_with() -> None:
    saga = Saga(program(wait("w", signal="yes"), task("b", "w")))
    saga.signal("yes", {"a": 1, "b": 2}, "k1")
    saga.go()
    assert saga.state.signals == ()
    assert saga.state.keys == {signal_key("yes", "k1"): fingerprint(ev.Value(v={"b": 2, "a": 1}))}
    assert fingerprint(ev.Value(v={"a": 1, "b": 3})) not in saga.state.keys.values()
    saga.signal("yes", 2, "k1")
    assert saga.state.signals == ()


def taken(saga: Saga, *numbers: int) -> None:
    """Signals come in and are taken, as by a wait that is opened again and again."""
    for number in numbers:
        saga.signal("s", None, f"k{number}")
        waits = tuple(one for one in saga.state.signals if one.name != "s")
        saga.state = replace(saga.state, signals=waits)


def test_only_so_many_keys_are_remembered_and_the_oldest_goes_first() -> None:
    saga = Saga(chain(2))
    taken(saga, *range(KEYS_REMEMBERED + 3))
    keys = list(saga.state.keys)
    assert len(keys) == KEYS_REMEMBERED + 1, "and that of the last one, which waited when it came"
    assert (keys[0], keys[-1]) == ("s/k2", f"s/k{KEYS_REMEMBERED + 2}")


def test_the_key_of_a_signal_that_waits_is_never_forgotten() -> None:
    saga = Saga(chain(2))
    saga.signal("early", "first", "k")
    taken(saga, *range(KEYS_REMEMBERED + 2))
    saga.signal("early", "second", "k")
    assert [one.payload.v for one in saga.state.signals if one.name == "early"] == ["first"]
    assert "s/k0" not in saga.state.keys
    assert len(saga.state.keys) == KEYS_REMEMBERED + 2


def test_more_signals_than_keys_are_remembered_wait_with_their_keys_and_go_with_them() -> None:
    saga = Saga(chain(2))
    for number in range(KEYS_REMEMBERED + 50):
        saga.signal("s", None, f"k{number}")
    assert len(saga.state.keys) == len(saga.state.signals) == KEYS_REMEMBERED + 50
    saga.state = replace(saga.state, signals=())
    taken(saga, KEYS_REMEMBERED + 50)
    assert len(saga.state.keys) == KEYS_REMEMBERED + 1


def test_the_key_of_a_fork_is_never_forgotten() -> None:
    saga = Saga(chain(2))
    saga.put(ev.Forked(cut=1, branch=1, by="ada", at=saga.now, key="k"), epoch=0)
    taken(saga, *range(KEYS_REMEMBERED + 3))
    assert saga.state.keys[f"{FORK_KEY}k"] == "1"
    assert len(saga.state.keys) == KEYS_REMEMBERED + 2, (
        "forks leave as much room for signals as there would be without"
    )


def test_the_end_of_a_wait_uses_up_its_own_signal_and_no_other() -> None:
    saga = Saga(program(wait("w", signal="yes", ms=50), task("b", "w"), wait("x", "b", signal="later")))
    saga.go()
    saga.signal("later", 1, "time")  # a key that is also the word for a wait's timeout
    saga.signal("yes", 2, "k2")
    saga.signal("yes", 3, "k3")
    saga.go(after_ms=60)
    assert [signal.key for signal in saga.state.signals] == ["time", "k3"]


def test_a_timeout_leaves_a_signal_alone_whose_key_happens_to_be_time() -> None:
    saga = Saga(program(wait("w", signal="yes", ms=50), task("b", "w"), wait("x", "b", signal="later")))
    saga.go()
    saga.signal("later", 1, "time")
    saga.go(after_ms=60)
    assert saga.kinds[0] == "wait_closed"
    assert [signal.key for signal in saga.state.signals] == ["time"]


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-23:00", "0001-01-01T00:00:00+10:00"])
def test_a_time_that_is_in_no_year_of_ours_is_none(moment: str) -> None:
    node = Node(name="w", kind="wait", wait_until="${input}")
    saga = Saga(program(node), moment)
    saga.go()
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert saga.state.ended.failure.code == "wait_invalid"
    assert moment in saga.state.ended.failure.message


def fresh(name: str, *before: str) -> Node:
    return replace(wait(name, *before, signal="beat"), fresh=True)


def test_a_fresh_wait_takes_no_signal_that_came_before_it() -> None:
    saga = Saga(program(fresh("w"), wait("other", signal="go")))
    saga.signal("beat", 1, "k1")
    saga.signal("go", 2, "k2")
    saga.go()
    assert "w" in saga.state.open
    assert [one.name for one in saga.state.signals if one.name == "beat"] == []
    assert "other" not in saga.state.open, "another name is not touched"
    saga.signal("beat", 3, "k3")
    saga.go()
    assert saga.state.ended is not None


def test_a_signal_that_is_lost_is_taken_by_nothing_and_pushes_out_no_key() -> None:
    saga = Saga(program(wait("w", signal="beat")))
    lost = ev.SignalReceived(name="beat", key="k", payload=ev.Value(), by="ann", at=T0, lost=True)
    assert apply(saga.state, lost) == saga.state


def test_a_signal_is_lost_where_only_fresh_waits_are_for_it_and_none_is_open() -> None:
    saga = Saga(program(fresh("w"), fresh("v", "w")))
    assert saga.program.loses(saga.state, "beat")
    assert not saga.program.loses(saga.state, "other")
    saga.go()
    assert not saga.program.loses(saga.state, "beat")
    mixed = Saga(program(fresh("w"), wait("v", "w", signal="beat")))
    assert not mixed.program.loses(mixed.state, "beat")


def test_a_fresh_wait_that_the_saga_has_no_place_for_changes_nothing() -> None:
    state = apply(Saga(program(wait("v"))).state, ev.WaitOpened(node="w", signal="beat", fresh=True))
    assert state.open == {}
