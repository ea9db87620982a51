"""`run` and tools with a journal: units are recorded, and a worker that dies in the middle repeats one."""

from __future__ import annotations

from typing import Any

import pytest

from baton import Context, StepFailure, tool
from baton.testing import run
from baton.tools.define import Registry

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
