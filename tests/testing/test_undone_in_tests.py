"""Tests of sagas cancel them, let workers die while they undo, and say whose parameters do not fit."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from baton import Context, StepFailure
from baton.testing import run
from baton.tools.define import Registry, ToolError, tool
from tests.kit.sentences import Says

TRIP = """
name: trip
nodes:
  book: {tool: t.book, with: {seats: 2}, compensate: {tool: t.back, with: {seats: "${step.input.seats}"}}, on_failure: rollback}
  pause: {wait: {for: 3h}, after: book}
  pay: {tool: t.pay, after: pause, on_failure: rollback}
output: "${ctx.pay.output}"
"""


class Shop:
    def __init__(self, *, fails: bool = False) -> None:
        self.back: Counter[str] = Counter()
        self.tools = Registry()

        @tool("t.book", registry=self.tools)
        def book(seats: int) -> int:
            return seats

        @tool("t.back", registry=self.tools)
        def back(seats: int, context: Context) -> None:
            self.back[context.idempotency_key] += seats

        @tool("t.pay", registry=self.tools)
        def pay() -> str:
            if fails:
                raise StepFailure("sold_out", "no", kind="permanent")
            return "paid"


@pytest.mark.parametrize("cancel", ["1h", 3600, timedelta(hours=1), {"at": "1h"}])
def test_a_saga_is_cancelled_at_a_time(cancel: Any) -> None:
    shop = Shop()
    result = run(TRIP, tools=shop.tools, cancel=cancel)
    assert (result.status, result.took_s, shop.back.total()) == ("cancelled", 3600, 0)


def test_a_cancelled_saga_undoes_what_it_has_done() -> None:
    shop = Shop()
    result = run(TRIP, tools=shop.tools, cancel={"at": "1h", "undo": True})
    assert (result.undone, shop.back.total()) == (["book"], 2)


@pytest.mark.parametrize(
    "cancel", [-1, "soon", {"undo": True}, {"at": "1h", "force": True}, {"at": 1, "undo": 1}]
)
def test_a_cancellation_that_is_none_is_refused(cancel: Any, says: Says) -> None:
    with says.raised(ValueError):
        run(TRIP, tools=Shop().tools, cancel=cancel)


def test_a_cancellation_after_the_end_is_refused_as_by_the_api(says: Says) -> None:
    from baton.errors import NotAllowedNow

    with pytest.raises(NotAllowedNow) as refused:
        run(TRIP, tools=Shop().tools, cancel="4h")
    says(refused.value.__notes__)


@pytest.mark.parametrize(("moment", "calls"), [("before", 1), ("after", 2)])
def test_a_worker_dies_while_it_undoes(moment: str, calls: int) -> None:
    shop = Shop(fails=True)
    result = run(TRIP, tools=shop.tools, kills={"book#undo": moment})
    assert (result.status, result.undone) == ("rolled_back", ["book"])
    assert [*shop.back.values()] == [2 * calls], "with one key"


@pytest.mark.parametrize("place", ["pay#undo", "bok#undo"])
def test_a_kill_of_what_nothing_undoes_is_refused(place: str, says: Says) -> None:
    with says.raised(ValueError):
        run(TRIP, tools=Shop(fails=True).tools, kills={place: "before"})


@pytest.mark.parametrize("function", [lambda: 1, lambda seats, size: 1, lambda seat: 1])
def test_a_stand_in_with_other_parameters_says_whose_are_missing(function: Any, says: Says) -> None:
    with says.raised(ToolError):
        run(TRIP, tools=Shop().tools, stand_ins={"t.book": function})


def test_declarations_are_checked_as_those_of_an_application(says: Says) -> None:
    tools = Registry()

    @tool("t.once", effect="once", verify="t.verifi", registry=tools)
    def once() -> None:
        """Act once."""

    with says.raised(ToolError):
        run("name: w\nnodes:\n  n: {value: 1}\n", tools=tools)
