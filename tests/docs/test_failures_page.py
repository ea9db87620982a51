"""The tools of the page about failures can be declared as they stand there, and have the ways that it lists."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from baton.core.effects.toolspec import ToolSpec
from baton.core.failures.alternatives import hooks_of, ways_of
from baton.ports import StepFailure
from baton.testing import Result, run
from baton.tools.define import REGISTRY, Registry, tool
from tests.docs.pages import ROOT, Page

PAGE = Page(ROOT / "docs/failures.md")


@pytest.fixture
def specs() -> Iterator[dict[str, ToolSpec]]:
    """The tools of the page's example."""
    section = PAGE.text.partition("## Another way")[2]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code is not None
    before = dict(REGISTRY)
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


def ran(times: int, error: Exception) -> Result:
    """The workflow that the page begins with, with a charge that fails so many times."""
    document = re.search(r"```yaml\n(.*?)```", PAGE.text, re.DOTALL)
    assert document is not None
    registry, left = Registry(), [times]

    @tool("card.charge", registry=registry)
    def charge() -> str:
        if left[0]:
            left[0] -= 1
            raise error
        return "paid"

    @tool("shop.ship", registry=registry)
    def ship() -> str:
        return "shipped"

    @tool("mail.tell", registry=registry)
    def tell(why: str) -> str:
        return why

    return run(document[1], tools=registry, answers={"charge": None})


EVER = 99


DOWN, LOGIN = StepFailure("service_unavailable", "not now"), StepFailure("login_required", "log in")
DECLINED = StepFailure("card_declined", "no", kind="permanent")


@pytest.mark.parametrize(
    ("times", "error", "attempts", "asked", "status", "way"),
    [
        (1, DOWN, 2, [], "completed", ["charge", "ship"]),
        (EVER, DOWN, 3, ["ask_user"], "failed", ["charge"]),  # after a day without an answer
        (EVER, LOGIN, 1, ["escalate"], "parked", []),
        (EVER, DECLINED, 1, [], "completed", ["charge", "tell"]),
        (EVER, ValueError("x"), 3, ["ask_user"], "failed", ["charge"]),
        (EVER, KeyError("x"), 1, ["escalate"], "parked", []),
    ],
)
def test_the_page_begins_with_a_workflow_that_does_what_its_table_says(
    times: int, error: Exception, attempts: int, asked: list[str], status: str, way: list[str]
) -> None:
    result = ran(times, error)
    events = [event for entry in result.entries for event in entry["events"]]
    chosen = [event["strategy"] for event in events if event["kind"] == "strategy_chosen"]
    assert [strategy for strategy in chosen if strategy in ("ask_user", "escalate")] == asked
    assert (result.attempts("charge"), result.status, result.way) == (attempts, status, way)


def test_the_page_begins_with_what_one_writes() -> None:
    first = PAGE.text.split("\n## ")[0].strip().splitlines()
    assert first[2] == "```yaml"
    assert first[2:].index("```") <= 12
