"""Error budgets: how many sagas of a workflow have failed, and how many more may."""

from __future__ import annotations

from baton.core.log import events as ev
from baton.core.read.costs import ErrorBudgets, added_up
from baton.core.read.metrics import Figures
from tests.kit.views import as_json


def budgets(percent: float) -> ErrorBudgets:
    made = ErrorBudgets(percent)
    for workflow, completed, failed in (("quiet", 50, 0), ("dinner", 395, 5), ("shop", 97, 3)):
        made.add(workflow, "completed", completed)
        made.add(workflow, "failed", failed)
        made.add(workflow, "cancelled", 7)
    return made


def test_what_is_left_is_a_share_of_those_that_have_ended() -> None:
    assert [(row["key"], row["allowed"], row["left"]) for row in as_json(budgets(2).rows())] == [
        ("dinner", 8, 3),
        ("shop", 2, -1),
        ("quiet", 1, 1),
    ]
    assert [row["allowed"] for row in as_json(budgets(0.25).rows())] == [1, 0, 0]


def test_without_a_budget_nothing_is_left_or_used_up() -> None:
    assert as_json(budgets(0).rows())[0] == {
        "key": "dinner",
        "completed": 395,
        "failed": 5,
        "allowed": None,
        "left": None,
    }


def test_pages_add_up() -> None:
    page = {"day": "2026-11-22", "percent": 2.0, "workflows": as_json(budgets(2).rows())}
    assert added_up([page]) == page
    twice = added_up([page, page])["workflows"][0]
    assert (twice["completed"], twice["failed"], twice["left"]) == (790, 10, 6)
    assert added_up([{**page, "percent": None, "workflows": []}])["workflows"] == []


def test_a_saga_that_was_rolled_back_has_failed() -> None:
    """Otherwise a workflow that takes back what it has done would never use its budget up."""
    ends = ("rolled_back", "rollback_failed", "failed", "completed")
    made, figures = ErrorBudgets(50), Figures(counts_ends=True)
    for status in ends:
        made.add("dinner", status)
        figures.heard("dinner", (ev.SagaEnded(status=status),), 0)
    (row,) = as_json(made.rows())
    assert (row["completed"], row["failed"], row["left"]) == (1, 3, -1)
    figures.heard("dinner", (ev.SagaEnded(status="rolled_back", undone=ev.Undone()),), 0)
    told = figures.take(60_000, 60_000, "f")
    (found,) = (one for one in told if "SagasFailed" in one)
    assert (found["SagasCompleted"], found["SagasFailed"]) == (1, 4)
    assert sum(one.get("RolledBack", 0) for one in told) == 1, "this, too, with an error budget"


def test_ends_are_counted_where_there_is_a_budget() -> None:
    def names(*, counts_ends: bool, at: int = 60_000) -> set[str]:
        figures = Figures(counts_ends=counts_ends)
        for status in ("completed", "completed", "failed", "cancelled"):
            figures.heard("dinner", (ev.SagaEnded(status=status),), 0)
        found = figures.take(at, 60_000, "f")
        return {name for one in found for name in one if name.startswith("Sagas")}

    assert names(counts_ends=False) == set()
    assert names(counts_ends=True) == {"SagasCompleted", "SagasFailed"}
    assert names(counts_ends=True, at=1) == {"SagasCompleted", "SagasFailed"}
