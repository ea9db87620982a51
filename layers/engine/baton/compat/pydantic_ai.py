"""Agents of pydantic-ai as they are: `Agent(..., capabilities=[BatonDurability()])`.

In a workflow function each request to a model and each call of a tool is an operation of the saga; in a tool,
a unit of its journal. Elsewhere the agent runs plainly. Built on `pydantic_ai.durable_exec`, the public
surface for such engines; this module is the only one that imports pydantic-ai.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple

from pydantic_ai import (
    AbstractToolset,
    AgentStreamEvent,
    DeferredToolRequests,
    DeferredToolResults,
    FunctionToolset,
    ModelHTTPError,
    ModelMessagesTypeAdapter,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    RunContext,
    TextPart,
    TextPartDelta,
    ToolApproved,
    ToolDenied,
    UserError,
)
from pydantic_ai.agent import AbstractAgent, AgentRunResult, EventStreamHandler
from pydantic_ai.capabilities import AbstractCapability, WrapModelRequestHandler, WrapRunHandler
from pydantic_ai.durable_exec import (
    JSON_CODEC,
    BaseDurabilityCapability,
    BoundDurableOperation,
    CapabilityOperationId,
    DurabilityEngineSpec,
    DurableOperation,
    DurableOperationBackend,
    ModelRequestId,
    ToolsetCallToolId,
    conversation_id_from_run_id,
    durable_unit_scope,
)
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_core import to_jsonable_python

from baton.compat import CALL_KEY, idempotency_key
from baton.core.effects.toolspec import PURE
from baton.core.failures.codes import TOOL_DEFECT
from baton.core.models.usage import Usage
from baton.ports import HoldRequest, StepContext, StepFailure
from baton.ports.process import Draft
from baton.tools.define import REGISTRY, Registry, raises, tool
from baton.tools.functions.context import IN_MEMORY, WorkflowContext
from baton.tools.functions.define import ADAPTED
from baton.tools.functions.loop import INLINE, TaskPath, task_path
from baton.tools.perform import CURRENT

__all__ = ["BatonDurability", "idempotency_key"]

REQUEST, CALL = TOOLS = "pydantic_ai.request", "pydantic_ai.call"
MOST_OUTPUT: Final = 8_192
"""Tokens of an answer for which money is held where the settings have no `max_tokens`; they are then sent."""
_DENIED: Final = ("rejected", "expired")
Place = tuple[str, str, str, tuple[int, ...], str]
Body = Callable[[], Awaitable[Any]]
_bodies: dict[Place, Body] = {}
"""Code of the operations that functions in this process wait for, by their place."""
_OBJECT: Final = "baton:object"
"""Name of a model that a run got as an object, as of `agent.override`, for the code of its request."""
_given: ContextVar[Model | None] = ContextVar("pydantic_ai_model", default=None)
_path: ContextVar[TaskPath | None] = ContextVar("pydantic_ai_path", default=None)


# ---- operations


async def _request(agent: str, model: str, context: StepContext) -> Any:
    """Make a request of an agent of pydantic-ai to its model."""
    return await _done(context)


async def _call(agent: str, operation: str, context: StepContext, arguments: Any = None) -> Any:
    """Make a call of an agent of pydantic-ai."""
    return await _done(context)


async def _done(context: StepContext) -> dict[str, Any]:
    """Return the result of an operation; one whose code another process has is asked for again there."""
    body = _bodies.get((context.tenant, context.saga, context.node, context.iteration, context.item))
    return {"missing": True} if body is None else {"done": await body()}


def add_tools(registry: Registry) -> None:
    """Add the tools of operations to a registry."""
    if REQUEST not in registry:
        tool(REQUEST, effect=PURE, timeout="5m", cost_usd="0.000001", registry=registry)(_request)
        tool(CALL, timeout="5m", registry=registry)(_call)
    raises({UserError: TOOL_DEFECT}, registry=registry)  # a mistake of the developer, no key for example
    IN_MEMORY.update(TOOLS)


class _Operation(BoundDurableOperation[Any, Any, Any]):
    """An operation of an agent: in a function a step, in a tool a unit of its journal."""

    def __init__(self, operation: DurableOperation[Any, Any, Any], agent: str) -> None:
        self._operation, self._agent = operation, agent

    @property
    def operation(self) -> DurableOperation[Any, Any, Any]:
        return self._operation

    async def __call__(self, params: Any, *, config: object | None = None) -> Any:
        of, context = self._operation, CURRENT.get()
        name, model = _name(of, params), None
        if getattr(params, "model_id", None) == _OBJECT:
            model = params.run_context.model

        async def body() -> Any:
            is_request = isinstance(of.operation_id, ModelRequestId)
            with durable_unit_scope(), _with_model(model):
                result = await (_paid(of, params) if is_request else of.handler(params))
                return of.result_codec.dump(result)

        if isinstance(context, WorkflowContext):
            payload = await self._step(context, name, params, body)
        else:
            payload = await self._unit(context, name, params, body)
        return of.result_codec.load(payload)

    async def _step(self, context: WorkflowContext, name: str, params: Any, body: Body) -> Any:
        """Return the payload of a step of a function."""
        of, key = self._operation.operation_id, ""
        if isinstance(of, ToolsetCallToolId) and context.is_tool(function := _function_of(params)):
            return await self._tool(context, function, name, params.tool_args)
        while True:
            with _named_by_run():
                if isinstance(of, ModelRequestId):
                    step = context.step(REQUEST, self._agent, of.model_name, name=name)
                else:
                    given = to_jsonable_python(getattr(params, "tool_args", None), fallback=str)
                    step = context.step(CALL, self._agent, name, arguments=given, name=name)
            place = context.place(step.item)
            key = key or _digest(place)
            _bodies[place] = _keyed(body, key)
            try:
                outcome = await step
            finally:
                _bodies.pop(place, None)
            if "done" in outcome:
                return outcome["done"]

    async def _tool(
        self, context: WorkflowContext, function: Any, name: str, arguments: Mapping[str, Any]
    ) -> Any:
        """Return the payload of a step of a tool under `@tool`, with its approval and its inverse."""
        with _named_by_run():
            step = context.step_of(function, arguments, name)
        try:
            result = await step
        except StepFailure as failure:
            if failure.code not in _DENIED:
                raise
            result = f"The call was not made: {failure.message}"
        return {"kind": "tool_return", "result": to_jsonable_python(result)}

    async def _unit(self, context: StepContext, name: str, params: Any, body: Body) -> Any:
        """Return the payload of a unit of a tool's journal, named by what is asked for, and within which."""
        place = f"{self._agent[:40]}: {name} {_digest([CALL_KEY.get(), _content(params)])[:12]}"
        return await context.once(place, _keyed(body, context.key(place)))


@contextmanager
def _named_by_run() -> Iterator[None]:
    """Name operations by the run of the agent, and not by the tasks that pydantic-ai makes for it."""
    token = task_path.set(_path.get() or task_path.get())
    try:
        yield
    finally:
        task_path.reset(token)


@contextmanager
def _with_model(model: Model | None) -> Iterator[None]:
    """Send requests to a model that is an object: the code of a step has it in memory."""
    token = _given.set(model)
    try:
        yield
    finally:
        _given.reset(token)


def _function_of(params: Any) -> Any:
    """Return the function that a tool of an agent was made from; None if there is none."""
    toolset = getattr(getattr(params, "tool", None), "toolset", None)
    found = toolset.tools.get(params.name) if isinstance(toolset, FunctionToolset) else None
    return None if found is None else found.function


def _called(agent: AbstractAgent[Any, Any]) -> Iterator[Any]:
    """Yield what the operations of an agent call: names of tools, and functions that may be tools."""
    yield from TOOLS
    found: list[AbstractToolset[Any]] = []
    for toolset in agent.toolsets:
        toolset.apply(found.append)
    for toolset in found:
        if isinstance(toolset, FunctionToolset):
            yield from (one.function for one in toolset.tools.values())


def _keyed(body: Body, key: str) -> Body:
    async def run() -> Any:
        token = CALL_KEY.set(key)
        try:
            return await body()
        finally:
            CALL_KEY.reset(token)

    return run


def _name(operation: DurableOperation[Any, Any, Any], params: Any) -> str:
    """Return the name of an operation in labels: `model`, that of the tool, or that of its kind."""
    of = operation.operation_id
    if isinstance(of, ModelRequestId):
        return "model"
    if isinstance(of, ToolsetCallToolId | CapabilityOperationId):
        name = params.name if isinstance(of, ToolsetCallToolId) else of.operation
    else:  # `get_tools` of `ToolsetGetToolsId`
        words = re.findall("[A-Z][a-z]+", type(of).__name__.removesuffix("Id"))
        name = "_".join(words).lower().removeprefix("toolset_").removeprefix("model_")
    return re.sub(r"\W", "_", name, flags=re.ASCII)[:40].lstrip("0123456789") or "call"


_VOLATILE = frozenset({"timestamp", "run_id", "conversation_id"})


def _content(params: Any) -> Any:
    """Return what a unit asks for: the same in each attempt."""
    if hasattr(params, "messages"):
        return _lasting(ModelMessagesTypeAdapter.dump_python(params.messages, mode="json"))
    called = getattr(getattr(params, "ctx", None), "tool_call_id", None)
    said = [called, *(getattr(params, name, None) for name in ("name", "tool_args", "event"))]
    return _lasting(to_jsonable_python(said, fallback=str))


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lasting(one) for key, one in value.items() if key not in _VOLATILE}
    return [_lasting(one) for one in value] if isinstance(value, list) else value


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


class _Backend(DurableOperationBackend[Any]):
    def __init__(self, agent: str) -> None:
        self._agent = agent

    def bind(self, operation: DurableOperation[Any, Any, Any]) -> _Operation:
        return _Operation(operation, self._agent)

    def config_for_tool(self, operation: Any, *, tool: object | None, tool_name: str) -> Any:
        return {}

    def registrations(self) -> Sequence[Callable[..., object]]:
        return ()


# ---- money


async def _paid(operation: DurableOperation[Any, Any, Any], params: Any) -> Any:
    """Make a request to a model whose most possible cost is held, and count its usage."""
    of, settings = operation.operation_id, params.model_settings or {}
    assert isinstance(of, ModelRequestId), "nothing else is paid"
    output = settings.get("max_tokens") or MOST_OUTPUT
    provider = getattr(params.run_context.model, "system", "")
    model = f"{provider}/{of.model_name}" if provider else of.model_name
    asked = HoldRequest(model=model, size=_size(params), output=output)
    held = await CURRENT.get().hold_request(asked)
    try:
        settings = {**settings, "max_tokens": held.output}
        response = await operation.handler(replace(params, model_settings=settings))
    except (ModelHTTPError, UserError) as error:  # its provider has refused it, or never got it
        if not getattr(error, "in_stream", False):  # an answer that breaks off is billed
            held.spend(0)
        raise
    used = response.usage
    held.count(
        Usage(
            model=response.model_name or of.model_name,
            input=used.input_tokens,
            cached=used.cache_read_tokens,
            written=used.cache_write_tokens,
            output=used.output_tokens,
        )
    )
    return response


def _size(params: Any) -> int:
    """Return the most tokens that a request reads: those of its last answer, and each byte since."""
    offered = len(json.dumps(to_jsonable_python(params.model_request_parameters, fallback=str)))
    before, rest = 0, params.messages
    for number, message in enumerate(params.messages):
        if isinstance(message, ModelResponse) and message.usage.input_tokens:
            before = message.usage.input_tokens + message.usage.output_tokens
            rest = params.messages[number + 1 :]
    return before + (0 if before else offered) + len(ModelMessagesTypeAdapter.dump_json(rest))


async def _shown(
    handler: EventStreamHandler[Any] | None, ctx: RunContext[Any], stream: AsyncIterable[AgentStreamEvent]
) -> None:
    """Show viewers the text of an answer while it arrives, and pass its events on."""
    texts: dict[int, str] = {}

    async def seen() -> AsyncIterator[AgentStreamEvent]:
        async for event in stream:
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                texts[event.index] = event.part.content
            elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                texts[event.index] = texts.get(event.index, "") + event.delta.content_delta
            yield event

    context = CURRENT.get()
    with context.draft() if isinstance(context, StepContext) else nullcontext(Draft()) as draft:
        draft.read = lambda: "".join(texts.values())
        if handler is not None:
            await handler(ctx, seen())
        else:
            async for _ in seen():
                pass


# ---- the capability


class _Settings(NamedTuple):
    handler: EventStreamHandler[Any] | None
    approval: dict[str, Any]
    live: bool


class BatonDurability(BaseDurabilityCapability[Any]):
    """Capability with which an agent of pydantic-ai runs durably in a workflow function or a tool.

    models: models that a run chooses by name. event_stream_handler: gets the agent's events; those of a tool
    call are operations of their own. name: of the agent in the log; without it, its own. approval: who
    approves calls (`to`, `expires`, `risk`, `message`, as of `WorkflowContext.ask`). live: requests stream,
    and viewers of the saga see the text. registry: with the tools of the application; without it, the usual
    one.
    """

    engine_spec = DurabilityEngineSpec(
        engine_name="Baton",
        durable_unit_noun="operation",
        durable_container_noun="saga",
        codec=JSON_CODEC,
        toolset_lifecycles={
            "function": "enter-outside-durable",
            "mcp": "enter-outside-durable",
            "dynamic": "enter-never",
        },
    )

    def __init__(
        self,
        *,
        models: Mapping[str, Model] | None = None,
        event_stream_handler: EventStreamHandler[Any] | None = None,
        name: str | None = None,
        approval: Mapping[str, Any] | None = None,
        live: bool = False,
        registry: Registry | None = None,
    ) -> None:
        self._baton = _Settings(event_stream_handler, dict(approval or {}), live)
        shown = partial(_shown, event_stream_handler) if live else event_stream_handler
        super().__init__(models=models, event_stream_handler=shown, name=name)
        add_tools(REGISTRY if registry is None else registry)

    def for_agent(self, agent: AbstractAgent[Any, Any]) -> AbstractCapability[Any]:
        ADAPTED[id(agent)] = agent, partial(_called, agent)
        return super().for_agent(agent)

    @property
    def in_durable_context(self) -> bool:
        context = CURRENT.get()
        return isinstance(context, WorkflowContext) or getattr(context, "journal", None) is not None

    @property
    def has_wrap_run_event_stream(self) -> bool:
        return self._baton.handler is not None or (self._baton.live and self.in_durable_context)

    def get_durable_operation_backend(self) -> _Backend:
        return _Backend(self.name)

    def get_default_run_id(self) -> str | None:
        context = CURRENT.get()
        return str(context.uuid()) if isinstance(context, WorkflowContext) else None

    def get_default_conversation_id(self, run_id: str) -> str | None:
        return conversation_id_from_run_id(run_id) if self.in_durable_context else None

    def get_run_clock(self) -> Callable[[], datetime] | None:
        context = CURRENT.get()
        return context.now if isinstance(context, WorkflowContext) else None

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        context = CURRENT.get()
        if not isinstance(context, WorkflowContext) or self.agent is None:
            return await super().wrap_run(ctx, handler=handler)
        token = _path.set(context.branch(re.sub(r"\W", "_", self.name)))
        try:
            with self.agent.using_thread_executor(INLINE):  # a function has no threads
                return await super().wrap_run(ctx, handler=handler)
        finally:
            _path.reset(token)

    async def resolve_model_id(self, ctx: Any, *, model_id: str) -> Model | None:
        return _given.get() if model_id == _OBJECT else await super().resolve_model_id(ctx, model_id=model_id)

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: WrapModelRequestHandler
    ) -> ModelResponse:
        async def unnamed(request: ModelRequestContext) -> ModelResponse:
            request.model_id = None
            return await handler(request)

        is_object = request_context.model_id is None and request_context.model is ctx.model
        if is_object and self.in_durable_context:
            request_context.model_id = _OBJECT
            return await super().wrap_model_request(ctx, request_context=request_context, handler=unnamed)
        return await super().wrap_model_request(ctx, request_context=request_context, handler=handler)

    async def wrap_run_event_stream(
        self, ctx: RunContext[Any], *, stream: AsyncIterable[AgentStreamEvent]
    ) -> AsyncIterable[AgentStreamEvent]:
        if self._baton.handler is not None:
            stream = super().wrap_run_event_stream(ctx, stream=stream)
        async for event in stream:
            yield event

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Ask people about the calls, all at once: a workflow function waits for their answers."""
        context = CURRENT.get()
        if not isinstance(context, WorkflowContext):
            return None
        asked = {}
        for call in (*requests.approvals, *requests.calls):
            schema = None if call in requests.approvals else _RESULT
            said = {**self._baton.approval, **requests.metadata.get(call.tool_call_id, {}).get("baton", {})}
            said = {"title": f"{self.name}: {call.tool_name}", "details": call.args_as_dict(), **said}
            name = f"{'approve' if schema is None else 'answer'}_{call.tool_name}"[:40]
            with _named_by_run():
                asked[call.tool_call_id] = context.ask(name=re.sub(r"\W", "_", name), schema=schema, **said)
        results = DeferredToolResults()
        for call in (*requests.approvals, *requests.calls):
            try:
                answer = await asked[call.tool_call_id]
            except StepFailure as failure:
                if failure.code not in _DENIED:
                    raise
                results.approvals[call.tool_call_id] = ToolDenied(failure.message)
                continue
            if call in requests.approvals:
                results.approvals[call.tool_call_id] = ToolApproved()
            else:
                results.calls[call.tool_call_id] = answer["data"]["result"]
        return results


_RESULT: Mapping[str, Any] = {
    "type": "object",
    "required": ["result"],
    "properties": {"result": {"title": "Result of the call"}},
}
ADAPTED[id(BatonDurability)] = BatonDurability, lambda: iter(TOOLS)
