"""Workflows, tools, kinds of nodes and money in the console."""

from __future__ import annotations

import pytest

from baton.core.log.events import SagaEnded
from tests.handlers.browsing import HOSTILE, SECRET, VARIABLE, Browser
from tests.handlers.browsing import PARAMETERS as _PARAMETERS
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, ECHO, append, asking, begin
from tests.handlers.test_console_operations import check_page
from tests.kit.sentences import Says

PARAMETERS = _PARAMETERS | {"UserDayBudgetUsd": "2.50"}
LOUD = f"# {HOSTILE.replace(chr(27), '')}\n" + ECHO.replace("trial.echo,", "trial.echo, after: [],")


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)


@pytest.fixture
def browser(http: Http) -> Browser:
    return Browser(http)


def test_before_there_is_a_workflow_the_page_says_how_to_begin(browser: Browser, says: Says) -> None:
    text = browser.get("/console/workflows").text
    says.within(text, 2)


def test_a_workflow_has_its_graph_its_versions_and_how_many_sagas_need_a_look(
    http: Http, browser: Browser
) -> None:
    asking(http.engine, ADA, escalated=True)
    http.register(LOUD + "\nlimits: {hops: 7}\n")
    assert 'href="/console/workflows/echo"' in browser.get("/console/workflows").html
    seen = browser.get("/console/workflows/echo")
    assert "echo version 2" in seen.text
    assert "At work 1" in seen.text
    assert "hops: at most 7" in seen.text
    assert '<a href="#node-say" aria-label="say: task">' in seen.html
    assert 'id="node-say"' in seen.html
    assert 'href="/console/tools/trial.echo"' in seen.html
    assert "thgir" in seen.text
    first = browser.get("/console/workflows/echo/1")
    assert "version 2 is newer" in first.text
    assert "baton workflows echo@1" in first.text
    assert "thgir" not in first.text
    for path in ("", "/echo", "/echo/1"):
        check_page(browser, f"/console/workflows{path}")


GRAPHS = """
name: rounds
failure_handler: {graph: tell}
nodes:
  visit: {map: [1, 2], graph: one, with: {day: "${item}"}}
graphs:
  one: {nodes: {look: {value: 1}, say: {graph: tell, with: {day: 1}, after: look}}}
  tell: {nodes: {mail: {value: 1}}}
"""


def test_a_workflow_and_a_saga_say_their_tag_and_a_version_its_change(http: Http, browser: Browser) -> None:
    http.register(ECHO)
    http.post("/workflows/echo/tags/main", {"version": 1}, roles="[operate]")
    change = {
        "for": 1,
        "patch": [{"op": "add", "path": "/limits", "value": {"hops": 9}}],
        "description": "fewer",
    }
    http.post("/workflows/echo/patches", change, roles="[operate]")
    text = browser.get("/console/workflows/echo").text
    assert "echo@main" in text
    assert ": fewer" in text
    saga = http.post("/sagas", {"workflow": "echo@main"}).body["id"]
    assert "tag main" in browser.get(f"/console/sagas/{saga}").text


def test_the_graphs_of_a_document_are_drawn_and_linked_both_ways(
    http: Http, browser: Browser, says: Says
) -> None:
    http.register(GRAPHS)
    seen = browser.get("/console/workflows/rounds")
    assert "visit map, graph one" in seen.text
    says.within(seen.text, 2)
    for graph, node in (("one", "look"), ("tell", "mail")):
        assert f'href="/console/workflows/rounds.{graph}"' in seen.html
        assert f'<a href="/console/workflows/rounds.{graph}#node-{node}"' in seen.html
    assert (
        'href="/console/workflows/rounds.one/1#node-look"' in browser.get("/console/workflows/rounds/1").html
    )
    inner = browser.get("/console/workflows/rounds.one")
    says.within(inner.text)
    assert 'href="/console/workflows/rounds.tell"' in inner.html
    for path in ("rounds", "rounds.one"):
        check_page(browser, f"/console/workflows/{path}")
    http.register(
        GRAPHS.replace("{graph: tell}\nnodes", "tell\nnodes")
        .replace("graph: tell,", "workflow: t,")
        .replace("  tell: {", "  x: {")
    )
    says.within(browser.get("/console/workflows/rounds").text)


def test_all_that_became_of_its_sagas_is_counted(http: Http, browser: Browser) -> None:
    begin(http.engine, ADA)
    append(http.engine, SagaEnded(status="completed"))
    seen = browser.get("/console/workflows/echo").text
    assert "At work 1" in seen  # the head is the worker's to write
    for status in ("Waiting for a person 0", "Parked 0", "Failed 0", "Completed 0"):
        assert status in seen


def test_a_tool_says_what_undoes_it_what_it_costs_and_its_schemas(browser: Browser) -> None:
    assert 'href="/console/tools/trial.echo"' in browser.get("/console/tools").html
    seen = browser.get("/console/tools/trial.echo")
    assert "Undone by" in seen.text
    assert "baton tools trial.echo" in seen.text
    assert "Schema of its input" in seen.text
    for path in ("tools", "tools/trial.echo", "node-types", "node-types/human"):
        check_page(browser, f"/console/{path}")


def test_a_kind_of_nodes_has_an_example(browser: Browser) -> None:
    assert 'href="/console/node-types/wait"' in browser.get("/console/node-types").html
    assert "An example" in browser.get("/console/node-types/wait").text


@pytest.mark.parametrize("path", ["workflows/none", "workflows/echo/9", "tools/none", "node-types/none"])
def test_what_does_not_exist_is_not_there(path: str, http: Http, browser: Browser) -> None:
    http.register(ECHO)
    seen = browser.get(f"/console/{path}")
    assert seen.status == 404
    assert "<h1>" in seen.html


def test_money_says_what_is_left_and_what_models_have_cost(browser: Browser, says: Says) -> None:
    seen = browser.get("/console/money")
    assert "of $2.50, $2.50 left" in seen.text
    says.within(seen.text, 2)
    assert browser.get("/console/money", by="model", day="2026-11-21").text.count("2026-11-21") > 1
    assert "2026-11-20" in browser.get("/console/money", day="2026-11-21").html
    assert browser.get("/console/money", day="yesterday").status == 400
    assert browser.get("/console/money", by="month").status == 400
    check_page(browser, "/console/money")


def test_what_sagas_have_cost_is_for_operators(http: Http, says: Says) -> None:
    seen = Browser(http, roles=("read",)).get("/console/money")
    assert seen.status == 200
    says.within(seen.text)


def test_how_sagas_ended_says_where_there_is_no_budget(browser: Browser, says: Says) -> None:
    seen = browser.get("/console/error-budgets")
    says.within(seen.text)
    check_page(browser, "/console/error-budgets")
