"""Limits of time in the test of an application: they end what nothing else would end, as in a deployment."""

from __future__ import annotations

from typing import Any

import pytest

from baton import StepFailure, tool
from baton.testing import Result, Unanswered, run
from baton.tools.define import Registry

HOUR = 3_600


def of(document: str, **options: Any) -> Result:
    registry = Registry()

    @tool("shop.log_in", registry=registry)
    def log_in() -> None:
        raise StepFailure("login_required", "not now")

    return run(f"name: it\n{document}", tools=registry, **options)


@pytest.mark.parametrize("most", [2, 40 * 24])
def test_a_wait_for_a_signal_that_never_comes_ends_with_the_time_of_its_saga(most: int) -> None:
    result = of(f"limits: {{wall_time: {most}h}}\nnodes: {{ask: {{wait: {{signal: approved}}}}}}")
    assert (result.status, result.error.partition(":")[0]) == ("failed", "limit_wall_time")
    assert result.took_s == pytest.approx(most * HOUR, abs=1)


def test_it_ends_with_the_time_of_its_node_which_may_be_caught() -> None:
    ask = "{wait: {signal: approved}, limits: {wall_time: 2h}, catch: late}"
    result = of(f"nodes: {{ask: {ask}, late: {{value: too late}}}}\noutput: '${{ctx.late.output?}}'")
    assert (result.status, result.output) == ("completed", "too late")
    assert result.took_s == pytest.approx(2 * HOUR, abs=1)


def test_a_signal_that_is_sent_comes_before_the_limit() -> None:
    result = of(
        "limits: {wall_time: 2h}\nnodes: {ask: {wait: {signal: approved}}}", signals={"approved": None}
    )
    assert (result.status, result.took_s) == ("completed", 0)


def test_a_parent_ends_with_its_own_time_while_its_child_waits() -> None:
    child = "name: child\nnodes: {ask: {wait: {signal: approved}}}"
    result = of("limits: {wall_time: 2h}\nnodes: {a: {workflow: child}}", workflows=[child])
    assert (result.status, result.error.partition(":")[0]) == ("failed", "limit_wall_time")
    assert result.took_s == pytest.approx(2 * HOUR, abs=1)


@pytest.mark.parametrize(
    ("most", "code", "hours"), [("2h", "limit_wall_time", 2), ("3d", "login_required", 24)]
)
def test_a_question_is_open_until_it_expires_or_the_time_of_its_saga_is_over(
    most: str, code: str, hours: int
) -> None:
    document = f"limits: {{wall_time: {most}}}\nnodes: {{a: {{tool: shop.log_in}}}}"
    result = of(document, answers={"a": None})
    assert (result.status, result.error.partition(":")[0]) == ("failed", code)
    assert result.took_s == pytest.approx(hours * HOUR, abs=1)
    with pytest.raises(Unanswered):
        of(document)


def test_other_limits_do_not_end_a_wait() -> None:
    rest = "limits: {hops: 5}, catch: late}, late: {value: 1}}"
    result = of(f"limits: {{hops: 9}}\nnodes: {{ask: {{wait: {{signal: approved}}, {rest}")
    assert result.status == "waiting"
