"""What the first test of a newcomer gets wrong is refused before anything runs, and says what would be right."""

from __future__ import annotations

import re
from typing import Any

import pytest

from baton import Context, tool
from baton.errors import NotFound
from baton.testing import run
from baton.tools.define import Registry, ToolError
from tests.kit.sentences import Says

TOOLS = Registry()


@tool("shop.charge", registry=TOOLS, effect="once")
def charge(cents: int, context: Context, note: str = "") -> str:
    return f"{cents} {note}"


PAY = "name: pay\nnodes: {charge: {tool: shop.charge, with: {cents: 3}}}\noutput: '${ctx.charge.output}'\n"


@pytest.mark.parametrize(
    "stand_in",
    [
        lambda amount, note: "paid",
        lambda cents: "paid",
        lambda cents, note, /: "paid",
        lambda context: "paid",
        "paid",
    ],
)
def test_a_stand_in_that_cannot_be_called_as_the_tool_is_is_refused(stand_in: Any, says: Says) -> None:
    with says.raised(ToolError):
        run(PAY, tools=TOOLS, stand_ins={"shop.charge": stand_in})


@pytest.mark.parametrize(
    "stand_in",
    [
        lambda cents, note: "paid",
        lambda **_: "paid",
        lambda cents, **_: "paid",
        lambda cents, note, context: "paid",
        lambda cents, note="", more=1: "paid",
    ],
)
def test_a_stand_in_may_take_less_by_name_and_more_by_default(stand_in: Any) -> None:
    assert run(PAY, tools=TOOLS, stand_ins={"shop.charge": stand_in}).output == "paid"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"at": "tomorrow"}, "at: `tomorrow` is not a time; write for example 2100-01-01T00:00:00Z"),
        (
            {"answers": {"charge": "yes"}},
            "the answer about `charge` is retry, use, fail, approve, reject; not `yes`",
        ),
        (
            {"worker_timeout": "a minute"},
            "worker_timeout: `a minute` is not a duration; write for example 500ms",
        ),
    ],
)
def test_what_is_no_time_and_no_answer_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        run(PAY, tools=TOOLS, **given)


def test_the_attempts_of_a_node_that_is_not_there_are_not_none_but_a_mistake(says: Says) -> None:
    result = run(PAY, tools=TOOLS)
    assert result.attempts("charge") == 1
    with says.raised(NotFound):
        result.attempts("chrage")


def test_an_app_that_is_not_found_says_where_pytest_looks(says: Says) -> None:
    with says.raised(ToolError) as refused:
        run("pay", app="sages")
    assert 'pythonpath = ["layers/app"]' in refused.value.__notes__[0]


def test_printed_a_result_names_the_failures_before_the_last_one(says: Says) -> None:
    result = run(
        PAY,
        tools=TOOLS,
        stand_ins={"shop.charge": lambda **_: 7},
        answers={"charge": "fail"},
    )
    assert "unknown_outcome" in result.error
    says.within(repr(result))
