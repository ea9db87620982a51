"""Any graph in any order of settling: the engine does what a naive interpreter would do.

1. The nodes that run are those that are ready, each exactly once, after all before it.
2. Every step gets the values that its document names.
3. The outputs that the state holds are exactly those that a node can still read.
4. There is always an end, and it rides in the same entry as the last outcome.
5. Tokens in flight are tokens emitted less tokens consumed, never below zero, and zero at the end.
6. A snapshot taken anywhere, and the log behind it, fold to the same state as the whole log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from baton.core.decide.decide import RunStep
from baton.core.decide.outcomes import Outcome
from baton.core.decide.program import Program
from baton.core.decide.spending import DEFAULT
from baton.core.documents.compile import compile_document
from baton.core.log import events as ev
from baton.core.log.folding.fold import fold
from baton.core.log.snapshots import decode_state, encode_state
from baton.core.log.state import State, status_of
from baton.core.nodes.registry import KINDS
from tests.core.asked import children_of, steps_of
from tests.core.build import FEW, PROPERTY, Saga, done, failed, interrupted, ready, tool_spec
from tests.core.reference import Reference, Shape, shapes

TOOLS = {"t": tool_spec("t", x={})}
TOOLS["t"].parameters["additionalProperties"] = True


@dataclass
class Run:
    """A saga and the interpreter, side by side."""

    shape: Shape
    room: int = DEFAULT.entry_bytes
    saga: Saga = field(init=False)
    reference: Reference = field(init=False)
    started: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.saga = Saga(Program(compile_document(self.shape.text(), TOOLS), KINDS))
        self.reference = Reference(self.shape)
        self.look()

    @property
    def running(self) -> set[str]:
        return set(self.started) - set(self.reference.values)

    def look(self, *outcomes: Outcome) -> None:
        """Let the engine go on, and start what it wants started."""
        settled = {outcome.slot for outcome in outcomes}
        self.saga.go(*outcomes, running=self.running - settled, room=self.room)
        for step in steps_of(self.saga.decision):
            self.start(step)

    def start(self, step: RunStep) -> None:
        assert step.slot not in self.started, "no step runs twice"
        assert step.arguments == self.reference.given(step.slot)
        self.started[step.slot] = step

    def settle(self, names: Sequence[str]) -> None:
        """Settle these nodes, which are open, and let the engine see it at once."""
        outcomes = []
        kinds = {spot.name: spot.kind for spot in self.shape.spots}
        for name in names:
            value = {"of": name, "given": self.reference.given(name)}
            self.reference.settle(name, value)
            if kinds[name] == "task":
                outcomes.append(done(name, value))
            elif kinds[name] == "wait":
                self.saga.signal(name, value)
            else:
                child = self.saga.state.children[name].saga
                report = ev.ChildReported(
                    slot=name, child=child, status="completed", output=ev.Value(v=value)
                )
                self.saga.put(report, epoch=0, invocation="relay")
        self.look(*outcomes)

    def compare(self) -> None:
        state, reference = self.saga.state, self.reference
        assert self.running == reference.open_of("task")
        if reference.is_over:
            assert state.ended == ev.SagaEnded(status="completed", output=ev.Value(v=reference.result))
            return
        assert state.ended is None
        assert state.open.keys() - state.children.keys() == reference.open_of("wait")
        assert {slot for slot, _ in children_of(self.saga.decision)} == reference.open_of("workflow")
        assert {slot: one.input.v for slot, one in state.children.items()} == {
            name: reference.given(name) for name in reference.open_of("workflow")
        }
        assert set(state.outputs) == reference.held
        assert (status_of(state, self.saga.program) == "waiting") == (not self.running)

    def carry_on(self, data: st.DataObject) -> None:
        """Settle whatever is open, a few at a time, in any order, until the end."""
        self.compare()
        while not self.reference.is_over:
            names = sorted(self.reference.open)
            chosen = data.draw(st.lists(st.sampled_from(names), unique=True, min_size=1, max_size=3))
            self.settle(chosen)
            self.compare()


@given(shapes(), st.data())
@PROPERTY
def test_any_graph_settled_in_any_order_runs_as_the_reference_does(shape: Shape, data: st.DataObject) -> None:
    run = Run(shape)
    run.carry_on(data)
    assert set(run.started) == {spot.name for spot in shape.spots if spot.kind == "task"}
    assert run.saga.state.counts.steps == len(shape.spots)
    assert run.saga.kinds[-1] == "saga_ended"
    assert run.saga.kinds[0] in ("step_succeeded", "wait_closed", "child_closed")


@given(shapes(), st.data(), st.integers(1, 600))
@FEW
def test_with_little_room_in_an_entry_it_takes_more_of_them_and_nothing_else_changes(
    shape: Shape, data: st.DataObject, room: int
) -> None:
    run = Run(shape, room)
    run.carry_on(data)
    assert set(run.started) == {spot.name for spot in shape.spots if spot.kind == "task"}
    assert run.saga.state.counts.steps == len(shape.spots)
    for entry in run.saga.entries[1:]:
        assert (
            len(entry.events) == 1 or sum(len(msgspec.json.encode(event)) for event in entry.events) <= room
        )


@given(shapes(), st.data())
@PROPERTY
def test_tokens_are_neither_lost_nor_made_twice(shape: Shape, data: st.DataObject) -> None:
    run = Run(shape)
    run.carry_on(data)
    waiting: dict[str, set[str]] = {}
    for entry, state in zip(run.saga.entries, run.saga.states[1:], strict=True):
        for event in entry.events:
            if isinstance(event, ev.Settles):
                assert waiting.pop(event.node), "consumed what was there"
            for token in getattr(event, "emits", ()):
                assert token.src not in waiting.setdefault(token.dst, set()), "emitted once"
                waiting[token.dst].add(token.src)
        assert state.in_flight == sum(map(len, waiting.values()))
    assert waiting == {}


@given(shapes(), st.data())
@PROPERTY
def test_a_saga_folds_to_the_same_state_from_any_snapshot(shape: Shape, data: st.DataObject) -> None:
    run = Run(shape)
    run.carry_on(data)
    whole = State()
    for entry in run.saga.entries:
        whole = fold(whole, entry)
    for cut in range(len(run.saga.entries)):
        state = decode_state(encode_state(run.saga.states[cut]))
        assert state == run.saga.states[cut]
        for entry in run.saga.entries[cut:]:
            state = fold(state, entry)
        assert state == whole


@given(shapes(), st.data())
@FEW
def test_deaths_and_interruptions_change_nothing_in_the_end(shape: Shape, data: st.DataObject) -> None:
    """A dead or ended invocation loses what ran; the next worker runs just that again."""
    run = Run(shape)
    run.compare()
    while not run.reference.is_over:
        lost = sorted(run.running)
        cut_off = data.draw(st.booleans())
        if lost and cut_off:
            run.started = {name: step for name, step in run.started.items() if name not in lost}
            if data.draw(st.booleans()):
                run.saga.die()
                run.saga.epoch += 1  # a lease without a crash before it is no recovery
            else:
                run.saga.put(*(event for slot in lost for event in [_cut_off(slot)]))
            run.saga.put(ev.Resumed(by="ada", at=1))
            run.look()
        run.settle([data.draw(st.sampled_from(sorted(run.reference.open)))])
        run.compare()


def _cut_off(slot: str) -> ev.StepInterrupted:
    outcome = interrupted(slot)
    return ev.StepInterrupted(
        node=slot, started_at=outcome.started_at, ended_at=outcome.ended_at, budget_ms=outcome.budget_ms
    )


@given(shapes(kinds=("task", "task", "wait")), st.data())
@PROPERTY
def test_after_a_failure_or_a_cancel_nothing_starts_and_what_runs_may_end(
    shape: Shape, data: st.DataObject
) -> None:
    run = Run(shape)
    for _ in range(data.draw(st.integers(0, 3))):
        if not run.reference.is_over:
            run.settle([data.draw(st.sampled_from(sorted(run.reference.open)))])
    if run.reference.is_over:
        return
    running = sorted(run.running)
    fails = data.draw(st.booleans())
    broken = data.draw(st.sampled_from(running)) if running and fails else ""
    outcomes = [failed(broken, "bad_request")] if broken else []
    if not broken:
        run.saga.cancel(grace_ms=1_000)
    running = [name for name in running if name != broken]
    run.saga.go(*outcomes, running=running)
    while running:
        assert run.saga.state.ended is None
        assert ready(run.saga.decision) == []
        running.remove(name := data.draw(st.sampled_from(running)))
        run.saga.go(done(name, 1), running=running)
    assert status_of(run.saga.state) == ("failed" if broken else "cancelled")
    assert run.saga.kinds[-1] == "saga_ended"


@given(shapes(kinds=("task", "wait", "workflow")), st.data())
@PROPERTY
def test_dead_edges_skip_exactly_what_only_they_lead_to(shape: Shape, data: st.DataObject) -> None:
    entries = sorted(spot.name for spot in shape.spots if not spot.before)
    dead = set(data.draw(st.lists(st.sampled_from(entries), unique=True)))
    mute = Shape(tuple(type(s)(s.name, s.kind, s.before, ()) for s in shape.spots), ())
    saga = Saga(Program(compile_document(mute.text(), TOOLS), KINDS), dead=dead)
    skipped = set(dead)
    for name in _in_order(mute):
        before = next(spot.before for spot in mute.spots if spot.name == name)
        if before and all(other in skipped for other in before):
            skipped.add(name)
    saga.go()
    while saga.state.ended is None:
        for spot in mute.spots:
            if spot.name in saga.state.open.keys() - saga.state.children.keys():
                saga.signal(spot.name)
            if spot.name in saga.state.children:
                name = saga.state.children[spot.name].saga
                saga.put(ev.ChildReported(slot=spot.name, child=name, status="completed"))
        saga.go(*(done(slot) for slot in ready(saga.decision)))
    seen = {
        event.node: isinstance(event, ev.NodeSkipped)
        for entry in saga.entries
        for event in entry.events
        if isinstance(event, ev.Settles)
    }
    assert seen == {spot.name: spot.name in skipped for spot in mute.spots}
    assert saga.state.ended.status == "completed"


def _in_order(shape: Shape) -> list[str]:
    order: list[str] = []
    while len(order) < len(shape.spots):
        order += [s.name for s in shape.spots if s.name not in order and all(b in order for b in s.before)]
    return order
