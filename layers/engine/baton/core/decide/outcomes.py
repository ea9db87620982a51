"""The outcome of a step, and the event that records it: tokens consumed, tokens emitted, outputs
forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from baton.core.decide.context import NOTHING, EvaluationContext, FetchedValues
from baton.core.decide.decision import activation
from baton.core.decide.program import Program
from baton.core.decide.transitions import RouteError, check_output, done, settle_failed
from baton.core.decide.unknown_outcomes import (
    doubt_notice,
    enlist,
    failed_with_unknown_outcome,
    has_acted_before,
    may_have_acted,
    may_stand,
    member_notice,
)
from baton.core.effects.rows import Row
from baton.core.effects.toolspec import ONCE, ApprovalRequest
from baton.core.failures.codes import class_of
from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.folding.received import callback_of, is_elsewhere, said_of
from baton.core.log.slots import Slot
from baton.core.log.state import FAULT, UNKNOWN_OUTCOME, Failing, Held, State
from baton.core.models.usage import Usage
from baton.core.on_demand import OnDemand

if TYPE_CHECKING:
    from baton.core.decide import approvals, failure_handling
else:
    approvals = OnDemand("baton.core.decide.approvals")
    failure_handling = OnDemand("baton.core.decide.failure_handling")

MONEY, STOPPED, APPROVAL = "money", "stopped", "approval"  # why an attempt comes no further; or FAULT
HELD = "held"  # why there was none
UNIT = "unit"  # why it is not over


class Outcome(Struct, frozen=True, kw_only=True, gc=False):
    """The end of one attempt of the step at `slot`: exactly one of output, failure or interruption.

    `tool_version` and `schema_hash` are those of the code that ran. `budget_ms` is set for an interruption:
    the time from the step's start to the cut. `rows` go into the transaction of its entry. `cost`: the cost
    that the tool reported, in millionths of a dollar. `retry_after_ms`: the pause that a service asked for.
    `tool`: the tool that ran, if it was not the node's own. `recorded`: its once-only effect had happened
    before. `blocked_ms`: milliseconds for which it held the event loop.
    `handed`: the callback that the tool got, if it handed its work over and the output is not the step's;
    `callback`: the callback with which an attempt has ended. `response`: the request that it has handed over
    to a provider of models.
    `assumed`: the part of the cost that is an upper bound for a request to a model.
    `why`: the reason why it could not continue, if it was not cut off (core/log/events.py): then only its
    cost counts, and `halt`, if the saga has to be parked. `usage`: tokens that models have read and written.
    `request`: the call that a person has to approve before the step can go on. `notices`: further notices to
    send.
    `digest` names the call, where a model may plan an equal one. `kept`: the arguments that are
    kept; `key`: its idempotency key, likewise; `done_by`: the earlier performer of its effect: another
    `STEP` of the saga, or another `SAGA`.
    `held`: the breaker or money that the step waits for. `acted`: it has failed, and has acted all the same.
    `unit`: the attempt is not over (UNIT), and its tool has done this unit of its work. `cache`: see
    `StepSucceeded`.
    """

    slot: str
    attempt: int
    started_at: int
    ended_at: int
    tool_version: str = ""
    schema_hash: str = ""
    output: ev.Value | None = None
    failure: ev.Failure | None = None
    budget_ms: int = 0
    rows: tuple[Row, ...] = ()
    cost: int = 0
    assumed: int = 0
    retry_after_ms: int | None = None
    tool: str = ""
    recorded: bool = False
    blocked_ms: int = 0
    halt: ev.Parked | None = None
    why: str = ""
    request: ApprovalRequest | None = None
    notices: tuple[ev.Notice, ...] = ()
    handed: str = ""
    callback: str = ""
    response: ev.Response | None = None
    usage: tuple[Usage, ...] = ()
    digest: str = ""
    kept: ev.Value | None = None
    done_by: str = ""
    held: Held | None = None
    key: str = ""
    acted: bool = False
    unit: ev.UnitRecorded | None = None
    cache: str = ""


def spent_by(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return the costs and notices of attempts whose results the saga no longer needs."""
    return [replace(one, why=STOPPED, halt=None) for one in outcomes if one.cost or one.usage or one.notices]


def undecided_outcome(outcome: Outcome) -> Outcome:
    """Return the outcome in place of one that a fault keeps from being decided: the attempt has spent,
    and runs again.
    """
    left = {
        "cost": max(outcome.cost, 0),
        "assumed": max(outcome.assumed, 0),
    }  # what was given back is given back by the next
    return replace(outcome, output=None, failure=None, rows=(), halt=None, why=FAULT, **left)


def refused_rows(outcome: Outcome, why: str) -> Outcome:
    """Return the failed outcome whose rows the table refuses; an outcome without rows stays as it is."""
    if not outcome.rows:
        return outcome
    name = Slot.parse(outcome.slot).node
    failure = ev.failed_with("rows_refused", f"the table refuses the rows of this step: {why}", name)
    return replace(outcome, output=None, failure=failure, rows=())


def _no_further(program: Program, state: State, outcome: Outcome, found: FetchedValues) -> Iterator[ev.Event]:
    """Yield the events for an attempt without money or approval, or with a result that the saga no longer
    needs.

    Its slot may be gone.
    """
    if state.ended is not None:
        return
    slot = outcome.slot
    is_waited_for = slot in state.tokens and program.has_come(state, slot)
    if outcome.cost or outcome.usage or (outcome.why == FAULT and is_waited_for):
        yield ev.StepInterrupted(
            **Slot.parse(slot).fields,
            started_at=outcome.started_at,
            ended_at=outcome.ended_at,
            budget_ms=outcome.budget_ms,
            cost=outcome.cost,
            why=outcome.why,
            assumed=outcome.assumed,
            usage=outcome.usage,
        )
    if outcome.halt is None or is_waited_for:
        yield from (ev.NoticeDue(notice=notice) for notice in outcome.notices)
    if outcome.halt is not None and is_waited_for and state.parked is None and not state.is_stopping:
        yield outcome.halt
    if outcome.why == APPROVAL and outcome.request is not None and is_waited_for:
        # Loaded with the first: most steps need none.
        if state.is_over(slot):
            if _is_look(program, state, slot):
                failure = approvals.unapproved_failure(program, state, slot)
                ended = replace(outcome, why="", cost=0, usage=(), notices=(), failure=failure)
                yield from settle(program, state, ended, found)
            return
        yield from approvals.approval_events(
            EvaluationContext(program, state, found, slot), outcome.request, outcome.ended_at
        )


def settle(
    program: Program, state: State, outcome: Outcome, found: FetchedValues = NOTHING
) -> Iterator[ev.Event]:
    """Yield the events for an outcome; none if its slot no longer waits, or the saga has ended.

    Raises `LackingError`.
    """
    slot = outcome.slot
    if outcome.why:
        yield from _INSTEAD.get(outcome.why, _no_further)(program, state, outcome, found)
        return
    if not _is_awaited(program, state, outcome):
        return
    for notice in outcome.notices:
        yield ev.NoticeDue(notice=notice)
    node = program.node_at(state, slot)
    place: dict[str, Any] = {
        **Slot.parse(slot).fields,
        "started_at": outcome.started_at,
        "ended_at": outcome.ended_at,
        "cost": outcome.cost,
    }
    if outcome.assumed:
        place["assumed"] = outcome.assumed
    if outcome.failure is None and outcome.output is None:
        yield ev.StepInterrupted(budget_ms=outcome.budget_ms, usage=outcome.usage, **place)
        return
    ran: dict[str, Any] = {
        **place,
        "attempt": outcome.attempt,
        "tool": outcome.tool or node.tool,
        "tool_version": outcome.tool_version,
        "schema_hash": outcome.schema_hash,
        "blocked_ms": outcome.blocked_ms,
    }
    if outcome.usage:
        ran["usage"] = outcome.usage
    if outcome.handed and (opened := _handed_over(program, state, outcome, ran)) is not None:
        yield opened
        return
    if outcome.callback:
        ran["callback"] = outcome.callback
    failure = outcome.failure
    if outcome.output is not None and failure is None:
        context = EvaluationContext(program, state, found, slot, outcome.output)
        try:
            check_output(context, node)
        except RouteError as error:
            # The tool has returned: what may happen only once has happened, and it has to be known how it goes on.
            failure = replace(ev.failed_with(error.code, error.message, node.name), doubt=node.effect == ONCE)
        else:
            succeeded = ev.StepSucceeded(
                **ran, recorded=outcome.recorded, output=outcome.output, digest=outcome.digest
            )
            succeeded = _enlisted(program, state, node, succeeded, outcome)
            began, cost = outcome.started_at, outcome.cost
            yield done(context, outcome.ended_at, cost, began=began, has_schema=False).on(succeeded)
            return
    assert failure is not None
    failure = replace(
        failure,
        kind=failure.kind or class_of(failure.code),
        tool=ran["tool"],
        attempt=outcome.attempt,
        at=outcome.ended_at,
    )
    yield from _failed(EvaluationContext(program, state, found, slot), outcome, failure, ran)


def _held(program: Program, state: State, outcome: Outcome, found: FetchedValues) -> Iterator[ev.Event]:
    """Yield the wait for a circuit breaker or for money, or a failure that the document's rules handle.

    Raises `LackingError`.
    """
    held, slot = outcome.held, outcome.slot
    if outcome.cost or outcome.usage or outcome.notices:
        yield from _no_further(program, state, replace(outcome, why=MONEY), found)
    is_look = state.is_over(slot)
    if held is None or not _is_awaited(program, state, outcome):
        return
    if is_look and (held.limit or not _is_look(program, state, slot)):
        return  # it was about to begin when the saga was stopped; limits of money hold up no look
    if held.limit:
        yield _wait(slot, held)
        return
    # Loaded with the first: most steps meet none.
    # A look does not hold up the end of the saga.
    context = EvaluationContext(program, state, found, slot)
    if not is_look and failure_handling.may_wait_for_breaker(context, outcome.attempt, held):
        yield _wait(slot, held)
        return
    failure = failure_handling.breaker_failure(held, Slot.parse(slot).node)
    failure = replace(failure, doubt=True) if is_look else failure
    yield from settle(program, state, replace(outcome, why="", held=None, failure=failure), found)


def _unit(program: Program, state: State, outcome: Outcome, found: FetchedValues) -> Iterator[ev.Event]:
    """Yield the record of a unit of a step that waits for the attempt; of another one, only its cost."""
    if outcome.unit is None or not _is_awaited(program, state, outcome):
        yield from _no_further(program, state, replace(outcome, why=STOPPED), found)
        return
    before = state.journals.get(outcome.slot)
    yield replace(outcome.unit, prior=before.head if before is not None else 0, cost=outcome.cost)


_INSTEAD: Mapping[str, Callable[..., Iterator[ev.Event]]] = {HELD: _held, UNIT: _unit}
"""By `why`, what is recorded of an attempt without an end; else what it has cost."""


def _wait(slot: str, held: Held) -> ev.StepHeld:
    return ev.StepHeld(
        **Slot.parse(slot).fields,
        breaker=held.breaker,
        at=held.at,
        until=held.until,
        state=held.state,
        limit=held.limit,
        amount=held.amount,
        first=held.first,
    )


def _enlisted(
    program: Program, state: State, node: Node, succeeded: ev.StepSucceeded, outcome: Outcome
) -> ev.StepSucceeded:
    """Return the event with its place in the list of the saga's effects, if the saga has one, and with what
    a cache had to do with it.
    """
    if outcome.cache:
        succeeded = replace(succeeded, cache=outcome.cache)
    if not (program.has_reversible or (program.shares and state.lists_effects)):
        return succeeded
    return enlist(state, node, succeeded, outcome.kept, outcome.done_by, outcome.key)


def _is_look(program: Program, state: State, slot: str) -> bool:
    """Return true if a stopping saga has called the step again to find out its outcome."""
    return state.will_revert and may_stand(program, state, slot, ())


def _is_awaited(program: Program, state: State, outcome: Outcome) -> bool:
    """Return true if the step waits for this attempt."""
    slot = outcome.slot
    if slot not in state.tokens or not program.has_come(state, slot) or state.ended is not None:
        return False
    if state.open and is_elsewhere(state, slot) and not outcome.callback:
        return False  # the attempt goes on elsewhere
    failing = state.failing.get(slot)
    return failing is None or outcome.attempt > failing.attempts  # else it is in the log


def _failed(
    context: EvaluationContext, outcome: Outcome, failure: ev.Failure, ran: Mapping[str, Any]
) -> Iterator[ev.Event]:
    """Yield the events for a failed attempt and the reaction to it. Raises `LackingError`."""
    state, slot = context.state, context.slot
    failing = state.failing.get(slot)
    if failure.doubt and failing is not None and failing.look:
        # `verify` could not find out, or has found an output that is of no use: a person has to look.
        said = "it may have happened, and whether it has could not be found out"
        said = said if outcome.output is None else "it has happened, and what it gave cannot be used"
        text = f"{said}: {failure.message}"
        failure = replace(
            failure, code=UNKNOWN_OUTCOME, kind=class_of(UNKNOWN_OUTCOME), message=text[:2_000], doubt=False
        )
    before = failing or Failing(attempts=0, failure=failure)
    node = context.program.node_at(state, slot)
    # A refusal says that this call has done nothing, and nothing of those before it; the word of the tool itself is about all of them.
    acted = outcome.acted or (has_acted_before(node, state, slot) and not failure.refused)
    has_acted = outcome.acted or may_have_acted(node, failure)
    of_before = acted and failing is not None and not has_acted
    kept, key = (before.kept, before.key) if of_before else (outcome.kept, outcome.key)
    failing = replace(
        before,
        attempts=outcome.attempt,
        failure=failure,
        ask=None,
        kept=kept,
        key=key,
        acted=acted,
        left=False,
    )
    # A saga that ends anyway is not held up.
    is_over = state.is_over(slot)
    handling = [] if is_over else _handling(context, failing, outcome)
    if handling and (last := failure_handling.without_retry(context, failing, handling)) is not None:
        failing, handling = last
        failure, acted = failing.failure, failing.acted
    reverts = state.will_revert
    is_news = before.attempts == 0 or not before.failure.doubt
    if handling or (is_over and failure.doubt and reverts and node.is_reversible and is_news):
        # Where the saga takes its effects back, `verify` looks first.
        yield ev.AttemptFailed(failure=failure, kept=kept, key=key, acted=acted, **ran)
        yield from handling
        return
    failed = settle_failed(context, failure).on(ev.StepFailed(failure=failure, **ran))
    failed = failed_with_unknown_outcome(context.program, state, node, failed, kept, key, acted=acted)
    is_asked = failed.prior is not None and reverts
    if not is_asked and (failure.doubt or (is_over and failure.code == UNKNOWN_OUTCOME)):
        # Only where the saga ends anyway: otherwise `verify` looks first, or a person is asked.
        yield ev.NoticeDue(notice=doubt_notice(state, slot, outcome.ended_at))
    if Slot.parse(slot).scope and failure.code != UNKNOWN_OUTCOME:
        told = member_notice(state, slot, failure, outcome.ended_at)
        if told is not None:
            yield ev.NoticeDue(notice=told)
    yield failed if is_over else failure_handling.final(context, failed)


def _handed_over(
    program: Program, state: State, outcome: Outcome, ran: Mapping[str, Any]
) -> ev.CallbackOpened | None:
    """Return the wait for work elsewhere, or None if it was not handed over.

    It was handed over if the tool has returned. It was, too, if the tool failed and the work is done all the
    same: the callback then reports the end of the attempt.
    """
    at = activation(program, state, outcome.slot)
    kind, callback = program.kinds[at.node.kind], callback_of(state, outcome.slot)
    more: dict[str, Any] = {
        "recorded": outcome.recorded,
        "skew_ms": program.skew_ms,
        **({"key": outcome.key} if outcome.key and outcome.response is None else {}),
    }
    if outcome.response is not None:  # whatever has become of the callback, the provider has it
        return kind.returned(at, callback, {**ran, **more, "response": outcome.response})
    if outcome.handed != callback:
        return None
    if outcome.failure is not None and said_of(state, outcome.handed) is None:
        return None
    return kind.returned(at, callback, {**ran, **more})


def _handling(context: EvaluationContext, failing: Failing, outcome: Outcome) -> list[ev.Event]:
    # Loaded with the first failure: most steps have none.
    return list(failure_handling.handle_failure(context, failing, outcome.ended_at, outcome.retry_after_ms))
