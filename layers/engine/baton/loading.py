"""Suspension of garbage collection while a Lambda function loads.

Loaded objects stay. With the collector on, it scans them repeatedly during loading, which takes an eighth of
the time. `freeze` excludes them from collections during the first steps.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_has_frozen = False


@contextmanager
def loading() -> Iterator[None]:
    """Suspend garbage collection around the imports of a handler and the creation of process-wide objects."""
    global _has_frozen
    gc.disable()
    try:
        yield
        if not _has_frozen:  # a test loads handlers many times, and what it drops is to be freed
            gc.freeze()
            _has_frozen = True
    finally:
        gc.enable()
