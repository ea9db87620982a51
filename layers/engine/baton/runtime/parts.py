"""The collaborators of one invocation's runner, put together once per invocation."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from baton.core.decide.spending import Terms
from baton.core.effects.toolspec import ToolSpec
from baton.core.limits import Limits
from baton.core.log.events import ChildOpened, Event, Gives, NodePassed, QuestionClosed, SagaEnded
from baton.ports import (
    Blobs,
    Clock,
    Entropy,
    Log,
    Notices,
    Offload,
    Performer,
    Sandbox,
    Store,
    Watch,
)
from baton.runtime.catalog import Catalog
from baton.runtime.children import Children
from baton.runtime.deadline import Budget
from baton.runtime.duration_estimator import Pace
from baton.runtime.effect_claims import Once
from baton.runtime.lease import Invocation, Leases, WithinLease
from baton.runtime.ledger import Purse
from baton.runtime.ledger_cache import Funds
from baton.runtime.metrics import Metrics
from baton.runtime.notices import Teller
from baton.runtime.quota import Quota, Room
from baton.runtime.start import Starter
from baton.runtime.steps import Steps
from baton.runtime.store_retrier import Patience

if TYPE_CHECKING:
    from baton.core.documents.nodes.own import OwnKinds


@dataclass(frozen=True, kw_only=True)
class Engine:
    """What lives as long as a process: ports and what was learned or cached."""

    store: Store
    blobs: Blobs
    clock: Clock
    entropy: Entropy
    offload: Offload
    performer: Performer
    sandbox: Sandbox
    tools: Mapping[str, ToolSpec]
    catalog: Catalog
    pace: Pace
    limits: Limits
    notices: Notices
    funds: Funds
    metrics: Metrics = field(default_factory=Metrics)
    watch: Watch | None = None
    kinds: OwnKinds = field(default_factory=dict)
    """The application's own kinds of node, where documents are read."""
    rooms: dict[str, Room] = field(default_factory=dict)

    @classmethod
    def on(
        cls,
        store: Store,
        blobs: Blobs,
        clock: Clock,
        limits: Limits,
        *,
        entropy: Entropy,
        offload: Offload,
        performer: Performer,
        sandbox: Sandbox,
        tools: Mapping[str, ToolSpec],
        notices: Notices,
    ) -> Engine:
        """On this store and within its limits, with nothing learned yet."""
        limits = limits.within(store.limits.item_bytes)
        return cls(
            store=store,
            blobs=blobs,
            clock=clock,
            entropy=entropy,
            offload=offload,
            performer=performer,
            sandbox=sandbox,
            tools=tools,
            catalog=Catalog(store.definitions, blobs, clock, most_hops=limits.saga_hops),
            pace=Pace(limits.step_estimate_ms),
            limits=limits,
            notices=notices,
            funds=Funds(store.budgets, Terms.of(limits)),
        )

    @property
    def log(self) -> Log:
        """The log of its store."""
        return self.store.log


_MAKES = (SagaEnded, NodePassed, ChildOpened, QuestionClosed)
"""Events with values that the engine makes."""
_SAID_FIRST_MS = 20
"""So long before the cut-off a call that hangs is ended: its step fails by the store, not by the end of its time."""


class Parts:
    """What one invocation works with. `budget`: of its time; without one, that of a worker."""

    def __init__(self, engine: Engine, invocation: Invocation, budget: Budget | None = None) -> None:
        self._engine, self.invocation = engine, invocation
        self.budget = budget or Budget.of(invocation, engine.limits)
        self.log, self.blobs, self.clock = engine.log, engine.blobs, engine.clock
        self.limits, self.pace = engine.limits, engine.pace
        self.sandbox = engine.sandbox
        self.metrics = engine.metrics
        give_up, cut_off = invocation.deadline - engine.limits.answer_ms, self.budget.cut_off - _SAID_FIRST_MS
        self.call = Patience(engine.offload, engine.clock, engine.entropy, engine.limits, give_up, cut_off)
        self.terms, self.row_room = engine.funds.terms, engine.store.limits.rows
        self.purse = Purse(engine.funds, self.call, engine.clock, engine.limits, invocation)
        self.catalog = engine.catalog.through(self.call)
        self.leases = Leases(engine.log, engine.clock, engine.limits, self.call, invocation)
        self.steps = Steps(
            WithinLease(engine.performer, engine.clock, engine.limits, invocation),
            engine.tools,
            engine.blobs,
            engine.clock,
            engine.limits,
            self.call,
            self.purse,
            Once(engine.store.effects, engine.blobs, engine.clock, engine.entropy, engine.limits, self.call),
            until=invocation.leases_until(engine.limits),
        )
        self.starter = Starter(engine.log, engine.blobs, engine.clock, engine.limits, self.call)
        self.quota = Quota(engine.rooms, engine.log, self.call, engine.clock, engine.limits)
        self.children = Children(
            engine.log,
            engine.blobs,
            self.catalog,
            self.starter,
            self.quota,
            self.call,
            engine.clock,
            engine.limits,
            invocation.id,
        )

    def teller(self) -> Teller:
        """For the notices of one saga."""
        engine = self._engine
        until = (self.budget.cut_off + self.call.deadline) // 2  # that they were told has to be appended
        return Teller(engine.notices, engine.offload, engine.clock, engine.entropy, engine.limits, until)

    async def slim(self, tenant: str, events: Sequence[Event]) -> Sequence[Event]:
        """Events with large values of the engine's own making moved to blobs; the same events where there is none."""
        if not any(isinstance(event, _MAKES) or getattr(event, "full", None) for event in events):
            return events
        return [await self._slim(tenant, event) for event in events]

    async def _slim(self, tenant: str, event: Event) -> Event:
        """The event with a large value of the engine's own making moved to a blob.

        Also one that nobody reads: it is in the log all the same, and an entry has only so much room. None is too
        large: the decision would have been another (core/sizes.py).
        """
        if isinstance(event, SagaEnded | NodePassed) and not event.output.ref:
            event = replace(event, output=await self.steps.inline_or_blob(tenant, event.output.v))
        elif isinstance(event, ChildOpened):
            event = replace(event, input=await self.steps.inline_or_blob(tenant, event.input.v))
        elif isinstance(event, QuestionClosed) and event.output is not None:
            event = replace(event, output=await self.steps.inline_or_blob(tenant, event.output.v))
        if isinstance(event, Gives) and event.full is not None and not event.full.ref:
            # What the log only summarises is there before the log says so.
            event = replace(event, full=await self.steps.blob(tenant, event.full.v))
        return event

    def traceparent(self, started_with: str) -> str:
        """W3C trace context: the saga's trace, with this invocation as the span."""
        return _span_of(self.invocation.id, started_with)


@lru_cache(maxsize=256)
def _span_of(invocation: str, started_with: str) -> str:
    fields = started_with.split("-")
    if len(fields) != 4:
        return ""
    span = hashlib.sha256(invocation.encode()).hexdigest()[:16]
    return f"{fields[0]}-{fields[1]}-{span}-{fields[3]}"
