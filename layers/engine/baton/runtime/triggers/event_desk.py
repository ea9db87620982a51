"""An event from outside meets the rules of its tenant's workflows: it starts sagas, and is a signal for sagas that run.

Nothing is stored of an event itself. The id of the saga that it starts is made of the workflow and of the event, or of the
correlation key; the key of a signal is made of the event. So a repetition finds what was done, and does what was not. The order
of the writes is the event row of docs/protocols.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from baton.core.conditions import judge
from baton.core.conditions.outcome import ConditionError
from baton.core.expressions import ExpressionError, Path, as_text, compile_template
from baton.core.graph.outside import SignalRule, StartRule
from baton.core.log.records import Sent
from baton.core.outside.cloudevents import LONGEST_KEY, identity_of
from baton.errors import KeyReused, TooManyRequests, UserError
from baton.ports import Definition, SagaRef
from baton.runtime.engine.ids import BY_EVENT, correlated_id, named_id
from baton.runtime.engine.parts import Engine
from baton.runtime.engine.request import Request
from baton.runtime.starting.start import body_hash
from baton.runtime.triggers.ruled_start import start_by_rule
from baton.runtime.triggers.subscribing import MOST_WORKFLOWS, drop

logger = logging.getLogger("baton.events")

_LONGEST_WHY = 500
_AT_ONCE = 10  # workflows that are looked up beside each other

STARTED, SIGNALLED, DUPLICATE, EXISTS, NO_SAGA, REFUSED, LATER = (
    "started",
    "signalled",
    "duplicate",
    "exists",
    "no_saga",
    "refused",
    "later",
)
DEEDS = {
    STARTED: "a saga was started",
    SIGNALLED: "a saga got a signal",
    DUPLICATE: "this was done when the event came before",
    EXISTS: "no saga was started, because there is one of the workflow with this correlation key",
    NO_SAGA: "no saga of the workflow was started with this correlation key",
    REFUSED: "`why` says what the event, the rule or the saga does not allow",
    LATER: "`why` says what does not allow it now; it is done when the event comes again",
}

_METRICS = {NO_SAGA: "EventsUnreached", REFUSED: "EventsRefused", LATER: "EventsRefused"}

Signal = Callable[[str, str, Any, str, None, Sent], Awaitable[dict[str, Any]]]
"""`Service.signal`: saga, name, payload, key, no failure, and the event."""


class EventDesk:
    """The events of one tenant, for one request."""

    def __init__(self, request: Request, signal: Signal) -> None:
        self._engine: Engine = request.engine
        self._parts = request.parts
        self._tenant = request.caller.tenant
        self._signal = signal

    async def take(self, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What each workflow with a rule that fits has done. Every write is repeatable: after a fault, send the event again."""
        subscriptions = self._engine.store.subscriptions
        found = await self._parts.call(
            subscriptions.subscribed, self._tenant, event["type"], 2 * MOST_WORKFLOWS
        )
        outcomes: list[dict[str, Any]] = []
        for first in range(0, len(found), _AT_ONCE):
            some = found[first : first + _AT_ONCE]
            taken = await asyncio.gather(*(self._by(*one, event) for one in some))
            outcomes += (one for part in taken for one in part)
        for one in outcomes:
            is_done = one["did"] in (STARTED, SIGNALLED, DUPLICATE, EXISTS)
            level = logging.INFO if is_done else logging.WARNING
            said = {"tenant": self._tenant, "event": event["id"], "source": event["source"], **one}
            logger.log(level, "event %s", one["did"], extra=said)
        if not outcomes:
            logger.info("event without a rule", extra={"tenant": self._tenant, "type": event["type"]})
        self._engine.metrics.events(_figures(outcomes), self._parts.clock.now())
        return outcomes

    async def _by(
        self, workflow: str, user: str, version: int, event: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """By the rules of one workflow's newest version: first a start, then signals. `version`: that of the subscription."""
        definition = await self._parts.catalog.newest(self._tenant, workflow)
        if definition is None:
            return []  # it is being registered for the first time
        graph = await self._parts.catalog.graph(self._tenant, definition.graph)
        if graph.events is None or event["type"] not in graph.events.types:
            subscriptions, call = self._engine.store.subscriptions, self._parts.call
            await drop(subscriptions, call, definition, event["type"], version, self._parts.clock.now())
            return []
        facts, done = _Facts(event), []
        for start in graph.events.start:
            if (one := await self._tried(self._start, start, facts, user, definition)) is not None:
                done.append({"workflow": workflow, "signal": None, **one})
                break
        signals: set[str] = set()
        for signal in graph.events.signal:
            if signal.signal in signals:
                continue
            if (one := await self._tried(self._send, signal, facts, workflow)) is not None:
                signals.add(signal.signal)
                done.append({"workflow": workflow, "signal": signal.signal, **one})
        return done

    async def _tried(
        self, do: Any, rule: StartRule | SignalRule, facts: _Facts, *more: Any
    ) -> dict[str, Any] | None:
        """None where the rule is not for the event."""
        try:
            return await do(rule, facts, *more) if facts.fit(rule) else None
        except TooManyRequests as refused:
            return _said(LATER, why=refused.detail)
        except (UserError, ConditionError, ExpressionError) as refused:
            return _said(REFUSED, why=str(refused))

    async def _start(
        self, rule: StartRule, facts: _Facts, user: str, definition: Definition
    ) -> dict[str, Any]:
        hashed = body_hash(["event", facts.identity])
        if rule.correlation_key:
            saga = self._correlated(definition.name, facts.key_of(rule))
        else:
            saga = named_id(self._engine.store.cell, BY_EVENT, self._tenant, definition.name, facts.identity)
        ref = SagaRef(self._tenant, saga)
        head = await self._parts.call(self._parts.log.read_head, ref)
        if head is not None:
            if head.start:
                await self._parts.starter.put_entry_one(head)
            return _said(DUPLICATE if head.start_hash == hashed else EXISTS, saga)
        given, labels = facts.render(rule.input), facts.texts(rule.labels)
        try:
            is_new = await start_by_rule(
                self._engine,
                self._parts,
                ref,
                definition,
                given=given,
                user=user,
                body_hash=hashed,
                labels=labels,
                sent=facts.sent,
            )
        except KeyReused:
            return _said(EXISTS, saga)
        return _said(STARTED if is_new else DUPLICATE, saga)

    async def _send(self, rule: SignalRule, facts: _Facts, workflow: str) -> dict[str, Any]:
        saga = self._correlated(workflow, facts.key_of(rule))
        if await self._parts.call(self._parts.log.read_head, SagaRef(self._tenant, saga)) is None:
            return _said(NO_SAGA)
        key, payload = f"event-{facts.identity}", facts.render(rule.payload)
        done = await self._signal(saga, rule.signal, payload, key, None, facts.sent)
        return _said(SIGNALLED if done["changed"] else DUPLICATE, saga)

    def _correlated(self, workflow: str, key: str) -> str:
        return correlated_id(self._engine.store.cell, self._tenant, workflow, key)


class _Facts:
    """What a rule can name: the event."""

    def __init__(self, event: Mapping[str, Any]) -> None:
        self._event = event
        self.identity = identity_of(event)
        self.sent = Sent(source=event["source"], type=event["type"], id=event["id"])

    def fit(self, rule: StartRule | SignalRule) -> bool:
        """Raises `ConditionError`."""
        if not rule.is_for(self._event["type"], self._event["source"]):
            return False
        return rule.when is None or judge(rule.when, self._lookup, {}, {})

    def render(self, template: Any) -> Any:
        return compile_template(template).render(self._lookup)

    def texts(self, templates: Mapping[str, str]) -> dict[str, str]:
        return {name: as_text(self.render(value)) for name, value in templates.items()}

    def key_of(self, rule: StartRule | SignalRule) -> str:
        """Raises `UserError` where the event has none."""
        key = self.render(rule.correlation_key)
        if isinstance(key, (str, int)) and not isinstance(key, bool) and 0 < len(str(key)) <= LONGEST_KEY:
            return str(key)
        told = "null" if key is None else msgspec.json.encode(key).decode()[:60]
        raise UserError(
            f"the correlation key `{rule.correlation_key}` is {told}; it must be a text of 1 to {LONGEST_KEY} characters or a whole number"
        )

    def _lookup(self, path: Path) -> Any:
        return self._event


def _figures(outcomes: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """By metric, what was not done."""
    if not outcomes:
        return {"EventsUnmatched": 1}
    counts = Counter(_METRICS[one["did"]] for one in outcomes if one["did"] in _METRICS)
    return dict(counts)


def _said(did: str, saga: str | None = None, why: str = "") -> dict[str, Any]:
    return {"did": did, "saga": saga, "why": why[:_LONGEST_WHY] or None}
