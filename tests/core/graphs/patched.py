"""A saga of a random graph that is given another graph on its way: the engine alone, with what must hold whatever the graph.

No edge speaks twice and no step ends twice in one round, nothing waits for what never comes, no step reads what is not
there, and a step acts with what its document says. How the other graph is drawn is in patches.py.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from baton.core.decide.carrying import carry_problems, dropped_outputs
from baton.core.decide.context import FetchedValues
from baton.core.decide.decide import advance
from baton.core.decide.decision import CancelChildren, Decision, StartHandler
from baton.core.decide.outcomes import Outcome
from baton.core.decide.program import Program
from baton.core.log import codec
from baton.core.log import events as ev
from baton.core.log.folding.fold import fold
from baton.core.log.slots import Slot
from baton.core.log.state import ANSWER, State
from baton.core.log.work import Wait
from tests.core.asked import cancels_of, children_ended, children_of, notices_of, steps_of
from tests.core.build import T0, started
from tests.core.graphs.counter import Counter
from tests.core.graphs.facts import slot_of
from tests.core.graphs.patches import MARK
from tests.core.graphs.plan import Plan
from tests.core.graphs.script import INPUT, Script
from tests.core.graphs.shapes import GO

MOST_STEPS = 400
UNBOUND = "input_unbound"
Doc = Mapping[str, Any]


class Patched:
    """One saga. `running` are the steps at work, each with what it was begun with."""

    def __init__(self, document: Doc, program: Program, seed: str) -> None:
        self.document, self.program = document, program
        self.script = Script(Plan(document), seed)
        self.script.strange = 0.0
        self.draw = random.Random(f"{seed}/patched")
        self.state, self.entries, self.counter = State(), list[ev.Entry](), Counter()
        self.running: dict[str, Any] = {}
        self.attempts: dict[str, int] = {}
        self.over: set[str] = set()
        self.known: set[str] = {*document["nodes"]}
        self.cancelled: set[tuple[str, bool]] = set()
        self.handlers: dict[str, ev.Failure | None] = {}
        self.due: int | None = None
        self.now = T0
        self.put(started(program, ev.Value(v=INPUT)))

    # ---- the log -----------------------------------------------------------------------------------------------

    def put(self, *events: ev.Event) -> None:
        entry = ev.Entry(version=self.state.version + 1, at=self.now, epoch=1, invocation="i1", events=events)
        self.state = fold(self.state, codec.decode_entry(codec.encode_entry(entry)))
        self.entries.append(entry)
        for event in events:
            self.counter.count(event)
            if isinstance(event, ev.Settles) and not getattr(event, "goes_on", False):
                self._settle(event)
        self.counter.check(self.state)

    def _settle(self, event: ev.Settles) -> None:
        slot, failure = event.slot, getattr(event, "failure", None)
        assert failure is None or failure.code != UNBOUND, (
            f"{slot} reads what is not there: {failure.message}"
        )
        if Slot.parse(slot).scope or (isinstance(event, ev.StepFailed) and not event.emits):
            return
        assert slot not in self.over, f"{slot} ends twice"
        self.over.add(slot)

    def go(self, *outcomes: Outcome) -> None:
        """Let the engine take the outcomes and go on."""
        left: Sequence[Outcome] = outcomes
        for _ in range(MOST_STEPS):
            busy = sorted(self.running.keys() - {outcome.slot for outcome in left})
            known = {entry.version: entry for entry in self.entries}
            found = FetchedValues(entries=known, cancelled=self.cancelled, handlers=self.handlers)
            step = advance(self.program, self.state, left, self.now, busy, found)
            if step.events:
                self.put(*step.events)
            for outcome in left[: step.taken]:
                self.running.pop(outcome.slot, None)
            left = left[step.taken :]
            if not self._perform(step.decision) and not step.more:
                break
        else:
            raise AssertionError("it decides for ever")
        self.due = step.decision.due
        self.running = {slot: begun for slot, begun in self.running.items() if slot in self.state.tokens}
        for run in steps_of(step.decision):
            assert run.slot not in self.over, f"{run.slot} runs again"
            self.running[run.slot], self.attempts[run.slot] = run.arguments, run.attempt

    def _perform(self, decision: Decision) -> bool:
        """Do what else is asked for; whether that was anything."""
        if notices_of(decision):
            self.put(ev.NoticesSent(keys=tuple(notice.key for notice in notices_of(decision))))
        elif (command := decision.of(CancelChildren)) is not None:
            self.cancelled |= {(child.saga, command.revert) for _, child in cancels_of(decision)}
        elif (handler := decision.of(StartHandler)) is not None:
            self.handlers[handler.child.saga] = None
        elif self.state.undo.work is not None and (undone := children_of(decision)):
            fields = ((Slot.parse(slot).fields, child.saga) for slot, child in undone)
            self.put(*(ev.ChildUndone(**of, child=child, nothing=True) for of, child in fields))
        elif self.state.is_stopping and children_of(decision):
            self.put(*children_ended(children_of(decision)))
        else:
            return False
        return True

    @property
    def is_over(self) -> bool:
        """True if it has ended, or is about to: no graph changes what it does then."""
        return self.state.ended is not None or self.state.is_stopping

    # ---- what happens --------------------------------------------------------------------------------------------

    def choices(self) -> list[str]:
        """Everything that may happen next. What a wait waits for is what the document says."""
        if self.state.ended is not None:
            return []
        found = [f"step {slot}" for slot in sorted(self.running)]
        for slot, work in sorted(self.state.open.items()):
            node = self.script.plan.nodes.get(Slot.parse(slot).node, {})
            if isinstance(work, Wait) and "signal" in node.get("wait", {}):
                found.append(f"signal {node['wait']['signal']}")
            if work.ask is not None:
                found.append(f"answer {work.ask.id}")
        found += [f"child {slot}" for slot in sorted(self.state.children)]
        found += [
            f"answer {one.ask.id}" for _, one in sorted(self.state.failing.items()) if one.ask is not None
        ]
        if self.state.parked is not None:
            found.append("resume")
        if self.due is not None:
            found.append("time")
        return found

    def happen(self, choice: str) -> None:
        what, _, name = choice.partition(" ")
        if what == "step":
            return self.go(self._outcome(name))
        if what == "time":
            self.now = max(self.now, self.due or 0)
        elif what == "resume":
            self.put(ev.Resumed(by="ada", at=self.now))
        elif what == "signal":
            self._signal(name, ev.Value(v={"go": self.draw.choice(GO), "again": False, "next": None}))
        elif what == "answer":
            action = self.draw.choice(("retry", "retry", "fail"))
            self._signal(ANSWER, ev.Value(v={"ask": name, "action": action}))
        else:
            code = self.script.fails(slot_of(name), 1)
            how: dict[str, Any] = {
                "status": "completed",
                "output": ev.Value(v=self.script.value(slot_of(name))),
            }
            if code:
                how = {"status": "failed", "failure": ev.Failure(code, "it broke", "inside")}
            self.put(ev.ChildReported(slot=name, child=self.state.children[name].saga, **how))
        return self.go()

    def _signal(self, name: str, payload: ev.Value) -> None:
        lost = name != ANSWER and self.program.loses(self.state, name)
        key = f"k{len(self.entries)}"
        self.put(ev.SignalReceived(name=name, key=key, payload=payload, by="ada", at=self.now, lost=lost))

    def _outcome(self, slot: str) -> Outcome:
        place, attempt = slot_of(slot), self.attempts[slot]
        begun, wanted = self.running[slot] or {}, self.script.plan.of(place[0]).get("with", {})
        assert begun.get(MARK) == wanted.get(MARK), f"{slot} acts with other arguments than its document has"
        code = self.script.fails(place, attempt)
        times: dict[str, Any] = {"attempt": attempt, "started_at": self.now, "ended_at": self.now}
        if code:
            return Outcome(slot=slot, failure=ev.Failure(code, "it broke", place[0]), **times)
        return Outcome(slot=slot, output=ev.Value(v=self.script.value(place)), **times)

    def carry_on(self, most: int = MOST_STEPS) -> None:
        """Let things happen, so many of them or to the end."""
        for _ in range(most):
            if not (choices := self.choices()):
                self._check_end(self.state.ended)
                break
            self.happen(self.draw.choice(choices))
        else:
            assert most < MOST_STEPS, "it does not end"

    def _check_end(self, ended: ev.SagaEnded | None) -> None:
        """Every node outside of loops had its turn, or was skipped, but for new ones whose place it had passed."""
        assert ended is not None, f"it waits for ever: {self.state.tokens}"
        if ended.status == "completed" and not self.counter.is_early:
            outside = {node.name for node in self.program.graph.nodes if not node.loops}
            left = self.known & outside - {Slot.parse(slot).node for slot in self.over}
            assert not left, f"it never came to {left}"

    # ---- another graph -------------------------------------------------------------------------------------------

    def hold(self) -> None:
        """Pause, until nothing runs."""
        if self.is_over:
            return
        self.put(ev.Parked(code=ev.PAUSED, message="", at=self.now, by="ada"))
        self.go()
        while self.running and self.state.ended is None:
            self.happen(f"step {min(self.running)}")

    def problems(self, program: Program) -> list[str]:
        """Why it cannot go on with this graph."""
        may_run = self.state.parked is None or bool(self.running)
        found = carry_problems(self.state, self.program, program, may_run=may_run)
        return [problem.message for problem in found]

    def patch(self, document: Doc, program: Program) -> None:
        """Go on with it, whether it may or not."""
        outputs = {
            new: self._output(old) for old, new in dropped_outputs(self.state, self.program, program).items()
        }
        last, before = self.state.version, self.program
        self.put(
            ev.GraphChanged(
                graph="other", workflow="w", by="ada", at=self.now, counts=program.counts, outputs=outputs
            )
        )
        self.known = {*self.document["nodes"]}
        self.document, self.script.plan = document, Plan(document)
        self.program = program.with_earlier([*before.earlier, (last, before)])
        self.go()

    def _output(self, node: str) -> ev.Value:
        """The newest output of a node in the log."""
        for entry in reversed(self.entries):
            for event in entry.events:
                if isinstance(event, ev.Gives) and event.node == node and not event.item:
                    return event.output
        return ev.Value()
