"""Messages to agents and their answers, and the texts that the models of a saga are writing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import aclosing
from typing import Annotated, Any, Literal

import msgspec

from baton.core.expressions import iso, with_hint
from baton.core.graph.graph import Graph
from baton.core.log.events import Entry, Forked, SignalReceived, StepSucceeded, TurnBegan, Value
from baton.core.log.scopes import ENDS, is_turn
from baton.core.log.slots import Slot
from baton.core.log.state import Segment, State
from baton.core.models.messages import message_text
from baton.core.models.usage import MODEL
from baton.core.read.answers import Count, Time, Version, View
from baton.errors import NotFound
from baton.ports import Head, SagaRef
from baton.ports import LiveTexts as WrittenTexts
from baton.runtime.engine.parts import Engine, InvocationScope
from baton.runtime.engine.request import Opened
from baton.runtime.invocation.live import LiveText as WrittenText
from baton.runtime.log.history import ReadingTime, readable, records_of

AT_ONCE = 200
NAMED = 5


class Message(View):
    """A message to an agent, or an answer of one."""

    id: Annotated[str, "Key of the message, or the place of the answer, such as `talk#t3`."]
    version: Annotated[Version, "Version of its entry in the log."]
    at: Time
    role: Annotated[Literal["user", "assistant"], "`user`: sent to an agent. `assistant`: its answer."]
    node: Annotated[str | None, "Agent that has answered. Null for a message to it."]
    by: Annotated[str | None, "Caller who sent the message. Null for an answer."]
    text: Annotated[str, "The text. Empty for a message that only ends the conversation."]
    heard: Annotated[bool, "True if an agent has taken the message into a turn. True for answers."]
    ends: Annotated[bool, "True if no message follows it in this conversation."]


class MessagePage(View):
    """Messages of a saga, in the order of its log, on its current branch."""

    messages: list[Message]
    next: Annotated[Version | None, "Value of `after` for the next page. Null at the end of the log."]
    version: Annotated[Version, "Version of the saga. Ask with it as `after` for what has come since."]


def message_signals(graph: Graph) -> dict[str, str]:
    """Return the signals that are messages, by the agents that hear them."""
    return {node.name: node.signal for node in graph.nodes if node.agent is not None and node.signal}


def message_signal(opened: Opened, to: str = "") -> str:
    """Return the signal that is a message to the agent `to`, or to the only one there is: if one has begun,
    to that. Raises `NotFound`.
    """
    known, state = message_signals(opened.program.graph), opened.history.state
    at_work = {known[node] for node in map(_node_of, state.open) if node in known}
    names = {signal for node, signal in known.items() if node == to} if to else at_work or {*known.values()}
    if len(names) == 1:
        return names.pop()
    if not known:
        text = f"no agent of workflow `{state.origin.workflow}` hears messages"
        hint = "write `conversation: true` or `signal` at one"
        if sagas := sorted(child.saga for child in state.children.values())[:NAMED]:
            hint = f"agents of a function, of a map and of a delegate hear them in their own sagas: {', '.join(sagas)}"
        raise NotFound(with_hint(text, hint))
    text = f"no agent `{to}` hears messages" if to else "several agents hear messages, each by its own signal"
    raise NotFound(with_hint(text, f"write one of them as `to`: {', '.join(known)}"))


def _node_of(slot: str) -> str:
    return Slot.parse(slot).node


async def messages_of(
    engine: Engine, scope: InvocationScope, opened: Opened, after: int, limit: int
) -> MessagePage:
    """Return about `limit` messages behind a version, all of each entry. Raises `TooLarge`."""
    state, call = opened.history.state, scope.call
    signals, own = message_signals(opened.program.graph), state.lineage
    names, parts = {*signals.values()}, (*own.closed, Segment(own.branch, own.first, state.version))
    found, following, is_cut = list[Message](), None, False
    untaken = dict[tuple[str, str], Message]()
    time = ReadingTime(engine.clock, call.deadline)

    async with aclosing(
        records_of(engine.log, call, opened.head.ref, own.branch + 1, after, AT_ONCE)
    ) as pages:
        async for page in pages:
            for entry in readable(page):
                if not any(
                    one.branch == entry.branch and one.first <= entry.version <= one.last for one in parts
                ):
                    continue
                _take(entry, signals, untaken)
                if is_cut := len(found) >= limit:
                    if not untaken:
                        return MessagePage(messages=found, next=following, version=state.version)
                    continue  # the turns that take the last ones follow
                for message, value in _said(entry, names, state, untaken):
                    said = await _content(engine, scope, state.origin.tenant, value)
                    if message.role == "assistant":
                        message.text, message.ends = _answer(said)
                    elif not message.ends:
                        message.text = message_text(said)
                    if message.text or message.ends:
                        found.append(message)
                following = entry.version
            time.check("searched for messages", state.version, page[-1].version)
    return MessagePage(messages=found, next=following if is_cut else None, version=state.version)


def _take(entry: Entry, signals: Mapping[str, str], untaken: dict[tuple[str, str], Message]) -> None:
    """Mark the messages that the turns of an entry have taken."""
    for event in entry.events:
        if isinstance(event, TurnBegan):
            for key in event.heard:
                if message := untaken.pop((signals.get(event.node, ""), key), None):
                    message.heard = True


def _said(
    entry: Entry, names: set[str], state: State, untaken: dict[tuple[str, str], Message]
) -> Iterator[tuple[Message, Value]]:
    """Yield the messages of an entry without their texts, each with its value.

    Those that do not wait any more are added to `untaken`: the end of a saga drops the ones that wait.
    """
    waits = {(one.name, one.key) for one in state.signals}
    for event in entry.events:
        if isinstance(event, SignalReceived) and event.name in names:
            at = event.name, event.key
            message = Message(
                id=event.key,
                version=entry.version,
                at=iso(event.at),
                role="user",
                node=None,
                by=event.by,
                text="",
                heard=event.failure is not None and not event.lost and at not in waits,
                ends=event.failure is not None,
            )
            if not (message.ends or event.lost or at in waits):
                untaken[at] = message
            yield message, event.payload
        elif isinstance(event, StepSucceeded) and is_turn(event.item):
            message = Message(
                id=event.slot,
                version=entry.version,
                at=iso(event.ended_at),
                role="assistant",
                node=event.node,
                by=None,
                text="",
                heard=True,
                ends=False,
            )
            yield message, event.output


def _answer(said: Any) -> tuple[str, bool]:
    """Return the text of a turn's answer, and true if it ends the conversation."""
    if not isinstance(said, dict):
        return message_text(said), False
    data = said.get("data")
    return said.get("text") or ("" if data is None else message_text(data)), bool(said.get(ENDS))


WATCHES_MS = 30_000
"""Milliseconds for which a viewer counts as watching after it has asked."""
SAYS_AGAIN_MS = 10_000
FRESH_MS = 15_000
"""A worker writes at least every 5 s, and clocks differ by 3 s: what is
older was left behind by one that is dead.
"""
_decode = msgspec.json.Decoder(list[WrittenText]).decode


class LiveText(View):
    """The part of a model's answer that has arrived. A long text is cut at its beginning.
    An answer that is `done` is whole.
    """

    node: str
    iteration: list[int]
    item: Annotated[str, "Turn of an agent, such as `t3`. Empty for a node with a single request."]
    began_at: Annotated[Time, "Time of the request to the model."]
    at: Annotated[Time, "Time when the worker stored this text."]
    text: str
    done: Annotated[bool, "True if this is the whole answer, from the saga's log."]


class LiveTexts(View):
    """Texts that the saga's models are generating, and with `after` the answers that have ended since."""

    id: str
    version: Annotated[
        Count, "Value of `after` for the next request, which then has each answer once that ends meanwhile."
    ]
    watched_until: Annotated[Time | None, "Time until which viewers are registered. Null after the end."]
    texts: list[LiveText]


async def live_texts(
    engine: Engine, scope: InvocationScope, ref: SagaRef, after: int | None = None
) -> LiveTexts:
    """Return the texts being written, and record that a viewer watches; before them, the answers in the log
    behind the version `after`. Raises `NotFound`.
    """
    head = await scope.call(engine.log.read_head, ref)
    if head is None:
        raise NotFound(f"there is no saga `{ref.id}`")
    now, live = engine.clock.now(), engine.store.live
    there = await scope.call(live.read, ref)
    texts = _shown(head, there, now)
    until = there.until if there is not None else 0
    if _goes_on(head) and until < now + WATCHES_MS - SAYS_AGAIN_MS:
        until, unless = now + WATCHES_MS, now + WATCHES_MS - SAYS_AGAIN_MS
        # Of several viewers one writes. A worker that shows something knows already, and finds this with its next write.
        if await scope.call(live.watch, ref, now, until, unless) and not texts:
            await scope.call(live.leave_word, head, now, until)
    done, version = ([], head.folded) if after is None else await _ended_since(engine, scope, head, after)
    ended = {(one.node, *one.iteration, one.item) for one in done}
    views = [_view(text, there.at) for text in texts if there is not None]
    return LiveTexts(
        id=ref.id,
        version=version,
        watched_until=iso(until) if _goes_on(head) else None,
        texts=[*done, *(one for one in views if (one.node, *one.iteration, one.item) not in ended)],
    )


async def _ended_since(
    engine: Engine, scope: InvocationScope, head: Head, after: int
) -> tuple[list[LiveText], int]:
    """Return the answers of models behind a version, and the version as far as one page of the log goes.
    Those that a fork on the page has cut off are left out.
    """
    done, version = list[tuple[int, LiveText]](), after
    records = records_of(engine.log, scope.call, head.ref, head.branch + 1, after, AT_ONCE)
    async with aclosing(records) as pages:
        async for page in pages:
            for entry in readable(page):
                version = entry.version
                for event in entry.events:
                    if isinstance(event, Forked) and not event.undo:
                        done = [one for one in done if one[0] <= event.cut]
                    elif isinstance(event, StepSucceeded) and event.tool == MODEL:
                        text, _ = _answer(await _content(engine, scope, head.ref.tenant, event.output))
                        view = _view(WrittenText(event.slot, event.started_at, text), event.ended_at)
                        done += [(version, msgspec.structs.replace(view, done=True))] if text else []
            break
    return [one for _, one in done], version


async def _content(engine: Engine, scope: InvocationScope, tenant: str, value: Value) -> Any:
    if not value.ref:
        return value.v
    return msgspec.json.decode(await scope.call(engine.blobs.get, tenant, value.ref))


def _goes_on(head: Head) -> bool:
    """Return true if a worker holds it, or will."""
    return bool(head.owner) or head.due_at is not None


def _shown(head: Head, there: WrittenTexts | None, now: int) -> list[WrittenText]:
    """Return the recent texts of the worker that holds the saga now."""
    if there is None or not head.owner or there.epoch != head.epoch or there.at < now - FRESH_MS:
        return []
    return _decode(there.data)


def _view(text: WrittenText, at: int) -> LiveText:
    slot = Slot.parse(text.slot)
    return LiveText(
        node=slot.node,
        iteration=list(slot.iteration),
        item=slot.item,
        began_at=iso(text.since),
        at=iso(at),
        text=text.text,
        done=False,
    )
