"""Threads at work beside a test's event loop: of anyio's pool, of an executor, or a tool's own."""

from __future__ import annotations

import queue
import sys
import threading
from types import FrameType

_Place = tuple[tuple[object, int], ...]
_POOL = "concurrent/futures/thread.py"
_WATCHDOG = "watchdog"  # of the engine itself (adapters/pulse.py)


class OtherThreads:
    """Tells whether a thread is at work.

    One that stands where it stood when the run began is at rest, such as that of a debugger. So is one that waits
    without a limit of time for another to wake it: an idle thread of a pool, or one that waits for the event loop.
    """

    def __init__(self) -> None:
        self._here = threading.get_ident()
        self._began = {name: _place(frame) for name, frame in sys._current_frames().items()}  # noqa: SLF001  # documented

    def are_at_work(self) -> bool:
        if threading.active_count() == 1:
            return False
        known = {thread.ident for thread in threading.enumerate() if thread.name != _WATCHDOG}
        return any(
            name in known and name != self._here and not self._is_at_rest(name, frame)
            for name, frame in sys._current_frames().items()  # noqa: SLF001  # documented
        )

    def _is_at_rest(self, name: int, frame: FrameType) -> bool:
        woken = _is_woken(frame)
        return _place(frame) == self._began.get(name) if woken is None else not woken


def _place(frame: FrameType | None) -> _Place:
    """Its place in each function that it is in."""
    found: list[tuple[object, int]] = []
    while frame is not None:
        found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(found)


def _is_woken(frame: FrameType) -> bool | None:
    """Of a thread that waits for work, or without a limit for another thread: whether it is to go on. None for any other."""
    name, file, names = frame.f_code.co_name, frame.f_code.co_filename.replace("\\", "/"), frame.f_locals
    if name == "_worker" and file.endswith(_POOL):
        return not names["work_queue"].empty()
    is_waiting = frame.f_code is threading.Condition.wait.__code__ and names.get("timeout") is None
    if not is_waiting:
        return None
    its = frame.f_back.f_locals.get("self") if frame.f_back is not None else None
    has_work = isinstance(its, queue.Queue) and bool(its.queue)
    return has_work or "waiter" not in names or not names["waiter"].locked()
