"""A document with rules for events is registered: events of these types find its workflow from then on, and of no others.

A version's subscriptions are written before the version, under its number, and those of types that it has no rules for are given up after it, if
they are of earlier versions. So of any number of registrations at once, the subscriptions of the one that becomes the newest stay.
"""

from __future__ import annotations

from collections.abc import Iterator

from baton.core.graph.outside import Events
from baton.core.limits import DAY_MS
from baton.errors import InvalidDefinition, Problem
from baton.ports import Definition
from baton.ports.subscriptions import Subscriptions
from baton.runtime.invocation.store_retrier import StoreRetrier

MOST_WORKFLOWS = 100
"""So many workflows of a tenant may have rules for one type of event."""


async def subscribe(
    subscriptions: Subscriptions,
    call: StoreRetrier,
    tenant: str,
    user: str,
    workflow: str,
    version: int,
    events: Events,
) -> None:
    """Before the definition is there: a crash in between leaves a workflow that is asked in vain, and loses no event.

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
    """After the definition is there: its workflow is not asked any more for types that only earlier versions had rules for.

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
    """What an event has met is given up: a subscription of this `version`, where `definition` is the newest and has no rules for the type.

    One of a later version stays: that is perhaps being registered right now, and its subscriptions come first. Of a version that is there already,
    no registration writes a subscription any more but one that says what the version says.
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
