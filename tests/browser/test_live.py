"""Pages that renew themselves, as a person sees it: nothing is loaded anew, and nothing that is in use is taken away."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor
from tests.browser.kitchen import EVENING
from tests.browser.site import Site

DINNER = {"city": "Lisbon", "party": 4, "at": EVENING}


def status(page: Page) -> object:
    return expect(page.locator("#live .facts .status"))


def test_a_saga_advances_without_a_reload_and_what_is_open_stays_open(site: Site, visitor: Visitor) -> None:
    saga, page = site.start("dinner", DINNER), visitor()
    page.goto(f"sagas/{saga}")
    page.evaluate("window.isTheSame = true")
    node = page.locator("svg.graph:visible .node", has_text="search_bar")
    expect(node).to_contain_text("not reached")
    page.get_by_role("link", name="Cancel").focus()
    site.run_for(2)
    expect(page.locator("svg.graph:visible .node", has_text="hold").first).to_contain_text("ran")
    expect(page.get_by_role("link", name="Cancel")).to_be_focused()
    page.locator("details", has_text="Technical details").evaluate_all(
        "all => all.forEach(one => one.open = true)"
    )
    site.settle()
    expect(page.locator("#live .facts .status")).to_have_text("completed")
    expect(node).to_contain_text("ran")
    expect(page.get_by_role("status").filter(has_text="completed")).to_be_attached()
    assert page.evaluate("window.isTheSame")


def test_the_log_grows_and_what_a_person_has_unfolded_stays_so(site: Site, visitor: Visitor) -> None:
    saga, page = site.start("words", "hello"), visitor()
    page.goto(f"sagas/{saga}/log")
    page.locator("#v1 summary").first.click()
    expect(page.locator("#v1 details").first).to_have_attribute("open", "")
    site.settle()
    expect(page.locator("#v2")).to_be_visible()
    expect(page.locator("#v1 details").first).to_have_attribute("open", "")


def test_a_page_that_is_paused_or_hidden_asks_for_nothing(site: Site, visitor: Visitor) -> None:
    saga, page, asked = site.start("words", "hello"), visitor(), list[str]()
    page.clock.install()
    page.goto(f"sagas/{saga}")
    page.on("request", lambda request: None if "/static/" in request.url else asked.append(request.url))
    switch = page.get_by_role("button", name="Pause updates")
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "true")
    page.clock.run_for(120_000)
    assert asked == []
    page.reload()
    expect(switch).to_have_attribute("aria-pressed", "true")
    asked.clear()
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    switch.click()
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.clock.run_for(120_000)
    assert len(asked) <= 1  # the look with which the pause ended
    asked.clear()
    site.settle()
    page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("#live .facts .status")).to_have_text("waiting")


def test_the_list_and_the_overview_are_live_and_leave_a_filter_alone(site: Site, visitor: Visitor) -> None:
    listed, first = visitor(), visitor()
    listed.goto("sagas")
    listed.get_by_label("Workflow").fill("wor")
    saga = site.start("words", "hello")
    expect(listed.get_by_role("link", name=saga)).to_be_visible()
    expect(listed.get_by_label("Workflow")).to_have_value("wor")
    first.goto("./")
    expect(first.get_by_text("At work")).to_be_visible()


def test_without_javascript_pages_are_whole(site: Site, visitor: Visitor) -> None:
    saga = site.start("approve")
    site.settle()
    page = visitor(script=False)
    page.goto("inbox")
    expect(page.get_by_role("button", name="Pause updates")).to_be_hidden()
    page.locator(f'a[href*="{saga}"]').first.click()
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_text("Your answer is in the log")).to_be_visible()
    site.settle()
