"""One chromium and one site for all tests of this room, and the people who look at it.

Debian's chromium is driven; `make browser` installs it where it can. Without it the tests are skipped, and say why. The one that has
no windows takes half as long as the other.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

import baton
from baton.console.rendering import asset
from baton.shipping import contents
from tests.browser import kitchen
from tests.browser.site import Site

DINNER = Path(__file__).parents[2] / "layers/app/sagas/dinner.yaml"
PATIENCE_MS = 60_000  # of an expectation; a machine may be busy
ROOM = Path(__file__).parent
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
Visitor = Callable[..., Page]


def program() -> str | None:
    """Return the path of a chromium."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    contents.put(Path(baton.__file__).parent)
    asset.cache_clear()
    with Site().open() as made:
        made.register(kitchen.FORM, kitchen.APPROVE, kitchen.WORDS, kitchen.AGENT, kitchen.wide(200))
        made.register(DINNER.read_text("utf-8"))
        yield made


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if (found := program()) is None:
        pytest.skip(f"NO BROWSER: the console was not looked at. apt-get install {PROGRAMS[0]}")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=found,
            args=["--no-sandbox", "--in-process-gpu", "--disable-gpu", "--renderer-process-limit=1"],
            timeout=PATIENCE_MS,
        )
        yield browser
        browser.close()


@pytest.fixture
def visitor(site: Site, chromium: Browser) -> Iterator[Visitor]:
    """`visitor("ada")`: a page of a person who has signed in. What a browser complains about fails the test."""
    contexts, complaints = [], list[str]()

    def visit(
        user: str = "ada",
        *,
        width: int = 1440,
        scheme: Any = "light",
        script: bool = True,
        at: Site = site,
    ) -> Page:
        context = chromium.new_context(
            base_url=f"{at.url}/console/",
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            java_script_enabled=script,
        )
        contexts.append(context)
        context.add_cookies([at.cookie(user)])
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        return page

    yield visit
    for context in contexts:
        context.close()
    # A page that refuses an answer has such a status.
    assert [one for one in complaints if "the server responded with a status of 4" not in one] == []


@pytest.fixture(scope="session")
def axe() -> str:
    """The checker of accessibility; its package carries it."""
    return (files("axe_playwright_python") / "axe.min.js").read_text("utf-8")
