"""What pages look like: for those who use other means than eyes, on a phone and on a desk, and with hostile texts in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from baton.console.pages import NAVIGATION
from tests.browser.conftest import Visitor
from tests.browser.kitchen import EVENING
from tests.browser.site import Site

MOST_BYTES = 150_000
LOOKS: tuple[tuple[int, Any], ...] = ((360, "dark"), (360, "light"), (1440, "light"), (1440, "dark"))
OF_THE_DRAWING = ["color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size"]
BARRIERS = """
async only => (await axe.run(document, {
  resultTypes: ["violations"], rules: {"target-size": {enabled: true}},
  ...(only.length && {runOnly: only}),
})).violations
"""
HOSTILE = (
    "<script>window.hacked=1</script><img src=x onerror=window.hacked=1> \" ' &amp; \u202etfel ot thgir \u0000 "
    "\x1b[31m 👩‍👩‍👧 {{7*7}} <!--end--> javascript:window.hacked=1 "
)


@pytest.fixture(scope="module")
def pages(site: Site) -> dict[str, str]:
    """The address of a page of each kind, with what a person meets there."""
    dinner = site.start("dinner", {"city": "Lisbon", "party": 4, "at": EVENING})
    failed = site.start("dinner", {"city": "Nowhere", "party": 2, "at": EVENING})
    form = site.start("guests", {"words": HOSTILE})
    plan = site.start("plan", {"words": "Dinner for four"})
    site.settle()
    return {
        **{path: path.lstrip("/") for path, _ in NAVIGATION if path},
        "overview": "./",
        "workflow": "workflows/dinner",
        "saga": f"sagas/{dinner}",
        "failed": f"sagas/{failed}",
        "graph": f"sagas/{dinner}/graph",
        "time": f"sagas/{dinner}/time",
        "log": f"sagas/{plan}/log",
        "entry": f"sagas/{dinner}/log/2",
        "cost": f"sagas/{plan}/cost",
        "agent": f"sagas/{plan}/talk",
        "node": f"sagas/{dinner}/nodes/waitlist",
        "action": f"sagas/{form}/cancel",
        "form": f"sagas/{form}/questions/0.form",
    }


def test_no_page_has_a_barrier_and_none_is_wider_than_its_screen(
    pages: dict[str, str], visitor: Visitor, axe: str
) -> None:
    page, found = visitor(width=360, scheme="dark"), dict[str, Any]()
    for name, path in pages.items():
        for number, (width, scheme) in enumerate(LOOKS):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 900})
            if not number:
                page.goto(path)
                page.evaluate(axe)
            where = f"{name}, {width} px, {scheme}"
            # The document stays the same: after the first look only what is drawn is looked at again.
            for one in page.evaluate(BARRIERS, OF_THE_DRAWING if number else []):
                found[f"{where}: {one['id']}"] = [node["html"][:200] for node in one["nodes"][:3]]
            if page.evaluate("document.documentElement.scrollWidth") > width:
                found[f"{where}: wider"] = []
    assert found == {}


def test_what_users_tools_and_models_wrote_is_text(site: Site, visitor: Visitor) -> None:
    saga = site.start("words", {"text": HOSTILE, "long": HOSTILE + "x" * 5_000, HOSTILE: [HOSTILE]})
    asks = site.start("guests", {"words": HOSTILE})
    site.settle()
    page = visitor()
    for path in (
        f"sagas/{saga}",
        f"sagas/{saga}/log",
        f"sagas/{saga}/log/1",
        f"sagas/{asks}/questions/0.form",
    ):
        page.goto(path)
        page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img, main script").count() == 0
        if path != f"sagas/{saga}":  # which shows no input
            expect(page.get_by_text("<script>window.hacked=1</script>").first).to_be_attached()
        assert page.evaluate("document.documentElement.scrollWidth") <= 1440


def test_a_saga_of_500_entries_is_opened_at_once(
    site: Site, record_testsuite_property: Callable[[str, object], None]
) -> None:
    saga = site.start("words", "hello")
    site.settle()
    site.lengthen(saga, 500)
    for path in ("", "/log", "/graph", "/time", "/talk"):
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
