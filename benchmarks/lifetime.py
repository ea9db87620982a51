"""A saga's whole life over the embedded AWS, role by role: the requests that each really sends, and its CPU.

What it costs is in cost.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec

from baton.adapters.aws import Aws
from baton.adapters.dynamo.log import DynamoLog
from baton.adapters.dynamo.store import DynamoStore
from baton.adapters.queues import SqsQueue
from baton.ports import Appended, Message, Record, Release, SagaRef, Wake
from baton.runtime.engine.request import Caller
from baton.runtime.invocation.context import Deadline
from baton.runtime.relay import Relay, StreamItem
from baton.runtime.requests.queries import Queries
from baton.runtime.requests.rates import RateLimiter
from baton.runtime.requests.service import Service
from baton.runtime.worker.runner import YIELDED, Runner
from benchmarks.stage import HOUR_MS, TENANT, USER, chain_of, engine_on, invocation

PER_SECOND = 50  # of a tenant: the default of its rate limit, which is counted in the table
API, RELAY, WORKER = "api", "relay", "worker"


T = TypeVar("T")


@dataclass
class Role:
    """What one function did: how often it ran, how many requests to AWS it sent, its CPU in ms."""

    invocations: int = 0
    requests: int = 0
    cpu_ms: float = 0.0


@dataclass
class Life:
    """What one saga's life took. `sqs`: all requests to the queue, those of Lambda's poller included."""

    saga: SagaRef
    roles: dict[str, Role] = field(default_factory=lambda: {name: Role() for name in (API, RELAY, WORKER)})
    sqs: int = 0
    s3: dict[str, int] = field(default_factory=lambda: {"PutObject": 0, "GetObject": 0})


class _Outbox(DynamoLog):
    """The log; its stream is a list of the wakes that were written."""

    def __init__(self, client: Any, table: str, shards: int) -> None:
        super().__init__(client, table, shards)
        self.wakes: list[tuple[SagaRef, Wake]] = []

    def append(self, ref: SagaRef, record: Record, wake: Wake | None = None) -> Appended | None:
        return self._passed_on(super().append(ref, record, wake), ref, wake)

    def release(self, ref: SagaRef, owner: str, epoch: int, release: Release) -> bool:
        return self._passed_on(super().release(ref, owner, epoch, release), ref, release.wake)

    def _passed_on(self, done: T, ref: SagaRef, wake: Wake | None) -> T:
        if done and wake is not None:
            self.wakes.append((ref, wake))
        return done


class _Steps(Deadline, frozen=True):
    """A deadline of so many steps, whatever the time."""

    left = 0

    def fits(self, now: int, expected: float) -> bool:
        _Steps.left -= 1
        return _Steps.left >= 0


class Deployment:
    """Table, bucket and queue on `aws`, and the three functions that a saga goes through."""

    def __init__(self, aws: Aws, table: str) -> None:
        self._aws = aws
        store = DynamoStore(aws.dynamodb, table, 4)
        store.log = self.outbox = _Outbox(aws.dynamodb, table, 4)
        self.engine = replace(engine_on(aws, table), store=store)
        self._url = aws.sqs.create_queue(QueueName=table)["QueueUrl"]
        self._rates = store.rates
        queue, engine = SqsQueue(aws.sqs, self._url), self.engine
        self._relay = Relay(store.inbox, queue, engine.clock, engine.entropy, engine.offload, engine.limits)
        self._life: Life | None = None
        self._role = Role()
        for client in (aws.dynamodb, aws.sqs, aws.s3):
            client.meta.events.register("before-call", self._sent)

    def _sent(self, model: Any, **_: object) -> None:
        if self._life is None:
            return
        self._role.requests += 1
        self._life.sqs += model.service_model.service_name == "sqs"
        if model.name in self._life.s3:
            self._life.s3[model.name] += 1

    async def prepare(self, length: int, tool: str = "step") -> None:
        await self.prepare_for(chain_of(length, tool))

    async def prepare_for(self, document: str) -> None:
        """Register the chain; definitions are read once per process and not on any saga's bill."""
        await self._service().register(document, json_only=False)
        await self._service().start("chain", {"n": 0}, "")
        self.outbox.wakes.clear()

    def _service(self) -> Service:
        caller = Caller(tenant=TENANT, user=USER, request="bench")
        return Service(self.engine, caller, self.engine.clock.now() + HOUR_MS)

    @contextmanager
    def _as(self, name: str) -> Iterator[None]:
        assert self._life is not None
        self._role = self._life.roles[name]
        self._role.invocations += 1
        before = time.process_time()
        yield
        self._role.cpu_ms += (time.process_time() - before) * 1_000
        self._role = Role()

    async def cost(self, saga: SagaRef) -> dict[str, Any]:
        """What the API says that a saga has cost."""
        caller = Caller(tenant=TENANT, user=USER, request="bench")
        queries = Queries(self.engine, caller, self.engine.clock.now() + HOUR_MS)
        found: dict[str, Any] = msgspec.to_builtins(await queries.cost(saga.id))
        return found

    async def live(self, steps_per_invocation: int) -> Life:
        """One saga of the chain, from the request that starts it to its end, in invocations of so many steps."""
        self._life = life = Life(SagaRef(TENANT, ""))
        # A new one each time, as in a tenant's first request to a process: it counts in the table.
        limiter = RateLimiter(self._rates, self.engine.clock, self.engine.offload, PER_SECOND)
        with self._as(API):
            await limiter.admit(TENANT)
            view, _ = await self._service().start("chain", {"n": 0}, "")
        life.saga = SagaRef(TENANT, view["id"])
        ending = YIELDED
        while ending == YIELDED:
            items = [StreamItem(str(n), ref, wake) for n, (ref, wake) in enumerate(self.outbox.wakes)]
            self.outbox.wakes.clear()
            with self._as(RELAY):
                if await self._relay.handle(items, self.engine.clock.now() + HOUR_MS):
                    raise RuntimeError("the relay could not pass everything on")
            ending = await self._work(steps_per_invocation)
        if ending != "finished":
            raise RuntimeError(f"the saga was {ending}")
        self._life = None
        return life

    async def _work(self, steps: int) -> str:
        """What Lambda does with a message: receive it, invoke the worker, delete it."""
        (message,) = self._aws.sqs.receive_message(QueueUrl=self._url, WaitTimeSeconds=1)["Messages"]
        with self._as(WORKER):
            # As long as the names that workers have: a request's id and a suffix.
            parts = invocation(
                self.engine, f"{self.engine.entropy.token(144)}.{self.engine.entropy.token(24)}"
            )
            _Steps.left = steps
            deadline = _Steps(parts.invocation.started, parts.invocation.deadline, 1_000)
            wake = msgspec.json.decode(message["Body"], type=Message)
            ending = await Runner(parts, deadline).run(wake, alone=True)
        self._aws.sqs.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
        return ending
