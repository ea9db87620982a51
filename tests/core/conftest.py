"""Which tests of the core count for coverage."""

from __future__ import annotations

from collections.abc import Generator
from io import StringIO
from typing import Any

import pytest

from tests.core.covered import unproven
from tests.core.covering import covering

STALE = "covering.json does not take every branch any more, so all tests are measured: run `python -m tests.core.covering`"


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """End the first of two measurements that pytest-cov 7.1 begins in each process of xdist's.

    The marker `no_cover` pauses only the second, and then the first one goes on: tests that are not measured take
    more than twice as long.
    """
    plugin = session.config.pluginmanager.getplugin("_cov")
    if hasattr(session.config, "workerinput") and plugin is not None and plugin.cov_controller is not None:
        plugin.cov_controller.cov.stop()


class Covering:
    """Ends the measurement when the tests of covering.json have taken every branch: a test that is measured takes twice as long.

    If they have not, the other tests are measured as well. That takes longer, and is as strict.
    """

    def __init__(self, controller: Any, last: pytest.Item) -> None:
        self._controller, self._last = controller, last

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        result = yield
        if item is self._last:
            self._controller.pause()
            total = self._total()
            if total == 100:
                self._controller.resume = lambda: (
                    None
                )  # pytest-cov would, after each test that is marked `no_cover`
            if total == 100 and not self._controller.cov_report:
                self._controller.summary = lambda _: total  # pytest-cov need not look at all files once more
            elif total < 100:
                item.config.get_terminal_writer().line(f"\n{STALE}")
                self._controller.resume()
        return result

    def _total(self) -> float:
        from coverage import Coverage

        measured = Coverage(data_file=self._controller.cov.get_data().data_filename())
        measured.load()
        left = unproven(measured)
        return measured.report(include=left, file=StringIO()) if left else 100


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Coverage is for tests that name what they hold: a branch that only a drawn value comes to is held by chance.

    The tracer would also see all that hypothesis does, and double its time.
    """
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.no_cover)
    plugin = config.pluginmanager.getplugin("_cov")
    if plugin is not None and plugin.cov_controller is not None and _is_one_process_of_its_own(config):
        _begin_with_those_that_cover(config, plugin.cov_controller, items)


def _is_one_process_of_its_own(config: pytest.Config) -> bool:
    """One of several does not know what the others cover, and `covering.py` asks for what each test does."""
    is_shared = hasattr(config, "workerinput") or config.getoption("numprocesses", None)
    return not is_shared and not config.getoption("cov_context", None)


def _begin_with_those_that_cover(config: pytest.Config, controller: Any, items: list[pytest.Item]) -> None:
    known = covering(item.nodeid for item in items)
    is_measured = {item: item.get_closest_marker("no_cover") is None for item in items}
    items.sort(key=lambda item: (not is_measured[item], item.nodeid not in known))
    first = [item for item in items if is_measured[item] and item.nodeid in known]
    if first:
        config.pluginmanager.register(Covering(controller, first[-1]))
