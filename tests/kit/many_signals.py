"""A log that is long without anything in it being done: signals, as callers put them."""

from __future__ import annotations

from baton.core.log.events import SignalReceived, Value
from baton.ports import SagaRef
from baton.runtime.engine.parts import Engine, InvocationScope
from baton.runtime.invocation.context import Invocation
from baton.runtime.log.history import History


async def add_news(engine: Engine, ref: SagaRef, entries: int) -> None:
    """So many entries more."""
    now = engine.clock.now()
    scope = InvocationScope(engine, Invocation("caller-1", now, now + 60_000))
    head = await scope.call(scope.log.read_head, ref)
    assert head is not None
    history = History(scope.log, scope.blobs, scope.call, ref)
    await history.load(head)
    for number in range(entries):
        said = Value(v={"number": number, "words": "news of the evening"})
        signal = SignalReceived(name=f"news_{number}", key=f"{number}", payload=said, by="ada", at=now)
        assert await history.append(history.next_entry((signal,), at=now, invocation="caller-1", epoch=0))
