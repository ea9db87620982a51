"""decide(program, state, now) -> the next actions; advance(...) -> the events to append, and then the
actions.

The law: of `RULES`, in their order, the first that applies decides. A rule applies if the field that its
`when` names is true and its `then` returns a decision. `decide` then puts three things before the decision of
the rule: children that a fork or a join has left are asked to stop, a failure handler starts before the end,
and an end waits for its notices. The decisions about a node, a failure or an undoing are in the files beside
this one, and the effects of an event in core/log/folding/. Nothing is performed: the runner reads a
`Decision` and acts. Times are UTC epoch milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import reduce
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from baton.core.decide.context import NOTHING, FetchedValues, LackingError
from baton.core.decide.decision import (
    Decision,
    DecisionBuilder,
    RunFunctions,
    RunStep,
    SendNotices,
    StopSteps,
    late_last,
    missing,
    next_up,
    one_after_a_crash,
)
from baton.core.decide.outcomes import STOPPED, Outcome, settle
from baton.core.decide.parking import (
    ask_to_stop,
    cut_off,
    end_as_failed,
    held_up,
    left_behind,
    parked_for_deaths,
    parking,
    saga_end,
    stop_children,
    tell_of_doubts,
)
from baton.core.decide.program import PENDING, Program
from baton.core.decide.retries import unpark
from baton.core.decide.scheduling import schedule_ready
from baton.core.decide.spending import DEFAULT, Bounds, saga_notice
from baton.core.decide.unknown_outcomes import ends_first, left_by, may_revert
from baton.core.effects.rows import Row
from baton.core.expressions import ExpressionError, excess_of
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.log.folding import received
from baton.core.log.folding.fold import apply
from baton.core.log.folding.workflow_limits import OUT_OF_TIME, endless_failure, late, too_old
from baton.core.log.state import UNKNOWN_OUTCOME, State
from baton.core.on_demand import OnDemand

if TYPE_CHECKING:
    from baton.core.decide import handler, undoing
else:
    handler = OnDemand("baton.core.decide.handler")
    undoing = OnDemand("baton.core.decide.undoing")

UNTOLD_END_MS = Limits().untold_end_ms
LARGE = 12_288
REFERENCE = 128
_encode = msgspec.json.Encoder().encode


def decide(
    program: Program,
    state: State,
    now: int,
    running: Collection[str] = (),
    found: FetchedValues = NOTHING,
    bounds: Bounds = DEFAULT,
) -> Decision:
    """Return the actions at `now`, given the slots that are `running` in this invocation.

    `found` is the data that earlier decisions lacked. Pure: equal arguments, equal decisions.
    """
    if state.ended is not None or state.version == 0:
        return Decision()
    # A step that a join has stopped may run on for a moment: the saga does not wait for its end.
    running = {slot for slot in running if slot in state.tokens}
    builder = DecisionBuilder(program, state, now, running, found, bounds=bounds)
    rules = compress(RULES, _LOOKS(builder))
    while (decision := next(rules).then(builder)) is None:
        pass  # the last rule always applies
    if state.orphaned_children and not (state.is_stopping or state.kills_workers):
        decision = _leaving(state, now, found, bounds, decision)
    end = decision.record[-1] if decision.record else None
    is_over, outbox = isinstance(end, ev.SagaEnded), state.outbox
    pending = received.pending_notices(state) if outbox.rows or outbox.due else None
    if isinstance(end, ev.SagaEnded) and program.graph.handler is not None:
        decision = handler.with_failure_handler(program, state, found, decision, end, bounds.value_bytes)
    if not pending or (state.kills_workers and state.recovery.consecutive_crashes > bounds.deaths):
        # It was tried once more since the saga is parked, in case that it was something else that killed the workers.
        return decision
    # A cancel that undoes nothing waits only for notices about effects whose outcome a person has to find out.
    is_quick = state.cancel is not None and not state.cancel.undo
    is_urgent = not is_quick or any(notice.code == UNKNOWN_OUTCOME for notice in pending.notices)
    if is_urgent and is_over:
        # No worker runs a saga that has ended: its notices are sent before, if they can be.
        until = max((notice.at + UNTOLD_END_MS for notice in received.before_the_end(state)), default=now)
        if now < until:
            return Decision(commands=(SendNotices(pending),), due=until)
    return replace(decision, commands=(*decision.commands, SendNotices(pending)))


class Advance(Struct, frozen=True, gc=False):
    """Events to append (empty: nothing to write), and the decision that holds after the append.

    The events include `taken` outcomes, and `rows` must be written with them or not at all. `more`: the entry
    had no room for all that follows; append these events and advance again, `decision` is then only a part.
    `state` is the state after the events, so that they need not be folded again. `room`: the bytes that the
    entry has left.
    """

    events: tuple[ev.Event, ...]
    decision: Decision
    taken: int
    more: bool
    state: State
    rows: tuple[Row, ...] = ()
    room: int = 0

    def then(self, later: Advance) -> Advance:
        """Return both in one entry: this one, and a later one that was decided from the state after it."""
        return replace(
            later, events=self.events + later.events, taken=self.taken, rows=self.rows + later.rows
        )


def advance(
    program: Program,
    state: State,
    outcomes: Sequence[Outcome],
    now: int,
    running: Collection[str] = (),
    found: FetchedValues = NOTHING,
    bounds: Bounds = DEFAULT,
    *,
    together: bool = True,
) -> Advance:
    """Turn outcomes into events, with all that follows from them at once, so that one append holds it.

    An outcome whose slot no longer waits (it was settled or forked away) is dropped; an outcome without room
    in the entry still counts as running. Without `together` no two steps' rows are in one entry.
    """
    entry = _Entry(program, state, now, found, bounds, bounds.entry_bytes)
    rows: tuple[Row, ...] = ()
    taken = 0
    lacking: list[LackingError] = []
    settles_joins_one_by_one = program.index.settles_joins_one_by_one
    is_quiet = not settles_joins_one_by_one
    for outcome in outcomes:
        if not is_quiet:
            # A join must not take in an outcome that it does not wait for only because it came at the same time.
            busy = {*running, *(outcome.slot for outcome in outcomes[taken:])}
            decision, is_part = entry.follow(busy)
            if lacking:
                break  # one before it is not settled: nothing of this is to be kept
            if is_part or decision.is_lacking:
                return Advance(tuple(entry.events), decision, taken, True, entry.state, rows, entry.room)
        try:
            settled = list(settle(program, entry.state, outcome, found))
            if program.has_rounds:
                busy = {*running, *(outcome.slot for outcome in outcomes[taken:])}
                settled = [
                    one
                    for event in settled
                    for one in ends_first(program, entry.state, event, now, busy, found)
                ]
        except LackingError as error:
            lacking.append(error)
            continue
        is_overtaken = outcome.slot in state.tokens and outcome.slot not in entry.state.tokens
        if is_overtaken and not settled:
            # It ended just when the saga no longer needed it: only what it has spent counts.
            settled = list(settle(program, entry.state, replace(outcome, why=STOPPED, halt=None), found))
        entry.room -= sum(map(_size, settled))
        has_room = not outcome.rows or (together and bounds.rows.takes(rows + outcome.rows))
        if entry.events and (entry.room < 0 or not has_room):
            break
        taken += 1
        rows += outcome.rows if settled else ()
        for event in settled:
            entry.add(event)
        is_quiet = not settles_joins_one_by_one or entry.is_quiet_after(settled)
    if lacking:
        needs = frozenset().union(*(error.needs for error in lacking))
        questions = frozenset().union(*(error.questions for error in lacking))
        return Advance((), Decision(commands=missing(needs, questions)), 0, False, state)
    busy = {*running, *(outcome.slot for outcome in outcomes[taken:])}
    decision, is_part = entry.follow(busy)
    more = is_part or taken < len(outcomes)
    return Advance(tuple(entry.events), decision, taken, more, entry.state, rows, entry.room)


def _leaving(state: State, now: int, found: FetchedValues, bounds: Bounds, decision: Decision) -> Decision:
    """Return the decision of a saga that first has to ask children of a branch that was left to stop.

    What has happened is recorded; nothing begins and nothing ends before.
    """
    if parked := parked_for_deaths(state, bounds.deaths):
        return Decision(record=parking(state, parked, now))
    first = ask_to_stop(left_behind(state), found)
    if first.record or (decision.record and isinstance(decision.record[-1], ev.SagaEnded)):
        return first
    return decision if decision.is_lacking else replace(decision, commands=first.commands)


def _end_stopped(builder: DecisionBuilder) -> Decision:
    """End a stopped saga: a cancelled or failed saga starts nothing, lets running steps end, then ends.

    A saga that has its result stops its running steps.
    """
    program, state = builder.program, builder.state
    if state.undo.work is not None:
        return undoing.undo(builder)
    if builder.running:
        return _running_down(builder, state)
    if may_revert(program, state) and (first := undoing.begin_rollback(builder)) is not None:
        return first
    if (first := tell_of_doubts(builder) or stop_children(state, builder.found)) is not None:
        return first
    try:
        stopped = () if state.will_revert else left_by(program, state, builder.found)
        return Decision((*stopped, saga_end(builder)))
    except LackingError as error:
        return Decision(commands=missing(error.needs, error.questions))


def _running_down(builder: DecisionBuilder, state: State) -> Decision:
    """Decide about the steps that run when the saga stops."""
    program = builder.program
    if state.result is not None:
        return Decision(commands=(StopSteps(),))
    if state.cancel is None:
        slots = tuple(late(state, builder.running))
        if slots and program.has_reversible and state.will_revert:
            slots = tuple(slot for slot in slots if not undoing.ends_by_itself(program, state, slot))
        return Decision(commands=(StopSteps(slots),)) if slots else Decision()
    deadline = state.cancel.at + state.cancel.grace_ms
    if builder.now < deadline:
        return Decision(due=deadline)
    if state.cancel.undo and program.has_reversible:
        return undoing.stop_running(builder)
    return Decision(commands=(StopSteps(),))


def _wait(builder: DecisionBuilder) -> Decision:
    """Wait in a parked saga, which starts nothing until its time has come or its question has an answer."""
    parked = builder.state.parked
    assert parked is not None, "the caller has looked"
    if parked.until:
        if builder.now >= parked.until:
            return Decision(record=(ev.Resumed(by="time", at=builder.now),))
        builder.due_by(parked.until)
    try:
        unpark(builder)
    except LackingError as error:
        return Decision(commands=missing(error.needs, error.questions))
    return Decision(record=tuple(builder.record), due=builder.due)


def _complete(builder: DecisionBuilder) -> Decision:
    try:
        output = builder.context("").render(builder.program.output)
    except ExpressionError as error:
        return end_as_failed(ev.failed_with("output_unbound", str(error)))
    except LackingError as error:
        return Decision(commands=missing(error.needs, error.questions))
    if excess := excess_of(output, builder.most_bytes):
        failure = ev.Failure("output_too_large", f"the saga's output is too large: {excess}")
        return end_as_failed(failure)
    return Decision(record=(ev.SagaEnded(status="completed", output=ev.Value(v=output)),))


def _stopping(builder: DecisionBuilder) -> Decision | None:
    """Bring a saga to its end that was cancelled, has failed, has its result, or undoes its effects."""
    state = builder.state
    if state.stands_still and not too_old(state, builder.now):
        return _wait(builder)
    if state.undo.work is not None and state.stands_still:
        return undoing.give_up_inverse(builder)
    if state.kills_workers:
        return _wait(builder)
    return _deaths(builder) or _end_stopped(builder)


def _lifetime(builder: DecisionBuilder) -> Decision | None:
    """End a saga that has to end, whatever its document says."""
    state, failure = builder.state, None
    if state.used:
        failure = endless_failure(state, builder.program.most_hops)
    if failure is None and state.origin.ends_by <= builder.now:
        failure = too_old(state, builder.now)
    if failure is None:
        return None
    return Decision(record=(ev.LimitReached(failure=failure, stays=state.stands_still),))


def _limits(builder: DecisionBuilder) -> Decision | None:
    """End a saga that has reached a limit of its document, or let it wait while a child stands still."""
    caps, state = builder.program.caps, builder.state
    assert caps is not None, "the rule has looked"
    if state.stands_still or (failure := caps.reached(state, builder.now)) is None:
        return None
    deadline = caps.deadline(state)
    stands = failure.code == OUT_OF_TIME and deadline and held_up(state, builder.found, deadline, builder.now)
    return stands or Decision(record=(ev.LimitReached(failure=failure),))


def _deadline(builder: DecisionBuilder) -> int | None:
    """Return the time at which a limit of the document ends the saga; None if none does."""
    caps, state = builder.program.caps, builder.state
    return None if caps is None or state.stands_still else caps.deadline(state)


def _parked(builder: DecisionBuilder) -> Decision:
    """Wait in a parked saga whose limits of time go on."""
    builder.due = _deadline(builder)
    return _wait(builder)


def _deaths(builder: DecisionBuilder) -> Decision | None:
    """Park a saga that kills its workers."""
    parked = parked_for_deaths(builder.state, builder.bounds.deaths)
    return None if parked is None else Decision(record=parking(builder.state, parked, builder.now))


def _interruptions(builder: DecisionBuilder) -> Decision | None:
    """Park a saga with a step for which no invocation is long enough."""
    parked = cut_off(builder.state, builder.bounds.deaths)
    return None if parked is None else Decision(record=parking(builder.state, parked, builder.now))


def _budget_notices(builder: DecisionBuilder) -> Decision | None:
    """Notify people that a part of the saga's budget is spent."""
    notice = saga_notice(builder.state, builder.bounds.money, builder.now)
    return None if notice is None else Decision(record=(ev.NoticeDue(notice=notice),))


def _schedule(builder: DecisionBuilder) -> Decision:
    """Schedule the nodes that are ready, or complete the saga if none is left."""
    program = builder.program
    if program.caps is not None:
        builder.due = _deadline(builder)
    if not builder.state.tokens:
        return _complete(builder)
    schedule_ready(builder)
    run = one_after_a_crash(
        builder, late_last(builder.state, builder.run) if program.has_late else builder.run
    )
    commands = (*missing(builder.needs, builder.questions), *next_up(run, builder.children))
    if builder.functions:
        commands = (RunFunctions(tuple(builder.functions)), *commands)
    return Decision(tuple(builder.record), commands, builder.again, builder.due, after=builder.state)


class DecisionRule(NamedTuple):
    """A rule of the decision. `when`: the field of the builder whose truth lets it apply. `then`: the
    decision; None if the rule does not apply after all.
    """

    name: str
    when: str
    then: Callable[[DecisionBuilder], Decision | None]


_ALWAYS = "program"
RULES = (
    DecisionRule("stopping", "state.is_stopping", _stopping),
    DecisionRule("lifetime", _ALWAYS, _lifetime),
    DecisionRule("limits", "program.caps", _limits),
    DecisionRule("parked", "state.parked", _parked),
    DecisionRule("deaths", "state.recovery.consecutive_crashes", _deaths),
    DecisionRule("interruptions", "state.recovery.interruptions", _interruptions),
    DecisionRule("budget notices", "state.money.spent", _budget_notices),
    DecisionRule("schedule", _ALWAYS, _schedule),
)
"""The rules in their order: the first that applies decides."""
_LOOKS = attrgetter(*(rule.when for rule in RULES))  # in one call: most sagas meet two rules


class _Entry(Struct):
    """An entry in the making: the state after its events, and the bytes of room left."""

    program: Program
    state: State
    now: int
    found: FetchedValues
    bounds: Bounds
    room: int
    events: list[ev.Event] = []

    def add(self, event: ev.Event) -> None:
        self.events.append(event)
        self.state = apply(self.state, event)

    def is_quiet_after(self, settled: Sequence[ev.Event]) -> bool:
        """Return true if certainly nothing follows from these events: in a wide graph this is faster than a
        full decision.
        """
        state = self.state
        if self.program.caps is not None or state.failure is not None:
            return False
        for event in settled:
            if not isinstance(event, ev.StepSucceeded) or event.drops or event.item:
                return False
            for token in event.emits:
                slot = token.slot
                is_heard = slot in state.tokens and slot not in state.closed
                if is_heard and self.program.readiness(state, slot) != PENDING:
                    return False
        return True

    def follow(self, busy: Collection[str]) -> tuple[Decision, bool]:
        """Add all that follows from the events.

        Return the decision then, and true if the entry had room only for a part.
        """
        while True:
            decision = decide(self.program, self.state, self.now, busy, self.found, self.bounds)
            if not decision.record or decision.is_lacking:
                return decision, decision.has_more
            taken = len(self.events)
            for event in decision.record:
                self.room -= _size(event)
                if self.room < 0 and self.events and not _leads_on(self.events[-1], self.state):
                    self.state = reduce(apply, self.events[taken:], self.state)
                    return decision, True
                self.events.append(event)
            self.state = decision.after or reduce(apply, decision.record, self.state)


def _leads_on(event: ev.Event, state: State) -> bool:
    """Return true if the consequence of an event must be in the same entry.

    These are a failed attempt and the reaction to it, a question and its notice, an answer and its effect, a
    notice and its reason, the end of a map and the event that has stopped it. The notice of a question is
    followed by the next question: many of them need more than one entry. So do the steps and children that
    the end of a saga stops: each is listed once.
    """
    if isinstance(event, ev.StepStopped) and state.is_stopping:
        return False
    if isinstance(event, ev.NoticeDue):
        return event.notice.incident or not event.notice.ask
    return isinstance(event, ev.AttemptFailed) or bool(event.ask) or event.leads_on


def _size(event: ev.Event) -> int:
    """Return the bytes of an event in an entry.

    A large value in it becomes a blob's reference; the rest of it stays.
    """
    size = len(_encode(event))
    if size <= LARGE:
        return size
    values, fields = dict[str, object](), asdict(event)
    for name in ("output", *event.made):
        field = fields.get(name)
        values |= field if isinstance(field, dict) else {name: field}
    moved = [len(_encode(one.v)) for one in values.values() if isinstance(one, ev.Value) and not one.ref]
    return size if sum(moved) <= LARGE // 2 else size - sum(moved) + REFERENCE * len(moved)


__all__ = ["Advance", "Decision", "RunStep", "advance", "decide"]
