"""Effects that a fork leaves behind, and the nodes that may not meet theirs again once a value is another one."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.effects.keys import KeyRule
from baton.core.effects.risk import Risk
from baton.core.effects.toolspec import ToolSpec
from baton.core.log import events as ev
from baton.core.log.folding.forks import is_stable
from baton.core.log.state import Segment
from baton.core.log.undos import Undoable
from baton.core.nodes.registry import KINDS
from baton.core.read.left_effects import LeftEffects, differing_nodes, unsure_nodes
from tests.core.build import T0, Saga, chain, child, done, entry, failed, program, task, tool_spec, wait


def spec(name: str, effect: str = "idempotent", **more: Any) -> ToolSpec:
    return ToolSpec(name=name, version="1", effect=effect, parameters={}, result={}, **more)


TOOLS = {
    "t": spec("t"),
    "pay": spec("pay", cost=5),
    "card": spec("card", risk=Risk(action="payment")),
    "risky": spec("risky", risk=Risk(level="high")),
    "once": spec("once", "once"),
    "look": spec("look", "pure"),
}
GRAPH = program(*(task(name) for name in ("a", "b", "c", "d", "e")))


def ended(node: str, tool: str = "t", item: str = "") -> ev.StepSucceeded:
    said: dict[str, Any] = {
        "attempt": 1,
        "started_at": T0,
        "ended_at": T0,
        "tool_version": "1",
        "schema_hash": "",
    }
    return ev.StepSucceeded(node=node, item=item, tool=tool, emits=(), output=ev.Value(), **said)


def attempt(node: str, failure: ev.Failure, tool: str = "t") -> ev.AttemptFailed:
    said: dict[str, Any] = {
        "attempt": 1,
        "started_at": T0,
        "ended_at": T0,
        "tool_version": "1",
        "schema_hash": "",
    }
    return ev.AttemptFailed(node=node, tool=tool, failure=failure, **said)


def no_number(_: str) -> int:
    return 0


def left(*entries: ev.Entry, history: tuple[Segment, ...] = (Segment(0, 1, 1),)) -> list[tuple[str, bool]]:
    """The slots of what is left, in order, each with its doubt."""
    found = LeftEffects(GRAPH, TOOLS, history)
    for one in entries:
        found.add(one, no_number)
    return [(one.slot, one.doubtful) for one in found.left(no_number)]


def test_payments_come_first_and_pure_steps_and_models_are_no_effects() -> None:
    tools = [("a", "t"), ("b", "pay"), ("c", "look"), ("d", "std.model"), ("e", "card")]
    entries = [entry(2 + number, ended(*one), ev.GaveUp()) for number, one in enumerate(tools)]
    assert left(*entries) == [("e", False), ("b", False), ("a", False)]


@pytest.mark.parametrize("tool", ["pay", "card", "risky", "once", "t", "gone"])
def test_a_payment_is_what_costs_moves_money_is_risky_or_happens_once(tool: str) -> None:
    found = LeftEffects(GRAPH, TOOLS, ())
    found.add(entry(2, ended("a", tool)), no_number)
    (one,) = found.left(no_number)
    assert found.view(one, "kept").payment is (tool not in ("t", "gone"))


def test_what_the_history_has_too_is_not_left_and_what_another_branch_has_is() -> None:
    history = (Segment(0, 1, 2), Segment(1, 6, 7))
    entries = [
        entry(2, ended("a")),
        entry(3, ended("b")),
        entry(4, ended("c")),
        entry(7, ended("b"), branch=1),
        entry(8, ended("d"), branch=1),
    ]
    assert left(*entries, history=history) == [("d", False), ("c", False)]


def test_an_attempt_counts_if_its_outcome_is_unknown_until_the_step_succeeds() -> None:
    silent = ev.Failure("timeout", "no answer", kind="transient")
    refused = ev.Failure("declined", "no", kind="permanent", refused=True)
    cut_off: dict[str, Any] = {"started_at": T0, "ended_at": T0, "budget_ms": 1}
    entries = [
        entry(2, attempt("a", silent)),
        entry(3, attempt("b", refused)),
        entry(4, attempt("c", silent), ended("c"), attempt("c", silent)),
        entry(5, ev.StepInterrupted(node="d", **cut_off)),
        entry(6, ev.StepInterrupted(node="e", why="money", **cut_off)),
    ]
    assert left(*entries) == [("d", True), ("c", False), ("a", True)]


def test_a_child_counts_unless_it_is_detached_and_an_inverse_does_not() -> None:
    def opened(node: str, **more: Any) -> ev.ChildOpened:
        return ev.ChildOpened(node=node, child=f"s1.0.{node}", workflow="w", input=ev.Value(), **more)

    entries = [
        entry(2, opened("a")),
        entry(3, opened("b", detached=True)),
        entry(4, ended("c", item="undo")),
        entry(5, ev.ChildClosed(node="a", child="s1.0.a", emits=(), output=ev.Value())),
    ]
    assert left(*entries) == [("a", False)]
    found = LeftEffects(GRAPH, TOOLS, ())
    found.add(entries[0], no_number)
    (one,) = found.left(no_number)
    view = found.view(one, "unsure")
    assert (view.child, view.by, view.tool, view.payment) == ("s1.0.a", "s1.0.a", None, False)


def test_what_was_undone_or_repeated_since_is_not_left() -> None:
    found = LeftEffects(GRAPH, TOOLS, ())
    found.add(entry(2, ended("a"), ended("b")), no_number)
    assert [one.slot for one in found.left({"a": 1, "b": 0}.__getitem__)] == ["b"]


def test_values_that_a_fork_has_changed_hold_in_its_branch_and_in_those_that_follow_from_it() -> None:
    """Versions 1-3; 4: branch 1 from 2, with another `a`; 7: branch 2 from 6, with another input; 9: branch 3 from 3."""

    def fork(version: int, cut: int, *changed: str) -> ev.Entry:
        forked = ev.Forked(cut=cut, branch=0, by="", at=0, reason="")
        return entry(version, forked, *(ev.ValueChanged(node=one, value=ev.Value()) for one in changed))

    found = LeftEffects(GRAPH, TOOLS, ())
    for one in (fork(4, 2, "a"), fork(7, 6, ""), fork(9, 3)):
        found.add(one, no_number)
    between = {
        pair: found.changed_between(*pair) for pair in ((3, 6), (6, 8), (3, 8), (9, 8), (9, 3), (4, 5))
    }
    assert between == {
        (3, 6): {"a"},
        (6, 8): {""},
        (3, 8): {"a", ""},
        (9, 8): {"a", ""},
        (9, 3): set(),
        (4, 5): set(),
    }


def test_the_effect_of_the_branch_that_is_left_is_not_met_if_its_step_got_other_arguments() -> None:
    entries = [
        entry(2, ended("a")),
        entry(5, ended("a"), branch=1),
        entry(8, ended("a"), branch=2),
    ]
    found = LeftEffects(GRAPH, TOOLS, (Segment(0, 1, 2),), (Segment(0, 1, 1), Segment(1, 4, 6)))
    for one in entries:
        found.add(one, no_number)
    assert found.left(no_number) == []
    assert [one.version for one in found.left(no_number, {"a"})] == [5]
    earlier = LeftEffects(GRAPH, TOOLS, (Segment(0, 1, 2),), (Segment(0, 1, 1), Segment(3, 9, 9)))
    for one in entries:
        earlier.add(one, no_number)
    assert earlier.left(no_number, {"a"}) == [], "the caller has left those before"


def test_a_call_that_may_be_under_way_is_in_doubt_and_changes_nothing_that_is_known() -> None:
    found = LeftEffects(GRAPH, TOOLS, ())
    found.add(entry(2, ended("a")), no_number)
    for slot, tool in (("a", "t"), ("b", "t"), ("c", "look"), ("gone", "")):
        found.doubt(slot, tool, 3, 0)
    assert [(one.slot, one.doubtful) for one in found.left(no_number)] == [("b", True), ("a", False)]


def test_the_inverse_of_a_step_is_named() -> None:
    text = "name: w\nnodes: {a: {tool: hold, with: {}}}"
    specs = {"hold": tool_spec("hold"), "free": tool_spec("free")}
    specs = {
        name: ToolSpec(
            name=name, version="1", effect="idempotent", parameters=one.parameters, result={}, undo=undo
        )
        for (name, one), undo in zip(specs.items(), ("free", ""), strict=True)
    }
    found = LeftEffects(Program(compile_document(text, specs), KINDS), specs, ())
    found.add(entry(2, ended("a", "hold")), no_number)
    (one,) = found.left(no_number)
    assert found.view(one, "new").by == "free"


def test_a_new_saga_begins_anew_what_is_under_way_elsewhere_at_the_cut() -> None:
    saga = Saga(program(child("c"), wait("w", signal="s"), task("a")))
    saga.go()
    handed: dict[str, Any] = {
        "attempt": 1,
        "started_at": T0,
        "tool_version": "1",
        "schema_hash": "",
    }
    saga.put(ev.CallbackOpened(node="a", callback="0.a.1", until=T0 + 9, tool="t", ended_at=T0, **handed))
    found = LeftEffects(saga.program, TOOLS, ())
    found.restart(saga.state)
    assert [(one.slot, one.tool, one.doubtful) for one in found.left(no_number)] == [
        ("a", "t", True),
        ("c", "", False),
    ]


def test_a_key_belongs_to_its_saga_unless_the_tool_or_the_document_says_otherwise() -> None:
    tools = {
        "t": spec("t"),
        "mail": spec("mail", key=KeyRule(strategy="request")),
        "once": spec("once", "once"),
    }
    graph = program(task("a"), task("b"), replace(task("c"), key="K"), task("d"))
    found = LeftEffects(graph, tools, ())
    for node, tool in (("a", "t"), ("b", "mail"), ("c", "once"), ("d", "gone")):
        found.add(entry(2, ended(node, tool)), no_number)
    own = {one.slot: found.is_of_saga(one) for one in found.left(no_number)}
    assert own == {"a": True, "b": False, "c": False, "d": True}
    assert found.undone(no_number) == []
    undone = found.undone({"a": 2, "b": 2, "c": 1, "d": 0}.__getitem__)
    assert [one.slots for one in undone] == [("b", "c"), ("b",)], "no other saga meets the key of `a`"


# ---- nodes whose keys are not certain

X: dict[str, Any] = {"x": {}}


def compiled(nodes: str, **more: str) -> Program:
    graphs = "".join(f"\n{name}: {said}" for name, said in more.items())
    return Program(compile_document(f"name: w\nnodes:\n{nodes}{graphs}", {"t": tool_spec("t", **X)}), KINDS)


def test_readers_of_a_changed_value_and_their_readers_are_unsure_and_no_others() -> None:
    graph = compiled(
        "  a: {tool: t, with: {x: '${input.n}'}}\n"
        "  b: {tool: t, with: {x: '${ctx.a.output}'}, after: a}\n"
        "  c: {tool: t, with: {x: 1}, after: b}\n"
        "  d: {tool: t, with: {x: '${ctx.c.output}'}, after: c}"
    )
    assert unsure_nodes(graph, {""}) == {"a", "b"}
    assert unsure_nodes(graph, {"c"}) == {"d"}
    assert unsure_nodes(graph, set(), {"b"}) == {"b"}
    assert unsure_nodes(graph, set()) == set()


def test_nodes_differ_by_what_they_call_and_by_what_follows_and_not_by_their_schemas() -> None:
    old = compiled(
        "  a: {tool: t, with: {x: 1}}\n  b: {tool: t, with: {x: 2}, after: a}\n  c: {tool: t, with: {x: 3}}"
    )
    new = compiled(
        "  a: {tool: t, with: {x: 1}, output_schema: {type: integer}, retry: {max_attempts: 2}}\n"
        "  b: {tool: t, with: {x: 4}, after: a}\n"
        "  d: {tool: t, with: {x: 3}}"
    )
    assert differing_nodes(old, new) == {"b", "c", "d"}
    assert differing_nodes(old, old) == set()
    each = "  a: {tool: t, map: {over: '${input.list}'}, with: {x: %d}}"
    assert differing_nodes(compiled(each % 1), compiled(each % 1)) == set()
    assert differing_nodes(compiled(each % 1), compiled(each % 2)) == {"a"}


def test_what_a_choice_leads_to_is_unsure_if_the_choice_may_be_another_one() -> None:
    graph = compiled(
        "  a: {tool: t, with: {x: 1}, branch: {rules: [{if: 'input.n > 1', then: b}], default: c}}\n"
        "  b: {tool: t, with: {x: 1}}\n"
        "  c: {tool: t, with: {x: 1}}\n"
        "  d: {tool: t, with: {x: 1}, after: c}\n"
        "  e: {tool: t, with: {x: 1}}"
    )
    assert unsure_nodes(graph, {""}) == {"a", "b", "c", "d"}


def test_the_rounds_of_a_loop_are_unsure_if_their_number_may_be_another_one() -> None:
    graph = compiled(
        "  a: {tool: t, with: {x: 1}}\n"
        "  b: {tool: t, with: {x: 1}, after: a, loop: {back_to: a, while: 'loop.iteration < input.n', max_iterations: 3}}"
    )
    assert unsure_nodes(graph, {""}) == {"a", "b"}


def test_an_index_and_a_join_are_read_too() -> None:
    graph = compiled(
        "  a: {tool: t, with: {x: 1}}\n"
        "  b: {tool: t, with: {x: 1}}\n"
        "  c: {tool: t, with: {x: '${ctx.b.output[input.n]}'}, after: b}\n"
        "  d: {tool: t, with: {x: '${join.outputs}'}, after: [a, b], join: any}"
    )
    assert unsure_nodes(graph, {""}) == {"c"}
    assert unsure_nodes(graph, {"a"}) == {"d"}


# ---- stable versions


def stable(saga: Saga, undo: Undoable | None = None) -> bool:
    return is_stable(saga.entries[-1], saga.state, undo or saga.state.undo)


def test_a_version_is_stable_behind_a_step_that_ended_well() -> None:
    saga = Saga(chain(3))
    assert not stable(saga)
    saga.go(done("n0"))
    assert stable(saga)
    assert not stable(saga, Undoable(spans=((2, 4),)))
    saga.put(ev.Parked(code="paused", message="x", by="ada"))
    assert not stable(saga), "nothing has ended in it"
    saga.go(failed("n1"))
    assert not stable(saga)


def test_a_version_with_a_failed_attempt_or_of_a_parked_saga_is_not_stable() -> None:
    saga = Saga(program(task("a"), task("b"), failures={}))
    saga.go(failed("a", "service_unavailable", "transient"))
    saga.go(done("b"))
    assert saga.state.failing
    assert not stable(saga)
    other = Saga(chain(2))
    other.put(ev.Parked(code="budget", message="x"), ended("n0"))
    assert not stable(other)
    answered = Saga(chain(2))
    signal: dict[str, Any] = {"key": "q/1", "payload": ev.Value(), "by": "ada", "at": T0}
    answered.put(ev.SignalReceived(name=":answer", **signal))
    assert stable(answered)
    answered.put(ev.SignalReceived(name="go", **signal))
    assert not stable(answered)
