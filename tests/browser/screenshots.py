"""The pictures of docs/img: `make screenshots`. Evenings of the example, in memory and in virtual time, so that they are the same in every run."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

import baton
from baton.shipping import contents
from tests.browser import kitchen
from tests.browser.conftest import program
from tests.browser.site import Site

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs/img"
WIDE: Final = {"width": 1440, "height": 1180}
PHONE: Final = {"width": 390, "height": 1300}
LOW: Final = {"width": 1100, "height": 860}


def main() -> None:
    """Write all of them."""
    contents.put(Path(baton.__file__).parent)
    IMAGES.mkdir(exist_ok=True)
    with Site().open() as site, sync_playwright() as play:
        site.register((ROOT / "layers/app/sagas/dinner.yaml").read_text("utf-8"))
        done = site.start("dinner", {"city": "Lisbon", "party": 4, "at": kitchen.EVENING})
        site.settle()
        other = site.start("dinner", {"city": "Nowhere", "party": 4, "at": kitchen.EVENING})
        site.settle()
        runs = site.start("dinner", {"city": "Lisbon", "party": 6, "at": kitchen.EVENING})
        site.run_for(3.2)
        browser = play.chromium.launch(executable_path=program(), args=["--no-sandbox"])
        for name, address, part, size in (
            ("console-saga", f"sagas/{runs}?node=hold", "", WIDE),
            ("console-time", f"sagas/{done}", "section[aria-labelledby=time]", WIDE),
            ("console-graph-phone", f"sagas/{done}", "", PHONE),
            ("console-version", f"sagas/{done}?at=5", "", LOW),
            ("console-compare", f"sagas/{done}/diff?with={other}", "", LOW),
        ):
            page = browser.new_page(
                base_url=f"{site.url}/console/",
                viewport={"width": size["width"], "height": size["height"]},
            )
            page.context.add_cookies([site.cookie("ada")])
            page.goto(address)
            (page.locator(part) if part else page).screenshot(path=IMAGES / f"{name}.png")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
