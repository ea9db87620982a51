"""The graph of a saga changes while it runs: what a person patches, and what may come between."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from baton import tool
from baton.core.documents.text import parse_document
from baton.core.log import events as ev
from baton.core.log.events import CancelRequested
from baton.errors import InvalidDefinition, InvalidInput, KeyReused, NotAllowedNow, NotFound, Outdated
from baton.runtime.requests.patching import Patch, PatchedSaga
from tests.kit.corpus import start
from tests.kit.faults import CRASH_BEFORE, Crash
from tests.kit.sentences import Says
from tests.kit.world import World

STEPS = """
name: w
nodes:
  a: {tool: work, with: {n: 1, seconds: 2}}
  b: {tool: work, after: a, with: {n: 2}}
  c: {tool: work, after: b, with: {n: 3}}
output: '${ctx.b.output.n}'
"""
WAITS = """
name: w
nodes:
  a: {tool: work, with: {n: 1}}
  ok: {wait: {signal: ok}, after: a}
  b: {tool: work, after: ok, with: {n: 2}}
output: '${ctx.b.output.n}'
"""
Operations = list[dict[str, Any]]
WRONG: Operations = [{"op": "replace", "path": "/nodes/b/with/n", "value": 6}]
INSERTED: Operations = [
    {
        "op": "add",
        "path": "/nodes/x",
        "value": {"tool": "work", "after": "ok", "with": {"n": "${ctx.a.output.n}"}},
    },
    {"op": "replace", "path": "/nodes/b/after", "value": "x"},
]
REMOVED: Operations = [{"op": "remove", "path": "/nodes/c"}]


async def graph_of(world: World, saga: str) -> str:
    return str((await world.queries().show(saga))["graph"])


async def patch(
    world: World, saga: str, operations: Sequence[dict[str, Any]] | None, key: str = "", **more: Any
) -> PatchedSaga:
    made_for = more.pop("made_for", None) or await graph_of(world, saga)
    wanted = Patch(operations=None if operations is None else [*operations], made_for=made_for, **more)
    return await world.service().patch(saga, wanted, key)


def nodes(world: World, saga: str) -> list[str]:
    return [event.node for event in world.events(saga) if isinstance(event, ev.StepSucceeded)]


def output(world: World, saga: str) -> Any:
    end = world.end(saga)
    assert end is not None
    assert end.status == "completed"
    return end.output.v


# ---- what a newcomer patches -------------------------------------------------------------------------------


async def test_a_wrong_argument_of_a_later_node_is_set_right_while_a_step_runs(says: Says) -> None:
    world = World.start()
    saga = await start(world, STEPS, {}, "w")
    await asyncio.sleep(1)
    answer = await patch(world, saga, WRONG, description="six it is")
    assert answer.changed
    says([answer.changes, answer.notes])
    await world.settle()
    assert (nodes(world, saga), output(world, saga)) == (["a", "b", "c"], 7)
    assert not [event for event in world.events(saga) if isinstance(event, ev.StepInterrupted)]
    view = await world.queries().show(saga)
    (former,) = view["former_graphs"]
    assert former["graph"] != view["graph"] == answer.graph


async def test_a_node_is_inserted_behind_one_that_waits_and_reads_an_output_that_was_dropped(
    says: Says,
) -> None:
    world = World.start()
    saga = await start(world, WAITS, {}, "w")
    await asyncio.sleep(5)
    answer = await patch(world, saga, INSERTED)
    says([answer.changes, answer.notes])
    await world.service().signal(saga, "ok", None, "k")
    await world.settle()
    assert (nodes(world, saga), output(world, saga)) == (["a", "x", "b"], 3)
    assert [event.output.v for event in world.events(saga) if isinstance(event, ev.StepSucceeded)][1] == {
        "n": 3
    }


async def test_the_output_of_a_node_is_what_a_fork_has_made_of_it() -> None:
    world = World.start()
    text = PASSED.replace("n: 2", "n: '${ctx.a.output.n}'") + "output: '${ctx.c.output.n}'\n"
    saga = await start(world, text, {}, "w")
    await asyncio.sleep(5)
    await world.service().fork_with(saga, "f", before="b", outputs={"a": {"n": 40}}, leave=True)
    await asyncio.sleep(5)
    await patch(world, saga, [{"op": "replace", "path": "/nodes/c/with/n", "value": "${ctx.a.output.n}"}])
    await world.service().signal(saga, "ok", None, "k")
    await world.settle()
    assert output(world, saga) == 41


async def test_a_node_that_is_not_reached_is_removed() -> None:
    world = World.start()
    saga = await start(world, STEPS, {}, "w")
    await patch(world, saga, REMOVED)
    await world.settle()
    assert nodes(world, saga) == ["a", "b"]


@dataclass
class Mail:
    """A tool with a defect, and one without."""

    world: World
    sent: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        @tool("mail.broken", registry=self.world.registry)
        async def broken(to: str) -> None:
            raise KeyError(to)

        @tool("mail.send", registry=self.world.registry)
        async def send(to: str) -> str:
            self.sent.append(to)
            return to

        self.world.tools = self.world.registry.specs()


async def test_a_step_that_is_parked_for_a_defect_gets_another_tool_and_goes_on_when_it_is_resumed(
    says: Says,
) -> None:
    world = World.start()
    mail = Mail(world)
    saga = await start(world, "name: w\nnodes: {m: {tool: mail.broken, with: {to: ann}}}", {}, "w")
    await asyncio.sleep(600)
    assert (await world.queries().show(saga))["status"] == "parked"
    answer = await patch(world, saga, [{"op": "replace", "path": "/nodes/m/tool", "value": "mail.send"}])
    says(answer.notes[-1].replace(saga, "SAGA"))
    await asyncio.sleep(600)
    assert mail.sent == []
    await world.service().resume(saga)
    await world.settle()
    assert mail.sent == ["ann"]
    assert (await world.queries().show(saga))["status"] == "completed"


# ---- what is refused ---------------------------------------------------------------------------------------


async def test_what_may_run_changes_only_while_the_saga_is_paused_and_its_worker_has_let_go(
    says: Says,
) -> None:
    world = World.start()
    saga = await start(world, STEPS, {}, "w")
    await asyncio.sleep(1)
    other = [{"op": "replace", "path": "/nodes/a/with/n", "value": 8}]
    with says.raised(NotAllowedNow):
        await patch(world, saga, other)
    await world.service().pause(saga, "")
    with pytest.raises(NotAllowedNow, match="may be running"):
        await patch(world, saga, other)
    await asyncio.sleep(60)
    await patch(world, saga, [{"op": "replace", "path": "/nodes/b/with/n", "value": 8}])
    await world.service().resume(saga)
    await world.settle()
    assert output(world, saga) == 9


async def test_all_problems_are_told_at_once_and_nothing_is_stored(says: Says) -> None:
    world = World.start()
    saga = await start(world, WAITS, {}, "w")
    await asyncio.sleep(5)
    wrong: Operations = [
        {"op": "replace", "path": "/nodes/ok/wait/signal", "value": "go"},
        {"op": "replace", "path": "/name", "value": "v"},
        {"op": "add", "path": "/nodes/n", "value": {"tool": "work", "after": "a", "with": {"n": 1}}},
        {"op": "replace", "path": "/nodes/b/after", "value": ["ok", "n"]},
    ]
    blobs, version = len(world.blobs.stored), (await world.queries().show(saga))["version"]
    with pytest.raises(NotAllowedNow) as refused:
        await patch(world, saga, wrong)
    says([[one.path, one.message, one.suggestion] for one in refused.value.problems])
    answer = await patch(world, saga, wrong, dry_run=True)
    assert [one.path for one in answer.problems] == [one.path for one in refused.value.problems]
    with says.raised(InvalidDefinition):
        await patch(world, saga, [{"op": "replace", "path": "/nodes/b/tool", "value": "wrk"}])
    with says.raised(InvalidInput):
        await patch(world, saga, [{"op": "remove", "path": "/nodes/zz"}])
    assert (await world.queries().show(saga))["version"] == version
    assert len(world.blobs.stored) == blobs


async def test_a_patch_of_another_graph_is_refused_with_the_one_that_runs(says: Says) -> None:
    world = World.start()
    saga = await start(world, WAITS, {}, "w")
    await asyncio.sleep(5)
    before = await graph_of(world, saga)
    await patch(world, saga, WRONG, made_for=1)
    with says.raised(Outdated):
        await patch(world, saga, INSERTED, made_for=before)
    with pytest.raises(Outdated):
        await patch(world, saga, INSERTED, made_for=2)
    with says.raised(NotFound):
        await patch(world, saga, INSERTED, made_for=99)
    await patch(world, saga, INSERTED, made_for=(await graph_of(world, saga))[:8])


async def test_what_has_ended_or_is_about_to_is_not_patched(says: Says) -> None:
    world = World.start()
    saga = await start(world, STEPS, {}, "w")
    await asyncio.sleep(1)
    await world.service().cancel(saga, "enough", 60_000)
    with says.raised(NotAllowedNow):
        await patch(world, saga, WRONG)
    await world.settle()
    with says.raised(NotAllowedNow):
        await patch(world, saga, WRONG)
    with pytest.raises(NotFound):
        await patch(world, "s-none", WRONG, made_for=1)


async def test_the_saga_of_a_named_graph_names_the_one_to_patch(says: Says) -> None:
    world = World.start()
    text = "name: w\nnodes: {a: {graph: g}}\ngraphs: {g: {nodes: {q: {wait: {signal: ok}}}}}"
    saga = await start(world, text, {}, "w")
    await asyncio.sleep(5)
    (child,) = [event.child for event in world.events(saga) if isinstance(event, ev.ChildOpened)]
    with pytest.raises(NotAllowedNow) as refused:
        await patch(world, child, WRONG)
    says(refused.value.detail.replace(saga, "PARENT"))


# ---- again, and back ---------------------------------------------------------------------------------------


async def test_a_repeated_key_changes_nothing_and_a_patch_is_undone_and_done_again() -> None:
    world = World.start()
    saga = await start(world, WAITS, {}, "w")
    await asyncio.sleep(5)
    first = await graph_of(world, saga)
    assert (await patch(world, saga, WRONG, "k")).changed
    second = await graph_of(world, saga)
    assert not (await patch(world, saga, WRONG, "k", made_for=first)).changed
    with pytest.raises(KeyReused):
        await patch(world, saga, INSERTED, "k")
    assert (await patch(world, saga, None)).graph == first
    assert (await patch(world, saga, None)).graph == second
    assert not (await patch(world, saga, WRONG)).changed, "it is so already"
    again = await patch(world, saga, [{"op": "test", "path": "/nodes/b/with/n", "value": 6}, *INSERTED])
    assert again.changed, "a patch is of the document of the last one"
    await world.service().signal(saga, "ok", None, "k")
    await world.settle()
    assert (nodes(world, saga), output(world, saga)) == (["a", "x", "b"], 7)


async def test_the_graphs_before_are_read_at_once() -> None:
    world = World.start()
    saga = await start(world, WAITS, {}, "w")
    await asyncio.sleep(5)
    for number in range(10):
        await patch(world, saga, [{"op": "replace", "path": "/nodes/b/with/n", "value": number}])
    world.slow["get"] = 1
    began = asyncio.get_running_loop().time()
    assert len((await world.queries().show(saga))["former_graphs"]) == 10
    assert asyncio.get_running_loop().time() - began < 4


async def test_a_lost_graph_of_a_patch_is_compiled_again() -> None:
    world = World.start()
    saga = await start(world, WAITS, {}, "w")
    await asyncio.sleep(5)
    answer = await patch(world, saga, WRONG)
    del world.blobs.stored["acme", f"cas://sha256/{answer.graph}"]
    diagnosis = await world.service().diagnosis(saga, repairs=True)
    assert [one.code for one in diagnosis.repaired] == ["graph_lost"]
    await world.service().signal(saga, "ok", None, "k")
    await world.settle()
    assert output(world, saga) == 7


@pytest.mark.parametrize("forks", [False, True])
async def test_a_saga_whose_graph_is_lost_finds_what_the_graph_before_reads(*, forks: bool) -> None:
    world = World.start()
    reads = WAITS.replace("n: 2}", "n: '${ctx.a.output.n}'}").replace(
        "  b: {tool: work, after: ok",
        "  more: {wait: {signal: more}, after: ok}\n  b: {tool: work, after: more",
    )
    saga = await start(world, reads, {}, "w")
    await asyncio.sleep(5)
    answer = await patch(world, saga, WRONG)
    await world.service().signal(saga, "ok", None, "k")
    await asyncio.sleep(5)
    if forks:
        await world.service().fork_with(saga, "f", before="more")
        await asyncio.sleep(5)
    (document,) = {event.document for event in world.events(saga) if isinstance(event, ev.GraphChanged)}
    for lost in (answer.graph, document):
        del world.blobs.stored["acme", f"cas://sha256/{lost}"]
    diagnosis = await world.service().diagnosis(saga, repairs=True)
    assert [one.code for one in diagnosis.repaired] == ["graph_lost"]
    await world.service().signal(saga, "more", None, "k")
    await world.settle()
    assert output(world, saga) == 3


async def test_nothing_is_undone_where_nothing_has_changed(says: Says) -> None:
    world = World.start()
    saga = await start(world, WAITS, {}, "w")
    with says.raised(NotAllowedNow):
        await patch(world, saga, None)


# ---- what comes between ------------------------------------------------------------------------------------


async def test_a_process_that_dies_between_blob_and_entry_leaves_nothing_that_counts() -> None:
    world = World.start()
    saga = await start(world, WAITS, {}, "w")
    await asyncio.sleep(5)
    before = await graph_of(world, saga)
    world.plan.at[len(world.plan.writes) + 3] = CRASH_BEFORE
    with pytest.raises(Crash):
        await patch(world, saga, WRONG, "k")
    assert world.plan.writes[-3:] == ["put", "put", "append"]
    assert await graph_of(world, saga) == before
    assert (await patch(world, saga, WRONG, "k")).changed


async def test_a_signal_that_comes_first_makes_the_patch_look_again() -> None:
    """The node that is to be inserted behind has ended, and what follows it runs."""
    world = World.start()
    saga = await start(world, WAITS, {}, "w")
    await asyncio.sleep(5)
    world.slow["append"] = 3
    late = asyncio.ensure_future(patch(world, saga, INSERTED))
    await asyncio.sleep(1)
    world.slow.clear()
    await world.service().signal(saga, "ok", None, "k")
    await world.settle(600)
    with pytest.raises(NotAllowedNow):
        await late
    assert (nodes(world, saga), output(world, saga)) == (["a", "b"], 3)


async def test_of_two_patches_at_once_one_is_made_for_a_graph_that_is_gone() -> None:
    world = World.start()
    saga = await start(world, WAITS, {}, "w")
    await asyncio.sleep(5)
    done = await asyncio.gather(
        patch(world, saga, WRONG), patch(world, saga, INSERTED), return_exceptions=True
    )
    assert sorted(type(one) is PatchedSaga for one in done) == [False, True]
    assert [type(one) for one in done if not isinstance(one, PatchedSaga)] == [Outdated]


async def test_what_was_done_before_is_undone_as_the_graph_said_then() -> None:
    world = World.start()
    undone: list[str] = []

    @tool("book", undo="give_back", registry=world.registry)
    async def book(what: str) -> str:
        return what

    @tool("give_back", registry=world.registry)
    async def give_back(how: str) -> None:
        undone.append(how)

    world.tools = world.registry.specs()
    text = "name: w\nnodes:\n  a: {tool: book, with: {what: x}, compensate: {with: {how: first}}}\n  ok: {wait: {signal: ok}, after: a}\n"
    saga = await start(world, text, {}, "w")
    await asyncio.sleep(5)
    await patch(world, saga, [{"op": "replace", "path": "/nodes/a/compensate/with/how", "value": "second"}])
    wanted = CancelRequested(reason="", by="", at=0, grace_ms=0, undo=True)
    await world.service().rollback(saga, wanted)
    await world.settle()
    assert undone == ["first"]


PASSED = """
name: w
nodes:
  a: {tool: work, with: {n: 1}}
  b: {tool: work, after: a, with: {n: 2}}
  ok: {wait: {signal: ok}, after: b}
  c: {tool: work, after: ok, with: {n: 3}}
"""


async def test_what_is_shown_is_the_graph_of_that_version(says: Says) -> None:
    world = World.start()
    saga = await start(world, PASSED, {}, "w")
    await asyncio.sleep(5)
    first, version = await graph_of(world, saga), (await world.queries().show(saga))["version"]
    without = [{"op": "remove", "path": "/nodes/a"}, {"op": "remove", "path": "/nodes/b/after"}]
    says((await patch(world, saga, without, description="it was not needed")).changes)
    await world.service().signal(saga, "ok", None, "k")
    await world.settle()
    queries = world.queries()
    assert (await queries.show(saga, version))["graph"] == first
    assert (await queries.show(saga))["graph"] != first
    documents = [(await queries.workflow_of(saga, at))["document"] for at in (version, 0)]
    assert documents[0] == PASSED
    assert set(parse_document(documents[1]).value["nodes"]) == {"b", "ok", "c"}
    for at in (version, 0):
        (run,) = (await queries.explain(saga, "a", at))["iterations"][0]["runs"]
        assert (run["input"], run["output"]) == ({"n": 1}, {"n": 2}), "of a node of the graph before"
        assert [one["node"] for one in (await queries.way(saga, 0, 50, at))["steps"]][:2] == ["a", "b"]
        assert (await queries.steps(saga, 0, 50, "", at))["steps"][0]["input"] == {"n": 1}
    assert (await queries.cost(saga))["saga"] == saga
    assert (await world.service().replay(saga)).divergence is None
    assert (await world.service().diagnosis(saga, repairs=False)).findings == []
