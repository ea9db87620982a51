"""A function is given in by what it asks for: its results come in order, what it leaves is stopped, and a mistake of its code parks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document, notes_of
from baton.core.documents.models import kind_named
from baton.core.effects.toolspec import ToolSpec
from baton.core.graph.graph import FunctionParts
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.folding.received import is_same_signal, reply_of
from baton.core.log.functions import (
    AskedOperation,
    FunctionCall,
    FunctionProgress,
    Heard,
    RunningFunction,
    reply_in,
    with_operations,
)
from baton.core.log.records import Segment
from baton.core.log.snapshots import decode_state, encode_state
from baton.core.log.state import State, status_of
from baton.core.log.work import Wait
from baton.core.nodes.registry import KINDS
from baton.core.read.definition_views import graph_view
from baton.core.read.explain import explain, place_text
from baton.core.read.story import read_story
from baton.core.read.views import saga_view
from baton.errors import InvalidDefinition, NotFound
from tests.core.asked import cancels_of, steps_of
from tests.core.build import TOOLS, Saga, done, failed, ready, replay, tool_spec
from tests.core.failing import broken
from tests.core.test_fork import fork
from tests.core.told import ROOM
from tests.core.undo_asking import asked as asked_about
from tests.core.undo_asking import say
from tests.kit.sentences import Says
from tests.kit.views import as_json, way

Script = Callable[[list[Heard]], FunctionProgress]
KNOWN: Mapping[str, ToolSpec] = {
    **TOOLS,
    "pay": replace(tool_spec("pay"), effect="idempotent", undo="back"),
    "back": replace(tool_spec("back"), effect="idempotent"),
    "once": replace(tool_spec("once"), effect="once", undo="back"),
    "f": replace(tool_spec("f"), calls=("once", "pay", "t")),
}
DOCUMENT = "name: w\nnodes: {a: {function: f}}\noutput: '${ctx.a.output}'"
DEFECT = ev.Failure("function_defect", "it is wrong", "a")


class Scripted:
    """A function that says after each result what it does then."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.calls: list[FunctionCall] = []

    def progress(self, call: FunctionCall) -> FunctionProgress:
        self.calls.append(call)
        return replace(self.script([*call.work.tail, *call.results]), at=call.now)


def step(item: str, tool: str = "t", **more: Any) -> AskedOperation:
    return AskedOperation(item=item, digest=f"d-{item}", tool=tool, **more)


def node(item: str, **fields: Any) -> AskedOperation:
    return AskedOperation(item=item, digest=f"d-{item}", node=fields)


def asks(*operations: AskedOperation, left: tuple[str, ...] = ()) -> FunctionProgress:
    return FunctionProgress(at=0, operations=operations, left=left)


def returns(value: Any = "returned") -> FunctionProgress:
    return FunctionProgress(at=0, output=ev.Value(v=value))


def raises(failure: ev.Failure) -> FunctionProgress:
    return FunctionProgress(at=0, failure=failure)


def in_turn(*steps: FunctionProgress) -> Script:
    """One answer for each number of results."""
    return lambda heard: steps[len(heard)]


def compiled(text: str = DOCUMENT, build: str = "b1") -> Program:
    return Program(compile_document(text, KNOWN), KINDS, build=build)


def saga_of(script: Script, text: str = DOCUMENT) -> Saga:
    saga = Saga(compiled(text))
    saga.functions = Scripted(script)
    saga.go()
    return saga


def work(saga: Saga) -> RunningFunction:
    found = saga.state.open["a"]
    assert isinstance(found, RunningFunction)
    return found


def kinds_of(saga: Saga) -> list[list[str]]:
    return [[str(event.__struct_config__.tag) for event in entry.events] for entry in saga.entries]


def ended(saga: Saga) -> tuple[str, Any]:
    assert saga.state.ended is not None, saga.state.open
    assert replay(saga.entries) == saga.state
    assert not saga.state.open
    assert not saga.state.items
    assert not saga.state.tokens
    return saga.state.ended.status, saga.state.ended.output.v


# ---- the log -----------------------------------------------------------------------------------------------------------


def test_each_outcome_is_one_entry_with_what_is_asked_for_next() -> None:
    saga = saga_of(in_turn(asks(step("x")), asks(step("y")), returns()))
    saga.go(done("a#x", 1))
    saga.go(done("a#y", 2))
    assert ended(saga) == ("completed", "returned")
    assert kinds_of(saga)[1:] == [
        ["function_began", "operations_began"],
        ["step_succeeded", "operations_began"],
        ["step_succeeded", "function_closed", "saga_ended"],
    ]


def test_results_are_heard_in_the_order_in_which_they_came() -> None:
    saga = saga_of(in_turn(asks(step("x"), step("y"), step("z")), asks(), asks(), returns()))
    saga.go(done("a#z", 3), done("a#x", 1))
    assert [(one.item, one.output.v) for one in work(saga).tail] == [("z", 3), ("x", 1)]
    assert list(work(saga).asked) == ["y"]
    saga.go(done("a#y"))
    assert ended(saga)[0] == "completed"


def test_the_failure_of_a_step_is_a_result() -> None:
    saga = saga_of(
        lambda heard: returns(heard[0].failure.code) if heard and heard[0].failure else asks(step("x"))
    )
    saga.go(failed("a#x", "sold_out", "permanent"))
    assert ended(saga) == ("completed", "sold_out")


def test_a_function_gets_the_input_of_its_saga_or_what_its_node_gives() -> None:
    saga = Saga(compiled(), {"n": 1})
    saga.functions = Scripted(in_turn(asks(step("x"))))
    saga.go()
    assert work(saga).given.v == {"n": 1}
    own = "name: w\nnodes: {a: {function: f, with: {}}}"
    assert work(saga_of(in_turn(asks(step("x"))), own)).given.v == {}


def test_a_step_has_its_own_attempts_and_its_own_time() -> None:
    calls = (step("x", attempts=3, timeout_ms=1_000), step("y"), step("z", given=ev.Value(v={"n": 1})))
    saga = saga_of(in_turn(asks(*calls), asks()))
    x, y, z = steps_of(saga.decision)
    assert (x.node.timeout_ms, y.node.timeout_ms, z.arguments, y.arguments) == (1_000, 60_000, {"n": 1}, {})
    for attempt in (1, 2, 3):
        assert not work(saga).tail
        saga.go(broken("a#x", attempt=attempt), running=["a#y", "a#z"], after_ms=400_000)
    assert [
        event.item for entry in saga.entries for event in entry.events if isinstance(event, ev.StepFailed)
    ] == ["x"]


def test_an_event_that_is_folded_again_changes_nothing() -> None:
    saga = saga_of(in_turn(asks(step("x")), asks(step("y"))))
    saga.go(done("a#x"))
    (again,) = [one for one in saga.entries[-1].events if isinstance(one, ev.OperationsBegan)]
    assert apply(saga.state, again) == saga.state
    (first,) = [one for one in saga.entries[1].events if isinstance(one, ev.OperationsBegan)]
    assert apply(saga.state, replace(first, operations=again.operations)) == saga.state
    elsewhere = replace(again, node="b")
    assert apply(saga.state, elsewhere) == saga.state
    nothing = ev.OperationsBegan(node="a", iteration=(), at=1, heard=("x",))
    assert apply(saga.state, nothing) == saga.state


ABOUT: Mapping[str, Any] = {"saga": "s", "workflow": "w", "status": "running", "version": 1, "branch": 0}


@pytest.mark.parametrize("name", ["notify[1]/x", "notify-1--x"])
def test_an_operation_is_explained_by_its_label(name: str) -> None:
    saga = saga_of(in_turn(asks(step("notify-1--x", label="notify[1]/x")), returns()))
    open_ = explain(read_story(saga.program, saga.state, saga.entries), name, ROOM, **ABOUT)
    saga.go(done("a#notify-1--x", 7))
    ended_ = explain(read_story(saga.program, saga.state, saga.entries), name, ROOM, **ABOUT)
    assert (open_.node, open_.kind, open_.iterations[0].version) == ("a", "function", None)
    assert ended_.iterations[0].state == "ran"
    assert ended_.iterations[0].text.startswith("notify[1]/x")
    with pytest.raises(NotFound):
        explain(read_story(saga.program, saga.state, saga.entries), "y", ROOM, **ABOUT)


def test_what_it_waits_for_is_said_of_each_place() -> None:
    saga = saga_of(in_turn(asks(step("x"))))
    saga.go(running=["a#x"])
    story = read_story(saga.program, saga.state, saga.entries)
    assert place_text(story, "a") == "`a` waits for x"
    assert place_text(story, "a#x")
    assert [one.words for one in events(saga, ev.FunctionBegan)] == ["what it returns"]
    done_ = saga_of(in_turn(asks(step("x")), returns()))
    done_.go(done("a#x"))
    assert place_text(read_story(done_.program, done_.state, done_.entries), "a#x")


@pytest.mark.parametrize("undo", [True, False])
def test_a_cancel_says_down_to_which_version_effects_are_taken_back(*, undo: bool) -> None:
    saga = saga_of(in_turn(asks(step("pay", "pay"), step("x")), asks()), DOCUMENT)
    saga.go(done("a#pay"), running=["a#x"])
    assert saga.state.reverts_to is None
    saga.put(ev.CancelRequested(reason="enough", by="ann", at=saga.now, grace_ms=0, undo=undo, back_to=2))
    assert saga.state.reverts_to == (2 if undo else None)
    saga.go()
    if undo:
        assert saga.state.undo.work is not None
        assert saga.state.reverts_to == 2


def test_segments_take_the_place_of_the_oldest_results() -> None:
    heard = tuple(Heard(str(n), "d", n) for n in range(4))
    asked, over = {"4": AskedOperation(item="4", digest="d")}, {"4": None}
    old = RunningFunction(given=ev.Value(), began=0, heard=5, tail=heard, asked=asked, ended=over)
    event = ev.OperationsBegan(node="a", iteration=(), at=9, heard=("4",), segments=(Segment("cas://x", 4),))
    after = with_operations(old, event, {"4": ev.Value(v=1)})
    assert (after.heard, [one.item for one in after.tail]) == (6, ["4"])
    assert after.segments == (Segment("cas://x", 4),)


def test_with_a_checkpoint_only_later_results_count() -> None:
    def script(heard: list[Heard]) -> FunctionProgress:
        if [one.item for one in heard] == ["x"]:
            return replace(asks(step("1--y")), checkpoint=ev.Value(v={"n": 1}), checkpoints=1)
        return returns() if heard else asks(step("x"))

    saga = saga_of(script)
    saga.go(done("a#x"), after_ms=5)
    found = work(saga)
    assert (found.heard, found.tail, found.began, found.checkpoints) == (1, (), saga.now, 1)
    assert found.checkpoint is not None
    assert (found.checkpoint.v, list(found.asked)) == ({"n": 1}, ["1--y"])
    saga.go(done("a#1--y"))
    assert ended(saga)[0] == "completed"


def test_a_function_in_doubt_is_in_doubt_by_its_operations() -> None:
    saga = saga_of(in_turn(asks(step("x", "pay")), asks(step("y"))), DOCUMENT + "\non_failure: [rollback]")
    saga.go(done("a#x"))
    failure = ev.Failure("unknown_outcome", "it may have happened", "a", doubt=True)
    failed_ = ev.StepFailed(
        node="a",
        iteration=(),
        failure=failure,
        prior=0,
        tool_version="",
        schema_hash="",
        tool="",
        attempt=1,
        started_at=saga.now,
        ended_at=saga.now,
    )
    assert apply(saga.state, failed_).undo.in_doubt == ()


def test_the_time_of_its_beginning_is_that_at_which_it_has_first_run() -> None:
    saga = Saga(compiled())

    def later(call: FunctionCall) -> FunctionProgress:
        return FunctionProgress(at=call.now + 7, operations=(step("x"),))

    scripted = Scripted(in_turn(asks()))
    scripted.progress = later  # type: ignore[method-assign]
    saga.functions = scripted
    saga.go()
    assert work(saga).began == saga.now + 7


def test_a_function_is_asked_when_it_can_go_on_and_not_else() -> None:
    saga = saga_of(in_turn(asks(step("x"), node("w", kind="wait", wait_ms=1_000)), asks()))
    scripted = saga.functions
    assert isinstance(scripted, Scripted)
    before = len(scripted.calls)
    saga.signal("other")
    saga.go(running=["a#x"])
    assert len(scripted.calls) == before
    saga.go(running=["a#x"], after_ms=2_000)
    assert [one.item for one in work(saga).tail] == ["w"]


def reply(key: str, answer: Any, item: str = "answer") -> AskedOperation:
    given = ev.Value(v={"answer": answer})
    return replace(node(item, kind="pass"), given=given, answers=f"s/{key}")


def test_a_reply_is_in_the_entry_with_the_signal_and_the_first_one_counts() -> None:
    wait = node("w", kind="wait", signal="s")
    again = asks(reply("k1", 2, "second"), reply("k0", 3, "third"))
    saga = saga_of(in_turn(asks(wait), asks(reply("k1", 1)), again, asks(), asks()))
    saga.signal("s", "change", "k1")
    known = saga.state.keys["s/k1"]
    assert (reply_of(known), is_same_signal(known, ev.Value(v="change"))) == (0, True)
    saga.go()
    known, entry = saga.state.keys["s/k1"], saga.entries[-1]
    assert [one.by for one in work(saga).tail] == ["k1", "", "", ""]
    assert (reply_of(known), is_same_signal(known, ev.Value(v="change"))) == (entry.version, True)
    assert not is_same_signal(known, ev.Value(v="other"))
    assert reply_in(entry.events, "s/k1").v == {"answer": 1}
    assert "s/k0" not in saga.state.keys, "it was never sent, or is forgotten"
    assert decode_state(encode_state(saga.state)) == saga.state


def test_a_signal_that_does_not_fit_is_not_taken_again() -> None:
    wait = node("w", kind="wait", signal="s", output_schema={"type": "integer"})
    saga = saga_of(in_turn(asks(step("x")), asks(wait), asks(replace(wait, item="w2"))))
    saga.signal("s", "no number", "k1")
    saga.go(done("a#x"))
    assert [(one.item, one.by) for one in work(saga).tail] == [("x", ""), ("w", "k1")]
    assert saga.state.signals == ()
    assert list(work(saga).asked) == ["w2"]


def test_without_its_function_a_decision_asks_for_it() -> None:
    saga = Saga(compiled())
    saga.go()
    (command,) = saga.decision.commands
    assert [one.name for one in command.calls] == ["f"]  # type: ignore[attr-defined]
    assert kinds_of(saga)[-1] == ["function_began"]


def test_a_step_that_is_code_of_a_function_begins_with_the_function_in_memory() -> None:
    saga = saga_of(in_turn(asks(step("x", in_memory=True)), returns()))
    assert [one.slot for one in steps_of(saga.decision)] == ["a#x"]
    saga.functions = None
    saga.go()
    assert [one.slot for one in saga.decision.commands[0].calls] == ["a"]  # type: ignore[attr-defined]


def test_a_snapshot_has_all_that_a_function_needs() -> None:
    saga = saga_of(
        in_turn(asks(step("x", given=ev.Value(v={"n": 1})), node("w", kind="wait", signal="s")), asks())
    )
    saga.go(failed("a#x", "sold_out", "permanent"))
    assert decode_state(encode_state(saga.state)) == saga.state


# ---- forks -------------------------------------------------------------------------------------------------------------


def fan() -> Saga:
    def script(heard: list[Heard]) -> FunctionProgress:
        if not heard:
            return asks(step("x", "pay"), step("y", "pay"))
        return (
            returns([one.output.v for one in heard])
            if len(heard) == 3
            else asks(*[step("z")][: 2 - len(heard)])
        )

    return saga_of(script)


def finish(saga: Saga) -> list[str]:
    """Play it to its end; the steps that ran."""
    ran: list[str] = []
    while saga.state.ended is None:
        saga.go()
        slots = ready(saga.decision)
        ran += slots
        assert slots, saga.state.open
        saga.go(done(slots[0], slots[0]), running=slots[1:])
        ran = ran[: len(ran) - len(slots) + 1]
    return ran


def test_a_fork_at_each_version_goes_on_with_the_results_up_to_it() -> None:
    whole = fan()
    assert finish(whole) == ["a#x", "a#y", "a#z"]
    _, results = ended(whole)
    for cut in range(1, len(whole.entries)):
        saga = fan()
        finish(saga)
        fork(saga, cut)
        at_cut = saga.states[cut].open.get("a")
        known = [one.item for one in at_cut.tail] if isinstance(at_cut, RunningFunction) else []
        ran = finish(saga)
        assert ran == ["a#x", "a#y", "a#z"][len(known) :], cut
        assert ended(saga) == ("completed", results)


def test_a_started_saga_and_the_token_of_a_callback_are_the_same_in_each_branch() -> None:
    told = (
        node("x", kind="start", workflow="other"),
        node("y", kind="callback", callback={"timeout_ms": 60_000}),
    )
    saga = saga_of(in_turn(asks(*told)))
    fork(saga, 1)
    saga.go()
    started, handed_out = events(saga, ev.ChildOpened), events(saga, ev.CallbackOpened)
    assert [one.child for one in started] == ["s1.0.a-x"] * 2
    assert [one.callback for one in handed_out] == ["0.a#y.1"] * 2
    assert not saga.state.orphaned_children


# ---- what it leaves ----------------------------------------------------------------------------------------------------


def test_a_saga_that_it_starts_and_leaves_is_neither_stopped_nor_undone() -> None:
    script = in_turn(
        asks(node("x", kind="start", workflow="other"), step("y")),
        asks(step("z"), left=("x",)),
        raises(BUSINESS),
    )
    saga = saga_of(script, DOCUMENT + "\non_failure: [rollback]")
    saga.go(done("a#y"))
    assert saga.kinds == ["step_succeeded", "operations_began"]
    assert not saga.state.orphaned_children


def events(saga: Saga, kind: type) -> list[Any]:
    return [event for entry in saga.entries for event in entry.events if isinstance(event, kind)]


def test_a_step_that_it_leaves_while_it_acts_is_stopped_and_asked_about_when_it_is_undone() -> None:
    script = in_turn(asks(step("x", "pay"), step("y")), asks(step("z"), left=("x",)), raises(BUSINESS))
    saga = saga_of(script, DOCUMENT + "\non_failure: [rollback]")
    decision = saga.go(done("a#y"), running=["a#x"])
    assert saga.kinds == ["step_succeeded", "step_stopped", "operations_began"]
    assert (ready(decision), "a#x" in saga.state.tokens) == (["a#z"], False)
    saga.go(done("a#x", "too late"))
    saga.go(done("a#z"))
    assert asked_about(saga) == ["a#undo-x"]
    say(saga, "a#undo-x", "retry")
    saga.note_told()
    saga.go()
    assert ended(saga)[0] == "rolled_back"


def test_a_step_that_may_happen_once_is_told_when_it_is_left() -> None:
    saga = saga_of(in_turn(asks(step("x", "once"), step("y")), asks(step("z"), left=("x",))))
    saga.go(done("a#y"), running=["a#x"])
    (notice,) = events(saga, ev.NoticeDue)
    assert (notice.notice.code, notice.notice.key) == ("unknown_outcome", "s1/0.a#x.stopped")


def test_waits_questions_and_children_that_it_leaves_are_gone() -> None:
    others = (
        node("w", kind="wait", signal="s"),
        node("q", kind="human", asks={"type": "approval", "says": None, "expires_ms": 9_000, "schema": None}),
        node("c", kind="workflow", workflow="other", timeout_ms=0),
    )
    others = (others[0], replace(others[1], given=ev.Value(v={"title": "May it?"})), others[2])
    script = in_turn(asks(step("x"), *others), asks(step("y"), left=("w", "q", "c")), returns())
    saga = saga_of(script)
    assert {"a#w", "a#q", "a#c"} <= saga.state.open.keys()
    decision = saga.go(done("a#x"))
    assert saga.state.open.keys() == {"a"}
    assert list(saga.state.items) == ["a#y"]
    assert [(slot, one.saga) for slot, one in cancels_of(decision)] == [("", "s1.0.a-c")]
    saga.go(done("a#y"))
    saga.note_told()
    saga.go()
    assert ended(saga)[0] == "completed"


@pytest.mark.parametrize("last", [returns(), raises(ev.Failure("sold_out", "no", "a"))])
def test_what_is_open_when_it_is_over_is_stopped(last: FunctionProgress) -> None:
    others = (
        step("y", "pay"),
        node("c", kind="workflow", workflow="other"),
        node("w", kind="wait", signal="s"),
    )
    text = "name: w\nnodes: {a: {function: f, catch: b}, b: {tool: t}}"
    saga = saga_of(in_turn(asks(step("x"), *others), last), text)
    decision = saga.go(done("a#x"), running=["a#y"])
    assert [(one.item, one.child) for one in events(saga, ev.StepStopped)] == [("y", ""), ("c", "s1.0.a-c")]
    assert [one.saga for _, one in cancels_of(decision)] == ["s1.0.a-c"]
    saga.go(*(done(slot) for slot in ready(saga.go(done("a#y", "too late")))))
    saga.note_told()
    saga.go()
    assert ended(saga)[0] == "completed"


def test_a_saga_that_fails_with_its_function_waits_for_the_steps_that_run() -> None:
    saga = saga_of(in_turn(asks(step("x"), step("y", "pay")), raises(ev.Failure("sold_out", "no", "a"))))
    saga.go(done("a#x"), running=["a#y"])
    assert saga.state.ended is None
    assert ready(saga.go(done("a#y"))) == ["a#undo-y"]
    saga.go(done("a#undo-y"))
    saga.note_told()
    saga.go()
    assert ended(saga)[0] == "rolled_back"


# ---- the saga stops ----------------------------------------------------------------------------------------------------

BUSINESS = ev.Failure("sold_out", "there is none", "a")


def test_a_saga_that_is_cancelled_lets_its_steps_end_and_asks_its_function_nothing() -> None:
    saga = saga_of(in_turn(asks(step("x"), step("y"))))
    saga.cancel(grace_ms=60_000)
    saga.go(done("a#x"), running=["a#y"])
    assert saga.state.ended is None
    saga.go(done("a#y"))
    assert ended(saga)[0] == "cancelled"


def test_steps_are_undone_in_reverse_of_the_order_in_which_they_were_done() -> None:
    saga = saga_of(
        in_turn(asks(step("x", "pay"), step("y", "pay")), asks(), asks(step("z", "pay")), raises(BUSINESS)),
        DOCUMENT + "\non_failure: [rollback]",
    )
    saga.go(done("a#y"), running=["a#x"])
    saga.go(done("a#x"))
    saga.go(done("a#z"))
    undone = []
    while saga.state.ended is None:
        (slot,) = ready(saga.go())
        undone.append(slot)
        saga.go(done(slot))
        saga.note_told()
        saga.go()
    assert undone == ["a#undo-z", "a#undo-x", "a#undo-y"]
    assert ended(saga)[0] == "rolled_back"


def test_a_function_whose_saga_fails_beside_it_is_heard_no_more() -> None:
    text = "name: w\nnodes: {a: {function: f}, b: {tool: t}}\non_failure: [rollback]"
    saga = saga_of(in_turn(asks(step("x", "pay"), step("y")), asks()), text)
    saga.go(done("a#x"), running=["a#y", "b"])
    saga.go(failed("b"), running=["a#y"])
    saga.go(done("a#y"))
    assert ready(saga.go()) == ["a#undo-x"]
    saga.go(done("a#undo-x"))
    saga.note_told()
    saga.go()
    assert ended(saga)[0] == "rolled_back"


# ---- mistakes of its code ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["function_defect", "function_changed", "tool_missing"])
def test_a_mistake_of_its_code_parks_the_saga_until_other_code_is_there(code: str) -> None:
    answers = [asks(step("x", "pay")), raises(replace(DEFECT, code=code))]
    saga = saga_of(lambda heard: answers[len(heard)], DOCUMENT + "\non_failure: [rollback]")
    saga.go(done("a#x", 1))
    assert (status_of(saga.state), saga.state.failure) == ("parked", None)
    answers[1] = returns("mended")
    saga.go(after_ms=3_600_000)
    assert status_of(saga.state) == "parked", "it is the same code"
    saga.program = compiled(DOCUMENT + "\non_failure: [rollback]", "b2")
    saga.note_told()
    saga.put(ev.Resumed(by="", at=saga.now), epoch=0, invocation="reconciler")
    saga.go()
    assert ended(saga) == ("completed", "mended")


def test_arguments_that_do_not_fit_a_tool_are_a_mistake_of_the_code() -> None:
    saga = saga_of(in_turn(asks(step("x", "pay"))))
    saga.go(broken("a#x", "input_invalid"))
    assert status_of(saga.state) == "parked"


def test_a_step_that_an_edited_graph_does_not_know_is_a_failure_that_names_the_tools(says: Says) -> None:
    saga = saga_of(in_turn(asks(step("x", "pay")), asks()))
    node_ = saga.program.nodes["a"]
    for calls in (node_.function.calls[:1], ()) if node_.function else ():
        again = saga_of(in_turn(asks(step("x", "pay")), asks()))
        edited = replace(node_, function=FunctionParts(name="f", calls=calls))
        again.program = Program(replace(again.program.graph, nodes=(edited,)), KINDS)
        again.go()
        (heard,) = work(again).tail
        assert heard.failure is not None
        assert heard.failure.code == "tool_not_listed"
        says(heard.failure.message)


# ---- documents ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["function: g", "function: t", "function: ff", "{function: f, with: {m: 1}}"]
)
def test_a_document_names_a_function_that_exists_and_gives_it_what_it_takes(text: str, says: Says) -> None:
    body = text if text.startswith("{") else f"{{{text}}}"
    with pytest.raises(InvalidDefinition) as found:
        compile_document(f"name: w\nnodes: {{a: {body}}}", KNOWN)
    for one in found.value.problems:
        says(f"{one.path}: {one.message}; {one.suggestion}")


def test_a_function_whose_tool_is_gone_is_told_of() -> None:
    known = {name: spec for name, spec in KNOWN.items() if name != "once"}
    with pytest.raises(InvalidDefinition, match="once"):
        compile_document(DOCUMENT, known)
    assert notes_of(compile_document(DOCUMENT, KNOWN), KNOWN, invocation_ms=60_000, unknown={}) == ()


# ---- what is shown -----------------------------------------------------------------------------------------------------


def test_a_running_function_is_shown_with_what_it_waits_for(says: Says) -> None:
    saga = saga_of(
        in_turn(asks(step("x"), step("send-2", label="send#2")), asks(), returns()),
    )
    saga.go(done("a#x"), running=["a#send-2"])
    shown = as_json(saga_view(saga.state, saga.program))
    (function,) = [one for one in shown["active"] if "results" in one]
    assert (function["results"], function["state"]) == (1, "running")
    (one,) = [one for one in shown["active"] if one.get("item") == "send-2"]
    assert one["label"] == "send#2"
    told = as_json(way(read_story(saga.program, saga.state, saga.entries), 0, 99, ROOM))
    for text in [one["text"] for one in told["open"]]:
        says(text)
    shown_node = {"kind": "function", **KINDS["function"].node_view(saga.program.nodes["a"])}
    assert kind_named("function").summary(shown_node, str) == "function f"
    assert KINDS["function"].node_view(saga.program.nodes["a"]) == {
        "function": "f",
        "tools": ["once", "pay", "t"],
    }
    began = [event for event in saga.entries[-1].events if isinstance(event, ev.OperationsBegan)]
    says(KINDS["function"].says(began[0])[1])
    overdue = ev.ChildOverdue(node="a", iteration=(), at=1)
    assert KINDS["function"].says(overdue) == ("", "")
    says(KINDS["function"].says(events(saga, ev.OperationsBegan)[0])[1])


def test_only_a_running_function_knows_its_operations() -> None:
    kind, plain = KINDS["function"], compiled().nodes["a"]
    assert kind.part(plain, None, "x") is plain
    assert kind.label(None, "x") == "x"
    assert State().open == {}


# ---- what is known of it from outside ----------------------------------------------------------------------------------


def test_what_it_publishes_is_in_the_view_of_the_running_function() -> None:
    shown = replace(asks(step("y")), published={"done": 1})
    saga = saga_of(in_turn(asks(step("x")), shown, asks(step("z"))))
    assert "published" not in as_json(saga_view(saga.state, saga.program))["active"][0]
    saga.go(done("a#x"))
    saga.go(done("a#y"))
    (active,) = [one for one in as_json(saga_view(saga.state, saga.program))["active"] if "item" not in one]
    assert active["published"] == {"done": 1}
    assert replay(saga.entries) == saga.state


def test_its_open_waits_take_signals_by_their_schemas() -> None:
    waits = {"kind": "wait", "signal": "go"}
    saga = saga_of(in_turn(asks(node("x", **waits, output_schema={"type": "string"}), node("y", **waits))))
    assert [one.output_schema for one in saga.program.takers(saga.state, "go")] == [{"type": "string"}, None]
    assert not list(saga.program.takers(saga.state, "other"))


def test_its_agents_are_graphs_of_its_own_document() -> None:
    known = {**KNOWN, "f": replace(tool_spec("f"), calls=("pay",), agents=("sorts",))}
    with pytest.raises(InvalidDefinition) as caught:
        compile_document(DOCUMENT, known)
    assert [(one.path, one.suggestion) for one in caught.value.problems] == [
        ("/nodes/a/function", "write `workflow: f`")
    ]
    graphs = "\ngraphs: {sorts: {nodes: {sorts: {agent: {model: m, prompt: hello}}}}}"
    graph = compile_document(DOCUMENT + graphs, known)
    assert notes_of(graph, known, invocation_ms=900_000) == ()
    assert graph_view(graph)["nodes"][0]["undo"] == {"pay": "back"}


@pytest.mark.parametrize(("tool", "costs"), [("t", False), ("dear", True)])
def test_a_function_may_cost_what_its_tools_declare_and_what_it_asks_for(tool: str, costs: bool) -> None:
    more = {"dear": replace(tool_spec("dear"), cost=5), "f": replace(tool_spec("f"), calls=(tool,))}
    assert compile_document(DOCUMENT, {**KNOWN, **more}).costs is costs
    work = RunningFunction(given=ev.Value(), began=0)
    asked = node("x", **({"kind": "model", "cost": 1} if costs else {"kind": "wait"}))
    assert replace(work, asked={"x": asked}).may_cost is costs
    assert not Wait().may_cost


def test_it_may_cost_what_its_document_does_not_declare_while_it_asks_for_that() -> None:
    saga = saga_of(in_turn(asks(step("x")), asks(node("y", kind="wait", signal="go", cost=5))))
    costs = [saga.state.open["a"].may_cost]
    saga.go(done("a#x"))
    assert [*costs, saga.state.open["a"].may_cost] == [False, True]
    assert [one.may_cost for slot, one in saga.state.open.items() if slot != "a"] == [False]
