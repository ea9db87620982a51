"""A test of an application says what a model puts in the place of a step."""

from __future__ import annotations

from typing import Any

import pytest

from baton import StepFailure, tool
from baton.testing import run
from baton.tools.define import Registry

DOCUMENT = """
name: evening
nodes:
  book: {tool: table.book, with: {guest: "${input.guest}"}, replan: {model: m, tools: table.other%s}}
output: ${ctx.book.output}
"""
WAY = {
    "steps": [{"tool": "table.other", "arguments": {"guest": {"$from": 0, "at": "/guest"}}}],
    "why": "It has tables.",
    "trade_offs": "It is farther away.",
    "reliability": 0.9,
    "cost": 1,
    "latency": 1,
    "fit": 1,
    "preference": 0.5,
}


@pytest.fixture
def registry() -> Registry:
    registry = Registry()

    @tool("table.book", registry=registry)
    def book(guest: str) -> str:
        raise StepFailure("not_found", "no table is free")

    @tool("table.other", registry=registry)
    def other(guest: str) -> str:
        return f"{guest} elsewhere"

    return registry


def told(registry: Registry, more: str = "", **how: Any) -> Any:
    return run(DOCUMENT % more, {"guest": "Ada"}, tools=registry, models=[{"alternatives": [WAY]}], **how)


def test_what_the_model_suggests_is_scripted_as_any_answer(registry: Registry) -> None:
    result = told(registry)
    assert (result.status, result.output) == ("completed", "Ada elsewhere")
    assert (result.steps["book"].tool, result.steps["book"].status) == ("table.other", "succeeded")
    (asked,) = result.turns("book")
    assert asked.answer["alternatives"][0]["why"] == "It has tables."
    assert result.attempts("book") == 2


def test_a_person_chooses_by_number(registry: Registry) -> None:
    assert told(registry, ", choose: person", answers={"book": "1"}).output == "Ada elsewhere"
