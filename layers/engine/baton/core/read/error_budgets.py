"""How many sagas of each workflow have failed on a day, and how many more may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

ENDS = ("completed", "failed")
_ROLLED_BACK = ("rolled_back", "rollback_failed")


class ErrorBudgets:
    """Sums by workflow. `percent` of its sagas may fail; 0: there is no budget."""

    def __init__(self, percent: float) -> None:
        self._percent = percent
        self._sums: dict[str, list[int]] = {}

    def add(self, workflow: str, status: str, count: int = 1) -> None:
        """So many more sagas that have come to an end. One that was rolled back has failed, one that was cancelled is neither."""
        status = "failed" if status in _ROLLED_BACK else status
        if status in ENDS:
            self._sums.setdefault(workflow, [0, 0])[ENDS.index(status)] += count

    def rows(self) -> list[dict[str, Any]]:
        """What has failed most in front. `left`: so many more may fail; below 0, so many more have than may."""
        ordered = sorted(self._sums.items(), key=lambda pair: (-pair[1][1], pair[0]))
        return [
            {
                "key": workflow,
                "completed": completed,
                "failed": failed,
                **self._budget(completed + failed, failed),
            }
            for workflow, (completed, failed) in ordered
        ]

    def _budget(self, ended: int, failed: int) -> dict[str, Any]:
        if not self._percent:
            return {"allowed": None, "left": None}
        allowed = round(ended * self._percent * 100) // 10_000
        return {"allowed": allowed, "left": allowed - failed}


def added_up(pages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One answer of the pages of a day."""
    first = pages[0]
    budgets = ErrorBudgets(first["percent"] or 0)
    for page in pages:
        for row in page["workflows"]:
            for status in ENDS:
                budgets.add(row["key"], status, row[status])
    return {"day": first["day"], "percent": first["percent"], "workflows": budgets.rows()}
