"""First code of every child process: tie its life to its parent's, then become `python -m MODULE`.

Run as a script (`python -P lifeline.py NAME PARENT_PID MODULE [ARGUMENT …]`) with the standard library only.
It is a separate script because code between fork and exec (`preexec_fn`) is unsafe in a parent with threads.
Only Linux supports the tie; guard.py handles other systems and the children's own processes. not_shipped.py
lists the modules hidden from each program.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import runpy
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15  # Linux keeps 15 characters of it; the whole name is in the command line


def _die_with(parent: int) -> None:
    """Send SIGKILL to this process when its parent ends, for whatever reason."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the line above took effect
        os._exit(1)


def _call_me(name: str) -> None:
    """Set the name shown by `ps` and `top`, if the system supports it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode())


def _hide_what_is_not_shipped(program: str) -> None:
    spec = importlib.util.spec_from_file_location("not_shipped", Path(__file__).with_name("not_shipped.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.meta_path.insert(0, module.NotShipped(sys.path, program))


def main(arguments: list[str]) -> None:
    _call_me(arguments[0])
    _die_with(int(arguments[1]))
    sys.path.insert(0, str(Path.cwd()))  # what `python -m` does; -P kept this file's own folder out
    sys.argv = arguments[2:]
    _hide_what_is_not_shipped(sys.argv[0])
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
