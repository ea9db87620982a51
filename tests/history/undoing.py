"""The shape of a saga that is undone, for the golden logs of make.py."""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.failures.policy import ANY, FAIL, PolicyChange, RetryChange
from baton.core.graph.graph import Join, Node, Undo
from baton.core.log import events as ev
from tests.core.build import Saga, child, done, failed, program, task
from tests.core.undo_asking import say


def undone() -> Saga:
    """Of three steps one is undone at its second attempt, one is not, and nothing undoes the third; the operator lets it be tried once more."""
    retry = PolicyChange(last=FAIL, retry=RetryChange(max_attempts=2))
    arguments = {"id": "${step.output.id}", "city": "${step.input.city}"}
    inverse = Node(name="a", kind="task", tool="cancel", arguments=arguments, failures={ANY: retry})
    a = replace(task("a", arguments={"city": "Wien"}), undo={"t": Undo(step=inverse, keeps=("city",))})
    c = replace(task("c", "b"), undo={"t": Undo(step=replace(inverse, name="c", arguments={}))})
    saga = Saga(program(a, task("b", "a"), c, task("d", "c")))
    saga.go(replace(done("a", {"id": "t-1"}), kept=ev.Value(v={"city": "Wien"})))
    for slot in ("b", "c"):
        saga.go(done(slot, {"id": slot}))
    saga.go(failed("d", "sold_out"))
    saga.go(failed("c#undo", "gone", "permanent"))
    saga.go(failed("a#undo", "unavailable", "transient"))
    saga.go(done("a#undo", attempt=2), after_ms=60_000)
    again = ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now, undo=True, reason="once more")
    saga.put(again, epoch=0, invocation="api")
    saga.go()
    saga.go(done("c#undo"))
    return saga


def undone_child() -> Saga:
    """A child that has completed undoes what it has done, and then its parent does."""
    retry = PolicyChange(last=FAIL, retry=RetryChange(max_attempts=1))
    inverse = Node(name="a", kind="task", tool="cancel", arguments={}, failures={ANY: retry})
    a = replace(task("a"), undo={"t": Undo(step=inverse)})
    saga = Saga(program(a, child("b", "a"), task("c", "b")))
    saga.go(done("a"))
    opened = saga.state.children["b"]
    saga.put(ev.ChildReported(slot="b", child=opened.saga, status="completed", undoable=True))
    saga.go()
    saga.go(failed("c", "sold_out"))
    saga.put(ev.ChildUndone(node="b", item="undo", child=opened.saga, cost=3))
    saga.go()
    saga.go(done("a#undo"))
    return saga


def set_aside() -> Saga:
    """What could not be undone was set aside in the log, and is taken up again; of another step it is not known whether it has happened."""
    retry = PolicyChange(last=FAIL, retry=RetryChange(max_attempts=1))
    inverse = Node(
        name="a", kind="task", tool="cancel", arguments={"id": "${step.output.id}"}, failures={ANY: retry}
    )
    a = replace(task("a"), undo={"t": Undo(step=inverse)})
    b = replace(task("b", "a"), undo={"t": Undo(step=replace(inverse, name="b"), keeps=("city",))})
    saga = Saga(program(a, b))
    saga.go(done("a", {"id": "t-1"}))
    saga.go(replace(failed("b", "timeout"), kept=ev.Value(v={"city": "Wien"})))
    say(saga, "b#undo", "use", output={"id": "t-2"})
    saga.go(failed("b#undo", "gone", "permanent"))
    saga.put(ev.UndoSetAside(steps=saga.state.undo.failed))
    saga.go(done("a#undo"))
    again = ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now, undo=True, reason="once more")
    saga.put(again, epoch=0, invocation="api")
    saga.go()
    say(saga, "b#undo", "retry")
    return saga


def stopped() -> Saga:
    """A join stops a step while it acts: when the saga is undone, a person is asked about it."""
    retry = PolicyChange(last=FAIL, retry=RetryChange(max_attempts=1))
    inverse = Node(name="b", kind="task", tool="cancel", arguments={}, failures={ANY: retry})
    b = replace(task("b", arguments={"city": "Wien"}), undo={"t": Undo(step=inverse, keeps=("city",))})
    saga = Saga(program(b, task("c"), task("d", "b", "c", join=Join(need=1)), task("e", "d")))
    saga.go()
    saga.go(done("c"), running=["b"])
    saga.go(done("d"))
    saga.go(failed("e", "sold_out"))
    say(saga, "b#undo", "retry")
    return saga


def stopped_child() -> Saga:
    """Two children lose a race to a step. When the saga is undone, one has done nothing, and the other undoes what it has done."""
    race = Join(need=1, rest="cancel")
    saga = Saga(
        program(task("a"), child("b"), child("c"), task("d", "a", "b", "c", join=race), task("e", "d"))
    )
    saga.go()
    saga.go(done("a"))
    saga.go(done("d"))
    saga.go(failed("e", "sold_out"))
    saga.put(ev.ChildUndone(node="c", item="undo", child="s1.0.c", nothing=True))
    saga.go()
    saga.put(ev.ChildUndone(node="b", item="undo", child="s1.0.b", cost=2))
    saga.go()
    return saga


OF_UNDOING = {
    "undone": undone,
    "undone-child": undone_child,
    "undone-aside": set_aside,
    "undone-stopped": stopped,
    "undone-stopped-child": stopped_child,
}
