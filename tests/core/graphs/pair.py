"""The engine and the interpreter, side by side, over one saga: whatever the engine writes down, the interpreter checks.

Belongs here: carrying a saga on entry by entry, and what must hold after each. Does not belong here: which graphs, in
which order, and with what bad luck.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from baton.core import events as ev
from baton.core.compile import compile_document
from baton.core.decide import ROOM, advance, decide
from baton.core.draft import RunStep
from baton.core.fold import apply, fold
from baton.core.outcomes import Outcome
from baton.core.program import Program
from baton.core.state import ANSWER, State, decode_state, encode_state
from baton.core.toolspec import Merits
from tests.core.build import T0, started, tool_spec
from tests.core.graphs.counter import Counter
from tests.core.graphs.facts import Breaks, Slot, slot_name, slot_of
from tests.core.graphs.failing import CLASSES, ESCALATE
from tests.core.graphs.script import INPUT
from tests.core.graphs.world import World

TOOLS = {name: tool_spec(name) for name in ("work", "fetch", "fetch.other")}
for spec in TOOLS.values():
    spec.parameters["additionalProperties"] = True
TOOLS["fetch"] = replace(TOOLS["fetch"], fallbacks={"source": ("b", "c")})
TOOLS["fetch.other"] = replace(TOOLS["fetch.other"], instead_of=("fetch",), merits=Merits(preference=0.9))
OWN_CODES = {"join_failed", "loop_exhausted", "input_unbound", *CLASSES}
"""All other codes are about conditions: the interpreter knows only that they break."""


def program_of(document: Mapping[str, Any]) -> Program:
    """Raises `InvalidDefinition`."""
    return Program(compile_document(json.dumps(document), TOOLS))


def plain(value: Any) -> Any:
    """A value without the messages of failures, and with one code for all that conditions break with."""
    if isinstance(value, Mapping):
        if value.keys() >= {"node", "code", "message"}:
            return {"node": value["node"], "code": _code(value["code"])}
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    is_code = isinstance(value, str) and value.startswith(("condition_", "branch_"))
    return "condition" if is_code else value


def _code(code: str) -> str:
    return code if code in OWN_CODES else "condition"


@dataclass(frozen=True)
class Told:
    """What a saga was told: the end of a step at a slot, `signal NAME`, `answer ID`, `resume` or `time`; and when."""

    what: str
    at: int
    value: Any = None


class Pair:
    """One saga. `running` are the steps at work in the invocation that holds it."""

    def __init__(self, document: Mapping[str, Any], program: Program, room: int = ROOM) -> None:
        self.document = document
        self.program = program
        self.room = room
        self.world = World(document, INPUT)
        self.state = State()
        self.entries: list[ev.Entry] = []
        self.counter = Counter()
        self.running: set[str] = set()
        self.begun: dict[str, Any] = {}
        self.last: dict[str, int] = {}
        """The number of the attempt that was begun last, by slot."""
        self.asks: dict[str, Slot] = {}
        """Questions that nobody has closed, with their slots."""
        self.known_asks: set[str] = set()
        self.expected: list[type] = []
        """What the next events of this entry must be, because of what is done about a failure."""
        self.answers: list[tuple[str, str, Mapping[str, Any]]] = []
        """What people answered and nobody has heard yet: the question, the key, what they said."""
        self.skipped: set[Slot] = set()
        self.queues: dict[str, list[tuple[str, Any]]] = {}
        self.now = T0
        self.told: list[Told] = []
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
        twin.answers = list(self.answers)
        twin.last, twin.asks, twin.known_asks = dict(self.last), dict(self.asks), set(self.known_asks)
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
        for index, event in enumerate(events):
            self.counter.count(event)
            self._mirror(event, events[index + 1 :], set(told))
        assert not self.expected, f"no {self.expected} in this entry"
        self.counter.check(self.state)
        assert self.state.failing.keys() <= self.state.tokens.keys(), "something fails that is not there"

    def go(self, *outcomes: Outcome, dies: bool = False) -> None:
        """Let the engine take the outcomes and go on; when it dies, what ran is lost after the first entry."""
        left: Sequence[Outcome] = outcomes
        self.told += [Told(one.slot, one.ended_at, one) for one in outcomes]
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
            elif step.decision.notices:
                self.put(ev.NoticesSent(keys=tuple(notice.key for notice in step.decision.notices)))
            elif not step.more:
                break
        assert not step.decision.record
        for run in step.decision.run:
            self._start(run)
        if self.world.ended is None:
            self.running &= {slot_name(slot) for slot in self.world.at_work()}
            assert step.decision.due == self.world.due(self.now), "it is not looked at when something is due"
        self.compare()

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
        self.answers.append((ask, key, said))

    def resume(self) -> None:
        self.told.append(Told("resume", self.now))
        self.put(ev.Resumed(by="ada", at=self.now))

    def signal(self, name: str, payload: Any) -> None:
        key = f"k{len(self.entries)}"
        self.queues.setdefault(name, []).append((key, payload))
        self.told.append(Told(f"signal {name}", self.now, payload))
        self.put(ev.SignalReceived(name=name, key=key, payload=ev.Value(v=payload), by="ada", at=self.now))

    # ---- the interpreter looks on --------------------------------------------------------------------------

    def _mirror(self, event: ev.Event, behind: Sequence[ev.Event], told: set[str]) -> None:
        world = self.world
        if isinstance(event, ev.SagaEnded):
            self._check_end(event)
        if isinstance(event, ev.StrategyChosen | ev.Parked | ev.NoticeDue):
            assert self.expected.pop(0) == type(event), f"nobody expects {event}"
        elif self.expected:
            assert isinstance(event, self.expected.pop(0)), f"something else comes first: {event}"
            return
        elif isinstance(event, ev.AttemptFailed | ev.QuestionClosed | ev.Resumed):
            self._mirror_trying(event, behind)
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
        elif isinstance(event, ev.StepFailed) and isinstance(broken := world.open.get(slot), Breaks):
            assert _code(event.failure.code) == broken.code, event.failure
            world.fail(slot, broken.code)
        elif isinstance(event, ev.StepFailed) and name not in told:
            fate = world.became.get(slot)
            code = _code(event.failure.code)
            assert fate is not None, f"{name} has not failed: {event.failure}"
            assert (fate.kind, (fate.errors or fate.caught)[0].code) == ("failed", code)
        else:
            assert slot in world.open, f"{name} was settled, but is not open"
            if isinstance(event, ev.StepFailed):
                assert event.attempt == world.attempt(slot)
                doing = world.attempt_fails(slot, event.failure.code, event.ended_at)
                assert not doing, f"{name} failed, instead of {doing}"
                return
            if isinstance(event, ev.WaitClosed):
                key, payload = self.queues[world.plan.nodes[event.node]["wait"]["signal"]].pop(0)
                assert (event.by, event.output.v) == (key, payload)
            if isinstance(event, ev.NodePassed):
                assert plain(event.output.v) == plain(world.open[slot]), f"{name} gave {event.output.v}"
            world.settle(slot, event.output.v)

    def _mirror_trying(self, event: Any, behind: Sequence[ev.Event]) -> None:
        """What is done about a failure is in the same entry as the failure, or as the end of the question."""
        world = self.world
        if isinstance(event, ev.Resumed):
            world.resume()
            return
        slot = (event.node, event.iteration)
        name = slot_name(slot)
        if isinstance(event, ev.AttemptFailed):
            assert event.attempt == world.attempt(slot), f"attempt {event.attempt} of {name} is not under way"
            doing = world.attempt_fails(slot, event.failure.code, event.ended_at)
            self.asks = {ask: other for ask, other in self.asks.items() if other != slot}
            assert doing, f"{name} has failed, and {behind[0]} is too much"
        else:
            assert self.asks.pop(event.ask) == slot
            if event.action != "expired":
                self._hear(event, slot)
                self.expected = {"retry": [], "use": [ev.NodePassed], "fail": [ev.StepFailed]}[event.action]
                return
            doing = world.expires(slot, self.now)
        if not doing:
            self.expected = [ev.StepFailed]
            return
        chosen, trying = behind[0], world.trying[slot]
        assert isinstance(chosen, ev.StrategyChosen), f"nothing is done about {event}"
        assert (chosen.strategy, chosen.code) == (doing, trying.code), f"{name}: {chosen}, not {doing}"
        assert (chosen.due_at, chosen.way.name if chosen.way else "") == (trying.due, trying.did[-1].way)
        self.expected = [ev.StrategyChosen]
        if trying.asks:
            assert chosen.ask is not None
            assert chosen.ask.expires_at == trying.expires
            assert chosen.ask.id not in self.known_asks, "this was asked before"
            self.known_asks.add(chosen.ask.id)
            self.asks[chosen.ask.id] = slot
            self.expected += [ev.NoticeDue, *([ev.Parked] if doing == ESCALATE else [])]

    def _hear(self, event: ev.QuestionClosed, slot: Slot) -> None:
        """The first answer to this very question counts."""
        at, (_, key, said) = next(
            (index, one) for index, one in enumerate(self.answers) if one[0] == event.ask
        )
        del self.answers[at]
        assert (event.by, event.action, event.arguments) == (key, said["action"], said.get("arguments", {}))
        self.world.answer(slot, event.action, event.arguments, said.get("output"))

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
        assert (state.parked is not None) == world.is_parked
        open_asks = {ask for ask, slot in self.asks.items() if self.is_asked(slot)}
        assert not open_asks & {ask for ask, _, _ in self.answers}, "an answer is not heard"
        if world.is_parked:
            return
        assert {slot: one.attempts for slot, one in state.failing.items()} == {
            slot_name(slot): trying.attempts for slot, trying in world.trying.items()
        }
        may_run = {slot_name(slot) for slot in world.may_run(self.now)}
        assert self.running == may_run, (self.running, world.open, world.trying)
        waits = {slot_name(slot) for slot in world.open_of("wait")}
        assert set(state.waits) == waits
        assert not any(
            self.queues.get(world.plan.nodes[name.partition("@")[0]]["wait"]["signal"]) for name in waits
        )
        assert not world.open_of("pass")
        assert not any(isinstance(given, Breaks) for given in world.open.values())
        fates = {slot for slot, fate in world.became.items() if fate.kind == "skipped"}
        missing = {slot for slot in fates - self.skipped if not world.is_over(slot)}
        assert not missing, f"{missing} were not skipped"
        unread = set(state.outputs) - world.readable()
        assert not unread, f"nobody reads {unread} any more"

    def is_asked(self, slot: Slot) -> bool:
        """Whether an answer to the question about this step would be heard now."""
        trying = self.world.trying.get(slot)
        if trying is None or not trying.asks or slot_name(slot) in self.running:
            return False
        return trying.doing == ESCALATE or not self.world.is_parked

    # ---- bad luck ------------------------------------------------------------------------------------------

    def check_restart(self) -> None:
        """Whoever begins with a snapshot wants to run just what runs, with the same arguments, and writes nothing."""
        read = decode_state(encode_state(self.state))
        assert read == self.state
        decision = decide(self.program, read, self.now)
        if self.world.ended is None:
            assert not decision.record
            assert {run.slot: plain(run.arguments) for run in decision.run} == {
                slot_name(slot): plain(self.world.given_to(slot)) for slot in self.world.may_run(self.now)
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
