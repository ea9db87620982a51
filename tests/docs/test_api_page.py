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


def test_the_routes_that_take_a_key_are_named() -> None:
    (sentence,) = re.findall(r"An `Idempotency-Key` .*? is taken by (.*?)\. ", PAGE.text, re.DOTALL)
    taken = {f"{route.method} {route.path}" for route in ROUTES if route.has_key}
    assert set(re.findall(r"`(POST [^`]+)`", sentence)) == taken
