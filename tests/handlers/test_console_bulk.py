"""Many sagas at once in the console: counted first, done once, each told of; and the list that leads there."""

from __future__ import annotations

import pytest

from baton.console import lists
from baton.core.log.events import CancelRequested, Parked
from baton.errors import CorruptLog, StoreUnavailable
from baton.ports import SagaRef
from tests.handlers.browsing import PARAMETERS as _PARAMETERS
from tests.handlers.browsing import SECRET, VARIABLE, Browser
from tests.handlers.deployment import Deployment
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, ALL, GRACE, PARTY, append, begin
from tests.handlers.test_console_operations import check_page
from tests.kit.sentences import Says

PARAMETERS = _PARAMETERS
MANY = (ADA, GRACE, ALL)


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)


@pytest.fixture
def browser(http: Http) -> Browser:
    for ref in MANY:
        begin(http.engine, ref, PARTY)
    return Browser(http)


def cancelled(deployment: Deployment, ref: SagaRef) -> list[CancelRequested]:
    return [
        event
        for entry in deployment.entries(ref)
        for event in entry.events
        if isinstance(event, CancelRequested)
    ]


def test_the_list_leads_to_what_can_be_done_about_many(browser: Browser) -> None:
    seen = browser.get("/console/sagas", workflow="party", age="3600")
    assert seen.html.count('type="checkbox" name="saga"') == 3
    assert 'formaction="/console/bulk/cancel"' in seen.html
    assert 'href="/console/bulk/cancel?workflow=party&amp;since=' in seen.html
    assert "baton list --workflow party" in seen.text
    assert "/console/bulk/" not in browser.get("/console/sagas", status="done").html
    assert browser.get("/console/sagas", status="failed").html.count('type="checkbox"') == 0


def test_sagas_are_found_by_a_label_which_each_row_leads_to(http: Http) -> None:
    http.register(PARTY)
    for customer in ("4711", "4712"):
        assert http.post("/sagas", {"workflow": "party", "labels": {"customer": customer}}).status == 201
    browser = Browser(http)
    seen = browser.get("/console/sagas", label="customer=4711")
    assert seen.html.count('type="checkbox" name="saga"') == 1
    assert 'href="/console/sagas?label=customer%3D4711"' in seen.html
    assert 'href="/console/bulk/cancel?label=customer%3D4711&amp;status=open"' in seen.html
    assert "customer=4712" not in seen.text
    assert browser.get("/console/sagas", label="nonsense").status == 400


def test_those_that_match_are_counted_before_anything_is_done(
    browser: Browser, deployment: Deployment, says: Says
) -> None:
    before = [deployment.entries(ref) for ref in MANY]
    seen = browser.get("/console/bulk/cancel", workflow="party")
    says.within(seen.text, 4)
    assert [deployment.entries(ref) for ref in MANY] == before
    check_page(browser, "/console/bulk/cancel?workflow=party")
    says.within(browser.get("/console/bulk/cancel", workflow="other").text)


def test_many_are_cancelled_once_and_each_is_told_of(
    browser: Browser, deployment: Deployment, says: Says
) -> None:
    form = {"saga": [ADA.id, GRACE.id, "gone"], "reason": "Enough.", "forced": "yes"}
    seen = browser.post("/console/bulk/cancel", form)
    says.within(seen.text, 2)
    assert [one.reason for ref in MANY for one in cancelled(deployment, ref)] == ["Enough.", "Enough."]
    again = browser.post("/console/bulk/cancel", form)
    says.within(again.text)
    assert [len(cancelled(deployment, ref)) for ref in MANY] == [1, 1, 0]


def test_what_was_chosen_and_cannot_take_it_is_left_as_it_is_and_told_of(
    http: Http, browser: Browser, says: Says
) -> None:
    append(http.engine, Parked(code="deaths", message="It died three times.", node="guests"))
    seen = browser.get("/console/bulk/resume", saga=f"{ADA.id},{GRACE.id}")
    assert "2 selected." in seen.text
    says.within(seen.text, 2)
    assert f'name="saga" value="{GRACE.id}"' not in seen.html
    done = browser.post("/console/bulk/resume", {"saga": [ADA.id, GRACE.id]})
    assert "2 of 2 are done." in done.text
    assert "It was so before." in done.text


def test_more_than_fit_into_a_request_come_in_turns(
    browser: Browser, deployment: Deployment, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setattr(lists, "MOST", 2)
    seen = browser.get("/console/bulk/cancel")
    says.within(seen.text)
    ids = [ref.id for ref in MANY if f'name="saga" value="{ref.id}"' in seen.html]
    assert len(ids) == 2
    done = browser.post(
        "/console/bulk/cancel", {"saga": ids, "next": seen.field("next").replace("&amp;", "&")}
    )
    (link,) = [at["href"] for tag, at in done.elements() if tag == "a" and "/bulk/" in str(at.get("href"))]
    last = browser.get(str(link))
    assert "Cancel this saga" in last.text
    refused = browser.post("/console/bulk/cancel", {"saga": [ref.id for ref in MANY]})
    assert refused.status == 400
    assert "Nothing was done." in refused.text
    assert (
        browser.post("/console/bulk/cancel", {"saga": ids, "next": "https://evil.test/"}).html.count("evil")
        == 0
    )


def test_a_store_that_does_not_answer_leaves_one_unknown_and_the_others_done(
    browser: Browser, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    from baton.web.within import Within

    real = Within.__call__

    async def slow(self: Within, route: str, path: dict[str, str], **more: object) -> object:
        if path == {"saga": GRACE.id}:
            raise StoreUnavailable("planted")
        return await real(self, route, path, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Within, "__call__", slow)
    seen = browser.post("/console/bulk/cancel", {"saga": [GRACE.id, ADA.id]})
    assert "1 of 2 is done." in seen.text
    assert f"{GRACE.id} Not known:" in seen.text
    assert len(cancelled(deployment, ADA)) == 1


def test_a_saga_that_cannot_be_read_has_a_page_that_names_the_doctor(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    from baton.web.within import Within

    async def damaged(*_: object, **__: object) -> object:
        raise CorruptLog("its head lacks `br`")

    monkeypatch.setattr(Within, "__call__", damaged)
    seen = browser.get(f"/console/sagas/{ADA.id}")
    assert seen.status == 500
    assert "its head lacks" in seen.text
    assert "baton doctor" in seen.text


def test_who_may_not_sees_no_form_and_does_nothing(
    http: Http, browser: Browser, deployment: Deployment
) -> None:
    viewer = Browser(http, roles=("read",))
    assert "checkbox" not in viewer.get("/console/sagas").html
    assert viewer.get("/console/bulk/cancel").status == 403
    assert viewer.post("/console/bulk/cancel", {"saga": [ADA.id]}).status == 403
    assert Browser(http, roles=("read", "run")).get("/console/bulk/resume").status == 403
    assert cancelled(deployment, ADA) == []
