"""The shape of a saga with an agent, for the golden logs of make.py."""

from __future__ import annotations

from baton.core.log import events as ev
from tests.core.build import Saga, failed
from tests.core.nodes.thinking import answered, call, outcome, refused, thinking


def thought() -> Saga:
    """Calls that are made, repeated, refused and failed; a segment; an end, and a fork to a call that was under way before."""
    saga = thinking(more=", instructions: Be brief.")
    saga.go(answered("a#t1", call("look", n=1), call("look", n=1), refused("look"), call("t")))
    saga.go(outcome("a#t1-0", {"free": True}))
    saga.go(answered("a#t2", call("pay", n=1), call("roll")))
    saga.go(failed("a#t2-0", "business_rule"), running=["a#t2-1"])
    saga.go(outcome("a#t2-1", 6))
    saga.go(answered("a#t3", call("roll"), segments=[["cas://sha256/9", 1]]))
    cut = saga.state.version
    saga.go(outcome("a#t3-0", 1))
    saga.go(answered("a#t4", data={"table": 4}))
    saga.put(ev.Forked(cut=cut, branch=1, by="ada", at=saga.now), epoch=0)
    saga.go()
    return saga
