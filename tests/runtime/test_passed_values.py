"""Large values that a graph of a document names: they are passed to its sagas by reference, and are there for as long as those are."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from msgspec.structs import replace

from baton.adapters.memory.store import MemoryBlobs
from baton.core.limits import Limits
from baton.core.log.events import SagaStarted, Value
from baton.errors import CorruptLog
from baton.ports import Head, SagaRef
from baton.runtime.engine.parts import InvocationScope
from baton.runtime.invocation.context import Invocation
from baton.runtime.log.history import History
from tests.kit.corpus import start
from tests.kit.virtual_time import VirtualClock
from tests.kit.world import TENANT, World

MB, DAY_MS = 1_000_000, 86_400_000


class Counted(MemoryBlobs):
    """`written` and `read` are the bytes of all puts and gets."""

    def __init__(self) -> None:
        super().__init__()
        self.written = self.read = 0

    def put(self, tenant: str, data: bytes, period: str = "") -> str:
        self.written += len(data)
        return super().put(tenant, data, period)

    def get(self, tenant: str, ref: str) -> bytes:
        data = super().get(tenant, ref)
        self.read += len(data)
        return data


class Frugal(World):
    """A world whose blobs are counted."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.counted = self.blobs = Counted()


def status_of(world: World, saga: str) -> str:
    end = world.end(saga)
    return end.status if end is not None else "open"


def head_of(world: World, workflow: str) -> Head:
    return next(head for head in world.log.heads() if head.workflow == workflow)


async def days(world: World, count: float) -> None:
    world.runaway, world.reconciler_gap_s = 20_000, 3_600
    await asyncio.sleep(count * 86_400)


WIDE = """
name: wide
nodes:
  big: {value: {text: "${input.text}", id: 7}}
  each: {map: {over: "${input.list}"}, graph: one, after: big}
graphs:
  one:
    nodes:
      a: {value: "${item}"}
      b: {value: ["${ctx.big.output.id}", "${input.n}"], when: "ctx.a.output == 'i5'", after: a}
      c: {graph: two, when: "ctx.a.output == 'i5'", after: b}
    output: ["${ctx.a.output}", "${ctx.b.output?}", "${ctx.c.output?}"]
  two: {nodes: {a: {value: ["${ctx.big.output.id}", "${input.n}"]}}, output: "${ctx.a.output}"}
output: "${ctx.each.output}"
"""


async def test_a_hundred_items_share_the_values_that_their_graph_names() -> None:
    world = Frugal.start()
    assert isinstance(world, Frugal)
    items = [f"i{number}" for number in range(100)]
    saga = await start(world, WIDE, {"text": "x" * MB, "list": items, "n": 3}, "wide")
    await world.settle()
    shown = await world.queries().show(saga)
    assert shown["status"] == "completed", shown["error"]
    assert shown["result"] == [
        [item, [7, 3], [7, 3]] if item == "i5" else [item, None, None] for item in items
    ]
    assert world.counted.written < 3 * MB, "the input, and what `big` gave"
    assert world.counted.read < 10 * MB, "no more for more items that read nothing of it"


async def test_each_value_may_be_as_large_as_any_value_though_they_are_too_large_together() -> None:
    document = """
name: three
nodes:
  a: {value: "a${input}"}
  b: {value: "b${input}"}
  c: {value: "c${input}"}
  d: {graph: all, after: [a, b, c]}
graphs:
  all:
    nodes:
      x: {value: ["${ctx.a.output}"]}
      y: {value: ["${ctx.b.output}"], after: x}
      z: {value: ["${ctx.c.output}", "${input}"], after: y, when: "size(ctx.x.output) == 1"}
    output: "${ctx.y.output}"
output: "${ctx.d.output}"
"""
    world = World.start()
    large = "x" * 2_500_000
    saga = await start(world, document, large, "three")
    await world.settle()
    shown = await world.queries().show(saga)
    assert shown["status"] == "completed", shown["error"]
    ref = shown["large_result"]["ref"]
    assert msgspec.json.decode(world.blobs.get(TENANT, ref)) == ["b" + large]


async def test_two_workers_that_start_the_same_graph_start_one_saga() -> None:
    """What is passed is that of the log, so that the second finds the same start."""
    world = World.start()
    document = """
name: twice
nodes: {a: {value: {t: "${input}"}}, b: {graph: one, after: a}}
graphs: {one: {nodes: {rest: {wait: {signal: go}}, x: {value: "${ctx.a.output.t}", after: rest}}}}
"""
    saga = await start(world, document, "x" * 20_000, "twice")
    await world.settle()
    process = world.process("worker")
    now = process.clock.now()
    scope = InvocationScope(world.engine(process), Invocation(process.id, now, now + 60_000))
    parent, history = (
        SagaRef(TENANT, saga),
        History(world.log, world.blobs, scope.call, SagaRef(TENANT, saga)),
    )
    head = world.log.read_head(parent)
    assert head is not None
    await history.load(head)
    child = history.state.children["b"]
    assert child.passed["ctx.a"].ref
    ref, inline = SagaRef(TENANT, child.saga), Value(v={"t": "x" * 20_000})
    for again in (child, replace(child, passed={**child.passed, "ctx.a": inline})):
        await scope.children.start(parent, ref, history.state, "b", again)
    assert len(world.log.heads()) == 2
    await world.service().signal(child.saga, "go", None, "")
    await world.settle()
    assert status_of(world, saga) == "completed"


# ---- how long they are there ---------------------------------------------------------------------------------------------


class Fading(MemoryBlobs):
    """Values are deleted as by the rules of the bucket: so many days after they were last put as their reference says."""

    def __init__(self) -> None:
        super().__init__()
        self.clock, self.put_at = VirtualClock(), dict[str, int]()

    def put(self, tenant: str, data: bytes, period: str = "") -> str:
        ref = super().put(tenant, data, period)
        self.put_at[ref] = self.clock.now()
        return ref

    def get(self, tenant: str, ref: str) -> bytes:
        kept = ref.partition("@")[2].partition("d")[0]
        if kept and self.clock.now() > self.put_at[ref] + int(kept) * DAY_MS:
            raise CorruptLog(f"blob {ref} was deleted")
        return super().get(tenant, ref)


class Deleting(World):
    """A world that deletes values when their time is over."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.blobs = Fading()


LASTING = """
name: lasting
failure_handler: {graph: tell}
nodes:
  a: {value: {t: "${input.t}", n: 3}}
  rest: {wait: {for: 3d}, after: a}
  b: {graph: one, after: rest}
  c: {tool: refuse, on_failure: fail, after: b}
graphs:
  one: {nodes: {x: {wait: {for: 6d}}, y: {value: "${ctx.a.output.n}", after: x}}}
  tell:
    input: {type: object, required: [t]}
    nodes: {y: {wait: {for: 9d}}, x: {value: ["${input.n}", "${ctx.a.output?.n}"], after: y}}
    output: "${ctx.x.output}"
"""


async def test_what_is_passed_is_there_for_as_long_as_what_refers_to_it() -> None:
    """A graph is deleted with its starter; a failure handler, which may outlast the saga that has failed, has copies of its own."""
    world = Deleting.start(limits=Limits(saga_days=10, retention_days=2))
    saga = await start(world, LASTING, {"t": "x" * 20_000, "n": 5}, "lasting")
    await days(world, 9.5)
    assert status_of(world, saga) == "failed"
    failed, part, handler = (head_of(world, f"lasting{graph}") for graph in ("", ".one", ".tell"))
    assert part.expires == failed.expires < handler.expires
    (began,) = (one for one in world.events(part.ref.id) if isinstance(one, SagaStarted))
    assert [*began.passed] == ["ctx.a"]
    assert began.ends_by == failed.expires - DAY_MS, "the saga is over by then: it fails a day before"
    await days(world, 9)
    assert (await world.queries().show(handler.ref.id))["result"] == [5, 3]


FORKED = """
name: forked
nodes:
  a: {value: {t: "${input.t}", n: 3}}
  b: {graph: one, after: a}
output: "${ctx.b.output}"
graphs: {one: {nodes: {x: {wait: {signal: go}}, y: {value: ["${ctx.x.output}", "${ctx.a.output.n}"], after: x}}, output: "${ctx.y.output}"}}
"""


async def test_forks_of_a_starter_and_of_its_graph_have_what_was_passed() -> None:
    world = World.start()
    saga = await start(world, FORKED, {"t": "x" * 20_000}, "forked")
    await world.settle()
    child = f"{saga}.0.b"
    await world.service().signal(child, "go", 1, "first")
    await world.settle()
    assert (await world.queries().show(saga))["result"] == [1, 3]
    await world.service().fork(saga, 1, "")
    await world.settle()
    await world.service().signal(f"{saga}.1.b", "go", 2, "second")
    await world.service().fork(child, 1, "")
    await world.settle()
    await world.service().signal(child, "go", 4, "third")
    await world.settle()
    assert (await world.queries().show(saga))["result"] == [2, 3]
    assert (await world.queries().show(child))["result"] == [4, 3]
    (ref,) = {one.passed["ctx.a"].ref for one in world.events(f"{saga}.1.b") if isinstance(one, SagaStarted)}
    found = await world.queries().value(f"{saga}.1.b", ref.rpartition("/")[2].partition("@")[0], 0)
    assert found["value"]["n"] == 3


# ---- the batch result of a failure ---------------------------------------------------------------------------------------

BATCHED = """
name: batched
%s
nodes:
  each: {map: {over: ["a", "%s"], tolerated_failures: 0, rest: run}, graph: one%s}
  %s
output: "${ctx.told.output?}"
graphs:
  one: {nodes: {x: {fail: {code: broken, message: "${item}"}, when: "ctx.y.output == 'a'", after: y}, y: {value: "${item}"}}, output: "${ctx.y.output}"}
  says:
    nodes:
      x: {value: ["${last_error.batch.failed}", "${last_error.batch.results[0].error.code}", "${last_error.answer}", "${last_error.code}"]}
      y: {graph: deeper, after: x}
    output: ["${ctx.x.output}", "${ctx.y.output}"]
  deeper: {nodes: {x: {value: "${last_error.batch.succeeded}"}}, output: "${ctx.x.output}"}
"""
CAUGHT = (", catch: told", "told: {graph: says}")


@pytest.mark.parametrize("size", [1, 20_000])
async def test_a_graph_behind_a_catch_has_the_batch_result(size: int) -> None:
    world = World.start()
    saga = await start(world, BATCHED % ("", "b" * size, *CAUGHT), None, "batched")
    await world.settle()
    shown = await world.queries().show(saga)
    assert shown["result"] == [[1, "child_failed", None, "map_failed"], 1], shown["error"]
