"""Agents of workflow functions: their declaration, and the graph that each is in the function's document.

Also the shapes of results: the JSON schema of a type, and how a value of it is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Generic, TypeVar, Union, overload

import msgspec
from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

from baton.core.graph.graph import NODE_NAME
from baton.tools.define import JsonSchemas, ToolError

T = TypeVar("T")
_is_name = re.compile(NODE_NAME).fullmatch
_OWN = ("prompt", "output_schema")
_encode = msgspec.json.Encoder().encode
Read = Callable[[Any], Any]
"""Makes a value of its JSON."""


def shape_of(schema: Any) -> tuple[Any, Read | None]:
    """Return the JSON schema of a type or schema, and what makes a value of the type from its JSON.

    Raises the errors of pydantic, and `TypeError`.
    """
    return (schema, None) if schema is None or isinstance(schema, Mapping) else _of_type(schema)


@cache
def _of_type(schema: Any) -> tuple[dict[str, Any], Read]:
    adapter = TypeAdapter[Any](schema)
    return adapter.json_schema(schema_generator=JsonSchemas), lambda value: adapter.validate_json(
        _encode(value)
    )


AgentTool = Union[Callable[..., Any], str, Mapping[str, Any], "Agent[Any]"]
"""An entry of an agent's `tools`."""


class Agent(Generic[T]):
    """An agent that workflow functions ask: `await context.agent(triage, prompt)`.

    name: its own among those of a function. model, instructions, tools and all other settings: those of an
    `agent` node in a document; a tool may also be a function under `@workflow`, or another agent.
    output: the type of its answer, or a JSON schema; without it, a text.
    Raises `ToolError`.
    """

    @overload
    def __init__(
        self,
        name: str,
        *,
        model: str,
        instructions: str = "",
        tools: Sequence[AgentTool] = (),
        output: type[T],
        **settings: Any,
    ) -> None: ...
    @overload
    def __init__(
        self: Agent[Any],
        name: str,
        *,
        model: str,
        instructions: str = "",
        tools: Sequence[AgentTool] = (),
        output: Mapping[str, Any],
        **settings: Any,
    ) -> None: ...
    @overload
    def __init__(
        self: Agent[str],
        name: str,
        *,
        model: str,
        instructions: str = "",
        tools: Sequence[AgentTool] = (),
        **settings: Any,
    ) -> None: ...
    def __init__(
        self,
        name: str,
        *,
        model: str,
        instructions: str = "",
        tools: Sequence[AgentTool] = (),
        output: Any = None,
        timeout: str | float | None = None,
        limits: Mapping[str, Any] | None = None,
        retry: Any = None,
        on_failure: Any = None,
        failover: Any = None,
        breaker: str | None = None,
        **settings: Any,
    ) -> None:
        if not _is_name(name):
            raise ToolError(f"`{name}` is no name of an agent; write letters, digits and `_`")
        if wrong := [one for one in settings if one in _OWN]:
            text = "give the prompt to `context.agent`" if wrong[0] == "prompt" else "write `output=…`"
            raise ToolError(f"agent `{name}`: `{wrong[0]}` is no setting; {text}")
        try:
            self.schema, self.read = shape_of(output)
        except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
            raise ToolError(f"agent `{name}`: `output={output!r}` has no JSON schema: {error}") from error
        self.name, self.tools = name, tuple(tools)
        self._asks = {"model": model, **({"instructions": instructions} if instructions else {}), **settings}
        of_node = dict(timeout=timeout, limits=limits, retry=retry, on_failure=on_failure)  # noqa: C408
        of_node |= dict(failover=failover, breaker=breaker)  # noqa: C408
        self._node = {key: value for key, value in of_node.items() if value is not None}

    def graph(self, tools: Sequence[Any]) -> dict[str, Any]:
        """Return the graph with the agent, as a document writes it. `tools`: the entries of its `tools`."""
        given = {"prompt": "${input.prompt}", **({"tools": list(tools)} if tools else {})}
        node = {**self._node, "agent": {**self._asks, **given}}
        if self.schema is not None:
            node["output_schema"] = self.schema
        return {
            "input": {"type": "object", "required": ["prompt"], "properties": {"prompt": {}}},
            "nodes": {self.name: node},
            "output": f"${{ctx.{self.name}.output}}",
        }
