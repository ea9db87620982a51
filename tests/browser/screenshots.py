"""The pictures of docs/img: `make screenshots`. Evenings of the example, in memory and in virtual time, so that they are the same in every run."""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

import baton
from baton.shipping import contents
from tests.browser import kitchen
from tests.browser.site import Site

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs/img"
WIDE, LIST, PHONE = (
    {"width": 1440, "height": 1180},
    {"width": 1280, "height": 700},
    {"width": 390, "height": 780},
)


def main() -> None:
    """Write all of them."""
    contents.put(Path(baton.__file__).parent)
    IMAGES.mkdir(exist_ok=True)
    with Site().open() as site, sync_playwright() as play:
        site.register(kitchen.FORM, kitchen.AGENT, (ROOT / "layers/app/sagas/dinner.yaml").read_text("utf-8"))
        for number in range(4):
            site.start("dinner", {"city": "Lisbon", "party": 2 + number, "at": kitchen.EVENING})
            site.settle()
        site.start("dinner", {"city": "Nowhere", "party": 2, "at": kitchen.EVENING})
        agent = site.start("plan", {"words": "Dinner for four in Lisbon, something Thai."})
        site.start("guests", {"words": "Tell us who is vegan."})
        large = site.start("dinner", {"city": "Lisbon", "party": 9, "at": kitchen.EVENING})
        site.settle()
        done = site.start("dinner", {"city": "Lisbon", "party": 4, "at": kitchen.EVENING})
        site.settle()
        runs = site.start("dinner", {"city": "Lisbon", "party": 6, "at": kitchen.EVENING})
        site.run_for(3.2)
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        # An address, and the part of the page that is shown of it.
        for name, path, view, scheme in (
            ("console-saga", f"sagas/{runs}", WIDE, "light"),
            ("console-time", f"sagas/{done} section[aria-labelledby=time]", WIDE, "light"),
            ("console-graph-phone", f"sagas/{done} section[aria-labelledby=graph]", PHONE, "light"),
            ("console-talk", f"sagas/{agent}/talk", WIDE, "dark"),
            ("console-sagas", "sagas", LIST, "light"),
            ("console-inbox", "inbox", PHONE, "dark"),
            ("console-saga-phone", f"sagas/{large}", PHONE, "light"),
        ):
            context = browser.new_context(
                base_url=f"{site.url}/console/",
                viewport={"width": view["width"], "height": view["height"]},
                color_scheme="dark" if scheme == "dark" else "light",
            )
            context.add_cookies([site.cookie("ada")])
            page = context.new_page()
            address, _, part = path.partition(" ")
            page.goto(address)
            (page.locator(part) if part else page).screenshot(path=IMAGES / f"{name}.png")
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
