"""What holds for every test: what the garbage collector looks at, how long e2e tests and tools may take, and how they are counted."""

from __future__ import annotations

import fcntl
import gc
import inspect
import json
import logging
import os
import ssl
import sys
from collections import Counter
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.kit.patience import PATIENCE_S
from tests.kit.sentences import Says, known, renew

TESTS = Path(__file__).parent
gc.disable()  # until all is imported and collected: it stays
# A client of httpx reads all certificates of the machine, which takes longer than most requests on loopback; one reading is enough.
setattr(ssl, "create_default_context", cache(ssl.create_default_context))  # noqa: B010


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """In a fresh clone one process of xdist's after the other: what the first has compiled, the others only read."""
    is_one_of_several = hasattr(session.config, "workerinput") and not sys.dont_write_bytecode
    if not is_one_of_several or any((TESTS / "core" / "__pycache__").glob("test_*.pyc")):
        return (yield)
    with (TESTS / "conftest.py").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        return (yield)


def pytest_collection_finish() -> None:
    """Modules and tests stay until the end, and most of what a test makes is gone at once: the collector may look less."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    if blocked := sys.modules.get("baton.testing.loop"):
        # A busy machine holds up a loop, too: only tests/testing/test_blocked.py looks for tools that do.
        vars(blocked)["LIMIT_MS"] = PATIENCE_S * 1_000


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure() -> None:
    """What was never freed is looked at once more; pytest would do it twice, and Python once again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """No log is kept of a simulation: it tells in the end which promise was broken, with every entry of every saga.

    Thousands of faults would each be written down with a traceback: an eighth of what a simulation costs.
    """
    is_kept = item.path.parent.name not in {"simulation", "compat"} or "caplog" in getattr(
        item, "fixturenames", ()
    )
    if (level := logging.NOTSET if is_kept else logging.CRITICAL) != logging.root.manager.disable:
        logging.disable(level)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine runs in virtual time."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    from tests.kit.virtual_time import run_virtual  # most tests need no loop

    names = inspect.signature(pyfuncitem.obj).parameters
    run_virtual(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Real processes may be slow; what is only for `make soak` is left to it."""
    for item in items:
        if item.get_closest_marker("e2e") is not None:
            item.add_marker(pytest.mark.timeout(2 * PATIENCE_S))
    if not os.environ.get("BATON_SOAK"):
        left = {item for item in items if item.get_closest_marker("soak") is not None}
        config.hook.pytest_deselected(items=[*left])
        items[:] = [item for item in items if item not in left]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--counts", type=Path, help="a file for the counts that `make test` sums up")
    parser.addoption("--renew-sentences", action="store_true", help="write tests/sentences/ anew; with -n 0")


HEARD: dict[str, list[Any]] = {}


@pytest.fixture
def says(request: pytest.FixtureRequest) -> Generator[Says, None, None]:
    """Holds what is said against tests/sentences/: see tests/kit/sentences.py."""
    test = request.node.nodeid.removeprefix("tests/")
    folder = str(request.getfixturevalue("tmp_path")) if "tmp_path" in request.fixturenames else ""
    heard = Says(known(test), request.config.getoption("renew_sentences"), folder)
    failed = request.session.testsfailed
    yield heard
    if request.session.testsfailed > failed:
        return
    if heard.renews:
        HEARD[test] = heard.heard
    heard.is_over()


def pytest_sessionfinish() -> None:
    if HEARD:
        renew(HEARD)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """From the reports that pytest keeps anyway: its own report in XML takes a quarter of a millisecond for each test."""
    file: Path | None = terminalreporter.config.getoption("counts")
    if file is None:
        return
    stats = terminalreporter.stats
    reports = [report for kind in stats.values() for report in kind if isinstance(report, pytest.TestReport)]
    counts = {
        "tests": len({report.nodeid for report in reports}),
        "seconds": sum(report.duration for report in reports),
        "failed": sum(len(stats.get(kind, ())) for kind in ("failed", "error")),
        "skipped": Counter(
            _reason(report) for kind in ("skipped", "xfailed") for report in stats.get(kind, ())
        ),
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(counts), "utf-8")


def _reason(report: pytest.TestReport) -> str:
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else getattr(report, "wasxfail", "")
    return said.removeprefix("Skipped: ").removeprefix("reason: ")
