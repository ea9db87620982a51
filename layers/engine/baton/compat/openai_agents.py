"""Agents of the OpenAI Agents SDK in sagas: `Agent` and `Runner` in place of those of the SDK.

In a workflow function each request to a model and each call of a function tool is an operation of the saga.
In a tool they are units of its journal. Outside of sagas they are what they are in the SDK.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from inspect import isawaitable, signature
from typing import Any, Final

import agents
from agents import FunctionTool, Model, ModelResponse, RunConfig, Tool
from agents.exceptions import AgentsException
from agents.items import TResponseStreamEvent
from agents.models import get_default_model
from agents.run import CallModelData
from agents.run_context import TContext
from agents.tool import get_function_tool_origin
from agents.tool_context import ToolContext
from pydantic import TypeAdapter
from pydantic_core import to_json, to_jsonable_python

from baton.core.effects.toolspec import PURE
from baton.core.failures.codes import TOOL_DEFECT
from baton.core.models.messages import parse_answer
from baton.core.models.usage import Usage as Used
from baton.ports import Hold, HoldRequest, NoRoom, StepContext, StepFailure
from baton.tools.define import REGISTRY, Registry
from baton.tools.define import tool as declare
from baton.tools.functions.context import IN_MEMORY, WorkflowContext
from baton.tools.functions.define import ADAPTED
from baton.tools.functions.loop import FunctionDefect, TaskPath, task_path
from baton.tools.perform import CURRENT, bind, plain_json

Act = Callable[[], Awaitable[Any]]

REQUEST, CALL = TOOLS = "openai_agents.request", "openai_agents.call"
"""Tools of the operations in a workflow function."""
_MISSING = {"missing": True}
"""Result of an operation whose code is not in this process: it has not begun."""
_BODIES: dict[tuple[Any, ...], Act] = {}
"""Code of the operations that functions in this process wait for, by their places."""
MOST_OUTPUT = 16_384
"""Most tokens of an answer whose `ModelSettings` have no `max_tokens`."""
_COUNTS = (
    "input_tokens", "output_tokens", "total_tokens", "input_tokens_details", "output_tokens_details",
)  # fmt: skip
_LOCAL = (
    agents.ApplyPatchTool, agents.ComputerTool, agents.CustomTool, agents.LocalShellTool, agents.ShellTool,
)  # fmt: skip
_OUTPUTS = agents.ToolOutputText, agents.ToolOutputImage, agents.ToolOutputFileContent
_RESPONSE = TypeAdapter(ModelResponse)
_EVENT: TypeAdapter[Any] = TypeAdapter(TResponseStreamEvent)
_of_request = signature(Model.get_response)
_of_run: ContextVar[_Run | None] = ContextVar("of_run", default=None)


# ---- operations


async def _request(model: str, context: StepContext) -> Any:
    """Make a request of an agent of the OpenAI Agents SDK to its model."""
    return await _done(context)


async def _call(function: str, arguments: str, call: str, context: StepContext) -> Any:
    """Make a call of a function tool of the OpenAI Agents SDK."""
    return await _done(context)


async def _done(context: StepContext) -> Any:
    act = _BODIES.get((context.tenant, context.saga, context.node, context.iteration, context.item))
    return _MISSING if act is None else {"value": await act()}


def add_operations(registry: Registry) -> None:
    """Add the tools of operations to a registry. A call has a cost, because it may run an agent."""
    declare(REQUEST, effect=PURE, timeout="14m", cost_usd="0.000001", registry=registry)(_request)
    declare(CALL, timeout="14m", cost_usd="0.000001", registry=registry)(_call)
    IN_MEMORY.update(TOOLS)


def _saga() -> WorkflowContext | StepContext | None:
    """Return the context of the function or of the tool whose code runs here; None outside of sagas."""
    found = CURRENT.get()
    is_in = isinstance(found, WorkflowContext) or getattr(found, "journal", None) is not None
    return found if is_in else None


def _defect(text: str) -> Exception:
    """Return what parks the saga for a mistake in its code."""
    if isinstance(_saga(), WorkflowContext):
        return FunctionDefect(text)
    return StepFailure(TOOL_DEFECT, text)


class _Run:
    """A run of an agent. `path`: its place in a function. `fault`: one that no model is to hear of."""

    def __init__(self, agent: agents.Agent[Any]) -> None:
        saga = _saga()
        self.path: TaskPath | None = (
            saga.branch(_name(agent.name)) if isinstance(saga, WorkflowContext) else None
        )
        self.fault: Exception | None = None


def _name(text: str) -> str:
    """Return a name as one of an operation."""
    name = re.sub("[^A-Za-z0-9_]", "_", text)[:40]
    return f"_{name}" if name[:1].isdigit() else name or "_"


async def _once(tool: str, name: str, number: Any, of: dict[str, Any], act: Act) -> Any:
    """Return the result of `act`, as JSON: that of the log, if it has one.

    number: distinguishes what a tool does at the same time. Raises `StepFailure`, `FunctionDefect`, `NoRoom`.
    """
    saga, run = _saga(), _of_run.get()
    if saga is None:
        return await act()
    try:
        if isinstance(saga, StepContext):
            digest = hashlib.sha256(json.dumps(number, sort_keys=True).encode()).hexdigest()[:12]
            return await saga.once(f"{name[:80]} {digest}", act)
        return await _as_step(saga, run, tool, _name(name), of, act)
    except (FunctionDefect, NoRoom) as error:
        if run is not None:
            run.fault = error
        raise


@contextmanager
def _at(run: _Run | None) -> Iterator[None]:
    """Name operations by the place of the run, and not by the tasks of the SDK."""
    here = None if run is None or run.path is None else task_path.set(run.path)
    try:
        yield
    finally:
        if here is not None:
            task_path.reset(here)


async def _as_step(
    saga: WorkflowContext, run: _Run | None, tool: str, name: str, of: dict[str, Any], act: Act
) -> Any:
    """Return the result of an operation of a function, which asks again for one whose code is elsewhere."""
    while True:
        with _at(run):
            asked = saga.step(tool, **of, name=name)
        place = saga.place(asked.item)
        _BODIES[place] = act
        try:
            outcome = await asked
        finally:
            if _BODIES.get(place) is act:
                del _BODIES[place]
        if outcome != _MISSING:
            return outcome["value"]


# ---- requests to models


class _SagaModel(Model):
    """A model whose requests are operations of the saga. `make`: makes the model itself."""

    def __init__(self, name: str | None, make: Callable[[], Model]) -> None:
        self._name, self._make = name, make

    async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
        if _saga() is None:
            return await self._make().get_response(*args, **options)
        return _RESPONSE.validate_python(await self._recorded(_answer, *args, **options))

    async def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[TResponseStreamEvent]:
        if _saga() is None:
            async for event in self._make().stream_response(*args, **options):
                yield event
            return
        yield _completed(await self._recorded(_shown, *args, **options), self._name)

    async def _recorded(
        self, answer: Callable[..., Awaitable[ModelResponse]], *args: Any, **options: Any
    ) -> Any:
        """Return a recorded answer as JSON. `answer`: makes the request."""
        if _of_run.get() is None and isinstance(_saga(), WorkflowContext):
            raise _defect(f"the `Runner` of the SDK itself runs the agent; import `Runner` from {__name__}")
        given = _of_request.bind(self, *args, **options).arguments
        del given["self"]
        for one in given["tools"]:
            if isinstance(one, FunctionTool) and not _is_recorded(one):
                raise _defect(_PLAIN.format(f"the agent with the tool `{one.name}`"))

        async def ask() -> Any:
            try:
                model = self._make()
            except Exception as error:  # no credentials, say: no request would be made
                raise _defect(f"{type(error).__name__}: {error}") from error
            held = await _hold(self._name, given)
            if held is not None:
                given["model_settings"] = replace(given["model_settings"], max_tokens=held.output)
            try:
                response = await answer(model, given)
            except Exception as error:
                if held is not None and hasattr(error, "status_code"):  # its provider has refused it
                    held.spend(0)
                raise
            if held is not None:
                held.count(_used(response, self._name))
            return _RESPONSE.dump_python(response, mode="json", exclude_unset=True)

        names = sorted(one.name for one in given["tools"])
        said = [self._name, given["system_instructions"], given["input"], names]
        said = to_jsonable_python(said, fallback=str)
        return await _once(REQUEST, "model", said, {"model": self._name or ""}, ask)


async def _answer(model: Model, given: Mapping[str, Any]) -> ModelResponse:
    return await model.get_response(**given)


async def _shown(model: Model, given: Mapping[str, Any]) -> ModelResponse:
    """Make a request whose answer viewers of the saga read while it is written."""
    saga, texts = CURRENT.get(), list[str]()
    with saga.draft() as draft:
        draft.read = lambda: "".join(texts)
        event: Any
        async for event in model.stream_response(**given):
            if event.type == "response.output_text.delta":
                texts.append(event.delta)
            if event.type == "response.completed":
                made, use = event.response, event.response.usage
                used = {} if use is None else {one: getattr(use, one) for one in _COUNTS}
                return ModelResponse(made.output, agents.Usage(requests=1, **used), made.id)
    raise StepFailure("connection_failed", "the model's stream has ended before its answer", kind="transient")


async def _hold(model: str | None, given: Mapping[str, Any]) -> Hold | None:
    """Hold what a request may cost: a token for each byte of it, and its longest answer."""
    saga = _saga()
    if not model or not isinstance(saga, StepContext):
        return None
    schemas = [getattr(one, "params_json_schema", None) for one in given["tools"]]
    schema = given["output_schema"]
    if schema is not None and not schema.is_plain_text():
        schemas.append(schema.json_schema())
    schemas += [one.input_json_schema for one in given["handoffs"]]
    said = [given["system_instructions"], given["input"], schemas]
    size = len(to_json(said, fallback=str))
    output = given["model_settings"].max_tokens or MOST_OUTPUT
    name = re.sub("^(litellm|any-llm)/", "", model)
    priced = name if "/" in name else f"openai/{name}"
    return await saga.hold_request(HoldRequest(model=priced, size=size, output=output))


def _used(response: ModelResponse, model: str | None) -> Used:
    use = response.usage
    return Used(
        model=model or "",
        input=use.input_tokens,
        cached=use.input_tokens_details.cached_tokens or 0,
        written=getattr(use.input_tokens_details, "cache_write_tokens", 0) or 0,
        output=use.output_tokens,
        reasoning=use.output_tokens_details.reasoning_tokens or 0,
    )


def _completed(made: Any, model: str | None) -> TResponseStreamEvent:
    """Return the one event of a recorded answer."""
    response = {"id": made.get("response_id") or "recorded", "model": model or "", "output": made["output"]}
    response |= {"created_at": 0, "object": "response", "tool_choice": "auto", "tools": []}
    response |= {"parallel_tool_calls": True, "usage": {one: made["usage"][one] for one in _COUNTS}}
    event: TResponseStreamEvent = _EVENT.validate_python(
        {"type": "response.completed", "response": response, "sequence_number": 0}
    )
    return event


class _SagaModels(agents.ModelProvider):
    """Provider of models whose requests are operations of the saga."""

    def __init__(self, provider: agents.ModelProvider) -> None:
        self.provider = provider

    def get_model(self, model_name: str | None) -> Model:
        return _SagaModel(model_name or get_default_model(), lambda: self.provider.get_model(model_name))


# ---- calls of function tools


class _Recorded:
    """A tool whose calls are operations of the saga."""

    def __init__(self, invoke: Callable[[ToolContext[Any], str], Awaitable[Any]]) -> None:
        self._invoke = invoke

    async def __call__(self, context: ToolContext[Any], arguments: str) -> Any:
        return await self._invoke(context, arguments)


def _plain(value: Any) -> Any:
    """Return the result of a tool as JSON that the SDK tells a model in the same words."""
    if isinstance(value, list) and any(isinstance(one, _OUTPUTS) for one in value):
        return [_plain(one) for one in value]
    if isinstance(value, _OUTPUTS):
        return value.model_dump(mode="json", exclude_none=True)
    try:
        is_same = json.loads(json.dumps(value, allow_nan=False)) == value
    except (TypeError, ValueError):
        is_same = False
    return value if is_same else str(value)


def _is_recorded(tool: FunctionTool) -> bool:
    """Return true for a tool whose calls are operations. An agent as a tool has operations of its own."""
    origin = get_function_tool_origin(tool)
    is_agent = isinstance(origin, agents.ToolOrigin) and origin.type is agents.ToolOriginType.AGENT_AS_TOOL
    return is_agent or isinstance(tool.on_invoke_tool, _Recorded)


def _recorded(tool: Tool) -> Tool:
    if isinstance(tool, _LOCAL):
        text = f"`{tool.name}` acts on this machine, and no operation of the saga would be recorded"
        raise _defect(f"{text}; write a function tool")
    if not isinstance(tool, FunctionTool) or _is_recorded(tool):
        return tool

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        async def act() -> Any:
            return _plain(await tool.on_invoke_tool(context, arguments))

        call = context.tool_call_id
        of = {"function": tool.name, "arguments": arguments, "call": call}
        return await _once(CALL, tool.name, [call, arguments], of, act)  # some servers repeat their ids

    made = copy.copy(tool)
    made.on_invoke_tool = _Recorded(invoke)
    return made


def step_tool(function: Callable[..., Any], **options: Any) -> FunctionTool:
    """Return a function tool for a tool of Baton: its calls are steps with its effect, key and inverse.

    options: those of `FunctionTool`, such as `needs_approval`. The model hears of a call that has failed for
    good. The workflow names the tool in `@workflow(…, tools=[…])`.
    """
    own = Registry()
    declare(name := function.__name__.lower(), registry=own)(function)
    made = own[name]

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        saga = _saga()
        step = StepContext(saga="", tenant="", user="", node=name, idempotency_key=context.tool_call_id)
        try:
            bound = bind(made, given := parse_answer(arguments or "{}"), step)
        except (ValueError, StepFailure) as error:  # the model is told, and writes them again
            return f"input_invalid: {error}"
        if saga is None:
            value = made.function(**bound)
            return plain_json(made, await value if isawaitable(value) else value)
        run = _of_run.get()
        try:
            if isinstance(saga, StepContext):
                raise _defect(f"`{name}` is a step, which an agent in a workflow function calls")
            with _at(run):
                asked = saga.step_of(function, given)
            return plain_json(made, await asked)
        except StepFailure as failure:
            return f"{failure.code}: {failure.message}"
        except FunctionDefect as error:
            if run is not None:
                run.fault = error
            raise

    spec = made.spec
    said = {"strict_json_schema": False, "description": spec.description, **options}
    return FunctionTool(name, params_json_schema=spec.parameters, on_invoke_tool=_Recorded(invoke), **said)


class SagaAgent(agents.Agent[TContext]):
    """An agent of the SDK whose requests and calls are operations of the saga that runs it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "model" and isinstance(value, Model) and not isinstance(value, _SagaModel):
            value = _SagaModel(getattr(value, "model", None), lambda given=value: given)  # type: ignore[misc]
        super().__setattr__(name, value)

    async def get_all_tools(self, run_context: agents.RunContextWrapper[TContext]) -> list[Tool]:
        """Return the tools of the agent."""
        found = await super().get_all_tools(run_context)
        return found if _saga() is None else [_recorded(one) for one in found]


Agent = SagaAgent
"""The name of the SDK, for modules that change where they import it from."""


# ---- runs


class Runner(agents.Runner):
    """The runner of the SDK. In a workflow function, it asks people about calls that need an approval."""

    @classmethod
    async def run(
        cls,
        starting_agent: agents.Agent[Any],
        input: Any,
        *,
        ask: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> agents.RunResult:
        """Run an agent until its final output.

        ask: arguments of `context.ask` for its approvals, such as `to`, `expires` and `risk`. options:
        those of the SDK. Raises what the SDK raises, and `StepFailure`.
        """
        saga = _saga()
        if saga is None:
            return await super().run(starting_agent, input, **options)
        options, run = _in_saga(options), _Run(starting_agent)
        token = _of_run.set(run)
        try:
            result = await super().run(starting_agent, input, **options)
            options.pop("context", None)
            while result.interruptions and isinstance(saga, WorkflowContext):
                state = await _answered(saga, result, ask or {})
                result = await super().run(starting_agent, state, **options)
        except AgentsException as error:
            is_mistake, cause = isinstance(error, agents.UserError), error.__cause__
            if isinstance(cause, (FunctionDefect, NoRoom, StepFailure) if not is_mistake else Exception):
                raise cause from error
            raise _defect(f"UserError: {error}") if is_mistake else error from cause
        finally:
            _of_run.reset(token)
            if run.fault is not None:
                raise run.fault
        return result

    @classmethod
    def run_sync(cls, starting_agent: agents.Agent[Any], input: Any, **options: Any) -> agents.RunResult:
        """Run an agent in a plain function."""
        return super().run_sync(starting_agent, input, **_in_saga(options))

    @classmethod
    def run_streamed(
        cls, starting_agent: agents.Agent[Any], input: Any, *args: Any, **options: Any
    ) -> agents.RunResultStreaming:
        """Run an agent and stream its events; in a saga an answer of a model is one event."""
        token = _of_run.set(_Run(starting_agent))
        try:
            return super().run_streamed(starting_agent, input, *args, **_in_saga(options))
        finally:
            _of_run.reset(token)


def _in_saga(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a run, with the models of the saga and without traces to elsewhere."""
    if _saga() is None:
        return dict(options)
    given = options.get("run_config")
    config = RunConfig(**given) if isinstance(given, Mapping) else given or RunConfig()
    if not isinstance(config.model_provider, _SagaModels):
        config = replace(config, model_provider=_SagaModels(config.model_provider), tracing_disabled=True)
    if isinstance(config.model, Model) and not isinstance(config.model, _SagaModel):
        model = config.model
        config = replace(config, model=_SagaModel(getattr(model, "model", None), lambda: model))
    if config.model is None:
        config = replace(config, call_model_input_filter=partial(_filtered, config.call_model_input_filter))
    return {**options, "run_config": config}


_PLAIN: Final = f"{{}} is one of the SDK itself, whose work is not recorded; import `Agent` from {__name__}"


def _filtered(given: Callable[..., Any] | None, data: CallModelData[Any]) -> Any:
    """Refuse a request of an agent of the SDK itself to a model that is an object; filter any other."""
    model = data.agent.model
    if isinstance(model, Model) and not isinstance(model, _SagaModel):
        raise _defect(_PLAIN.format(f"the agent `{data.agent.name}`"))
    return data.model_data if given is None else given(data)


async def _answered(saga: WorkflowContext, result: agents.RunResult, ask: Mapping[str, Any]) -> Any:
    """Return the state of a run whose calls people have approved or rejected."""
    state = result.to_state()
    with _at(_of_run.get()):
        asked = [saga.ask(**{**_question(one), **ask}) for one in result.interruptions]
    for one, question in zip(result.interruptions, asked, strict=True):
        try:
            await question
        except StepFailure as failure:
            if failure.code not in ("rejected", "expired"):
                raise
            state.reject(one, rejection_message=failure.message)
        else:
            state.approve(one)
    return state


def _question(item: Any) -> dict[str, Any]:
    """Return the question about a call that needs an approval, as it is asked unless `ask` says otherwise."""
    name = re.sub(r"\W", "_", f"approve_{item.name}")[:40]
    try:
        details = json.loads(item.arguments)
    except (TypeError, ValueError):
        details = item.arguments
    return {"name": name, "title": f"{item.agent.name}: {item.name}", "details": details}


class SagaSession:
    """A session of the SDK in a saga. Its items are those of recorded answers, so a replay has them again.

    items: those to begin with, such as `context.state` after a checkpoint.
    """

    session_settings = None

    def __init__(
        self, session_id: str = "saga", items: Iterable[agents.TResponseInputItem] | None = None
    ) -> None:
        self.session_id = session_id
        self._items = list(items or ())

    async def get_items(self, limit: int | None = None) -> list[agents.TResponseInputItem]:
        """Return all items, or the newest ones."""
        return list(self._items if limit is None else self._items[-limit:] if limit > 0 else ())

    async def add_items(self, items: list[agents.TResponseInputItem]) -> None:
        """Add items."""
        self._items += items

    async def pop_item(self) -> agents.TResponseInputItem | None:
        """Remove the newest item, and return it."""
        return self._items.pop() if self._items else None

    async def clear_session(self) -> None:
        """Remove all items."""
        self._items.clear()


add_operations(REGISTRY)
ADAPTED[id(Runner)] = Runner, lambda: iter(TOOLS)
