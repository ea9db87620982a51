"""Keeps the garbage collector still while a function of Lambda loads.

What is loaded stays: with the collector on, it looks at all of it again and again while it
becomes more, an eighth of the time. `freeze` keeps the first steps from doing the same.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_has_frozen = False


@contextmanager
def loading() -> Iterator[None]:
    """Around the imports of a handler and the making of what lives as long as its process."""
    global _has_frozen
    gc.disable()
    try:
        yield
        if not _has_frozen:  # a test loads handlers many times, and what it drops is to be freed
            gc.freeze()
            _has_frozen = True
    finally:
        gc.enable()
