"""One attempt of one step: what goes before the tool, the tool within its time, and what became of it.

The order of money, claim and call. Accounts are in money/ledger.py, claims in effect_claims.py, calls in attempts/attempt.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from baton.core.decide.builder import RunStep
from baton.core.decide.outcomes import APPROVAL, MONEY, STOPPED, Outcome
from baton.core.effects.keys import about, relevant
from baton.core.effects.rows import Row
from baton.core.effects.toolspec import ONCE, ToolSpec
from baton.core.failures import quoted
from baton.core.failures.defects import is_on_purpose
from baton.core.failures.retryafter import parse_retry_after
from baton.core.log.events import Failure, Response, Value
from baton.core.log.folding.callbacks import callback_of
from baton.core.log.state import State, item_of
from baton.core.log.work import Callback
from baton.core.models.tool import MODEL, TIMEOUT_MS
from baton.core.models.usage import Usage
from baton.core.money import assumed_in, micro_dollars
from baton.ports import NoRoom, Performer, StepContext, StepFailure
from baton.runtime.attempts.approvals import Approved, Unapproved, check, check_first, may_ask
from baton.runtime.attempts.attempt import (
    as_before,
    carry_out,
    found_out,
    look,
    prepared,
    tool_called,
    work,
)
from baton.runtime.attempts.attempt_input import AttemptInput, Bill, Doubt, over
from baton.runtime.attempts.paying import Paying, foreseen, has_no_limits
from baton.runtime.attempts.undo_inputs import needed
from baton.runtime.attempts.values import Values
from baton.runtime.invocation.alarm import Alarm
from baton.runtime.invocation.context import InvocationContext
from baton.runtime.invocation.live import LiveShow
from baton.runtime.invocation.watch import because_of, own_ms
from baton.runtime.money.halting import Halted
from baton.runtime.money.ledger import Ledger
from baton.runtime.steps.claims import OfClaim
from baton.runtime.steps.effect_claims import EffectClaims
from baton.runtime.steps.step_keys import key_for

if TYPE_CHECKING:
    from baton.ports.models import Models
    from baton.runtime.models.model_memory import ModelMemory
    from baton.runtime.steps.breaking import Breaking

T = TypeVar("T")


class Steps:
    """Performs steps for one invocation. `until`: the end of its leases, and so of every attempt."""

    def __init__(
        self,
        context: InvocationContext,
        performer: Performer,
        tools: Mapping[str, ToolSpec],
        ledger: Ledger,
        claims: EffectClaims,
        values: Values,
        secrets: dict[str, bytes] | None = None,
        api_url: str = "",
        models: Models | None = None,
        live: LiveShow | None = None,
        breaking: Callable[[], Breaking] | None = None,
    ) -> None:
        self._context_of, self._secrets, self._api_url = context, {} if secrets is None else secrets, api_url
        self._models, self._live = models, live or LiveShow(context)
        self._performer = performer
        self._tools = tools
        self._clock = context.clock
        self._limits = context.limits
        self._ledger = ledger
        self._claims = claims
        self._values = values
        self._until = context.invocation.leases_until(context.limits)
        self._alarm, self._breaking = Alarm(), breaking
        self._guard: Breaking | None = None
        self._memory: ModelMemory | None = None

    def timeout(self, step: RunStep) -> int:
        """Milliseconds that one attempt of this step may take."""
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
    ) -> Outcome:
        """The outcome of one attempt. Cancelling it interrupts the tool; engine faults and `NoRoom` pass through.

        What the tool spends is added to `spent`, and what models use to `usage`, also if there is no outcome.
        """
        bill = spent, [] if usage is None else usage
        spec = self._tools.get(tool_called(step))
        if step.given is not None:
            return await self._settled(state, step, spec, step.given)
        work = state.open.get(step.slot) if state.open else None
        if isinstance(work, Callback):
            now, doubt = self._clock.now(), Doubt(before=False)
            is_free = has_no_limits(state, step)
            one = AttemptInput(
                state, step, spec, traceparent, spent, now, doubt, work=work, usage=bill[1], is_free=is_free
            )
            return await self._looked(one, work)
        if self._breaking is not None and (step.node.breaker or (spec is not None and spec.breaker)):
            from baton.core.failures.breakers import target_of  # most calls have none

            own = step.node.breaker if tool_called(step) == step.node.tool else ""
            said = own or (spec.breaker if spec is not None else "")
            if target := target_of(said, tool_called(step), step.arguments):
                self._guard = self._breaking()
                attempt = partial(self._attempted, state, step, traceparent, bill, spec)
                return await self._guard.around(target, state, step, self.timeout(step), attempt)
        return await self._attempted(state, step, traceparent, bill, spec)

    async def _attempted(
        self, state: State, step: RunStep, traceparent: str, bill: Bill, spec: ToolSpec | None
    ) -> Outcome:
        """As `run`, of an attempt that is made."""
        spent, usage = bill
        started = self._clock.now()
        try:
            if asks := may_ask(step, spec):
                check_first(step, self._tools)
            is_free = has_no_limits(state, step)
            await self._reserve(state, step, spent, is_free=is_free)
            doubt = Doubt(
                before=step.failure is not None and step.failure.doubt,
                acting=spec is not None
                and spec.effect == ONCE
                and step.slot in state.recovery.possibly_running,
            )
            one = AttemptInput(
                state, step, spec, traceparent, spent, started, doubt, asks, usage=usage, is_free=is_free
            )
            return await self._begun(one)
        except Unapproved as refusal:
            cost = micro_dollars(spent)
            return over(
                (step, started, self._clock.now(), bill),
                why=APPROVAL,
                request=refusal.request,
                notices=await self._ledger.settle(state, step, cost),
            )
        except NoRoom as refusal:
            halt = refusal.halt if isinstance(refusal, Halted) else None
            cost = micro_dollars(spent)
            if halt is None and not cost and not usage:
                self._ledger.rest(state, step)
                raise
            news = await self._ledger.settle(state, step, cost)
            return over(
                (step, started, self._clock.now(), bill),
                halt=halt.parked if halt is not None else None,
                why=MONEY,
                notices=(*news, *(halt.notices if halt is not None else ())),
            )
        except asyncio.CancelledError:
            self._ledger.abandon(state, step)
            raise

    async def _reserve(self, state: State, step: RunStep, spent: list[Decimal], *, is_free: bool) -> None:
        """Hold what the attempt may cost. What has no limits is counted all the same."""
        if not is_free:
            await self._ledger.reserve(state, step, spent, foreseen(step, self._tools))
            return
        with suppress(NoRoom):
            await self._ledger.reserve(state, step, spent, 0)

    async def drain(self) -> None:
        """Wait briefly until circuit breakers are told what became of these calls."""
        if self._guard is not None:
            await self._guard.drain()

    async def _looked(self, one: AttemptInput, work: Callback) -> Outcome:
        """The end of an attempt whose request a provider of models has, if it has come."""
        from baton.runtime.models.background import UnfinishedError

        state, step = one.state, one.step
        self._ledger.reopen(state, step, one.spent, work.response.day if work.response is not None else 0)
        try:
            ended = await self._attempt(one)
        except UnfinishedError:
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
        """The outcome of an attempt that there is money for, so far. Raises `NoRoom` if that comes to an end."""
        step = one.step
        if step.node.callback is not None:
            from baton.runtime.people.tokens import Holder, token_for  # most sagas hand nothing over

            one.callback, of = callback_of(one.state, step.slot), one.state.origin
            holder = Holder(tenant=of.tenant, saga=of.saga, callback=one.callback)
            one.token = await token_for(self._context_of, self._secrets, holder)
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
        """The outcome of an attempt that has come to its end here."""
        step, spec = one.step, one.spec
        cost = micro_dollars(one.spent)
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
            cost=cost,
            assumed=assumed_in(one.spent),
            recorded=one.doubt.is_recorded,
            blocked_ms=own_ms(one.blocked) if one.blocked else 0,
            retry_after_ms=retry_after_ms,
            usage=tuple(one.usage),
            digest=step.digest if output is not None else "",
            **(await needed(self._values, one, failure) if step.node.undo else {}),
            done_by=one.done_by,
            acted=one.acted,
            notices=await self._ledger.settle(one.state, step, cost),
        )

    async def _attempt(
        self, one: AttemptInput
    ) -> tuple[Value | None, Failure | None, int | None, tuple[Row, ...]]:
        """Output or failure, the pause that was asked for, and the tool's rows."""
        node = one.step.node.name
        try:
            context = self._context(one, self._clock.now())
            output, rows = await self._perform(one, context)
        except TimeoutError:
            text = f"no answer within {self.timeout(one.step)} ms{because_of(one.blocked)}"
            failure = Failure("timeout", text, node, doubt=one.doubt.is_open)
            return None, failure, None, ()
        except StepFailure as error:
            is_undone = one.step.undoes or bool(one.step.node.undo)
            is_once = one.spec is not None and one.spec.effect == ONCE
            one.acted = error.happened is True and is_undone and not is_once
            # What a tool says may quote what it was told by others, keys and passwords among it.
            failure = Failure(
                error.code,
                quoted(error.message),
                node,
                kind=error.kind,
                status=error.status,
                doubt=one.doubt.after(error),
                claim=error.claim if isinstance(error, OfClaim) else "",
                refused=error.happened is False and not error.unsent and is_undone,
                unsent=error.unsent and is_undone,
                on_purpose=is_on_purpose(error.code, error.kind),
            )
            return None, failure, parse_retry_after(error.retry_after, self._clock.now()), ()
        if output is not None:
            return output, None, None, rows
        limit = self._limits.result_bytes
        failure = Failure("result_too_large", f"the result is larger than {limit} bytes", node)
        return None, failure, None, ()

    async def _perform(self, one: AttemptInput, context: StepContext) -> tuple[Value | None, tuple[Row, ...]]:
        """The output (None when it is too large), and rows. Raises `StepFailure`, `NoRoom`."""
        step, spec, tools = one.step, one.spec, self._tools
        paying = Paying(self._performer, tools, self._ledger, one.state, step)
        is_free = one.is_free
        payer: Performer = self._performer if is_free else paying
        performer: Performer = Approved(payer, tools, step) if one.may_ask else payer
        if step.node.tool == MODEL:
            from baton.runtime.models.model_caller import ModelCaller  # most sagas ask none
            from baton.runtime.models.model_memory import ModelMemory

            made = performer, self._models, self._context_of, self._ledger, self._values, self._live
            memory = self._memory = self._memory or ModelMemory(tools)
            caller = performer = ModelCaller(*made, memory, tools, one.state, step)
            if one.work is not None:
                result = await caller.collect(one.work, context)
                return await self._values.value(one.state.origin, result), ()
        if spec is None or spec.effect != ONCE:
            return await self._unclaimed(one, context, performer)

        async def before() -> dict[str, Any]:
            return await self._in_time(context, prepared(performer, tools, step, context))

        # Hooks run before the claim: one that hangs leaves no doubt about the effect. A step that only looks begins with
        # the claim, which may have the answer.
        arguments = {} if step.look else await before()
        if one.may_ask and not step.look:
            check(step, tools, spec.name, arguments)
        one.doubt.is_met = True

        async def act() -> Any:
            if step.look and step.failure is not None:
                raise as_before(step, happened=False)
            # Not within its time: to wait for a store that is slow, before anything was called, leaves no doubt.
            if not is_free:
                await paying.cover(spec.name)
            one.given.update(arguments)
            result = await self._in_time(context, work(performer, tools, step, context, arguments))
            return None if one.callback else result

        async def verify() -> Any:
            known = await before() if step.look else arguments
            return await self._in_time(context, look(performer, tools, spec.name, known, context))

        done = await self._claims.run(
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
        """As `_perform`, of a tool that may act again: the call is made, or its `verify` looks."""
        step, spec = one.step, one.spec
        if step.look and spec is not None and spec.is_verified:
            asked = partial(look, performer, self._tools, spec.name, step.arguments, context)
            result = await found_out(spec, step, lambda: self._in_time(context, asked()))
            one.doubt.is_recorded = True
            return await self._values.value(one.state.origin, result), ()
        result = await self._in_time(context, carry_out(performer, self._tools, step, context, one.given))
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
        """Records what a person says came of an effect whose outcome was unknown, so that it is not done again."""
        now = self._clock.now()
        if spec is not None and spec.effect == ONCE:
            try:
                context = self._context(
                    AttemptInput(state, step, spec, "", [], now, Doubt(before=False)), now
                )
            except StepFailure as error:  # a deploy in between has made another key of it
                failure = Failure(error.code, error.message, step.node.name, kind=error.kind)
                return Outcome(
                    slot=step.slot, attempt=step.attempt, started_at=now, ended_at=now, failure=failure
                )
            await self._claims.happened(spec, step.slot, context, given, step.decided, state.origin.scope)
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
        """What the tool may know. Raises `StepFailure` when its idempotency key cannot be made."""
        state, step, spec = one.state, one.step, one.spec
        tool = tool_called(step)
        key = one.key = key_for(state, step, spec, tool)
        return StepContext(
            saga=state.origin.saga,
            tenant=state.origin.tenant,
            user=state.origin.user,
            node=step.node.name,
            iteration=step.iteration,
            item=item_of(step.slot),
            attempt=step.attempt,
            idempotency_key=key,
            # After its lease, another worker may look whether it has happened, and act.
            deadline_ms=min(started + self.timeout(step), self._until),
            traceparent=one.traceparent,
            spent=one.spent,
            blocked=one.blocked,
            usage=one.usage,
            callback_token=one.token,
            callback_url=f"{self._api_url}/callbacks/{one.token}" if self._api_url and one.token else "",
        )
