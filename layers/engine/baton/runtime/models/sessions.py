"""Sessions: agents of one user that go on with what earlier ones were told and have answered.

A session is one entity: the places of its agents, in the order in which they began. An agent enters its place
before its first request. The texts are read from the logs of the sagas, so they end with them.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import msgspec

from baton.core.log.events import AgentBegan, Entry, SignalReceived, StepSucceeded, TurnBegan, Value
from baton.core.log.scopes import ENDS, is_turn
from baton.core.log.slots import owner_of
from baton.core.log.state import Origin, Segment
from baton.core.models.messages import Message, message_text, shown_prompt
from baton.errors import Unreadable
from baton.ports import SagaRef, StepFailure
from baton.runtime.invocation.context import InvocationContext
from baton.runtime.log.history import History, readable, records_of

AGENTS = 16
"""Number of agents that a session remembers, the newest."""
MESSAGES = 200
"""Number of earlier messages that an agent begins with, the newest."""
_TYPE = "~session"  # a type of entities that no document can write
_TRIES, _PAGE = 8, 200
_USER, _ASSISTANT = "user", "assistant"

logger = logging.getLogger("baton.models")


async def earlier_messages(
    context: InvocationContext, origin: Origin, slot: str, session: Any
) -> list[Message]:
    """Enter the agent at `slot` into the session of its user, and return what was said in it before.

    Raises `StepFailure` for a session that too many agents enter at once.
    """
    found = list[Message]()
    for saga, place in await _entered(context, origin, slot, session):
        ref = SagaRef(origin.tenant, saga)
        try:
            found += [one async for one in _said(context, ref, place, origin.user)]
        except Unreadable:
            logger.warning("a saga of the session cannot be read", exc_info=True, extra={"saga": saga})
    return found[-MESSAGES:]


async def _entered(
    context: InvocationContext, origin: Origin, slot: str, session: Any
) -> list[tuple[str, str]]:
    """Return the places of the agents that have begun before this one, which is entered once."""
    entities, name = context.store.entities, [origin.user, message_text(session)]
    where = origin.tenant, _TYPE, hashlib.sha256(msgspec.json.encode(name)).hexdigest()
    own = (origin.saga, slot)
    for _ in range(_TRIES):
        there = await context.call(entities.get, *where)
        version, known = (0, []) if there is None else (there.version, [tuple(one) for one in there.data])
        if own in known:
            return known[: known.index(own)]
        data, key = [*known, own][-AGENTS - 1 :], f"{origin.saga}/{slot}"
        done = await context.call(
            entities.put, *where, [list(one) for one in data], key=key, expected=version
        )
        if not done.conflict:
            return known[-AGENTS:]
    raise StepFailure("conflict", "many agents enter the session at once", kind="transient", unsent=True)


async def _said(context: InvocationContext, ref: SagaRef, slot: str, user: str) -> Any:
    """Yield what one agent was told and has answered, on the current branch of its saga."""
    head = await context.call(context.log.read_head, ref)
    if head is None:
        return
    history = History(context.log, context.blobs, context.call, ref)
    await history.load(head)
    state = history.state
    if state.origin.user != user:
        return
    own = state.lineage
    parts = (*own.closed, Segment(own.branch, own.first, state.version))
    signals, names = dict[str, Value](), set[str]()
    records = records_of(context.log, context.call, ref, own.branch + 1, 0, _PAGE)
    async with aclosing(records) as pages:
        async for page in pages:
            for entry in readable(page):
                if any(
                    one.branch == entry.branch and one.first <= entry.version <= one.last for one in parts
                ):
                    for role, value in _values(entry, slot, signals, names):
                        said = value.v
                        if value.ref:
                            data = await context.call(context.blobs.get, ref.tenant, value.ref)
                            said = msgspec.json.decode(data)
                        if text := _text(role, said):
                            yield {"role": role or _USER, "content": text}


def _values(
    entry: Entry, slot: str, signals: dict[str, Value], names: set[str]
) -> Iterator[tuple[str, Value]]:
    """Yield the prompt of an agent (without a role), the messages that it has heard, and its answers."""
    for event in entry.events:
        if isinstance(event, SignalReceived):
            signals.setdefault(f"{event.name}/{event.key}", event.payload)
        elif isinstance(event, AgentBegan) and event.slot == slot:
            names.add(event.listens)
            yield "", event.given
        elif isinstance(event, TurnBegan) and event.slot == slot:
            for key in event.heard:
                yield from ((_USER, signals[at]) for name in names if (at := f"{name}/{key}") in signals)
        elif isinstance(event, StepSucceeded) and is_turn(event.item) and owner_of(event.slot) == slot:
            yield _ASSISTANT, event.output


def _text(role: str, said: Any) -> str:
    if not role:
        return message_text(shown_prompt(said["prompt"]))
    if role == _USER or not isinstance(said, dict):
        return message_text(said)
    data = said.get("data")
    return said.get("text") or (message_text(data) if said.get(ENDS) and data is not None else "")
