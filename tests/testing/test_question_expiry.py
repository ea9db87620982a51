"""How long the question about a failed step waits is said by its document."""

from __future__ import annotations

import pytest

from baton import StepFailure, Workflow
from baton.errors import InvalidDefinition
from baton.testing import run
from baton.tools.define import Registry, tool
from tests.kit.sentences import Says

ASKED = """
name: asked
nodes:
  pay:
    tool: t.pay
    on_failure: {card_declined: {ladder: [ask_user], expires: EXPIRES}}
"""


def tools() -> Registry:
    registry = Registry()

    @tool("t.pay", registry=registry)
    def pay() -> None:
        raise StepFailure("card_declined", "no")

    return registry


@pytest.mark.parametrize(("expires", "took"), [("2d", 2 * 86_400), ("90m", 5_400)])
def test_a_question_about_a_failed_step_waits_as_long_as_its_rule_says(expires: str, took: float) -> None:
    result = run(ASKED.replace("EXPIRES", expires), tools=tools(), answers={"pay": None})
    assert (result.status, result.took_s) == ("failed", took)


def test_an_escalation_gives_its_last_audience_the_whole_time() -> None:
    text = ASKED.replace("EXPIRES", "1h, escalate: [{after: 30m, remind: true}]")
    assert run(text, tools=tools(), answers={"pay": None}).took_s == 5_400


@pytest.mark.parametrize("rule", ["{ladder: [rollback], expires: 2d}", "{ladder: [ask_user], expires: soon}"])
def test_a_time_that_does_nothing_or_is_none_is_refused(rule: str, says: Says) -> None:
    text = ASKED.replace("{ladder: [ask_user], expires: EXPIRES}", rule)
    with pytest.raises(InvalidDefinition) as refused:
        run(text, tools=tools())
    says(refused.value.__notes__)


def test_the_builder_writes_it() -> None:
    flow = Workflow("asked")
    flow.task("pay", "t.pay", on_failure={"card_declined": {"ladder": ["ask_user"], "expires": "2d"}})
    assert "expires: 2d" in flow.to_yaml()
