"""A directory that keeps a local run's tables and objects: made, and held by one run at a time.

What is written into it is MiniStack's business (see ministack.py).
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from baton.local.processes.problems import LocalRunError


@contextlib.contextmanager
def keeping(folder: Path) -> Iterator[None]:
    """Raises `LocalRunError` if it cannot be made, or another run holds it. A run that died holds nothing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("a")
    except OSError as error:
        raise LocalRunError(f"{folder} cannot keep anything: {error.strerror}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise LocalRunError(f"another local run keeps its data in {folder}") from error
        yield
