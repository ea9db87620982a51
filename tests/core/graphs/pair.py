"""The engine and the interpreter, side by side, over one saga: whatever the engine writes down, the interpreter checks.

Belongs here: carrying a saga on entry by entry, and what must hold after each. Does not belong here: which graphs, in
which order, and with what bad luck.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from baton.core import events as ev
from baton.core.compile import compile_document
from baton.core.decide import ROOM, advance, decide
from baton.core.fold import apply, fold
from baton.core.outcomes import Outcome
from baton.core.program import Program
from baton.core.state import State, decode_state, encode_state
from tests.core.build import AT_ONCE, T0, started, tool_spec
from tests.core.graphs.cases import FAILS
from tests.core.graphs.counter import Counter
from tests.core.graphs.facts import BREAKS, Slot, slot_name, slot_of
from tests.core.graphs.interpreter import Interpreter
from tests.core.graphs.script import INPUT

TOOLS = {"work": tool_spec("work")}
TOOLS["work"].parameters["additionalProperties"] = True
OWN_CODES = {"tool_error", "join_failed", "loop_exhausted", "input_unbound"}
"""All other codes are about conditions: the interpreter knows only that they break."""


def program_of(document: Mapping[str, Any]) -> Program:
    """Raises `InvalidDefinition`."""
    graph = compile_document(json.dumps(document), TOOLS)
    return Program(msgspec.structs.replace(graph, failures=graph.failures or AT_ONCE))


def plain(value: Any) -> Any:
    """A value without the messages of failures, and with one code for all that conditions break with."""
    if isinstance(value, Mapping):
        if value.keys() == {"node", "code", "message"}:
            return {"node": value["node"], "code": _code(value["code"])}
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    is_code = isinstance(value, str) and value.startswith(("condition_", "branch_"))
    return "condition" if is_code else value


def _code(code: str) -> str:
    return code if code in OWN_CODES else "condition"


class Pair:
    """One saga. `running` are the steps at work in the invocation that holds it."""

    def __init__(self, document: Mapping[str, Any], program: Program, room: int = ROOM) -> None:
        self.document = document
        self.program = program
        self.room = room
        self.world = Interpreter(document, INPUT)
        self.state = State()
        self.entries: list[ev.Entry] = []
        self.counter = Counter()
        self.running: set[str] = set()
        self.begun: dict[str, Any] = {}
        self.skipped: set[Slot] = set()
        self.queues: dict[str, list[tuple[str, Any]]] = {}
        self.now = T0
        self.told: list[tuple[str, Any]] = []
        """What it was told, in this order: slots with their value or FAILS, `signal NAME` with a payload."""
        self.put(started(program, ev.Value(v=INPUT)))

    def fork(self) -> Pair:
        """A second pair that stands where this one does."""
        twin = object.__new__(Pair)
        twin.__dict__.update(self.__dict__)
        twin.world = self.world.fork()
        twin.counter = self.counter.fork()
        twin.entries, twin.told = list(self.entries), list(self.told)
        twin.running, twin.begun, twin.skipped = set(self.running), dict(self.begun), set(self.skipped)
        twin.queues = {name: list(queue) for name, queue in self.queues.items()}
        return twin

    # ---- the log -------------------------------------------------------------------------------------------

    def put(self, *events: ev.Event, told: Iterable[str] = ()) -> None:
        """One entry: through the codec, folded, counted, and held against the interpreter."""
        entry = ev.Entry(
            version=self.state.version + 1, at=self.now, epoch=1, invocation="i1", events=tuple(events)
        )
        read = ev.decode_entry(ev.encode_entry(entry))
        assert read == entry
        self.state = fold(self.state, read)
        self.entries.append(read)
        for event in events:
            self.counter.count(event)
            self._mirror(event, set(told))
        self.counter.check(self.state)

    def go(self, *outcomes: Outcome, dies: bool = False) -> None:
        """Let the engine take the outcomes and go on; when it dies, what ran is lost after the first entry."""
        left: Sequence[Outcome] = outcomes
        self.told += [(one.slot, one.output.v if one.output is not None else FAILS) for one in outcomes]
        while True:
            busy = self.running - {outcome.slot for outcome in left}
            step = advance(self.program, self.state, left, self.now, sorted(busy), room=self.room)
            assert not step.decision.is_lacking
            if step.events:
                self.put(*step.events, told={outcome.slot for outcome in left[: step.taken]})
            taken, left = left[: step.taken], left[step.taken :]
            self.running -= {outcome.slot for outcome in taken}
            if dies and (step.events or self.running or left):
                self.running.clear()
                left = ()
                self.state = decode_state(encode_state(self.state))
            elif not step.more:
                break
        assert not step.decision.record
        for run in step.decision.run:
            self._start(run.slot, run.arguments)
        self.running &= (
            {slot_name(slot) for slot in self.world.open} if self.world.ended is None else self.running
        )
        self.compare()

    def _start(self, slot: str, arguments: Any) -> None:
        assert slot not in self.running, f"{slot} is running"
        expected = self.world.open.get(slot_of(slot))
        assert slot_of(slot) in self.world.open, f"it is not the turn of {slot}"
        assert plain(arguments) == plain(expected or {}), f"{slot} got {arguments}, not {expected}"
        self.begun[slot] = expected
        self.running.add(slot)

    def signal(self, name: str, payload: Any) -> None:
        key = f"k{len(self.entries)}"
        self.queues.setdefault(name, []).append((key, payload))
        self.told.append((f"signal {name}", payload))
        self.put(ev.SignalReceived(name=name, key=key, payload=ev.Value(v=payload), by="ada", at=self.now))

    # ---- the interpreter looks on --------------------------------------------------------------------------

    def _mirror(self, event: ev.Event, told: set[str]) -> None:
        world = self.world
        if isinstance(event, ev.SagaEnded):
            self._check_end(event)
        if not isinstance(event, ev._Consumes):
            return
        slot = (event.node, event.iteration)
        name = slot_name(slot)
        if world.ended is not None and not (
            isinstance(event, ev.NodeSkipped) and world.ended.status == "completed"
        ):
            return
        if isinstance(event, ev.NodeSkipped):
            self.skipped.add(slot)
            fate = world.became.get(slot)
            is_over = world.is_over(slot)
            assert is_over or (fate is not None and fate.kind == "skipped"), f"{name} is not to be skipped"
        elif isinstance(event, ev.StepFailed) and world.open.get(slot) == BREAKS:
            assert event.failure.code == "input_unbound", event.failure
            world.fail(slot, event.failure.code)
        elif isinstance(event, ev.StepFailed) and name not in told:
            fate = world.became.get(slot)
            code = _code(event.failure.code)
            assert fate is not None, f"{name} has not failed: {event.failure}"
            assert (fate.kind, fate.errors[0].code) == ("failed", code)
        else:
            assert slot in world.open, f"{name} was settled, but is not open"
            if isinstance(event, ev.StepFailed):
                world.fail(slot, event.failure.code)
                return
            if isinstance(event, ev.WaitClosed):
                key, payload = self.queues[world.plan.nodes[event.node]["wait"]["signal"]].pop(0)
                assert (event.by, event.output.v) == (key, payload)
            if isinstance(event, ev.NodePassed):
                assert plain(event.output.v) == plain(world.open[slot]), f"{name} gave {event.output.v}"
            world.settle(slot, event.output.v)

    def _check_end(self, event: ev.SagaEnded) -> None:
        end = self.world.ended
        assert end is not None, f"it ended {event} although {sorted(self.world.open)} are open"
        assert event.status == end.status, f"it ended {event}, not {end}"
        if end.status == "completed":
            assert plain(event.output.v) == plain(end.output)
        else:
            assert event.failure is not None
            assert (_code(event.failure.code), event.failure.node) in self.world.failures

    def compare(self) -> None:
        """What must hold whenever the engine has nothing more to write."""
        state, world = self.state, self.world
        if world.ended is not None:
            assert (state.ended is not None) or self.running or state.failure is not None, "it does not end"
            if not self.running:
                assert state.ended is not None, "it does not end"
            return
        assert state.ended is None
        assert self.running == {slot_name(slot) for slot in world.open_of("task")}, (self.running, world.open)
        waits = {slot_name(slot) for slot in world.open_of("wait")}
        assert set(state.waits) == waits
        assert not any(
            self.queues.get(world.plan.nodes[name.partition("@")[0]]["wait"]["signal"]) for name in waits
        )
        assert not world.open_of("pass")
        assert BREAKS not in world.open.values()
        fates = {slot for slot, fate in world.became.items() if fate.kind == "skipped"}
        missing = {slot for slot in fates - self.skipped if not world.is_over(slot)}
        assert not missing, f"{missing} were not skipped"
        unread = set(state.outputs) - world.readable()
        assert not unread, f"nobody reads {unread} any more"

    # ---- bad luck ------------------------------------------------------------------------------------------

    def check_restart(self) -> None:
        """Whoever begins with a snapshot wants to run just what runs, with the same arguments, and writes nothing."""
        read = decode_state(encode_state(self.state))
        assert read == self.state
        decision = decide(self.program, read, self.now)
        if self.world.ended is None:
            assert not decision.record
            assert {run.slot: plain(run.arguments) for run in decision.run} == {
                slot_name(slot): plain(given or {}) for slot, given in self.world.open_of("task").items()
            }

    def check_twice(self, outcomes: Sequence[Outcome]) -> None:
        """Outcomes that come again, and entries that are folded again, change nothing."""
        if self.state.ended is None:
            again = advance(self.program, self.state, outcomes, self.now, sorted(self.running))
            # A failure of the saga is written down again, and changes nothing.
            assert not again.events or self.state.failure, f"a second delivery did {again.events}"
            for event in again.events:
                assert isinstance(event, ev.SagaEnded) or apply(self.state, event) == self.state
        for event in self.entries[-1].events:
            assert apply(self.state, event) == self.state, f"a second time changed something: {event}"

    def check_snapshots(self, cuts: Iterable[int]) -> None:
        """The state at any entry, and the entries behind it, fold to the state that is."""
        states = [State()]
        for entry in self.entries:
            states.append(fold(states[-1], entry))
        assert states[-1] == self.state
        for cut in cuts:
            state = decode_state(encode_state(states[cut]))
            for entry in self.entries[cut:]:
                state = fold(state, entry)
            assert state == self.state
