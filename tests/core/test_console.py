"""What the console may be told: its defaults are valid, and so is what issuers, clients and secrets are called."""

from __future__ import annotations

import re
from typing import get_args, get_type_hints

import pytest

from baton.core.deployment import SignIn


def patterns() -> dict[str, str]:
    hints = get_type_hints(SignIn, include_extras=True)
    return {name: get_args(hint)[1].pattern for name, hint in hints.items()}


def test_the_defaults_are_valid() -> None:
    assert [
        name for name, pattern in patterns().items() if not re.search(pattern, getattr(SignIn, name))
    ] == []


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("console_issuer", "https://login.example.com/pool", "login.example.com"),
        ("console_issuer", "http://127.0.0.1:8080", "https://login.example.com?x=1"),
        ("console_client", "a1b2-c3", "two words"),
        ("console_secrets", "/baton/console/", "/baton/console"),
    ],
)
def test_a_wrong_name_is_refused(name: str, right: str, wrong: str) -> None:
    pattern = patterns()[name]
    assert (bool(re.search(pattern, right)), bool(re.search(pattern, wrong))) == (True, False)
