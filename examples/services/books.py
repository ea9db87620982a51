"""The books of a service: every request it received, every effect it carried out, in order.

The books neither prevent nor hide a duplicate, they count it.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class Request:
    """One request as it arrived. `replay_of` names the request whose answer was given again."""

    n: int
    at_ms: int
    operation: str
    key: str | None
    traceparent: str | None
    status: int | None = None
    replay_of: int | None = None


@dataclass(slots=True)
class Effect:
    """One effect carried out in the world. `identity` is what it is for the business.

    The identity names no request, no key and no record of ours, so two effects with the same one
    are two bookings of the same thing, whatever the technical reason was.
    """

    n: int
    at_ms: int
    request: int
    kind: str
    identity: Mapping[str, Any]
    undone_by: int | None = None


@dataclass(frozen=True, slots=True)
class DoubleBooking:
    """Two effects of one kind for one identity, the second while the first still stood."""

    kind: str
    identity: Mapping[str, Any]
    first: int
    second: int


@dataclass(slots=True)
class Books:
    """Append-only, in memory; one instance per running service, used from one event loop."""

    service: str
    requests: list[Request] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)

    def receive(self, operation: str, key: str | None, traceparent: str | None) -> Request:
        """Write down a request before anything is done about it."""
        request = Request(len(self.requests) + 1, _now_ms(), operation, key, traceparent)
        self.requests.append(request)
        return request

    def carried_out(self, request: Request, kind: str, identity: Mapping[str, Any]) -> Effect:
        """Write down an effect at the moment it is carried out."""
        effect = Effect(len(self.effects) + 1, _now_ms(), request.n, kind, dict(identity))
        self.effects.append(effect)
        return effect

    def undone(self, effect: Effect, by: Effect) -> None:
        """Note that `by` took `effect` back: the same thing may rightly be booked again."""
        effect.undone_by = by.n

    def double_bookings(self) -> Iterator[DoubleBooking]:
        """Every effect that was carried out although an equal one still stood."""
        standing: dict[tuple[str, tuple[tuple[str, str], ...]], list[Effect]] = {}
        for effect in self.effects:
            name = (effect.kind, tuple(sorted((k, str(v)) for k, v in effect.identity.items())))
            earlier = standing.setdefault(name, [])
            for first in earlier:
                if first.undone_by is None or first.undone_by > effect.n:
                    yield DoubleBooking(effect.kind, effect.identity, first.n, effect.n)
                    break
            earlier.append(effect)

    def unanswered(self) -> list[Effect]:
        """Effects whose request has had no answer yet: done, and the caller does not know."""
        open_requests = {request.n for request in self.requests if request.status is None}
        return [effect for effect in self.effects if effect.request in open_requests]

    def document(self) -> dict[str, Any]:
        """The books as JSON: a summary, then everything it was computed from."""
        doubles = [asdict(double) for double in self.double_bookings()]
        return {
            "service": self.service,
            "summary": {
                "requests": len(self.requests),
                "replays": sum(request.replay_of is not None for request in self.requests),
                "effects": len(self.effects),
                "double_bookings": len(doubles),
            },
            "double_bookings": doubles,
            "effects": [asdict(effect) for effect in self.effects],
            "requests": [asdict(request) for request in self.requests],
        }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
