"""A deployment in memory: table, stream, queue, relay, concurrent workers, and reconciler.

It runs the engine's own code for every role over the memory adapters, and simulates only the services of AWS
between them. Nothing is lost or late; the engine's own tests cover these cases.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import CodeType, MappingProxyType
from typing import Any

import msgspec

from baton.adapters.memory.people import MemoryNotices
from baton.adapters.memory.queues import MemoryDeadLetters, MemoryInvoker, MemoryQueue
from baton.adapters.memory.store import MemoryBlobs, MemoryStore
from baton.adapters.monty_sandbox import MontySandbox
from baton.core.decide.program import Program
from baton.core.graph.graph import Graph
from baton.core.limits import Limits
from baton.core.log.codec import decode_entry
from baton.core.log.events import Entry
from baton.core.log.questions import OPERATORS, Answer, open_questions, unclosed_questions
from baton.core.log.slots import Slot
from baton.core.log.state import State, status_of
from baton.core.log.work import Callback
from baton.core.read.story import read_story
from baton.core.read.views import entry_view, saga_view
from baton.errors import CallbackOver, NotAllowedNow, UserError
from baton.ports import Head, Message, Offload, SagaRef, StepContext, StepFailure, Wake, Watch
from baton.runtime.engine.parts import Engine
from baton.runtime.engine.request import Caller, Opened, Request
from baton.runtime.invocation.context import Invocation, inline
from baton.runtime.invocation.watch import Metrics, to_log
from baton.runtime.people.links import Holder, token_for
from baton.runtime.reconcile import Reconciler
from baton.runtime.relay import Relay, StreamItem
from baton.runtime.requests.registering import register_workflow
from baton.runtime.requests.service import Service
from baton.runtime.worker.worker import Delivery, Worker
from baton.testing.killing import Kills, MortalPerformer
from baton.testing.loop import Blockers, CountedEntropy, LoopClock, VirtualLoop
from baton.testing.models import ScriptedModels
from baton.testing.operations import FunctionNodes
from baton.testing.outside import CANCEL, Handovers, Plans, Post, TimedSignal, services
from baton.testing.result import Result, make_result, turns_of
from baton.tools.define import NODE_KINDS, Registry
from baton.tools.functions import ApplicationFunctions
from baton.tools.perform import ToolPerformer
from baton.tools.standard import with_standard


class Invocations:
    """Running invocations, and the wakes that they have left on the table's stream."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._stream: list[tuple[SagaRef, Wake]] = []
        self._news = asyncio.Event()

    def __bool__(self) -> bool:
        """Return true if an invocation runs or has left wakes that are not forwarded yet."""
        return bool(self._running or self._stream)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._running.add(asyncio.create_task(work))

    def note(self, ref: SagaRef, wake: Wake) -> None:
        """Record a wake on the stream, which ends a pause."""
        self._stream.append((ref, wake))
        self._news.set()

    def drain(self) -> list[tuple[SagaRef, Wake]]:
        """Return the wakes since the last call, oldest first."""
        stream, self._stream = self._stream, []
        self._news.clear()
        return stream

    async def pause(self, seconds: float | None) -> None:
        """Wait for the time, an invocation's end, or a wake. Raises the error of an invocation."""
        news = asyncio.create_task(self._news.wait())
        done, _ = await asyncio.wait(
            {*self._running, news}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        news.cancel()
        self._take_out(done)

    async def end(self) -> None:
        """Wait until no invocation runs. Raises the error of an invocation that has ended."""
        while self._running:
            done, _ = await asyncio.wait(self._running)
            self._take_out(done)

    def _take_out(self, done: Collection[asyncio.Future[Any]]) -> None:
        for task in self._running.intersection(done):
            self._running.remove(task)
            task.result()


BATCH = 10
SHARDS = 1
PERIOD = 60_000  # ms between two runs of the reconciler
REQUEST = 28_000  # ms that a request or a run of the relay has
MOST_ROUNDS = 100_000
MOST_DELAY = 900  # seconds of a message
Answers = Mapping[
    str, Sequence[Mapping[str, Any] | None]
]  # by node; the last one again where it asks more often
_NONE: Answers = MappingProxyType({})
_NO_PLANS: Plans = MappingProxyType({})


class EngineDefect(Exception):
    """Error for a defect of the engine, not a failure of the saga. Its log (`baton`) contains details."""


class _Performer(ToolPerformer):
    """Performer that runs plain functions in place, one by one, so that a debugger can stop in them.

    One that names units waits for the worker, and so runs in a thread.
    """

    def __init__(self, registry: Registry, loop: VirtualLoop, watch: Watch) -> None:
        super().__init__(registry, watch=watch)
        self._loop = loop

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        """Perform a call. What ends the test (`pytest.fail`, Ctrl-C) is no failure of the step."""
        try:
            return await super().perform(tool, arguments, context)
        except StepFailure as failure:
            cause = failure.__cause__
            if cause is None or isinstance(cause, (Exception, SystemExit, GeneratorExit)):
                raise
            raise cause from None

    async def _call(self, tool: Any, call: Mapping[str, Any], _: StepContext) -> Any:
        if not tool.is_async and not _names_units(getattr(tool.function, "__code__", None)):
            with self._loop.left():
                return tool.function(**call)
        with self._loop.asking():
            if tool.is_async:
                return await tool.function(**call)
            return await asyncio.to_thread(tool.function, **call)


def _names_units(code: CodeType | None) -> bool:
    """Return true if the code of a function calls `once_sync` or `hold_sync`, or defines one that does."""
    if code is None:
        return False
    return not {"once_sync", "hold_sync"}.isdisjoint(code.co_names) or any(
        _names_units(one) for one in code.co_consts if isinstance(one, CodeType)
    )


class Deployment:
    """Everything that one saga needs. Times are in ms; `begin` is UTC epoch ms."""

    def __init__(
        self,
        loop: VirtualLoop,
        registry: Registry,
        limits: Limits,
        *,
        begin: int,
        worker_timeout: int,
        caller: tuple[str, str],
        kills: Kills | None = None,
        elsewhere: Plans = _NO_PLANS,
        models: ScriptedModels | None = None,
        functions: FunctionNodes | None = None,
    ) -> None:
        self._functions = functions or FunctionNodes()
        self._handovers = Handovers(elsewhere)
        self._clock = LoopClock(loop, begin)
        self._invocations = Invocations()
        store = MemoryStore(SHARDS, on_wake=self._invocations.note, clock=self._clock)
        self._blobs = MemoryBlobs()
        self._log = store.log
        self._queue, self._invoker = MemoryQueue(self._clock), MemoryInvoker()
        self._dead_letters = MemoryDeadLetters()
        self._worker_timeout = worker_timeout
        self._tenant, self._user = caller
        self._next_run = begin + PERIOD
        self._sent: set[tuple[str, str]] = set()
        self._asked: dict[tuple[str, str], str] = {}
        self._requests = itertools.count(1)
        self._kills = kills
        self._post: Post | None = None
        registry = with_standard(registry, services(self._clock))
        self._blockers = Blockers(to_log(Metrics(), self._clock))
        self.tools = registry.specs()
        performer = _Performer(registry, loop, self._blockers.watch)
        engine = Engine.on(
            store,
            self._blobs,
            self._clock,
            limits,
            entropy=CountedEntropy(),
            offload=inline,
            performer=performer if kills is None else MortalPerformer(performer, kills),
            sandbox=MontySandbox(inline),
            tools=self.tools,
            notices=(MemoryNotices(),),
        )
        self._models = models or ScriptedModels()
        self._engine = replace(engine, watch=self._blockers.watch, kinds=NODE_KINDS, models=self._models)
        self._engine = replace(self._engine, functions=ApplicationFunctions(registry))
        self._reconciler = Reconciler(self._log, self._queue, self._invoker, self._clock, inline, PERIOD)

    def service(self) -> Service:
        """Return the service of the API, for one request."""
        return Service(self._engine, self._caller(), self._clock.now() + REQUEST)

    async def register(self, text: str) -> Graph:
        """Register a document and return its graph. Raises `MalformedDocument`, `InvalidDefinition`."""
        request = self._request()
        registered = await register_workflow(
            request.parts, self._engine, request.caller, text, json_only=False
        )
        return await request.parts.catalog.graph(self._tenant, registered.definition.graph)

    def post(self, saga: str, signals: Sequence[TimedSignal]) -> None:
        """Send signals at their times to each open saga that waits, or will, for one of the name."""

        async def send(signal: TimedSignal, key: str) -> None:
            if signal.name == CANCEL:
                await self.service().cancel(saga, "cancelled by the test", **signal.payload)
                return

            def is_taken(program: Program) -> bool:
                nodes = program.graph.nodes
                return any(node.signal == signal.name or node.function is not None for node in nodes)

            opened = await self._open(parked=True)
            takers = [state.origin.saga for _, state, program in opened if is_taken(program)]
            if not takers and not is_taken((await self._request().open(saga)).program):
                raise NotAllowedNow(
                    f"no child that waits for `{signal.name}` is there: it has ended or not begun"
                )
            for taker in takers or [saga]:
                await self.service().signal(taker, signal.name, signal.payload, key=key)

        self._post = Post(signals, self._clock.now(), self._clock.now, send)

    async def settle(self, signals: Mapping[str, Any], answers: Answers = _NONE) -> None:
        """Let time pass until nothing more can happen. Each wait for one of `signals` receives it.

        A question about a node in `answers` is answered with action, arguments and output, or left until it
        expires. A question about another node stops time. Raises `EngineDefect`, `LoopBlocked`.
        """
        for _ in range(MOST_ROUNDS):
            await self._relay()
            messages = self._queue.receive(BATCH)
            wakes = [messages, *self._invoker.drain()] if messages else self._invoker.drain()
            for wake in wakes:
                self._invocations.begin(self._work(wake))
                if self._kills is not None:  # what runs beside a worker that dies would die with it
                    await self._invocations.end()
            said = await self._signal(signals) or await self._answer(answers) or await self._call_back()
            if not said and not await self._wait(answers):
                return
        raise EngineDefect(f"{MOST_ROUNDS} rounds and no end in sight")

    async def result(self, saga: str) -> Result:
        """Return the result of a saga."""
        opened = await self._request().open(saga)
        state, program = opened.history.state, opened.program
        entries = self._entries(opened)
        children = [
            await self._request().open(head.ref.id) for head in self._log.heads() if head.ref.id != saga
        ]
        return make_result(
            self._view(opened),
            [self._view(child) for child in children],
            [entry_view(entry) for entry in entries],
            read_story(program, state, entries),
            {
                child.head.ref.id: turns_of([entry_view(one) for one in self._entries(child)], self._content)
                for child in children
            },
            self._content,
        )

    def _entries(self, opened: Opened) -> list[Entry]:
        branches = range(opened.history.state.lineage.branch + 1)
        return [
            decode_entry(record.data)
            for branch in branches
            for record in self._log.read_tail(opened.head.ref, branch, 0)
        ]

    # -- roles

    async def _relay(self) -> None:
        # Again and again: a head that counts a report passes on the wake that it has once more.
        while stream := self._invocations.drain():
            items = [StreamItem(str(number), ref, wake) for number, (ref, wake) in enumerate(stream)]
            engine = self._engine
            relay = Relay(
                engine.store.inbox, self._queue, engine.clock, engine.entropy, engine.offload, engine.limits
            )
            failed = await relay.handle(items, self._clock.now() + REQUEST)
            if failed:
                raise EngineDefect(f"the relay could not pass on {[items[int(i)].wake for i in failed]}")

    async def _work(self, messages: Sequence[Message]) -> None:
        now, name = self._clock.now(), self._name("worker")
        deliveries = [Delivery(str(n), msgspec.json.encode(m).decode()) for n, m in enumerate(messages)]
        invocation = Invocation(name, now, now + self._worker_timeout)

        async def work(offload: Offload) -> list[str]:
            engine = replace(self._engine, offload=offload)
            return await Worker(engine, self._dead_letters, self._invoker).handle(deliveries, invocation)

        failed = await (work(inline) if self._kills is None else self._kills.live(work))
        self._blockers.check()
        self._models.check()
        if failed is None:
            self._deliver_again(messages, invocation)
        elif failed:
            raise EngineDefect(f"a worker could not go on with {[messages[int(i)].saga for i in failed]}")
        if self._dead_letters.letters:
            raise EngineDefect(self._dead_letters.letters[0][1])

    def _deliver_again(self, messages: Sequence[Message], of: Invocation) -> None:
        """Deliver an unfinished message again as soon as the lease has expired by every clock."""
        limits = self._engine.limits
        end = of.deadline + limits.lease_grace_ms + limits.clock_skew_ms + 1_000
        delay = min(-(-(end - self._clock.now()) // 1_000), MOST_DELAY)
        self._queue.send([(message, delay) for message in messages])

    async def _signal(self, signals: Mapping[str, Any]) -> bool:
        """Send each signal that an open wait expects, once. Return true if one was sent."""
        if not signals:
            return False
        waits = [
            (state.origin.saga, slot, work.signal)
            for _, state, _ in await self._open()
            for slot, work in state.open.items()
            if work.signal in signals and (state.origin.saga, slot) not in self._sent
        ]
        for saga, slot, name in waits:
            self._sent.add((saga, slot))
            await self.service().signal(saga, name, signals[name], key=f"test-{slot}")
        return bool(waits)

    async def _answer(self, answers: Answers) -> bool:
        """Answer each open question once. Return true if one was answered."""
        if not answers:
            return False
        given = []
        for _, state, _ in await self._open(parked=True):
            for slot, ask in unclosed_questions(state):
                node, question = self._functions.named(answers, slot), (state.origin.saga, ask.id)
                if node is None or question in self._asked:
                    continue
                before = sum(known == node for known in self._asked.values())
                self._asked[question] = node
                if answer := answers[node][min(before, len(answers[node]) - 1)]:
                    given.append((state.origin.saga, node, Answer(ask=ask.id, **answer)))
        for saga, node, said in given:
            try:
                await self.service().answer(saga, said, key="test")
            except UserError as error:
                error.detail = f"the answer about `{node}`: {error.detail}"
                error.args = (error.detail,)
                raise
        return bool(given)

    async def _call_back(self) -> bool:
        """Deliver the messages of external work that are due. Return true if one was delivered."""
        if not self._handovers.plans:
            return False
        for _, state, _ in await self._open(parked=True):
            for slot, work in state.open.items():
                if isinstance(work, Callback):
                    name = self._functions.named(self._handovers.plans, slot) or ""
                    self._handovers.meet(state.origin.saga, name, work.id, work.since)
        told = self._handovers.due(self._clock.now())
        if told is None:
            return False
        saga, callback, said = told
        request = self._request()
        holder = Holder(tenant=self._tenant, saga=saga, callback=callback)
        token = await token_for(request.parts.context, self._engine.secrets, holder)
        with suppress(CallbackOver):  # as to any work that comes too late
            await self.service().callback(token, said)
        return True

    async def _wait(self, answers: Answers) -> bool:
        """Advance time to the next event. Return false if none exists."""
        timers = [visible for visible, _ in self._queue.waiting()]
        if self._post is not None and (moment := self._post.next_moment()) is not None:
            timers.append(moment)
        if (moment := self._handovers.next_moment()) is not None:
            timers.append(moment)
        found = await self._open()
        due = [
            head.due_at
            for head, state, program in found
            if head.due_at is not None
            and (status_of(state, program) == "running" or self._has_timer(state, program, answers))
        ]
        if due:
            # Runs of the reconciler that would find nothing are left out: a wait may take a year.
            idle = max(0, -(-(min(due) - PERIOD - self._next_run) // PERIOD))
            self._next_run += idle * PERIOD
            timers.append(self._next_run)
        # A test that has not thought of a question is to see it, not what the end of a day makes of it.
        is_asked = any(not name for _, state, _ in found for name in self._questions(state, answers))
        if not self._invocations and (not timers or is_asked):
            return False
        await self._invocations.pause(max(0, min(timers) - self._clock.now()) / 1_000 if timers else None)
        if due and self._clock.now() >= self._next_run:
            self._next_run += PERIOD
            await self._reconciler.sweep(0, REQUEST)
        return True

    # -- looking on

    async def _open(self, *, parked: bool = False) -> list[tuple[Head, State, Program]]:
        """Return the sagas that have not ended and, unless `parked` is true, are not parked."""
        found = []
        for head in self._log.heads():
            opened = await self._request().open(head.ref.id)
            state = opened.history.state
            if state.ended is None and (parked or state.parked is None):
                found.append((head, state, opened.program))
        return found

    def _view(self, opened: Opened) -> Mapping[str, Any]:
        view: dict[str, Any] = msgspec.to_builtins(
            saga_view(opened.history.state, opened.program, self._engine.tools)
        )
        return view | {name: self._content(view[name]) for name in ("input", "result")}

    def _content(self, value: Any) -> Any:
        """Return the content of a value of the log, wherever it is stored."""
        if not isinstance(value, dict):
            return value
        if value.get("ref"):
            return msgspec.json.decode(self._blobs.get(self._tenant, value["ref"]))
        return value.get("v")

    def _request(self) -> Request:
        return Request(self._engine, self._caller(), self._clock.now() + REQUEST)

    def _caller(self) -> Caller:
        # An operator: a test answers incidents, too.
        return Caller(
            tenant=self._tenant, user=self._user, request=self._name("api"), roles=frozenset({OPERATORS})
        )

    def _name(self, role: str) -> str:
        return f"{role}-{next(self._requests)}"

    def _has_timer(self, state: State, program: Program, answers: Answers) -> bool:
        if program.caps is not None and program.caps.deadline(state) is not None:
            return True
        if any("wall_time" in program.nodes[Slot.parse(slot).node].limits for slot in state.begun):
            return True
        waits = bool(state.held or state.pauses) or any(work.due is not None for work in state.open.values())
        asks = any(self._questions(state, answers))
        return waits or asks or any(failing.due_at for failing in state.failing.values())

    def _questions(self, state: State, answers: Answers) -> list[str | None]:
        """Return the names in `answers` of open questions that expire; None for one that has none."""
        return [self._functions.named(answers, slot) for slot, ask in open_questions(state) if ask.expires_at]
