"""Messages of an agent so far, read from its state and from the blobs of its older turns."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from baton.core.conditions.schema import violations
from baton.core.log.records import Segment, Value
from baton.core.log.scopes import Agent, Turn, agent_call_item
from baton.core.log.state import Origin
from baton.core.models import messages as said
from baton.core.models.messages import Message
from baton.errors import CorruptLog
from baton.ports import StepFailure
from baton.runtime.invocation.attempt import Values
from baton.runtime.invocation.context import InvocationContext

TAIL = 16
"""Number of turns in the state; then they become a segment of the transcript."""


class _Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """Content of a segment of a transcript: its messages, and by their digests the items of the calls that
    have succeeded.

    If older messages do not fit, the first of its messages stands for `left_out` of them, and `whole` is the
    blob that has the transcript as it was before.
    """

    messages: list[Message]
    made: dict[str, str] = {}
    whole: str = ""
    left_out: int = 0


_decode_said = msgspec.json.Decoder(_Said).decode


class TranscriptCache(msgspec.Struct):
    """Parts that an invocation keeps of an agent from one request to the next, each with its bytes as JSON.

    What the agent was `given`, and its value; the instructions and the prompt with the opening that they
    make; the segments, by reference; and by number the messages of the turns that are in its state,
    with the names of the tools in them. `offered`: the hash of the tools of the last turn.
    """

    given: Value | None = None
    written: Mapping[str, Any] = {}
    texts: tuple[Any, Any] = (None, None)
    opening: tuple[list[Message], int] = ([], 0)
    segments: dict[str, tuple[_Said, int]] = {}
    names: Mapping[str, str] = {}
    turns: dict[int, tuple[Turn, list[Message], int]] = {}
    offered: str = ""


class Talk(msgspec.Struct, frozen=True):
    """Messages of a turn: the opening, those of the turns before it, and the new ones of its user.

    `parts` are the segments that it was read from, `tail` the messages after them. `segments`: the segments
    to store with the answer of this turn, if they change. `known`: the number of messages that have been
    counted, from the first on, and their bytes as JSON.
    """

    opening: list[Message]
    parts: list[tuple[Segment, _Said]]
    tail: list[Message]
    heard: list[Message]
    segments: list[Segment] | None = None
    known: tuple[int, int] = (0, 0)

    @property
    def before(self) -> list[Message]:
        return [*chain.from_iterable(part.messages for _, part in self.parts), *self.tail]

    @property
    def messages(self) -> list[Message]:
        """Messages of the turn, in order. Those of its session stand before the prompt."""
        own = _of_session(self.parts)
        earlier = [] if own is None else own.messages
        before = self.before[len(earlier) :]
        return [*self.opening[:-1], *earlier, *self.opening[-1:], *before, *self.heard]

    @property
    def made(self) -> dict[str, str]:
        """Return the calls in segments, by digest."""
        return {digest: item for _, part in self.parts for digest, item in part.made.items()}


class Transcript:
    """Reads the transcript of an agent, and writes the segments that it consists of.

    `told`: what this invocation knows of it. A segment that it has read or written is not read again; of a
    turn that is in the state as it was, the messages are not made again.
    """

    def __init__(
        self, context: InvocationContext, values: Values, origin: Origin, told: TranscriptCache | None = None
    ) -> None:
        self._context = context
        self._values = values
        self._origin = origin
        self._told = told or TranscriptCache()

    async def given(self, work: Agent, changed: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what the agent was given, `changed` by this turn.

        It is read once, and so are the images and files in its prompt.
        """
        told = self._told
        if told.given is not work.given:
            told.given, told.written = work.given, await self.content(work.given)
        given = {**told.written, **changed}
        texts = given.get("instructions"), given["prompt"]
        if told.texts[0] is not texts[0] or told.texts[1] is not texts[1]:
            opening = await self.opening(given)
            told.texts, told.opening = texts, (opening, said.bytes_of(opening))
        return given

    async def opening(self, given: Mapping[str, Any]) -> list[Message]:
        """Return the first messages. Raises `StepFailure` for an image or a file that cannot be sent."""
        prompt = given["prompt"]
        stored = dict[str, Any]()
        try:
            for ref in said.stored_media(prompt):
                try:
                    stored[ref] = msgspec.json.decode(await self._blob(ref))
                except CorruptLog as error:
                    raise _unsendable(f"there is no value {ref}") from error
            return said.opening(given, stored)
        except ValueError as error:
            raise _unsendable(str(error)) from error

    async def read(self, work: Agent, names: Mapping[str, str]) -> Talk:
        """Return the talk so far, behind what was `given`. `names` are those of the tools on the wire."""
        told, tail, size = self._told, list[Message](), 0
        opening = told.opening[0]
        parts = await self._parts(work.segments)
        heard = await self._heard(work.heard) if work.heard else []
        talk = Talk(opening, parts, tail, heard)
        before = told.turns if told.names == names else {}
        turns: dict[int, tuple[Turn, list[Message], int]] = {}
        for number, turn in enumerate(work.tail, 1 + sum(one.turns for one in work.segments)):
            made = before.get(number)
            if made is None or made[0] is not turn:
                messages = await self._turn(number, turn, names, talk)
                made = turn, messages, said.bytes_of(messages)
            turns[number] = made
            tail += made[1]
            size += made[2]
        told.names, told.turns = names, turns
        count = len(opening) + len(tail) + sum(len(part.messages) for _, part in parts)
        size += told.opening[1] + sum(size for _, size in told.segments.values())
        return msgspec.structs.replace(talk, known=(count, size))

    async def made(self, segments: Sequence[Segment]) -> dict[str, str]:
        """Return the calls in these segments, by digest."""
        return {digest: item for _, part in await self._parts(segments) for digest, item in part.made.items()}

    async def kept(self, work: Agent, talk: Talk) -> Talk:
        """Return the transcript with a new segment, where one is due.
        They are merged like a binary counter: of n turns there are at most log n.
        """
        size = len(work.tail)
        if talk.segments is not None or size < TAIL:
            return talk
        parts, text = list(talk.parts), _Said(talk.tail, work.made)
        while parts and 0 < parts[-1][0].turns <= size:
            segment, before = parts.pop()
            messages, made = [*before.messages, *text.messages], before.made | text.made
            text = _Said(messages, made, before.whole, before.left_out)
            size += segment.turns
        segment = await self._written(text, size)
        return msgspec.structs.replace(talk, segments=[*(one for one, _ in parts), segment])

    async def cut(
        self, work: Agent, talk: Talk, share: int, summary: Callable[[list[Message]], Awaitable[str]]
    ) -> Talk:
        """Return the talk with the last `1/share` of its messages, and a `summary` of older ones, or a note
        that they are left out.

        This becomes the one segment of the transcript, so that later turns begin with it.
        """
        before = talk.before
        older, newer = said.split_messages(before, share)
        if not older:
            return talk
        whole, left_out = _oldest(talk)
        count = left_out + len(older) - bool(left_out)
        note = said.in_place_of(count, await summary(older))
        known = await self._values.blob(self._origin, _Said(before, whole=whole, left_out=left_out))
        text = _Said([note, *newer], talk.made | work.made, known.ref, count)
        segment = await self._written(text, work.turn - 1)
        return msgspec.structs.replace(
            talk, parts=[(segment, text)], tail=[], segments=[segment], known=(0, 0)
        )

    async def continued(self, talk: Talk, earlier: list[Message]) -> Talk:
        """Return the first talk of an agent behind those of its session: a segment without turns."""
        if not earlier:
            return talk
        text = _Said(earlier)
        segment = await self._written(text, 0)
        return msgspec.structs.replace(talk, parts=[(segment, text)], segments=[segment], known=(0, 0))

    async def content(self, value: Value) -> Any:
        """Return a value, wherever it is kept."""
        return msgspec.json.decode(await self._blob(value.ref)) if value.ref else value.v

    async def _written(self, text: _Said, turns: int) -> Segment:
        ref = (await self._values.blob(self._origin, text)).ref
        self._told.segments[ref] = text, said.bytes_of(text.messages)
        return Segment(ref, turns)

    async def _parts(self, segments: Sequence[Segment]) -> list[tuple[Segment, _Said]]:
        """Return the content of these segments, and keep no other."""
        if not segments and not self._told.segments:
            return []
        known = self._told.segments
        missing = [one.ref for one in segments if one.ref not in known]
        found = [_decode_said(data) for data in await asyncio.gather(*map(self._blob, missing))]
        known |= {ref: (one, said.bytes_of(one.messages)) for ref, one in zip(missing, found, strict=True)}
        self._told.segments = {one.ref: known[one.ref] for one in segments}
        return [(one, known[one.ref][0]) for one in segments]

    async def _turn(self, number: int, turn: Turn, names: Mapping[str, str], talk: Talk) -> list[Message]:
        values = (turn.answer, *turn.results)
        if any(value.ref for value in values):
            answer, *results = await asyncio.gather(*map(self.content, values))
        else:
            answer, *results = (value.v for value in values)
        self._told.offered = answer.get(said.OFFERED, "")
        heard = await self._heard(turn.heard)
        ids = [agent_call_item(number, index) for index in range(len(results))]
        found: dict[str, Any] = {}
        for id_, result in zip(ids, results, strict=True):
            if first := turn.again.get(id_):
                result = found[first] if first in found else await self._result(first, talk)
                result = {"repeated": True, "result": result}
            found[id_] = result
        return [*heard, *said.turn(ids, answer, found.values(), names)]

    async def _result(self, call: str, talk: Talk) -> Any:
        """Return the result of an earlier call as the model got it: from the messages of its turn, or from
        those left out.
        """
        found, (whole, _) = said.result_of(talk.before, call), _oldest(talk)
        while found is None and whole:
            before = _decode_said(await self._blob(whole))
            found, whole = said.result_of(before.messages, call), before.whole
        return found

    async def _heard(self, values: Sequence[Value]) -> list[Message]:
        return said.user_messages(await asyncio.gather(*map(self.content, values))) if values else []

    async def _blob(self, ref: str) -> bytes:
        return await self._context.call(self._context.blobs.get, self._origin.tenant, ref)


def refused_calls(messages: Sequence[Message], tools: Mapping[str, tuple[str, bytes]]) -> dict[str, str]:
    """Return, by the name of a tool, the reason why it would refuse a call that it has taken before.
    `tools`: each with the schema of its parameters, by the names in the messages.
    """
    refused: dict[str, str] = {}
    results = (one for one in messages if one["role"] == "tool")
    failed = {one["tool_call_id"] for one in results if one["content"].startswith('{"error":')}
    for call in chain.from_iterable(one.get("tool_calls") or () for one in messages):
        name = call["function"]["name"]
        if name in tools and call["id"] not in failed:
            problems = violations(tools[name][1], said.parse_answer(call["function"]["arguments"]))
            refused |= {name: problems[0].message} if problems else {}
    return refused


_FOUND = re.compile(r'"name":"([^"\\]+)"')


def sought_tools(messages: Sequence[Message], search: str) -> set[str]:
    """Return the tools that a model has called, by their names in the messages, and those that its searches
    have found. `search`: the name of the search in the messages.
    """
    calls = [*chain.from_iterable(one.get("tool_calls") or () for one in messages)]
    names = {call["id"]: call["function"]["name"] for call in calls}
    searches = {id_ for id_, name in names.items() if name == search}
    results = (one["content"] for one in messages if one.get("tool_call_id") in searches)
    return {*names.values(), *chain.from_iterable(map(_FOUND.findall, results))}


def _unsendable(why: str) -> StepFailure:
    return StepFailure("validation_failed", f"the prompt cannot be sent: {why}", unsent=True)


def _of_session(parts: Sequence[tuple[Segment, _Said]]) -> _Said | None:
    return parts[0][1] if parts and not parts[0][0].turns else None


def _oldest(talk: Talk) -> tuple[str, int]:
    """Return the blob of the messages left out, and their number: they are all at the beginning."""
    return (talk.parts[0][1].whole, talk.parts[0][1].left_out) if talk.parts else ("", 0)
