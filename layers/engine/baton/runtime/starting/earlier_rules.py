"""A version changes rules for signals: how the sagas that began with the rules before are found from then on.

What such a saga does with an event is said by its own graph: see runtime/triggers/event_desk.py.
"""

from __future__ import annotations

from baton.core.graph.outside import Events, SignalRule
from baton.ports.definitions import Heard

MOST_HEARD = 100
"""So many correlation keys of earlier versions are known of a workflow."""


def heard_after(
    known: Heard, before: Events | None, after: Events | None, now: int, until: int
) -> tuple[Heard, tuple[str, ...]]:
    """What a version with the rules `after` hears for sagas of versions before it, whose newest had the rules `before` and `known`.

    That is how to find them, for types of events for which the rules of signals are not the same any more. What a saga does
    with an event is said by its own graph. The second value are notes of what is not known any more.
    """
    old, new = _signals(before), _signals(after)
    changed = [rule for kind, rules in old.items() if rules != new.get(kind) for rule in rules]
    places = {(rule.type, rule.correlation_key): until for rule in changed}
    for kind, key, end in known:
        if end > now:
            places.setdefault((kind, key), end)
    heard = tuple((*place, end) for place, end in places.items())
    notes = (
        f"sagas that began with an earlier version do not get events of the type `{kind}` with the correlation key `{key}` "
        f"as signals any more: {MOST_HEARD} correlation keys of earlier versions are known, which is the most"
        for kind, key, _ in heard[MOST_HEARD:]
    )
    return heard[:MOST_HEARD], tuple(notes)


def _signals(events: Events | None) -> dict[str, list[SignalRule]]:
    """By type of event."""
    found: dict[str, list[SignalRule]] = {}
    for rule in events.signal if events is not None else ():
        found.setdefault(rule.type, []).append(rule)
    return found
