"""The shape of a saga with a step that a model puts something else in the place of, for the golden logs of make.py."""

from __future__ import annotations

from baton.core.log import events as ev
from tests.core.asked import steps_of
from tests.core.build import Saga, failed
from tests.core.nodes.replans import broken, outcome, plan, step, way


def replanned() -> Saga:
    """An alternative that fails after a call of it, one that repeats that call, none that is left; and a fork to the plan."""
    saga = broken(more=", steps: 2")
    lost = step("other", n={"$from": 0, "at": "/n"})
    saga.go(plan(way(step("third", n=1), lost), way(step("third", n=1), step("roll"))))
    cut = saga.state.version
    (first,) = steps_of(saga.decision)
    saga.go(outcome("a#a1-1", "held", digest=first.digest))
    saga.go(failed("a#a1-2", "business_rule"))
    saga.go(failed("a#a2-2", "bad_request"))
    saga.cancel()
    saga.go()
    saga.put(ev.Forked(cut=cut, branch=1, by="ada", at=saga.now), epoch=0)
    saga.go()
    return saga
