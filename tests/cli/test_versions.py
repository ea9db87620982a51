"""`baton versions`: which versions of the code sagas stay with, and what is deleted."""

from __future__ import annotations

from typing import Any

import pytest

from baton import wiring
from baton.errors import Forbidden
from baton.runtime.mending import CURRENT, PinnedBuild
from tests.cli.conftest import Baton
from tests.kit.sentences import Says

DRAINED = PinnedBuild("12.3.2", "8", 0, "")
FOUND = [
    DRAINED,
    PinnedBuild("12.3.3", "9", 2, "2 open sagas stay with it"),
    PinnedBuild("12.3.4", "10", 0, CURRENT),
]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []

    async def look(stack: str, *, delete: bool) -> list[PinnedBuild]:
        found.append((stack, delete))
        if stack == "other":
            raise Forbidden("Unable to locate credentials")
        return [DRAINED] if delete else FOUND

    monkeypatch.setattr(wiring, "look_at_builds", look)
    return found


def test_versions_are_listed_with_what_keeps_them(baton: Baton, asked: Any, says: Says) -> None:
    shown = baton("versions", "--stack", "baton")
    says(shown.stdout)
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["8", "9", "10"]
    assert asked == [("baton", False)]


def test_drained_ones_are_deleted(baton: Baton, asked: Any, says: Says) -> None:
    shown = baton("versions", "--delete", env={"BATON_STACK": "baton"})
    says(shown.stdout)
    assert asked == [("baton", True)]


def test_the_answer_as_json(baton: Baton, asked: Any) -> None:
    import json

    shown = json.loads(baton("versions", "--stack", "baton", "--json").stdout)
    assert shown["versions"][0] == {"build": "12.3.2", "version": "8", "sagas": 0, "kept": ""}


def test_what_aws_refuses_is_said(baton: Baton, asked: Any, says: Says) -> None:
    shown = baton("versions", "--stack", "other")
    says(shown.stderr)
    assert shown.exit_code != 0
