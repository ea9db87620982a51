"""A plugin of pytest: a test that fails shows the stories of the sagas that it ran, whole.

pytest itself cuts what it prints of a value to 240 characters. An installed Baton registers this plugin (pyproject.toml), so
every run of pytest imports it: it imports neither pytest nor the engine.
"""

from __future__ import annotations

from collections import deque
from typing import Any

MOST = 5  # results of one test that are shown


class _Made:
    """The results of the test that runs: the last ones, and how many there were."""

    def __init__(self) -> None:
        self.results: deque[Any] = deque(maxlen=MOST)
        self.count = 0


_made: _Made | None = None  # None: no test runs, and nothing is kept


def keep(result: Any) -> None:
    """Note a result, in case the test that runs fails."""
    if _made is not None:
        _made.results.append(result)
        _made.count += 1


def pytest_runtest_logstart() -> None:
    """A test begins."""
    global _made
    _made = _Made()


def pytest_runtest_logfinish() -> None:
    """A test has ended."""
    global _made
    _made = None


def pytest_runtest_makereport(item: Any, call: Any) -> None:
    """Comes before pytest makes the report of a phase of a test: what is added to the item stands in it."""
    if call.excinfo is None or _made is None:
        return
    shown = list(_made.results)
    made_before = [
        value
        for value in getattr(item, "funcargs", {}).values()
        if getattr(type(value), "__module__", "") == "baton.testing.result"
    ]
    shown = [value for value in made_before if not any(value is one for one in shown)] + shown
    left_out = _made.count - len(_made.results)
    if shown:
        note = [f"({left_out} sagas before these are not shown)"] if left_out else []
        item.add_report_section(call.when, "sagas", "\n".join([*note, *map(str, shown)]))
    _made.results.clear()
    _made.count = 0
