"""What holds for every test: what the garbage collector looks at."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    """Modules and tests stay until the end, and most of what a test makes is gone at once: the collector may look less."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
