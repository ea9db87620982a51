"""What became of each node before a join, for the join itself and for what catches its failure."""

from __future__ import annotations

from typing import Any

from baton.core.conditions.model import Cel
from baton.core.decide.program import Program
from baton.core.graph.graph import Catch, Graph, Join, Node
from baton.core.log import events as ev
from baton.core.nodes.registry import KINDS
from tests.core.build import AT_ONCE, Saga, done, failed
from tests.core.compiling import told
from tests.kit.sentences import Says

NAMES = ("a", "b", "c", "d")
BATCH = "${join.batch}"


def joined(join: Join, value: Any, *, handler: Any = None) -> Saga:
    """Four tasks before a join `j`, the last of which is skipped; `h` catches the failure of the join."""
    before = [Node(name=name, kind="task", tool="t", arguments={}, after=("j",)) for name in NAMES]
    before[3] = Node(
        name="d", kind="task", tool="t", arguments={}, after=("j",), when=Cel(expression="false")
    )
    catch = (Catch(then=("h",)),) if handler is not None else ()
    j = Node(
        name="j",
        kind="pass",
        before=NAMES,
        value=value,
        join=join,
        catch=catch,
        after=("h",) if catch else (),
    )
    nodes = [*before, j, *([Node(name="h", kind="pass", before=("j",), value=handler)] if catch else [])]
    output = "${ctx.h.output?}" if catch else "${ctx.j.output}"
    saga = Saga(Program(Graph(name="w", nodes=tuple(nodes), output=output, failures=AT_ONCE), KINDS), {})
    saga.go()
    return saga


def result(saga: Saga) -> Any:
    assert saga.state.ended is not None
    return saga.state.ended.output.v


def test_a_join_reads_what_became_of_each_node() -> None:
    saga = joined(Join(tolerated=1), BATCH)
    saga.go(done("a", {"n": 1}), running=["b", "c"])
    saga.go(failed("b", "sold_out"), running=["c"])
    saga.go(done("c", 3))
    assert result(saga) == {
        "succeeded": 2,
        "failed": 1,
        "stopped": 0,
        "not_begun": 1,
        "results": {
            "a": {"status": "succeeded", "output": {"n": 1}},
            "b": {"status": "failed", "error": {"code": "sold_out", "message": "it broke"}},
            "c": {"status": "succeeded", "output": 3},
            "d": {"status": "not_begun"},
        },
    }


def test_what_has_not_ended_when_it_fires_is_stopped() -> None:
    saga = joined(Join(need=1), BATCH)
    saga.go(done("b", 2), running=["a", "c"])
    saga.go()
    fates = {name: one["status"] for name, one in result(saga)["results"].items()}
    assert fates == {"a": "stopped", "b": "succeeded", "c": "stopped", "d": "not_begun"}


def test_what_catches_its_failure_reads_it_too_without_outputs() -> None:
    saga = joined(Join(tolerated=1), 1, handler="${last_error.batch}")
    saga.go(failed("a"), running=["b", "c"])
    saga.go(done("c", 3), running=["b"])
    saga.go(failed("b"))
    found = result(saga)
    assert (found["failed"], found["succeeded"], found["results"]["c"]) == (2, 1, {"status": "succeeded"})


def test_a_failure_carries_it_only_where_it_is_read() -> None:
    saga = joined(Join(tolerated=0, rest="run"), 1, handler="${last_error.code}")
    saga.go(failed("a"), running=["b", "c"])
    failures = [
        event.failure for one in saga.entries for event in one.events if isinstance(event, ev.StepFailed)
    ]
    assert failures
    assert [one.batch for one in failures] == [None] * len(failures)


def test_the_compiler_knows_its_parts(says: Says) -> None:
    nodes = "a: {}, b: {}, c: {after: [a, b], join: 1, value: '${join.batch.%s}'}"
    assert told(nodes % "results.a.status") == []
    says([message for _, message, _ in told(nodes % "results.x")])
