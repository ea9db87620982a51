"""A viewer of a saga: what its models are writing just now, and word to its worker that a viewer is there."""

from __future__ import annotations

from typing import Any

import msgspec

from baton.core.log.state import item_of, node_of
from baton.core.times import iso
from baton.errors import NotFound
from baton.ports import Head, LiveTexts, SagaRef
from baton.runtime.engine.parts import Engine, Parts
from baton.runtime.invocation.live import LiveText

WATCHES_MS = 30_000
"""So long a viewer counts as watching after it has asked."""
SAYS_AGAIN_MS = 10_000
FRESH_MS = 15_000
"""A worker writes at least every 5 s, and clocks differ by 3 s: what is older was left behind by one that is dead."""
_decode = msgspec.json.Decoder(list[LiveText]).decode


async def live_texts(engine: Engine, parts: Parts, ref: SagaRef) -> dict[str, Any]:
    """What is being written. Asking for it says that a viewer watches. Raises `NotFound`."""
    head = await parts.call(engine.log.read_head, ref)
    if head is None:
        raise NotFound(f"there is no saga `{ref.id}`")
    now, live = engine.clock.now(), engine.store.live
    there = await parts.call(live.read, ref)
    texts = _shown(head, there, now)
    until = there.until if there is not None else 0
    if _goes_on(head) and until < now + WATCHES_MS - SAYS_AGAIN_MS:
        until, unless = now + WATCHES_MS, now + WATCHES_MS - SAYS_AGAIN_MS
        # Of several viewers one writes. A worker that shows something knows already, and finds this with its next write.
        if await parts.call(live.watch, ref, now, until, unless) and not texts:
            await parts.call(live.leave_word, head, now, until)
    return {
        "id": ref.id,
        "watched_until": iso(until) if _goes_on(head) else None,
        "texts": [_view(text, there.at) for text in texts if there is not None],
    }


def _goes_on(head: Head) -> bool:
    """Whether a worker holds it, or will."""
    return bool(head.owner) or head.due_at is not None


def _shown(head: Head, there: LiveTexts | None, now: int) -> list[LiveText]:
    """What was written by the worker that holds the saga now, and not long ago."""
    if there is None or not head.owner or there.epoch != head.epoch or there.at < now - FRESH_MS:
        return []
    return _decode(there.data)


def _view(text: LiveText, at: int) -> dict[str, Any]:
    node, iteration = node_of(text.slot)
    return {
        "node": node,
        "iteration": list(iteration),
        "item": item_of(text.slot),
        "began_at": iso(text.since),
        "at": iso(at),
        "text": text.text,
    }
