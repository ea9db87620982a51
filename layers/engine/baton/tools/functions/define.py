"""@workflow: an `async` Python function becomes a workflow."""

from __future__ import annotations

import dis
import inspect
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any, Literal

from msgspec import structs

from baton.core.effects.toolspec import IDEMPOTENT, PURE, STANDARD
from baton.core.graph.graph import WORKFLOW_NAME
from baton.ports import StepContext
from baton.tools.abilities import NAME
from baton.tools.define import REGISTRY, F, Registry, Tool, ToolError, _make, _where
from baton.tools.functions.agents import Agent
from baton.tools.functions.context import WorkflowContext

_is_name = re.compile(WORKFLOW_NAME).fullmatch
ADAPTED: dict[int, tuple[Any, Callable[[], Iterator[Any]]]] = {}
"""Objects of other frameworks by identity, such as agents, and what gives the tools that they call: their
names, and functions that may be tools.
"""
_OF_DOCUMENT = ("timeout", "limits", "on_failure", "compensate")


def workflow(
    name: str,
    *,
    version: str = "1",
    timeout: str | float | None = None,
    limits: Mapping[str, Any] | None = None,
    on_failure: Literal["rollback", "fail"] | None = None,
    compensate: str | None = None,
    tools: Sequence[Callable[..., Any] | Agent[Any] | str] = (),
    registry: Registry | None = None,
) -> Callable[[F], F]:
    """Declare an `async` function as the workflow `name`; the function itself stays as it was.

    Its parameters are the fields of the workflow's input; their types, and that of its result, are the
    schemas. The parameter annotated with `WorkflowContext`, if any, is filled by the engine: it has the
    operations.

    on_failure: `rollback`, the default, undoes the steps of a function that failed, and `fail` leaves them.
    timeout, limits, compensate: as in a document. tools: those that it calls and that its code
    does not name, such as one that comes out of a dictionary.

    Decorating raises `ToolError`, with the function and where it is.
    """

    def declare(function: F) -> F:
        try:
            if not _is_name(name):
                fitting = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
                raise ToolError(f"`{name}` is no name of a workflow; write `{fitting or 'my-workflow'}`")
            if not inspect.iscoroutinefunction(function):
                raise ToolError(f"workflow `{name}`: write `async def {function.__name__}`")
            if on_failure not in (None, "rollback", "fail"):
                raise ToolError(
                    f"workflow `{name}`: `on_failure` of a function is `rollback` or `fail`, and not {on_failure!r}; "
                    "the function itself catches `StepFailure`, and asks a person with `context.ask(…)`"
                )
            _check_context(function, name)
            made = _make(function, name, version, PURE, 0, None, context_type=WorkflowContext)
            said = {"timeout": timeout, "limits": limits, "on_failure": on_failure, "compensate": compensate}
            document = {key: value for key, value in said.items() if value is not None}
            of = REGISTRY if registry is None else registry
            of.add(replace(made, document=document, completed=partial(_with_calls, tools, of)))
        except ToolError as error:
            text = str(error).replace(f"tool `{name}`", f"workflow `{name}`", 1)
            raise ToolError(f"{text}{_where(function)}") from error.__cause__
        return function

    return declare


def _check_context(function: Any, name: str) -> None:
    """Raise `ToolError` for a parameter that is meant for the context and is not hinted so."""
    for one in inspect.signature(function).parameters.values():
        is_bare = one.name == "context" and one.annotation is one.empty
        if is_bare or one.annotation in (StepContext, "Context"):
            raise ToolError(f"workflow `{name}`: write `{one.name}: WorkflowContext`")


def document_of(tool: Tool) -> dict[str, Any]:
    """Return the document of a workflow function: one node, which runs it."""
    node = tool.function.__name__
    said: dict[str, Any] = {"name": tool.spec.name}
    if tool.spec.description:
        said["description"] = tool.spec.description.partition("\n\n")[0]
    made = {
        **said,
        "input": _input_of(tool),
        **(tool.document or {}),
        "nodes": {node: {"function": tool.spec.name}},
        "output": f"${{ctx.{node}.output}}",
    }
    return {**made, "graphs": dict(tool.graphs)} if tool.graphs else made


def _input_of(tool: Tool) -> Mapping[str, Any]:
    """Return the schema of a workflow's input. A function without parameters is started without any."""
    schema = tool.spec.parameters
    return schema if schema.get("properties") else {**schema, "type": ["object", "null"]}


def workflow_documents(registry: Registry) -> Iterator[dict[str, Any]]:
    """Yield the documents of all workflow functions, sorted by name."""
    for name in sorted(registry):
        if (tool := registry[name]).document is not None:
            yield document_of(tool)


def _graphs_of(
    tool: Tool, agents: dict[str, Agent[Any]], by_function: dict[Any, str], registry: dict[str, Tool]
) -> dict[str, Any]:
    """Return the graphs of a function's agents, and of those that these may call, by name."""
    for agent in list(agents.values()):
        for one in _agents_below(agent):
            if agents.setdefault(one.name, one) is not one:
                raise ToolError(f"workflow `{tool.spec.name}`: two agents have the name `{one.name}`")
    workflows = {one.function: name for name, one in registry.items() if one.document is not None}

    def entry(one: Any) -> Any:
        """Return an entry of an agent's `tools` as a document has it."""
        if isinstance(one, (str, Mapping)):
            return one
        if type(one) is Agent:
            return {"graph": one.name}
        if isinstance(one, FunctionType) and one in workflows:
            return {"function": workflows[one]}
        return _known(tool, one, by_function, registry)

    return {name: agent.graph([*map(entry, agent.tools)]) for name, agent in sorted(agents.items())}


def _agents_below(agent: Agent[Any], seen: tuple[str, ...] = ()) -> Iterator[Agent[Any]]:
    """Yield the agents that an agent may call, directly or through others."""
    for one in agent.tools:
        if type(one) is Agent and one.name not in seen:
            yield one
            yield from _agents_below(one, (*seen, agent.name))


def _with_calls(more: Sequence[Any], of: Registry, tool: Tool, registry: dict[str, Tool]) -> Tool:
    """Return a workflow function with the tools that it may call: those that its code names, and `more`.

    An ordinary function that it gives to `step` becomes a tool.
    """
    by_function = {one.function: name for name, one in registry.items() if one.document is None}
    agents = {one.name: one for one in more if type(one) is Agent}
    found = {_named(tool, one, by_function) for one in more if type(one) is not Agent}
    for function in functions_of(tool.function, by_function):
        for one in _given_to_step(function):
            found.add(_known(tool, one, by_function, registry))
        for value in _values(function):
            if isinstance(value, str):
                if (
                    value in STANDARD
                    or (value in registry and registry[value].document is None)
                    or (value not in registry and value in of.pinned_names())
                ):
                    found.add(value)
            elif isinstance(value, FunctionType) and value in by_function:
                found.add(by_function[value])
            elif id(value) in ADAPTED:
                known = (by_function.get(one) or one for one in ADAPTED[id(value)][1]())
                found.update(one for one in known if isinstance(one, str))
            elif type(value) is Agent and agents.setdefault(value.name, value) is not value:
                raise ToolError(f"workflow `{tool.spec.name}`: two agents have the name `{value.name}`")
    graphs = _graphs_of(tool, agents, by_function, registry)
    spec = structs.replace(tool.spec, calls=tuple(sorted(found)), agents=tuple(graphs))
    return replace(tool, completed=None, spec=spec, graphs=graphs)


def _known(tool: Tool, function: Any, by_function: dict[Any, str], registry: dict[str, Tool]) -> str:
    """Return the name of a function as a tool; an ordinary one becomes a tool."""
    if function not in by_function:
        made = _as_tool(tool, function)
        registry[made.spec.name] = made
        by_function[function] = made.spec.name
    return by_function[function]


def functions_of(function: Any, tools: Container[Any]) -> Iterator[Any]:
    """Yield a function and those of its package that its code names, directly or through others; no tools."""
    package = function.__module__.partition(".")[0]
    todo, seen = [function], {function}
    while todo:
        one = todo.pop(0)
        yield one
        for value in _values(one):
            if not isinstance(value, FunctionType) or value in tools or value in seen:
                continue
            if value.__module__.partition(".")[0] == package:
                seen.add(value)
                todo.append(value)


def _named(tool: Tool, one: Any, by_function: Mapping[Any, str]) -> str:
    if isinstance(one, str):
        return one
    if (name := by_function.get(one)) is None:
        called = getattr(one, "__name__", repr(one))
        raise ToolError(
            f"workflow `{tool.spec.name}`: tools: `{called}` is no tool; write `@tool(…)` above it"
        )
    return name


def _as_tool(workflow: Tool, function: Any) -> Tool:
    """Return an ordinary function as an idempotent tool, named by its module and its own name."""
    name = f"{function.__module__}.{function.__name__}".lower()
    if not NAME.fullmatch(name):
        name = re.sub(r"[^a-z0-9_.]+", "_", name).strip("_.") or "step"
    try:
        return replace(_make(function, name, "1", IDEMPOTENT, 0, None), shared=workflow.shared)
    except ToolError as error:
        text = f"workflow `{workflow.spec.name}` has `{function.__name__}` as a step: {error}"
        raise ToolError(f"{text}{_where(function)}") from error.__cause__


def _given_to_step(function: Any) -> Iterator[Any]:
    """Yield the functions that the code gives to a method `step` as its first argument."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        codes += [one for one in code.co_consts if isinstance(one, CodeType)]
        found = iter(dis.get_instructions(code))
        for instruction in found:
            if instruction.argval != "step" or instruction.opname not in ("LOAD_METHOD", "LOAD_ATTR"):
                continue
            if isinstance(value := _loaded(next(found, None), function, cells), ModuleType):
                value = vars(value).get(getattr(next(found, None), "argval", ""))
            if isinstance(value, FunctionType):
                yield value


def _loaded(instruction: Any, function: Any, cells: Mapping[str, Any]) -> Any:
    """Return what an instruction loads from outside of its function; None for anything else."""
    if instruction is None:
        return None
    if instruction.opname == "LOAD_GLOBAL":
        return function.__globals__.get(instruction.argval)
    if instruction.opname == "LOAD_DEREF" and instruction.argval in cells:
        with suppress(ValueError):  # it is not set yet
            return cells[instruction.argval].cell_contents
    return None


def _values(function: Any) -> Iterator[Any]:
    """Yield what the code of a function names: global values, attributes of modules, and texts."""
    names: set[str] = set()
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        for one in code.co_consts:
            if isinstance(one, CodeType):
                codes.append(one)
            elif isinstance(one, str):
                yield one
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it is not set yet
            continue
    modules = []
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):
            modules.append(value)
        elif value is not None:
            yield value
    for module in modules:
        yield from (vars(module)[name] for name in names if name in vars(module))
