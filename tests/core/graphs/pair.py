"""The engine and the interpreter, side by side, over one saga: whatever the engine writes down, the interpreter checks.

It carries a saga on entry by entry and checks what must hold after each. What one event must be like is in mirror.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from baton.core.decide import failure_handling  # noqa: F401  # before tests that are not measured import it
from baton.core.decide.context import FetchedValues
from baton.core.decide.decide import advance, decide
from baton.core.decide.decision import CancelChildren, Decision, RunStep, StartHandler
from baton.core.decide.outcomes import Outcome
from baton.core.decide.program import Program
from baton.core.decide.spending import DEFAULT, Bounds
from baton.core.decide.unknown_outcomes import doubt_notice
from baton.core.documents.compile import compile_document
from baton.core.effects.toolspec import ONCE, Merits
from baton.core.log import codec
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply, fold
from baton.core.log.records import Child
from baton.core.log.snapshots import decode_state, encode_state
from baton.core.log.state import ANSWER, State
from baton.core.nodes.registry import KINDS
from tests.core.asked import cancels_of, children_ended, children_of, notices_of, steps_of
from tests.core.build import T0, started, tool_spec
from tests.core.graphs.counter import Counter
from tests.core.graphs.facts import Breaks, slot_name, slot_of
from tests.core.graphs.mirror import Mirror
from tests.core.graphs.script import INPUT
from tests.core.graphs.watched import Inner, plain
from tests.core.graphs.world import World

TOOLS = {name: tool_spec(name) for name in ("work", "fetch", "fetch.other")}
for spec in TOOLS.values():
    spec.parameters["additionalProperties"] = True
TOOLS["work"] = replace(TOOLS["work"], effect=ONCE)
TOOLS["fetch"] = replace(TOOLS["fetch"], fallbacks={"source": ("b", "c")})
TOOLS["fetch.other"] = replace(TOOLS["fetch.other"], instead_of=("fetch",), merits=Merits(preference=0.9))


def program_of(document: Mapping[str, Any]) -> Program:
    """Raises `InvalidDefinition`."""
    return Program(compile_document(json.dumps(document), TOOLS), KINDS)


class Graphs:
    """The graphs of a document, compiled with it, and their programs."""

    def __init__(self, program: Program) -> None:
        self._graphs = program.graph.graphs
        self._programs: dict[str, Program] = {}

    def program(self, name: str) -> Program:
        if name not in self._programs:
            self._programs[name] = Program(self._graphs[name], KINDS, graphs=self._graphs)
        return self._programs[name]


@dataclass(frozen=True)
class Told:
    """What a saga was told: the end of a step at a slot, `signal NAME`, `answer ID`, `resume` or `time`; and when."""

    what: str
    at: int
    value: Any = None


class Pair:
    """One saga. `running` are the steps at work in the invocation that holds it."""

    def __init__(
        self,
        document: Mapping[str, Any],
        program: Program,
        room: int = DEFAULT.entry_bytes,
        *,
        inner: Inner | None = None,
        graphs: Graphs | None = None,
    ) -> None:
        self.document = document
        self.graphs = graphs or Graphs(program)
        self.program = program
        self.room = room
        self.mirror = Mirror(document) if inner is None else Mirror(document, inner.given, inner.seen)
        self.state = State()
        self.entries: list[ev.Entry] = []
        self.counter = Counter()
        self.running: set[str] = set()
        self.cancelled: set[tuple[str, bool]] = set()
        self.handlers: dict[str, ev.Failure | None] = {}
        self.begun: dict[str, Any] = {}
        self.last: dict[str, int] = {}
        """The number of the attempt that was begun last, by slot."""
        self.now = T0
        self.told: list[Told] = []
        given = INPUT if inner is None else inner.got
        seen = None if inner is None or inner.got_to_see is None else ev.Value(v=inner.got_to_see)
        self.put(started(program, ev.Value(v=given), outer=seen))

    def fork(self) -> Pair:
        """A second pair that stands where this one does."""
        twin = object.__new__(Pair)
        twin.__dict__.update(self.__dict__)
        twin.mirror = self.mirror.fork()
        twin.counter = self.counter.fork()
        twin.entries, twin.told = list(self.entries), list(self.told)
        twin.cancelled, twin.handlers = set(self.cancelled), dict(self.handlers)
        twin.running, twin.begun, twin.last = set(self.running), dict(self.begun), dict(self.last)
        return twin

    @property
    def world(self) -> World:
        """The interpreter."""
        return self.mirror.world

    # ---- the log -------------------------------------------------------------------------------------------

    def put(self, *events: ev.Event, told: Iterable[str] = ()) -> None:
        """One entry: through the codec, folded, counted, and held against the interpreter."""
        entry = ev.Entry(
            version=self.state.version + 1, at=self.now, epoch=1, invocation="i1", events=tuple(events)
        )
        read = codec.decode_entry(codec.encode_entry(entry))
        assert read == entry
        self.state = fold(self.state, read)
        self.entries.append(read)
        for event in events:
            self.counter.count(event)
        self.mirror.look_on(events, set(told), self.now)
        self.counter.check(self.state)
        assert self.state.failing.keys() <= self.state.tokens.keys(), "something fails that is not there"

    def go(self, *outcomes: Outcome, dies: bool = False) -> None:
        """Let the engine take the outcomes and go on; when it dies, what ran is lost after the first entry."""
        left: Sequence[Outcome] = outcomes
        self.world.pass_time(self.now)
        self.told += [Told(one.slot, one.ended_at, one) for one in outcomes]
        while True:
            busy = self.running - {outcome.slot for outcome in left}
            found = FetchedValues(
                entries={entry.version: entry for entry in self.entries},
                cancelled=self.cancelled,
                handlers=self.handlers,
            )
            bounds = Bounds(entry_bytes=self.room)
            step = advance(self.program, self.state, left, self.now, sorted(busy), found, bounds)
            assert not step.decision.is_lacking
            if step.events:
                before = self.state
                self.put(*step.events, told={outcome.slot for outcome in left[: step.taken]})
                # The end of an attempt that is delivered again is of no step at work.
                ended = {outcome.slot for outcome in left[step.taken :]} & self.running
                self._check_stopped(before, {*busy, *ended})
            taken, left = left[: step.taken], left[step.taken :]
            self.running -= {outcome.slot for outcome in taken}
            asked, handler = cancels_of(step.decision), step.decision.of(StartHandler)
            if dies and (step.events or self.running or left):
                self.running.clear()
                left = ()
                self.state = decode_state(encode_state(self.state))
            elif notices_of(step.decision):
                self.put(ev.NoticesSent(keys=tuple(notice.key for notice in notices_of(step.decision))))
            elif asked or handler is not None:
                self._stop(child for _, child in asked)
                command = step.decision.of(CancelChildren)
                if command is not None:
                    self.cancelled |= {(child.saga, command.revert) for _, child in asked}
                if handler is not None:
                    self.mirror.handles(handler.child)
                    self.handlers[handler.child.saga] = None
            elif not step.more and not self._hear(step.decision):
                break
        assert not step.decision.record
        for run in steps_of(step.decision):
            self._start(run)
        if self.world.ended is None:
            self.running &= {slot_name(slot) for slot in self.world.at_work()}
            assert step.decision.due == self.world.due(self.now), "it is not looked at when something is due"
        self.compare()

    def _hear(self, decision: Decision) -> bool:
        """Children do what a saga that stops waits for: they undo what they have done, or end. False if it waits for none."""
        if self.state.undo.work is not None and (undone := children_of(decision)):
            self.put(*(self.mirror.undoes(slot, child.saga) for slot, child in undone))
        elif self.state.is_stopping and children_of(decision):
            self.put(*children_ended(children_of(decision)))
        else:
            return False
        return True

    def _check_stopped(self, before: State, at_work: set[str]) -> None:
        """People are told of each step at work that the entry has stopped, where it may happen only once."""
        if self.state.ended is not None:
            return
        entry = self.entries[-1].events
        told = {event.notice.key for event in entry if isinstance(event, ev.NoticeDue)}
        for slot in (at_work & before.tokens.keys()) - self.state.tokens.keys():
            if self.program.node_at(before, slot).effect == ONCE:
                key = doubt_notice(before, slot, self.now).key
                assert key in told, f"{slot} is stopped while it acts, and no person is told"

    def _start(self, run: RunStep) -> None:
        name, slot, world = run.slot, slot_of(run.slot), self.world
        assert name not in self.running, f"{name} is running"
        assert slot in world.open, f"it is not the turn of {name}"
        assert slot in world.may_run(self.now), f"{name} is begun too early: {world.trying.get(slot)}"
        expected = world.given_to(slot)
        assert plain(run.arguments) == plain(expected), f"{name} got {run.arguments}, not {expected}"
        trying = world.trying.get(slot)
        assert run.attempt == world.attempt(slot), f"{name} begins attempt {run.attempt}"
        assert (run.way.name if run.way else "") == (trying.way if trying else "")
        assert (run.failure.code if run.failure else "") == (trying.code if trying else "")
        self.begun[name] = world.open[slot]
        self.last[name] = run.attempt
        self.running.add(name)

    def _stop(self, children: Iterable[Child]) -> None:
        wanted = {} if self.world.ended is not None else self.world.children
        for child in children:
            assert child.saga not in wanted.values(), f"{child.saga} is stopped, and is waited for"

    def report(self, slot: str, child: str, **how: Any) -> None:
        """A child says how it has ended."""
        self.told.append(Told(f"child {slot}", self.now, (child, how)))
        self.put(ev.ChildReported(slot=slot, child=child, **how))

    def interrupt(self, slot: str) -> None:
        """The invocation ends while this step is at work: it begins again, and nothing was lost."""
        cut = Outcome(
            slot=slot, attempt=self.last[slot], started_at=self.now, ended_at=self.now, budget_ms=4_000
        )
        self.go(cut)

    def let_time_pass(self, until: int) -> None:
        self.now = max(self.now, until)
        self.told.append(Told("time", self.now))

    def answer(self, ask: str, said: Mapping[str, Any]) -> None:
        """A person answers a question, be it open or not."""
        self.told.append(Told(f"answer {ask}", self.now, said))
        payload = ev.Value(v={"ask": ask, **said})
        key = f"a{len(self.entries)}"
        self.put(ev.SignalReceived(name=ANSWER, key=key, payload=payload, by="ada", at=self.now))
        self.mirror.answers.append((ask, key, said))

    def resume(self) -> None:
        self.told.append(Told("resume", self.now))
        self.put(ev.Resumed(by="ada", at=self.now))

    def signal(self, name: str, payload: Any) -> None:
        key = f"k{len(self.entries)}"
        lost = self.program.loses(self.state, name)
        assert lost == self.mirror.comes(name, key, payload), (
            f"a signal `{name}` is {'' if lost else 'not '}lost"
        )
        self.told.append(Told(f"signal {name}", self.now, payload))
        value = ev.Value(v=payload)
        self.put(ev.SignalReceived(name=name, key=key, payload=value, by="ada", at=self.now, lost=lost))

    def compare(self) -> None:
        """What must hold whenever the engine has nothing more to write."""
        state, world = self.state, self.world
        if world.ended is not None:
            assert (state.ended is not None) or self.running or state.failure is not None, "it does not end"
            if not self.running:
                assert state.ended is not None, "it does not end"
            return
        assert state.ended is None
        assert (state.parked is not None) == world.is_parked
        open_asks = {ask for ask, slot in self.mirror.asks.items() if self.mirror.is_asked(slot)}
        assert not open_asks & {ask for ask, _, _ in self.mirror.answers}, "an answer is not heard"
        if world.is_parked:
            return
        assert {slot: one.attempts for slot, one in state.failing.items()} == {
            slot_name(slot): trying.attempts for slot, trying in world.trying.items()
        }
        may_run = {slot_name(slot) for slot in world.may_run(self.now)}
        assert self.running == may_run, (self.running, world.open, world.trying)
        kept = [(one.name, one.key) for one in state.signals if one.name != ANSWER]
        assert sorted(kept) == sorted(
            (name, key) for name, queue in self.mirror.queues.items() for key, _ in queue
        ), "other signals are kept"
        waits = {slot_name(slot) for slot in world.open_of("wait")}
        children = {slot_name(slot): child for slot, child in world.children.items()}
        assert {slot: one.saga for slot, one in state.children.items()} == children
        assert set(children) == {slot_name(slot) for slot in world.may_start(self.now)}
        assert not self.mirror.reports.keys() & world.open.keys(), "a child is not heard"
        assert set(state.open) == waits | set(children) | {slot_name(slot) for slot in world.maps}
        assert not [slot for slot in world.maps if world.turn(slot)], "a map does not go on"
        assert not any(
            self.mirror.queues.get(world.plan.of(slot[0])["wait"]["signal"]) for slot in world.open_of("wait")
        )
        assert not world.open_of("pass")
        assert not world.open_of("end")
        assert not any(isinstance(given, Breaks) for given in world.open.values())
        fates = {slot for slot, fate in world.became.items() if fate.kind == "skipped"}
        missing = {slot for slot in fates - self.mirror.skipped if not world.is_over(slot)}
        assert not missing, f"{missing} were not skipped"
        unread = set(state.outputs) - world.readable()
        assert not unread, f"no node reads {unread} any more"

    # ---- bad luck ------------------------------------------------------------------------------------------

    def check_restart(self) -> None:
        """A worker that begins with a snapshot runs just what runs, with the same arguments, and writes nothing."""
        read = decode_state(encode_state(self.state))
        assert read == self.state
        decision = decide(self.program, read, self.now)
        if self.world.ended is None:
            assert not decision.record
            assert {run.slot: plain(run.arguments) for run in steps_of(decision)} == {
                slot_name(slot): plain(self.world.given_to(slot)) for slot in self.world.may_run(self.now)
            }

    def check_twice(self, outcomes: Sequence[Outcome]) -> None:
        """Outcomes that come again, and entries that are folded again, change nothing."""
        if self.state.ended is None:
            again = advance(self.program, self.state, outcomes, self.now, sorted(self.running))
            # A failure of the saga is written down again, and changes nothing.
            assert not again.events or self.state.is_stopping, f"a second delivery did {again.events}"
            for event in again.events:
                assert isinstance(event, ev.SagaEnded) or apply(self.state, event) == self.state
        events = self.entries[-1].events
        counts = any(isinstance(event, ev.StepInterrupted) for event in events)
        for event in events:
            # The one counts whatever it is about, the other takes back what was counted.
            if isinstance(event, ev.StepInterrupted) or (counts and isinstance(event, ev.Resumed)):
                continue
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
