"""What pages look like: for those who use other means than eyes, on a phone and on a desk, and with hostile texts in them."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from baton.console.site import NAVIGATION, PAGES
from baton.web.app import matches
from tests.browser import hostile
from tests.browser.conftest import Visitor
from tests.browser.filled import fill
from tests.browser.kitchen import EVENING
from tests.browser.site import Site

MOST_BYTES = 150_000
PIXEL = b64decode("R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==")
COLOURS, SIZES = ["color-contrast", "link-in-text-block"], ["target-size", "scrollable-region-focusable"]
# Width, scheme, and the rules that are looked at. The document stays the same: after the first look only what is drawn differs,
# and no colour depends on the width.
LOOKS: tuple[tuple[int, Any, list[str]], ...] = (
    (360, "dark", []),
    (1440, "light", COLOURS + SIZES),
)
BARRIERS = """
async only => (await axe.run(document, {
  resultTypes: ["violations"], rules: {"target-size": {enabled: true}},
  ...(only.length && {runOnly: only}),
})).violations
"""


ALL = {page.path for page in PAGES if page.method == "GET"} - {"sagas/{saga}/log.json"}
# These are as others are: the same template.
ALIKE = {f"sagas/{{saga}}/{deed}" for deed in ("resume", "pause", "wake", "rollback", "fork")} | {
    "bulk/resume",
    "bulk/pause",
    "workflows/{name}/{version}",
    "workflows/{name}/{version}/start",
}


@pytest.fixture(scope="module")
def hostile_pages(site: Site) -> tuple[str, ...]:
    return fill(site)


@pytest.fixture(scope="module")
def pages(site: Site, hostile_pages: tuple[str, ...]) -> list[str]:
    """A page of each kind, with what a person meets there; of those that an evening does not lead to, the hostile one."""
    dinner = site.start("dinner", {"city": "Lisbon", "party": 4, "at": EVENING})
    failed = site.start("dinner", {"city": "Nowhere", "party": 2, "at": EVENING})
    form = site.start("guests", {"words": "Tell us who is vegan."})
    plan = site.start("plan", {"words": "Dinner for four"})
    site.settle()
    found = [path.lstrip("/") or "./" for path, _ in NAVIGATION]
    found += [f"sagas/{dinner}{part}" for part in ("", "/graph", "/log/2", "?node=waitlist")]
    found += [f"sagas/{failed}", *(f"sagas/{plan}/{part}" for part in ("log", "cost", "talk"))]
    found += ["workflows/dinner", f"sagas/{form}/cancel", f"sagas/{form}/questions/0.form"]
    for path in hostile_pages:
        if not kinds(path) <= kinds(*found) | ALIKE:
            found.append(path)
    return found


def kinds(*paths: str) -> set[str]:
    """The pages that these addresses lead to, as the table has them."""
    return {
        next(page.path for page in PAGES if matches(page.path, path.partition("?")[0].strip("./")))
        for path in paths
    }


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.soak), 3])
def test_no_page_has_a_barrier_and_none_is_wider_than_its_screen(
    pages: list[str], visitor: Visitor, axe: str, every: int
) -> None:
    page, found = visitor(width=360, scheme="dark"), dict[str, Any]()
    for number, path in enumerate(pages[::every]):
        for width, scheme, rules in LOOKS[
            : 2 - number % 2
        ]:  # on a desk every second page: they share their styles
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 900})
            if not rules:
                page.goto(path)
                page.evaluate(axe)
            where = f"{path}, {width} px, {scheme}"
            for one in page.evaluate(BARRIERS, rules):
                found[f"{where}: {one['id']}"] = [node["html"][:200] for node in one["nodes"][:3]]
            if page.evaluate("document.documentElement.scrollWidth") > width:
                found[f"{where}: wider"] = []
    assert found == {}
    assert ALL - ALIKE - kinds(*pages) == set()


def test_what_users_tools_and_models_wrote_is_text(hostile_pages: tuple[str, ...], visitor: Visitor) -> None:
    page, found, seen = visitor(width=360), dict[str, Any](), set[str]()
    page.add_init_script(
        "window.violations = []; document.addEventListener('securitypolicyviolation', e => violations.push(e.violatedDirective))"
    )
    page.route("https://x.test/**", lambda route: route.fulfill(body=PIXEL, content_type="image/gif"))
    for path in hostile_pages:
        page.goto(path)
        page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
        if wrong := page.evaluate(hostile.WRONG):
            found[path] = wrong
        texts = page.evaluate(hostile.TEXTS)
        seen |= {field for field in hostile.FIELDS if any(hostile.marked(field) in text for text in texts)}
    assert found == {}
    assert hostile.FIELDS - seen == set()
    assert ALL - kinds(*hostile_pages) == set(), "add the address of a page of this kind to filled.py"


def test_a_saga_of_500_entries_is_opened_at_once(
    site: Site, record_testsuite_property: Callable[[str, object], None]
) -> None:
    saga = site.start("words", "hello")
    site.settle()
    site.lengthen(saga, 500)
    for path in ("", "/log", "/graph", "/talk"):
        status, size = site.get(f"/console/sagas/{saga}{path}")
        spent = site.took[f"/console/sagas/{saga}{path}"]
        record_testsuite_property(
            path or "/", f"{size:,} bytes, {spent * 1_000:.0f} ms of the server's processor"
        )
        assert status == 200
        assert size <= MOST_BYTES


def test_a_link_leads_to_an_entry_deep_in_the_log(site: Site, visitor: Visitor) -> None:
    saga, page = site.start("words", "hello"), visitor()
    site.settle()
    site.lengthen(saga, 100)
    page.goto(f"sagas/{saga}/log?after=50#v80")
    expect(page.locator("#v80")).to_be_in_viewport()


def test_a_graph_and_the_chart_of_time_fit_a_phone_and_a_node_is_chosen_there(
    site: Site, visitor: Visitor
) -> None:
    saga, page = site.start("dinner", {"city": "Lisbon", "party": 4, "at": EVENING}), visitor(width=390)
    site.settle()
    page.goto(f"sagas/{saga}")
    for drawing in page.locator(".drawing:visible").all():
        assert drawing.evaluate("one => one.scrollWidth <= one.clientWidth")
    page.locator("svg.graph:visible a", has_text="confirm_bar").click()
    expect(page.locator(".panel h2")).to_contain_text("confirm_bar")
    expect(page.locator(".panel h2")).to_be_in_viewport()


def test_the_slider_leads_through_versions_and_to_what_is_different_now(site: Site, visitor: Visitor) -> None:
    saga, page = site.start("dinner", {"city": "Lisbon", "party": 4, "at": EVENING}), visitor()
    site.settle()
    page.goto(f"sagas/{saga}?node=itinerary")
    slider, node = page.get_by_role("slider"), page.locator("svg.graph:visible .node", has_text="itinerary")
    expect(node).to_contain_text("ran")
    slider.press("ArrowLeft")
    expect(page.locator("output")).to_have_text("12")
    expect(node).to_contain_text("ready")
    expect(slider).to_be_focused()
    expect(slider).to_be_in_viewport()
    expect(page.locator(".panel h2")).to_contain_text("itinerary")
    page.get_by_role("link", name="What is different now").click()
    differing = page.locator(".node.differs", has_text="itinerary")
    expect(differing).to_have_count(2)
    expect(differing.first).to_contain_text("ready")
    expect(page.locator(".difference", has_text="itinerary")).to_contain_text("Not there")
