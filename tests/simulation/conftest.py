"""No log is kept of a simulation: it tells in the end which promise was broken, with every entry of every saga."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _without_logs() -> Iterator[None]:
    """Thousands of faults would each be written down with a traceback: an eighth of what a simulation costs."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
