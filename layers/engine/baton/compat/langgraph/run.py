"""The run of a graph inside of a step: checkpoints, requests and calls are units of the step's journal."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    BaseMessage,
    ToolMessage,
    message_to_dict,
    messages_from_dict,
    messages_to_dict,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding, ensure_config
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.errors import GraphRecursionError
from langgraph.types import Command
from pydantic_core import to_jsonable_python

from baton.compat import CALL_KEY
from baton.compat.langgraph.saver import STEP, BatonSaver, config_of
from baton.core.models.usage import Usage
from baton.ports import HoldRequest, StepContext, StepFailure

_INTERRUPT: Final = "__interrupt__"
_SOON_S: Final = 0.005
"""Seconds for which the writes of a task wait for the checkpoint after them, to share its unit."""
MOST_UNITS: Final = 400
MOST_CHARS: Final = 6_000_000
"""Units, and characters of checkpoints, after which a graph goes on in another step with a new journal."""
_LONGEST_LABEL: Final = 80
_Change = Sequence[Any]

_RUN: ContextVar[GraphRun | None] = ContextVar("graph_run", default=None)


class _Paused(Exception):
    """End of a run that goes on in another step. It is no error."""


class GraphRun:
    """A run of a graph in a step, from its beginning or from the last checkpoint that the journal has."""

    def __init__(
        self,
        graph: Any,
        context: StepContext,
        types: Sequence[type],
        config: dict[str, Any],
        thread: str,
        *,
        may_pause: bool,
    ) -> None:
        self.context, self.may_pause, self.units, self.chars = context, may_pause, 0, 0
        self._before: dict[str, list[Any]] = {}
        self._done: dict[str, list[Any]] = {}
        self._loop = asyncio.get_running_loop()
        self._graph, self.thread = graph, thread or context.saga
        own = graph.checkpointer
        self.outer = (own if isinstance(own, BaseCheckpointSaver) else BatonSaver()) if thread else None
        self._config = {
            **config,
            "configurable": {**config.get("configurable", {}), "thread_id": self.thread},
        }
        allowed = [(one.__module__, one.__name__) for one in types]
        self.serde = JsonPlusSerializer(allowed_msgpack_modules=allowed or None)

    async def run(self, input: Any, state: str, resume: dict[str, Any]) -> tuple[Any, list[Any], str]:
        """Run the graph; return its output, its open interrupts, and the state to go on with.

        Each interrupt has its id, its value and its schema. Raises `StepFailure`.
        """
        for name, channel in self._graph.channels.items():
            if isinstance(channel, DeltaChannel):
                text = f"the channel `{name}` is a `DeltaChannel`, whose value is in no checkpoint"
                raise StepFailure("tool_defect", f"{text}; give it a reducer")
        _RUN.set(self)
        STEP.set(self.context)
        saver = _StepSaver(self)
        if state:
            checkpoints, self._before = self.unpacked(state)
            saver.load(checkpoints)
        try:
            await saver.journal.read()
            left = {key: said for key, said in resume.items() if key not in saver.interrupted}
            given: Any = None
            if left and not saver.has_begun:
                given = Command(resume=left)
            elif not saver.has_begun and not state:
                given = input
            graph = self._graph.copy({"checkpointer": saver})
            try:
                found = await graph.ainvoke(given, self._config, durability="sync", version="v2")
            except _Paused:
                return None, [], self.packed([saver.newest(), {}])
            except GraphRecursionError as error:
                raise StepFailure("loop_exhausted", str(error), kind="permanent") from error
        finally:
            await saver.journal.end()
        questions = [
            (one.id, to_jsonable_python(one.value), _schema_of(one.response_schema))
            for one in found.interrupts
        ]
        if not questions:
            await saver.keep()
        state = self.packed([saver.newest(), self._done]) if questions else ""
        return to_jsonable_python(found.value), questions, state

    async def unit(self, name: str, act: Callable[[], Awaitable[Any]]) -> Any:
        """Do a unit of the step, or return what it was in the step before, in the same superstep."""
        known = self._before.get(name)
        result = known.pop(0) if known else await self._unit(name, act)
        self._done.setdefault(name, []).append(result)
        return result

    def has_passed(self) -> None:
        """Forget the units of a superstep, as it is over."""
        self._before.clear()
        self._done.clear()

    async def _unit(self, name: str, act: Callable[[], Awaitable[Any]]) -> Any:
        self.units += 1

        async def acts() -> Any:
            token = CALL_KEY.set(self.context.key(name))
            try:
                return await act()
            finally:
                CALL_KEY.reset(token)

        return await self.context.once(name, acts)

    def in_thread(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Wait in a thread of a plain node for work on the loop of the step. Raises `StepFailure`."""
        with suppress(RuntimeError):
            if asyncio.get_running_loop() is self._loop:
                work.close()
                text = "`invoke` in an `async` node blocks the event loop; write `await ….ainvoke(…)`"
                raise StepFailure("tool_defect", text)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def packed(self, value: Any) -> str:
        """Return a value as text. Raises `StepFailure` for a type that would not come back."""
        kind, data = self.serde.dumps_typed(value)
        if lost := _lost(value, self.serde.loads_typed((kind, data))):
            text = (
                f"a checkpoint of the graph has a value of the type `{lost}`, which no checkpoint gives back"
            )
            raise StepFailure("tool_defect", f"{text}; write `graph_tool(…, types=[{lost}])`")
        return f"{kind}:{base64.b64encode(data).decode()}"

    def unpacked(self, text: str) -> Any:
        """Return the value of a text."""
        kind, _, data = text.partition(":")
        return self.serde.loads_typed((kind, base64.b64decode(data)))


def _schema_of(schema: Any) -> dict[str, Any] | None:
    return dict(schema) if isinstance(schema, Mapping) else None


def _lost(value: Any, back: Any) -> str:
    """Return the name of the first type in a value that has not come back."""
    if isinstance(value, BaseException):  # comes back as its text
        return ""
    if not isinstance(value, (type(back), tuple)):  # a tuple comes back as a list
        return type(value).__name__
    pairs: Any = ()
    if isinstance(value, Mapping):
        pairs = ((one, back.get(key)) for key, one in value.items())
    elif isinstance(value, list | tuple):
        pairs = zip(value, back, strict=False)
    return next((found for one, other in pairs if (found := _lost(one, other))), "")


# ---- checkpoints


class _Journal:
    """Changes of checkpoints as units, one after the other: what waits meanwhile shares the next unit.

    It does not look whether the journal has a unit: it begins each, and a recorded one is done at once.
    """

    def __init__(self, run: GraphRun, apply: Callable[[_Change], None]) -> None:
        self._run, self._apply = run, apply
        self._waiting: list[tuple[_Change, asyncio.Future[None]]] = []
        self._taken: list[tuple[_Change, asyncio.Future[None]]] = []
        self._news, self._is_read = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._write())

    async def _write(self) -> None:
        for number in itertools.count(1):
            text = await self._run.context.once(f"checkpoint {number}", self._next)
            self._run.units += 1
            self._run.chars += len(text)
            if not self._taken:
                for change in self._run.unpacked(text):
                    self._apply(change)
            for _, answer in self._taken:
                if not answer.done():
                    answer.set_result(None)
            self._taken = []

    async def _next(self) -> str:
        self._is_read.set()
        while not self._waiting:
            await self._news.wait()
            self._news.clear()
        self._taken, self._waiting = self._waiting, []
        return self._run.packed([change for change, _ in self._taken])

    async def read(self) -> None:
        """Wait until all changes that the journal has are applied."""
        await self._first(asyncio.ensure_future(self._is_read.wait()))

    async def record(self, change: _Change, *, soon: bool = False) -> None:
        """Wait until the journal has a change. Raises `StepFailure`; cancelled if it never will."""
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((change, answer))
        if soon:
            await asyncio.sleep(_SOON_S)
        self._news.set()
        await self._first(answer)

    async def _first(self, answer: asyncio.Future[Any]) -> None:
        await asyncio.wait({answer, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            answer.cancel()
            self._task.result()  # raises why it has ended

    async def end(self) -> None:
        """Stop, as the run is over."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class _StepSaver(InMemorySaver):
    """Checkpoints of one attempt. The graph goes on when the journal of the step has each."""

    def __init__(self, run: GraphRun) -> None:
        super().__init__(serde=run.serde)
        self._run = run
        self._heads: dict[str, str] = {}  # the last one: its id need not be the greatest, as clocks differ
        self.has_begun = False
        """True if the graph has a checkpoint of this step."""
        self.interrupted: set[str] = set()
        """Ids of interrupts whose answers this step has used up: their tasks have asked again since."""
        self._open: dict[str, set[str]] = {}
        self.journal = _Journal(run, self._apply)

    def _apply(self, change: _Change) -> None:
        kind, *given = change
        if kind == "load":
            self.load(given[0])
        elif kind == "put":
            self._put(*given)
            ns = given[0]["configurable"]["checkpoint_ns"]
            self._forget_below(ns)
            if not ns:
                self.has_begun = True
                self._run.has_passed()
        else:
            super().put_writes(*given)
            self._ask(given[1], given[2])

    def _ask(self, writes: Sequence[Any], task: str) -> None:
        """Note the interrupts of a task: the answers to those that it had before are used up."""
        asked = {one.id for channel, value in writes if channel == _INTERRUPT for one in value}
        if asked:
            self.interrupted |= self._open.get(task, set())
            self._open[task] = asked

    def _forget_below(self, ns: str) -> None:
        """Forget the checkpoints of subgraphs whose tasks are over."""
        below = f"{ns}|" if ns else ""
        for one in [*self._heads]:
            if one != ns and one.startswith(below) and ":" in one[len(below) :]:
                del self._heads[one]

    def _put(self, config: Any, checkpoint: Any, metadata: Any, versions: Any) -> None:
        super().put(config, checkpoint, metadata, versions)
        self._heads[config["configurable"]["checkpoint_ns"]] = checkpoint["id"]

    def get_tuple(self, config: Any) -> CheckpointTuple | None:
        """Return the checkpoint that a configuration names, or the last one of its graph."""
        found = _configured(config)
        if "checkpoint_id" not in found["configurable"]:
            head = self._heads.get(found["configurable"]["checkpoint_ns"])
            if head is None:
                return None
            found = _configured(config, head)
        return super().get_tuple(found)

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """See `aput`: of a plain node that calls a graph."""
        return self._run.in_thread(self.aput(config, checkpoint, metadata, new_versions))

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """Store a checkpoint. Raises `_Paused` where the graph goes on in another step."""
        config = _configured(config)
        run, change = self._run, ("put", config, checkpoint, dict(metadata), new_versions)
        await self.journal.record(change)
        self._apply(change)
        is_whole = not config["configurable"]["checkpoint_ns"]
        if is_whole and run.may_pause and (run.units >= MOST_UNITS or run.chars >= MOST_CHARS):
            raise _Paused
        return _configured(config, checkpoint["id"])

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        """See `aput_writes`: of a plain node that calls a graph."""
        self._run.in_thread(self.aput_writes(config, writes, task_id, task_path))

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        """Store what a task has written."""
        change = ("writes", _configured(config), [list(one) for one in writes], task_id, task_path)
        self._apply(change)
        await self.journal.record(change, soon=True)

    async def aget_tuple(self, config: Any) -> CheckpointTuple | None:
        """Return the same; at the beginning of a graph, the newest checkpoint of its thread."""
        of = _configured(config)["configurable"]
        ns, outer = of["checkpoint_ns"], self._run.outer
        if outer is not None and ns not in self._heads and ":" not in ns and "checkpoint_id" not in of:
            found = await outer.aget_tuple(config_of(self._run.thread, ns, ""))
            if found is not None:
                change = ("load", [[ns, "", found.checkpoint, dict(found.metadata), []]])
                await self.journal.record(change)
                self._apply(change)
        return self.get_tuple(config)

    async def keep(self) -> None:
        """Store the newest checkpoints in the thread, at the end of the graph."""
        if self._run.outer is None:
            return
        for ns, _, checkpoint, metadata, _ in self.newest():
            if ":" not in ns:
                place = config_of(self._run.thread, ns, "")
                await self._run.outer.aput(place, checkpoint, metadata, checkpoint["channel_versions"])

    def newest(self) -> list[Any]:
        """Return the newest checkpoint of each namespace with its writes, for another step."""
        found = []
        for ns, head in self._heads.items():
            saved = self.get_tuple(config_of(self._run.thread, ns, head))
            assert saved is not None, "it is stored"
            parent = (
                "" if saved.parent_config is None else saved.parent_config["configurable"]["checkpoint_id"]
            )
            tasks: dict[tuple[str, str], list[Any]] = {}
            stored = self.writes.get((self._run.thread, ns, head), {})
            # Regular writes first: the saver numbers them by their place.
            for key in sorted(stored, key=lambda key: (key[1] < 0, key[1])):
                task, channel, (kind, data), path = stored[key]
                tasks.setdefault((task, path), []).append([channel, self.serde.loads_typed((kind, data))])
            rows = [[writes, task, path] for (task, path), writes in tasks.items()]
            found.append([ns, parent, saved.checkpoint, saved.metadata, rows])
        return found

    def load(self, state: Sequence[Any]) -> None:
        """Load what `newest` has returned in an earlier step."""
        thread = self._run.thread
        for ns, parent, checkpoint, metadata, rows in state:
            self._put(config_of(thread, ns, parent), checkpoint, metadata, checkpoint["channel_versions"])
            for writes, task, path in rows:
                super().put_writes(config_of(thread, ns, checkpoint["id"]), writes, task, path)
                self._ask(writes, task)


def _configured(config: Any, id: str = "") -> Any:
    """Return the place of a checkpoint, of all that a configuration has."""
    of = config["configurable"]
    return config_of(of["thread_id"], of.get("checkpoint_ns", ""), id or of.get("checkpoint_id", ""))


# ---- requests and calls


def _label(what: str, *of: Any) -> str:
    """Return the name of a unit in a node: node, action, superstep, and a hash of the arguments.

    It is the same in every run of the graph, but for that of a subgraph, where the hash is of the task, too.
    """
    config = ensure_config()
    metadata, configurable = config.get("metadata") or {}, config.get("configurable") or {}
    node, step = metadata.get("langgraph_node", "graph"), metadata.get("langgraph_step", 0)
    place = str(configurable.get("checkpoint_ns", ""))
    text = json.dumps(
        [place if "|" in place else metadata.get("langgraph_path"), of],
        sort_keys=True,
        default=lambda one: type(one).__name__,
    )
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{f'{node}/{what}'[:_LONGEST_LABEL]} {step} {digest}"


async def once(name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a function in a node, once: a node that runs again after a crash gets the recorded result.

    The result is JSON. Outside of Baton it is an ordinary call.
    """

    async def act() -> Any:
        found = function(*args, **kwargs)
        return await found if asyncio.iscoroutine(found) else found

    run = _RUN.get()
    return await act() if run is None else await run.unit(_label(name, args, kwargs), act)


async def record_tool_call(request: Any, execute: Callable[[Any], Awaitable[Any]]) -> Any:
    """Do a call of a tool once: `ToolNode(tools, awrap_tool_call=record_tool_call)`."""
    run = _RUN.get()
    if run is None:
        return await execute(request)

    async def act() -> dict[str, Any]:
        found = await execute(request)
        if isinstance(found, ToolMessage) and found.artifact is None:
            return {"message": to_jsonable_python(message_to_dict(found))}
        return {"packed": run.packed(found)}

    call = request.tool_call
    answer = await run.unit(_label(call["name"], call["id"], call["args"]), act)
    return (
        messages_from_dict([answer["message"]])[0] if "message" in answer else run.unpacked(answer["packed"])
    )


class BatonChatModel(BaseChatModel):
    """A chat model whose requests happen once: a node that runs again gets the recorded answer.

    Money for a request is held before it, by the deployment's price of `priced_as`, or else of the model's
    name; `""` holds none. Outside of Baton it is the model itself.
    """

    model: BaseChatModel
    priced_as: str | None = None

    @property
    def _llm_type(self) -> str:
        return "baton"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        """Bind tools in the form that the model has for them."""
        bound = self.model.bind_tools(tools, **kwargs)
        if isinstance(bound, BaseChatModel):
            return self.model_copy(update={"model": bound})
        if not isinstance(bound, RunnableBinding):
            text = f"`{type(self.model).__name__}.bind_tools` returns no binding of the model"
            raise TypeError(f"{text}; let it return `self.bind(tools=…)`, or a chat model")
        return RunnableBinding(bound=self, kwargs=bound.kwargs, config=bound.config)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        run = _RUN.get()
        if run is None:
            return _result(self.model.invoke(messages, stop=stop, **kwargs))
        result: ChatResult = run.in_thread(self._agenerate(messages, stop, **kwargs))
        return result

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        run = _RUN.get()
        if run is None:
            return _result(await self.model.ainvoke(messages, stop=stop, **kwargs))

        async def act() -> dict[str, Any]:
            answer = await self._paid(run.context, messages, stop, kwargs)
            said: dict[str, Any] = to_jsonable_python(message_to_dict(answer))
            return said

        asked = [{**one["data"], "id": None} for one in messages_to_dict(messages)]
        answer = await run.unit(_label("model", asked, stop, kwargs), act)
        return _result(messages_from_dict([answer])[0])

    async def _paid(
        self, context: StepContext, messages: list[BaseMessage], stop: Any, settings: dict[str, Any]
    ) -> BaseMessage:
        """Ask the model, with money held before and counted after it. Raises what the request raises."""
        name = self.priced_as
        if name is None:
            names = (getattr(self.model, one, "") for one in ("model_name", "model", "model_id"))
            name = next((one for one in names if one and isinstance(one, str)), "")
        if not name:
            return await self.model.ainvoke(messages, stop=stop, **settings)
        most = settings.get("max_tokens") or getattr(self.model, "max_tokens", None) or MOST_OUTPUT
        size = _size(messages, settings)
        held = await context.hold_request(HoldRequest(model=name, size=size, output=most))
        if 0 < held.output < most:
            settings = {**settings, "max_tokens": held.output}
        try:
            answer = await self.model.ainvoke(messages, stop=stop, **settings)
        except Exception as error:
            if getattr(error, "status_code", None) in _REFUSED:
                held.spend(0)
            raise
        held.count(_usage(name, answer))
        return answer


_REFUSED: Final = range(400, 500)
"""HTTP statuses of a request that a provider has not carried out."""
MOST_OUTPUT: Final = 8_192
"""Tokens of an answer for which money is held where neither model nor request has `max_tokens`."""


def _size(messages: list[BaseMessage], settings: Mapping[str, Any]) -> int:
    """Return the most tokens of a request: those that the last answer counted, and a byte for each since."""
    known, since = 0, messages
    for place, message in enumerate(messages):
        if used := getattr(message, "usage_metadata", None):
            known, since = used["total_tokens"], messages[place + 1 :]
    return known + len(json.dumps([messages_to_dict(since), settings], default=str))


def _usage(model: str, answer: BaseMessage) -> Usage:
    used = getattr(answer, "usage_metadata", None) or {}
    read = used.get("input_token_details") or {}
    return Usage(
        model=model,
        input=used.get("input_tokens", 0),
        cached=read.get("cache_read", 0),
        written=read.get("cache_creation", 0),
        output=used.get("output_tokens", 0),
    )


def _result(message: BaseMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])
