"""What holds for every test: what the garbage collector looks at, and how long e2e tests may take."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import pytest

from tests.kit.patience import PATIENCE_S


def pytest_collection_finish() -> None:
    """Modules and tests stay until the end, and most of what a test makes is gone at once: the collector may look less."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Real processes may be slow."""
    for item in items:
        if item.get_closest_marker("e2e") is not None:
            item.add_marker(pytest.mark.timeout(2 * PATIENCE_S))
