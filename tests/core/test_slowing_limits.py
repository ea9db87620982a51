"""Limits that slow down: who runs, who waits and for what; and that no step waits for ever."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.decide.scheduling import PAUSE_MS
from baton.core.graph.graph import Cap, Loop, Node
from baton.core.log import events as ev
from tests.core.asked import children_of, steps_of, stops_of
from tests.core.build import PROPERTY, T0, Saga, child, done, program, ready, task, wait
from tests.core.graphs_of import again, limited


def throttle(most: int) -> Cap:
    return Cap(most=most, then="throttle")


# ---- fan-out: so many at once ----------------------------------------------------------------------------------


def fan(width: int, most: int, scope: str) -> Program:
    """a, and behind it b0, b1, …; c stands apart."""
    cap = {"fan_out": throttle(most)}
    nodes = [task(f"b{number}", "a") for number in range(width)]
    of = program(task("a", limits=cap if scope == "node" else {}), *nodes, task("c"))
    return limited(of, **cap) if scope == "saga" else of


def test_only_so_many_steps_behind_a_node_run_at_once() -> None:
    saga = Saga(fan(4, 2, "node"))
    assert ready(saga.go(done("a"))) == ["c", "b0", "b1"], "c is not behind it"
    entries = len(saga.entries)
    assert ready(saga.go(running=["c", "b0", "b1"])) == []
    assert len(saga.entries) == entries, "waiting for a turn is not written down"
    assert ready(saga.go(done("b0"), running=["c", "b1"])) == ["b2"]
    assert ready(saga.go(done("b1"), running=["c"])) == ["b2", "b3"]


def test_only_so_many_steps_of_a_saga_run_at_once() -> None:
    saga = Saga(fan(4, 2, "saga"))
    assert ready(saga.go()) == ["a", "c"]
    assert ready(saga.go(done("a"), running=["c"])) == ["b0"]
    assert ready(saga.go(running=["c", "b0"])) == []


@pytest.mark.parametrize("scope", ["saga", "node"])
def test_children_take_turns_too_and_waits_do_not(scope: str) -> None:
    cap = {"fan_out": throttle(1)}
    nodes = child("k1", "a"), child("k2", "a"), wait("w", "a", signal="s"), task("b", "a")
    of = program(task("a", limits=cap if scope == "node" else {}), *nodes)
    saga = Saga(limited(of, **cap) if scope == "saga" else of)
    decision = saga.go(done("a"))
    assert saga.kinds == ["step_succeeded", "child_opened", "wait_opened"]
    assert (ready(decision), len(saga.state.children)) == ([], 1)
    saga.put(ev.ChildReported(slot="k1", child=saga.state.children["k1"].saga, status="completed"))
    saga.go()
    assert saga.kinds == ["child_closed", "child_opened"]
    saga.put(ev.ChildReported(slot="k2", child=saga.state.children["k2"].saga, status="completed"))
    assert ready(saga.go()) == ["b"]


def test_a_child_that_has_ended_takes_no_turn() -> None:
    saga = Saga(limited(program(task("b"), child("k"), task("c")), fan_out=throttle(2)))
    assert ready(saga.go()) == ["b"]
    saga.put(ev.ChildReported(slot="k", child=saga.state.children["k"].saga, status="completed"))
    assert ready(saga.go()) == ["b", "c"]


def test_a_step_that_the_saga_no_longer_needs_takes_no_place() -> None:
    saga = Saga(fan(2, 1, "node"))
    saga.go(done("a"))
    saga.go(done("b0"))
    assert ready(saga.go(running=["b0", "c"])) == ["b1"], "b0 is being stopped"


# ---- hops, bytes and money: one at a time, with a pause --------------------------------------------------------


def three(*, to: str, **limits: Cap) -> Program:
    """a, and b and c behind it; the limits are the saga's, or each node's."""
    each = limits if to == "node" else {}
    of = program(task("a", limits=each), task("b", "a", limits=each), task("c", "a", limits=each))
    return limited(of, **limits) if to == "saga" else of


@pytest.mark.parametrize(("name", "most"), [("hops", 1), ("bytes", 3), ("cost", 9)])
def test_beyond_a_limit_a_saga_does_one_step_at_a_time_and_pauses_before_it(name: str, most: int) -> None:
    saga = Saga(three(to="saga", **{name: throttle(most)}))
    outcome = replace(done("a", "abc"), cost=10)
    assert saga.go().due is None
    decision = saga.go(outcome)
    until = T0 + 5 + PAUSE_MS
    assert (ready(decision), decision.due) == ([], until)
    entries = len(saga.entries)
    assert ready(saga.go(after_ms=until - T0)) == ["b"]
    assert len(saga.entries) == entries
    assert saga.go(running=["b"]).due is None, "c waits for the end of b, not for a moment"
    saga.go(replace(done("b"), ended_at=saga.now))
    assert (ready(saga.decision), saga.decision.due) == ([], saga.now + PAUSE_MS)


def test_children_are_opened_one_at_a_time_beyond_a_limit_but_hold_up_no_step() -> None:
    nodes = child("k1", "a"), child("k2", "a"), task("b", "a")
    saga = Saga(limited(program(task("a"), *nodes), hops=throttle(1)))
    saga.go(done("a"))
    decision = saga.go(after_ms=5 + PAUSE_MS)
    assert list(saga.state.children) == ["k1"]
    assert ready(decision) == ["b"]
    assert [slot for slot, _ in children_of(saga.go(running=["b"]))] == ["k1"]


def test_a_node_beyond_its_own_limit_pauses_between_its_rounds_and_holds_up_no_other() -> None:
    loop = Loop(condition=again(), max_iterations=5, back_to="a")
    saga = Saga(program(task("a", loops=("a",), loop=loop, limits={"hops": throttle(1)}), task("b")))
    decision = saga.go(done("a@0"))
    assert (ready(decision), decision.due) == (["b"], T0 + 5 + PAUSE_MS)
    assert ready(saga.go(running=["b"], after_ms=5 + PAUSE_MS)) == ["a@1"]


def test_what_does_no_work_is_not_held_up() -> None:
    nodes = Node(name="p", kind="pass", before=("a",)), wait("w", "a", signal="s")
    saga = Saga(limited(program(task("a"), *nodes), hops=throttle(1)))
    saga.go(done("a"))
    assert saga.kinds == ["step_succeeded", "node_passed", "wait_opened"]


def test_summarise_slows_nothing_down() -> None:
    saga = Saga(limited(program(task("a"), task("b", "a")), bytes=Cap(most=1, then="summarise")))
    assert ready(saga.go(done("a", "abc"))) == ["b"]


# ---- never for ever --------------------------------------------------------------------------------------------

CAPS = st.fixed_dictionaries(
    {},
    optional={
        "fan_out": st.builds(Cap, most=st.integers(1, 3), then=st.sampled_from(["throttle", "terminate"])),
        "hops": st.builds(Cap, most=st.integers(1, 6), then=st.sampled_from(["throttle", "terminate"])),
        "bytes": st.builds(
            Cap, most=st.integers(1, 60), then=st.sampled_from(["throttle", "terminate", "summarise"])
        ),
        "cost": st.builds(Cap, most=st.integers(1, 9), then=st.sampled_from(["throttle", "terminate"])),
        "wall_time": st.builds(Cap, most=st.integers(1, 20_000)),
    },
)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Up to eight nodes of all kinds, each behind some of those before it, some with limits."""
    nodes: list[Node] = []
    for number in range(draw(st.integers(1, 8))):
        before = (
            draw(st.lists(st.sampled_from(nodes), max_size=2, unique_by=lambda node: node.name))
            if nodes
            else []
        )
        names = [node.name for node in before]
        make: Any = draw(st.sampled_from([task, task, task, child, wait]))
        node = wait(f"n{number}", *names, ms=50) if make is wait else make(f"n{number}", *names)
        nodes.append(msgspec.structs.replace(node, limits=draw(CAPS | st.just({}))))
    return limited(program(*nodes), **draw(CAPS))


@given(programs(), st.data())
@PROPERTY
def test_every_saga_with_limits_comes_to_an_end(of: Program, data: st.DataObject) -> None:
    """As a worker carries it: whenever nothing runs, something is due, ready, open or the saga has ended."""
    saga = Saga(of)
    running: set[str] = set()
    decision = saga.go()
    for _ in range(200):
        if saga.state.ended is not None:
            break
        running &= set(saga.state.tokens)
        running -= set(stops_of(decision))
        running |= {step.slot for step in steps_of(decision)}
        is_open = [slot for slot, one in saga.state.children.items() if not one.status]
        moves = [*sorted(running), *is_open]
        if decision.due is not None:
            moves.append("/due")
        assert moves or stops_of(decision), f"nothing will ever happen: {saga.state.tokens}"
        move = data.draw(st.sampled_from(moves)) if moves else ""
        if move == "/due":
            assert decision.due is not None
            decision = saga.go(running=running, after_ms=max(decision.due - saga.now, 0))
        elif move in running:
            running -= {move}
            outcome = done(move, "x" * data.draw(st.integers(0, 40)))
            cost = data.draw(st.integers(0, 3))
            outcome = replace(outcome, started_at=saga.now, ended_at=saga.now, cost=cost)
            decision = saga.go(outcome, running=running)
        elif move:
            report = ev.ChildReported(
                slot=move, child=saga.state.children[move].saga, status="completed", cost=1
            )
            saga.put(report)
            decision = saga.go(running=running)
        else:
            decision = saga.go(running=running)
    assert saga.state.ended is not None
    hops = of.graph.limits.get("hops")
    if saga.state.ended.status == "completed" and hops and hops.then == "terminate":
        assert saga.state.used[""].hops <= hops.most
