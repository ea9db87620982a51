"""A saga on a store that the engine has never heard of: the ports are all that it needs."""

from __future__ import annotations

from baton import tool
from baton.adapters.memory.people import MemoryNotices
from baton.adapters.memory.store import MemoryBlobs
from baton.adapters.monty_sandbox import MontySandbox
from baton.core.limits import Limits
from baton.core.log.codec import decode_entry
from baton.core.log.events import SagaEnded
from baton.ports import Message, SagaRef
from baton.runtime.engine.parts import Engine, InvocationScope
from baton.runtime.engine.request import Caller
from baton.runtime.invocation.context import Invocation, inline
from baton.runtime.requests.service import Service
from baton.runtime.worker.runner import Runner
from baton.tools.define import Registry
from baton.tools.perform import ToolPerformer
from tests.contract.toy_store import ToyStore
from tests.kit.virtual_time import SeededEntropy, VirtualClock

DOCUMENT = "name: soup\nnodes:\n  a: {tool: cook, with: {n: 1}}\n  b: {tool: cook, after: a, with: {n: 2}}\n"
REGISTRY = Registry()


@tool("cook", registry=REGISTRY, effect="once")
async def cook(n: int) -> int:
    """Soup, once."""
    return n


async def test_a_saga_runs_to_its_end_on_a_third_store() -> None:
    store, clock = ToyStore(), VirtualClock()
    engine = Engine.on(
        store,
        MemoryBlobs(),
        clock,
        Limits(),
        entropy=SeededEntropy(1),
        offload=inline,
        performer=ToolPerformer(REGISTRY),
        sandbox=MontySandbox(inline),
        tools=REGISTRY.specs(),
        notices=(MemoryNotices(),),
    )
    service = Service(engine, Caller(tenant="acme", user="ada", request="r"), clock.now() + 28_000)
    await service.register(DOCUMENT, json_only=False)
    view, _ = await service.start("soup", {}, "")
    ref = SagaRef("acme", view["id"])
    invocation = Invocation("w", clock.now(), clock.now() + 60_000)
    assert (
        await Runner(InvocationScope(engine, invocation)).run(Message(str(ref), 1), alone=True) == "finished"
    )
    last = decode_entry(store.log.read_tail(ref, 0, 0)[-1].data).events[-1]
    assert isinstance(last, SagaEnded)
    assert last.status == "completed"
