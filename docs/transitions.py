"""Transitions of a saga's status and of the work at a slot, by event: found by letting small sagas live every life
they can have.

Statuses and transitions are the core's own (`status_of`, `apply`, `advance`); nothing is asserted and nothing is
printed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from baton.core.conditions import SandboxAnswer
from baton.core.decide.context import FetchedValues
from baton.core.decide.decide import advance
from baton.core.decide.decision import CancelChildren, JudgeConditions
from baton.core.decide.outcomes import HELD, UNIT, Outcome
from baton.core.decide.program import Program
from baton.core.decide.spending import DEFAULT
from baton.core.documents.compile import compile_document
from baton.core.effects.toolspec import ToolSpec
from baton.core.failures.codes import SCHEMA_CHANGED
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply, closed
from baton.core.log.folding.forks import fork_to
from baton.core.log.folding.received import CALLBACK, callback_of, completed_with
from baton.core.log.folding.workflow_limits import counts_of
from baton.core.log.functions import AskedOperation, FunctionCall, FunctionProgress
from baton.core.log.questions import WHOLE, unclosed_questions
from baton.core.log.records import About
from baton.core.log.scopes import PLAN, is_turn, turn_item
from baton.core.log.slots import Slot
from baton.core.log.state import ANSWER, Held, State, status_of
from baton.core.log.work import Callback
from baton.core.nodes.registry import KINDS

T0 = 1_790_000_000_000
SOON, LATER, DAYS = 10, 3_600_000, 172_800_000

TOOL = ToolSpec(name="work", version="1", effect="pure", parameters={}, result={})
DEED = ToolSpec(name="deed", version="1", effect="idempotent", parameters={}, result={}, undo="undo")
UNDO = ToolSpec(name="undo", version="1", effect="idempotent", parameters={}, result={})
CODE = ToolSpec(name="code", version="1", effect="pure", parameters={}, result={}, calls=("work",))
TOOLS = {tool.name: tool for tool in (TOOL, DEED, UNDO, CODE)}
CHANGED = "changed"
"""The node whose tool has another schema after a deploy."""
DOCUMENTS = (
    "{name: slow, nodes: {c: {workflow: other, timeout: 1m, retry: {max_attempts: 2, base: 1s}}}}",
    "{name: late, on_failure: rollback, nodes: {w: {wait: {signal: go}}, c: {workflow: other, after: w}}}",
    "{name: early, on_failure: rollback, nodes: {a: {tool: deed}, w: {wait: {signal: go}}, j: {value: 1, after: [a, w], join: any}}}",
    "{name: asked, on_failure: rollback, nodes: {a: {tool: work, when: {python: 'def evaluate(output, context): return True'}}}}",
    "{name: limited, on_failure: rollback, limits: {hops: 1}, nodes: {a: {tool: work}, b: {tool: work, after: a}}}",
    "{name: timed, on_failure: rollback, nodes: {a: {tool: work, limits: {wall_time: 1m}}}}",
    "{name: both, on_failure: {any: [rollback]}, nodes: {a: {tool: work}, c: {workflow: other}}}",
    "{name: apart, on_failure: rollback, nodes: {w: {wait: {for: 1m}}, c: {workflow: other}}}",
    (
        "{name: failing, on_failure: {tool_error: {ladder: [retry, escalate, rollback], at_most: {escalate: 1}, "
        "retry: quick}}, nodes: {a: {tool: work}}}"
    ),
    (
        "{name: asking, on_failure: {tool_error: {ladder: [ask_user, rollback], at_most: {ask_user: 1}}}, "
        "nodes: {a: {tool: work}}}"
    ),
    "{name: each, on_failure: {any: [rollback]}, nodes: {a: {map: [1, 2], tool: work}}}",
    "{name: late, nodes: {a: {map: {over: [1, 2], wait_for: 1, rest: run}, tool: work}}}",
    "{name: many, nodes: {a: {map: {over: %s, concurrency: 100}, value: 1}}}" % ([1] * 101),
    "{name: elsewhere, on_failure: rollback, nodes: {a: {tool: work, callback: {timeout: 1h, heartbeat: 5m}}}}",
    "{name: thinking, on_failure: rollback, nodes: {a: {agent: {model: m, prompt: p, tools: [work]}}}}",
    "{name: talking, nodes: {a: {agent: {model: m, prompt: p, conversation: true}}}}",
    "{name: coded, on_failure: rollback, nodes: {a: {function: code}}}",
    "{name: changed, nodes: {changed: {tool: work}}}",
    "{name: held, on_failure: rollback, nodes: {a: {tool: work, breaker: work}}}",
    "{name: replanned, on_failure: {any: [replan]}, nodes: {a: {tool: work, replan: {model: m, tools: work}}}}",
    (
        "{name: undone, on_failure: {any: [rollback]}, nodes: {a: {tool: deed, compensate: {retry: none}}, "
        "b: {tool: deed, compensate: none, after: a}}}"
    ),
    "{name: alone, nodes: {q: {human: {title: Well?, to: {group: us}, escalate: [{after: 1h, remind: true}]}}}}",
)
PAUSED_HERE = frozenset({"asking", "apart"})
"""Documents whose sagas an operator pauses, too, and `undone` in its rollback. Those of others would come to the same."""
# What these come to, those come to as well: tests/docs looks whether it is still so.
REPEATED = (
    "{name: child, on_failure: rollback, nodes: {c: {workflow: other}}}",
    "{name: chain, on_failure: rollback, nodes: {a: {tool: work}, b: {tool: work, after: a}}}",
    "{name: wait, on_failure: rollback, nodes: {w: {wait: {signal: go, timeout: 1m}}, a: {tool: work, after: w}}}",
    "{name: skip, on_failure: rollback, nodes: {a: {tool: work}, b: {tool: work, after: a, when: 'false'}}}",
    "{name: round, on_failure: rollback, nodes: {a: {tool: work, loop: {while: 'loop.iteration < 1'}}, v: {value: 1, after: a}}}",
    "{name: timer, on_failure: rollback, nodes: {a: {tool: work}, w: {wait: {for: 1m}}}}",
    (
        "{name: people, nodes: {q: {human: {title: Well?}, catch: {code: rejected, then: a}}, a: {tool: work}, "
        "b: {tool: work, after: q}}, on_failure: rollback}"
    ),
)


@dataclass(frozen=True)
class Life:
    """A saga as far as it has come, and states of its past to which a fork may go back: one of each status."""

    state: State
    past: Mapping[str, State]
    entries: Mapping[int, ev.Entry]


Shape = tuple[object, ...]
Transitions = Mapping[tuple[str, str], frozenset[str]]
"""(kind of event, status before it) to the statuses after it."""


Found = dict[tuple[str, str], set[str]]


FOUND = Path(__file__).with_suffix(".json")
"""Result of the last search, for the pages: a search takes ten seconds, which only `make soak` spends."""


def find_transitions() -> Transitions:
    """All transitions of all lives of the small sagas, as the last search has found them."""
    return _found()[0]


def find_operations() -> Transitions:
    """All transitions of the work at a slot in these lives, forks aside."""
    return _found()[1]


@cache
def _found() -> tuple[Transitions, Transitions]:
    stored: list[dict[str, dict[str, list[str]]]] = json.loads(FOUND.read_text("utf-8"))
    first, second = (
        {(kind, before): frozenset(after) for kind, rows in one.items() for before, after in rows.items()}
        for one in stored
    )
    return first, second


def searched() -> str:
    """Search all lives, and return what was found as the text of `FOUND`. The same in every run."""
    stored = []
    for found in _all_lives():
        rows: dict[str, dict[str, list[str]]] = {}
        for (kind, before), after in sorted(found.items()):
            rows.setdefault(kind, {})[before] = sorted(after)
        stored.append(",\n".join(f'"{kind}": {json.dumps(one)}' for kind, one in rows.items()))
    return "[{\n" + "\n},{\n".join(stored) + "\n}]\n"


def _all_lives() -> tuple[Transitions, Transitions]:
    found: tuple[Found, Found] = {}, {}
    for document in DOCUMENTS:
        for known, more in zip(found, lives_of(document), strict=True):
            for key, after in more.items():
                known.setdefault(key, set()).update(after)
    return _frozen(found[0]), _frozen(found[1])


def lives_of(document: str) -> tuple[Transitions, Transitions]:
    """The transitions of a document's saga, and those of the work at its slots."""
    found, worked = Found(), Found()
    _explore(Program(compile_document(document, TOOLS), KINDS), found, worked)
    return _frozen(found), _frozen(worked)


def _frozen(found: Found) -> Transitions:
    return {key: frozenset(after) for key, after in found.items()}


NONE, READY, BLOCKED, RETRIED, ASKED = (
    "none",
    "ready or running",
    "blocked",
    "failed attempt",
    "failed, person asked",
)
"""The work at a slot that is no open work: none, a step, a step that a breaker or a limit of money blocks, a step that
is tried again, and one that a person decides about.
"""


def work_at(state: State, slot: str) -> str:
    """The work at a slot."""
    if (work := state.open.get(slot)) is not None:
        return str(work.__struct_config__.tag)
    if slot in state.held:
        return BLOCKED
    if (failing := state.failing.get(slot)) is not None:
        return RETRIED if failing.ask is None else ASKED
    undoing = state.undo.work
    return READY if slot in state.tokens or (undoing is not None and slot in undoing.steps) else NONE


_PLACES = ("tokens", "open", "held", "failing")


def _note_work(worked: Found, before: State, after: State, event: ev.Event) -> None:
    """Note what became of the work at each slot that the event changes, and at the slot that it is about."""
    kind, about = str(event.__struct_config__.tag), event.slot if isinstance(event, About) else ""
    slots = {about} if about else set[str]()
    for name in _PLACES:
        was, becomes = getattr(before, name), getattr(after, name)
        if was is not becomes:
            slots |= was.keys() | becomes.keys()
    if before.undo.work is not after.undo.work:
        for undo in (before.undo, after.undo):
            slots |= set() if undo.work is None else undo.work.steps.keys()
    for slot in slots:
        earlier, later = work_at(before, slot), work_at(after, slot)
        if earlier != later or slot == about:
            worked.setdefault((kind, earlier), set()).add(later)


def _explore(program: Program, found: Found, worked: Found) -> None:
    """What has gone on from a fork comes last: most of it is as what has gone on from no fork, and is known then."""
    lives, forked = [Life(State(), {}, {})], list[Life]()
    known: set[Shape] = set()
    while lives or forked:
        if not lives:
            life = forked.pop()
            if (shape := _shape(life.state)) not in known:
                known.add(shape)
                lives.append(life)
            continue
        life, tried = lives.pop(), list[ev.Entry]()
        for entry in _moves(program, life):
            if entry in tried:  # a look later shows the same where nothing is to be waited for
                continue
            tried.append(entry)
            state = life.state
            before = status_of(state, program)
            for event in entry.events:
                earlier, state = state, _after(life, state, entry, event)
                if not isinstance(event, ev.Forked):
                    _note_work(worked, earlier, state, event)
                after = status_of(state, program)
                found.setdefault((str(event.__struct_config__.tag), before), set()).add(after)
                before = after
            if ev.Forked not in map(type, entry.events):
                state = closed(life.state, entry, state)
            state = _on_the_brink(state)
            if (shape := _shape(state)) not in known:
                past = {} if state.ended else {status_of(state, program): state}
                next_ = Life(state, {**past, **life.past}, {**life.entries, entry.version: entry})
                if ev.Forked in map(type, entry.events):
                    forked.append(next_)
                else:
                    known.add(shape)
                    lives.append(next_)


def _after(life: Life, state: State, entry: ev.Entry, event: ev.Event) -> State:
    """A state after one event more of an entry. The changes behind a fork are folded with it."""
    if isinstance(event, ev.Forked):
        return fork_to(life.state, _at(life, event), entry, event)
    if isinstance(event, ev.ValueChanged | ev.Repeats):
        return state
    return apply(state, event)


def _at(life: Life, fork: ev.Forked) -> State:
    if fork.undo:
        return life.state
    return next(state for state in life.past.values() if state.version == fork.cut)


def _on_the_brink(state: State) -> State:
    """A death between the first and the last that a saga bears is as the first."""
    recovery = state.recovery
    if not (recovery.consecutive_crashes or recovery.interruptions):
        return state
    last = DEFAULT.deaths - 1
    deaths = recovery.consecutive_crashes and max(last, recovery.consecutive_crashes)
    interruptions = {slot: max(last, count) for slot, count in recovery.interruptions.items()}
    return replace(state, recovery=replace(recovery, consecutive_crashes=deaths, interruptions=interruptions))


def _shape(state: State) -> Shape:
    """What two lives must differ in for a different future: no times, no counters of the past, no number of a branch."""
    recovery = state.recovery
    return (
        frozenset((slot, frozenset(arrived.items())) for slot, arrived in state.tokens.items()),
        frozenset(state.open),
        frozenset(state.held),
        tuple((bool(ask.candidates), len(ask.escalate)) for _, ask in unclosed_questions(state)),
        frozenset((slot, child.status) for slot, child in state.children.items()),
        tuple(signal.key for signal in state.signals),
        frozenset(state.keys),
        state.cancel is None,
        state.failure is None,
        state.parked and state.parked.code,
        frozenset(
            (slot, one.strategy, one.ask is None, frozenset(one.history.used.items()))
            for slot, one in state.failing.items()
        ),
        bool(state.outbox.due),  # their number grows with every answer of a person
        state.ended and state.ended.status,
        (state.undo.head, len(state.undo.failed), state.undo.work and tuple(state.undo.work.steps)),
        min(recovery.consecutive_crashes, DEFAULT.deaths),
        frozenset((slot, min(count, DEFAULT.deaths)) for slot, count in recovery.interruptions.items()),
        bool(recovery.epoch) and recovery.epoch == state.epoch,
        bool(state.orphaned_children),
    )


# ---- who may write what --------------------------------------------------------------------------------------


def _moves(program: Program, life: Life) -> Iterator[ev.Entry]:
    """Every entry that some writer could append next; one fork is enough."""
    state = life.state
    if state.version == 0:
        yield from (_entry(state, event) for event in _starts(program))
        return
    if state.lineage.branch == 0:
        for cut in (one for one in life.past.values() if one.undo.work is None):
            fork = ev.Forked(cut=cut.version, branch=1, by="ann", at=state.last_at + SOON)
            yield _entry(state, fork, ev.ValueChanged(value=ev.Value()), ev.Repeats(slots=()))
            yield _entry(state, ev.WorkflowRecovered(reason="damaged", first=1, last=1), fork)
        if state.ended is not None and state.undo.is_left:
            back = ev.Forked(cut=state.version, branch=1, by="ann", at=state.last_at + SOON, undo=True)
            yield _entry(state, back)
    if state.ended is None:
        yield from (_entry(state, event) for event in _from_outside(program, state))
        for events in _by_the_worker(program, life):
            if events:
                yield _entry(state, *events, epoch=max(state.epoch, 1))
        if not state.is_stopping:
            changed = ev.GraphChanged(graph="other", workflow="w", by="ann", at=state.last_at + SOON)
            yield _entry(state, changed)
        yield _death(state)
        yield _entry(state, ev.GaveUp(), epoch=max(state.epoch, 1))


def _death(state: State) -> ev.Entry:
    now = state.last_at + SOON
    death = ev.Revived(dead="i0", dead_epoch=state.epoch, dead_until=now, at=now)
    return _entry(state, death, epoch=state.epoch + 1)


def _entry(state: State, *events: ev.Event, epoch: int = 0) -> ev.Entry:
    return ev.Entry(
        version=state.version + 1,
        branch=state.lineage.branch,
        at=state.last_at + SOON,
        epoch=epoch,
        invocation=f"i{epoch}" if epoch else "api",
        events=events,
    )


def _starts(program: Program) -> Iterator[ev.Event]:
    """A start as the api writes it."""
    first = (node for node in program.graph.nodes if not node.before)
    yield ev.SagaStarted(
        workflow=program.graph.name,
        graph="",
        tenant="acme",
        user="ann",
        saga="s",
        input=ev.Value(),
        at=T0,
        emits=tuple(ev.Token("", node.name, (0,) * len(node.loops)) for node in first),
        counts=counts_of(program.graph),
    )


def _from_outside(program: Program, state: State) -> Iterator[ev.Event]:
    """What api and relay append to a saga that has not ended."""
    now = state.last_at + SOON
    for signal in {node.signal for node in program.graph.nodes if node.signal}:
        if not state.keys:
            yield ev.SignalReceived(name=signal, key="k", payload=ev.Value(), by="ann", at=now)
    if state.cancel is None:
        yield ev.CancelRequested(reason="", by="ann", at=now, grace_ms=0)
        if program.has_reversible:
            yield ev.CancelRequested(reason="", by="ann", at=now, grace_ms=0, undo=True)
    yield from _answers(state)
    yield from _from_elsewhere(state, now)
    for slot, ask in unclosed_questions(state):
        if ask.to.startswith("group:"):  # claims and reminders are the same whatever else goes on
            about: dict[str, Any] = {
                **Slot.parse(slot).fields,
                "ask": ask.id,
                "at": now,
                "by": "ann",
            }
            yield ev.QuestionClaimed(**about, to="user:ann")
            yield ev.QuestionEscalated(**about)
    if state.parked is not None:
        code = ev.PAUSED if state.is_paused else ""
        yield ev.Resumed(by="ann", at=now, code=code)
    at_work = program.graph.name in PAUSED_HERE and not state.is_stopping
    if state.parked is None and (at_work or (program.graph.name == "undone" and state.undo.work is not None)):
        yield ev.Parked(code=ev.PAUSED, message="", at=now, by="ann")
    for slot, child in state.children.items():
        if not child.status:
            for status in ("completed", "failed"):
                yield ev.ChildReported(slot=slot, child=child.saga, status=status)


def _from_elsewhere(state: State, now: int) -> Iterator[ev.Event]:
    """What work elsewhere says."""
    for slot, work in state.open.items():
        if isinstance(work, Callback):
            yield ev.CallbackHeartbeat(node=Slot.parse(slot).node, callback=work.id, at=now)
            if not completed_with(state, work.id):
                yield ev.SignalReceived(name=CALLBACK, key=work.id, payload=ev.Value(), by="c", at=now)


def _answers(state: State) -> Iterator[ev.Event]:
    """What a person says to an open question; one answer is enough."""
    for slot, ask in unclosed_questions(state):
        # What answers about a parked saga lead to comes by resumes and cancels already, and each parking asks anew.
        if slot != WHOLE and not any(key.startswith(ANSWER) for key in state.keys):
            for action in (ask.actions[0], ask.actions[-1]):
                said = ev.Value(v={"ask": ask.id, "action": action})
                key = f"{ask.id}/{action}"
                yield ev.SignalReceived(name=ANSWER, key=key, payload=said, by="ann", at=state.last_at + SOON)


def _by_the_worker(program: Program, life: Life) -> Iterator[tuple[ev.Event, ...]]:
    """What a worker appends: after a look at the saga now or later, or with the outcome of a step."""
    state = life.state
    yield _advance(program, life, LATER)
    yield _advance(program, life, SOON)
    yield _advance(program, life, DAYS)
    if state.outbox.due:
        yield (ev.NoticesSent(keys=tuple(notice.key for notice in state.outbox.due)),)
    ready = [
        slot for slot in state.tokens if program.node_at(state, slot).tool and program.has_come(state, slot)
    ]
    for slot in ready:
        failing = state.failing.get(slot)
        if failing is not None and failing.ask is not None:
            continue
        others = tuple(other for other in ready if other != slot)
        began = state.last_at if failing is None else max(state.last_at, failing.due_at)
        hands_over = program.nodes[Slot.parse(slot).node].callback is not None
        if state.version == 1 and slot not in state.journals:
            yield _advance(program, life, SOON, _unit(slot, began))
        for one in _outcomes(slot, began, 1 if failing is None else failing.attempts + 1):
            outcome = replace(one, handed=callback_of(state, slot)) if hands_over else one
            yield _advance(program, life, SOON, outcome)
            if others:
                yield _advance(program, life, SOON, outcome, running=others)
        if program.nodes[Slot.parse(slot).node].breaker and slot not in state.held:
            number = 1 if failing is None else failing.attempts + 1
            wait = Held(breaker="work", at=began, until=began + LATER)
            held = Outcome(slot=slot, attempt=number, started_at=began, ended_at=began, why=HELD, held=wait)
            yield _advance(program, life, SOON, held)


def _unit(slot: str, at: int) -> Outcome:
    """Return the outcome of an attempt that goes on: one unit of its work is done."""
    unit = ev.UnitRecorded(
        **Slot.parse(slot).fields, name="unit", key="k", output=ev.Value(v=1), size=1, at=at
    )
    return Outcome(slot=slot, attempt=1, started_at=at, ended_at=at, why=UNIT, unit=unit)


def _advance(
    program: Program, life: Life, after: int, *outcomes: Outcome, running: tuple[str, ...] = ()
) -> tuple[ev.Event, ...]:
    state = life.state
    now = state.last_at + after
    found = FetchedValues(entries=life.entries, functions=_Code())
    step = advance(program, state, outcomes, now, running, found)
    if asked := step.decision.of(JudgeConditions):
        found = replace(
            found, answers={question.key: SandboxAnswer(value=True) for question in asked.questions}
        )
        step = advance(program, state, outcomes, now, running, found)
    if (cancel := step.decision.of(CancelChildren)) is not None:
        # Open children are asked to stop, and what comes then is appended right after.
        cancelled = {(child.saga, cancel.revert) for _, child in cancel.children}
        step = advance(program, state, outcomes, now, running, replace(found, cancelled=cancelled))
    return step.events


class _Code:
    """A function with one step. It returns its result, and fails with its failure."""

    def progress(self, call: FunctionCall) -> FunctionProgress:
        if not call.results:
            step = AskedOperation(item="work", digest="d", tool=TOOL.name)
            return FunctionProgress(at=call.now, operations=(step,))
        heard = call.results[0]
        return FunctionProgress(at=call.now, output=heard.output, failure=heard.failure)


def _given(item: str) -> Any:
    """What a step gives: a turn of an agent first a call, and then the answer; a model that plans, one alternative."""
    if item == PLAN:
        return {"alternatives": [{"steps": [{"tool": TOOL.name, "arguments": {}}]}], "dropped": []}
    if not item or not is_turn(item):
        return 1
    calls = [{"tool": TOOL.name, "arguments": {}}] if item == turn_item(1) else []
    return {"text": "", "calls": calls, "data": 1, "tokens": [1, 1]}


def _outcomes(slot: str, now: int, attempt: int) -> Iterator[Outcome]:
    interrupted = Outcome(slot=slot, attempt=attempt, started_at=now, ended_at=now, budget_ms=1_000)
    if Slot.parse(slot).item != PLAN:  # which is interrupted as any other step
        yield interrupted
    yield replace(interrupted, output=ev.Value(v=_given(Slot.parse(slot).item)))
    yield replace(interrupted, failure=ev.Failure("tool_error", "it broke", slot))
    if slot == CHANGED:
        yield replace(interrupted, failure=ev.Failure(SCHEMA_CHANGED, "it takes another argument", slot))
