"""Which tests of the core count for coverage."""

from __future__ import annotations

from collections.abc import Sequence

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """End the first of two measurements that pytest-cov 7.1 begins in each process of xdist's.

    The marker `no_cover` pauses only the second, and then the first one goes on: tests that are not measured take
    more than twice as long.
    """
    plugin = session.config.pluginmanager.getplugin("_cov")
    if hasattr(session.config, "workerinput") and plugin is not None and plugin.cov_controller is not None:
        plugin.cov_controller.cov.stop()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Coverage is for tests that name what they hold: a branch that only a drawn value comes to is held by chance.

    The tracer would also see all that hypothesis does, and double its time.
    """
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.no_cover)
