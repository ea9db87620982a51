"""What the events about failing steps, questions and notices make of a state; for the table of fold.py.

Each counts once: what is told again, or is about what is gone, changes nothing. The strategies and the failure matrix are
imported where a step has failed.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from baton.core.failures.strategies.base import History, LadderStep
from baton.core.log import events as ev
from baton.core.log.answers import TRY_AGAIN, USE, open_questions
from baton.core.log.recovery_folds import without_running
from baton.core.log.state import (
    ANSWER,
    NOTICES_REMEMBERED,
    UNKNOWN_OUTCOME,
    Failing,
    Outbox,
    State,
    node_of,
    slot_of,
)
from baton.core.log.workflow_limits import pay


def attempt_failed(state: State, e: ev.AttemptFailed) -> State:
    slot = slot_of(e.node, e.iteration, e.item)
    if slot not in state.tokens:
        return state
    before = state.failing.get(slot)
    if before is not None and before.attempts >= e.attempt:
        return state
    failing = Failing(
        attempts=e.attempt,
        failure=e.failure,
        history=History() if before is None else before.history,
        policies={} if before is None else before.policies,
        way=None if before is None else before.way,
        arguments={} if before is None else before.arguments,
    )
    return replace(
        pay(state, slot, e.cost),
        failing={**state.failing, slot: failing},
        recovery=replace(
            without_running(state.recovery, slot),
            consecutive_crashes=0,
            interruptions={key: count for key, count in state.recovery.interruptions.items() if key != slot},
        ),
    )


def strategy_chosen(state: State, e: ev.StrategyChosen) -> State:
    slot = slot_of(e.node, e.iteration, e.item)
    failing = state.failing.get(slot)
    if failing is None or failing.strategy:
        return state
    from baton.core.failures.strategies.ladder import after_step

    step = LadderStep(strategy=e.strategy, hint=e.hint, way=e.way)
    policies = failing.policies
    if e.policy:
        policies = {**policies, e.policy: policies.get(e.policy, 0) + 1}
    failing = replace(
        failing,
        history=after_step(failing.history, step, now=e.at),
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
    return replace(state, failing={**state.failing, slot: failing})


def question_closed(state: State, e: ev.QuestionClosed) -> State:
    slot = slot_of(e.node, e.iteration, e.item)
    failing = state.failing.get(slot)
    if failing is None or failing.ask is None or failing.ask.id != e.ask:
        return state
    from baton.core.failures.strategies.ladder import after_decision

    is_doubt = failing.failure.code == UNKNOWN_OUTCOME and e.action in {TRY_AGAIN, USE}
    failing = replace(
        failing,
        history=after_decision(failing.history) if e.action == TRY_AGAIN else failing.history,
        strategy="",
        ask=None,
        arguments={**failing.arguments, **e.arguments},
        # The claim that was asked about, and no other: which of two was later, no two clocks agree on.
        decided=failing.failure.claim if is_doubt else "",
        given=e.output,
    )
    signals = tuple(other for other in state.signals if (other.name, other.key) != (ANSWER, e.by))
    return replace(state, failing={**state.failing, slot: failing}, signals=signals)


def notice_due(state: State, e: ev.NoticeDue) -> State:
    outbox = state.outbox
    if e.notice.key in outbox.sent or e.notice in outbox.due:
        return state
    # No fewer than there are: a fork can have opened more questions than that.
    most = max(NOTICES_REMEMBERED, len(outbox.due))
    return replace(state, outbox=replace(outbox, due=(*outbox.due, e.notice)[-most:]))


def notices_sent(state: State, e: ev.NoticesSent) -> State:
    due = tuple(notice for notice in state.outbox.due if notice.key not in e.keys)
    new = (key for key in e.keys if key not in state.outbox.sent)
    return replace(state, outbox=Outbox(due=due, sent=(*state.outbox.sent, *new)[-NOTICES_REMEMBERED:]))


def asked_anew(state: State, now: int) -> State:
    """With what is to be told of questions that a fork has opened again: their first notice may be long forgotten."""
    if not state.failing:
        return state
    from baton.core.failures.strategies.ladder import severity_of

    anew = []
    for slot, ask in open_questions(state):
        if any(notice.key.endswith(f"/{ask.id}") for notice in state.outbox.due):
            continue  # nobody was told yet

        failure = state.failing[slot].failure
        one = ev.Notice(
            # Not the first one's, which whoever sends it knows.
            key=f"{state.origin.saga}/{state.lineage.branch}/{ask.id}",
            to="user",
            code=failure.code,
            message=ask.message,
            severity=ask.severity or severity_of(failure.code, failure.kind),
            node=node_of(slot)[0],
            at=now,
        )
        anew.append(one)
    # All of them, however many: no entry follows in which those that find no room would come.
    return replace(state, outbox=replace(state.outbox, due=(*state.outbox.due, *anew)))


def decided(state: State) -> State:
    """Incidents are over: their steps are tried again."""
    if not state.failing:
        return state
    from baton.core.failures.strategies.ladder import after_decision
    from baton.core.failures.strategies.registry import of

    over = [slot for slot, failing in state.failing.items() if of(failing.strategy).parks]
    if not over:
        return state
    state = forget_answers(state, over)
    again = dict(state.failing)
    for slot in over:
        history = after_decision(again[slot].history)
        again[slot] = replace(again[slot], history=history, ask=None, strategy="")
    return replace(state, failing=again)


def forget_answers(state: State, slots: Collection[str]) -> State:
    """Nobody waits any more for an answer to what these asked. The key of an answer begins with its question's."""
    asks = {failing.ask.id for slot, failing in state.failing.items() if failing.ask and slot in slots}
    if not asks or not state.signals:
        return state
    kept = (one for one in state.signals if one.name != ANSWER or one.key.partition("/")[0] not in asks)
    return replace(state, signals=tuple(kept))
