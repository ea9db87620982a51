"""A kind of node that no part of the engine knows is begun, run, shown, explained and forked: its files are all it needs."""

from __future__ import annotations

from typing import Any

from baton.core.conditions.model import Cel
from baton.core.graph.graph import Cap, Catch, Join, Loop, Node
from baton.core.log import events as ev
from baton.core.log.state import status_of
from baton.core.read.definition_views import graph_view
from baton.core.read.views import saga_view
from tests.core.asked import steps_of
from tests.core.build import AT_ONCE, Saga, done, failed, ready, replay, task
from tests.core.nodes.each import KINDS_AND_EACH, each, program
from tests.core.told import ROOM, story
from tests.kit.sentences import Says
from tests.kit.views import as_json, explain, way

WAITS = program(
    each("m", "a", "b", after=("z",)), task("z", "m", arguments={"got": "${ctx.m.output}"}), failures=AT_ONCE
)
CALLS = program(
    each("m", "a", "b", tool="t", arguments={"x": 1}, after=("z",)),
    task("z", "m", arguments={"got": "${ctx.m.output}"}),
    failures=AT_ONCE,
)


def begun(graph: Any, given: Any = None) -> Saga:
    saga = Saga(graph, given)
    saga.go()
    return saga


def active(saga: Saga) -> dict[str, Any]:
    return {
        f"{one['node']}#{one.get('item', '')}": one["state"]
        for one in as_json(saga_view(saga.state, saga.program))["active"]
    }


def why(saga: Saga, name: str) -> str:
    (found,) = as_json(explain(story(saga), name, ROOM))["iterations"]
    return str(found["text"])


# ---- it runs


def test_each_item_has_a_slot_of_its_own_and_the_node_gives_what_all_of_them_gave() -> None:
    saga = begun(WAITS)
    assert list(saga.state.tokens) == ["m", "m#a", "m#b"]
    assert {slot: work.signal for slot, work in saga.state.open.items()} == {"m#a": "a", "m#b": "b"}
    saga.signal("b", 2)
    assert ready(saga.go()) == []
    saga.signal("a", 1)
    (step,) = steps_of(saga.go())
    assert (step.slot, step.arguments) == ("z", {"got": {"a": 1, "b": 2}})
    assert (saga.state.items, saga.state.open, saga.state.counts.steps) == ({}, {}, 1)
    saga.go(done("z"))
    assert status_of(saga.state) == "completed"
    assert replay(saga.entries) == saga.state


def test_a_tool_is_called_for_each_item_and_every_item_has_attempts_of_its_own() -> None:
    saga = begun(replaced(CALLS, failures={}))
    assert [(step.slot, step.arguments) for step in steps_of(saga.decision)] == [
        ("m#a", {"x": 1, "item": "a"}),
        ("m#b", {"x": 1, "item": "b"}),
    ]
    saga.go(failed("m#a", "timeout", "transient"), running=["m#b"])
    assert (list(saga.state.failing), ready(saga.decision)) == (["m#a"], [])
    saga.go(done("m#b", 2))
    (step,) = steps_of(saga.go(after_ms=60_000))
    assert (step.slot, step.attempt) == ("m#a", 2)
    saga.go(done("m#a", 1, attempt=2))
    assert (ready(saga.decision), saga.state.failing) == (["z"], {})
    assert replay(saga.entries) == saga.state


def replaced(graph: Any, **more: Any) -> Any:
    return program(*graph.graph.nodes, **{"failures": graph.graph.failures, **more})


def test_an_item_that_is_cut_off_runs_again() -> None:
    saga = begun(CALLS)
    saga.put(ev.StepInterrupted(node="m", item="a", started_at=0, ended_at=1, budget_ms=1))
    assert (saga.state.recovery.interruptions, ready(saga.go())) == ({"m#a": 1}, ["m#a", "m#b"])


def test_an_item_that_fails_fails_its_node_and_takes_the_others_with_it() -> None:
    saga = begun(CALLS)
    saga.go(failed("m#a"), running=["m#b"])
    assert (saga.state.failure is not None, status_of(saga.state)) == (True, "running")
    assert saga.state.failure is not None
    assert saga.state.failure.node == "m#a"


def test_what_catches_the_failure_of_a_node_catches_that_of_its_items() -> None:
    graph = program(
        each("m", "a", "b", tool="t", after=("z", "h"), catch=(Catch(then=("h",)),)),
        task("z", "m"),
        task("h", "m", arguments={"why": "${last_error.code}"}),
        failures=AT_ONCE,
    )
    saga = begun(graph)
    (step,) = steps_of(saga.go(failed("m#a"), running=["m#b"]))
    assert (step.slot, step.arguments) == ("h", {"why": "tool_error"})
    assert (saga.state.items, list(saga.state.tokens)) == ({}, ["h"])
    assert replay(saga.entries) == saga.state
    found = {slot: place.end.became for slot, place in story(saga).places.items() if place.end is not None}
    assert found == {"m": "failed", "m#a": "failed", "m#b": "dropped", "z": "skipped"}


def test_an_item_without_a_name_that_is_one_is_refused(says: Says) -> None:
    with says.raised(ValueError):
        begun(program(each("m", "1.0"), failures=AT_ONCE))


def test_an_item_begins_once_and_only_while_its_node_is_there() -> None:
    saga = begun(WAITS)
    before = saga.state
    saga.put(ev.NodeBegan(node="m", item="a", at=saga.now), ev.NodeBegan(node="z", item="a", at=saga.now))
    assert (saga.state.tokens, saga.state.items) == (before.tokens, before.items)
    assert set(story(saga).places) == {"m", "m#a", "m#b"}


# ---- with what is around it


def test_a_schema_is_for_the_node_and_not_for_its_items() -> None:
    graph = program(each("m", "a", tool="t", output_schema={"type": "object"}), failures=AT_ONCE)
    saga = begun(graph)
    saga.go(done("m#a", 1))
    assert status_of(saga.state) == "completed"


def test_a_condition_is_asked_for_the_node_and_not_for_its_items() -> None:
    graph = program(each("m", "a", when=Cel(expression="input.x == 1")), failures=AT_ONCE)
    assert list(begun(graph, {"x": 1}).state.open) == ["m#a"]
    assert status_of(begun(graph, {"x": 2}).state) == "completed"


def test_limits_hold_back_items_as_they_hold_back_steps() -> None:
    limits = {"fan_out": Cap(most=1, then="throttle")}
    saga = begun(program(each("m", "a", "b", tool="t"), failures=AT_ONCE, limits=limits))
    assert ready(saga.decision) == ["m#a"]
    assert ready(saga.go(done("m#a"))) == ["m#b"]
    saga.go(done("m#b"))
    assert status_of(saga.state) == "completed"


def test_an_item_is_no_run_of_its_node_by_the_limits() -> None:
    limits = {"hops": Cap(most=1)}
    saga = begun(program(each("m", "a", "b", limits=limits), failures=AT_ONCE, limits=limits))
    saga.signal("a")
    saga.signal("b")
    saga.go()
    assert (status_of(saga.state), saga.state.used["m"].hops) == ("completed", 1)


def test_what_leaves_a_loop_leaves_the_items_of_its_nodes() -> None:
    again = Loop(condition=Cel(expression="output.again"), max_iterations=3, back_to="h", break_path=("z",))
    saga = begun(
        program(
            Node(name="h", kind="pass", value=1, after=("m", "q"), loops=("l",)),
            each("m", "a", before=("h",), after=("l",), loops=("l",)),
            Node(name="q", kind="pass", value=1, before=("h",), after=("l",), loops=("l",)),
            task("l", "m", "q", loops=("l",), loop=again, join=Join(need=1, rest="run"), after=("z",)),
            task("z", "l"),
            failures=AT_ONCE,
        )
    )
    assert {"m@0", "m@0#a"} <= set(saga.state.tokens)
    saga.go(done("l@0", {"again": True}))
    assert [slot for slot in saga.state.open if slot.startswith("m")] == ["m@1#a"]
    saga.go(done("l@1", {"again": False}))
    assert (list(saga.state.tokens), saga.state.items) == (["z"], {})
    assert replay(saga.entries) == saga.state
    (first, second) = as_json(explain(story(saga), "m", ROOM))["iterations"]
    assert (first["state"], second["state"]) == ("dropped", "dropped")
    assert {place.end.became for place in story(saga).places.values() if place.item and place.end} == {
        "dropped"
    }


def test_a_join_that_fires_stops_a_node_with_its_items() -> None:
    saga = begun(
        program(
            each("m", "a", after=("j",)),
            task("q", after=("j",)),
            task("j", "m", "q", join=Join(need=1)),
            failures=AT_ONCE,
        )
    )
    assert ready(saga.go(done("q"))) == ["j"]
    assert (list(saga.state.tokens), saga.state.open) == (["j"], {})
    assert replay(saga.entries) == saga.state


def test_an_item_of_a_join_does_not_fire_it_again() -> None:
    saga = begun(
        program(
            task("p", after=("m",)),
            task("q", after=("m",)),
            each("m", "a", before=("p", "q"), join=Join(need=1)),
            failures=AT_ONCE,
        )
    )
    saga.go(done("p"), running=["q"])
    assert list(saga.state.closed) == ["m"]
    saga.signal("a")
    saga.go()
    assert status_of(saga.state) == "completed"


# ---- it is shown, explained and forked


def test_it_is_drawn_and_its_items_are_shown() -> None:
    (shown, _) = graph_view(WAITS.graph, KINDS_AND_EACH)["nodes"]
    assert (shown["kind"], shown["items"]) == ("each", ["a", "b"])
    saga = begun(WAITS)
    assert active(saga) == {"m#": "waiting", "m#a": "waiting", "m#b": "waiting"}
    assert as_json(saga_view(saga.state, saga.program))["active"][1] == {
        "node": "m",
        "iteration": [],
        "item": "a",
        "label": "item `a`",
        "state": "waiting",
        "signal": "a",
        "until": None,
    }
    assert status_of(saga.state, saga.program) == "waiting"


def test_a_failing_item_is_shown_with_its_name() -> None:
    saga = begun(replaced(CALLS, failures={}))
    saga.go(failed("m#a", "timeout", "transient"), running=["m#b"])
    (shown,) = as_json(saga_view(saga.state, saga.program))["failing"]
    assert (shown["node"], shown["item"], shown["attempts"]) == ("m", "a", 1)


def test_it_is_explained() -> None:
    saga = begun(WAITS)
    saga.signal("b", 2)
    saga.go()
    assert "waits for item `a`" in why(saga, "m")
    assert {slot: place.end is not None for slot, place in story(saga).places.items()} == {
        "m": False,
        "m#a": False,
        "m#b": True,
    }
    assert any("the signal `a`" in one["text"] for one in as_json(way(story(saga), 0, 10, ROOM))["open"])
    saga.signal("a", 1)
    saga.go()
    assert [one["became"] for one in as_json(way(story(saga), 0, 10, ROOM))["steps"]] == [
        "waited",
        "waited",
        "passed",
    ]


def test_a_fork_takes_the_items_of_its_cut() -> None:
    saga = begun(WAITS)
    cut = saga.state.version
    saga.signal("b", 2)
    saga.go()
    assert saga.state.items["m#b"] == ev.Value(v=2)
    saga.put(ev.Forked(cut=cut, branch=1, by="ada", at=saga.now), epoch=0, invocation="api")
    saga.go()
    assert saga.state.items == {"m#a": None, "m#b": None}
    saga.signal("a", 1)
    saga.signal("b", 3)
    (step,) = steps_of(saga.go())
    assert step.arguments == {"got": {"a": 1, "b": 3}}
    assert replay(saga.entries) == saga.state


def test_the_last_item_is_heard_before_what_came_at_the_same_time() -> None:
    saga = begun(
        program(
            each("m", "a", tool="t", after=("j",)),
            task("q", after=("j",)),
            task("j", "m", "q", join=Join(need=1), arguments={"by": "${join.arrived}"}),
            failures=AT_ONCE,
        )
    )
    (step,) = steps_of(saga.go(done("m#a"), done("q")))
    assert (step.slot, step.arguments) == ("j", {"by": ["m"]})


def test_a_kind_that_begins_nothing_is_a_defect_and_no_saga_that_stands_still(says: Says) -> None:
    graph = program(each("m"), task("z", "m"))
    with says.raised(ValueError):
        begun(graph)
