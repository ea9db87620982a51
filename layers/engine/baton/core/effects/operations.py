"""The operations of APIs that a node may call: their list, its check, and its description for a model.

A tool with `GRANTED_LIST_KEY` in the schema of its parameter `operations` keeps such a list. Its calls are in
tools/standard/openapi.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from baton.core.effects.keys import GRANTED_LIST_KEY
from baton.core.effects.toolspec import SEARCH, ToolSpec
from baton.core.expressions import expressions_in
from baton.errors import Problem

API, OPERATION, OPERATIONS = "api", "operation", "operations"
OFFERS, APIS, WORKFLOWS, CALLS = "offers", "apis", "workflows", "calls"
"""Arguments of an agent's turn: by the name of a call without a tool of its own, what its model is told of
it; the operations whose descriptions are fetched; and by name, the workflows whose input is looked up. A
search for tools in an agent has these as `calls`.
"""
END_CONVERSATION, RESULT = "end_conversation", "output"
"""The call by which an agent ends its conversation, and the argument with the output."""
OPENAPI: Final = "std.openapi"
DESCRIBE: Final = "std.describe_operations"
"""The tools that call operations, and that describe them."""
NOT_LISTED: Final = "call_not_allowed"
FIXED = ("among", CALLS)
"""Parameters of the search for tools that no model says."""
_SHOWN = 20

Operations = Mapping[str, Sequence[str]]
"""By the name of the API, the ids of its operations."""


def keeps_list(spec: ToolSpec) -> bool:
    """Return true if the tool's calls are checked against a list; false for an application's own tool of the
    same name.
    """
    return GRANTED_LIST_KEY in spec.parameters.get("properties", {}).get(OPERATIONS, {})


def calls_operations(spec: ToolSpec) -> bool:
    """Return true if the tool keeps a list and calls one operation of it."""
    return keeps_list(spec) and {API, OPERATION} <= spec.parameters["properties"].keys()


def searches_calls(spec: ToolSpec) -> bool:
    """Return true for the search for tools, if it finds calls that are no tools, too; false for an
    application's own tool of the same name.
    """
    return spec.name == SEARCH and CALLS in spec.parameters.get("properties", {})


def operation_name(api: str, operation: str) -> str:
    """Return the name of an operation among the calls of an agent."""
    return f"{api}:{operation}"


def operation_offer(spec: ToolSpec, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the text for a model about one operation, as far as it is known without its description."""
    properties = {key: of for key, of in spec.parameters["properties"].items() if key not in given}
    required = [key for key in spec.parameters.get("required", ()) if key not in given]
    parameters = {**spec.parameters, "properties": properties, "required": required}
    about = f"Calls the operation `{given[OPERATION]}` of the API `{given[API]}`."
    return {"description": about, "parameters": parameters}


def operation_refusal(listed: Operations, api: Any, operation: Any) -> str:
    """Return the reason why this operation cannot be called; empty for a listed operation."""
    if operation in listed.get(str(api), ()):
        return ""
    known = [f"`{name}:{one}`" for name in sorted(listed) for one in listed[name]]
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    what = f"`{str(api)[:40]}:{str(operation)[:100]}` is none of the operations that may be called"
    return f"{what}: {', '.join(known[:_SHOWN]) or 'none'}{more}"


def description_for_model(spec: ToolSpec, listed: Operations) -> tuple[str, Mapping[str, Any]]:
    """Return description and parameters of a tool for a model; a tool with a list offers only the operations
    on it.
    """
    if searches_calls(spec):
        properties = {name: of for name, of in spec.parameters["properties"].items() if name not in FIXED}
        return spec.description, {**spec.parameters, "properties": properties}
    if not keeps_list(spec):
        return spec.description, spec.parameters
    properties = {name: of for name, of in spec.parameters["properties"].items() if name != OPERATIONS}
    properties[API] = {**properties[API], "enum": sorted(listed)}
    every = dict.fromkeys(one for name in sorted(listed) for one in listed[name])
    properties[OPERATION] = {**properties[OPERATION], "enum": [*every]}
    told = "; ".join(f"of `{name}`: {', '.join(listed[name])}" for name in sorted(listed))
    return f"{spec.description}\n\nOperations {told}", {**spec.parameters, "properties": properties}


def list_problems(place: str, specs: Sequence[ToolSpec], operations: Operations) -> Iterator[Problem]:
    """Yield a problem for a tool for models that could call every operation of every API, and for a list that
    no tool keeps.
    """
    names = [spec.name for spec in specs if keeps_list(spec)]
    if names and not operations:
        yield Problem(
            f"{place}/tools",
            f"with `{names[0]}` a model could call every operation of every API of the deployment",
            "list those that it may call, by API: `operations: {shop: [listOrders, getOrder]}`",
        )
    if operations and not names:
        yield Problem(
            f"{place}/{OPERATIONS}",
            "none of the `tools` calls operations of APIs",
            "add `std.openapi` to `tools`, or leave this out",
        )


def choice_problems(spec: ToolSpec, given: Mapping[str, Any], below: str) -> Iterator[Problem]:
    """Yield a problem for an operation that only an expression names, without `operations` to
    choose among.
    """
    if not keeps_list(spec):
        return
    among, place = given.get(OPERATIONS), f"{below}/{OPERATIONS}"
    open_ = [name for name in (API, OPERATION) if any(True for _ in expressions_in(given.get(name)))]
    if any(True for _ in expressions_in(among)):
        yield Problem(place, "the operations that may be called stand in the document", "write their ids")
    elif open_ and not among:
        message = f"which operation `{spec.name}` calls stands nowhere: an expression could name any operation of any API"
        hint = "write the id, or list those that may be called: `operations: {shop: [listOrders, getOrder]}`"
        yield Problem(f"{below}/{open_[-1]}", message, hint)
    elif (
        not open_
        and isinstance(among, dict)
        and API in given
        and (why := operation_refusal(among, given[API], given.get(OPERATION)))
    ):
        yield Problem(place, why, "add it, or leave `operations` out: the step calls one operation")
