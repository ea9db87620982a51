"""Which tests of the core count for coverage."""

from __future__ import annotations

from collections.abc import Sequence

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Coverage is for tests that name what they hold: a branch that only a drawn value comes to is held by chance.

    The tracer would also see all that hypothesis does, and double its time.
    """
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.no_cover)
