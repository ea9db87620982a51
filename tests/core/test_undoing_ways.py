"""Undoing: values that have to be fetched first, questions, what is shown, and steps that nothing has to be kept of."""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.decide.decide import decide
from baton.core.decide.program import Program
from baton.core.effects.toolspec import CALL
from baton.core.failures.failover import Action, Match, Policy
from baton.core.graph.graph import CallbackTimes, Node, ReplanParts, Undo
from baton.core.log import events as ev
from baton.core.log.undos import NotUndone
from baton.core.nodes.registry import KINDS
from baton.core.read.definition_views import graph_view
from baton.core.read.views import undo_view
from tests.core.build import Saga, done, failed, program, ready, task
from tests.core.nodes.handing import compiled, hand_over, say
from tests.core.test_undoing import two, undoable
from tests.core.undo_asking import asked
from tests.kit.views import as_json


def needs(saga: Saga) -> list[str]:
    """The commands of a decision to which nothing of the log is known."""
    return [type(one).__name__ for one in decide(saga.program, saga.state, saga.now).commands]


def test_entries_that_are_not_known_yet_are_fetched_first() -> None:
    saga = two()
    saga.put(ev.UndoBegan(reason="", at=saga.now))
    assert needs(saga) == ["FetchValues"]
    saga.go()
    assert ready(saga.decision) == ["c#undo"]
    assert needs(saga) == ["FetchValues"]


def test_a_saga_that_has_its_result_undoes_nothing() -> None:
    saga = Saga(program(undoable("a"), task("b", "a")))
    saga.go(done("a"))
    saga.put(ev.NodePassed(node="b", output=ev.Value(v=1), ends=True))
    saga.go()
    assert saga.state.ended is not None
    assert saga.state.ended.status == "completed"


def test_a_saga_that_failed_after_a_death_and_has_done_nothing_is_failed() -> None:
    saga = Saga(program(task("b"), task("c"), undoable("a", "b")))
    saga.go(running=["b", "c"])
    saga.die()
    saga.go(failed("b"))
    assert saga.state.ended is not None
    assert saga.state.ended.status == "failed"


def called_again_with(output: ev.Value, expression: str) -> Saga:
    """`a` ran when the invocation died, with arguments that name what `x` gave; and `b` has failed for good."""
    saga = Saga(
        program(task("x"), replace(undoable("a", "x"), arguments={"v": expression}), task("b", "x")),
    )
    saga.go()
    saga.go(replace(done("x"), output=output), running=["a", "b"])
    saga.die()
    saga.go(failed("b"))
    return saga


def test_arguments_of_a_step_that_is_called_again_are_fetched_first() -> None:
    saga = called_again_with(ev.Value(ref="cas://sha256/00"), "${ctx.x.output.y}")
    assert [type(one).__name__ for one in saga.decision.commands] == ["FetchValues"]


def test_a_step_that_cannot_be_called_again_is_named() -> None:
    saga = called_again_with(ev.Value(v={}), "${ctx.x.output.y}")
    assert (asked(saga), saga.state.undo.work is None) == (["a#undo"], False)


def test_a_step_is_undone_once_at_a_time_also_where_others_are_undone_beside_it() -> None:
    saga = two()
    listed = replace(saga.state.undo, failed=(NotUndone(slot="c", version=4),))
    saga.state = replace(saga.state, undo=listed)
    saga.put(ev.UndoBegan(reason="", at=saga.now, together=True))
    saga.go()
    assert ready(saga.decision) == ["c#undo"]


def test_an_inverse_that_fails_again_is_told_again() -> None:
    saga = two()
    saga.go(failed("d"))
    saga.go(failed("c#undo", "closed", "permanent"))
    saga.note_told()
    saga.go(done("a#undo"))
    for branch in (1, 2):
        fork = ev.Forked(cut=saga.state.version, branch=branch, by="ada", at=saga.now, undo=True)
        saga.put(fork)
        saga.go()
        assert ready(saga.decision) == ["c#undo"]
        saga.go(failed("c#undo", "closed", "permanent"))
        saga.note_told()
        saga.go()
    assert saga.state.undo.generation("c") == 0
    shown = as_json(undo_view(saga.state, saga.program))
    assert shown is not None
    assert shown["under_way"] is None
    assert shown["done"]["failed"] == 1
    assert [one["step"] for one in shown["failed"]] == ["c"]


def test_an_inverse_that_asks_waits_for_its_answer() -> None:
    saga = two()
    saga.go(failed("d"))
    ask = ev.Ask(
        id="0.c#undo",
        kind="approval",
        message="undo it?",
        options=("approve", "reject"),
        expires_at=saga.now + 60_000,
        asked_at=saga.now,
    )
    saga.put(ev.QuestionOpened(node="c", item="undo", ask=ask))
    decision = saga.go()
    assert ready(decision) == []
    assert decision.due == ask.expires_at
    saga.go(after_ms=60_000)
    assert saga.state.open == {}


def test_a_step_that_only_reads_is_not_in_the_list() -> None:
    saga = Saga(program(undoable("a"), task("b", "a", effect="pure")))
    saga.go(done("a"))
    saga.go(done("b"))
    assert (saga.state.undo.can, saga.state.undo.cannot) == (1, 0)


def test_what_an_inverse_needs_of_the_arguments_is_kept_when_work_was_handed_over() -> None:
    for keeps, kept in (((), None), (None, ev.Value(v={}))):
        graph = compiled().graph
        undo = Undo(step=Node(name="a", kind="task", tool="u"), keeps=keeps)
        nodes = tuple(
            replace(node, undo={"print": undo}) if node.name == "a" else node for node in graph.nodes
        )
        saga = Saga(Program(replace(graph, nodes=nodes), KINDS, skew_ms=3_000))
        saga.go()
        hand_over(saga)
        say(saga, output="done")
        saga.go()
        (given,) = [
            event
            for entry in saga.entries
            for event in entry.events
            if isinstance(event, ev.StepSucceeded) and event.node == "a"
        ]
        assert given.kept == kept


def test_a_graph_shows_what_undoes_its_steps() -> None:
    node = undoable("a")
    assert node.inverse("t", "t1-0") is None
    parts = ReplanParts(plan=task("p"), calls=(node,), steps=1, within_ms=1)
    planned = replace(task("r"), replan=parts)
    assert (planned.inverse("t", "a1-1"), planned.inverse("v", "a1-1")) == (node.undo["t"], None)
    assert replace(planned, stays=True).inverse("t", "a1-1") is None
    assert (node.keeps("t"), node.kept("t", {"x": 1})) == (False, {})
    all_of_them = replace(node, undo={"t": replace(node.undo["t"], keeps=None)})
    assert (all_of_them.keeps("t"), all_of_them.kept("t", {"x": 1})) == (True, {"x": 1})
    keyed = replace(node, undo={"t": replace(node.undo["t"], keyed=True)})
    assert (node.keeps_key("t"), keyed.keeps_key("t"), keyed.keeps_key("v")) == (False, True, False)
    (shown,) = graph_view(program(node).graph, KINDS)["nodes"]
    assert shown["undo"] == {"t": "u"}
    assert "unverified" not in shown
    node = replace(node, undo={"t": replace(node.undo["t"], in_doubt=CALL)})
    keyed = replace(node, undo={"t": replace(node.undo["t"], keyed=True)})
    assert (node.keeps_key("t"), keyed.keeps_key("t"), keyed.keeps_key("v")) == (False, True, False)
    (shown,) = graph_view(program(node).graph, KINDS)["nodes"]
    assert shown["unverified"] == ["u"]


def test_nothing_is_kept_of_what_another_tool_has_handed_over_that_nothing_undoes() -> None:
    policy = Policy(name="p", when=Match(codes=("sold_out",)), then=Action(tool="other.book"))
    step = replace(undoable("a", keeps=None), callback=CallbackTimes(timeout_ms=3_600_000))
    saga = Saga(program(replace(step, failures={}, failover=(policy,)), undoable("c"), task("b", "c")))
    saga.go()
    saga.go(done("c"), failed("a", "sold_out"))
    hand_over(saga)
    saga.go(failed("b"))
    (left,) = (e for e in saga.entries[-1].events if isinstance(e, ev.StepFailed) and e.node == "a")
    assert (left.tool, left.kept, left.prior) == ("other.book", None, None)
