"""One attempt of one step: the order of money, claim and call, and the outcome.

Accounts are in money/ledger.py, claims in effects.py, calls in invocation/attempt.py.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from decimal import Decimal
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec.structs import replace

from baton.core.decide.decision import RunStep
from baton.core.decide.outcomes import APPROVAL, HELD, MONEY, STOPPED, Outcome
from baton.core.decide.spending import wait_for_money
from baton.core.effects.keys import KeyIncomplete, KeyRule, about, key_of, parameters_of, relevant
from baton.core.effects.rows import Row
from baton.core.effects.toolspec import ONCE, PATCH_WORKFLOW, SEARCH, ApprovalRequest, ToolSpec, request_for
from baton.core.failures import quoted
from baton.core.failures.codes import INPUT_INVALID, SCHEMA_CHANGED, is_on_purpose
from baton.core.failures.evidence import parse_retry_after
from baton.core.graph.graph import FUNCTION
from baton.core.limits import DAY_MS
from baton.core.log.events import Failure, Notice, Response, Value
from baton.core.log.folding.received import callback_of
from baton.core.log.scopes import is_index
from baton.core.log.state import State
from baton.core.log.work import Callback
from baton.core.models.usage import MODEL, TIMEOUT_MS, Usage
from baton.core.money import assumed_in, micro_dollars
from baton.core.on_demand import OnDemand
from baton.ports import NoRoom, Performer, StepContext, StepFailure
from baton.runtime.invocation.attempt import (
    AttemptInput,
    Bill,
    LazyJournal,
    UnknownOutcome,
    Values,
    carry_out,
    failure_before_look,
    is_made_anew,
    kept_fields,
    prepare_attempt,
    stopped_outcome,
    tool_called,
    verified_result,
    verify_effect,
    work,
)
from baton.runtime.invocation.context import Alarm, InvocationContext
from baton.runtime.invocation.live import LiveShow
from baton.runtime.invocation.watch import because_of, own_ms
from baton.runtime.money.accounts import HeldByOthers
from baton.runtime.money.halting import Halted
from baton.runtime.money.ledger import Ledger
from baton.runtime.steps.effects import EffectClaims, UndecidedClaim

if TYPE_CHECKING:
    from baton.core.decide import schema_changes
    from baton.core.failures import breakers
    from baton.ports.models import Models
    from baton.runtime.models import model_caller, model_request
    from baton.runtime.models.model_request import ModelMemory
    from baton.runtime.people import links
    from baton.runtime.starting.catalog import Catalog
    from baton.runtime.steps import caching
    from baton.runtime.steps.breaking import Breaking
else:
    schema_changes = OnDemand("baton.core.decide.schema_changes")
    breakers = OnDemand("baton.core.failures.breakers")
    model_caller = OnDemand("baton.runtime.models.model_caller")
    model_request = OnDemand("baton.runtime.models.model_request")
    links = OnDemand("baton.runtime.people.links")
    caching = OnDemand("baton.runtime.steps.caching")

_PLAIN = KeyRule()
GIVEN_KEY = KeyRule(strategy="given", parts=("key",))
"""Rule of a key that the document gives."""


def key_for(state: State, step: RunStep, spec: ToolSpec | None, tool: str) -> str:
    """Return the key; empty where none is of use. Raises `StepFailure` when it cannot be made."""
    try:
        key = (
            ""
            if _has_no_use_for_a_key(step, spec)
            else key_of(
                GIVEN_KEY if step.key else spec.key if spec else KeyRule(),
                tenant=state.origin.tenant,
                user=state.origin.user,
                saga=state.origin.scope or state.origin.saga,
                node=step.node.name,
                tool=tool,
                parameters={"key": step.key}
                if step.key
                else parameters_of(spec.key, step.arguments, spec.parameters)
                if spec
                else step.arguments,
                occurrence=_occurrence(step, spec),
                # A graph that was compiled before its tool had a window does not say when the step became ready.
                at=step.since or state.origin.started_at,
                generation=step.generation,
            )
        )
    except KeyIncomplete as error:
        raise StepFailure("key_incomplete", str(error)) from error
    failing = state.failing.get(step.slot)
    if spec is not None and spec.effect == ONCE and failing is not None and failing.handovers:
        # What was handed over under the key before has ended without success, and is over.
        return hashlib.sha256(f"{key}/{failing.handovers}".encode()).hexdigest()[:32]
    return key


def _has_no_use_for_a_key(step: RunStep, spec: ToolSpec | None) -> bool:
    """Return true if no tool that is called in this attempt can see its key, and no claim is made by it."""
    is_alone = step.way is None and not step.hooks and not step.look
    if step.node.tool == MODEL:
        return is_alone  # a request has a key of its own
    return spec is not None and is_alone and not spec.sees_key and spec.effect != ONCE and spec.key == _PLAIN


def _occurrence(step: RunStep, spec: ToolSpec | None) -> tuple[int | str, ...]:
    """Return the part that distinguishes calls with equal arguments: the round of the node, and the item of a
    list.

    For a repeatable tool, any item counts.
    """
    place, item = step.place, step.place.item
    is_own = is_index(item) or step.node.kind == FUNCTION  # each operation is an act of its own
    if not is_own and (spec is None or not spec.repeatable):
        item = ""
    if place.scope:
        return (*place.iteration, place.item)
    return (*place.iteration, item) if item else place.iteration


Specs = Mapping[str, ToolSpec]


def has_no_limits(state: State, step: RunStep) -> bool:
    """Return true if no limits of money apply: it is a member of the saga's own scope, or a check for
    a saga that stops.
    """
    return bool(step.place.scope) or state.is_stopping


def step_cost(step: RunStep, specs: Specs, tool: str) -> int:
    """Return the most that one call of a tool costs in this step, as far as it is declared."""
    spec = specs.get(tool)
    declared = spec.cost if spec is not None else 0
    # The step's own cost is from when its graph was compiled; the larger of both counts.
    own = step.node.cost
    return own if own > declared and tool == tool_called(step) else declared


def attempt_cost(step: RunStep, specs: Specs) -> int:
    """Return the most that the calls of a whole attempt may cost: hooks are of no use without the tool."""
    if step.node.tool == MODEL:
        return 0  # known when the request is made
    tool = tool_called(step)
    if step.way is None and not step.hooks and not step.look:
        return step_cost(step, specs, tool)
    if step.look:
        spec = specs.get(tool)
        return step_cost(step, specs, spec.verify) if spec is not None and spec.verify else 0
    first = (step.way.tool,) if step.way is not None and step.way.first else ()
    return sum(step_cost(step, specs, name) for name in (*step.hooks, *first, tool))


def needs_money(state: State, step: RunStep, specs: Specs, spec: ToolSpec | None) -> bool:
    """Return true if an account may have to be asked before a call of this attempt, by the tool of `spec`.
    False for most: what such an attempt reports is counted when it has ended.
    """
    origin = state.origin
    if step.costs or step.shares or state.money.spent or state.held or origin.shared_limits:
        return True
    if step.node.tool == MODEL or attempt_cost(step, specs):
        return True
    return spec is not None and bool(spec.verify) and bool(step_cost(step, specs, spec.verify))


_OF_MODELS: Final = frozenset((MODEL, SEARCH, PATCH_WORKFLOW))
"""The tools whose steps the performer of models makes, or reads for a model."""


class Paying:
    """Performer that makes no call for which there is no money: then it raises `NoRoom`, or `Halted`."""

    def __init__(
        self, performer: Performer, specs: Specs, ledger: Callable[[], Ledger], state: State, step: RunStep
    ) -> None:
        self._performer = performer
        self._specs = specs
        self._ledger = ledger
        self._state = state
        self._step = step

    async def cover(self, tool: str) -> None:
        """Make sure of the money for the next call."""
        if cost := step_cost(self._step, self._specs, tool):
            await self._ledger().cover(self._state, self._step, tool, cost)

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        if cost := step_cost(self._step, self._specs, tool):
            await self._ledger().cover(self._state, self._step, tool, cost)
        return await self._performer.perform(tool, arguments, context)


class Unapproved(NoRoom):
    """Error for a call that a person has to approve first: it was not made."""

    def __init__(self, request: ApprovalRequest) -> None:
        super().__init__(f"`{request.tool}` waits for an approval")
        self.request = request


class Approved:
    """Performer that makes no call which needs an approval and has none: then it raises `Unapproved`."""

    def __init__(self, performer: Performer, specs: Specs, step: RunStep) -> None:
        self._performer = performer
        self._specs = specs
        self._step = step

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        check_approval(self._step, self._specs, tool, arguments)
        return await self._performer.perform(tool, arguments, context)


def may_ask(step: RunStep, spec: ToolSpec | None) -> bool:
    """Return true if a call of this attempt, by the tool of `spec`, may have to be approved.
    False for most, at no cost.
    """
    if step.node.approval is not None or step.way is not None or step.hooks or step.look:
        return True
    return spec is not None and (spec.requires_approval or spec.risk is not None)


def check_first(step: RunStep, specs: Specs) -> None:
    """Raise `Unapproved` before money is reserved, if nothing else is called before the tool."""
    if step.way is None and not step.hooks and not step.look:
        check_approval(step, specs, step.node.tool, step.arguments)


def check_approval(step: RunStep, specs: Specs, tool: str, arguments: Mapping[str, Any]) -> None:
    """Raise `Unapproved` for a call that needs approval and has none."""
    approval, called = step.node.approval, tool_called(step)
    own = specs.get(step.node.tool)
    # What a model has put in the place of a step does its work, too.
    replaced = specs.get(approval.work_of) if approval is not None else None
    # A tool that stands in does the same work: it is as risky as the step, whatever it says of itself.
    is_work = tool in {called, step.node.tool}
    rule = approval if is_work else None
    declared = [one for one in (replaced, own) if is_work and one is not None]
    request = request_for(
        tool,
        arguments,
        specs.get(tool),
        always=rule is not None and rule.always,
        by_tool=(rule is not None and rule.by_tool) or any(one.requires_approval for one in declared),
        risks=[one.risk for one in (rule, *declared) if one is not None],
        rules=step.risk,
        # A tool that is called before it acts anew for each attempt; the step's own call is the same act in all of them.
        again=0 if is_work else step.attempt,
        own=next((one.approval for one in declared if one.approval), None),
    )
    if request is not None and request.digest not in step.approved:
        raise Unapproved(replace(request, is_changed=tool == called and is_made_anew(step)))


T = TypeVar("T")


class Steps:
    """Performs steps for one invocation. `until`: the end of its leases, and so of every attempt.
    `ledger`, `claims`, `live` and `breaking` give what few steps need, which is made then.
    """

    def __init__(
        self,
        context: InvocationContext,
        performer: Performer,
        tools: Mapping[str, ToolSpec],
        ledger: Callable[[], Ledger],
        claims: Callable[[], EffectClaims],
        values: Values,
        secrets: dict[str, bytes] | None = None,
        api_url: str = "",
        models: Models | None = None,
        live: Callable[[], LiveShow] | None = None,
        breaking: Callable[[], Breaking] | None = None,
        catalog: Callable[[], Catalog] | None = None,
    ) -> None:
        self._context_of, self._secrets, self._api_url = context, {} if secrets is None else secrets, api_url
        self.models, self.live = models, live or partial(LiveShow, context, {})
        self._performer = performer
        self._tools = tools
        self._clock, self._limits = context.clock, context.limits
        self._make_ledger, self._make_claims = ledger, claims
        self._values = values
        self._last = context.tenure.last
        self._alarm, self._breaking, self._catalog = Alarm(), breaking, catalog
        self._guard: Breaking | None = None
        self._memory: ModelMemory | None = None

    @cached_property
    def _ledger(self) -> Ledger:
        return self._make_ledger()

    def timeout(self, step: RunStep) -> int:
        """Return the milliseconds that one attempt of this step may take."""
        usual = TIMEOUT_MS if step.node.tool == MODEL else self._limits.step_timeout_ms
        whole = step.node.timeout_ms or usual
        return min(whole, step.within_ms) if step.within_ms else whole

    async def run(
        self,
        state: State,
        step: RunStep,
        traceparent: str,
        spent: list[Decimal],
        usage: list[Usage] | None = None,
        journal: LazyJournal | None = None,
    ) -> Outcome:
        """Run one attempt and return its outcome.
        Cancelling it interrupts the tool; engine faults and `NoRoom` pass through.

        What the tool spends is added to `spent`, and what models use to `usage`, also if there is no outcome.
        """
        bill = spent, [] if usage is None else usage
        spec = self._tools.get(tool_called(step))
        if step.given is not None:
            return await self._settled(state, step, spec, step.given)
        work = state.open.get(step.slot) if state.open else None
        if isinstance(work, Callback):
            now, doubt = self._clock.now(), UnknownOutcome(before=False)
            is_free = has_no_limits(state, step)
            one = AttemptInput(
                state, step, spec, traceparent, spent, now, doubt, work=work, usage=bill[1], is_free=is_free
            )
            return await self._looked(one, work)
        if self._breaking is not None and (step.node.breaker or (spec is not None and spec.breaker)):
            own = step.node.breaker if tool_called(step) == step.node.tool else ""
            said = own or (spec.breaker if spec is not None else "")
            if target := breakers.target_of(said, tool_called(step), step.arguments):
                self._guard = self._breaking()
                attempt = partial(self._attempted, state, step, traceparent, bill, spec, journal)
                return await self._guard.around(target, state, step, self.timeout(step), attempt)
        return await self._attempted(state, step, traceparent, bill, spec, journal)

    async def _attempted(
        self,
        state: State,
        step: RunStep,
        traceparent: str,
        bill: Bill,
        spec: ToolSpec | None,
        journal: LazyJournal | None,
    ) -> Outcome:
        """Make the attempt and return its outcome, as `run` does."""
        spent, usage = bill
        started, is_paid, one = self._clock.now(), False, None
        try:
            if asks := may_ask(step, spec):
                check_first(step, self._tools)
            is_free = has_no_limits(state, step)
            if is_paid := needs_money(state, step, self._tools, spec):
                cost = attempt_cost(step, self._tools)
                await self._ledger.reserve(state, step, spent, cost, is_free=is_free)
            doubt = UnknownOutcome(
                before=step.failure is not None and step.failure.doubt,
                acting=spec is not None
                and spec.effect == ONCE
                and step.slot in state.recovery.possibly_running,
            )
            one = AttemptInput(
                state,
                step,
                spec,
                traceparent,
                spent,
                started,
                doubt,
                asks,
                usage=usage,
                is_free=is_free,
                is_paid=is_paid,
                journal=journal,
            )
            return await self._begun(one)
        except Unapproved as refusal:
            return stopped_outcome(
                (step, started, self._clock.now(), bill),
                why=APPROVAL,
                request=refusal.request,
                notices=await self._settle(state, step, spent, started, is_paid=is_paid),
            )
        except NoRoom as refusal:
            halt = refusal.halt if isinstance(refusal, Halted) else None
            cost, held = micro_dollars(spent), None
            if isinstance(refusal, HeldByOthers):
                held = wait_for_money(
                    state,
                    step.slot,
                    self._clock.now(),
                    refusal.limit,
                    refusal.amount,
                    first=refusal.first,
                )
            if halt is None and held is None and not cost and not usage:
                if is_paid:
                    self._ledger.rest(state, step)
                raise
            news = await self._settle(
                state, step, spent, started, is_paid=is_paid
            )  # nothing is held while it waits
            return stopped_outcome(
                (step, started, self._clock.now(), bill),
                halt=halt.parked if halt is not None else None,
                why=MONEY if held is None else HELD,
                held=held,
                notices=(*news, *(halt.notices if halt is not None else ())),
            )
        except BaseException as error:  # a fault of the engine, too, after a call that has cost something
            if is_paid:
                is_left = isinstance(error, asyncio.CancelledError)
            else:
                is_left = (one is None or not one.is_settled) and self._take_in(state, step, spent, started)
            if is_left:
                self._ledger.abandon(state, step)
            raise

    def _take_in(self, state: State, step: RunStep, spent: list[Decimal], started: int) -> bool:
        """Open an attempt that has spent something where no cost was known of."""
        if spent:
            self._ledger.reopen(state, step, spent, started // DAY_MS)
        return bool(spent)

    async def _settle(
        self, state: State, step: RunStep, spent: list[Decimal], started: int, *, is_paid: bool
    ) -> Sequence[Notice]:
        """Count the cost of an attempt. Return the notices due now."""
        if not (is_paid or self._take_in(state, step, spent, started)):
            return ()
        return await self._ledger.settle(state, step, micro_dollars(spent))

    async def drain(self) -> None:
        """Wait briefly until circuit breakers are told what became of these calls."""
        if self._guard is not None:
            await self._guard.drain()

    async def _looked(self, one: AttemptInput, work: Callback) -> Outcome:
        """Return the end of an attempt whose request a provider of models has, if it has come."""
        state, step = one.state, one.step
        self._ledger.reopen(state, step, one.spent, work.response.day if work.response is not None else 0)
        try:
            ended = await self._attempt(one)
        except model_request.UnfinishedError:
            await self._ledger.settle(state, step, 0)
            now = self._clock.now()
            return Outcome(
                slot=step.slot, attempt=step.attempt, started_at=one.started, ended_at=now, why=STOPPED
            )
        except BaseException:  # the next look gives it back
            one.spent.clear()
            self._ledger.abandon(state, step)
            raise
        return replace(await self._ended(one, *ended), callback=work.id)

    async def _begun(self, one: AttemptInput) -> Outcome:
        """Return the outcome of an attempt that has money, so far. Raises `NoRoom` if the money runs out."""
        step = one.step
        if step.node.callback is not None:
            one.callback, of = callback_of(one.state, step.slot), one.state.origin
            holder = links.Holder(tenant=of.tenant, saga=of.saga, callback=one.callback)
            one.token = await links.token_for(self._context_of, self._secrets, holder)
        outcome = await self._ended(one, *await self._attempt(one))
        if not one.callback and one.response is None:
            return outcome
        is_handed = step.node.tool != MODEL or one.response is not None
        return replace(outcome, handed=one.callback if is_handed else "", response=one.response)

    async def _ended(
        self,
        one: AttemptInput,
        output: Value | None,
        failure: Failure | None,
        retry_after_ms: int | None,
        rows: tuple[Row, ...],
    ) -> Outcome:
        """Return the outcome of an attempt that has come to its end here."""
        step, spec = one.step, one.spec
        kept = await kept_fields(self._values, one, failure) if step.reversible else {}
        one.is_settled = True
        return Outcome(
            slot=step.slot,
            attempt=step.attempt,
            started_at=one.started,
            ended_at=self._clock.now(),
            tool=tool_called(step),
            tool_version=spec.version if spec else "",
            schema_hash=spec.schema_hash if spec else "",
            output=output,
            failure=failure,
            rows=rows if output is not None else (),
            cost=micro_dollars(one.spent) if one.spent else 0,
            assumed=assumed_in(one.spent) if one.spent else 0,
            recorded=one.doubt.is_recorded,
            blocked_ms=own_ms(one.blocked) if one.blocked else 0,
            retry_after_ms=retry_after_ms,
            usage=tuple(one.usage),
            digest=step.digest if output is not None else "",
            **kept,
            done_by=one.done_by,
            acted=one.acted,
            cache=one.cache,
            notices=tuple(await self._settle(one.state, step, one.spent, one.started, is_paid=one.is_paid)),
        )

    async def _attempt(
        self, one: AttemptInput
    ) -> tuple[Value | None, Failure | None, int | None, tuple[Row, ...]]:
        """Return the output or the failure, the requested pause, and the tool's rows."""
        node = one.step.node.name
        try:
            if one.step.unfit:
                raise StepFailure(SCHEMA_CHANGED, one.step.unfit, happened=False)
            context = self._context(one, self._clock.now())
            output, rows = await self._perform(one, context)
        except TimeoutError:
            text = f"no answer within {self.timeout(one.step)} ms{because_of(one.blocked)}"
            failure = Failure("timeout", text, node, doubt=one.doubt.is_open)
            return None, failure, None, ()
        except StepFailure as error:
            is_refused = error.code == INPUT_INVALID and not error.kind
            if is_refused and (why := schema_changes.reason_of(one.step, one.spec, self._limits.build)):
                error = StepFailure(SCHEMA_CHANGED, f"{error.message}. {why}", happened=False)
            is_told = bool(one.step.place.scope) or one.step.reversible
            is_once = one.spec is not None and one.spec.effect == ONCE
            acted = error.happened is True or (error.happened is None and one.has_units)
            one.acted = acted and is_told and not is_once
            # What a tool says may quote what it was told by others, keys and passwords among it.
            failure = Failure(
                error.code,
                quoted(error.message),
                node,
                kind=error.kind,
                status=error.status,
                doubt=one.doubt.after(error),
                claim=error.claim if isinstance(error, UndecidedClaim) else "",
                refused=error.happened is False and not error.unsent and is_told,
                unsent=error.unsent and is_told,
                on_purpose=is_on_purpose(error.code, error.kind),
                answer=error.answer,
            )
            return None, failure, parse_retry_after(error.retry_after, self._clock.now()), ()
        if output is not None:
            return output, None, None, rows
        text = f"the result is larger than {self._limits.result_bytes} bytes"
        return None, Failure("result_too_large", text, node), None, ()

    async def _perform(self, one: AttemptInput, context: StepContext) -> tuple[Value | None, tuple[Row, ...]]:
        """Call the tool; return the output (None when it is too large), and rows.
        Raises `StepFailure`, `NoRoom`.
        """
        step, spec, tools = one.step, one.spec, self._tools
        paying = Paying(self._performer, tools, self._make_ledger, one.state, step)
        is_free = one.is_free
        payer: Performer = self._performer if is_free else paying
        performer: Performer = Approved(payer, tools, step) if one.may_ask else payer
        if step.node.tool in _OF_MODELS:
            desk = self.models, self._context_of, self._ledger, self._values, self.live(), self._catalog
            memory = self._memory = self._memory or model_request.ModelMemory(tools)
            caller = performer = model_caller.ModelCaller(performer, *desk, memory, tools, one.state, step)
            if one.work is not None:
                result = await caller.collect(one.work, context)
                return await self._values.value(one.state.origin, result), ()
        if spec is None or spec.effect != ONCE:
            return await self._unclaimed(one, context, performer)

        async def before() -> dict[str, Any]:
            return await self._in_time(context, prepare_attempt(performer, tools, step, context))

        # Hooks run before the claim: one that hangs leaves no doubt about the effect. A step that only looks begins with
        # the claim, which may have the answer.
        arguments = {} if step.look else await before()
        if one.may_ask and not step.look:
            check_approval(step, tools, spec.name, arguments)
        one.doubt.is_met = True

        async def act() -> Any:
            if step.look and step.failure is not None:
                raise failure_before_look(step, happened=False)
            # Not within its time: to wait for a store that is slow, before anything was called, leaves no doubt.
            if not is_free:
                await paying.cover(spec.name)
            one.given.update(arguments)
            result = await self._in_time(context, work(performer, tools, step, context, arguments))
            return None if one.callback else result

        async def verify() -> Any:
            known = await before() if step.look else arguments
            return await self._in_time(context, verify_effect(performer, tools, spec.name, known, context))

        done = await self._make_claims().run(
            spec,
            step.slot,
            context,
            act,
            verify if spec.verify else None,
            decided=step.decided,
            generation=step.generation,
            about=about(spec.key, relevant(step.arguments, spec.parameters)),
            scope=one.state.origin.scope,
        )
        one.doubt.is_recorded, one.done_by = done.is_recorded, done.by
        return done.value, done.rows

    async def _unclaimed(
        self, one: AttemptInput, context: StepContext, performer: Performer
    ) -> tuple[Value | None, tuple[Row, ...]]:
        """Call a tool that may act again, or look with its `verify`; else as `_perform`."""
        step, spec = one.step, one.spec
        if step.look and spec is not None and spec.is_verified:
            asked = partial(verify_effect, performer, self._tools, spec.name, step.arguments, context)
            result = await verified_result(spec, step, lambda: self._in_time(context, asked()))
            one.doubt.is_recorded = True
            return await self._values.value(one.state.origin, result), ()
        call = partial(carry_out, performer, self._tools, step, context, one.given)
        if spec is not None and spec.cache_ms:
            call = partial(caching.answered, self._context_of, one, spec, context, call)
        result = await self._in_time(context, call())
        if isinstance(result, Response):
            one.response = result
        if one.callback and (step.node.tool != MODEL or one.response is not None):
            # The output is what the callback brings.
            return Value(), tuple(context.rows)
        return await self._values.value(one.state.origin, result), tuple(context.rows)

    def _in_time(self, context: StepContext, what: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """Await within the rest of the attempt's time. The writes that record its outcome may take longer."""
        left = max(context.deadline_ms - self._clock.now(), 0)
        return self._alarm.within(left / 1_000, what)

    async def _settled(self, state: State, step: RunStep, spec: ToolSpec | None, given: Value) -> Outcome:
        """Record a person's decision on an effect with an unknown outcome, so that it is not done again."""
        now = self._clock.now()
        if spec is not None and spec.effect == ONCE:
            try:
                context = self._context(
                    AttemptInput(state, step, spec, "", [], now, UnknownOutcome(before=False)), now
                )
            except StepFailure as error:  # a deploy in between has made another key of it
                failure = Failure(error.code, error.message, step.node.name, kind=error.kind)
                return Outcome(
                    slot=step.slot, attempt=step.attempt, started_at=now, ended_at=now, failure=failure
                )
            await self._make_claims().happened(
                spec, step.slot, context, given, step.decided, state.origin.scope
            )
        return Outcome(
            slot=step.slot,
            attempt=step.attempt,
            started_at=now,
            ended_at=now,
            tool=tool_called(step),
            tool_version=spec.version if spec else "",
            schema_hash=spec.schema_hash if spec else "",
            output=given,
            digest=step.digest,
        )

    def _context(self, one: AttemptInput, started: int) -> StepContext:
        """Return the context for the tool. Raises `StepFailure` when its idempotency key cannot be made."""
        state, step, spec = one.state, one.step, one.spec
        key = one.key = key_for(state, step, spec, tool_called(step))
        return StepContext(
            saga=state.origin.saga,
            tenant=state.origin.tenant,
            user=state.origin.user,
            node=step.node.name,
            iteration=step.place.iteration,
            item=step.place.item,
            attempt=step.attempt,
            idempotency_key=key,
            # After its last lease, another worker may look whether it has happened, and act.
            deadline_ms=min(started + self.timeout(step), self._last),
            traceparent=one.traceparent,
            spent=one.spent,
            blocked=one.blocked,
            usage=one.usage,
            callback_token=one.token,
            callback_url=f"{self._api_url}/callbacks/{one.token}" if self._api_url and one.token else "",
            units=None if one.journal is None else partial(one.journal, one, self._make_ledger),
            threads=partial(self._context_of.threads, state.origin.tenant),
        )
