"""Pages of workflows with their graphs and the form that starts a saga, of tools, and of node kinds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from baton.console.acting import Deed, Input, chosen_filters, deed_done, page_links
from baton.console.drawing import drawings
from baton.console.forms import Form, fields_of, form_data, places, unchanged_form
from baton.console.overview import MOST_COUNTED, page_counts
from baton.console.rendering import commands, part
from baton.console.visits import Answer, Html, Redirect, Visit
from baton.core.conditions.document import example_of
from baton.core.conditions.schema import input_violations
from baton.core.expressions import nearest, with_hint
from baton.core.graph.graph import graph_name, inner_name, starter_of
from baton.core.log.events import WORKFLOW_PAUSED
from baton.core.log.labels import label_problems, read_labels
from baton.errors import Forbidden, KeyReused, NotFound, Problem, UserError

_COUNTED: Final = {
    "open": "At work",
    "suspended": "Waiting for a person",
    "parked": "Parked",
    "paused": "Paused",
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
        "may_start": "run" in visit.call.roles,
        "commands": commands(visit.api, "/workflows", ["workflows"]),
        **page_links(visit, "/console/workflows", kept, page["next"]),
    }
    return Html(template="workflows.html", title="Workflows", data=data)


WORKFLOW_DEEDS: Final = (
    Deed(
        name="pause",
        title="Pause it",
        does="Its sagas begin nothing until it is resumed, and their time stands still. Sagas that start from now on begin paused.",
        done="It is paused.",
        role="operate",
        route="pauseSagas",
        inputs=(Input("reason", "Reason, for the log"),),
        body=lambda visit: {"reason": visit.said("reason")},
        baton=lambda name, body: [
            *("pause", "--workflow", name),
            *(["--reason", body["reason"]] if body["reason"] else []),
        ],
        fits=lambda view: WORKFLOW_PAUSED not in (one["code"] for one in view["pauses"]),
    ),
    Deed(
        name="resume",
        title="Resume it",
        does="Its sagas go on, except those that are paused one by one, or parked.",
        done="It is resumed.",
        role="operate",
        route="resumeSagas",
        baton=lambda name, _: ["resume", "--workflow", name],
        fits=lambda view: WORKFLOW_PAUSED in (one["code"] for one in view["pauses"]),
    ),
)


def _offered(visit: Visit, found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what this person can do about the workflow, with the commands that do the same."""
    return [
        {
            "deed": deed,
            "there": f"/console/workflows/{part(found['name'])}/{deed.name}",
            "said": {one.name: visit.said(one.name) for one in deed.inputs},
            "commands": commands(
                visit.api,
                f"/sagas/{deed.name}",
                deed.baton(found["name"], deed.body(visit)),
                {"workflow": found["name"], **deed.body(visit)},
            ),
        }
        for deed in WORKFLOW_DEEDS
        if deed.role in visit.call.roles and deed.fits(found)
    ]


def workflow_deed(deed: Deed) -> Callable[[Visit], Awaitable[Answer]]:
    """Return the page that receives the form of a deed. It acts on as many sagas as one request can."""

    async def page(visit: Visit) -> Answer:
        name = visit.path["name"]
        try:
            found = await visit.call(deed.route, body={"workflow": name, **deed.body(visit)})
        except UserError as error:
            return await workflow(visit, error)
        more = "&more=yes" if found["next"] else ""
        return Redirect(f"/console/workflows/{part(name)}?done={deed.name}{more}")

    return page


_MORE: Final = " Not all of its sagas were come to yet: `baton {} --workflow {}` goes on with the others."


async def workflow(visit: Visit, error: UserError | None = None) -> Html:
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
        "tags": newest["tags"],
        "drawings": drawings(found, {}, ""),
        "handler": found["failure_handler"],
        "graphs": [_named(name, version, one) for one in found["graphs"]],
        "numbers": list(zip(_COUNTED, _COUNTED.values(), numbers, strict=True)),
        "may_start": "run" in visit.call.roles and not starter,
        "starter": starter,
        "error": error,
        "done": _done(visit, name),
        "offered": [] if version or starter else _offered(visit, found),
        "commands": commands(visit.api, path, ["workflows", f"{name}@{version}" if version else name]),
    }
    status = 200 if error is None else error.status
    return Html(template="workflow.html", title=f"Workflow {name}", data=data, status=status)


def _done(visit: Visit, name: str) -> str:
    done = deed_done(WORKFLOW_DEEDS, visit)
    more = _MORE.format(visit.query.get("done", ""), name) if visit.query.get("more") else ""
    return done and done + more


def _named(workflow: str, version: str, graph: dict[str, Any]) -> dict[str, Any]:
    """Return a graph that the document names: its page, and its drawing with links to that page."""
    name = inner_name(workflow, graph["name"])
    page = f"/console/workflows/{part(name)}" + (f"/{part(version)}" if version else "")
    return {
        "name": graph["name"],
        "page": page,
        "drawings": drawings({**graph, "name": name}, {}, "", page=page),
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


_ROOT: Final = "/input"
_OTHERS: Final = ("labels", "correlation_key")


@dataclass(frozen=True, slots=True)
class _Sent:
    """Input of a form, and its faults."""

    body: Mapping[str, Any]
    problems: Sequence[Problem] = ()


async def form(visit: Visit) -> Html:
    """Return the empty form, or with `example` a valid value, which the commands have in any case."""
    if graph_name(visit.path["name"]):
        return _of_graph(visit.path["name"])
    workflow = await _workflow(visit)
    schema = workflow["input"]
    found, is_asked = None if schema is None else example_of(schema), bool(visit.query.get("example"))
    shown = unchanged_form(fields_of(schema, None, root=_ROOT, example=found if is_asked else None))
    sent = _sent(workflow, visit, shown)
    if schema is None or is_asked:
        return _page(visit, workflow, sent, form=shown)
    example = _Sent({**sent.body, "input": found[0]}) if found else None
    return _page(visit, workflow, example, form=shown, is_empty=True)


async def submit_start(visit: Visit) -> Answer:
    """Start the saga. The key of the form makes a form that is sent twice start one saga."""
    if graph_name(visit.path["name"]):
        return _of_graph(visit.path["name"])
    workflow = await _workflow(visit)
    sent = _sent(workflow, visit, visit.form)
    if visit.said("more"):
        return _page(visit, workflow, sent, form=visit.form)
    if visit.said("check"):
        found = sent.problems or _checked(workflow["input"], sent.body)
        return _page(visit, workflow, sent, form=visit.form, problems=found, is_checked=not found)
    if sent.problems:
        return _page(visit, workflow, sent, form=visit.form, problems=sent.problems)
    has_key = "correlation_key" not in sent.body
    try:
        key = visit.said("key")[:64] if has_key else ""
        saga = await visit.call("startSaga", body=sent.body, key=key)
    except (NotFound, Forbidden):
        raise
    except KeyReused as error:
        # It was changed after it had been sent: what it asks for now is another saga.
        again = ". Send this form again to start another saga" if has_key else ""
        why = UserError(f"{error.detail}{again}")
        return _page(visit, workflow, sent, form=visit.form, error=why, key=visit.token)
    except UserError as error:
        problems = error.problems
        refused = None if problems else error
        return _page(visit, workflow, sent, form=visit.form, problems=problems, error=refused)
    return Redirect(f"/console/sagas/{part(saga['id'])}?done=start")


def _of_graph(name: str) -> Html:
    """Return the page of a graph of a document, which has no form and links to that of the workflow."""
    whole = starter_of(name)
    data = {
        "detail": f"`{graph_name(name)}` is a graph in the document of `{whole}`, which alone starts it. Start a saga of `{whole}`.",
        "problems": (),
        "leads": (f"/console/workflows/{part(whole)}/start", f"Start a saga of {whole}"),
    }
    return Html(template="error.html", title="A graph is not started by itself", data=data, status=404)


async def _workflow(visit: Visit) -> Any:
    """Return a version, or the newest. Raises `Forbidden` before a person fills in the form."""
    if "run" not in visit.call.roles:
        have = ", ".join(f"`{role}`" for role in sorted(visit.call.roles)) or "none"
        raise Forbidden(f"to start a saga needs the role `run`; your sign-in has {have}")
    path = {name: visit.path[name] for name in ("name", "version") if name in visit.path}
    return await visit.call("showWorkflowVersion" if "version" in path else "showWorkflow", path)


def _sent(workflow: Mapping[str, Any], visit: Visit, form: Form) -> _Sent:
    schema = workflow["input"]
    given, problems = form_data(schema, form, _ROOT, required=schema is not None)
    named = f"{workflow['name']}@{workflow['version']}" if "version" in visit.path else workflow["name"]
    body: dict[str, Any] = {"workflow": named, "input": given}
    if text := visit.said("labels"):
        try:
            body["labels"] = read_labels(",".join(one.strip() for one in text.split(",")))
        except ValueError as error:
            problems.append(Problem("/labels", str(error)))
    if correlation := visit.said("correlation_key"):
        body["correlation_key"] = correlation
    return _Sent(body, problems)


def _checked(schema: Any, body: Mapping[str, Any]) -> Sequence[Problem]:
    """Return the problems for which the API would refuse the body."""
    found = input_violations(schema, body["input"]) if schema is not None else ()
    return [*found, *label_problems(body.get("labels", {}))]


def _started(workflow: Mapping[str, Any]) -> Iterator[str]:
    """Yield the workflows and graphs that the nodes start, which may call tools of their own."""
    for node in workflow["nodes"]:
        if name := node.get("workflow"):
            yield name.partition("@")[0]
        elif graph := node.get("graph"):
            yield inner_name(workflow["name"], graph)


def _place(problem: Problem) -> str:
    """Return the field beside which a problem is shown. The field of a label is that of all labels."""
    return "/labels" if problem.path.startswith("/labels/") else problem.path


def _page(
    visit: Visit,
    workflow: Mapping[str, Any],
    sent: _Sent | None,
    *,
    form: Form,
    problems: Sequence[Problem] = (),
    error: UserError | None = None,
    key: str = "",
    is_checked: bool = False,
    is_empty: bool = False,
) -> Html:
    """Return the page. sent: input of the commands; None: there are none. is_empty: an example."""
    schema = workflow["input"]
    fields = fields_of(schema, form, problems, root=_ROOT, label="Input", required=schema is not None)
    beside = {name: [one.message for one in problems if _place(one) == f"/{name}"] for name in _OTHERS}
    placed = places(fields) | {f"/{name}" for name in _OTHERS}
    there = f"/console/workflows/{part(workflow['name'])}"
    data = {
        "workflow": workflow,
        "there": f"{there}/{part(visit.path['version'])}" if "version" in visit.path else there,
        "tools": sorted({one["tool"] for one in workflow["nodes"] if one.get("tool")}),
        "starts": sorted({*_started(workflow)}),
        "fields": fields,
        "has_schema": schema is not None,
        "said": {name: visit.said(name) for name in _OTHERS},
        "beside": beside,
        "error": error,
        "is_checked": is_checked,
        "is_wrong": bool(problems),
        "elsewhere": [one for one in problems if _place(one) not in placed],
        "key": key or visit.said("key") or visit.token,
        "commands": _starting(visit.api, sent.body) if sent is not None else "",
        "shell": "In a shell, with an example" if is_empty else "The same in a shell",
    }
    status = error.status if error else 422 if problems and not visit.said("check") else 200
    return Html(template="start.html", title=f"Start {workflow['name']}", data=data, status=status)


def _starting(api: str, body: Mapping[str, Any]) -> str:
    """Return the commands that start this saga."""
    words = ["start", body["workflow"]]
    if body["input"] is not None:
        words += ["--input", json.dumps(body["input"], ensure_ascii=False)]
    for name, value in body.get("labels", {}).items():
        words += ["--label", f"{name}={value}"]
    if "correlation_key" in body:
        words += ["--correlation-key", body["correlation_key"]]
    return commands(api, "/sagas", words, body, has_key="correlation_key" not in body)
