"""A document with rules for events is registered: events of these types find its workflow from then on."""

from __future__ import annotations

from collections.abc import Iterator

from baton.core.graph.outside import Events
from baton.errors import InvalidDefinition, Problem
from baton.ports.subscriptions import Subscriptions
from baton.runtime.store_retrier import StoreRetrier

MOST_WORKFLOWS = 100
"""So many workflows of a tenant may have rules for one type of event."""


async def subscribe(
    subscriptions: Subscriptions, call: StoreRetrier, tenant: str, user: str, workflow: str, events: Events
) -> None:
    """Before the definition is there: a crash in between leaves a workflow that is asked in vain, and loses no event.

    Raises `InvalidDefinition` where too many workflows have rules for a type.
    """
    for kind in events.types:
        there = await call(subscriptions.subscribed, tenant, kind, MOST_WORKFLOWS)
        if len(there) >= MOST_WORKFLOWS and workflow not in {name for name, _ in there}:
            problems = tuple(_too_many(events, kind))
            raise InvalidDefinition(problems[0].message, problems)
    for kind in events.types:
        await call(subscriptions.subscribe, tenant, kind, workflow, user)


def _too_many(events: Events, type: str) -> Iterator[Problem]:
    message = (
        f"{MOST_WORKFLOWS} workflows have, or had, rules for events of the type `{type}`, which is the most"
    )
    for name, rules in (("start", events.start), ("signal", events.signal)):
        for index, rule in enumerate(rules):
            if rule.type == type:
                yield Problem(f"/events/{name}/{index}/type", message, "let one workflow start the others")
