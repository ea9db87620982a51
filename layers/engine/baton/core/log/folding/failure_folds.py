"""Folds of the events about failing steps, questions and notices; for the table of fold.py.

Each event counts once: a repeated event, or one about a step that is gone, changes nothing.
The strategies and the failure matrix are imported only after a step has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from baton.core.failures.strategies.base import History, LadderStep
from baton.core.log import events as ev
from baton.core.log.folding import received
from baton.core.log.folding.received import (
    callback_over,
    remember,
    signal_key,
    useful,
    with_correction,
    without_running,
)
from baton.core.log.folding.workflow_limits import pay, with_models, with_retry, with_retry_time
from baton.core.log.questions import (
    APPROVE,
    EXPIRED,
    POLICY,
    TRY_AGAIN,
    USE,
    notice_again,
    open_questions,
    question_of_key,
    unclosed_questions,
)
from baton.core.log.slots import Slot
from baton.core.log.state import ANSWER, NOTICES_REMEMBERED, UNKNOWN_OUTCOME, Failing, Held, State, without
from baton.core.models.usage import REFUSED
from baton.core.on_demand import OnDemand

if TYPE_CHECKING:
    from baton.core.failures.strategies import ladder, registry
else:
    ladder = OnDemand("baton.core.failures.strategies.ladder")
    registry = OnDemand("baton.core.failures.strategies.registry")

BUILDS_REMEMBERED = 8


def attempt_failed(state: State, e: ev.AttemptFailed) -> State:
    """Record a failed attempt of a step; the reaction follows."""
    slot = e.slot
    if slot not in state.tokens:
        return state
    before = state.failing.get(slot)
    if before is not None and before.attempts >= e.attempt:
        return state
    if e.callback:
        state = callback_over(state, slot, e.callback, e.failure.code)
    if state.child_at(slot):  # it has ended, and another one takes its place
        state = replace(state, open=without(state.open, (slot,)))
    correction, refused = ("", "") if before is None else (before.correction, before.refused)
    if e.failure.code == REFUSED:
        state = with_correction(state, slot, e.ended_at)
        correction, refused = e.failure.message, e.failure.answer
    failing = Failing(
        attempts=e.attempt,
        failure=e.failure,
        handovers=(0 if before is None else before.handovers) + bool(e.callback),
        history=History() if before is None else before.history,
        policies={} if before is None else before.policies,
        way=None if before is None else before.way,
        arguments={} if before is None else before.arguments,
        correction=correction,
        refused=refused,
        kept=e.kept,
        began=_began(before, e) if Slot.parse(slot).scope else 0,
        builds=() if before is None else before.builds,
        incident="" if before is None else before.incident,
        acted=e.acted,
        key=e.key,
    )
    after = with_models(pay(state, slot, e.cost), slot, e.usage, e.assumed)
    return replace(
        after,
        used=with_retry_time(after.used, e.node, e.ended_at - e.started_at) if e.attempt > 1 else after.used,
        failing={**state.failing, slot: failing},
        held=without(state.held, (slot,)),
        recovery=replace(
            without_running(state.recovery, slot),
            consecutive_crashes=0,
            interruptions={key: count for key, count in state.recovery.interruptions.items() if key != slot},
        ),
    )


def _began(before: Failing | None, e: ev.AttemptFailed) -> int:
    """Return the start of the attempts that share their time; it is reset once a person has
    decided.
    """
    return before.began if before is not None and before.began else e.started_at


def strategy_chosen(state: State, e: ev.StrategyChosen) -> State:
    """Record the reaction to a failed step."""
    slot = e.slot
    failing = state.failing.get(slot)
    if failing is None or failing.strategy:
        return state
    step = LadderStep(strategy=e.strategy, hint=e.hint, way=e.way)
    policies = failing.policies
    if e.policy:
        policies = {**policies, e.policy: policies.get(e.policy, 0) + 1}
    failing = replace(
        failing,
        history=ladder.after_step(failing.history, step, now=e.at),
        policies=policies,
        strategy=e.strategy,
        due_at=e.due_at,
        hooks=e.hooks,
        hint=e.hint,
        way=failing.way if e.way is None else e.way,
        arguments={**failing.arguments, **e.arguments},
        ask=e.ask,
        look=e.look,
    )
    if e.build:
        builds = (*(one for one in failing.builds if one != e.build), e.build)[-BUILDS_REMEMBERED:]
        failing = replace(failing, builds=builds, incident=e.code)
    after = replace(state, failing={**state.failing, slot: failing})
    if e.due_at and not (e.look or Slot.parse(slot).scope):
        after = replace(after, used=with_retry(state.used, e.node, max(e.due_at - e.at, 0)))
    return after if e.ask is None else received.with_question_row(after, e.ask)


def step_held(state: State, e: ev.StepHeld) -> State:
    """Record that a ready step waits. Its waiting time does not count as a pause between attempts."""
    slot = e.slot
    before, failing = state.held.get(slot), state.failing.get(slot)
    if slot not in state.tokens or (before is not None and before.at >= e.at):
        return state
    held = Held(
        breaker=e.breaker,
        at=e.at,
        until=e.until,
        state=e.state,
        limit=e.limit,
        amount=e.amount,
        first=e.first,
    )
    after = replace(state, held={**state.held, slot: held})
    if failing is None or not failing.history.since:
        return after
    history = replace(failing.history, since=failing.history.since + e.until - e.at)
    began = failing.began and failing.began + e.until - e.at
    return replace(after, failing={**state.failing, slot: replace(failing, history=history, began=began)})


def question_closed(state: State, e: ev.QuestionClosed) -> State:
    """Record the end of a question, by an answer or its expiry."""
    slot = e.slot
    state = useful(state, slot)
    failing = state.failing.get(slot)
    work = state.open.get(slot)
    if work is not None and work.ask is not None and work.ask.id == e.ask:
        if not e.by:
            state = _closed_by_itself(state, e)
        if work.ask.digest and e.action == APPROVE:
            return _approved(state, slot, work.ask, work.arguments, e.by)
        if not e.by:
            return state
    if failing is None or failing.ask is None or failing.ask.id != e.ask:
        return state
    is_doubt = failing.failure.code == UNKNOWN_OUTCOME and e.action in {TRY_AGAIN, USE}
    failing = replace(
        failing,
        history=ladder.after_decision(failing.history) if e.action == TRY_AGAIN else failing.history,
        strategy="",
        ask=None,
        arguments={**failing.arguments, **e.arguments},
        # The claim that was asked about, and no other: which of two was later, no two clocks agree on.
        decided=failing.failure.claim if is_doubt else "",
        given=e.output,
        began=0,
        builds=(),
        incident="",
        acted=failing.acted and not is_doubt,
    )
    if not e.by and e.action != EXPIRED:
        state = _closed_by_itself(state, e)
    signals = tuple(other for other in state.signals if (other.name, other.key) != (ANSWER, e.by))
    return replace(state, failing={**state.failing, slot: failing}, signals=signals)


def _closed_by_itself(state: State, e: ev.QuestionClosed) -> State:
    """Remember the closing, so that a late answer is refused with its reason."""
    told = EXPIRED if e.action == EXPIRED else POLICY
    return replace(state, keys=remember(state, {signal_key(ANSWER, e.ask): told}))


def _approved(state: State, slot: str, ask: ev.Ask, arguments: dict[str, Any], by: str) -> State:
    """Allow the step this call, in this attempt or a later one, and no other."""
    failing = state.failing.get(slot)
    if failing is not None and arguments:
        # What was called before the tool has made these arguments: it is not called again, or it could make others.
        way = failing.way
        is_over = way is not None and (way.first or way.shorten)
        failing = replace(
            failing,
            arguments={**failing.arguments, **arguments},
            hooks=(),
            way=None if is_over else way,
        )
        state = replace(state, failing={**state.failing, slot: failing})
    digests = tuple(dict.fromkeys((*state.approved.get(slot, ()), ask.digest)))
    return replace(
        state,
        open=without(state.open, (slot,)),
        approved={**state.approved, slot: digests},
        signals=tuple(other for other in state.signals if (other.name, other.key) != (ANSWER, by)),
    )


def _with_ask(
    state: State, e: ev.QuestionEscalated | ev.QuestionClaimed, change: Callable[[ev.Ask], ev.Ask]
) -> State:
    """Return the state with the question of the event changed, if the question is open."""
    slot = e.slot
    failing, work = state.failing.get(slot), state.open.get(slot)
    if failing is not None and failing.ask is not None and failing.ask.id == e.ask:
        ask = change(failing.ask)
        after = replace(state, failing={**state.failing, slot: replace(failing, ask=ask)})
        return received.with_moved_question(after, ask)
    if work is not None and work.ask is not None and work.ask.id == e.ask:
        ask = change(work.ask)
        return received.with_moved_question(
            replace(state, open={**state.open, slot: replace(work, ask=ask)}), ask
        )
    return state


def question_escalated(state: State, e: ev.QuestionEscalated) -> State:
    """Record a step of a question's escalation."""

    def change(ask: ev.Ask) -> ev.Ask:
        left = tuple(step for step in ask.escalate if step.at > e.due)
        ask = replace(ask, told_at=e.at, escalate=left)
        # The former audience may not answer any more, and the claim of one of them is over.
        return ask if e.to is None else replace(ask, to=e.to, candidates="", moved_at=e.at)

    return _with_ask(state, e, change)


def question_claimed(state: State, e: ev.QuestionClaimed) -> State:
    """Record that a person claimed a question, or gave it back."""

    def change(ask: ev.Ask) -> ev.Ask:
        to, candidates = (e.to, ask.candidates or ask.to) if e.to else (ask.candidates or ask.to, "")
        return replace(ask, to=to, candidates=candidates, moved_at=e.at)

    return _with_ask(state, e, change)


def notice_due(state: State, e: ev.NoticeDue) -> State:
    """Record a notice that is to be sent."""
    outbox = state.outbox
    if e.notice.key in outbox.sent or any(notice.key == e.notice.key for notice in outbox.due):
        return state
    due = (*outbox.due, e.notice)
    # Each question of the inbox has room for one of its own, besides.
    if len(due) > NOTICES_REMEMBERED + len(outbox.rows):
        spare = received.first_spare(due, outbox.rows)
        due = tuple(notice for notice in due if notice is not spare)
    return replace(state, outbox=replace(outbox, due=due))


def notices_sent(state: State, e: ev.NoticesSent) -> State:
    """Record the sent and abandoned notices, and the rows of the inbox."""
    due = tuple(notice for notice in state.outbox.due if notice.key not in e.keys)
    new = (key for key in e.keys if key not in state.outbox.sent)
    sent = (*state.outbox.sent, *new)[-NOTICES_REMEMBERED:]
    after = replace(state, outbox=replace(state.outbox, due=due, sent=sent))
    return received.with_rows_noted(after, e.shown, e.withdrawn) if e.shown or e.withdrawn else after


def asked_anew(state: State, now: int) -> State:
    """Return the state with new notices for the questions that a fork has opened again: the first ones were
    sent long ago.
    """
    anew = []
    for slot, ask in open_questions(state):
        if any(notice.key.endswith(f"/{ask.id}") for notice in state.outbox.due):
            continue  # its first notice is still to be sent

        anew.append(notice_again(state, slot, ask, now))
    # All of them, however many: no entry follows in which those that find no room would come.
    return received.opened_anew(replace(state, outbox=replace(state.outbox, due=(*state.outbox.due, *anew))))


def resolve_incidents(state: State, build: str = "") -> State:
    """Return the state after the incidents are over: their steps are tried again.

    `build`: only steps with a defect that have not failed under this code.
    """
    if not state.failing:
        return state
    over = [
        slot
        for slot, failing in state.failing.items()
        if registry.of(failing.strategy).parks and (not build or may_be_mended(failing, build))
    ]
    if not over:
        return state
    state = forget_answers(state, over)
    again = dict(state.failing)
    for slot in over:
        history = ladder.after_decision(again[slot].history)
        again[slot] = replace(again[slot], history=history, ask=None, strategy="")
        if not build:
            again[slot] = replace(again[slot], builds=(), incident="")
        state = useful(state, slot)
    return replace(state, failing=again)


def may_be_mended(failing: Failing, build: str) -> bool:
    """Return true if a step waits for other code than it has failed with, and `build` may be that code."""
    return bool(failing.ask is not None and failing.builds and build and build not in failing.builds)


def forget_answers(state: State, slots: Collection[str]) -> State:
    """Drop the answers to the questions of these slots. The key of an answer begins with its question's."""
    asks = {ask.id for slot, ask in unclosed_questions(state) if slot in slots} if state.signals else set()
    if not asks:
        return state
    kept = (one for one in state.signals if one.name != ANSWER or question_of_key(one.key) not in asks)
    return replace(state, signals=tuple(kept))
