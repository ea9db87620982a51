"""pytest plugin that shows the complete stories of the sagas that a failed test ran.

An error that `run` raises is shown at the line of the test, without the lines of Baton below it. pytest
itself truncates printed values to 240 characters. An installed Baton registers this plugin (pyproject.toml),
so every run of pytest imports it; it imports neither pytest nor the engine.
"""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path
from typing import Any


def variable(name: str) -> str:
    """Return a variable of the environment, for evaluations with real models; empty without it."""
    return os.environ.get(name, "")


_HERE = Path(__file__).parent
MOST = 5  # results of one test that are shown


class _Made:
    """Results of the running test: the last ones, and their total number."""

    def __init__(self) -> None:
        self.results: deque[Any] = deque(maxlen=MOST)
        self.count = 0


_made: _Made | None = None  # None: no test runs, and nothing is kept


def keep(result: Any) -> None:
    """Record a result, in case the running test fails."""
    if _made is not None:
        _made.results.append(result)
        _made.count += 1


def pytest_configure(config: Any) -> None:
    """Set the variables of the project's baton.toml. A secret is `test`, unless the shell has it."""
    if not (config.rootpath / "baton.toml").is_file():
        return
    from baton.project.deployment import known_variables, project_config

    found = project_config(config.rootpath)
    for name, value in (known_variables(found) | dict.fromkeys(found.secrets, "test")).items():
        os.environ.setdefault(name, value)


def pytest_runtest_logstart() -> None:
    """Handle the start of a test."""
    global _made
    _made = _Made()


def pytest_runtest_logfinish() -> None:
    """Handle the end of a test."""
    global _made
    _made = None


def pytest_runtest_makereport(item: Any, call: Any) -> None:
    """Add the stories to the test item, before pytest makes the report of a phase."""
    if call.excinfo is None or _made is None:
        return
    if not item.config.getoption("fulltrace"):
        _cut(call.excinfo)
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


def _cut(excinfo: Any) -> None:
    """Remove the lines below the test's own from an exception that this package raised."""
    lines = [excinfo.tb]
    while lines[-1].tb_next is not None:
        lines.append(lines[-1].tb_next)
    of_here = [Path(line.tb_frame.f_code.co_filename).parent == _HERE for line in lines]
    if of_here[-1] and not of_here[0]:
        lines[of_here.index(True) - 1].tb_next = None
