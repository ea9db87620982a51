"""What sagas are made of: workflows with their versions and graphs, tools, kinds of nodes."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from baton.console.deeds import asked, paged
from baton.console.drawing import draw
from baton.console.overview import MOST_COUNTED, counted
from baton.console.shell import commands
from baton.console.visits import Html, Visit
from baton.core.expressions.spelling import hinted, nearest
from baton.core.graph.inner import name_of, starter_of
from baton.errors import NotFound

_COUNTED: Final = ("open", "parked", "failed")


async def workflows(visit: Visit) -> Html:
    """By name, each with its newest version."""
    kept, query = asked(visit)
    page = await visit.call("listWorkflows", query=query)
    data = {
        "workflows": page["workflows"],
        "commands": commands(visit.api, "/workflows", ["workflows"]),
        **paged(visit, "/console/workflows", kept, page["next"]),
    }
    return Html(template="workflows.html", title="Workflows", data=data)


async def workflow(visit: Visit) -> Html:
    """The newest version, or another: its graph, its nodes, its document, and how many of its sagas need a look."""
    name, version = visit.path["name"], visit.path.get("version", "")
    newest = await visit.call("showWorkflow", {"name": name})
    found = newest
    if version:
        found = await visit.call("showWorkflowVersion", {"name": name, "version": version})
    numbers = await asyncio.gather(*(_count(visit, name, status) for status in _COUNTED))
    path = f"/workflows/{name}/{version}" if version else f"/workflows/{name}"
    data = {
        "workflow": found,
        "versions": newest["versions"],
        "newest": newest["version"],
        "drawn": draw(found, {}, ""),
        "numbers": list(zip(_COUNTED, numbers, strict=True)),
        "may_start": "run" in visit.call.roles and not name_of(name),
        "starter": starter_of(name) if name_of(name) else "",
        "commands": commands(visit.api, path, ["workflows", f"{name}@{version}" if version else name]),
    }
    return Html(template="workflow.html", title=f"Workflow {name}", data=data)


async def _count(visit: Visit, name: str, status: str) -> str:
    """Sagas of a workflow in a status, as far as one page of the list goes."""
    query = {"workflow": name, "status": status, "limit": MOST_COUNTED}
    return counted(await visit.call("listSagas", query=query), "sagas")


async def tools(visit: Visit) -> Html:
    """The registry."""
    found = await visit.call("listTools")
    data = {"tools": found["tools"], "commands": commands(visit.api, "/tools", ["tools"])}
    return Html(template="tools.html", title="Tools", data=data)


async def tool(visit: Visit) -> Html:
    """One tool with its schemas, its effect, what undoes it and its limits."""
    name = visit.path["tool"]
    found = await visit.call("listTools")
    one = _pick(found["tools"], "name", name, "tool")
    data = {
        "tool": one,
        "names": {each["name"] for each in found["tools"]},
        "commands": commands(visit.api, "/tools", ["tools", name]),
    }
    return Html(template="tool.html", title=f"Tool {name}", data=data)


async def node_types(visit: Visit) -> Html:
    """The kinds of nodes."""
    found = await visit.call("listNodeTypes")
    data = {"kinds": found["node_types"], "commands": commands(visit.api, "/node-types", ["node-types"])}
    return Html(template="node-types.html", title="Kinds of nodes", data=data)


async def node_type(visit: Visit) -> Html:
    """One kind with an example and its schema."""
    kind = visit.path["kind"]
    found = _pick((await visit.call("listNodeTypes"))["node_types"], "kind", kind, "kind of nodes")
    data = {"kind": found, "commands": commands(visit.api, "/node-types", ["node-types", kind])}
    return Html(template="node-type.html", title=f"Kind {kind}", data=data)


def _pick(rows: list[Any], field: str, name: str, what: str) -> Any:
    for row in rows:
        if row[field] == name:
            return row
    hint = nearest(name[:100], [row[field] for row in rows])
    raise NotFound(hinted(f"there is no {what} `{name[:100]}`", hint))


async def error_budgets(visit: Visit) -> Html:
    """How the sagas of a day have ended, by workflow: one page of the API's sums, and the next on demand."""
    kept, query = asked(visit, "day")
    page = await visit.call("listErrorBudgets", query=query)
    day = str(page["day"])
    data = {
        "page": page,
        "commands": commands(visit.api, f"/error-budgets?day={day}", ["error-budget", "--day", day]),
        **paged(visit, "/console/error-budgets", {**kept, "day": day}, page["next"]),
    }
    return Html(template="error-budgets.html", title="How sagas ended", data=data)
