"""The golden logs of work elsewhere."""

from __future__ import annotations

from baton.core.log import events as ev
from tests.core.build import Saga
from tests.core.nodes.handing import HOUR, MINUTE, SKEW, beat, compiled, hand_over, handed, say

_MORE = "\n  b: {tool: print, callback: 2h}\n  c: {tool: print, callback: 1h, after: b}"


def callbacks() -> Saga:
    """Work that fails, is silent and is done at last, with a heartbeat; work that is done early; and work under way."""
    saga = Saga(compiled(more=_MORE + "\n  then: {tool: t, after: a}\n  no: {value: 1}", skew=0))
    saga.go()
    hand_over(saga)
    say(saga, code="server_error", message="Out of order.")
    saga.go(after_ms=MINUTE)
    saga.go(after_ms=MINUTE)
    hand_over(saga)
    saga.go(after_ms=4 * MINUTE)
    beat(saga, "0.a.2")
    saga.go(after_ms=5 * MINUTE)
    saga.go(after_ms=MINUTE)
    hand_over(saga)
    say(saga, output={"pages": 3})
    said = ev.SignalReceived(name=":callback", key="0.b.1", payload=ev.Value(v=1), by="c", at=saga.now)
    saga.put(said, epoch=0)
    saga.go(handed(saga, "b"))
    saga.go(handed(saga, "c"))
    saga.go(after_ms=HOUR // 2)
    return saga


def silent() -> Saga:
    """Work whose silence is judged with the clocks in mind: the first is silent for too long, the second has been heard."""
    saga = Saga(compiled())
    saga.go()
    hand_over(saga)
    saga.go(after_ms=5 * MINUTE)
    saga.go(after_ms=SKEW)
    saga.go(after_ms=MINUTE)
    hand_over(saga)
    saga.go(after_ms=4 * MINUTE)
    beat(saga, "0.a.2")
    saga.go(after_ms=4 * MINUTE)
    return saga


OF_CALLBACKS = {"callbacks": callbacks, "silent": silent}
