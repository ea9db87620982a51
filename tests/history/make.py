"""Writes golden logs (`python -m tests.history.make`): for each shape a `.jsonl` with one stored entry per line, and the state it folds to.

It adds shapes that have no log yet, and never writes one again; `--states` writes the expected states anew."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from baton.core.conditions import SandboxAnswer
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.graph.graph import Cap
from baton.core.log import events as ev
from baton.core.log.codec import decode_entry, encode_entry
from baton.core.log.events import Entry
from baton.core.log.records import Child, Shown
from baton.core.log.state import ANSWER, State
from baton.core.nodes.registry import KINDS
from tests.core.asked import questions_of
from tests.core.build import (
    Saga,
    chain,
    child,
    done,
    failed,
    interrupted,
    program,
    replay,
    task,
    tool_spec,
    wait,
)
from tests.history.again import OF_AGAIN
from tests.history.approvals import approved
from tests.history.callbacks import OF_CALLBACKS
from tests.history.ending import ended
from tests.history.functions import OF_FUNCTIONS
from tests.history.holding import held, short
from tests.history.mapping import OF_MAPS
from tests.history.questions import OF_QUESTIONS
from tests.history.replanning import replanned
from tests.history.thinking import OF_THINKING
from tests.history.undoing import OF_UNDOING
from tests.history.units import OF_UNITS

HERE = Path(__file__).parent


def _chain() -> Saga:
    first = {"city": "${input.city}"}
    nodes = (
        task("search", arguments=first),
        task("hold", "search", arguments={"t": "${ctx.search.output.id}"}),
    )
    saga = Saga(program(*nodes, task("confirm", "hold"), output="${ctx.confirm.output}"), {"city": "Wien"})
    saga.go(done("search", {"id": "t-1", "seats": 4}))
    saga.go(done("hold", None))
    saga.go(done("confirm", "C-77"))
    return saga


def _diamond() -> Saga:
    saga = Saga(program(task("a"), task("b", "a"), task("c", "a"), task("d", "b", "c")), [1, 2.5, None])
    saga.go(done("a"))
    saga.go(done("c"), running=["b"])
    return saga


def _skipped() -> Saga:
    saga = Saga(program(task("a"), task("b"), task("c", "a"), task("d", "b", "c")), dead=["a"])
    saga.go()
    saga.go(done("b"))
    return saga


def _waits() -> Saga:
    nodes = wait("pause", ms=60_000), wait("yes", signal="yes"), wait("maybe", signal="maybe", ms=1_000)
    saga = Saga(
        program(*nodes, task("a", "pause", "yes"), wait("later", "a", signal="later"), wait("x", signal="x"))
    )
    saga.go()
    saga.signal("later", {"early": True}, "k0")
    saga.signal("yes", {"by": "ada"}, "k1")
    saga.signal("yes", {"by": "again"}, "k1")
    saga.go(after_ms=2_000)
    saga.go(after_ms=60_000)
    saga.go(done("a"))
    return saga


def _children() -> Saga:
    saga = Saga(
        program(child("c", arguments={"n": "${input}"}), child("d"), task("a", "c"), child("e", "a")), 3
    )
    saga.go()
    reports = (
        ev.ChildReported(slot="c", child="s1.0.c", status="completed", output=ev.Value(v={"n": 4})),
        ev.ChildReported(slot="d", child="s1.0.d", status="failed", failure=ev.Failure("x", "no table", "t")),
    )
    saga.put(reports[0], epoch=0, invocation="relay")
    saga.go()
    saga.go(done("a"))
    saga.put(reports[1], epoch=0, invocation="relay")
    return saga


def _windows() -> Saga:
    """A child with children: in a window, numbered over its branches, told by its own worker."""
    saga = Saga(program(child("c"), child("d"), task("a", "c")), parent="T#acme#SAGA#p", slot="x", window=2)
    saga.go()
    saga.put(ev.ChildReported(slot="c", child="s1.0.c", status="completed", output=ev.Value(v=4), cost=7))
    saga.go()
    saga.put(ev.Forked(cut=2, branch=1, by="ada", at=saga.now), epoch=0, invocation="api")
    saga.put(ev.ChildOpened(node="c", child="s1.1.c", workflow="w", input=ev.Value(), number=64))
    return saga


def _cancelled() -> Saga:
    saga = Saga(program(task("a"), task("b", "a")))
    saga.cancel(grace_ms=30_000)
    saga.go(running=["a"])
    saga.cancel(grace_ms=0)
    saga.go(done("a"))
    return saga


def _failed() -> Saga:
    saga = Saga(program(task("a"), task("b")))
    saga.go(failed("a", "timeout"), running=["b"])
    saga.go(done("b"))
    return saga


def _failing() -> Saga:
    saga = Saga(program(task("a"), task("b")))
    saga.go(failed("a", "timeout"), running=["b"])
    return saga


def _revived() -> Saga:
    saga = Saga(chain(3))
    saga.go(interrupted("n0"))
    saga.die()
    saga.go(done("n0"))
    saga.die()
    saga.go(interrupted("n1"))
    return saga


def _parked() -> Saga:
    saga = Saga(program(task("a"), task("b")))
    for _ in range(3):
        saga.die()
    saga.go()
    saga.put(ev.Resumed(by="ada", at=saga.now), epoch=0, invocation="api")
    saga.go(interrupted("b"))
    saga.go(interrupted("b"))
    saga.go(interrupted("b"))
    return saga


def _recovered() -> Saga:
    """Entries 3 and 4 cannot be read: it goes on from 2. Behind the cut, a child began and a caller cancelled."""
    saga = Saga(program(task("a"), wait("w", "a", signal="s"), child("c", "a"), task("b", "w", "c")))
    saga.go(done("a", 1))
    saga.go(done("a", 2))
    saga.signal("s", None, "k1")
    begun = Child(saga="s1.0.x", workflow="w", input=ev.Value())
    reason = "an entry does not decode"
    recovery = ev.WorkflowRecovered(
        reason=reason,
        first=3,
        last=4,
        signals=("s",),
        children=(begun,),
        spent=7,
        shown={"b": Shown(to="user:ada")},
    )
    saga.put(recovery, ev.Forked(cut=2, branch=1, by="worker", at=saga.now, reason=reason), epoch=0)
    saga.signal("s", None, "k1")
    saga.go()
    cancel = ev.CancelRequested(reason="enough", by="ada", at=saga.now, grace_ms=0)
    again = ev.WorkflowRecovered(reason=reason, first=6, last=6, steps=("b",), cancel=cancel)
    saga.put(again, ev.Forked(cut=5, branch=2, by="ada", at=saga.now, reason=reason), epoch=0)
    end = ev.SagaEnded(status="cancelled")
    last = ev.WorkflowRecovered(reason=reason, first=8, last=8, ended=end)
    saga.put(last, ev.Forked(cut=saga.state.version, branch=3, by="ada", at=saga.now, key="k"), epoch=0)
    return saga


def _patched() -> Saga:
    """Its graph changes twice, and once more in the entry of a fork. A repeated key changes nothing."""
    first = program(task("a"), task("b", "a"), task("c", "b"))
    saga = Saga(first)
    saga.go(done("a", 1))
    other = program(task("a"), task("b", "a"), task("x", "b", arguments={"of": "${ctx.a.output}"}))
    patch = ev.GraphChanged(
        graph="h2",
        workflow="w",
        document="d2",
        by="ada",
        at=saga.now,
        reason="a wrong tool",
        key="p1",
        patch=ev.Value(v=[{"op": "remove", "path": "/nodes/c"}]),
        outputs={"a": ev.Value(v=1)},
        counts=("b",),
    )
    saga.put(patch, epoch=0, invocation="api")
    saga.put(patch, epoch=0, invocation="api")
    saga.program = other
    saga.go(done("b", 2))
    moved = ev.GraphChanged(graph="h3", workflow="w@3", by="ada", at=saga.now, renamed={"x": "y", "b": "z"})
    saga.put(moved, epoch=0, invocation="api")
    saga.program = program(task("a"), task("z", "a"), task("y", "z", arguments={"of": "${ctx.a.output}"}))
    saga.go(done("y", 3))
    saga.program = first
    fork = ev.Forked(cut=2, branch=1, by="ada", at=saga.now)
    saga.put(
        fork, ev.GraphChanged(graph="h4", workflow="w", by="ada", at=saga.now), epoch=0, invocation="api"
    )
    saga.go(done("b", 4))
    return saga


def _forked() -> Saga:
    saga = Saga(
        program(task("a"), wait("w", "a", signal="s"), task("b", "w", arguments={"x": "${ctx.a.output}"}))
    )
    saga.go(done("a", 1))
    saga.signal("s", None, "k1")
    saga.go()
    saga.go(failed("b"))
    saga.put(ev.Forked(cut=2, branch=1, by="ada", at=saga.now, reason="once more"), epoch=0, invocation="api")
    saga.signal("s", None, "k2")
    saga.go()
    saga.put(ev.Forked(cut=1, branch=2, by="ada", at=saga.now), epoch=0, invocation="api")
    saga.go(interrupted("a"))
    return saga


def _forked_with_changes() -> Saga:
    """A fork with other values and new keys, and then the fork that begins a new saga's own part of a log."""
    saga = Saga(chain(3, x="${input}", y="${ctx.n0.output}"), given=1, source="s0")
    saga.go(done("n0", 1))
    saga.go(done("n1"))
    changes = (
        ev.Forked(cut=2, branch=1, by="ada", at=saga.now, key="k1", asked="0a"),
        ev.ValueChanged(value=ev.Value(v=2)),
        ev.ValueChanged(node="n0", value=ev.Value(v=3)),
        ev.Repeats(slots=("n1", "n2#0")),
    )
    saga.put(*changes, epoch=0, invocation="api")
    saga.go(done("n1"))
    saga.put(ev.Forked(cut=5, branch=2, by="ada", at=saga.now, source="s0"), epoch=0, invocation="api")
    saga.go(done("n2"))
    return saga


def _left() -> Saga:
    """Forks that leave a child behind: one that is cancelled, and one that is still to be."""
    saga = Saga(program(task("a"), child("c", "a"), child("d"), task("z", "c", "d")), depth=1)
    saga.go()
    saga.go(done("a"))
    saga.put(ev.Forked(cut=2, branch=1, by="ada", at=saga.now, key="k1"), epoch=0, invocation="api")
    saga.go()
    saga.put(ev.Forked(cut=1, branch=2, by="ada", at=saga.now, key="k2"), epoch=0, invocation="api")
    return saga


def _abandoned() -> Saga:
    """A saga that is about to end, with some of its children asked to stop: one of those has completed meanwhile."""
    saga = Saga(program(child("c"), child("d"), child("e"), task("z", "c", "d", "e")))
    saga.go()
    c, d = saga.state.children["c"], saga.state.children["d"]
    saga.cancel()
    saga.put(ev.ChildReported(slot="d", child=d.saga, status="completed", output=ev.Value(v=1)), epoch=0)
    saga.put(ev.ChildrenAbandoned(children=(c.saga, d.saga)))
    return saga


def _killed() -> Saga:
    """A saga that was parked for its money, cancelled nevertheless, and parked again because its workers died then."""
    saga = Saga(program(task("a"), child("c"), child("d"), task("z", "c", "d")))
    saga.go()
    saga.put(ev.Parked(code="budget_saga", message="all is spent", node="a"))
    saga.cancel()
    saga.die()
    saga.put(ev.ChildrenAbandoned(children=(saga.state.children["c"].saga,)))
    for _ in range(3):
        saga.die()
    saga.go()
    return saga


def _gave_up() -> Saga:
    """An invocation that could not give its lease back said so, and its heir went on without a death."""
    saga = Saga(chain(2))
    saga.go(done("n0"))
    saga.put(ev.GaveUp())
    saga.epoch += 1
    saga.go(done("n1"))
    return saga


def _blobs() -> Saga:
    reads = {"x": "${ctx.a.output}", "y": "${input}"}
    saga = Saga(
        program(task("a"), task("b", "a", arguments=reads)), ev.Value(ref="cas://sha256/00", size=70_000)
    )
    saga.go(done("a", ref="cas://sha256/11"))
    return saga


def _rounds() -> Saga:
    """Tokens of several rounds of a loop, as later versions write them."""
    saga = Saga(program(task("a"), task("b", "a")))
    common: dict[str, Any] = {"attempt": 1, "output": ev.Value(v=1), "started_at": 1, "ended_at": 2}
    common |= {"tool": "t", "tool_version": "1", "schema_hash": "h"}
    saga.put(
        ev.StepSucceeded(node="a", emits=(ev.Token("a", "a", (0,)), ev.Token("a", "b", (), False)), **common)
    )
    again = ev.Token("a", "a", (1,))
    saga.put(ev.StepSucceeded(node="a", iteration=(0,), emits=(again, ev.Token("a", "b", (0,))), **common))
    saga.put(ev.NodeSkipped(node="b", forget=("a",)))
    return saga


def _limits() -> Saga:
    """Something of all that is counted, a summary, a time, and the end of the saga."""
    caps = {"bytes": Cap(most=1_000, then="summarise"), "cost": Cap(most=9), "hops": Cap(most=9)}
    timed = {"wall_time": Cap(most=60_000), "hops": Cap(most=9, then="throttle")}
    of = program(
        task("a"), task("b", "a", limits=timed, arguments={"id": "${ctx.a.output.id}"}), child("c", "a")
    )
    saga = Saga(Program(msgspec.structs.replace(of.graph, limits=caps), KINDS))
    saga.go(replace(done("a", {"id": 1, "rows": [{"n": number} for number in range(300)]}), cost=1))
    saga.put(ev.ChildReported(slot="c", child=saga.state.children["c"].saga, status="completed", cost=2))
    saga.go(replace(interrupted("b"), cost=3))
    saga.go(replace(done("b"), cost=4))
    return saga


ROUTES = """
name: routes
nodes:
  a:
    tool: t
    with: {x: '${ctx.a.previous}'}
    loop: {while: 'output.n < 2', max_iterations: 3, break_path: b, timeout_path: z}
  b: {value: '${ctx.a.output.n}', branch: {rules: [{if: 'output > 1', then: c}], default: z}}
  c: {tool: t}
  d: {tool: t, after: b}
  w: {wait: {signal: never}, after: b}
  j: {tool: t, after: [c, w], join: any}
  k: {value: '${join.errors[0].code}', after: [c, d], join: {tolerated_failures: 1}}
  p: {tool: t, after: [j, k], when: {python: 'def evaluate(output, context): return True'}}
  z: {tool: t}
"""


def _routes() -> Saga:
    """A loop, a branch, a join that fires early and one that tolerates a failure, and an answer of Python."""
    saga = Saga(Program(compile_document(ROUTES, {"t": tool_spec("t", x={})}), KINDS))
    saga.go()
    saga.go(done("a@0", {"n": 1}))
    saga.go(done("a@1", {"n": 2}))
    saga.go(failed("d"), running=["c"])
    saga.go(done("c", 3))
    decision = saga.go(done("j", 4))
    saga.go(answers={question.key: SandboxAnswer(value=True) for question in questions_of(decision)})
    saga.go(done("p", 5))
    return saga


ATTEMPTS = """
name: attempts
on_failure:
  timeout: {retry: quick}
  login_required: {at_most: {ask_user: 1}}
  tool_error: {ladder: [escalate, rollback]}
  sold_out: rollback
nodes:
  a: {tool: t}
  b: {tool: t, after: a, with: {x: 1}, catch: {code: sold_out, then: c}}
  c: {tool: t}
  d: {tool: t, after: b}
  e: {tool: t, after: a}
"""


def _attempts() -> Saga:
    """A retry, a question with an answer, one without, an incident, and a failure that is caught."""
    saga = Saga(Program(compile_document(ATTEMPTS, {"t": tool_spec("t", x={})}), KINDS))

    def answer(action: str, **more: Any) -> None:
        ask = next(failing.ask for failing in saga.state.failing.values() if failing.ask is not None)
        said = ev.Value(v={"ask": ask.id, "action": action, **more})
        event = ev.SignalReceived(name=ANSWER, key=f"{ask.id}/k", payload=said, by="bob", at=saga.now)
        saga.put(event, epoch=0, invocation="api")

    saga.go()
    saga.go(failed("a", "timeout"))
    saga.go(replace(done("a"), attempt=2), after_ms=1_000)
    saga.go(failed("b", "login_required"), running=["e"])
    saga.tell()
    answer("retry", arguments={"x": 2})
    saga.go(running=["e"])
    saga.go(failed("e"), running=["b"])
    saga.tell()
    answer("use", output={"n": 1})
    saga.go()
    saga.go(replace(failed("b", "sold_out"), attempt=2))
    saga.go(failed("c", "login_required"))
    saga.tell()
    saga.go(after_ms=86_400_000)
    return saga


SHAPES: dict[str, Callable[[], Saga]] = {
    "chain": _chain,
    "diamond": _diamond,
    "skipped": _skipped,
    "waits": _waits,
    "children": _children,
    "windows": _windows,
    "cancelled": _cancelled,
    "failed": _failed,
    "failing": _failing,
    "revived": _revived,
    "parked": _parked,
    "forked": _forked,
    "forked-with-changes": _forked_with_changes,
    "left": _left,
    "abandoned": _abandoned,
    "killed": _killed,
    "gave-up": _gave_up,
    "blobs": _blobs,
    "rounds": _rounds,
    "limits": _limits,
    "routes": _routes,
    "attempts": _attempts,
    "held": held,
    "short": short,
    "ended": ended,
    **OF_CALLBACKS,
    **OF_AGAIN,
    **OF_QUESTIONS,
    "approved": approved,
    **OF_UNDOING,
    **OF_MAPS,
    **OF_FUNCTIONS,
    **OF_UNITS,
    **OF_THINKING,
    "replanned": replanned,
    "recovered": _recovered,
    "patched": _patched,
}


def read_log(shape: str) -> list[Entry]:
    return list(map(decode_entry, (HERE / f"{shape}.jsonl").read_bytes().splitlines()))


def state_as_text(state: State) -> str:  # for people and for diffs: what is not its default, one field a line
    return json.dumps(msgspec.to_builtins(state), indent=1, sort_keys=True) + "\n"


def make(shapes: Sequence[str], *, states: bool) -> list[str]:
    """Write what is missing, and with `states` every expected state. Returns the names of the files."""
    written: list[str] = []
    for shape in shapes:
        log, state = (HERE / f"{shape}.{kind}" for kind in ("jsonl", "state.json"))
        if not log.exists():
            log.write_bytes(b"".join(encode_entry(entry) + b"\n" for entry in SHAPES[shape]().entries))
            written.append(log.name)
        if states or not state.exists():
            state.write_text(state_as_text(replay(read_log(shape))), encoding="utf-8")
            written.append(state.name)
    return written


if __name__ == "__main__":
    print("written:", ", ".join(make(list(SHAPES), states="--states" in sys.argv[1:])) or "nothing")  # noqa: T201  # a command
