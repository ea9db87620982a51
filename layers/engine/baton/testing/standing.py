"""Whether a stand-in can take what it is given in a tool's place; and if not, what would be right.

Belongs here: signatures. Does not belong here: what a stand-in returns, which is checked as a tool's result is.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from baton.tools.define import Tool, ToolError

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_ANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def parameters_of(tool: Tool, function: Any) -> Mapping[str, inspect.Parameter]:
    """The parameters of a stand-in for this tool. Raises `ToolError` if they do not take what the tool is given."""
    given = list(tool.parameters.model_fields)
    context = f", with `{tool.context}` if it is wanted" if tool.context else ""
    right = f"write `def {tool.spec.name.rpartition('.')[2]}({', '.join(given)})`{context}"
    if not callable(function):
        kind = type(function).__name__
        raise ToolError(f"stand-in for `{tool.spec.name}`: it is a {kind}, and no function; {right}")
    parameters = inspect.signature(function).parameters
    if wrong := _wrong(parameters, given, tool.context):
        rest = f"its arguments are passed by keyword: {right}, or `**given` for what it has no use for"
        raise ToolError(f"stand-in for `{tool.spec.name}`: {wrong}; {rest}")
    return parameters


def _wrong(parameters: Mapping[str, inspect.Parameter], given: list[str], context: str) -> str:
    """What the parameters lack, and what they have too much."""
    named = {name for name, parameter in parameters.items() if parameter.kind in _NAMED}
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    unnamed = [
        name
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty and parameter.kind not in _ANY and name not in named
    ]
    lacks = [] if takes_any else [name for name in given if name not in named and name not in unnamed]
    wants = [
        name
        for name in named
        if parameters[name].default is inspect.Parameter.empty and name not in (*given, context)
    ]
    parts = []
    if lacks:
        parts.append(f"takes {_listed('no', lacks)}")
    if wants:
        parts.append(f"wants {_listed('', sorted(wants))}, which it is not given")
    if unnamed:
        parts.append(f"takes {_listed('', unnamed)} by position only")
    return f"it {', and '.join(parts)}" if parts else ""


def _listed(before: str, names: list[str]) -> str:
    return " and ".join(f"{before} `{name}`".strip() for name in names)
