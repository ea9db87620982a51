"""Pages of workflows with their versions and graphs, of tools, and of node kinds."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from baton.console.acting import chosen_filters, page_links
from baton.console.drawing import draw_svg
from baton.console.overview import MOST_COUNTED, page_counts
from baton.console.rendering import commands, part
from baton.console.visits import Html, Visit
from baton.core.expressions import nearest, with_hint
from baton.core.graph.graph import graph_name, inner_name, starter_of
from baton.errors import NotFound

_COUNTED: Final = {
    "open": "At work",
    "suspended": "Waiting for a person",
    "parked": "Parked",
    "failed": "Failed",
    "completed": "Completed",
}
"""Statuses of a list, with labels for the sagas in each."""


async def workflows(visit: Visit) -> Html:
    """Return the page of workflows by name, with their newest versions."""
    kept, query = chosen_filters(visit)
    page = await visit.call("listWorkflows", query=query)
    data = {
        "workflows": page["workflows"],
        "commands": commands(visit.api, "/workflows", ["workflows"]),
        **page_links(visit, "/console/workflows", kept, page["next"]),
    }
    return Html(template="workflows.html", title="Workflows", data=data)


async def workflow(visit: Visit) -> Html:
    """Return the page of a version, the newest by default: its graph, nodes, document, and open work."""
    name, version = visit.path["name"], visit.path.get("version", "")
    newest = await visit.call("showWorkflow", {"name": name})
    found = newest
    if version:
        found = await visit.call("showWorkflowVersion", {"name": name, "version": version})
    numbers = await asyncio.gather(*(_count(visit, name, status) for status in _COUNTED))
    path = f"/workflows/{name}/{version}" if version else f"/workflows/{name}"
    starter = starter_of(name) if graph_name(name) else ""
    data = {
        "workflow": found,
        "versions": newest["versions"],
        "newest": newest["version"],
        "drawn": draw_svg(found, {}, ""),
        "handler": found["failure_handler"],
        "graphs": [_named(name, version, one) for one in found["graphs"]],
        "numbers": list(zip(_COUNTED, _COUNTED.values(), numbers, strict=True)),
        "may_start": "run" in visit.call.roles and not starter,
        "starter": starter,
        "commands": commands(visit.api, path, ["workflows", f"{name}@{version}" if version else name]),
    }
    return Html(template="workflow.html", title=f"Workflow {name}", data=data)


def _named(workflow: str, version: str, graph: dict[str, Any]) -> dict[str, Any]:
    """Return a graph that the document names: its page, and its drawing with links to that page."""
    name = inner_name(workflow, graph["name"])
    page = f"/console/workflows/{part(name)}" + (f"/{part(version)}" if version else "")
    return {
        "name": graph["name"],
        "page": page,
        "drawn": draw_svg({**graph, "name": name}, {}, "", page=page),
    }


async def _count(visit: Visit, name: str, status: str) -> str:
    """Return the number of a workflow's sagas in a status, limited to one page of the list."""
    query = {"workflow": name, "status": status, "limit": MOST_COUNTED}
    return page_counts(await visit.call("listSagas", query=query), "sagas")


async def tools_page(visit: Visit) -> Html:
    """Return the page of all tools."""
    found = await visit.call("listTools")
    data = {"tools": found["tools"], "commands": commands(visit.api, "/tools", ["tools"])}
    return Html(template="tools.html", title="Tools", data=data)


async def tool(visit: Visit) -> Html:
    """Return the page of one tool with its schemas, its effect, its inverse and its limits."""
    name = visit.path["tool"]
    found = await visit.call("listTools")
    one = _pick(found["tools"], "name", name, "tool")
    data = {
        "tool": one,
        "names": {each["name"] for each in found["tools"]},
        "commands": commands(visit.api, "/tools", ["tools", name]),
    }
    return Html(template="tool.html", title=f"Tool {name}", data=data)


async def node_types_page(visit: Visit) -> Html:
    """Return the page of node kinds."""
    found = await visit.call("listNodeTypes")
    data = {"kinds": found["node_types"], "commands": commands(visit.api, "/node-types", ["node-types"])}
    return Html(template="node-types.html", title="Kinds of nodes", data=data)


async def node_type(visit: Visit) -> Html:
    """Return the page of one node kind with an example and its schema."""
    kind = visit.path["kind"]
    found = _pick((await visit.call("listNodeTypes"))["node_types"], "kind", kind, "kind of nodes")
    data = {"kind": found, "commands": commands(visit.api, "/node-types", ["node-types", kind])}
    return Html(template="node-type.html", title=f"Kind {kind}", data=data)


def _pick(rows: list[Any], field: str, name: str, what: str) -> Any:
    for row in rows:
        if row[field] == name:
            return row
    hint = nearest(name[:100], [row[field] for row in rows])
    raise NotFound(with_hint(f"there is no {what} `{name[:100]}`", hint))


async def error_budgets(visit: Visit) -> Html:
    """Return the page of the day's ended sagas by workflow: one page of the API, the next on demand."""
    kept, query = chosen_filters(visit, "day")
    page = await visit.call("listErrorBudgets", query=query)
    day = str(page["day"])
    data = {
        "page": page,
        "commands": commands(visit.api, f"/error-budgets?day={day}", ["error-budget", "--day", day]),
        **page_links(visit, "/console/error-budgets", {**kept, "day": day}, page["next"]),
    }
    return Html(template="error-budgets.html", title="How sagas ended", data=data)
