"""Handlers are loaded without the garbage collector, which is on again when they are."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

import baton.loading
from baton.loading import loading

HANDLERS = sorted((Path(__file__).parents[2] / "functions").glob("*/app.py"))


@pytest.fixture(autouse=True)
def thawed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a process that has loaded nothing yet."""
    monkeypatch.setattr(baton.loading, "_has_frozen", False)
    gc.unfreeze()
    yield
    gc.freeze()  # as tests/conftest.py left it: what is loaded is not looked at in the tests that follow
    gc.enable()


def test_the_collector_is_still_meanwhile_and_passes_over_what_was_loaded() -> None:
    with loading():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count()


def test_the_collector_is_on_again_when_a_handler_cannot_be_loaded() -> None:
    with pytest.raises(LookupError), loading():
        raise LookupError
    assert gc.isenabled()
    assert not gc.get_freeze_count()


def test_a_handler_that_is_loaded_again_freezes_nothing_more() -> None:
    with loading():
        pass
    frozen = gc.get_freeze_count()
    kept: list[list[int]] = [[] for _ in range(1_000)]
    with loading():
        pass
    assert gc.get_freeze_count() <= frozen, f"{len(kept)} more lists are collected as ever"


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda path: path.parent.name)
def test_each_handler_loads_the_engine_within_it(handler: Path) -> None:
    before = [
        node.module for node in ast.parse(handler.read_text("utf-8")).body if isinstance(node, ast.ImportFrom)
    ]
    engine = [name for name in before if (name or "").partition(".")[0] == "baton"]
    assert engine == ["baton.loading"]
