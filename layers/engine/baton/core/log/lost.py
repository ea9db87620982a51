"""Edges that are lost: their sender failed, and its `catch` went on to handlers.

Which tokens carry a failure, and which failures that were caught are rescued at a join. What a join does about them is
in core/decide/readiness.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from baton.core.graph.index import GraphIndex
from baton.core.log import events as ev
from baton.core.log.records import Failure


def carriers(event: ev.Settles) -> Collection[tuple[str, str]]:
    """Sender and receiver of the tokens that carry an event's `errors`.

    Dead ones of the node itself. Of a failure that is caught its handlers know, too, and so do the unchosen ways out of
    a loop that ends with it.
    """
    if not event.errors:
        return ()
    is_lost = all(error.handled for error in event.errors)
    is_caught = any(token.alive for token in event.emits if token.src == event.node)
    return frozenset(
        (token.src, token.dst)
        for token in event.emits
        if (token.src == event.node and token.alive == is_caught) or (is_lost and not token.alive)
    )


def unrescued(
    ways: GraphIndex, src: str, name: str, arrived: Mapping[str, bool], carried: Iterable[Failure]
) -> tuple[Failure, ...]:
    """What the dead edge from `src` to `name` carries, less the failures that were caught and are rescued there.

    They are by a live edge from their handlers, or from nodes that are reached only through those; and at a handler by any
    failure that it is there for. An edge that is only taken when `src` fails is not lost by what else has failed.
    """
    is_handler = name in ways.handlers.get(src, ())
    return tuple(
        one for one in carried if not one.handled or not (is_handler or _is_rescued(ways, name, arrived, one))
    )


def _is_rescued(ways: GraphIndex, name: str, arrived: Mapping[str, bool], failure: Failure) -> bool:
    if any(alive and name in ways.handlers.get(src, ()) for src, alive in arrived.items()):
        return True
    through = ways.only_through(failure.node, failure.handled)
    return any(alive and src in through for src, alive in arrived.items())
