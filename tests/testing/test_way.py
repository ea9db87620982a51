"""What a result says of the way that a saga went."""

from __future__ import annotations

import asyncio
from typing import Any

from baton.errors import NotFound
from baton.testing import run
from tests.kit.sentences import Says
from tests.testing.test_running import TOOLS

BRANCHES = """
name: it
nodes:
  ask: {value: "${input}", branch: {rules: [{if: "output.cents > 9", then: big}], default: small}}
  big: {tool: shop.price, with: {item: big}}
  small: {tool: shop.price, with: {item: small}}
  again: {value: 1, after: [big, small], loop: {while: "loop.iteration < 1", back_to: again}}
"""


def test_a_result_says_which_way_it_went_and_why_not_another(says: Says) -> None:
    result = run(BRANCHES, {"cents": 10}, tools=TOOLS)
    assert result.way == ["ask", "big", "again@0", "again@1"]
    says(result.why("small"))
    says(result.why("again@1"))
    assert [line.partition(",")[0] for line in result.why("again").splitlines()] == [
        "`again@0` passed",
        "`again@1` passed",
    ]
    assert (result.steps["ask"].status, result.steps["small"].status) == ("succeeded", "skipped")
    with says.raised(NotFound):
        result.why("smal")


def test_a_condition_that_breaks_is_the_failure_of_its_node() -> None:
    result = run(BRANCHES, {"dollars": 10}, tools=TOOLS)
    assert result.status == "failed"
    assert result.steps["ask"].status == "failed"
    assert result.steps["ask"].error == result.error


def test_a_saga_that_fails_where_a_join_stops_the_rest_ends_at_once() -> None:
    race = """
name: it
nodes:
  fast: {wait: {for: 1s}}
  slow: {tool: shop.price, with: {item: slow}}
  first: {wait: {until: "${input.at}"}, after: [fast, slow], join: any}
"""

    async def price(item: str) -> dict[str, Any]:
        await asyncio.sleep(20)
        return {}

    result = run(race, {"at": "tomorrow"}, tools=TOOLS, stand_ins={"shop.price": price})
    assert (result.status, result.took_s) == ("failed", 1)


PARENT = """
name: parent
nodes:
  inner: {workflow: inner}
  pause: {wait: {for: 2d}}
  both: {value: 1, after: [inner, pause]}
"""
INNER = "name: inner\nnodes: {ask: {wait: {signal: approved}}}\n"


def test_printed_a_result_says_what_it_and_its_children_wait_for(says: Says) -> None:
    lines = repr(run(PARENT, workflows=[INNER], tools=TOOLS)).splitlines()
    (child,) = [line.split()[-1] for line in lines if line.startswith("  inner: waits for its child ")]
    says(lines)
    assert f"  child {child}, inner: waiting" in lines
    says(lines)
