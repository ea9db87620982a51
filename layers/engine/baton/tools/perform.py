"""Runs a tool: arguments in, JSON out, within its time. A failure of the tool is a `StepFailure`.

`async` tools are cancelled at their timeout. Plain functions run in threads, and one that does not
return in time is abandoned: its result is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pydantic import ValidationError

from baton.core.toolspec import nearest
from baton.ports import StepContext, StepFailure
from baton.tools.define import Registry, Tool

MAX_THREADS = 64


class ToolPerformer:
    """The `Performer` for the tools of a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._threads: ThreadPoolExecutor | None = None

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        """The tool's result as plain JSON types. Raises `StepFailure`; cancellation passes through."""
        found = self._registry.get(tool)
        if found is None:
            raise StepFailure(
                "tool_missing", f"there is no tool `{tool}`. {nearest(tool, self._registry)}".strip()
            )
        call = _bind(found, arguments, context)
        try:
            value = await self._call(found, call)
        except StepFailure:
            raise
        except Exception as error:  # whatever a tool raises is the step's failure, never the engine's
            raise StepFailure("tool_error", f"{type(error).__name__}: {error}") from error
        try:
            return found.result.dump_python(found.result.validate_python(value), mode="json")
        except ValidationError as error:
            raise StepFailure(
                "result_invalid", f"`{tool}` returned what its hints do not allow: {_first(error)}"
            ) from error
        except ValueError as error:
            raise StepFailure(
                "result_invalid", f"`{tool}` returned what JSON cannot hold: {error}"
            ) from error

    async def _call(self, tool: Tool, call: Mapping[str, Any]) -> Any:
        if tool.is_async:
            return await tool.function(**call)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="tool")
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: tool.function(**call))


def _bind(tool: Tool, arguments: Mapping[str, Any], context: StepContext) -> dict[str, Any]:
    try:
        model = tool.parameters.model_validate(dict(arguments))
    except ValidationError as error:
        raise StepFailure("input_invalid", f"`{tool.spec.name}`: {_first(error)}") from error
    call = {name: getattr(model, name) for name in tool.parameters.model_fields}
    if tool.context:
        call[tool.context] = context
    return call


def _first(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_input=False)
    rest = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    pointer = "".join(f"/{step}" for step in details[0]["loc"])
    return f"at {pointer or '/'}: {details[0]['msg']}{rest}"
