"""LangGraph graphs in Baton: a compiled graph runs unchanged, as a tool of a workflow function.

LangGraph is imported with the first graph that runs. docs/coming-from.md says what is recorded, and what runs
again after a crash.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from baton.compat import idempotency_key
from baton.ports import StepContext, StepFailure
from baton.tools.define import tool
from baton.tools.functions.context import WorkflowContext

if TYPE_CHECKING:
    from baton.compat.langgraph.run import BatonChatModel as BatonChatModel
    from baton.compat.langgraph.run import once as once
    from baton.compat.langgraph.run import record_tool_call as record_tool_call
    from baton.compat.langgraph.saver import BatonSaver as BatonSaver

__all__ = [
    "BatonChatModel",
    "BatonSaver",
    "GraphQuestion",
    "GraphResult",
    "GraphTool",
    "ask_person",
    "graph_tool",
    "idempotency_key",
    "once",
    "record_tool_call",
    "run_graph",
]  # fmt: skip

_LATER = {"BatonSaver": "saver"} | dict.fromkeys(("BatonChatModel", "once", "record_tool_call"), "run")


def __getattr__(name: str) -> Any:
    """Import what needs LangGraph when it is first named."""
    if name in _LATER:
        return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@dataclass
class GraphQuestion:
    """An `interrupt()` of a graph. `schema`: of the value that the graph expects, if the graph has one."""

    id: str
    value: Any
    schema: dict[str, Any] | None = None


@dataclass
class GraphResult:
    """Result of a step of a graph. `state`: for the next step, if the graph has not ended."""

    output: Any
    questions: list[GraphQuestion] = field(default_factory=list)
    state: str = ""


GraphTool: TypeAlias = Callable[..., Coroutine[Any, Any, GraphResult]]
Ask: TypeAlias = Callable[[WorkflowContext, GraphQuestion], Awaitable[Any]]


def graph_tool(
    name: str,
    graph: Any,
    *,
    types: Sequence[type] = (),
    config: Mapping[str, Any] | None = None,
    timeout: str | float = "10m",
    cost_usd: str | None = "0.000001",
    **options: Any,
) -> GraphTool:
    """Declare a compiled graph as the tool `name`. `options` are those of `@tool`.

    graph: the graph, or a function without parameters that returns it, so that a process which does not run
    it does not import LangGraph. types: classes of your own in its state. config: a `RunnableConfig`, such as
    `{"recursion_limit": 50}`. timeout: of one attempt. cost_usd: what is held before an attempt; None for a
    graph whose requests hold no money.
    """
    found: list[Any] = []

    async def run(
        input: Any,
        context: StepContext,
        state: str = "",
        resume: dict[str, Any] | None = None,
        thread: str = "",
        may_pause: bool = False,
    ) -> GraphResult:
        if (state or resume or thread) and _is_call_of_agent(context.item):
            text = "`state`, `resume` and `thread` are for code and documents: a model gives `input` alone"
            raise StepFailure("input_invalid", text)
        if not found:  # in a thread: the import takes seconds, and other sagas have the same loop
            found.append(await asyncio.to_thread(_ready, graph))
        made, begin = found[0]
        one = begin(made, context, types, dict(config or {}), thread, may_pause=may_pause)
        output, questions, left = await one.run(input, state, resume or {})
        return GraphResult(output, [GraphQuestion(*of) for of in questions], left)

    called = re.sub(r"\W", "_", name.rpartition(".")[2])
    run.__name__, run.__qualname__ = called, name
    run.__doc__ = f"Run the graph `{name}`."
    return tool(name, timeout=timeout, cost_usd=cost_usd, **options)(run)


# Else a model would answer the questions to people, and open the threads of others.
_is_call_of_agent = re.compile("t[0-9]+-[0-9]+").fullmatch


def _ready(graph: Any) -> tuple[Any, Any]:
    """Return a graph, and the class of its runs."""
    from baton.compat.langgraph.run import GraphRun

    return graph if hasattr(graph, "ainvoke") else graph(), GraphRun


async def run_graph(
    context: WorkflowContext,
    graph: GraphTool,
    input: Any,
    *,
    ask: Ask | None = None,
    thread: str = "",
    **options: Any,
) -> Any:
    """Run a graph to its end and return its output, as JSON.

    ask: a function that gets an answer for an `interrupt()`; without it, `ask_person`. thread: the id of a
    thread with which the graph begins, and which it is stored in at its end; without it, it begins empty.
    options: `name`, `retry` and `timeout` of the steps.
    """
    answer = ask or ask_person
    result = await context.step(graph, input, thread=thread, may_pause=True, **options)
    while result.state:
        answers = await asyncio.gather(*(answer(context, one) for one in result.questions))
        resume = {one.id: said for one, said in zip(result.questions, answers, strict=True)}
        result = await context.step(
            graph, None, state=result.state, resume=resume, thread=thread, may_pause=True, **options
        )
    return result.output


_TITLES = ("question", "title", "message", "description", "query")


async def ask_person(context: WorkflowContext, question: GraphQuestion) -> Any:
    """Ask a person about an `interrupt()`, and return the value for the graph.

    With a schema, that is data of this schema. With `options` in the value of the interrupt, it is the chosen
    one. A value of LangChain's middleware for people (`action_requests`) is answered with its `decisions`.
    For any other value, it is true or false: approved or rejected.
    """
    value = question.value
    said: Mapping[str, Any] = value if isinstance(value, Mapping) else {"question": value}
    if question.schema is not None:
        asked = await context.ask(_title(said), schema=question.schema, details=value)
        return asked["data"]
    if options := said.get("options"):
        return (await context.ask(_title(said), options=options, details=value))["answer"]
    if (requests := said.get("action_requests")) is None:
        return (await _approval(context, _title(said), value))["answer"] == "approve"
    decisions = []
    for one in requests:
        title = str(one.get("description") or f"Call {one.get('name')}?")
        asked = await _approval(context, title[:_LONGEST_TITLE], one.get("args"))
        decision = {"type": asked["answer"]}
        if asked["answer"] == "reject" and asked.get("comment"):
            decision["message"] = asked["comment"]
        decisions.append(decision)
    return {"decisions": decisions}


_LONGEST_TITLE = 200


def _title(said: Mapping[str, Any]) -> str:
    texts = [said[name] for name in _TITLES if isinstance(said.get(name), str) and said[name].strip()]
    return (texts[0] if texts else json.dumps(said, default=str))[:_LONGEST_TITLE]


async def _approval(context: WorkflowContext, title: str, details: Any) -> dict[str, Any]:
    """Ask for an approval; a rejected one is an answer."""
    return await context.ask(title, options=["approve", "reject"], details=details)
