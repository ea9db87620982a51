"""How a saga moves through its graph: chains, diamonds, wide joins, failures, and the end.

Waits, children, cancelling and parking have files of their own. Whatever a graph's shape and whatever the
order, test_random_graphs.py compares with a second interpreter.
"""

from __future__ import annotations

import msgspec
import pytest

from baton.core.decide.decide import Decision, RunStep, advance, decide
from baton.core.decide.program import Program
from baton.core.decide.spending import Bounds
from baton.core.documents.compile import compile_document
from baton.core.graph.graph import Join
from baton.core.log import events as ev
from baton.core.log.slots import Slot
from baton.core.log.state import State, status_of
from baton.core.nodes.registry import KINDS
from tests.core.asked import needs_of, steps_of
from tests.core.build import T0, Saga, chain, done, failed, program, ready, slots, task, wait
from tests.kit.sentences import Says

DIAMOND = program(task("a"), task("b", "a"), task("c", "a"), task("d", "b", "c"))


def test_nothing_is_to_be_done_before_the_first_entry() -> None:
    assert decide(DIAMOND, State(), T0) == Decision()


def test_a_chain_runs_one_after_the_other() -> None:
    saga = Saga(chain(3))
    for node in ("n0", "n1", "n2"):
        assert ready(saga.go()) == [node]
        saga.go(done(node))
    assert status_of(saga.state) == "completed"


def test_one_entry_holds_a_result_and_all_that_follows_from_it() -> None:
    saga = Saga(chain(1))
    saga.go(done("n0"))
    assert saga.kinds == ["step_succeeded", "saga_ended"]
    assert len(saga.entries) == 2


def test_a_diamond_waits_for_both_sides_in_either_order() -> None:
    for first, second in (("b", "c"), ("c", "b")):
        saga = Saga(DIAMOND)
        saga.go(done("a"))
        assert ready(saga.decision) == ["b", "c"]
        assert ready(saga.go(done(first), running=[second])) == []
        assert ready(saga.go(done(second))) == ["d"]
        saga.go(done("d"))
        assert status_of(saga.state) == "completed"


def test_a_join_fires_once_when_both_sides_come_in_one_entry() -> None:
    saga = Saga(DIAMOND)
    saga.go(done("a"))
    assert ready(saga.go(done("b"), done("c"))) == ["d"]
    assert saga.kinds == ["step_succeeded", "step_succeeded"]


@pytest.mark.no_cover
def test_a_wide_fan_out_joins_when_the_last_one_is_done() -> None:
    width = 200
    middle = [task(f"m{i}", "a") for i in range(width)]
    saga = Saga(program(task("a"), *middle, task("z", *(node.name for node in middle))))
    assert len(ready(saga.go(done("a")))) == width
    names = [node.name for node in middle]
    for index, name in enumerate(names[:-1]):
        assert ready(saga.go(done(name), running=names[index + 1 :])) == []
    assert ready(saga.go(done(names[-1]))) == ["z"]
    assert saga.state.in_flight == width


def test_all_entry_nodes_are_ready_at_once() -> None:
    assert ready(Saga(program(task("a"), task("b"), task("c", "a", "b"))).go()) == ["a", "b"]


def test_a_running_step_is_not_asked_for_again() -> None:
    saga = Saga(program(task("a"), task("b")))
    assert ready(saga.go(running=["a"])) == ["b"]
    assert ready(saga.go(running=["a", "b"])) == []


def test_a_step_carries_its_slot_its_node_and_its_arguments() -> None:
    saga = Saga(program(task("a", arguments={"n": "${input.n}"})), {"n": 3})
    (step,) = steps_of(saga.go())
    assert step == RunStep(
        slot="a", node=saga.program.nodes["a"], place=Slot.parse("a"), arguments={"n": 3}, attempt=1
    )


def test_equal_arguments_give_equal_decisions() -> None:
    saga = Saga(DIAMOND, {"n": 1})
    assert decide(DIAMOND, saga.state, T0) == decide(DIAMOND, saga.state, T0)


# ---- what is recorded ------------------------------------------------------------------------------------------


def test_a_success_is_recorded_with_what_ran() -> None:
    saga = Saga(program(task("a"), task("b", "a", arguments={"x": "${ctx.a.output}"})))
    saga.go(done("a", 7, attempt=2))
    assert saga.entries[-1].events == (
        ev.StepSucceeded(
            node="a", attempt=2, output=ev.Value(v=7), started_at=T0, ended_at=T0 + 5,
            tool="t", tool_version="", schema_hash="", emits=(ev.Token("a", "b"),), keep=True,
        ),
    )  # fmt: skip


def test_an_output_that_no_node_reads_is_not_kept_but_recorded() -> None:
    saga = Saga(chain(2))
    saga.go(done("n0", 7))
    (event,) = saga.entries[-1].events
    assert isinstance(event, ev.StepSucceeded)
    assert (event.keep, event.output, saga.state.outputs) == (False, ev.Value(v=7), {})


def test_an_output_is_forgotten_with_its_last_reader() -> None:
    read = {"x": "${ctx.a.output}"}
    saga = Saga(
        program(task("a"), task("b", "a", arguments=read), task("c", "b", arguments=read), task("d", "c"))
    )
    saga.go(done("a", 1))
    saga.go(done("b"))
    assert saga.state.outputs == {"a": ev.Value(v=1)}
    saga.go(done("c"))
    assert saga.state.outputs == {}


def test_a_reader_that_runs_may_have_to_run_again_so_its_arguments_are_held() -> None:
    saga = Saga(program(task("a"), task("b", "a", arguments={"x": "${ctx.a.output}"})))
    saga.go(done("a", 1))
    saga.go(running=["b"])
    assert saga.state.outputs == {"a": ev.Value(v=1)}


# ---- outcomes that come too late ------------------------------------------------------------------------------


def test_an_outcome_for_a_settled_slot_is_dropped() -> None:
    saga = Saga(chain(3))
    saga.go(done("n0", "first"))
    step = advance(saga.program, saga.state, [done("n0", "second")], T0)
    assert step.events == ()
    assert ready(step.decision) == ["n1"]


def test_of_two_outcomes_for_one_slot_the_first_counts() -> None:
    saga = Saga(program(task("a"), output="${ctx.a.output}"))
    saga.go(done("a", "first"), done("a", "second"))
    assert saga.state.ended == ev.SagaEnded(status="completed", output=ev.Value(v="first"))


def test_an_outcome_after_the_end_is_dropped() -> None:
    saga = Saga(program(task("a"), task("b")))
    saga.go(failed("a"), running=[])
    assert saga.state.ended is not None
    step = advance(saga.program, saga.state, [done("b")], T0)
    assert (step.events, step.decision) == ((), Decision())


def test_an_outcome_for_a_join_that_still_misses_an_edge_is_dropped() -> None:
    """A fork may have taken the saga back to where only one side was done."""
    saga = Saga(DIAMOND)
    saga.go(done("a"))
    saga.go(done("b"), running=["c"])
    step = advance(saga.program, saga.state, [done("d"), done("nowhere")], T0, ["c"])
    assert step.events == ()


# ---- room in an entry ---------------------------------------------------------------------------------------------

TEN, TINY = program(*(task(f"n{i}") for i in range(10))), Bounds(entry_bytes=10)


def size(*events: ev.Event) -> int:
    return sum(len(msgspec.json.encode(event)) for event in events)


def test_outcomes_for_which_there_is_no_room_are_left_for_the_next_entry() -> None:
    saga = Saga(TEN)
    outcomes = [done(f"n{i}", "x" * 1_000) for i in range(10)]
    step = advance(TEN, saga.state, outcomes, T0, bounds=Bounds(entry_bytes=3_700))
    assert (step.taken, step.more, len(step.events)) == (3, True, 3)
    assert size(*step.events) <= 3_700
    assert steps_of(step.decision) == (), "what is not taken counts as running"
    state = saga.put(*step.events)
    rest = advance(TEN, state, outcomes[step.taken :], T0)
    assert (rest.taken, rest.more, len(rest.events)) == (7, False, 8)


def test_one_outcome_is_always_taken_however_large_it_is() -> None:
    step = advance(TEN, Saga(TEN).state, [done("n0", "x" * 9_000), done("n1")], T0, bounds=TINY)
    assert (step.taken, step.more) == (1, True)


def test_what_will_be_a_blob_counts_as_its_reference() -> None:
    all_ten = [done(f"n{i}", "x" * 100_000) for i in range(10)]
    assert advance(TEN, Saga(TEN).state, all_ten, T0, bounds=Bounds(entry_bytes=20_000)).taken == 10


def test_an_outcome_that_is_dropped_takes_no_room() -> None:
    saga = Saga(TEN)
    saga.go(done("n0"), running=[f"n{i}" for i in range(1, 10)])
    step = advance(TEN, saga.state, [done("n0", "x" * 9_000), done("n1")], T0, bounds=TINY)
    assert (step.taken, len(step.events)) == (2, 1)


def test_facts_for_which_there_is_no_room_follow_in_the_next_entries() -> None:
    many = program(*(wait(f"w{i}", signal="s") for i in range(50)))
    saga = Saga(many)
    entries = 0
    while (step := advance(many, saga.state, [], T0, bounds=Bounds(entry_bytes=500))).events:
        assert size(*step.events) <= 500
        entries += 1
        assert step.more is (len(saga.state.open) + len(step.events) < 50)
        saga.put(*step.events)
    assert (entries >= 5, len(saga.state.open), step.more) == (True, 50, False)


def test_questions_for_which_there_is_no_room_follow_in_the_next_entries_each_with_its_notice() -> None:
    asks = "".join(f"  q{n}: {{human: {{title: t, details: {'x' * 500}}}}}\n" for n in range(20))
    saga = Saga(Program(compile_document(f"name: w\nnodes:\n{asks}", {}), KINDS))
    while (step := advance(saga.program, saga.state, [], T0, bounds=Bounds(entry_bytes=2_000))).events:
        assert size(*step.events) <= 2_500
        assert [type(event) for event in step.events[:2]] == [ev.QuestionOpened, ev.NoticeDue]
        assert len(step.events) % 2 == 0
        saga.put(*step.events)
    assert (len(saga.state.open), len(saga.state.outbox.due)) == (20, 20)


# ---- failure ---------------------------------------------------------------------------------------------------


def test_a_failed_step_stops_its_siblings_from_starting_what_comes_next() -> None:
    saga = Saga(program(task("a"), task("b"), task("c", "b")))
    saga.go()
    assert saga.go(failed("a"), running=["b"]) == Decision()
    assert saga.state.ended is None
    saga.go(done("b"))
    assert status_of(saga.state) == "failed"
    assert saga.kinds == ["step_succeeded", "saga_ended"]


def test_the_saga_ends_with_the_failure_of_its_step_and_names_the_node() -> None:
    saga = Saga(program(task("a")))
    saga.go(failed("a", "timeout"))
    assert saga.kinds == ["step_failed", "saga_ended"]
    failure = ev.Failure(
        "timeout", "it broke", "a", kind="transient", tool="t", attempt=1, at=saga.entries[-1].at + 5
    )
    assert saga.state.ended == ev.SagaEnded(status="failed", failure=failure)


def test_a_sibling_that_fails_too_does_not_change_the_reason() -> None:
    saga = Saga(program(task("a"), task("b")))
    saga.go(failed("b", "first"), failed("a", "second"))
    assert saga.state.ended is not None
    failure = saga.state.ended.failure
    assert failure is not None
    assert (failure.code, failure.message, failure.node) == ("first", "it broke", "b")


# ---- skipping ----------------------------------------------------------------------------------------------------


def test_a_node_with_only_dead_edges_is_skipped_and_so_is_what_only_it_leads_to() -> None:
    saga = Saga(
        program(task("a"), task("b"), task("c", "a"), task("d", "c"), task("e", "c", "b")), dead=["a"]
    )
    assert ready(saga.go()) == ["b"]
    assert saga.kinds == ["node_skipped"] * 3
    assert slots(saga.state) == {"b", "e"}
    saga.go(done("b"))
    assert ready(saga.decision) == ["e"]


def test_a_saga_of_which_everything_is_skipped_is_complete() -> None:
    saga = Saga(program(task("a"), task("b", "a"), output="nothing"), dead=["a"])
    saga.go()
    assert saga.kinds == ["node_skipped", "node_skipped", "saga_ended"]
    assert saga.state.ended == ev.SagaEnded(status="completed", output=ev.Value(v="nothing"))


def test_reading_the_output_of_a_skipped_node_is_an_unbound_input(says: Says) -> None:
    late = task("c", "a", "b", arguments={"x": "${ctx.a.output}"})
    saga = Saga(program(task("a"), task("b"), late), dead=["a"])
    saga.go()
    saga.go(done("b"))
    assert saga.state.ended is not None
    says(saga.state.ended.failure)


# ---- the end -----------------------------------------------------------------------------------------------------


def test_the_output_of_a_saga_is_its_template_filled_in() -> None:
    output = {"a": "${ctx.a.output.x[0]}", "who": "${saga.user} of ${saga.tenant}", "n": "${input.n}"}
    saga = Saga(program(task("a"), output=output), {"n": [1]})
    saga.go(done("a", {"x": [{"deep": True}]}))
    assert saga.state.ended is not None
    assert saga.state.ended.output == ev.Value(v={"a": {"deep": True}, "who": "ada of acme", "n": [1]})


def test_a_saga_without_an_output_template_ends_with_null() -> None:
    saga = Saga(program(task("a")))
    saga.go(done("a", 1))
    assert saga.state.ended == ev.SagaEnded(status="completed", output=ev.Value())


def test_an_output_that_cannot_be_filled_in_fails_the_saga_with_the_reason(says: Says) -> None:
    saga = Saga(program(task("a"), output="${ctx.a.output.missing}"))
    saga.go(done("a", {"there": 1}))
    says(saga.state.ended)


# ---- input that cannot be bound -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "argument",
    [
        "${input.b}",
        "${input.a.b}",
        "${input[0]}",
    ],
)
def test_a_step_whose_input_cannot_be_bound_fails_without_running(argument: str, says: Says) -> None:
    saga = Saga(program(task("a", arguments={"x": argument}), task("b")), {"a": 1})
    decision = saga.go()
    assert saga.kinds == ["step_failed", "saga_ended"]
    assert ready(decision) == []
    assert saga.state.ended is not None
    says(saga.state.ended.failure)


def test_an_unbound_step_is_recorded_as_an_attempt_of_its_tool() -> None:
    saga = Saga(program(task("a", tool_version="7", schema_hash="abc", arguments={"x": "${input.b}"})), {})
    saga.go(after_ms=5)
    event = saga.entries[-1].events[0]
    assert isinstance(event, ev.StepFailed)
    assert (event.tool, event.tool_version, event.schema_hash) == ("t", "7", "abc")
    assert (event.attempt, event.started_at, event.ended_at) == (1, T0 + 5, T0 + 5)


# ---- blobs --------------------------------------------------------------------------------------------------------


def test_what_is_in_a_blob_is_asked_for_before_anything_is_decided() -> None:
    reads = {"x": "${ctx.a.output.n}", "y": "${input}"}
    saga = Saga(program(task("a"), task("b", "a", arguments=reads)), ev.Value(ref="cas://in", size=9))
    decision = saga.go(done("a", ref="cas://a"))
    assert needs_of(decision) == {"cas://a", "cas://in"}
    assert ready(decision) == []
    assert decision.record == ()
    only_one = saga.go(blobs={"cas://a": {"n": 5}})
    assert needs_of(only_one) == {"cas://in"}
    (step,) = steps_of(saga.go(blobs={"cas://a": {"n": 5}, "cas://in": [1]}))
    assert step.arguments == {"x": 5, "y": [1]}


def test_a_blob_that_no_node_reads_is_never_fetched() -> None:
    saga = Saga(chain(2), ev.Value(ref="cas://in", size=9))
    assert needs_of(saga.go(done("n0", ref="cas://a"))) == frozenset()


def test_one_step_that_needs_a_blob_does_not_hold_up_what_is_ready() -> None:
    saga = Saga(program(task("a", arguments={"x": "${input}"}), task("b")), ev.Value(ref="cas://in", size=9))
    decision = saga.go()
    assert (ready(decision), set(needs_of(decision))) == (["b"], {"cas://in"})


def test_the_end_waits_for_the_blob_that_the_output_names() -> None:
    saga = Saga(program(task("a"), output="${ctx.a.output.n}"))
    assert needs_of(saga.go(done("a", ref="cas://a"))) == {"cas://a"}
    assert saga.state.ended is None
    saga.go(blobs={"cas://a": {"n": 5}})
    assert saga.state.ended == ev.SagaEnded(status="completed", output=ev.Value(v=5))


def test_what_waits_before_a_join_that_has_fired_waits_until_those_before_it_are_skipped() -> None:
    saga = Saga(
        program(
            *(task("a"), task("x"), task("d"), task("e", "x"), task("b", "e"), task("c", "a", "b")),
            task("j", "c", "d", join=Join(need=1)),
        )
    )
    saga.go(done("a"), running=["x", "d"])
    saga.go(done("x"), running=["d"])
    assert ready(saga.go(done("d"), running=["e"])) == ["j"]
    skipped = [event.node for event in saga.entries[-1].events if isinstance(event, ev.NodeSkipped)]
    assert skipped == ["e", "b", "c"]
