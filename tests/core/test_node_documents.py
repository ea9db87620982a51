"""What kinds of node say of themselves to those who draw them, and what the registry knows of all of them."""

from __future__ import annotations

from typing import Any, cast

import pytest

from baton.core.documents.models import NodeModel, kind_named
from baton.core.documents.nodes.base import Compiler, NodeDocument
from baton.core.documents.nodes.registry import NODE_TYPES
from tests.kit.sentences import Says


def span(ms: int | None) -> str:
    return f"{ms} ms"


def test_a_kind_that_guesses_nothing_says_nothing() -> None:
    assert NodeDocument().nearest_valid_form("x") == ""


def summary(kind: str, **node: Any) -> str:
    return kind_named(kind).summary({"kind": kind, **node}, span)


def test_a_node_is_summed_up_in_the_words_of_its_kind(says: Says) -> None:
    assert summary("task", tool="table.hold") == "table.hold"
    assert summary("task") == "task"
    assert summary("workflow", workflow="delivery@2") == "workflow delivery@2"
    assert summary("pass") == "value"
    says(summary("human", type="input", title="Seats", expires_ms=5))
    assert summary("model", model="m") == "asks m"
    says(summary("agent", model="m", turns=5))
    assert summary("wait", wait_ms=5) == "wait 5 ms"
    assert summary("wait", signal="go") == "wait for go"
    says(summary("wait", signal="go", wait_ms=5))
    says(summary("wait", wait_for="${input.pause}"))
    says(summary("wait", wait_until="${input.at}"))


def test_a_kind_that_only_a_newer_version_knows_is_drawn_as_the_simplest() -> None:
    assert kind_named("task") is NODE_TYPES[0]
    assert kind_named("poll") is kind_named("task")


def test_a_map_is_drawn_as_what_is_done_for_each_and_is_no_kind_of_a_document(says: Says) -> None:
    says(summary("map", tool="t", over="${input.l}", at_once=5))
    says(summary("map", workflow="w", of="workflow", over=[1], at_once=1))
    says(summary("map", of="wait", over=[1], at_once=1))
    node = NodeModel.model_validate({"map": [1], "value": 1})
    assert [place for place, _ in kind_named("map").values(node)] == ["/map"]
    with pytest.raises(NotImplementedError):
        kind_named("map").compile(cast("Compiler", None), "a", NodeModel.model_validate({"tool": "t"}))
