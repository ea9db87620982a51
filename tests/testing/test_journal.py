"""`run` and tools with a journal: units are recorded, and a worker that dies in the middle repeats one."""

from __future__ import annotations

from typing import Any

import pytest

from baton import Context, StepFailure, WorkflowContext, tool, workflow
from baton.testing import run
from baton.tools.define import Registry
from tests.kit.sentences import Says

DOCUMENT = "name: w\nnodes: {pay: {tool: bank.pay, with: {parts: 3}}}\noutput: ${ctx.pay.output}"


class Bank:
    def __init__(self, fails_at: str = "") -> None:
        self.fails_at = fails_at
        self.paid: list[str] = []

    def pay(self, name: str) -> int:
        self.paid.append(name)
        if name == self.fails_at and self.paid.count(name) == 1:
            raise StepFailure("service_unavailable", "closed")
        return len(self.paid)


def registry_of(bank: Bank, *, is_async: bool) -> Registry:
    registry = Registry()

    async def waits(parts: int, context: Context) -> list[int]:
        return [await context.once(f"{n}", bank.pay, f"{n}") for n in range(parts)]

    def plain(parts: int, context: Context) -> list[int]:
        return [context.once_sync(f"{n}", bank.pay, f"{n}") for n in range(parts)]

    function: Any = waits if is_async else plain
    tool("bank.pay", registry=registry)(function)
    return registry


@pytest.mark.parametrize("is_async", [True, False])
def test_a_tool_goes_on_after_its_last_unit(is_async: bool) -> None:
    bank = Bank("1")
    result = run(DOCUMENT, tools=registry_of(bank, is_async=is_async))
    assert (result.status, result.output) == ("completed", [1, 3, 4])
    assert bank.paid == ["0", "1", "1", "2"]


@pytest.mark.parametrize("is_async", [True, False])
def test_a_worker_that_dies_after_the_call_finds_all_units(is_async: bool) -> None:
    bank = Bank()
    result = run(DOCUMENT, tools=registry_of(bank, is_async=is_async), kills={"pay": "after"})
    assert (result.status, result.output) == ("completed", [1, 2, 3])
    assert bank.paid == ["0", "1", "2"]


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize(("moment", "paid"), [("before", ["0", "1", "2"]), ("after", ["0", "1", "1", "2"])])
def test_a_worker_dies_at_a_unit(moment: str, paid: list[str], is_async: bool) -> None:
    bank = Bank()
    result = run(DOCUMENT, tools=registry_of(bank, is_async=is_async), kills={"pay: 1": moment})
    assert (result.status, bank.paid, result.view["revivals"]) == ("completed", paid, 1)


def test_a_worker_dies_at_a_unit_of_an_operation_as_often_as_the_test_says() -> None:
    bank = Bank()
    registry = registry_of(bank, is_async=True)

    @workflow("pays", registry=registry, tools=["bank.pay"])
    async def pays(context: WorkflowContext) -> list[int]:
        await context.step("bank.pay", 1)
        found: list[int] = await context.step("bank.pay", 2)
        return found

    result = run(pays, tools=registry, kills={"pay#2: 0": ["after", "before"], "pay: 1": "after"})
    assert (result.status, result.view["revivals"]) == ("completed", 3)
    assert bank.paid == ["0", "0", "0", "1", "1"]


def test_a_kill_at_a_unit_that_never_came_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="`pay: 7`"):
        run(DOCUMENT, tools=registry_of(Bank(), is_async=True), kills={"pay: 7": "after"})


@pytest.mark.parametrize("kills", [{"pay: 1": "during"}, {"ship: 1": "after"}])
def test_a_kill_at_a_unit_that_cannot_be_is_refused(kills: dict[str, str], says: Says) -> None:
    with says.raised(ValueError):
        run(DOCUMENT, tools=registry_of(Bank(), is_async=True), kills=kills)
