"""Collaborators of one invocation's runner, put together once per invocation."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict, replace

from baton.core.decide.spending import Bounds, SpendingLimits
from baton.core.effects.toolspec import ToolSpec
from baton.core.limits import Limits
from baton.core.log.events import Event, Gives, Value
from baton.core.log.state import Origin
from baton.core.on_demand import OnDemand
from baton.ports import (
    Blobs,
    Builds,
    Clock,
    Entropy,
    Log,
    Meter,
    Notices,
    Offload,
    Performer,
    SagaRef,
    Sandbox,
    Store,
    Watch,
    Watchdog,
)
from baton.runtime.invocation.attempt import Values
from baton.runtime.invocation.context import (
    Deadline,
    DurationEstimator,
    Invocation,
    InvocationContext,
    OwnPatch,
    StoreRetrier,
    Tenure,
)
from baton.runtime.invocation.live import LiveShow
from baton.runtime.invocation.watch import Metrics
from baton.runtime.log.lease import Leases, WithinLease
from baton.runtime.money.accounts import LedgerCache
from baton.runtime.money.ledger import Ledger
from baton.runtime.people.notices import Channels, Notifier
from baton.runtime.starting.catalog import Catalog
from baton.runtime.steps.effects import EffectClaims
from baton.runtime.steps.steps import Steps

if TYPE_CHECKING:
    from baton.core.documents.nodes.own import OwnKinds
    from baton.core.failures import breakers
    from baton.ports.functions import WorkflowFunctions
    from baton.ports.models import Models, Spans
    from baton.runtime.people import links
    from baton.runtime.starting import children, start
    from baton.runtime.starting.start import Room
    from baton.runtime.steps import breaking
    from baton.runtime.steps.breaking import LocalBreaker
else:
    breakers = OnDemand("baton.core.failures.breakers")
    links = OnDemand("baton.runtime.people.links")
    children = OnDemand("baton.runtime.starting.children")
    start = OnDemand("baton.runtime.starting.start")
    breaking = OnDemand("baton.runtime.steps.breaking")


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Ports and caches that live as long as a process."""

    store: Store
    blobs: Blobs
    clock: Clock
    entropy: Entropy
    offload: Offload
    performer: Performer
    sandbox: Sandbox
    tools: Mapping[str, ToolSpec]
    catalog: Catalog
    durations: DurationEstimator
    limits: Limits
    notices: Sequence[Notices]
    ledger_cache: LedgerCache
    metrics: Metrics = field(default_factory=Metrics)
    watch: Watch | None = None
    watchdog: Watchdog | None = None
    """Timer that ends this process; None: leases last as long as their invocation can."""
    meter: Meter | None = None
    """Meter of the processor time that checking a document takes; None: the clock measures it."""
    functions: WorkflowFunctions | None = None
    """Workflows of the application that are Python functions; None: none."""
    builds: Builds | None = None
    """Builds of the worker's code that can be invoked; None: none."""
    models: Models | None = None
    """Models that may be called; None: none."""
    spans: Spans | None = None
    """Receiver of spans; None: none are sent."""
    kinds: OwnKinds = field(default_factory=dict)
    """The application's own kinds of node, for reading documents."""
    rooms: dict[str, Room] = field(default_factory=dict)
    breakers: dict[tuple[str, str], LocalBreaker] = field(default_factory=dict)
    """Cached state of circuit breakers, by tenant and target."""
    secrets: dict[str, bytes] = field(default_factory=dict, repr=False)
    """Cached keys of runtime/people/links.py."""
    api_url: str = ""
    """Address of the deployment's own API, without a slash at the end; empty if it is not known."""
    confirm_url: str = ""
    """Page to which links in messages lead; empty: messages have none."""

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
        notices: Sequence[Notices],
        **more: Any,
    ) -> Engine:
        """Make an engine on this store and within its limits, with empty caches.
        `more`: fields that differ from their defaults.
        """
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
            catalog=Catalog(store.definitions, blobs, clock, limits=limits, tools=tools),
            durations=DurationEstimator(limits.step_estimate_ms),
            limits=limits,
            notices=notices,
            ledger_cache=LedgerCache(store.budgets, SpendingLimits.of(limits)),
            **more,
        )

    @property
    def log(self) -> Log:
        """Log of its store."""
        return self.store.log


_SAID_FIRST_MS = 20
"""Milliseconds before the cut-off at which a call that hangs is ended: its step fails by the store, not by
the end of its time.
"""


class InvocationScope:
    """Collaborators of one invocation. `deadline`: of its steps; by default, that of a worker. `patch`: for
    agents.
    """

    def __init__(
        self,
        engine: Engine,
        invocation: Invocation,
        deadline: Deadline | None = None,
        patch: OwnPatch | None = None,
    ) -> None:
        self._engine, self.invocation = engine, invocation
        self.deadline = deadline or Deadline.of(invocation, engine.limits)
        self.log, self.blobs, self.clock, self.limits = engine.log, engine.blobs, engine.clock, engine.limits
        self.inbox = engine.store.inbox
        self.durations, self.sandbox, self.metrics = engine.durations, engine.sandbox, engine.metrics
        self.models, self.functions, self.meter = engine.models, engine.functions, engine.meter
        self.secrets, self.api_url = engine.secrets, engine.api_url
        self.builds = engine.builds
        give_up = invocation.deadline - engine.limits.answer_ms
        last = invocation.deadline + engine.limits.lease_grace_ms
        outlasts = last > invocation.started + engine.limits.lease_ms
        tenure = Tenure(engine.clock, engine.limits, last, last, engine.watchdog if outlasts else None)
        ports = engine.offload, engine.clock, engine.entropy, engine.limits
        self.call = StoreRetrier(*ports, give_up, self.deadline.cut_off - _SAID_FIRST_MS, tenure)
        stores = engine.store, engine.blobs, engine.clock, engine.entropy, engine.limits
        self.context = InvocationContext(invocation, *stores, self.call, tenure, patch)

        self.held: dict[str, tuple[int, int]] = {}
        """Epochs of the sagas that it holds, and until when viewers watched (ms), by saga."""

    # Each collaborator is made when it is first used: a request builds no worker, and a saga without money no ledger.

    @cached_property
    def bounds(self) -> Bounds:
        """Bounds of decisions."""
        engine = self._engine
        return Bounds(
            entry_bytes=engine.limits.entry_bytes,
            value_bytes=engine.limits.result_bytes,
            deaths=engine.limits.max_deaths,
            money=engine.ledger_cache.terms,
            rows=engine.store.limits.rows,
        )

    @cached_property
    def ledger(self) -> Ledger:
        """Money of the steps."""
        return Ledger(self.context, self._engine.ledger_cache)

    @property
    def known_ledger(self) -> Ledger | None:
        """The same if an attempt has needed it; what none has asked for has nothing to settle."""
        return vars(self).get("ledger")

    def drop(self, ref: SagaRef) -> None:
        """Record that this invocation does not hold the saga any more."""
        self.held.pop(str(ref), None)
        if (live := vars(self).get("live")) is not None:
            live.drop(ref)

    async def drain(self, ref: SagaRef) -> None:
        """Settle what attempts of the saga have left."""
        if (ledger := self.known_ledger) is not None:
            await ledger.drain(ref)
        await self.steps.drain()

    @cached_property
    def catalog(self) -> Catalog:
        """Workflows, through the calls of this invocation."""
        return self._engine.catalog.through(self.call, self.functions)

    @cached_property
    def leases(self) -> Leases:
        return Leases(self.context)

    @cached_property
    def values(self) -> Values:
        return Values(self.context)

    @cached_property
    def live(self) -> LiveShow:
        """Texts that models are writing, for viewers."""
        return LiveShow(self.context, self.held)

    @cached_property
    def claims(self) -> EffectClaims:
        """Claims of once-only effects."""
        return EffectClaims(self.context)

    @cached_property
    def steps(self) -> Steps:
        """Performer of steps."""
        engine = self._engine
        performer = WithinLease(engine.performer, engine.clock, self.context.tenure)
        return Steps(
            self.context,
            performer,
            engine.tools,
            lambda: self.ledger,
            lambda: self.claims,
            self.values,
            engine.secrets,
            engine.api_url,
            engine.models,
            lambda: self.live,
            lambda: self.breaking,
            lambda: self.catalog,
        )

    @cached_property
    def breaking(self) -> breaking.Breaking:
        """Circuit breakers of the invocation, loaded with the first guarded call."""
        limits = self.limits
        terms = breakers.BreakerTerms(failures=limits.breaker_failures, pause_ms=limits.breaker_pause_ms)
        return breaking.Breaking(self.context, self._engine.breakers, terms, self.metrics)

    @cached_property
    def starter(self) -> start.Starter:
        """Starter of sagas, loaded with the first start."""
        return start.Starter(self.context)

    @cached_property
    def quota(self) -> start.Quota:
        """Limit of sagas at work."""
        return start.Quota(self.context, self._engine.rooms)

    @cached_property
    def children(self) -> children.Children:
        return children.Children(self.context, self.catalog, self.starter)

    def notifier(self) -> Notifier:
        """Make a notifier for the notices of one saga."""
        until = (self.deadline.cut_off + self.call.deadline) // 2  # that they were told has to be appended
        links = self._links if self._engine.confirm_url else None
        return Notifier(self.context, Channels(self.context, self._engine.notices, links), until)

    def _links(self) -> links.Links:
        return links.Links(self.context, self._engine.secrets, self._engine.confirm_url)

    async def offload_values(self, owner: Origin, events: Sequence[Event]) -> Sequence[Event]:
        """Return the events with large values of the engine's own making moved to blobs; the same events if
        there are none.
        """
        for event in events:
            if event.made or (isinstance(event, Gives) and event.full is not None):
                stored = dict[int, Value]()
                return [await self._slim(owner, event, stored) for event in events]
        return events

    async def _slim(self, owner: Origin, event: Event, stored: dict[int, Value]) -> Event:
        """Return the event with a large value of the engine's own making moved to a blob: once, if several
        events have it.

        This includes a value that no node reads: the log holds it all the same, and an entry has only so much
        room. No value is too large: the decision would have been another (core/expressions.py).
        """
        most, fields = event.most_inline, asdict(event)
        for name in event.made:
            field: Value | dict[str, Value] | None = fields[name]
            if isinstance(field, dict):
                if field:
                    kept = {
                        key: await self._stored(owner, value, stored, most) for key, value in field.items()
                    }
                    event = replace(event, **{name: kept})
            elif field is not None and not field.ref:
                event = replace(event, **{name: await self._stored(owner, field, stored, most)})
        if isinstance(event, Gives) and event.full is not None and not event.full.ref:
            # The full output of a summary is stored before the log refers to it.
            event = replace(event, full=await self.values.blob(owner, event.full.v))
        return event

    async def _stored(self, owner: Origin, value: Value, stored: dict[int, Value], most: int | None) -> Value:
        if value.ref:
            return value
        if (known := stored.get(id(value.v))) is None:
            known = stored[id(value.v)] = await self.values.inline_or_blob(owner, value.v, most)
        return known

    def traceparent(self, started_with: str) -> str:
        """Return the W3C trace context: the saga's trace, with this invocation as the span."""
        return _span_of(self.invocation.id, started_with)


@lru_cache(maxsize=256)
def _span_of(invocation: str, started_with: str) -> str:
    fields = started_with.split("-")
    if len(fields) != 4:
        return ""
    span = hashlib.sha256(invocation.encode()).hexdigest()[:16]
    return f"{fields[0]}-{fields[1]}-{span}-{fields[3]}"
