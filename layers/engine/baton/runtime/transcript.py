"""All that was said in an agent so far, read off its state and off the blobs of its older turns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from baton.core.log.agents import Agent, Segment, Turn, call_item
from baton.core.log.events import Value
from baton.core.log.state import Origin
from baton.core.models import messages as said
from baton.core.models.messages import Message
from baton.runtime.context import InvocationContext
from baton.runtime.values import Values

TAIL = 16
"""So many turns are in the state; then they become a segment of the transcript."""


class _Said(msgspec.Struct, frozen=True):
    """What is in a segment of a transcript: its messages, and by their digests the items of the calls that have succeeded."""

    messages: list[Message]
    made: dict[str, str] = {}


_decode_said = msgspec.json.Decoder(_Said).decode


class Transcript:
    """Reads the transcript of an agent, and writes the segments that it consists of."""

    def __init__(self, context: InvocationContext, values: Values, origin: Origin) -> None:
        self._context = context
        self._values = values
        self._origin = origin

    async def messages(
        self, work: Agent, given: Mapping[str, Any], names: Mapping[str, str]
    ) -> tuple[list[Message], dict[str, str], list[Segment] | None]:
        """All that was said so far; the calls of older turns; and what is to become of the segments, where a new one is due.

        `names` are those of the tools on the wire.
        """
        known = await asyncio.gather(*(self._segment(one) for one in work.segments))
        messages, made = said.opening(given), dict[str, str]()
        for part in known:
            messages += part.messages
            made |= part.made
        first = 1 + sum(one.turns for one in work.segments)
        tail: list[Message] = []
        for number, turn in enumerate(work.tail, first):
            tail += await self._turn(number, turn, names, (messages, tail))
        messages = [*messages, *tail, *await self._heard(work.heard)]
        if len(work.tail) < TAIL:
            return messages, made, None
        parts = list(zip(work.segments, known, strict=True))
        return messages, made, await self._merged(parts, _Said(tail, work.made))

    async def content(self, value: Value) -> Any:
        """A value, wherever it is kept."""
        return msgspec.json.decode(await self._blob(value.ref)) if value.ref else value.v

    async def _merged(self, parts: list[tuple[Segment, _Said]], tail: _Said) -> list[Segment]:
        """The segments with a new one, merged like a binary counter: of n turns there are at most log n."""
        size, text = TAIL, tail
        while parts and parts[-1][0].turns <= size:
            segment, before = parts.pop()
            text = _Said([*before.messages, *text.messages], before.made | text.made)
            size += segment.turns
        blob = await self._values.blob(self._origin, text)
        return [*(segment for segment, _ in parts), Segment(blob.ref, size)]

    async def _segment(self, segment: Segment) -> _Said:
        return _decode_said(await self._blob(segment.ref))

    async def _turn(
        self, number: int, turn: Turn, names: Mapping[str, str], before: Iterable[list[Message]]
    ) -> list[Message]:
        values = (turn.answer, *turn.results)
        if any(value.ref for value in values):
            answer, *results = await asyncio.gather(*map(self.content, values))
        else:
            answer, *results = (value.v for value in values)
        heard = await self._heard(turn.heard)
        ids = [call_item(number, index) for index in range(len(results))]
        found: dict[str, Any] = {}
        for id_, result in zip(ids, results, strict=True):
            if first := turn.again.get(id_):
                result = (
                    {"repeated": True, "result": found[first]}
                    if first in found
                    else said.repeated(chain.from_iterable(before), first)
                )
            found[id_] = result
        return [*heard, *said.turn(ids, answer, found.values(), names)]

    async def _heard(self, values: Sequence[Value]) -> list[Message]:
        return said.heard(await asyncio.gather(*map(self.content, values))) if values else []

    async def _blob(self, ref: str) -> bytes:
        return await self._context.call(self._context.blobs.get, self._origin.tenant, ref)
