"""Reading workflows, lists of sagas, tools and kinds of nodes over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from baton import node_kind
from baton.ports import SagaRef
from baton.tools.define import NODE_KINDS
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, ECHO, PARTY, begin
from tests.kit.sentences import Says

PARAMETERS = {"AppModule": "tests.kit.app.trial"}
SECOND = ECHO.replace("name: echo", "name: echo\ndescription: the second")


def pages(http: Http, path: str, key: str, **query: str) -> list[list[Any]]:
    """What is on each page of a list, to its end."""
    found: list[list[Any]] = []
    while True:
        page = http.get(path, query=query).body
        found.append(page[key])
        if page["next"] is None:
            return found
        query["cursor"] = page["next"]


def test_workflows_are_listed_by_name_with_their_newest_version(http: Http) -> None:
    for document in (PARTY, ECHO, SECOND):
        http.register(document)
    (first, second) = http.get("/workflows").body["workflows"]
    assert (first["name"], first["version"], first["by"]) == ("echo", 2, "ada")
    assert (second["name"], second["version"]) == ("party", 1)
    assert set(first) == {"name", "version", "graph", "created_at", "by", "pauses", "description"}


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_workflows_come_in_pages_each_once(limit: int, http: Http) -> None:
    names = ["a", "b", "c", "d", "e"]
    for name in names:
        http.register(ECHO.replace("name: echo", f"name: {name}"))
    found = pages(http, "/workflows", "workflows", limit=str(limit))
    assert [row["name"] for page in found for row in page] == names
    assert all(len(page) <= limit for page in found)


def test_a_workflow_is_shown_with_its_document_its_graph_and_its_versions(http: Http) -> None:
    http.register(ECHO)
    http.register(SECOND)
    shown = http.get("/workflows/echo").body
    assert (shown["version"], shown["document"], shown["input"]) == (2, SECOND, None)
    assert [(node["name"], node["kind"], node["tool"]) for node in shown["nodes"]] == [
        ("say", "task", "trial.echo")
    ]
    assert shown["edges"] == []
    assert [version["version"] for version in shown["versions"]] == [2, 1]


def test_one_version_of_a_workflow_is_shown_without_the_others(http: Http) -> None:
    http.register(ECHO)
    http.register(SECOND)
    shown = http.get("/workflows/echo/1").body
    assert (shown["version"], shown["document"]) == (1, ECHO)
    assert "versions" not in shown


def test_a_registered_workflow_is_where_the_answer_says(http: Http) -> None:
    answer = http.post("/workflows", ECHO, headers={"content-type": "application/yaml"})
    assert http.get(answer.headers["location"]).body["document"] == ECHO


def test_sagas_are_listed_with_what_they_are_at(http: Http) -> None:
    begin(http.engine, ADA, PARTY)
    page = http.get("/sagas").body
    (row,) = page["sagas"]
    assert (row["id"], row["workflow"], row["user"]) == (ADA.id, "party", "ada")
    assert page["next"] is None


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_sagas_come_in_pages_each_once(limit: int, http: Http) -> None:
    for number in range(7):
        begin(http.engine, SagaRef("acme", f"s{number}"), PARTY)
    found = pages(http, "/sagas", "sagas", limit=str(limit))
    assert sorted(row["id"] for page in found for row in page) == [f"s{number}" for number in range(7)]
    assert all(len(page) <= limit for page in found)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, True),
        ({"status": "open"}, True),
        ({"status": "running"}, True),
        ({"status": "done"}, False),
        ({"status": "completed"}, False),
        ({"workflow": "party"}, True),
        ({"workflow": "echo"}, False),
        ({"since": "2020-01-01T00:00:00Z"}, True),
        ({"since": "0001-01-01T00:00:00+14:00"}, True),
        ({"since": "2020-01-01t00:00:00.5z"}, True),
        ({"since": "2199-12-31T23:59:59.999-12:00"}, False),
        ({"status": "open", "workflow": "party", "since": "2020-01-01T00:00:00+02:00", "limit": "1"}, True),
    ],
)
def test_a_list_of_sagas_can_be_filtered(query: dict[str, str], found: bool, http: Http) -> None:
    begin(http.engine, ADA, PARTY)
    rows = [row for page in pages(http, "/sagas", "sagas", **query) for row in page]
    assert [row["id"] for row in rows] == [ADA.id] * found


def test_tools_are_shown_by_name_with_their_schemas(http: Http, says: Says) -> None:
    tools = http.get("/tools").body["tools"]
    assert [tool["name"] for tool in tools] == sorted(tool["name"] for tool in tools)
    (echo,) = [tool for tool in tools if tool["name"] == "trial.echo"]
    assert echo["effect"] == "pure"
    says(echo["description"])
    assert echo["input"]["required"] == ["value"]
    assert len(echo["schema_hash"]) == 12


def test_kinds_of_nodes_are_shown_with_an_example_that_their_schema_allows(http: Http) -> None:
    shown = http.get("/node-types").body
    assert {kind["kind"] for kind in shown["node_types"]} >= {"task", "wait", "workflow"}
    assert all(kind["description"] and kind["example"] for kind in shown["node_types"])
    task = next(kind for kind in shown["node_types"] if kind["kind"] == "task")
    assert (task["version"], task["title"], task["input"]) == ("1", "Task", {"type": "object"})
    assert all((task["capabilities"]["retry"], task["icon"], task["output"]))
    assert shown["schema"]["required"] == ["name", "nodes"]


class Nap(BaseModel):
    """Sleeps for a while."""

    minutes: int

    def nodes(self, step: Any) -> dict[str, Any]:
        return {"sleep": {"wait": {"for": f"{self.minutes}m"}}}


def test_a_kind_of_the_application_is_shown_and_registered(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds: dict[str, Any] = {}
    node_kind("nap", title="Nap", example={"minutes": 5}, kinds=kinds)(Nap)
    monkeypatch.setitem(NODE_KINDS, "nap", kinds["nap"])
    shown = http.get("/node-types").body
    nap = shown["node_types"][-1]
    assert (nap["kind"], nap["title"], nap["description"]) == ("nap", "Nap", "Sleeps for a while.")
    assert {"$ref": "#/$defs/nap"} in shown["schema"]["$defs"]["node"]["oneOf"]
    http.register("name: tired\nnodes: {a: {nap: {minutes: 5}}}")
    (node,) = http.get("/workflows/tired").body["nodes"]
    assert (node["kind"], node["wait_ms"]) == ("wait", 300_000)


def test_the_cost_of_a_saga_is_an_estimate_that_names_its_prices(http: Http) -> None:
    begin(http.engine, ADA, PARTY)
    cost = http.get(f"/sagas/{ADA.id}/cost").body
    assert (cost["saga"], cost["estimated"], cost["models"]) == (ADA.id, True, [])
    assert set(cost["priced"]) == {"region", "date"}
    assert cost["usd"]["total"] == pytest.approx(sum(line["usd"] for line in cost["aws"]))
