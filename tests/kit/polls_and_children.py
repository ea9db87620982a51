"""What is done again in the simulation: polls, children that fail or last too long, and what must hold of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from baton.core.decide.decision import StartHandler
from baton.core.graph.graph import HANDLER, graph_name, starter_of
from baton.core.log.events import (
    ChildClosed,
    ChildOpened,
    ChildrenAbandoned,
    Entry,
    Failure,
    Forked,
    SagaEnded,
    StepSucceeded,
)
from baton.core.log.records import Child
from baton.core.log.work import Open
from baton.core.nodes.base import Activation, Failed, Next, NodeContext
from baton.core.nodes.child import ChildKind
from baton.errors import NotFound
from baton.runtime.requests.service import Service
from baton.runtime.starting.catalog import Catalog
from baton.runtime.worker.children import HandlerStarter
from tests.kit.bugs import replaced
from tests.kit.map_bugs import MAPS, of_maps, of_pauses
from tests.kit.undoable_tools import UNDOING, of_undoing

if TYPE_CHECKING:
    from tests.kit.world import World

AGAIN = "again"
_LOST = Failure("timeout", "nothing was heard of it", "c")

POLLED = """
name: polled
nodes:
  look:
    tool: work
    with: {n: "${ctx.look.previous.n}"}
    poll: {until: "output.n >= 4", every: {first: 10s, factor: 2}, within: 1h, initial: {n: 0}}
  then: {tool: work, after: look, with: {n: "${ctx.look.output.n}"}}
output: "${ctx.then.output.n}"
"""
REFUSED = """
name: refused
nodes:
  x: {tool: lend, with: {what: chairs}}
  y: {tool: refuses, after: x}
"""
TRIED = """
name: tried
on_failure: [rollback]
nodes:
  c: {workflow: refused, retry: {max_attempts: 3, base: 5s, on: [sold_out]}, catch: {code: child_failed, then: d}}
  d: {tool: lend, with: {what: tent}}
output: "${ctx.d.output?}"
"""
SLOW = """
name: slow
nodes:
  x: {tool: lend, with: {what: chairs}}
  rest: {wait: {for: %s}, after: x}
  y: {tool: lend, with: {what: tables}, after: rest}
"""
LATE = """
name: too-late
nodes:
  c: {workflow: slow, timeout: 30s, retry: {max_attempts: 2, base: 5s}, catch: {code: timeout, then: d}}
  d: {tool: lend, with: {what: tent}}
  e: {tool: lend, with: {what: hall}, after: c}
output: ["${ctx.c.output?}", "${ctx.d.output?}"]
"""


async def polled(world: World, *, start: Any, patiently: Any) -> str:
    return str(await start(world, POLLED, {}, "polled"))


async def tried(world: World, *, start: Any, patiently: Any) -> str:
    """Three children fail, and undo what they have done, before the saga goes on without."""
    await patiently(world, lambda service: service.register(REFUSED, json_only=False))
    return str(await start(world, TRIED, {}, "tried"))


async def too_late(world: World, *, start: Any, patiently: Any) -> str:
    """Children that last too long are stopped and undone."""
    await patiently(world, lambda service: service.register(SLOW % "90s", json_only=False))
    return str(await start(world, LATE, {}, "too-late"))


async def just_in_time(world: World, *, start: Any, patiently: Any) -> str:
    """A child ends in the moment in which its time is over."""
    await patiently(world, lambda service: service.register(SLOW % "29s", json_only=False))
    return str(await start(world, LATE, {}, "too-late"))


HANDLED = """
name: handled
on_failure: [rollback]
failure_handler: {graph: told, with: {n: 1, lent: "${ctx.x.output?}"}}
nodes:
  rest: {wait: {for: 1m}}
  x: {map: [chairs, tables], graph: lent, after: rest}
  y: {tool: refuses, after: x}
graphs:
  lent: {nodes: {a: {tool: lend, with: {what: "${item}"}}}, output: "${item}"}
  told:
    input: {type: object, required: [n], properties: {n: {}, lent: {type: [array, "null"], minItems: 2}}}
    nodes: {a: {tool: work, with: {n: "${input.n}"}}}
"""
OTHER_VERSION = "name: handled\nnodes: {a: {value: 1}}"


async def handled(world: World, *, start: Any, patiently: Any) -> str:
    """A saga fails, undoes what graphs of its document have done, and starts another one. The newest version of the document has neither."""
    saga = str(await start(world, HANDLED, {}, "handled"))
    await patiently(world, lambda service: service.register(OTHER_VERSION, json_only=False))
    return saga


async def announced(world: World, patiently: Any) -> str:
    """A version drops a rule; then an event starts a saga by the one that is left."""
    for rules in ("settled, placed", "settled"):
        document = f"name: announced\nevents: {{start: [{rules}]}}\nnodes: {{a: {{value: 1}}}}"
        await patiently(world, partial(Service.register, text=document, json_only=False))
    event = {"specversion": "1.0", "id": "e1", "source": "shop", "type": "settled", "data": 1}
    (done,) = await patiently(world, lambda service: service.event_service.take(event))
    return str(done["saga"])


DRIVES = (("polled", polled), ("tried", tried))
OTHERS = (just_in_time, too_late, handled)


# ---- what must hold ----------------------------------------------------------------------------------------------------


def undone_and_done_again(world: World, logs: Mapping[str, list[Entry]]) -> Iterator[str]:
    """What is broken, by the names of the three oracles."""
    yield from (f"{UNDOING}: {text}" for text in of_undoing(world, logs))
    yield from (f"{AGAIN}: {text}" for text in (*of_tries(logs), *of_pauses(logs), *left_standing(logs)))
    yield from (f"{MAPS}: {text}" for text in of_maps(logs))


def of_tries(logs: Mapping[str, list[Entry]]) -> Iterator[str]:
    """Of the children that one node has started one after the other: each begins when the one before has ended without a result."""
    for saga, entries in logs.items():
        tries: dict[str, list[str]] = {}
        closed, left = dict[str, str](), set[str]()
        for event in (event for entry in entries for event in entry.events):
            if isinstance(event, ChildrenAbandoned):
                left.update(event.children)
            elif isinstance(event, Forked) and not event.undo:
                tries.clear()  # what it opens anew may have the same id
            elif isinstance(event, ChildOpened):
                tries.setdefault(event.slot, []).append(event.child)
            elif isinstance(event, ChildClosed):
                closed[event.slot] = event.child
        yield from _of_handlers(saga, entries, logs)
        for slot, its in tries.items():
            if len({one.partition("..")[0] for one in its}) > 1:
                continue  # a fork has opened it anew
            if len(set(its)) < len(its):
                yield f"{saga}: {slot} has started {its[-1]} twice, as if it were another child"
            ends = [_end(logs.get(one, [])) for one in its]
            done = [one for one, end in zip(its, ends, strict=True) if end == "completed"]
            if len(set(done)) > 1:
                yield f"{saga}: {slot} has started another child beside one that is done: {done}"
            # One that was cancelled, has failed, or was ended early by a node, need not have heard of it; nor one that
            # went on without it, and asked it to stop when it was done.
            is_early = any(getattr(event, "ends", False) for entry in entries for event in entry.events)
            is_heard = closed.get(slot) in done or not left.isdisjoint(done)
            if done and _end(entries) == "completed" and not is_heard and not is_early:
                yield f"{saga}: {slot} does not have the result of its child {done[0]}"


def _of_handlers(saga: str, entries: list[Entry], logs: Mapping[str, list[Entry]]) -> Iterator[str]:
    handlers = [one for one in logs if one.startswith(f"{saga}.0.{HANDLER}")]
    last = entries[-1].events[-1] if entries else None
    if len(handlers) > 1:
        yield f"{saga}: its failure handler was started {len(handlers)} times"
    if isinstance(last, SagaEnded) and last.handler and not _end(logs.get(last.handler, [])):
        yield f"{saga}: its failure handler {last.handler} has not run to its end"
    if isinstance(last, SagaEnded) and last.unhandled is not None:
        yield f"{saga}: its failure handler was not started: {last.unhandled.message}"


def left_standing(logs: Mapping[str, list[Entry]]) -> Iterator[str]:
    """Children of sagas that are rolled back as a whole which are done all the same, with something that could be undone."""
    for saga, entries in logs.items():
        if _end(entries) == "rolled_back":
            yield from _left_by(saga, entries, logs)


def _left_by(saga: str, entries: list[Entry], logs: Mapping[str, list[Entry]]) -> Iterator[str]:
    events = [event for entry in entries for event in entry.events]
    undone = getattr(events[-1], "undone", None)
    if any(isinstance(event, Forked) for event in events) or (undone is not None and undone.back_to):
        return  # what a branch has left behind, or what was done before, is no part of it
    stays = {event.child for event in events if isinstance(event, ChildClosed) and event.lasting}
    for child in (event.child for event in events if isinstance(event, ChildOpened)):
        its = logs.get(child, [])
        acts = [event for entry in its for event in entry.events if isinstance(event, StepSucceeded)]
        can_undo = any(act.prior is not None and not act.lasting for act in acts)
        if can_undo and child not in stays and _end(its) == "completed":
            yield f"{saga} is rolled back, and what its child {child} has done stands"


def _end(entries: list[Entry]) -> str:
    last = entries[-1].events[-1] if entries else None
    return last.status if isinstance(last, SagaEnded) else ""


# ---- planted -----------------------------------------------------------------------------------------------------------


@contextmanager
def a_late_result_is_thrown_away() -> Iterator[None]:
    """Child row: a child that has completed before it heard that its time is over has not."""

    def resume(self: ChildKind, at: Activation, work: Open, context: NodeContext) -> Next | None:
        if isinstance(work, Child) and work.overdue and work.status == "completed":
            work = replace(work, status="cancelled")
        said: Next | None = real(self, at, work, context)
        return said

    real = ChildKind.resume
    with replaced(ChildKind, "resume", resume):
        yield


@contextmanager
def a_lost_child_is_taken_for_one_that_failed() -> Iterator[None]:
    """Child row: what no worker has heard of for a while is started anew, under the id of the next try."""

    def resume(self: ChildKind, at: Activation, work: Open, context: NodeContext) -> Next | None:
        if isinstance(work, Child) and work.overdue and not work.status:
            return Failed(_LOST, is_attempt=True)
        said: Next | None = real(self, at, work, context)
        return said

    real = ChildKind.resume
    with replaced(ChildKind, "resume", resume):
        yield


@contextmanager
def a_graph_is_looked_for_in_the_newest_version() -> Iterator[None]:
    """Child row: what a saga of an older version starts is what the document has now, or nothing."""

    async def startable(self: Catalog, tenant: str, reference: str, by: str) -> Any:
        if graph_name(reference):
            by = (await self.find(tenant, starter_of(reference))).graph
            if graph_name(reference) not in (await self.graph(tenant, by)).graphs:
                raise NotFound(f"there is no graph `{reference}`")
        return await real(self, tenant, reference, by)

    real = Catalog.startable
    with replaced(Catalog, "startable", startable):
        yield


@contextmanager
def a_handler_has_another_id_in_each_invocation() -> Iterator[None]:
    """Handler row: a worker that dies behind the start of the handler has another one started."""

    async def perform(self: HandlerStarter, run: Any, command: StartHandler) -> bool:
        child = replace(command.child, saga=f"{command.child.saga}-{run.lease.epoch}")
        return (
            await real(self, run, StartHandler(child)) and run.handlers.setdefault(command.child.saga) is None
        )

    real = HandlerStarter.perform
    with replaced(HandlerStarter, "perform", perform):
        yield
