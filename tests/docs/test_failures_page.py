"""The tools of the page about failures can be declared as they stand there, and have the ways that it lists."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from baton.core.failures.remedies import hooks_of, ways_of
from baton.core.toolspec import ToolSpec
from baton.tools.define import REGISTRY
from tests.docs.pages import ROOT


@pytest.fixture
def specs() -> Iterator[dict[str, ToolSpec]]:
    """The tools of the page's example."""
    text = (ROOT / "docs" / "failures.md").read_text("utf-8")
    section = text.partition("## Another way")[2]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code is not None
    before = dict(REGISTRY._tools)
    try:
        exec(compile(code[1], "failures.md", "exec"), {"__name__": "a_page"})
        yield {name: tool.spec for name, tool in REGISTRY.items() if name not in before}
    finally:
        REGISTRY._tools.clear()
        REGISTRY._tools.update(before)


def test_the_tools_of_the_example_have_these_ways(specs: dict[str, ToolSpec]) -> None:
    assert [(way.name, way.hints[:1]) for way in ways_of("llm.ask", specs)] == [
        ("llm.login first", ("refresh_credentials",)),
        ("llm.summarise first", ("summarise_context",)),
        ("model=m2", ("fallback_model",)),
        ("model=m3", ("fallback_model",)),
        ("text shorter", ("truncate_context",)),
        ("partner.ask", ("alternative_provider",)),
        ("text in parts", ("chunk_context",)),
    ]
    assert hooks_of("llm.ask", specs)["clear_cache"] == "llm.login"
