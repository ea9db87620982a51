"""Pure steps share an entry: it is written before anything acts, waits or takes long, and nothing of it is trusted after a conflict."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from baton import Context, StepFailure, WorkflowContext, tool, workflow
from baton.core.decide.decide import Advance
from baton.core.decide.decision import Decision, RunStep, RunSteps
from baton.core.failures.alternatives import Alternative
from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.functions import FunctionCall, Heard, RunningFunction
from baton.core.log.slots import Slot
from baton.core.log.state import State
from baton.ports.functions import FunctionStep
from baton.runtime.worker.functions import _Live
from baton.runtime.worker.runner import _pure_next
from tests.kit.corpus import start
from tests.kit.faults import Crash, scripted
from tests.kit.process import RUNS_IN
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World
from tests.runtime.functions import Application, Result
from tests.runtime.test_functions import _Session

CHAIN = "abcdefghij"


@pytest.fixture
def app() -> Application:
    app = Application()

    @tool("add", registry=app.registry, effect="pure")
    async def add(n: int, seconds: float = 0.0) -> int:
        await asyncio.sleep(seconds)
        if (process := RUNS_IN.get()) is not None:
            process.check()
        app.calls.append(n)
        return n + 1

    @tool("tell", registry=app.registry, effect="pure")
    async def tell(what: Any = None, seconds: float = 0.0) -> None:
        await asyncio.sleep(seconds)
        app.calls.append(["told", what])

    @tool("long", registry=app.registry, effect="pure")
    async def long(after: str = "") -> str:
        app.calls.append(len(after))
        return "x" * 4_000

    @tool("fails", registry=app.registry, effect="pure")
    async def fails(n: int) -> int:
        app.calls.append(n)
        raise StepFailure("no_such_thing", "no", kind="permanent")

    @tool("kills", registry=app.registry, effect="pure")
    async def kills() -> None:
        if (process := RUNS_IN.get()) is not None:
            process.die()
        raise Crash

    @tool("costs", registry=app.registry, effect="pure")
    async def costs(n: int, context: Context) -> int:
        context.spend("0.01")
        app.calls.append(n)
        return n + 1

    return app


def chain(steps: str = CHAIN, last: str = "", **given: Any) -> str:
    """One step after the other, each with what the one before gave. Capital letters are steps that act."""
    nodes, before = [], "${input.n}"
    for name in steps:
        what = "count" if name.isupper() else "add"
        more = "".join(f", {key}: {value}" for key, value in given.items() if what == "add")
        after = f", after: {before[6]}" if before.startswith("${ctx") else ""
        nodes.append(f"  {name}: {{tool: {what}, with: {{n: '{before}'{more}}}{after}}}")
        before = f"${{ctx.{name}.output}}"
    if last:
        nodes.append(f"  last: {{{last}, after: {steps[-1]}}}")
    return "name: chain\non_failure: fail\nnodes:\n" + "\n".join(nodes)


def run(app: Application, document: str, plan: tuple[tuple[str, int, str], ...] = (), **world: Any) -> Result:
    async def main() -> Result:
        made = World(app.registry, plan=scripted(plan), **world)
        made.switch_on()
        saga = await start(made, document, {"n": 0}, "chain")
        await made.settle()
        return Result(made, saga, await made.queries_without_faults().show(saga))

    return run_virtual(main())


def slots(entry: ev.Entry) -> list[str]:
    return [one.node for one in entry.events if isinstance(one, ev.StepSucceeded)]


def test_ten_pure_steps_are_one_entry(app: Application) -> None:
    found = run(app, chain())
    assert (found.status, app.calls) == ("completed", list(range(10)))
    assert [slots(entry) for entry in found.entries] == [[], list(CHAIN)]


def test_what_acts_begins_when_the_pure_steps_before_it_are_written(app: Application) -> None:
    found = run(app, chain("abCdeFgh"))
    assert found.status == "completed"
    assert [slots(entry) for entry in found.entries[1:]] == [
        ["a", "b"],
        ["C"],
        ["d", "e"],
        ["F"],
        ["g", "h"],
    ], "an effect is in the log before the next step begins, pure or not"


def test_an_entry_waits_for_no_more_than_a_quarter_of_a_second(app: Application) -> None:
    found = run(app, chain(seconds=0.1))
    assert [slots(entry) for entry in found.entries[1:]] == [list("abc"), list("def"), list("ghi"), ["j"]]


def test_a_step_that_takes_long_is_begun_once_and_holds_up_no_entry(app: Application) -> None:
    found = run(app, chain("abc", seconds=0.6))
    assert [slots(entry) for entry in found.entries[1:]] == [["a"], ["b"], ["c"]]
    assert app.calls == [0, 1, 2]
    assert found.entries[2].at - found.entries[1].at < 700


def test_a_wait_is_written_with_the_steps_before_it(app: Application) -> None:
    found = run(app, chain("abc", "wait: {for: 5m}"))
    assert [slots(entry) for entry in found.entries[1:]] == [list("abc"), []]


def test_a_step_that_fails_is_written_with_those_before_it(app: Application) -> None:
    found = run(app, chain("abc", "tool: fails, with: {n: 7}"))
    assert found.status == "failed"
    assert [slots(entry) for entry in found.entries[1:]] == [list("abc")]
    assert found.failure.code == "no_such_thing"


def test_branches_beside_each_other_share_the_entry(app: Application) -> None:
    document = """
name: chain
nodes:
  a: {tool: add, with: {n: 1}}
  b: {tool: add, with: {n: '${ctx.a.output}', seconds: 0.05}, after: a}
  c: {tool: add, with: {n: '${ctx.a.output}'}, after: a}
  d: {tool: add, with: {n: '${ctx.c.output}'}, after: c}
  e: {tool: add, with: {n: '${ctx.b.output}'}, after: [b, d]}
"""
    found = run(app, document)
    assert [slots(entry) for entry in found.entries[1:]] == [list("acdbe")]


def test_a_loop_of_pure_steps_is_one_entry(app: Application) -> None:
    document = """
name: chain
nodes:
  a: {tool: add, with: {n: "${loop.iteration}"}, loop: {while: 'output < 10', max_iterations: 20}}
"""
    found = run(app, document)
    assert (found.status, len(found.entries)) == ("completed", 2)
    assert app.calls == list(range(10))


def test_a_cost_ends_the_run_and_is_kept_once(app: Application) -> None:
    document = """
name: chain
nodes:
  a: {tool: add, with: {n: 1}}
  b: {tool: costs, with: {n: 1}, after: a}
  c: {tool: add, with: {n: 1}, after: b}
  d: {tool: add, with: {n: 1}, after: c}
"""
    found = run(app, document)
    assert [slots(entry) for entry in found.entries[1:]] == [["a"], ["b"], ["c", "d"]]
    assert [one.cost for one in found.events if isinstance(one, ev.StepSucceeded)] == [0, 10_000, 0, 0]
    assert len(app.calls) == 4


@pytest.mark.parametrize("fate", ["hang", "late"])
def test_a_cost_is_kept_where_the_entry_before_it_gets_no_answer(app: Application, fate: str) -> None:
    document = """
name: chain
nodes:
  a: {tool: add, with: {n: 1}}
  b: {tool: costs, with: {n: 5}, after: a}
"""
    found = run(app, document, tuple(("write", write, fate) for write in (10, 11)))
    assert app.calls.count(5) == 2, "it ran ahead of an entry that did not come"
    assert sum(getattr(event, "cost", 0) for event in found.events) == 2 * 10_000


def test_the_steps_of_a_function_share_an_entry(app: Application) -> None:
    @workflow("sums", registry=app.registry)
    async def sums(context: WorkflowContext) -> int:
        n: int = 0
        for _ in range(10):
            n = await context.step("add", n)
        n = await context.step("count", n)
        for _ in range(10):
            n = await context.step("add", n)
        return int(n)

    found = app.run("sums")
    assert (found.status, found.output) == ("completed", 21)
    assert [len(slots(entry)) for entry in found.entries] == [0, 10, 1, 10]
    assert app.calls == list(range(21))


@pytest.mark.parametrize("fate", ["crash before", "crash after", "hang", "no answer", "late", "throttle"])
def test_a_run_that_its_entry_does_not_reach_is_made_again(app: Application, fate: str) -> None:
    calm = run(app, chain("abCdefGhi"))
    for write in range(5, 14):
        app.calls.clear()
        found = run(app, chain("abCdefGhi"), (("write", write, fate),))
        assert (found.status, found.output) == (calm.status, calm.output), f"write {write}"
        written = [name for entry in found.entries for name in slots(entry)]
        assert written == list("abCdefGhi")


def test_an_entry_that_is_full_is_written_and_each_step_runs_once(app: Application) -> None:
    steps = [
        f"  s{n}: {{tool: long, with: {{after: '${{ctx.s{n - 1}.output}}'}}, after: s{n - 1}}}"
        for n in range(1, 70)
    ]
    found = run(app, "name: chain\nnodes:\n  s0: {tool: long}\n" + "\n".join(steps))
    assert app.calls == [0, *[4_000] * 69]
    assert 3 <= len(found.entries) <= 6


def test_a_unit_of_a_pure_steps_work_is_written_with_what_came_before(app: Application) -> None:
    @tool("unites", registry=app.registry, effect="pure")
    async def unites(n: int, context: Context) -> int:
        async def plus() -> int:
            app.calls.append(["unit", n])
            return n + 1

        return int(await context.once("plus", plus))

    document = chain("abc") + "\n  u: {tool: unites, with: {n: '${ctx.c.output}'}, after: c}\n"
    document += "  z: {tool: add, with: {n: '${ctx.u.output}'}, after: u}"
    calm = run(app, document)
    assert app.calls == [0, 1, 2, ["unit", 3], 4]
    kinds = [
        [type(one).__name__ for one in entry.events if not isinstance(one, ev.SagaEnded)]
        for entry in calm.entries[1:]
    ]
    assert kinds == [["StepSucceeded"] * 3, ["UnitRecorded"], ["StepSucceeded"] * 2]
    for write in range(5, 10):
        for fate in ("crash before", "crash after", "late", "hang"):
            found = run(app, document, (("write", write, fate),))
            assert (found.status, found.output) == (calm.status, calm.output), (write, fate)


def test_items_that_find_no_room_in_the_entry_are_in_the_next(app: Application) -> None:
    over = str(list(range(70)))
    document = f"""
name: chain
nodes:
  first: {{tool: add, with: {{n: 1}}}}
  each: {{map: {{over: {over}, concurrency: 70}}, tool: long, after: first}}
"""
    found = run(app, document)
    assert found.status == "completed"
    assert app.calls == [1, *[0] * 70]
    assert 3 <= len(found.entries) <= 6


def test_an_open_wait_is_written_before_the_next_step_runs(app: Application) -> None:
    document = chain("abc", seconds=0.05) + "\n  go: {wait: {signal: go, fresh: true, timeout: 1m}}"
    found = signalled(app, document, after_s=0.1)
    assert [type(event) for event in found.entries[1].events] == [ev.WaitOpened]
    assert not any(one.lost for one in found.events if isinstance(one, ev.SignalReceived))


def test_a_step_is_not_pure_by_another_way() -> None:
    node = Node(name="a", kind="task", tool="a", effect="pure")
    step = RunStep(slot="a", node=node, place=Slot.parse("a"), arguments={})
    ways = {
        "itself": step,
        "by another tool": replace(step, way=Alternative(name="b", tool="b")),
        "with a hook": replace(step, hooks=("free_room",)),
        "an act": replace(step, node=replace(node, effect="idempotent")),
        "at a price": replace(step, node=replace(node, cost=1)),
    }
    shares = {
        what: _pure_next(Advance((), Decision(commands=(RunSteps((one,)),)), 0, False, State())) is not None
        for what, one in ways.items()
    }
    assert shares == {what: what == "itself" for what in ways}


def signalled(app: Application, document: str, after_s: float) -> Result:
    """Run a saga that gets a signal so long after its worker has taken it."""

    async def main() -> Result:
        made = World(app.registry)
        made.switch_on()
        saga = await start(made, document, {"n": 0}, "chain")
        while "take" not in made.plan.writes:
            await asyncio.sleep(0.01)
        await asyncio.sleep(after_s)
        await made.service().signal(saga, "go", {}, "k")
        await made.settle()
        return Result(made, saga, await made.queries_without_faults().show(saga))

    return run_virtual(main())


RACE = """
name: chain
nodes:
  start: {tool: add, with: {n: 1}}
  go: {wait: {signal: go}}
  a: {tool: add, with: {n: "${ctx.start.output}", seconds: 0.2}, after: start}
  b: {join: any, tool: tell, with: {what: "${join.outputs}", seconds: SECONDS}, after: [a, go]}
"""


@pytest.mark.parametrize("seconds", [0.0, 0.6])
def test_what_others_write_meanwhile_is_heard_before_the_run(app: Application, seconds: float) -> None:
    """It is over, or under way, when the entry before it finds that the log has gone another way."""
    found = signalled(app, RACE.replace("SECONDS", str(seconds)), after_s=0.23 if seconds else 0.1)
    (fired,) = [one for one in found.events if isinstance(one, ev.JoinFired)]
    told = [n for n in app.calls if isinstance(n, list)]
    assert fired.by == ("go",)
    assert told[-1] == ["told", {"go": {}}], "its arguments are those of what is in the log"


def test_the_step_that_kills_its_workers_is_the_one_that_is_blamed(app: Application) -> None:
    found = run(app, chain("abc", "tool: kills"))
    assert found.status == "parked"
    parked = [one for one in found.events if isinstance(one, ev.Parked)]
    assert parked[-1].node == "last"
    assert [slots(entry) for entry in found.entries if slots(entry)] == [["a"], ["b"], ["c"]]


def test_a_decision_that_is_made_anew_does_not_go_on_from_what_a_function_has_forgotten() -> None:
    """An entry with two of its runs was refused: of the first it remembers no more what it asked for."""

    def call(heard: int, *items: str) -> FunctionCall:
        work = RunningFunction(given=ev.Value(), began=0, heard=heard)
        results = tuple(Heard(item=one, digest="", at=0) for one in items)
        return FunctionCall(name="f", slot="f", branch=0, version=2, now=0, work=work, results=results)

    live = _Live("f", _Session(), lambda: 0, 0, None, 0)
    live.heard = list(call(0, "one", "two").results)
    live.steps = [FunctionStep(), FunctionStep()]
    assert live.continues(call(1, "one", "two"))
    assert live.continues(call(2, "two"))
    assert not live.continues(call(1, "one", "two"))
    assert not live.continues(call(0, "one", "two"))
