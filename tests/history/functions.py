"""Stored logs of functions: steps one after the other, one of which fails, and one that is left; and an update."""

from __future__ import annotations

from baton.core.log import events as ev
from tests.core.build import Saga, done, failed
from tests.core.nodes.test_function import asks, in_turn, node, reply, returns, saga_of, step


def function() -> Saga:
    """A payment, then a step that fails beside a wait that is left, then the end."""
    saga = saga_of(
        in_turn(
            asks(step("pay", "pay", given=ev.Value(v={"amount": 3}))),
            asks(step("send"), node("sleep", kind="wait", wait_ms=3_600_000)),
            asks(step("send-2", label="send#2", attempts=2), left=("sleep",)),
            returns({"sent": True}),
        )
    )
    saga.go()
    saga.go(done("a#pay", {"id": "p1"}))
    saga.go(failed("a#send", "sold_out", "permanent"))
    saga.go(done("a#send-2"))
    return saga


def answered() -> Saga:
    """An update that is answered, and the next one, which waits to be answered."""
    first, second = node("w", kind="wait", signal="s"), node("w-2", kind="wait", signal="s")
    saga = saga_of(
        in_turn(asks(first), asks(reply("k1", {"accepted": True})), asks(second), asks(step("send")))
    )
    saga.signal("s", {"city": "Bonn"}, "k1")
    saga.go()
    saga.signal("s", {"city": "Rome"}, "k2")
    saga.go()
    return saga


OF_FUNCTIONS = {"function": function, "answered": answered}
