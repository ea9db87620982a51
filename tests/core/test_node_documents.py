"""What kinds of node say of themselves to those who draw them, and what the registry knows of all of them."""

from __future__ import annotations

from typing import Any, cast

import pytest

from baton.core.documents.nodes.base import Compiler, NodeDocument
from baton.core.documents.nodes.model import BY_KIND, NodeModel, kind_named, kind_of
from baton.core.documents.nodes.registry import NODE_TYPES


def span(ms: int | None) -> str:
    return f"{ms} ms"


def test_a_kind_that_guesses_nothing_says_nothing() -> None:
    assert NodeDocument().meant("x") == ""


def summary(kind: str, **node: Any) -> str:
    return kind_named(kind).summary({"kind": kind, **node}, span)


def test_a_node_is_summed_up_in_the_words_of_its_kind() -> None:
    assert summary("task", tool="table.hold") == "table.hold"
    assert summary("task") == "task"
    assert summary("workflow", workflow="delivery@2") == "workflow delivery@2"
    assert summary("pass") == "value"
    assert summary("human", type="input", title="Seats", expires_ms=5) == "input: Seats, at most 5 ms"
    assert summary("model", model="m") == "asks m"
    assert summary("agent", model="m", turns=5) == "m with no tools, at most 5 turns"
    assert summary("wait", wait_ms=5) == "wait 5 ms"
    assert summary("wait", signal="go") == "wait for go"
    assert summary("wait", signal="go", wait_ms=5) == "wait for go, at most 5 ms"
    assert summary("wait", wait_for="${input.pause}") == "wait for ${input.pause}"
    assert summary("wait", wait_until="${input.at}") == "wait until ${input.at}"


def test_a_kind_that_only_a_newer_version_knows_is_drawn_as_the_simplest() -> None:
    assert kind_named("task") is NODE_TYPES[0]
    assert kind_named("poll") is kind_named("task")


@pytest.mark.parametrize("kind", [kind for kind in NODE_TYPES if not kind.runs], ids=lambda kind: kind.kind)
def test_a_kind_that_cannot_be_run_makes_no_node_of_a_graph(kind: NodeDocument) -> None:
    node = NodeModel.model_validate({kind.key: kind.example[kind.key]})
    assert kind_of(node) is BY_KIND[kind.kind]
    with pytest.raises(NotImplementedError):
        kind.compile(cast("Compiler", None), "a", node)
