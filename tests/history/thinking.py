"""The shapes of sagas with an agent, for the golden logs of make.py."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from baton.core.decide.outcomes import Outcome
from baton.core.decide.program import Program
from baton.core.graph.graph import Graph
from baton.core.log import events as ev
from baton.core.log.folding.received import callback_of
from baton.core.log.records import Response, Segment
from baton.core.models.usage import Usage
from baton.core.nodes.registry import KINDS
from tests.core.build import AT_ONCE, Saga, failed
from tests.core.nodes.members import Played, agent_of, leaf
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


def pondered() -> Saga:
    """Turns whose requests a provider works on: one has its answer, and one begins with a summary of what was said."""
    saga = thinking(more=", background: true, summarise: {}")
    saga.go(_handed(saga, "a#t1", Response(id="resp_1", model="m", held=90, day=20_000), cost=90, assumed=90))
    saga.go(replace(answered("a#t1", call("look", n=1)), callback="0.a#t1.1", cost=-70, assumed=-90))
    saga.go(outcome("a#t1-0", {"free": True}))
    cut = Response(
        id="resp_2",
        model="m",
        held=90,
        day=20_000,
        segments=(Segment("cas://sha256/9", 1),),
        summary=(320,),
    )
    wrote = (Usage(model="s", input=300, output=20, cost=50),)
    saga.go(_handed(saga, "a#t2", cut, cost=140, assumed=90, usage=wrote))
    return saga


def _handed(saga: Saga, slot: str, response: Response, **more: Any) -> Outcome:
    callback = callback_of(saga.state, slot)
    return outcome(slot, None, handed=callback, response=response, **more)


def members() -> Saga:
    """Calls of other kinds than tools: a question, a wait for a time and one for a signal, and a child."""
    calls = [leaf(name, {"tool": name}) for name in ("question", "time", "signal", "child")]
    graph = Graph(name="w", nodes=(agent_of(*calls),), output="${ctx.a.output}", failures=AT_ONCE)
    return Played(Program(graph, KINDS)).play()


def talked() -> Saga:
    """A conversation that hears two messages at once, and is ended by a person before a third."""
    saga = thinking(more=", conversation: {idle: 3h}")
    saga.go(answered("a#t1", data="hello"))
    saga.signal("message", "one", "k1")
    saga.signal("message", "two", "k2")
    saga.go(after_ms=1_000)
    saga.go(answered("a#t2", data="yes"))
    failure = ev.failed_with("conversation_ended", "the conversation was ended")
    end = ev.SignalReceived(
        name="message", key="k3", payload=ev.Value(), by="ada", at=saga.now, failure=failure
    )
    saga.put(end, epoch=0, invocation="api")
    saga.signal("message", "three", "k4")
    saga.go(after_ms=1_000)
    return saga


OF_THINKING = {"thought": thought, "pondered": pondered, "members": members, "talked": talked}
