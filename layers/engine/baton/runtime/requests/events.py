"""Events from outside: they start sagas and signal them, by the rules of registered documents."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import msgspec

from baton.core.conditions import judge
from baton.core.conditions.model import ConditionError
from baton.core.expressions import ExpressionError, Path, as_text, compile_template
from baton.core.graph.graph import Events, SignalRule, StartRule
from baton.core.limits import DAY_MS
from baton.core.log.records import Sent
from baton.core.outside import LONGEST_KEY, USER_SHAPE, identity_of, is_user
from baton.errors import InvalidDefinition, KeyReused, Problem, SignalsFull, TooManyRequests, UserError
from baton.ports import Definition, Head, SagaRef
from baton.ports.triggers import Subscriptions
from baton.runtime.engine.parts import Engine, InvocationScope
from baton.runtime.engine.request import BY_EVENT, Request, correlated_id, named_id
from baton.runtime.invocation.context import StoreRetrier
from baton.runtime.starting.start import StartRequest, body_hash

MOST_WORKFLOWS = 100
"""Highest number of a tenant's workflows with rules for one type of event."""


async def subscribe(
    subscriptions: Subscriptions,
    call: StoreRetrier,
    tenant: str,
    user: str,
    workflow: str,
    version: int,
    events: Events,
) -> None:
    """Subscribe a workflow to its events, before the definition is there:
    a crash in between leaves a workflow that is asked in vain, and loses no event.

    Raises `InvalidDefinition` where too many workflows have rules for a type.
    """
    for kind in events.types:
        there = await call(subscriptions.subscribed, tenant, kind, MOST_WORKFLOWS)
        if len(there) >= MOST_WORKFLOWS and workflow not in {name for name, _, _ in there}:
            problems = tuple(_too_many(events, kind))
            raise InvalidDefinition(problems[0].message, problems)
    for kind in events.types:
        await call(subscriptions.subscribe, tenant, kind, workflow, user, version)


async def unsubscribe(
    subscriptions: Subscriptions, call: StoreRetrier, definition: Definition, now: int
) -> None:
    """Unsubscribe a workflow, after the new definition is there,
    from types that only earlier versions had rules for.

    A crash in between leaves a workflow that is asked in vain, once: see `drop`.
    """
    tenant, workflow, version = definition.tenant, definition.name, definition.version
    for kind in definition.past:
        await call(subscriptions.unsubscribe, tenant, kind, workflow, version, now + DAY_MS)


async def drop(
    subscriptions: Subscriptions,
    call: StoreRetrier,
    definition: Definition,
    type: str,
    version: int,
    now: int,
) -> None:
    """Remove a subscription of this `version` that an event has met: `definition` is the newest and has no
    rules for the type.

    A subscription of a later version stays: that may be under registration right now, and its subscriptions
    come first. For a version that is stored already, a registration writes no subscription but one that the
    version has.
    """
    if version <= definition.version:
        await call(
            subscriptions.unsubscribe, definition.tenant, type, definition.name, version + 1, now + DAY_MS
        )


def _too_many(events: Events, type: str) -> Iterator[Problem]:
    message = f"{MOST_WORKFLOWS} workflows have rules for events of the type `{type}`, which is the most"
    for name, rules in (("start", events.start), ("signal", events.signal)):
        for index, rule in enumerate(rules):
            if rule.type == type:
                yield Problem(f"/events/{name}/{index}/type", message, "let one workflow start the others")


async def start_by_rule(
    engine: Engine,
    scope: InvocationScope,
    ref: SagaRef,
    definition: Definition,
    *,
    given: Any,
    user: str,
    body_hash: str,
    labels: Mapping[str, str],
    sent: Sent | None = None,
) -> bool:
    """Make the saga exist, where it was found not to.
    Raises as the start of a caller does, `TooManyRequests` among others.
    """
    await engine.ledger_cache.refuse_the_blocked(scope.call, ref.tenant, user, scope.clock.now())
    await scope.quota.admit(ref.tenant)
    return await scope.starter.start(
        StartRequest(
            ref=ref,
            definition=definition,
            program=await scope.catalog.program(ref.tenant, definition.graph),
            given=given,
            user=user,
            invocation=scope.invocation.id,
            traceparent=_trace_of(ref),
            body_hash=body_hash,
            labels=labels,
            sent=sent,
        )
    )


def _trace_of(ref: SagaRef) -> str:
    digest = hashlib.sha256(str(ref).encode()).hexdigest()
    return f"00-{digest[:32]}-{digest[32:48]}-01"


logger = logging.getLogger("baton.events")

_LONGEST_WHY = 500
_NOT_ITS_RULE = "the saga `{}` began with another version of the workflow, which has no rule for this event"
_T = TypeVar("_T")
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


class _Meant(NamedTuple):
    """Signal that a rule makes of an event, for a saga that may not exist.
    `why`: the reason if it makes none after all.
    """

    rule: SignalRule
    saga: str = ""
    why: str = ""


class EventService:
    """The events of one tenant, for one request."""

    def __init__(self, request: Request, signal: Signal) -> None:
        self._engine: Engine = request.engine
        self._parts = request.parts
        self._tenant = request.caller.tenant
        self._signal = signal

    async def take(self, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the result of each workflow with a rule that fits.
        Every write is repeatable: after a fault, send the event again.
        """
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
        """Apply first a start, by the rules of the workflow's newest version, then signals.
        `version`: that of the subscription.
        """
        definition = await self._parts.catalog.newest(self._tenant, workflow)
        if definition is None:
            return []  # it is being registered for the first time
        graph = await self._parts.catalog.graph(self._tenant, definition.graph)
        rules, now = graph.events or Events(), self._parts.clock.now()
        heard = [key for kind, key, until in definition.heard if kind == event["type"] and until > now]
        if event["type"] not in rules.types and not heard:
            subscriptions, call = self._engine.store.subscriptions, self._parts.call
            await drop(subscriptions, call, definition, event["type"], version, now)
            return []
        facts, done = _Facts(event), []
        for start in rules.start:
            if (one := await _tried(self._start(start, facts, user, definition))) is not None:
                done.append({"workflow": workflow, "signal": None, **one})
                break
        signals = await self._signals(definition, rules, heard, facts)
        return done + [{"workflow": workflow, **one} for one in signals]

    async def _signals(
        self, definition: Definition, rules: Events, heard: Sequence[str], facts: _Facts
    ) -> list[dict[str, Any]]:
        """Return the result for each saga that is found, by the rules of the version that it began with.

        `rules` are those of the newest version, and `heard` the correlation keys of earlier ones.
        """
        newest = self._meant(definition.name, rules, facts)
        in_vain = [_signal_said(one, _said(REFUSED, why=one.why)) for one in newest if one.why]
        done: list[dict[str, Any]] = []
        sagas = dict.fromkeys(one.saga for one in newest if one.saga)
        earlier = self._found_by(definition.name, heard, facts) - sagas.keys()
        for saga in (*sagas, *sorted(earlier)):
            meant = [one for one in newest if one.saga == saga]
            head = await self._parts.call(self._parts.log.read_head, SagaRef(self._tenant, saga))
            if head is None:
                in_vain += (_signal_said(one, _said(NO_SAGA)) for one in meant)
                continue
            if head.graph != definition.graph:
                own = self._meant(definition.name, await self._began_with(head), facts)
                own = [one for one in own if one.saga in ("", saga)]
                if not own:
                    why = _NOT_ITS_RULE.format(saga)
                    done += (_signal_said(one, _said(REFUSED, why=why)) for one in meant)
                elif saga in earlier:
                    in_vain = []  # the event is not for the newest version
                meant = own
            for one in meant:
                sent = _said(REFUSED, why=one.why) if one.why else await _tried(self._send(one, facts))
                done.append(_signal_said(one, sent))
        return done + in_vain

    async def _began_with(self, head: Head) -> Events:
        graph = await self._parts.catalog.graph(self._tenant, head.graph)
        return graph.events or Events()

    def _meant(self, workflow: str, rules: Events, facts: _Facts) -> list[_Meant]:
        """Return the signals of an event, by the first rule that fits for each."""
        found: dict[str, _Meant] = {}
        for rule in rules.signal:
            if rule.signal in found:
                continue
            try:
                if facts.fit(rule):
                    saga = self._correlated(workflow, facts.key_of(rule.correlation_key))
                    found[rule.signal] = _Meant(rule, saga)
            except (UserError, ConditionError, ExpressionError) as refused:
                found[rule.signal] = _Meant(rule, why=str(refused))
        return list(found.values())

    def _found_by(self, workflow: str, heard: Sequence[str], facts: _Facts) -> set[str]:
        """Return the sagas that the rules of earlier versions name.
        An event without such a key names none of them.
        """
        found = set()
        for key in heard:
            with suppress(UserError, ExpressionError):
                found.add(self._correlated(workflow, facts.key_of(key)))
        return found

    async def _start(
        self, rule: StartRule, facts: _Facts, user: str, definition: Definition
    ) -> dict[str, Any] | None:
        if not facts.fit(rule):
            return None
        hashed = body_hash(["event", facts.identity])
        if rule.correlation_key:
            saga = self._correlated(definition.name, facts.key_of(rule.correlation_key))
        else:
            saga = named_id(self._engine.store.cell, BY_EVENT, self._tenant, definition.name, facts.identity)
        ref = SagaRef(self._tenant, saga)
        head = await self._parts.call(self._parts.log.read_head, ref)
        if head is not None:
            if head.start:
                await self._parts.starter.put_entry_one(head)
            return _said(DUPLICATE if head.start_hash == hashed else EXISTS, saga)
        given, labels = facts.render(rule.input), facts.texts(rule.labels)
        user = facts.user_of(rule.user) if rule.user else user
        if rule.tag:
            definition = await self._parts.catalog.find(self._tenant, f"{definition.name}@{rule.tag}")
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

    async def _send(self, meant: _Meant, facts: _Facts) -> dict[str, Any]:
        key, payload = f"event-{facts.identity}", facts.render(meant.rule.payload)
        done = await self._signal(meant.saga, meant.rule.signal, payload, key, None, facts.sent)
        return _said(SIGNALLED if done["changed"] else DUPLICATE, meant.saga)

    def _correlated(self, workflow: str, key: str) -> str:
        return correlated_id(self._engine.store.cell, self._tenant, workflow, key)


class _Facts:
    """Values that a rule can name: the event."""

    def __init__(self, event: Mapping[str, Any]) -> None:
        self._event = event
        self.identity = identity_of(event)
        self.sent = Sent(source=event["source"], type=event["type"], id=event["id"])

    def fit(self, rule: StartRule | SignalRule) -> bool:
        """Return true if the rule fits the event. Raises `ConditionError`."""
        if not rule.is_for(self._event["type"], self._event["source"]):
            return False
        return rule.when is None or judge(rule.when, self._lookup, {}, {})

    def render(self, template: Any) -> Any:
        return compile_template(template).render(self._lookup)

    def texts(self, templates: Mapping[str, str]) -> dict[str, str]:
        return {name: as_text(self.render(value)) for name, value in templates.items()}

    def key_of(self, template: str) -> str:
        """Return the correlation key of the event. Raises `UserError` if it has none."""
        key = self.render(template)
        if isinstance(key, (str, int)) and not isinstance(key, bool) and 0 < len(str(key)) <= LONGEST_KEY:
            return str(key)
        told = "null" if key is None else msgspec.json.encode(key).decode()[:60]
        raise UserError(
            f"the correlation key `{template}` is {told}; it must be a text of 1 to {LONGEST_KEY} characters or a whole number"
        )

    def user_of(self, template: str) -> str:
        """Return the user that the event names.
        Raises `UserError` if it names none: its saga must not spend another's money.
        """
        user = self.render(template)
        if is_user(user):
            return str(user)
        told = "null" if user is None else msgspec.json.encode(user).decode()[:60]
        raise UserError(f"the user `{template}` is {told}; {USER_SHAPE}")

    def _lookup(self, path: Path) -> Any:
        return self._event


async def _tried(doing: Awaitable[_T]) -> _T | dict[str, Any]:
    try:
        return await doing
    except (TooManyRequests, SignalsFull) as refused:
        return _said(LATER, why=refused.detail)
    except (UserError, ConditionError, ExpressionError) as refused:
        return _said(REFUSED, why=str(refused))


def _signal_said(meant: _Meant, outcome: dict[str, Any]) -> dict[str, Any]:
    return {"signal": meant.rule.signal, **outcome}


def _figures(outcomes: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the counts of events and rules without effect, by metric."""
    if not outcomes:
        return {"EventsUnmatched": 1}
    counts = Counter(_METRICS[one["did"]] for one in outcomes if one["did"] in _METRICS)
    return dict(counts)


def complaint(outcome: Mapping[str, Any]) -> str:
    """Return the workflow whose rule has failed, and the reason."""
    return f"{outcome['workflow']}: {outcome['why']}"


def _said(did: str, saga: str | None = None, why: str = "") -> dict[str, Any]:
    return {"did": did, "saga": saga, "why": why[:_LONGEST_WHY] or None}
