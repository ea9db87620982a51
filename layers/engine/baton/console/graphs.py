"""The workflow of a saga, in the version that the saga runs, and why one of its nodes ran or did not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from baton.console.acting import pace
from baton.console.drawing import became, draw
from baton.console.rendering import part
from baton.console.shell import commands
from baton.console.visits import Answer, Html, Unchanged, Visit, tag_of
from baton.errors import UserError

_STEPS: Final = "1000"
BESIDE: Final = 40
"""So many nodes are drawn on the page of a saga; a larger graph has a page of its own."""


FIT: Final = "fit"
ZOOMS: Final = {FIT: "As wide as the page", "50": "50 %", "100": "100 %", "150": "150 %", "200": "200 %"}


async def workflow_of(visit: Visit, view: Mapping[str, Any]) -> dict[str, Any] | None:
    """The version of the workflow whose graph the saga runs; None where it is not among the newest hundred."""
    name = str(view["workflow"]).partition("@")[0]
    try:
        newest: dict[str, Any] = await visit.call("showWorkflow", {"name": name})
        if newest["graph"] == view["graph"]:
            return newest
        for one in newest["versions"]:
            if one["graph"] == view["graph"]:
                path = {"name": name, "version": str(one["version"])}
                found: dict[str, Any] = await visit.call("showWorkflowVersion", path)
                return found
    except UserError:
        pass
    return None


async def graph(visit: Visit) -> Answer:
    """The graph, with what became of each node."""
    saga = visit.path["saga"]
    view = await visit.call("showSaga", {"saga": saga})
    if (tag := tag_of(view["version"])) == visit.seen:
        return Unchanged()
    workflow = await workflow_of(visit, view)
    try:
        way = await visit.call("showWay", {"saga": saga}, {"limit": _STEPS})
    except UserError:
        way = None
    chosen = visit.query.get("zoom", "100")
    zoom = chosen if chosen in ZOOMS else "100"
    percent = None if zoom == FIT else int(zoom)
    drawn = draw(workflow, became(view, way), f"/console/sagas/{saga}", percent) if workflow else None
    data = {
        "saga": view,
        "drawn": drawn,
        "zoom": zoom,
        "zooms": ZOOMS,
        "is_whole": way is not None and way["next"] is None,
        "commands": "\n".join(_printing(visit, view, workflow)),
    }
    return Html(template="graph.html", title=f"Graph of {saga}", data=data, tag=tag, every=pace(view))


def _printing(visit: Visit, view: Mapping[str, Any], workflow: Mapping[str, Any] | None) -> list[str]:
    """The commands that print the way and the workflow."""
    found = [commands(visit.api, f"/sagas/{part(view['id'])}/explain", ["explain", view["id"]])]
    if workflow is not None:
        name, version = workflow["name"], workflow["version"]
        words = ["workflows", f"{name}@{version}"]
        found.append(commands(visit.api, f"/workflows/{part(name)}/{version}", words))
    return found


async def node(visit: Visit) -> Html:
    """Why a node ran, or did not, in each of its rounds."""
    saga = visit.path["saga"]
    found = await visit.call("explainNode", {"saga": saga, "node": visit.path["node"]})
    path = f"/sagas/{part(saga)}/explain/{part(found['node'])}"
    data = {
        "saga": saga,
        "found": found,
        "commands": commands(visit.api, path, ["explain", saga, found["node"]]),
    }
    return Html(template="node.html", title=f"Node {found['node']}", data=data)
