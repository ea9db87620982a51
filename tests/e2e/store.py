"""Table, bucket and queues on MiniStack, and the engine over its real adapters in the tests' own process.

Building, running invocations, looking; what must hold is in the tests.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import logging
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import pytest

from baton import wiring
from baton.adapters.aws import Aws
from baton.adapters.clock import SystemClock
from baton.core.log.codec import decode_entry
from baton.core.log.events import Entry, Event
from baton.ports import Clock, Head, Performer, SagaRef, StepContext
from baton.runtime.engine.parts import Engine
from baton.runtime.engine.request import Caller
from baton.runtime.invocation.context import Invocation
from baton.runtime.requests.service import Service
from baton.runtime.worker.worker import Delivery, Worker
from tests.kit.app.books import VARIABLE, Books
from tests.kit.ministack import patient
from tests.kit.patience import PATIENCE_S
from tests.kit.table import create_bucket, create_table

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
TENANT = "acme"
NAME = "safety"


class ShiftedClock:
    """The machine's clock, `shift` ms ahead; or standing still once `stop` was called."""

    def __init__(self, shift: int = 0) -> None:
        self.shift = shift
        self._still = 0

    def now(self) -> int:
        return (self._still or SystemClock().now()) + self.shift

    def stop(self) -> None:
        self._still = SystemClock().now()


class Held:
    """A performer whose first step takes until the test lets it go; all others are done at once."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.let_go = asyncio.Event()

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        self.begun.append(context.node)
        if len(self.begun) == 1:
            await self.let_go.wait()
        return arguments["n"]


class Store:
    """One worker function's worth of engine, on an embedded AWS at `address`."""

    engine: Engine
    environment: Mapping[str, str]

    def __init__(self, address: str, folder: Path) -> None:
        self._address = address
        self._folder = folder
        self._numbers = itertools.count(1)
        self.books = Books(folder / "books")

    def __enter__(self) -> Self:
        credentials = {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "eu-central-1",
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_ENDPOINT_URL": self._address,
            "NO_PROXY": "127.0.0.1",
        }
        with pytest.MonkeyPatch.context() as patch:
            for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION"):
                patch.delenv(name, raising=False)
            for name, value in credentials.items():
                patch.setenv(name, value)
            self.environment = credentials | self._create(Aws())
            for name, value in self.environment.items():
                patch.setenv(name, value)
            self._worker, self.engine = wiring.make_worker()
        self._patch = pytest.MonkeyPatch()
        self._patch.setenv(VARIABLE, self.environment[VARIABLE])  # the tools run in this process
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.undo()

    def _create(self, aws: Aws) -> dict[str, str]:
        """What the template declares, as far as a worker needs it; the worker's variables."""
        create_table(aws.dynamodb, NAME)
        create_bucket(aws.s3, NAME)
        sqs = patient(aws.sqs)
        dead = sqs.create_queue(QueueName=NAME)["QueueUrl"]
        return {
            "BATON_TABLE": NAME,
            "BATON_BUCKET": NAME,
            "BATON_APP": "tests.kit.app.trial",
            "BATON_WORKER": "worker",
            "BATON_QUEUE_URL": sqs.create_queue(QueueName=f"{NAME}-wakes")["QueueUrl"],
            "BATON_DEAD_LETTER_URL": dead,
            "BATON_API_URL": "https://api.test",
            "BATON_NOTICES_TOPIC": patient(aws.sns).create_topic(Name=NAME)["TopicArn"],
            "BATON_LEASE_GRACE_MS": "100",
            "BATON_CLOCK_SKEW_MS": "100",
            "BATON_YIELD_RESERVE_MS": "300",
            "BATON_STEP_ESTIMATE_MS": "100",
            VARIABLE: str(self._folder / "books"),
        }

    # ---- sagas

    def run(self, work: Coroutine[Any, Any, T], limit_s: float = PATIENCE_S) -> T:
        async def limited() -> T:
            async with asyncio.timeout(limit_s):
                return await work

        return asyncio.run(limited())

    def service(self, request: str = "") -> Service:
        """The API for one request."""
        caller = Caller(tenant=TENANT, user="ada", request=request or f"request-{next(self._numbers)}")
        return Service(self.engine, caller, self.engine.clock.now() + 30_000)

    async def begin(self, document: str, given: Any = None) -> SagaRef:
        """Register a workflow and start a saga of it; nothing runs it yet."""
        definition = (await self.service().register(document, json_only=False)).definition
        view, _ = await self.service().start(definition.name, given, "")
        return SagaRef(TENANT, str(view["id"]))

    # ---- invocations

    def worker(self, clock: Clock | None = None, performer: Performer | None = None) -> Worker:
        """The worker; with a clock or a performer of its own if that is given."""
        if clock is None and performer is None:
            return self._worker
        engine = dataclasses.replace(
            self.engine, clock=clock or self.engine.clock, performer=performer or self.engine.performer
        )
        return Worker(engine, self._worker._dead_letters, self._worker._invoker)

    async def invoke(
        self, ref: SagaRef, version: int, name: str, milliseconds: int, worker: Worker | None = None
    ) -> list[str]:
        """One invocation under that name for one wake; the ids of what must come again."""
        chosen = worker or self._worker
        now = chosen._engine.clock.now()
        body = f'{{"saga":"{ref}","v":{version}}}'
        return await chosen.handle([Delivery("m", body)], Invocation(name, now, now + milliseconds))

    @contextmanager
    def endings(self) -> Iterator[list[str]]:
        """How each saga's run in each invocation ended, in a word, as the worker's log says."""
        found: list[str] = []

        class Collect(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                found.append(str(getattr(record, "ending", record.getMessage())))

        handler, logger = Collect(), logging.getLogger("baton.worker")
        logger.addHandler(handler)
        try:
            yield found
        finally:
            logger.removeHandler(handler)

    # ---- looking

    def head(self, ref: SagaRef) -> Head:
        head = self.engine.log.read_head(ref)
        assert head is not None
        return head

    def entries(self, ref: SagaRef) -> list[Entry]:
        return [decode_entry(record.data) for record in self.engine.log.read_tail(ref, 0, 0)]

    def events(self, ref: SagaRef) -> list[Event]:
        return [event for entry in self.entries(ref) for event in entry.events]
