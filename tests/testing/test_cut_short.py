"""A payment that a limit of time cuts short, or whose output does not fit its document: on the whole engine, nothing of it is lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton import Context, tool
from baton.testing import Unanswered, run
from baton.testing.result import Result
from baton.tools.define import Registry

FITS = "{type: object, required: [receipt]}"


def toolbox() -> tuple[Registry, list[str]]:
    """Payments of 20 s, idempotent (`hold`) or not (`pay`), what takes them back, and what was called."""
    registry, called = Registry(), list[str]()

    async def payment(who: str, context: Context) -> dict[str, str]:
        called.append(f"call {who}")
        await asyncio.sleep(20)
        called.append(f"paid {who}")
        return {"id": who}

    async def find(who: str) -> dict[str, str] | None:
        return {"id": who} if f"paid {who}" in called else None

    async def refund(id: str) -> None:
        called.append(f"refund {id}")

    tool("refund", registry=registry)(refund)
    tool("find", registry=registry, effect="pure")(find)
    tool("hold", registry=registry, undo="refund")(payment)
    tool("pay", registry=registry, undo="refund", effect="once")(payment)
    tool("found", registry=registry, undo="refund", effect="once", verify="find")(payment)
    return registry, called


def kinds(result: Result) -> list[str]:
    return [event["kind"] for entry in result.entries for event in entry["events"]]


@pytest.mark.parametrize("limits", ["", "limits: {wall_time: 5s}"])
@pytest.mark.parametrize("payment", ["hold", "pay"])
def test_a_payment_under_way_when_the_time_is_over_comes_to_its_end_and_is_taken_back(
    payment: str, limits: str
) -> None:
    registry, called = toolbox()
    document = f"""
name: late
{"" if limits and payment == "hold" else "limits: {wall_time: 25s}"}
nodes:
  first: {{tool: hold, with: {{who: a}}}}
  second: {{tool: {payment}, after: first, with: {{who: b}}, {limits}}}
"""
    result = run(document, tools=registry)
    assert (result.status, result.undone) == ("rolled_back", ["second", "first"])
    assert called == ["call a", "paid a", "call b", "paid b", "refund b", "refund a"]


def test_the_log_has_the_payment_that_was_stopped_by_the_end_of_its_saga() -> None:
    registry, called = toolbox()
    document = """
name: early
nodes:
  first: {tool: hold, with: {who: a}}
  pause: {wait: {for: 5s}}
  stop: {end: {result: 1}, after: pause}
"""
    result = run(document, tools=registry)
    assert (result.status, called) == ("completed", ["call a"])
    assert "step_interrupted" in kinds(result)


def test_a_rollback_asks_about_a_payment_without_which_the_saga_went_on() -> None:
    registry, called = toolbox()
    document = """
name: late
on_failure: [rollback]
nodes:
  first: {tool: hold, limits: {wall_time: 5s}, with: {who: a}, catch: other}
  other: {wait: {for: 1m}}
  last: {fail: {code: no, message: no}, after: other}
"""
    result = run(document, tools=registry, answers={"first": {"action": "use", "output": {"id": "a"}}})
    assert (result.status, result.undone) == ("rolled_back", ["first"])
    assert called == ["call a", "refund a"]


def ended(payment: str, answers: dict[str, Any] | None = None) -> tuple[Result, list[str]]:
    registry, called = toolbox()
    document = f"""
name: unfit
on_failure: [rollback]
nodes:
  first: {{tool: {payment}, with: {{who: a}}, output_schema: {FITS}}}
"""
    return run(document, tools=registry, answers=answers or {}), called


@pytest.mark.parametrize("payment", ["pay", "found"])
def test_a_person_is_asked_about_what_has_happened_once_and_does_not_fit(payment: str) -> None:
    with pytest.raises(Unanswered, match="receipt"):
        ended(payment)
    result, called = ended(payment, {"first": {"action": "use", "output": {"id": "a", "receipt": "r"}}})
    assert (result.status, called) == ("completed", ["call a", "paid a"])


def test_given_up_it_is_not_taken_for_undone() -> None:
    result, called = ended(
        "found", {"first": ["fail", {"action": "use", "output": {"id": "a", "receipt": "?"}}]}
    )
    assert (result.status, called) == ("rolled_back", ["call a", "paid a", "refund a"])
