"""Starting a saga by a form in the console: said before, wrong and right, once, and for those who may."""

from __future__ import annotations

import pytest

from baton.core.log.events import SagaStarted
from baton.ports import SagaRef
from tests.handlers.browsing import HOSTILE, SECRET, VARIABLE, Browser
from tests.handlers.browsing import PARAMETERS as _PARAMETERS
from tests.handlers.deployment import Deployment
from tests.handlers.http import Http
from tests.handlers.sagas import ECHO
from tests.handlers.test_console_operations import check_page
from tests.kit.sentences import Says

PARAMETERS = _PARAMETERS
PAGE = "/console/workflows/strict/start"
STRICT = """
name: strict
input:
  type: object
  required: [city, party]
  properties:
    city: {type: string, enum: [Vienna, Graz], description: DESCRIPTION}
    party: {type: integer, minimum: 1, maximum: 9}
    vegan: {type: boolean, default: false}
    host: {type: object, required: [name], properties: {name: {type: string}}}
    guests: {type: array, items: {type: string}, examples: [[Grace]]}
  examples: [{city: Graz, party: 3, guests: [Grace, Alan]}]
nodes:
  say: {tool: trial.echo, with: {value: "${input}"}}
"""


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)


@pytest.fixture
def browser(http: Http) -> Browser:
    http.register(STRICT.replace("DESCRIPTION", '"<script>alert(1)</script> {{7*7}}"'))
    http.register(ECHO)
    return Browser(http)


def started(deployment: Deployment, location: str) -> SagaStarted:
    saga = location.removeprefix("/console/sagas/").partition("?")[0]
    (event,) = deployment.entries(SagaRef("acme", saga))[0].events
    assert isinstance(event, SagaStarted)
    return event


def sagas(http: Http) -> int:
    return len(http.get("/sagas").body["sagas"])


def test_a_workflow_leads_to_its_form_which_says_what_it_will_do(browser: Browser, says: Says) -> None:
    assert f'href="{PAGE}"' in browser.get("/console/workflows/strict").html
    seen = browser.get(PAGE)
    says.within(seen.text, 2)
    assert """baton start strict --input '{"city": "Graz",""" in seen.text
    assert "curl -X POST https://api.test/sagas " in seen.text
    example = browser.get(f"{PAGE}?example=1")
    assert "The same in a shell" in example.text
    assert '--input \'{"city": "Graz", "guests": ["Grace", "Alan"], "party": 3,' in example.text
    check_page(browser, PAGE)


def test_the_page_of_a_graph_leads_to_the_workflow_that_starts_it(
    http: Http, browser: Browser, says: Says
) -> None:
    inner = "{nodes: {say: {tool: trial.echo, with: {value: 1}}}}"
    http.register(f"name: outer\nnodes: {{one: {{graph: inner}}}}\ngraphs: {{inner: {inner}}}\n")
    seen = browser.get("/console/workflows/outer.inner")
    says.within(seen.text)
    assert 'href="/console/workflows/outer"' in seen.html
    assert "Start a saga" not in seen.text
    assert "Start a saga" in browser.get("/console/workflows/outer").text


def test_a_graph_is_not_started_and_its_page_says_what_is(http: Http, browser: Browser, says: Says) -> None:
    http.register("name: outer\nnodes: {one: {graph: inner}}\ngraphs: {inner: {nodes: {a: {value: 1}}}}")
    page = "/console/workflows/outer.inner/start"
    for seen in (browser.get(page), browser.post(page, {"/input": ""})):
        assert (seen.status, '<form class="stack"' in seen.html, sagas(http)) == (404, False, 0)
        says.within(seen.text)
        assert 'href="/console/workflows/outer/start"' in seen.html


def test_there_is_no_command_that_would_be_refused(http: Http, browser: Browser) -> None:
    code = '{type: object, required: [code], properties: {code: {type: string, pattern: "^[A-Z]{3}$"}}}'
    http.register(f"name: coded\ninput: {code}\nnodes: {{a: {{value: 1}}}}")
    page = "/console/workflows/coded/start"
    assert "baton start" not in browser.get(page).text
    checked = browser.post(page, {"/input/code": "ABC", "check": "yes"})
    assert """baton start coded --input '{"code": "ABC"}'""" in checked.text


def test_a_form_that_is_filled_wrongly_then_rightly_starts_one_saga_for_two_submits(
    http: Http, browser: Browser, deployment: Deployment, says: Says
) -> None:
    form = {
        "key": browser.get(PAGE).field("key"),
        "/input/city": "0",
        "/input/party": "many",
        "/input/host/name": HOSTILE,
        "rows:/input/guests": "1",
        "/input/guests/0": "Ada",
        "labels": "customer=4711, ring = none",
    }
    wrong = browser.post(PAGE, form)
    assert (wrong.status, sagas(http)) == (422, 0)
    says.within(wrong.text, 3)
    assert wrong.field("key") == form["key"]
    large = browser.post(PAGE, form | {"/input/party": "10", "labels": ""})
    assert (large.status, large.html.count('aria-invalid="true"'), sagas(http)) == (422, 1, 0)
    right = form | {"/input/party": "4", "labels": "customer=4711, ring=one"}
    one, again = (browser.post(PAGE, right) for _ in range(2))
    assert (one.status, one.headers["location"]) == (303, again.headers["location"])
    event = started(deployment, one.headers["location"])
    assert event.input.v["party"] == 4
    assert event.input.v["guests"] == ["Ada"]
    assert event.labels == {"customer": "4711", "ring": "one"}
    assert "It is started." in browser.get(one.headers["location"]).text
    other = browser.post(PAGE, right | {"/input/party": "5"})
    assert (other.status, sagas(http)) == (400, 1)
    says.within(other.text)
    assert browser.post(PAGE, right | {"/input/party": "5", "key": other.field("key")}).status == 303
    assert sagas(http) == 2


def test_a_check_says_what_is_wrong_and_shows_the_commands_of_what_stands_in_it(
    http: Http, browser: Browser, says: Says
) -> None:
    form = {"/input/city": "1", "/input/party": "10", "check": "yes", "correlation_key": "A 17"}
    says.within(browser.post(PAGE, form).text)
    seen = browser.post(PAGE, form | {"/input/party": "2", "rows:/input/guests": "1", "more": ""})
    assert (seen.status, sagas(http)) == (200, 0)
    says.within(seen.text)
    assert """strict --input '{"city": "Graz", "party": 2}' --correlation-key 'A 17'""" in seen.text
    assert "Idempotency-Key" not in seen.text
    more = browser.post(PAGE, {"rows:/input/guests": "1", "/input/guests/0": "Ada", "more": "/input/guests"})
    assert 'name="/input/guests/1"' in more.html
    assert "is needed" not in more.text


def test_a_correlation_key_leads_to_the_saga_that_has_it(http: Http, browser: Browser, says: Says) -> None:
    form = {"/input/city": "1", "/input/party": "2", "correlation_key": "A-17"}
    one, again = (browser.post(PAGE, form | {"key": key}) for key in "ab")
    assert (one.status, one.headers["location"]) == (303, again.headers["location"])
    refused = browser.post(PAGE, form | {"/input/party": "3"})
    assert (refused.status, sagas(http)) == (400, 1)
    says.within(refused.text)


def test_without_a_schema_the_input_is_json_or_nothing(
    http: Http, browser: Browser, deployment: Deployment, says: Says
) -> None:
    page = "/console/workflows/echo/1/start"
    says.within(browser.get(page).text)
    wrong = browser.post(page, {"/input": "{city: Vienna}"})
    assert (wrong.status, sagas(http)) == (422, 0)
    says.within(wrong.text)
    assert "{city: Vienna}" in wrong.html
    for given, found in (("", None), ('{"a": [1]}', {"a": [1]})):
        done = browser.post(page, {"/input": given})
        assert started(deployment, done.headers["location"]).input.v == found


def test_it_is_said_what_nodes_start_that_may_call_tools_of_their_own(
    http: Http, browser: Browser, says: Says
) -> None:
    nodes = "{a: {graph: g}, b: {map: [1], graph: g, after: a}, c: {workflow: echo@1, after: b}}"
    graphs = "{g: {nodes: {x: {tool: trial.echo, with: {value: 1}}}}}"
    http.register(f"name: starts\nnodes: {nodes}\ngraphs: {graphs}")
    seen = browser.get("/console/workflows/starts/start").text
    says.within(seen)


def test_who_may_not_start_sees_no_form(http: Http, browser: Browser, says: Says) -> None:
    viewer = Browser(http, user="vera", roles=("read",))
    assert PAGE not in viewer.get("/console/workflows/strict").html
    for seen in (viewer.get(PAGE), viewer.post(PAGE, {"/input/city": "1", "/input/party": "2"})):
        assert seen.status == 403
        says(seen.text)
    assert sagas(http) == 0
    assert browser.get("/console/workflows/none/start").status == 404
