"""Several waits of which one is enough: the log says which was over first, and no name, and no moment in which a worker looked."""

from __future__ import annotations

from itertools import permutations

import pytest
from msgspec.structs import replace

from baton.core.decide.scheduling import in_order
from baton.core.graph.graph import Join
from baton.core.log import events as ev
from baton.core.log.folding.received import CALLBACK
from baton.core.log.state import ANSWER, Signal, State
from baton.core.log.work import Callback, Wait
from tests.core.build import T0, Saga, done, program, task, wait

ANY = Join(need=1)


def racing(*waits: str, **timed: int) -> Saga:
    """Waits for a signal of their own name, or for a time, and a task behind the first that is over."""
    nodes = [wait(name, signal=name) for name in waits] + [wait(name, ms=ms) for name, ms in timed.items()]
    after = task("t", *(node.name for node in nodes), arguments={})
    saga = Saga(program(*nodes, replace(after, join=ANY)))
    saga.go()
    return saga


def closed(saga: Saga) -> list[str]:
    return [
        event.node for entry in saga.entries for event in entry.events if isinstance(event, ev.WaitClosed)
    ]


@pytest.mark.parametrize("order", [*permutations("abc")])
def test_the_first_signal_in_the_log_wins(order: tuple[str, ...]) -> None:
    saga = racing("a", "b", "c")
    for name in order:
        saga.signal(name)
    saga.go()
    assert closed(saga) == [order[0]]
    assert saga.state.tokens["t"][order[0]]


def test_it_does_so_although_the_clock_that_dated_it_was_ahead() -> None:
    saga = racing("a", "b")
    saga.now += 3_000
    saga.signal("b")
    saga.now -= 2_000
    saga.signal("a")
    saga.go()
    assert closed(saga) == ["b"]


@pytest.mark.parametrize(("at", "first"), [(400, "b"), (600, "a")])
def test_a_time_that_was_over_before_a_signal_came_wins(at: int, first: str) -> None:
    saga = racing("b", a=500)
    saga.now += at
    saga.signal("b")
    saga.go(after_ms=1_000)
    assert closed(saga) == [first]


def test_of_two_times_the_earlier_wins() -> None:
    saga = racing(a=500, b=400)
    saga.go(after_ms=1_000)
    assert closed(saga) == ["b"]


@pytest.mark.parametrize(
    ("at", "output"), [(499, "in time"), (500, {"timed_out": True}), (700, {"timed_out": True})]
)
def test_a_signal_that_comes_when_the_time_of_a_wait_is_over_is_not_taken_whenever_a_worker_looks(
    at: int, output: object
) -> None:
    saga = Saga(program(wait("w", signal="yes", ms=500), wait("v", "w", signal="yes")))
    saga.go()
    saga.now += at
    saga.signal("yes", "in time")
    saga.go(after_ms=10_000)
    (first, *rest) = [
        event for entry in saga.entries for event in entry.events if isinstance(event, ev.WaitClosed)
    ]
    assert first.output.v == output
    assert [event.node for event in rest] == ([] if at == 499 else ["v"]), "the next wait takes it"


def test_a_failure_that_is_sent_too_late_fails_nothing() -> None:
    saga = Saga(program(wait("w", signal="yes", ms=500), task("t", "w")))
    saga.go()
    saga.now += 600
    failure = ev.Failure("declined", "no")
    saga.put(
        ev.SignalReceived(name="yes", key="k", payload=ev.Value(), by="ada", at=saga.now, failure=failure)
    )
    saga.go()
    saga.go(done("t"))
    assert saga.state.ended is not None
    assert saga.state.ended.status == "completed"


def test_a_signal_of_a_snapshot_that_knows_no_time_is_in_time() -> None:
    assert Signal("yes", "k", ev.Value()).is_in_time(T0)


def test_answers_and_callbacks_have_their_place_too() -> None:
    saga = Saga(program(wait("a", signal="a"), task("c"), task("q"), task("z")))
    ask = ev.Ask(id="0.q", kind="input", message="", options=())
    saga.go()
    open_ = {
        "a": Wait(signal="a"),
        "c": Callback(id="c1", since=T0, until=T0 + 900),
        "q": ev.QuestionOpened(node="q", ask=ask).work(),
        "z": Callback(id="c2", since=T0, until=T0 + 900),
    }
    signals = tuple(
        Signal(name, key, ev.Value(), at=T0 + 1)
        for name, key in ((ANSWER, "0.other"), (ANSWER, "0.q"), (CALLBACK, "c1"), ("a", "k"))
    )
    state: State = replace(saga.state, open=open_, signals=signals)
    assert in_order(state, T0 + 2) == ["q", "c", "a", "z"]
