"""`POST /warm`: a tool is called ahead of the steps that need its result, by a saga of one step.

The saga has the limits, rates and costs of any other. How its result is kept is in runtime/steps/caching.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from baton.core.conditions.schema import violations
from baton.core.effects.toolspec import ToolSpec, tools_for
from baton.core.expressions import nearest, with_hint
from baton.core.failures.strategies.registry import END
from baton.errors import InvalidInput, NotAllowedNow, NotFound
from baton.runtime.engine.request import Request

Register = Callable[[str], Awaitable[object]]
Start = Callable[[str, Any, str], Awaitable[tuple[dict[str, Any], bool]]]
_encode = msgspec.json.Encoder(order="deterministic").encode
_LONGEST = 40
_SHARED_MS = 300_000
"""Longest time for which equal requests share a saga: it may have failed, or be of an earlier deploy."""


async def call_ahead(
    request: Request, tool: str, arguments: Mapping[str, Any], register: Register, start: Start
) -> tuple[dict[str, Any], bool]:
    """Start the saga, and return its view and true if it is new: equal requests of a user share one for as
    long as a result is kept, and for at most five minutes.

    Raises `NotFound`, `NotAllowedNow` for a tool whose results are not kept, `InvalidInput` for arguments
    that it does not take.
    """
    tools = tools_for(request.caller.tenant, request.engine.tools)
    spec = tools.get(tool)
    if spec is None:
        raise NotFound(with_hint(f"there is no tool `{tool}`", nearest(tool, tools)))
    if not spec.cache_ms:
        raise NotAllowedNow(
            f"results of `{tool}` are not kept; to call it ahead of its steps, declare "
            '`@tool(…, effect="pure", cache="5m")`'
        )
    if problems := violations(spec.parameters, arguments, "/arguments"):
        raise InvalidInput(f"at {problems[0].path}: {problems[0].message}", problems)
    name = _name(spec, arguments)
    scope, tenant = request.parts, request.caller.tenant
    if await scope.catalog.newest(tenant, name) is None:
        await register(_document(name, tool, arguments))
    window = request.engine.clock.now() // min(spec.cache_ms, _SHARED_MS)
    of = hashlib.sha256(_encode([tool, arguments])).hexdigest()[:32]
    return await start(name, dict(arguments), f"warm/{of}/{window}")


def _name(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """Return the name of the workflow: one for each tool and set of its parameters."""
    of = hashlib.sha256(_encode([spec.name, sorted(arguments)])).hexdigest()[:8]
    tool = spec.name.replace(".", "-").replace("_", "-")[:_LONGEST].strip("-")
    return f"warm-{tool}-{of}"


def _document(name: str, tool: str, arguments: Mapping[str, Any]) -> str:
    names = sorted(arguments)
    document = {
        "name": name,
        "description": f"Calls `{tool}` ahead of the steps that need its result.",
        "input": {"type": "object", "properties": {one: {} for one in names}, "required": names},
        # The step that needs the result tries again itself, and asks whom it has to.
        "on_failure": END.name,
        "limits": {"wall_time": "5m"},
        "nodes": {"call": {"tool": tool, "with": {one: f"${{input.{one}}}" for one in names}}},
    }
    return _encode(document).decode()
