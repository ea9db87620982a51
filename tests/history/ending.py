"""The shape of a saga with an early end, for the golden logs of make.py."""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.graph.graph import Catch, Node
from baton.core.log import events as ev
from tests.core.build import Saga, program, task, wait


def ended() -> Saga:
    """A wait that fails by its signal, then an end while a step still runs."""
    pause = replace(wait("sent", signal="sent"), catch=(Catch(codes=("courier_lost",), then=("early",)),))
    early = Node(name="early", kind="end", before=("sent",), value={"why": "${last_error.code}"})
    saga = Saga(program(pause, task("b"), early, output=1))
    saga.go()
    lost, none = ev.Failure("courier_lost", "the courier is lost"), ev.Value()
    signal = ev.SignalReceived(name="sent", key="k0", payload=none, failure=lost, by="ada", at=saga.now)
    saga.put(signal, epoch=0, invocation="api")
    saga.go(running=["b"])
    saga.put(replace(signal, key="k1"))
    return saga
