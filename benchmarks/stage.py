"""An engine to measure: a chain of steps that do nothing, on memory adapters or on the embedded AWS."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from baton import tool
from baton.adapters.aws import Aws
from baton.adapters.clock import SystemClock, SystemEntropy
from baton.adapters.dynamo.store import DynamoStore
from baton.adapters.memory.log import MemoryLog
from baton.adapters.memory.people import MemoryNotices
from baton.adapters.memory.store import MemoryBlobs, MemoryStore
from baton.adapters.monty_sandbox import MontySandbox
from baton.adapters.s3 import S3Blobs
from baton.core.limits import Limits
from baton.ports import Blobs, Clock, Entropy, Message, Offload, SagaRef, Store
from baton.runtime.engine.parts import Engine, InvocationScope
from baton.runtime.engine.request import Caller
from baton.runtime.invocation.context import DurationEstimator, Invocation, Threads, inline
from baton.runtime.requests.service import Service
from baton.runtime.worker.runner import Runner
from baton.tools.define import Registry
from baton.tools.perform import ToolPerformer
from tests.kit import ministack
from tests.kit.table import create_bucket, create_table

TENANT, USER = "bench", "bench"
HOUR_MS = 3_600_000

REGISTRY = Registry()


@tool("step", registry=REGISTRY)
async def step(n: int) -> dict[str, int]:
    """The cheapest step: all that is measured is the engine."""
    return {"n": n + 1}


@tool("once", registry=REGISTRY, effect="once")
async def once(n: int) -> dict[str, int]:
    """The same, as an effect that may happen only once."""
    return {"n": n + 1}


@tool("look", registry=REGISTRY, effect="pure")
async def look(n: int) -> dict[str, int]:
    """The same, as a step that changes nothing."""
    return {"n": n + 1}


NOTICES = (MemoryNotices(),)  # no bench sends a notice


def chain_of(length: int, tool: str = "step", name: str = "chain") -> str:
    """A document of `length` steps, each reading the one before."""
    lines = [f"name: {name}", "nodes:"]
    for i in range(length):
        source = "${input.n}" if i == 0 else f"${{ctx.s{i - 1}.output.n}}"
        after = f"after: s{i - 1}, " if i else ""
        lines.append(f"  s{i}: {{tool: {tool}, {after}with: {{n: '{source}'}}}}")
    return "\n".join(lines)


def _engine(
    store: Store,
    blobs: Blobs,
    offload: Offload,
    registry: Registry = REGISTRY,
    clock: Clock | None = None,
    entropy: Entropy | None = None,
) -> Engine:
    engine = Engine.on(
        store,
        blobs,
        clock or SystemClock(),
        Limits(),
        entropy=entropy or SystemEntropy(),
        offload=offload,
        performer=ToolPerformer(registry),
        sandbox=MontySandbox(offload),
        tools=registry.specs(),
        notices=NOTICES,
    )
    return replace(engine, durations=DurationEstimator(1))


def memory_engine(
    log: MemoryLog | None = None,
    registry: Registry = REGISTRY,
    blobs: MemoryBlobs | None = None,
    clock: Clock | None = None,
    entropy: Entropy | None = None,
) -> Engine:
    store = MemoryStore()
    store.log = log or store.log
    return _engine(store, blobs or MemoryBlobs(), inline, registry, clock, entropy)


def engine_on(aws: Aws, name: str, registry: Registry = REGISTRY) -> Engine:
    """An engine on a new table and a new bucket of that name."""
    create_table(aws.dynamodb, name)
    create_bucket(aws.s3, name)
    return _engine(DynamoStore(aws.dynamodb, name, 4), S3Blobs(aws.s3, name), Threads(), registry)


@contextmanager
def aws_engine() -> Iterator[Engine]:
    """An engine on boto3's clients and the embedded AWS over loopback HTTP."""
    with tempfile.TemporaryDirectory() as folder, ministack.running(Path(folder)) as endpoint:
        yield engine_on(Aws(endpoint), "bench")


async def start(engine: Engine, length: int, sagas: int) -> list[SagaRef]:
    """Register the chain and start sagas of it; nothing runs yet."""
    return await sagas_of(engine, chain_of(length), {"n": 0}, sagas)


async def sagas_of(engine: Engine, document: str, given: Any, count: int) -> list[SagaRef]:
    """Register a document and start that many sagas of it."""
    now = engine.clock.now()
    service = Service(engine, Caller(tenant=TENANT, user=USER, request="bench"), now + HOUR_MS)
    name = (await service.register(document, json_only=False)).definition.name
    views = [(await service.start(name, given, ""))[0] for _ in range(count)]
    return [SagaRef(TENANT, view["id"]) for view in views]


def invocation(engine: Engine, name: str, last_ms: int = HOUR_MS) -> InvocationScope:
    now = engine.clock.now()
    return InvocationScope(engine, Invocation(name, now, now + last_ms))


async def run_all(engine: Engine, refs: list[SagaRef], name: str = "bench") -> None:
    """Run sagas to their end, concurrently, in one invocation."""
    runner = Runner(invocation(engine, name))
    endings = await asyncio.gather(*(runner.run(Message(str(ref), 1), alone=True) for ref in refs))
    if set(endings) != {"finished"}:
        raise RuntimeError(f"not all sagas finished: {endings}")
