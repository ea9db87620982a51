"""The console over the api function: who gets in, what contains its pages, and that what people wrote is shown as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest

from baton.console.site import PAGES
from baton.core.log.events import AttemptFailed, Failure, SagaEnded, StepSucceeded, UnitRecorded, Value
from baton.ports import SagaRef
from tests.handlers.browsing import HOSTILE, SECRET, VARIABLE, Browser, Seen
from tests.handlers.browsing import PARAMETERS as _PARAMETERS
from tests.handlers.deployment import Deployment
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, ECHO, GRACE, PARTY, SILENT, append, asking, begin
from tests.kit.sentences import Says

PARAMETERS = _PARAMETERS
SAGA = f"/console/sagas/{ADA.id}"


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)


@pytest.fixture
def browser(http: Http) -> Browser:
    return Browser(http)


def test_who_has_not_signed_in_sees_the_sign_in_and_nothing_else(http: Http) -> None:
    begin(http.engine, ADA)
    stranger = Browser(http, user=None)
    for path in ("/console", "/console/sagas", SAGA, f"{SAGA}/log.json"):
        seen = stranger.get(path)
        assert (seen.status, ADA.id in seen.text) == (401, False)
        assert f"/console/sign-in?to={path.replace('/', '%2F')}" in seen.html
    assert stranger.post(f"{SAGA}/cancel").status == 401


def test_a_cookie_that_was_changed_or_is_of_another_secret_signs_no_one_in(browser: Browser) -> None:
    good = browser.session()
    body, _, mac = good.partition(".")
    other = "B" if mac[0] == "A" else "A"  # a code may end with any letters
    for bad in (f"{body[:-2]}AA.{mac}", f"{body}.{other}{mac[1:]}", body, ".", "x.y", f"{good}=", "é"):
        stranger = Browser(browser.http, user=None, more_cookies=[f"__Host-baton-session={bad}"])
        assert stranger.get("/console").status == 401
    assert browser.get("/console").status == 200


def test_a_page_is_contained(browser: Browser) -> None:
    headers = browser.get("/console").headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")


def test_the_style_sheet_needs_no_sign_in_and_is_kept_under_its_name(http: Http, browser: Browser) -> None:
    (link,) = re.findall(r'href="(/console/static/console.css\?v=\w+)"', browser.get("/console").html)
    seen = Browser(http, user=None).get(link)
    assert (seen.status, seen.headers["content-type"]) == (200, "text/css; charset=utf-8")
    assert "immutable" in seen.headers["cache-control"]


def test_no_page_has_script_or_style_in_it(pages: dict[str, Seen]) -> None:
    for path, seen in pages.items():
        for tag, attributes in seen.elements():
            assert tag != "style", path
            assert "style" not in attributes, path
            assert not any(name.startswith("on") for name in attributes), path
            assert tag != "script" or "src" in attributes, path


def test_every_page_says_its_language_its_title_and_has_one_heading(pages: dict[str, Seen]) -> None:
    for path, seen in pages.items():
        tags = [tag for tag, _ in seen.elements()]
        assert seen.status == 200, (path, seen.text)
        assert tags.count("h1") == tags.count("main") == tags[: tags.index("body")].count("title") == 1, path
        assert dict(seen.elements())["html"] == {"lang": "en"}
        # A field has a label around it, or one that names it.
        named = {attributes.get("for") for tag, attributes in seen.elements() if tag == "label"}
        for tag, attributes in seen.elements():
            if tag in ("input", "select", "textarea") and attributes.get("type") != "hidden":
                assert attributes.get("id") in named or attributes.get("aria-label") or "<label" in seen.html


def test_what_people_wrote_is_shown_as_text(pages: dict[str, Seen]) -> None:
    shown = 0
    for path, seen in pages.items():
        html = seen.html
        assert "<script>alert(1)" not in html, path
        assert "\x1b" not in html, path
        assert "49" not in html.partition("thgir")[2][:80], path
        shown += "&lt;script&gt;alert(1)" in html
    assert shown >= 3


def test_a_megabyte_is_cut_and_that_is_said(http: Http, browser: Browser) -> None:
    begin(http.engine, ADA, ECHO, "x" * 1_000_000)
    done = StepSucceeded(node="say", attempt=1, output=Value(v="y" * 150_000), **_AT)
    append(http.engine, done)
    found = [browser.get(path) for path in (SAGA, f"{SAGA}/log", f"{SAGA}/log/2")]
    assert all(len(seen.html) < 150_000 for seen in found)
    assert "characters)" in found[-1].text


def test_a_value_beside_the_log_has_a_page_for_those_who_may_read_the_saga(
    http: Http, browser: Browser, says: Says
) -> None:
    begin(http.engine, ADA, ECHO, {"words": HOSTILE, "more": "x" * 1_000_000})
    begin(http.engine, GRACE)
    (digest,) = re.findall(r"cas://sha256/([0-9a-f]{64})", browser.get(f"{SAGA}/log.json").html)
    page = f"values/{digest}"
    seen = browser.get(f"{SAGA}/{page}")
    assert seen.status == 200
    says.within(seen.text)
    assert f"baton value {ADA.id} cas://sha256/{digest}" in seen.text
    assert "<script>alert(1)" not in seen.html
    assert browser.get(f"/console/sagas/{GRACE.id}/{page}").status == 404
    assert browser.get(f"{SAGA}/{page}?after=x").status == 400
    stranger = Browser(http, user="bob", tenant="other")
    assert stranger.get(f"{SAGA}/{page}").status == 404


_AT: dict[str, Any] = {
    "started_at": 0,
    "ended_at": 1,
    "tool": "trial.echo",
    "tool_version": "",
    "schema_hash": "",
}


@pytest.fixture(scope="module")
def pages(shared_http: Http, shared_deployment: Deployment) -> dict[str, Seen]:
    """A page of each kind, of a tenant in whose sagas everything is hostile."""
    begin(shared_http.engine, ADA, PARTY.replace("guests_changed", "changed"), {"words": HOSTILE}, user="ada")
    asking(shared_http.engine, GRACE, SILENT)
    failure = Failure(code="out_of_stock", message=HOSTILE, node="guests", attempt=1, at=1)
    append(shared_http.engine, SagaEnded(status="failed", failure=failure))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, SECRET)
        browser = Browser(shared_http)
        paths = [
            "/console",
            "/console/sagas",
            "/console/sagas?status=failed",
            SAGA,
            f"{SAGA}/log",
            f"{SAGA}/log/1",
            f"{SAGA}/cost",
            f"{SAGA}/graph",
            f"{SAGA}/diff",
            f"{SAGA}/diff?with={GRACE.id}",
            f"{SAGA}?node=guests",
            f"{SAGA}/log?kind=failures",
            f"{SAGA}/fork",
            f"/console/sagas/{GRACE.id}",
            f"/console/sagas/{GRACE.id}/cancel",
            f"/console/sagas/{GRACE.id}/questions/0.say.3",
            "/console/inbox",
        ]
        seen = {path: browser.get(path) for path in paths}
    shared_deployment.reset()
    return seen


def test_the_overview_says_in_five_numbers_whether_anything_needs_a_person(
    http: Http, browser: Browser, says: Says
) -> None:
    says.within(browser.get("/console").text)
    begin(http.engine, ADA, PARTY)
    says.within(browser.get("/console").text)
    asking(http.engine, GRACE, SILENT, escalated=True)
    seen = browser.get("/console")
    says.within(seen.text)
    assert "At work: 2" in seen.text
    figures = [str(at["href"]) for tag, at in seen.elements() if tag == "a" and at.get("href")]
    for path in ("/inbox", "/incidents", "/sagas?status=parked", "/dead-letters", "/money"):
        assert f"/console{path}" in figures


def test_the_overview_leads_to_recent_sagas_and_to_the_forms_that_start_some(
    http: Http, browser: Browser
) -> None:
    begin(http.engine, ADA, PARTY)
    html = browser.get("/console").html
    assert f'href="{SAGA}"' in html.partition("Changed last")[2]
    assert 'href="/console/workflows/party/start"' in html
    assert "/start" not in Browser(http, roles=("read",)).get("/console").html


def test_the_panel_of_a_node_lists_the_units_of_its_work(http: Http, browser: Browser) -> None:
    begin(http.engine, ADA, ECHO)
    one = UnitRecorded(node="say", name="pay <b>", key="k", output=Value(v=HOSTILE), size=9, at=1)
    append(http.engine, one, UnitRecorded(node="say", name="ship", key="l", output=Value(v=7), size=1, at=1))
    seen = browser.get(f"{SAGA}?node=say")
    assert "Units of its work" in seen.text
    assert "ship: 7" in seen.text
    assert "pay <b>:" in seen.text, "as text"
    assert "pay <b>" not in seen.html
    assert f'href="{SAGA}/log/2"' in seen.html
    (answer,) = http.get(f"/sagas/{ADA.id}/explain/say").body["iterations"]
    assert [one["name"] for one in answer["units"]] == ["pay <b>", "ship"]
    (active,) = http.get(f"/sagas/{ADA.id}").body["active"]
    assert active["units"] == 2


def test_the_page_of_a_saga_shows_the_node_that_is_chosen_or_the_one_that_matters(
    http: Http, browser: Browser
) -> None:
    begin(http.engine, ADA, PARTY.replace("output:", "  later: {value: 1, after: guests}\noutput:"))
    assert f'href="{SAGA}?node=later#node"' in browser.get(SAGA).html
    for path, node in ((SAGA, "guests"), (f"{SAGA}?node=later", "later")):
        panel = browser.get(path).html.partition('<section class="panel"')[2]
        assert f"<code><bdi>{node}</bdi></code>" in panel.partition("</h2>")[0]
    assert browser.get(f"{SAGA}?node=gusts").status == 404


def test_events_are_filtered_by_kind_and_node(http: Http, browser: Browser) -> None:
    begin(http.engine, ADA, ECHO)
    failed = AttemptFailed(node="say", attempt=1, failure=Failure("boom", "No luck."), **_AT)
    append(
        http.engine, failed, UnitRecorded(node="say", name="pay", key="k", output=Value(v=1), size=1, at=1)
    )
    for path in (SAGA, f"{SAGA}/log"):
        for query, kinds in (
            ({"kind": "failures"}, ["attempt failed"]),
            ({"kind": "unit_recorded"}, ["unit recorded"]),
            ({"of": "say"}, ["attempt failed", "unit recorded"]),
            ({"of": "another"}, []),
        ):
            listed = browser.get(path, **query).html.rpartition("</form>")[2].partition("The same")[0]
            found = [one for one in ("saga started", "attempt failed", "unit recorded") if one in listed]
            assert (path, query, found) == (path, query, kinds)


def test_a_number_that_the_callers_roles_do_not_show_is_none(http: Http, says: Says) -> None:
    text = Browser(http, roles=("read",)).get("/console").text
    says.within(text)


def test_the_message_of_a_failure_is_not_folded_away(http: Http, browser: Browser) -> None:
    """The advice for a code of the application's own is to read it."""
    begin(http.engine, ADA)
    append(http.engine, SagaEnded(status="failed", failure=Failure("boom", "No money is left.")))
    trouble = browser.get(SAGA).html.partition("Why it failed")[2]
    shown, _, folded = trouble.partition("<details>")
    assert "Read its message." in shown
    assert shown.index("No money is left.") < shown.index("Read its message.")
    assert "No money is left." not in folded.partition("</details>")[0]


def test_the_pages_of_a_failed_saga_and_of_its_handler_lead_to_each_other(
    http: Http, browser: Browser, says: Says
) -> None:
    begin(http.engine, ADA)
    handler = SagaRef("acme", f"{ADA.id}.0.failure-handler")
    ended = SagaEnded(status="failed", failure=Failure("boom", "No `money`."), handler=handler.id)
    append(http.engine, ended)
    seen = browser.get(SAGA)
    says.within(seen.text)
    begin(http.engine, handler)
    assert http.get(f"/sagas/{ADA.id}").body["failure_handler"] == {
        "saga": handler.id,
        "status": "running",
        "why": None,
    }
    seen = browser.get(SAGA)
    says.within(seen.text)
    assert "No <code>money</code>." in seen.html
    back = browser.get(f"/console/sagas/{handler.id}")
    says.within(back.text)
    assert f'href="{SAGA}"' in back.html
    other = SagaRef("acme", "another")
    begin(http.engine, other)
    append(
        http.engine,
        SagaEnded(status="failed", failure=Failure("a", "b"), unhandled=Failure("c", "no `tell`")),
        ref=other,
    )
    says.within(browser.get(f"/console/sagas/{other.id}").text)


def test_a_role_that_is_missing_is_named(http: Http) -> None:
    begin(http.engine, ADA)
    seen = Browser(http, roles=("answer",)).get(SAGA)
    assert seen.status == 403
    assert "needs the role read" in seen.text
    assert "ada of acme" in seen.text


def test_a_saga_of_another_tenant_is_not_there(http: Http) -> None:
    begin(http.engine, ADA)
    seen = Browser(http, tenant="globex").get(SAGA)
    assert (seen.status, "ada of globex" in seen.text) == (404, True)


def test_sagas_are_filtered_and_paged(
    http: Http, browser: Browser, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setattr("baton.console.lists._PAGE", "1")
    begin(http.engine, ADA, PARTY)
    begin(http.engine, GRACE, SILENT)
    found, path = set(), "/console/sagas?age=3600"
    while path:
        seen = browser.get(path)
        found |= {name for name in (ADA.id, GRACE.id) if name in seen.text}
        more = re.findall(r'href="([^"]*cursor=[^"]*)" rel="next"', seen.html)
        path = more[0].replace("&amp;", "&") if more else ""
        assert not path or "age=3600" in path
    assert found == {ADA.id, GRACE.id}
    says.within(browser.get("/console/sagas", status="failed").text)
    assert ADA.id not in browser.get("/console/sagas", workflow="silent").text


def test_a_saga_is_found_by_its_id_its_workflow_and_a_label(http: Http, browser: Browser) -> None:
    begin(http.engine, ADA, PARTY)
    for wanted, to in (
        (ADA.id, SAGA),
        ("party", "/console/sagas?workflow=party"),
        ("order=7", "/console/sagas?label=order%3D7"),
    ):
        seen = browser.get("/console/sagas", find=wanted)
        assert (seen.status, seen.headers["location"]) == (303, to)


def test_a_filter_that_is_none_is_explained(browser: Browser) -> None:
    seen = browser.get("/console/sagas", status="<nonsense>")
    assert seen.status == 400
    assert "&lt;nonsense&gt;" in seen.html or "<nonsense>" not in seen.html


def test_the_log_is_a_download_of_json(http: Http, browser: Browser) -> None:
    import json

    begin(http.engine, ADA)
    seen = browser.get(f"{SAGA}/log.json")
    assert seen.headers["content-disposition"] == f'attachment; filename="{ADA.id}-log.json"'
    found = json.loads(seen.html)
    assert (found["saga"], found["next"], found["entries"][0]["version"]) == (ADA.id, None, 1)


@pytest.mark.parametrize("version", ["0", "9", "x", "-1", "1" * 30])
def test_a_version_that_is_not_in_the_log_is_not_there(version: str, http: Http, browser: Browser) -> None:
    begin(http.engine, ADA)
    assert browser.get(f"{SAGA}/log/{version}").status == 404


def test_a_form_of_another_sign_in_does_nothing(browser: Browser) -> None:
    for page in [page for page in PAGES if page.method == "POST"]:
        path = "/console/" + re.sub(r"\{\w+\}", "x", page.path)
        for token in ("", "of-another-session"):
            seen = browser.post(path, csrf=token)
            assert seen.status == 403
            assert "Nothing was done" in seen.text
            assert "ada of acme" in seen.text


def test_an_unknown_page_is_said(browser: Browser) -> None:
    seen = browser.get("/console/nonsense")
    assert (seen.status, "ada of acme" in seen.text) == (404, True)
    assert browser.get("/consoles").status != 200


def test_pages_count_as_requests_of_the_tenant(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    with deployment.function("api", BATON_TENANT_RATE_LIMIT="1") as module:
        try:
            statuses = [Browser(Http(module)).get("/console/sagas").status for _ in range(25)]
        finally:
            module._api._loop.close()
    assert 429 in statuses


def test_without_an_issuer_there_is_no_console(deployment: Deployment) -> None:
    with deployment.function("api", BATON_CONSOLE_ISSUER="") as module:
        try:
            seen = Browser(Http(module)).get("/console")
        finally:
            module._api._loop.close()
    assert seen.status == 404
    assert "ConsoleIssuer" in seen.text


def test_a_defect_is_a_page_and_is_logged(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    browser.get("/console")

    def broken(*_: Any) -> Iterator[None]:
        raise RuntimeError("planted")

    monkeypatch.setattr("baton.console.site._found", broken)
    seen = browser.get("/console")
    assert (seen.status, "planted" in seen.text, "ada of acme" in seen.text) == (500, False, True)
    assert "console defect" in caplog.text


def test_the_pages_of_a_damaged_saga_show_what_can_be_read_and_name_the_rest(
    browser: Browser, deployment: Deployment
) -> None:
    begin(browser.http.engine, ADA)
    place = {"pk": {"S": str(ADA)}, "sk": {"S": "LOG#0000#0000000002"}}
    deployment.dynamodb.put_item(TableName=deployment.table, Item={**place, "d": {"B": b"\x00"}})
    for page in (SAGA, f"{SAGA}/log"):
        assert "Versions 2 to 2" in browser.get(page).text


def _links(seen: Seen) -> set[str]:
    return {str(one.get("href") or one.get("action") or "") for _, one in seen.elements()}


def test_an_earlier_version_is_shown_as_it_was_and_offers_nothing(http: Http, browser: Browser) -> None:
    asking(http.engine)
    open_links = _links(browser.get(SAGA))
    append(http.engine, SagaEnded(status="cancelled", failure=Failure("cancelled", "Ada said so.")))
    now, then, first = (browser.get(f"{SAGA}{at}") for at in ("", "?at=2", "?at=1"))
    assert ("cancelled" in now.text, "What now?" in now.text.partition("Events")[0]) == (True, False)
    assert ('id="asked"' in then.html, "Ada said so." in then.text) == (True, False)
    assert " 2 of 3, " in then.text
    assert ("service is down" in then.text, "service is down" in first.text) == (True, False)
    links, offers = _links(then), (f"{SAGA}/cancel", f"{SAGA}/questions/0.say.3")
    assert [one in of for of in (open_links, links) for one in offers] == [True, True, False, False]
    assert {"?at=1", "?at=3", SAGA} <= links
    assert {one for one in links if one.endswith("node=say#node")} == {f"{SAGA}?at=2&node=say#node"}
    sliders = [one for name, one in then.elements() if name == "input" and one.get("type") == "range"]
    assert [(one["min"], one["max"], one["value"]) for one in sliders] == [("1", "3", "2")]
    assert ("etag" in now.headers, "etag" in then.headers) == (True, False)
    assert [browser.get(f"{SAGA}?at={at}").status for at in ("4", "x")] == [404, 400]
    steps = browser.get(f"{SAGA}?at=2&node=say")
    assert {"?at=1&node=say", "?at=3&node=say", f"{SAGA}/diff?at=2"} <= _links(steps), "the node stays chosen"
    marked = [str(one.get("class")) for name, one in then.elements() if name in ("line", "rect")]
    assert ("mark" in marked, any("later" in one for one in marked)) == (True, False)
    graph = browser.get(f"{SAGA}/graph?at=1")
    assert (graph.status, " 1. " in graph.text, f"{SAGA}?at=1&node=say#node" in _links(graph)) == (
        200,
        True,
        True,
    )


def test_two_sagas_or_two_versions_of_one_stand_side_by_side_with_what_differs(
    http: Http, browser: Browser
) -> None:
    begin(http.engine, ADA, ECHO, {"words": HOSTILE, "same": 1})
    begin(http.engine, GRACE, ECHO, {"words": "other", "same": 1})
    for saga, said in ((ADA, {"a": 1, "b": 2}), (GRACE, {"a": 1, "b": 3, "c": 4})):
        append(http.engine, StepSucceeded(node="say", attempt=1, output=Value(v=said), **_AT), ref=saga)
    there = f"{SAGA}/diff"
    form, seen, before = (browser.get(f"{there}{query}") for query in ("", f"?with={GRACE.id}", "?at=1"))
    assert ("What differs" in form.text, "What differs" in seen.text) == (False, True)
    marked = re.findall("<mark>(.*?)</mark>", unescape(seen.html))
    assert marked[-3:] == ['  "b": 2', '  "b": 3,', '  "c": 4']
    differing = [one["class"] for name, one in seen.elements() if name == "g"]
    assert differing == ["node ran differs"] * 2
    assert {SAGA, f"/console/sagas/{GRACE.id}?at=2&node=say#node"} <= _links(seen)
    assert "Not there" in before.text
    assert f"{SAGA}?at=1&node=say#node" in _links(before)
    assert f"baton diff {ADA.id} --at 1" in before.text
    refused = (f"?with={GRACE.id}&to=9", "?with=unknown", "?at=x")
    assert [browser.get(f"{there}{query}").status for query in refused] == [404, 404, 400]


def test_the_graph_of_a_patched_saga_is_that_of_the_version(http: Http, browser: Browser) -> None:
    begin(http.engine, ADA, PARTY)
    (graph,) = {http.get(f"/sagas/{ADA.id}").body["graph"]}
    patch = [{"op": "add", "path": "/nodes/count", "value": {"value": 1, "after": "guests"}}]
    assert http.post(f"/sagas/{ADA.id}/patches", {"patch": patch, "for": graph}).status == 202
    now, then = (browser.get(f"{SAGA}{at}") for at in ("", "?at=1"))
    for page, count in (
        (now, 1),
        (then, 0),
        (browser.get(f"{SAGA}/graph"), 1),
        (browser.get(f"{SAGA}/graph?at=1"), 0),
    ):
        assert len([one for one in _links(page) if "node=count" in one]) == count
    both = browser.get(f"{SAGA}/diff?at=1")
    assert [both.status, "graph" in both.text.partition("What differs")[2]] == [200, True]
    shown = http.get(f"/sagas/{ADA.id}/workflow").body
    assert ("count" in shown["document"], [one["name"] for one in shown["nodes"]]) == (
        True,
        ["guests", "count"],
    )
