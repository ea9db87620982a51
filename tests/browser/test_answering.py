"""Answering in a browser: approving and rejecting, a form, a question that expires, two people at once, the keyboard alone."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from baton.tools.define import REGISTRY
from baton.tools.functions.define import document_of
from tests.browser.conftest import Visitor
from tests.browser.site import Site
from tests.kit import support_script


def ask(site: Site, workflow: str = "approve") -> str:
    saga = site.start(workflow, {"words": "Soon."} if workflow == "guests" else None)
    site.settle()
    return saga


def open_from_the_inbox(page: Page, saga: str) -> None:
    page.goto("inbox")
    page.locator(f'a[href*="{saga}/questions/"]').click()


def test_a_question_comes_by_itself_and_its_approval_is_seen_to_be_done(site: Site, visitor: Visitor) -> None:
    page = visitor()
    page.goto("inbox")
    saga = ask(site)
    page.locator(f'a[href*="{saga}/questions/"]').click()
    page.get_by_label("Comment").fill("Enjoy.")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("status").filter(has_text="Your answer is in the log")).to_be_visible()
    page.locator(".notice a").click()
    site.settle()
    expect(page.locator("#live .facts .status")).to_have_text("completed")


def test_a_support_agent_refunds_an_order_when_a_person_approves_it(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = support_script.example(monkeypatch)
    with Site(REGISTRY).open() as site:
        site.register(json.dumps(document_of(REGISTRY["answer-customer"])))
        saga, page = site.start("answer-customer", support_script.GIVEN), visitor(at=site)
        site.settle()
        open_from_the_inbox(page, saga)
        expect(page.get_by_text('"cents": 4200')).to_be_visible()
        page.get_by_label("Comment").fill("It is lost.")
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_text("Your answer is in the log")).to_be_visible()
        site.settle()
        page.goto(f"sagas/{saga}")
        expect(page.locator("#live .facts .status")).to_have_text("completed")
        attempts = page.locator("summary")
        for name in ("get_tools", "model", "order", "model#2", "refund", "model#3"):
            expect(attempts.filter(has_text=f"support[1]/{name}, attempt 1")).to_be_visible()
        expect(page.locator("section", has=page.get_by_role("heading", name="Its result"))).to_contain_text(
            "Your order is paid back."
        )
        page.get_by_role("link", name="Conversations").click()
        expect(page.get_by_role("listitem").filter(has_text="refund")).to_contain_text("approved by ada")
        assert example.SHOP.refunds == {7: 4_200}


def test_a_saga_is_started_by_a_form_and_seen_to_advance(site: Site, visitor: Visitor) -> None:
    page = visitor(width=360)
    page.goto("workflows/dinner")
    page.get_by_role("link", name="Start a saga").click()
    page.get_by_role("button", name="Start the saga").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was started")
    expect(page.get_by_label("city")).to_have_attribute("aria-invalid", "true")
    page.get_by_role("link", name="Fill in an example").click()
    page.get_by_label("city").fill("Lisbon")
    page.get_by_role("button", name="Start the saga").click()
    expect(page.get_by_role("status").filter(has_text="It is started.")).to_be_visible()
    site.settle()
    expect(page.locator("#live .facts .status")).to_have_text("completed")


def test_a_rejection_is_one(site: Site, visitor: Visitor) -> None:
    saga, page = ask(site), visitor()
    open_from_the_inbox(page, saga)
    page.get_by_role("button", name="Reject").click()
    site.settle()
    page.goto(f"sagas/{saga}")
    expect(page.locator("#live .facts .status")).to_have_text("failed")
    expect(page.get_by_role("heading", name="Why it failed")).to_be_visible()


def test_a_nested_form_is_filled_wrongly_and_then_rightly(site: Site, visitor: Visitor) -> None:
    saga, page = ask(site, "guests"), visitor(width=360)
    open_from_the_inbox(page, saga)
    host = page.get_by_role("group", name="host")
    page.get_by_label("seats").fill("many")
    host.get_by_label("mail").fill("no address")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_contain_text("Not sent yet")
    expect(page.get_by_label("seats")).to_have_attribute("aria-invalid", "true")
    expect(host.get_by_label("name")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("seats")).to_have_value("many")
    page.get_by_label("seats").fill("2")
    host.get_by_label("name").fill("Grace")
    host.get_by_label("mail").fill("grace@example.org")
    page.get_by_role("button", name="Add to guests").click()
    rows = page.get_by_role("group", name="guests 2")
    rows.get_by_label("name").fill("Linus")
    page.get_by_role("group", name="guests 1").get_by_label("name").fill("Ada")
    rows.get_by_label("diet").select_option(label="vegan")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("Your answer is in the log")).to_be_visible()
    site.settle()
    page.goto(f"sagas/{saga}")
    expect(page.locator("#live .facts .status")).to_have_text("completed")
    expect(page.locator("section", has=page.get_by_role("heading", name="Its result"))).to_contain_text(
        "vegan"
    )


def test_a_question_counts_down_and_leaves_the_inbox_when_it_expires(site: Site, visitor: Visitor) -> None:
    saga, page, late = ask(site), visitor(), visitor("grace")
    page.clock.install()
    page.goto("inbox")
    open_from_the_inbox(late, saga)
    mine = page.locator("li", has=page.locator(f'a[href*="{saga}"]'))
    expect(mine).to_contain_text("expires in ")
    before = mine.locator("time").inner_text()
    page.clock.run_for(61_000)
    expect(mine.locator("time")).not_to_have_text(before)
    site.settle({"ask": (None,)})
    page.clock.run_for(60_000)
    expect(mine).to_have_count(0)
    late.get_by_role("button", name="Approve").click()
    expect(late.get_by_role("heading", name="Your answer was not taken")).to_be_visible()


def test_of_two_people_who_answer_at_once_the_second_is_told(site: Site, visitor: Visitor) -> None:
    saga, first, second = ask(site), visitor("ada"), visitor("grace")
    for page in (first, second):
        open_from_the_inbox(page, saga)
    first.get_by_role("button", name="Approve").click()
    expect(first.get_by_text("Your answer is in the log")).to_be_visible()
    second.get_by_role("button", name="Reject").click()
    expect(second.get_by_role("alert")).to_contain_text("Nothing of yours was written")
    site.settle()


def test_all_of_it_is_done_with_the_keyboard(site: Site, visitor: Visitor) -> None:
    saga, page = ask(site), visitor()
    page.goto("inbox")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    for _ in range(100):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('href') || ''").find(f"{saga}/questions/") >= 0:
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    for _ in range(100):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.value") == "approve":
            break
    page.keyboard.press("Enter")
    expect(page.get_by_text("Your answer is in the log")).to_be_visible()
    site.settle()
