"""The page of the HTTP API names its routes with their roles."""

from __future__ import annotations

import re

from baton.web.routes import ROUTES
from tests.docs.pages import ROOT, Page

PAGE = Page(ROOT / "docs/api.md")


def test_its_routes_are_those_of_the_api() -> None:
    served = {(f"{route.method} {route.path}", " or ".join(route.roles) or "none") for route in ROUTES}
    row = r"^\| `((?:GET|POST|PUT|PATCH|DELETE) [^`?]+)[^`]*` \| ([a-z ]+) \|"
    assert set(re.findall(row, PAGE.text, re.MULTILINE)) == served
